"""Numbers as people read them, in reasons as in tables, pages and terminals. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable

_TOO_LONG = 1e12
"""From here on a number is written as a power of ten: an end of an interval that says nothing."""


def number(value: float) -> str:
    """Return three significant digits, thousands grouped: `0.0123`, `9.87`, `98.7`, `15,363`.

    Of a billion thousands and more the power of ten: `2.13e+32`.
    """
    size = abs(value)
    if size >= _TOO_LONG - 0.5:
        return f"{value:.3g}"
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995 or size == 0:
        return f"{value:.2f}"
    return f"{value:.3g}"


def beside(bound: float, written: Callable[[float], str] = number) -> Callable[[float], str]:
    """Return how to write numbers that are judged by a bound: with the digits that tell them apart.

    `1,000` beside another bound, `999.7` beside one of 1,000.
    """

    def digits_of(value: float) -> str:
        text, digits = written(value), None
        limit = written(bound)
        long = "e+" in text
        while text == limit and not math.isclose(value, bound):
            digits = len(text.partition(".")[2]) + 1 if digits is None else digits + 1
            form = f".{digits}g" if long else f",.{digits}f"
            text, limit = (format(one, form) for one in (value, bound))
        return text

    return digits_of


def share(value: float) -> str:
    """Return a share (0 … 1) as a percentage: `0.2%`.

    With the digits that tell it from all: `99.97%`.
    """
    return f"{percent(value * 100)}%"


def percent(value: float) -> str:
    """Return a percentage without its sign, with the digits that tell it from 100: `99.97`."""
    if 0 < value < 1e-4:
        return f"{value:.{2 - math.floor(math.log10(value))}f}".rstrip("0")
    return beside(100.0)(value)
