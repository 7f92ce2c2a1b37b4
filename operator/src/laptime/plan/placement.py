"""Which nodes the trials of a run belong on: those of its first. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from laptime.api.results import TrialResult


@dataclass(frozen=True)
class Places:
    """Where the next trial belongs, by its part; what has no nodes may go anywhere."""

    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    firm: bool = True
    """Whether it waits for them; else it rather goes elsewhere, and its figures are doubtful."""


def places_of(results: Iterable[TrialResult], lost: int, deployed: Collection[str]) -> Places:
    """Return where a trial belongs that was lost so often: where the first measured one was.

    A difference between nodes is then the same for all servers, and never taken for one between
    them. After an attempt that was lost it may go elsewhere: the node may have been why. `deployed`
    are the servers that Laptime deploys: where the pods of a Service are says nothing of theirs.
    """
    told = (one for one in results if one.figures is not None)
    nodes: dict[str, tuple[str, ...]] = {}
    for result in sorted(told, key=lambda one: one.ordinal):
        for part, names in result.nodes.items():
            if part != "server" or result.server in deployed:
                nodes.setdefault(part, tuple(names))
    return Places(nodes, firm=not lost) if nodes else Places()
