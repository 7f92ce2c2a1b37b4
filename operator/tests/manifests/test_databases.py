"""A database of each server's own: who makes it, who is led to it, and where there is none."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

from laptime.api.storage import STORED_VERSION, USUAL_VERSION
from laptime.manifests.context import RunContext
from laptime.manifests.generator import trial_job
from laptime.manifests.objects import Manifest
from laptime.manifests.pgbouncer import pgbouncer_config
from laptime.manifests.schema_query import SCHEMA_QUERY
from laptime.manifests.server import server_deployment
from laptime.manifests.tiers import tier_objects
from laptime.manifests.verifier import verify_job
from laptime.plan import plan_trials
from laptime.plan.pools import copied_databases, database_name, pool_name
from tests.manifests.runs import SPECS, context, environment

AT_POSTGRES = "demo-postgres:5432"


def per_server(shape: str = "full", **spec: Any) -> RunContext:
    """Return a run whose servers have a database each, with something else in its spec."""
    return context(spec_with("perServer", shape, **spec))


def spec_with(databases: str, shape: str = "full", **spec: Any) -> dict[str, Any]:
    wire = {**copy.deepcopy(SPECS[shape]), **spec}
    wire["topology"]["postgres"]["databases"] = databases
    return wire


def address(container: Manifest) -> str:
    """Return host, port and database of a container's DATABASE_URL."""
    return environment(container)["DATABASE_URL"].rpartition("@")[2]


def containers(manifest: Manifest) -> list[Manifest]:
    pod = manifest["spec"]["template"]["spec"]
    return [*pod.get("initContainers", []), *pod["containers"]]


def postgres_files(ctx: RunContext) -> tuple[dict[str, str], list[str]]:
    """Return the ConfigMap of Postgres, and where its pod has what is in it."""
    config_map, deployment = tier_objects(ctx)[:2]
    (volume,) = [
        v for v in deployment["spec"]["template"]["spec"]["volumes"] if v["name"] == "config"
    ]
    return config_map["data"], [item["path"] for item in volume["configMap"]["items"]]


def test_where_the_run_says_nothing_all_servers_have_the_same() -> None:
    ctx, said = context("full"), context(spec_with("shared"))
    assert {database_name(ctx.spec, one) for one in ctx.spec.servers} == {"laptime"}
    assert copied_databases(ctx.spec) == []
    assert tier_objects(said) == tier_objects(ctx)
    assert "databases.sql" not in postgres_files(said)[0]


def test_a_server_is_led_to_its_own_database_and_so_is_whoever_asks_for_it() -> None:
    ctx = per_server()
    trials = {(one.server, one.load): one for one in plan_trials(ctx.name, ctx.spec, 1)}
    for server in ctx.spec.servers:
        database = f"laptime_{server.name}"
        (pod,) = containers(server_deployment(ctx, server, "demo-trial-001"))
        assert address(pod) == f"demo-pgbouncer:6432/{database}"
        (verifier,) = containers(verify_job(ctx, server))
        assert address(verifier) == f"{AT_POSTGRES}/{database}"
        # Both who brings the rows back for a load of ours, and for a script.
        (k6,) = containers(trial_job(ctx, trials[server.name, "closed"]))
        prepare = containers(trial_job(ctx, trials[server.name, "own"]))[0]
        assert [address(k6), address(prepare)] == 2 * [f"{AT_POSTGRES}/{database}"]


def test_whoever_checks_and_whoever_measures_asks_the_same_for_the_schema() -> None:
    ctx = context("full")
    trials = {(one.server, one.load): one for one in plan_trials(ctx.name, ctx.spec, 1)}
    (verifier,) = containers(verify_job(ctx, ctx.spec.server("axum")))
    (k6,) = containers(trial_job(ctx, trials["axum", "closed"]))
    # The script itself has no database.
    _, wait, script = containers(trial_job(ctx, trials["axum", "own"]))
    told = [json.loads(environment(one)["LAPTIME_VERIFY"]) for one in (verifier, wait)]
    told.append(json.loads(environment(k6)["LAPTIME_TRIAL"]))
    assert [one["schemaQuery"] for one in told] == 3 * [SCHEMA_QUERY]
    assert "DATABASE_URL" not in environment(script)
    # One that waits has no connection open meanwhile.
    assert ("counts" not in told[0], told[1]["counts"]) == (True, False)
    # Nothing in it is a variable of the container.
    assert "$(" not in SCHEMA_QUERY


def test_without_pgbouncer_each_server_asks_postgres_for_its_own_database() -> None:
    ctx = per_server("direct")
    (pod,) = containers(server_deployment(ctx, ctx.spec.server("axum"), "demo-trial-001"))
    assert address(pod) == f"{AT_POSTGRES}/laptime_axum"


def test_postgres_copies_the_database_when_schema_and_rows_are_there() -> None:
    ctx = per_server("direct", servers=[{"name": "old-1", "image": "mine:1"}], control=True)
    data, paths = postgres_files(replace(ctx, spec=ctx.spec.with_control()))
    sql = data["databases.sql"]
    made = [line for line in sql.splitlines() if line.startswith("CREATE")]
    assert made == [
        f"CREATE DATABASE {name} TEMPLATE laptime OWNER laptime STRATEGY file_copy;"
        for name in ("laptime_old_1", "laptime_old_1_control")
    ]
    # What the scenario has set of its database is in force in each of them.
    assert sql.count("INSERT INTO pg_db_role_setting") == len(made)
    # Not among the files of the scenario, which run without privilege.
    assert "databases.sql" in paths


def test_no_two_servers_have_the_same_database() -> None:
    names = ["a", "a-b", "ab", "s25-session", "own"]
    ctx = per_server(
        servers=[{"name": one, "image": "mine:1"} for one in names], baseline="a", objectives=[]
    )
    found = [database_name(ctx.spec, one) for one in ctx.spec.servers]
    assert len(set(found)) == len(names)
    # Nor is one called as a pool of some size is, nor longer than Postgres' names.
    assert not [one for one in found if one[len("laptime_")].isdigit() or len(one) > 63]


def test_a_service_that_is_there_has_no_database_of_the_run() -> None:
    there = {"name": "there", "service": {"name": "shop", "port": 80}}
    ctx = per_server(
        "direct", servers=[there, {"name": "mine", "image": "mine:1"}], baseline="mine"
    )
    assert copied_databases(ctx.spec) == ["laptime_mine"]
    only = per_server("direct", servers=[there], baseline="there")
    assert "databases.sql" not in postgres_files(only)[0]


def test_pgbouncer_leads_each_server_to_its_own_database_by_a_pool_of_its_own() -> None:
    wire = spec_with("perServer")
    wire["servers"][1]["topology"] = {"pgbouncer": {"poolSize": 40, "poolMode": "session"}}
    ctx = context(wire)
    tier = ctx.spec.topology.pgbouncer
    assert tier is not None
    section = pgbouncer_config(ctx, tier).partition("[pgbouncer]")[0]
    where = "host=demo-postgres port=5432"
    usual = "pool_size=25 pool_mode=transaction"
    assert section.split("\n")[1:-2] == [
        # And to no other one: what is common to all is nobody's.
        f"laptime_sync = {where} dbname=laptime_sync {usual}",
        f"laptime_axum = {where} dbname=laptime_axum pool_size=40 pool_mode=session",
        f"laptime_own = {where} dbname=laptime_own {usual}",
    ]
    # By which the readings of its pool are found.
    assert [pool_name(ctx.spec, one) for one in ctx.spec.servers] == copied_databases(ctx.spec)


def test_an_older_version_leaves_it_alone() -> None:
    assert per_server().stored_version == STORED_VERSION
    assert context(spec_with("shared")).stored_version == USUAL_VERSION
