"""Factors that are simulated as they stand on a page are those of the operator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from candidates import ours
from comparing.run import FACTORS, Case, Measured, cases
from drawn import factors
from noise import made_up
from outcomes import outcome

from laptime.analysis.comparing import Comparison

NOTHING = Measured([], {})


@pytest.mark.parametrize("factor", [1.0, *FACTORS, 40.0])
@pytest.mark.parametrize("kind", ["equal", "half noisy", "stumbles"])
@pytest.mark.parametrize(("servers", "repetitions"), [(2, 3), (2, 9), (4, 4), (6, 9), (7, 5)])
def test_the_simulated_factors_are_those_that_the_operator_draws(
    kind: str, servers: int, repetitions: int, factor: float
) -> None:
    # Differences of several noises, so that the rule of 1 % decides nothing that `ours` leaves out.
    y = 5 * made_up(kind, (20, repetitions, servers), np.random.default_rng(11))
    y = y + np.linspace(0.0, math.log(factor), servers)
    low, high = np.exp(factors(ours(y), servers))
    for number, of_round in enumerate(y):
        scores = {f"s{place}": dict(enumerate(of_round[:, place])) for place in range(servers)}
        expected = Comparison(scores).factors("s0").values()
        assert low[number] == pytest.approx([one.low for one in expected], rel=1e-6)
        assert high[number] == pytest.approx([one.high for one in expected], rel=1e-6)


def test_an_interval_holds_the_true_factor_and_not_1() -> None:
    case = Case(2, 5, "equal", 4.0)
    y = case.runs(400, NOTHING)
    assert y.mean((0, 1)) == pytest.approx([0.0, math.log(4)], abs=0.01)
    found = case.outcome("ours", y)
    assert found.coverage == pytest.approx(0.95, abs=0.03)
    assert found.false == 0
    # By another truth than theirs none would be held.
    assert outcome(ours(y), ours(y), 2, np.log([1.0, 4.5])).coverage == 0


def test_the_slower_one_called_the_faster_is_an_error_and_the_faster_one_is_none() -> None:
    case = Case(3, 5, "equal", 1.5)
    y = case.runs(50, NOTHING)
    assert case.outcome("ours", y).false == 0
    assert case.outcome("ours", -y).false == 1


def test_true_factors_are_of_the_same_table_and_have_seeds_of_their_own() -> None:
    of_shape = cases(4, 5)
    assert {one.factor for one in of_shape} == {1.0, *FACTORS}
    one, other = (Case(2, 3, "equal", factor).runs(1, NOTHING) for factor in FACTORS[:2])
    assert not np.allclose(one - one.mean(1), other - other.mean(1))
