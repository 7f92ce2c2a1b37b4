"""Several generators for one trial: they start together, share the load, and count as one."""

from __future__ import annotations

import json
import time
from typing import Any

from .harness import AXUM, POSTGRES_ALONE, Cluster, light, run_manifest
from .test_scripts import own_script

GENERATORS = 2
LOADS = [
    {"name": "fixed", "closed": {"connections": 4, "requests": 3000}, "warmup": "1s"},
    {"name": "open", "open": {"rate": 300, "duration": "3s"}, "warmup": "1s"},
    {
        "name": "stairs",
        "stairs": {
            "steps": [{"rate": 100, "duration": "1s"}, {"rate": 250, "duration": "2s"}],
            "arrivals": "poisson",
            "maxConnections": 50,
            "connectOver": "500ms",
        },
        "warmup": "0s",
    },
    {
        "name": "thinking",
        "closed": {"connections": 4, "requests": 600},
        "mix": [{"name": "list", "weight": 3}],
        "thinkTime": {"min": "5ms", "max": "15ms"},
        "warmup": "0s",
    },
]


def generator_pods(cluster: Cluster, trial: str) -> list[dict[str, Any]]:
    selector = f"laptime.dev/trial={trial},laptime.dev/component=generator"
    return cluster.items("pods", selector)


def test_two_generators_send_one_load_together(cluster: Cluster) -> None:
    run = cluster.apply(
        run_manifest(
            "two-generators",
            [AXUM],
            loads=LOADS,
            topology=POSTGRES_ALONE,
            repetitions=1,
            generator={"parallelism": GENERATORS},
        )
    )
    status = cluster.wait_end(run, 180)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    results = {one["load"]: one for one in cluster.documents(run).values()}
    for readings in cluster.documents(run, "readings.json").values():
        parts = {one["component"]: one for one in readings["usage"]["components"]}
        assert parts["generator"]["pods"] == GENERATORS
    # Neither loses requests where the load is divided, nor sends some twice.
    assert results["fixed"]["figures"]["requests"] == 3000
    for load, due in (("open", 900), ("stairs", 600), ("thinking", 600)):
        sent = results[load]["figures"]
        assert sent["requests"] + sent["errorsByKind"].get("dropped", 0) == due, load
        assert sent["errors"] == 0, load
    # Four users, each of whom rests for some 10 ms after an answer.
    assert results["thinking"]["figures"]["requestsPerSecond"] < 4 / 0.01


def test_one_lost_generator_of_two_has_the_trial_repeated(cluster: Cluster) -> None:
    run = cluster.apply(
        run_manifest(
            "lost-half",
            [AXUM],
            loads=light("6s", warmup="1s"),
            topology=POSTGRES_ALONE,
            repetitions=1,
            generator={"parallelism": GENERATORS},
        )
    )
    first = f"{run}-trial-001"
    deadline = time.monotonic() + 90
    while True:
        running = [
            pod["metadata"]["name"]
            for pod in generator_pods(cluster, first)
            if pod["status"]["phase"] == "Running"
        ]
        if len(running) == GENERATORS:
            break
        assert time.monotonic() < deadline, cluster.status(run)
        time.sleep(0.2)
    time.sleep(3)
    cluster.reader.delete(cluster.path("pods", running[0]), gracePeriodSeconds="0")
    status = cluster.wait_end(run, 120)
    result = cluster.documents(run)[first]
    # Half of a load is no figure of this load.
    assert (result["outcome"], result["attempt"]) == ("Measured", 2)
    (lost,) = result["lostAttempts"]
    assert lost["reason"] in ("GeneratorLost", "PodDeleted"), lost
    (row,) = status["results"]
    assert (row["state"], row["lostAttempts"]) == ("Measured", 1), row


SHARED = """
import http from 'k6/http';
import exec from 'k6/execution';
import { check } from 'k6';
import { Counter, Trend } from 'k6/metrics';
const setups = new Counter('setups');
const teardowns = new Counter('teardowns');
const numbers = new Trend('numbers');
export const options = {
  scenarios: { own: { executor: 'shared-iterations', vus: 6, iterations: 301 } },
  thresholds: { numbers: ['max==300', 'min==0'], setups: ['count==1'], teardowns: ['count==1'] },
};
export function setup() { setups.add(1); return { word: 'told' }; }
export default function (data) {
  numbers.add(exec.scenario.iterationInTest);
  check(data, { told: (one) => one.word === 'told' });
  http.get(`${__ENV.TARGET}/`, { tags: { name: 'list' } });
}
export function teardown() { teardowns.add(1); }
"""


def test_three_generators_run_one_script_together(cluster: Cluster) -> None:
    script = {"configMap": own_script(cluster, "shared", SHARED), "duration": "30s", "warmup": "0s"}
    run = cluster.apply(
        run_manifest(
            "three-scripts",
            [AXUM],
            loads=[{"name": "own", "script": script}],
            topology=POSTGRES_ALONE,
            repetitions=1,
            generator={"parallelism": 3},
        )
    )
    status = cluster.wait_end(run, 180)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    (result,) = cluster.documents(run).values()
    said = result["script"]
    assert (result["figures"]["requests"], result["figures"]["errors"]) == (301, 0)
    assert (said["iterations"], said["checksPassed"], said["checksFailed"]) == (301, 301, 0)
    assert {one["outcome"] for one in status["objectives"]} == {"met"}, status["objectives"]
    for readings in cluster.documents(run, "readings.json").values():
        parts = {one["component"]: one for one in readings["usage"]["components"]}
        assert parts["generator"]["pods"] == 3
