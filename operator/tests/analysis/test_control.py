"""The control arm: the baseline a second time says what chance does here."""

from __future__ import annotations

import math
import random

import pytest

from laptime.analysis.control import smallest_detectable
from laptime.analysis.statistics import can_be_told_apart
from laptime.api.results import ControlResult
from laptime.plan import Trial
from tests.analysis.runs import Outcome, make_spec, steady, summary_of
from tests.analysis.test_blocks import summary_of as after_retry

SPEC = make_spec("fastapi", "axum", control=True).with_control()


def test_the_control_is_the_baseline_under_another_name_after_all_others() -> None:
    assert [server.name for server in SPEC.servers] == ["fastapi", "axum", "fastapi-control"]
    control, baseline = SPEC.server("fastapi-control"), SPEC.server("fastapi")
    assert control.model_copy(update={"name": "fastapi"}) == baseline
    assert SPEC.with_control() is SPEC
    assert SPEC.baseline_name == "fastapi"


def test_the_baseline_need_not_be_the_first_server() -> None:
    spec = make_spec("fastapi", "axum", control=True, baseline="axum").with_control()
    assert [server.name for server in spec.servers][-1] == "axum-control"


def test_without_control_nothing_is_added() -> None:
    spec = make_spec("fastapi", "axum")
    assert spec.with_control() is spec
    assert summary_of(spec, steady({"fastapi": 600.0, "axum": 900.0})).control == ()


def control_of(factor: float) -> ControlResult:
    rates = {"fastapi": 600.0, "axum": 900.0, "fastapi-control": 600.0 * factor}
    (found,) = summary_of(SPEC, steady(rates)).control
    return found


def test_a_control_like_the_baseline_says_how_small_a_difference_can_be_found() -> None:
    like = control_of(1.0)
    assert (like.load, like.differs) == ("closed", False)
    assert like.smallest_detectable is not None
    assert 0.01 <= like.smallest_detectable < 0.03


def test_a_control_that_differs_is_a_false_positive_and_the_verdict_says_so() -> None:
    assert control_of(1.1).differs
    rates = {"fastapi": 600.0, "axum": 900.0, "fastapi-control": 660.0}
    verdict = summary_of(SPEC, steady(rates)).verdict
    assert verdict.startswith("axum is fastest")
    assert "was told apart from it under closed: differences of that size are chance" in verdict


def test_a_control_that_is_not_told_apart_is_drawn_to_meet_the_baseline() -> None:
    rates = {"fastapi": 600.0, "axum": 900.0, "fastapi-control": 604.8}

    def script(trial: Trial) -> Outcome:
        return Outcome(rates[trial.server] * (1 + trial.repetition % 2 / 1000))

    summary = summary_of(SPEC, script)
    (said,) = summary.control
    baseline, _, control = (row.requests_per_second for row in summary.rows)
    assert not said.differs
    assert baseline is not None
    assert control is not None
    # Seen: 600.4 (599.9 to 600.8) beside 605.2 (604.7 to 605.6), and no difference said.
    assert baseline.high == control.low


def test_a_control_that_lost_repetitions_does_not_have_the_baseline_drawn_across_another() -> None:
    """axum is told apart from the baseline, which ends where that says."""
    spec = make_spec("fastapi", "axum", control=True, repetitions=6).with_control()
    rates = {"fastapi": 600.0, "axum": 612.0, "fastapi-control": 640.0}
    measured = {"fastapi": range(1, 5), "axum": range(1, 7), "fastapi-control": range(4, 7)}

    def script(trial: Trial) -> Outcome:
        if trial.repetition not in measured[trial.server]:
            return Outcome(0.0, failure=("ServerCrashed", "it ended"))
        return Outcome(rates[trial.server] * (1 + trial.repetition % 2 / 1000))

    baseline, axum, control = summary_of(spec, script).rows
    assert (axum.rank, baseline.rank) == (1, 2)
    ends = [one.requests_per_second for one in (baseline, axum, control)]
    of_baseline, of_axum, of_control = ends
    assert of_baseline is not None
    assert of_axum is not None
    assert of_control is not None
    assert of_baseline.high is not None
    assert of_axum.low is not None
    assert of_baseline.high < of_axum.low
    assert of_control.low == of_baseline.high


def test_a_control_that_is_told_apart_is_drawn_as_it_is() -> None:
    rates = {"fastapi": 600.0, "axum": 900.0, "fastapi-control": 660.0}
    baseline, _, control = (row.requests_per_second for row in summary_of(SPEC, steady(rates)).rows)
    assert baseline is not None
    assert control is not None
    assert (baseline.high or 0) < 610 < 650 < (control.low or 0)


def test_a_control_that_was_not_measured_says_nothing() -> None:
    def only_others(trial: Trial) -> Outcome | None:
        return None if trial.server == "fastapi-control" else Outcome(600.0)

    assert summary_of(SPEC, only_others).control == ()


@pytest.mark.parametrize("whose", ["fastapi", "fastapi-control"])
@pytest.mark.parametrize(
    ("repetitions", "again"),
    # All but one were asked for again, and of three another one failed.
    [(5, (2, 3, 4, 5)), (2, (2,)), (3, (2,))],
)
def test_a_control_measured_apart_from_the_baseline_says_nothing(
    whose: str, repetitions: int, again: tuple[int, ...]
) -> None:
    spec = make_spec("fastapi", "axum", control=True, repetitions=repetitions).with_control()
    rounds = {(whose, repetition): 1 for repetition in again}

    def script(trial: Trial) -> Outcome:
        if trial.server == whose and trial.repetition not in (1, *again):
            return Outcome(0.0, failure=("ServerCrashed", "it ended"))
        return Outcome(900.0 if trial.server == "axum" else 600.0)

    summary = after_retry(spec, script, rounds)
    assert summary.control == ()
    assert summary.rows[2].factor is None


def test_one_repetition_detects_nothing() -> None:
    assert smallest_detectable([0.1]) is None


# Where noise is small a difference has to be noticeable all the same.
@pytest.mark.parametrize("noise", [0.001, 0.03])
@pytest.mark.parametrize("repetitions", [5, 10, 20])
def test_a_difference_of_that_size_is_found_about_four_times_of_five(
    repetitions: int, noise: float
) -> None:
    dice = random.Random(3)
    rounds, found = 1500, 0
    sizes = [
        smallest_detectable([dice.gauss(0, noise) for _ in range(repetitions)]) or 0.0
        for _ in range(rounds)
    ]
    size = sum(sizes) / rounds
    for _ in range(rounds):
        one = {n: dice.gauss(0, noise) for n in range(repetitions)}
        found += can_be_told_apart(one, dict.fromkeys(one, math.log1p(size)))
    assert 0.72 <= found / rounds <= 0.9
