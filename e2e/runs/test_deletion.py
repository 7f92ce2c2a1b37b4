"""Deleting never needs the operator."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from .harness import AXUM, Cluster, light, run_manifest


@pytest.fixture
def without_operator(kubectl: Any) -> Iterator[Any]:
    """Return a function that takes the operator away; it is back after the test."""

    def take_away() -> None:
        kubectl("scale", "-n", "laptime-system", "deployment", "laptime-operator", "--replicas=0")
        kubectl(
            *("wait", "-n", "laptime-system", "--for=delete", "pod", "--timeout=60s"),
            *("-l", "app.kubernetes.io/component=operator"),
        )

    yield take_away
    kubectl("scale", "-n", "laptime-system", "deployment", "laptime-operator", "--replicas=1")
    kubectl(
        *("rollout", "status", "-n", "laptime-system", "deployment/laptime-operator"),
        "--timeout=90s",
    )


def _measuring(cluster: Cluster, run: str) -> None:
    cluster.wait(run, "its first result", lambda s: s.get("progress", {}).get("completed"), 120)


def test_a_deleted_run_takes_everything_with_it_while_the_operator_is_away(
    cluster: Cluster, without_operator: Any
) -> None:
    run = cluster.apply(run_manifest("deleted", [AXUM], loads=light(), repetitions=5))
    _measuring(cluster, run)
    without_operator()
    assert cluster.left_of(run)
    cluster.delete("benchmarkrun", run)
    deadline = time.monotonic() + 90
    while left := cluster.left_of(run):
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.5)


def test_deleting_a_namespace_is_never_blocked(cluster: Cluster, without_operator: Any) -> None:
    run = cluster.apply(run_manifest("with-namespace", [AXUM], loads=light(), repetitions=5))
    _measuring(cluster, run)
    without_operator()
    cluster.kubectl("delete", "namespace", cluster.namespace, "--timeout=90s", timeout=100)
