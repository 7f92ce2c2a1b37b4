"""Services that a scenario has around the server: fresh or reset before each trial."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .harness import Cluster, condition, light, namespace_for_runs, run_manifest

SECONDS_TO_SAY_SO = 30
GO = "docker.io/laptime/server-go-nethttp:0.1.0"
OPERATOR = "docker.io/laptime/operator:0.1.0"
HTTP = {"image": GO, "ports": [8080], "ready": {"path": "/healthz"}}
FRESH = {**HTTP, "name": "fresh", "password": True, "writable": ["/data"]}
RESET = {**HTTP, "name": "reset", "reset": {"request": {"method": "GET", "path": "/hi"}}}
JOB = {
    **HTTP,
    "name": "job",
    "reset": {"job": {"image": OPERATOR, "command": ["laptime"], "args": ["version"]}},
}
URL = "http://x:$(SERVICE_FRESH_PASSWORD)@$(SERVICE_FRESH_HOST):$(SERVICE_FRESH_PORT)"


def scenario(name: str, *services: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkScenario",
        "metadata": {"name": name},
        "spec": {
            "services": list(services),
            "requests": [{"name": "hi", "path": "/hi"}],
            "checks": [{"name": "hi", "path": "/hi", "expected": {"hello": "world"}}],
        },
    }


def run(name: str, **spec: Any) -> dict[str, Any]:
    server = {"name": "go", "image": GO, "env": [{"name": "URL", "value": URL}]}
    return run_manifest(
        name, [spec.pop("server", server)], scenario=name, topology={}, loads=light(), **spec
    )


@pytest.fixture(scope="module")
def cluster(kubectl: Any, reader: Any, operator: str) -> Iterator[Cluster]:
    with namespace_for_runs(reader) as name:
        yield Cluster(kubectl, reader, name)


def test_each_trial_has_services_in_their_first_state(cluster: Cluster) -> None:
    cluster.apply(scenario("around", FRESH, RESET, JOB))
    cluster.apply(run("around"))
    seen: dict[str, str] = {}
    urls: set[str] = set()

    def look(status: dict[str, Any]) -> bool:
        for pod in cluster.items("pods", "laptime.dev/component=service-fresh"):
            labels = pod["metadata"]["labels"]
            seen[pod["metadata"]["uid"]] = labels.get("laptime.dev/trial", "")
        for pod in cluster.items("pods", "laptime.dev/component=server"):
            env = pod["spec"]["containers"][0]["env"]
            urls.update(one["value"] for one in env if one["name"] == "URL")
        return status.get("state") in ("Succeeded", "Failed")

    status = cluster.wait("around", "its end", look, 180)
    assert status["state"] == "Succeeded", status
    # The kubelet puts the password in: no object has it.
    assert urls == {URL}
    # One before all, one for the check, and one for each trial.
    assert sorted(seen.values()) == [
        "", "around-trial-001", "around-trial-002", "around-verify-go",
    ]  # fmt: skip
    cluster.wait_folded("around")
    for result in cluster.documents("around").values():
        assert set(result["images"]) >= {"service-fresh", "service-reset", "service-job"}
        assert not result.get("lostAttempts")
    assert cluster.left_of("around") == {"ConfigMap/around-results"}


@pytest.mark.parametrize(
    ("name", "services", "spec", "reason", "said"),
    [
        (
            "no-image",
            [{**FRESH, "image": "docker.io/laptime/nothing:0"}],
            {"startupTimeout": "12s"},
            "ImagePullFailed",
            "the image of service fresh (docker.io/laptime/nothing:0) cannot be pulled",
        ),
        (
            "not-there",
            [{**FRESH, "ports": [9]}],
            {"startupTimeout": "8s"},
            "NotReady",
            "service fresh",
        ),
        (
            "answers-otherwise",
            [FRESH, {**RESET, "reset": {"request": {"path": "/nothing"}}}],
            {},
            "ServiceResetFailed",
            "the reset of service reset failed: ",
        ),
        (
            "job-fails",
            [
                FRESH,
                {**JOB, "reset": {"job": {"image": OPERATOR, "command": ["laptime", "nonsense"]}}},
            ],
            {},
            "ServiceResetFailed",
            "the reset of service job failed: exit code 1; it said: ",
        ),
        (
            "no-such-service",
            [HTTP | {"name": "other"}],
            {},
            "ScenarioDoesNotFit",
            "server go: env.URL: there is no $(SERVICE_FRESH_PASSWORD): there is "
            "$(SERVICE_OTHER_HOST), $(SERVICE_OTHER_PORT)",
        ),
    ],
)
def test_what_only_shows_in_the_cluster_is_said_in_seconds(
    cluster: Cluster,
    name: str,
    services: list[dict[str, Any]],
    spec: dict[str, Any],
    reason: str,
    said: str,
) -> None:
    cluster.apply(scenario(name, *services))
    cluster.apply(run(name, **spec))
    # What is tried again for a while, as an image is, is said before it ends the run.
    cluster.wait(
        name,
        "the condition",
        lambda status: any(
            condition(status, one).get("reason") == reason
            and condition(status, one)["status"] == "False"
            and said in condition(status, one)["message"]
            for one in ("TiersReady", "Succeeded")
        ),
        SECONDS_TO_SAY_SO,
    )
    failed = condition(cluster.wait_end(name, 60), "Succeeded")
    assert (failed["status"], failed["reason"]) == ("False", reason)
    assert said in failed["message"]
