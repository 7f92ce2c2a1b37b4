"""What limited a trial: the innermost resource that was full. Pure.

The reasoning stands in docs/measurement.md, "What limited it". In short: a request holds outer
resources (a place at the proxy, a thread, a connection) while it waits for inner ones, so a full
outer resource is a consequence wherever an inner one is full too. That is the definition of a
software bottleneck by J. E. Neilson, C. M. Woodside, D. C. Petriu and S. Majumdar (Software
Bottlenecking in Client-Server Systems and Rendezvous Networks, IEEE TSE 21(9), 1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

from laptime.api.causes import Cause, LimitedBy
from laptime.api.evidence import DatabaseEvidence, TierEvidence
from laptime.api.loads import Load
from laptime.api.node_path import NodePath
from laptime.api.results import Figures
from laptime.api.server import Server
from laptime.api.side_services import SideService
from laptime.api.topology import Topology
from laptime.api.usage import Source, TrialUsage
from laptime.measure.by_design import ByDesign
from laptime.measure.saturation import (
    NEAR,
    POOLS,
    SATURATED,
    SLOTS,
    Resource,
    Scene,
    Waiting,
    busy_cpus,
    busy_network,
    busy_nodes,
    delay_held_back,
    full_slots,
    lost_connections,
    thread_of_unknown_server,
    waits_in_postgres,
    worker_without_pause,
)
from laptime.measure.stalls import stalls
from laptime.measure.waits import waits_by_kind
from laptime.measure.workers import uneven_workers

RATE_MET = 0.99
DROPPED_AT_MOST = 0.001

_SERVED_SHARE = 0.75
_UPSTREAM_SHARE = 0.75
_NARROW = 1.5
_FAST_START = 0.6
_CARRIERS = (("connection", "connections"), ("stream", "streams"))
_ONE_SLOT = 0.7
_PLACES = {
    Cause.PGBOUNCER_POOL: "PgBouncer's pool",
    Cause.DATABASE_CONNECTIONS: "the server's pool",
    Cause.SERVER_CONCURRENCY: "the server's slots",
}


def limited_by(
    load: Load,
    server: Server,
    topology: Topology,
    figures: Figures,
    usage: TrialUsage | None,
    tiers: TierEvidence | None,
    generator_share: float | None,
    known: ByDesign,
    services: Sequence[SideService] = (),
    paths: Sequence[NodePath] = (),
) -> LimitedBy:
    """Return what held the throughput of a trial down, with the readings that say so.

    `unknown` is an answer: nothing is named that the readings do not show.
    """
    if figures.latency is None or figures.requests_per_second <= 0:
        return LimitedBy(cause=Cause.UNKNOWN, evidence="there was no right answer")
    scene = Scene(server, topology, figures, usage, tiers or TierEvidence(), services, paths)
    cpus = busy_cpus(scene, generator_share)
    nodes = busy_nodes(scene)
    network = busy_network(scene)
    lost = lost_connections(scene)
    slots = full_slots(scene, known)
    waits = waits_in_postgres(scene, slots)
    stalled = stalls(scene)
    uneven = uneven_workers(scene, known)
    of_several = [uneven] if uneven else []
    every = [*cpus, *nodes, *network, *lost, *waits, *slots, *stalled, *of_several]

    met = _rate_met(load, figures)
    if met is not None:
        return _named(met, every)
    fullest = max(cpus, key=lambda one: one.utilisation, default=None)
    if fullest is not None and _full(fullest):
        return _named(fullest, every)
    without_pause = worker_without_pause(scene)
    worker = [without_pause] if without_pause else []
    # A part that nobody watched may have reached a limit of its own, which comes before its node.
    for resource in [*(nodes if scene.parts_watched else []), *worker, *network, *lost]:
        if _full(resource):
            return _named(resource, every)
    thinking = _thinking(load, figures, known)
    if thinking is not None:
        return _named(thinking, every)
    if _one_connection(load):
        return _named(_too_few_connections(scene, load, known), every)
    if not scene.watched:
        return _unwatched(scene, every)
    if silent := scene.silent_tiers:
        return _behind_silent_tiers(scene, load, known, silent, every)
    waited = _upstream(scene, known)
    of_upstream = [waited] if waited else []
    every += of_upstream
    for why in (delay_held_back(scene), thread_of_unknown_server(scene)):
        if why is not None:
            return LimitedBy(cause=Cause.UNKNOWN, evidence=why, also=_near(every, Cause.UNKNOWN))
    for wait in waits:
        if wait.mostly:
            return _named(wait, every)
    for wait in waits:
        if wait.in_turn:
            return _one_lock_or_several(wait, every)
    served = _work_per_connection(scene, load, known)
    # Whoever waits for a disk may have a thread meanwhile; who has a connection waits for Postgres.
    # Where nearly all requests are elsewhere, what the pod waits for holds up few of them.
    pools = [one for one in slots if one.cause in POOLS]
    inner = pools if served or any(map(_full, of_upstream)) else [*pools, *stalled]
    # What all workers share comes before a worker, which holds up those that it accepted alone.
    for resource in [*inner, *slots, *of_upstream, *of_several]:
        if _full(resource):
            return _named(resource, every)
    for found in (
        served,
        _hidden_slots(scene, load, known, every),
        _places_left(scene, load, known, every),
    ):
        if found is not None:
            return _named(found, every)
    return _unknown([*every, *worker])


def _full(resource: Resource) -> bool:
    return resource.utilisation >= SATURATED


def _named(cause: Resource, every: list[Resource]) -> LimitedBy:
    behind = _in_series(cause, every)
    said = [f"of {_PLACES[one.cause]} behind it {one.in_use:.0%} were taken too" for one in behind]
    also = [*(one.cause for one in behind), *_near(every, besides=cause.cause)]
    return LimitedBy(
        cause=cause.cause,
        evidence="; ".join([cause.evidence, *said]),
        also=list(dict.fromkeys(also)),
    )


def _in_series(cause: Resource, every: list[Resource]) -> list[Resource]:
    """Return the slots inside a full one that are as full, though few or none wait for them.

    The outer one lets no more through than they take: with more of it alone all would wait there,
    and it would give 1 / 0.9 of the throughput at most.
    """
    inside = SLOTS[: SLOTS.index(cause.cause)] if cause.cause in SLOTS else ()
    return [one for one in every if one.cause in inside and one.in_use >= SATURATED]


def _near(every: list[Resource], besides: Cause) -> list[Cause]:
    close = [one for one in every if one.utilisation >= NEAR and one.cause is not besides]
    close.sort(key=lambda one: -one.utilisation)
    return list(dict.fromkeys(one.cause for one in close))


def _rate_met(load: Load, figures: Figures) -> Resource | None:
    if load.open is None:
        return None
    dropped = figures.errors_by_kind.get("dropped", 0)
    if figures.requests_per_second < RATE_MET * load.open.rate:
        return None
    if dropped > DROPPED_AT_MOST * figures.requests:
        return None
    said = (
        f"{figures.requests_per_second:,.0f} of the {load.open.rate:,} requests/s that were asked "
        "for were answered: more were not sent"
    )
    return Resource(Cause.OFFERED_LOAD, 1.0, said)


def _thinking(load: Load, figures: Figures, known: ByDesign) -> Resource | None:
    """Return the load as the cause where its users think for nearly all of the time.

    Then answers that came at once would make it hardly faster.
    """
    if load.closed is None or not load.users:
        return None
    share = figures.requests_per_second * known.think_seconds / load.users
    if share < _SERVED_SHARE:
        return None
    said = (
        f"{load.users} users think for {min(share, 1.0):.0%} of the time ("
        f"{_ms(known.think_seconds)} after an answer) and wait for answers in the rest of it: more "
        "users would send more"
    )
    return Resource(Cause.OFFERED_LOAD, 1.0, said)


def _one_connection(load: Load) -> bool:
    return load.closed is not None and load.users == 1


def _too_few_connections(scene: Scene, load: Load, known: ByDesign) -> Resource:
    connections = (load.users or 0) if load.closed else 0
    waits = [
        f"{_ms(seconds)} {what}"
        for seconds, what in (
            (known.wait_seconds, "are what the scenario waits"),
            (known.upstream_seconds, "are the upstream's"),
            (scene.delay_seconds, "are the delay before the servers"),
        )
        if seconds > 0
    ]
    said = (
        f"{connections} {_CARRIERS[load.streams > 1][connections > 1]} with one request "
        f"each, a mean response time of {_time(scene.figures)}"
        f"{' (' + ', '.join(waits) + ')' if waits else ''}, and nothing that they had to "
        f"queue for: more {_CARRIERS[load.streams > 1][1]} would be answered more often"
    )
    return Resource(Cause.OFFERED_LOAD, 1.0, said)


def _unwatched(scene: Scene, every: list[Resource]) -> LimitedBy:
    full = [one for one in every if _full(one)]
    usage = scene.usage
    if scene.server.service is not None:
        why = f"Laptime does not watch the pods of Service {scene.server.service.name}"
    elif usage is None or usage.source is Source.NOBODY:
        why = "nobody watched the pods"
    elif scene.too_short:
        window, apart = scene.figures.window_seconds, usage.resolution_seconds or 0.0
        why = (
            f"{window:.2g} s were measured, too short for readings {apart:.2g} s apart: "
            "more requests, or a longer duration, would tell"
        )
    else:
        why = "their readings are missing"
    said = f"whether a CPU was busy is not known: {why}"
    if full:
        said = f"{full[0].evidence}; {said}"
    return LimitedBy(cause=Cause.UNKNOWN, evidence=said, also=_near(every, Cause.UNKNOWN))


def _behind_silent_tiers(
    scene: Scene, load: Load, known: ByDesign, silent: Sequence[str], every: list[Resource]
) -> LimitedBy:
    """Return what nearly all of the time went to, if that is known; else that it is not.

    Requests that wait in a tier look like requests that wait at the server.
    """
    waited = _upstream(scene, known)
    spent = waited if waited and _full(waited) else _work_per_connection(scene, load, known)
    if spent is not None:
        return _named(spent, every)
    said = (
        f"whether requests waited at {' or '.join(silent)} is not known: Prometheus has nothing, "
        "or too little, that was scraped there (docs/watching.md)"
    )
    return LimitedBy(cause=Cause.UNKNOWN, evidence=said, also=_near(every, Cause.UNKNOWN))


def _one_lock_or_several(wait: Waiting, every: list[Resource]) -> LimitedBy:
    """Return that it is not known whether a lock, or what is full in front of it, is the cause."""
    said = (
        f"{wait.evidence}: one lock would be taken for {wait.utilisation:.0%} of the time and let "
        "hardly more through, several locks would; which it is cannot be told"
    )
    return LimitedBy(cause=Cause.UNKNOWN, evidence=said, also=_near(every, Cause.UNKNOWN))


def _upstream(scene: Scene, known: ByDesign) -> Resource | None:
    """Return the upstream, which answers any number at once, where most of the time is its own.

    Means, since only they add up where one request asks it and the next does not. What a delay
    before the server takes is in the server's time: it limits the requests as much.
    """
    time = scene.figures.server_time or scene.figures.latency
    if known.upstream_seconds <= 0 or time is None or time.mean_seconds <= 0:
        return None
    share = min(1.0, known.upstream_seconds / time.mean_seconds)
    said = (
        f"the upstream takes {_ms(known.upstream_seconds)} for a request, {share:.0%} of "
        "the time that the server takes, and no CPU was busy"
    )
    return Resource(Cause.UPSTREAM, 1.0 if share >= _UPSTREAM_SHARE else 0.0, said)


def _hidden_slots(
    scene: Scene, load: Load, known: ByDesign, every: list[Resource]
) -> Resource | None:
    """Recognise a fixed number of slots in a server that nobody knows the number of.

    At the start of the measured phase all connections begin at once, and the first requests find
    free slots: they take the bare service time. All later ones also queue, each about as long
    as the next. So the response times are narrow with a few far below them, and throughput
    times the bare time is the number of slots in use (Little). Only where nothing else is near, and
    where all requests are alike: of several kinds the fastest one is of the quickest kind.
    """
    time = scene.figures.server_time
    if load.closed is None or known.think_seconds > 0 or not known.one_kind:
        return None
    if time is None or time.min_seconds is None or _near(every, Cause.UNKNOWN):
        return None
    first = time.min_seconds - scene.delay_seconds
    half = time.p50_seconds - scene.delay_seconds
    most = time.p90_seconds - scene.delay_seconds
    slots = scene.figures.requests_per_second * first
    narrow = most <= _NARROW * half
    by_chance = _fastest_of(scene.figures.requests, half, most)
    fast_start = first <= min(_FAST_START * half, by_chance)
    if not (narrow and fast_start and slots >= _ONE_SLOT and scene.at_server >= 2.0):
        return None
    said = (
        f"{scene.at_server:.1f} requests were at the server and it worked on about {slots:.1f} at "
        f"once: the first ones took {_ms(first)}, half of all {_ms(half)} and "
        "more, and nobody waited behind the server"
    )
    return Resource(Cause.SERVER_CONCURRENCY, 1.0, said)


def _fastest_of(answers: int, half: float, most: float) -> float:
    """Return how long the fastest of so many answers takes where only chance makes them unlike.

    By a normal distribution with that median and 90th percentile. Mostly times are spread less
    below their median than above it: then the fastest takes longer.
    """
    chance = NormalDist()
    return half + (most - half) * chance.inv_cdf(1 / (max(answers, 1) + 1)) / chance.inv_cdf(0.9)


def _places_left(
    scene: Scene, load: Load, known: ByDesign, every: list[Resource]
) -> Resource | None:
    """Recognise workers of which some are full while others have places left.

    Each takes the connections that it gets hold of. Where a request takes a known time, those that
    are not being worked on wait for a place, although the workers together have enough of them.
    """
    places, workers = known.requests_at_once, scene.server.worker_count
    connections = load.users
    if load.closed is None or not connections or places is None or known.wait_seconds <= 0:
        return None
    others = [one for one in every if one.cause is not Cause.UNEVEN_WORKERS]
    if not places < connections <= places * workers or _near(others, Cause.SERVER_CONCURRENCY):
        return None
    worked_on = scene.figures.requests_per_second * known.wait_seconds
    said = (
        f"{worked_on:.1f} of {connections} requests were being worked on, though each of the "
        f"{workers} workers works on {places} at once and nothing was busy: some workers had more "
        "connections than that and others had places left"
    )
    return Resource(Cause.UNEVEN_WORKERS, 1.0, said)


def _work_per_connection(scene: Scene, load: Load, known: ByDesign) -> Resource | None:
    """Return the load as the cause where nearly all requests under way were being worked on.

    A request that waits on purpose, as any number of others may at the same time, is worked on;
    one that waits for a lock is not.
    """
    if load.closed is None or load.users is None:
        return None
    database = scene.tiers.database
    services = (one.component for one in scene.services)
    parts = ("generator", "haproxy", "server", "pgbouncer", *services)
    working = sum(scene.cores(part) or 0.0 for part in parts)
    running = database.active_mean - _waiting_for_locks(database) if database else 0.0
    working += max(running, scene.cores("postgres") or 0.0)
    waits = known.elsewhere_seconds + scene.delay_seconds + known.think_seconds
    working += scene.figures.requests_per_second * waits + scene.statements_delayed
    if working < _SERVED_SHARE * load.users:
        return None
    return _too_few_connections(scene, load, known)


def _waiting_for_locks(database: DatabaseEvidence) -> float:
    waits = waits_by_kind(database)
    return sum(one.connections for one in waits if one.cause is Cause.POSTGRES_LOCKS)


def _unknown(every: list[Resource]) -> LimitedBy:
    nearest = max(every, key=lambda one: one.utilisation, default=None)
    said = "nothing that was watched was near its limit"
    if nearest is not None and nearest.utilisation > 0:
        said = f"nothing that was watched was at its limit; nearest ({nearest.utilisation:.0%}): "
        said += nearest.evidence
    return LimitedBy(cause=Cause.UNKNOWN, evidence=said, also=_near(every, Cause.UNKNOWN))


def _time(figures: Figures) -> str:
    return _ms(figures.latency.mean_seconds) if figures.latency else "unknown length"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1e3 * seconds:.3g} ms"
