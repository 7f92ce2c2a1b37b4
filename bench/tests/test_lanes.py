"""What `make bench-lanes` judges, and what makes it fail."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

import pytest
from lanes.run import FAST, PAIRS, SLOW, Entry, factor_of, interval, table

GOOD = Entry("c", 0.0, 60.0, 4.0, 4.0, 8, ["east", "east", "west"], 0.0, 0.9, 0.9)
NEARBY = (2.0, 2.1, 1.9, 2.0)
"""Factors with the other run on the same CPU."""


def pairs(ratios: list[float], nearby: tuple[float, ...] = NEARBY) -> list[Entry]:
    return [
        replace(GOOD, beside=GOOD.alone * one, near=near)
        for one, near in zip_longest(ratios, nearby[: len(ratios)])
    ]


def test_the_factor_is_the_geometric_mean_over_all_trials() -> None:
    trials = [
        {"server": name, "figures": {"requestsPerSecond": rate}}
        for name, rates in ((SLOW, (10, 10, 10, 10)), (FAST, (20, 80, 40, 40)))
        for rate in rates
    ]
    assert factor_of({"trials": trials}) == pytest.approx(4.0)
    with pytest.raises(SystemExit, match="missing"):
        factor_of({"trials": trials[:-1]})


def test_an_interval_within_the_bounds_is_good_and_one_outside_is_not() -> None:
    assert table(pairs([1.0, 1.01, 0.99, 1.0, 1.01, 0.99]))[1] is True
    assert table(pairs([0.8, 0.81, 0.79, 0.8, 0.81, 0.79]))[1] is False
    # Neither within nor outside: more pairs, and in the end a miss.
    wide = [0.5, 2.0, 0.6, 1.7]
    assert table(pairs([*wide, *wide]))[1] is None
    assert table(pairs(wide * (PAIRS // 4)))[1] is False


def test_fewer_pairs_than_needed_say_nothing() -> None:
    assert table(pairs([1.0, 1.01, 0.99]))[1] is None
    assert table(pairs([1.0]))[1] is None


def test_a_bench_that_would_not_notice_a_shared_cpu_is_a_miss() -> None:
    good = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99]
    for blind in ((4.0, 4.1, 3.9, 4.0), (2.0, 5.0, 3.0, 4.5)):
        found, verdict = table(pairs(good, blind))
        assert verdict is False
        assert "which must be outside: MISSED" in found[-1]
    # Not tried often enough.
    assert table(pairs(good, NEARBY[:3]))[1] is None


def test_a_pair_that_was_not_measured_at_once_is_a_miss() -> None:
    same = replace(GOOD, lanes=["east", "east", "east"])
    late = replace(GOOD, overlapped=3)
    moved = replace(GOOD, lanes=["east", "north", "west"])
    for bad in (same, late, moved):
        found, good = table([*pairs([1.0, 1.01, 0.99, 1.0, 1.01, 0.99]), bad])
        assert good is False
        assert "not measured in two lanes at once" in found[-1]


def test_the_interval_is_students() -> None:
    middle, low, high = interval([0.9, 1.0, 1.0 / 0.9])
    assert middle == pytest.approx(1.0)
    # 4.303 standard errors with two degrees of freedom; the logarithms are -0.10536, 0, 0.10536.
    assert low == pytest.approx(2.718281828 ** (-4.3027 * 0.10536 / 3**0.5), rel=1e-4)
    assert low * high == pytest.approx(1.0)


def test_a_pair_of_which_the_hypervisor_took_much_is_shown_and_not_counted() -> None:
    good = pairs([1.0, 1.01, 0.99, 1.0, 1.01, 0.99])
    robbed = replace(GOOD, beside=GOOD.alone * 3, stolen=0.02)
    found, verdict = table([*good, robbed])
    assert verdict is True
    assert found[0] == "not counted: stolen 2.0% (at most 1%)"
    assert table([*good[:5], robbed])[1] is None
    # What was not measured in two lanes at once was not, whoever took what.
    assert table([*good, replace(robbed, lanes=["east", "east", "east"])])[1] is False
