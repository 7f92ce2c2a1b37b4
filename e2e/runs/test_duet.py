"""Two servers at the same time: on a real node their loads begin and end together."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import Any

from laptime.measure.generator import GeneratorResult, parse_payload

from .harness import Cluster, run_manifest, under_load
from .test_seconds import trials_of

LOADS = [{"name": "closed", "closed": {"connections": 4, "duration": "2s"}, "warmup": "500ms"}]
REPETITIONS = 3
SERVERS = [
    {"name": name, "preset": "go-nethttp", "resources": {"cpu": cpu, "memory": "64Mi"}}
    for name, cpu in (("quick", "180m"), ("slow", "60m"))
]


def duet(name: str, **more: Any) -> dict[str, Any]:
    changed = {"scenario": "hello", "topology": {}, "loads": LOADS, "repetitions": REPETITIONS}
    return run_manifest(name, SERVERS, pairing="duet", **{**changed, **more})


def begins_of(cluster: Cluster, run: str) -> dict[str, float]:
    """Return when the measured part of each trial was to begin, in Unix seconds.

    On a full node its first request can be late; that it is said of both is what is asked here.
    """
    found = {}
    for result, payload in trials_of(cluster, run):
        parsed = parse_payload(payload)
        assert isinstance(parsed, GeneratorResult)
        begin = parsed.phases["measured"].started_at
        assert begin is not None, result
        found[result["trial"]] = begin
    return found


def _met(apart: list[float]) -> None:
    """Fail unless loads of pairs began together, from how many seconds lie between their begins.

    A wrong way of meeting shifts each; one answer that was late on a full node shifts one, by half
    of the two seconds that are waited for it at most.
    """
    assert median(apart) < 0.1, apart
    assert max(apart) < 1.0, apart


def late(lost: dict[str, Any]) -> bool:
    """Whether an attempt was lost since a generator had no CPU at the start, as on a full node."""
    return "the others have begun already" in str(lost["message"])


def partner(result: dict[str, Any]) -> str:
    """Return the trial that was measured at the same time, whichever attempt of it that was."""
    return str(result["beside"]).partition("-attempt-")[0]


def test_two_servers_are_measured_at_the_same_time(cluster: Cluster) -> None:
    run = cluster.apply(duet("duet"))
    status = cluster.wait_end(run, 240)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    results = cluster.documents(run)
    assert len(results) == 2 * REPETITIONS
    begins = begins_of(cluster, run)
    leaders, apart = [], []
    for name, result in sorted(results.items()):
        assert result["outcome"] == "Measured", result
        other = results[partner(result)]
        assert (partner(other), other["repetition"]) == (name, result["repetition"])
        apart.append(abs(begins[name] - begins[other["trial"]]))
        leaders += [result["server"]] if name < other["trial"] else []
    _met(apart)
    # Each is made first at least once.
    assert set(leaders) == {"quick", "slow"}
    rows = {row["server"]: row for row in status["results"]}
    # A third of the CPU: that is not exact, and no node is too busy for it to show.
    assert 0.15 < rows["slow"]["factor"]["value"] < 0.6, json.dumps(rows, indent=1)
    assert "at the same time (duet)" in status["verdict"]
    # What is measured beside a server is none of its own use, and none of its neighbours.
    for name, readings in cluster.documents(run, "readings.json").items():
        parts = [(one["component"], one["server"]) for one in readings["usage"]["components"]]
        server = results[name]["server"]
        assert sorted(parts) == [("generator", server), ("server", server)]
        for node in readings["usage"]["nodes"]:
            assert not [one for one in node.get("neighbours", ()) if run in one["pod"]], node


def test_when_one_of_two_generators_is_lost_both_are_measured_again(cluster: Cluster) -> None:
    # Longer than it takes on a full node until a pod is known to run.
    longer = {**LOADS[0], "closed": {"connections": 4, "duration": "9s"}}
    run = cluster.apply(duet("duet-lost", loads=[longer], generator={"parallelism": 2}))
    first = [f"{run}-trial-{number:03d}" for number in (1, 2)]
    deadline = time.monotonic() + 90
    seen: set[str] = set()
    while True:
        running = under_load(cluster, run, *first)
        if len(running) == 4 and running == seen:
            break
        # Those of an attempt that is lost at its start are gone a moment later.
        seen = running
        assert time.monotonic() < deadline, cluster.status(run)
        time.sleep(1 if len(running) == 4 else 0.2)
    cluster.reader.delete(cluster.path("pods", max(running)), gracePeriodSeconds="0")
    status = cluster.wait_end(run, 240)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    results = cluster.documents(run)
    # Both of a pair were measured at the same attempt, whoever was lost.
    for result in results.values():
        assert result["attempt"] == results[partner(result)]["attempt"], results
    lost = {name: [one["fault"] for one in results[name]["lostAttempts"]] for name in results}
    of_pods = {
        name: [one for one in results[name]["lostAttempts"] if not late(one)] for name in results
    }
    # Who looks when the pod is gone altogether knows only that a generator was lost.
    said = {one["fault"] for name in first for one in of_pods[name]}
    assert said in ({"cluster", "partner"}, {"generator", "partner"}), lost
    assert [len(of_pods[name]) for name in first] == [1, 1], lost
    assert not any(of_pods[name] for name in results if name not in first), lost
    begins = begins_of(cluster, run)
    _met([abs(begins[one] - begins[partner(results[one])]) for one in results])
    # As those that were measured at once.
    assert abs(begins[first[0]] - begins[first[1]]) < 0.5
