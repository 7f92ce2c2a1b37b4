"""Figures as people read them."""

from __future__ import annotations

import pytest

from laptime.analysis import wording
from laptime.api.isolation import Isolation, Quietness
from laptime.api.results import Interval, LatencyFigure
from tests.analysis.runs import Outcome, make_spec, summary_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00"),
        (0.0123456, "0.0123"),
        (0.148, "0.148"),
        (1.0, "1.00"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (25.123, "25.1"),
        (99.96, "100"),
        (15363.4, "15,363"),
    ],
)
def test_numbers_have_three_digits_or_all(value: float, text: str) -> None:
    assert wording.number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00064, "640 us"),
        (0.000042, "42.0 us"),
        (0.0009997, "1.00 ms"),
        (0.0154, "15.4 ms"),
        (0.9996, "1.00 s"),
        (75.2, "75.2 s"),
    ],
)
def test_response_times_have_the_unit_that_suits(seconds: float, text: str) -> None:
    assert wording.latency(seconds) == text


def test_an_interval_is_shown_where_there_is_one() -> None:
    assert wording.factor(Interval(value=22.3, low=20.1, high=24.6)) == "22.3x (20.1 to 24.6)"
    assert wording.factor(Interval(value=22.3)) == "22.3x"
    assert wording.factor(Interval(value=1, low=1, high=1)) == "1.00x"
    # Of searches without an upper end.
    assert wording.factor(Interval(value=1.4, low=1.39)) == "1.40x (at least 1.39)"
    assert wording.factor(Interval(value=0.99, low=0.9)) == "0.99x (at least 0.9)"
    assert wording.factor(Interval(value=0.99, high=0.9996)) == "0.99x (at most 0.9996)"
    assert wording.with_interval(Interval(value=1e4, low=1e4)) == "10,000 (at least 10,000)"


def test_an_interval_that_says_nothing_is_not_a_hundred_digits() -> None:
    """Two repetitions that differ by ten times; ends reach to e^690."""
    wide = Interval(value=3.16, low=4.69e-32, high=2.13e32)
    assert wording.factor(wide) == "3.16x (4.69e-32 to 2.13e+32)"
    assert wording.factor(Interval(value=3.16, low=1.2, high=1e299)) == "3.16x (1.20 to 1e+299)"
    times = LatencyFigure(seconds=wide)
    assert wording.latency_figure(times, ends=True) == "3.16 s (4.69e-32 to 2.13e+32)"
    # What can be counted has all its digits.
    assert wording.number(999_999_999_999) == "999,999,999,999"
    assert [wording.number(one) for one in (999_999_999_999.6, -1e12)] == ["1e+12", "-1e+12"]


def test_an_interval_that_rounding_alone_makes_is_none() -> None:
    around = Interval(value=1000, low=1000 * (1 - 1e-13), high=1000 * (1 + 1e-13))
    assert wording.with_interval(around) == "1,000"
    times = Interval(value=0.15, low=0.15 * (1 - 1e-13), high=0.15 * (1 + 1e-13))
    assert wording.latency_figure(LatencyFigure(seconds=times), ends=True) == "150 ms"


def test_one_trial_is_in_no_plural() -> None:
    shared = Isolation(word=Quietness.SHARED, message="others used CPU", trials_not_known=1)
    assert wording.isolation(shared) == "shared: others used CPU; not known of 1 trial"


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((1.01998, 1.00497, 1.03521), "1.02x (1.005 to 1.04)"),
        ((0.996, 0.994, 0.99962), "0.996x (0.994 to 0.9996)"),
        ((1.0021, 1.00002, 1.0042), "1.002x (1.00002 to 1.004)"),
        # These hold 1: nobody is told apart.
        ((1.0021, 0.99962, 1.0046), "1.00x (1.00 to 1.00)"),
        ((1.02, 1, 1.04), "1.02x (1.00 to 1.04)"),
    ],
)
def test_an_interval_that_does_not_hold_1_never_reads_as_if_it_did(
    ends: tuple[float, float, float], text: str
) -> None:
    value, low, high = ends
    assert wording.factor(Interval(value=value, low=low, high=high)) == text


def test_who_is_the_fastest_has_an_interval_that_says_so() -> None:
    rates = {"a": (1000, 1000, 1000, 1000), "b": (1020.0, 1031.8, 1008.2, 1021.0)}
    spec = make_spec(*rates, repetitions=4)
    summary = summary_of(spec, lambda one: Outcome(rates[one.server][one.repetition - 1]))
    assert [row.rank for row in summary.rows] == [2, 1]
    said = "b is fastest: 1.02x (1.005 to 1.04) the throughput of a"
    assert summary.verdict.startswith(said)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.00%"),
        (0.002, "0.2%"),
        (0.5, "50.0%"),
        (0.9994, "99.9%"),
        (0.9997, "99.97%"),
        (14_838 / 14_841, "99.98%"),
        (1 - 1e-7, "99.99999%"),
        (1, "100%"),
        (1.5, "150%"),
        (3 / 6_000_003, "0.00005%"),
        (1.234e-9, "0.000000123%"),
    ],
)
def test_a_share_is_never_all_of_it_where_it_is_not_and_has_no_exponent(
    share: float, text: str
) -> None:
    assert wording.share(share) == text
    alone = wording.share_with_interval(Interval(value=share, low=0, high=1))
    assert alone == f"{text} (0.00 to 100)"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c", "d"], "a, b, c and d"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 others"),
    ],
)
def test_names_are_listed_as_in_a_sentence(names: list[str], text: str) -> None:
    assert wording.listing(names) == text
