"""Which parts of a run had CPUs for themselves, on a node whose kubelet gives them out."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from laptime.report import read_results
from laptime.report.html import to_html

from .harness import AXUM, POSTGRES_ALONE, TWIN, Cluster, run_manifest

pytestmark = pytest.mark.skipif(
    os.environ.get("LAPTIME_OWN_CPUS_TESTS") != "1",
    reason="wants a kubelet with the static CPU manager; set LAPTIME_OWN_CPUS_TESTS=1",
)

WHOLE = {"cpu": "1", "memory": "256Mi"}
LOADS = [
    {
        "name": "closed",
        "closed": {"connections": 2, "duration": "15s"},
        # The kubelet moves others away every 10 s, and the agent has to have looked twice since.
        "warmup": "24s",
    }
]


def cpus_of(trial: dict[str, Any]) -> dict[str, int | None]:
    """Return how many CPUs each part had for itself in a trial."""
    return {one["component"]: one.get("exclusiveCpus") for one in trial["usage"]["components"]}


def test_a_server_that_asks_for_a_whole_cpu_has_it_and_the_report_says_so(cluster: Cluster) -> None:
    servers = [{**AXUM, "resources": WHOLE}, {**TWIN, "resources": {**WHOLE, "cpu": "900m"}}]
    run = cluster.apply(
        run_manifest("own", servers, loads=LOADS, topology=POSTGRES_ALONE, repetitions=1)
    )
    status = cluster.wait_end(run, 300)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    cluster.wait_folded(run)
    text = cluster.stored(run).files["results.json"]
    trials = {one["server"]: one for one in json.loads(text)["trials"]}
    print({name: cpus_of(one) for name, one in trials.items()})
    assert cpus_of(trials["axum"]) == {"server": 1, "generator": 0, "postgres": 0}
    assert cpus_of(trials["twin"]) == {"server": 0, "generator": 0, "postgres": 0}
    _, report = read_results(text)
    said = "CPUs that no other pod could run on:"
    assert said in to_html(report, {})
