"""What is read from the objects of the API server."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.reconcile.views import job_view, pod_view


def pod(**labels: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "demo-trial-001-2-x7k",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"laptime.dev/component": "generator", **labels},
        },
        "spec": {"containers": [{"image": "k6"}]},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize(
    ("labels", "index"), [({}, 0), ({"batch.kubernetes.io/job-completion-index": "2"}, 2)]
)
def test_a_pod_of_an_indexed_job_knows_its_place(labels: dict[str, str], index: int) -> None:
    assert pod_view(pod(**labels)).index == index


@pytest.mark.parametrize(
    ("status", "made"),
    [
        ({}, 0),
        ({"active": 2}, 2),
        ({"active": 1, "failed": 1}, 2),
        ({"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["u"]}}, 2),
        ({"uncountedTerminatedPods": {"failed": ["u"]}}, 1),
    ],
)
def test_a_job_says_how_many_pods_it_has_had(status: dict[str, Any], made: int) -> None:
    metadata = {"name": "demo-trial-001", "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert job_view({"metadata": metadata, "status": status}).made == made
