"""Nothing that is not a run's own is ever changed or deleted, and no run hangs for a name."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from laptime.manifests.objects import content_hash, known_as
from laptime.report.archive import stored_in

from .harness import AXUM, POSTGRES_ALONE, Cluster, condition, light, run_manifest
from .strangers import make, untouched

RUN = "shop"
# Some of a run's labels too: they prove nothing.
RUNS_LABEL = {"laptime.dev/run": RUN}

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


# What a run named `shop` calls its objects that others find by their names.
BY_NAME: list[tuple[str, str, str]] = [
    *(
        (shape, kind, f"shop-{name}")
        for kind, shapes in {
            "Service": {
                "tiers": ("postgres", "pgbouncer", "haproxy", "server-axum"),
                "embedded": ("upstream", "delay"),
                "around": ("service-cache", "service-store", "generator"),
            },
            "ConfigMap": {
                "tiers": ("postgres", "pgbouncer", "haproxy"),
                "embedded": ("sqlite",),
                "around": ("services", "feeders"),
            },
            "Deployment": {
                "tiers": ("postgres", "pgbouncer", "haproxy", "server-axum"),
                "embedded": ("upstream", "delay"),
                "around": ("service-cache", "service-store"),
            },
        }.items()
        for shape, names in shapes.items()
        for name in names
    ),
]


def _reset(purpose: str) -> str:
    return f"reset-{content_hash([purpose, 'store'])[:8]}"


# Those that nothing finds by their names.
BY_LABEL: list[tuple[str, str]] = [
    ("Secret", "shop-database"),
    ("ConfigMap", "shop-results"),
    ("ConfigMap", "shop-scenario"),
    ("ConfigMap", "shop-trial-001"),
    ("ConfigMap", "shop-trial-001-readings"),
    ("ConfigMap", "shop-flame-axum"),
    ("NetworkPolicy", "shop-network"),
    *(
        ("Job", f"shop-{name}")
        for name in (
            *("verify-axum", "verify-go", "trial-001", "flame-axum"),
            *(_reset("shop-verify-go"), _reset("shop-trial-001")),
        )
    ),
]


def _end(cluster: Cluster, run: str) -> None:
    cluster.delete("benchmarkrun", run)
    deadline = time.monotonic() + 60
    while cluster.items("pods,jobs,deployments,services,configmaps", "laptime.dev/run-uid"):
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.parametrize(
    ("shape", "kind", "name"), BY_NAME, ids=[f"{kind}-{name}" for _, kind, name in BY_NAME]
)
def test_where_a_name_is_needed_the_run_says_so_and_touches_nothing(
    cluster: Cluster, shape: str, kind: str, name: str
) -> None:
    theirs = make(cluster, kind, name, **RUNS_LABEL)
    cluster.apply(_AROUND)
    run = cluster.apply(SHAPES[shape])
    cluster.wait(
        run, "NameTaken", lambda s: condition(s, "Succeeded").get("reason") == "NameTaken", 30
    )
    status = cluster.wait_end(run, 60)
    assert status["state"] == "Failed"
    assert f"{kind} {name}" in condition(status, "Succeeded")["message"]
    untouched(cluster, theirs)
    _end(cluster, run)
    untouched(cluster, theirs)
    cluster.delete(kind.lower(), name)


@pytest.mark.parametrize("around", [False, True], ids=["database", "services"])
def test_where_no_name_is_needed_the_run_is_measured_all_the_same(
    cluster: Cluster, around: bool
) -> None:
    theirs = [make(cluster, *one, **RUNS_LABEL) for one in BY_LABEL]
    cluster.apply(_AROUND)
    small: dict[str, Any] = {"loads": light(), "topology": POSTGRES_ALONE}
    database = run_manifest(RUN, [{**AXUM, "profile": True}], repetitions=2, **small)
    run = cluster.apply(SHAPES["around"] if around else database)
    status = cluster.wait_end(run, 180)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert [row["trials"] for row in status["results"]] == [1 if around else 2]
    assert status["resultsConfigMap"] != "shop-results"
    cluster.wait_folded(run)
    mine = cluster.items("configmaps", "laptime.dev/run-uid")
    assert [one["metadata"]["name"] for one in mine] == [status["resultsConfigMap"]]
    stored = stored_in(mine)
    assert json.loads(stored.files["results.json"])["run"]["name"] == RUN
    names = {known_as(one["metadata"]) for one in stored.objects}
    assert {"shop-scenario", "shop-trial-001"} <= names
    assert ("shop-flame-axum" in names) is not around
    for one in theirs:
        untouched(cluster, one)
    _end(cluster, run)
    for one in theirs:
        untouched(cluster, one)
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
