"""A k6 script as its users have it runs as it is, and what it says counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from laptime.report import read_results, to_markdown

from .harness import AXUM, SYNC, Cluster, condition, run_manifest

SCRIPT = Path(__file__).parents[2] / "images" / "k6" / "testdata" / "as-documented.js"
"""Stages, setup, a group, two checks of which one never holds, three thresholds that are missed, a
trend, a counter, a rate and a pause of 20 ms."""
THRESHOLDS = {
    "complete: rate>0.99",
    "http_req_duration: p(95)<0.001",
    "listing_time: avg<0.001",
}


def own_script(cluster: Cluster, name: str, source: str) -> str:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return cluster.apply({**config_map, "data": {"script.js": source}})


def script_run(cluster: Cluster, name: str, source: str, **script: Any) -> dict[str, Any]:
    """Run a script against two servers; return the status at the end."""
    load = {
        "name": "own",
        "script": {
            "configMap": own_script(cluster, name, source),
            "duration": "30s",
            "env": [{"name": "BASE_URL", "value": "$(TARGET)"}],
            **script,
        },
    }
    run = cluster.apply(run_manifest(name, [SYNC, AXUM], loads=[load], repetitions=1))
    status = cluster.wait_end(run, 180)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    return status


def test_a_script_whose_checks_never_hold_wins_nothing(cluster: Cluster) -> None:
    status = script_run(cluster, "as-documented", SCRIPT.read_text())
    for row in status["results"]:
        assert row["validity"] == "invalid", row
        assert "requestsPerSecond" not in row
        said = " ".join(row["validityReasons"])
        assert "check 'listing::never holds' failed in" in said
        assert "no warm-up was named" in said
        script = row["script"]
        assert script["comparedBy"] == "latency"
        checks = {one["name"]: one for one in script["checks"]}
        assert checks["listing::never holds"]["passed"] == 0
        assert checks["listing::never holds"]["failed"] == script["iterations"] > 0
        assert checks["listing::status is 200"]["failed"] == 0
        assert row["requests"] == script["iterations"]  # and not the one of setup()
    objectives = {(one["server"], one["bound"]): one["outcome"] for one in status["objectives"]}
    expected = {(server, bound) for server in ("sync", "axum") for bound in THRESHOLDS}
    assert set(objectives) == expected
    assert set(objectives.values()) == {"missed"}
    missed = condition(status, "ObjectivesMet")
    assert (missed["status"], missed["reason"]) == ("False", "ObjectivesMissed")
    assert all(bound in missed["message"] for bound in THRESHOLDS)
    _, report = read_results(cluster.stored("as-documented").files["results.json"])
    assert "listing::never holds" in to_markdown(report)


def test_checks_that_inform_leave_figures_and_a_warmup_by_time_is_cut_off(
    cluster: Cluster,
) -> None:
    status = script_run(cluster, "informed", SCRIPT.read_text(), checks="inform", warmup="1500ms")
    for row in status["results"]:
        assert row["validity"] in ("valid", "doubtful"), row
        assert row["requestsPerSecond"]["value"] > 0
        said = " ".join(row["validityReasons"])
        assert "never holds" not in said
        assert "no warm-up" not in said
        assert row["script"]["checksFailed"] > 0
        # It rests, so throughput says how long.
        assert row["comparedBy"] == "p99"
    assert "p99" in status["verdict"]


COUNTED = """
import http from 'k6/http';
import { check } from 'k6';
export const options = {
  scenarios: { other: { executor: 'constant-vus', vus: 50, duration: '1h' } },
};
export default function () {
  const answer = http.get(`${__ENV.BASE_URL}/`, { tags: { name: 'list' } });
  check(answer, { right: (a) => a.status === 200, 'and told': () => __ENV.WORD === '$(HOME) $x' });
  http.get('http://nobody.invalid/', { timeout: '1s' });
}
"""


def test_options_of_the_run_override_those_of_the_script_and_others_are_counted_apart(
    cluster: Cluster,
) -> None:
    env = [{"name": "BASE_URL", "value": "$(TARGET)"}, {"name": "WORD", "value": "$(HOME) $x"}]
    status = script_run(
        cluster,
        "counted",
        COUNTED,
        env=env,
        options={"vus": 2, "iterations": 50},
        tags=[{"name": "team", "value": "shop"}],
        warmup="0s",
    )
    for row in status["results"]:
        assert (row["requests"], row["errors"]) == (50, 0), row
        script = row["script"]
        assert script["iterations"] == 50
        assert (script["checksPassed"], script["checksFailed"]) == (100, 0)
        assert script["otherHosts"] == [{"host": "nobody.invalid:80", "requests": 50, "errors": 50}]
    assert not condition(status, "ObjectivesMet")
