"""A server that says at another port whether it serves: who asks there, and which way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from laptime.manifests.context import RunContext
from laptime.manifests.generator import trial_document, trial_job
from laptime.manifests.haproxy import haproxy_config
from laptime.manifests.objects import Manifest
from laptime.manifests.profiler import profile_job
from laptime.manifests.server import profile_port, server_deployment, server_service
from laptime.manifests.tiers import target_url, tier_objects
from laptime.manifests.verifier import verify_job
from laptime.plan import Trial
from laptime.verification.verify import Task
from tests.manifests.runs import CLOSED, SCRIPT, context, environment

PLAIN = {"name": "plain", "image": "registry.example/plain:1"}
OWN = {
    "name": "own",
    "image": "registry.example/own:1",
    "port": 9000,
    "healthPath": "/ready",
    "healthPort": 9001,
}


def run(topology: dict[str, Any] | None = None, **own: Any) -> RunContext:
    """Return a run of a server with a health port behind one without, and changes of the first."""
    return context(
        {
            "scenario": "tiny",
            "servers": [PLAIN, {**OWN, **own}],
            "topology": topology or {},
            "loads": [CLOSED, SCRIPT],
        }
    )


def trial(server: str, load: str = "closed") -> Trial:
    return Trial("demo-trial-001", 1, server, load, 1)


def pod(manifest: Manifest) -> Manifest:
    found: Manifest = manifest["spec"]["template"]["spec"]
    return found


def told(container: Manifest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(environment(container)["LAPTIME_VERIFY"])
    return found


def test_its_pod_is_probed_there_and_its_service_leads_there() -> None:
    ctx = run()
    server = ctx.spec.server("own")
    (container,) = pod(server_deployment(ctx, server, "demo-trial-001"))["containers"]
    assert container["startupProbe"]["httpGet"] == {"path": "/ready", "port": 9001}
    assert [one["containerPort"] for one in container["ports"]] == [9000, 9001]
    assert environment(container)["PORT"] == "9000"
    ports = server_service(ctx, server, "demo-trial-001")["spec"]["ports"]
    assert [(one["name"], one["targetPort"]) for one in ports] == [("http", 9000), ("health", 9001)]


def test_a_health_port_that_is_the_port_is_as_one_left_out() -> None:
    topology = {"haproxy": {}, "delay": {"servers": "22ms"}}
    same, left_out = (run(topology, healthPort=port) for port in (9000, None))
    makers: list[Callable[[RunContext], Any]] = [
        tier_objects,
        lambda ctx: server_deployment(ctx, ctx.spec.server("own"), "demo-trial-001"),
        lambda ctx: verify_job(ctx, ctx.spec.server("own")),
        lambda ctx: trial_job(ctx, trial("own")),
        lambda ctx: trial_job(ctx, trial("own", "own")),
    ]
    for made in makers:
        assert made(same) == made(left_out)


@pytest.mark.parametrize(("health", "chosen"), [(9001, 6061), (6061, 6062)])
def test_a_profile_is_asked_for_at_neither_of_its_ports(health: int, chosen: int) -> None:
    ctx = run(port=6060, healthPort=health)
    assert profile_port(ctx.spec.server("own")) == chosen


def test_who_asks_for_a_profile_waits_for_it_there() -> None:
    ctx = run(profile=True)
    *_, asker = pod(profile_job(ctx, trial("own")))["containers"]
    task = json.loads(environment(asker)["LAPTIME_PROFILE"])
    assert (task["server"], task["healthPath"]) == ("http://demo-server-own:9001", "/ready")


@pytest.mark.parametrize(
    ("topology", "health"),
    [
        ({}, "http://demo-server-own:9001"),
        ({"haproxy": {}}, "http://demo-haproxy:8102"),
        ({"delay": {"servers": "22ms"}}, "http://demo-delay:8102"),
        ({"haproxy": {}, "delay": {"servers": "22ms"}}, "http://demo-delay:8102"),
    ],
)
def test_who_waits_for_it_asks_there_the_way_that_the_load_goes(
    topology: dict[str, Any], health: str
) -> None:
    ctx = run(topology)
    server = ctx.spec.server("own")
    (verifier,) = pod(verify_job(ctx, server))["containers"]
    for said in (trial_document(ctx, trial("own")), told(verifier)):
        assert (said["target"], said["healthTarget"]) == (target_url(ctx, server), health)
        assert said["healthPath"] == "/ready"
    assert told(verifier)["checks"]
    (wait,) = pod(trial_job(ctx, trial("own", "own")))["initContainers"]
    task = Task.model_validate(told(wait))
    assert (task.target, task.health_target) == (target_url(ctx, server), health)
    # At the port itself nothing need answer to the path.
    assert task.checks == []


@pytest.mark.parametrize("topology", [{}, {"haproxy": {}}])
def test_a_server_without_one_is_asked_as_by_an_earlier_version(topology: dict[str, Any]) -> None:
    ctx = run(topology)
    (verifier,) = pod(verify_job(ctx, ctx.spec.server("plain")))["containers"]
    (wait,) = pod(trial_job(ctx, trial("plain", "own")))["initContainers"]
    documents = (trial_document(ctx, trial("plain")), told(verifier), told(wait))
    assert not any("healthTarget" in one for one in documents)


def test_haproxy_has_a_port_for_it_beside_that_of_the_load() -> None:
    ctx = run({"haproxy": {"maxConnections": 25}})
    text = haproxy_config(ctx)
    line = "server own demo-server-own.bench.svc.cluster.local:{} resolvers cluster"
    (_, _, asked), (_, _, loaded) = (
        text.partition(f"\nbackend {one}-own\n") for one in ("health", "server")
    )
    assert asked.startswith(f"    timeout connect 150ms\n    {line.format(9001)}")
    assert loaded.startswith(f"    {line.format(9000)}")
    assert loaded.splitlines()[0].endswith(" maxconn 25")
    assert (
        'frontend health-of-own\n    bind "${POD_IP}:8102,127.0.0.1:8102"\n'
        "    default_backend health-own\n" in text
    )
    # The load may ask for that path of the port itself.
    assert "path /ready" not in text
    (service,) = (
        one
        for one in tier_objects(ctx)
        if (one["kind"], one["metadata"]["name"]) == ("Service", "demo-haproxy")
    )
    assert [one["port"] for one in service["spec"]["ports"]] == [8001, 8002, 8102, 8404]


def test_a_delay_leads_to_it_too() -> None:
    delayed: dict[str, Any] = {"delay": {"servers": "22ms"}}
    for topology, to in (
        (delayed, "demo-server-own.bench.svc.cluster.local:9001"),
        ({**delayed, "haproxy": {}}, "demo-haproxy.bench.svc.cluster.local:8102"),
    ):
        ctx = run(topology)
        (deployment,) = (
            one
            for one in tier_objects(ctx)
            if (one["kind"], one["metadata"]["name"]) == ("Deployment", "demo-delay")
        )
        (container,) = pod(deployment)["containers"]
        links = json.loads(environment(container)["LAPTIME_DELAY"])["links"]
        assert [one["port"] for one in links] == [8001, 8002, 8102]
        assert links[-1]["to"] == to
