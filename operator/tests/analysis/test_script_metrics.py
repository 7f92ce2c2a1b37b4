"""Metrics of a script over its repetitions: intervals, factors, and what has none."""

from __future__ import annotations

import math
from typing import Any

import pytest

from laptime.analysis.script import MAX_METRICS, first_metrics
from laptime.analysis.script_metrics import compared_metrics, interval_of_values
from laptime.analysis.statistics import interval_of_logs
from laptime.api.interval import Interval
from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.script import MetricFigure, ScriptFigures, ScriptMetric
from laptime.measure.generator import GeneratorScript
from laptime.measure.script import script_figures


def trial(server: str, repetition: int, *metrics: ScriptMetric, seconds: float = 10.0) -> Any:
    return TrialResult(
        trial=f"{server}-{repetition}",
        ordinal=repetition,
        server=server,
        load="own",
        repetition=repetition,
        outcome=TrialOutcome.MEASURED,
        script=ScriptFigures(warmup_named=True, seconds=seconds, metrics=list(metrics)),
    )


def compared(kind: str, **servers: list[float]) -> dict[str, dict[str, MetricFigure]]:
    """Return the figures of one metric of servers with these values in their repetitions."""
    trials = {
        server: [
            trial(server, number, ScriptMetric(name="m", type=kind, samples=50, value=value))
            for number, value in enumerate(values, 1)
        ]
        for server, values in servers.items()
    }
    found = compared_metrics(trials, "base", None)
    return {server: {one.name: one for one in of["m"]} for server, of in found.items()}


def test_a_counter_is_compared_by_what_it_counts_each_second() -> None:
    found = compared("counter", base=[100.0, 110.0, 105.0], other=[200.0, 221.0, 209.0])
    estimate, factor = found["other"]["rate"].estimate, found["other"]["rate"].factor
    assert estimate.value == pytest.approx((20 * 22.1 * 20.9) ** (1 / 3), rel=1e-5)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < estimate.value < estimate.high
    assert factor is not None
    assert factor.low is not None
    # Paired by repetition: it is known better than the two estimates are.
    assert 1.95 < factor.low < factor.value < 2.05
    assert found["base"]["rate"].factor == Interval(value=1.0, low=1.0, high=1.0)


def counted(server: str, counts: list[float], name: str = "m", **said: Any) -> list[Any]:
    """Return repetitions that counted this in ten seconds, as generators say it.

    One that counted nothing has no such metric; what else it says is `said`.
    """
    found = []
    for number, count in enumerate(counts, 1):
        metrics = {name: {"type": "counter", "samples": 9, "sum": count}} if count else {}
        script = {"seconds": 10.0, "metrics": metrics, **({} if count else said)}
        figures = script_figures(GeneratorScript.model_validate(script), 0)
        found.append(trial(server, number).model_copy(update={"script": figures}))
    return found


def test_a_counter_that_a_repetition_does_not_have_counted_nothing_there() -> None:
    base, new = counted("base", [50, 52, 48, 51, 49]), counted("new", [200, 0, 0, 210, 0])
    found = compared_metrics({"base": base, "new": new}, "base", None)
    (rate,) = found["new"]["m"]
    assert rate.estimate.value == pytest.approx(8.2)
    assert (rate.estimate.low, rate.factor) == (0.0, None)
    (rate,) = found["base"]["m"]
    assert rate.estimate.value == pytest.approx(5.0, rel=0.001)
    # Also where it counted nothing at all.
    found = compared_metrics({"base": counted("base", [0, 0]), "new": new[:2]}, "base", None)
    assert [one.factor for one in found["new"]["m"]] == [None]
    assert [one.estimate for one in found["base"]["m"]] == [Interval(value=0.0, low=0.0, high=0.0)]


HUGE = {"type": "trend", "samples": 1, "sum": 1e300, "min": 1e300, "max": 1e300, "cells": [9, 1]}


@pytest.mark.parametrize(
    ("name", "said", "known"),
    [
        ("m", {}, True),
        ("m", {"moreChecks": {"passed": 5}}, True),
        ("m", {"partsLeftOut": True}, True),
        ("m", {"metricsLeftOut": 3}, False),
        ("m", {"metrics": {"best": HUGE}}, False),
        ("m{kind:a}", {}, True),
        ("m{kind:a}", {"partsLeftOut": True}, False),
        ("m{kind:a}", {"metricsLeftOut": 3}, False),
    ],
)
def test_what_a_repetition_counted_that_may_have_left_it_out_nobody_knows(
    name: str, said: dict[str, Any], known: bool
) -> None:
    trials = {"base": counted("base", [5, 0, 6], name, **said)}
    assert bool(compared_metrics(trials, "base", None)) is known


@pytest.mark.parametrize(
    ("kind", "values", "floor"),
    [
        ("counter", [0.0, 0.0, 6.0], True),
        ("counter", [-1.0, 0.0, 6.0], False),
        ("gauge", [0.0, 0.0, 6.0], False),
    ],
)
def test_only_a_counter_that_never_counted_down_is_at_least_0(
    kind: str, values: list[float], floor: bool
) -> None:
    low = interval_of_values(values, kind).low
    assert low is not None
    assert (low == 0) is floor


def test_of_a_result_that_says_no_time_nothing_is_known_each_second() -> None:
    one = trial("base", 1, ScriptMetric(name="m", type="counter", value=5.0), seconds=0.0)
    assert compared_metrics({"base": [one]}, "base", None) == {}


def test_percentiles_of_a_trend_need_samples_in_each_repetition() -> None:
    trend = ScriptMetric(
        name="m", type="trend", contains="time", value=5.0, p50=4.0, p90=9.0, p95=9.5, p99=9.9
    )
    few, many = (trend.model_copy(update={"samples": count}) for count in (20, 100))
    for samples, names in (
        (few, ["avg", "med", "p(90)", "p(95)"]),
        (many, ["avg", "med", "p(90)", "p(95)", "p(99)"]),
    ):
        found = compared_metrics({"base": [trial("base", 1, samples)]}, "base", None)
        assert [one.name for one in found["base"]["m"]] == names


def test_a_percentile_that_one_repetition_lacks_is_not_that_of_the_others() -> None:
    """Those with many samples are the ones in which the server was fast."""
    trend = ScriptMetric(name="m", type="trend", value=5.0, p50=4.0, p90=9.0, p95=9.5)

    def repetitions(server: str, *said: tuple[int, float]) -> list[Any]:
        return [
            trial(server, number, trend.model_copy(update={"samples": samples, "p99": p99}))
            for number, (samples, p99) in enumerate(said, 1)
        ]

    slow = repetitions("base", (120, 200.0), (90, 5000.0), (80, 6000.0), (110, 210.0), (95, 5500.0))
    # One that has no samples has none that could be slow.
    sure = [*repetitions("sure", (120, 200.0), (110, 210.0)), trial("sure", 3)]
    found = compared_metrics({"base": slow, "sure": sure}, "base", None)
    names = {server: [one.name for one in of["m"]] for server, of in found.items()}
    assert names["base"] == ["avg", "med", "p(90)", "p(95)"]
    assert names["sure"] == ["avg", "med", "p(90)", "p(95)", "p(99)"]
    assert [one.factor for one in found["sure"]["m"] if one.name == "p(99)"] == [None]


def test_a_share_has_an_interval_within_0_and_1_and_of_a_0_there_is_no_factor() -> None:
    found = compared("rate", base=[0.99, 1.0, 0.98], other=[0.0, 0.02, 0.01])
    base, other = found["base"]["rate"], found["other"]["rate"]
    assert base.estimate.value == pytest.approx(0.99)
    assert base.estimate.high == 1.0
    assert (other.estimate.low, other.factor) == (0.0, None)


def test_a_gauge_below_0_has_an_interval_of_its_values() -> None:
    figure = compared("gauge", base=[-2.0, 0.0, 2.0])["base"]["value"]
    assert figure.estimate.value == 0.0
    # Student's t with two degrees of freedom: 4.303 standard errors.
    assert figure.estimate.high == pytest.approx(4.30265 * 2 / math.sqrt(3), rel=1e-4)
    assert figure.factor is None


def test_what_is_always_the_same_is_so_exactly() -> None:
    assert interval_of_values([300.0] * 3) == Interval(value=300.0, low=300.0, high=300.0)
    assert interval_of_values([300.0]) == Interval(value=300.0)
    values = [1.0, 2.0, 3.0]
    assert interval_of_values(values) == interval_of_logs([math.log(one) for one in values])


@pytest.mark.parametrize(
    ("values", "mean"),
    [([-1.0, 1.7e308, 1.7e308], 2 / 3 * 1.7e308), ([-1.7e308, 1.7e308], 0.0)],
)
def test_an_interval_of_numbers_whose_sum_is_none_has_ends(
    values: list[float], mean: float
) -> None:
    """As a threshold on the last value is compared with what a script has for `nothing yet`."""
    found = interval_of_values(values)
    assert found.value == pytest.approx(mean)
    assert found.low is not None
    assert found.high is not None
    assert -math.inf < found.low < found.value < found.high < math.inf


def test_an_interval_of_the_largest_numbers_is_around_them() -> None:
    found = interval_of_values([5.990e306, 5.994e306])
    assert found.value == pytest.approx(5.992e306)
    assert found.high is not None
    assert found.high > 5.994e306


def test_a_figure_that_is_no_number_is_compared_with_nothing() -> None:
    huge = ScriptMetric(name="m", type="counter", value=1.7e308)
    assert compared_metrics({"base": [trial("base", 1, huge, seconds=0.5)]}, "base", None) == {}


def test_whole_metrics_and_iterations_are_kept_before_parts_by_tags() -> None:
    parts = [ScriptMetric(name=f"a{{kind:{n:02d}}}", type="counter", value=1) for n in range(70)]
    whole = [ScriptMetric(name=name, type="counter", value=1) for name in ("iterations", "z")]
    kept = [one.name for one in first_metrics([*parts, *whole], MAX_METRICS)]
    assert len(kept) == MAX_METRICS
    assert kept[-2:] == ["iterations", "z"]
    assert kept == sorted(kept)
