"""Several generators for one trial: they start together, share the load, and count as one."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from laptime.analysis.two_runs import Change, Comparison, compare_runs
from laptime.api.metrics import Metric
from laptime.report import read_results
from laptime.report.results import Results

from .harness import AXUM, POSTGRES_ALONE, Cluster, light, run_manifest, under_load
from .test_duet import late
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
            loads=light("12s", warmup="1s"),
            topology=POSTGRES_ALONE,
            repetitions=1,
            generator={"parallelism": GENERATORS},
        )
    )
    first = f"{run}-trial-001"
    deadline = time.monotonic() + 90
    seen: set[str] = set()
    while True:
        running = under_load(cluster, run, first)
        if len(running) == GENERATORS and running == seen:
            break
        # Those of an attempt that is lost at its start are gone a moment later.
        seen = running
        assert time.monotonic() < deadline, cluster.status(run)
        time.sleep(3 if len(running) == GENERATORS else 0.2)
    cluster.reader.delete(cluster.path("pods", min(running)), gracePeriodSeconds="0")
    status = cluster.wait_end(run, 120)
    result = cluster.documents(run)[first]
    # Half of a load is no figure of this load.
    assert result["outcome"] == "Measured", result
    (lost,) = (one for one in result["lostAttempts"] if not late(one))
    assert lost["reason"] in ("GeneratorLost", "PodDeleted"), lost
    assert result["attempt"] == len(result["lostAttempts"]) + 1
    (row,) = status["results"]
    assert (row["state"], row["lostAttempts"]) == ("Measured", result["attempt"] - 1), row


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


STEADY = """
import http from 'k6/http';
export const options = {
  scenarios: {
    own: { executor: 'constant-arrival-rate', rate: 90, duration: '3s', preAllocatedVUs: 30 },
  },
};
export default function () {
  http.get(`${__ENV.TARGET}/`, { tags: { name: 'list' } });
}
"""


def _of_one_and_of_three(
    cluster: Cluster, name: str, loads: list[dict[str, Any]]
) -> dict[int, Results]:
    """Return what one generator measured, and what three did."""
    found: dict[int, Results] = {}
    # They have their turns one after the other.
    runs = {
        count: cluster.apply(
            run_manifest(
                f"{name}-{count}",
                [AXUM],
                loads=loads,
                topology=POSTGRES_ALONE,
                repetitions=3,
                generator={"parallelism": count},
            )
        )
        for count in (1, 3)
    }
    for count, run in runs.items():
        status = cluster.wait_end(run, 300)
        assert status["state"] == "Succeeded", json.dumps(status, indent=1)
        # Only the load that is a run of its own has thresholds.
        outcomes = {one["outcome"] for one in status.get("objectives", [])}
        assert outcomes == ({"met"} if len(loads) > 1 else set()), status
        found[count], _ = read_results(cluster.stored(run).files["results.json"])
        for readings in cluster.documents(run, "readings.json").values():
            parts = {one["component"]: one for one in readings["usage"]["components"]}
            assert parts["generator"]["pods"] == count
    return found


def test_three_generators_have_the_figures_of_one(cluster: Cluster) -> None:
    own, steady = (
        {
            "name": name,
            "script": {
                "configMap": own_script(cluster, name, source),
                "duration": "30s",
                "warmup": warmup,
            },
        }
        for name, source, warmup in (("own", SHARED, "0s"), ("steady", STEADY, "500ms"))
    )
    found = _of_one_and_of_three(cluster, "scripts", [own, steady])
    for result in (trial for results in found.values() for trial in results.trials):
        if result.load != "own":
            continue
        said = result.script
        assert said is not None
        assert result.figures is not None
        assert (result.figures.requests, result.figures.errors) == (301, 0)
        assert (said.iterations, said.checks_passed, said.checks_failed) == (301, 301, 0)
        metrics = {one.name: one for one in said.metrics}
        # Each iteration once, and setup() and teardown() in one of the generators.
        assert (metrics["setups"].value, metrics["teardowns"].value) == (1, 1)
        numbers = metrics["numbers"]
        assert (numbers.samples, numbers.value, numbers.min, numbers.max) == (301, 150, 0, 300)
        assert numbers.p50 == pytest.approx(150, rel=0.001)
    # They ran one after the other on a machine that others use, who may come in between. Three are
    # slower than one each time, if they are.
    for again in range(3):
        if again:
            found = _of_one_and_of_three(cluster, f"again-{again}", [steady])
        unlike = _unlike(found)
        if not unlike:
            break
    assert not unlike


def _unlike(found: dict[int, Results]) -> list[Comparison]:
    """Return what is not the same under the steady load.

    Three that are alike by chance make an interval of no width, and a small difference is one of
    the machine.
    """
    spec = found[1].spec
    assert spec is not None
    near = {Metric.REQUESTS_PER_SECOND: 1.02, Metric.P50: 2.0}
    both = [
        one
        for one in compare_runs(spec, found[1].trials, found[3].trials)
        if one.load == "steady" and one.metric in near
    ]
    assert len(both) == len(near)
    assert all(one.ratio is not None for one in both), both
    return [
        one
        for one in both
        if one.change is not Change.NONE_FOUND
        and not (one.ratio and 1 / near[one.metric] < one.ratio.value < near[one.metric])
    ]
