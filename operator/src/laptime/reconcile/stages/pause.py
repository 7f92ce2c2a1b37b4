"""What ends or pauses a run that goes on: its author's wish, or the administrator's word."""

from __future__ import annotations

from laptime.api.conditions import Verdict
from laptime.api.durations import format_duration
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.reconcile.actions import Decision
from laptime.reconcile.diagnose import Problem
from laptime.reconcile.stages.finish import LONGEST_SECONDS, clean_up, finish, readings_to_come
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.turns import how_to_change

_SOON_SECONDS = 1.0


def cancel(situation: Situation) -> Decision:
    """End the run with what was measured so far; the trial that goes on is dropped."""
    situation.fail(_cancelled(situation))
    return finish(situation)


def cut_short(situation: Situation, longest_seconds: float) -> Decision:
    """End a run that has had the lane for as long as its namespace's runs may."""
    message = (
        f"it has had its turn for {format_duration(longest_seconds)}, as long as it may; "
        f"{situation.what_is_over()}, and stay. "
        f"{how_to_change(situation.run.namespace)}"
    )
    situation.fail(Problem("TurnOver", message))
    return finish(situation)


def placed_no_more(situation: Situation, reason: str, message: str) -> Decision:
    """End a run whose placement was taken from it: elsewhere its figures would be other ones."""
    situation.fail(Problem(reason, f"{message}; {situation.what_is_over()}, and stay"))
    return finish(situation)


def cancelled_before_its_turn(situation: Situation) -> Decision:
    """End a run of which nothing is in the cluster."""
    situation.fail(_cancelled(situation))
    situation.say(
        Verdict(ConditionType.PROGRESSING, ConditionStatus.FALSE, "Finished", "the run is over")
    )
    return situation.decision(State.CANCELLED, requeue_seconds=None, finished=True)


def suspend(situation: Situation) -> Decision | None:
    """Pause once no trial is under way: all that the run has deployed goes; None when it goes on.

    Its results stay.
    """
    if not situation.spec.suspend:
        resumed(situation)
        return None
    if situation.under_way():
        return None
    so_far = situation.step_seconds(State.SUSPENDING)
    if readings_to_come(situation, so_far):
        situation.progressing("Suspending", "reading what the last trials used")
        return situation.decision(State.SUSPENDING, requeue_seconds=_SOON_SECONDS)
    left = clean_up(situation)
    if left and so_far < LONGEST_SECONDS:
        situation.progressing("Suspending", "cleaning up: " + ", ".join(left))
        return situation.decision(State.SUSPENDING, requeue_seconds=_SOON_SECONDS)
    return suspended(situation)


def suspended(situation: Situation) -> Decision:
    """Say that the run pauses."""
    message = "spec.suspend is true; set it to false and the run queues again"
    situation.say(
        Verdict(ConditionType.SUSPENDED, ConditionStatus.TRUE, "Suspended", message),
        Verdict(ConditionType.PROGRESSING, ConditionStatus.FALSE, "Suspended", message),
    )
    if situation.run.status.condition(ConditionType.TIERS_READY) is not None:
        # Unknown, so that no tier is late when the run goes on.
        tiers = "the tiers come back when the run goes on"
        situation.say(
            Verdict(ConditionType.TIERS_READY, ConditionStatus.UNKNOWN, "Suspended", tiers)
        )
    done = situation.progress_so_far()
    return situation.decision(State.SUSPENDED, requeue_seconds=None, text=f"{done}, suspended")


def resumed(situation: Situation) -> None:
    """Say of a run that paused that it does so no more."""
    if situation.run.status.condition(ConditionType.SUSPENDED) is not None:
        situation.say(
            Verdict(ConditionType.SUSPENDED, ConditionStatus.FALSE, "Resumed", "the run goes on")
        )


def _cancelled(situation: Situation) -> Problem:
    return Problem("Cancelled", f"spec.cancel is true; {situation.what_is_over()}, and stay")
