"""Samples of one time series, and what they say of a window of time. Pure."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

MISSING_SHARE = 0.02
"""More of a window without samples makes a figure one that something is missing from."""


@dataclass(frozen=True)
class Window:
    """A span of time, in Unix seconds, such as the measured phase of a trial.

    Raises:
        ValueError: it ends before it begins.
    """

    start: float
    end: float

    def __post_init__(self) -> None:
        if not self.start < self.end:
            raise ValueError(f"a window from {self.start} to {self.end} has no length")

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


@dataclass(frozen=True)
class Series:
    """Samples of one series in the order of time: Unix seconds and values, as many of each.

    Arrays: a sample of a tuple takes four times as much, and a trial of hours has millions.
    """

    times: array[float]
    values: array[float]

    @classmethod
    def of(cls, samples: Iterable[Sequence[float | str]]) -> Series:
        """Return the series of pairs (time, value), in any order, without repeated times."""
        pairs = sorted({float(time): float(value) for time, value in samples}.items())
        return cls(
            array("d", (time for time, _ in pairs)), array("d", (value for _, value in pairs))
        )

    def followed_by(self, later: Series) -> Series:
        """Return the samples of both, of `later` those after the last one of this."""
        new = bisect_right(later.times, self.times[-1]) if self.times else 0
        return Series(self.times + later.times[new:], self.values + later.values[new:])

    def merged(self, other: Series) -> Series:
        """Return the samples of both: one series that two scrapes know by different names."""
        return Series.of(
            zip((*self.times, *other.times), (*self.values, *other.values), strict=True)
        )

    def plus(self, other: Series) -> Series:
        """Return the sums of two that were read together, at the times that both have.

        To a millionth, so that what one lost and the other got leaves the sum as it was.
        """
        values = dict(zip(other.times, other.values, strict=True))
        return Series.of(
            (time, round(value + values[time], 6))
            for time, value in zip(self.times, self.values, strict=True)
            if time in values
        )

    def later(self, seconds: float) -> Series:
        """Return the same values, each so many seconds later."""
        if not seconds:
            return self
        return Series(array("d", (time + seconds for time in self.times)), self.values)

    def at(self, time: float) -> float | None:
        """Return the value at a moment, on the line between the samples around it.

        None before the first sample and after the last one.
        """
        index = bisect_left(self.times, time)
        if index < len(self.times) and self.times[index] == time:
            return self.values[index]
        if index == 0 or index == len(self.times):
            return None
        before, after = self.times[index - 1], self.times[index]
        share = (time - before) / (after - before)
        return self.values[index - 1] + share * (self.values[index] - self.values[index - 1])

    def within(self, start: float, end: float) -> tuple[float, ...]:
        """Return the values of the samples from `start` to `end`, both included."""
        return tuple(self.values[bisect_left(self.times, start) : bisect_right(self.times, end)])

    def covered(self, window: Window) -> float:
        """Return how many seconds of a window lie between the first and the last sample."""
        if not self.times:
            return 0.0
        return max(0.0, min(window.end, self.times[-1]) - max(window.start, self.times[0]))

    def longest_gap(self, window: Window) -> float:
        """Return the longest time without a sample that touches a window, in seconds.

        From or to the ends of the window where the series does not reach beyond them.
        """
        first = bisect_right(self.times, window.start) - 1
        last = bisect_left(self.times, window.end)
        times = [
            self.times[first] if first >= 0 else window.start,
            *self.times[first + 1 : last],
            self.times[last] if last < len(self.times) else window.end,
        ]
        return max(after - before for before, after in pairwise(times))


def unseen_ends(series: Series, window: Window) -> tuple[float, float]:
    """Return how many seconds at the start and at the end of a window nobody looked.

    Beyond what the samples of the series are apart: where one comes each 15 s the first one may be
    as late without that anything is missing.
    """
    if not series.times:
        return window.seconds, window.seconds
    gaps = [after - before for before, after in pairwise(series.times)]
    apart = median(gaps) if gaps else 0.0
    before = series.times[0] - window.start
    after = window.end - series.times[-1]
    return max(0.0, before - apart), max(0.0, after - apart)


def increase(series: Series, window: Window) -> float | None:
    """Return by how much a counter grew in a window.

    The exact difference of the counter at both ends, each on the line between two samples. Where
    the samples do not reach an end, the growth per second of the rest of the window is taken for
    what is missing. None when less than half of the window has samples, or the counter went back.
    """
    covered = series.covered(window)
    if covered < window.seconds / 2:
        return None
    first = series.at(max(window.start, series.times[0]))
    last = series.at(min(window.end, series.times[-1]))
    assert first is not None
    assert last is not None
    values = (first, *series.within(window.start, window.end), last)
    if any(after < before for before, after in pairwise(values)):
        return None
    return (last - first) * window.seconds / covered


def add_to(known: dict[str, Series], key: str, series: Series) -> None:
    """Add a series, to the one that is known by this key if there is one.

    A new agent goes on with the same counter under another `instance`.
    """
    known[key] = known[key].merged(series) if key in known else series


def seen_growth(series: Series, window: Window) -> float:
    """Return by how much a counter grew in that part of a window which its samples cover.

    One that began anew, as that of another pod of the same name, grew from there on.
    """
    if series.covered(window) <= 0.0:
        return 0.0
    ends = (max(window.start, series.times[0]), min(window.end, series.times[-1]))
    first, last = (series.at(end) or 0.0 for end in ends)
    values = (first, *series.within(*ends), last)
    return math.fsum(max(0.0, after - before) for before, after in pairwise(values))


def stood_still(series: Series, window: Window) -> float | None:
    """Return for how many seconds of a window a counter of seconds says that all stood still.

    Each growth is a time that ended with the sample which has it, and began so many seconds before.
    None where the samples do not reach the window's end: what is not over was not counted yet.
    """
    if not series.times or series.times[-1] < window.end:
        return None
    # One that began within the window began with nothing.
    before = (-math.inf, 0.0 if series.times[0] > window.start else series.values[0])
    seconds = 0.0
    for time, value in zip(series.times, series.values, strict=True):
        grown = value - before[1] if value >= before[1] else value
        begin = max(before[0], time - grown, window.start)
        seconds += max(0.0, min(time, window.end) - begin)
        before = (time, value)
    return seconds


def highest_rate(all_series: Iterable[Series], window: Window, seconds: float = 1.0) -> float:
    """Return the highest growth per second of several counters together.

    Over spans of `seconds`, which begin four times in each of them; a counter without samples
    around a span counts as one that stood still. A shorter window is one span.
    """
    every = list(all_series)
    length = min(seconds, window.seconds)
    step = length / 4
    count = int((window.seconds - length) / step + 1e-9)
    highest = 0.0
    for number in range(count + 1):
        start = window.start + number * step
        span = Window(start, start + length)
        grown = math.fsum(growth(series, span) or 0.0 for series in every)
        highest = max(highest, grown / length)
    return highest


def spans(window: Window, at_least: float = 1.0, most: int = 120) -> tuple[int, list[Window]]:
    """Return a window cut into at most `most` spans from its start, and their whole seconds.

    All are as long, at least `at_least` seconds rounded to whole ones, but for the last one: it
    ends with the window, after half to one and a half times that length (or less, when it is the
    only one).
    """
    length = max(1, round(at_least))
    while (count := max(1, round(window.seconds / length))) > most:
        length += 1
    starts = [window.start + number * length for number in range(count)]
    return length, [Window(*ends) for ends in pairwise([*starts, window.end])]


def growth(series: Series, window: Window) -> float | None:
    """Return by how much a counter grew in a window; None where samples do not reach its ends."""
    before, after = series.at(window.start), series.at(window.end)
    return None if before is None or after is None else max(0.0, after - before)
