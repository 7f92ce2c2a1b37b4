"""`laptime explain` without a server: each server of the run, one experiment after the other."""

from __future__ import annotations

import copy
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Laptime = Callable[..., tuple[int, str, str]]
Status = dict[str, Any]
RUNS = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns"
SERVERS = ["fastapi", "axum", "async"]
MADE = {one: f"{RUNS}/demo-{one}-explain" for one in SERVERS}


@pytest.fixture
def demo(fake: Any, manifest: dict[str, Any], finished_status: Status) -> Any:
    """A finished run: of two of its servers something can be tried, and not of the one between."""
    manifest["spec"]["servers"].append({"name": "async", "preset": "fastapi-async"})
    row, other = finished_status["results"]
    finished_status["results"] = [row, other, {**copy.deepcopy(row), "server": "async"}]
    causes = ["databaseConnections", "postgresCpu", "serverCpu"]
    for one, cause in zip(finished_status["results"], causes, strict=True):
        one["limitedBy"] = {"cause": cause, "evidence": "0.99 of 1"}
    fake.put(f"{RUNS}/demo", manifest | {"status": finished_status})
    return fake


Ending = Callable[[dict[str, Any]], Status]


def gaining(gain: float) -> Ending:
    """Return what makes an experiment end with an arm that is so many times as fast."""

    def ended(experiment: dict[str, Any]) -> Status:
        unchanged, *arms = (one["name"] for one in experiment["spec"]["servers"])
        row = {
            "server": unchanged,
            "load": "closed",
            "state": "Measured",
            "trials": 5,
            "requestsPerSecond": {"value": 600, "low": 590, "high": 610},
            "factor": {"value": 1, "low": 1, "high": 1},
            "validity": "valid",
        }
        factor = {"value": gain, "low": gain - 0.02, "high": gain + 0.02}
        rows = [row, *({**row, "server": arm, "factor": factor} for arm in arms)]
        return {"state": "Succeeded", "results": rows, "resultsConfigMap": "some-results"}

    return ended


@pytest.fixture
def ends(demo: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Ending]:
    """What comes of the experiment on each server; one that is not named is refused."""
    endings = {"fastapi": gaining(1.5), "async": gaining(1.0)}
    demo.refused_with = 422
    asked = demo.answer

    def answer(method: str, path: str, body: bytes) -> Any:
        code, found = asked(method, path, body)
        if method == "PATCH":
            server = found["spec"]["servers"][0]["name"]
            if server not in endings:
                return demo.refused_with, {"kind": "Status", "message": f"no {server} here"}
            if "dryRun" not in path:
                found["status"] = endings[server](found)
        return code, found

    monkeypatch.setattr(demo, "answer", answer)
    return endings


def interrupted(_: dict[str, Any]) -> Status:
    """Send Ctrl-C as soon as an experiment is applied, which goes on."""
    os.kill(os.getpid(), signal.SIGINT)
    return {"state": "Running"}


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """What a shell starts in the background ignores it, and so does this process then."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def call(laptime: Laptime, kubeconfig: Path, *more: object) -> tuple[int, str, str]:
    return laptime("explain", "demo", "--kubeconfig", kubeconfig, *more)


def findings(out: str) -> list[tuple[str, str, str]]:
    """Return server, what it had more of and the finding of each line of the table."""
    lines = out.partition("What more of it gives")[2].splitlines()
    cells = [re.split(r"  +", line.strip()) for line in lines]
    found = [one for one in cells if len(one) > 4 and one[0] in SERVERS]
    return [(server, what.partition(",")[0], cause) for server, _, what, _, cause, *_ in found]


ALL = [
    ("fastapi", "10 database connections instead of 5", "confirmed"),
    ("axum", "postgres.cpu", "not to be had here"),
    ("async", "2 workers instead of 1", "refuted"),
]


@pytest.mark.usefixtures("ends")
def test_each_server_has_an_experiment_of_its_own_and_one_table_has_all_findings(
    laptime: Laptime, demo: Any, kubeconfig: Path
) -> None:
    code, out, err = call(laptime, kubeconfig)
    assert (code, err) == (0, "")
    first, second = demo.applied
    assert [one["metadata"]["name"] for one in demo.applied] == [
        "demo-fastapi-explain",
        "demo-async-explain",
    ]
    about = [one["metadata"]["annotations"]["laptime.dev/explains-server"] for one in demo.applied]
    assert about == ["demo/fastapi", "demo/async"]
    assert {one["metadata"]["labels"]["laptime.dev/explains"] for one in demo.applied} == {"uid-1"}
    assert [one["name"] for one in first["spec"]["servers"]] == ["fastapi", "fastapi-conns"]
    assert [one["name"] for one in second["spec"]["servers"]] == ["async", "async-workers"]
    assert out.count("What more of it gives") == 1
    assert findings(out) == ALL


@pytest.mark.usefixtures("ends")
def test_what_all_of_it_costs_and_what_is_not_tried_is_said_before_it_begins(
    laptime: Laptime, kubeconfig: Path
) -> None:
    _, out, _ = call(laptime, kubeconfig)
    before, _, after = out.partition("1 of 2: demo-fastapi-explain")
    assert "2 runs, one after the other, 20 trials, about 4 min in all" in before
    assert "measures fastapi beside itself with more under closed, 10 trials, about 2 min" in before
    assert "measures async beside itself with more under closed, 10 trials, about 2 min" in before
    why = "Nothing to try: Postgres has no limit of CPU in the run"
    assert f"axum:\n  {why}" in before
    assert "2 of 2: demo-async-explain" in after
    assert f"axum:\n  {why}" in after.partition("What more of it gives")[2]


@pytest.mark.usefixtures("ends")
def test_one_server_is_explained_as_with_its_name_and_makes_no_list(
    laptime: Laptime, demo: Any, kubeconfig: Path
) -> None:
    demo.objects[f"{RUNS}/demo"]["spec"]["servers"] = [{"name": "async", "preset": "fastapi-async"}]
    code, out, _ = call(laptime, kubeconfig, "-o", "json")
    unnamed = json.loads(out)
    _, out, _ = call(laptime, kubeconfig, "--server", "async", "-o", "json")
    assert (code, json.loads(out)) == (0, unnamed)
    assert (unnamed["name"], unnamed["server"]) == ("demo-async-explain", "async")
    assert len(demo.applied) == 1


@pytest.mark.usefixtures("ends")
def test_for_programs_each_server_has_the_document_that_it_has_alone(
    laptime: Laptime, kubeconfig: Path
) -> None:
    code, out, err = call(laptime, kubeconfig, "-o", "json")
    assert code == 0
    assert "2 runs, one after the other" in err
    every = json.loads(out)
    assert [one["server"] for one in every] == SERVERS
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", "-o", "json")
    assert every[0] == json.loads(out)
    fastapi, axum, other = every
    assert [one["finding"] for one in fastapi["explained"] + other["explained"]] == [
        "confirmed",
        "refuted",
    ]
    assert axum.keys() == fastapi.keys()
    assert (axum["name"], axum["explained"], fastapi["message"]) == (None, [], "")
    assert axum["message"].startswith("Nothing to try: Postgres has no limit of CPU in the run")
    assert [one["candidate"] for one in axum["notToBeHad"]] == ["postgres.cpu"]


@pytest.mark.usefixtures("ends")
def test_what_is_there_already_is_shown_and_not_made_again(
    laptime: Laptime, demo: Any, kubeconfig: Path
) -> None:
    call(laptime, kubeconfig, "--server", "fastapi")
    uid = demo.objects[MADE["fastapi"]]["metadata"]["uid"]
    code, out, _ = call(laptime, kubeconfig)
    assert code == 0
    assert "demo-fastapi-explain is finished already, this is its result" in out
    assert "1 run, 10 trials, about 2 min in all" in out
    assert findings(out) == ALL
    code, out, _ = call(laptime, kubeconfig)
    assert (code, findings(out)) == (0, ALL)
    assert "in all" not in out
    assert len(demo.applied) == 2
    assert demo.objects[MADE["fastapi"]]["metadata"]["uid"] == uid


@pytest.mark.usefixtures("ends")
def test_again_measures_each_anew(laptime: Laptime, demo: Any, kubeconfig: Path) -> None:
    call(laptime, kubeconfig)
    before = [demo.objects[MADE[one]]["metadata"]["uid"] for one in ("fastapi", "async")]
    code, out, _ = call(laptime, kubeconfig, "--again")
    assert (code, findings(out)) == (0, ALL)
    after = [demo.objects[MADE[one]]["metadata"]["uid"] for one in ("fastapi", "async")]
    assert set(after).isdisjoint(before)


def test_options_are_those_of_each_and_what_was_made_with_them_is_not_made_again(
    laptime: Laptime, demo: Any, kubeconfig: Path, ends: dict[str, Ending]
) -> None:
    more = ("--more", "workers", "--repetitions", "3")
    call(laptime, kubeconfig, "--server", "async", *more)
    uid = demo.objects[MADE["async"]]["metadata"]["uid"]
    ends["axum"] = gaining(1.2)
    code, out, _ = call(laptime, kubeconfig, *more)
    assert code == 0
    tried = [(server, finding) for server, what, finding in findings(out) if "workers" in what]
    assert tried == [("fastapi", "confirmed"), ("axum", "confirmed"), ("async", "refuted")]
    assert {demo.objects[one]["spec"]["repetitions"] for one in MADE.values()} == {3}
    assert demo.objects[MADE["async"]]["metadata"]["uid"] == uid


@pytest.mark.usefixtures("ends")
def test_one_that_was_made_with_other_options_is_shown_and_said_not_to_be_what_was_asked_for(
    laptime: Laptime, demo: Any, kubeconfig: Path
) -> None:
    call(laptime, kubeconfig)
    uid = demo.objects[MADE["fastapi"]]["metadata"]["uid"]
    code, out, _ = call(laptime, kubeconfig, "--repetitions", "9")
    assert (code, findings(out)) == (1, ALL)
    assert "demo-fastapi-explain was measured before: --again deletes it, and measures" in out
    assert demo.objects[MADE["fastapi"]]["metadata"]["uid"] == uid


@pytest.mark.parametrize("code", [422, 403])
def test_one_that_is_refused_leaves_the_others_and_is_made_when_called_again(
    laptime: Laptime, demo: Any, kubeconfig: Path, ends: dict[str, Ending], code: int
) -> None:
    ending = ends.pop("fastapi")
    demo.refused_with = code
    code, out, _ = call(laptime, kubeconfig)
    assert code == 1
    assert findings(out) == [("fastapi", "-", "not tried"), *ALL[1:]]
    assert "no fastapi here" in out.partition("What more of it gives")[2]
    ends["fastapi"] = ending
    code, out, _ = call(laptime, kubeconfig)
    assert (code, findings(out)) == (0, ALL)
    assert [one for one in demo.objects if one in MADE.values()] == [MADE["async"], MADE["fastapi"]]


def test_one_that_fails_leaves_the_others_and_says_how_to_measure_it_anew(
    laptime: Laptime, kubeconfig: Path, ends: dict[str, Ending]
) -> None:
    ended = {"type": "Succeeded", "status": "False", "reason": "NoServerVerified"}
    ended |= {"message": "none answered", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ends["fastapi"] = lambda _: {"state": "Failed", "results": [], "conditions": [ended]}
    code, out, _ = call(laptime, kubeconfig)
    assert code == 1
    assert findings(out) == [("fastapi", "-", "not known"), *ALL[1:]]
    said = out.partition("What more of it gives")[2]
    assert "demo-fastapi-explain: Failed. NoServerVerified: none answered" in said
    assert "laptime explain demo --server fastapi --again --kubeconfig" in said
    _, out, _ = call(laptime, kubeconfig, "-o", "json")
    assert json.loads(out)[0]["message"].startswith("demo-fastapi-explain: Failed.")


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_shows_what_the_others_found_and_calling_it_again_goes_on(
    laptime: Laptime, demo: Any, kubeconfig: Path, ends: dict[str, Ending]
) -> None:
    ends["async"] = interrupted
    code, out, _ = call(laptime, kubeconfig, "--repetitions", "3")
    assert code == 130
    assert findings(out) == [*ALL[:2], ("async", "-", "not tried")]
    assert "Come back:  laptime watch demo-async-explain" in out
    assert "What is missing:  laptime explain demo --repetitions 3 --kubeconfig" in out
    # It goes on in the cluster, and is watched.
    experiment = demo.objects[MADE["async"]]
    experiment["status"] = gaining(1.0)(experiment)
    code, out, _ = call(laptime, kubeconfig, "--repetitions", "3")
    assert (code, findings(out), len(demo.applied)) == (0, ALL, 2)


@pytest.mark.usefixtures("ctrl_c")
def test_what_was_to_be_measured_anew_is_named_where_ctrl_c_ended_it(
    laptime: Laptime, kubeconfig: Path, ends: dict[str, Ending]
) -> None:
    call(laptime, kubeconfig)

    ends["fastapi"] = interrupted
    code, out, err = call(laptime, kubeconfig, "--again", "-o", "json")
    assert code == 130
    messages = {one["server"]: one["message"] for one in json.loads(out)}
    assert messages["fastapi"] == "demo-fastapi-explain is not measured anew yet"
    assert messages["async"] == "demo-async-explain is not measured anew yet"
    for missing in ("fastapi --kubeconfig", "async --again --kubeconfig"):
        assert f"What is missing:  laptime explain demo --server {missing}" in err


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    ("ended", "typed"),
    [
        # What is there now goes on, and would be refused with other options.
        ("applied", "fastapi --kubeconfig"),
        # What was there before still is.
        ("kept", "fastapi --again --repetitions 3 --kubeconfig"),
        # It was deleted, and with it what somebody had it try.
        ("gone", "fastapi --more workers --repetitions 3 --kubeconfig"),
    ],
)
def test_after_ctrl_c_the_first_goes_on_with_what_is_typed_by_what_is_there(
    laptime: Laptime,
    demo: Any,
    kubeconfig: Path,
    ends: dict[str, Ending],
    monkeypatch: pytest.MonkeyPatch,
    ended: str,
    typed: str,
) -> None:
    call(laptime, kubeconfig, "--server", "fastapi", "--more", "workers")
    ends["fastapi"] = interrupted
    if ended != "applied":
        answer = demo.answer

        def stops(method: str, path: str, body: bytes) -> Any:
            if method == "DELETE" and ended == "kept":
                os.kill(os.getpid(), signal.SIGINT)
                return 403, {"kind": "Status", "message": "no"}
            found = answer(method, path, body)
            if method == "DELETE":
                os.kill(os.getpid(), signal.SIGINT)
            return found

        monkeypatch.setattr(demo, "answer", stops)
    code, _, err = call(laptime, kubeconfig, "--again", "--repetitions", "3", "-o", "json")
    assert code == 130
    assert f"What is missing:  laptime explain demo --server {typed}" in err


@pytest.mark.usefixtures("ends")
def test_one_that_goes_on_already_is_waited_for(
    laptime: Laptime, demo: Any, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(laptime, kubeconfig, "--server", "fastapi")
    experiment, asked = demo.objects[MADE["fastapi"]], demo.answer
    looks = [{"state": "Running"}, {"state": "Running"}]

    def answer(method: str, path: str, body: bytes) -> Any:
        code, found = asked(method, path, body)
        if path == MADE["fastapi"] and looks:
            found = found | {"status": looks.pop()}
        return code, found

    monkeypatch.setattr(demo, "answer", answer)
    code, out, _ = call(laptime, kubeconfig)
    assert (code, looks) == (0, [])
    assert demo.objects[MADE["fastapi"]] is experiment
    assert "demo-fastapi-explain goes on already, and is waited for" in out
    assert "1 run, 10 trials, about 2 min in all" in out
    assert "2 of 2: demo-async-explain" in out
    assert findings(out) == ALL


@pytest.mark.usefixtures("ends")
def test_a_strangers_run_of_that_name_stays_and_keeps_no_other_server_back(
    laptime: Laptime, demo: Any, kubeconfig: Path, manifest: dict[str, Any]
) -> None:
    theirs = demo.put(MADE["fastapi"], {**copy.deepcopy(manifest), "status": {"state": "Failed"}})
    code, out, _ = call(laptime, kubeconfig, "--again")
    assert code == 1
    assert "is no experiment on fastapi of demo: delete it, if it is yours" in out
    assert findings(out)[-1] == ALL[-1]
    assert demo.objects[MADE["fastapi"]] == theirs


def test_where_nothing_can_be_tried_of_any_server_each_is_said_why(
    laptime: Laptime, demo: Any, kubeconfig: Path, finished_status: Status
) -> None:
    for row, cause in zip(finished_status["results"], ["node", "unknown", "node"], strict=True):
        row["limitedBy"]["cause"] = cause
    code, out, _ = call(laptime, kubeconfig)
    assert (code, demo.applied) == (1, [])
    assert findings(out) == [
        ("fastapi", "node", "not to be had here"),
        ("axum", "-", "not tried"),
        ("async", "node", "not to be had here"),
    ]
    assert "What limited fastapi lies outside of it (node)" in out
    assert "What limited axum is not known." in out


@pytest.mark.parametrize("state", ["Succeeded", "Running"])
def test_one_that_tried_something_else_is_not_hidden_where_nothing_can_be_tried(
    laptime: Laptime, demo: Any, kubeconfig: Path, ends: dict[str, Ending], state: str
) -> None:
    ends["axum"] = gaining(1.2)
    call(laptime, kubeconfig, "--server", "axum", "--more", "workers")
    demo.objects[MADE["axum"]]["status"]["state"] = state
    code, out, _ = call(laptime, kubeconfig, "--repetitions", "5")
    assert code == 1
    (axum,) = [one for one in findings(out) if one[:2] != ALL[1][:2] and one[0] == "axum"]
    said = out.partition("What more of it gives")[2]
    assert "Nothing to try: Postgres has no limit of CPU in the run" in said
    if state == "Running":
        assert axum == ("axum", "-", "not tried")
        assert "demo-axum-explain goes on: wait until it is over" in said
    else:
        assert axum == ("axum", "2 workers instead of 1", "confirmed")
        assert "demo-axum-explain was measured before: --again deletes it, and measures" in said


@pytest.mark.usefixtures("ends")
def test_more_trials_than_a_run_may_have_are_no_finding(
    laptime: Laptime, demo: Any, kubeconfig: Path
) -> None:
    call(laptime, kubeconfig, "--server", "async")
    spec = demo.objects[f"{RUNS}/demo"]["spec"]
    (load,) = spec["loads"]
    spec["loads"] += [{**load, "name": f"load-{one}"} for one in range(11)]
    more = ("--more", "workers", "--repetitions", "90")
    code, out, _ = call(laptime, kubeconfig, *more)
    assert code == 1
    assert "2160 trials are more than 2000: fewer repetitions" in out
    assert findings(out)[0] == ("fastapi", "-", "not tried")
    assert findings(out)[-1] == ALL[-1]
    code, out, _ = call(laptime, kubeconfig, *more, "-o", "json")
    assert code == 1


def test_that_one_was_not_tried_is_said_beside_what_is_not_to_be_had(
    laptime: Laptime, demo: Any, kubeconfig: Path, ends: dict[str, Ending]
) -> None:
    assert "axum" not in ends
    code, out, _ = call(laptime, kubeconfig, "--more", "workers")
    assert code == 1
    axum = [one for one in findings(out) if one[0] == "axum"]
    assert axum == [("axum", "-", "not tried"), ALL[1]]


@pytest.mark.usefixtures("ends")
def test_the_server_that_is_there_for_the_control_is_not_explained(
    laptime: Laptime, demo: Any, kubeconfig: Path
) -> None:
    demo.objects[f"{RUNS}/demo"]["spec"]["control"] = True
    _, out, _ = call(laptime, kubeconfig, "-o", "json")
    assert [one["server"] for one in json.loads(out)] == SERVERS


@pytest.mark.usefixtures("ends")
def test_a_cluster_that_is_out_of_reach_ends_it_with_what_was_found(
    laptime: Laptime, demo: Any, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laptime.cli.follow.PATIENCE_SECONDS", 0.05)
    demo.lose(10**6, "GET", MADE["async"], after=("PATCH", MADE["fastapi"]))
    code, out, err = call(laptime, kubeconfig)
    assert code == 1
    assert findings(out) == [*ALL[:2], ("async", "-", "not tried")]
    assert "What is missing:  laptime explain demo --kubeconfig" in out
    assert "Error:" in err
