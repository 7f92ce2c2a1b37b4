"""Nothing that is not a run's own is ever changed or deleted, and no run hangs for a name."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from laptime.manifests.context import content_hash
from laptime.report.archive import stored_in

from .harness import AXUM, POSTGRES_ALONE, Cluster, condition, light, run_manifest

RUN = "shop"
_POD = {"containers": [{"name": "theirs", "image": "registry.invalid/theirs:1"}]}
_LABELS = {"app": "shop"}

GO = "docker.io/laptime/server-go-nethttp:0.1.0"
_AROUND = {
    "apiVersion": "laptime.dev/v1alpha1",
    "kind": "BenchmarkScenario",
    "metadata": {"name": "around"},
    "spec": {
        "services": [
            {"name": "cache", "image": GO, "ports": [8080], "password": True},
            {
                "name": "store",
                "image": GO,
                "ports": [8080],
                "ready": {"path": "/healthz"},
                "reset": {"request": {"method": "GET", "path": "/hi"}},
            },
        ],
        "feeders": [{"name": "word", "csv": {"text": "text\nhi\n"}}],
        "requests": [{"name": "hi", "path": "/hi?{{word.text}}"}],
        "checks": [{"name": "hi", "path": "/hi?{{word.text}}", "expected": {"hello": "world"}}],
    },
}
_GO = {"name": "go", "image": GO}
# Runs that have, between them, every object of a run that others find by its name.
SHAPES: dict[str, dict[str, Any]] = {
    "tiers": run_manifest(RUN, [AXUM], repetitions=1),
    "embedded": run_manifest(
        RUN,
        [{"name": "go", "preset": "go-nethttp"}],
        repetitions=1,
        scenario="apibench",
        topology={"database": "sqlite", "upstream": {}, "delay": {"servers": "1ms"}},
    ),
    "around": run_manifest(
        RUN,
        [_GO],
        repetitions=1,
        scenario="around",
        topology={},
        loads=light(),
        generator={"parallelism": 2},
    ),
}


def _service() -> dict[str, Any]:
    return {"spec": {"selector": _LABELS, "ports": [{"port": 80}]}}


def _deployment() -> dict[str, Any]:
    template = {"metadata": {"labels": _LABELS}, "spec": _POD}
    return {"spec": {"replicas": 0, "selector": {"matchLabels": _LABELS}, "template": template}}


_CONFIG: dict[str, Any] = {"data": {"theirs": "yes"}}
# What a run named `shop` calls its objects, each with what a stranger would have in it.
BY_NAME: list[tuple[str, str, str, dict[str, Any]]] = [
    *(
        (shape, "Service", f"shop-{name}", _service())
        for shape, names in {
            "tiers": ("postgres", "pgbouncer", "haproxy", "server-axum"),
            "embedded": ("upstream", "delay"),
            "around": ("service-cache", "service-store", "generator"),
        }.items()
        for name in names
    ),
    *(
        (shape, "ConfigMap", f"shop-{name}", _CONFIG)
        for shape, names in {
            "tiers": ("postgres", "pgbouncer", "haproxy"),
            "embedded": ("sqlite",),
            "around": ("services", "feeders"),
        }.items()
        for name in names
    ),
    *(
        (shape, "Deployment", f"shop-{name}", _deployment())
        for shape, names in {
            "tiers": ("postgres", "pgbouncer", "haproxy", "server-axum"),
            "embedded": ("upstream", "delay"),
            "around": ("service-cache", "service-store"),
        }.items()
        for name in names
    ),
]


def _reset(purpose: str) -> str:
    return f"reset-{content_hash([purpose, 'store'])[:8]}"


BY_LABEL: list[tuple[str, str, dict[str, Any]]] = [
    ("Secret", "shop-database", {"stringData": {"password": "theirs"}}),
    ("ConfigMap", "shop-results", {"data": {"theirs": "yes"}}),
    ("ConfigMap", "shop-trial-001", {"data": {"theirs": "yes"}}),
    ("ConfigMap", "shop-trial-001-readings", {"data": {"theirs": "yes"}}),
    ("NetworkPolicy", "shop-network", {"spec": {"podSelector": {"matchLabels": _LABELS}}}),
    *(
        (
            "Job",
            f"shop-{name}",
            {
                "spec": {
                    "suspend": True,
                    "template": {
                        "metadata": {"labels": _LABELS},
                        "spec": {**_POD, "restartPolicy": "Never"},
                    },
                }
            },
        )
        for name in (
            *("verify-axum", "verify-go", "trial-001"),
            *(_reset("shop-verify-go"), _reset("shop-trial-001")),
        )
    ),
]
_API = {"Deployment": "apps/v1", "Job": "batch/v1", "NetworkPolicy": "networking.k8s.io/v1"}
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_POD["containers"][0]["securityContext"] = _RESTRICTED  # type: ignore[assignment]


def _create(cluster: Cluster, kind: str, name: str, content: dict[str, Any]) -> dict[str, Any]:
    manifest = {
        "apiVersion": _API.get(kind, "v1"),
        "kind": kind,
        # Some of a run's labels too: they prove nothing.
        "metadata": {"name": name, "labels": {**_LABELS, "laptime.dev/run": RUN}},
        **content,
    }
    cluster.create(manifest)
    deadline = time.monotonic() + 30
    # Its controller writes an annotation into it.
    while kind == "Deployment" and not _observed(cluster.get("deployment", name)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return cluster.get(kind.lower(), name)


def _observed(deployment: dict[str, Any]) -> bool:
    return (deployment.get("status") or {}).get("observedGeneration") == 1


def _untouched(cluster: Cluster, before: dict[str, Any]) -> None:
    now = cluster.get(before["kind"].lower(), before["metadata"]["name"])
    # Its controller may say in its status how it is.
    for one in (before, now):
        one.pop("status", None)
        one["metadata"].pop("resourceVersion", None)
        one["metadata"].pop("managedFields", None)
    assert now == before


def _end(cluster: Cluster, run: str) -> None:
    cluster.delete("benchmarkrun", run)
    deadline = time.monotonic() + 60
    while cluster.items("pods,jobs,deployments,services,configmaps", "laptime.dev/run-uid"):
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.parametrize(
    ("shape", "kind", "name", "content"),
    BY_NAME,
    ids=[f"{kind}-{name}" for _, kind, name, _ in BY_NAME],
)
def test_where_a_name_is_needed_the_run_says_so_and_touches_nothing(
    cluster: Cluster, shape: str, kind: str, name: str, content: dict[str, Any]
) -> None:
    theirs = _create(cluster, kind, name, content)
    cluster.apply(_AROUND)
    run = cluster.apply(SHAPES[shape])
    cluster.wait(
        run, "NameTaken", lambda s: condition(s, "Succeeded").get("reason") == "NameTaken", 30
    )
    status = cluster.wait_end(run, 60)
    assert status["state"] == "Failed"
    assert f"{kind} {name}" in condition(status, "Succeeded")["message"]
    _untouched(cluster, theirs)
    _end(cluster, run)
    _untouched(cluster, theirs)
    cluster.delete(kind.lower(), name)


@pytest.mark.parametrize("around", [False, True], ids=["database", "services"])
def test_where_no_name_is_needed_the_run_is_measured_all_the_same(
    cluster: Cluster, around: bool
) -> None:
    theirs = [_create(cluster, *one) for one in BY_LABEL]
    cluster.apply(_AROUND)
    small: dict[str, Any] = {"loads": light(), "topology": POSTGRES_ALONE}
    database = run_manifest(RUN, [AXUM], repetitions=2, **small)
    run = cluster.apply(SHAPES["around"] if around else database)
    status = cluster.wait_end(run, 180)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert [row["trials"] for row in status["results"]] == [1 if around else 2]
    assert status["resultsConfigMap"] != "shop-results"
    cluster.wait_folded(run)
    mine = cluster.items("configmaps", "laptime.dev/run-uid")
    assert [one["metadata"]["name"] for one in mine] == [status["resultsConfigMap"]]
    assert json.loads(stored_in(mine).files["results.json"])["run"]["name"] == RUN
    for one in theirs:
        _untouched(cluster, one)
    _end(cluster, run)
    for one in theirs:
        _untouched(cluster, one)
        kind, name = one["kind"].lower(), one["metadata"]["name"]
        cluster.delete(kind, name)


def test_a_run_applied_again_under_the_same_name_is_another_run(cluster: Cluster) -> None:
    small: dict[str, Any] = {"loads": light(), "topology": POSTGRES_ALONE}
    first = cluster.apply(run_manifest(RUN, [AXUM], repetitions=3, **small))
    cluster.wait(
        first, "its first result", lambda s: s.get("progress", {}).get("completed", 0) >= 1, 90
    )
    # Background: its objects are still there when the next one begins.
    cluster.delete("benchmarkrun", first)
    again = cluster.apply(run_manifest(RUN, [AXUM], repetitions=2, **small))
    uid = cluster.get("benchmarkrun", again)["metadata"]["uid"]
    status = cluster.wait_end(again, 180)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert [row["trials"] for row in status["results"]] == [2]
    left = cluster.items("configmaps", "laptime.dev/run=shop,laptime.dev/component=result")
    assert {one["metadata"]["labels"]["laptime.dev/run-uid"] for one in left} == {uid}
    assert len(cluster.documents(again)) == 2
    _end(cluster, again)
