"""A whole run, in a namespace at the restricted Pod Security level."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

from .harness import (
    ASYNC,
    AXUM,
    POSTGRES_ALONE,
    SYNC,
    Cluster,
    condition,
    light,
    over,
    run_manifest,
)


def test_a_run_measures_compares_and_leaves_only_its_results(cluster: Cluster) -> None:
    run = cluster.apply(run_manifest("whole", [SYNC, ASYNC, AXUM], baseline="sync", seed=7))
    status = cluster.wait_end(run, 240)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert condition(status, "Succeeded")["status"] == "True"
    assert condition(status, "ServersVerified")["status"] == "True"
    # Nobody asked for any.
    assert not condition(status, "ObjectivesMet")
    assert status["seed"] == 7
    rows = {row["server"]: row for row in status["results"]}
    assert {name: row["trials"] for name, row in rows.items()} == {"sync": 2, "async": 2, "axum": 2}
    assert all(row["errors"] == 0 for row in rows.values())
    assert rows["sync"]["factor"]["value"] == 1
    assert 1 < rows["async"]["factor"]["value"] < rows["axum"]["factor"]["value"]
    # Two short repetitions on a busy machine need not tell servers apart; the verdict says so.
    assert "axum" in status["fastest"]
    assert "axum" in status["verdict"]
    trials = {f"{run}-trial-{n:03d}" for n in range(1, 7)}
    storage = cluster.wait_folded(run)["storage"]
    assert cluster.left_of(run) == {f"ConfigMap/{run}-results"}
    assert 0 < storage["bytes"] < 60_000
    documents = cluster.documents(run)
    assert set(documents) == set(cluster.documents(run, "readings.json")) == trials
    results = json.loads(cluster.stored(run).files["results.json"])
    assert len(results["trials"]) == 6
    assert results["verdict"] == status["verdict"]

    # One line of kubectl, and describe, tell the result as well.
    line = cluster.kubectl("get", "br", run, "-n", cluster.namespace)
    assert all(word in line for word in ("Succeeded", "axum", "users", "6/6")), line
    described = cluster.kubectl("describe", "br", run, "-n", cluster.namespace)
    assert status["verdict"] in described
    assert "Requests Per Second" in described

    # What ran in between left its traces in the events.
    events = cluster.kubectl("get", "events", "-n", cluster.namespace)
    assert all(word in events for word in ("Deploying", "Verifying", "Running", "Succeeded"))

    # The trials ran one after the other, in blocks with every server once.
    results = [documents[trial] for trial in sorted(trials)]
    for before, after in itertools.pairwise(results):
        assert before["finishedAt"] <= after["startedAt"]
    for block in (results[:3], results[3:]):
        assert {result["server"] for result in block} == {"sync", "async", "axum"}


def test_two_runs_queue_and_one_with_a_time_to_live_deletes_itself(cluster: Cluster) -> None:
    small: dict[str, Any] = {"loads": light(), "topology": POSTGRES_ALONE, "repetitions": 1}
    # The least that there is. It goes by while the other one is measured.
    short_lived = {**small, "ttlSecondsAfterFinished": 30}
    first = cluster.apply(run_manifest("queue-a", [AXUM], **short_lived))
    second = cluster.apply(run_manifest("queue-b", [AXUM], **small))
    cluster.wait(second, "its place in the queue", lambda s: s.get("state") == "Queued", 20)
    queued = ("--field-selector", "status.state=Queued", "-n", cluster.namespace, "-o", "name")
    assert cluster.kubectl("get", "br", *queued).split() == [f"benchmarkrun.laptime.dev/{second}"]
    while True:
        pods_of_second = cluster.items("pods", f"laptime.dev/run={second}")
        if over(cluster.status(first)):
            break
        assert not pods_of_second
        time.sleep(0.5)
    assert cluster.status(first)["state"] == "Succeeded"
    assert cluster.wait_end(second, 120)["state"] == "Succeeded"
    deadline = time.monotonic() + 90
    while cluster.find("benchmarkrun", first) is not None:
        assert time.monotonic() < deadline, "its time to live is over"
        time.sleep(0.5)
    # The other one has none.
    assert cluster.status(second)["state"] == "Succeeded"


def test_the_load_may_be_bound_by_requests_and_they_are_counted_exactly(cluster: Cluster) -> None:
    loads = [
        {"name": "fixed", "closed": {"connections": 4, "requests": 3000}, "warmup": "1s"},
        {"name": "many", "closed": {"connections": 4, "requests": 3000, "keepAlive": False}},
    ]
    run = cluster.apply(
        run_manifest("counted", [AXUM], repetitions=1, loads=loads, topology={"postgres": {}})
    )
    status = cluster.wait_end(run, 120)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert {row["load"]: row["requests"] for row in status["results"]} == {
        "fixed": 3000,
        "many": 3000,
    }
