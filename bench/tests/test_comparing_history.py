"""What earlier runs would do to claims: the candidates of bench/comparing/history.py."""

from __future__ import annotations

import numpy as np
import pytest
from candidates import Said, ours
from history import CANDIDATES, EARLIER, WORLDS, History, drawn, history_of, knowing
from outcomes import outcome

SHAPES = [(2, 3), (2, 5), (4, 4), (6, 3)]


def same(one: Said, other: Said) -> bool:
    pairs = ((one.difference, other.difference), (one.needed, other.needed), (one.half, other.half))
    return all(np.allclose(a, b, rtol=0.01) for a, b in pairs)


@pytest.mark.parametrize(("servers", "repetitions"), SHAPES)
def test_a_history_that_is_worth_nothing_changes_nothing(servers: int, repetitions: int) -> None:
    y = 0.01 * np.random.default_rng(1).standard_normal((200, repetitions, servers))
    nothing = History(np.full(200, 1e-9), np.zeros(200))
    said, expected = knowing(y, nothing), ours(y)
    assert np.allclose(said.needed, expected.needed, rtol=0.01)
    wider = np.isclose(said.half, expected.half, rtol=0.01)
    # Where a pair alone makes the claim, the operator's interval is that of the pair.
    assert wider.mean() > 0.9


def test_runs_that_agree_are_worth_much_and_others_little() -> None:
    dice = np.random.default_rng(2)
    alike = dice.chisquare(9, (500, EARLIER)) / 9
    unlike = alike * np.exp(2 * dice.standard_normal((500, EARLIER)))
    assert np.median(history_of(alike, 9).degrees) > 20
    assert np.median(history_of(unlike, 9).degrees) < 3


def test_noise_that_has_doubled_makes_a_history_claim_what_is_not_so() -> None:
    shape = (2000, 3, 2)
    y, history = drawn(WORLDS["twice as noisy"], shape, np.random.default_rng(3))
    said = {name: outcome(rule(y, history), ours(y), 2) for name, rule in CANDIDATES.items()}
    assert said["no history (ours)"].false < 0.05
    assert said["as much as they agree"].false > 0.1
