"""What make chaos says of a run that a fault was done to."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from chaos.judge import Counted, Facts, problems
from chaos.plan import BY_NAME

OF_THE_API = BY_NAME["server-error"]
OF_THE_NODE = BY_NAME["containerd-frozen"]
PLANNED = frozenset((server, "closed", n) for server in ("axum", "sync") for n in (1, 2))


def result(ordinal: int, server: str, repetition: int, **more: Any) -> dict[str, Any]:
    return {
        "trial": f"a-trial-{ordinal:03d}",
        "server": server,
        "load": "closed",
        "repetition": repetition,
        "outcome": "Measured",
        "validity": "valid",
        "figures": {"requests": 100, "errors": 0},
        "statements": 100,
        **more,
    }


def healthy() -> Facts:
    results = [
        result(number, server, repetition)
        for number, (server, _, repetition) in enumerate(sorted(PLANNED), 1)
    ]
    row = {"load": "closed", "state": "Measured", "trials": 2, "failedTrials": 0, "requests": 200}
    return Facts(
        run="a",
        planned=PLANNED,
        connections=4,
        status={
            "state": "Succeeded",
            "servers": [{"name": name, "state": "Verified"} for name in ("axum", "sync")],
            "results": [{"server": name, **row} for name in ("axum", "sync")],
        },
        ended=True,
        results=results,
        counted={one["trial"]: Counted(100, 0) for one in results},
        created=[one["trial"] for one in results],
    )


def said(facts: Facts, kind: Any = OF_THE_API) -> str:
    return "; ".join(problems(kind, facts))


def test_a_run_that_came_through() -> None:
    assert problems(OF_THE_API, healthy()) == []


@pytest.mark.parametrize(
    ("status", "ended"), [({"state": "Finishing"}, False), ({}, False), ({"state": "X"}, True)]
)
def test_a_run_that_does_not_end_is_stuck(status: dict[str, Any], ended: bool) -> None:
    assert said(replace(healthy(), status=status, ended=ended)).startswith("stuck in")


def test_a_run_that_failed_says_why() -> None:
    facts = healthy()
    condition = {"type": "Succeeded", "status": "False", "reason": "NotReady", "message": "late"}
    failed = {**facts.status, "state": "Failed", "conditions": [condition]}
    assert said(replace(facts, status=failed)) == "ended Failed: Succeeded NotReady: late"


def test_a_trial_without_a_result_is_lost() -> None:
    facts = healthy()
    assert "('axum', 'closed', 1) has 0 results" in said(replace(facts, results=facts.results[1:]))


def test_a_trial_with_two_results_is_counted_twice() -> None:
    facts = healthy()
    twice = [*facts.results, result(9, "axum", 1)]
    assert "('axum', 'closed', 1) has 2 results" in said(replace(facts, results=twice))


def test_a_trial_that_was_started_twice() -> None:
    facts = healthy()
    found = said(replace(facts, created=[*facts.created, facts.created[0]]))
    assert found == "a-trial-001 was created twice"


def test_a_table_that_says_something_else_than_the_results() -> None:
    facts = healthy()
    status = deepcopy(dict(facts.status))
    status["results"][0]["requests"] = 199
    assert said(replace(facts, status=status)) == (
        "the row of ('axum', 'closed') has 199 requests of 200"
    )
    status["results"][0].update(requests=200, trials=1)
    assert "counts 1 trials of 2" in said(replace(facts, status=status))


@pytest.mark.parametrize(
    ("figures", "statements", "words"),
    [
        ({"requests": 101, "errors": 0}, 101, "its generator counted 100 and 0"),
        ({"requests": 100, "errors": 1}, 100, "1 errors of a healthy server"),
        ({"requests": 0, "errors": 0}, 0, "has no requests"),
        ({"requests": 100, "errors": 0}, 50, "its database ran 50 statements"),
    ],
)
def test_wrong_figures(figures: dict[str, int], statements: int, words: str) -> None:
    facts = healthy()
    wrong = {**facts.results[0], "figures": figures, "statements": statements}
    assert words in said(replace(facts, results=[wrong, *facts.results[1:]]))


def test_a_result_whose_generator_nobody_saw_is_not_believed() -> None:
    assert "was not seen on the node" in said(replace(healthy(), counted={}))


def test_the_attempt_that_counts_is_the_one_that_is_compared() -> None:
    facts = healthy()
    lost = {"fault": "node", "reason": "NodeSilent", "attempt": 1}
    again = {**facts.results[0], "attempt": 2, "lostAttempts": [lost]}
    counted = {**facts.counted, "a-trial-001-attempt-2": Counted(100, 0)}
    counted["a-trial-001"] = Counted(7, 7)
    facts = replace(facts, results=[again, *facts.results[1:]], counted=counted)
    assert problems(OF_THE_NODE, facts) == []
    assert "blaming node" in said(facts, OF_THE_API)


def test_a_lost_trial_blames_the_right_one() -> None:
    facts = healthy()
    status = deepcopy(dict(facts.status))
    status["results"][0].update(trials=1, failedTrials=1, requests=100, state="Partial")
    for fault, right in (("node", True), ("server", False), (None, False), ("tier", False)):
        lost = result(1, "axum", 1, outcome="Failed", fault=fault, reason="NodeSilent")
        case = replace(facts, status=status, results=[lost, *facts.results[1:]])
        assert (problems(OF_THE_NODE, case) == []) is right


def test_no_server_is_blamed() -> None:
    facts = healthy()
    status = deepcopy(dict(facts.status))
    status["servers"][0].update(state="Failed", reason="NotReady", message="late")
    assert said(replace(facts, status=status)) == "server axum is out: NotReady: late"


def test_nothing_is_left_behind() -> None:
    facts = replace(healthy(), left=frozenset({"Pod/a-postgres-x"}))
    assert said(facts) == "left behind when over: Pod/a-postgres-x"
    facts = replace(healthy(), left_after_deletion=frozenset({"Secret/a-1"}))
    assert said(facts) == "left behind when deleted: Secret/a-1"
