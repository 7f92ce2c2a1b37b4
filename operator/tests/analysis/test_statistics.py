"""Intervals hold what they promise, and ratios behave as ratios."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.analysis.statistics import (
    can_be_told_apart,
    half_width,
    interval_of_logs,
    paired_logs,
)
from laptime.api.results import Interval

VALUES = st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=20)
FEW_VALUES = st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=7)
BY_REPETITION = st.dictionaries(st.integers(1, 20), st.floats(-10, 10), min_size=1)


def interval_of(values: list[float]) -> Interval:
    return interval_of_logs([math.log(value) for value in values])


@given(FEW_VALUES)
def test_of_few_values_it_is_the_interval_of(values: list[float]) -> None:
    mean = math.prod(values) ** (1 / len(values))
    assert interval_of(values).value == pytest.approx(mean, rel=1e-6)


@given(VALUES)
def test_the_value_lies_in_its_interval_and_among_the_values(values: list[float]) -> None:
    interval = interval_of(values)
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low <= interval.value <= interval.high
    assert min(values) * (1 - 1e-9) <= interval.value <= max(values) * (1 + 1e-9)


@given(VALUES, st.floats(1e-3, 1e3))
def test_a_faster_machine_scales_everything_alike(values: list[float], scale: float) -> None:
    plain, scaled = interval_of(values), interval_of([value * scale for value in values])
    assert scaled.value == pytest.approx(plain.value * scale, rel=1e-6)
    assert scaled.low is not None
    assert plain.low is not None
    assert math.log(scaled.low) == pytest.approx(
        max(-690, math.log(plain.low) + math.log(scale)), rel=1e-6, abs=1e-6
    )


@given(VALUES)
def test_the_order_of_repetitions_does_not_matter(values: list[float]) -> None:
    one, other = interval_of(values), interval_of(values[::-1])
    assert one.value == pytest.approx(other.value, rel=1e-12)


@given(BY_REPETITION)
def test_the_factor_of_a_server_against_itself_is_exactly_one(logs: dict[int, float]) -> None:
    interval = interval_of_logs(paired_logs(logs, logs))
    assert interval.value == 1
    assert (interval.low, interval.high) == ((1, 1) if len(logs) > 1 else (None, None))


@given(BY_REPETITION, BY_REPETITION)
def test_factors_turned_around_are_reciprocal(
    one: dict[int, float], other: dict[int, float]
) -> None:
    there, back = paired_logs(one, other), paired_logs(other, one)
    if not there:
        return
    assert interval_of_logs(there).value * interval_of_logs(back).value == pytest.approx(1)


@given(BY_REPETITION, BY_REPETITION)
def test_only_repetitions_that_both_have_are_paired(
    one: dict[int, float], other: dict[int, float]
) -> None:
    assert len(paired_logs(one, other)) == len(set(one) & set(other))


def test_a_single_value_has_no_interval() -> None:
    interval = interval_of([612.0])
    assert interval.value == pytest.approx(612)
    assert (interval.low, interval.high) == (None, None)


def test_the_interval_is_students() -> None:
    # t(0.975, 4) = 2.776445; logarithms -2 … 2 have standard deviation sqrt(2.5).
    interval = interval_of_logs([-2.0, -1.0, 0.0, 1.0, 2.0])
    half = 2.7764451 * math.sqrt(2.5 / 5)
    assert interval.value == 1
    assert interval.low == pytest.approx(math.exp(-half), rel=1e-6)
    assert interval.high == pytest.approx(math.exp(half), rel=1e-6)


def test_from_eight_values_on_the_interval_is_that_of_signed_ranks() -> None:
    # 2 x P(W <= 3) = 2 x 5/256 at n = 8: the fourth of the sorted means of pairs from either end.
    logs = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0]
    means = sorted((a + b) / 2 for n, a in enumerate(logs) for b in logs[: n + 1])
    interval = interval_of_logs(logs)
    assert interval.low == pytest.approx(math.exp(means[3]))
    assert interval.high == pytest.approx(math.exp(means[-4]))
    assert interval.value == pytest.approx(math.exp((means[17] + means[18]) / 2))


def test_one_wild_repetition_of_eight_moves_the_value_little() -> None:
    calm = [0.0, 0.001, -0.001, 0.002, -0.002, 0.0, 0.001]
    assert interval_of_logs([*calm, -0.7]).value == pytest.approx(1, abs=0.002)


def test_a_confidence_that_signed_ranks_cannot_give_is_students() -> None:
    logs = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    # t(0.9995, 7) = 5.4079; the standard deviation of 0 … 7 is sqrt(6).
    half = 5.4078825 * math.sqrt(6 / 8)
    assert interval_of_logs(logs, 0.999).high == pytest.approx(math.exp(3.5 + half), rel=1e-6)


def test_half_the_width_is_a_ratio_to_each_side() -> None:
    assert half_width(Interval(value=1.0, low=1 / 1.02, high=1.02)) == pytest.approx(0.02)
    assert half_width(Interval(value=1.0)) is None


@pytest.mark.parametrize("repetitions", [5, 8, 20])
def test_disturbances_that_hit_either_server_leave_the_interval_right(repetitions: int) -> None:
    dice = random.Random(11)
    rounds, covered = 2000, 0
    for _ in range(rounds):
        logs = [
            dice.gauss(0, 0.01) + (dice.random() < 0.2) * dice.choice((-1, 1)) * dice.random()
            for _ in range(repetitions)
        ]
        interval = interval_of_logs(logs)
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= 1 <= interval.high
    assert covered / rounds >= 0.935


def test_two_repetitions_far_apart_still_have_a_finite_interval() -> None:
    interval = interval_of([1e-3, 1e9])
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low > 0
    assert math.isfinite(interval.high)


def test_nothing_has_no_mean() -> None:
    with pytest.raises(ValueError, match="no value"):
        interval_of_logs([])


@pytest.mark.parametrize("repetitions", [2, 3, 5, 10])
@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_the_interval_covers_the_truth_as_often_as_it_says(repetitions: int, spread: float) -> None:
    # Throughputs of two servers, log-normal, with a drift of the machine that both share.
    dice = random.Random(20240607)
    rounds, covered, truth = 4000, 0, 3.7
    for _ in range(rounds):
        drift = [dice.gauss(0, 0.5) for _ in range(repetitions)]
        base = {n: math.log(612) + d + dice.gauss(0, spread) for n, d in enumerate(drift)}
        fast = {n: math.log(612 * truth) + d + dice.gauss(0, spread) for n, d in enumerate(drift)}
        interval = interval_of_logs(paired_logs(fast, base))
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= truth <= interval.high
    # 95 % is expected; the standard error of this count is 0.35 %.
    assert 0.93 <= covered / rounds <= 0.97


def test_equal_servers_are_seldom_told_apart_however_many_there_are() -> None:
    dice = random.Random(7)
    rounds, wrong, others = 1000, 0, 9
    for _ in range(rounds):
        servers = [{n: dice.gauss(0, 0.1) for n in range(5)} for _ in range(others + 1)]
        wrong += any(can_be_told_apart(servers[0], other, others) for other in servers[1:])
    assert wrong / rounds <= 0.06


def test_servers_that_clearly_differ_are_told_apart() -> None:
    slow = {n: math.log(600) + n / 1000 for n in range(5)}
    fast = {n: math.log(2300) + n / 900 for n in range(5)}
    assert can_be_told_apart(slow, fast)
    assert can_be_told_apart(fast, slow)


def test_a_difference_too_small_to_notice_is_none_however_steady() -> None:
    one = {n: math.log(10_000.0) + n * 1e-9 for n in range(10)}
    other = {n: math.log(10_050.0) for n in range(10)}
    assert not can_be_told_apart(one, other)


def test_one_repetition_tells_nothing_apart() -> None:
    assert not can_be_told_apart({1: 0.0}, {1: 5.0})
