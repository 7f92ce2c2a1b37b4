"""A k6 script as its users have it runs as it is, and what it says counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from laptime.report import read_results, to_markdown

from .harness import (
    AXUM,
    POSTGRES_ALONE,
    SYNC,
    TWIN,
    Cluster,
    condition,
    namespace_for_runs,
    over,
    run_manifest,
)
from .test_dashboards import Said, wait_for_scrapes

SCRIPTS = Path(__file__).parents[2] / "images" / "k6" / "testdata"
SCRIPT = SCRIPTS / "as-documented.js"
"""Stages, setup, a group, two checks of which one never holds, three thresholds that are missed, a
trend, a counter, a rate and a pause of 20 ms."""
THRESHOLDS = {
    "complete: rate>0.99",
    "http_req_duration: p(95)<0.001",
    "listing_time: avg<0.001",
}


COUNTED = """
import http from 'k6/http';
import { check } from 'k6';
import { Trend } from 'k6/metrics';
const answers = new Trend('answers', true);
export const options = {
  scenarios: { other: { executor: 'constant-vus', vus: 50, duration: '1h' } },
};
export default function () {
  const answer = http.get(`${__ENV.BASE_URL}/`, { tags: { name: 'list' } });
  answers.add(answer.timings.duration, { kind: 'list' });
  check(answer, { right: (a) => a.status === 200, 'and told': () => __ENV.WORD === '$(HOME) $x' });
  http.get('http://nobody.invalid/', { timeout: '1s' });
}
"""


def own_script(
    cluster: Cluster, name: str, source: str, beside: dict[str, str] | None = None
) -> str:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return cluster.apply({**config_map, "data": {"script.js": source, **(beside or {})}})


def script_load(
    cluster: Cluster, name: str, source: str, beside: dict[str, str] | None = None, **script: Any
) -> dict[str, Any]:
    """Return a load by a script, whose ConfigMap is made; `beside` are files beside it."""
    return {
        "name": name,
        "script": {
            "configMap": own_script(cluster, name, source, beside),
            "duration": "30s",
            "env": [
                {"name": "BASE_URL", "value": "$(TARGET)"},
                {"name": "WS_URL", "value": "ws://$(TARGET_HOST)/talk"},
                {"name": "GRPC_ADDR", "value": "$(TARGET_HOST)"},
            ],
            **script,
        },
    }


def run_scripts(
    cluster: Cluster, name: str, loads: list[dict[str, Any]], other: dict[str, Any] = TWIN
) -> dict[str, Any]:
    """Run scripts against two servers; return the status at the end."""
    run = cluster.apply(
        run_manifest(name, [other, AXUM], loads=loads, topology=POSTGRES_ALONE, repetitions=1)
    )
    status = cluster.wait_end(run, 240)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    return status


@dataclass(frozen=True)
class Seen:
    """What a run came to: its status and its report."""

    status: dict[str, Any]
    report: str
    grafana: Said
    gate: subprocess.CompletedProcess[str]
    """What a pipeline has that waits for the run."""

    def rows(self, load: str) -> list[dict[str, Any]]:
        """Return the rows of a load, of each server one."""
        found = [row for row in self.status["results"] if row["load"] == load]
        assert [row["server"] for row in found] == ["twin", "axum"]
        return found


@pytest.fixture(scope="module")
def seen(kubectl: Any, kubeconfig: str, reader: Any, operator: str) -> Iterator[Seen]:
    """A script whose checks never hold, and one of which the run says most, in one run."""
    env = [{"name": "BASE_URL", "value": "$(TARGET)"}, {"name": "WORD", "value": "$(HOME) $x"}]
    with namespace_for_runs(reader) as name:
        cluster = Cluster(kubectl, reader, name)
        judged = script_load(cluster, "as-documented", SCRIPT.read_text())
        counted = script_load(
            cluster,
            "counted",
            COUNTED,
            env=env,
            options={"vus": 2, "iterations": 50},
            tags=[{"name": "team", "value": "shop"}],
            warmup="0s",
        )
        status = run_scripts(cluster, "scripts", [judged, counted])
        _, report = read_results(cluster.stored("scripts").files["results.json"])
        gate = subprocess.run(
            [Path(sys.executable).with_name("laptime"), "watch", "scripts", "-n", name],
            env={**os.environ, "KUBECONFIG": kubeconfig, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        wait_for_scrapes(cluster, "scripts")
        yield Seen(status, to_markdown(report), Said(cluster, "scripts"), gate)


def test_a_script_whose_checks_never_hold_wins_nothing(seen: Seen) -> None:
    status = seen.status
    for row in seen.rows("as-documented"):
        assert row["validity"] == "invalid", row
        assert "requestsPerSecond" not in row
        said = " ".join(row["validityReasons"])
        assert "check 'listing::never holds' failed in" in said
        assert "no warm-up was named" in said
        # Of a script that rests for 20 ms throughput says how long.
        assert row["comparedBy"] == "p99"
        script = row["script"]
        assert script["comparedBy"] == "latency"
        checks = {one["name"]: one for one in script["checks"]}
        assert checks["listing::never holds"]["passed"] == 0
        assert checks["listing::never holds"]["failed"] == script["iterations"] > 0
        assert checks["listing::never holds"]["rate"] == 0
        assert checks["listing::status is 200"]["failed"] == 0
        assert row["requests"] == script["iterations"]  # and not the one of setup()
    objectives = {(one["server"], one["bound"]): one["outcome"] for one in status["objectives"]}
    expected = {(server, bound) for server in ("twin", "axum") for bound in THRESHOLDS}
    assert set(objectives) == expected
    assert set(objectives.values()) == {"missed"}
    missed = condition(status, "ObjectivesMet")
    assert (missed["status"], missed["reason"]) == ("False", "ObjectivesMissed")
    assert all(bound in missed["message"] for bound in THRESHOLDS)
    assert "listing::never holds" in seen.report
    assert "| when k6 began the request" in seen.report


def test_a_gate_on_a_script_that_missed_its_thresholds_fails_with_its_own_exit_code(
    seen: Seen,
) -> None:
    said = seen.gate.stdout
    # Not 1, which is a run that failed, and not 3: it is known that they were missed.
    assert seen.gate.returncode == 2, said + seen.gate.stderr
    assert all(bound in said for bound in THRESHOLDS), said
    assert "listing::never holds" in said
    assert "listing::status is 200" in said


def test_what_a_script_says_is_in_grafana_as_in_the_status(seen: Seen) -> None:
    shown = (
        "Objectives and thresholds",
        *(f"{one} of scripts" for one in ("Checks", "Iterations", "Metrics")),
    )
    panels = [f"laptime-run: {one}" for one in shown]
    assert seen.grafana.wrong(seen.grafana.facts(), panels) == []
    assert all(seen.grafana.has(one) for one in panels)
    # Of rows that are invalid no figure counts, so the script's own metrics are of the other load.
    assert {
        (row["server"], row["load"])
        for row in seen.status["results"]
        for metric in row["script"]["metrics"]
        if metric["name"] == "answers" and metric["figures"]
    } == {(server, "counted") for server in ("twin", "axum")}


def test_checks_that_inform_leave_figures_and_a_warmup_by_time_is_cut_off(
    cluster: Cluster,
) -> None:
    script: dict[str, Any] = {"checks": "inform", "warmup": "1500ms"}
    load = script_load(cluster, "informed", SCRIPT.read_text(), **script)
    status = run_scripts(cluster, "informed", [load], SYNC)
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
    assert "; of iterations under informed, axum did " in status["verdict"]


def test_options_of_the_run_override_those_of_the_script_and_others_are_counted_apart(
    seen: Seen,
) -> None:
    for row in seen.rows("counted"):
        assert (row["requests"], row["errors"]) == (50, 0), row
        script = row["script"]
        assert script["iterations"] == 50
        assert (script["checksPassed"], script["checksFailed"]) == (100, 0)
        assert script["otherHosts"] == [{"host": "nobody.invalid:80", "requests": 50, "errors": 50}]
        # Under its name in k6, and the part of it that has a tag of its own.
        metrics = {one["name"]: one for one in script["metrics"]}
        assert metrics["answers"]["samples"] == metrics["answers{kind:list}"]["samples"] == 50
    # It has no thresholds.
    assert {one["load"] for one in seen.status["objectives"]} == {"as-documented"}


BROKEN = """
export default function () {
  let 1st;
}
"""
THROWS = """
import http from 'k6/http';
import exec from 'k6/execution';
export const options = { vus: 2, iterations: 200, nonsense: 1 };
export default function () {
  http.get(`${__ENV.BASE_URL}/`, { tags: { name: 'list' } });
  if (exec.scenario.iterationInTest === 7) {
    JSON.parse('<');
  }
}
"""


def test_what_is_wrong_with_a_script_is_said_with_k6s_words_and_the_line(cluster: Cluster) -> None:
    loads = [
        script_load(cluster, "broken", BROKEN),
        script_load(cluster, "throws", THROWS, warmup="0s"),
    ]
    run = cluster.apply(
        run_manifest("bad-scripts", [AXUM], loads=loads, topology=POSTGRES_ALONE, repetitions=1)
    )
    status = cluster.wait_end(run, 180)
    results = {one["load"]: one for one in cluster.documents(run).values()}
    broken = results["broken"]
    assert (broken["outcome"], broken["reason"]) == ("Failed", "ScriptFailed"), broken
    assert "script.js: Line 3:" in broken["message"], broken
    (row,) = [row for row in status["results"] if row["load"] == "throws"]
    assert row["validity"] == "doubtful", row
    said = " ".join(row["validityReasons"])
    assert "1 of 200 iterations ended with an exception: SyntaxError" in said
    assert "script.js:8:" in said
    assert any("nonsense" in text for text in row["script"]["warnings"])


IMPORTS = """
import { uuidv4 } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
export default function () { uuidv4(); }
"""


def test_a_script_that_imports_from_the_network_ends_before_anything_is_deployed(
    cluster: Cluster,
) -> None:
    loads = [script_load(cluster, "imports", IMPORTS)]
    run = cluster.apply(run_manifest("imports", [AXUM], loads=loads, topology=POSTGRES_ALONE))
    deployed: list[Any] = []

    def is_over(status: dict[str, Any]) -> bool:
        deployed.extend(cluster.items("deployments,jobs,pods", f"laptime.dev/run={run}"))
        return over(status)

    status = cluster.wait(run, "its end", is_over, 30)
    ended = condition(status, "Succeeded")
    assert (status["state"], ended["reason"]) == ("Failed", "RemoteImport"), status
    assert not deployed
    for said in ("load imports: script.js:2", "jslib.k6.io", "import './index.js'"):
        assert said in ended["message"]


def test_a_script_in_an_image_runs_with_all_that_is_beside_it(cluster: Cluster) -> None:
    """The image has nothing in it that could be started, and more than a ConfigMap holds."""
    script = {
        "image": "docker.io/laptime/load-script:0.1.0",
        "folder": "/load",
        "key": "main.js",
        "duration": "30s",
        "env": [{"name": "BASE_URL", "value": "$(TARGET)"}],
        "warmup": "0s",
    }
    loads = [
        {"name": "packed", "script": script},
        {"name": "missing", "script": {**script, "key": "lib/nothing.js"}},
    ]
    run = cluster.apply(
        run_manifest("packed", [AXUM], loads=loads, topology=POSTGRES_ALONE, repetitions=1)
    )
    status = cluster.wait_end(run, 180)
    assert condition(status, "ScriptsSelfContained")["reason"] == "ScriptInImage"
    row = next(row for row in status["results"] if row["load"] == "packed")
    assert (row["requests"], row["errors"]) == (50, 0), row
    assert (row["script"]["checksPassed"], row["script"]["checksFailed"]) == (100, 0)
    results = {one["load"]: one for one in cluster.documents(run).values()}
    assert "sha256:" in results["packed"]["images"]["script"], results["packed"]
    missing = results["missing"]
    assert (missing["outcome"], missing["reason"], missing["attempt"]) == (
        "Failed",
        "ScriptMissing",
        1,
    )
    assert (
        "there is no file lib/nothing.js in folder /load of the image, which has lib/rows.js"
        in (missing["message"])
    )


def test_calls_of_grpc_are_requests_and_websockets_are_in_the_metrics_of_their_script(
    cluster: Cluster,
) -> None:
    server = {"name": "reference", "image": "docker.io/laptime/reference:0.1.0"}
    proto = {"echo.proto": (SCRIPTS / "echo.proto").read_text()}
    loads = [
        script_load(cluster, "talk", (SCRIPTS / "talk.js").read_text(), warmup="0s"),
        script_load(cluster, "calls", (SCRIPTS / "calls.js").read_text(), proto, warmup="0s"),
    ]
    run = cluster.apply(
        run_manifest("protocols", [server], loads=loads, topology=POSTGRES_ALONE, repetitions=1)
    )
    status = cluster.wait_end(run, 180)
    talk, calls = (
        next(row for row in status["results"] if row["load"] == load) for load in ("talk", "calls")
    )
    assert (calls["requests"], calls["errors"]) == (100, 0), calls
    assert calls["requestsPerSecond"]["value"] > 0
    assert (talk["requests"], talk["validity"]) == (0, "doubtful"), talk
    assert any("asked nothing by HTTP or gRPC" in reason for reason in talk["validityReasons"])
    for row, answers in ((talk, 100), (calls, 100)):
        script = row["script"]
        assert (script["checksPassed"], script["checksFailed"]) == (answers, 0), row
        assert not script.get("otherHosts")
    assert {one["outcome"] for one in status["objectives"]} == {"met"}
    document, report = read_results(cluster.stored(run).files["results.json"])
    metrics = {one.name: one for row in document.rows if row.script for one in row.script.metrics}
    assert metrics["ws_sessions"].value == 20
    assert metrics["ws_msgs_received"].value == 100
    assert metrics["grpc_req_duration"].samples == 100
    assert any("/echo.Echo/Say" in trial.endpoints for trial in document.trials)
    text = to_markdown(report)
    assert "ws_msgs_received" in text
    assert "grpc_req_duration" in text
