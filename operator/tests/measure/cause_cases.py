"""Trials that were never run, and what limited each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from laptime.api.causes import Cause, LimitedBy
from laptime.api.evidence import DatabaseEvidence, PoolEvidence, ProxyEvidence, TierEvidence
from laptime.api.loads import Load
from laptime.api.node_path import NodePath
from laptime.api.results import Figures, Latency
from laptime.api.server import Server
from laptime.api.side_services import SideService
from laptime.api.topology import Topology
from laptime.api.usage import (
    ComponentUsage,
    ConnectionTracking,
    CoresOverTime,
    NodeUsage,
    ProcessUsage,
    Source,
    TrialUsage,
)
from laptime.measure.by_design import ByDesign
from laptime.measure.causes import limited_by


def latency(
    half: float, least: float | None = None, spread: float = 1.0, mean: float | None = None
) -> Latency:
    return Latency(
        min_seconds=half if least is None else least,
        mean_seconds=half if mean is None else mean,
        p50_seconds=half,
        p80_seconds=half * spread,
        p90_seconds=half * spread,
        p99_seconds=2 * half * spread,
        p999_seconds=3 * half * spread,
        max_seconds=4 * half * spread,
    )


def closed(connections: int) -> Load:
    shape = {"connections": connections, "duration": "10s"}
    return Load.model_validate({"name": "closed", "closed": shape})


def open_load(rate: int) -> Load:
    return Load.model_validate({"name": "open", "open": {"rate": rate, "duration": "10s"}})


def of_nodes(source: Source, node: str, *parts: str) -> TrialUsage:
    """Return the usage of these parts on a node that was full."""
    return TrialUsage(
        source=source,
        resolution_seconds=1.0,
        complete=False,
        components=[
            ComponentUsage(component=one, pods=1, nodes=[node], cores_mean=0.3) for one in parts
        ],
        nodes=[NodeUsage(node=node, cpus=2, busy_share=0.97)],
    )


SEARCH = Load.model_validate({"name": "limit", "saturation": {"p99": "1s"}})


@dataclass(frozen=True)
class Trial:
    """A trial of 10 s on a node of 8 CPUs in which nothing was near its limit."""

    load: Load = field(default_factory=lambda: closed(32))
    server: Mapping[str, Any] = field(default_factory=dict)
    topology: Mapping[str, Any] = field(
        default_factory=lambda: {"postgres": {}, "pgbouncer": {"poolSize": 25}, "haproxy": {}}
    )
    rate: float = 1000.0
    server_time: Latency = field(default_factory=lambda: latency(0.032))
    errors: Mapping[str, int] = field(default_factory=dict)
    cores: Mapping[str, float] = field(default_factory=dict)
    """Beside server, postgres, pgbouncer, haproxy and generator, at 0.1 each."""
    throttled: Mapping[str, float] = field(default_factory=dict)
    peaks: Mapping[str, float] = field(default_factory=dict)
    """Highest use over any second; 5 % above the mean where it says nothing else."""
    processes: Sequence[ProcessUsage] | None = None
    """Of the server; None: the agent does not tell."""
    each_second: float | None = None
    """The lowest use of the server over any second; None: no series."""
    waiting: Mapping[str, float] = field(default_factory=dict)
    """Share of the window in which a task was ready and had no CPU."""
    stalled: Mapping[str, float] = field(default_factory=dict)
    """Share of it in which the server's pod waited for `disk` or `memory`; left out: not known."""
    disk_operations: float | None = None
    """Reads and writes a second of the server's pod; None: not known."""
    busy: float = 0.2
    stolen: float = 0.0
    others: float | None = None
    tracking: ConnectionTracking | None = None
    proxy: ProxyEvidence | None = None
    pool: PoolEvidence | None = None
    """None: nobody used it, or waited for it."""
    database: DatabaseEvidence | None = None
    """None: nothing went on in it."""
    silent: Sequence[str] = ()
    """Tiers of which nobody read what they said."""
    generator: float | None = 0.3
    known: Mapping[str, Any] = field(default_factory=dict)
    """All requests are of one kind where it says nothing else."""
    usage: TrialUsage | None = None
    watched: bool = True
    nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of parts; what is not said is on `worker-1`."""
    megabytes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """What parts received and transmitted."""
    paths: Sequence[NodePath] = ()
    services: Sequence[SideService] = ()
    """Of the scenario; at 0.1 cores each where `cores` says nothing else."""
    without: Sequence[str] = ()
    """Parts of which nobody knows anything."""


_UNUSED_POOL = PoolEvidence(active_mean=0.0, active_max=0.0, waiting_mean=0.0, waiting_max=0.0)
_IDLE_DATABASE = DatabaseEvidence(connections_max=2, active_mean=0.0, on_cpu_mean=0.0)


def cause_of(trial: Trial) -> LimitedBy:
    own = ("server", "postgres", "pgbouncer", "haproxy", "delay", "generator")
    names = [*own, *(one.component for one in trial.services)]
    names = [one for one in names if one not in trial.without]
    usage = trial.usage or TrialUsage(
        source=Source.AGENT,
        resolution_seconds=1.0,
        complete=True,
        components=[
            ComponentUsage(
                component=name,
                pods=1,
                nodes=list(trial.nodes.get(name, ["worker-1"])),
                received_bytes=_bytes(trial, name, 0),
                transmitted_bytes=_bytes(trial, name, 1),
                cores_mean=trial.cores.get(name, 0.1),
                cores_peak=trial.peaks.get(name, 1.05 * trial.cores.get(name, 0.1)),
                cores_over_time=_over_time(trial) if name == "server" else None,
                throttled_share=trial.throttled.get(name, 0.0),
                cpu_waiting_share=trial.waiting.get(name, 0.0),
                **(_stalled(trial) if name == "server" else {}),
                processes=_sorted(trial.processes) if name == "server" else None,
            )
            for name in names
        ],
        nodes=[
            NodeUsage(
                node="worker-1",
                cpus=8,
                busy_share=trial.busy,
                stolen_share=trial.stolen,
                others_cores=trial.others,
                connection_tracking=trial.tracking,
            )
        ],
    )
    figures = Figures(
        requests=round(10 * trial.rate),
        errors=sum(trial.errors.values()),
        errors_by_kind=dict(trial.errors),
        window_seconds=10.0,
        requests_per_second=trial.rate,
        latency=trial.server_time,
        server_time=trial.server_time,
    )
    return limited_by(
        trial.load,
        Server.model_validate(
            {"name": "mine", "preset": "axum-sqlx", "workers": 2, **trial.server}
        ),
        Topology.model_validate(trial.topology),
        figures,
        usage if trial.watched else None,
        TierEvidence(
            proxy=trial.proxy,
            pool=None if "pgbouncer" in trial.silent else trial.pool or _UNUSED_POOL,
            database=None if "postgres" in trial.silent else trial.database or _IDLE_DATABASE,
        ),
        trial.generator,
        ByDesign(**{"one_kind": True, **trial.known}),
        trial.services,
        trial.paths,
    )


def _bytes(trial: Trial, part: str, way: int) -> int | None:
    found = trial.megabytes.get(part)
    return None if found is None else round(1e6 * found[way])


def _stalled(trial: Trial) -> dict[str, Any]:
    shares = {f"{what}_waiting_share": share for what, share in trial.stalled.items()}
    operations = trial.disk_operations
    return {"memory_peak_bytes": 2**28, "disk_operations_per_second": operations, **shares}


def _sorted(every: Sequence[ProcessUsage] | None) -> list[ProcessUsage] | None:
    return None if every is None else sorted(every, key=lambda one: -one.cores)


def processes(
    command: str,
    *cores: float,
    waited: Sequence[float] | None = None,
    parent: int = 10,
    number: int = 11,
    peak: float = 1.02,
    main: float = 1.0,
) -> list[ProcessUsage]:
    """Return processes of one parent, by the cores that each used.

    `waited` is what their main threads waited for a CPU, which used the part `main` of the cores.
    """
    return [
        ProcessUsage(
            process=number + index,
            parent=parent,
            command=command,
            cores=one,
            cores_peak=peak * one,
            main_thread_cores=None if waited is None else main * one,
            main_thread_waiting_share=None if waited is None else waited[index],
        )
        for index, one in enumerate(cores)
    ]


def master(command: str, cores: float = 0.0) -> list[ProcessUsage]:
    """Return the parent of those."""
    return processes(command, cores, parent=1, number=10)


def _over_time(trial: Trial) -> CoresOverTime | None:
    if trial.each_second is None:
        return None
    rest = (10 * trial.cores["server"] - trial.each_second) / 9
    return CoresOverTime(span_seconds=1, cores=[trial.each_second, *([rest] * 9)])


def apart(
    requests: float = 1.0, answers: float = 1.0, *, from_server_at_least: bool = False
) -> Trial:
    """Return a trial whose generator is on a node of its own, and moved so many megabytes in it.

    In its 10 s 100 MB of answers and 120 MB of requests have room.
    """
    path = NodePath(
        generator_node="far",
        server_node="near",
        to_server_bytes_per_second=12e6,
        from_server_bytes_per_second=10e6,
        from_server_at_least=from_server_at_least,
    )
    return Trial(
        topology={},
        nodes={"generator": ["far"], "server": ["near"]},
        megabytes={"generator": (answers, requests)},
        paths=[path],
    )


def full_pool(active: float = 24.8, waiting: float = 6.0) -> PoolEvidence:
    return PoolEvidence(
        pool_size=25, active_mean=active, active_max=25, waiting_mean=waiting, waiting_max=9
    )


def connections(
    active: float, on_cpu: float, seconds: float | None = None, statements: float | None = None
) -> DatabaseEvidence:
    return DatabaseEvidence(
        connections_max=26,
        active_mean=active,
        on_cpu_mean=on_cpu,
        statement_seconds=seconds,
        statements=statements,
    )


def waiting(
    waits: Mapping[str, float], on_cpu: float = 0.1, idle_in_transaction: float = 0.0
) -> DatabaseEvidence:
    """Connections that wait, as Postgres 15 and 17 name it, and few that do not."""
    return DatabaseEvidence(
        connections_max=26,
        active_mean=on_cpu + sum(waits.values()),
        on_cpu_mean=on_cpu,
        idle_in_transaction_mean=idle_in_transaction,
        waits=dict(waits),
    )


def queued(sessions: float = 7.9, queue: float = 24.0) -> ProxyEvidence:
    return ProxyEvidence(queue_mean=queue, queue_max=30, sessions_mean=sessions, sessions_max=8)


CAPPED = {"postgres": {}, "haproxy": {"maxConnections": 8}}
SMALL_POSTGRES = {"postgres": {"resources": {"cpu": "500m"}}, "pgbouncer": {"poolSize": 25}}
SMALL_POOL = {"databaseConnections": 2}
LARGE_POOL = {"databaseConnections": 40}
OWN_IMAGE = {"preset": None, "workers": None, "image": "registry.example/mine:1"}
FAR = {"postgres": {}, "delay": {"database": "2ms"}}
POOL_OF_5 = {"databaseConnections": 5}
POOL_OF_20 = {"databaseConnections": 20}
# What Postgres said of statements that take one row (FOR UPDATE) and keep it for 20 ms, of inserts
# that commit, of reads beyond its memory, each from 5 connections; of updates of 50 rows from 20.
ONE_ROW = {"Lock:tuple": 3.2, "Lock:transactionid": 0.9, "Timeout:PgSleep": 0.6, "IO:WALSync": 0.2}
COMMITS = {"LWLock:WALWrite": 3.6, "IO:WALSync": 0.9}
COMMITS_17 = {"LWLock:WALWrite": 3.6, "IO:WalSync": 0.9}
READS = {"IO:DataFileRead": 2.9, "IPC:BufferIO": 0.2, "LWLock:BufferMapping": 0.3}
FIFTY_ROWS = {
    "Lock:transactionid": 3.4,
    "Lock:tuple": 0.3,
    "Timeout:PgSleep": 10.6,
    "LWLock:WALWrite": 1.9,
    "IO:WALSync": 0.5,
}

FULL_TABLE = ConnectionTracking(entries=960, limit=1000, dropped=1203)

PAUSE = processes("pause", 0.0, parent=1, number=9)

CASES = {
    "users who think, and are answered by a Postgres that waits for its log": (
        Trial(
            load=closed(4),
            rate=752.0,
            server_time=latency(0.0011),
            database=waiting({"LWLock:WALWrite": 0.4, "IO:WALSync": 0.1}, on_cpu=0.02),
            known={"think_seconds": 0.0042},
        ),
        Cause.OFFERED_LOAD,
        "4 users think for 79% of the time (4.2 ms after an answer)",
    ),
    "users who think, of a server that has no core left for them": (
        Trial(
            load=closed(400),
            server={"workers": 1},
            cores={"server": 0.98},
            known={"think_seconds": 0.35},
        ),
        Cause.SERVER_CPU,
        "0.98 cores",
    ),
    "a table of connections that dropped packets while no CPU was busy": (
        Trial(tracking=FULL_TABLE, pool=full_pool(), database=connections(24.0, 2.0)),
        Cause.NODE,
        "connection tracking of node worker-1 was 96% full, 1,203 packets dropped",
    ),
    "a table of connections that dropped packets beside a server without a free core": (
        Trial(server={"workers": 1}, cores={"server": 0.98}, tracking=FULL_TABLE),
        Cause.SERVER_CPU,
        "0.98 cores",
    ),
    "a table of connections that is nearly full holds nobody up": (
        Trial(tracking=ConnectionTracking(entries=960, limit=1000, dropped=0)),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "a packet in ten thousand requests that was dropped holds nobody up": (
        Trial(tracking=ConnectionTracking(entries=960, limit=1000, dropped=1)),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "a generator without a port left, which nobody has to watch": (
        Trial(errors={"port": 200}, watched=False),
        Cause.GENERATOR,
        "the generator had no port left to connect from for 200 of 10,000 requests",
    ),
    "one Python worker cannot use more than its core": (
        Trial(server={"workers": 1}, cores={"server": 0.97}),
        Cause.SERVER_CPU,
        "0.97 cores of the 1 that its worker can use",
    ),
    "a CPU limit below its workers": (
        Trial(server={"resources": {"cpu": "500m"}}, cores={"server": 0.49}),
        Cause.SERVER_CPU,
        "0.49 cores of its limit of 0.5",
    ),
    "held back by its limit in bursts, with a lower mean": (
        Trial(
            server={"resources": {"cpu": "1"}}, cores={"server": 0.7}, throttled={"server": 0.95}
        ),
        Cause.SERVER_CPU,
        "held back by its CPU limit in 95% of the time",
    ),
    "threads beyond its workers: only the node limits it": (
        Trial(server={"workers": 1}, cores={"server": 7.6}, busy=0.98),
        Cause.NODE,
        "no part has reached a limit of its own; cores: server 7.60",
    ),
    "more workers than the node has CPUs": (
        Trial(server={"workers": 16}, cores={"server": 7.6}, busy=0.98),
        Cause.NODE,
        "cores: server 7.60",
    ),
    "as many workers as the node has CPUs": (
        Trial(server={"workers": 8}, cores={"server": 7.6}, busy=0.98),
        Cause.SERVER_CPU,
        "7.60 cores of the 8 that its workers can use",
    ),
    "a full pool before a Postgres at its CPU limit is Postgres": (
        Trial(
            topology=SMALL_POSTGRES,
            cores={"postgres": 0.5},
            pool=full_pool(),
            database=connections(24.0, 23.0),
        ),
        Cause.POSTGRES_CPU,
        "0.50 cores of its limit of 0.5; of 24.0 active connections 23.0",
    ),
    "a full pool before a Postgres that has time is the pool": (
        Trial(pool=full_pool(), database=connections(24.0, 2.0)),
        Cause.PGBOUNCER_POOL,
        "24.8 of the 25 connections of PgBouncer's pool were in use and 6.0 clients waited",
    ),
    "a full pool held by a server without a free core is the server": (
        Trial(server={"workers": 1}, cores={"server": 0.98}, pool=full_pool()),
        Cause.SERVER_CPU,
        "0.98 cores",
    ),
    "a full pool that nobody waits for limits nobody": (
        Trial(server={"databaseConnections": 40}, pool=full_pool(waiting=0.0)),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "the server's own pool is full": (
        Trial(server=SMALL_POOL, database=connections(1.9, 0.4)),
        Cause.DATABASE_CONNECTIONS,
        "32.0 requests were at the server, whose pool has 2 connections",
    ),
    "the statements' own time says so better than samples": (
        Trial(server=SMALL_POOL, database=connections(1.0, 0.4, seconds=19.5)),
        Cause.DATABASE_CONNECTIONS,
        "1.9 of them ran a statement",
    ),
    "its connections are held while it works on rows": (
        Trial(
            server=SMALL_POOL, database=connections(1.1, 0.4), cores={"server": 0.6, "pgbouncer": 0}
        ),
        Cause.DATABASE_CONNECTIONS,
        "up to 1.7 were in use",
    ),
    "a pool in each process of Python": (
        Trial(
            server={"preset": "fastapi-async", "databaseConnections": 1},
            database=connections(1.9, 0.4),
        ),
        Cause.DATABASE_CONNECTIONS,
        "whose pool has 2 connections",
    ),
    "a full pool of twenty where the proxy lets 25 requests in": (
        Trial(
            topology=CAPPED,
            proxy=queued(sessions=25.0),
            server={"databaseConnections": 20},
            database=connections(18.5, 0.5),
        ),
        Cause.DATABASE_CONNECTIONS,
        "25.0 requests were at the server, whose pool has 20 connections",
    ),
    "a full pool of the server whose statements wait for one row": (
        Trial(server=POOL_OF_5, database=waiting(ONE_ROW, on_cpu=0.0)),
        Cause.POSTGRES_LOCKS,
        "of 4.9 connections in use 4.1 waited in Postgres for a lock (Lock:tuple 3.2, "
        "Lock:transactionid 0.9)",
    ),
    "a full pool of PgBouncer whose statements wait for one row": (
        Trial(
            pool=full_pool(), database=waiting({"Lock:tuple": 20.0, "Timeout:PgSleep": 1.0}, 3.0)
        ),
        Cause.POSTGRES_LOCKS,
        "of 24.8 connections in use 20.0 waited in Postgres for a lock",
    ),
    "a row that its holder keeps while the server does something else": (
        Trial(
            server=POOL_OF_5,
            database=waiting({"Lock:transactionid": 3.6}, 0.3, idle_in_transaction=0.9),
        ),
        Cause.POSTGRES_LOCKS,
        "; in 0.9 a transaction was open and waited for the server's next statement",
    ),
    "half wait for a lock and half are on a CPU": (
        Trial(
            server={"databaseConnections": 6}, database=waiting({"Lock:tuple": 3.0}, on_cpu=3.0)
        ),
        Cause.POSTGRES_LOCKS,
        "of 6.0 connections in use 3.0 waited in Postgres for a lock",
    ),
    "a few that wait for locks, of one row or of several": (
        Trial(server=POOL_OF_20, database=waiting(FIFTY_ROWS, on_cpu=1.7)),
        Cause.UNKNOWN,
        "of 18.4 connections in use 3.7 waited in Postgres for a lock (Lock:transactionid 3.4, "
        "Lock:tuple 0.3): one lock would be taken for 93% of the time",
    ),
    "locks that even as one would often be free": (
        Trial(
            server=POOL_OF_5,
            database=waiting({"Lock:transactionid": 0.8, "Timeout:PgSleep": 3.7}, on_cpu=0.3),
        ),
        Cause.DATABASE_CONNECTIONS,
        "whose pool has 5 connections",
    ),
    "locks that hardly anybody waits for": (
        Trial(
            server=POOL_OF_20,
            database=waiting({"Lock:transactionid": 1.5, "Timeout:PgSleep": 17.0}, on_cpu=1.0),
        ),
        Cause.DATABASE_CONNECTIONS,
        "whose pool has 20 connections",
    ),
    "all wait for one row, and no pool is full": (
        Trial(server=LARGE_POOL, database=waiting({"Lock:tuple": 30.0}, on_cpu=1.0)),
        Cause.POSTGRES_LOCKS,
        "of 32.0 requests at the server 30.0 waited in Postgres for a lock",
    ),
    "some wait for locks, and most requests are elsewhere": (
        Trial(server=LARGE_POOL, database=waiting({"Lock:tuple": 9.0}, on_cpu=1.0)),
        Cause.UNKNOWN,
        "of 32.0 requests at the server 9.0 waited in Postgres for a lock (Lock:tuple 9.0)",
    ),
    "a full pool whose statements wait for the commit before": (
        Trial(server=POOL_OF_5, database=waiting(COMMITS)),
        Cause.POSTGRES_WAL,
        "4.5 waited in Postgres for the write-ahead log (LWLock:WALWrite 3.6, IO:WALSync 0.9)",
    ),
    "as Postgres 17 spells it": (
        Trial(server=POOL_OF_5, database=waiting(COMMITS_17)),
        Cause.POSTGRES_WAL,
        "for the write-ahead log (LWLock:WALWrite 3.6, IO:WalSync 0.9)",
    ),
    "a full pool whose statements read": (
        Trial(server=POOL_OF_5, database=waiting(READS, on_cpu=1.4)),
        Cause.POSTGRES_IO,
        "3.1 waited in Postgres for a file (IO:DataFileRead 2.9, IPC:BufferIO 0.2)",
    ),
    "statements that read for less than half of their time": (
        Trial(server=POOL_OF_5, database=waiting({"IO:DataFileRead": 1.5}, on_cpu=3.3)),
        Cause.DATABASE_CONNECTIONS,
        "whose pool has 5 connections",
    ),
    "a statement that waits on purpose": (
        Trial(server=POOL_OF_5, database=waiting({"Timeout:PgSleep": 4.8})),
        Cause.DATABASE_CONNECTIONS,
        "whose pool has 5 connections",
    ),
    "transactions that the server keeps open": (
        Trial(server=POOL_OF_5, database=waiting({}, 0.4, idle_in_transaction=4.5)),
        Cause.DATABASE_CONNECTIONS,
        "0.4 of them ran a statement and 4.5 had a transaction open, which waited for the server's "
        "next statement; up to 4.9 were in use",
    ),
    "locks in a Postgres at its CPU limit": (
        Trial(
            topology=SMALL_POSTGRES,
            cores={"postgres": 0.5},
            server=POOL_OF_5,
            database=waiting({"LWLock:BufferContent": 4.0}, on_cpu=0.9),
        ),
        Cause.POSTGRES_CPU,
        "0.50 cores of its limit of 0.5",
    ),
    "threads that wait for a lock together": (
        Trial(
            topology={"postgres": {}},
            server=LARGE_POOL,
            database=waiting({"Lock:advisory": 14.2}, on_cpu=1.0),
            known={"requests_at_once": 8},
        ),
        Cause.POSTGRES_LOCKS,
        "of 16.0 requests at work 14.2 waited in Postgres for a lock (Lock:advisory 14.2)",
    ),
    "an image that does not say how many threads it has": (
        Trial(server=OWN_IMAGE, cores={"server": 0.82}, waiting={"server": 0.12}),
        Cause.UNKNOWN,
        "the server used 0.82 cores and a task of it was ready without one in another 12% of the "
        "time: one thread would be full, but how many it has is not known: write `workers`",
    ),
    "an image that does not say it, before a full pool": (
        Trial(server=OWN_IMAGE, cores={"server": 0.93}, pool=full_pool()),
        Cause.UNKNOWN,
        "the server used 0.93 cores: one thread would be full",
    ),
    "an image that keeps to its `workers`": (
        Trial(
            server={**OWN_IMAGE, "workers": 1}, cores={"server": 0.82}, waiting={"server": 0.12}
        ),
        Cause.SERVER_CPU,
        "0.82 cores of the 1 that it can use",
    ),
    "an image that has time even with one thread": (
        Trial(server=OWN_IMAGE, cores={"server": 0.5}, waiting={"server": 0.1}, pool=full_pool()),
        Cause.PGBOUNCER_POOL,
        "24.8 of the 25 connections",
    ),
    "an image whose use never leaves one core": (
        Trial(server=OWN_IMAGE, cores={"server": 0.97}, peaks={"server": 1.0}, each_second=0.96),
        Cause.SERVER_CPU,
        "the server used 0.97 cores, 0.96 to 1.00 in each second: one thread without a pause",
    ),
    "an image with a CPU limit": (
        Trial(
            server={**OWN_IMAGE, "resources": {"cpu": "900m"}}, cores={"server": 0.89}
        ),
        Cause.SERVER_CPU,
        "0.89 cores of its limit of 0.9",
    ),
    "requests that can wait for nothing but a connection": (
        Trial(
            topology={**CAPPED, **FAR},
            proxy=queued(sessions=25.0),
            server={"databaseConnections": 20},
            database=connections(2.1, 0.5, statements=15_000),
            known={"only_database": True},
        ),
        Cause.DATABASE_CONNECTIONS,
        "25.0 requests were at the server, whose pool has 20 connections to the database; 0.2 were "
        "being computed",
    ),
    "requests that can wait in the server as well": (
        Trial(
            topology={**CAPPED, **FAR},
            proxy=queued(),
            server={"databaseConnections": 5},
            database=connections(1.1, 0.5, statements=2_000),
            known={"only_database": False},
        ),
        Cause.HAPROXY_CAP,
        "7.9 of at most 8 requests",
    ),
    "requests that a busy worker has not come to": (
        Trial(
            topology={**CAPPED, **FAR},
            proxy=queued(),
            server={"workers": 1, "databaseConnections": 5},
            database=connections(1.1, 0.5, statements=2_000),
            cores={"server": 0.5},
            waiting={"server": 0.1},
            known={"only_database": True},
        ),
        Cause.HAPROXY_CAP,
        "7.9 of at most 8 requests",
    ),
    "requests that compute wait for no connection": (
        Trial(
            topology={"postgres": {}, "haproxy": {}},
            proxy=queued(sessions=23.0, queue=0.0),
            server={"workers": 6, "databaseConnections": 20},
            database=connections(17.0, 0.5),
            cores={"server": 4.0},
        ),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "as many connections as requests": (
        Trial(load=closed(2), server=SMALL_POOL, rate=62.5, database=connections(1.9, 0.4)),
        Cause.OFFERED_LOAD,
        "2 connections",
    ),
    "the proxy's cap": (
        Trial(topology=CAPPED, proxy=queued()),
        Cause.HAPROXY_CAP,
        "7.9 of at most 8 requests to the server and kept 24.0 in its queue",
    ),
    "the proxy's cap before a server without a free core": (
        Trial(topology=CAPPED, proxy=queued(), server={"workers": 1}, cores={"server": 0.96}),
        Cause.SERVER_CPU,
        "0.96 cores",
    ),
    "the proxy's cap before the server's full pool": (
        Trial(
            topology=CAPPED, proxy=queued(), server=SMALL_POOL, database=connections(1.95, 0.1)
        ),
        Cause.DATABASE_CONNECTIONS,
        "7.9 requests were at the server",
    ),
    "threads of a server that sleeps, of known number": (
        Trial(topology={}, known={"requests_at_once": 14}),
        Cause.SERVER_CONCURRENCY,
        "32.0 requests were at the server, which works on 28 at once",
    ),
    "threads that nobody waits for limit nobody": (
        Trial(topology={}, known={"requests_at_once": 16}),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "requests that a delay before the server holds back take no threads": (
        Trial(topology={"delay": {"servers": "24ms"}}, known={"requests_at_once": 4}),
        Cause.OFFERED_LOAD,
        "32 connections",
    ),
    "threads that are full behind a delay": (
        Trial(topology={"delay": {"servers": "8ms"}}, known={"requests_at_once": 10}),
        Cause.SERVER_CONCURRENCY,
        "24.0 requests were at the server, which works on 20 at once",
    ),
    "the proxy's count of requests is without the delay before it": (
        Trial(
            topology={"haproxy": {}, "delay": {"servers": "8ms"}},
            proxy=queued(sessions=30.0, queue=0.0),
            known={"requests_at_once": 14},
        ),
        Cause.SERVER_CONCURRENCY,
        "30.0 requests were at the server",
    ),
    "threads that are full before a full pool of connections": (
        Trial(
            topology={"postgres": {}},
            server=SMALL_POOL,
            database=connections(1.9, 0.4),
            known={"requests_at_once": 8},
        ),
        Cause.DATABASE_CONNECTIONS,
        "whose pool has 2 connections",
    ),
    "one worker has more connections than it can serve": (
        Trial(
            topology={},
            server={"preset": "fastapi-async", "workers": 3},
            cores={"server": 1.74},
            processes=[*processes("python", 0.97, 0.42, 0.35), *master("python")],
        ),
        Cause.UNEVEN_WORKERS,
        "the busiest of the server's 3 worker processes (python) used 0.97 of the 1 core that it "
        "can use, the others 0.35 to 0.42",
    ),
    "one worker has them and waits for the node's CPUs as well": (
        Trial(
            topology={},
            server={"preset": "fastapi-async", "workers": 2},
            cores={"server": 1.22},
            busy=0.82,
            waiting={"server": 0.2},
            processes=[*processes("python", 0.8, 0.42, waited=[0.14, 0.1]), *master("python")],
        ),
        Cause.UNEVEN_WORKERS,
        "used 0.80 of the 1 core that it can use and waited for a CPU of the node in another 14% "
        "of the time, the other one 0.42",
    ),
    "one worker of an image of one's own has": (
        Trial(
            topology={},
            server={**OWN_IMAGE, "workers": 2},
            cores={"server": 1.25},
            processes=[*processes("node", 0.94, 0.31), *master("node"), *PAUSE],
        ),
        Cause.UNEVEN_WORKERS,
        "the busiest of the server's 2 worker processes (node) used 0.94 of the 1 core that it can "
        "use, the other one 0.31",
    ),
    "a pool that all workers share is full in front of an uneven one": (
        Trial(
            pool=full_pool(),
            proxy=queued(31.0, 1.0),
            server={"preset": "fastapi-async", "workers": 2},
            cores={"server": 1.61},
            processes=[*processes("python", 0.91, 0.7), *master("python")],
        ),
        Cause.PGBOUNCER_POOL,
        "24.8 of the 25 connections",
    ),
    "a lock that most wait for, in front of an uneven worker": (
        Trial(
            topology={"postgres": {}},
            server={"preset": "fastapi-async", "workers": 2, "databaseConnections": 40},
            cores={"server": 1.5},
            processes=[*processes("python", 0.9, 0.6), *master("python")],
            database=waiting({"Lock:tuple": 26.0, "Lock:transactionid": 1.0}),
        ),
        Cause.POSTGRES_LOCKS,
        "waited in Postgres for",
    ),
    "places are left in a worker that is not full": (
        Trial(
            topology={},
            load=closed(100),
            server={"preset": "fastapi-sleep", "workers": 4},
            rate=5.6,
            server_time=latency(13.0, least=10.0, spread=2.0),
            known={"requests_at_once": 40, "wait_seconds": 10.0},
            cores={"server": 0.95},
            processes=[*processes("python", 0.75, 0.1, 0.1, 0.0), *master("python")],
        ),
        Cause.UNEVEN_WORKERS,
        "56.0 of 100 requests were being worked on, though each of the 4 workers works on 40",
    ),
    "workers that share the connections unevenly": (
        Trial(
            topology={},
            load=closed(100),
            server={"preset": "fastapi-sleep", "workers": 4},
            rate=5.6,
            server_time=latency(13.0, least=10.0, spread=2.0),
            known={"requests_at_once": 40, "wait_seconds": 10.0},
        ),
        Cause.UNEVEN_WORKERS,
        "56.0 of 100 requests were being worked on, though each of the 4 workers works on 40",
    ),
    "workers that have a place for every connection": (
        Trial(
            topology={},
            load=closed(100),
            server={"preset": "fastapi-sleep", "workers": 4},
            rate=8.3,
            server_time=latency(10.1, least=10.0),
            known={"requests_at_once": 40, "wait_seconds": 10.0},
        ),
        Cause.OFFERED_LOAD,
        "100 connections with one request each",
    ),
    "slots of unknown number behind a delay": (
        Trial(
            topology={"delay": {"servers": "200ms"}},
            rate=80.0,
            server_time=latency(0.6, least=0.25, spread=1.02),
        ),
        Cause.SERVER_CONCURRENCY,
        "worked on about 4.0 at once: the first ones took 50 ms, half of all 400 ms",
    ),
    "a long way to the server": (
        Trial(topology={"delay": {"servers": "30ms"}}),
        Cause.OFFERED_LOAD,
        "a mean response time of 32 ms (30 ms are the delay before the servers)",
    ),
    "connections that are held over a long way to the database": (
        Trial(topology=FAR, server=SMALL_POOL, database=connections(0.1, 0.1, statements=8500)),
        Cause.DATABASE_CONNECTIONS,
        "0.1 of them ran a statement, up to 2.0 were in use",
    ),
    "as many connections as requests over that way": (
        Trial(topology=FAR, server=LARGE_POOL, database=connections(0, 0, statements=140_000)),
        Cause.OFFERED_LOAD,
        "32 connections with one request each",
    ),
    "threads of a server that sleeps, of unknown number": (
        Trial(topology={}, rate=80.0, server_time=latency(0.4, least=0.05, spread=1.02)),
        Cause.SERVER_CONCURRENCY,
        "worked on about 4.0 at once",
    ),
    "a server that sleeps for each request alone is not told from one that waits": (
        Trial(topology={}, rate=640.0, server_time=latency(0.05)),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "response times far apart do not show slots": (
        Trial(topology={}, rate=80.0, server_time=latency(0.4, least=0.05, spread=2.0)),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "quick and slow requests that all wait at once": (
        Trial(
            load=closed(64),
            topology={},
            rate=1060.0,
            server_time=latency(0.1, least=0.001, spread=1.01, mean=0.0604),
            known={"wait_seconds": 0.06, "one_kind": False},
        ),
        Cause.OFFERED_LOAD,
        "64 connections with one request each, a mean response time of 60.4 ms (60 ms are what the "
        "scenario waits)",
    ),
    "quick and slow statements of one endpoint that all run at once": (
        Trial(
            load=closed(30),
            topology={"postgres": {}},
            server=LARGE_POOL,
            rate=2400.0,
            server_time=latency(0.02, least=0.0006, spread=1.1, mean=0.0125),
            database=waiting({"Timeout:PgSleep": 28.0}),
        ),
        Cause.OFFERED_LOAD,
        "30 connections with one request each",
    ),
    "quick and slow requests of unknown length": (
        Trial(
            topology={},
            rate=80.0,
            server_time=latency(0.4, least=0.05, spread=1.02),
            known={"one_kind": False},
        ),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "the fastest of many answers is no first one": (
        Trial(
            load=closed(64),
            topology={},
            rate=6400.0,
            server_time=latency(0.01, least=0.0045, spread=1.26),
        ),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "threads of unknown number, of a server that is somewhat unsteady": (
        Trial(
            load=closed(16),
            topology={},
            rate=160.0,
            server_time=latency(0.1, least=0.0256, spread=1.15),
        ),
        Cause.SERVER_CONCURRENCY,
        "worked on about 4.1 at once",
    ),
    "in a search no connections begin at once": (
        Trial(
            load=SEARCH,
            topology={},
            rate=80.0,
            server_time=latency(0.4, least=0.05, spread=1.02),
        ),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "users who think do not begin at once": (
        Trial(
            topology={},
            rate=60.0,
            server_time=latency(0.4, least=0.05, spread=1.02),
            known={"think_seconds": 0.1},
        ),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "requests that wait for the upstream queue for no connection": (
        Trial(
            load=closed(64),
            topology={"postgres": {}, "upstream": {"latency": "100ms"}},
            server={**POOL_OF_5, "workers": 1},
            rate=620.0,
            cores={"server": 0.5},
            server_time=latency(0.103),
            database=connections(3.9, 1.0, seconds=39.0),
            known={"upstream_seconds": 0.0952},
        ),
        Cause.UPSTREAM,
        "the upstream takes 95.2 ms for a request, 92% of the time that the server takes",
    ),
    "requests that wait on purpose queue for no connection": (
        Trial(
            load=closed(64),
            topology={"postgres": {}},
            server={**POOL_OF_5, "workers": 1},
            rate=620.0,
            cores={"server": 0.5},
            server_time=latency(0.103),
            database=connections(3.9, 1.0, seconds=39.0),
            known={"wait_seconds": 0.0952},
        ),
        Cause.OFFERED_LOAD,
        "(95.2 ms are what the scenario waits)",
    ),
    "a full pool beside requests that wait for the upstream": (
        Trial(
            load=closed(128),
            topology={"postgres": {}, "upstream": {"latency": "100ms"}},
            server={**POOL_OF_5, "workers": 1},
            rate=770.0,
            cores={"server": 0.6},
            server_time=latency(0.166),
            database=connections(4.9, 1.0, seconds=49.0),
            known={"upstream_seconds": 0.0952},
        ),
        Cause.DATABASE_CONNECTIONS,
        "whose pool has 5 connections to the database; 73.3 of them waited for the upstream or on "
        "purpose and 4.9 ran a statement, up to 5.0 were in use",
    ),
    "a full pool of statements that wait on purpose": (
        Trial(
            load=closed(9),
            topology={"postgres": {}},
            server={**POOL_OF_5, "workers": 1},
            rate=50.0,
            server_time=latency(0.18),
            database=waiting({"Timeout:PgSleep": 4.9}),
            known={"wait_seconds": 0.1},
        ),
        Cause.DATABASE_CONNECTIONS,
        "9.0 requests were at the server, whose pool has 5 connections to the database",
    ),
    "statements that sleep are no part of the wait for the upstream": (
        Trial(
            load=closed(35),
            topology={"postgres": {}, "upstream": {"latency": "25ms"}},
            server={"databaseConnections": 10, "workers": 1},
            rate=1000.0,
            server_time=latency(0.0345),
            database=waiting({"Timeout:PgSleep": 9.0}, 0.2),
            known={"upstream_seconds": 0.025},
        ),
        Cause.OFFERED_LOAD,
        "(25 ms are the upstream's)",
    ),
    "a full pool of transactions that are open while they ask the upstream": (
        Trial(
            load=closed(8),
            topology={"postgres": {}, "upstream": {"latency": "100ms"}},
            server={**POOL_OF_5, "workers": 1},
            rate=48.0,
            server_time=latency(0.166),
            database=waiting({}, 0.2, idle_in_transaction=4.7),
            known={"upstream_seconds": 0.1},
        ),
        Cause.DATABASE_CONNECTIONS,
        "4.7 had a transaction open",
    ),
    "the upstream's own time": (
        Trial(topology={}, rate=300, server_time=latency(0.105), known={"upstream_seconds": 0.1}),
        Cause.UPSTREAM,
        "takes 100 ms for a request, 95% of the time that the server takes",
    ),
    "the upstream's time behind a delay that is longer": (
        Trial(topology={"delay": {"servers": "20ms"}}, known={"upstream_seconds": 0.01}),
        Cause.OFFERED_LOAD,
        "(10 ms are the upstream's, 20 ms are the delay before the servers)",
    ),
    "an upstream that takes less than others": (
        Trial(topology={}, rate=300, server_time=latency(0.105), known={"upstream_seconds": 0.05}),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit",
    ),
    "the generator": (
        Trial(generator=0.97),
        Cause.GENERATOR,
        "the busiest generator used 97%",
    ),
    "the fullest CPU of two": (
        Trial(generator=0.91, server={"workers": 1}, cores={"server": 0.99}),
        Cause.SERVER_CPU,
        "0.99 cores",
    ),
    "the node, shared by parts without a limit": (
        Trial(cores={"server": 1.2, "postgres": 3.4, "generator": 1.5}, busy=0.97, others=1.46),
        Cause.NODE,
        "cores: postgres 3.40, generator 1.50, others 1.46, server 1.20",
    ),
    "time that the hypervisor took": (
        Trial(cores={"server": 1.2, "postgres": 3.4}, busy=0.6, stolen=0.35),
        Cause.NODE,
        "35.0% of them taken by the hypervisor",
    ),
    "a part at its own limit on a busy node": (
        Trial(server={"workers": 1}, cores={"server": 0.95, "postgres": 5.0}, busy=0.97),
        Cause.SERVER_CPU,
        "0.95 cores of the 1",
    ),
    "a pool of one thread": (
        Trial(cores={"pgbouncer": 0.98}),
        Cause.PGBOUNCER_CPU,
        "PgBouncer used 0.98 cores of the 1 that its one thread can use",
    ),
    "answers that fill the way between two nodes": (
        apart(answers=99.0),
        Cause.NETWORK,
        "answers took 79.2 of the 80.0 Mbit/s that node near can send to node far",
    ),
    "requests that fill it": (
        apart(requests=115.0),
        Cause.NETWORK,
        "requests took 92.0 of the 96.0 Mbit/s that node far can send to node near",
    ),
    "a server that is full in front of a full network": (
        replace(apart(answers=99.0), server={"workers": 1}, cores={"server": 0.97}),
        Cause.SERVER_CPU,
        "0.97 cores",
    ),
    "a network that has room": (apart(answers=60.0), Cause.UNKNOWN, "nearest (60%): answers took"),
    "a network that was measured too low": (apart(answers=120.0), Cause.UNKNOWN, "nothing that"),
    "a network of which CPUs may have been the limit": (
        apart(answers=99.0, from_server_at_least=True),
        Cause.UNKNOWN,
        "nearest (30%): the busiest generator",
    ),
    "a network between other nodes": (
        replace(apart(answers=99.0), nodes={"generator": ["far"], "server": ["elsewhere"]}),
        Cause.UNKNOWN,
        "nearest (30%): the busiest generator",
    ),
    "a network of two generators' nodes": (
        replace(apart(answers=99.0), nodes={"generator": ["far", "other"], "server": ["near"]}),
        Cause.UNKNOWN,
        "nearest (30%): the busiest generator",
    ),
    "a network that nobody could measure": (
        replace(
            apart(answers=99.0),
            paths=[NodePath(generator_node="far", server_node="near", message="no room")],
        ),
        Cause.UNKNOWN,
        "nearest (30%): the busiest generator",
    ),
    "a network through a proxy on a third node": (
        replace(
            apart(answers=99.0),
            topology={"haproxy": {}},
            nodes={"generator": ["far"], "server": ["near"], "haproxy": ["third"]},
        ),
        Cause.UNKNOWN,
        "nearest (30%): the busiest generator",
    ),
    "a full network through a proxy on the server's node": (
        replace(
            apart(answers=99.0),
            topology={"haproxy": {}},
            nodes={"generator": ["far"], "server": ["near"], "haproxy": ["near"]},
        ),
        Cause.NETWORK,
        "79.2 of the 80.0 Mbit/s",
    ),
    "a network behind a delay": (
        replace(apart(answers=99.0), topology={"delay": {"servers": "8ms"}}),
        Cause.UNKNOWN,
        "nearest (30%): the busiest generator",
    ),
    "several workers that wait for their disk": (
        Trial(topology={}, stalled={"disk": 0.93, "memory": 0.0}),
        Cause.SERVER_DISK,
        "the server's pod waited for its disk in 93% of the time",
    ),
    "several workers that wait for their disk for a part of the time": (
        Trial(topology={}, cores={"server": 0.34}, stalled={"disk": 0.62}),
        Cause.UNKNOWN,
        "nearest (62%): the server's pod waited for its disk in 62% of the time",
    ),
    "one worker that waits for its disk or computes": (
        Trial(server={"workers": 1}, cores={"server": 0.34}, stalled={"disk": 0.62}),
        Cause.SERVER_DISK,
        "its disk in 62% of the time, and its one worker used 0.34 cores",
    ),
    "one worker that waits for its disk and pauses": (
        Trial(server={"workers": 1}, cores={"server": 0.2}, stalled={"disk": 0.62}),
        Cause.UNKNOWN,
        "nearest (82%): the server's pod waited for its disk in 62% of the time",
    ),
    "one worker that computes for more than half of the time": (
        Trial(server={"workers": 1}, cores={"server": 0.6}, stalled={"disk": 0.38}),
        Cause.UNKNOWN,
        "nearest (60%): the server used 0.60 cores of the 1",
    ),
    "one worker that waits for its disk, and threads of it for a CPU meanwhile": (
        Trial(
            server={"workers": 1},
            cores={"server": 0.2},
            waiting={"server": 0.3},
            stalled={"disk": 0.62},
        ),
        Cause.UNKNOWN,
        "nearest (82%): the server's pod waited for its disk in 62% of the time",
    ),
    "an image of one thread or several": (
        Trial(server=OWN_IMAGE, cores={"server": 0.34}, stalled={"memory": 0.62}),
        Cause.UNKNOWN,
        "nearest (62%): the server's pod waited for memory",
    ),
    "an image that may wait for connections in an io_uring": (
        Trial(server=OWN_IMAGE | {"workers": 1}, topology={}, stalled={"disk": 0.97}),
        Cause.UNKNOWN,
        "nearest (30%): the busiest generator",
    ),
    "an image at its limit of memory that may wait for connections in an io_uring": (
        Trial(
            server=OWN_IMAGE | {"workers": 1},
            topology={},
            stalled={"disk": 0.97, "memory": 0.55},
        ),
        Cause.UNKNOWN,
        "nearest (55%): the server's pod waited for memory",
    ),
    "an image that waits for a disk that it reads and writes": (
        Trial(server=OWN_IMAGE, topology={}, stalled={"disk": 0.93}, disk_operations=1412.0),
        Cause.SERVER_DISK,
        "waited for its disk (1,412 reads and writes a second) in 93% of the time",
    ),
    "an image of one worker that waits for a slow disk, or in an io_uring for anything": (
        Trial(
            server=OWN_IMAGE | {"workers": 1},
            cores={"server": 0.34},
            stalled={"disk": 0.62},
            disk_operations=31.0,
        ),
        Cause.UNKNOWN,
        "nearest (62%): the server's pod waited for its disk (31 reads and writes a second)",
    ),
    "an image in an io_uring whose log is written in batches": (
        Trial(
            server=OWN_IMAGE | {"workers": 1},
            topology={},
            stalled={"disk": 0.97},
            disk_operations=20.0,
        ),
        Cause.UNKNOWN,
        "nearest (30%): the busiest generator",
    ),
    "an image in an io_uring that does nothing at any disk": (
        Trial(server=OWN_IMAGE, topology={}, stalled={"disk": 0.97}, disk_operations=0.0),
        Cause.UNKNOWN,
        "nearest (30%): the busiest generator",
    ),
    "a preset that waits for what is not counted as its own": (
        Trial(topology={}, stalled={"disk": 0.93}, disk_operations=2.0),
        Cause.SERVER_DISK,
        "waited for its disk (2 reads and writes a second) in 93% of the time",
    ),
    "an image that waits for memory": (
        Trial(server=OWN_IMAGE, topology={}, stalled={"memory": 0.93}),
        Cause.SERVER_MEMORY,
        "waited for memory in 93% of the time",
    ),
    "threads that all wait for the disk": (
        Trial(topology={}, known={"requests_at_once": 8}, stalled={"disk": 0.95}),
        Cause.SERVER_DISK,
        "in 95% of the time",
    ),
    "pages that were given up and are read again": (
        Trial(topology={}, stalled={"disk": 0.97, "memory": 0.92}),
        Cause.SERVER_MEMORY,
        "the server's pod waited for memory in 92% of the time",
    ),
    "one worker at its limit of memory": (
        Trial(
            server={"workers": 1, "resources": {"memory": "256Mi"}},
            cores={"server": 0.4},
            stalled={"disk": 0.55, "memory": 0.6},
        ),
        Cause.SERVER_MEMORY,
        "waited for memory (it had 256 MiB at most of its limit of 256Mi) in 60% of the time, and "
        "its one worker used 0.40 cores",
    ),
    "a worker whose CPU is full of making room in memory": (
        Trial(server={"workers": 1}, cores={"server": 0.97}, stalled={"memory": 0.6}),
        Cause.SERVER_CPU,
        "0.97 cores",
    ),
    "a full pool in front of Postgres, of a server that waits for its disk too": (
        Trial(pool=full_pool(), database=connections(24.0, 2.0), stalled={"disk": 0.95}),
        Cause.PGBOUNCER_POOL,
        "24.8 of the 25",
    ),
    "a lock in Postgres, of a server that waits for its disk too": (
        Trial(
            server=LARGE_POOL,
            database=waiting({"Lock:tuple": 30.0}, on_cpu=1.0),
            stalled={"disk": 0.95},
        ),
        Cause.POSTGRES_LOCKS,
        "of 32.0 requests at the server 30.0 waited",
    ),
    "an upstream that nearly all wait for while a few wait for the disk": (
        Trial(known={"upstream_seconds": 0.03}, stalled={"disk": 0.95}),
        Cause.UPSTREAM,
        "the upstream takes 30 ms",
    ),
    "nearly all wait on purpose while a few wait for the disk": (
        Trial(known={"wait_seconds": 0.03}, stalled={"disk": 0.95}),
        Cause.OFFERED_LOAD,
        "nothing that they had to queue for",
    ),
    "a disk of which nobody reads anything": (
        Trial(topology={}),
        Cause.UNKNOWN,
        "nothing that was watched was at its limit; nearest (30%): the busiest generator",
    ),
    "a rate that was met": (
        Trial(load=open_load(1000), rate=999.5),
        Cause.OFFERED_LOAD,
        "1,000 requests/s that were asked for were answered",
    ),
    "a rate that was not met": (
        Trial(load=open_load(1100), server={"workers": 1}, cores={"server": 0.97}),
        Cause.SERVER_CPU,
        "0.97 cores",
    ),
    "a rate that was met by dropping requests": (
        Trial(load=open_load(1000), errors={"dropped": 200}, generator=0.99),
        Cause.GENERATOR,
        "99%",
    ),
    "a single connection queues for nothing": (
        Trial(load=closed(1), rate=31.0, watched=False),
        Cause.OFFERED_LOAD,
        "1 connection with one request each, a mean response time of 32 ms",
    ),
    "nobody watched": (
        Trial(pool=full_pool(), watched=False),
        Cause.UNKNOWN,
        "whether a CPU was busy is not known: nobody watched",
    ),
    # Where the server may have used up a limit of its own, that came before the node.
    "a full node whose pods nobody watched": (
        Trial(usage=of_nodes(Source.NOBODY, "a")),
        Cause.UNKNOWN,
        "node a was busy for 97% of its 2 CPUs; whether a CPU was busy is not known: nobody",
    ),
    "a full node of which one part was not watched": (
        Trial(usage=of_nodes(Source.AGENT, "a", "server", "pgbouncer", "haproxy")),
        Cause.UNKNOWN,
        "haproxy 0.30; whether a CPU was busy is not known: their readings are missing",
    ),
    "a full node whose pods were all watched": (
        Trial(usage=of_nodes(Source.AGENT, "a", "server", "pgbouncer", "haproxy", "postgres")),
        Cause.NODE,
        "node a was busy for 97% of its 2 CPUs; no part has reached a limit of its own",
    ),
    "a full node from which a Service was driven": (
        Trial(
            server={"service": {"name": "shop", "port": 80}},
            topology={},
            usage=of_nodes(Source.AGENT, "a", "generator"),
        ),
        Cause.NODE,
        "node a was busy for 97% of its 2 CPUs",
    ),
    "readings too far apart for the window": (
        Trial(
            usage=TrialUsage(
                source=Source.KUBELET,
                resolution_seconds=12.0,
                complete=False,
                components=[ComponentUsage(component="server", pods=1, cores_mean=1.99)],
            )
        ),
        Cause.UNKNOWN,
        "too short for readings 12 s apart: more requests, or a longer duration, would tell",
    ),
    "no readings at all": (
        Trial(usage=TrialUsage(source=Source.AGENT, resolution_seconds=0.2, complete=False)),
        Cause.UNKNOWN,
        "their readings are missing",
    ),
    "no right answer": (Trial(rate=0.0), Cause.UNKNOWN, "no right answer"),
}  # fmt: skip
