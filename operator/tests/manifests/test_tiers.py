"""Postgres, PgBouncer, HAProxy: what their configuration says for which run."""

from __future__ import annotations

import copy
import json
import re
from configparser import ConfigParser
from dataclasses import replace
from typing import Any

import pytest

from laptime.api.topology import Postgres
from laptime.catalog import Request, Scenario, scenarios
from laptime.manifests.context import RunContext
from laptime.manifests.haproxy import haproxy_config
from laptime.manifests.postgres import postgres_config
from laptime.manifests.secret import database_secret, secret_name
from laptime.manifests.sql_image import sql_place
from laptime.manifests.tiers import target_url, tier_objects
from laptime.plan.pools import pool_name
from tests.manifests.runs import OF_ADMIN, PASSWORD, SCENARIO, SCRIPT, SPECS, context, users_context


def config(spec: str | dict[str, Any], name: str, key: str) -> str:
    (found,) = [
        m
        for m in tier_objects(context(spec))
        if m["kind"] == "ConfigMap" and m["metadata"]["name"] == name
    ]
    text: str = found["data"][key]
    return text


def pgbouncer(spec: str | dict[str, Any]) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.read_string(config(spec, "demo-pgbouncer", "pgbouncer.ini"))
    return parser


def changed(path: str, value: object) -> dict[str, Any]:
    spec = copy.deepcopy(SPECS["full"])
    node = spec
    *parents, last = path.split(".")
    for key in parents:
        node = node[int(key)] if isinstance(node, list) else node.setdefault(key, {})
    node[last] = value
    return spec


def kinds(spec: str) -> list[str]:
    return [f"{m['kind']} {m['metadata']['name']}" for m in tier_objects(context(spec))]


def test_each_tier_can_be_left_out() -> None:
    assert kinds("bare") == ["Service demo-server-own"]
    assert kinds("direct") == [
        "ConfigMap demo-postgres",
        "Deployment demo-postgres",
        "Service demo-postgres",
        "Service demo-server-axum",
    ]
    assert [k for k in kinds("proxied") if "haproxy" not in k] == [
        "Service demo-server-own",
        "Service demo-server-axum",
    ]


def test_the_secret_is_not_among_what_is_applied_again() -> None:
    assert not [m for m in tier_objects(context()) if m["kind"] == "Secret"]


def test_the_target_is_the_first_tier() -> None:
    full, bare = context("full"), context("bare")
    assert [target_url(full, server) for server in full.spec.servers] == [
        "http://demo-haproxy:8001",
        "http://demo-haproxy:8002",
        "http://demo-haproxy:8003",
    ]
    assert target_url(bare, bare.spec.servers[0]) == "http://demo-server-own:9000"


# Postgres


def test_postgres_gets_what_the_run_says_and_stays_durable() -> None:
    lines = config("full", "demo-postgres", "postgresql.conf").splitlines()
    # maxConnections is 1000, and ten are Laptime's own.
    assert "max_connections = 1010" in lines
    assert "fsync = on" in lines
    assert "synchronous_commit = on" in lines
    assert "shared_preload_libraries = 'pg_stat_statements'" in lines


@pytest.mark.parametrize(
    ("memory", "shared"),
    [(None, 256), ("1Gi", 256), ("64Mi", 16), ("4Mi", 16), ("4G", 953), ("100Gi", 8192)],
)
def test_shared_buffers_are_a_quarter_of_the_memory(memory: str | None, shared: int) -> None:
    postgres = Postgres.model_validate({"resources": {"memory": memory}} if memory else {})
    assert f"shared_buffers = {shared}MB\n" in postgres_config(postgres, 110)


def test_postgres_takes_the_pod_that_ends_beside_the_one_that_begins() -> None:
    """A server may open its whole pool at its start, while the one before still has its own."""
    spec = changed("topology", {"postgres": {"maxConnections": 100}})
    spec["servers"] = [
        {"name": "eager", "image": "registry.example/own:1", "databaseConnections": 60},
        {"name": "workers", "preset": "fastapi-sync", "workers": 2, "databaseConnections": 20},
    ]
    most = parameters(config(spec, "demo-postgres", "postgresql.conf"))["max_connections"]
    assert int(most) == 100 + 60 + 10
    # PgBouncer's connections are the same for all pods.
    spec["topology"]["pgbouncer"] = {"poolSize": 25}
    most = parameters(config(spec, "demo-postgres", "postgresql.conf"))["max_connections"]
    assert int(most) == 100 + 10


def parameters(text: str) -> dict[str, str]:
    return dict(line.split(" = ", 1) for line in text.splitlines())


def test_no_checkpoint_falls_into_a_load_by_the_clock_alone() -> None:
    settings = parameters(config("full", "demo-postgres", "postgresql.conf"))
    # Loads last six hours at most; a day is the most that Postgres takes.
    assert settings["checkpoint_timeout"] == "1d"
    assert settings["max_wal_size"] == "4GB"


def test_parallel_queries_have_the_memory_of_the_pod_for_what_they_share() -> None:
    """A runtime gives 64 MiB, which three hash joins at once can fill."""
    deployment = tier_objects(users_context())[1]
    made = deployment["spec"]["template"]["spec"]
    postgres = made["containers"][0]
    (name,) = [v["name"] for v in postgres["volumeMounts"] if v["mountPath"] == "/dev/shm"]
    (volume,) = [v for v in made["volumes"] if v["name"] == name]
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "4Gi"}


def test_postgres_runs_the_sql_of_the_scenario_in_its_order() -> None:
    config_map, deployment, _ = tier_objects(users_context())[:3]
    scenario = scenarios()["users"]
    for name, sql in scenario.init_sql:
        assert config_map["data"][name] == sql
    (volume,) = [
        v for v in deployment["spec"]["template"]["spec"]["volumes"] if v["name"] == "config"
    ]
    paths = [item["path"] for item in volume["configMap"]["items"]]
    assert paths == ["postgresql.conf", *(f"init.d/{name}" for name, _ in scenario.init_sql)]
    assert paths[1:] == sorted(paths[1:])
    # Not mounted where init SQL is run from.
    assert json.loads(config_map["data"]["reset.json"]) == scenario.reset_statements


def test_postgres_runs_what_is_in_images_where_it_stands_in_the_scenario() -> None:
    config_map, deployment = tier_objects(context("large"))[:2]
    made = deployment["spec"]["template"]["spec"]
    items = {v["name"]: v for v in made["volumes"]}["config"]["configMap"]["items"]
    files = ["01-schema", "02-schema", "03-seed", "04-seed", "05-seed"]
    assert [item["path"] for item in items][1:] == [f"init.d/{name}.sql" for name in files]
    written = {key: text for key, text in config_map["data"].items() if key.endswith(".sql")}
    assert [key for key, text in written.items() if "RAISE EXCEPTION" not in text] == [
        *("01-schema.sql", "04-seed.sql")
    ]
    # An image of Postgres that knows of no such files ends with these words, and not without rows.
    assert "data.postgres.seed[2] is in an image" in written["05-seed.sql"]
    copied = {one["name"]: (one["image"], one["args"]) for one in made["initContainers"][1:]}
    assert copied == {
        "sql-schema-1": (
            "registry.example/schema:1",
            ["/views.sql", "/laptime-files/02-schema.sql"],
        ),
        "sql-seed-0": ("registry.example/rows:3", ["/data/rows.sql", "/laptime-files/03-seed.sql"]),
        "sql-seed-2": ("registry.example/rows:3", ["/data/more.sql", "/laptime-files/05-seed.sql"]),
    }
    assert [sql_place(name) for name in copied] == [
        *("data.postgres.schema[1]", "data.postgres.seed[0]", "data.postgres.seed[2]")
    ]


def test_nothing_of_an_image_with_sql_runs_and_it_learns_nothing() -> None:
    deployment = tier_objects(context("large"))[1]
    made = deployment["spec"]["template"]["spec"]
    carrier, *copying = made["initContainers"]
    assert carrier["image"] == "docker.io/laptime/k6:1"
    assert "env" not in carrier
    for one in copying:
        assert one["command"] == ["/laptime-carrier/carry"]
        assert "env" not in one
        folders = {one["mountPath"]: one.get("readOnly", False) for one in one["volumeMounts"]}
        assert folders == {"/laptime-carrier": True, "/laptime-files": False}
    postgres = made["containers"][0]
    mounts = {one["mountPath"]: one["name"] for one in postgres["volumeMounts"]}
    assert mounts["/laptime-files"] in {one["name"] for one in copying[0]["volumeMounts"]}
    # The pod asks for no more because of them, and stays in the class Guaranteed.
    assert [one["resources"] for one in made["initContainers"]] == [postgres["resources"]] * 4
    assert postgres["resources"]["requests"] == postgres["resources"]["limits"]


@pytest.mark.parametrize(
    "file", ["--self", "rows.sql", "/a/../b", "/a b", "/", "/$(id)", "/a\n", ""]
)
def test_what_is_no_path_of_a_file_reaches_no_program(file: str) -> None:
    data = {"postgres": {"schema": [{"image": "a/b", "file": file}]}}
    scenario = SCENARIO.model_validate({**SCENARIO.model_dump(by_alias=True), "data": data})
    with pytest.raises(ValueError, match="cannot be a file of an image"):
        tier_objects(context(scenario=scenario))


def with_extensions(*names: str) -> Scenario:
    """Return the scenario of the tests with these extensions."""
    assert SCENARIO.data is not None
    assert SCENARIO.data.postgres is not None
    postgres = SCENARIO.data.postgres.model_copy(update={"extensions": list(names)})
    data = SCENARIO.data.model_copy(update={"postgres": postgres})
    return SCENARIO.model_copy(update={"data": data})


def test_extensions_are_made_by_a_file_of_their_own_before_the_schema() -> None:
    config_map, deployment, _ = tier_objects(
        context(scenario=with_extensions("pg_trgm", "uuid-ossp"))
    )[:3]
    assert config_map["data"]["extensions.sql"] == (
        'CREATE EXTENSION IF NOT EXISTS "pg_trgm";\nCREATE EXTENSION IF NOT EXISTS "uuid-ossp";\n'
    )
    (volume,) = [
        v for v in deployment["spec"]["template"]["spec"]["volumes"] if v["name"] == "config"
    ]
    paths = [item["path"] for item in volume["configMap"]["items"]]
    assert paths[:2] == ["postgresql.conf", "extensions.sql"]


@pytest.mark.parametrize("name", ['x"; ALTER ROLE laptime SUPERUSER; --', "X", "", "a b", "a\n"])
def test_what_is_no_name_of_an_extension_reaches_no_file_of_the_superuser(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of an extension"):
        tier_objects(context(scenario=with_extensions(name)))


def test_the_secret_is_good_for_postgres_and_pgbouncer() -> None:
    console = "demo-pgbouncer:6432/pgbouncer"
    secret = database_secret(context(), PASSWORD, OF_ADMIN, console, "demo-postgres", "c0f1")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "demo-postgres", "uid": "c0f1"}
    assert secret["metadata"]["ownerReferences"] == [owner]
    assert secret["stringData"] == {
        "username": "laptime",
        "password": PASSWORD,
        "userlist.txt": f'"laptime" "{PASSWORD}"\n"laptime_admin" "{OF_ADMIN}"\n',
        "console": f"postgresql://laptime_admin:{OF_ADMIN}@{console}",
    }


def test_no_other_run_has_a_secret_of_the_same_name() -> None:
    ctx = context()
    name = secret_name(ctx)
    assert re.fullmatch("demo-database-[0-9a-f]{8}", name)
    assert name != secret_name(replace(ctx, uid="another"))


@pytest.mark.parametrize(
    "password", ["short", "with space and more", 'quote"quote"quote', "ü" * 20]
)
def test_passwords_that_a_url_would_not_keep_are_refused(password: str) -> None:
    for both in ((password, OF_ADMIN), (PASSWORD, password)):
        with pytest.raises(ValueError, match="the password must be"):
            database_secret(context(), *both, "c:1/d", "demo-postgres", "c0f1")


# PgBouncer


def test_pgbouncer_gets_what_the_run_says() -> None:
    parsed = pgbouncer("full")
    where = "host=demo-postgres port=5432 dbname=laptime"
    assert parsed["databases"]["laptime"] == f"{where} pool_size=25 pool_mode=transaction"
    settings = parsed["pgbouncer"]
    assert settings["pool_mode"] == "transaction"
    assert settings["default_pool_size"] == "25"
    assert settings["max_prepared_statements"] == "200"
    assert settings["auth_type"] == "scram-sha-256"
    # A server has the run's role: it may look, and neither pause nor stop what others need.
    assert (settings["stats_users"], settings["admin_users"]) == ("laptime", "laptime_admin")


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_pool_modes(mode: str) -> None:
    settings = pgbouncer(changed("topology.pgbouncer.poolMode", mode))["pgbouncer"]
    assert settings["pool_mode"] == mode


OWN_TIERS = {
    "pgbouncer": {"poolSize": 40, "poolMode": "session"},
    "haproxy": {"maxConnections": 7},
}


def test_a_server_has_a_pool_of_its_own_and_those_with_the_same_share_one() -> None:
    spec = changed("servers.1.topology", OWN_TIERS)
    spec["servers"][2]["topology"] = OWN_TIERS
    spec["servers"][0]["topology"] = {"pgbouncer": {"poolSize": 25}}  # as the run's
    databases = dict(pgbouncer(spec)["databases"])
    where = "host=demo-postgres port=5432 dbname=laptime"
    own = f"{where} pool_size=40 pool_mode=session"
    # An admin's SET changes neither size nor mode of a pool that stand here.
    default = f"{where} pool_size=25 pool_mode=transaction"
    assert databases == {"laptime": default, "laptime_40_session": own}
    ctx = context(spec)
    names = {one.name: pool_name(ctx.spec, one) for one in ctx.spec.servers}
    assert names == {
        "sync": "laptime",
        "axum": "laptime_40_session",
        "own": "laptime_40_session",
    }


def test_pgbouncer_takes_all_connections_of_the_largest_server() -> None:
    spec = changed("servers.0.databaseConnections", 500)
    # Twice: those of the pod of the trial before may be open yet.
    assert int(pgbouncer(spec)["pgbouncer"]["max_client_conn"]) == 2 * 4 * 500 + 100


def test_pgbouncer_waits_no_shorter_than_the_load() -> None:
    assert pgbouncer("full")["pgbouncer"]["query_wait_timeout"] == "120"
    longer = pgbouncer(changed("loads.0.timeout", "10m"))
    assert longer["pgbouncer"]["query_wait_timeout"] == "600"


# HAProxy


def backends(text: str) -> dict[str, str]:
    return dict(re.findall(r"^backend (server-\S+)\n +(server .*)$", text, re.MULTILINE))


def unscripted() -> dict[str, Any]:
    """Return a run of which it is known what its loads ask for."""
    return changed("loads", [one for one in SPECS["full"]["loads"] if "script" not in one])


def test_haproxy_asks_quickly_whether_a_server_is_there() -> None:
    text = config(unscripted(), "demo-haproxy", "haproxy.cfg")
    (line,) = re.findall(r"^backend health-axum\n    timeout connect 150ms\n    (.*)$", text, re.M)
    assert backends(text)["server-axum"] == f"{line} maxconn 25"


def test_haproxy_has_a_port_for_each_server_in_their_order() -> None:
    text = config(unscripted(), "demo-haproxy", "haproxy.cfg")
    found = re.findall(
        r"frontend to-(\S+)\n    bind \"\$\{POD_IP\}:(\d+),127.0.0.1:\2\"\n"
        r"    use_backend (\S+) if { path (\S+) }\n    default_backend (\S+)\n",
        text,
    )
    assert found == [
        ("sync", "8001", "health-sync", "/healthz", "server-sync"),
        ("axum", "8002", "health-axum", "/healthz", "server-axum"),
        ("own", "8003", "health-own", "/actuator/health", "server-own"),
    ]
    assert backends(text)["server-own"].startswith(
        "server own demo-server-own.bench.svc.cluster.local:9000 "
    )
    (service,) = [
        m
        for m in tier_objects(context())
        if m["kind"] == "Service" and m["metadata"]["name"] == "demo-haproxy"
    ]
    assert [p["port"] for p in service["spec"]["ports"]] == [8001, 8002, 8003, 8404]


@pytest.mark.parametrize(
    ("path", "changes", "apart"),
    [
        ("/actuator/health", {}, True),
        (None, {}, True),
        # It is what the load asks for: all of that has to wait for its turn.
        ("/ping", {}, False),
        ("/actuator/health", {"loads": [SCRIPT]}, False),
        (None, {"loads": [SCRIPT]}, False),
    ],
)
def test_who_waits_for_a_server_is_told_from_its_load_by_a_path_that_nobody_else_asks_for(
    path: str | None, changes: dict[str, Any], apart: bool
) -> None:
    text = haproxy_config(asking("/ping", path, **changes))
    rule = f"    use_backend health-own if {{ path {path or '/healthz'} }}\n"
    assert (rule in text) == apart
    assert ("backend health-own\n" in text) == apart
    assert "    default_backend server-own\n" in text


def test_a_load_that_asks_for_the_health_of_a_server_is_capped_as_any_other() -> None:
    """Where no healthPath is written it is /healthz, which a service answers most cheaply."""
    text = haproxy_config(asking("/healthz", None))
    assert "health-own" not in text
    assert backends(text)["server-own"].endswith(" maxconn 25")


def asking(path: str, health: str | None, **changes: Any) -> RunContext:
    """Return a run whose load asks a server behind HAProxy for this path."""
    own = {"name": "own", "image": "registry.example/own:1"}
    if health is not None:
        own["healthPath"] = health
    spec = {
        "scenario": "demo",
        "servers": [own],
        "topology": {"haproxy": {"maxConnections": 25}},
        "loads": [{"name": "closed", "closed": {"connections": 1, "duration": "5s"}}],
        **changes,
    }
    asked = [Request(name="ping", path=path)]
    return context(spec, scenario=SCENARIO.model_copy(update={"requests": asked}))


def test_haproxy_caps_a_server_otherwise_than_the_others() -> None:
    found = backends(
        config(changed("servers.1.topology", OWN_TIERS), "demo-haproxy", "haproxy.cfg")
    )
    caps = {name: line.rpartition(" maxconn ")[2] for name, line in found.items()}
    assert caps == {"server-sync": "25", "server-axum": "7", "server-own": "25"}


def test_haproxy_caps_connections_only_when_the_run_says_so() -> None:
    capped = backends(config("full", "demo-haproxy", "haproxy.cfg"))
    assert all(line.endswith(" maxconn 25") for line in capped.values())
    free = backends(config("proxied", "demo-haproxy", "haproxy.cfg"))
    assert not any("maxconn" in line for line in free.values())


@pytest.mark.parametrize(
    # A check may take 120 s, and a script's request 60 s where it says nothing else.
    ("timeout", "seconds"),
    [("1s", 120), ("90500ms", 120), ("120500ms", 121), ("10m", 600)],
)
def test_haproxy_waits_no_shorter_than_who_asks(timeout: str, seconds: int) -> None:
    text = config(changed("loads.0.timeout", timeout), "demo-haproxy", "haproxy.cfg")
    for what in ("client", "server"):
        assert f"    timeout {what} {seconds}s\n" in text
    assert "    timeout connect 5s\n" in text


def test_haproxy_leaves_a_websocket_on_which_nobody_speaks_alone() -> None:
    assert "    timeout tunnel 1h\n" in config("full", "demo-haproxy", "haproxy.cfg")


SEARCH = {"saturation": {"p99": "250ms", "step": "5s"}}
SCRIPT = {"script": {"configMap": "mine"}}


@pytest.mark.parametrize(
    ("load", "seconds"),
    [
        ({"timeout": "1500ms"}, 2),
        ({"timeout": "10m"}, 600),
        # Which gives up after ten times what it looks for, at least a second.
        ({"timeout": "10m", "closed": None, **SEARCH}, 3),
        ({"timeout": "2s", "closed": None, **SEARCH}, 2),
        ({"timeout": "1s", "closed": None, **SCRIPT}, 120),
    ],
)
def test_haproxy_keeps_no_place_for_a_client_that_has_hung_up(
    load: dict[str, Any], seconds: int
) -> None:
    """Else what waits when a load ends gets the places of the next trial's requests."""
    first = {
        key: one for key, one in {**SPECS["full"]["loads"][0], **load}.items() if one is not None
    }
    text = config(changed("loads", [first]), "demo-haproxy", "haproxy.cfg")
    (section,) = re.findall(r"^defaults\n((?: +.*\n)+)", text, re.MULTILINE)
    assert f"    timeout queue {seconds}s\n" in section
    # It would lift the cap: a server goes on with what it has begun.
    assert "abortonclose" not in section


@pytest.mark.parametrize(
    ("load", "connections"),
    [
        ({"name": "open", "open": {"rate": 1, "maxConnections": 20000, "duration": "5s"}}, 20000),
        # Its VUs have as many as they open.
        ({"name": "own", "script": {"configMap": "mine", "options": {"vus": 10000}}}, 10000),
    ],
)
def test_haproxy_takes_all_connections_of_the_largest_load(
    load: dict[str, Any], connections: int
) -> None:
    text = config(changed("loads", [load]), "demo-haproxy", "haproxy.cfg")
    (files,) = re.findall(r"^global\n    fd-hard-limit (\d+)$", text, re.MULTILINE)
    assert int(files) >= 2 * connections


@pytest.mark.parametrize(
    ("cpu", "threads"), [("100m", 1), ("1", 1), ("1500m", 2), ("4", 4), ("200", 64)]
)
def test_haproxy_has_as_many_threads_as_cores(cpu: str, threads: int) -> None:
    spec = changed("topology.haproxy.resources", {"cpu": cpu})
    assert f"    nbthread {threads}\n" in haproxy_config(context(spec))
    # For a server that has more of it in its trials; the threads stay.
    spec = changed("topology.haproxy.resources", {"cpu": "50m"})
    spec["servers"][1]["topology"] = {"haproxy": {"cpu": cpu}}
    assert f"    nbthread {threads}\n" in haproxy_config(context(spec))


def test_haproxy_decides_on_its_threads_without_a_quota() -> None:
    assert "nbthread" not in haproxy_config(context(changed("topology.haproxy", {})))
