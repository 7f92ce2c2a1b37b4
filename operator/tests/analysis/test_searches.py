"""What searches over repetitions say: never more than their steps leave known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from laptime.analysis.stopping import repetitions_needed
from laptime.analysis.two_runs import Change, compare_runs
from laptime.api.metrics import Metric
from laptime.api.results import Interval, ObjectiveResult, ResultRow, TrialResult
from laptime.api.results import Outcome as ObjectiveOutcome
from laptime.api.spec import BenchmarkRunSpec
from laptime.plan import Trial
from tests.analysis.runs import Outcome, Script, make_spec, run, summary_of

SEARCH = {"name": "limit", "saturation": {"p99": "50ms"}}


def searching(*servers: str, **more: Any) -> BenchmarkRunSpec:
    spec = make_spec(*servers, repetitions=5)
    document = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    return BenchmarkRunSpec.model_validate({**document, "loads": [SEARCH], **more})


def found(bounds: Mapping[str, tuple[float, float]], late: str = "") -> Script:
    """Return a script in which each server's searches all end with these bounds.

    Those of the server `late` in the first repetition do so by a generator that is late.
    """

    def outcome(trial: Trial) -> Outcome:
        low, high = bounds[trial.server]
        search: dict[str, Any] = {"low": low, "high": high, "p99Seconds": 0.05, "errorRate": 0.001}
        if trial.server == late and trial.repetition == 1:
            search["late"] = True
        return Outcome(low, search=search)

    return outcome


def ends(interval: Interval | None) -> tuple[float, float, float]:
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.value, interval.high


def rows_of(bounds: Mapping[str, tuple[float, float]]) -> dict[str, ResultRow]:
    return {row.server: row for row in summary_of(searching(*bounds), found(bounds)).rows}


def test_like_servers_on_one_grid_are_known_no_better_than_its_step() -> None:
    rows = rows_of(dict.fromkeys(("axum", "go", "flask"), (4800.0, 5040.0)))
    for row in rows.values():
        rate = ends(row.requests_per_second)
        assert rate == pytest.approx((4800, (4800 * 5040) ** 0.5, 5040))
        assert row.rank == 1
    # One of them may be at the lower end of the step and the other at the upper one.
    assert ends(rows["go"].factor) == pytest.approx((4800 / 5040, 1, 5040 / 4800))


@pytest.mark.parametrize("between", [1.01, 97.3, 4999.99, 5000.0, 61_234.56])
def test_servers_in_two_steps_that_touch_are_not_told_apart(between: float) -> None:
    below, above = (between / 1.0443, between), (between, between * 1.0443)
    rows = rows_of({"axum": below, "go": above, "flask": below})
    assert {row.rank for row in rows.values()} == {1}
    assert ends(rows["go"].factor)[0] <= 1


def test_servers_far_apart_are_told_apart_by_their_searches() -> None:
    rows = rows_of({"axum": (4800.0, 5000.0), "go": (5600.0, 5850.0), "flask": (4800.0, 5000.0)})
    assert {name: row.rank for name, row in rows.items()} == {"go": 1, "axum": 2, "flask": 2}


def test_a_search_without_an_upper_end_stands_with_its_highest_rate() -> None:
    row = rows_of({"axum": (100_000.0, 0.0)})["axum"]
    assert row.requests_per_second is not None
    assert row.requests_per_second.value == pytest.approx(100_000)


NO_END = {"base": (12_000.0, 12_400.0), "b": (10_000.0, 0.0), "c": (7000.0, 7200.0)}


def parts(interval: Interval | None) -> list[float | None]:
    """Return the ends with the value between, to four digits."""
    assert interval is not None
    every = (interval.low, interval.value, interval.high)
    return [None if one is None else float(f"{one:.4g}") for one in every]


def test_what_may_do_any_amount_more_has_no_upper_end_beside_others() -> None:
    rows = rows_of(NO_END)
    assert parts(rows["b"].factor) == [0.8065, 0.8198, None]
    assert parts(rows["b"].requests_per_second) == [10_000, 10_000, None]
    assert [rows[name].rank for name in NO_END] == [1, 1, 3]
    # It reaches as far as to the other one, which need not be drawn wider than it is.
    assert parts(rows["base"].requests_per_second) == [12_000, 12_200, 12_400]
    assert parts(rows["c"].factor) == [0.5645, 0.582, 0.6]


def test_nothing_is_known_to_be_at_least_a_share_of_what_may_do_any_amount_more() -> None:
    bounds = {"b": NO_END["b"], "c": NO_END["c"]}
    assert parts(rows_of(bounds)["c"].factor) == [None, 0.7099, 0.72]
    assert summary_of(searching(*bounds), found(bounds)).verdict.startswith(
        "b, the baseline, is fastest: the next, c, has 0.71x (at most 0.72) its throughput"
    )
    assert parts(rows_of({"b": NO_END["b"], "d": NO_END["b"]})["d"].factor) == [None, 1, None]


def test_over_several_loads_one_search_without_an_upper_end_leaves_the_factor_without_one() -> None:
    spec = searching("base", "b")
    document = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    loads = [{**SEARCH, "name": name} for name in ("few", "many")]
    spec = BenchmarkRunSpec.model_validate({**document, "loads": loads})

    def script(trial: Trial) -> Outcome | None:
        bounds = {**NO_END, "b": (20_000.0, 20_400.0) if trial.load == "few" else (20_000.0, 0.0)}
        return found(bounds)(trial)

    verdict = summary_of(spec, script).verdict
    assert verdict.startswith("b is fastest: 1.65x (at least 1.6")
    assert "over the loads few and many (geometric mean)" in verdict


def test_a_factor_without_an_end_is_not_one_number_in_the_status() -> None:
    bounds = {"c": NO_END["c"], "b": NO_END["b"]}
    summary = summary_of(searching(*bounds), found(bounds))
    assert (summary.fastest, summary.fastest_factor) == ("b", "1.41x (at least 1.39)")
    assert summary.verdict.startswith("b is fastest: 1.41x (at least 1.39) the throughput of c")


@pytest.mark.parametrize("servers", [("b", "c"), ("c", "b"), ("b",)])
def test_a_precision_is_not_reached_where_a_search_has_no_upper_end(
    servers: tuple[str, ...],
) -> None:
    """Nor is anything repeated for it."""
    spec = searching(*servers, precision="3%", repetitions=8, maxRepetitions=12)
    summary = summary_of(spec, found(NO_END))
    assert {row.trials for row in summary.rows} == {8}
    assert summary.half_width is None
    said = "the precision of 3% was not reached: the search of b has no upper end"
    assert said in summary.verdict


def test_a_bound_is_kept_by_what_was_found_and_nothing_is_missed_by_it() -> None:
    def judged(side: str, bound: str) -> ObjectiveResult:
        metric = {"server": "b", "load": "limit", "metric": "requestsPerSecond", side: bound}
        return summary_of(searching("base", "b", objectives=[metric]), found(NO_END)).objectives[0]

    met = judged("atLeast", "9900")
    assert (met.outcome, met.measured) == (ObjectiveOutcome.MET, "10,000 (at least 10,000)")
    assert judged("atMost", "9900").outcome is ObjectiveOutcome.MISSED
    for side, bound in (("atLeast", "10500"), ("atLeast", "20000"), ("atMost", "20000")):
        found_of = judged(side, bound)
        assert (found_of.outcome, found_of.reason) == (ObjectiveOutcome.NOT_KNOWN, "Doubtful")
        assert "the server can do more" in (found_of.message or "")


@pytest.mark.parametrize(
    ("axum", "go", "fastest"),
    [
        ((6000.0, 6300.0), (5000.0, 0.0), "axum or go"),
        ((100_000.0, 0.0), (100_000.0, 0.0), "axum or go"),
        # The same step, and two that touch.
        ((4800.0, 5000.0), (4800.0, 5000.0), "axum or go"),
        ((4800.0, 5000.0), (5000.0, 5200.0), "axum or go"),
        ((4800.0, 5000.0), (5600.0, 5850.0), "go"),
        ((6000.0, 0.0), (5000.0, 5200.0), "axum"),
    ],
)
def test_what_may_do_more_is_not_beaten_in_a_single_repetition(
    axum: tuple[float, float], go: tuple[float, float], fastest: str
) -> None:
    spec = searching("axum", "go", repetitions=1)
    script = found({"axum": axum, "go": go})
    summary = summary_of(spec, script)
    assert summary.fastest == fastest
    # Nor is anybody the fastest while the second one goes on.
    going_on = summary_of(
        searching("axum", "go"),
        lambda one: script(one) if one.repetition <= {"axum": 2, "go": 1}[one.server] else None,
    )
    assert going_on.fastest is None
    if "or" in fastest:
        said = "axum and go cannot be told apart by throughput under limit in the only repetition"
        assert summary.verdict.startswith(f"{said};")
        assert going_on.verdict.startswith(f"so far: {said} that all have;")
        assert summary.fastest_factor is None


def test_repetitions_are_not_added_for_what_the_step_leaves_open() -> None:
    spec = searching("axum", "go", precision="2%", maxRepetitions=20)
    bounds = dict.fromkeys(("axum", "go"), (4800.0, 5040.0))
    _, results, _ = run(spec, found(bounds))
    assert set(repetitions_needed(spec, results).values()) == {spec.first_look}


@pytest.mark.parametrize(
    ("smallest", "said"),
    [
        # One may be at the lower end of the step of 5 %, and the other at the upper one.
        (
            "4%",
            "under limit the order is not known after 3 repetitions: its searches leave 5.00% open",
        ),
        ("6%", "all orders under limit are known after 3 repetitions"),
    ],
)
def test_searches_are_not_proven_alike_within_what_their_step_leaves_open(
    smallest: str, said: str
) -> None:
    """Nor are they repeated for it: no further repetition would make it less."""
    more = {"repetitions": 3, "maxRepetitions": 12, "smallestDifference": smallest}
    spec = searching("axum", "go", stopWhen="decided", **more)
    script = found(dict.fromkeys(("axum", "go"), (4800.0, 5040.0)))
    _, results, _ = run(spec, script)
    assert repetitions_needed(spec, results) == {"limit": 3}
    assert said in summary_of(spec, script).verdict


@pytest.mark.parametrize(
    ("go", "late"), [((100_000.0, 0.0), ""), ((9600.0, 9900.0), "axum")], ids=["both", "slower"]
)
@pytest.mark.parametrize("smallest", [None, "6%"])
def test_searches_without_an_upper_end_are_not_repeated_for_an_order(
    go: tuple[float, float], late: str, smallest: str | None
) -> None:
    """Whatever is measured again: the slower one may do any amount more than was found."""
    more = {"repetitions": 3, "maxRepetitions": 12, "smallestDifference": smallest}
    spec = searching("axum", "go", stopWhen="decided", **more)
    axum = (4800.0, 5000.0) if late else (100_000.0, 0.0)
    _, results, _ = run(spec, found({"axum": axum, "go": go}, late=late))
    assert repetitions_needed(spec, results) == {"limit": 3}


def test_searches_that_may_still_be_told_apart_are_repeated() -> None:
    """By noise: what they leave open says nothing yet of how far their means are apart."""
    more = {"repetitions": 3, "maxRepetitions": 12, "smallestDifference": "4%"}
    spec = searching("axum", "go", stopWhen="decided", **more)

    def script(trial: Trial) -> Outcome:
        noise = 1 + 0.1 * (trial.repetition - 2) * (trial.server == "go")
        return found(dict.fromkeys(("axum", "go"), (4800 * noise, 5040 * noise)))(trial) or Outcome(
            0
        )

    _, results, _ = run(spec, script)
    assert repetitions_needed(spec, results) == {"limit": 4}


def test_the_control_says_what_searches_cannot_find() -> None:
    spec = searching("axum", "go", control=True).with_control()
    bounds = dict.fromkeys(("axum", "go", "axum-control"), (4800.0, 5040.0))
    (control,) = summary_of(spec, found(bounds)).control
    assert not control.differs
    assert control.smallest_detectable == pytest.approx(0.05)


def test_two_runs_of_searches_differ_by_more_than_their_steps() -> None:
    spec = searching("axum")
    before = run(spec, found({"axum": (4800.0, 5000.0)}))[1]
    near = run(spec, found({"axum": (5000.0, 5200.0)}))[1]
    far = run(spec, found({"axum": (5600.0, 5850.0)}))[1]

    assert change(spec, before, near) is Change.NONE_FOUND
    assert change(spec, before, far) is Change.BETTER


def change(spec: BenchmarkRunSpec, before: list[TrialResult], after: list[TrialResult]) -> Change:
    compared = compare_runs(spec, before, after)
    return next(one.change for one in compared if one.metric is Metric.REQUESTS_PER_SECOND)


ENDLESS, LATE = {"go": (5600.0, 0.0)}, {"go": (5600.0, 5850.0)}


@pytest.mark.parametrize(("go", "late"), [(ENDLESS, ""), (LATE, "go")])
@pytest.mark.parametrize(("axum", "known"), [((4800.0, 5000.0), True), ((9000.0, 9400.0), False)])
def test_what_may_do_more_is_faster_than_others_for_sure_and_never_slower(
    go: dict[str, tuple[float, float]], late: str, axum: tuple[float, float], known: bool
) -> None:
    spec = searching("axum", "go", stopWhen="decided", smallestDifference="5%")
    summary = summary_of(spec, found({"axum": axum, **go}, late))
    rows = {row.server: row.rank for row in summary.rows}
    assert rows == ({"go": 1, "axum": 2} if known else {"go": 1, "axum": 1})
    told = "all orders under limit are known" in summary.verdict
    assert told is known
    if not known:
        assert not summary.ties, "no repetition tells them apart"


def test_two_that_met_the_highest_rate_are_not_known_to_be_alike() -> None:
    spec = searching("axum", "go", stopWhen="decided", smallestDifference="10%")
    summary = summary_of(spec, found(dict.fromkeys(("axum", "go"), (100_000.0, 0.0))))
    assert "under limit the order is not known after 5 repetitions" in summary.verdict


def test_the_control_of_searches_without_an_upper_end_finds_nothing() -> None:
    spec = searching("axum", "go", control=True).with_control()
    bounds = dict.fromkeys(("axum", "go", "axum-control"), (100_000.0, 0.0))
    (control,) = summary_of(spec, found(bounds)).control
    assert (control.differs, control.smallest_detectable) == (False, None)


def test_two_runs_are_not_told_apart_by_where_a_search_was_ended() -> None:
    spec = searching("axum")
    ended = run(spec, found({"axum": (5000.0, 0.0)}))[1]
    above = run(spec, found({"axum": (5600.0, 5850.0)}))[1]
    below = run(spec, found({"axum": (4000.0, 4200.0)}))[1]
    near = run(spec, found({"axum": (4950.0, 5050.0)}))[1]
    assert change(spec, ended, above) is Change.NOT_KNOWN
    assert change(spec, above, ended) is Change.NOT_KNOWN
    assert change(spec, ended, below) is Change.WORSE
    assert change(spec, below, ended) is Change.BETTER
    # Nor is what may do any amount more like anything.
    for before, after in ((ended, near), (near, ended), (ended, ended)):
        assert change(spec, before, after) is Change.NOT_KNOWN
    assert change(spec, near, near) is Change.NONE_FOUND


def test_a_ratio_of_what_may_do_more_has_no_interval() -> None:
    spec = searching("axum")
    ended = run(spec, found({"axum": (5000.0, 0.0)}))[1]
    below = run(spec, found({"axum": (4000.0, 4200.0)}))[1]
    for before, after in ((ended, below), (below, ended), (ended, ended)):
        (one,) = compare_runs(spec, before, after)
        assert one.ratio is not None
        assert (one.ratio.low, one.ratio.high, one.open_ended) == (None, None, True)
    (one,) = compare_runs(spec, below, below)
    assert one.ratio is not None
    assert one.ratio.low is not None
    assert not one.open_ended


def test_response_times_at_two_rates_are_not_compared() -> None:
    spec = searching("axum")

    def at(rate: float, microseconds: int) -> list[TrialResult]:
        search = {"low": rate, "high": rate * 1.04, "p99Seconds": 0.05, "errorRate": 0.0}
        return run(spec, lambda _: Outcome(rate, (microseconds,) * 2000, search=search))[1]

    slower, faster = at(1000.0, 20_000), at(2000.0, 40_000)
    for asked in (spec, make_spec("axum", loads=("limit",))):
        found = {one.metric: one.change for one in compare_runs(asked, slower, faster, spec)}
        assert found == {Metric.REQUESTS_PER_SECOND: Change.BETTER}
