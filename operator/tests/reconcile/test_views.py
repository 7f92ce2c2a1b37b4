"""What is read from the objects of the API server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from laptime.reconcile.diagnose import diagnose, late
from laptime.reconcile.sightings import Sightings
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


def test_a_pod_behind_a_scheduling_gate_is_said_to_wait_for_whoever_set_it() -> None:
    """The scheduler leaves it alone, and says no more than that it does."""
    gated = pod()
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/budget"}]
    gated["spec"]["schedulingGates"] = gates
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    gated["status"] = {"phase": "Pending", "conditions": [condition]}
    view = pod_view(gated)

    def after(seconds: float) -> datetime:
        return view.created + timedelta(seconds=seconds)

    assert diagnose("Postgres", [view], after(3)) is None
    problem = diagnose("Postgres", [view], after(5))
    assert problem is not None
    assert (problem.reason, problem.fatal) == ("NotScheduled", False)
    assert problem.message == (
        "the pod of Postgres waits behind the scheduling gates kueue.x-k8s.io/admission and "
        "example.com/budget: whoever set them has to let it go, or to leave the run's namespace out"
    )
    overdue = late("Postgres", [view], {}, 30, after(40))
    assert overdue is not None
    assert overdue.message == problem.message
    # Let go, it is the scheduler's.
    del gated["spec"]["schedulingGates"]
    assert diagnose("Postgres", [pod_view(gated)], after(5)) is None


@pytest.mark.parametrize("set_by", [-3600, 0, 3600])
def test_ages_go_by_the_clock_that_nobody_sets(set_by: int) -> None:
    sightings, now = Sightings(), datetime(2026, 11, 1, tzinfo=UTC)
    ends = pod() | {"metadata": {**pod()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    jobs = [job_view({"metadata": pod()["metadata"]})]
    sightings.look([pod_view(ends)], jobs, now, 1000.0)
    now += timedelta(seconds=set_by + 90)
    (seen,), (job,) = sightings.look([pod_view(ends)], jobs, now, 1090.0)
    assert (seen.age(now), job.age(now), seen.stuck(now)) == (90, 90, False)
    now += timedelta(seconds=30)
    (seen,), _ = sightings.look([pod_view(ends)], jobs, now, 1120.0)
    assert seen.stuck(now)
