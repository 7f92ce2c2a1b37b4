"""How well a trial knows its own throughput, by the seconds that it has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

_BATCHES = 8
"""At least so many, and less than twice as many."""


def error_share(counts: Sequence[float]) -> float | None:
    """Return the standard error of the mean of the counts of whole seconds, as a share of it.

    None for fewer than 8 seconds, or where nothing was counted.

    Neighbouring seconds are alike, so that they say less than as many that are independent. So they
    are taken together, in 8 to 15 batches of one length (batch means; G. S. Fishman, Grouping
    observations in digital simulation, Management Science 24, 1978), of which the last seconds may
    be left out. A straight line is taken out of the means, with the degree of freedom that it
    costs: a trend is no noise, and is mostly the same in all trials. With a correlation r > 0 of
    what is left of neighbouring batches the variance is (1 + r) / (1 - r) times as large (G. V.
    Bayley and J. M. Hammersley, The effective number of independent observations in an
    autocorrelated time series, Supplement to the Journal of the Royal Statistical Society 8, 1946).
    """
    size = len(counts) // _BATCHES
    if size == 0:
        return None
    means = [fmean(counts[at : at + size]) for at in range(0, len(counts) - size + 1, size)]
    number, mean = len(means), fmean(means)
    if mean <= 0:
        return None
    places = [place - (number - 1) / 2 for place in range(number)]
    slope = math.fsum(map(math.prod, zip(places, means, strict=True)))
    slope /= math.fsum(place**2 for place in places)
    rest = [one - mean - slope * place for place, one in zip(places, means, strict=True)]
    squares = math.fsum(one**2 for one in rest)
    if squares <= (1e-9 * mean) ** 2:
        return 0.0
    alike = max(0.0, math.fsum(one * after for one, after in pairwise(rest)) / squares)
    variance = squares / (number - 2) / number * (1 + alike) / (1 - alike)
    return math.sqrt(variance) / mean
