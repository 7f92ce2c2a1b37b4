"""Metrics of a script merge without loss, and thresholds come out of the whole as of its parts."""

from __future__ import annotations

import math
import struct
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.api.loads import Load
from laptime.api.script import ThresholdResult
from laptime.measure import GeneratorResult, merge_results, parse_generator_output, trial_result
from laptime.measure.generator import GeneratorMetric, GeneratorScript, GeneratorThreshold
from laptime.measure.script_metrics import (
    judged_again,
    keeps_bound,
    merged_metric,
    percentile,
)
from tests.measure.samples import TRIAL, document, line, phase

VALUES = st.lists(
    st.floats(-1e12, 1e12, allow_nan=False, allow_subnormal=False), min_size=1, max_size=60
)


def cell_of(value: float) -> int:
    """Return the cell that the generator counts a value in (images/k6/internal/result)."""
    bits: int = struct.unpack(">Q", struct.pack(">d", value + 0.0))[0]
    return bits >> 42


def trend(values: list[float], contains: str = "default") -> GeneratorMetric:
    cells: dict[int, int] = {}
    for value in values:
        cells[cell_of(value)] = cells.get(cell_of(value), 0) + 1
    return GeneratorMetric(
        type="trend",
        contains=contains,
        samples=len(values),
        sum=math.fsum(values),
        min=min(values, default=0.0),
        max=max(values, default=0.0),
        last=values[-1] if values else 0.0,
        passes=sum(value != 0 for value in values),
        cells=[number for cell in sorted(cells) for number in (cell, cells[cell])],
    )


@given(VALUES, VALUES)
def test_the_parts_of_a_trend_are_the_whole(one: list[float], other: list[float]) -> None:
    merged, whole = merged_metric([trend(one), trend(other)]), trend(one + other)
    # As far as doubles go: what nearly cancels out keeps the error of its parts.
    error = 1e-14 * math.fsum(map(abs, one + other))
    assert merged.sum == pytest.approx(whole.sum, rel=1e-12, abs=error)
    assert merged.model_copy(update={"sum": 0.0}) == whole.model_copy(update={"sum": 0.0})


@given(VALUES, st.floats(0, 1))
def test_percentiles_are_within_a_thousandth_of_a_sample(values: list[float], share: float) -> None:
    found = percentile(trend(values), share)
    assert found is not None
    exact = sorted(values)[max(1, math.ceil(share * len(values) - 1e-9)) - 1]
    assert found == pytest.approx(exact, rel=0.001, abs=1e-300)


def test_a_part_without_samples_changes_nothing() -> None:
    assert merged_metric([trend([]), trend([3.0, -4.0]), trend([])]) == trend([3.0, -4.0])


def test_a_trend_with_too_many_cells_has_no_percentiles() -> None:
    full = trend([1.0, 2.0]).model_copy(update={"cells": None})
    merged = merged_metric([full, trend([3.0])])
    assert (merged.samples, merged.sum, merged.max) == (3, 6.0, 3.0)
    assert percentile(merged, 0.5) is None


@pytest.mark.parametrize(
    ("expression", "met", "value"),
    [
        ("p(50)<3", False, 3.0),
        ("p(50)<=3.01", True, 3.0),
        ("p(99.9) < 10", True, 5.0),
        ("med>2.9", True, 3.0),
        ("avg==3", True, 3.0),
        ("avg===3", True, 3.0),
        ("avg!=3", False, 3.0),
        ("min>=1", True, 1.0),
        ("max>5e0", False, 5.0),
    ],
)
def test_expressions_on_a_trend(expression: str, met: bool, value: float) -> None:
    said = GeneratorThreshold(metric="m", expression=expression, met=not met)
    again = judged_again([said], trend([1.0, 2.0, 3.0, 4.0, 5.0]), 10.0)
    assert (again.met, again.samples) == (met, 5)
    assert again.value == pytest.approx(value, rel=0.001)


@pytest.mark.parametrize(
    ("kind", "expression", "met", "value"),
    [
        ("counter", "count<30", False, 30.0),
        ("counter", "rate>2.9", True, 3.0),
        ("gauge", "value==7", True, 7.0),
        ("rate", "rate>0.74", True, 0.75),
        ("rate", "rate<0.75", False, 0.75),
    ],
)
def test_expressions_on_the_others(kind: str, expression: str, met: bool, value: float) -> None:
    metric = GeneratorMetric(type=kind, samples=4, sum=30.0, last=7.0, passes=3)
    said = GeneratorThreshold(metric="m", expression=expression, met=not met)
    again = judged_again([said], metric, 10.0)
    assert (again.met, again.value) == (met, value)


def test_what_no_generator_saw_a_sample_of_stays_as_k6_judged_it() -> None:
    said = GeneratorThreshold(metric="m", expression="p(95)<1", met=True)
    assert judged_again([said, said], None, 10.0) == said
    odd = GeneratorThreshold(metric="m", expression="p(95)<a bit", met=True)
    assert judged_again([odd], trend([1.0]), 10.0) == odd


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_numbers_whose_sum_is_none_can_be_written_as_json(sign: float) -> None:
    # As of two generators whose scripts added Number.MAX_VALUE where they found nothing yet.
    one = trend([sign * 1.7e308])
    merged = merged_metric([one, one])
    assert (merged.samples, merged.sum) == (2, sign * sys.float_info.max)
    counter = merged.model_copy(update={"type": "counter"})
    said = GeneratorThreshold(metric="m", expression="rate<1", met=sign < 0)
    assert judged_again([said], counter, 0.1).value == sign * sys.float_info.max
    counted = said.model_copy(update={"expression": "count<1", "value": one.sum, "samples": 1})
    assert judged_again([counted, counted], None, 1.0).value == sign * sys.float_info.max


def test_what_was_not_kept_is_missed_where_one_generator_missed_it() -> None:
    met = GeneratorThreshold(metric="m", expression="max<4", met=True, value=3.0, samples=5)
    missed = met.model_copy(update={"met": False, "value": 9.0, "samples": 2})
    unseen = met.model_copy(update={"met": False, "value": 0.0, "samples": 0})
    assert judged_again([met, missed], None, 10.0) == missed
    assert judged_again([unseen, met], None, 10.0) == met


def printed(index: int, values: list[float], met: bool) -> GeneratorResult:
    content = {
        **document(phase([1000])),
        "segment": {"index": index, "count": 2},
        "script": {
            "warmup": "time",
            "seconds": 10.0,
            "metrics": {"m": trend(values, "time").to_wire()},
            "thresholds": [{"metric": "m", "expression": "max<4", "met": met, "samples": 1}],
        },
    }
    parsed = parse_generator_output(line(content))
    assert isinstance(parsed, GeneratorResult)
    return parsed


def test_a_threshold_of_several_generators_is_about_all_their_samples() -> None:
    merged = merge_results([printed(0, [1.0, 2.0], True), printed(1, [5.0], False)])
    assert isinstance(merged, GeneratorResult)
    assert merged.script is not None
    assert merged.script.metrics["m"] == trend([1.0, 2.0, 5.0], "time")
    (threshold,) = merged.script.thresholds
    assert (threshold.met, threshold.value, threshold.samples) == (False, 5.0, 3)
    assert threshold.contains == "time"


def kept_by(names: list[list[str]], **said: Any) -> GeneratorScript:
    """Return what generators say together that kept these metrics, the last one with `said`."""
    results = []
    for index, of_one in enumerate(names):
        one = {"type": "counter", "samples": 2, "sum": 2.0}
        script = {"warmup": "time", "seconds": 10.0, "metrics": dict.fromkeys(of_one, one)}
        script |= {"thresholds": [{"metric": "m{of:it}", "expression": "count<9", "met": True}]}
        content = {**document(phase([1000])), "segment": {"index": index, "count": len(names)}}
        last = index == len(names) - 1
        parsed = parse_generator_output(
            line({**content, "script": {**script, **(said if last else {})}})
        )
        assert isinstance(parsed, GeneratorResult)
        results.append(parsed)
    merged = merge_results(results)
    assert isinstance(merged, GeneratorResult)
    assert merged.script is not None
    return merged.script


def test_a_part_by_tags_that_one_generator_had_no_room_for_is_left_out() -> None:
    names = [["m", "m{a:1}", "m{a:2}", "m{of:it}", "n"], ["m", "m{a:2}"]]
    script = kept_by(names, partsLeftOut=True)
    # n and what a threshold is about had no samples there.
    assert sorted(script.metrics) == ["m", "m{a:2}", "m{of:it}", "n"]
    assert script.metrics["m{a:2}"].sum == 4.0
    assert (script.parts_left_out, script.metrics_left_out) == (True, 0)
    assert sorted(kept_by(names).metrics) == ["m", "m{a:1}", "m{a:2}", "m{of:it}", "n"]


def test_a_metric_that_one_generator_had_no_room_for_is_left_out() -> None:
    names = [["m", "m{of:it}", "n", "o"], ["m"]]
    script = kept_by(names, metricsLeftOut=1)
    # What a threshold is about has room of its own.
    assert sorted(script.metrics) == ["m", "m{of:it}"]
    assert script.metrics_left_out == 2


def test_a_generator_that_had_no_room_for_a_threshold_keeps_its_say() -> None:
    # As those of older versions have none beside a hundred metrics.
    said = {"metric": "m{of:it}", "expression": "rate<0.1", "met": False, "samples": 100}
    script = kept_by([["m{of:it}"], []], metricsLeftOut=1, thresholds=[said])
    assert [one.met for one in script.thresholds] == [False]
    assert script.metrics == {}


def test_a_count_of_which_one_generator_kept_no_metric_is_that_of_all() -> None:
    one = GeneratorThreshold(metric="m", expression="count<500", met=True, value=300.0, samples=300)
    none = one.model_copy(update={"value": 0.0, "samples": 0})
    said = judged_again([one, one, none], None, 10.0)
    assert (said.met, said.value, said.samples) == (False, 600.0, 600)
    many = [one.model_copy(update={"expression": "count>500", "met": False})] * 2
    assert judged_again(many, None, 10.0).met is True


@pytest.mark.parametrize(
    ("expression", "low", "high", "kept"),
    [
        ("p(95)<200", 100.0, 199.0, True),
        ("p(95)<200", 200.0, 300.0, False),
        ("p(95)<200", 150.0, 250.0, None),
        ("p(95)<=200", 200.0, 200.0, True),
        ("count==5", 4.0, 6.0, None),
        ("count==5", 6.0, 7.0, False),
        ("count===5", 5.0, 5.0, True),
        ("count!=5", 4.0, 6.0, None),
        ("count!=5", 6.0, 7.0, True),
        ("p(95)<a bit", 1.0, 2.0, None),
    ],
)
def test_a_bound_is_kept_by_all_of_an_interval_or_by_nothing_of_it(
    expression: str, low: float, high: float, kept: bool | None
) -> None:
    assert keeps_bound(expression, low, high) is kept


LOAD = Load.model_validate({"name": "own", "script": {"configMap": "mine"}})


def threshold_of(**said: Any) -> ThresholdResult:
    content = document(phase([5000] * 1000, window=10.0))
    threshold = {"metric": "m", "expression": "p(95)<1", "met": True, "value": 0.5, **said}
    parsed = parse_generator_output(
        line({**content, "script": {"warmup": "time", "thresholds": [threshold]}})
    )
    assert isinstance(parsed, GeneratorResult)
    script = trial_result(TRIAL, parsed, LOAD).script
    assert script is not None
    return script.thresholds[0]


def test_the_outcome_of_a_threshold_is_that_of_k6() -> None:
    met = threshold_of(samples=9)
    assert (met.met, met.low, met.high, met.missed) == (True, 0.5, 0.5, 0)
    missed = threshold_of(samples=9, met=False, value=7.0, metric="m{a:\x1b[2J}")
    assert (missed.met, missed.low, missed.missed) == (False, 7.0, 1)
    assert missed.metric == "m{a:�[2J}"


def test_a_threshold_without_samples_is_not_known_to_be_met() -> None:
    assert threshold_of(samples=0, value=0.0).met is None
    assert threshold_of(samples=0, value=0.0).low is None
    # How often something happened that never did is known.
    assert threshold_of(samples=0, expression="count<1", value=0.0).met is True
    assert threshold_of(samples=0, expression="count>1", value=0.0, met=False).met is False
