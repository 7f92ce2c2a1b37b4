"""Experiments on what limits a server: it as it is, beside it with more of one resource. Pure.

Readings of a trial can only suspect a cause. That a resource limits a server means that more of
it, and of nothing else, makes it faster, and that can be tried: each candidate is a server of a
run like any other, so it is verified, measured in turn with the unchanged one and compared by the
same statistics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pydantic import ValidationError

from laptime.api.causes import Cause
from laptime.api.experiment import TIER_CPU, Resource
from laptime.api.resources import Resources, quantity
from laptime.api.server import Server
from laptime.api.spec import MAX_TRIALS, BenchmarkRunSpec
from laptime.api.topology import MOST_CONNECTIONS, SIZED_TIERS, OwnTopology, Topology
from laptime.catalog import presets, processes_of
from laptime.plan.pools import connections_needed, server_connections
from laptime.plan.tiers import haproxy_threads

MOST_CANDIDATES = 3
"""Resources that one experiment tries: each costs as much time as the server itself."""
_AT_ONCE = "-all"
_WITHOUT = (
    "precision",
    "stop_when",
    "smallest_difference",
    "max_repetitions",
    "budget",
    "seed",
    "pairing",
)
"""What an experiment leaves out of the spec of its run: its repetitions are a fixed number, and
there can be more than two servers in it."""
_LONGEST_NAME = 20
_QUANTITY = re.compile(r"([0-9]+(?:[.][0-9]+)?)(.*)")


_SUFFIXES = {
    Resource.DATABASE_CONNECTIONS: "-conns",
    Resource.THREADS: "-threads",
    Resource.WORKERS: "-workers",
    Resource.CPU: "-cpu",
    Resource.MEMORY: "-memory",
    Resource.POSTGRES_CPU: "-pgcpu",
    Resource.PGBOUNCER_CPU: "-poolcpu",
    Resource.HAPROXY_CPU: "-proxycpu",
    Resource.UPSTREAM_LATENCY: "-upstream",
    Resource.POOL_SIZE: "-pool",
    Resource.MAX_CONNECTIONS: "-cap",
}
_OF_TIERS = {*TIER_CPU, Resource.UPSTREAM_LATENCY, Resource.POOL_SIZE, Resource.MAX_CONNECTIONS}
_BY_CAUSE = {
    Cause.SERVER_MEMORY: Resource.MEMORY,
    Cause.DATABASE_CONNECTIONS: Resource.DATABASE_CONNECTIONS,
    Cause.POSTGRES_CPU: Resource.POSTGRES_CPU,
    Cause.PGBOUNCER_CPU: Resource.PGBOUNCER_CPU,
    Cause.HAPROXY_CPU: Resource.HAPROXY_CPU,
    Cause.PGBOUNCER_POOL: Resource.POOL_SIZE,
    Cause.HAPROXY_CAP: Resource.MAX_CONNECTIONS,
    Cause.UPSTREAM: Resource.UPSTREAM_LATENCY,
    # Of more workers each has fewer connections, the full one too.
    Cause.UNEVEN_WORKERS: Resource.WORKERS,
}


@dataclass(frozen=True)
class Arm:
    """A server with more of some resources than the one that it is compared with."""

    server: Server
    change: str
    """What differs, for people: `10 database connections instead of 5`."""


@dataclass(frozen=True)
class Experiment:
    """A run that tries candidates: the unchanged server first, which is its baseline."""

    spec: BenchmarkRunSpec
    arms: tuple[Arm, ...]
    besides: str = ""
    """What is otherwise than in the run for all arms, the unchanged one too; empty: nothing."""


class NothingToTryError(ValueError):
    """There is nothing that the server could be given more of; the message says why."""


class TooManyTrialsError(NothingToTryError):
    """There is, and as often as that was asked for is more than a run may have."""


def candidates(
    server: Server, causes: Iterable[Cause], given: str | None = None
) -> tuple[Resource, ...]:
    """Return what may limit a server by these causes, the likeliest first, without repetition.

    Locks, disks, nodes and generators stand for nothing here: all arms of an experiment share them.
    `given` is a limit of CPU, as a quantity, that the cluster gave it where the run has none.
    """
    found = (resource for cause in causes for resource in _resources(server, cause, given))
    return tuple(dict.fromkeys(found))


def _resources(server: Server, cause: Cause, given: str | None) -> Sequence[Resource]:
    if cause in _BY_CAUSE:
        return [_BY_CAUSE[cause]]
    if cause is Cause.SERVER_CONCURRENCY:
        # A second thread is more than one thread more: servers with one often do without threads,
        # and with several they have pools and locks.
        threaded = _threads_count(server) and (_threads(server) or 1) > 1
        return [Resource.THREADS if threaded else Resource.WORKERS]
    if cause is not Cause.SERVER_CPU:
        return []
    own = _cpu(server)
    if own is None and given is None:
        return [Resource.WORKERS]
    # Whether a worker uses more than one core nobody knows, so a limit above that may be what
    # holds it; both are tried, and both at once, since at one bound neither alone gives anything.
    alone = workers_fill(server, given) if own is None else quantity(own) < server.worker_count
    return [Resource.CPU] if alone else [Resource.CPU, Resource.WORKERS]


def workers_fill(server: Server, given: str | None) -> bool:
    """Return whether the workers of a server can use all CPU that the cluster limits it to.

    More of them have the same `given` limit (a quantity; None: there is none), which no experiment
    doubles: if they gain nothing, that is no word against CPU.
    """
    return given is not None and quantity(given) <= server.worker_count


def possible(
    spec: BenchmarkRunSpec, name: str, resources: Sequence[Resource]
) -> tuple[list[Resource], list[str]]:
    """Return which of these a server of a run can be given more of, and why not of the others.

    Raises:
        NothingToTryError: the server is not there or not Laptime's to change.
    """
    server, found, why_not = changeable(spec, name), [], []
    for one in resources:
        try:
            _more(spec, server, one)
        except NothingToTryError as error:
            why_not.append(str(error))
        else:
            found.append(one)
    return found, why_not


def experiment(
    spec: BenchmarkRunSpec,
    name: str,
    resources: Sequence[Resource],
    loads: Sequence[str],
    repetitions: int,
) -> Experiment:
    """Return the run that tries whether more of these resources make a server of a run faster.

    `loads` are the names of those of the run that are driven. Of each resource an arm has twice as
    much, of a latency half; where several are tried, the last arm has more of all, since of two
    that limit in series neither gives anything alone.

    Raises:
        NothingToTryError: the server is not there or not Laptime's to change, the resource is not
            one that can be doubled, or that would be more than a run may have.
        TooManyTrialsError: it would be more trials than a run may have.
    """
    server = changeable(spec, name)
    if Resource.DATABASE_CONNECTIONS in resources and spec.topology.postgres is None:
        raise NothingToTryError("the run has no Postgres to connect to")
    unchanged = server.model_copy(update={"profile": False})
    more = [_named(_more(spec, unchanged, one), _SUFFIXES[one]) for one in resources]
    if len(resources) > 1:
        all_of_it = unchanged
        for one in resources:
            all_of_it = _more(spec, all_of_it, one)
        more.append(_named(all_of_it, _AT_ONCE))
    arms = [Arm(one, change(spec, unchanged, one)) for one in more]
    trials = (len(arms) + 1) * len(loads) * repetitions
    if trials > MAX_TRIALS:
        raise TooManyTrialsError(f"{trials} trials are more than {MAX_TRIALS}: fewer repetitions")
    topology = _with_room(spec, [unchanged, *(one.server for one in arms)])
    updates = {
        "servers": [unchanged, *(one.server for one in arms)],
        "baseline": name,
        "topology": topology,
        "loads": [one for one in spec.loads if one.name in loads],
        "repetitions": repetitions,
        # They say by which response time servers are compared.
        "objectives": [
            one.model_copy(update={"server": name})
            for one in spec.objectives
            if one.load in loads and one.metric.is_latency
        ],
        **dict.fromkeys(_WITHOUT),
        **dict.fromkeys(("control", "suspend", "cancel", "verify_only"), False),
        "retry": 0,
        "ttl_seconds_after_finished": None,
    }
    made = spec.model_copy(update=updates)
    return Experiment(made, tuple(arms), besides(spec, made))


def tried(spec: BenchmarkRunSpec) -> list[Resource]:
    """Return what an experiment tries, by the names of its arms; `spec` is that of `experiment`."""
    arms = [one.name for one in spec.servers if one.name != spec.baseline_name]
    return [one for arm in arms for one, suffix in _SUFFIXES.items() if arm.endswith(suffix)]


def besides(before: BenchmarkRunSpec, after: BenchmarkRunSpec) -> str:
    """Return what all arms of an experiment have otherwise than the run had it; empty: nothing."""
    said = []
    for what, then, now in (
        ("connections of Postgres", _most_connections(before), _most_connections(after)),
        ("threads of HAProxy", haproxy_threads(before), haproxy_threads(after)),
    ):
        if now != then:
            said.append(f"{now} {what} instead of {then}, for all of them")
    if before.duet and not after.duet:
        said.append(
            "each is measured alone, and the run measured the server at the same time as another "
            "one (pairing: duet), which took its share of the node: there it may be something else"
        )
    return "; ".join(said)


def _most_connections(spec: BenchmarkRunSpec) -> int | None:
    return spec.topology.postgres.max_connections if spec.topology.postgres else None


def changeable(spec: BenchmarkRunSpec, name: str) -> Server:
    """Return the server of that name, which Laptime deploys.

    Raises:
        NothingToTryError: there is none, or it is a Service that is there already.
    """
    server = next((one for one in spec.servers if one.name == name), None)
    if server is None:
        there = ", ".join(one.name for one in spec.servers)
        named = name or "''"
        raise NothingToTryError(f"there is no server {named}; there is {there}")
    if not server.deployed:
        raise NothingToTryError(
            f"{name} is a service that Laptime does not deploy: it cannot be given more"
        )
    return server


def change(spec: BenchmarkRunSpec, unchanged: Server, arm: Server) -> str:
    """Return how an arm differs from the unchanged server of a run, for people."""
    tiers, before_them, parts = spec.topology_of(arm), spec.topology_of(unchanged), []
    for what, after, before in (
        (_workers(unchanged), arm.worker_count, unchanged.worker_count),
        (_if("threads", arm, "the image heeds THREADS"), _threads(arm), _threads(unchanged)),
        (_pools(unchanged, arm), server_connections(arm), server_connections(unchanged)),
        ("CPU", _cpu(arm), _cpu(unchanged)),
        ("memory", _memory(arm), _memory(unchanged)),
        *(
            (f"CPU of {title}", tiers.cpu_of(tier), before_them.cpu_of(tier))
            for tier, title in SIZED_TIERS.items()
        ),
        ("latency of the upstream", _latency(tiers), _latency(before_them)),
        ("connections in PgBouncer's pool", _pool(tiers), _pool(before_them)),
        ("requests at once through HAProxy", _cap(tiers), _cap(before_them)),
    ):
        if after != before:
            parts.append(f"{after} {what} instead of {before}")
    return ", ".join(parts)


def says_all(spec: BenchmarkRunSpec, unchanged: Server, arm: Server) -> bool:
    """Return whether an arm differs from the unchanged server in what `change` says alone."""
    modes = {
        tiers.pgbouncer and tiers.pgbouncer.pool_mode
        for tiers in map(spec.topology_of, (unchanged, arm))
    }
    as_before = {
        one: getattr(unchanged, one)
        for one in ("name", "workers", "threads", "database_connections", "topology")
    }
    if arm.resources is not None:
        before = {"cpu": _cpu(unchanged), "memory": _memory(unchanged)}
        as_before["resources"] = arm.resources.model_copy(update=before)
    same = arm.model_copy(update=as_before) == unchanged
    return same and len(modes) == 1 and change(spec, unchanged, arm) != ""


def _workers(unchanged: Server) -> str:
    heeded = [] if unchanged.knows_workers else ["the image heeds WORKERS"]
    return _if("workers", unchanged, *heeded)


def _pools(unchanged: Server, arm: Server) -> str:
    told = unchanged.database_connections != arm.database_connections
    heeded = ["the image heeds DATABASE_CONNECTIONS"] if told else []
    # Nobody knows what workers of an image are.
    several = ["each worker has a pool of its own"] if arm.worker_count > 1 else []
    return _if("database connections", arm, *heeded, *several)


def _if(what: str, server: Server, *ifs: str) -> str:
    """Return what there is more of; of an image it rests on what nobody can see."""
    return f"{what}, if {' and '.join(ifs)}," if ifs and server.preset is None else what


def _more(spec: BenchmarkRunSpec, server: Server, resource: Resource) -> Server:
    """Return the server with twice of a resource and, as far as that goes, nothing else."""
    try:
        return Server.model_validate(_doubled(spec, server, resource).to_wire())
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise NothingToTryError(
            f"{server.name} cannot have twice the {resource}: {problem}"
        ) from None


def _doubled(spec: BenchmarkRunSpec, server: Server, resource: Resource) -> Server:
    if resource in _OF_TIERS:
        return _doubled_tier(spec, server, resource)
    if resource is Resource.DATABASE_CONNECTIONS:
        return server.model_copy(update={"database_connections": 2 * server.database_connections})
    if resource is Resource.THREADS:
        threads = _threads(server)
        if server.preset is not None and not _threads_count(server):
            raise NothingToTryError(
                f"threads do not bound what {server.name} works on at once: try workers instead"
            )
        if threads is None:
            raise NothingToTryError(
                f"nobody knows how many threads {server.name} has: try workers instead"
            )
        return server.model_copy(update={"threads": 2 * threads})
    if resource is Resource.WORKERS:
        more = server.model_copy(update={"workers": 2 * server.worker_count})
        if server.preset is None:
            # Its workers may share a pool, of which half would be less: it keeps what it is told.
            return more
        # Each process has a pool of its own: half of it, so that the connections stay as many.
        each = server.database_connections * processes_of(server) / processes_of(more)
        return more.model_copy(update={"database_connections": max(1, -int(-each // 1))})
    of_memory = resource is Resource.MEMORY
    doubled = _twice(_memory(server) if of_memory else _cpu(server))
    if server.resources is None or doubled is None:
        of_node = (
            "it takes what its node has; where that is short of memory, measure it on one with "
            "more in a second run; "
        )
        what, instead = ("memory", of_node) if of_memory else ("CPU", "try workers instead; ")
        raise NothingToTryError(
            f"{server.name} has no limit of {what} in the run: {instead}where a LimitRange limits "
            f"it, write resources.{resource} of it in a run, and explain that one"
        )
    resources = server.resources.model_copy(update={resource.value: doubled})
    return server.model_copy(update={"resources": resources})


def _twice(amount: str | None) -> str | None:
    """Return twice of a quantity, written as it is; None without one."""
    match = _QUANTITY.fullmatch(amount or "")
    return f"{(2 * Decimal(match[1])).normalize():f}{match[2]}" if match else None


def _doubled_tier(spec: BenchmarkRunSpec, server: Server, resource: Resource) -> Server:
    """Return the server with twice of what a tier gives to it: the tier itself is shared by all."""
    topology = spec.topology_of(server)
    own = (server.topology or OwnTopology()).to_wire()
    if resource in TIER_CPU:
        tier = TIER_CPU[resource]
        own[tier] = {**own.get(tier, {}), "cpu": _twice_the_cpu(topology, tier)}
    elif resource is Resource.UPSTREAM_LATENCY:
        own["upstream"] = {"latency": _half_the_latency(topology)}
    elif resource is Resource.POOL_SIZE:
        size = _pool(topology)
        if size is None:
            raise NothingToTryError("the run has no PgBouncer")
        own["pgbouncer"] = {**own.get("pgbouncer", {}), "poolSize": 2 * size}
    else:
        cap = _cap(topology)
        if cap is None:
            raise NothingToTryError("the run has no HAProxy with maxConnections")
        own["haproxy"] = {**own.get("haproxy", {}), "maxConnections": 2 * cap}
    return server.model_copy(update={"topology": OwnTopology.model_validate(own)})


def _twice_the_cpu(topology: Topology, tier: str) -> str:
    title, cpu = SIZED_TIERS[tier], topology.cpu_of(tier)
    doubled = _twice(cpu)
    if doubled is None:
        if topology.tier(tier) is None:
            raise NothingToTryError(f"the run has no {title}")
        raise NothingToTryError(
            f"{title} has no limit of CPU in the run: it takes what its node has; where a "
            f"LimitRange limits it, write topology.{tier}.resources.cpu in a run, and explain "
            "that one"
        )
    if tier == "pgbouncer" and quantity(cpu or "0") >= 1:
        raise NothingToTryError(f"{title} is one thread: it cannot use more than the {cpu} CPU")
    return doubled


def _half_the_latency(topology: Topology) -> str:
    if topology.upstream is None:
        raise NothingToTryError("the run has no upstream")
    half = topology.upstream.latency_seconds / 2
    if not half:
        raise NothingToTryError("the upstream answers at once already")
    return f"{1000 * half:g}ms"


def _latency(topology: Topology) -> str | None:
    return topology.upstream.latency if topology.upstream else None


def _pool(topology: Topology) -> int | None:
    return topology.pgbouncer.pool_size if topology.pgbouncer else None


def _cap(topology: Topology) -> int | None:
    return topology.haproxy.max_connections if topology.haproxy else None


def _named(server: Server, suffix: str) -> Server:
    start = server.name[: _LONGEST_NAME - len(suffix)].rstrip("-")
    if start + suffix == server.name:
        start = start[:-1].rstrip("-")
    return server.model_copy(update={"name": start + suffix})


def _with_room(spec: BenchmarkRunSpec, servers: Sequence[Server]) -> Topology:
    """Return the topology, for all arms the same, with a Postgres that takes all connections."""
    postgres = spec.topology.postgres
    if postgres is None:
        return spec.topology
    needed = connections_needed(spec.model_copy(update={"servers": servers}))
    if needed <= postgres.max_connections:
        return spec.topology
    if needed > MOST_CONNECTIONS:
        raise NothingToTryError(f"{needed} connections are more than Postgres takes here")
    roomy = postgres.model_copy(update={"max_connections": needed})
    return spec.topology.model_copy(update={"postgres": roomy})


def _threads(server: Server) -> int | None:
    preset = presets().get(server.preset or "")
    if preset is None:
        return server.threads
    # A preset that has a thread for each request has one where nobody says more.
    return preset.threads_of(server) or (1 if _threads_count(server) else None)


def _threads_count(server: Server) -> bool:
    """Say whether the requests that a server works on at once are bound by its `threads`."""
    preset = presets().get(server.preset or "")
    if preset is None:
        return server.threads is not None
    return any(one.limit == "threads" for one in preset.requests_at_once)


def _cpu(server: Server) -> str | None:
    resources = server.resources or Resources()
    return resources.cpu


def _memory(server: Server) -> str | None:
    resources = server.resources or Resources()
    return resources.memory
