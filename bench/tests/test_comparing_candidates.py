"""What is simulated is what the operator does."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from candidates import ours, pairs
from measured_noise import halves
from noise import MADE_UP, made_up

from laptime.analysis.comparing import Comparison


@pytest.mark.parametrize("kind", MADE_UP)
@pytest.mark.parametrize(("servers", "repetitions"), [(2, 5), (3, 5), (4, 4), (4, 9), (13, 3)])
def test_the_simulated_rule_claims_what_the_operator_claims(
    kind: str, servers: int, repetitions: int
) -> None:
    y = made_up(kind, (20, repetitions, servers), np.random.default_rng(5))
    # Twice the noise apart, so that some pairs are told apart and others are not.
    y = y + 0.02 * np.arange(servers)
    said = ours(y)
    claimed = np.abs(said.difference) > np.maximum(said.needed, np.log(1.01))
    for number, of_round in enumerate(y):
        comparison = Comparison(
            {f"s{place:02}": dict(enumerate(of_round[:, place])) for place in range(servers)}
        )
        names = comparison.servers
        apart = [comparison.can_be_told_apart(*pair) for pair in combinations(names, 2)]
        assert apart == claimed[number].tolist()


@pytest.mark.parametrize("repetitions", [5, 9])
def test_the_simulated_intervals_are_those_of_the_operator(repetitions: int) -> None:
    y = made_up("one noisy", (10, repetitions, 4), np.random.default_rng(6))
    covered = ours(y).covered
    for number, of_round in enumerate(y):
        comparison = Comparison({f"s{n}": dict(enumerate(of_round[:, n])) for n in range(4)})
        for place, pair in enumerate(combinations(comparison.servers, 2)):
            ratio = comparison.ratio(*pair)
            assert ratio is not None
            assert ((ratio.low or 0) <= 1 <= (ratio.high or 0)) == covered[number, place]


def test_pairs_alone_need_more_the_more_servers_there_are() -> None:
    y = made_up("equal", (10, 4, 4), np.random.default_rng(5))
    said = pairs(y)
    assert float(np.mean(said.needed / said.half)) == pytest.approx(1.96, abs=0.1)


def test_runs_that_were_measured_are_in_one_half_each() -> None:
    chosen_by, held_out = halves()
    assert len(chosen_by) == 10
    assert len(held_out) == 12
    # Nobody's noise is negative, and nobody's is that of a server that stood still.
    assert all(0.001 < one < 1 for run in (*chosen_by, *held_out) for one in run)
