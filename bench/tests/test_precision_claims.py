"""What is simulated is what the operator does."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from claims import NOISES, noise, ours, pairs

from laptime.analysis.comparing import Comparison


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize(("servers", "repetitions"), [(2, 5), (3, 5), (4, 4), (13, 3)])
def test_the_simulated_rule_claims_what_the_operator_claims(
    kind: str, servers: int, repetitions: int
) -> None:
    y = noise(kind, (20, repetitions, servers), np.random.default_rng(5))
    # Twice the noise apart, so that some pairs are told apart and others are not.
    y = y + 0.02 * np.arange(servers)
    said = ours(y)
    claimed = np.abs(said.difference) > np.maximum(said.together * said.error, np.log(1.01))
    for number, of_round in enumerate(y):
        comparison = Comparison(
            {f"s{place:02}": dict(enumerate(of_round[:, place])) for place in range(servers)}
        )
        names = comparison.servers
        apart = [comparison.can_be_told_apart(*pair) for pair in combinations(names, 2)]
        assert apart == claimed[number].tolist()


def test_pairs_alone_need_more_the_more_servers_there_are() -> None:
    y = noise("equal", (10, 4, 4), np.random.default_rng(5))
    assert float(np.mean(pairs(y).together)) > 6
