"""Intervals of figures that vary by factors: everything is done with logarithms.

Throughputs and their ratios cannot be negative and vary in proportion. Two servers are paired by
repetition: what slowed down the machine for a while slowed down both. The order within a
repetition is random, so a disturbance that hits one trial is as likely to hit the one as the
other: the differences of logarithms lie symmetrically around the truth, however the machine
drifts and stumbles. From 8 repetitions on the interval is that of Wilcoxon's signed ranks, which
needs nothing but this symmetry, and the value is the Hodges-Lehmann estimate; below that it is
Student's. Why: docs/decisions/0005-intervals-by-signed-ranks.md. Three servers and more are
compared in one model, see comparing.py.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from laptime.analysis.distributions import student_quantile
from laptime.analysis.remembered import remembered
from laptime.api.results import Interval

CONFIDENCE = 0.95
ERRORS = 0.05
"""What it leaves over: the share of runs that may err."""
NOTICEABLE_RATIO = 1.01
"""Servers closer than this are not told apart, however steady their figures are."""
SIGNED_RANK_REPETITIONS = 8
"""From here on signed ranks give an interval of 95 % that does not rest on extremes alone."""

_FEWEST_LEFT_OUT = 4


def interval_of_logs(logs: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return what values are around, from their logarithms, with its interval.

    The method follows from the number of values and the confidence alone, never from the values.
    A single value has no interval.

    Raises:
        ValueError: there is no value.
    """
    if not logs:
        raise ValueError("no value to take the mean of")
    return _interval(tuple(logs), confidence)


def half_width(interval: Interval) -> float | None:
    """Return how far an interval reaches to each side: 0.02 is 2 %; None where it has no ends."""
    if interval.low is None or interval.high is None:
        return None
    return math.sqrt(interval.high / interval.low) - 1


# The same results are looked at again after every trial.
@remembered(8192)
def _interval(logs: tuple[float, ...], confidence: float) -> Interval:
    if not signed_ranks_suffice(len(logs), confidence):
        return _student(logs, confidence)
    left_out = _left_out(len(logs), confidence)
    means = sorted(
        (one + other) / 2 for number, one in enumerate(logs) for other in logs[: number + 1]
    )
    middle = (means[(len(means) - 1) // 2] + means[len(means) // 2]) / 2
    low, high = means[left_out - 1], means[-left_out]
    return Interval(value=_exp(middle), low=_exp(low), high=_exp(high))


def _student(logs: tuple[float, ...], confidence: float) -> Interval:
    """Return exp(mean) and Student's t interval with n - 1 degrees of freedom."""
    count = len(logs)
    mean = math.fsum(logs) / count
    if count < 2:
        return Interval(value=math.exp(mean))
    variance = math.fsum((log - mean) ** 2 for log in logs) / (count - 1)
    half = student_quantile(count - 1, 0.5 + confidence / 2) * math.sqrt(variance / count)
    return interval_of_log_mean(mean, half)


def interval_of_log_mean(mean: float, half: float) -> Interval:
    """Return the interval that reaches so far to each side of a mean of logarithms."""
    return Interval(value=_exp(mean), low=_exp(mean - half), high=_exp(mean + half))


def signed_ranks_suffice(count: int, confidence: float) -> bool:
    """Return whether so many values have an interval by signed ranks at this confidence."""
    return _left_out(count, confidence) >= _FEWEST_LEFT_OUT


def _left_out(count: int, confidence: float) -> int:
    """Return which of the sorted means of pairs, from either end, bounds the interval.

    The number of values of the signed-rank statistic that are each so low that together they are
    no likelier than half of what the confidence leaves over (M. Hollander, D. A. Wolfe and
    E. Chicken, Nonparametric Statistical Methods, 3rd ed., section 3.3). 0: too few values.
    """
    return bisect_right(_signed_ranks(count), (1 - confidence) / 2)


@lru_cache(maxsize=256)
def _signed_ranks(count: int) -> tuple[float, ...]:
    """Return how likely the signed-rank statistic of so many values is at most 0, 1, 2 …"""
    likely = [1.0]
    for rank in range(1, count + 1):
        longer = [0.0] * (len(likely) + rank)
        for value, share in enumerate(likely):
            longer[value] += share / 2
            longer[value + rank] += share / 2
        likely = longer
    return tuple(accumulate(likely))


def paired_logs(one: Mapping[int, float], other: Mapping[int, float]) -> list[float]:
    """Return the differences of logarithms in the repetitions that both have."""
    return [one[repetition] - other[repetition] for repetition in sorted(one.keys() & other.keys())]


def can_be_told_apart(one: Mapping[int, float], other: Mapping[int, float], of: int = 1) -> bool:
    """Return whether two servers' logarithms by repetition differ for sure, and noticeably.

    `of` is the number of comparisons made together: the confidence of each is raised so that all
    hold at once with 95 % (Bonferroni).
    """
    return is_faster(one, other, of) or is_faster(other, one, of)


def is_faster(one: Mapping[int, float], other: Mapping[int, float], of: int = 1) -> bool:
    """Return whether the first of two servers is faster for sure, and noticeably; as above."""
    logs = paired_logs(one, other)
    return len(logs) > 1 and claims(interval_of_logs(logs, claim_confidence(len(logs), of)))


def claims(ratio: Interval) -> bool:
    """Return whether the interval of a ratio says that it is above 1 for sure, and noticeably."""
    above = math.log(ratio.value) > math.log(NOTICEABLE_RATIO)
    return above and ratio.low is not None and ratio.low > 1


def claim_confidence(count: int, of: int = 1, errors: float = ERRORS) -> float:
    """Return the confidence of each of so many comparisons, of differences in so many repetitions.

    All of them together may err in this share of runs.

    Student's interval takes it for given that differences are normal. In a few repetitions those of
    a server whose pods fall into two groups, or on a machine that drifts, are seldom enough so: the
    errors that are allowed are made fewer by one part in as many as there are repetitions. What
    that is worth was found by simulation: docs/decisions/0044-claims-in-few-repetitions.md.
    """
    errors /= max(1, of)
    return 1 - errors if signed_ranks_suffice(count, 1 - errors) else 1 - errors * (1 - 1 / count)


def _exp(log: float) -> float:
    # Two repetitions that differ a lot make an interval without end; JSON has no infinity.
    return math.exp(min(max(log, -690.0), 690.0))
