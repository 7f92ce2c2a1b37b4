"""What readings suspect to limit a server, and what of it an experiment can try. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.analysis.explained import WORTH, given_limit, limited_by_the_cluster
from laptime.api.causes import Cause
from laptime.api.experiment import Resource
from laptime.api.loads import Load
from laptime.api.results import ResultRow
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.plan.experiments import candidates, possible


@dataclass(frozen=True)
class NotToBeHad:
    """What is suspected, and cannot be tried: there is no more of it here for one server alone."""

    candidate: Resource | Cause
    """A cause where it is nothing that a server could have more of."""
    loads: tuple[str, ...]
    """Those that it may limit."""
    why: str


@dataclass(frozen=True)
class Suspects:
    """What is suspected of a server, the likeliest first."""

    by_load: Mapping[str, tuple[Resource, ...]]
    """What may limit it under each load, to be had or not."""
    can_be: tuple[Resource, ...]
    """What it can be given more of."""
    not_to_be_had: tuple[NotToBeHad, ...]

    def but_for(self, done: Collection[Resource]) -> Suspects:
        """Return the same without what was tried."""
        return Suspects(
            self.by_load,
            tuple(one for one in self.can_be if one not in done),
            tuple(one for one in self.not_to_be_had if one.candidate not in done),
        )


def suspects(
    spec: BenchmarkRunSpec,
    server: Server,
    rows: Sequence[ResultRow],
    impossible: Mapping[Resource, str],
) -> Suspects:
    """Return what is suspected of a server of a run by these rows, which are its own.

    `impossible` is what the cluster cannot give more of, and why.
    """
    # A limit that stands in no run cannot be doubled.
    given = given_limit(server.name, rows)
    causes = {row.load: row.limited_by for row in rows if row.limited_by is not None}
    by_load = {load: [one.cause, *one.also] for load, one in causes.items()}
    # What limits a load comes before what was merely near it.
    first = [one.cause for one in causes.values()]
    every = list(dict.fromkeys([*first, *(one for found in by_load.values() for one in found)]))
    resources = {load: candidates(server, found, given) for load, found in by_load.items()}
    can_be: list[Resource] = []
    without: list[NotToBeHad] = []
    for one in candidates(server, every, given):
        why = _why_not(spec, server, one, given, impossible)
        if why is None:
            can_be.append(one)
        else:
            loads = tuple(load for load, found in resources.items() if one in found)
            without.append(NotToBeHad(one, loads, why))
    for cause in every:
        if not candidates(server, [cause], given):
            loads = tuple(load for load, found in by_load.items() if cause in found)
            without += _shared(spec, cause, loads)
    return Suspects(resources, tuple(can_be), tuple(without))


def _why_not(
    spec: BenchmarkRunSpec,
    server: Server,
    resource: Resource,
    given: str | None,
    impossible: Mapping[Resource, str],
) -> str | None:
    """Return why a server cannot have more of a resource; None: it can."""
    if given is not None and resource is Resource.CPU:
        return limited_by_the_cluster(server.name, given)
    _, why_not = possible(spec, server.name, [resource])
    return why_not[0] if why_not else impossible.get(resource)


def _shared(spec: BenchmarkRunSpec, cause: Cause, loads: tuple[str, ...]) -> Iterator[NotToBeHad]:
    """Yield what all servers of a run share, so that none alone can have more of it."""
    if cause is Cause.OFFERED_LOAD:
        for load in loads:
            if (why := load_itself(spec.load(load))) is not None:
                yield NotToBeHad(cause, (load,), why)
    elif cause is not Cause.UNKNOWN:
        yield NotToBeHad(
            cause,
            loads,
            f"{wording.cause(cause)}, which all servers of a run share: change it in a second run, "
            "and compare both",
        )


def load_itself(load: Load) -> str | None:
    """Return what limits a server under a load of which nothing had to queue, and how to try more.

    None where requests come at a rate: what was sent was answered, and nothing limited it.
    """
    if load.closed is None:
        return None
    connections = load.closed.connections
    of = f" of {load.streams} streams" if load.streams > 1 else ""
    named = f"{connections} {'connections' if connections > 1 else 'connection'}{of}"
    waits = "each of which" if connections * load.streams > 1 else "which"
    return (
        f"what limits it under {load.name} is the load itself: {named}, {waits} waits for its "
        f"answer. All servers share a load, so write a second one with {2 * connections} "
        "connections beside it in one run: they give 5 % or more for sure where the lower end of "
        f"its requests/s is at least {WORTH} times the upper end of those of {load.name}"
    )
