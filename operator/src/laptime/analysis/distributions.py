"""Quantiles of the distributions that intervals and claims are made of.

These two are all that is needed of a library for statistics, which would be a third of the
operator's image and take a second to load. The tests compare them with SciPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

_DIGITS = 1e-12
"""Relative width at which the search for a quantile ends."""
_STEP = 0.25
"""Between the points of normal values. Sums over even points are good to ten digits and more here:
what is summed is smooth and vanishes at both ends."""
_POINTS = tuple(_STEP * place for place in range(-34, 35))


def normal_below(value: float) -> float:
    """Return the share of the standard normal distribution that lies below a value."""
    return math.erfc(-value / math.sqrt(2)) / 2


@lru_cache(maxsize=4096)
def student_quantile(degrees: float, share: float) -> float:
    """Return the value below which the share (between 0 and 1) of Student's t lies.

    Raises:
        ValueError: no degrees of freedom, or a share that is not between 0 and 1.
    """
    if not (degrees > 0 and 0 < share < 1):
        raise ValueError(f"Student's t with {degrees} degrees of freedom has no {share} quantile")
    if share == 0.5:
        return 0.0
    above = min(share, 1 - share)
    # In logarithms, since tails are far apart.
    value = _root(lambda t: math.log(above) - math.log(_student_above(t, degrees)))
    return value if share > 0.5 else -value


@lru_cache(maxsize=1024)
def studentized_range_quantile(share: float, count: int, degrees: float) -> float:
    """Return the value below which the share (between 0 and 1) of the studentized range lies.

    The range of `count` standard normal values, divided by a standard deviation that was estimated
    with so many degrees of freedom (H. L. Harter, Tables of Range and Studentized Range, Annals of
    Mathematical Statistics 31, 1960). Integrated numerically; good to eight digits.

    Raises:
        ValueError: fewer than two values, no degrees of freedom, or a share not between 0 and 1.
    """
    if not (count >= 2 and degrees > 0 and 0 < share < 1):
        raise ValueError(
            f"the range of {count} values with {degrees} degrees of freedom has no {share} quantile"
        )
    deviations = _deviations(degrees)

    def missing(value: float) -> float:
        above = math.fsum(weight * _range_above(value * one, count) for one, weight in deviations)
        return math.log(1 - share) - math.log(above)

    return _root(missing)


def _root(rising: Callable[[float], float]) -> float:
    """Return where a function that rises from below 0 is 0, to the right of 0.

    By false position, where an end that stays counts half (Illinois method; M. Dowell and
    P. Jarratt, BIT 11, 1971).
    """
    low, high = 0.0, 1.0
    at_low, at_high = rising(low), rising(high)
    while at_high < 0:
        low, high, at_low = high, 2 * high, at_high
        at_high = rising(high)
    while high - low > _DIGITS * high:
        middle = high - at_high * (high - low) / (at_high - at_low)
        if not low < middle < high:
            break
        at_middle = rising(middle)
        if at_middle < 0:
            low, at_low, at_high = middle, at_middle, at_high / 2
        else:
            high, at_high, at_low = middle, at_middle, at_low / 2
    return high


def _student_above(t: float, degrees: float) -> float:
    """Return the share of Student's t that lies above a value of 0 and more (DLMF 8.17)."""
    a, x, rest = degrees / 2, degrees / (degrees + t * t), t * t / (degrees + t * t)
    if rest == 0:
        return 0.5
    front = math.exp(
        math.lgamma(a + 0.5)
        - math.lgamma(a)
        - math.lgamma(0.5)
        + a * math.log(x)
        + 0.5 * math.log(rest)
    )
    if x < (a + 1) / (a + 2.5):
        return front * _fraction(a, 0.5, x) / a / 2
    return (1 - front * _fraction(0.5, a, rest) / 0.5) / 2


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), as Lentz."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value, m = d, 0
    while True:
        m += 1
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + numerator * d)
            c = 1 + numerator / c
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            return value


def _deviations(degrees: float) -> list[tuple[float, float]]:
    """Return standard deviations of such an estimate, and how likely each is: 1 in all.

    Even steps of their logarithm; at 0, where they are likeliest, the first one.
    """
    step = min(0.15, 0.6 / math.sqrt(2 * degrees))
    found: list[tuple[float, float]] = []
    for side in (1, -1):
        place = 0 if side > 0 else 1
        while True:
            x = side * step * place
            density = math.exp(degrees * (x - math.expm1(2 * x) / 2))
            if density < 1e-16:
                break
            found.append((math.exp(x), density))
            place += 1
    total = math.fsum(density for _, density in found)
    return [(deviation, density / total) for deviation, density in found]


def _range_above(width: float, count: int) -> float:
    """Return how likely the range of so many standard normal values is wider."""
    power, half, scale = count - 1, math.sqrt(0.5), width * math.sqrt(0.5)
    # Not through normal_below: this is all that the quantile costs.
    within = [
        density * (below - math.erfc(scale - z * half) / 2) ** power
        for z, density, below in _normal()
    ]
    return max(1 - count * math.fsum(within), 1e-300)


@lru_cache(maxsize=1)
def _normal() -> tuple[tuple[float, float, float], ...]:
    """Return points, how likely a standard normal value is there, and how likely it is below."""
    scale = _STEP / math.sqrt(2 * math.pi)
    return tuple((z, scale * math.exp(-z * z / 2), normal_below(z)) for z in _POINTS)
