"""What a duet says of itself: how wide an interval would be of the same servers in turn."""

from __future__ import annotations

import math
from random import Random

import pytest

from laptime.analysis import wording
from laptime.analysis.duet import FEWEST, said, width_in_turn, with_partners
from laptime.api.pairing import Pairing
from laptime.api.results import TrialResult
from laptime.plan import plan_trials
from tests.analysis.runs import make_spec


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


def trial(
    load: str = "l",
    server: str = "a",
    beside: str | None = "other",
    busy: float = 0.6,
    others: float | None = 0.1,
    node: str = "n",
) -> TrialResult:
    figures = {"requests": 1, "errors": 0, "requestsPerSecond": 1, "windowSeconds": 1}
    usage = {
        "source": "agent",
        "complete": True,
        "nodes": [{"node": "n", "cpus": 2, "busyShare": busy, "othersCores": others}],
    }
    return TrialResult.model_validate(
        {
            "trial": "one",
            "ordinal": 1,
            "server": server,
            "load": load,
            "repetition": 1,
            "beside": beside,
            "outcome": "Measured",
            "figures": figures,
            "nodes": {"server": [node]},
            "usage": usage,
        }
    )


def test_the_verdict_says_that_they_share_the_machine_and_what_it_gave() -> None:
    assert said({}, []) == []
    scores = measured(0.2, 0.02, 12, 1)
    wide = wording.number(width_in_turn(scores) or 0.0)
    gave = f"in turn, an interval of the same time would be about {wide}x as wide"
    assert said(scores, [trial()]) == [wording.DUET, gave]


def test_where_one_was_out_the_other_is_said_to_have_been_alone() -> None:
    alone = trial(beside=None, server="b")
    assert said({}, [alone]) == ["under l only b was measured, alone"]
    both = [trial("m"), trial("m", "b"), alone]
    assert said({}, both) == [wording.DUET, "under l only b was measured, alone"]
    # After a retry.
    again = [alone, trial(beside=None)]
    assert said({}, again) == ["under l each server was measured alone"]


@pytest.mark.parametrize(
    ("busy", "others", "beside", "node", "full"),
    [
        (0.97, 0.1, "other", "n", True),
        # Others fill it: that is what a duet is for.
        (0.97, 1.2, "other", "n", False),
        (0.97, None, "other", "n", False),
        (0.6, 0.0, "other", "n", False),
        # Alone it shares with nobody.
        (0.97, 0.1, None, "n", False),
        # The generators fill a node of their own.
        (0.97, 0.1, "other", "elsewhere", False),
    ],
)
def test_where_two_fill_the_node_themselves_it_says_to_measure_them_in_turn(
    busy: float, others: float | None, beside: str | None, node: str, full: bool
) -> None:
    trials = [trial(busy=busy, others=others, beside=beside, node=node)] * 3 + [trial(busy=0.5)]
    assert any("the two fill the node" in one for one in said({}, trials)) is full


def test_a_duet_goes_on_as_it_began_under_each_load() -> None:
    spec = make_spec("a", "b").model_copy(update={"pairing": Pairing.DUET})
    trials = plan_trials("demo", spec, 7, 2)
    assert with_partners(trials, []) == list(trials)
    of_a, of_b = ([one for one in trials if one.server == name] for name in "ab")
    # b is out: a alone, unless it was measured with b.
    assert [one.beside for one in with_partners(of_a, [])] == [None, None]
    load = trials[0].load
    both = [
        trial(load, one.server, one.beside).model_copy(update={"trial": one.name})
        for one in trials[:2]
    ]
    assert with_partners([of_a[1]], both) == []
    assert with_partners(trials[2:], both) == list(trials[2:])
    # What was measured alone makes all that is left so, as after a retry.
    alone = [both[0].model_copy(update={"beside": None})]
    assert [one.beside for one in with_partners([*of_b, of_a[1]], alone)] == [None] * 3
