"""What limited a trial: the innermost resource that was full, and nothing where none shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.api.causes import Cause
from laptime.api.evidence import PoolEvidence
from laptime.api.side_services import SideService
from laptime.api.usage import ComponentUsage, NodeUsage, ProcessUsage, Source, TrialUsage
from laptime.measure.stalls import SLOWEST_OPERATION_SECONDS
from tests.measure.cause_cases import (
    CAPPED,
    CASES,
    FAR,
    LARGE_POOL,
    OWN_IMAGE,
    SMALL_POOL,
    SMALL_POSTGRES,
    Trial,
    cause_of,
    closed,
    connections,
    full_pool,
    latency,
    master,
    open_load,
    processes,
    queued,
    waiting,
)


def test_a_generator_that_its_limit_holds_back_is_the_cause() -> None:
    found = cause_of(Trial(throttled={"generator": 0.97}, generator=0.1))
    assert found.cause is Cause.GENERATOR
    assert "97%" in found.evidence


ALONE = {"workers": 1}


def test_a_worker_that_ran_or_waited_for_a_cpu_all_the_time_is_the_servers_cpu() -> None:
    found = cause_of(
        Trial(server=ALONE, cores={"server": 0.64}, waiting={"server": 0.29}, busy=0.74)
    )
    assert found.cause is Cause.SERVER_CPU
    assert "0.64 cores" in found.evidence
    assert "29%" in found.evidence


@pytest.mark.parametrize(
    "trial",
    [
        Trial(server=ALONE, cores={"server": 0.64}, waiting={"server": 0.2}),
        Trial(server=ALONE, cores={"server": 0.3}, waiting={"server": 0.7}),
        Trial(server={"workers": 2}, cores={"server": 0.9}, waiting={"server": 0.9}),
    ],
    ids=["it paused", "it hardly ran", "two workers, one of which may run while the other waits"],
)
def test_waiting_for_a_cpu_alone_is_not_the_servers_cpu(trial: Trial) -> None:
    assert cause_of(trial).cause is not Cause.SERVER_CPU


def test_a_worker_that_its_limit_held_back_is_not_said_to_wait_for_its_node() -> None:
    trial = Trial(
        server={**ALONE, "resources": {"cpu": "600m"}},
        cores={"server": 0.52},
        waiting={"server": 0.45},
        throttled={"server": 0.85},
    )
    found = cause_of(trial)
    assert found.cause is Cause.SERVER_CPU
    assert "of the node" not in found.evidence
    assert "and waited for a CPU, or for its CPU limit, in another 45%" in found.evidence


def test_a_worker_that_hardly_paused_is_what_was_nearest() -> None:
    found = cause_of(
        Trial(server=ALONE, cores={"server": 0.63}, waiting={"server": 0.26}, busy=0.72)
    )
    assert found.cause is Cause.UNKNOWN
    assert "nearest (89%): the server's worker used 0.63 cores of the 1" in found.evidence
    assert found.also == [Cause.SERVER_CPU, Cause.NODE]


def test_a_full_node_comes_before_the_worker_that_waits_for_it() -> None:
    trial = Trial(server=ALONE, cores={"server": 0.64}, waiting={"server": 0.3}, busy=0.97)
    assert cause_of(trial).cause is Cause.NODE


TWO_OF_ONES_OWN = {**OWN_IMAGE, "workers": 2}


def workers(count: int, *used: ProcessUsage, **more: Any) -> Trial:
    """Return a trial of a server of so many worker processes, of which one had too much to do."""
    return Trial(
        **{
            "topology": {},
            "server": {"preset": "fastapi-async", "workers": count},
            "cores": {"server": sum(one.cores for one in used)},
            "processes": [*used, *master("python")],
            **more,
        }
    )


EVEN: dict[str, Trial] = {
    "threads of one process": workers(
        2, *processes("mine", 0.95), *processes("nginx", 0.02, number=12), server=TWO_OF_ONES_OWN
    ),
    "threads by the preset": workers(
        2, *processes("server", 0.95, 0.05), server={"preset": "axum-sqlx", "workers": 2}
    ),
    "a process that computes on several cores": workers(
        2, *processes("java", 0.97, 0.2, peak=1.6), server=TWO_OF_ONES_OWN
    ),
    "a program that passes on to others": workers(
        2,
        *processes("nginx", 0.95, parent=12, number=13),
        *processes("nginx", 0.0, number=12),
        *processes("python", 0.4, 0.4, parent=20, number=21),
        server=TWO_OF_ONES_OWN,
    ),
    "one that started the server": workers(2, *processes("python", 0.95), server=TWO_OF_ONES_OWN),
    "the one that gives the others work": workers(
        2,
        *processes("node", 0.4, 0.2),
        server=TWO_OF_ONES_OWN,
        processes=[*processes("node", 0.4, 0.2), *master("node", 0.95)],
    ),
    "hardly uneven": workers(2, *processes("python", 0.92, 0.8)),
    "a connection for each that computes": workers(
        8,
        *processes("python", 0.92, *5 * [0.888], 0.0, 0.0),
        load=closed(6),
        server_time=latency(0.006),
    ),
    "a connection for each of two that wait for the node": workers(
        3,
        *processes("python", 0.7, 0.7, 0.0, waited=[0.25, 0.25, 0.0]),
        load=closed(2),
        server_time=latency(0.002),
        busy=0.85,
        waiting={"server": 0.4},
    ),
    "the others wait for an upstream": workers(
        4,
        *processes("python", 0.95, 0.2, 0.2, 0.2),
        known={"upstream_seconds": 0.028},
    ),
    "the others were kept from running": workers(
        2, *processes("python", 0.62, 0.49, waited=[0.3, 0.31]), busy=0.85
    ),
    "nobody knows whether the others were": workers(
        2, *processes("python", 0.91, 0.54), waiting={"server": 0.5}
    ),
    "threads that waited beside each other": workers(
        2, *processes("python", 0.6, 0.3, waited=[0.4, 0.1], main=0.1), waiting={"server": 0.4}
    ),
    "it hardly ran": workers(2, *processes("python", 0.4, 0.1, waited=[0.55, 0.1])),
    "its limit held it back": workers(
        2,
        *processes("python", 0.55, 0.1, waited=[0.4, 0.1]),
        throttled={"server": 0.6},
        server={"preset": "fastapi-async", "workers": 2, "resources": {"cpu": "1"}},
    ),
    "more of them than are told of": workers(20, *processes("python", 0.95, *15 * [0.1])),
    "nobody says how many": workers(2, *processes("node", 0.94, 0.31), server=OWN_IMAGE),
    "nobody tells": workers(3, processes=None, cores={"server": 1.74}),
}


@pytest.mark.parametrize("name", EVEN)
def test_workers_that_are_not_uneven_are_never_called_so(name: str) -> None:
    found = cause_of(EVEN[name])
    assert Cause.UNEVEN_WORKERS not in (found.cause, *found.also)


def test_a_full_worker_is_named_beside_what_was_asked_for() -> None:
    found = cause_of(workers(2, *processes("python", 0.95, 0.25), load=open_load(1000)))
    assert (found.cause, found.also) == (Cause.OFFERED_LOAD, [Cause.UNEVEN_WORKERS])


@pytest.mark.parametrize("name", CASES)
def test_the_innermost_full_resource_is_named_with_its_readings(name: str) -> None:
    trial, cause, evidence = CASES[name]
    found = cause_of(trial)
    assert found.cause is cause, found
    assert evidence in found.evidence


def cache(**more: object) -> SideService:
    return SideService.model_validate(
        {"name": "cache", "image": "redis:8", "ports": [6379], **more}
    )


def test_a_service_at_its_limit_is_the_cause_and_is_named() -> None:
    busy = {"service-cache": 0.97}
    found = cause_of(Trial(services=[cache(threads=1)], cores=busy))
    assert found.cause is Cause.SERVICE_CPU
    assert "service cache used 0.97 cores of the 1 that its thread can use" in found.evidence
    limited = cache(resources={"cpu": "500m"})
    held = Trial(
        services=[limited], cores={"service-cache": 0.4}, throttled={"service-cache": 0.95}
    )
    found = cause_of(held)
    assert found.cause is Cause.SERVICE_CPU
    assert "of its limit of 0.5 and was held back by its CPU limit in 95%" in found.evidence


def test_a_service_without_a_limit_of_its_own_is_no_cause() -> None:
    trial = Trial(services=[cache()], cores={"service-cache": 0.97})
    assert cause_of(trial).cause is not Cause.SERVICE_CPU


@pytest.mark.parametrize(
    ("part", "cause"),
    [
        ("postgres", Cause.POSTGRES_CPU),
        ("haproxy", Cause.HAPROXY_CPU),
        ("server", Cause.SERVER_CPU),
        ("service-cache", Cause.SERVICE_CPU),
    ],
)
@pytest.mark.parametrize("server", [{}, OWN_IMAGE], ids=["preset", "own image"])
def test_a_limit_that_the_cluster_set_is_one_though_the_run_does_not_know_it(
    part: str, cause: Cause, server: dict[str, Any]
) -> None:
    """A LimitRange gives one to each container that has none."""
    trial = Trial(
        server=server,
        services=[cache()],
        cores={part: 0.5},
        throttled={part: 0.97},
        pool=full_pool(),
        database=connections(24.0, 23.0),
    )
    found = cause_of(trial)
    assert found.cause is cause
    assert "held back by its CPU limit in 97% of the time" in found.evidence


def test_where_a_service_was_not_watched_its_cpu_is_not_known() -> None:
    trial = Trial()
    seen = replace(trial, services=[cache()], usage=None)
    assert "whether a CPU was busy is not known" not in cause_of(seen).evidence
    usage = TrialUsage(
        source=Source.AGENT,
        resolution_seconds=1.0,
        complete=True,
        components=[
            ComponentUsage(component=name, pods=1, cores_mean=0.1)
            for name in ("server", "postgres", "pgbouncer", "haproxy", "generator")
        ],
        nodes=[NodeUsage(node="worker-1", cpus=8, busy_share=0.2, stolen_share=0.0)],
    )
    unseen = cause_of(replace(seen, usage=usage))
    assert "whether a CPU was busy is not known" in unseen.evidence


@pytest.mark.parametrize("part", ["pgbouncer", "haproxy"])
def test_where_a_tier_was_not_watched_no_pool_or_cap_is_blamed(part: str) -> None:
    """It may stand on a node whose agent is away."""
    topology = {"postgres": {}, "pgbouncer": {"poolSize": 25}, "haproxy": {"maxConnections": 8}}
    trial = Trial(topology=topology, pool=full_pool(), proxy=queued(), without=(part,))
    found = cause_of(trial)
    assert found.cause is Cause.UNKNOWN
    assert "whether a CPU was busy is not known" in found.evidence
    assert cause_of(replace(trial, without=())).cause is Cause.PGBOUNCER_POOL


@pytest.mark.parametrize(
    ("silent", "named"),
    [
        (["haproxy"], "at HAProxy is not known"),
        (["pgbouncer"], "at PgBouncer is not known"),
        (["pgbouncer", "postgres"], "at PgBouncer or Postgres is not known"),
    ],
)
@pytest.mark.parametrize("at_once", [None, 8])
def test_what_waits_in_a_tier_that_nobody_reads_is_not_said_to_wait_at_the_server(
    silent: list[str], named: str, at_once: int | None
) -> None:
    """Of a tier whose CPU the agent knows, and whose own figures no job of Prometheus scrapes."""
    trial = Trial(
        topology={**CAPPED, "pgbouncer": {"poolSize": 25}},
        known={"requests_at_once": at_once},
        # As if there were slots of an unknown number, too.
        server_time=latency(0.032, least=0.004),
        pool=full_pool(),
        proxy=None if "haproxy" in silent else queued(),
        silent=silent,
    )
    found = cause_of(trial)
    assert found.cause is Cause.UNKNOWN
    assert named in found.evidence
    read = cause_of(replace(trial, silent=(), proxy=queued()))
    assert read.cause is Cause.PGBOUNCER_POOL


def test_a_cpu_that_is_full_needs_no_word_of_the_tiers() -> None:
    trial = Trial(server={"workers": 1}, cores={"server": 0.99}, silent=["pgbouncer", "postgres"])
    assert cause_of(trial).cause is Cause.SERVER_CPU


def test_an_upstream_that_takes_nearly_all_of_the_time_needs_no_word_of_the_tiers() -> None:
    trial = Trial(known={"upstream_seconds": 0.03}, silent=["pgbouncer", "postgres"])
    assert cause_of(trial).cause is Cause.UPSTREAM
    short = replace(trial, known={"upstream_seconds": 0.01})
    assert cause_of(short).cause is Cause.UNKNOWN


def test_a_proxy_without_a_cap_keeps_nobody_waiting() -> None:
    assert "HAProxy" not in cause_of(Trial(silent=["pgbouncer"])).evidence


def test_a_delay_that_its_limit_holds_back_is_longer_than_asked_for() -> None:
    trial = Trial(
        server=SMALL_POOL,
        topology=FAR,
        throttled={"delay": 0.97},
        database=connections(1.9, 0.4, statements=8500),
    )
    found = cause_of(trial)
    assert found.cause is Cause.UNKNOWN
    assert found.evidence == (
        "the delay was held back by its CPU limit in 97% of the time: it took longer than was "
        "asked for"
    )
    assert found.also == [Cause.DATABASE_CONNECTIONS]
    assert cause_of(replace(trial, throttled={})).cause is Cause.DATABASE_CONNECTIONS


def test_what_fills_a_node_is_what_ran_there() -> None:
    where = {"server": ["worker-1"], "postgres": [], "generator": ["far"], "haproxy": ["far", "b"]}
    usage = TrialUsage(
        source=Source.AGENT,
        resolution_seconds=1.0,
        complete=True,
        components=[
            ComponentUsage(component=name, pods=1, cores_mean=0.3, cores_peak=0.3, nodes=nodes)
            for name, nodes in where.items()
        ],
        nodes=[
            NodeUsage(node="worker-1", cpus=1, busy_share=0.99, stolen_share=0.0),
            NodeUsage(node="b", cpus=1, busy_share=0.3, stolen_share=0.0),
        ],
    )
    found = cause_of(Trial(topology={"postgres": {}, "haproxy": {}}, usage=usage))
    assert found.cause is Cause.NODE
    assert found.evidence == (
        "node worker-1 was busy for 99% of its 1 CPUs; no part has reached a limit of its own; "
        "cores: server 0.30, postgres 0.30"
    )


def test_of_several_full_nodes_the_fullest_is_the_cause() -> None:
    usage = TrialUsage(
        source=Source.AGENT,
        resolution_seconds=1.0,
        complete=True,
        components=[ComponentUsage(component="server", pods=1, cores_mean=0.3, nodes=["b"])],
        nodes=[
            NodeUsage(node="a", cpus=2, busy_share=0.9, stolen_share=0.0),
            NodeUsage(node="b", cpus=2, busy_share=0.9, stolen_share=0.1),
        ],
    )
    found = cause_of(Trial(topology={}, usage=usage))
    assert found.cause is Cause.NODE
    assert found.evidence.startswith("node b was busy for 100% of its 2 CPUs")


def test_a_full_pool_in_front_of_a_lock_is_named_beside_it() -> None:
    found = cause_of(
        Trial(server={"databaseConnections": 5}, database=waiting({"Lock:tuple": 4.1}, on_cpu=0.8))
    )
    assert (found.cause, found.also) == (Cause.POSTGRES_LOCKS, [Cause.DATABASE_CONNECTIONS])


def test_an_upstream_that_takes_most_of_the_time_is_named_beside_a_full_pool() -> None:
    found = cause_of(
        Trial(
            load=closed(90),
            topology={"postgres": {}, "upstream": {"latency": "100ms"}},
            server={"databaseConnections": 5, "workers": 1},
            rate=770.0,
            server_time=latency(0.117),
            database=connections(4.9, 1.0, seconds=49.0),
            known={"upstream_seconds": 0.0952},
        )
    )
    assert (found.cause, found.also) == (Cause.DATABASE_CONNECTIONS, [Cause.UPSTREAM])


@pytest.mark.parametrize("waits", [1.6, 2.0, 2.4], ids=str)
def test_between_a_free_lock_and_one_for_half_it_is_not_known(waits: float) -> None:
    # 5 connections: one lock with 1.5 in its queue is taken for 0.9 of the time, half are 2.5.
    trial = Trial(
        server={"databaseConnections": 5}, database=waiting({"Lock:tuple": waits}, 5.0 - waits)
    )
    found = cause_of(trial)
    assert found.cause is Cause.UNKNOWN
    assert {Cause.POSTGRES_LOCKS, Cause.DATABASE_CONNECTIONS} == set(found.also)


def test_without_readings_of_cpus_no_wait_is_blamed() -> None:
    trial = Trial(
        server={"databaseConnections": 5}, database=waiting({"Lock:tuple": 4.1}), watched=False
    )
    found = cause_of(trial)
    assert found.cause is Cause.UNKNOWN
    assert "waited in Postgres for a lock" in found.evidence
    assert Cause.POSTGRES_LOCKS in found.also


def test_an_image_that_pauses_in_any_second_is_not_called_full() -> None:
    steady = Trial(
        server={"preset": None, "workers": None, "image": "registry.example/mine:1"},
        cores={"server": 0.96},
        peaks={"server": 1.01},
        each_second=0.95,
    )
    assert cause_of(steady).cause is Cause.SERVER_CPU
    for other in (replace(steady, each_second=0.85), replace(steady, peaks={"server": 1.05})):
        found = cause_of(other)
        assert found.cause is Cause.UNKNOWN
        assert "how many it has is not known" in found.evidence


def test_what_was_close_too_is_named_nearest_first() -> None:
    crowded = Trial(
        server={"workers": 1, "databaseConnections": 40},
        cores={"server": 0.99},
        generator=0.85,
        busy=0.75,
        pool=full_pool(),
    )
    found = cause_of(crowded)
    assert found.cause is Cause.SERVER_CPU
    assert found.also == [Cause.PGBOUNCER_POOL, Cause.GENERATOR, Cause.NODE]


def narrow_pool(size: int, active: float) -> PoolEvidence:
    """Return what PgBouncer says of a pool that nobody waits for."""
    return full_pool(active, waiting=0.0).model_copy(update={"pool_size": size})


IN_SERIES = {
    "the server's pool before one of PgBouncer": (
        Trial(
            topology={"postgres": {}, "pgbouncer": {"poolSize": 2}},
            server=SMALL_POOL,
            pool=narrow_pool(2, 1.96),
            database=connections(1.95, 0.1),
        ),
        [Cause.DATABASE_CONNECTIONS, Cause.PGBOUNCER_POOL],
        "; of PgBouncer's pool behind it 98% were taken too",
    ),
    "the proxy's cap before the server's pool": (
        Trial(
            topology=CAPPED,
            proxy=queued(),
            server={"databaseConnections": 8},
            database=connections(7.6, 0.1),
        ),
        [Cause.HAPROXY_CAP, Cause.DATABASE_CONNECTIONS],
        "; of the server's pool behind it 95% were taken too",
    ),
    "the proxy's cap before PgBouncer's pool, which samples missed": (
        Trial(
            topology={**CAPPED, "pgbouncer": {"poolSize": 8}},
            proxy=queued(),
            server=LARGE_POOL,
            pool=narrow_pool(8, 6.9),
            database=connections(6.9, 0.1, seconds=76.0),
        ),
        [Cause.HAPROXY_CAP, Cause.PGBOUNCER_POOL],
        "; of PgBouncer's pool behind it 95% were taken too",
    ),
    "the proxy's cap before the server's threads": (
        Trial(topology=CAPPED, proxy=queued(), known={"requests_at_once": 4}),
        [Cause.HAPROXY_CAP, Cause.SERVER_CONCURRENCY],
        "; of the server's slots behind it 99% were taken too",
    ),
    "slots of unknown number before PgBouncer's pool": (
        Trial(
            topology={"postgres": {}, "pgbouncer": {"poolSize": 4}},
            server=LARGE_POOL,
            rate=80.0,
            server_time=latency(0.4, least=0.05, spread=1.02),
            pool=narrow_pool(4, 3.92),
            database=connections(3.9, 0.1),
        ),
        [Cause.SERVER_CONCURRENCY, Cause.PGBOUNCER_POOL],
        "; of PgBouncer's pool behind it 98% were taken too",
    ),
}


@pytest.mark.parametrize("name", IN_SERIES)
def test_what_lets_no_more_through_behind_a_full_slot_is_named_beside_it(name: str) -> None:
    trial, causes, evidence = IN_SERIES[name]
    found = cause_of(trial)
    assert [found.cause, *found.also] == causes
    assert evidence in found.evidence


def test_what_has_room_behind_a_full_slot_is_not_named_beside_it() -> None:
    trial, _, _ = IN_SERIES["the server's pool before one of PgBouncer"]
    roomy = replace(trial, pool=narrow_pool(3, 1.96))
    assert cause_of(roomy).also == []
    trial, _, _ = IN_SERIES["the proxy's cap before the server's pool"]
    assert cause_of(replace(trial, server={"databaseConnections": 9})).also == []
    trial, _, _ = IN_SERIES["the proxy's cap before PgBouncer's pool, which samples missed"]
    sessions = {**CAPPED, "pgbouncer": {"poolSize": 8, "poolMode": "session"}}
    idle = replace(
        trial, topology=sessions, pool=narrow_pool(8, 8.0), database=connections(3.0, 0.1)
    )
    assert cause_of(idle).also == []
    # Nor is a pool that nobody waits for where no slot limits.
    busy = Trial(
        server={**LARGE_POOL, "workers": 1}, cores={"server": 0.98}, pool=full_pool(waiting=0.0)
    )
    assert cause_of(busy).also == []


def test_a_connection_that_a_session_keeps_in_pgbouncer_runs_no_statement() -> None:
    kept = Trial(
        topology={"postgres": {}, "pgbouncer": {"poolSize": 8, "poolMode": "session"}},
        server={"databaseConnections": 8},
        pool=narrow_pool(8, 8.0),
        database=connections(3.0, 0.1),
    )
    assert cause_of(kept).cause is Cause.UNKNOWN
    by_statement = {"postgres": {}, "pgbouncer": {"poolSize": 8}}
    assert cause_of(replace(kept, topology=by_statement)).cause is Cause.DATABASE_CONNECTIONS


def test_memory_that_fills_the_cpu_and_a_disk_behind_pools_are_named_beside_them() -> None:
    at_work, behind = (
        "a worker whose CPU is full of making room in memory",
        "a full pool in front of Postgres, of a server that waits for its disk too",
    )
    assert cause_of(CASES[at_work][0]).also == [Cause.SERVER_MEMORY]
    assert Cause.SERVER_DISK in cause_of(CASES[behind][0]).also


def test_of_an_image_what_passes_for_a_disk_is_not_named_beside_a_cause_either() -> None:
    at_work, behind = (
        "an image that waits for memory",
        "a full pool in front of Postgres, of a server that waits for its disk too",
    )
    for name in (at_work, behind):
        trial = CASES[name][0]
        stalled = {**trial.stalled, "disk": 0.97}
        found = cause_of(replace(trial, server=OWN_IMAGE, stalled=stalled))
        assert found.cause is CASES[name][1]
        assert Cause.SERVER_DISK not in found.also


def test_a_disk_takes_so_long_for_an_operation_at_most() -> None:
    trial = Trial(server=OWN_IMAGE, topology={}, stalled={"disk": 0.95})
    enough = 0.95 / SLOWEST_OPERATION_SECONDS
    assert cause_of(replace(trial, disk_operations=1.01 * enough)).cause is Cause.SERVER_DISK
    assert cause_of(replace(trial, disk_operations=0.99 * enough)).cause is Cause.UNKNOWN


@pytest.mark.parametrize("what", ["disk", "memory"])
def test_what_the_pod_waited_for_is_no_cause_where_its_cpu_is_not_known(what: str) -> None:
    trial = Trial(topology={}, stalled={what: 0.97})
    assert cause_of(trial).cause in (Cause.SERVER_DISK, Cause.SERVER_MEMORY)
    assert cause_of(replace(trial, watched=False)).cause is Cause.UNKNOWN
    assert cause_of(replace(trial, load=closed(1))).cause is Cause.OFFERED_LOAD


SHARE = st.floats(0.0, 1.0)
WAITS = {Cause.POSTGRES_LOCKS, Cause.POSTGRES_IO, Cause.POSTGRES_WAL}
STALLS = {Cause.SERVER_MEMORY, Cause.SERVER_DISK}
TRIALS = st.builds(
    Trial,
    load=st.sampled_from([closed(1), closed(8), closed(32), open_load(500), open_load(5000)]),
    server=st.fixed_dictionaries(
        {"workers": st.integers(1, 8), "databaseConnections": st.integers(1, 30)}
    ),
    topology=st.sampled_from([{}, CAPPED, SMALL_POSTGRES]),
    rate=st.floats(1, 1e5),
    cores=st.fixed_dictionaries(
        {name: st.floats(0, 8) for name in ("server", "postgres", "pgbouncer", "haproxy")}
    ),
    throttled=st.fixed_dictionaries({"server": SHARE, "postgres": SHARE}),
    stalled=st.fixed_dictionaries({}, optional={"disk": SHARE, "memory": SHARE}),
    busy=SHARE,
    stolen=SHARE,
    pool=st.none() | st.builds(full_pool, st.floats(0, 25), st.floats(0, 50)),
    database=st.none()
    | st.builds(connections, st.floats(0, 25), st.floats(0, 25))
    | st.builds(
        waiting,
        st.dictionaries(
            st.sampled_from(
                ["Lock:tuple", "LWLock:WALWrite", "IO:DataFileRead", "Timeout:PgSleep"]
            ),
            st.floats(0, 30),
        ),
        st.floats(0, 25),
        st.floats(0, 25),
    ),
    proxy=st.none() | st.builds(queued, st.floats(0, 8), st.floats(0, 50)),
    generator=st.none() | SHARE,
    watched=st.booleans(),
)


@given(TRIALS)
def test_there_is_always_one_answer_with_evidence(trial: Trial) -> None:
    found = cause_of(trial)
    assert found.evidence
    assert found.cause not in found.also
    assert len(set(found.also)) == len(found.also)


@given(TRIALS)
def test_a_tier_that_the_run_does_not_have_limits_nobody(trial: Trial) -> None:
    found = cause_of(replace(trial, topology={}))
    tiers = {
        Cause.PGBOUNCER_POOL, Cause.PGBOUNCER_CPU, Cause.POSTGRES_CPU, Cause.DATABASE_CONNECTIONS,
        Cause.HAPROXY_CAP, Cause.HAPROXY_CPU, *WAITS,
    }  # fmt: skip
    assert found.cause not in tiers
    assert not tiers.intersection(found.also)


@given(TRIALS)
def test_a_server_at_its_own_limit_is_never_called_a_full_pool(trial: Trial) -> None:
    busy = replace(trial, server={"workers": 1}, cores={**trial.cores, "server": 1.0})
    found = cause_of(replace(busy, watched=True))
    slots = {Cause.PGBOUNCER_POOL, Cause.DATABASE_CONNECTIONS, Cause.HAPROXY_CAP, *WAITS, *STALLS}
    assert found.cause not in slots | {Cause.UNKNOWN, Cause.NODE}


@given(TRIALS)
def test_without_any_readings_no_slot_is_blamed(trial: Trial) -> None:
    found = cause_of(replace(trial, watched=False))
    assert found.cause in (Cause.GENERATOR, Cause.OFFERED_LOAD, Cause.UNKNOWN)


@given(TRIALS, st.floats(0.0, 0.69))
def test_where_nothing_is_full_nothing_is_named_but_the_load(trial: Trial, share: float) -> None:
    idle = replace(
        trial,
        load=closed(32),
        server={"workers": 2},
        cores=dict.fromkeys(("server", "postgres", "pgbouncer", "haproxy"), 0.3 * share),
        throttled={},
        stalled=dict.fromkeys(("disk", "memory"), share),
        busy=share,
        stolen=0.0,
        pool=None,
        database=None,
        proxy=None,
        generator=share,
        watched=True,
    )
    assert cause_of(idle).cause is Cause.UNKNOWN
