"""Several generators for one trial: they start together, share the load, and count as one."""

from __future__ import annotations

import json
import time
from typing import Any

from .harness import AXUM, POSTGRES_ALONE, Cluster, light, run_manifest

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
    cluster.kubectl(
        *("delete", "pod", running[0], "-n", cluster.namespace, "--grace-period=0", "--force")
    )
    status = cluster.wait_end(run, 120)
    result = cluster.documents(run)[first]
    # Half of a load is no figure of this load.
    assert (result["outcome"], result["attempt"]) == ("Measured", 2)
    (lost,) = result["lostAttempts"]
    assert lost["reason"] in ("GeneratorLost", "PodDeleted"), lost
    (row,) = status["results"]
    assert (row["state"], row["lostAttempts"]) == ("Measured", 1), row
