"""A run that is paused gives its turn away and loses nothing; a cancelled one keeps what it has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from .harness import (
    AXUM,
    POSTGRES_ALONE,
    SYNC,
    TWIN,
    Cluster,
    condition,
    light,
    namespace_for_runs,
    over,
    run_manifest,
)

SMALL: dict[str, Any] = {"loads": light(), "topology": POSTGRES_ALONE, "repetitions": 5}
LOADS = [{"name": "closed", "closed": {"connections": 4, "duration": "1s"}, "warmup": "500ms"}]


def completed(at_least: int) -> Any:
    return lambda status: (status.get("progress") or {}).get("completed", 0) >= at_least


@dataclass(frozen=True)
class Story:
    """Two runs: while the first one pauses the other one is measured and cancelled."""

    cluster: Cluster
    first: str
    other: str
    paused: dict[str, Any]
    """Status of the first one when it paused."""
    left: set[str]
    """Kinds of what was left of it then."""
    meanwhile: dict[str, Any]
    """Status of the first one when the other one was over."""
    cancelled: dict[str, Any]
    """Status of the other one at its end."""
    left_of_cancelled: set[str]
    resumed: dict[str, Any]
    """Status of the first one at its end."""


@pytest.fixture(scope="module")
def story(kubectl: Any, reader: Any, operator: str) -> Iterator[Story]:
    with namespace_for_runs(reader) as name:
        cluster = Cluster(kubectl, reader, name)
        small: dict[str, Any] = {"topology": POSTGRES_ALONE, "repetitions": 2}
        first = cluster.apply(run_manifest("first", [TWIN, AXUM], loads=light(), **small))
        cluster.wait(first, "its first trial", completed(1), 90)
        cluster.wish(first, suspend=True)
        paused = cluster.wait(first, "its pause", lambda s: s["state"] == "Suspended", 60)
        left = kinds_left(cluster, first)
        many = {**small, "repetitions": 10}
        other = cluster.apply(run_manifest("other", [SYNC, AXUM], loads=LOADS, **many))
        cluster.wait(other, "two trials of each", completed(4), 120)
        cluster.wish(other, cancel=True)
        cancelled = cluster.wait_end(other, 60)
        left_of_cancelled = kinds_left(cluster, other)
        meanwhile = cluster.status(first)
        cluster.wish(first, suspend=False)
        resumed = cluster.wait_end(first, 150)
        yield Story(
            *(cluster, first, other, paused, left, meanwhile),
            *(cancelled, left_of_cancelled, resumed),
        )


def kinds_left(cluster: Cluster, run: str) -> set[str]:
    return {one.partition("/")[0] for one in cluster.left_of(run)}


def test_while_a_run_pauses_another_one_is_measured_and_then_it_goes_on(story: Story) -> None:
    assert condition(story.paused, "Suspended")["status"] == "True"
    over = story.paused["progress"]["completed"]
    assert 1 <= over < 4
    assert story.left <= {"ConfigMap", "Secret"}, story.left
    assert story.cancelled["progress"]["completed"] >= 4
    assert story.meanwhile["state"] == "Suspended"
    assert story.meanwhile["progress"]["completed"] == over
    status = story.resumed
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert [row["trials"] for row in status["results"]] == [2, 2]
    # On a full machine a pod of an earlier trial may end late, which has the trial repeated.
    lost = [
        one
        for result in story.cluster.documents(story.first).values()
        for one in result.get("lostAttempts", [])
    ]
    assert all(one["reason"] == "PodsOverlapped" for one in lost), lost


def test_a_cancelled_run_ends_with_the_figures_of_what_it_has_measured(story: Story) -> None:
    cluster, run, status = story.cluster, story.other, story.cancelled
    assert status["state"] == "Cancelled"
    assert condition(status, "Succeeded")["reason"] == "Cancelled"
    rows = {row["server"]: row for row in status["results"]}
    assert all(2 <= row["trials"] < 10 for row in rows.values())
    assert rows["axum"]["factor"]["value"] > 1
    report = cluster.get("configmap", status["resultsConfigMap"])
    assert report["metadata"]["name"] == f"{run}-results"
    assert story.left_of_cancelled == {"ConfigMap"}
    refused = cluster.kubectl.run(
        *("patch", "br", run, "-n", cluster.namespace, "--type=merge"),
        *("-p", json.dumps({"spec": {"cancel": False}})),
    )
    assert refused.returncode != 0
    assert "a cancelled run cannot go on" in refused.stderr


def test_a_namespace_that_had_no_time_yet_comes_first_and_who_waits_is_cancelled_at_once(
    cluster: Cluster,
) -> None:
    first = cluster.apply(run_manifest("holds", [AXUM], **{**SMALL, "repetitions": 50}))
    cluster.wait(first, "its turn", lambda s: s.get("state") not in (None, "Queued"), 30)
    waits = cluster.apply(run_manifest("waits", [AXUM], **SMALL))
    last = cluster.apply(run_manifest("last", [AXUM], **SMALL))
    for run in (waits, last):
        cluster.wait(run, "its place in the queue", lambda s: s.get("state") == "Queued", 30)
    cluster.wish(last, cancel=True)
    assert cluster.wait_end(last, 30)["state"] == "Cancelled"
    assert not over(cluster.status(first))
    with namespace_for_runs(cluster.reader) as name:
        elsewhere = Cluster(cluster.kubectl, cluster.reader, name)
        late = elsewhere.apply(run_manifest("late", [AXUM], **SMALL))
        elsewhere.wait(late, "its place in the queue", lambda s: s.get("state") == "Queued", 30)
        cluster.wish(first, cancel=True)
        assert cluster.wait_end(first, 60)["state"] == "Cancelled"
        elsewhere.wait(late, "its turn", lambda s: s.get("state") not in (None, "Queued"), 30)
        assert cluster.status(waits)["state"] == "Queued"
        elsewhere.wish(late, cancel=True)
        assert elsewhere.wait_end(late, 60)["state"] == "Cancelled"
    cluster.wish(waits, cancel=True)
    assert cluster.wait_end(waits, 60)["state"] == "Cancelled"
