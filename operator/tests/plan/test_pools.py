"""The connections of servers, their own and those of PgBouncer: whose they are, whether all fit."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import scenarios
from laptime.plan import misfits
from laptime.plan.pools import connections_needed, most_connections, pool_name, pool_sizes

LOADS = [{"name": "closed", "closed": {"connections": 10, "duration": "5s"}}]


def spec_of(*own: dict[str, Any] | None, most: int = 100, **more: Any) -> BenchmarkRunSpec:
    """Return a run whose pool is 25, of servers with these pools of their own."""
    servers = [
        {"name": f"s{n}", "preset": "axum-sqlx"}
        | ({} if one is None else {"topology": {"pgbouncer": one}})
        for n, one in enumerate(own)
    ]
    topology = {"postgres": {"maxConnections": most}, "pgbouncer": {"poolSize": 25}}
    wire = {"scenario": "users", "servers": servers, "topology": topology, "loads": LOADS}
    return BenchmarkRunSpec.model_validate({**wire, **more})


def test_servers_with_like_settings_share_a_pool() -> None:
    like = {"poolSize": 40}
    spec = spec_of(None, like, like, {"poolSize": 25}, {}, {"poolMode": "session"})
    assert [pool_name(spec, one) for one in spec.servers] == [
        "laptime",
        "laptime_40_transaction",
        "laptime_40_transaction",
        "laptime",
        "laptime",
        "laptime_25_session",
    ]
    assert pool_sizes(spec) == {
        "laptime": 25,
        "laptime_40_transaction": 40,
        "laptime_25_session": 25,
    }
    assert connections_needed(spec) == 90


def test_the_cpu_of_pgbouncer_makes_no_pool() -> None:
    topology = {"postgres": {}, "pgbouncer": {"poolSize": 25, "resources": {"cpu": "500m"}}}
    spec = spec_of(None, {"cpu": "1"}, {"cpu": "1", "poolSize": 40}, topology=topology)
    assert [pool_name(spec, one) for one in spec.servers] == [
        "laptime",
        "laptime",
        "laptime_40_transaction",
    ]


def test_the_control_has_the_pool_of_the_baseline() -> None:
    spec = spec_of({"poolSize": 40}, None, control=True).with_control()
    control = spec.server("s0-control")
    assert pool_name(spec, control) == pool_name(spec, spec.servers[0]) == "laptime_40_transaction"


def test_each_database_has_a_pool_of_its_own_and_all_of_them_fit_into_postgres() -> None:
    topology = {"postgres": {"databases": "perServer"}, "pgbouncer": {"poolSize": 25}}
    spec = spec_of(None, {"poolSize": 40}, {"poolSize": 40}, topology=topology)
    assert pool_sizes(spec) == {"laptime_s0": 25, "laptime_s1": 40, "laptime_s2": 40}
    assert misfits(spec, scenarios()["users"]) == [
        "topology.postgres: the pools of PgBouncer (laptime_s0 25, laptime_s1 40, laptime_s2 40) "
        "keep the connections that they have made, 105 in all, and Postgres takes 100: write "
        "maxConnections: 105 or more, or smaller pools"
    ]
    # Without PgBouncer one server is connected at a time, whichever its database is.
    direct = spec_of(None, None, topology={"postgres": {"databases": "perServer"}})
    shared = spec_of(None, None, topology={"postgres": {}})
    assert connections_needed(direct) == connections_needed(shared)
    assert most_connections(direct) == most_connections(shared)


@pytest.mark.parametrize(("size", "fits"), [(75, True), (76, False)])
def test_pools_that_stay_fit_into_postgres_all_together(size: int, fits: bool) -> None:
    found = misfits(spec_of(None, {"poolSize": size}), scenarios()["users"])
    assert found == (
        []
        if fits
        else [
            "topology.postgres: the pools of PgBouncer (laptime 25, laptime_76_transaction 76) "
            "keep the connections that they have made, 101 in all, and Postgres takes 100: write "
            "maxConnections: 101 or more, or smaller pools"
        ]
    )


def test_one_pool_alone_may_be_as_large_as_ever() -> None:
    users = scenarios()["users"]
    # That of the run is never used, and makes no connection.
    assert misfits(spec_of({"poolSize": 99}, {"poolSize": 99}), users) == []
    assert misfits(spec_of(None, most=26), users) == []


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"preset": "fastapi-sync", "workers": 4, "databaseConnections": 25}, None),
        (
            {"preset": "fastapi-sync", "workers": 4, "databaseConnections": 26},
            "server mine may open 104 connections (databaseConnections: 26 in each of 4 "
            "processes), and Postgres takes 100: write maxConnections: 104 or more, or a smaller "
            "databaseConnections",
        ),
        # Its workers are threads, which share a pool; those of an image may be so.
        ({"preset": "axum-sqlx", "workers": 4, "databaseConnections": 100}, None),
        ({"image": "mine:1", "workers": 4, "databaseConnections": 100}, None),
        (
            {"image": "mine:1", "workers": 4, "databaseConnections": 101},
            "server mine may open 101 connections (databaseConnections: 101), and Postgres takes "
            "100: write maxConnections: 101 or more, or a smaller databaseConnections",
        ),
        (
            {"preset": "axum-sqlx", "workers": 4, "databaseConnections": 101},
            "server mine may open 101 connections (databaseConnections: 101), and Postgres takes "
            "100: write maxConnections: 101 or more, or a smaller databaseConnections",
        ),
        (
            {"preset": "fastapi-sync", "workers": 4, "databaseConnections": 2501},
            "server mine may open 10004 connections (databaseConnections: 2501 in each of 4 "
            "processes), and Postgres takes 100: write a smaller databaseConnections",
        ),
        ({"service": {"name": "there", "port": 80}}, None),
    ],
)
def test_a_server_fits_into_postgres_with_all_its_processes(
    server: dict[str, Any], said: str | None
) -> None:
    small = {"name": "small", "preset": "fastapi-sync"}
    spec = spec_of(servers=[small, {"name": "mine", **server}], topology={"postgres": {}})
    expected = [] if said is None else [f"topology.postgres: {said}"]
    assert misfits(spec, scenarios()["users"]) == expected


def test_behind_pgbouncer_postgres_sees_the_pool_alone() -> None:
    large = {"name": "mine", "image": "mine:1", "workers": 4, "databaseConnections": 100}
    assert misfits(spec_of(servers=[large]), scenarios()["users"]) == []
