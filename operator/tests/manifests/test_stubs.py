"""SQLite in the server's pod, the upstream, the delay, threads, endpoints with prepared ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from laptime.api.topology import Delay
from laptime.manifests.context import ImageSet
from laptime.manifests.generator import trial_document, trial_job
from laptime.manifests.server import server_deployment
from laptime.manifests.tiers import target_url, tier_objects
from laptime.manifests.upstream import upstream_objects
from laptime.manifests.verifier import verify_document, verify_job
from laptime.plan import plan_trials
from tests.manifests.runs import AXUM, CLOSED, CRUD_SCENARIO, IMAGES, SPECS, context, environment


def pod_of(spec: str | dict[str, Any] = "embedded", server: int = 0) -> dict[str, Any]:
    ctx = context(spec)
    manifest = server_deployment(ctx, ctx.spec.servers[server], "demo-trial-001")
    pod: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return pod


def test_the_database_is_made_before_the_server_starts_where_the_server_reads_it() -> None:
    pod = pod_of()
    (seed,), (server,) = pod["initContainers"], pod["containers"]
    assert seed["image"] == IMAGES.operator
    assert [*seed["command"], *seed["args"]] == [
        "laptime", "make-sqlite", "/etc/laptime/sql", "/data/laptime.db",
    ]  # fmt: skip
    assert environment(server)["DATABASE_URL"] == "sqlite:///data/laptime.db"
    for container in (seed, server):
        assert {"name": "data", "mountPath": "/data"} in container["volumeMounts"]
    assert {"name": "sql", "mountPath": "/etc/laptime/sql"} not in server["volumeMounts"]


def test_the_sql_is_that_of_the_scenario() -> None:
    ctx = context("embedded")
    (stored,) = [one for one in tier_objects(ctx) if one["metadata"]["name"] == "demo-sqlite"]
    assert stored["data"] == dict(ctx.scenario.sqlite_sql)


def test_without_sqlite_there_is_nothing_of_it() -> None:
    pod = pod_of("bare")
    assert "initContainers" not in pod
    assert "DATABASE_URL" not in environment(pod["containers"][0])
    assert "demo-sqlite" not in {one["metadata"]["name"] for one in tier_objects(context("bare"))}


def test_the_upstream_is_where_servers_and_verifier_look_for_it() -> None:
    ctx = context("embedded")
    deployment, service = upstream_objects(ctx)
    stub = environment(deployment["spec"]["template"]["spec"]["containers"][0])
    assert (stub["LATENCY_SECONDS"], stub["ANSWER_BYTES"]) == ("0.02", "1000")
    url = f"http://{service['metadata']['name']}:{stub['PORT']}/users"
    assert environment(pod_of()["containers"][0])["UPSTREAM_URL"] == url
    assert verify_document(ctx, ctx.spec.servers[0], ctx.scenario.checks)["upstreamUrl"] == url
    assert "upstreamUrl" not in verify_document(
        context("bare"), context("bare").spec.servers[0], ctx.scenario.checks
    )


def test_an_upstream_without_an_image_is_named() -> None:
    without = ImageSet(**{**vars(IMAGES), "upstream": None})
    with pytest.raises(ValueError, match=r"set images\.upstream"):
        upstream_objects(context("embedded", images=without))
    assert upstream_objects(context("bare", images=without)) == []


def test_threads_are_those_of_the_run_else_of_the_preset_else_none() -> None:
    def threads(server: dict[str, Any]) -> str | None:
        pod = pod_of({"scenario": "tiny", "servers": [server], "loads": [CLOSED]})
        return environment(pod["containers"][0]).get("THREADS")

    images = {**IMAGES.servers, "flask": "flask"}
    ctx = context(
        {
            "scenario": "tiny",
            "servers": [{"name": "flask", "preset": "flask"}],
            "loads": [CLOSED],
        },
        images=ImageSet(**{**vars(IMAGES), "servers": images}),
    )
    manifest = server_deployment(ctx, ctx.spec.servers[0], None)
    flask = environment(manifest["spec"]["template"]["spec"]["containers"][0])
    assert flask["THREADS"] == "40"
    assert threads({**AXUM, "threads": 3}) == "3"
    assert threads(AXUM) is None


def test_a_load_sends_the_endpoints_that_it_names_with_their_ids() -> None:
    def names(endpoints: list[str] | None) -> list[str]:
        spec = {
            "scenario": "tiny",
            "servers": [AXUM],
            "loads": [{**CLOSED, "endpoints": endpoints}],
        }
        ctx = context(spec, scenario=CRUD_SCENARIO)
        requests = trial_document(ctx, plan_trials(ctx.name, ctx.spec, 1)[0])["requests"]
        for request in requests:
            assert request.get("ids") == (
                {"first": 1, "last": 9000, "use": "once"} if request["name"] == "delete" else None
            )
        return [request["name"] for request in requests]

    assert names(None) == ["list", "delete"]
    assert names(["delete"]) == ["delete"]


def test_the_verifier_counts_statements_at_postgres_itself() -> None:
    scenario = CRUD_SCENARIO.model_copy(
        update={
            "requests": [
                CRUD_SCENARIO.requests[0].model_copy(update={"statements": 9.0}),
                CRUD_SCENARIO.requests[1],
            ]
        }
    )
    ctx = context("full", scenario=scenario)
    job = verify_job(ctx, ctx.spec.servers[0])
    (verifier,) = job["spec"]["template"]["spec"]["containers"]
    seen = environment(verifier)
    assert "@demo-postgres:5432/" in seen["DATABASE_URL"]
    (check,) = json.loads(seen["LAPTIME_VERIFY"])["checks"]
    assert check["statements"] == 9


def test_without_postgres_nothing_is_counted() -> None:
    ctx = context("embedded")
    job = verify_job(ctx, ctx.spec.servers[0])
    (verifier,) = job["spec"]["template"]["spec"]["containers"]
    assert "DATABASE_URL" not in environment(verifier)


def links_of(spec: str | dict[str, Any]) -> list[dict[str, Any]]:
    found = [one for one in tier_objects(context(spec)) if one["metadata"]["name"] == "demo-delay"]
    deployment, service = found
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    document = json.loads(environment(container)["LAPTIME_DELAY"])
    links: list[dict[str, Any]] = document["links"]
    assert {port["port"] for port in service["spec"]["ports"]} == {one["port"] for one in links}
    return links


def test_a_delay_stands_before_haproxy_and_before_postgres() -> None:
    ctx = context("distant")
    assert links_of("distant") == [
        {"port": 8001, "to": "demo-haproxy.bench.svc.cluster.local:8001", "delayMs": 22},
        {"port": 8002, "to": "demo-haproxy.bench.svc.cluster.local:8002", "delayMs": 22},
        {"port": 6432, "to": "demo-postgres.bench.svc.cluster.local:5432", "delayMs": 2},
    ]
    assert target_url(ctx, ctx.spec.servers[1]) == "http://demo-delay:8002"
    server = environment(pod_of("distant")["containers"][0])
    assert server["DATABASE_URL"].endswith("@demo-delay:6432/laptime")


@pytest.mark.parametrize(
    ("delay", "milliseconds"),
    [("22ms", 22), ("1.5s", 1500), ("0s", 0), ("400us", 0), ("1.5ms", 2), ("2.5ms", 2)],
)
def test_causes_reckon_with_the_delay_that_is_added(delay: str, milliseconds: int) -> None:
    """Earlier versions took parts of a millisecond: of such runs what was added is what counts."""
    topology = {"postgres": {}, "delay": {"servers": delay, "database": delay}}
    assert {link["delayMs"] for link in links_of({**SPECS["distant"], "topology": topology})} == {
        milliseconds
    }
    said = Delay(servers=delay, database=delay)
    assert said.servers_seconds == said.database_seconds == milliseconds / 1000


def test_a_delay_stands_before_the_servers_where_there_is_no_haproxy() -> None:
    assert [link["to"] for link in links_of("embedded")] == [
        "demo-server-axum.bench.svc.cluster.local:8080",
        "demo-server-own.bench.svc.cluster.local:9000",
    ]


def test_the_database_is_reset_and_statements_are_counted_without_delay() -> None:
    ctx = context("distant")
    for job in (
        verify_job(ctx, ctx.spec.servers[0]),
        trial_job(ctx, plan_trials(ctx.name, ctx.spec, 1)[0]),
    ):
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert environment(container)["DATABASE_URL"].endswith("@demo-postgres:5432/laptime")


def test_without_a_delay_nothing_of_it_is_there() -> None:
    assert "demo-delay" not in {one["metadata"]["name"] for one in tier_objects(context("full"))}


def test_a_delay_without_an_image_is_named() -> None:
    without = ImageSet(**{**vars(IMAGES), "delay": None})
    with pytest.raises(ValueError, match=r"set images\.delay"):
        tier_objects(context("distant", images=without))
