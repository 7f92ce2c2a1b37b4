"""What a run needs next: a pure function of the run, of what is observed, and of the time.

Nothing is remembered between two calls but what the API server stores: the status of the run and
its objects. So the operator may be killed between any two actions, and the next call goes on.
"""

from __future__ import annotations

from datetime import datetime

from laptime.api.conditions import Verdict
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.manifests.context import RunContext
from laptime.reconcile.actions import Decision, DeleteRun
from laptime.reconcile.queue import Turn
from laptime.reconcile.stages.deploy import deploy, impossible_load, missing_script, refused
from laptime.reconcile.stages.finish import finish
from laptime.reconcile.stages.profiles import run_profiles
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.stages.trials import run_trials
from laptime.reconcile.stages.verify import verify
from laptime.reconcile.views import Observed, Run, parse_time

_QUEUE_SECONDS = 10.0


def decide(
    run: Run, observed: Observed, turn: Turn, context: RunContext, now: datetime
) -> Decision:
    """Return the next actions for a run and its new status.

    Called again with what the actions led to, it comes to an end: every step either makes
    progress that the API server shows, or has a deadline.
    """
    if run.deleting:
        return Decision(run.status)
    if run.status.state is not None and run.status.state.terminal:
        return _after_the_end(run, now)
    situation = Situation(run, observed, context, now)
    if not turn.granted:
        return _wait_for_turn(situation, turn)

    situation.say(
        Verdict(ConditionType.ACCEPTED, ConditionStatus.TRUE, "Accepted", "the run has its turn")
    )
    failed = run.status.condition(ConditionType.SUCCEEDED)
    given_up = failed is not None and failed.status == ConditionStatus.FALSE
    if given_up or situation.nothing_left():
        return finish(situation)
    for stage in (
        impossible_load,
        missing_script,
        refused,
        deploy,
        verify,
        run_trials,
        run_profiles,
    ):
        decision = stage(situation)
        if decision is not None:
            return decision
    return finish(situation)


def _wait_for_turn(situation: Situation, turn: Turn) -> Decision:
    ahead = f", after {turn.ahead}" if turn.ahead else ""
    situation.say(
        Verdict(ConditionType.ACCEPTED, ConditionStatus.TRUE, "Accepted", "the spec is good"),
        Verdict(
            ConditionType.PROGRESSING,
            ConditionStatus.FALSE,
            "Queued",
            f"one run at a time is measured in this cluster: place {turn.position}{ahead}",
        ),
    )
    return situation.decision(
        State.QUEUED,
        requeue_seconds=_QUEUE_SECONDS,
        queue_position=turn.position,
        text=f"queued ({turn.position})",
    )


def _after_the_end(run: Run, now: datetime) -> Decision:
    ttl = run.spec.ttl_seconds_after_finished
    finished = parse_time(run.status.finished_at)
    if ttl is None or finished is None:
        return Decision(run.status)
    left = ttl - (now - finished).total_seconds()
    if left <= 0:
        return Decision(run.status, (DeleteRun(),))
    return Decision(run.status, requeue_seconds=left)
