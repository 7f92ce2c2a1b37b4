"""Upgrading the chart takes nothing from runs: one that is over keeps its results, one goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conftest import CHART, OPERATOR_NAMESPACE, Tool

from .harness import AXUM, POSTGRES_ALONE, Cluster, condition, light, run_manifest

EARLIER = "0.0.9"


def test_an_upgrade_keeps_results_and_a_run_in_progress_goes_on(
    helm: Tool, operator: str, cluster: Cluster, tmp_path: Path
) -> None:
    # The same templates under an earlier version, which gives all objects other labels.
    helm("package", str(CHART), "--version", EARLIER, "--destination", str(tmp_path))
    package = tmp_path / f"laptime-{EARLIER}.tgz"
    _upgrade(helm, operator, str(package))
    try:
        assert _deployed(helm, operator) == f"laptime-{EARLIER}"
        small: dict[str, Any] = {"loads": light("2s"), "topology": POSTGRES_ALONE}
        done = cluster.apply(run_manifest("before", [AXUM], repetitions=1, **small))
        assert cluster.wait_end(done, 120)["state"] == "Succeeded"
        before = _kept(cluster, done)
        going = cluster.apply(run_manifest("meanwhile", [AXUM], repetitions=6, **small))
        cluster.wait(
            going, "its first trial", lambda s: s.get("progress", {}).get("completed", 0) >= 1, 90
        )
        # Images that cannot be pulled, and a cap: a run that goes on knows nothing of them.
        _upgrade(helm, operator, str(CHART), *_tags("no-such-tag"), _caps(cluster, 5))
        assert _deployed(helm, operator) != f"laptime-{EARLIER}"
        _refuses_more_than_the_cap(cluster)
        status = cluster.wait_end(going, 180)
    finally:
        _upgrade(helm, operator, str(CHART), *_tags(""), "--set-json=runs.caps=null")
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    (row,) = status["results"]
    ran = list(cluster.documents(going).values())
    assert len(ran) == 6
    assert {part for one in ran for part in one["images"]} >= {"server", "generator", "postgres"}
    assert all(one["images"] == ran[0]["images"] for one in ran)
    assert (row["trials"], row["failedTrials"]) == (6, 0)
    assert _kept(cluster, done) == before


def _refuses_more_than_the_cap(cluster: Cluster) -> None:
    large = cluster.apply(run_manifest("large", [AXUM], repetitions=6))
    status = cluster.wait(
        large, "a refusal", lambda s: condition(s, "Accepted").get("status") == "False", 30
    )
    refused = condition(status, "Accepted")
    assert refused["reason"] == "CapExceeded", refused
    assert "6 trials" in refused["message"], refused
    cluster.delete("benchmarkrun", large)


def _caps(cluster: Cluster, trials: int) -> str:
    return "--set-json=runs.caps=" + json.dumps({cluster.namespace: {"trials": trials}})


def _upgrade(helm: Tool, release: str, chart: str, *more: str) -> None:
    helm(
        *("upgrade", release, chart, "-n", OPERATOR_NAMESPACE, *more),
        *("--reset-then-reuse-values", "--wait", "--timeout", "120s"),
    )


def _tags(tag: str) -> list[str]:
    """Return the flags that give images of runs, which the chart itself does not start, a tag."""
    images = ("generator", "postgres", "servers.axum-sqlx")
    return [f"--set=images.{image}.tag={tag}" for image in images]


def _deployed(helm: Tool, release: str) -> str:
    (found,) = helm.json("list", "-n", OPERATOR_NAMESPACE, "--filter", release, "-o", "json")
    chart: str = found["chart"]
    return chart


def _kept(cluster: Cluster, run: str) -> dict[str, Any]:
    """Return what must not change: the run's identity and status, and its stored results."""
    cluster.wait_folded(run)
    found = cluster.get("benchmarkrun", run)
    stored = cluster.items("configmaps", f"laptime.dev/run={run}")
    return {
        "uid": found["metadata"]["uid"],
        "results": found["status"]["results"],
        "stored": {
            one["metadata"]["name"]: (one["metadata"]["uid"], one["binaryData"]) for one in stored
        },
    }
