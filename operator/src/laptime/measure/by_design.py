"""What is known of a trial's requests before anything is read: what run and catalogue say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from laptime.api.loads import Load
from laptime.api.results import Figures
from laptime.api.server import Server
from laptime.api.topology import Topology
from laptime.catalog import Request, presets, processes_of


@dataclass(frozen=True)
class ByDesign:
    """What the requests of a trial take on purpose: means over its requests, in seconds."""

    requests_at_once: int | None = None
    """How many one worker of the server works on at a time; None: no fixed number, or not known."""
    upstream_seconds: float = 0.0
    """The set latency of the upstream, in the share of the requests that ask it."""
    wait_seconds: float = 0.0
    """What the scenario has the server wait."""
    think_seconds: float = 0.0
    """How long users wait after an answer before their next request; in no response time."""
    only_database: bool = False
    """The database is all that a request can wait for: each asks it and nothing else, and a single
    process takes on all requests that there are."""
    one_kind: bool = False
    """All requests are of one endpoint: they have one service time, as far as anybody knows."""

    @property
    def elsewhere_seconds(self) -> float:
        """What a request waits for at the server that any number of others may wait for too."""
        return self.upstream_seconds + self.wait_seconds


def by_design(
    server: Server,
    topology: Topology,
    load: Load,
    endpoints: Mapping[str, Figures],
    requests: Sequence[Request],
) -> ByDesign:
    """Return what is known of the requests of a trial, given its figures by endpoint.

    Nothing is known of the requests of a user's own script.
    """
    by_name = {request.name: request for request in requests}
    right = {
        name: one.requests - one.errors
        for name, one in endpoints.items()
        if one.requests > one.errors
    }
    total = sum(right.values())
    if load.script is not None or total == 0 or not right.keys() <= by_name.keys():
        return ByDesign()
    upstream = topology.upstream.latency_seconds if topology.upstream else 0.0
    asking = sum(count for name, count in right.items() if by_name[name].asks_upstream)
    waits = sum(count * by_name[name].wait_seconds for name, count in right.items())
    return ByDesign(
        requests_at_once=_requests_at_once(server, list(right)),
        upstream_seconds=upstream * asking / total,
        wait_seconds=waits / total,
        think_seconds=think_times(load, endpoints, requests)[0],
        only_database=_only_database(server, [by_name[name] for name in right]),
        one_kind=len(right) == 1,
    )


def think_times(
    load: Load, endpoints: Mapping[str, Figures], requests: Sequence[Request]
) -> tuple[float, float]:
    """Return the mean of all think times of a trial, and the longest there can be, in seconds.

    By its figures by endpoint: each request has its own, where the load says nothing.
    """
    by_name = {request.name: request for request in requests}
    total = sum(one.requests for one in endpoints.values())
    drawn = {}
    for name in endpoints:
        own = by_name[name].think_time if name in by_name else None
        if (think := load.think_time or own) is not None:
            drawn[name] = think.seconds
    if load.script is not None or total == 0 or not drawn:
        return 0.0, 0.0
    together = sum(
        endpoints[name].requests * (least + most) / 2 for name, (least, most) in drawn.items()
    )
    return together / total, max(most for _, most in drawn.values())


def _only_database(server: Server, requests: Sequence[Request]) -> bool:
    preset = presets().get(server.preset or "")
    # Of several processes one may be busy while the others wait.
    if preset is None or preset.processes_of(server) > 1:
        return False
    return all(
        bool(request.statements)
        and not request.asks_upstream
        and request.wait_seconds == 0
        and preset.requests_at_once_of(server, request.name) is None
        for request in requests
    )


def pool_size(server: Server) -> int:
    """Return how many connections to the database all processes of a server may have."""
    return processes_of(server) * server.database_connections


def _requests_at_once(server: Server, endpoints: Sequence[str]) -> int | None:
    """Return the number that holds for all of the endpoints; None where they differ in it.

    None for an image of a user's own too, whatever its `threads`: they may be all that it has for
    requests, or have nothing to do with them.
    """
    preset = presets().get(server.preset or "")
    if preset is None:
        return None
    numbers = {preset.requests_at_once_of(server, endpoint) for endpoint in endpoints}
    return numbers.pop() if len(numbers) == 1 else None
