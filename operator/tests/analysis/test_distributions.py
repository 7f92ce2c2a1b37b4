"""Quantiles beside those of SciPy."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from laptime.analysis.distributions import (
    normal_below,
    student_quantile,
    studentized_range_quantile,
)

DEGREES = (0.5, 1, 1.7, 2, 4.5, 9, 60, 1000, 1e5)
SHARES = (1e-7, 1e-3, 0.025, 0.3, 0.499, 0.5, 0.8, 0.975, 0.9995, 1 - 1e-8)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("share", SHARES)
def test_students_t(degrees: float, share: float) -> None:
    expected = stats.t.ppf(share, degrees)
    assert student_quantile(degrees, share) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.95, 0.9995])
@pytest.mark.parametrize(("count", "degrees"), [(2, 1), (3, 6), (4, 9), (6, 12.5), (13, 60)])
def test_the_studentized_range(count: int, degrees: float, share: float) -> None:
    found = studentized_range_quantile(share, count, degrees)
    assert stats.studentized_range.cdf(found, count, degrees) == pytest.approx(share, abs=1e-8)


@pytest.mark.parametrize("degrees", DEGREES[1:])
def test_the_range_of_two_is_students_t(degrees: float) -> None:
    expected = student_quantile(degrees, 0.9995) * math.sqrt(2)
    assert studentized_range_quantile(0.999, 2, degrees) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("value", [-30, -8, -1, 0, 0.5, 6])
def test_the_normal_distribution(value: float) -> None:
    assert normal_below(value) == pytest.approx(stats.norm.cdf(value), rel=1e-12)


@pytest.mark.parametrize(
    ("degrees", "share"), [(0, 0.5), (-1, 0.5), (3, 0), (3, 1), (math.nan, 0.5)]
)
def test_what_has_no_quantile_is_said(degrees: float, share: float) -> None:
    with pytest.raises(ValueError, match="has no"):
        student_quantile(degrees, share)
    with pytest.raises(ValueError, match="has no"):
        studentized_range_quantile(share, 3, degrees)
