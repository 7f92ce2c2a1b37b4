"""A few specs of `make fuzz`, always the same, and that it would notice what it looks for."""

from __future__ import annotations

from random import Random

import pytest

from laptime.cli.own_schemas import violations
from tests.fuzz import judge as module
from tests.fuzz.judge import Case, case, judge, manifest_of
from tests.fuzz.specs import make
from tests.reconcile.world import World


@pytest.mark.parametrize("number", range(8))
def test_a_generated_spec_is_refused_or_comes_to_its_end(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_TRIALS", 6)
    outcome = judge(case("fixed", number))
    assert outcome.problem == ""
    assert outcome.refused or outcome.state in ("Succeeded", "Failed", "Cancelled")


def test_a_scenario_that_is_nowhere_ends_the_run_in_words() -> None:
    accepted = next(
        one for one in (case("fixed", number) for number in range(50)) if not _is_refused(one)
    )
    spec = {**accepted.spec, "scenario": "users0", "suspend": False, "cancel": False}
    outcome = judge(Case(accepted.number, spec, accepted.seed))
    assert (outcome.problem, outcome.state, outcome.trials) == ("", "Failed", 0)


def test_most_specs_are_accepted_and_have_all_shapes_of_loads() -> None:
    shapes = {
        shape
        for number in range(60)
        for load in make(Random(number), 20)["loads"]
        for shape in load
    }
    assert {"closed", "open", "ramp", "stairs", "saturation", "script"} <= shapes


def test_a_traceback_and_a_hang_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = next(
        one for one in (case("fixed", number) for number in range(50)) if not _is_refused(one)
    )

    def broken(world: World) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(World, "step", broken)
    assert "KeyError: 'a bug'" in judge(accepted).problem

    def stands_still(world: World) -> None:
        world.passes += 1

    monkeypatch.setattr(World, "step", stands_still)
    assert "hangs after" in judge(accepted).problem


def _is_refused(one: Case) -> bool:
    said, _ = violations(manifest_of(one))
    return bool(said)
