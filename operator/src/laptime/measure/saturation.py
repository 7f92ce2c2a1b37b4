"""How full each resource of a run was in the window of one trial. Pure.

A utilisation is a mean over the window: use divided by the most that can be used. For slots
(connections, threads) use is the mean number of those that are taken, by Little's law
(J. D. C. Little, A Proof for the Queuing Formula L = λW, Operations Research 9(3), 1961) where
nobody counts them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from laptime.api.causes import Cause
from laptime.api.evidence import TierEvidence
from laptime.api.node_path import NodePath
from laptime.api.resources import Resources, quantity
from laptime.api.results import Figures
from laptime.api.server import Server
from laptime.api.side_services import SideService
from laptime.api.topology import PoolMode, Topology
from laptime.api.usage import ComponentUsage, NodeUsage, Source, TrialUsage
from laptime.measure.by_design import ByDesign, pool_size
from laptime.measure.validity import (
    MAX_ERROR_RATE,
    MAX_THROTTLED_SHARE,
    NO_PORT,
    tracking_doubt,
)
from laptime.measure.waits import Wait, one_lock_in_use, waits_by_kind

SATURATED = 0.9
"""A resource in use for this share cannot give more than 1 / 0.9 of the throughput, however much
is asked of it: at most 11 % more (asymptotic bound of operational analysis, P. J. Denning and
J. P. Buzen, The Operational Analysis of Queueing Network Models, ACM Computing Surveys 10(3))."""
NEAR = 0.7
"""From here on a resource is named beside the cause."""

SHOWN_CORES = 0.02
"""A part that used less is not worth a word."""
_SHOWN_IDLE = 0.05
ONE_THREAD = 1.1
"""A server whose peak is above its workers' cores by more than this has other threads as well."""
RUNS_AT_LEAST = 0.5
"""A worker that ran for less than this part of the window waited for more than a CPU."""
_COARSEST = 3.0
"""Readings further apart than this part of the window do not tell its CPU time."""
_QUEUED_PER_SLOT = 1.05
"""Twice what Little's law may be off in a valid trial, and a little more."""
_HELD_AT_LEAST = 0.8
MOSTLY = 0.5
"""Requests that wait for this share of their time would be answered twice as fast without it. Were
it one lock, it would be taken for 98 % of the time or more (docs/decisions/0051)."""
_TRIFLING = 0.1
"""Without waits of this share of their time, connections give at most 1 / 0.9 of the throughput."""
_ONE_CORE = 1.02
"""What one thread that never pauses may be read as, at most."""
_MEASURED_TOO_LOW = 1.15
"""A way that carried more than that: bytes are counted with headers (at most 5 % of full packets
of Ethernet), and the rest is what two readings of a quiet network may differ by."""
POOLS = (Cause.PGBOUNCER_POOL, Cause.DATABASE_CONNECTIONS)
SLOTS = (*POOLS, Cause.SERVER_CONCURRENCY, Cause.HAPROXY_CAP)
"""What requests hold while they wait for others, the innermost first."""


@dataclass(frozen=True)
class Resource:
    """One resource: how full it was, and what says so."""

    cause: Cause
    utilisation: float
    evidence: str
    taken: float = 0.0
    """Of slots: how many requests have one."""
    in_use: float = 0.0
    """Of slots: the share that is taken at least, whether or not anybody waits for one."""


@dataclass(frozen=True)
class Waiting(Resource):
    """What requests waited for inside Postgres."""

    share: float = 0.0
    """Of the requests that are not queueing for a slot."""

    @property
    def mostly(self) -> bool:
        """Whether it is what most of them did most of the time."""
        return self.share >= MOSTLY

    @property
    def in_turn(self) -> bool:
        """Whether what they wait for may be one thing that one has at a time, always in use."""
        return self.cause is Cause.POSTGRES_LOCKS and self.utilisation >= SATURATED


@dataclass(frozen=True)
class Scene:
    """Everything that is known of one trial."""

    server: Server
    topology: Topology
    figures: Figures
    usage: TrialUsage | None
    tiers: TierEvidence
    services: Sequence[SideService] = ()
    """Those of the scenario, around the server."""
    paths: Sequence[NodePath] = ()
    """What the nodes of generators and servers exchange, as far as it was measured."""

    @property
    def parts_watched(self) -> bool:
        """Whether the CPU time of all parts is known that Laptime deploys behind the generator."""
        parts = ["server"] if self.server.deployed else []
        parts += ["postgres"] if self.topology.postgres else []
        parts += ["pgbouncer"] if self.topology.pgbouncer else []
        parts += ["haproxy"] if self.topology.haproxy else []
        parts += [one.component for one in self.services]
        return all(self.cores(part) is not None for part in parts)

    @property
    def watched(self) -> bool:
        """Whether the CPU time of all parts and nodes behind the generator is known."""
        return (
            self.parts_watched
            and self.server.deployed
            and bool(self.nodes)
            and all(node.busy_share is not None for node in self.nodes)
        )

    @property
    def silent_tiers(self) -> list[str]:
        """The tiers that can keep requests waiting and of which nobody read who waited there.

        Of one that answered too few scrapes there are no figures either (measure/evidence.py).
        """
        topology, said = self.topology, self.tiers
        capped = topology.haproxy is not None and topology.haproxy.max_connections is not None
        silent = ["HAProxy"] if capped and said.proxy is None else []
        silent += ["PgBouncer"] if topology.pgbouncer is not None and said.pool is None else []
        silent += ["Postgres"] if topology.postgres is not None and said.database is None else []
        return silent

    @property
    def too_short(self) -> bool:
        """Whether the measured phase has too few readings to tell its CPU time."""
        resolution = (self.usage.resolution_seconds if self.usage else None) or 0.0
        return resolution * _COARSEST > self.figures.window_seconds

    @property
    def nodes(self) -> list[NodeUsage]:
        """The nodes of the run's pods."""
        return list(self.usage.nodes) if self.usage else []

    @property
    def node_cpus(self) -> int | None:
        """CPUs of the largest node; None when no node was read."""
        return max((node.cpus for node in self.nodes if node.cpus), default=None)

    def component(self, name: str) -> ComponentUsage | None:
        """Return what a part used; None when the readings are too coarse for the window."""
        usage = self.usage
        if usage is None or usage.source is Source.NOBODY or self.too_short:
            return None
        return usage.component(name, self.server.name)

    def cores(self, name: str) -> float | None:
        """Return the mean number of cores that a part used."""
        found = self.component(name)
        return found.cores_mean if found else None

    @property
    def at_server(self) -> float:
        """Requests that are at the server on average: as its proxy counts them, else by Little.

        What a delay holds back on the way from the server is not at the server any more.
        """
        if self.tiers.proxy is not None:
            return self.tiers.proxy.sessions_mean
        time = self.figures.server_time or self.figures.latency
        if time is None:
            return 0.0
        own = max(0.0, time.mean_seconds - self.delay_seconds)
        return self.figures.requests_per_second * own

    @property
    def delay_seconds(self) -> float:
        """What the run adds to each round trip between the generator and the server."""
        return self.topology.delay.servers_seconds if self.topology.delay else 0.0

    @property
    def statements_delayed(self) -> float:
        """Statements on average that the run's delay before the database holds back, by Little."""
        database, delay = self.tiers.database, self.topology.delay
        if database is None or delay is None or self.figures.window_seconds <= 0:
            return 0.0
        rate = (database.statements or 0.0) / self.figures.window_seconds
        return rate * delay.database_seconds


def busy_cpus(scene: Scene, generator_share: float | None) -> list[Resource]:
    """Return the parts that have a CPU limit of their own: the parts of a closed circuit.

    Of stations in a circuit the fullest one bounds the throughput.
    """
    found = [
        _server_cpu(scene),
        _postgres_cpu(scene),
        _pgbouncer_cpu(scene),
        _haproxy_cpu(scene),
        *(_service_cpu(scene, one) for one in scene.services),
    ]
    found.append(_generator(scene, generator_share))
    return [one for one in found if one is not None]


def busy_nodes(scene: Scene) -> list[Resource]:
    """Return the nodes, the fullest first: of stations in a circuit it bounds the throughput.

    Time that the hypervisor took is no more there than time in use.
    """
    found = []
    for node in scene.nodes:
        if node.busy_share is None:
            continue
        stolen = node.stolen_share or 0.0
        taken = f", {stolen:.1%} of them taken by the hypervisor" if stolen >= 0.01 else ""
        shares = _shares(scene, node)
        said = (
            f"node {node.node} was busy for {min(1.0, node.busy_share + stolen):.0%} of its "
            f"{node.cpus} CPUs{taken}"
            f"{'; no part has reached a limit of its own' if scene.parts_watched else ''}"
            f"{f'; cores: {shares}' if shares else ''}"
        )
        found.append(Resource(Cause.NODE, min(1.0, node.busy_share + stolen), said))
    return sorted(found, key=lambda one: -one.utilisation)


def busy_network(scene: Scene) -> list[Resource]:
    """Return both ways between a generator's node and its server's, where they are apart.

    What is in between, on a node of its own, has ways of its own, which nobody measured. A way of
    which more may have been had is no limit, and nor is one that has carried far more than that.
    """
    generator, server = scene.component("generator"), scene.component("server")
    proxy = scene.component("haproxy") if scene.topology.haproxy is not None else None
    if (
        generator is None
        or server is None
        or scene.delay_seconds > 0
        or len(generator.nodes) != 1
        or len(server.nodes) != 1
        or (scene.topology.haproxy is not None and (proxy is None or proxy.nodes != server.nodes))
    ):
        return []
    (far,), (near,) = generator.nodes, server.nodes
    path = next(
        (one for one in scene.paths if (one.generator_node, one.server_node) == (far, near)), None
    )
    if path is None:
        return []
    found = []
    for what, used, most, at_least, (begin, end) in (
        (
            "requests",
            generator.transmitted_bytes,
            path.to_server_bytes_per_second,
            path.to_server_at_least,
            (far, near),
        ),
        (
            "answers",
            generator.received_bytes,
            path.from_server_bytes_per_second,
            path.from_server_at_least,
            (near, far),
        ),
    ):
        if used is None or not most or at_least:
            continue
        rate = used / scene.figures.window_seconds
        said = (
            f"{what} took {8e-6 * rate:,.1f} of the {8e-6 * most:,.1f} Mbit/s that node {begin} "
            f"can send to node {end}"
        )
        if rate <= _MEASURED_TOO_LOW * most:
            found.append(Resource(Cause.NETWORK, min(1.0, rate / most), said))
    return found


def lost_connections(scene: Scene) -> list[Resource]:
    """Return what kept connections from being made, in more than a thousandth of the requests.

    One that finds no port ends at once; one whose first packet is dropped waits for a second.
    """
    many = MAX_ERROR_RATE * scene.figures.requests
    found = []
    if (without := scene.figures.errors_by_kind.get(NO_PORT, 0)) > many:
        said = (
            f"the generator had no port left to connect from for {without:,} of "
            f"{scene.figures.requests:,} requests"
        )
        found.append(Resource(Cause.GENERATOR, 1.0, said))
    for node in scene.nodes:
        tracking, doubt = node.connection_tracking, tracking_doubt(node)
        if tracking is not None and doubt is not None and tracking.lost > many:
            found.append(Resource(Cause.NODE, 1.0, doubt))
    return found


def worker_without_pause(scene: Scene) -> Resource | None:
    """Return the only worker of a server, which ran or was ready to run nearly all of the time.

    On a node that others use too, a thread waits for a CPU before each of its turns although the
    node has idle moments: less CPU time than the window is long, and yet no pause. Of several
    threads nobody knows which one waited while another ran.
    """
    server, used = scene.server, scene.component("server")
    if used is None or used.cores_mean is None or used.cpu_waiting_share is None:
        return None
    peak = max(used.cores_mean, used.cores_peak or 0.0)
    if (
        not server.knows_workers
        or server.worker_count != 1
        or peak > ONE_THREAD
        or used.cores_mean < RUNS_AT_LEAST
    ):
        return None
    # Who waits for the next period of a limit seems to wait for a CPU.
    held = (used.throttled_share or 0.0) >= MAX_THROTTLED_SHARE
    said = (
        f"the server's worker used {used.cores_mean:.2f} cores of the 1 that it can use and waited "
        f"for a CPU{', or for its CPU limit,' if held else ' of the node'} in another "
        f"{used.cpu_waiting_share:.0%} of the time"
    )
    busy = min(1.0, used.cores_mean + used.cpu_waiting_share)
    return Resource(Cause.SERVER_CPU, busy, said)


def thread_of_unknown_server(scene: Scene) -> str | None:
    """Return why the CPU of a server may be full and may be not; None where that can be told.

    An image of a user's own that says no `workers` may have one thread or several.
    """
    server, used = scene.server, scene.component("server")
    if server.knows_workers or used is None or used.cores_mean is None:
        return None
    waiting = used.cpu_waiting_share or 0.0
    peak = max(used.cores_mean, used.cores_peak or 0.0)
    if peak > ONE_THREAD or used.cores_mean + waiting < SATURATED:
        return None
    ready = f" and a task of it was ready without one in another {waiting:.0%} of the time"
    return (
        f"the server used {used.cores_mean:.2f} cores{ready if waiting >= 0.01 else ''}: one "
        "thread would be full, but how many it has is not known: write `workers`"
    )


def delay_held_back(scene: Scene) -> str | None:
    """Return what says that a delay took longer than the run asks for; None where it did not."""
    used = scene.component("delay") if scene.topology.delay is not None else None
    held = (used.throttled_share if used else None) or 0.0
    if held < SATURATED:
        return None
    return (
        f"the delay was held back by its CPU limit in {held:.0%} of the time: it took longer than "
        "was asked for"
    )


def waits_in_postgres(scene: Scene, slots: Sequence[Resource]) -> list[Waiting]:
    """Return what requests waited for inside Postgres, the most frequent first.

    Whoever queues for a full slot waits for those that have one: these are what counts. Where no
    slot is full, it is all requests at the server.
    """
    database = scene.tiers.database
    if scene.topology.postgres is None or database is None:
        return []
    idle = database.idle_in_transaction_mean or 0.0
    full = next((one for one in slots if one.utilisation >= SATURATED), None)
    at_work = full.taken if full else scene.at_server
    at_work = max(at_work, database.active_mean + idle)
    who = "requests at the server" if full is None else "requests at work"
    who = "connections in use" if full and full.cause in POOLS else who
    said = "; in {:.1f} a transaction was open and waited for the server's next statement"
    kept = said.format(idle) if idle >= _SHOWN_IDLE else ""
    return [_waiting(one, at_work, who, kept) for one in waits_by_kind(database)]


def _waiting(wait: Wait, at_work: float, who: str, kept: str) -> Waiting:
    share = min(1.0, wait.connections / at_work)
    said = f"of {at_work:.1f} {who} {wait.connections:.1f} waited in Postgres for {wait.said}"
    # One flush at a time, and one reading at least: as many as wait, up to one.
    use = min(1.0, wait.connections)
    if wait.cause is Cause.POSTGRES_LOCKS:
        use = one_lock_in_use(at_work, wait.connections)
        said += kept
    return Waiting(wait.cause, use if share > _TRIFLING else 0.0, said, share=share)


def full_slots(scene: Scene, known: ByDesign) -> list[Resource]:
    """Return connections and threads that requests hold while they wait for others.

    Innermost first: what is nearer to the CPU that does the work.
    """
    found = [
        _pgbouncer_pool(scene),
        _database_connections(scene, known),
        _known_concurrency(scene, known.requests_at_once),
        _haproxy_cap(scene),
    ]
    return [one for one in found if one is not None]


def _shares(scene: Scene, node: NodeUsage) -> str:
    parts = scene.usage.components if scene.usage else []
    cores = [
        (part.cores_mean, part.component)
        for part in parts
        if part.cores_mean is not None and part.cores_mean >= SHOWN_CORES
        # How much a part of several nodes used on each of them is not known.
        if part.nodes in ([], [node.node])
    ]
    others = node.others_cores
    if others is not None and others >= SHOWN_CORES:
        cores.append((others, "others"))
    return ", ".join(f"{name} {value:.2f}" for value, name in sorted(cores, reverse=True))


def _generator(scene: Scene, share: float | None) -> Resource | None:
    """Return the busiest generator; one with a quota is as full as it was held back often."""
    used = scene.component("generator")
    held = (used.throttled_share if used else None) or 0.0
    if share is None or held > share:
        if held == 0.0:
            return None
        said = f"the generator was held back by its CPU limit in {held:.0%} of the time"
        return Resource(Cause.GENERATOR, held, said)
    said = f"the busiest generator used {share:.0%} of the CPU it can use"
    return Resource(Cause.GENERATOR, share, said)


def _server_cpu(scene: Scene) -> Resource | None:
    server, used = scene.server, scene.component("server")
    if used is None or used.cores_mean is None:
        return None
    limits = _limits(server.resources)
    peak = max(used.cores_mean, used.cores_peak or 0.0)
    if not server.knows_workers:
        found = _of_limit(Cause.SERVER_CPU, "the server", used, limits)
        return max(
            (one for one in (found, _one_core(used, peak)) if one is not None),
            key=lambda one: one.utilisation,
            default=None,
        )
    workers = server.worker_count
    # With more workers than CPUs it is the node that they run out of.
    fits = scene.node_cpus is None or workers <= scene.node_cpus
    if fits and peak <= ONE_THREAD * workers:
        of = "worker" if workers == 1 else "workers"
        limits.append((float(workers), f"the {workers} that its {of} can use"))
    return _of_limit(Cause.SERVER_CPU, "the server", used, limits)


def _one_core(used: ComponentUsage, peak: float) -> Resource | None:
    """Return the one core that a server used all of in each second, and never more."""
    series = used.cores_over_time
    known = [one for one in series.cores if one is not None] if series else []
    if used.cores_mean is None or series is None or not known or len(known) < len(series.cores):
        return None
    lowest, highest = min(known), max(peak, *known)
    if lowest < SATURATED or highest > _ONE_CORE:
        return None
    each = "second" if series.span_seconds == 1 else f"{series.span_seconds} s"
    said = (
        f"the server used {used.cores_mean:.2f} cores, {lowest:.2f} to {highest:.2f} in each "
        f"{each}: one thread without a pause"
    )
    return Resource(Cause.SERVER_CPU, min(1.0, used.cores_mean), said)


def _postgres_cpu(scene: Scene) -> Resource | None:
    tier, used = scene.topology.postgres, scene.component("postgres")
    if tier is None or used is None:
        return None
    found = _of_limit(Cause.POSTGRES_CPU, "Postgres", used, _limits(tier.resources))
    database = scene.tiers.database
    if found is None or database is None:
        return found
    said = (
        f"{found.evidence}; of {database.active_mean:.1f} active connections "
        f"{database.on_cpu_mean:.1f} waited for nothing but a CPU"
    )
    return Resource(found.cause, found.utilisation, said)


def _pgbouncer_cpu(scene: Scene) -> Resource | None:
    tier, used = scene.topology.pgbouncer, scene.component("pgbouncer")
    if tier is None or used is None:
        return None
    # PgBouncer is one thread.
    limits = [*_limits(tier.resources), (1.0, "the 1 that its one thread can use")]
    return _of_limit(Cause.PGBOUNCER_CPU, "PgBouncer", used, limits)


def _haproxy_cpu(scene: Scene) -> Resource | None:
    tier, used = scene.topology.haproxy, scene.component("haproxy")
    if tier is None or used is None:
        return None
    return _of_limit(Cause.HAPROXY_CPU, "HAProxy", used, _limits(tier.resources))


def _service_cpu(scene: Scene, one: SideService) -> Resource | None:
    used = scene.component(one.component)
    if used is None:
        return None
    limits = _limits(one.resources)
    if one.threads is not None:
        of = "thread" if one.threads == 1 else "threads"
        limits.append((float(one.threads), f"the {one.threads} that its {of} can use"))
    return _of_limit(Cause.SERVICE_CPU, one.title, used, limits)


def _limits(resources: Resources | None) -> list[tuple[float, str]]:
    """Return the limits that a pod has of its own; the CPUs of its node are none of them."""
    if resources is None or resources.cpu is None:
        return []
    limit = quantity(resources.cpu)
    return [(limit, f"its limit of {limit:g}")]


def _of_limit(
    cause: Cause, name: str, used: ComponentUsage, limits: Iterable[tuple[float, str]]
) -> Resource | None:
    """Return the use of a part against the lowest of its limits.

    A CPU quota is spent per period of 0.1 s: a part that is held back in most periods is at its
    limit even where bursts and pauses make the mean lower.
    """
    lowest = min(limits, default=None, key=lambda limit: limit[0])
    throttled = used.throttled_share or 0.0
    held = throttled >= MAX_THROTTLED_SHARE
    # Who is held back has a limit, also where the run asked for none and the cluster set one.
    if used.cores_mean is None or (lowest is None and not held):
        return None
    said, use = f"{name} used {used.cores_mean:.2f} cores", throttled
    if lowest is not None and lowest[0] > 0:
        said += f" of {lowest[1]}"
        use = max(used.cores_mean / lowest[0], throttled)
    if held:
        said += f" and was held back by its CPU limit in {throttled:.0%} of the time"
    return Resource(cause, min(1.0, use), said)


def _pgbouncer_pool(scene: Scene) -> Resource | None:
    tier, pool = scene.topology.pgbouncer, scene.tiers.pool
    if tier is None or pool is None:
        return None
    size = pool.pool_size or tier.pool_size
    waiting = pool.waiting_mean
    if pool.wait_seconds is not None and scene.figures.window_seconds > 0:
        # The time that clients waited, divided by the window, is exact; samples are not.
        waiting = pool.wait_seconds / scene.figures.window_seconds
    said = (
        f"{pool.active_mean:.1f} of the {size} connections of PgBouncer's pool were in use and "
        f"{waiting:.1f} clients waited for one"
    )
    # A pool that nobody waits for holds nobody up, however full it is.
    full = pool.active_mean / size if max(waiting, pool.waiting_mean) > 0 else 0.0
    in_use = min(1.0, _running(scene) / size)
    return Resource(Cause.PGBOUNCER_POOL, min(1.0, full), said, pool.active_mean, in_use)


def _running(scene: Scene) -> float:
    """Return how many connections run a statement at least.

    The time of all statements, divided by the window, is exact; samples are not. To PgBouncer a
    connection is in use until it is given back: by a session that idles too.
    """
    database, pool, running = scene.tiers.database, scene.tiers.pool, 0.0
    tier = scene.topology.pgbouncer
    if pool is not None and tier is not None and tier.pool_mode is not PoolMode.SESSION:
        running = pool.active_mean
    if database is not None:
        running = max(running, database.active_mean)
        if database.statement_seconds is not None and scene.figures.window_seconds > 0:
            running = max(running, database.statement_seconds / scene.figures.window_seconds)
    return running


def _database_connections(scene: Scene, known: ByDesign) -> Resource | None:
    """The server's own pool.

    Nobody sees from outside whether a connection is taken out of it. Less than the connections
    that run a statement cannot be; a server also holds one while it works on rows, so at most
    its CPU time and its waiting for a CPU, and PgBouncer's, come on top; and the time on a longer
    way, which is less where a driver sends statements before the answer to the last.

    A request that waits for the upstream or on purpose queues for none; it may have one, with a
    transaction that is open. Where a request can wait for nothing else, those that are more than
    the connections and are not being computed wait for one.
    """
    database = scene.tiers.database
    if scene.topology.postgres is None or database is None:
        return None
    size = pool_size(scene.server)
    idle = database.idle_in_transaction_mean or 0.0
    running = _running(scene)
    parts = [scene.component("server"), scene.component("pgbouncer")]
    computing = sum(
        (one.cores_mean or 0.0) + (one.cpu_waiting_share or 0.0) for one in parts if one is not None
    )
    # A transaction waits while the server computes or a statement is on its way.
    open_ = max(running, database.active_mean + idle)
    held = min(1.0, max(open_, running + computing + scene.statements_delayed) / size)
    elsewhere = scene.figures.requests_per_second * known.elsewhere_seconds
    # With every connection taken, and as many requests computing without one as may be. Who waits
    # on purpose may do so in a statement, and has one.
    on_purpose = scene.figures.requests_per_second * known.wait_seconds
    asleep = min(on_purpose, (database.waits or {}).get("Timeout:PgSleep", 0.0))
    without = computing + max(0.0, elsewhere - idle - asleep)
    queued = scene.at_server - without >= _QUEUED_PER_SLOT * size
    there = f"{elsewhere:.1f} of them waited for the upstream or on purpose and {running:.1f} ran"
    said = (
        f"{scene.at_server:.1f} requests were at the server, whose pool has {size} connections to "
        f"the database; {there if elsewhere >= _SHOWN_IDLE else f'{running:.1f} of them ran'} a "
        "statement"
    )
    if idle >= _SHOWN_IDLE:
        said += (
            f" and {idle:.1f} had a transaction open, which waited for the server's next statement;"
        )
    else:
        said += ","
    said += f" up to {size * held:.1f} were in use"
    full = 0.0
    if queued and open_ / size >= SATURATED:
        full = min(1.0, open_ / size)
    elif known.only_database and scene.at_server - _computed(scene) >= _QUEUED_PER_SLOT * size:
        full = 1.0
        said = (
            f"{scene.at_server:.1f} requests were at the server, whose pool has {size} connections "
            f"to the database; {_computed(scene):.1f} were being computed or ready for it, the "
            "others had a connection or waited for one"
        )
    elif queued and open_ > 0 and held >= _HELD_AT_LEAST:
        full = max(held, SATURATED)
    in_use = min(1.0, open_ / size)
    return Resource(Cause.DATABASE_CONNECTIONS, full, said, size * full, in_use)


def _computed(scene: Scene) -> float:
    """Return how many requests are computed or wait in the server for that; infinite if busy.

    The number in an M/M/1 system for each worker, twice, since arrivals come in bursts; a worker
    that is ready and has no CPU counts as busy. From `NEAR` on queues are too long to tell.
    """
    used, workers = scene.component("server"), scene.server.worker_count
    if used is None or used.cores_mean is None:
        return math.inf
    busy = used.cores_mean / workers + (used.cpu_waiting_share or 0.0)
    return 2.0 * workers * busy / (1.0 - busy) if busy < NEAR else math.inf


def _known_concurrency(scene: Scene, requests_at_once: int | None) -> Resource | None:
    if requests_at_once is None:
        return None
    slots = requests_at_once * scene.server.worker_count
    said = (
        f"{scene.at_server:.1f} requests were at the server, which works on {slots} at once, "
        "and nobody waited behind it"
    )
    # All are taken when there are more requests; slots that nobody waits for hold nobody up.
    full = 1.0 if scene.at_server >= _QUEUED_PER_SLOT * slots else 0.0
    taken = min(float(slots), scene.at_server)
    return Resource(Cause.SERVER_CONCURRENCY, full, said, taken, taken / slots)


def _haproxy_cap(scene: Scene) -> Resource | None:
    tier, proxy = scene.topology.haproxy, scene.tiers.proxy
    if tier is None or tier.max_connections is None or proxy is None:
        return None
    said = (
        f"HAProxy let {proxy.sessions_mean:.1f} of at most {tier.max_connections} requests to the "
        f"server and kept {proxy.queue_mean:.1f} in its queue"
    )
    full = proxy.sessions_mean / tier.max_connections if proxy.queue_mean > 0 else 0.0
    return Resource(Cause.HAPROXY_CAP, min(1.0, full), said, proxy.sessions_mean)
