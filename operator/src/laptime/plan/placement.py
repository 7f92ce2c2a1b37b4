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


def places_of(
    results: Iterable[TrialResult], lost: int, deployed: Collection[str], parts: Collection[str]
) -> Places:
    """Return where these parts of a trial belong, lost so often: where those measured first were.

    A difference between nodes is then the same for all servers, and never taken for one between
    them. After an attempt that was lost it may go elsewhere: the node may have been why. So may the
    trials after one that did, until one was back. `deployed` are the servers that Laptime deploys:
    where the pods of a Service are says nothing of theirs.
    """
    first: dict[str, list[str]] = {}
    last: dict[str, list[str]] = {}
    for result in in_time(results):
        for part in result.nodes.keys() & set(parts):
            if part != "server" or result.server in deployed:
                first.setdefault(part, result.nodes[part])
                last[part] = result.nodes[part]
    if not first:
        return Places()
    stayed = all(set(last[part]) <= set(nodes) for part, nodes in first.items())
    once = {part: tuple(dict.fromkeys(nodes)) for part, nodes in first.items()}
    return Places(once, firm=stayed and not lost)


def in_time(results: Iterable[TrialResult]) -> list[TrialResult]:
    """Return those that measured something, in the order in which they did.

    It is not that of the plan where one was asked for again.
    """
    measured = (one for one in results if one.figures is not None)
    return sorted(measured, key=lambda one: (one.finished_at or "", one.ordinal))
