"""What a duet says of itself: how wide an interval would be of the same servers in turn."""

from __future__ import annotations

import math
from random import Random

import pytest

from laptime.analysis import wording
from laptime.analysis.duet import FEWEST, said, width_in_turn
from laptime.api.results import TrialResult


def measured(
    common: float, own: float, count: int, seed: int, slow: float = 0.0
) -> dict[str, dict[int, float]]:
    """Return logarithms of two servers, with noise of the machine and of each, and a drift."""
    random = Random(seed)
    found: dict[str, dict[int, float]] = {"a": {}, "b": {}}
    for repetition in range(1, count + 1):
        machine = random.gauss(0, common) + slow * repetition
        found["a"][repetition] = machine + random.gauss(0, own)
        found["b"][repetition] = machine + random.gauss(0, own) + 0.3
    return found


@pytest.mark.parametrize(("common", "own"), [(0.2, 0.02), (0.05, 0.02), (0.0, 0.02)])
def test_it_is_as_much_wider_as_the_noise_that_both_have_makes_it(
    common: float, own: float
) -> None:
    found = [width_in_turn(measured(common, own, 12, seed)) for seed in range(400)]
    known = sorted(one for one in found if one is not None)
    # In turn both noises count, and there are half as many repetitions.
    true = math.sqrt(2 * (2 * common**2 + 2 * own**2) / (2 * own**2))
    assert len(known) == 400
    assert 0.9 * true < known[200] < 1.1 * true


def test_a_slow_drift_is_the_same_for_neighbours_and_makes_no_difference() -> None:
    steady = [width_in_turn(measured(0.0, 0.02, 12, seed)) for seed in range(200)]
    drifting = [width_in_turn(measured(0.0, 0.02, 12, seed, slow=0.1)) for seed in range(200)]
    for one, other in zip(steady, drifting, strict=True):
        assert one is not None
        assert other == pytest.approx(one)


def test_servers_that_take_from_each_other_what_they_have_gain_nothing() -> None:
    found = []
    for seed in range(400):
        random = Random(seed)
        shifts = {repetition: random.gauss(0, 0.1) for repetition in range(1, 13)}
        found.append(width_in_turn({"a": shifts, "b": {key: -one for key, one in shifts.items()}}))
    assert sorted(one or 0.0 for one in found)[200] == pytest.approx(1, abs=0.1)


def test_of_few_repetitions_or_without_noise_nothing_is_said() -> None:
    assert width_in_turn(measured(0.1, 0.02, FEWEST - 1, 1)) is None
    assert width_in_turn(measured(0.1, 0.02, FEWEST, 1)) is not None
    assert width_in_turn({"a": dict.fromkeys(range(8), 1.0)}) is None
    exact = {"a": dict.fromkeys(range(8), 1.0), "b": dict.fromkeys(range(8), 2.0)}
    assert width_in_turn(exact) is None


def on_a_node(busy: float, others: float | None, beside: str | None = "other") -> TrialResult:
    return TrialResult.model_validate(
        {
            "trial": "one",
            "ordinal": 1,
            "server": "a",
            "load": "l",
            "repetition": 1,
            "beside": beside,
            "outcome": "Measured",
            "figures": {"requests": 1, "errors": 0, "requestsPerSecond": 1, "windowSeconds": 1},
            "usage": {
                "source": "agent",
                "complete": True,
                "nodes": [{"node": "n", "cpus": 2, "busyShare": busy, "othersCores": others}],
            },
        }
    )


def test_the_verdict_says_that_they_share_the_machine_and_what_it_gave() -> None:
    assert said({}, []) == wording.DUET
    scores = measured(0.2, 0.02, 12, 1)
    wide = wording.number(width_in_turn(scores) or 0.0)
    gave = f"in turn, an interval of the same time would be about {wide}x as wide"
    assert said(scores, [on_a_node(0.6, 0.1)]) == f"{wording.DUET}; {gave}"


@pytest.mark.parametrize(
    ("busy", "others", "beside", "full"),
    [
        (0.97, 0.1, "other", True),
        # Others fill it: that is what a duet is for.
        (0.97, 1.2, "other", False),
        (0.97, None, "other", False),
        (0.6, 0.0, "other", False),
        # Alone it shares with nobody.
        (0.97, 0.1, None, False),
    ],
)
def test_where_two_fill_the_node_themselves_it_says_to_measure_them_in_turn(
    busy: float, others: float | None, beside: str | None, full: bool
) -> None:
    trials = [on_a_node(busy, others, beside)] * 3 + [on_a_node(0.5, 0.0, beside)]
    assert ("the two fill the node" in said({}, trials)) is full
