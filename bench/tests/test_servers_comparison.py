"""What the comparison with the counterparts says, and what makes `make bench-servers` fail."""

from __future__ import annotations

from typing import Any

import pytest
from comparison import HEADINGS, Comparison, Verdict, conclusion, table, verdict_of
from pairs import BOOK, LOAD, OURS, PAIRS

from laptime.api.causes import Cause, LimitedBy
from laptime.api.results import Interval, ResultRow, RowState, Validity

PAIR = PAIRS[0]


def row(server: str, ratio: Interval | None = None, **changes: Any) -> ResultRow:
    return ResultRow(
        server=server,
        load=LOAD,
        state=RowState.MEASURED,
        trials=PAIR.repetitions,
        requests_per_second=Interval(value=1234.0, low=1200.0, high=1270.0),
        factor=ratio,
        limited_by=LimitedBy(cause=Cause.SERVER_CPU, evidence="0.98 of 1 core"),
    ).model_copy(update=changes)


def comparison(low: float | None, high: float | None, **changes: Any) -> Comparison:
    ratio = Interval(value=1.0, low=low, high=high)
    return Comparison.of(PAIR, [row(BOOK), row(OURS, ratio, **changes)])


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.95, 1.05, Verdict.ALIKE),
        (1.01, 1.04, Verdict.ALIKE),
        (0.949, 1.02, Verdict.UNDECIDED),
        (0.99, 1.051, Verdict.UNDECIDED),
        (0.90, 1.30, Verdict.UNDECIDED),
        (0.90, 0.95, Verdict.UNDECIDED),
        (1.05, 1.20, Verdict.UNDECIDED),
        (0.90, 0.949, Verdict.SLOWER),
        (1.051, 1.20, Verdict.FASTER),
        (None, None, Verdict.UNDECIDED),
    ],
)
def test_ours_is_alike_slower_or_faster_only_when_that_is_sure(
    low: float | None, high: float | None, verdict: Verdict
) -> None:
    assert verdict_of(Interval(value=1.0, low=low, high=high)) is verdict


def test_what_is_undecided_is_neither_a_pass_nor_a_miss_and_is_counted() -> None:
    lines, met = conclusion([comparison(0.99, 1.02), comparison(0.9, 1.1)])
    assert met is None
    assert lines == [
        "slower for sure: ratio below 0.95       0 of 2  goal 0: met",
        "faster for sure: ratio above 1.05       0 of 2  goal 0: met",
        "not measured                            0 of 2  goal 0: met",
        "alike for sure: 0.95 to 1.05            1 of 2",
        "undecided                               1 of 2",
        "not judged, for what others used        0 of 2",
        "not judged: more repetitions would decide the 1 undecided",
    ]


def test_all_that_are_surely_alike_are_a_pass() -> None:
    lines, met = conclusion([comparison(0.99, 1.02)] * 13)
    assert met is True
    assert "undecided                              0 of 13" in lines


def test_a_miss_is_one_whatever_else_is_undecided() -> None:
    assert conclusion([comparison(0.9, 0.94), comparison(0.9, 1.1)])[1] is False


def test_one_that_is_slower_misses_the_goal() -> None:
    lines, met = conclusion([comparison(0.99, 1.02), comparison(0.9, 0.94)])
    assert met is False
    assert lines[0] == "slower for sure: ratio below 0.95       1 of 2  goal 0: MISSED"


def test_one_that_is_faster_is_not_what_the_other_is_and_misses_the_goal() -> None:
    lines, met = conclusion([comparison(0.99, 1.02), comparison(1.952, 3.335)])
    assert met is False
    assert lines[1] == "faster for sure: ratio above 1.05       1 of 2  goal 0: MISSED"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"trials": 4, "reason": "TrialsFailed", "message": "1 of 5 trials failed"},
            "ours: 4 of 5 trials measured: TrialsFailed, 1 of 5 trials failed",
        ),
        (
            {"validity": Validity.INVALID, "validity_reasons": ["2 % errors"]},
            "ours is invalid: 2 % errors",
        ),
        ({"factor": None}, "there is no ratio"),
    ],
)
def test_a_side_that_was_not_measured_rightly_misses_the_goal(
    changes: dict[str, Any], problem: str
) -> None:
    one = comparison(0.99, 1.02, **changes)
    assert one.problem == problem
    assert one.verdict is Verdict.NOT_MEASURED
    assert not conclusion([one])[1]


def test_nothing_measured_is_nothing_met() -> None:
    assert not conclusion([])[1]


def test_the_table_is_markdown_and_has_both_sides() -> None:
    lines = table([comparison(0.991, 1.02)]).splitlines()
    assert len(lines) == 3
    assert all(line.count("|") == len(HEADINGS) + 1 for line in lines)
    assert lines[2] == (
        "| `fastapi-sync` | `users`, list | 1,234 | 1,234 | 1.000 (0.991 to 1.020) | server CPU | "
        "alike |"
    )


def test_a_doubtful_figure_says_why() -> None:
    doubtful = comparison(0.99, 1.02, validity=Validity.DOUBTFUL, validity_reasons=["stolen time"])
    assert doubtful.doubts == ["fastapi-sync, ours: stolen time"]
    assert doubtful.verdict is Verdict.ALIKE


def test_beside_others_who_use_the_machine_nothing_is_judged() -> None:
    ratio = Interval(value=2.0, low=1.9, high=2.1)
    rows = [row(BOOK), row(OURS, ratio)]
    noisy = Comparison.of(PAIR, rows, "others 9.0% (at most 5%)")
    assert noisy.verdict is Verdict.NOT_JUDGED
    lines, met = conclusion([comparison(0.99, 1.02), noisy])
    assert met is None
    assert "not judged, for what others used        1 of 2" in lines
    # What was not measured at all is a miss, whoever used the machine.
    assert Comparison.of(PAIR, [row(BOOK), row(OURS)], "others 9.0%").verdict is (
        Verdict.NOT_MEASURED
    )
