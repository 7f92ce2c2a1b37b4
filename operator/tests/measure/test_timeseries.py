"""Counters and windows: exact differences, whatever the samples' phase to the window."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.measure.timeseries import (
    Series,
    Window,
    growth,
    highest_rate,
    increase,
    seen_growth,
    spans,
)


def steady(rate: float, start: float, end: float, step: float = 1.0) -> Series:
    count = round((end - start) / step) + 1
    times = [start + number * step for number in range(count)]
    return Series.of([(time, rate * time) for time in times])


@given(
    rate=st.floats(0.0, 64.0),
    phase=st.floats(0.0, 0.999),
    length=st.floats(1.0, 100.0),
)
def test_a_steady_counter_grows_by_its_rate_whatever_the_phase(
    rate: float, phase: float, length: float
) -> None:
    window = Window(1000.0, 1000.0 + length)
    series = steady(rate, 995.0 + phase, 1006.0 + length + phase)
    assert increase(series, window) == pytest.approx(rate * length, abs=1e-6)
    assert highest_rate([series], window) == pytest.approx(rate, abs=1e-6)


def test_the_ends_are_on_the_line_between_two_samples() -> None:
    series = Series.of([(0, "0"), (1, "1"), (2, "1"), (3, "2")])
    assert increase(series, Window(0.5, 2.25)) == pytest.approx(0.5 + 0.0 + 0.25)
    assert series.at(1.0) == 1.0
    assert series.at(-0.1) is None
    assert series.at(3.1) is None


def test_work_beside_the_window_does_not_count() -> None:
    series = Series.of([(t, min(max(t - 3, 0), 1)) for t in range(10)])
    assert increase(series, Window(4.0, 8.0)) == 0.0
    assert increase(series, Window(0.0, 3.0)) == 0.0
    assert increase(series, Window(2.0, 5.0)) == 1.0


def test_what_is_missing_at_an_end_counts_like_the_rest() -> None:
    series = steady(2.0, 100.0, 109.0)
    window = Window(100.5, 110.0)
    assert series.covered(window) == 8.5
    assert increase(series, window) == pytest.approx(2.0 * 9.5)


def test_half_a_window_is_too_little() -> None:
    assert increase(steady(2.0, 100.0, 104.0), Window(100.0, 110.0)) is None
    assert increase(Series.of([]), Window(100.0, 110.0)) is None


def test_what_one_counter_lost_and_another_got_leaves_their_sum_as_it_was() -> None:
    first = Series.of([(0, 0.1), (1, 0.3), (2, 0.6)])
    second = Series.of([(0, 0.2), (1, 0.0), (3, 7.0)])
    assert first.plus(second) == Series.of([(0.0, 0.3), (1.0, 0.3)])


def test_a_counter_that_went_back_says_nothing() -> None:
    series = Series.of([(0, 5), (1, 6), (2, 0), (3, 1)])
    assert increase(series, Window(0.0, 3.0)) is None
    assert increase(series, Window(2.0, 3.0)) == 1.0


@pytest.mark.parametrize("begin", [3.0, 3.25, 3.5, 4.1])
def test_a_burst_of_a_second_shows(begin: float) -> None:
    fine = Series.of([(t / 10, min(max(t / 10 - begin, 0.0), 1.0)) for t in range(100)])
    assert highest_rate([fine], Window(1.0, 9.0)) == pytest.approx(0.95, abs=0.0501)


def test_peaks_of_several_counters_add_up_only_at_the_same_time() -> None:
    one = Series.of([(t, min(max(t - 2, 0), 1)) for t in range(10)])
    other = Series.of([(t, min(max(t - 5, 0), 1)) for t in range(10)])
    assert highest_rate([one, other], Window(0.0, 9.0)) == pytest.approx(1.0)
    assert highest_rate([one, one], Window(0.0, 9.0)) == pytest.approx(2.0)


def test_a_window_shorter_than_a_second() -> None:
    assert highest_rate([steady(3.0, 0.0, 10.0)], Window(4.2, 4.7)) == pytest.approx(3.0)


def test_gaps() -> None:
    series = Series.of([(t, 0) for t in (0, 1, 2, 6, 7, 8)])
    assert series.longest_gap(Window(0.5, 7.5)) == 4.0
    assert series.longest_gap(Window(0.5, 1.5)) == 1.0
    assert series.longest_gap(Window(3.0, 5.0)) == 4.0
    assert series.longest_gap(Window(6.5, 20.0)) == 12.0
    assert series.longest_gap(Window(-9.0, 1.0)) == 9.0


def test_repeated_samples_are_one() -> None:
    series = Series.of([(2, "1"), (1, "0"), (1, "0")])
    assert list(series.times) == [1.0, 2.0]


def test_a_window_has_a_length() -> None:
    with pytest.raises(ValueError, match="no length"):
        Window(5.0, 5.0)


@given(length=st.floats(0.05, 5000.0), at_least=st.floats(0.1, 40.0))
def test_spans_cut_a_window_without_a_gap(length: float, at_least: float) -> None:
    window = Window(1.7e9, 1.7e9 + length)
    seconds, found = spans(window, at_least)
    assert (found[0].start, found[-1].end) == (window.start, window.end)
    assert all(one.end == other.start for one, other in pairwise(found))
    assert all(one.seconds == seconds for one in found[:-1])
    assert len(found) <= 120
    assert seconds >= at_least - 0.5
    if len(found) > 1:
        assert 0.499 * seconds <= found[-1].seconds <= 1.501 * seconds


@pytest.mark.parametrize(
    ("length", "seconds", "count"),
    [(0.3, 1, 1), (9.99, 1, 10), (10.4, 1, 10), (120.2, 1, 120), (121.0, 2, 60), (3600.0, 30, 120)],
)
def test_spans_are_seconds_until_there_are_too_many(
    length: float, seconds: int, count: int
) -> None:
    found, every = spans(Window(0.0, length))
    assert (found, len(every)) == (seconds, count)


def test_growth_is_known_where_samples_reach() -> None:
    series = Series.of([(0, 0), (1, 2), (2, 3)])
    assert growth(series, Window(0.5, 1.5)) == 1.5
    assert growth(series, Window(1.5, 2.5)) is None
    assert growth(series, Window(-0.5, 0.5)) is None


def test_what_is_seen_of_a_counter_is_not_stretched_over_the_window() -> None:
    window = Window(1000.0, 1010.0)
    assert seen_growth(steady(0.5, 990.0, 1020.0), window) == pytest.approx(5.0)
    assert seen_growth(steady(0.5, 1008.0, 1020.0), window) == pytest.approx(1.0)
    assert seen_growth(steady(0.5, 990.0, 1000.0), window) == 0.0
    assert seen_growth(Series.of([]), window) == 0.0


def test_a_counter_that_began_anew_grew_from_there_on() -> None:
    again = Series.of([(1000.0, 50.0), (1004.0, 52.0), (1005.0, 0.0), (1010.0, 1.0)])
    assert seen_growth(again, Window(1000.0, 1010.0)) == pytest.approx(3.0)
