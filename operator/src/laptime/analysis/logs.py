"""Logarithms of a figure by repetition, and how far each of them is known. Pure.

What is measured is what it is, and repetitions say how it varies. What a search finds lies between
two rates, the one that was met and the one that was missed: that is left open however often and
however steadily it is found. So no interval of it is narrower. Nor is one of very short response
times narrower than the microsecond that they are counted in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from laptime.analysis.statistics import CONFIDENCE, interval_of_logs
from laptime.api.results import Interval

ROUNDING = 1e-9
"""Of the arithmetic: where two servers' steps touch, their ratio may be 1, and a rate that was kept
exactly keeps a bound of just so much."""

ByRepetition: TypeAlias = Mapping[int, float]
"""Logarithms by repetition, or by block where something was asked for again (blocks.py).

Those that are no `Logs` are of figures that leave nothing open."""


class Logs(dict[int, float]):
    """Logarithms of a figure by repetition.

    `within` is how far to each side of them the figure may lie, as a logarithm and on average over
    the repetitions: 0 but for what was searched, and very short response times. `endless`: in one
    of them at least it may be any amount higher, since a search found no rate that the server
    itself missed.
    """

    def __init__(self, logs: ByRepetition, within: float = 0.0, endless: bool = False) -> None:
        super().__init__(logs)
        self.within = within
        self.endless = endless


def left_open(*logs: ByRepetition) -> float:
    """Return how far to each side a figure may lie, or the difference of two, as a logarithm."""
    return math.fsum(one.within for one in logs if isinstance(one, Logs))


def has_no_end(*logs: ByRepetition) -> bool:
    """Return whether one of these figures may be any amount higher."""
    return any(one.endless for one in logs if isinstance(one, Logs))


def unbounded(
    interval: Interval, logs: ByRepetition, against: ByRepetition | None = None
) -> Interval:
    """Return the interval of a figure, or of its ratio to another one, with the ends that it has.

    What may be any amount higher has no upper end, and a ratio to it has no lower one.
    """
    ends = {"high": None} if has_no_end(logs) else {}
    if against is not None and has_no_end(against):
        ends["low"] = None
    return interval.model_copy(update=ends)


def interval_of(logs: ByRepetition, confidence: float = CONFIDENCE) -> Interval:
    """Return what a figure is around, with its interval; no end for a single repetition.

    Raises:
        ValueError: there is no repetition.
    """
    return at_least(interval_of_logs(list(logs.values()), confidence), left_open(logs))


def at_least(interval: Interval, within: float) -> Interval:
    """Return the interval, reaching so far to each side of its value at least, as a logarithm."""
    if not within or interval.low is None or interval.high is None:
        return interval
    within *= 1 + ROUNDING
    return Interval(
        value=interval.value,
        low=min(interval.low, interval.value * math.exp(-within)),
        high=max(interval.high, interval.value * math.exp(within)),
    )
