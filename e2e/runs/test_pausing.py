"""A run that is paused gives its turn away and loses nothing; a cancelled one keeps what it has."""

from __future__ import annotations

import json
from typing import Any

from .harness import AXUM, SYNC, Cluster, condition, namespace_for_runs, run_manifest

LOADS = [{"name": "closed", "closed": {"connections": 4, "duration": "1s"}, "warmup": "1s"}]


def wish(cluster: Cluster, run: str, **fields: bool) -> None:
    """Change the spec of a run, as its author may."""
    patch = json.dumps({"spec": fields})
    cluster.kubectl("patch", "br", run, "-n", cluster.namespace, "--type=merge", "-p", patch)


def completed(at_least: int) -> Any:
    return lambda status: (status.get("progress") or {}).get("completed", 0) >= at_least


def test_while_a_run_pauses_another_one_is_measured_and_then_it_goes_on(cluster: Cluster) -> None:
    first = cluster.apply(run_manifest("first", [SYNC, AXUM], loads=LOADS, repetitions=3))
    cluster.wait(first, "its first trial", completed(1), 90)
    wish(cluster, first, suspend=True)
    paused = cluster.wait(first, "its pause", lambda s: s["state"] == "Suspended", 60)
    assert condition(paused, "Suspended")["status"] == "True"
    over = paused["progress"]["completed"]
    assert 1 <= over < 6
    left = {one.partition("/")[0] for one in cluster.left_of(first)}
    assert left <= {"ConfigMap", "Secret"}, left
    other = cluster.apply(run_manifest("other", [AXUM], loads=LOADS, repetitions=1))
    assert cluster.wait_end(other, 90)["state"] == "Succeeded"
    assert cluster.status(first)["progress"]["completed"] == over
    wish(cluster, first, suspend=False)
    status = cluster.wait_end(first, 150)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert [row["trials"] for row in status["results"]] == [3, 3]
    # On a full machine a pod of an earlier trial may end late, which has the trial repeated.
    lost = [
        one
        for result in cluster.documents(first).values()
        for one in result.get("lostAttempts", [])
    ]
    assert all(one["reason"] == "PodsOverlapped" for one in lost), lost


def test_a_cancelled_run_ends_with_the_figures_of_what_it_has_measured(cluster: Cluster) -> None:
    run = cluster.apply(run_manifest("dropped", [SYNC, AXUM], loads=LOADS, repetitions=10))
    cluster.wait(run, "two trials of each", completed(4), 120)
    wish(cluster, run, cancel=True)
    status = cluster.wait_end(run, 60)
    assert status["state"] == "Cancelled"
    assert condition(status, "Succeeded")["reason"] == "Cancelled"
    rows = {row["server"]: row for row in status["results"]}
    assert all(2 <= row["trials"] < 10 for row in rows.values())
    assert rows["axum"]["factor"]["value"] > 1
    report = cluster.get("configmap", status["resultsConfigMap"])
    assert report["metadata"]["name"] == f"{run}-results"
    assert {one.partition("/")[0] for one in cluster.left_of(run)} == {"ConfigMap"}
    refused = cluster.kubectl.run(
        *("patch", "br", run, "-n", cluster.namespace, "--type=merge"),
        *("-p", json.dumps({"spec": {"cancel": False}})),
    )
    assert refused.returncode != 0
    assert "a cancelled run cannot go on" in refused.stderr


def test_a_namespace_that_had_no_time_yet_comes_first_and_who_waits_is_cancelled_at_once(
    cluster: Cluster,
) -> None:
    first = cluster.apply(run_manifest("holds", [AXUM], loads=LOADS, repetitions=5))
    cluster.wait(first, "its turn", lambda s: s.get("state") not in (None, "Queued"), 30)
    waits = cluster.apply(run_manifest("waits", [AXUM], loads=LOADS, repetitions=5))
    last = cluster.apply(run_manifest("last", [AXUM], loads=LOADS, repetitions=5))
    for run in (waits, last):
        cluster.wait(run, "its place in the queue", lambda s: s.get("state") == "Queued", 30)
    wish(cluster, last, cancel=True)
    assert cluster.wait_end(last, 10)["state"] == "Cancelled"
    with namespace_for_runs(cluster.kubectl) as name:
        elsewhere = Cluster(cluster.kubectl, cluster.reader, name)
        late = elsewhere.apply(run_manifest("late", [AXUM], loads=LOADS, repetitions=5))
        elsewhere.wait(late, "its place in the queue", lambda s: s.get("state") == "Queued", 30)
        wish(cluster, first, cancel=True)
        assert cluster.wait_end(first, 60)["state"] == "Cancelled"
        elsewhere.wait(late, "its turn", lambda s: s.get("state") == "Deploying", 30)
        assert cluster.status(waits)["state"] == "Queued"
        wish(elsewhere, late, cancel=True)
        assert elsewhere.wait_end(late, 60)["state"] == "Cancelled"
    wish(cluster, waits, cancel=True)
    assert cluster.wait_end(waits, 60)["state"] == "Cancelled"
