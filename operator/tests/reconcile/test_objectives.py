"""ObjectivesMet has three values, as objectives have three outcomes."""

from __future__ import annotations

from random import Random

import pytest

from laptime.api.status import ConditionStatus, ConditionType
from tests.reconcile.test_decide import run_to_the_end, spec_of
from tests.reconcile.world import World


@pytest.mark.parametrize(
    ("repetitions", "asked", "status", "reason"),
    [
        (2, {"metric": "errorRate", "atMost": "0.1"}, ConditionStatus.TRUE, "AllMet"),
        (2, {"metric": "errorRate", "atLeast": "0.5"}, ConditionStatus.FALSE, "ObjectivesMissed"),
        # One repetition does not say how far chance goes, whatever it measured.
        (1, {"metric": "p50", "atMost": "10m"}, ConditionStatus.UNKNOWN, "MeasuredOnce"),
        # The made-up generator's figures contradict Little's law, which says nothing of errors.
        (2, {"metric": "p50", "atMost": "10m"}, ConditionStatus.UNKNOWN, "Doubtful"),
    ],
)
def test_the_condition_says_what_came_of_all_objectives(
    repetitions: int, asked: dict[str, str], status: ConditionStatus, reason: str
) -> None:
    objective = {"server": "s0", "load": "l0", **asked}
    world = World(spec_of(1, 1, repetitions, objectives=[objective]), Random(2))
    run_to_the_end(world)
    condition = world.run.status.condition(ConditionType.OBJECTIVES_MET)
    assert condition is not None
    assert (condition.status, condition.reason) == (status, reason), condition.message
