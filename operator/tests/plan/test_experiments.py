"""Experiments: a server beside itself with more of what may limit it, and of nothing else."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest

from laptime.api import API_VERSION, KIND
from laptime.api.causes import Cause
from laptime.api.experiment import Resource
from laptime.api.resources import Resources
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import processes_of, scenarios
from laptime.cli.own_schemas import violations
from laptime.plan import misfits
from laptime.plan.experiments import (
    NothingToTryError,
    candidates,
    experiment,
    possible,
    says_all,
)
from laptime.plan.experiments import tried as tried_of
from laptime.plan.pools import copied_databases
from laptime.plan.tiers import haproxy_threads
from tests.fuzz.specs import make

CONNECTIONS, THREADS, WORKERS, CPU, MEMORY = list(Resource)[:5]
POSTGRES_CPU, PGBOUNCER_CPU, HAPROXY_CPU, UPSTREAM, POOL, CAP = list(Resource)[5:]
TRIED = (
    Cause.SERVER_CPU,
    Cause.SERVER_MEMORY,
    Cause.SERVER_CONCURRENCY,
    Cause.UNEVEN_WORKERS,
    Cause.DATABASE_CONNECTIONS,
    Cause.POSTGRES_CPU,
    Cause.PGBOUNCER_CPU,
    Cause.HAPROXY_CPU,
    Cause.PGBOUNCER_POOL,
    Cause.HAPROXY_CAP,
    Cause.UPSTREAM,
)


def server(**fields: Any) -> Server:
    return Server.model_validate({"name": "mine", "preset": "fastapi-sync", **fields})


def spec_of(*servers: Server, **fields: Any) -> BenchmarkRunSpec:
    loads = [{"name": "closed", "closed": {"connections": 10, "duration": "5s"}}]
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": [one.to_wire() for one in servers],
            "topology": {"postgres": {}},
            "loads": loads,
            **fields,
        }
    )


def without_limit(title: str) -> str:
    """Return why there is no twice of the CPU of a tier that has no limit in the run."""
    return (
        f"{title} has no limit of CPU in the run: it takes what its node has; where a LimitRange "
        f"limits it, write topology.{title.lower()}.resources.cpu in a run, and explain that one"
    )


def refused(spec: BenchmarkRunSpec) -> list[str]:
    """Return what the API server would say against a run."""
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "x"}}
    return violations({**document, "spec": spec.to_wire()})[0]


def tried(spec: BenchmarkRunSpec, *resources: Resource) -> dict[str, Server]:
    made = experiment(spec, "mine", resources, ["closed"], 5)
    return {one.name: one for one in made.spec.servers}


@pytest.mark.parametrize(
    ("cause", "fields", "expected"),
    [
        (Cause.DATABASE_CONNECTIONS, {}, (CONNECTIONS,)),
        # AnyIO's 40 threads are no setting: another worker has 40 more.
        (Cause.SERVER_CONCURRENCY, {}, (WORKERS,)),
        (Cause.UNEVEN_WORKERS, {"workers": 2}, (WORKERS,)),
        # With a second thread it would do without what a single one has.
        (Cause.SERVER_CONCURRENCY, {"preset": "flask", "threads": 1}, (WORKERS,)),
        (Cause.SERVER_CONCURRENCY, {"preset": "flask", "threads": 4}, (THREADS,)),
        (Cause.SERVER_CONCURRENCY, {"preset": None, "image": "shop:1"}, (WORKERS,)),
        (Cause.SERVER_CONCURRENCY, {"preset": None, "image": "shop:1", "threads": 4}, (THREADS,)),
        (Cause.SERVER_MEMORY, {}, (MEMORY,)),
        (Cause.PGBOUNCER_POOL, {}, (POOL,)),
        (Cause.HAPROXY_CAP, {}, (CAP,)),
        (Cause.SERVER_CPU, {}, (WORKERS,)),
        # Its one worker may have threads that use the limit up.
        (Cause.SERVER_CPU, {"resources": {"cpu": "4"}}, (CPU, WORKERS)),
        (Cause.SERVER_CPU, {"resources": {"cpu": "500m"}}, (CPU,)),
        (Cause.SERVER_CPU, {"resources": {"cpu": "1"}}, (CPU, WORKERS)),
        (Cause.SERVER_CPU, {"resources": {"cpu": "1000m"}}, (CPU, WORKERS)),
    ],
)
def test_a_cause_is_tried_by_more_of_what_it_is_about(
    cause: Cause, fields: dict[str, Any], expected: tuple[Resource, ...]
) -> None:
    assert candidates(server(**fields), [cause]) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("500m", (CPU,)),
        # It cannot be doubled beside them, and at one bound neither alone gives anything.
        ("1", (CPU,)),
        ("2", (CPU, WORKERS)),
        (None, (WORKERS,)),
    ],
)
def test_a_limit_that_the_cluster_gave_is_one_as_well(
    given: str | None, expected: tuple[Resource, ...]
) -> None:
    assert candidates(server(), [Cause.SERVER_CPU], given) == expected


@pytest.mark.parametrize("cause", [one for one in Cause if one not in TRIED])
def test_what_lies_outside_of_a_server_is_not_tried(cause: Cause) -> None:
    assert candidates(server(), [cause]) == ()


def test_no_candidate_is_there_twice() -> None:
    causes = [Cause.SERVER_CPU, Cause.SERVER_CONCURRENCY, Cause.DATABASE_CONNECTIONS]
    found = candidates(server(resources={"cpu": "1"}), causes)
    assert found == (CPU, WORKERS, CONNECTIONS)


def test_one_resource_is_doubled_and_nothing_else() -> None:
    before = server(resources={"cpu": "500m", "memory": "256Mi"}, threads=3)
    arms = tried(spec_of(before), CONNECTIONS)
    assert list(arms) == ["mine", "mine-conns"]
    expected = before.model_copy(update={"name": "mine-conns", "database_connections": 10})
    assert arms["mine-conns"] == expected
    assert arms["mine"] == before


def test_a_limit_of_memory_is_doubled_and_nothing_else() -> None:
    before = server(resources={"cpu": "500m", "memory": "256Mi"})
    made = experiment(spec_of(before), "mine", [MEMORY], ["closed"], 5)
    (arm,) = made.arms
    assert (arm.server.name, arm.change) == ("mine-memory", "512Mi memory instead of 256Mi")
    assert arm.server.resources == Resources(cpu="500m", memory="512Mi")
    assert says_all(made.spec, before, arm.server)
    assert tried_of(made.spec) == [MEMORY]
    assert refused(made.spec) == []


def test_a_server_without_a_limit_of_memory_cannot_have_twice_that() -> None:
    assert possible(spec_of(server()), "mine", [MEMORY]) == (
        [],
        [
            "mine has no limit of memory in the run: it takes what its node has; where that is "
            "short of memory, measure it on one with more in a second run; where a LimitRange "
            "limits it, write resources.memory of it in a run, and explain that one"
        ],
    )


def test_several_are_tried_alone_and_all_at_once() -> None:
    before = server(preset="flask", threads=2, resources={"cpu": "1.5"})
    arms = tried(spec_of(before), CONNECTIONS, THREADS, CPU)
    assert list(arms) == ["mine", "mine-conns", "mine-threads", "mine-cpu", "mine-all"]
    everything = arms["mine-all"]
    assert (everything.database_connections, everything.threads) == (10, 4)
    assert everything.resources is not None
    assert everything.resources.cpu == "3"


@pytest.mark.parametrize(
    ("preset", "connections", "each"),
    [
        ("fastapi-sync", 6, 3),  # as many in all
        ("fastapi-sync", 5, 3),  # one more: half of an odd number is none
        ("fastapi-sync", 1, 1),
        ("axum-sqlx", 5, 5),  # its workers share one pool
    ],
)
def test_more_workers_have_as_many_connections_as_far_as_that_goes(
    preset: str, connections: int, each: int
) -> None:
    before = server(preset=preset, databaseConnections=connections)
    more = tried(spec_of(before), WORKERS)["mine-workers"]
    assert (more.workers, more.database_connections) == (2, each)
    assert processes_of(more) * each - processes_of(before) * connections in (0, 1)


@pytest.mark.parametrize("workers", [1, 4])
def test_more_workers_of_an_image_are_told_of_as_many_connections_as_before(workers: int) -> None:
    before = server(preset=None, image="shop:1", workers=workers, databaseConnections=4)
    made = experiment(spec_of(before), "mine", [WORKERS, CONNECTIONS], ["closed"], 5)
    more, conns, both = (arm.server for arm in made.arms)
    assert (more.workers, more.database_connections) == (2 * workers, 4)
    assert (both.workers, both.database_connections) == (2 * workers, 8)
    assert conns.database_connections == 8
    assert made.arms[0].change == (
        f"{2 * workers} workers instead of {workers}, {8 * workers} database connections, if each "
        f"worker has a pool of its own, instead of {4 * workers}"
    )
    ifs = ["the image heeds DATABASE_CONNECTIONS"]
    ifs += ["each worker has a pool of its own"] if workers > 1 else []
    assert made.arms[1].change == (
        f"{8 * workers} database connections, if {' and '.join(ifs)}, instead of {4 * workers}"
    )


def test_what_an_image_has_more_of_rests_on_what_it_does_with_its_variables() -> None:
    before = server(preset=None, image="shop:1", threads=4)
    made = experiment(spec_of(before), "mine", [WORKERS, THREADS], ["closed"], 5)
    assert [arm.change for arm in made.arms[:2]] == [
        "2 workers, if the image heeds WORKERS, instead of 1, 10 database connections, if each "
        "worker has a pool of its own, instead of 5",
        "8 threads, if the image heeds THREADS, instead of 4",
    ]


def test_what_differs_is_said_with_both_numbers() -> None:
    made = experiment(spec_of(server()), "mine", [WORKERS, CONNECTIONS], ["closed"], 5)
    assert [arm.change for arm in made.arms] == [
        "2 workers instead of 1, 6 database connections instead of 5",
        "10 database connections instead of 5",
        "2 workers instead of 1, 12 database connections instead of 5",
    ]


def test_postgres_takes_the_connections_of_the_largest_arm() -> None:
    small = {"postgres": {"maxConnections": 60}}
    made = experiment(
        spec_of(server(databaseConnections=40), topology=small), "mine", [CONNECTIONS], [], 5
    )
    assert made.spec.topology.postgres is not None
    assert made.spec.topology.postgres.max_connections == 80
    assert made.besides == "80 connections of Postgres instead of 60, for all of them"
    # Behind PgBouncer it never sees them.
    behind = small | {"pgbouncer": {}}
    made = experiment(
        spec_of(server(databaseConnections=40), topology=behind), "mine", [CONNECTIONS], [], 5
    )
    assert made.spec.topology.postgres is not None
    assert made.spec.topology.postgres.max_connections == 60
    assert made.besides == ""
    # No arm has a connection more, and the server itself more than fit.
    crowded = server(preset="flask", threads=2, databaseConnections=80)
    made = experiment(spec_of(crowded, topology=small), "mine", [THREADS], [], 5)
    assert made.spec.topology.postgres is not None
    assert made.spec.topology.postgres.max_connections == 80


TIERS = {
    "postgres": {"maxConnections": 50},
    "pgbouncer": {"poolSize": 20},
    "haproxy": {"maxConnections": 8},
}


def test_a_tier_gives_one_arm_more_and_stays_as_it_is_for_the_others() -> None:
    made = experiment(spec_of(server(), topology=TIERS), "mine", [POOL, CAP], ["closed"], 5)
    assert [arm.change for arm in made.arms] == [
        "40 connections in PgBouncer's pool instead of 20",
        "16 requests at once through HAProxy instead of 8",
        "40 connections in PgBouncer's pool instead of 20, "
        "16 requests at once through HAProxy instead of 8",
    ]
    assert [one.name for one in made.spec.servers] == ["mine", "mine-pool", "mine-cap", "mine-all"]
    seen = [made.spec.topology_of(one) for one in made.spec.servers]
    assert [one.pgbouncer.pool_size for one in seen if one.pgbouncer] == [20, 40, 20, 40]
    assert [one.haproxy.max_connections for one in seen if one.haproxy] == [8, 8, 16, 16]
    # Both pools stay, 20 and 40: arms with like ones share theirs.
    assert made.spec.topology.postgres is not None
    assert made.spec.topology.postgres.max_connections == 60
    assert made.besides == "60 connections of Postgres instead of 50, for all of them"
    assert refused(made.spec) == []
    assert misfits(made.spec, scenarios()["users"]) == []


def test_each_arm_has_a_database_of_its_own_where_each_server_had_one() -> None:
    tiers = {**TIERS, "postgres": {"maxConnections": 50, "databases": "perServer"}}
    made = experiment(spec_of(server(), topology=tiers), "mine", [CAP], ["closed"], 5)
    assert copied_databases(made.spec) == ["laptime_mine", "laptime_mine_cap"]
    # Each has the pool of 20 in PgBouncer, which 50 connections have room for.
    assert (refused(made.spec), made.besides) == ([], "")
    made = experiment(spec_of(server(), topology=tiers), "mine", [POOL], ["closed"], 5)
    assert made.spec.topology.own_databases
    assert made.besides == "60 connections of Postgres instead of 50, for all of them"
    assert misfits(made.spec, scenarios()["users"]) == []


def test_postgres_has_twice_the_cpu_for_one_arm() -> None:
    limited = {"postgres": {"resources": {"cpu": "500m", "memory": "1Gi"}}}
    made = experiment(spec_of(server(), topology=limited), "mine", [POSTGRES_CPU], ["closed"], 5)
    (arm,) = made.arms
    assert arm.change == "1000m CPU of Postgres instead of 500m"
    assert arm.server.name == "mine-pgcpu"
    of_arm = made.spec.topology_of(arm.server).postgres
    assert of_arm is not None
    assert of_arm.resources is not None
    assert (of_arm.resources.cpu, of_arm.resources.memory) == ("1000m", "1Gi")
    # The others have what the run says, and so has the tier as it is deployed.
    assert made.spec.topology.to_wire() == spec_of(server(), topology=limited).topology.to_wire()
    assert (refused(made.spec), made.besides) == ([], "")
    assert candidates(server(), [Cause.POSTGRES_CPU]) == (POSTGRES_CPU,)
    # Of what it has of its own already twice again.
    again = experiment(made.spec, "mine-pgcpu", [POSTGRES_CPU], ["closed"], 5)
    assert again.arms[0].change == "2000m CPU of Postgres instead of 1000m"


def test_a_postgres_that_takes_what_is_free_cannot_have_twice_that() -> None:
    without: list[dict[str, Any]] = [{}, {"resources": {"memory": "1Gi"}}]
    for topology in ({"postgres": one} for one in without):
        spec = spec_of(server(), topology=topology)
        found, why_not = possible(spec, "mine", [POSTGRES_CPU])
        assert (found, why_not) == (
            [],
            [without_limit("Postgres")],
        )


def test_pgbouncer_and_haproxy_have_twice_the_cpu_for_one_arm() -> None:
    topology = {
        "postgres": {},
        "pgbouncer": {"poolSize": 20, "resources": {"cpu": "300m"}},
        "haproxy": {"resources": {"cpu": "800m"}},
    }
    more = [PGBOUNCER_CPU, HAPROXY_CPU]
    made = experiment(spec_of(server(), topology=topology), "mine", more, ["closed"], 5)
    assert [arm.change for arm in made.arms] == [
        "600m CPU of PgBouncer instead of 300m",
        "1600m CPU of HAProxy instead of 800m",
        "600m CPU of PgBouncer instead of 300m, 1600m CPU of HAProxy instead of 800m",
    ]
    assert made.besides == "2 threads of HAProxy instead of 1, for all of them"
    assert haproxy_threads(made.spec) == 2
    # No pool and no connection more.
    assert made.spec.topology == spec_of(server(), topology=topology).topology
    assert (refused(made.spec), misfits(made.spec, scenarios()["users"])) == ([], [])
    own = made.arms[1].server
    both = experiment(spec_of(own, topology=topology), own.name, [HAPROXY_CPU], ["closed"], 5)
    assert both.arms[0].change == "3200m CPU of HAProxy instead of 1600m"
    capped = server(topology={"haproxy": {"cpu": "1", "maxConnections": 5}})
    (arm,) = experiment(spec_of(capped, topology=topology), "mine", [CAP], ["closed"], 5).arms
    assert arm.server.to_wire()["topology"]["haproxy"] == {"cpu": "1", "maxConnections": 10}


def test_the_upstream_answers_one_arm_in_half_the_time() -> None:
    topology = {"postgres": {}, "upstream": {"latency": "25ms"}}
    made = experiment(spec_of(server(), topology=topology), "mine", [UPSTREAM], ["closed"], 5)
    (arm,) = made.arms
    assert (arm.server.name, arm.change) == (
        "mine-upstream",
        "12.5ms latency of the upstream instead of 25ms",
    )
    seen = [made.spec.topology_of(one).upstream for one in made.spec.servers]
    assert [one.latency_seconds for one in seen if one] == [0.025, 0.0125]
    assert refused(made.spec) == []


def test_threads_of_haproxy_that_were_there_for_another_server_are_told_of() -> None:
    topology = {"postgres": {}, "haproxy": {"resources": {"cpu": "1"}}}
    other = server(name="other", topology={"haproxy": {"cpu": "4"}})
    spec = spec_of(server(), other, topology=topology)
    made = experiment(spec, "mine", [WORKERS], ["closed"], 5)
    assert made.besides == "1 threads of HAProxy instead of 4, for all of them"
    made = experiment(spec, "other", [HAPROXY_CPU], ["closed"], 5)
    assert made.besides == "8 threads of HAProxy instead of 4, for all of them"
    # More than it can have are none.
    large = spec_of(server(topology={"haproxy": {"cpu": "900"}}), topology=topology)
    assert experiment(large, "mine", [HAPROXY_CPU], ["closed"], 5).besides == ""


@pytest.mark.parametrize(
    ("tier", "resource", "why"),
    [
        ({}, UPSTREAM, "the run has no upstream"),
        ({"upstream": {"latency": "0s"}}, UPSTREAM, "the upstream answers at once already"),
        ({}, PGBOUNCER_CPU, "the run has no PgBouncer"),
        ({}, HAPROXY_CPU, "the run has no HAProxy"),
        (
            {"haproxy": {}},
            HAPROXY_CPU,
            without_limit("HAProxy"),
        ),
        (
            {"pgbouncer": {"resources": {"cpu": "1"}}},
            PGBOUNCER_CPU,
            "PgBouncer is one thread: it cannot use more than the 1 CPU",
        ),
    ],
)
def test_what_more_cpu_of_a_tier_cannot_give_is_said(
    tier: dict[str, Any], resource: Resource, why: str
) -> None:
    spec = spec_of(server(), topology={"postgres": {}} | tier)
    assert possible(spec, "mine", [resource]) == ([], [why])


def test_what_a_server_has_of_its_own_is_what_is_doubled() -> None:
    own = {"pgbouncer": {"poolSize": 3, "poolMode": "session"}, "haproxy": {"maxConnections": 5}}
    before = server(topology=own)
    made = experiment(spec_of(before, topology=TIERS), "mine", [POOL], ["closed"], 5)
    (arm,) = made.arms
    assert arm.change == "6 connections in PgBouncer's pool instead of 3"
    expected = {**own, "pgbouncer": {"poolSize": 6, "poolMode": "session"}}
    assert arm.server.to_wire()["topology"] == expected
    assert made.besides == ""


def test_what_is_no_pool_changes_no_postgres() -> None:
    before = server(preset="flask", threads=2, topology={"pgbouncer": {"poolSize": 45}})
    made = experiment(spec_of(before, topology=TIERS), "mine", [THREADS], ["closed"], 5)
    assert made.spec.topology == spec_of(before, topology=TIERS).topology


def test_the_experiment_is_about_the_one_server_and_asks_for_nothing_else() -> None:
    objectives = [
        {"server": "other", "load": "closed", "metric": "mean", "atMost": "5ms"},
        {"server": "other", "load": "closed", "metric": "errorRate", "atMost": "0"},
    ]
    spec = spec_of(
        server(name="other"),
        server(profile=True),
        control=True,
        precision="2%",
        ttlSecondsAfterFinished=0,
        maxRepetitions=40,
        seed=3,
        objectives=objectives,
        retry=2,
    )
    made = experiment(spec.with_control(), "mine", [WORKERS], ["closed"], 7).spec
    assert [one.name for one in made.servers] == ["mine", "mine-workers"]
    assert not any(one.profile for one in made.servers)
    assert (made.baseline_name, made.repetitions) == ("mine", 7)
    assert made.ttl_seconds_after_finished is None
    # It says by which response time servers are compared.
    assert [(one.server, one.metric) for one in made.objectives] == [("mine", "mean")]
    assert (made.control, made.precision, made.max_repetitions, made.seed, made.retry) == (
        False,
        None,
        None,
        None,
        0,
    )


@pytest.mark.parametrize(
    ("fields", "resource", "said"),
    [
        ({"threads": 3}, THREADS, "threads do not bound what mine works on at once: try workers"),
        (
            {"preset": None, "image": "shop:1"},
            THREADS,
            "nobody knows how many threads mine has: try workers instead",
        ),
        ({}, CPU, "mine has no limit of CPU in the run: try workers instead"),
        ({"workers": 200}, WORKERS, "mine cannot have twice the workers: "),
        ({"databaseConnections": 9000}, CONNECTIONS, "cannot have twice the databaseConnections"),
        (
            {"preset": "fastapi-sync", "workers": 2, "databaseConnections": 3000},
            CONNECTIONS,
            "12000 connections are more than Postgres",
        ),
    ],
)
def test_what_cannot_be_doubled_is_said(
    fields: dict[str, Any], resource: Resource, said: str
) -> None:
    with pytest.raises(NothingToTryError, match=said):
        tried(spec_of(server(**fields)), resource)


def test_of_several_those_are_left_that_can_be_doubled() -> None:
    spec = spec_of(server(topology={"haproxy": {"maxConnections": 60_000}}), topology=TIERS)
    found, why_not = possible(spec, "mine", [CAP, WORKERS, CPU, POOL])
    assert found == [WORKERS, POOL]
    assert why_not[0].startswith("mine cannot have twice the haproxy.maxConnections: ")
    assert why_not[1].startswith("mine has no limit of CPU in the run")


def test_an_experiment_is_no_longer_than_a_run_may_be() -> None:
    with pytest.raises(NothingToTryError, match="2002 trials are more than 2000: fewer repet"):
        experiment(spec_of(server()), "mine", [WORKERS], ["closed"], 1001)


def test_without_a_database_there_are_no_connections_to_add() -> None:
    spec = spec_of(server(), topology={})
    with pytest.raises(NothingToTryError, match="the run has no Postgres to connect to"):
        tried(spec, CONNECTIONS)


@pytest.mark.parametrize(
    ("resource", "said"),
    [(POOL, "the run has no PgBouncer"), (CAP, "the run has no HAProxy with maxConnections")],
)
def test_tiers_that_are_not_there_give_nothing_more(resource: Resource, said: str) -> None:
    with pytest.raises(NothingToTryError, match=said):
        tried(spec_of(server(), topology={"postgres": {}, "haproxy": {}}), resource)


def test_a_service_cannot_be_given_more() -> None:
    there = Server.model_validate({"name": "mine", "service": {"name": "shop", "port": 80}})
    with pytest.raises(NothingToTryError, match="mine is a service that Laptime does not deploy"):
        tried(spec_of(there), CONNECTIONS)
    with pytest.raises(NothingToTryError, match="there is no server mine; there is other"):
        tried(spec_of(server(name="other")), CONNECTIONS)


@pytest.mark.parametrize("name", ["a", "aaaaaaaaaaaaaaaa-cpu", "a" * 20, "b-" * 9 + "b"])
def test_each_arm_has_a_name_of_its_own(name: str) -> None:
    before = server(name=name, preset="flask", resources={"cpu": "1"}, threads=2)
    made = experiment(spec_of(before), name, [CPU, THREADS, CONNECTIONS], ["closed"], 5)
    names = [one.name for one in made.spec.servers]
    assert len(set(names)) == 5
    assert refused(made.spec) == []


@pytest.mark.parametrize("seed", range(40))
def test_the_api_server_takes_an_experiment_on_any_run(seed: int) -> None:
    drawn = random.Random(seed)
    spec = BenchmarkRunSpec.model_validate(make(drawn, 30)).with_control()
    name = drawn.choice([one.name for one in spec.servers])
    loads = [one.name for one in spec.loads]
    trying = [[one] for one in Resource] + [drawn.sample(list(Resource), k) for k in (2, 3)]
    for resources in trying:
        with contextlib.suppress(NothingToTryError):
            made = experiment(spec, name, resources, loads, 5)
            # What is made by chance breaks a rule here and there by itself.
            assert set(refused(made.spec)) <= set(refused(spec))
