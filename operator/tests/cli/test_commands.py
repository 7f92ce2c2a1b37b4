"""The commands against an API server: what they print and how they exit."""

from __future__ import annotations

import copy
import json
import os
import re
import shlex
import socketserver
from collections.abc import Callable
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.api import doubts
from laptime.catalog import scenario_of
from laptime.cli import cluster_access
from laptime.cli.cluster_access import Cluster
from laptime.cli.mistakes import Mistake, Unreachable
from laptime.cli.options import program_name
from laptime.manifests.kept_scripts import script_hash
from tests.cli.conftest import own_scenario
from tests.private_ca import Authority, tls_server
from tests.private_ca import kubeconfig as private_kubeconfig
from tests.serving import served

Laptime = Callable[..., tuple[int, str, str]]
RUN = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/demo"


def test_run_applies_follows_and_prints_the_table(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path, finished_status: Any
) -> None:
    fake.statuses = [
        {},
        {"state": "Deploying"},
        {
            "state": "Running",
            "seed": 7,
            "currentTrial": "demo-trial-001",
            "progress": {"completed": 0, "total": 10, "remainingSeconds": 80},
        },
        finished_status,
    ]
    code, out, err = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    assert "demo: Running, 0/10 trials" in out
    assert "repetition 1 of 5" in out
    assert "15,363 ± 8 " in out
    assert "25.1x (24.6 to 25.6)" in out
    assert f"laptime report demo --kubeconfig {kubeconfig}\n" in out


@pytest.mark.parametrize(
    ("causes", "server"),
    [
        (("databaseConnections", "serverCpu"), "fastapi"),
        (("postgresCpu", "serverCpu"), "axum"),
        (("postgresCpu", "unknown"), None),
    ],
)
def test_what_an_experiment_can_tell_is_suggested(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest_file: Path,
    finished_status: Any,
    causes: tuple[str, str],
    server: str | None,
) -> None:
    for row, cause in zip(finished_status["results"], causes, strict=True):
        row["limitedBy"] = {"cause": cause, "evidence": "it was full"}
    fake.statuses = [finished_status]
    _, out, _ = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    suggested = [line for line in out.splitlines() if " explain " in line]
    command = f"  laptime explain demo --server {server} --kubeconfig {kubeconfig}"
    assert suggested == ([command] if server else [])


@pytest.mark.parametrize("why", ["nothing to compare", "a limit of the cluster's"])
def test_what_an_experiment_cannot_tell_is_not_suggested(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest_file: Path,
    finished_status: Any,
    why: str,
) -> None:
    for row in finished_status["results"]:
        row["limitedBy"] = {"cause": "serverCpu", "evidence": "it was full"}
        if why == "nothing to compare":
            row |= {"comparedBy": "p99", "latencyFigures": {"p99": {"failed": 5}}}
        else:
            server = f"server {row['server']}"
            said = doubts.LIMIT_ADDED.says(what=server, limits="500m of CPU")
            row["validityReasons"] = [said]
    fake.statuses = [finished_status]
    _, out, _ = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    assert " explain " not in out


def test_run_asks_the_server_to_refuse_unknown_fields(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path, finished_status: Any
) -> None:
    fake.statuses = [finished_status]
    laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    paths = [path for method, path in fake.requests if method == "PATCH"]
    # It is judged first, and then applied.
    *judged, applied = ["dryRun=All" in path for path in paths]
    assert all(judged)
    assert not applied
    for path in paths:
        assert "fieldValidation=Strict" in path
        assert "fieldManager=laptime-cli" in path


def test_a_missed_objective_exits_2(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path, finished_status: Any
) -> None:
    missed = {**finished_status["conditions"][0], "type": "ObjectivesMet", "status": "False"}
    finished_status["conditions"].append(missed)
    finished_status["objectives"] = [
        {
            "server": "axum",
            "load": "closed",
            "metric": "p99",
            "bound": "p99 at most 5ms",
            "measured": "29.1 ms",
            "outcome": "missed",
            "reason": "BoundNotKept",
        }
    ]
    fake.statuses = [finished_status]
    code, out, _ = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 2
    assert "missed    axum, closed: p99 at most 5ms (measured 29.1 ms)" in out


def worse_by(status: dict[str, Any], value: float | None, low: float, high: float) -> None:
    """Give the server beside the baseline this factor."""
    factor = {"value": value, "low": low, "high": high}
    status["results"][1]["factor"] = None if value is None else factor


WORSE = "Worse than fastapi: axum under closed, throughput 0.913x (0.852 to 0.948)"
NOT_KNOWN = "Not known whether worse than fastapi: axum under closed, no factor of its throughput"


@pytest.mark.parametrize("command", ["run", "watch"])
@pytest.mark.parametrize(
    ("factor", "met", "code", "said"),
    [
        ((1.1, 1.05, 1.2), "True", 0, None),
        ((1.0, 0.95, 1.05), "Unknown", 3, None),
        ((0.913, 0.852, 0.948), "True", 2, WORSE),
        ((0.913, 0.852, 0.948), "Unknown", 2, WORSE),
        ((None, 0, 0), "True", 3, NOT_KNOWN),
        ((None, 0, 0), "False", 2, NOT_KNOWN),
    ],
)
def test_with_fail_if_worse_a_server_that_is_worse_than_the_baseline_exits_2(
    command: str,
    factor: tuple[float | None, float, float],
    met: str,
    code: int,
    said: str | None,
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
) -> None:
    worse_by(finished_status, *factor)
    objectives = {**finished_status["conditions"][0], "type": "ObjectivesMet", "status": met}
    finished_status["conditions"].append(objectives)
    fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    what = manifest_file if command == "run" else "demo"
    asked = (command, what, "--kubeconfig", kubeconfig)
    found, out, _ = laptime(*asked, "--fail-if-worse")
    assert found == code
    # The last line of a log is what is shown of it.
    last = out.splitlines()[-1]
    assert last == said if said else "orse than" not in out
    alone, out, _ = laptime(*asked)
    assert alone == {"True": 0, "False": 2, "Unknown": 3}[met]
    assert "orse than" not in out


def test_with_fail_if_worse_a_program_reads_what_it_did_before(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest: Any, finished_status: Any
) -> None:
    worse_by(finished_status, 0.913, 0.852, 0.948)
    fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    asked = ("watch", "demo", "-o", "json", "--kubeconfig", kubeconfig)
    _, without, _ = laptime(*asked)
    code, out, err = laptime(*asked, "--fail-if-worse")
    assert (code, out) == (2, without)
    assert WORSE in err.splitlines()


def test_with_fail_if_worse_a_run_that_failed_exits_1(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest: Any, finished_status: Any
) -> None:
    worse_by(finished_status, 0.913, 0.852, 0.948)
    finished_status["state"] = "Failed"
    fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    code, out, _ = laptime("watch", "demo", "--fail-if-worse", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "orse than" not in out


def test_a_failed_run_exits_1_and_says_why(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    condition = {"lastTransitionTime": "2026-01-01T00:00:00Z", "status": "False"}
    fake.statuses = [
        {"state": "Deploying"},
        {
            "state": "Failed",
            "conditions": [
                condition
                | {
                    "type": "TiersReady",
                    "reason": "ImagePullFailed",
                    "message": "image x:1 cannot be pulled",
                },
                condition
                | {"type": "Succeeded", "reason": "TiersFailed", "message": "no database"},
            ],
        },
    ]
    code, out, _ = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 1
    assert "! TiersReady is False: ImagePullFailed: image x:1 cannot be pulled" in out
    assert "demo: Failed. TiersFailed: no database" in out


def test_again_deletes_the_finished_run_and_only_that(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
) -> None:
    old = fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    fake.status_of_new = finished_status | {"verdict": "Measured anew."}
    code, out, _ = laptime("run", manifest_file, "--again", "--kubeconfig", kubeconfig)
    assert code == 0
    assert "Deleting the finished run demo" in out
    assert "Measured anew." in out
    assert fake.objects[RUN]["metadata"]["uid"] != old["metadata"]["uid"]


def test_again_does_not_take_the_result_of_a_run_that_was_begun_before(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
) -> None:
    began = {"state": "Running", "startedAt": "2026-01-01T00:00:00Z"}
    fake.put(RUN, {"spec": manifest["spec"], "status": began})
    fake.statuses = [began, finished_status]
    code, _, err = laptime("run", manifest_file, "--again", "--kubeconfig", kubeconfig)
    said = " ".join(err.split())
    assert code == 1
    assert "demo goes on since 2026-01-01T00:00:00Z, with the images of then" in said
    assert f"{program_name()} cancel demo --kubeconfig {kubeconfig}" in said
    assert not fake.applied


def test_again_follows_a_run_that_has_not_begun(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
) -> None:
    queued = fake.put(RUN, {"spec": manifest["spec"], "status": {"state": "Queued"}})
    fake.statuses = [{"state": "Queued"}, finished_status]
    code, out, _ = laptime("run", manifest_file, "--again", "--kubeconfig", kubeconfig)
    assert code == 0
    assert "demo has not begun: it is not deleted" in out
    assert fake.objects[RUN]["metadata"]["uid"] == queued["metadata"]["uid"]


@pytest.mark.parametrize("label", ["run-uid", "archive-of"])
def test_again_waits_for_the_end_of_the_old_results_which_outlive_their_run(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
    label: str,
) -> None:
    old = fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    labels = {f"laptime.dev/{label}": old["metadata"]["uid"]}
    results = "/api/v1/namespaces/team/configmaps/demo-results"
    fake.put(results, {"metadata": {"labels": labels}})
    fake.status_of_new = finished_status
    fake.collected_after = 5
    code, _, _ = laptime("run", manifest_file, "--again", "--kubeconfig", kubeconfig)
    assert code == 0
    assert results not in fake.objects
    deleted = [method for method, _ in fake.requests].index("DELETE")
    began = next(
        place
        for place, (method, path) in enumerate(fake.requests)
        if method == "PATCH" and place > deleted and "dryRun" not in path
    )
    looked = [path for _, path in fake.requests[deleted:began] if "/configmaps?" in path]
    assert len([path for path in looked if old["metadata"]["uid"] in path]) >= 5


def test_who_may_not_look_for_the_old_results_does_not_wait_for_them(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    fake.status_of_new = finished_status
    fake.may_list_results = False
    code, out, _ = laptime("run", manifest_file, "--again", "--kubeconfig", kubeconfig)
    assert code == 0
    assert "Deleting the finished run demo" in out


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", RUN),
        ("GET", RUN),
        ("GET", "/api/v1/namespaces/team/configmaps"),
        ("PATCH", f"{RUN}?"),
    ],
)
def test_again_measures_anew_when_the_cluster_is_out_of_reach_after_the_old_result_went(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
    method: str,
    path: str,
) -> None:
    old = fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    fake.status_of_new = finished_status
    fake.lose(3, method, path, after=("DELETE", RUN))
    code, out, err = laptime("run", manifest_file, "--again", "--kubeconfig", kubeconfig)
    assert code == 0, err
    assert "demo: Succeeded" in out
    (said,) = err.splitlines()
    assert said.endswith("the API server answers 429; trying again")
    assert fake.objects[RUN]["metadata"]["uid"] != old["metadata"]["uid"]


REFUSED = (422, {"kind": "Status", "message": "spec.loads: Required value"})


def test_again_keeps_the_old_result_of_a_run_whose_file_is_refused(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
) -> None:
    old = fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    fake.refuse_judged = REFUSED
    code, _, err = laptime("run", manifest_file, "--again", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "spec.loads: Required value" in err
    assert fake.objects[RUN] is old
    (judged,) = [path for method, path in fake.requests if method == "POST"]
    assert "dryRun=All" in judged
    assert "fieldValidation=Strict" in judged


def test_again_keeps_the_old_result_of_a_run_that_does_not_fit_its_scenario(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    tmp_path: Path,
    finished_status: Any,
) -> None:
    old = fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    del manifest["spec"]["topology"]
    file = tmp_path / "edited.yaml"
    file.write_text(yaml.safe_dump(manifest))
    code, _, err = laptime("run", file, "--again", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "demo would be refused" in err
    assert "postgres" in err
    assert fake.objects[RUN] is old


@pytest.fixture
def again_with(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    tmp_path: Path,
    finished_status: Any,
) -> Callable[..., tuple[int, str, bool]]:
    """Measure a finished run anew, with another spec; the last is whether the old one is there."""

    def call(**spec: Any) -> tuple[int, str, bool]:
        old = fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
        fake.status_of_new = finished_status
        file = tmp_path / "edited.yaml"
        file.write_text(yaml.safe_dump({**manifest, "spec": {**manifest["spec"], **spec}}))
        code, _, err = laptime("run", file, "--again", "--kubeconfig", kubeconfig)
        return code, err, fake.objects[RUN] is old

    return call


@pytest.mark.parametrize("name", ["desk", "users"])
def test_again_keeps_the_old_result_of_a_run_that_does_not_fit_the_scenario_of_its_namespace(
    fake: Any, again_with: Callable[..., tuple[int, str, bool]], name: str
) -> None:
    fake.put(f"{RUN.rsplit('/', 2)[0]}/benchmarkscenarios/{name}", own_scenario("/"))
    code, err, kept = again_with(scenario=name, topology={})
    assert code == 1
    assert f"topology: scenario {name} needs a database" in err
    assert kept


@pytest.mark.parametrize("name", ["desk", "users"])
def test_again_measures_a_run_that_fits_the_scenario_of_its_namespace(
    fake: Any, again_with: Callable[..., tuple[int, str, bool]], name: str
) -> None:
    scenario = own_scenario("/")
    # The known one of the name needs a database.
    del scenario["spec"]["data"]
    fake.put(f"{RUN.rsplit('/', 2)[0]}/benchmarkscenarios/{name}", scenario)
    code, err, kept = again_with(scenario=name, topology={})
    assert (code, kept) == (0, False), err


def test_again_leaves_a_run_to_the_operator_whose_scenario_may_not_be_read(
    fake: Any, again_with: Callable[..., tuple[int, str, bool]]
) -> None:
    fake.may_read_scenarios = False
    # That of the namespace may have no database, which the known one of its name needs.
    code, err, kept = again_with(topology={})
    assert (code, kept) == (0, False), err


def test_again_leaves_a_run_to_the_operator_whose_scenario_a_newer_version_wrote(
    fake: Any, again_with: Callable[..., tuple[int, str, bool]]
) -> None:
    scenario = own_scenario("/")
    scenario["spec"]["ofNewer"] = True
    fake.put(f"{RUN.rsplit('/', 2)[0]}/benchmarkscenarios/desk", scenario)
    code, err, kept = again_with(scenario="desk", topology={})
    assert (code, kept) == (0, False), err


def test_again_keeps_the_old_result_of_a_run_whose_sql_is_no_text(
    fake: Any, again_with: Callable[..., tuple[int, str, bool]]
) -> None:
    of_namespace = RUN.rsplit("/", 2)[0]
    fake.put(f"{of_namespace}/benchmarkscenarios/desk", own_scenario("/"))
    config_map = "/api/v1/namespaces/team/configmaps/sql"
    fake.put(config_map, {"binaryData": {"a.sql": "bmFtZQpab+sK"}})
    code, err, kept = again_with(scenario="desk")
    assert code == 1
    assert "key a.sql of ConfigMap sql is no text in UTF-8" in err
    assert kept


def test_again_keeps_the_old_result_while_nobody_answers_for_the_scenario(
    fake: Any, again_with: Callable[..., tuple[int, str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = fake.answer

    def silent(method: str, path: str, body: bytes) -> Any:
        if "/benchmarkscenarios/" in path:
            return 503, {"kind": "Status", "message": "gone"}
        return answer(method, path, body)

    monkeypatch.setattr(fake, "answer", silent)
    code, err, kept = again_with()
    assert (code, kept) == (1, True)
    assert "Could not read BenchmarkScenario users: the API server answers 503" in err


def test_a_quota_that_the_old_run_fills_is_none_for_the_new_one(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
) -> None:
    old = fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    fake.status_of_new = finished_status
    full = "exceeded quota: runs, requested: count/benchmarkruns.laptime.dev=1, used: 1, limited: 1"
    answer = fake.answer

    def with_quota(method: str, path: str, body: bytes) -> Any:
        if method == "POST" and RUN in fake.objects:
            return 403, {"kind": "Status", "message": full}
        return answer(method, path, body)

    fake.answer = with_quota
    code, _, _ = laptime("run", manifest_file, "--again", "--kubeconfig", kubeconfig)
    assert code == 0
    assert fake.objects[RUN]["metadata"]["uid"] != old["metadata"]["uid"]


def test_what_is_beside_an_edited_run_is_not_applied_when_the_run_is_refused(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    with_script: Path,
    finished_status: Any,
) -> None:
    fake.put(RUN, {"spec": {**manifest["spec"], "repetitions": 3}, "status": finished_status})
    code, _, err = laptime("run", with_script, "--kubeconfig", kubeconfig)
    assert code == 1
    assert "only cancel can be changed" in err
    assert "with --again its result is deleted and the file is measured" in " ".join(err.split())
    assert not fake.applied


def test_the_same_file_is_measured_under_another_name(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
) -> None:
    old = fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    fake.status_of_new = finished_status
    code, out, _ = laptime("run", manifest_file, "--name", "demo-w48", "--kubeconfig", kubeconfig)
    assert code == 0
    assert "demo-w48: Succeeded" in out
    assert fake.objects[RUN] is old
    assert fake.objects[f"{RUN}-w48"]["spec"] == manifest["spec"]


@pytest.mark.parametrize("command", ["run", "watch"])
def test_who_would_not_wait_longer_is_told_how_far_the_run_is(
    command: str,
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
) -> None:
    running = {"state": "Running", "progress": {"completed": 3, "total": 15}}
    fake.put(RUN, {"spec": manifest["spec"], "status": running})
    what = manifest_file if command == "run" else "demo"
    code, out, err = laptime(command, what, "--timeout", "1ms", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "demo is not over yet: Running, 3/15 trials" in err
    assert "Come back:  laptime watch demo" in out


@pytest.mark.parametrize("command", ["run", "watch"])
def test_who_loses_the_cluster_is_told_the_way_back(
    command: str,
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": {"state": "Running"}})
    answer = fake.answer

    def lost(method: str, path: str, body: bytes) -> Any:
        looked = sum(one == ("GET", RUN) for one in fake.requests)
        if method == "GET" and looked > 1:
            return 503, {"kind": "Status", "message": "gone"}
        return answer(method, path, body)

    monkeypatch.setattr(fake, "answer", lost)
    what = manifest_file if command == "run" else "demo"
    code, out, err = laptime(command, what, "--timeout", "1s", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "the API server answers 503" in err
    assert "Come back:  laptime watch demo" in out


@pytest.fixture
def token_file(kubeconfig: Path, tmp_path: Path) -> Path:
    """A token that is renewed outside, which the kubeconfig names."""
    file = tmp_path / "token"
    file.write_text("first")
    written = yaml.safe_load(kubeconfig.read_text())
    written["users"][0]["user"] = {"tokenFile": str(file)}
    kubeconfig.write_text(yaml.safe_dump(written))
    return file


@pytest.mark.parametrize("command", ["run", "watch"])
def test_a_token_that_is_renewed_outside_is_read_anew(
    command: str,
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    token_file: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": {"state": "Running"}})
    fake.statuses = [*[{"state": "Running"}] * 6, finished_status]
    fake.token = "first"
    answer = fake.answer

    def renewed(method: str, path: str, body: bytes) -> Any:
        if len(fake.statuses) == 3:
            fake.token = "second"
            token_file.write_text("second")
            # Meanwhile somebody works with another cluster.
            written = yaml.safe_load(kubeconfig.read_text())
            kubeconfig.write_text(yaml.safe_dump(written | {"current-context": "other"}))
        return answer(method, path, body)

    monkeypatch.setattr(fake, "answer", renewed)
    what = manifest_file if command == "run" else "demo"
    code, out, err = laptime(command, what, "--timeout", "9s", "--kubeconfig", kubeconfig)
    assert code == 0, err
    assert "demo: Succeeded" in out


PLUGIN = """#!/bin/sh
echo asked >>asked
if [ "$(wc -l <asked)" = 2 ]; then echo 'no network' >&2; exit 1; fi
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
echo '"status": {"token": "'"$(cat token)"'"}}'
"""


def test_a_plugin_that_fails_once_is_asked_again(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    finished_status: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin, token = tmp_path / "plugin", tmp_path / "token"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o755)
    token.write_text("first")
    asked = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}
    written = yaml.safe_load(kubeconfig.read_text())
    written["users"][0]["user"] = {"exec": asked}
    kubeconfig.write_text(yaml.safe_dump(written))
    fake.put(RUN, {"spec": manifest["spec"], "status": {"state": "Running"}})
    fake.statuses = [*[{"state": "Running"}] * 6, finished_status]
    fake.token = "first"
    answer = fake.answer

    def renewed(method: str, path: str, body: bytes) -> Any:
        if len(fake.statuses) == 3:
            fake.token = "second"
            token.write_text("second")
        return answer(method, path, body)

    monkeypatch.setattr(fake, "answer", renewed)
    code, out, err = laptime("watch", "demo", "--timeout", "9s", "--kubeconfig", kubeconfig)
    assert code == 0, err
    assert "! The plugin of the kubeconfig gives no credentials; trying again" in out
    assert (tmp_path / "asked").read_text() == "asked\n" * 3


def acting(kubeconfig: Path, said: dict[str, Any]) -> None:
    """Have the user of a kubeconfig act as somebody else."""
    written = yaml.safe_load(kubeconfig.read_text())
    written["users"][0]["user"] = {"token": "mine", **said}
    kubeconfig.write_text(yaml.safe_dump(written))


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ({}, {}),
        ({"as": "dev"}, {"Impersonate-User": "dev"}),
        (
            {"as": "dev", "as-uid": "7", "as-groups": ["team"]},
            {"Impersonate-User": "dev", "Impersonate-Uid": "7", "Impersonate-Group": "team"},
        ),
    ],
)
def test_who_acts_as_somebody_else_has_no_more_rights_here(
    said: dict[str, Any],
    sent: dict[str, str],
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest_file: Path,
    finished_status: Any,
) -> None:
    acting(kubeconfig, said)
    fake.statuses = [finished_status]
    code, _, err = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 0, err
    assert {method for method, _ in fake.requests} >= {"GET", "PATCH"}
    assert fake.impersonated == [sent] * len(fake.requests)


@pytest.mark.parametrize(
    "said",
    [
        {"as": "dev", "as-groups": ["team", "other"]},
        {"as": "dev", "as-user-extra": {"scopes": ["view"]}},
        {"as-groups": ["team"]},
    ],
)
def test_who_acts_as_somebody_else_in_a_way_that_cannot_be_sent_is_told_so(
    said: dict[str, Any], laptime: Laptime, fake: Any, kubeconfig: Path
) -> None:
    acting(kubeconfig, said)
    code, _, err = laptime("watch", "demo", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "User test of the kubeconfig acts as somebody else in a way that cannot be sent" in err
    assert not fake.requests


def test_new_credentials_are_those_of_the_same_cluster(
    fake: Any, kubeconfig: Path, token_file: Path
) -> None:
    cluster = Cluster.connect(kubeconfig)
    fake.token = "second"
    token_file.write_text("second")
    written = yaml.safe_load(kubeconfig.read_text())
    written["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:1"
    kubeconfig.write_text(yaml.safe_dump(written))
    with pytest.raises(Mistake, match="does not accept the credentials"):
        cluster.run("team", "demo")


@pytest.mark.parametrize("refused", [401, 403])
@pytest.mark.parametrize("command", ["run", "watch", "verify"])
def test_who_may_not_look_any_more_is_told_the_way_back(
    command: str,
    refused: int,
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if command != "verify":
        fake.put(RUN, {"spec": manifest["spec"], "status": {"state": "Running"}})
    answer = fake.answer

    def closed(method: str, path: str, body: bytes) -> Any:
        looked = sum(one[0] == "GET" and one[1].startswith(RUN) for one in fake.requests)
        if method == "GET" and looked > 2:
            return refused, {"kind": "Status", "message": "no more"}
        return answer(method, path, body)

    monkeypatch.setattr(fake, "answer", closed)
    what = "demo" if command == "watch" else manifest_file
    code, out, err = laptime(command, what, "--timeout", "9s", "--kubeconfig", kubeconfig)
    assert code == 1
    assert ("credentials of this kubeconfig" in err) is (refused == 401)
    assert "oes on in the cluster." in out


def test_a_time_to_wait_that_is_none_is_refused_before_anything_is_applied(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    code, _, err = laptime("run", manifest_file, "--timeout", "soon", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "--timeout soon: " in err
    assert not fake.requests


def test_without_again_the_old_result_is_shown(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    code, out, _ = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 0
    assert "finished already" in out
    assert "DELETE" not in [method for method, _ in fake.requests]


@pytest.mark.parametrize("over", [True, False])
def test_what_an_edited_file_has_no_more_and_the_run_has_still_is_told(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
    over: bool,
) -> None:
    # kubectl applied it with both; of fields of another manager an apply takes nothing away.
    stored = copy.deepcopy(manifest["spec"])
    stored["topology"]["pgbouncer"] = {"poolSize": 25}
    stored["objectives"] = [{"server": "axum", "load": "closed", "metric": "p99", "atMost": "5ms"}]
    stored["ttlSecondsAfterFinished"] = 60
    status = finished_status if over else {"state": "Running"}
    kept = fake.put(RUN, {"spec": stored, "status": status})
    fake.others_applied = True
    code, out, err = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 1
    assert "has another topology.pgbouncer, objectives than the file." in " ".join(err.split())
    assert ("finished already" in out) is over
    assert kept["spec"]["topology"]["pgbouncer"]


@pytest.mark.parametrize(
    ("path", "with_sql", "reason", "expected"),
    [
        ("/", True, None, None),
        ("/other", True, None, "The scenario in the file is another one than it was measured with"),
        # What its ConfigMap holds is not known without a request.
        ("/other", False, None, None),
        ("/", True, "ScenarioWrong", "It ended before it began (ScenarioWrong); --again begins"),
        ("/", True, "ImagePullFailed", None),
    ],
)
def test_the_result_of_another_scenario_than_that_of_the_file_is_told_apart(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    tmp_path: Path,
    finished_status: Any,
    path: str,
    with_sql: bool,
    reason: str | None,
    expected: str | None,
) -> None:
    stored = json.loads(json.dumps(own_scenario("/")).replace("1.0", "1"))
    began_with = scenario_of(stored, {("sql", "a.sql"): "SELECT 1;"}).hash
    status = finished_status | {"scenarioHash": began_with}
    if reason is not None:
        (condition,) = finished_status["conditions"]
        failed = {**condition, "status": "False", "reason": reason}
        status = {"state": "Failed", "conditions": [failed]}
    manifest["spec"]["scenario"] = "desk"
    fake.put(RUN, {"spec": manifest["spec"], "status": status})
    sql = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sql"},
        "data": {"a.sql": "SELECT 1;"},
    }
    scenario = own_scenario(path)
    # An empty field is not there, and hides no change of the others.
    scenario["spec"]["feeders"] = None
    file = tmp_path / "desk.yaml"
    file.write_text(yaml.safe_dump_all([*([sql] if with_sql else []), scenario, manifest]))
    code, out, err = laptime("run", file, "--kubeconfig", kubeconfig)
    assert "demo is finished already" in out
    assert "Look further:" in out
    if expected is not None:
        assert expected in err
        assert code == 1
    else:
        assert not err


SCRIPT = "/api/v1/namespaces/team/configmaps/script"


@pytest.fixture
def with_script(manifest: Any, tmp_path: Path) -> Path:
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "script"},
        "data": {"script.js": "export default () => {}"},
    }
    file = tmp_path / "both.yaml"
    file.write_text(yaml.safe_dump_all([manifest, script]))
    return file


def test_config_maps_of_the_file_are_applied_first(
    laptime: Laptime, fake: Any, kubeconfig: Path, with_script: Path, finished_status: Any
) -> None:
    fake.statuses = [finished_status]
    code, _, _ = laptime("run", with_script, "--kubeconfig", kubeconfig)
    assert code == 0
    assert [document["kind"] for document in fake.applied] == ["ConfigMap", "BenchmarkRun"]


KEPT = [{"configMap": "script", "hash": script_hash({"data": {"script.js": "export {}"}})}]


def test_a_run_that_goes_on_is_not_given_another_script(
    laptime: Laptime, fake: Any, kubeconfig: Path, with_script: Path, manifest: Any
) -> None:
    theirs = fake.put(
        SCRIPT,
        {"metadata": written_by("laptime-cli", "f:data"), "data": {"script.js": "export {}"}},
    )
    status = {"state": "Running", "scripts": KEPT}
    fake.put(RUN, {"spec": manifest["spec"], "status": status})
    code, _, err = laptime("run", with_script, "--kubeconfig", kubeconfig)
    assert code == 1
    assert "ConfigMap script of the file has another script than it began with" in err
    assert f"{program_name()} cancel demo" in err
    assert fake.objects[SCRIPT] == theirs
    assert not fake.applied


def test_the_result_of_another_script_than_that_of_the_file_is_told_apart(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    with_script: Path,
    manifest: Any,
    finished_status: Any,
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": {**finished_status, "scripts": KEPT}})
    code, out, err = laptime("run", with_script, "--kubeconfig", kubeconfig)
    assert "demo: Succeeded" in out
    assert "ConfigMap script of the file has another script than it was measured with" in err
    # A pipeline that asks whether the file is good enough is told nothing of another one.
    assert code == 1


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_queued_run_that_somebody_gave_another_script_is_not_waited_for(
    output: str, laptime: Laptime, fake: Any, kubeconfig: Path, with_script: Path
) -> None:
    running = {"state": "Running", "scripts": KEPT}
    fake.statuses = [{}, {"state": "Queued"}, running]
    options = ("--output", output, "--timeout", "5s", "--kubeconfig", kubeconfig)
    code, _, err = laptime("run", with_script, *options)
    assert code == 1
    assert "demo goes on. ConfigMap script of the file has another script than it began" in err
    assert f"{program_name()} cancel demo" in err


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_queued_run_that_was_over_with_another_script_at_once_is_no_success(
    output: str,
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    with_script: Path,
    finished_status: Any,
) -> None:
    fake.statuses = [{}, {"state": "Queued"}, {**finished_status, "scripts": KEPT}]
    options = ("--output", output, "--timeout", "5s", "--kubeconfig", kubeconfig)
    code, out, err = laptime("run", with_script, *options)
    assert code == 1
    assert "15,363" in out or '"value": 15363' in out
    assert "ConfigMap script of the file has another script than it was measured with" in err


def written_by(*managers: str) -> dict[str, Any]:
    """Return the metadata of an object, its writers by turns with what they have written."""
    pairs = zip(managers[::2], managers[1::2], strict=True)
    managed = [{"manager": one, "fieldsV1": {field: {}}} for one, field in pairs]
    return {"managedFields": managed, "resourceVersion": "7"}


@pytest.mark.parametrize("command", ["run", "verify"])
@pytest.mark.parametrize(
    "writers",
    [
        ("kubectl", "f:data"),
        ("laptime-cli", "f:data", "kubectl-edit", "f:data"),
        ("laptime-cli", "f:metadata", "kubectl", "f:data"),
    ],
)
def test_somebody_elses_config_map_is_left_alone(
    command: str,
    writers: tuple[str, ...],
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    with_script: Path,
) -> None:
    theirs = fake.put(SCRIPT, {"metadata": written_by(*writers), "data": {"a": "theirs"}})
    code, _, err = laptime(command, with_script, "--kubeconfig", kubeconfig)
    assert code == 1
    assert "ConfigMap script is in namespace team already" in err
    assert fake.objects[SCRIPT] == theirs
    assert not fake.applied


def test_a_config_map_that_is_as_it_shall_be_is_left_alone_whoever_made_it(
    laptime: Laptime, fake: Any, kubeconfig: Path, with_script: Path, finished_status: Any
) -> None:
    fake.put(SCRIPT, {"data": {"script.js": "export default () => {}"}})
    fake.statuses = [finished_status]
    code, _, _ = laptime("run", with_script, "--kubeconfig", kubeconfig)
    assert code == 0
    assert [document["kind"] for document in fake.applied] == ["BenchmarkRun"]


@pytest.mark.parametrize("theirs", ["export default () => {}", "export {}"])
def test_a_config_map_that_another_job_makes_in_this_moment_is_used_or_left_alone(
    theirs: str,
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    with_script: Path,
    finished_status: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake.statuses = [finished_status]
    answer = fake.answer

    def taken(method: str, path: str, body: bytes) -> Any:
        if method == "POST" and "dryRun" not in path:
            fake.put(SCRIPT, {"data": {"script.js": theirs}})
            return 409, {"kind": "Status", "message": 'configmaps "script" already exists'}
        return answer(method, path, body)

    monkeypatch.setattr(fake, "answer", taken)
    code, _, err = laptime("run", with_script, "--kubeconfig", kubeconfig)
    same = theirs == "export default () => {}"
    assert code == int(not same), err
    assert ("is in namespace team already, with other content" in err) is not same
    assert [document["kind"] for document in fake.applied] == ["BenchmarkRun"] * same
    assert fake.objects[SCRIPT]["data"] == {"script.js": theirs}


def test_a_config_map_of_a_run_before_is_brought_up_to_date(
    laptime: Laptime, fake: Any, kubeconfig: Path, with_script: Path, finished_status: Any
) -> None:
    writers = ("laptime-cli", "f:data", "kubectl-label", "f:metadata")
    metadata = {**written_by(*writers), "labels": {"a": "b"}}
    before = fake.put(SCRIPT, {"metadata": metadata, "data": {"old.js": ""}})
    fake.statuses = [finished_status]
    code, _, _ = laptime("run", with_script, "--kubeconfig", kubeconfig)
    assert code == 0
    now = fake.objects[SCRIPT]
    assert now["data"] == {"script.js": "export default () => {}"}
    # Of this very object as it was read, and nothing else of it.
    for key in ("uid", "resourceVersion", "labels"):
        assert now["metadata"][key] == before["metadata"][key]


DESK = f"{RUN.rsplit('/', 2)[0]}/benchmarkscenarios/desk"


@pytest.fixture
def with_scenario(manifest: Any, tmp_path: Path) -> Path:
    manifest["spec"]["scenario"] = "desk"
    file = tmp_path / "desk.yaml"
    file.write_text(yaml.safe_dump_all([own_scenario("/"), manifest]))
    return file


@pytest.mark.parametrize("command", ["run", "verify"])
@pytest.mark.parametrize(
    "writers",
    [
        (),
        ("kubectl-client-side-apply", "f:spec"),
        # An earlier version of laptime-cli applied its file over that of a person.
        ("kubectl-client-side-apply", "f:spec", "laptime-cli", "f:spec"),
        ("laptime-cli", "f:spec", "kubectl-edit", "f:spec"),
    ],
)
def test_somebody_elses_scenario_is_left_alone(
    command: str,
    writers: tuple[str, ...],
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    with_scenario: Path,
) -> None:
    spec = own_scenario("/theirs")["spec"]
    fake.put(DESK, {"metadata": written_by(*writers), "spec": spec})
    code, _, err = laptime(command, with_scenario, "--timeout", "2s", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "BenchmarkScenario desk is in namespace team already, with other content" in err
    assert "kubectl apply -f FILE -n team" in err
    assert fake.objects[DESK]["spec"] == spec
    assert not fake.applied


def test_a_scenario_that_is_as_it_shall_be_is_left_alone_whoever_made_it(
    laptime: Laptime, fake: Any, kubeconfig: Path, with_scenario: Path, finished_status: Any
) -> None:
    stored = json.loads(json.dumps(own_scenario("/")).replace("1.0", "1"))
    # What is left out of the file stands there with its default.
    stored["spec"]["requests"][0] |= {"method": "GET", "weight": 1}
    theirs = {"metadata": written_by("kubectl", "f:spec"), "spec": stored["spec"]}
    fake.put(DESK, theirs)
    fake.statuses = [finished_status]
    code, _, err = laptime("run", with_scenario, "--kubeconfig", kubeconfig)
    assert code == 0, err
    assert [document["kind"] for document in fake.applied] == ["BenchmarkRun"]


def test_a_scenario_of_a_run_before_is_replaced_in_the_version_that_was_read(
    laptime: Laptime, fake: Any, kubeconfig: Path, with_scenario: Path, finished_status: Any
) -> None:
    before = own_scenario("/")["spec"]
    before["requests"] = [*before["requests"], {"name": "gone", "path": "/gone"}]
    writers = ("laptime-cli", "f:spec", "kubectl-label", "f:metadata")
    fake.put(DESK, {"metadata": written_by(*writers), "spec": before})
    fake.statuses = [finished_status]
    code, _, err = laptime("run", with_scenario, "--kubeconfig", kubeconfig)
    assert code == 0, err
    applied, _ = fake.applied
    assert applied["metadata"] == {"name": "desk", "resourceVersion": "7"}
    assert fake.objects[DESK]["spec"] == own_scenario("/")["spec"]


@pytest.mark.parametrize(
    ("retry", "state", "said"),
    [
        (1, "Running", "state Running"),
        (1, "Queued", "state Queued"),
        (2, "Failed", "its failed trials are asked for again"),
    ],
)
@pytest.mark.parametrize("command", ["report", "compare"])
def test_there_is_no_report_of_before_while_failed_trials_are_measured_again(
    command: str,
    retry: int,
    state: str,
    said: str,
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    finished_status: Any,
) -> None:
    spec, status = {**manifest["spec"], "retry": retry}, {**finished_status, "retries": 1}
    fake.put(RUN, {"spec": spec, "status": {**status, "state": state}})
    results = "/api/v1/namespaces/team/configmaps/demo-results"
    fake.put(results, {"data": {"results.json": '{"rows": []}'}})
    options = ["--output", "json"] if command == "report" else ["demo"]
    code, out, err = laptime(command, "demo", *options, "--kubeconfig", kubeconfig)
    assert (code, out) == (1, "")
    assert f"demo has no report yet ({said}): it is written when the run is over" in err


def test_report_prints_the_stored_document(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    finished_status: Any,
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    fake.put(
        "/api/v1/namespaces/team/configmaps/demo-results",
        {"data": {"results.json": '{"rows": []}'}},
    )
    code, out, _ = laptime("report", "demo", "--output", "json", "--kubeconfig", kubeconfig)
    assert (code, out) == (0, '{"rows": []}\n')


def test_report_of_a_run_that_goes_on_says_where_the_figures_are(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest: Any
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": {"state": "Running"}})
    code, _, err = laptime("report", "demo", "-o", "json", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "written when the run is over" in err
    assert err.endswith(f"laptime report demo --output table --kubeconfig {kubeconfig}\n")
    fake.put(RUN.replace("/team/", "/other/"), fake.objects[RUN])
    command = ("report", "demo", "-o", "json", "-n", "other", "--kubeconfig", kubeconfig)
    said = f"laptime report demo --output table -n other --kubeconfig {kubeconfig}\n"
    assert laptime(*command)[2].endswith(said)


def test_interrupted_says_how_to_come_back(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("laptime.cli.follow.follow", interrupt)
    code, out, _ = laptime("run", manifest_file, "-n", "other", "--kubeconfig", kubeconfig)
    assert code == 130
    assert "laptime watch demo -n other" in out
    assert "laptime cancel demo -n other" in out


def test_interrupted_while_a_file_is_applied_says_that_the_run_may_be_there(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    finished_status: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    apply_run = Cluster.apply_run

    def interrupted(cluster: Cluster, *arguments: Any) -> None:
        apply_run(cluster, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Cluster, "apply_run", interrupted)
    code, out, _ = laptime("run", manifest_file, "--again", "--kubeconfig", kubeconfig)
    assert code == 130
    assert "Deleting the finished run demo and its results." in out
    assert "The run may have been applied by now. Come back:  laptime watch demo" in out
    assert "End it:      laptime cancel demo" in out


@pytest.mark.parametrize("command", ["run", "watch"])
def test_who_is_to_sign_in_at_a_proxy_while_a_run_is_queued_is_told_the_way_back(
    command: str,
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": {"state": "Queued"}})
    answer = fake.answer

    def page(method: str, path: str, body: bytes) -> Any:
        if path.startswith("/apis/laptime.dev/v1alpha1/benchmarkruns"):
            return 200, "<html>sign in</html>"
        return answer(method, path, body)

    monkeypatch.setattr(fake, "answer", page)
    what = manifest_file if command == "run" else "demo"
    code, out, err = laptime(command, what, "--timeout", "9s", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "is no API server: it sends <html>sign in</html>" in err
    assert "Come back:  laptime watch demo" in out


@pytest.fixture
def prod(kubeconfig: Path) -> tuple[str, ...]:
    """The options of a cluster that is not the one of the current context."""
    document = yaml.safe_load(kubeconfig.read_text())
    elsewhere = {"name": "staging", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"cluster": "staging", "user": "test", "namespace": "other"}
    document["clusters"].append(elsewhere)
    document["contexts"].append({"name": "staging", "context": context})
    document["contexts"][0]["name"] = "[prod] b"
    document["current-context"] = "staging"
    file = kubeconfig.with_name("of two clusters")
    file.write_text(yaml.safe_dump(document))
    return ("--context", "[prod] b", "--kubeconfig", str(file))


def commands_in(said: str) -> list[list[str]]:
    """Return the commands that a text says to type, as a shell takes them."""
    found = re.findall(r"(?:^|[ (])((?:laptime|kubectl) [a-z]+ .*?)(?:$|[)], or )", said, re.M)
    return [shlex.split(one) for one in found]


@pytest.mark.parametrize(
    ("asked", "there", "typed"),
    [
        (("run", "FILE", "--timeout", "1ms"), {"state": "Running"}, ["watch", "cancel"]),
        (("watch", "demo", "--timeout", "1ms"), {"state": "Running"}, ["watch", "cancel"]),
        (("run", "OTHER"), {"state": "Running"}, ["cancel"]),
        (("watch", "demo"), {}, ["get", "describe", "report"]),
        (("watch", "gone"), {}, ["get"]),
        (("suspend", "demo"), {"state": "Running"}, ["resume"]),
        (("report", "demo"), {"state": "Running"}, ["report"]),
        (("verify", "FILE", "--timeout", "1ms"), {}, ["delete"]),
        (("verify", "FILE"), "demo-verify", ["delete"]),
        (("explain", "demo", "--server", "axum"), "demo-axum-explain", ["delete"]),
        (("run", "SCRIPT"), {"state": "Running"}, ["apply"]),
    ],
)
def test_commands_to_type_are_for_the_cluster_that_was_chosen(
    laptime: Laptime,
    fake: Any,
    prod: tuple[str, ...],
    manifest: Any,
    manifest_file: Path,
    with_script: Path,
    finished_status: Any,
    tmp_path: Path,
    asked: tuple[str, ...],
    there: Any,
    typed: list[str],
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({**manifest, "spec": {**manifest["spec"], "repetitions": 3}}))
    if isinstance(there, str):
        spec = {**manifest["spec"], "verifyOnly": True}
        fake.put(RUN.replace("/demo", f"/{there}"), {"spec": spec, "status": {}})
    status = there if there and isinstance(there, dict) else finished_status
    fake.put(RUN, {"spec": manifest["spec"], "status": status})
    fake.put(
        SCRIPT, {"data": {"script.js": "throw 1"}, "metadata": written_by("kubectl", "f:data")}
    )
    files = {"FILE": manifest_file, "OTHER": other, "SCRIPT": with_script}
    _, out, err = laptime(*(files.get(one, one) for one in asked), *prod)
    commands = commands_in(out + err)
    assert [command for _, command, *_ in commands] == typed, out + err
    for command in commands:
        assert "|".join(prod) in "|".join(command)


def test_what_is_said_to_end_a_run_ends_it_in_its_cluster(
    laptime: Laptime, fake: Any, prod: tuple[str, ...], manifest: Any
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": {"state": "Running"}})
    _, out, _ = laptime("watch", "demo", "--timeout", "1ms", *prod)
    _, (program, *arguments) = commands_in(out)
    assert program == "laptime"
    code, _, err = laptime(*arguments)
    assert code == 0, err
    assert [one["spec"] for one in fake.applied] == [{"cancel": True}]


@pytest.mark.parametrize(
    ("called_as", "shown"),
    [
        ("/usr/local/bin/kubectl-laptime", "kubectl laptime"),
        ("here/.venv/bin/laptime", "here/.venv/bin/laptime"),
        ("/usr/bin/pytest", "laptime"),
    ],
)
def test_commands_are_shown_as_they_can_be_typed(
    called_as: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [called_as])
    assert program_name() == shown


def test_a_program_of_the_path_is_shown_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "laptime"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path}")
    monkeypatch.setattr("sys.argv", [str(program)])
    assert program_name() == "laptime"


class TestMistakes:
    """What a person can get wrong is answered with a sentence, never with a traceback."""

    def test_missing_file(self, laptime: Laptime) -> None:
        code, _, err = laptime("run", "nowhere.yaml")
        assert code == 1
        assert err == "Error: Cannot read nowhere.yaml: No such file or directory\n"

    @pytest.mark.parametrize(
        ("written", "right"),
        [
            (("-n", "bench"), "-n NAMESPACE"),
            (("-nbench",), "-n NAMESPACE"),
            (("--namespace", "bench"), "--namespace NAMESPACE"),
            (("--namespace=bench",), "--namespace NAMESPACE"),
            (("--context", "lab"), "--context CONTEXT"),
            (("--kubeconfig=lab.yaml",), "--kubeconfig KUBECONFIG"),
        ],
    )
    def test_options_of_kubectl_before_the_command(
        self, laptime: Laptime, written: tuple[str, ...], right: str
    ) -> None:
        code, _, err = laptime(*written, "run", "demo.yaml")
        option = right.partition(" ")[0]
        assert code == 1
        assert err == (
            f"Error: No such option: {option}. "
            f"It goes after the command:  laptime run FILE {right}\n"
        )

    @pytest.mark.parametrize("written", [("-x", "run"), ("run", "-x", "-n", "bench")])
    def test_other_options_get_no_such_hint(
        self, laptime: Laptime, written: tuple[str, ...]
    ) -> None:
        code, _, err = laptime(*written)
        assert (code, err) == (1, "Error: No such option: -x\n")

    def test_no_kubeconfig(self, laptime: Laptime, manifest_file: Path) -> None:
        code, _, err = laptime("run", manifest_file)
        assert code == 1
        assert "No cluster to talk to" in err
        assert "make cluster" in err

    def test_broken_kubeconfig(self, laptime: Laptime, manifest_file: Path, tmp_path: Path) -> None:
        broken = tmp_path / "broken"
        broken.write_text("a: [")
        code, _, err = laptime("run", manifest_file, "--kubeconfig", broken)
        assert code == 1
        assert "Cannot read the kubeconfig" in err

    @pytest.mark.parametrize("text", ["- a\n", "just words\n"])
    def test_a_file_that_is_no_kubeconfig(
        self, text: str, laptime: Laptime, manifest_file: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "other.yaml"
        path.write_text(text)
        code, _, err = laptime("run", manifest_file, "--kubeconfig", path)
        assert code == 1
        assert "Cannot read the kubeconfig: it is none" in err

    def test_unknown_context(self, laptime: Laptime, kubeconfig: Path) -> None:
        code, _, err = laptime("watch", "demo", "--kubeconfig", kubeconfig, "--context", "b")
        assert code == 1
        assert "Expected object with name b" in err

    @pytest.mark.parametrize("current", ["", "deleted"])
    def test_a_context_that_is_given_needs_no_current_one(
        self, laptime: Laptime, kubeconfig: Path, current: str
    ) -> None:
        written = yaml.safe_load(kubeconfig.read_text()) | {"current-context": current}
        kubeconfig.write_text(yaml.safe_dump(written))
        command = ("watch", "demo", "--kubeconfig", kubeconfig)
        assert (
            "There is no BenchmarkRun demo in namespace team"
            in laptime(*command, "--context", "test")[2]
        )
        assert "No cluster to talk to" in laptime(*command)[2]

    def test_a_certificate_that_was_not_filled_in(self, laptime: Laptime, kubeconfig: Path) -> None:
        written = yaml.safe_load(kubeconfig.read_text())
        cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": "${CA_DATA}"}
        written["clusters"][0]["cluster"] = cluster
        kubeconfig.write_text(yaml.safe_dump(written))
        code, _, err = laptime("watch", "demo", "--kubeconfig", kubeconfig)
        assert code == 1
        assert "Cannot read the kubeconfig: " in err

    def test_a_pod_without_a_token(self, laptime: Laptime, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
        code, _, err = laptime("watch", "demo")
        assert code == 1
        assert "No cluster to talk to: Service token file does not exist." in err

    @pytest.mark.parametrize(
        "order", [("none", "mine", "prod"), ("mine", "none"), ("empty", "mine", "prod", "comment")]
    )
    def test_of_several_kubeconfigs_the_first_names_the_context(
        self, order: tuple[str, ...], laptime: Laptime, kubeconfig: Path, tmp_path: Path
    ) -> None:
        prod, none = tmp_path / "prod", tmp_path / "none"
        elsewhere = yaml.safe_load(kubeconfig.read_text().replace("test", "prod"))
        elsewhere["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:1"
        prod.write_text(yaml.safe_dump(elsewhere))
        none.write_text('current-context: ""\n')
        empty, comment = tmp_path / "empty", tmp_path / "comment"
        empty.touch()
        comment.write_text("# made by hand\n")
        paths = {"mine": kubeconfig, "prod": prod, "none": none, "empty": empty, "comment": comment}
        files = os.pathsep.join(str(paths[one]) for one in order)
        _, _, err = laptime("watch", "demo", "--kubeconfig", files)
        assert "There is no BenchmarkRun demo in namespace team" in err

    def test_a_kubeconfig_may_be_a_pipe(
        self, laptime: Laptime, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As a shell makes one of KUBECONFIG=<(vault read ...)."""
        reading, writing = os.pipe()
        os.write(writing, kubeconfig.read_bytes())
        os.close(writing)
        pipe = f"/dev/fd/{reading}"
        monkeypatch.setattr(cluster_access, "KUBE_CONFIG_DEFAULT_LOCATION", pipe)
        try:
            _, _, err = laptime("watch", "demo")
        finally:
            os.close(reading)
        assert "There is no BenchmarkRun demo in namespace team" in err

    @pytest.mark.parametrize(
        ("current", "said"),
        [
            ("gone", "Expected object with name gone"),
            # Here kubectl takes that of the pod, too.
            (None, "Service token file does not exist."),
            ("", "Service token file does not exist."),
        ],
    )
    def test_a_kubeconfig_with_a_context_that_is_gone_is_not_the_cluster_of_the_pod(
        self,
        current: str | None,
        said: str,
        laptime: Laptime,
        kubeconfig: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
        written = yaml.safe_load(kubeconfig.read_text()) | {"current-context": current}
        default = tmp_path / ".kube" / "config"
        default.parent.mkdir()
        default.write_text("" if current is None else yaml.safe_dump(written))
        code, _, err = laptime("watch", "demo")
        assert code == 1
        assert "No cluster to talk to: " in err
        assert said in err

    def test_a_kubeconfig_variable_that_is_empty_is_none(
        self,
        laptime: Laptime,
        kubeconfig: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(cluster_access, "KUBE_CONFIG_DEFAULT_LOCATION", "")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
        (tmp_path / ".kube").mkdir()
        kubeconfig.rename(tmp_path / ".kube" / "config")
        _, _, err = laptime("watch", "demo")
        assert "There is no BenchmarkRun demo in namespace team" in err

    @pytest.mark.parametrize(
        "command",
        [
            ("watch", ""),
            ("cancel", ""),
            ("report", ".."),
            ("compare", "", "demo"),
            ("explain", "."),
        ],
    )
    def test_a_name_of_a_variable_that_is_not_set(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, command: tuple[str, ...]
    ) -> None:
        code, _, err = laptime(*command, "--kubeconfig", kubeconfig)
        assert code == 1
        assert 'the name of the run is "' in err
        assert not fake.requests

    def test_a_run_that_shall_have_an_empty_name(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
    ) -> None:
        options = ("--name", "", "--timeout", "1s", "--kubeconfig", kubeconfig)
        code, _, err = laptime("run", manifest_file, *options)
        assert code == 1
        assert 'the name of the run is ""' in err
        assert not fake.requests

    @pytest.mark.parametrize("command", ["watch", "validate"])
    def test_a_proxy_that_asks_who_is_there(
        self,
        laptime: Laptime,
        fake: Any,
        kubeconfig: Path,
        manifest_file: Path,
        command: str,
    ) -> None:
        fake.refuse = (200, "<html>sign in</html>")
        what = [manifest_file, "--server"] if command == "validate" else ["demo"]
        code, _, err = laptime(command, *what, "--kubeconfig", kubeconfig)
        assert code == 1
        assert "is no API server: it sends <html>sign in</html>" in err

    def test_unreachable_cluster(self, laptime: Laptime, unreachable_kubeconfig: Path) -> None:
        code, _, err = laptime("watch", "demo", "--kubeconfig", unreachable_kubeconfig)
        assert code == 1
        assert "the cluster cannot be reached ([Errno 111] Connection refused)" in err

    def test_a_handshake_that_breaks_is_a_cluster_out_of_reach(
        self, kubeconfig: Path, laptime: Laptime
    ) -> None:
        class Closes(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                self.request.recv(4096)

        with served(HTTPServer(("127.0.0.1", 0), Closes)) as port:
            text = kubeconfig.read_text()
            kubeconfig.write_text(re.sub("http:.*", f"https://127.0.0.1:{port}", text))
            code, _, err = laptime("watch", "demo", "--kubeconfig", kubeconfig)
            with pytest.raises(Unreachable):
                Cluster.connect(kubeconfig).run("team", "demo")
        assert code == 1
        assert re.search(r"the cluster cannot be reached \(.*EOF.*\)\n$", err)

    def test_a_certificate_that_nobody_here_trusts(self, tmp_path: Path, laptime: Laptime) -> None:
        theirs, ours = Authority(tmp_path, "theirs"), Authority(tmp_path, "ours")
        with tls_server(theirs.server("localhost")) as address:
            file = private_kubeconfig(tmp_path / "config", address, ours)
            code, _, err = laptime("watch", "demo", "--kubeconfig", file)
        assert code == 1
        assert "the cluster cannot be reached (certificate verify failed: " in err
        assert "_ssl.c" not in err

    def test_no_such_run(self, laptime: Laptime, kubeconfig: Path) -> None:
        code, _, err = laptime("watch", "demo", "--kubeconfig", kubeconfig)
        assert code == 1
        assert "There is no BenchmarkRun demo in namespace team" in err

    def test_chart_not_installed(
        self, laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
    ) -> None:
        fake.refuse = (404, "404 page not found\n")
        code, _, err = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
        assert code == 1
        assert "does not know the kind BenchmarkRun" in err
        assert "helm upgrade --install laptime" in err

    def test_two_namespaces(
        self, laptime: Laptime, kubeconfig: Path, manifest: Any, tmp_path: Path
    ) -> None:
        manifest["metadata"]["namespace"] = "a"
        file = tmp_path / "a.yaml"
        file.write_text(yaml.safe_dump(manifest))
        code, _, err = laptime("run", file, "-n", "b", "--kubeconfig", kubeconfig)
        assert code == 1
        assert "namespace a" in err

    def test_wrong_option(self, laptime: Laptime) -> None:
        code, _, err = laptime("report", "demo", "--output", "pdf")
        assert code == 1
        assert "'pdf' is not one of" in err


def test_a_node_is_known_however_many_there_are_before_it(fake: Any, kubeconfig: Path) -> None:
    fake.nodes = [f"node-{number:03d}" for number in range(150)]
    cluster = Cluster.connect(kubeconfig)

    def nodes(*names: str) -> dict[str, str]:
        facts = cluster.facts([*names])
        return {name: said for name, said in facts.items() if name.startswith("Node ")}

    said = nodes("gone", "node-149", "node-002")
    assert list(said) == ["Node node-149", "Node node-002"]
    assert "kernel kernelVersion of node-149" in said["Node node-149"]
    # One of many is not known to be that of a run that says of no node.
    assert not nodes()
    fake.nodes = ["alone"]
    assert list(nodes()) == ["Node alone"]


def test_the_runs_that_come_before_one_are_counted(fake: Any, kubeconfig: Path) -> None:
    def put(namespace: str, name: str, age: int, **status: Any) -> None:
        path = f"/apis/laptime.dev/v1alpha1/namespaces/{namespace}/benchmarkruns/{name}"
        made = {"creationTimestamp": f"2026-01-01T00:00:{59 - age:02d}Z"}
        fake.put(path, {"metadata": made, "spec": {"scenario": "users"}, "status": status})

    refused = {"type": "Accepted", "status": "False", "reason": "NamespaceNotEnabled"}
    put("other", "at-work", 10, state="Running")
    put("other", "older", 30, state="Queued")
    put("team", "not-looked-at", 25)
    put("team", "refused", 40, state="Queued", conditions=[refused])
    put("team", "mine", 20, state="Queued")
    put("other", "younger", 5, state="Queued")
    put("other", "done", 50, state="Succeeded")
    cluster = Cluster.connect(kubeconfig)
    mine = cluster.run("team", "mine")
    assert mine is not None
    # The one at work and an older one of its namespace; others take turns with it.
    assert cluster.turns_before(mine) == 2
    older = cluster.run("other", "older")
    assert older is not None
    assert cluster.turns_before(older) == 1
    (asked, *_) = (path for _, path in fake.requests if "fieldSelector" in path)
    # Those that are over are not even sent.
    assert all(f"status.state%21%3D{one}" in asked for one in ("Succeeded", "Failed", "Cancelled"))
    fake.refuse = (403, {"kind": "Status", "message": "runs is forbidden"})
    assert cluster.turns_before(mine) is None


@pytest.mark.parametrize(
    ("command", "change"),
    [
        ("suspend", {"suspend": True}),
        ("resume", {"suspend": False}),
        ("cancel", {"cancel": True}),
    ],
)
def test_a_run_that_goes_on_is_asked_for_one_thing_and_nothing_else_of_it_changes(
    laptime: Laptime, fake: Any, kubeconfig: Path, command: str, change: dict[str, bool]
) -> None:
    there = fake.put(RUN, {"spec": {}, "status": {"state": "Running"}})
    code, out, err = laptime(command, "demo", "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    assert "demo" in out
    assert fake.applied == [{"metadata": {"uid": there["metadata"]["uid"]}, "spec": change}]


@pytest.mark.parametrize("command", ["suspend", "resume", "cancel"])
def test_a_run_that_is_over_is_not_asked_for_anything(
    laptime: Laptime, fake: Any, kubeconfig: Path, command: str
) -> None:
    fake.put(RUN, {"spec": {}, "status": {"state": "Succeeded"}})
    code, _, err = laptime(command, "demo", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "demo is over (Succeeded)" in err
    assert fake.applied == []


def test_failed_trials_of_a_run_that_is_over_are_asked_for_again(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    spec = yaml.safe_load(manifest_file.read_text())["spec"]
    fake.put(RUN, {"spec": {**spec, "retry": 2}, "status": {"state": "Failed", "retries": 2}})
    code, out, err = laptime("retry", "demo", "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    assert "watch demo" in out
    assert [one["spec"] for one in fake.applied] == [{"retry": 3}]


@pytest.mark.parametrize(
    ("command", "state", "then"),
    [
        ("suspend", "Running", "resume"),
        ("resume", "Suspended", "watch"),
        ("cancel", "Running", "watch"),
        ("retry", "Failed", "watch"),
    ],
)
def test_the_next_command_is_said_with_the_namespace_of_the_run(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest: dict[str, Any],
    command: str,
    state: str,
    then: str,
) -> None:
    run = {"spec": manifest["spec"], "status": {"state": state}}
    for namespace in ("team", "other"):
        fake.put(RUN.replace("/team/", f"/{namespace}/"), run)
    there = f"--kubeconfig {kubeconfig}"
    code, out, err = laptime(command, "demo", "-n", "other", "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    assert out.endswith(f":  laptime {then} demo -n other {there}\n")
    _, out, _ = laptime(command, "demo", "--kubeconfig", kubeconfig)
    assert out.endswith(f":  laptime {then} demo {there}\n")


def test_a_run_without_failed_trials_is_not_asked_for_them(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest: Any, finished_status: Any
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    code, _, err = laptime("retry", "demo", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "demo has no failed trials: all was measured" in err
    assert fake.applied == []


def test_a_cancelled_run_does_not_go_on(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest: Any
) -> None:
    spec = {**manifest["spec"], "cancel": True, "suspend": True}
    fake.put(RUN, {"spec": spec, "status": {"state": "Finishing"}})
    code, _, err = laptime("resume", "demo", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "demo was cancelled, which cannot be taken back" in err
    assert fake.applied == []


@pytest.mark.parametrize("state", ["Running", "Queued"])
def test_a_run_that_goes_on_is_not_asked_again(
    laptime: Laptime, fake: Any, kubeconfig: Path, state: str
) -> None:
    fake.put(RUN, {"spec": {}, "status": {"state": state}})
    code, _, err = laptime("retry", "demo", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "is not over yet" in err
    assert fake.applied == []


NEWER = "A newer version of Laptime wrote demo, and this one cannot read it."


@pytest.mark.parametrize(
    "of_newer",
    [
        {"state": "Paused"},
        {"state": "Running", "results": [{"server": "axum", "load": "closed", "state": "Odd"}]},
    ],
)
def test_a_status_that_a_newer_version_begins_to_write_ends_the_looking_with_a_word(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path, of_newer: Any
) -> None:
    fake.statuses = [{}, {"state": "Running"}, of_newer]
    code, out, err = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 1
    assert NEWER in err
    assert "pip install" in err
    assert "The run goes on in the cluster." in out
    assert "watch demo" in out


def test_a_run_that_is_over_is_not_said_to_go_on(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    odd = [{"server": "axum", "load": "closed", "state": "Odd"}]
    fake.statuses = [{}, {"state": "Running"}, {"state": "Succeeded", "results": odd}]
    code, out, err = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 1
    assert NEWER in err
    assert "goes on" not in out


@pytest.mark.parametrize(
    ("command", "asked"),
    [("cancel", {"cancel": True}), ("suspend", {"suspend": True}), ("resume", {"suspend": False})],
)
def test_a_run_can_be_stopped_whose_status_a_newer_version_wrote(
    laptime: Laptime, fake: Any, kubeconfig: Path, command: str, asked: Any
) -> None:
    fake.put(RUN, {"spec": {}, "status": {"state": "Paused"}})
    code, _, err = laptime(command, "demo", "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    assert [one["spec"] for one in fake.applied] == [asked]
    odd = [{"server": "axum", "load": "closed", "state": "Odd"}]
    fake.put(RUN, {"spec": {}, "status": {"state": "Succeeded", "results": odd}})
    code, _, err = laptime(command, "demo", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "demo is over (Succeeded)" in err


@pytest.mark.parametrize("command", ["watch", "report", "explain", "retry"])
def test_what_a_newer_version_wrote_is_no_traceback(
    laptime: Laptime, fake: Any, kubeconfig: Path, command: str
) -> None:
    fake.put(RUN, {"spec": {}, "status": {"state": "Paused"}})
    code, _, err = laptime(command, "demo", "--kubeconfig", kubeconfig)
    assert code == 1
    assert NEWER in err


def test_a_spec_of_a_newer_version_is_not_called_cancelled(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest: Any
) -> None:
    spec = {**manifest["spec"], "ofNewer": True}
    fake.put(RUN, {"spec": spec, "status": {"state": "Failed"}})
    code, _, err = laptime("retry", "demo", "--kubeconfig", kubeconfig)
    assert code == 1
    assert NEWER in err
    assert "--again" not in err
    fake.put(RUN, {"spec": {**manifest["spec"], "cancel": True}, "status": {"state": "Cancelled"}})
    code, _, err = laptime("retry", "demo", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "demo was cancelled: apply it under another name, or with --again" in err
    assert fake.applied == []
