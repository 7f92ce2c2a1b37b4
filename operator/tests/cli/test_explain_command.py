"""`laptime explain`: what it tries, what it says of it, and what it leaves alone."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from laptime.api import doubts
from laptime.api.spec import CHANGEABLE

Laptime = Callable[..., tuple[int, str, str]]
Status = dict[str, Any]
RUNS = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns"
EXPERIMENT = f"{RUNS}/demo-fastapi-explain"


@pytest.fixture
def limited(finished_status: Status) -> Status:
    """A finished run whose servers are limited by what an experiment can try, and by a tier."""
    causes = [
        {"cause": "databaseConnections", "evidence": "5.0 of 5", "also": ["postgresCpu"]},
        {"cause": "postgresCpu", "evidence": "0.99 of the 1 core"},
    ]
    for row, limited_by in zip(finished_status["results"], causes, strict=True):
        row["limitedBy"] = limited_by
    return finished_status


def outcome(limited: Status, gain: float, half_width: float) -> Status:
    """Return what the experiment comes to."""
    status = copy.deepcopy(limited)
    before, after = status["results"]
    before["server"], after["server"] = "fastapi", "fastapi-conns"
    after["factor"] = {"value": gain, "low": gain - half_width, "high": gain + half_width}
    return status


def call(laptime: Laptime, kubeconfig: Path, *more: object) -> tuple[int, str, str]:
    return laptime("explain", "demo", "--kubeconfig", kubeconfig, *more)


@pytest.fixture
def demo(fake: Any, manifest: dict[str, Any], limited: Status) -> Any:
    fake.put(f"{RUNS}/demo", manifest | {"status": limited})
    return fake


def test_a_cause_is_confirmed_with_how_much_more_of_it_gives(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    demo.statuses = [limited, {"state": "Running"}, outcome(limited, 1.62, 0.08)]
    code, out, err = call(laptime, kubeconfig, "--server", "fastapi")
    assert (code, err) == (0, "")
    (applied,) = demo.applied
    assert applied["metadata"]["name"] == "demo-fastapi-explain"
    assert [one["name"] for one in applied["spec"]["servers"]] == ["fastapi", "fastapi-conns"]
    assert applied["spec"]["servers"][1]["databaseConnections"] == 10
    assert applied["spec"]["repetitions"] == 5
    assert applied["metadata"]["labels"] == {"laptime.dev/explains": "uid-1"}
    assert applied["metadata"]["annotations"] == {"laptime.dev/explains-server": "demo/fastapi"}
    assert applied["spec"].keys().isdisjoint(CHANGEABLE)
    announced = "measures fastapi beside itself with more under closed, 10 trials, about 2 min"
    assert announced in out
    assert out.index(announced) < out.index("10 database connections instead of 5")
    (line,) = [one for one in out.splitlines() if "confirmed" in one.split()]
    assert "1.62x (1.54 to 1.70)" in line
    assert "Postgres CPU" in line  # what limits then
    assert f"{EXPERIMENT}" in demo.objects


def test_what_of_the_suspected_cannot_be_doubled_is_said_and_the_rest_is_tried(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    limited["results"][0]["limitedBy"]["also"] = ["haproxyCap"]
    demo.statuses = [limited, outcome(limited, 1.5, 0.1)]
    code, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert code == 0
    (applied,) = demo.applied
    assert [one["name"] for one in applied["spec"]["servers"]] == ["fastapi", "fastapi-conns"]
    assert "Not tried: the run has no HAProxy with maxConnections" in out


@pytest.mark.parametrize(
    ("gain", "half_width", "finding"), [(1.0, 0.03, "refuted"), (1.1, 0.2, "undecided")]
)
def test_for_programs(
    laptime: Laptime,
    demo: Any,
    kubeconfig: Path,
    limited: Status,
    gain: float,
    half_width: float,
    finding: str,
) -> None:
    demo.statuses = [limited, outcome(limited, gain, half_width)]
    code, out, _ = call(laptime, kubeconfig, "--server", "fastapi", "-o", "json")
    assert code == 0
    found = json.loads(out)
    assert (found["sameRun"], found["sameWork"]) == (True, True)
    (one,) = found["explained"]
    assert one["finding"] == finding
    assert (one["gain"]["value"], one["metric"]) == (gain, "requestsPerSecond")
    assert one["server"] == "fastapi-conns"


def test_other_work_than_that_of_the_run_is_said(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    before, after = limited | {"scenarioHash": "a"}, outcome(limited, 1.5, 0.1)
    demo.statuses = [before, after | {"scenarioHash": "b"}]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    said = "The scenario or a script has changed since demo was measured: this is about other work."
    assert said in " ".join(out.split())


def test_that_a_duet_is_explained_by_its_server_alone_is_said_where_the_answer_stands(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    said = "each is measured alone, and the run measured the server at the same time as another"
    experiment = explained_demo(laptime, demo, kubeconfig, limited)
    assert "pairing" not in experiment["spec"]
    demo.objects[f"{RUNS}/demo"]["spec"]["pairing"] = "duet"
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert f"Otherwise than in demo: {said}" in " ".join(out.split())
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", "-o", "json")
    assert json.loads(out)["besides"].startswith(said)
    _, out, _ = laptime("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
    assert f"{SAID}; {said}" in " ".join(out.split())


def test_a_server_that_there_is_not_has_those_that_there_are(
    laptime: Laptime, demo: Any, kubeconfig: Path
) -> None:
    code, _, err = call(laptime, kubeconfig, "--server", "flask")
    assert code == 1
    assert "there is no server flask; there is fastapi, axum" in err
    assert demo.applied == []


def test_an_empty_name_of_a_server_is_not_the_first_one(
    laptime: Laptime, demo: Any, kubeconfig: Path
) -> None:
    code, _, err = call(laptime, kubeconfig, "--server", "")
    assert code == 1
    assert "there is no server ''; there is fastapi, axum" in err
    assert demo.applied == []


def limit_postgres(demo: Any) -> None:
    """Give the Postgres of the run a limit of CPU."""
    topology = demo.objects[f"{RUNS}/demo"]["spec"]["topology"]
    topology["postgres"] = {"resources": {"cpu": "500m"}}


def test_the_cpu_of_postgres_is_tried_where_it_has_a_limit(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    limit_postgres(demo)
    demo.statuses = [limited, outcome(limited, 1.0, 0.01)]
    call(laptime, kubeconfig, "--server", "axum")
    (applied,) = demo.applied
    assert [one["name"] for one in applied["spec"]["servers"]] == ["axum", "axum-pgcpu"]
    assert applied["spec"]["servers"][1]["topology"] == {"postgres": {"cpu": "1000m"}}


def test_a_postgres_without_a_limit_cannot_have_twice_that(
    laptime: Laptime, demo: Any, kubeconfig: Path
) -> None:
    code, _, err = call(laptime, kubeconfig, "--server", "axum")
    said = " ".join(err.split())
    assert code == 1
    assert "Postgres has no limit of CPU in the run: it takes what its node has" in said


def test_a_cluster_that_cannot_resize_pods_is_not_asked_to(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    limit_postgres(demo)
    demo.resizes = False
    for more in ((), ("--more", "postgres.cpu")):
        code, _, err = call(laptime, kubeconfig, "--server", "axum", *more)
        said = " ".join(err.split())
        assert code == 1
        assert said.endswith(
            "Nothing to try: postgres.cpu: the CPU of a pod can be changed while it runs from "
            "Kubernetes 1.33 on"
        )
    assert demo.applied == []
    # What else is suspected is tried.
    demo.statuses = [limited, outcome(limited, 1.62, 0.08)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    said = " ".join(out.split())
    assert "Not tried: postgres.cpu: the CPU of a pod can be changed while it runs" in said
    (applied,) = demo.applied
    assert [one["name"] for one in applied["spec"]["servers"]] == ["fastapi", "fastapi-conns"]


@pytest.mark.parametrize("nobody_says", ["refused", "without resources"])
def test_where_nobody_says_whether_pods_are_resized_that_is_said_and_not_advised(
    laptime: Laptime,
    demo: Any,
    kubeconfig: Path,
    limited: Status,
    monkeypatch: pytest.MonkeyPatch,
    nobody_says: str,
) -> None:
    limit_postgres(demo)
    asked = demo.answer

    def answer(method: str, path: str, *more: Any) -> Any:
        if path.startswith("/api/v1/") and path.strip("/") == "api/v1":
            refused = 403, {"kind": "Status", "message": "forbidden"}
            return refused if nobody_says == "refused" else (200, {"groupVersion": "v1"})
        return asked(method, path, *more)

    monkeypatch.setattr(demo, "answer", answer)
    demo.statuses = [limited, outcome(limited, 1.62, 0.08)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    why = "postgres.cpu: whether the CPU of a pod can be changed while it runs is not known"
    assert f"Not tried: {why}" in out
    assert f"Not known: {why}" in out
    assert "not in this experiment" not in out
    (applied,) = demo.applied
    assert [one["name"] for one in applied["spec"]["servers"]] == ["fastapi", "fastapi-conns"]
    demo.statuses = [limited, outcome(limited, 1.62, 0.08)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", "-o", "json")
    (one,) = json.loads(out)["notToBeHad"]
    assert (one["candidate"], one["message"].startswith(why)) == ("postgres.cpu", True)
    # Whoever asks for it has it tried.
    demo.statuses = [limited, outcome(limited, 1.0, 0.01)]
    call(laptime, kubeconfig, "--server", "axum", "--more", "postgres.cpu")
    assert [one["name"] for one in demo.applied[-1]["spec"]["servers"]] == ["axum", "axum-pgcpu"]


@pytest.mark.parametrize(
    ("cause", "said_so"), [("postgresLocks", "Postgres locks"), ("serverDisk", "server disk")]
)
def test_what_lies_outside_of_a_server_is_not_tried_and_what_to_do_is_said(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, cause: str, said_so: str
) -> None:
    limited["results"][1]["limitedBy"]["cause"] = cause
    code, _, err = call(laptime, kubeconfig, "--server", "axum")
    assert code == 1
    said = " ".join(err.split())
    assert f"What limited axum lies outside of it ({said_so})" in said
    assert "compare BEFORE AFTER" in said
    assert "--more with what to try: databaseConnections, threads, workers, cpu, memory" in said
    assert demo.applied == []


def test_what_somebody_wants_to_try_is_tried_on_all_loads(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    demo.statuses = [limited, outcome(limited, 1.0, 0.01)]
    more = ("--more", "workers", "--more", "databaseConnections", "--repetitions", "3")
    call(laptime, kubeconfig, "--server", "axum", *more)
    (applied,) = demo.applied
    names = [one["name"] for one in applied["spec"]["servers"]]
    assert names == ["axum", "axum-workers", "axum-conns", "axum-all"]
    assert applied["spec"]["repetitions"] == 3


def test_nothing_suspected_and_nothing_asked_for_is_nothing_to_try(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    for row in limited["results"]:
        del row["limitedBy"]
    code, _, err = call(laptime, kubeconfig, "--server", "fastapi")
    assert code == 1
    assert "Nothing is suspected of fastapi" in err
    assert demo.applied == []


@pytest.mark.parametrize("state", [None, "Running", "Suspended"])
def test_a_run_that_is_not_over_is_not_explained(
    laptime: Laptime, demo: Any, kubeconfig: Path, state: str | None
) -> None:
    demo.statuses = [{"state": state}]
    code, _, err = call(laptime, kubeconfig, "--server", "fastapi")
    assert code == 1
    assert "demo is not over yet: what limited its servers is known then" in err
    assert demo.applied == []


@pytest.mark.parametrize("more", [(), ("--again",)])
def test_a_strangers_run_of_that_name_stays(
    laptime: Laptime, demo: Any, kubeconfig: Path, manifest: dict[str, Any], more: tuple[str, ...]
) -> None:
    # The same server against another one, as somebody may compare it by hand.
    demo.put(EXPERIMENT, copy.deepcopy(manifest) | {"status": {"state": "Succeeded"}})
    code, _, err = call(laptime, kubeconfig, "--server", "fastapi", *more)
    assert code == 1
    assert "demo-fastapi-explain is there already, and is no experiment on fastapi" in err
    assert demo.applied == []
    assert EXPERIMENT in demo.objects


def test_experiments_whose_names_would_be_put_together_alike_have_different_ones(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest: dict[str, Any], limited: Status
) -> None:
    names = []
    for run, server in (("demo-a", "b"), ("demo", "a-b")):
        status = copy.deepcopy(limited)
        spec = copy.deepcopy(manifest["spec"])
        spec["servers"][0]["name"] = spec["baseline"] = server
        status["results"][0]["server"] = server
        fake.put(f"{RUNS}/{run}", {**manifest, "spec": spec, "status": status})
        over = copy.deepcopy(status)
        over["results"][1]["server"] = f"{server}-conns"
        fake.statuses = [status, over]
        asked = ("explain", run, "--server", server, "--again", "--kubeconfig", kubeconfig)
        assert laptime(*asked)[0] == 0
        names.append(fake.applied[-1]["metadata"]["name"])
    first, second = names
    assert first != second
    assert f"{RUNS}/{first}" in fake.objects
    assert all(one.startswith("demo-a-b-") and one.endswith("-explain") for one in names)


@pytest.mark.parametrize(
    "theirs",
    [
        {"labels": {"laptime.dev/explains": "uid-of-another"}},
        {
            "labels": {"laptime.dev/explains": "uid-of-another"},
            "annotations": {"laptime.dev/explains-server": "demo-fast/api"},
        },
    ],
)
def test_an_experiment_on_another_run_is_never_deleted(
    laptime: Laptime,
    demo: Any,
    kubeconfig: Path,
    manifest: dict[str, Any],
    limited: Status,
    theirs: dict[str, Any],
) -> None:
    over = outcome(limited, 1.62, 0.08)
    demo.put(EXPERIMENT, {**copy.deepcopy(manifest), "metadata": theirs, "status": over})
    uid = demo.objects[EXPERIMENT]["metadata"]["uid"]
    code, _, err = call(laptime, kubeconfig, "--server", "fastapi", "--again")
    assert code == 1
    assert "is no experiment on fastapi of demo: delete it, if it is yours" in err
    assert demo.objects[EXPERIMENT]["metadata"]["uid"] == uid


def test_what_was_explained_is_shown_again_and_measured_anew_only_when_asked_for(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    over = outcome(limited, 1.62, 0.08)
    demo.statuses = [limited, over]
    call(laptime, kubeconfig, "--server", "fastapi")
    uid = demo.objects[EXPERIMENT]["metadata"]["uid"]

    demo.statuses = [limited, over]
    code, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert code == 0
    assert "is finished already, this is its result" in out
    assert "confirmed" in out
    assert demo.objects[EXPERIMENT]["metadata"]["uid"] == uid

    # So it is with the options that it was made with.
    made_with = ("--more", "databaseConnections", "--repetitions", "5")
    demo.statuses = [limited, over]
    code, out, _ = call(laptime, kubeconfig, "--server", "fastapi", *made_with)
    assert (code, "is finished already, this is its result" in out) == (0, True)
    assert demo.objects[EXPERIMENT]["metadata"]["uid"] == uid

    demo.statuses = [limited, over]
    code, _, err = call(laptime, kubeconfig, "--server", "fastapi", "--more", "workers")
    assert code == 1
    assert "was measured before: --again deletes it, and measures anew" in err
    assert demo.objects[EXPERIMENT]["metadata"]["uid"] == uid

    demo.statuses = [limited, over]
    call(laptime, kubeconfig, "--server", "fastapi", "--more", "workers", "--again")
    assert demo.objects[EXPERIMENT]["metadata"]["uid"] != uid


def test_an_experiment_that_was_changed_afterwards_is_still_the_same(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    over = outcome(limited, 1.62, 0.08)
    demo.statuses = [limited, over]
    call(laptime, kubeconfig, "--server", "fastapi", "--repetitions", "9")
    changed = {"retry": 1, "ttlSecondsAfterFinished": 9000, "cancel": True}
    demo.objects[EXPERIMENT]["spec"] |= changed
    demo.statuses = [limited, over]
    code, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert code == 0
    assert "confirmed" in out
    assert demo.objects[EXPERIMENT]["spec"]["retry"] == 1


def test_that_an_experiment_is_about_an_earlier_run_of_the_name_is_said(
    laptime: Laptime, demo: Any, kubeconfig: Path, manifest: dict[str, Any], limited: Status
) -> None:
    over = outcome(limited, 1.62, 0.08)
    demo.statuses = [limited, over]
    call(laptime, kubeconfig, "--server", "fastapi")
    demo.put(f"{RUNS}/demo", manifest | {"status": limited})
    demo.statuses = [limited, over]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert "It is about an earlier run named demo: --again measures anew." in out


def test_one_that_goes_on_is_watched_and_neither_deleted_nor_begun_again(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    demo.statuses = [limited, {"state": "Running"}]
    over = outcome(limited, 1.62, 0.08)
    demo.statuses = [limited, over]
    call(laptime, kubeconfig, "--server", "fastapi")
    running = {"state": "Running"}
    demo.statuses = [limited, running]
    code, _, err = call(laptime, kubeconfig, "--server", "fastapi", "--again")
    assert code == 1
    assert "demo-fastapi-explain goes on: wait until it is over" in err
    demo.statuses = [limited, running, over]
    code, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert (code, len(demo.applied)) == (0, 1)
    assert "confirmed" in out


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("unknown", "What limited axum is not known."),
        ("offeredLoad", "Nothing limited axum: all that was sent was answered in time."),
    ],
)
def test_what_limited_nothing_is_not_said_to_lie_outside(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, cause: str, said: str
) -> None:
    spec = demo.objects[f"{RUNS}/demo"]["spec"]
    spec["loads"] = [{"name": "closed", "open": {"rate": 100, "duration": "5s"}}]
    limited["results"][1]["limitedBy"] = {"cause": cause, "evidence": "it was so"}
    code, _, err = call(laptime, kubeconfig, "--server", "axum")
    assert code == 1
    assert said in " ".join(err.split())
    assert demo.applied == []


def test_a_closed_load_that_nothing_had_to_queue_for_is_limited_by_its_connections(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    evidence = "10 connections with one request each, and nothing that they had to queue for"
    limited["results"][1]["limitedBy"] = {"cause": "offeredLoad", "evidence": evidence}
    code, _, err = call(laptime, kubeconfig, "--server", "axum")
    said = " ".join(err.split())
    assert code == 1
    assert "Nothing limited axum" not in said
    assert (
        "Of axum itself nothing is suspected: what is suspected under closed is the load itself: "
        f"{evidence}. All servers share a load, so write a second one with 20 connections beside "
        "it in one run" in said
    )
    assert demo.applied == []


def test_what_limits_one_load_does_not_hide_that_another_one_limits_itself(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    suspecting(demo, limited, ["node"], ["offeredLoad"], ["unknown"])
    demo.statuses = [limited]
    _, _, err = call(laptime, kubeconfig, "--server", "fastapi")
    said = " ".join(err.split())
    assert "What limited fastapi lies outside of it (node)" in said
    assert "what is suspected under load-1 is the load itself: 0.9. All servers share" in said


@pytest.mark.parametrize(("gain", "shown"), [(1.62, False), (1.0, True)])
def test_a_load_under_which_more_of_something_helped_is_not_said_to_limit_itself(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, gain: float, shown: bool
) -> None:
    limited["results"][0]["limitedBy"]["also"] = ["offeredLoad"]
    demo.statuses = [limited, outcome(limited, gain, 0.03)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    said = "Not to be had here: what is suspected under closed is the load itself. All servers"
    assert (said in out) is shown
    demo.statuses = [limited, outcome(limited, gain, 0.03)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", "-o", "json")
    found = [one["candidate"] for one in json.loads(out)["notToBeHad"]]
    assert found == ["offeredLoad"] * shown


def test_what_cannot_be_had_here_is_a_finding_of_its_own(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    limited["results"][0]["limitedBy"]["also"] = ["haproxyCap", "node", "unknown"]
    demo.statuses = [limited, outcome(limited, 1.62, 0.08)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    cells = [re.split(r"  +", line.strip()) for line in out.splitlines()]
    found = {line[1]: line[3] for line in cells if len(line) > 3 and line[0] == "closed"}
    assert found == {
        "10 database connections instead of 5": "confirmed",
        "haproxy.maxConnections": "not to be had here",
        "node": "not to be had here",
    }
    assert "Not to be had here: the run has no HAProxy with maxConnections" in out
    # It is so also where it is shown again.
    demo.statuses = [limited, outcome(limited, 1.62, 0.08)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", "-o", "json")
    assert json.loads(out)["notToBeHad"] == [
        {
            "candidate": "haproxy.maxConnections",
            "loads": ["closed"],
            "message": "the run has no HAProxy with maxConnections",
        },
        {
            "candidate": "node",
            "loads": ["closed"],
            "message": "node, which all servers of a run share: change it in a second run, and "
            "compare both",
        },
    ]
    # Of an earlier run of that name something else may have been suspected.
    demo.objects[EXPERIMENT]["metadata"]["labels"]["laptime.dev/explains"] = "uid-of-another"
    demo.statuses = [limited, outcome(limited, 1.62, 0.08)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", "-o", "json")
    assert json.loads(out)["notToBeHad"] == []


@pytest.mark.parametrize(
    ("gain", "repetitions", "said"),
    [
        (1.1, 5, "laptime explain demo --server fastapi --again --repetitions 20 --kubeconfig"),
        (1.1, 40, "laptime explain demo --server fastapi --again --repetitions 100 --kubeconfig"),
        (1.1, 100, "Undecided, with as many repetitions as there may be"),
        (1.5, 5, ""),
    ],
)
def test_what_is_undecided_has_what_to_type_to_go_on(
    laptime: Laptime,
    demo: Any,
    kubeconfig: Path,
    limited: Status,
    gain: float,
    repetitions: int,
    said: str,
) -> None:
    demo.statuses = [limited, outcome(limited, gain, 0.2)]
    more = ("--repetitions", str(repetitions))
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", *more)
    assert said in out
    assert ("Undecided" in out) is bool(said)
    kept = "--again deletes this experiment; to keep it:  laptime report demo-fastapi-explain"
    assert (kept in out) is ("--again" in said)


def test_what_a_search_leaves_open_is_not_said_to_be_narrowed_by_repetitions(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    search = {"name": "closed", "saturation": {"p99": "50ms"}}
    demo.objects[f"{RUNS}/demo"]["spec"]["loads"] = [search]
    demo.statuses = [limited, outcome(limited, 1.1, 0.2)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert "Undecided under closed: repetitions do not narrow what a search leaves open" in out
    assert "--repetitions" not in out


@pytest.mark.parametrize("stored", [True, False])
def test_how_to_keep_an_experiment_is_said_only_where_it_has_a_report(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, stored: bool
) -> None:
    over = outcome(limited, 1.1, 0.2)
    if not stored:
        over |= {"state": "Failed"}
        del over["resultsConfigMap"]
    demo.statuses = [limited, over]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert "--again --repetitions 20" in out
    assert ("to keep it:" in out) is stored


def test_nothing_is_advised_of_an_experiment_on_an_earlier_run(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    demo.statuses = [limited, outcome(limited, 1.1, 0.2)]
    call(laptime, kubeconfig, "--server", "fastapi")
    demo.objects[EXPERIMENT]["metadata"]["labels"]["laptime.dev/explains"] = "uid-of-another"
    demo.statuses = [limited, outcome(limited, 1.1, 0.2)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert "It is about an earlier run named demo" in out
    assert "--again --repetitions" not in out


def explained_demo(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> dict[str, Any]:
    """Have the first server of `demo` explained; return the experiment."""
    demo.statuses = [limited, outcome(limited, 1.62, 0.08)]
    assert call(laptime, kubeconfig, "--server", "fastapi")[0] == 0
    demo.statuses = []
    demo.objects[f"{RUNS}/demo"]["status"] = limited
    experiment: dict[str, Any] = demo.objects[EXPERIMENT]
    experiment["status"] = outcome(limited, 1.62, 0.08)
    return experiment


SAID = "tried, confirmed: 1.62x (1.54 to 1.70) with 10 database connections instead of 5"


def test_the_table_of_a_run_says_what_was_tried_since(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    explained_demo(laptime, demo, kubeconfig, limited)
    code, out, _ = laptime("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
    said = " ".join(out.split())
    assert code == 0
    assert said.count(SAID) == 1
    assert f"fastapi: limited by database connections (suspected): 5.0 of 5 fastapi: {SAID}" in said


def test_what_else_was_otherwise_and_that_it_failed_is_said_with_it(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    experiment = explained_demo(laptime, demo, kubeconfig, limited)
    experiment["spec"]["topology"].setdefault("postgres", {})["maxConnections"] = 400
    experiment["status"]["state"] = "Cancelled"
    _, out, _ = laptime("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
    said = " ".join(out.split())
    assert f"{SAID}; 400 connections of Postgres instead of 100, for all of them" in said
    assert "for all of them; the experiment ended Cancelled" in said


def test_an_experiment_that_cannot_be_read_keeps_no_report_back(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    explained_demo(laptime, demo, kubeconfig, limited)["status"] = {"state": 7, "results": "none"}
    code, out, _ = laptime("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
    assert (code, "tried" in out) == (0, False)


def test_that_an_experiment_had_other_images_or_nodes_is_said_with_it(
    laptime: Laptime,
    demo: Any,
    kubeconfig: Path,
    limited: Status,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = explained_demo(laptime, demo, kubeconfig, limited)
    run = demo.objects[f"{RUNS}/demo"]

    def said() -> str:
        _, out, _ = laptime("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
        return " ".join(out.split())

    images = dict.fromkeys(("postgres", "pgbouncer", "haproxy", "generator", "operator"), "x:1")
    run["status"]["images"] = {**images, "servers": {"fastapi-sync": "s:1", "axum-sqlx": "a:1"}}
    experiment["status"]["images"] = {**images, "servers": {"fastapi-sync": "s:1"}}
    assert "otherwise than the run" not in said()
    experiment["status"]["images"] = {**images, "generator": "x:2"}
    assert "otherwise than the run: images of another version of Laptime" in said()
    experiment["status"]["placement"] = {"name": "isolated"}
    assert "otherwise than the run: the placement: none and isolated, images of" in said()

    def stored(_: Any, found: Any) -> Any:
        here = found.name == "demo"
        trial = SimpleNamespace(
            server="fastapi",
            images={
                "server": "sha256:1" if here else "sha256:2",
                "postgres": f"{'postgres' if here else 'mirror/postgres'}@sha256:9",
            },
            nodes={"server": ["a"], "generator": ["b" if here else "c"]},
        )
        return SimpleNamespace(report=SimpleNamespace(trials=[trial]))

    monkeypatch.setattr("laptime.cli.experiments.stored_results", stored)
    assert (
        f"{SAID}; the experiment was made otherwise than the run: the placement: none and "
        "isolated, another image of server, another node of generator"
    ) in said()


@pytest.mark.parametrize("now", ["first", "edited"])
def test_what_was_tried_with_another_script_is_not_said_of_the_run(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, now: str
) -> None:
    experiment = explained_demo(laptime, demo, kubeconfig, limited)
    run = demo.objects[f"{RUNS}/demo"]
    for one, its in ((run, "first"), (experiment, now)):
        one["spec"]["loads"] = [{"name": "closed", "script": {"configMap": "mine"}}]
        one["status"] = {**one["status"], "scripts": [{"configMap": "mine", "hash": its}]}
    _, out, _ = laptime("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
    assert (SAID in " ".join(out.split())) is (now == "first")


@pytest.mark.parametrize("now", ["first", "edited"])
def test_another_script_than_that_of_the_run_is_other_work(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, now: str
) -> None:
    experiment = explained_demo(laptime, demo, kubeconfig, limited)
    run = demo.objects[f"{RUNS}/demo"]
    for one, its in ((run, "first"), (experiment, now)):
        one["spec"]["loads"] = [{"name": "closed", "script": {"configMap": "mine"}}]
        one["status"] = {**one["status"], "scripts": [{"configMap": "mine", "hash": its}]}
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    said = "The scenario or a script has changed since demo was measured: this is about other work."
    assert (said in " ".join(out.split())) is (now == "edited")
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", "-o", "json")
    assert json.loads(out)["sameWork"] is (now == "first")


ARM: dict[str, dict[str, Any]] = {
    "another image": {"preset": None, "image": "mine:2"},
    "a variable": {"env": [{"name": "TURBO", "value": "1"}]},
    "more memory": {"resources": {"memory": "2Gi"}},
    "nothing more": {"databaseConnections": 5},
    "another way to give connections back": {"topology": {"pgbouncer": {"poolMode": "statement"}}},
}


@pytest.mark.parametrize("why", ARM)
def test_an_arm_that_differs_in_what_is_not_said_says_nothing_of_the_run(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, why: str
) -> None:
    demo.objects[f"{RUNS}/demo"]["spec"]["topology"] = {"postgres": {}, "pgbouncer": {}}
    experiment = explained_demo(laptime, demo, kubeconfig, limited)
    _, out, _ = laptime("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
    assert "tried" in out
    experiment["spec"]["servers"][1] |= ARM[why]
    code, out, _ = laptime("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
    assert (code, "tried" in out) == (0, False)


def suspecting(demo: Any, limited: Status, *causes: list[str]) -> None:
    """Have the server be measured under as many loads as there are causes of each."""
    spec = demo.objects[f"{RUNS}/demo"]["spec"]
    (load,), (row, _) = spec["loads"], limited["results"]
    names = [f"load-{number}" for number in range(len(causes))]
    spec["loads"] = [{**load, "name": name} for name in names]
    limited["results"] = [
        {**row, "load": name, "limitedBy": {"cause": first, "evidence": "0.9", "also": also}}
        for name, (first, *also) in zip(names, causes, strict=True)
    ]


def test_what_cannot_be_tried_takes_no_place_of_what_can(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    outside = ["postgresCpu", "haproxyCap", "haproxyCpu"]
    suspecting(demo, limited, [*outside, "databaseConnections"])
    demo.statuses = [limited, outcome(explained_status(limited), 1.62, 0.08)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    (applied,) = demo.applied
    assert [one["name"] for one in applied["spec"]["servers"]] == ["fastapi", "fastapi-conns"]
    assert out.count("Not tried: ") == len(outside)


@pytest.mark.parametrize("gain", [1.62, 1.0], ids=["confirmed", "refuted"])
def test_no_more_is_tried_than_can_be_paid_for(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, gain: float
) -> None:
    demo.objects[f"{RUNS}/demo"]["spec"]["topology"] = {
        "postgres": {},
        "pgbouncer": {},
        "haproxy": {"maxConnections": 8},
    }
    also = ["pgbouncerPool", "haproxyCap", "serverCpu"]
    suspecting(demo, limited, ["databaseConnections", *also])
    demo.statuses = [limited, outcome(explained_status(limited), gain, 0.04)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    (applied,) = demo.applied
    names = [one["name"] for one in applied["spec"]["servers"]]
    assert names == ["fastapi", "fastapi-conns", "fastapi-pool", "fastapi-cap", "fastapi-all"]
    assert "Not tried: workers: an experiment tries 3 at most" in out
    command = "laptime explain demo --server fastapi --again --more workers"
    assert f"Suspected too, and not in this experiment: workers:  {command} --kubeconfig" in out
    assert "to keep it:" in out


def test_what_is_advised_to_be_tried_is_no_more_than_a_run_may_have(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    spec = demo.objects[f"{RUNS}/demo"]["spec"]
    spec["topology"] = {"postgres": {}, "pgbouncer": {}, "haproxy": {"maxConnections": 8}}
    causes = ["databaseConnections", "pgbouncerPool", "haproxyCap", "serverCpu"]
    suspecting(demo, limited, *[["unknown"]] * 11, causes)
    over = outcome(explained_status(limited), 1.62, 0.08)
    demo.statuses = [limited, over]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", "--repetitions", "90")
    assert [one["name"] for one in demo.applied[0]["spec"]["loads"]] == ["load-11"]
    assert "--again --more workers --repetitions 83 --kubeconfig" in out
    demo.statuses = [limited, over]
    advised = ("--again", "--more", "workers", "--repetitions", "83")
    assert call(laptime, kubeconfig, "--server", "fastapi", *advised)[0] == 0


def test_a_load_of_which_nothing_can_be_tried_is_not_driven(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    suspecting(demo, limited, ["haproxyCap"], ["databaseConnections"])
    demo.statuses = [limited, outcome(explained_status(limited), 1.62, 0.08)]
    call(laptime, kubeconfig, "--server", "fastapi")
    (applied,) = demo.applied
    assert [one["name"] for one in applied["spec"]["loads"]] == ["load-1"]


def give_limit(row: dict[str, Any], limit: str) -> None:
    """Have the cluster limit the CPU of a server, of which the run has no limit."""
    limits = f"{limit} of CPU and 128Mi of memory"
    said = doubts.LIMIT_ADDED.says(what="server fastapi", limits=limits)
    row |= {"validity": "doubtful", "validityReasons": [doubts.in_repetitions([said] * 5, 5)]}


@pytest.mark.parametrize(("limit", "arms"), [("500m", []), ("1", []), ("2", ["fastapi-workers"])])
def test_a_limit_that_the_cluster_set_is_not_tried_by_more_workers(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, limit: str, arms: list[str]
) -> None:
    """Twice the workers under the same limit would refute what is right."""
    row = limited["results"][0]
    row["limitedBy"] = {"cause": "serverCpu", "evidence": "held back by its CPU limit"}
    give_limit(row, limit)
    demo.statuses = [limited, outcome(limited, 1.0, 0.01)]
    code, out, err = call(laptime, kubeconfig, "--server", "fastapi")
    why = f"the cluster limits fastapi to {limit} CPU, and the run does not: write"
    if arms:
        assert f"Not tried: {why}" in out
    else:
        assert (code, f"Nothing to try: {why}" in " ".join(err.split())) == (1, True)
    tried = [one["name"] for run in demo.applied for one in run["spec"]["servers"][1:]]
    assert tried == arms


@pytest.mark.parametrize(
    ("cause", "limit", "arms"),
    [
        ("serverCpu", "1", ["fastapi-conns"]),
        ("serverCpu", "2", ["fastapi-workers", "fastapi-conns", "fastapi-all"]),
        # Workers are what that asks for, whatever holds their CPU.
        ("serverConcurrency", "1", ["fastapi-workers", "fastapi-conns", "fastapi-all"]),
    ],
)
def test_again_leaves_workers_out_that_could_refute_what_is_right(
    laptime: Laptime,
    demo: Any,
    kubeconfig: Path,
    limited: Status,
    cause: str,
    limit: str,
    arms: list[str],
) -> None:
    row = limited["results"][0]
    row["limitedBy"] = {"cause": cause, "evidence": "1.0 of 1"}
    over = outcome(limited, 1.0, 0.01)
    demo.statuses = [limited, over]
    named = ("--more", "workers", "--more", "databaseConnections")
    call(laptime, kubeconfig, "--server", "fastapi", *named)
    give_limit(row, limit)
    demo.statuses = [limited, over]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", "--again")
    assert [one["name"] for one in demo.applied[-1]["spec"]["servers"]][1:] == arms
    told = f"Not tried: the cluster limits fastapi to {limit} CPU, and the run does not: write"
    assert (told in out) is ("fastapi-workers" not in arms)


def drop(row: dict[str, Any], repetitions: int) -> None:
    """Have a percentile of a server fall among the requests that it did not answer."""
    row |= {"comparedBy": "p99", "latencyFigures": {"p99": {"failed": repetitions}}}


def test_a_load_whose_percentile_nobody_has_is_not_tried_and_that_is_said_before(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    suspecting(demo, limited, ["databaseConnections"], ["databaseConnections"])
    drop(limited["results"][0], 5)
    demo.statuses = [limited, outcome(explained_status(limited), 1.62, 0.08)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    why = "under load-0 p99 of fastapi fell among requests without a right answer: a lower rate"
    assert f"Not tried: {why}" in out
    (applied,) = demo.applied
    assert [one["name"] for one in applied["spec"]["loads"]] == ["load-1"]


@pytest.mark.parametrize("more", [(), ("--more", "workers")])
def test_what_can_only_be_not_known_is_not_measured(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, more: tuple[str, ...]
) -> None:
    drop(limited["results"][0], 5)
    demo.statuses = [limited, outcome(limited, 1.62, 0.08)]
    code, _, err = call(laptime, kubeconfig, "--server", "fastapi", *more)
    assert code == 1
    assert "Nothing to try: under closed p99 of fastapi fell among" in " ".join(err.split())
    assert demo.applied == []
    # In some repetitions it answered, and may do so in all of the next ones.
    drop(limited["results"][0], 2)
    demo.statuses = [limited, outcome(limited, 1.62, 0.08)]
    assert call(laptime, kubeconfig, "--server", "fastapi", *more)[0] == 0


def test_why_a_load_is_left_out_is_said_where_the_others_suspect_nothing(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    suspecting(demo, limited, ["databaseConnections"], ["unknown"])
    drop(limited["results"][0], 5)
    demo.statuses = [limited, outcome(explained_status(limited), 1.62, 0.08)]
    _, _, err = call(laptime, kubeconfig, "--server", "fastapi")
    said = " ".join(err.split())
    assert "under load-0 p99 of fastapi fell among" in said
    assert "What limited fastapi is not known." in said


def test_again_measures_what_was_tried_before(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    suspecting(demo, limited, ["unknown"], ["databaseConnections"])
    over = outcome(explained_status(limited), 1.62, 0.08)

    def tried(*more: str) -> tuple[list[str], list[str], int]:
        demo.statuses = [limited, over]
        call(laptime, kubeconfig, "--server", "fastapi", *more)
        spec = demo.applied[-1]["spec"]
        arms, loads = ([one["name"] for one in spec[part]] for part in ("servers", "loads"))
        return arms[1:], loads, spec["repetitions"]

    both = ["load-0", "load-1"]
    named = tried("--more", "workers", "--more", "databaseConnections", "--repetitions", "7")
    assert named == (["fastapi-workers", "fastapi-conns", "fastapi-all"], both, 7)
    assert tried("--again") == named
    assert tried("--again", "--repetitions", "9") == (*named[:2], 9)
    assert tried("--again", "--more", "workers") == (["fastapi-workers"], both, 9)
    del demo.objects[EXPERIMENT]
    assert tried() == (["fastapi-conns"], ["load-1"], 5)
    assert tried("--again") == (["fastapi-conns"], ["load-1"], 5)
    # Of another run of the name something else may be suspected.
    demo.objects[f"{RUNS}/demo"]["metadata"]["uid"] = "uid-of-another"
    limited["results"][1]["limitedBy"]["cause"] = "serverCpu"
    assert tried("--again") == (["fastapi-workers"], ["load-1"], 5)


def explained_status(limited: Status) -> Status:
    """Return the status with a row for each of two servers."""
    row = limited["results"][-1]
    return {**limited, "results": [row, copy.deepcopy(row)]}


def test_what_is_invalid_is_said_to_be_invalid_and_not_to_be_unmeasured(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    for row in limited["results"]:
        del row["limitedBy"]
        row |= {"validity": "invalid", "validityReasons": ["2% of the requests failed"]}
    _, _, err = call(laptime, kubeconfig, "--server", "fastapi")
    said = " ".join(err.split())
    assert "Nothing is suspected of fastapi: its figures are invalid" in said
    assert "2% of the requests failed" in said
    assert demo.applied == []


@pytest.mark.parametrize(
    "why",
    [
        "another server",
        "another scenario",
        "another load",
        "other tiers",
        "another generator",
        "goes on",
        "another run",
    ],
)
def test_what_was_not_tried_on_this_run_is_not_said_of_it(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status, why: str
) -> None:
    experiment = explained_demo(laptime, demo, kubeconfig, limited)
    if why == "another server":
        experiment["spec"]["servers"][0]["workers"] = 7
    elif why == "another scenario":
        experiment["status"]["scenarioHash"] = "other"
    elif why == "another load":
        experiment["spec"]["loads"][0]["timeout"] = "7s"
    elif why == "other tiers":
        experiment["spec"]["topology"]["postgres"] = {"resources": {"cpu": "3"}}
    elif why == "another generator":
        experiment["spec"]["generator"] = {"parallelism": 2}
    elif why == "goes on":
        experiment["status"]["state"] = "Running"
    else:
        experiment["metadata"]["labels"]["laptime.dev/explains"] = "uid-of-another"
    code, out, _ = laptime("report", "demo", "-o", "table", "--kubeconfig", kubeconfig)
    assert code == 0
    assert "tried" not in out


def then_limited(limited: Status, cause: str, gain: float = 1.62) -> Status:
    """Return what the experiment comes to, with what limits the server with more of it."""
    over = outcome(limited, gain, 0.08)
    over["results"][1]["limitedBy"] = {"cause": cause, "evidence": "0.98 of 1"}
    return over


def test_what_limits_then_has_what_to_type_to_go_on_which_tries_it(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    over = then_limited(limited, "serverCpu")
    demo.statuses = [limited, over]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    command = "laptime explain demo-fastapi-explain --server fastapi-conns"
    said = "Then limited by server CPU (suspected, fastapi-conns under closed)"
    assert f"{said}:  {command} --kubeconfig" in out
    demo.objects[EXPERIMENT]["status"] = over
    next_over = copy.deepcopy(over)
    next_over["results"][0]["server"] = "fastapi-conns"
    next_over["results"][1]["server"] = "fastapi-con-workers"
    demo.statuses = [over, next_over]
    code, _, err = laptime(*command.split()[1:], "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    unchanged, more = demo.applied[-1]["spec"]["servers"]
    assert (unchanged["name"], unchanged["databaseConnections"]) == ("fastapi-conns", 10)
    assert (more["workers"], more["databaseConnections"]) == (2, 5)


@pytest.mark.parametrize(
    ("cause", "gain", "said"),
    [
        ("node", 1.62, "node (suspected, fastapi-conns under closed): node, which all servers of"),
        ("offeredLoad", 1.62, "what is suspected under closed is the load itself: 0.98 of 1. All"),
        # Nobody knows what limits it, or it limits as before.
        ("unknown", 1.62, None),
        ("serverCpu", 1.0, None),
    ],
)
def test_what_limits_then_and_cannot_be_tried_has_what_to_do_instead(
    laptime: Laptime,
    demo: Any,
    kubeconfig: Path,
    limited: Status,
    cause: str,
    gain: float,
    said: str | None,
) -> None:
    demo.statuses = [limited, then_limited(limited, cause, gain)]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    lines = [line for line in out.splitlines() if line.startswith("Then limited by")]
    assert len(lines) == (said is not None)
    assert all(said is not None and said in line for line in lines)
    assert all("--server fastapi-conns" not in line for line in lines)


def test_a_load_of_which_nobody_knows_what_limits_then_is_not_named(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    suspecting(demo, limited, *[["databaseConnections"]] * 3)
    over = outcome(explained_status(limited), 1.62, 0.08)
    unchanged, arm = over["results"]
    over["results"] = []
    for load, cause in enumerate(["serverCpu", "unknown", None]):
        more = {**copy.deepcopy(arm), "load": f"load-{load}"}
        more["limitedBy"] = {"cause": cause, "evidence": "0.98 of 1"} if cause else None
        over["results"] += [{**copy.deepcopy(unchanged), "load": f"load-{load}"}, more]
    demo.statuses = [limited, over]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    said = "Then limited by server CPU (suspected, fastapi-conns under load-0):"
    assert said in out


def test_where_no_cause_is_known_what_is_nearly_full_is_not_called_one(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    over = then_limited(limited, "unknown")
    over["results"][1]["limitedBy"]["also"] = ["serverCpu"]
    demo.statuses = [limited, over]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert "Then limited by" not in out
    assert "What limits fastapi-conns then is not known, and this is nearly full:" in out


def test_what_limits_the_arm_that_gained_most_is_what_is_tried_next(
    laptime: Laptime, demo: Any, kubeconfig: Path, limited: Status
) -> None:
    over = then_limited(limited, "serverCpu")
    first, conns = over["results"]
    workers = {**copy.deepcopy(conns), "server": "fastapi-workers"}
    workers["limitedBy"]["cause"] = "node"
    both = {**copy.deepcopy(conns), "server": "fastapi-all"}
    both["factor"] = {"value": 3.0, "low": 2.9, "high": 3.1}
    over["results"] = [first, workers, conns, both]
    demo.statuses = [limited, over]
    named = ("--more", "workers", "--more", "databaseConnections")
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi", *named)
    lines = [line for line in out.splitlines() if line.startswith("Then limited by")]
    assert [line.split(" --kubeconfig")[0] for line in lines] == [
        "Then limited by server CPU (suspected, fastapi-all under closed):  laptime explain "
        "demo-fastapi-explain --server fastapi-all"
    ]
    # Of an experiment on an earlier run nothing is advised.
    demo.objects[EXPERIMENT]["metadata"]["labels"]["laptime.dev/explains"] = "uid-of-another"
    demo.statuses = [limited, over]
    _, out, _ = call(laptime, kubeconfig, "--server", "fastapi")
    assert "Then limited by" not in out
