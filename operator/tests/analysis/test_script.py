"""What a script says over all repetitions of a server under its load."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.analysis import Summary, summarise
from laptime.analysis import script as analysed
from laptime.analysis.remembered import forget
from laptime.analysis.repeated import compared_by
from laptime.analysis.rows import Cell, cells_of, row_of
from laptime.analysis.script import script_of_row, threshold_objectives
from laptime.analysis.script_metrics import compared_metrics
from laptime.api import doubts
from laptime.api.loads import Load
from laptime.api.metrics import Metric
from laptime.api.results import (
    Outcome,
    ResultRow,
    RowState,
    TrialOutcome,
    TrialResult,
    Validity,
)
from laptime.api.script import ScriptMetric
from laptime.api.spec import BenchmarkRunSpec
from laptime.measure import (
    GeneratorError,
    GeneratorResult,
    parse_generator_output,
    parse_payload,
    trial_result,
)
from laptime.measure.generator import RESULT_PREFIX
from laptime.measure.script_metrics import keeps_bound
from laptime.plan import Trial
from tests.measure.samples import document, line, phase

LOAD = Load.model_validate({"name": "own", "script": {"configMap": "mine"}})
SPEC = BenchmarkRunSpec.model_validate(
    {
        "scenario": "users",
        "servers": [{"name": "axum", "preset": "axum-sqlx"}],
        "loads": [{"name": "own", "script": {"configMap": "mine"}}],
    }
)
PAYLOAD = line(document(phase([1000] * 1000))).removeprefix(RESULT_PREFIX)
QUIET = {"warmup": "time", "executors": ["constant-vus"], "iterations": 100}


def measured(
    *scripts: dict[str, Any], answers: int = 1000, dropped: int = 0
) -> tuple[list[Trial], list[TrialResult]]:
    """Return the trials of a server whose repetitions say this, and their results."""
    trials = [Trial(f"t-{n}", n, "axum", "own", n) for n in range(1, len(scripts) + 1)]
    results = []
    for trial, script in zip(trials, scripts, strict=True):
        counted = phase([1000] * answers, droppedIterations=dropped)
        content = {**document(counted), "trial": trial.name}
        parsed = parse_generator_output(line({**content, "script": {**QUIET, **script}}))
        assert isinstance(parsed, GeneratorResult)
        results.append(trial_result(trial, parsed, LOAD))
    return trials, results


def row(*scripts: dict[str, Any], dropped: int = 0) -> ResultRow:
    """Return the row of a server whose repetitions say this."""
    trials, results = measured(*scripts, dropped=dropped)
    return row_of_cell(cells_of(trials, results, {}, {}, {})["axum", "own"])


def row_of_cell(cell: Cell) -> ResultRow:
    """Return the row of a server with nothing to compare it with."""
    return row_of(cell, {}, {}, Metric.REQUESTS_PER_SECOND, None)


def checks(failed: int, name: str = "right answer") -> dict[str, Any]:
    return {"checks": {name: {"passed": 1000 - failed, "failed": failed}}}


def test_a_row_whose_checks_never_hold_is_invalid_and_names_them() -> None:
    found = row(checks(1000), checks(1000))
    assert found.validity is Validity.INVALID
    assert found.requests_per_second is None
    assert found.validity_reasons == [
        "check 'right answer' failed in 1,000 of 1,000 answers (100%) (in 2 of 2 repetitions)"
    ]
    assert found.script is not None
    assert (found.script.checks_passed, found.script.checks_failed) == (0, 2000)


def test_a_row_of_another_protocol_is_doubtful_and_has_the_metrics_of_its_script() -> None:
    sessions = {"metrics": {"ws_sessions": {"type": "counter", "samples": 20, "sum": 20}}}
    trials, results = measured(sessions, sessions, answers=0)
    payloads = {trial.name: PAYLOAD for trial in trials}
    found = row_of_cell(cells_of(trials, results, payloads, {}, {})["axum", "own"])
    assert (found.validity, found.state) == (Validity.DOUBTFUL, RowState.MEASURED)
    assert found.requests_per_second is None
    assert found.validity_reasons == [
        f"{doubts.NO_REQUEST.says()} (in 2 of 2 repetitions)",
    ]
    summary = summarise(SPEC, trials, results, payloads, None, {})
    assert summary.fastest is None
    assert summary.verdict.startswith("no request was counted; the metrics of the scripts are in")


def test_checks_whose_names_differ_by_a_number_are_all_named() -> None:
    both = {
        "checks": {
            "status is 200": {"passed": 0, "failed": 9},
            "status is 201": {"passed": 0, "failed": 9},
        }
    }
    said = " ".join(row(both, both).validity_reasons)
    assert "'status is 200'" in said
    assert "'status is 201'" in said


def test_what_a_script_says_adds_up_over_repetitions() -> None:
    script = row(checks(1), checks(0), checks(0, "another")).script
    assert script is not None
    assert script.iterations == 300
    assert [(one.name, one.passed, one.failed, one.rate) for one in script.checks] == [
        ("right answer", 1999, 1, 0.9995),
        ("another", 1000, 0, 1.0),
    ]


def test_a_row_shows_the_checks_that_failed_most() -> None:
    many = {"checks": {f"check {n}": {"passed": 100 - n, "failed": n} for n in range(100)}}
    script = row(many, many).script
    assert script is not None
    assert [one.name for one in script.checks[:2]] == ["check 99", "check 98"]
    assert len(script.checks) == 20
    assert script.checks_failed == 2 * sum(range(100))
    assert script.warnings == ["80 checks of all repetitions are left out: 20 are kept"]


@pytest.mark.parametrize(
    ("script", "warning"),
    [
        (
            {"otherHosts": {f"host-{n}:80": {"requests": 1} for n in range(12)}},
            "2 other hosts of all repetitions are left out: 10 are kept",
        ),
        (
            {"exceptions": {f"Error: {n}": 1 for n in range(5)}},
            "2 exceptions of all repetitions are left out: 3 are kept",
        ),
        (
            {
                "thresholds": [
                    {"metric": f"m{n}", "expression": "count>0", "met": True, "samples": 1}
                    for n in range(40)
                ]
            },
            "8 thresholds of all repetitions are left out: 32 are kept",
        ),
    ],
)
def test_what_a_row_does_not_show_is_said(script: dict[str, Any], warning: str) -> None:
    found = row(script, script).script
    assert found is not None
    assert found.warnings == [warning]


def threshold(*outcomes: tuple[bool, float]) -> list[dict[str, Any]]:
    """Return repetitions in which a threshold came out like this."""
    return [
        {
            "thresholds": [
                {"metric": "http_req_duration{name:list}", "expression": "p(95)<200"}
                | {"contains": "time", "met": met, "value": value, "samples": 100}
            ]
        }
        for met, value in outcomes
    ]


@pytest.mark.parametrize(
    ("outcomes", "met", "outcome", "measured"),
    [
        ([(True, 12.3)], True, "met", "12.3 ms"),
        ([(True, 12.3), (True, 15.1)], True, "met", "13.6 ms (3.70 to 50.2); missed in 0 of 2"),
        (
            [(False, 1500.0), (False, 1450.0)],
            False,
            "missed",
            "1.47 s (1.19 to 1.83); missed in 2 of 2",
        ),
        # Chance goes further than the bound: nobody knows.
        (
            [(True, 190.0), (False, 210.0)],
            None,
            "notKnown",
            "199.7 ms (106 to 377); missed in 1 of",
        ),
        ([(False, 1500.0), (False, 300.0)], None, "notKnown", "671 ms ("),
    ],
)
def test_thresholds_become_objectives_of_the_run(
    outcomes: list[tuple[bool, float]], met: bool | None, outcome: str, measured: str
) -> None:
    found = row(*threshold(*outcomes))
    assert found.script is not None
    assert found.script.thresholds[0].met is met
    (one,) = threshold_objectives([found])
    assert (one.server, one.load, one.metric) == ("axum", "own", "http_req_duration{name:list}")
    assert one.bound == "http_req_duration{name:list}: p(95)<200"
    assert one.measured.startswith(measured)
    assert one.outcome == outcome


def test_thresholds_on_metrics_whose_names_begin_alike_are_two() -> None:
    both = [
        {"metric": f"http_req_duration{{name:{'n' * 100}{end}}}", "expression": "p(95)<200"}
        | {"contains": "time", "met": met, "value": value, "samples": 100}
        for end, met, value in (("a", True, 100.0), ("b", False, 300.0))
    ]
    missed, met = threshold_objectives([row({"thresholds": both})])
    assert (missed.outcome, missed.measured) == ("missed", "300 ms")
    assert (met.outcome, met.measured) == ("met", "100 ms")


@pytest.mark.parametrize(
    ("expression", "values", "met"),
    [
        ("count==300", (300.0, 300.0), True),
        ("count!=300", (300.0, 300.0), False),
        ("count==300", (200.0, 201.0), False),
        ("count==300", (299.0, 301.0), None),
        # A share is known within 0 and 1, and as well as its repetitions agree.
        ("rate>0.99", (1.0, 1.0), True),
        ("rate>0.99", (0.0, 0.0), False),
        ("rate>0.99", (1.0, 0.995), None),
        ("rate<=1", (1.0, 0.995), True),
    ],
)
def test_a_threshold_is_judged_by_the_whole_interval(
    expression: str, values: tuple[float, ...], met: bool | None
) -> None:
    kind = "rate" if expression.startswith("rate") else "counter"
    said = {"metric": "m", "expression": expression, "samples": 9}
    found = row(
        *(
            {
                "metrics": {"m": {"type": kind, "samples": 9}},
                "thresholds": [{**said, "met": keeps_bound(expression, one, one), "value": one}],
            }
            for one in values
        )
    )
    assert found.script is not None
    (threshold,) = found.script.thresholds
    assert threshold.met is met
    assert threshold.measured is not None
    (objective,) = threshold_objectives([found])
    assert objective.outcome == {True: "met", False: "missed", None: "notKnown"}[met]
    if met is None:
        assert objective.reason == "IntervalAcrossBound"


@pytest.mark.parametrize(
    ("expression", "contains", "values", "measured"),
    [
        ("p(95)<200", "time", (200.3, 200.35, 200.4), "200.3 ms (200.2 to 200.5)"),
        ("rate>0.9999", "default", (0.9995, 0.9996, 0.9996), "0.9996 (0.999 to 0.9997)"),
        ("rate<0.01", "default", (0.010001, 0.010002, 0.010003), "0.010002 ("),
        ("rate<5e8", "data", (5e8 + 4e5,), "500,400,000 B/s"),
        ("count<5e8", "data", (4.8e8,), "480,000,000 B"),
        ("avg<200", "data", (120.0,), "120 B"),
        ("avg>-0.2", "time", (-0.20001, -0.20002, -0.20003), "-0.20002 ms (-0.20004 to -0.199995)"),
    ],
)
def test_what_a_threshold_was_compared_with_never_reads_as_its_bound(
    expression: str, contains: str, values: tuple[float, ...], measured: str
) -> None:
    said = {"metric": "m", "expression": expression, "contains": contains, "samples": 9}
    kind = "rate" if expression.startswith("rate") else "trend"
    found = row(
        *(
            {
                "metrics": {"m": {"type": kind, "samples": 9}},
                "thresholds": [{**said, "met": keeps_bound(expression, one, one), "value": one}],
            }
            for one in values
        )
    )
    (objective,) = threshold_objectives([found])
    assert objective.measured.startswith(measured)


def test_thresholds_that_were_not_met_come_first_and_are_bounded() -> None:
    many = {
        "thresholds": [
            {"metric": f"m{n}", "expression": "count<9", "met": n < 90, "samples": 1}
            for n in range(100)
        ]
    }
    found = row(many)
    assert found.script is not None
    assert len(found.script.thresholds) == 32
    assert [one.met for one in found.script.thresholds[:11]] == [False] * 10 + [True]
    objectives = threshold_objectives([found] * 20)
    assert len(objectives) == 128
    assert not any(one.outcome is Outcome.MET for one in objectives)


def test_a_threshold_that_wrong_answers_meet_is_not_known_to_be_met() -> None:
    (kept,) = threshold_objectives([row(*threshold((True, 12.3)))])
    assert kept.outcome is Outcome.MET
    (one,) = threshold_objectives([row({**threshold((True, 12.3))[0], **checks(1000)})])
    assert (one.outcome, one.reason) == (Outcome.NOT_KNOWN, "Invalid")
    assert one.message is not None
    assert "right answer" in one.message


def test_a_threshold_is_judged_by_the_repetitions_that_are_not_invalid() -> None:
    slow = threshold((False, 300.0), (False, 310.0))
    quick_and_wrong = {**threshold((True, 1.0))[0], **checks(1000)}
    found = row(*slow, quick_and_wrong)
    assert found.validity is Validity.DOUBTFUL
    assert found.script is not None
    (judged,) = found.script.thresholds
    assert (judged.met, judged.low, judged.repetitions) == (False, 300.0, 2)
    (one,) = threshold_objectives([found])
    assert (one.outcome, one.reason) == (Outcome.MISSED, "BoundNotKept")


def test_a_threshold_is_not_known_to_be_met_without_an_invalid_repetition() -> None:
    met = threshold((True, 100.0), (True, 101.0))
    slow_and_wrong = {**threshold((False, 900.0))[0], **checks(1000)}
    (one,) = threshold_objectives([row(*met, slow_and_wrong)])
    assert (one.outcome, one.reason) == (Outcome.NOT_KNOWN, "Invalid")
    assert one.message == "1 of 3 repetitions is invalid and left out"
    assert one.measured.endswith("missed in 0 of 2 repetitions")


def test_a_threshold_is_not_known_to_be_met_where_a_repetition_measured_nothing() -> None:
    trials, results = measured(*threshold((True, 100.0), (True, 100.0), (True, 100.0)))
    gone = {"figures": None, "script": None, "validity": None, "outcome": TrialOutcome.FAILED}
    results[1] = results[1].model_copy(update=gone)
    found = row_of_cell(cells_of(trials, results, {}, {}, {})["axum", "own"])
    (objective,) = threshold_objectives([found])
    assert (objective.outcome, objective.reason) == (Outcome.NOT_KNOWN, "Doubtful")
    assert objective.message == "1 of 3 repetitions measured nothing"


def test_a_threshold_that_a_smaller_load_met_is_not_known_to_be_met() -> None:
    found = row(*threshold((True, 12.3), (True, 12.9)), dropped=800)
    (one,) = threshold_objectives([found])
    assert (one.outcome, one.reason) == (Outcome.NOT_KNOWN, "Doubtful")
    assert (one.message or "").startswith("k6 dropped 800 of 900 iterations")


DROPPED = doubts.ITERATIONS_DROPPED.says(dropped=800, due=2000)
PORTS = doubts.NO_PORT.says(lost=700, requests=9000)
HELD_BACK = doubts.GENERATOR_HELD_BACK.says(share=0.2)


@pytest.mark.parametrize(
    ("reason", "met", "missed"),
    [
        (DROPPED, Outcome.NOT_KNOWN, Outcome.MISSED),
        (doubts.in_repetitions([DROPPED, "others"], 5), Outcome.NOT_KNOWN, Outcome.MISSED),
        (PORTS, Outcome.MET, Outcome.NOT_KNOWN),
        (HELD_BACK, Outcome.MET, Outcome.NOT_KNOWN),
        (doubts.STOLEN_TIME.says(share=0.09, node="n"), Outcome.MET, Outcome.MISSED),
        (doubts.MORE_DOUBTS.says(others=3), Outcome.MET, Outcome.MISSED),
        # What a script says of itself is its own.
        (doubts.NO_WARMUP.says(), Outcome.MET, Outcome.MISSED),
        (doubts.ENDED_EARLY.says(), Outcome.MET, Outcome.MISSED),
        (doubts.NO_REQUEST.says(), Outcome.MET, Outcome.MISSED),
    ],
)
def test_a_threshold_is_not_known_where_its_outcome_may_be_due_to_the_generator(
    reason: str, met: Outcome, missed: Outcome
) -> None:
    for outcome, said in ((True, met), (False, missed)):
        found = row(*threshold((outcome, 12.3)), dropped=800)
        found = found.model_copy(update={"validity_reasons": [reason]})
        (one,) = threshold_objectives([found])
        assert one.outcome is said
        assert one.message == (reason if said is Outcome.NOT_KNOWN else None)


@pytest.mark.parametrize(
    ("metric", "met", "missed"),
    [
        # How many would have been answered at the whole load nobody knows.
        ("http_reqs", Outcome.NOT_KNOWN, Outcome.NOT_KNOWN),
        ("iterations{scenario:buy}", Outcome.NOT_KNOWN, Outcome.NOT_KNOWN),
        ("orders", Outcome.NOT_KNOWN, Outcome.NOT_KNOWN),
        ("order_time", Outcome.NOT_KNOWN, Outcome.MISSED),
        # How many were dropped is no doubt but the figure itself.
        ("dropped_iterations", Outcome.MET, Outcome.MISSED),
        ("dropped_iterations{scenario:buy}", Outcome.MET, Outcome.MISSED),
    ],
)
def test_a_smaller_load_bears_on_a_threshold_as_its_metric_says(
    metric: str, met: Outcome, missed: Outcome
) -> None:
    orders = ScriptMetric(name="orders", type="counter", value=1.0)
    for outcome, said in ((True, met), (False, missed)):
        (script,) = threshold((outcome, 12.3))
        of_metric = [{**one, "metric": metric} for one in script["thresholds"]]
        found = row({"thresholds": of_metric}, dropped=800)
        assert found.script is not None
        kept = found.script.model_copy(update={"metrics": [orders]})
        (one,) = threshold_objectives([found.model_copy(update={"script": kept})])
        assert one.outcome is said


@pytest.mark.parametrize(
    ("dropped", "outcome"), [(1, Outcome.MET), (5, Outcome.MET), (6, Outcome.NOT_KNOWN)]
)
def test_few_dropped_iterations_leave_a_threshold_met(dropped: int, outcome: Outcome) -> None:
    """k6 drops some while it makes its VUs: up to one of a thousand is none."""
    (script,) = threshold((True, 12.3))
    found = row({**script, "iterations": 5000}, dropped=dropped)
    assert any(doubts.ITERATIONS_DROPPED.said(reason) for reason in found.validity_reasons)
    (one,) = threshold_objectives([found])
    assert one.outcome is outcome


def test_a_smaller_load_is_never_among_the_doubts_that_are_only_counted() -> None:
    many = {f"check {n}": {"passed": 998, "failed": 2} for n in range(4)}
    (script,) = threshold((True, 12.3))
    trials, results = measured({**script, "checks": many, "warmup": ""}, dropped=800)
    found = row_of_cell(cells_of(trials, results, {}, {}, {})["axum", "own"])
    assert doubts.MORE_DOUBTS.said(found.validity_reasons[-1])
    (one,) = threshold_objectives([found])
    assert (one.outcome, one.reason) == (Outcome.NOT_KNOWN, "Doubtful")


def test_a_failing_repetition_of_a_threshold_on_checks_is_not_dropped_into_a_pass() -> None:
    said = {"metric": "checks", "expression": "rate>0.95", "samples": 1000}
    right = {**checks(0), "thresholds": [{**said, "met": True, "value": 1.0}]}
    wrong = {**checks(1000), "thresholds": [{**said, "met": False, "value": 0.0}]}
    (one,) = threshold_objectives([row(right, right, wrong)])
    assert (one.outcome, one.reason) == (Outcome.NOT_KNOWN, "Invalid")


def test_a_threshold_without_samples_in_some_repetitions_says_so() -> None:
    met = threshold((True, 100.0), (True, 101.0))
    (unseen,) = threshold((True, 0.0))
    unseen["thresholds"][0]["samples"] = 0
    (one,) = threshold_objectives([row(*met, unseen)])
    assert (one.outcome, one.reason) == (Outcome.NOT_KNOWN, "TooFewAnswers")
    assert one.message == "its metric has no samples in 1 of 3 repetitions"


def test_metrics_of_all_repetitions_are_merged() -> None:
    trend = {"type": "trend", "contains": "time", "min": 1.0, "max": 1.0, "last": 1.0}
    cell = 0x3FF00000_00000000 >> 42  # of 1
    ones = {**trend, "samples": 3, "sum": 3.0, "passes": 3, "cells": [cell, 3]}
    twos = {**trend, "samples": 7, "sum": 14.0, "max": 2.0, "cells": [cell + 1024, 7]}
    sold = {"type": "counter", "samples": 2, "sum": 5.0}
    trials, results = measured({}, {}, {})
    payloads = {}
    for trial, metrics in zip(
        trials, ({"t": ones, "sold": sold}, {"t": twos}, {"sold": sold}), strict=True
    ):
        content = {**document(phase([1000] * 1000)), "script": {**QUIET, "metrics": metrics}}
        payloads[trial.name] = line(content).removeprefix(RESULT_PREFIX)
    found = row_of_cell(cells_of(trials, results, payloads, {}, {})["axum", "own"]).script
    assert found is not None
    counter, merged = found.metrics
    assert (counter.name, counter.value, counter.samples) == ("sold", 10.0, 4)
    assert (merged.name, merged.samples, merged.value) == ("t", 10, 1.7)
    assert (merged.min, merged.max, merged.contains) == (1.0, 2.0, "time")
    assert merged.p50 == pytest.approx(2.0, rel=0.001)
    assert merged.p99 == 2.0


@pytest.mark.parametrize(("invalid", "value", "samples"), [([2], 102.0, 2), ([1, 2, 3], 1002.0, 3)])
def test_metrics_of_a_row_are_of_the_repetitions_that_its_figures_are_of(
    invalid: list[int], value: float, samples: int
) -> None:
    """Of all, where all are invalid: then there are no figures."""
    sold = {
        n: {"type": "counter", "samples": 1, "sum": of} for n, of in ((1, 50), (2, 900), (3, 52))
    }
    scripts = [
        {"seconds": 10.0, "metrics": {"sold": one}, **checks(500 if n in invalid else 0)}
        for n, one in sold.items()
    ]
    trials, results = measured(*scripts)
    payloads = {}
    for trial, script in zip(trials, scripts, strict=True):
        content = {**document(phase([1000] * 1000)), "script": {**QUIET, **script}}
        payloads[trial.name] = line(content).removeprefix(RESULT_PREFIX)
    (found,) = summarise(SPEC, trials, results, payloads, None, {}).rows
    assert found.script is not None
    (metric,) = found.script.metrics
    assert (metric.value, metric.samples) == (value, samples)
    figure = metric.figure("rate")
    assert (figure is None) is (samples == 3)
    # How many did what is said of all, as of requests.
    assert found.script.iterations == 300


def test_metrics_of_huge_values_do_not_end_a_run() -> None:
    ends = {"sum": 1.7e308, "min": 1.7e308, "max": 1.7e308}
    huge = {"type": "trend", "samples": 1, **ends, "cells": [9, 1]}
    metrics = {"best": huge, "sold": {"type": "counter", "samples": 2, "sum": 5.0}}
    limit = {"metric": "best", "expression": "max<9", "met": False, "value": 1.7e308, "samples": 1}
    script = {"metrics": metrics, "thresholds": [limit]}
    # One of them found something.
    other = {**script, "thresholds": [{**limit, "met": True, "value": -1.0}]}
    trials, results = measured(script, script, other)
    content = {**document(phase([1000] * 1000)), "script": {**QUIET, **script}}
    payload = line(content).removeprefix(RESULT_PREFIX)
    payloads = {trial.name: payload for trial in trials}
    (found,) = summarise(SPEC, trials, results, payloads, None, {}).rows
    assert found.script is not None
    assert [(one.name, one.value) for one in found.script.metrics] == [("sold", 15.0)]
    assert found.script.warnings[0].startswith("1 metrics with numbers beyond 1e+290")
    assert [one.met for one in found.script.thresholds] == [None]


def test_a_load_is_compared_by_latency_when_one_server_leaves_its_script_to_rest() -> None:
    _, slow = measured({"iterationSeconds": 100.0, "requestSeconds": 98.0})
    _, fast = measured({"iterationSeconds": 2.1, "requestSeconds": 0.1})
    another = LOAD.model_copy(update={"name": "another"})
    assert compared_by(SPEC, LOAD, slow) is Metric.REQUESTS_PER_SECOND
    assert compared_by(SPEC, LOAD, [*slow, *fast]) is Metric.P99
    assert compared_by(SPEC, another, [*slow, *fast]) is Metric.REQUESTS_PER_SECOND


def verdict(*scripts: dict[str, Any]) -> str:
    trials, results = measured(*scripts)
    payloads = {result.trial: PAYLOAD for result in results}
    return summarise(SPEC, trials, results, payloads, None, {}).verdict


def test_the_verdict_is_about_response_times_where_a_script_rests() -> None:
    assert "p99" in verdict({"iterationSeconds": 2.1, "requestSeconds": 0.1})
    assert "requests/s" in verdict({})


def iterations(count: int) -> dict[str, Any]:
    """Return what a script says that rests and did so many iterations in ten seconds."""
    counted = {"type": "counter", "samples": count, "sum": float(count)}
    rests = {"iterationSeconds": 2.1, "requestSeconds": 0.1}
    return {**rests, "seconds": 10.0, "metrics": {"iterations": counted}}


def compared(*servers: tuple[str, int, int]) -> Summary:
    """Return what comes of servers with these response times (µs) and iterations, twice each."""
    spec = BenchmarkRunSpec.model_validate(
        {
            **SPEC.to_wire(),
            "servers": [{"name": name, "preset": "axum-sqlx"} for name, *_ in servers],
            "baseline": servers[-1][0],
        }
    )
    trials: list[Trial] = []
    results: list[TrialResult] = []
    payloads: dict[str, str] = {}
    for number, (server, microseconds, done) in enumerate(servers * 2):
        repetition = number // len(servers) + 1
        trial = Trial(f"t-{number}", number + 1, server, "own", repetition)
        content = {**document(phase([microseconds + repetition] * 1000)), "trial": trial.name}
        text = line({**content, "script": {**QUIET, **iterations(done + repetition)}})
        parsed = parse_generator_output(text)
        assert isinstance(parsed, GeneratorResult)
        trials.append(trial)
        results.append(trial_result(trial, parsed, LOAD))
        payloads[trial.name] = text.removeprefix(RESULT_PREFIX)
    return summarise(spec, trials, results, payloads, None, {})


def test_the_verdict_says_iterations_beside_the_response_times_of_a_script_that_rests() -> None:
    alone = compared(("axum", 1000, 500))
    assert alone.verdict.startswith("axum has a p99 of 1.00 ms")
    assert "; of iterations under own, axum did 50.1 (" in alone.verdict
    both = compared(("axum", 1000, 500), ("base", 9000, 400))
    assert both.verdict.startswith("axum is fastest: 0.11")
    assert "; of iterations under own, axum did 1.25x (" in both.verdict
    assert ") those of base" in both.verdict
    of_axum = next(row for row in both.rows if row.server == "axum")
    assert of_axum.script is not None
    assert of_axum.script.iterations_figure is not None
    assert of_axum.script.iterations_figure.estimate.value == pytest.approx(50.15, rel=1e-3)


def test_metrics_of_a_script_that_asks_nothing_by_requests_are_compared() -> None:
    trials: list[Trial] = []
    results: list[TrialResult] = []
    payloads: dict[str, str] = {}
    for repetition in (1, 2):
        trial = Trial(f"t-{repetition}", repetition, "axum", "own", repetition)
        content = {**document(phase([])), "trial": trial.name}
        text = line({**content, "script": {**QUIET, **iterations(500)}})
        parsed = parse_generator_output(text)
        assert isinstance(parsed, GeneratorResult)
        trials.append(trial)
        results.append(trial_result(trial, parsed, LOAD))
        payloads[trial.name] = text.removeprefix(RESULT_PREFIX)
    (found,) = summarise(SPEC, trials, results, payloads, None, {}).rows
    assert found.validity is Validity.DOUBTFUL
    assert found.requests_per_second is None
    assert found.script is not None
    assert found.script.iterations_figure is not None
    assert found.script.iterations_figure.estimate.value == 50.0


def test_metrics_that_a_row_does_not_keep_are_said() -> None:
    many = {f"m{n:03d}": {"type": "counter", "samples": 1, "sum": 1.0} for n in range(70)}
    trials, results = measured({"metrics": many})
    content = {**document(phase([1000] * 1000)), "script": {**QUIET, "metrics": many}}
    payloads = {trials[0].name: line(content).removeprefix(RESULT_PREFIX)}
    script = row_of_cell(cells_of(trials, results, payloads, {}, {})["axum", "own"]).script
    assert script is not None
    assert len(script.metrics) == 60
    assert "10 metrics of all repetitions are left out: 60 are kept" in script.warnings


def test_metrics_of_a_part_of_the_repetitions_are_not_shown_as_those_of_all() -> None:
    sold = {"metrics": {"sold": {"type": "counter", "samples": 2, "sum": 5.0}}}
    trials, results = measured(sold, sold, sold)
    content = {**document(phase([1000] * 1000)), "script": {**QUIET, **sold}}
    payload = line(content).removeprefix(RESULT_PREFIX)
    payloads = {trial.name: payload for trial in trials}
    whole = row_of_cell(cells_of(trials, results, payloads, {}, {})["axum", "own"]).script
    assert whole is not None
    assert [(one.name, one.value) for one in whole.metrics] == [("sold", 15.0)]
    # One was too large to be stored.
    payloads[trials[1].name] = ""
    part = row_of_cell(cells_of(trials, results, payloads, {}, {})["axum", "own"])
    assert "the response times of 1 of 3 trials are missing" in part.validity_reasons
    assert part.script is not None
    assert part.script.metrics == []
    assert part.script.warnings == ["metrics are left out: those of 1 of 3 repetitions are missing"]
    none = row_of_cell(cells_of(trials, results, {}, {}, {})["axum", "own"]).script
    assert none is not None
    assert none.warnings == ["metrics are left out: those of 3 of 3 repetitions are missing"]


def test_of_each_repetition_that_is_merged_its_payload_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 13 rows with 20 repetitions each, in the turns in which they are measured."""
    read: list[str] = []

    def counting(payload: str) -> GeneratorResult | GeneratorError:
        read.append(payload)
        return parse_payload(payload)

    monkeypatch.setattr(analysed, "parse_payload", counting)
    forget()
    sold = {"metrics": {"sold": {"type": "counter", "samples": 1, "sum": 1.0}}}
    _, results = measured(sold)
    said = results[0].script
    assert said is not None
    content = {**document(phase([1000] * 10)), "script": {**QUIET, **sold}}
    rows: list[list[str]] = [[] for _ in range(13)]
    for repetition in range(20):
        for number, row_payloads in enumerate(rows):
            text = line({**content, "trial": f"t-{number}-{repetition}"})
            row_payloads.append(text.removeprefix(RESULT_PREFIX))
            # After each trial all rows are made anew.
            for one in rows:
                if one:
                    found = script_of_row([said], [said], one)
                    assert found is not None
                    assert [metric.value for metric in found.metrics] == [len(one)]
    assert len(read) == len(set(read)) == 260
    forget()
    script_of_row([said], [said], rows[0])
    assert len(read) == 280


def test_what_merged_metrics_take_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is no room for is merged anew, and is as right."""
    monkeypatch.setattr(analysed, "MOST_MERGED_BYTES", 5000)
    forget()
    sold = {"metrics": {"sold": {"type": "counter", "samples": 1, "sum": 1.0}}}
    _, results = measured(sold)
    said = results[0].script
    assert said is not None
    content = {**document(phase([1000] * 10)), "script": {**QUIET, **sold}}
    payloads = [
        [line({**content, "trial": f"t-{row}-{n}"}).removeprefix(RESULT_PREFIX) for n in range(3)]
        for row in range(200)
    ]
    for repetitions in (1, 2, 3):
        for one in payloads:
            found = script_of_row([said], [said], one[:repetitions])
            assert found is not None
            assert [metric.value for metric in found.metrics] == [repetitions]
    assert 0 < sum(len(one.packed) for one in analysed._MERGED.values()) <= 5000
    forget()
    assert not analysed._MERGED


@pytest.mark.parametrize(
    ("counts", "expression", "met", "value", "missed"),
    [
        ((200, 0, 0, 210, 0), "rate>1", None, 8.2, 3),
        ((200, 0, 0, 210, 0), "rate<100", True, 8.2, 0),
        ((200, 210, 205, 200, 210), "rate>1", True, 20.5, 0),
    ],
)
def test_a_threshold_on_a_rate_of_a_counter_is_judged_by_all_repetitions_as_its_metric_is(
    counts: tuple[int, ...], expression: str, met: bool | None, value: float, missed: int
) -> None:
    def script(count: int) -> dict[str, Any]:
        rate = count / 10
        kept = keeps_bound(expression, rate, rate)
        said = {"metric": "sold", "expression": expression, "met": kept, "value": rate}
        sold = {"type": "counter", "samples": count, "sum": float(count)}
        metrics = {"metrics": {"sold": sold}} if count else {}
        return {"seconds": 10.0, "thresholds": [{**said, "samples": count}], **metrics}

    trials, results = measured(*map(script, counts))
    (found,) = summarise(SPEC, trials, results, {}, None, {}).rows
    assert found.script is not None
    (one,) = found.script.thresholds
    assert one.measured is not None
    assert one.measured.value == pytest.approx(value, rel=1e-3)
    assert (one.met, one.missed, one.without_samples) == (met, missed, 0)
    figure = compared_metrics({"axum": results}, "axum", None)["axum"]["sold"][0]
    assert one.measured.low == pytest.approx(figure.estimate.low, rel=1e-4)
    assert one.measured.high == pytest.approx(figure.estimate.high, rel=1e-4)
    (objective,) = threshold_objectives([found])
    assert objective.reason == ("IntervalAcrossBound" if met is None else "BoundKept")


def test_a_rate_that_had_no_room_in_a_repetition_is_not_known_to_be_zero() -> None:
    sold = {"type": "counter", "samples": 200, "sum": 200.0}
    said = {"metric": "sold", "expression": "rate<100", "met": True}
    there = {"metrics": {"sold": sold}, "thresholds": [{**said, "value": 20.0, "samples": 200}]}
    gone = {"metricsLeftOut": 3, "thresholds": [{**said, "value": 0.0, "samples": 0}]}
    of_row = row(there, there, gone).script
    assert of_row is not None
    (one,) = of_row.thresholds
    assert (one.met, one.without_samples) == (None, 1)


def test_the_verdict_names_the_check_that_made_all_figures_invalid() -> None:
    said = verdict({"iterationSeconds": 2.1, "requestSeconds": 0.1, **checks(1000)})
    assert said.startswith(
        "no server has a figure that counts; under own invalid: axum (check 'right answer' failed "
        "in 1,000 of 1,000 answers (100%)"
    )


def test_a_load_without_a_script_says_nothing() -> None:
    trial = Trial("t-1", 1, "axum", "own", 1)
    parsed = parse_generator_output(line({**document(phase([1000] * 1000)), "trial": "t-1"}))
    assert isinstance(parsed, GeneratorResult)
    result = trial_result(trial, parsed)
    assert result.script is None
    assert row_of_cell(cells_of([trial], [result], {}, {}, {})["axum", "own"]).script is None
