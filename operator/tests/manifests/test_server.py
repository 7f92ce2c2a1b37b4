"""A server under test: its environment, its resources, and a fresh pod for every trial."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.api.resources import Resources, quantity
from laptime.manifests.objects import Manifest
from laptime.manifests.pods import literal, resources
from laptime.manifests.secret import secret_name
from laptime.manifests.server import server_deployment, server_service
from laptime.manifests.verifier import verify_job
from laptime.plan.told import DATABASE_PARTS, told
from tests.manifests.runs import SPECS, context, environment, expand


def pod(spec: str | dict[str, Any], name: str, trial: str | None = "demo-trial-001") -> Manifest:
    ctx = context(spec)
    manifest = server_deployment(ctx, ctx.spec.server(name), trial)
    found: Manifest = manifest["spec"]["template"]["spec"]
    return found


def server_environment(spec: str | dict[str, Any], name: str) -> dict[str, str]:
    return environment(pod(spec, name)["containers"][0])


def with_env(*env: dict[str, str]) -> dict[str, Any]:
    spec = copy.deepcopy(SPECS["full"])
    spec["servers"][2]["env"] = list(env)
    return spec


def test_the_contract_is_in_the_environment() -> None:
    seen = server_environment("full", "sync")
    assert seen == {
        "POD_IP": "status.podIP",
        "PORT": "8080",
        "WORKERS": "4",
        "DATABASE_CONNECTIONS": "5",
        "DATABASE_PREPARED_STATEMENTS": "true",
        "DATABASE_HOST": "demo-pgbouncer",
        "DATABASE_PORT": "6432",
        "DATABASE_USER": "laptime",
        "DATABASE_NAME": "laptime",
        "DATABASE_PASSWORD": f"{secret_name(context())}/password",
        "DATABASE_URL": f"postgresql://laptime:{secret_name(context())}/password@demo-pgbouncer:6432/laptime",
    }


def test_a_server_asks_for_its_own_pool_and_the_verifier_asks_postgres() -> None:
    spec = copy.deepcopy(SPECS["full"])
    spec["servers"][1]["topology"] = {"pgbouncer": {"poolSize": 40}}
    urls = [server_environment(spec, name)["DATABASE_URL"] for name in ("sync", "axum")]
    assert [url.rpartition("@")[2] for url in urls] == [
        "demo-pgbouncer:6432/laptime",
        "demo-pgbouncer:6432/laptime_40_transaction",
    ]
    ctx = context(spec)
    (verifier,) = verify_job(ctx, ctx.spec.server("axum"))["spec"]["template"]["spec"]["containers"]
    assert environment(verifier)["DATABASE_URL"].endswith("@demo-postgres:5432/laptime")


def test_a_server_may_be_told_its_database_in_its_own_words() -> None:
    spec = with_env(
        {
            "name": "JDBC",
            "value": "jdbc:postgresql://$(DATABASE_HOST):$(DATABASE_PORT)/$(DATABASE_NAME)",
        },
        {"name": "DB", "value": "Username=$(DATABASE_USER);Password=$(DATABASE_PASSWORD);$5"},
        {"name": "URI", "value": "$(DATABASE_URL)?pool=$(DATABASE_CONNECTIONS)"},
        {"name": "BIND", "value": "[$(POD_IP)]:$(PORT)x$(WORKERS)"},
    )
    spec["servers"][2]["topology"] = {"pgbouncer": {"poolSize": 40}}
    spec["servers"][2] |= {
        "command": ["/own"],
        "args": ["-p=$(PORT)", "$(MODE)", "$(DATABASE_HOST)"],
    }
    seen, database = server_environment(spec, "own"), "laptime_40_transaction"
    password = f"{secret_name(context())}/password"
    assert seen["JDBC"] == f"jdbc:postgresql://demo-pgbouncer:6432/{database}"
    assert seen["DB"] == f"Username=laptime;Password={password};$5"
    assert seen["URI"] == f"postgresql://laptime:{password}@demo-pgbouncer:6432/{database}?pool=5"
    assert seen["BIND"] == "[status.podIP]:9000x1"
    (container,) = pod(spec, "own")["containers"]
    assert container["command"] == ["/own"]
    words = [expand(word, seen) for word in container["args"]]
    assert words == ["-p=9000", "$(MODE)", "demo-pgbouncer"]
    # Behind a delay its database is there.
    delayed = {**spec, "topology": {**spec["topology"], "delay": {"database": "2ms"}}}
    assert server_environment(delayed, "own")["JDBC"].startswith(
        "jdbc:postgresql://demo-delay:6432/"
    )


def test_a_variable_in_a_secret_can_be_named_wherever_it_stands() -> None:
    spec = with_env(
        {"name": "URL", "value": "https://$(API_KEY2)/$(licence)/$(SERVICE_TOKEN)?$(MODE)"},
        {"name": "MODE", "value": "$$(API_KEY2)"},
        {"name": "API_KEY2", "secret": "vendor"},
        {"name": "licence", "secret": "shop"},
        {"name": "SERVICE_TOKEN", "secret": "vendor"},
    )
    spec["servers"][2] |= {"command": ["/own"], "args": ["--key=$(API_KEY2)", "$(API_KEY)"]}
    seen = server_environment(spec, "own")
    key, token = "vendor/laptime-env-API_KEY2", "vendor/laptime-env-SERVICE_TOKEN"
    assert (seen["API_KEY2"], seen["SERVICE_TOKEN"]) == (key, token)
    assert seen["licence"] == "shop/laptime-env-licence"
    assert seen["URL"] == f"https://{key}/shop/laptime-env-licence/{token}?$(MODE)"
    assert seen["MODE"] == f"${key}"
    (container,) = pod(spec, "own")["containers"]
    assert [expand(word, seen) for word in container["args"]] == [f"--key={key}", "$(API_KEY)"]
    names = [variable["name"] for variable in container["env"]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", SPECS)
def test_what_a_server_may_name_is_what_it_is_told(name: str) -> None:
    ctx = context(name)
    for server in ctx.spec.deployed:
        bare = server.model_copy(update={"env": []})
        (container,) = pod(SPECS[name], server.name)["containers"]
        own = {one.name for one in server.env}
        there = {one["name"] for one in container["env"]} - own
        named = {one for one, lacking in told(ctx.spec, bare).items() if lacking is None}
        assert {one for one in there if not one.startswith("SERVICE_")} == named


@pytest.mark.parametrize("name", DATABASE_PARTS)
def test_an_image_that_is_told_one_part_of_a_database_is_told_no_other_part_of_ours(
    name: str,
) -> None:
    """Half of two databases is a third one: another pool, or our port at somebody's host."""
    env = {"name": name, "value": "elsewhere"}
    for spec in (
        with_env(env),
        {**SPECS["bare"], "servers": [{**SPECS["bare"]["servers"][0], "env": [env]}]},
    ):
        (container,) = pod(spec, "own")["containers"]
        assert [one for one in container["env"] if one["name"] in DATABASE_PARTS] == [env]


def test_an_image_runs_as_the_user_that_the_run_says_and_writes_where_it_says() -> None:
    spec = copy.deepcopy(SPECS["full"])
    spec["servers"][2] |= {"user": 1000, "writable": ["/app/cache", "/var/log/app"]}
    found = pod(spec, "own")
    security = found["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"], security["runAsNonRoot"]) == (
        1000,
        1000,
        True,
    )
    (container,) = found["containers"]
    folders = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    assert folders == {"/tmp": "tmp", "/app/cache": "writable-0", "/var/log/app": "writable-1"}
    sizes = {one["name"]: one["emptyDir"]["sizeLimit"] for one in found["volumes"]}
    assert sizes == {"tmp": "1Gi", "writable-0": "16Gi", "writable-1": "16Gi"}
    ctx = context(spec, foreign_users=True)
    chosen = server_deployment(ctx, ctx.spec.server("own"), None)["spec"]["template"]["spec"]
    assert "runAsUser" not in chosen["securityContext"]


def test_the_folder_of_sqlite_stays_the_one_with_the_file() -> None:
    spec = copy.deepcopy(SPECS["embedded"])
    spec["servers"][1]["writable"] = ["/data", "/cache"]
    found = pod(spec, "own")
    (container,) = found["containers"]
    folders = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    assert folders == {"/tmp": "tmp", "/data": "data", "/cache": "writable-0"}
    assert [one["name"] for one in found["volumes"]] == ["tmp", "sql", "data", "writable-0"]


def test_without_pgbouncer_the_database_is_postgres() -> None:
    assert server_environment("direct", "axum")["DATABASE_URL"].endswith(
        "@demo-postgres:5432/laptime"
    )


def test_an_address_of_the_run_is_the_one_that_counts() -> None:
    variables = pod(with_env({"name": "POD_IP", "value": "::1"}), "own")["containers"][0]["env"]
    assert [one for one in variables if one["name"] == "POD_IP"] == [
        {"name": "POD_IP", "value": "::1"}
    ]


def test_without_a_database_there_is_no_url() -> None:
    seen = server_environment("bare", "own")
    assert "DATABASE_URL" not in seen
    assert "DATABASE_PASSWORD" not in seen
    assert seen["PORT"] == "9000"
    assert seen["MODE"] == "fast"


def test_a_server_without_a_trial_has_no_pod() -> None:
    ctx = context()
    idle = server_deployment(ctx, ctx.spec.servers[0], None)
    assert idle["spec"]["replicas"] == 0
    assert "laptime.dev/trial" not in idle["spec"]["template"]["metadata"]["labels"]


def test_every_trial_has_a_pod_template_of_its_own() -> None:
    ctx = context()
    first, second = (
        server_deployment(ctx, ctx.spec.servers[0], f"demo-trial-00{i}") for i in (1, 2)
    )
    assert first["spec"]["replicas"] == second["spec"]["replicas"] == 1
    assert first["spec"]["strategy"]["type"] == "RollingUpdate"
    assert first["spec"]["template"] != second["spec"]["template"]
    assert first["spec"]["template"]["metadata"]["labels"]["laptime.dev/trial"] == "demo-trial-001"
    assert first["spec"]["selector"] == second["spec"]["selector"]
    assert first["metadata"]["labels"] == second["metadata"]["labels"]


def test_nothing_probes_a_server_while_it_is_measured() -> None:
    (container,) = pod("full", "sync")["containers"]
    assert container["startupProbe"]["httpGet"] == {"path": "/healthz", "port": 8080}
    assert container["startupProbe"]["periodSeconds"] == 1
    assert "readinessProbe" not in container
    assert "livenessProbe" not in container


def test_the_service_of_a_trial_leads_to_its_pod_at_once_and_to_no_other() -> None:
    ctx = context()
    server = ctx.spec.server("own")
    service = server_service(ctx, server, "demo-trial-001")["spec"]
    of_trial = server_deployment(ctx, server, "demo-trial-001")["spec"]["template"]["metadata"]
    of_next = server_deployment(ctx, server, "demo-trial-002")["spec"]["template"]["metadata"]
    assert service["selector"].items() <= of_trial["labels"].items()
    assert not service["selector"].items() <= of_next["labels"].items()
    assert service["publishNotReadyAddresses"] is True
    assert service["ports"][0]["port"] == 9000


def test_a_trial_is_no_drift_of_the_service() -> None:
    ctx = context()
    server = ctx.spec.server("own")
    idle, busy = server_service(ctx, server), server_service(ctx, server, "demo-trial-001")
    assert idle["metadata"] == busy["metadata"]
    assert "publishNotReadyAddresses" not in idle["spec"]


def test_resources_that_are_set_are_request_and_limit() -> None:
    both = Resources(cpu="2", memory="256Mi")
    assert resources(both, cpu="50m", memory="64Mi") == {
        "requests": {"cpu": "2", "memory": "256Mi"},
        "limits": {"cpu": "2", "memory": "256Mi"},
    }
    assert resources(Resources(cpu="2", memory=None), cpu="50m", memory="64Mi") == {
        "requests": {"cpu": "2", "memory": "64Mi"},
        "limits": {"cpu": "2"},
    }
    assert resources(None, cpu="50m", memory="64Mi") == {
        "requests": {"cpu": "50m", "memory": "64Mi"}
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", 0.5),
        ("2", 2),
        ("1.5", 1.5),
        ("1k", 1000),
        ("64Mi", 2**26),
        ("1.5Gi", 1.5 * 2**30),
        # As pods have it: whole thousandths, rounded up.
        ("700m", 0.7),
        ("1503238553600m", 1503238553.6),
        ("1.4Gi", 1503238553.6),
        ("1.0005", 1.001),
    ],
)
def test_quantities(text: str, value: float) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize("text", ["", "Mi", "-1", "1e3", "1 Gi", "1Ti"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity(text)


@given(st.text(alphabet=st.sampled_from("$()AB\"'\\\n`; x")), st.text())
def test_any_value_reaches_the_server_as_it_is(tricky: str, arbitrary: str) -> None:
    for value in (tricky, arbitrary):
        assert expand(literal(value), {"A": "secret", "B": "secret"}) == value


@pytest.mark.parametrize(
    "value",
    ["$(HOME)", "$$(MODE)", "$(DATABASE_SECRET)", "`id`", "a\nb: c", "$(id)", "{{ x }}", "$"],
)
def test_hostile_values_stay_values(value: str) -> None:
    seen = server_environment(with_env({"name": "X", "value": value}), "own")
    assert seen["X"] == value


@pytest.mark.parametrize("name", ["DATABASE_URL", "DATABASE_PASSWORD", "PORT", "WORKERS"])
def test_the_contract_wins_over_the_user(name: str) -> None:
    spec = with_env({"name": name, "value": "mine"})
    assert server_environment(spec, "own") == server_environment(with_env(), "own")
    (container,) = pod(spec, "own")["containers"]
    names = [variable["name"] for variable in container["env"]]
    assert len(names) == len(set(names))


_PAGE = Path(__file__).parents[3] / "docs" / "servers.md"


@pytest.mark.parametrize("name", SPECS)
def test_each_variable_that_a_server_gets_is_in_the_table_of_its_page(name: str) -> None:
    section = _PAGE.read_text().partition("## What the server gets\n")[2].partition("\n*")[0]
    first_cells = [row.split("|")[1] for row in section.splitlines() if row.startswith("|")]
    told = set(re.findall(r"`([A-Z_]+)`", " ".join(first_cells)))
    for server in context(name).spec.servers:
        if server.deployed:
            own = {one.name for one in server.env}
            got = set(server_environment(name, server.name)) - own
            assert {one for one in got if not one.startswith("SERVICE_")} <= told
