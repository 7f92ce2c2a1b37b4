"""What a script says beside its requests: checks that count, a named warm-up, other hosts."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.api import doubts
from laptime.api.loads import Load
from laptime.api.results import TrialResult, Validity
from laptime.api.script import ComparedBy
from laptime.api.text import MAX_NAME, shown, told_apart
from laptime.api.written import share
from laptime.measure import GeneratorResult, merge_results, parse_generator_output, trial_result
from laptime.measure.figures import MAX_ENDPOINTS
from tests.measure.samples import TRIAL, document, line, phase

LOAD = Load.model_validate({"name": "own", "script": {"configMap": "mine"}})
INFORM = Load.model_validate({"name": "own", "script": {"configMap": "mine", "checks": "inform"}})
QUIET = {"warmup": "time", "executors": ["constant-vus"], "iterations": 1000}


def said(script: dict[str, Any], load: Load = LOAD, **measured: Any) -> TrialResult:
    content = document(phase([5000] * 1000, window=10.0, **measured))
    parsed = parse_generator_output(line({**content, "script": {**QUIET, **script}}))
    assert isinstance(parsed, GeneratorResult), parsed
    return trial_result(TRIAL, parsed, load)


def checked(failed: int, total: int, name: str = "right answer") -> dict[str, Any]:
    return {"checks": {name: {"passed": total - failed, "failed": failed}}}


@pytest.mark.parametrize(
    ("failed", "validity"),
    [
        (0, Validity.VALID),
        (10, Validity.VALID),
        (11, Validity.DOUBTFUL),
        (100, Validity.DOUBTFUL),
        (101, Validity.INVALID),
        (10_000, Validity.INVALID),
    ],
)
def test_checks_that_fail_make_a_trial_doubtful_and_then_invalid(
    failed: int, validity: Validity
) -> None:
    result = said(checked(failed, 10_000))
    assert result.validity is validity
    if validity is not Validity.VALID:
        (reason,) = result.validity_reasons
        assert reason.startswith(f"check 'right answer' failed in {failed:,} of 10,000 answers")


def test_checks_that_inform_judge_nothing_and_are_shown() -> None:
    result = said(checked(5000, 10_000), INFORM)
    assert result.validity is Validity.VALID
    assert result.script is not None
    assert (result.script.checks_passed, result.script.checks_failed) == (5000, 5000)


def test_a_check_that_never_holds_is_not_hidden_by_many_that_do() -> None:
    checks = {f"right {n}": {"passed": 1000, "failed": 0} for n in range(99)}
    checks["never"] = {"passed": 0, "failed": 5}
    result = said({"checks": checks})
    assert result.validity is Validity.INVALID
    assert result.validity_reasons == ["check 'never' failed in 5 of 5 answers (100%)"]
    assert result.script is not None
    assert result.script.checks[0].name == "never"


@pytest.mark.parametrize(
    ("each", "wrong", "validity"),
    [
        # Ten checks, each of 10,000 answers; those of one answer may fail together.
        (9, 90, Validity.DOUBTFUL),
        (9, 9, Validity.VALID),
        (1, 10, Validity.VALID),
        (10, 100, Validity.DOUBTFUL),
        (10, 101, Validity.INVALID),
    ],
)
def test_checks_that_each_fail_seldom_do_not_hide_each_other(
    each: int, wrong: int, validity: Validity
) -> None:
    checks = {f"right {n}": {"passed": 10_000 - each, "failed": each} for n in range(10)}
    result = said({"checks": checks, "wrongAnswers": wrong})
    assert result.validity is validity
    if validity is not Validity.VALID:
        assert result.validity_reasons == [
            f"{wrong} answers failed one check or another ({share(wrong / 10_000)} of the 10,000 "
            "that the check that was asked most often had): 'right 0', 'right 1', 'right 2' and 7 "
            "more"
        ]


def test_where_nobody_counted_wrong_answers_each_failed_check_is_one() -> None:
    checks = {f"right {n}": {"passed": 10_000 - 9, "failed": 9} for n in range(10)}
    assert said({"checks": checks}).validity is Validity.DOUBTFUL
    assert said({"checks": checks}, INFORM).validity is Validity.VALID


@pytest.mark.parametrize(("second", "wrong"), [({"wrongAnswers": 4}, 7), ({}, 18)])
def test_wrong_answers_of_several_generators_are_added_up(
    second: dict[str, Any], wrong: int
) -> None:
    checks = {f"right {n}": {"passed": 91, "failed": 9} for n in range(1)}
    parts = [
        parse_generator_output(
            line(
                {
                    **document(phase([5000] * 10, window=10.0)),
                    "segment": {"index": index, "count": 2, "startedAt": 1.0},
                    "script": {**QUIET, "checks": checks, **said_of},
                }
            )
        )
        for index, said_of in enumerate(({"wrongAnswers": 3}, second))
    ]
    merged = merge_results([one for one in parts if isinstance(one, GeneratorResult)])
    assert isinstance(merged, GeneratorResult), merged
    script = trial_result(TRIAL, merged, LOAD).script
    assert script is not None
    # Where one of them did not count, each failed check is one.
    assert script.wrong_answers == wrong


def test_checks_that_fail_by_themselves_are_not_said_twice() -> None:
    checks = {f"right {n}": {"passed": 970, "failed": 30} for n in range(2)}
    reasons = said({"checks": checks, "wrongAnswers": 60}).validity_reasons
    assert len(reasons) == 2
    assert all(one.startswith("check 'right") for one in reasons)


def test_many_checks_that_fail_are_counted() -> None:
    checks = {f"never {n}": {"passed": 0, "failed": 5} for n in range(10)}
    reasons = said({"checks": checks}).validity_reasons
    assert len(reasons) == 4
    assert reasons[-1] == "7 more checks failed as well"


def test_metrics_beyond_the_bound_are_said() -> None:
    result = said({"metrics": {"a": {"type": "counter", "samples": 1}}, "metricsLeftOut": 7})
    assert result.validity is Validity.VALID
    assert result.script is not None
    assert result.script.warnings == ["7 metrics are left out: 1 are kept"]


def test_parts_of_metrics_beyond_the_bound_are_said() -> None:
    script = said({"partsLeftOut": True}).script
    assert script is not None
    assert "more parts of metrics by scenarios and tags than are kept" in script.warnings[0]


def test_checks_beyond_the_bound_are_judged_together_and_said() -> None:
    result = said({**checked(0, 10), "moreChecks": {"passed": 1, "failed": 99}})
    assert result.validity is Validity.INVALID
    assert "check 'all further checks' failed in 99 of 100 answers" in result.validity_reasons[0]
    assert result.script is not None
    assert "more than 1 names of checks" in result.script.warnings[0]


def test_without_a_warmup_the_figures_are_doubtful() -> None:
    result = said({"warmup": ""})
    assert result.validity is Validity.DOUBTFUL
    assert "no warm-up was named" in result.validity_reasons[0]
    assert said({"warmup": "scenario"}).validity is Validity.VALID


def test_dropped_iterations_are_no_requests_and_make_the_figures_doubtful() -> None:
    result = said({}, droppedIterations=1000)
    assert result.figures is not None
    assert (result.figures.requests, result.figures.errors) == (1000, 0)
    assert result.validity is Validity.DOUBTFUL
    assert result.validity_reasons[0].startswith("k6 dropped 1,000 of 2,000 iterations")
    assert result.script is not None
    assert result.script.dropped_iterations == 1000


TRACE = "TypeError: x is not a function\n\tat default (file:///scripts/script.js:7:10(5))\n"


@pytest.mark.parametrize(
    ("thrown", "validity"),
    [(0, Validity.VALID), (1, Validity.DOUBTFUL), (10, Validity.DOUBTFUL), (11, Validity.INVALID)],
)
def test_iterations_that_end_with_an_exception_are_told_with_its_words(
    thrown: int, validity: Validity
) -> None:
    result = said({"checks": {}, "exceptions": {TRACE: thrown} if thrown else {}})
    assert result.validity is validity
    if thrown:
        (reason,) = result.validity_reasons
        assert reason.startswith(f"{thrown} of 1,000 iterations ended with an exception: TypeError")
        assert "script.js:7:10" in reason


def test_exceptions_beyond_the_bound_are_counted_together() -> None:
    thrown = {"Error: a": 3, "Error: b": 4}
    result = said({"exceptions": thrown, "moreExceptions": 5})
    assert result.script is not None
    found = [(one.message, one.iterations) for one in result.script.exceptions]
    assert found == [("all further exceptions", 5), ("Error: b", 4), ("Error: a", 3)]
    assert "12 of 1,000 iterations" in result.validity_reasons[0]


def test_a_run_that_a_threshold_ended_is_doubtful() -> None:
    assert "abortOnFail" in said({"aborted": True}).validity_reasons[0]


@pytest.mark.parametrize(
    ("script", "by"),
    [
        # 20 ms of pause beside 1 ms of requests, and 10 ms beside 90 ms.
        ({"iterationSeconds": 21.0, "requestSeconds": 1.0}, ComparedBy.LATENCY),
        ({"iterationSeconds": 101.0, "requestSeconds": 90.0}, ComparedBy.LATENCY),
        # What k6 itself needs for an iteration is no pause, nor is a little beside much.
        ({"iterationSeconds": 2.0, "requestSeconds": 1.0}, ComparedBy.THROUGHPUT),
        ({"iterationSeconds": 1010.0, "requestSeconds": 1000.0}, ComparedBy.THROUGHPUT),
        # Iterations that were cut at the end have requests, and no time of their own.
        ({"iterationSeconds": 100.0, "requestSeconds": 105.0}, ComparedBy.THROUGHPUT),
        ({"iterationSeconds": 0.0, "requestSeconds": 6.0}, ComparedBy.THROUGHPUT),
        # A batch of requests takes longer, all together, than its iteration, which may rest or not.
        ({"iterationSeconds": 1.0, "requestSeconds": 6.0}, ComparedBy.LATENCY),
        ({"executors": ["constant-arrival-rate"]}, ComparedBy.LATENCY),
        ({"executors": ["constant-vus", "ramping-arrival-rate"]}, ComparedBy.LATENCY),
        ({"executors": ["ramping-vus"]}, ComparedBy.THROUGHPUT),
    ],
)
def test_a_script_that_rests_or_keeps_a_rate_is_compared_by_latency(
    script: dict[str, Any], by: ComparedBy
) -> None:
    found = said(script).script
    assert found is not None
    assert found.compared_by is by


def test_what_setup_and_teardown_ask_is_no_load() -> None:
    content = document(phase([5000] * 1000, window=10.0))
    content["phases"]["setup"] = phase([9_000_000] * 3, errors=2)
    content["phases"]["teardown"] = phase([9_000_000] * 3)
    parsed = parse_generator_output(line({**content, "script": QUIET}))
    assert isinstance(parsed, GeneratorResult)
    figures = trial_result(TRIAL, parsed, LOAD).figures
    assert figures is not None
    assert (figures.requests, figures.errors, figures.window_seconds) == (1000, 0, 10.0)


def test_other_hosts_are_named_and_in_no_figure() -> None:
    hosts = {"cdn:80": {"requests": 7, "errors": 7}, "auth:80": {"requests": 70, "errors": 0}}
    result = said({"otherHosts": hosts, "moreHosts": {"requests": 1, "errors": 0}})
    assert result.figures is not None
    assert result.script is not None
    assert (result.figures.requests, result.figures.errors) == (1000, 0)
    assert [(one.host, one.requests, one.errors) for one in result.script.other_hosts] == [
        ("auth:80", 70, 0),
        ("cdn:80", 7, 7),
        ("all further hosts", 1, 0),
    ]
    assert "more than 2 other hosts" in result.script.warnings[0]


@given(st.text(max_size=300))
def test_a_name_moves_no_terminal_and_no_line(name: str) -> None:
    for text in (shown(name), told_apart(name)):
        assert text.isprintable()
        assert len(text) <= MAX_NAME


def test_long_names_are_told_apart_by_all_of_them() -> None:
    begin = "n" * 2 * MAX_NAME
    names = [f"{begin}{end}" for end in "ab"]
    metric = {"type": "counter", "samples": 1}
    threshold = {"expression": "count>1", "samples": 1, "value": 1}
    result = said(
        {
            "checks": {name: {"passed": 9} for name in names},
            "otherHosts": {name: {"requests": 1} for name in names},
            "metrics": {name: {**metric, "sum": n} for n, name in enumerate(names)},
            "thresholds": [{**threshold, "metric": name, "met": True} for name in names],
        },
        endpoints={name: phase([5000] * 5)["endpoints"]["list"] for name in names},
    )
    script = result.script
    assert script is not None
    assert len({one.name for one in script.checks}) == len({one.host for one in script.other_hosts})
    assert [len(one.name) for one in script.checks] == [MAX_NAME, MAX_NAME]
    assert {one.value for one in script.metrics} == {0.0, 1.0}
    assert {one.metric for one in script.thresholds} == {one.name for one in script.metrics}
    assert len(set(result.endpoints)) == len({one.name for one in script.metrics}) == 2


def test_names_that_are_shown_alike_are_counted_together() -> None:
    result = said({"checks": {"a\x9b": {"passed": 1}, "a\x1b": {"passed": 2}}})
    assert result.script is not None
    (check,) = result.script.checks
    assert (check.name, check.passed) == ("a�", 3)


def test_what_several_generators_say_adds_up() -> None:
    parts = []
    for index in range(2):
        script = {
            **QUIET,
            "iterationSeconds": 1.5,
            "exceptions": {"Error: a": 1, f"Error: {index}": 2},
            "moreExceptions": index,
            "checks": {"one": {"passed": 3, "failed": 1}, f"own {index}": {"failed": 2}},
            "otherHosts": {"cdn:80": {"requests": 5, "errors": index}},
            "aborted": index == 1,
            **({"moreChecks": {"passed": 4, "failed": 0}} if index else {}),
            "metrics": {
                "vus": {"type": "gauge", "samples": 3, "min": 1, "max": 5, "last": 4 + index},
                "depth": {"type": "gauge", "samples": 3, "min": 1, "max": 5, "last": 4 + index},
            },
        }
        content = {**document(phase([1000])), "segment": {"index": index, "count": 2}}
        parsed = parse_generator_output(line({**content, "script": script}))
        assert isinstance(parsed, GeneratorResult)
        parts.append(parsed)
    merged = merge_results(parts)
    assert isinstance(merged, GeneratorResult)
    found = merged.script
    assert found is not None
    assert (found.iterations, found.iteration_seconds, found.aborted) == (2000, 3.0, True)
    counts = {name: (one.passed, one.failed) for name, one in found.checks.items()}
    assert counts == {"one": (6, 2), "own 0": (0, 2), "own 1": (0, 2)}
    assert found.more_checks is not None
    assert found.more_checks.passed == 4
    assert found.other_hosts["cdn:80"].requests == 10
    assert found.other_hosts["cdn:80"].errors == 1
    assert found.exceptions == {"Error: a": 2, "Error: 0": 2, "Error: 1": 2}
    assert found.more_exceptions == 1
    # Each generator has VUs of its own; what else a gauge is about nobody knows.
    vus, depth = found.metrics["vus"], found.metrics["depth"]
    assert (vus.samples, vus.min, vus.max, vus.last) == (6, 2, 10, 9)
    assert (depth.samples, depth.min, depth.max, depth.last) == (6, 1, 5, 5)
    assert found.warmup == "time"
    assert found.executors == ["constant-vus"]


def together(*parts: dict[str, Any]) -> GeneratorResult:
    """Return the result of generators whose scripts and measured phases say this."""
    results = []
    for index, one in enumerate(parts):
        content = document({**phase([1000]), **one.get("measured", {})})
        content |= {"segment": {"index": index, "count": len(parts)}}
        parsed = parse_generator_output(
            line({**content, "script": {**QUIET, **one.get("script", {})}})
        )
        assert isinstance(parsed, GeneratorResult), parsed
        results.append(parsed)
    merged = merge_results(results)
    assert isinstance(merged, GeneratorResult), merged
    return merged


def endpoints_of(counts: dict[str, int]) -> dict[str, Any]:
    one = phase([1000])["endpoints"]["list"]
    return {"endpoints": {name: {**one, "requests": count} for name, count in counts.items()}}


def test_an_endpoint_that_one_generator_counted_among_others_is_among_them() -> None:
    first = {"measured": endpoints_of({"a": 9, "b": 5})}
    second = {
        "measured": endpoints_of({"a": 7, "other": 30}),
        "script": {"endpointsLeftOut": 6},
    }
    merged = together(first, second)
    found = merged.phases["measured"].endpoints
    assert {name: one.requests for name, one in found.items()} == {"a": 16, "other": 35}
    assert merged.script is not None
    assert merged.script.endpoints_left_out == 7
    # Where nobody had to, what is not there was not asked.
    merged = together(first, {"measured": endpoints_of({"a": 7, "c": 1})})
    found = merged.phases["measured"].endpoints
    assert {name: one.requests for name, one in found.items()} == {"a": 16, "b": 5, "c": 1}


def test_the_most_used_endpoints_of_all_generators_are_kept() -> None:
    parts = [
        {"measured": endpoints_of({f"{index}-{n}": n + 1 for n in range(40)})} for index in range(2)
    ]
    merged = together(*parts)
    found = merged.phases["measured"].endpoints
    assert len(found) == MAX_ENDPOINTS
    assert found["1-39"].requests == 40
    assert sum(one.requests for one in found.values()) == 2 * sum(range(41))
    assert merged.script is not None
    assert merged.script.endpoints_left_out == 31


def test_names_of_requests_beyond_the_bound_are_said() -> None:
    script = said({"endpointsLeftOut": 7}).script
    assert script is not None
    assert script.warnings[0].startswith("7 names of requests, the least used ones")


def test_trends_without_room_for_their_values_are_said() -> None:
    trend = {"type": "trend", "samples": 3, "sum": 6, "min": 1, "max": 3}
    script = said({"metrics": {"a": trend, "b": {**trend, "cells": [9, 3]}}}).script
    assert script is not None
    (warning,) = script.warnings
    assert warning.startswith("1 trends have more different values than there is room for")


def test_metrics_whose_sums_are_no_numbers_are_left_out_and_said() -> None:
    ends = {"sum": 1.7e308, "min": 1.7e308, "max": 1.7e308}
    best = {"type": "trend", "samples": 1, **ends, "cells": [9, 1]}
    sold = {"type": "counter", "samples": 2, "sum": 5.0, "min": 2.0, "max": 3.0}
    limit = {"metric": "best", "expression": "max<9", "met": False, "value": 1.7e308, "samples": 1}
    script = said({"metrics": {"best": best, "sold": sold}, "thresholds": [limit]}).script
    assert script is not None
    assert [one.name for one in script.metrics] == ["sold"]
    assert [(one.met, one.high) for one in script.thresholds] == [(False, 1.7e308)]
    assert script.warnings == [
        "1 metrics with numbers beyond 1e+290 are left out, such as best: these are too large to "
        "be added up"
    ]


def test_seconds_without_room_are_said() -> None:
    script = said({"secondsLeftOut": True}).script
    assert script is not None
    assert script.warnings == [
        "there was no room for the response times of each second: only for all"
    ]


def test_what_several_generators_say_together_is_shortened_until_it_has_a_place() -> None:
    chance = Random(1)
    parts = []
    for _ in range(4):
        metrics = {}
        for name in ("judged", "whole", *(f"whole{{kind:{n}}}" for n in range(8))):
            cells = sorted(chance.sample(range(2**22), 6000))
            pairs = [number for cell in cells for number in (cell, chance.randrange(1, 100))]
            metrics[name] = {"type": "trend", "samples": 9, "sum": 9, "cells": pairs}
        threshold = {"metric": "judged", "expression": "avg<9", "met": True, "samples": 9}
        parts.append({"script": {"metrics": metrics, "thresholds": [threshold]}})
    script = together(*parts).script
    assert script is not None
    kept = {name for name, one in script.metrics.items() if one.cells is not None}
    assert "judged" in kept
    assert len(kept) < len(script.metrics) == 10


def asked_nothing(**script: Any) -> TrialResult:
    nothing = phase([], window=10.0, requests=0, endpoints={})
    parsed = parse_generator_output(line({**document(nothing), "script": {**QUIET, **script}}))
    assert isinstance(parsed, GeneratorResult), parsed
    return trial_result(TRIAL, parsed, LOAD)


def test_a_script_of_another_protocol_has_its_own_metrics_and_is_doubtful() -> None:
    result = asked_nothing(metrics={"ws_sessions": {"type": "counter", "samples": 20, "sum": 20}})
    assert result.validity is Validity.DOUBTFUL
    assert result.validity_reasons == [doubts.NO_REQUEST.says()]
    assert result.started_at is not None
    assert result.script is not None
    assert [(one.name, one.value) for one in result.script.metrics] == [("ws_sessions", 20)]


@pytest.mark.parametrize(
    "script", [{"iterations": 0}, {"otherHosts": {"a:80": {"requests": 9, "errors": 0}}}]
)
def test_a_script_that_only_asked_others_measured_nothing_of_the_server(
    script: dict[str, Any],
) -> None:
    result = asked_nothing(**script)
    assert result.validity is Validity.INVALID
    assert result.validity_reasons == ["no right answer"]
