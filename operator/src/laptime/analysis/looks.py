"""How much each look at a run may err, when a run stops by what its results say. Pure.

Who looks after each repetition, and stops as soon as something was found, finds something by chance
far more often than in 5 % of runs: there are many looks. So each of them may err less, such that
all of them together err in 5 % at most. That holds for everything that a look says: claims as well
as intervals, which hold at all looks at once. How the shares were chosen:
docs/decisions/0055-looking-after-each-repetition.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from laptime.analysis.blocks import repetition_of
from laptime.analysis.distributions import normal_below
from laptime.analysis.logs import ByRepetition
from laptime.analysis.statistics import ERRORS
from laptime.api.spec import BenchmarkRunSpec

SPENT = 0.03
"""What all looks together may err, by bounds that are right for sums of normal differences. Of what
is really compared, with variances that are estimated anew at each look and noise of many kinds, up
to 5 % err then."""
BY_WIDTH = 0.04
"""What each look of a run with a precision may err. It stops by the widths of its intervals, never
by where they lie; but some are too narrow by chance, and it is these that it stops at."""

_MOST_DEVIATIONS = 12.0
_HALVINGS = 45
_APART = 0.5
"""Of values that are integrated over: a repetition moves a sum by 1, as a standard deviation."""
_FEWEST_POINTS = 20
_FAR = 8.0
"""From so many standard deviations on nothing arrives."""


@dataclass(frozen=True)
class Looks:
    """Which share of runs may err at each look, from the first one on."""

    first: int
    shares: tuple[float, ...]

    def errors(self, repetition: int) -> float:
        """Return the share of runs in which what is said after this repetition may be wrong.

        Before the first look as much as at it, after the last one as much as at that.
        """
        return self.shares[min(max(0, repetition - self.first), len(self.shares) - 1)]

    def errors_of(self, logs: Iterable[ByRepetition]) -> float:
        """Return the same of figures by repetition: what counts is the last one that any has."""
        last = (repetition_of(block) for one in logs for block in one)
        return self.errors(max(last, default=self.first))


ONCE = Looks(1, (ERRORS,))
"""Of a run whose number of trials is fixed: 5 %, whenever it is looked at."""


def looks_of(spec: BenchmarkRunSpec) -> Looks:
    """Return how much each look at a run may err."""
    if spec.precision is not None:
        return Looks(1, (BY_WIDTH,))
    if spec.stop_when is None:
        return ONCE
    return Looks(spec.first_look, shares_of_looks(spec.first_look, spec.most_repetitions))


@lru_cache(maxsize=64)
def shares_of_looks(first: int, most: int) -> tuple[float, ...]:
    """Return the errors of the looks after repetitions `first` to `most`: `SPENT` together.

    What may be spent up to a look grows with the share of all repetitions that it has, as P.
    Pocock's bounds spend it; what a look may err by itself, given that none before it did, follows
    from that (K. K. G. Lan and D. L. DeMets, Discrete sequential boundaries for clinical trials,
    Biometrika 70, 1983), by integrating over where a sum of as many normal differences may be (P.
    Armitage, C. K. McPherson and B. C. Rowe, Repeated significance tests on accumulating data,
    Journal of the Royal Statistical Society A 132, 1969).
    """
    # How likely a sum is at each of these, times its weight, in runs that found nothing yet.
    sums, density = [0.0], [1.0]
    shares: list[float] = []
    spent = before = 0.0
    for repetition in range(first, most + 1):
        step = math.sqrt(repetition - before)
        allowed = _spent_by(repetition / most) - spent
        low, high = 0.0, _MOST_DEVIATIONS * math.sqrt(repetition)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            too_many = _beyond(middle, sums, density, step) > allowed
            low, high = (middle, high) if too_many else (low, middle)
        spent += _beyond(high, sums, density, step)
        shares.append(2 * normal_below(-high / math.sqrt(repetition)))
        inside = _spread(high)
        density = [
            weight * _arrived(one, sums, density, step)
            for one, weight in zip(inside, _simpson(inside), strict=True)
        ]
        sums, before = inside, float(repetition)
    return tuple(shares)


def _beyond(bound: float, sums: Sequence[float], density: Sequence[float], step: float) -> float:
    """Return how likely the next sum is beyond the bound to either side; both are as likely."""
    above = (
        likely * normal_below((one - bound) / step)
        for one, likely in zip(sums, density, strict=True)
    )
    return 2 * math.fsum(above)


def _arrived(value: float, sums: Sequence[float], density: Sequence[float], step: float) -> float:
    """Return the density of the next sum at a value."""
    near = _FAR * step
    parts = (
        likely * math.exp(-(((value - one) / step) ** 2) / 2)
        for one, likely in zip(sums, density, strict=True)
        if abs(value - one) < near
    )
    return math.fsum(parts) / (step * math.sqrt(2 * math.pi))


def _spread(bound: float) -> list[float]:
    """Return an odd number of values from one bound to the other, near enough to each other."""
    half = max(_FEWEST_POINTS, math.ceil(bound / _APART))
    return [bound * (number - half) / half for number in range(2 * half + 1)]


def _simpson(values: Sequence[float]) -> list[float]:
    """Return the weights of Simpson's rule."""
    apart = (values[-1] - values[0]) / (len(values) - 1)
    inner = [4 if number % 2 else 2 for number in range(1, len(values) - 1)]
    return [weight * apart / 3 for weight in (1, *inner, 1)]


def _spent_by(time: float) -> float:
    """Return which share of runs may have erred by then; time is 1 at the last look."""
    return SPENT * math.log1p((math.e - 1) * time)
