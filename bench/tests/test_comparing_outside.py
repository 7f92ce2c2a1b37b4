"""What a reading explains of noise, on noise of which that is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from outside import explained


def made(slope: float, left: float, seed: int, runs: int = 40) -> list[list[dict[str, Any]]]:
    """Return runs of four servers in four repetitions whose noise a reading explains in part."""
    dice = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        others, rest = dice.normal(0.4, 0.2, (4, 4)), dice.normal(0, left, (4, 4))
        server, repetition = dice.normal(0, 1, 4), dice.normal(0, 1, 4)
        found.append(
            [
                {
                    "server": f"s{place}",
                    "repetition": number,
                    # Servers and repetitions differ by far more than that, which goes out.
                    "p99": math.exp(
                        server[place]
                        + repetition[number]
                        + slope * others[number, place]
                        + rest[number, place]
                    ),
                    "during": others[number, place],
                }
                for number in range(4)
                for place in range(4)
            ]
        )
    return found


def test_a_reading_explains_what_it_was_made_to() -> None:
    found = explained(made(-0.5, 0.1, seed=1), "p99", "during")
    assert found is not None
    # Half of the variance: 0.5 times 0.2 beside 0.1.
    assert found.together == pytest.approx(0.5, abs=0.08)
    assert found.slope == pytest.approx(-0.5, abs=0.08)
    assert found.runs == 40


def test_what_has_nothing_to_do_with_it_explains_what_chance_does() -> None:
    found = explained(made(0.0, 0.1, seed=2), "p99", "during")
    assert found is not None
    assert found.chance == pytest.approx(1 / 9)
    assert found.share == pytest.approx(found.chance, abs=0.04)
    assert found.together < 0.02


def test_trials_without_the_reading_are_left_out_and_runs_with_few_of_them() -> None:
    (run,) = made(-0.5, 0.1, seed=3, runs=1)
    for one in run[:3]:
        one["during"] = None
    found = explained([run], "p99", "during")
    assert found is not None
    assert found.chance == pytest.approx(1 / 6)
    for one in run[:7]:
        one["during"] = None
    assert explained([run], "p99", "during") is None
