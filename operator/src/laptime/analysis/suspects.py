"""What readings suspect to limit a server, and what of it an experiment can try. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.analysis.explained import WORTH, Finding, given_limit, limited_by_the_cluster
from laptime.api.causes import Cause, LimitedBy
from laptime.api.experiment import TIER_CPU, Resource
from laptime.api.loads import MAX_CONNECTIONS, MAX_USERS, Load
from laptime.api.results import ResultRow
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.plan.experiments import candidates, possible

TOO_OLD = "the CPU of a pod can be changed while it runs from Kubernetes 1.33 on"
_UNTOLD = (
    "whether the CPU of a pod can be changed while it runs is not known, since the cluster does "
    "not say"
)


@dataclass(frozen=True)
class NotToBeHad:
    """What is suspected, and cannot be tried: there is no more of it here for one server alone."""

    candidate: Resource | Cause
    """A cause where it is nothing that a server could have more of."""
    loads: tuple[str, ...]
    """Those that it may limit."""
    why: str
    finding: Finding = Finding.NOT_TO_BE_HAD
    """Not known: nobody says whether it is to be had."""


@dataclass(frozen=True)
class Suspects:
    """What is suspected of a server, the likeliest first."""

    by_load: Mapping[str, tuple[Resource, ...]]
    """What may limit it under each load, to be had or not."""
    can_be: tuple[Resource, ...]
    """What it can be given more of."""
    not_to_be_had: tuple[NotToBeHad, ...]

    def but_for(self, done: Collection[Resource], confirmed: Collection[str]) -> Suspects:
        """Return the same without what was tried.

        Under the loads `confirmed` something of it made the server faster, so they are not what
        limits it.
        """
        return Suspects(
            self.by_load,
            tuple(one for one in self.can_be if one not in done),
            tuple(
                one
                for one in self.not_to_be_had
                if one.candidate not in done
                and not (one.candidate is Cause.OFFERED_LOAD and set(one.loads) <= set(confirmed))
            ),
        )


def suspects(
    spec: BenchmarkRunSpec,
    server: Server,
    rows: Sequence[ResultRow],
    resizes: bool | None,
) -> Suspects:
    """Return what is suspected of a server of a run by these rows, which are its own.

    `resizes` says whether the cluster changes the CPU of a pod that runs; None: nobody knows.
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
        why, finding = _why_not(spec, server, one, given), Finding.NOT_TO_BE_HAD
        if why is None and one in TIER_CPU and not resizes:
            why = f"{one}: {TOO_OLD}"
            if resizes is None:
                why, finding = f"{one}: {_UNTOLD}; --more {one} tries it", Finding.NOT_KNOWN
        if why is None:
            can_be.append(one)
        else:
            loads = tuple(load for load, found in resources.items() if one in found)
            without.append(NotToBeHad(one, loads, why, finding))
    for cause in every:
        if not candidates(server, [cause], given):
            loads = tuple(load for load, found in by_load.items() if cause in found)
            without += _shared(spec, cause, {load: causes[load] for load in loads})
    return Suspects(resources, tuple(can_be), tuple(without))


def _why_not(
    spec: BenchmarkRunSpec, server: Server, resource: Resource, given: str | None
) -> str | None:
    """Return why a server cannot have more of a resource; None: it can."""
    if given is not None and resource is Resource.CPU:
        return limited_by_the_cluster(server.name, given)
    _, why_not = possible(spec, server.name, [resource])
    return why_not[0] if why_not else None


def _shared(
    spec: BenchmarkRunSpec, cause: Cause, loads: Mapping[str, LimitedBy]
) -> Iterator[NotToBeHad]:
    """Yield what all servers of a run share, so that none alone can have more of it."""
    if cause is Cause.OFFERED_LOAD:
        for load, found in loads.items():
            if (why := load_itself(spec.load(load), found)) is not None:
                yield NotToBeHad(cause, (load,), why)
    elif cause is not Cause.UNKNOWN:
        yield NotToBeHad(
            cause,
            tuple(loads),
            f"{wording.cause(cause)}, which all servers of a run share: change it in a second run, "
            "and compare both",
        )


def load_itself(load: Load, found: LimitedBy) -> str | None:
    """Return that a load is suspected to limit a server itself, by what, and how to try more.

    None where requests come at a rate: what was sent was answered, and nothing limited it.
    """
    if load.closed is None:
        return None
    # Whether its users wait for answers or think is what the readings say.
    by = f": {found.evidence}" if found.cause is Cause.OFFERED_LOAD else ""
    said = f"what is suspected under {load.name} is the load itself{by}. All servers share a load"
    connections, requests = 2 * load.closed.connections, load.closed.requests
    users = connections * load.streams
    if connections > MAX_CONNECTIONS or users > MAX_USERS:
        return f"{said}, and none may have twice as many connections"
    needed = f" and at least {users} requests" if requests is not None and requests < users else ""
    return (
        f"{said}, so write a second one with {connections} connections{needed} beside it in one "
        "run: they give 5 % or more for sure where the lower end of its requests/s is at least "
        f"{WORTH} times the upper end of those of {load.name}"
    )
