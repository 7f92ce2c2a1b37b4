"""Each request of a load with several has figures of its own in the report."""

from __future__ import annotations

from typing import Any

from laptime.analysis import Summary
from laptime.api.loads import Load
from laptime.api.results import (
    Figures,
    ResponseTimes,
    ResultRow,
    RowState,
    TrialOutcome,
    TrialResult,
    Validity,
)
from laptime.api.spec import BenchmarkRunSpec
from laptime.report import Report, to_markdown
from laptime.report.html import to_html
from laptime.report.requests import request_tables

SPEC = BenchmarkRunSpec.model_validate(
    {
        "scenario": "market",
        "servers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}],
        "loads": [{"name": "visits", "open": {"rate": 60, "duration": "2s"}}],
    }
)
(VISITS,) = SPEC.loads


def figures(p50: float, p99: float | None, errors: int = 0) -> Figures:
    times = ResponseTimes(
        min_seconds=0.001, mean_seconds=p50, p50_seconds=p50, p80_seconds=p50, p90_seconds=p50,
        p99_seconds=p99, p999_seconds=p99, max_seconds=1,
    )  # fmt: skip
    return Figures(
        requests=1000, errors=errors, window_seconds=2, requests_per_second=500 * p50, latency=times
    )


def trial(server: str, repetition: int, login: Figures, read: Figures, **more: Any) -> TrialResult:
    return TrialResult(
        trial=f"t-{server}-{repetition}",
        ordinal=repetition,
        server=server,
        load="visits",
        repetition=repetition,
        outcome=TrialOutcome.MEASURED,
        endpoints={"login": login, "read": read},
        **more,
    )


TRIALS = [
    trial("b", 1, figures(0.010, 0.020), figures(0.001, 0.002)),
    trial("a", 1, figures(0.010, 0.020), figures(0.001, 0.002)),
    trial("a", 2, figures(0.012, None, errors=30), figures(0.003, 0.004)),
    trial("a", 3, figures(0.014, None), figures(0.002, 0.009)),
    # What is invalid counts in no figure, and its requests are told.
    trial("a", 4, figures(9, 9), figures(9, 9), validity=Validity.INVALID),
]


def test_the_table_says_of_each_request_the_middle_of_the_repetitions() -> None:
    (table,) = request_tables(TRIALS, VISITS)
    assert table.lines == (
        ("a", "login", "4,000", "30", "6.00", "12.0 ms", "failed"),
        ("a", "read", "4,000", "0", "1.00", "2.00 ms", "4.00 ms"),
        ("b", "login", "1,000", "0", "5.00", "10.0 ms", "20.0 ms"),
        ("b", "read", "1,000", "0", "0.5", "1.00 ms", "2.00 ms"),
    )


def test_a_repetition_in_which_a_request_does_not_occur_has_none_of_it() -> None:
    first, second, third, *_ = TRIALS[1:]
    seldom = [
        first,
        second.model_copy(update={"endpoints": {"login": figures(0.012, 0.030)}}),
        third.model_copy(update={"endpoints": {"login": figures(0.014, 0.030)}}),
        # Of this one nobody knows what it sent.
        third.model_copy(update={"endpoints": {}}),
    ]
    (table,) = request_tables(seldom, VISITS)
    assert table.lines == (
        ("a", "login", "3,000", "0", "6.00", "12.0 ms", "30.0 ms"),
        ("a", "read", "1,000", "0", "0.00", "1.00 ms", "2.00 ms"),
    )


def test_a_request_with_too_few_answers_has_no_p99() -> None:
    """It would be the slowest one of a repetition."""

    def often(requests: int) -> Figures:
        return figures(0.010, 0.020).model_copy(update={"requests": requests})

    trials = [
        trial("a", repetition, often(100 if repetition == 1 else 99), often(100))
        for repetition in (1, 2, 3)
    ]
    (table,) = request_tables(trials, VISITS)
    percentiles = {line[1]: line[-2:] for line in table.lines}
    assert percentiles == {"login": ("10.0 ms", "-"), "read": ("10.0 ms", "20.0 ms")}


def test_a_request_that_was_not_sent_in_a_repetition_did_not_fail_in_it() -> None:
    # The built-in generator has an endpoint for each request of the plan, drawn or not.
    none = Figures(requests=0, errors=0, window_seconds=2, requests_per_second=0)
    failed = none.model_copy(update={"requests": 3, "errors": 3})
    (table,) = request_tables(
        [
            trial("a", 1, figures(0.010, 0.020), none),
            trial("a", 2, figures(0.012, 0.020), figures(0.001, 0.002)),
            trial("a", 3, figures(0.014, 0.020), none),
            trial("b", 1, figures(0.010, 0.020), none),
            trial("c", 1, figures(0.010, 0.020), failed),
        ],
        VISITS,
    )
    assert [line for line in table.lines if line[1] == "read"] == [
        ("a", "read", "1,000", "0", "0.00", "1.00 ms", "2.00 ms"),
        ("b", "read", "0", "0", "0.00", "-", "-"),
        ("c", "read", "3", "3", "0.00", "failed", "-"),
    ]


def test_of_version_1_a_request_with_an_error_has_no_times_that_failed() -> None:
    """Of the right answers beside the errors nobody knows any more how long all requests took."""
    not_known = figures(0.010, 0.020, errors=1).model_copy(update={"latency": None})
    read = figures(0.001, 0.002)
    (table,) = request_tables([trial("a", n, not_known, read) for n in (1, 2)], VISITS)
    assert table.lines[0] == ("a", "login", "2,000", "2", "5.00", "-", "-")
    some = [trial("a", 1, not_known, read), trial("a", 2, figures(0.010, 0.020), read)]
    (table,) = request_tables(some, VISITS)
    assert table.lines[0] == ("a", "login", "2,000", "1", "5.00", "-", "-")


def test_there_is_none_where_a_load_sends_one_request_or_is_a_script() -> None:
    alone = [one.model_copy(update={"endpoints": {"read": figures(1, 1)}}) for one in TRIALS]
    assert request_tables(alone, VISITS) == []
    script = Load.model_validate({"name": "visits", "script": {"configMap": "mine"}})
    assert request_tables(TRIALS, script) == []


def test_the_report_shows_it() -> None:
    row = ResultRow(server="a", load="visits", state=RowState.MEASURED, trials=3, requests=1)
    summary = Summary((row,), None, None, "nothing to compare", (), (), (), None, True)
    report = Report("demo", "default", SPEC, 1, summary, TRIALS)
    assert "| a | login | 4,000 | 30 | 6.00 | 12.0 ms | failed |" in to_markdown(report)
    assert "Each request: of the repetitions the middle one" in to_html(report, {})
