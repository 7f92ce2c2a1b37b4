"""What a run needs next: a pure function of the run, of what is observed, and of the time.

Nothing is remembered between two calls but what the API server stores: the status of the run and
its objects. So the operator may be killed between any two actions, and the next call goes on.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from laptime.api.conditions import Verdict, merge_conditions
from laptime.api.results import RowState
from laptime.api.status import (
    ConditionStatus,
    ConditionType,
    RunStatus,
    ServerState,
    ServerStatus,
    State,
)
from laptime.api.storage import Storage, version_to_store
from laptime.manifests.context import RunContext
from laptime.plan import left_behind
from laptime.reconcile.actions import Decision
from laptime.reconcile.sightings import without_absence
from laptime.reconcile.stages.deploy import (
    deploy,
    does_not_fit,
    missing_config_map,
    own_scenario,
    refused,
)
from laptime.reconcile.stages.finish import finish
from laptime.reconcile.stages.images import ask_for_images
from laptime.reconcile.stages.node_paths import measure_node_paths
from laptime.reconcile.stages.pause import (
    cancel,
    cancelled_before_its_turn,
    cut_short,
    placed_no_more,
    resumed,
    suspend,
    suspended,
)
from laptime.reconcile.stages.profiles import run_profiles
from laptime.reconcile.stages.scripts import leads_out, own_scripts
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.stages.trials import run_trials
from laptime.reconcile.stages.verify import verify
from laptime.reconcile.views import Observed, Run, format_time


def decide(run: Run, observed: Observed, context: RunContext, now: datetime) -> Decision:
    """Return the next actions for the run whose turn it is, and its new status.

    Called again with what the actions led to, it comes to an end: every step either makes
    progress that the API server shows, or has a deadline.
    """
    if run.deleting or (run.status.state is not None and run.status.state.terminal):
        return Decision(run.status)
    known = without_absence(run.status, now, observed.at_work_seconds)
    run = replace(run, status=known)
    context = replace(context, secret_owners=observed.secret_owners)
    situation = Situation(run, observed, context, now)
    stays = left_behind(run.spec, situation.context.scenario)
    turn = "the run has its turn" + (f"; {stays}" if stays else "")
    situation.say(Verdict(ConditionType.ACCEPTED, ConditionStatus.TRUE, "Accepted", turn))
    if run.given_up is not None or situation.nothing_left():
        return finish(situation)
    if run.spec.cancel:
        return cancel(situation)
    if context.longest_seconds is not None and situation.used_seconds > context.longest_seconds:
        return cut_short(situation, context.longest_seconds)
    if context.placement_problem is not None:
        return placed_no_more(situation, *context.placement_problem)
    for stage in (
        suspend,
        own_scenario,
        does_not_fit,
        missing_config_map,
        leads_out,
        own_scripts,
        refused,
        ask_for_images,
        deploy,
        verify,
        measure_node_paths,
        run_trials,
        run_profiles,
    ):
        decision = stage(situation)
        if decision is not None:
            return decision
    return finish(situation)


def waiting(run: Run, context: RunContext, now: datetime) -> RunStatus:
    """Return the status of a run that has not the lane: it waits for its turn, or pauses.

    One that never had its turn and is cancelled is over with that.

    It says nothing of the place in the queue: whoever reads it can count those before it, and a run
    that ends need not change the status of all others.
    """
    situation = Situation(run, Observed(), context, now)
    good = Verdict(ConditionType.ACCEPTED, ConditionStatus.TRUE, "Accepted", "the spec is good")
    situation.say(good)
    old = run.status
    if run.spec.cancel and old.started_at is None:
        return cancelled_before_its_turn(situation).status
    if run.spec.suspend and not run.spec.cancel:
        said, text = suspended(situation).status, "suspended"
    else:
        resumed(situation)
        situation.say(
            Verdict(
                ConditionType.PROGRESSING, ConditionStatus.FALSE, "Queued", _queue(run, context)
            ),
        )
        said, text = situation.decision(State.QUEUED, requeue_seconds=None).status, "queued"
    if old.started_at is None or old.progress is None:
        progress = said.progress and said.progress.model_copy(update={"text": text})
        return said.model_copy(update={"progress": progress})
    # It paused: nothing is observed of it now, and what it has measured stays as it was said.
    text = f"{old.progress.completed}/{old.progress.total}, {text}"
    return old.model_copy(
        update={
            "state": said.state,
            "observed_generation": said.observed_generation,
            "conditions": said.conditions,
            "progress": old.progress.model_copy(update={"text": text}),
        }
    )


def _queue(run: Run, context: RunContext) -> str:
    """Return what a run waits for that waits for its turn."""
    known, placement = run.status.placement, context.placement
    if known is not None and known.lane is not None:
        return f"it goes on in lane {known.lane}, once no other run has it; namespaces take turns"
    if placement is not None and (lanes := sorted(placement.lanes)):
        where = f"in each lane of placement {placement.name} ({', '.join(lanes)})"
        return f"one run at a time is measured {where}; namespaces take turns"
    return "it is measured while no other run of this cluster is; namespaces take turns"


def asked_again(run: Run, now: datetime) -> RunStatus:
    """Return the status of a run that is over and whose failed trials are asked for again.

    What was measured stays as it is, and is not measured again. Where nothing failed, the run stays
    over. It is queued as another run would be, so it may have its turn for as long as one.
    """
    old = run.status
    retried = {"retries": run.spec.retry, "observed_generation": run.generation}
    if all(row.state is RowState.MEASURED for row in old.results or []) and old.results:
        return old.model_copy(update=retried)
    text = "failed trials are asked for again"
    verdicts = (
        Verdict(ConditionType.SUCCEEDED, ConditionStatus.UNKNOWN, "NotFinished", text),
        Verdict(ConditionType.PROGRESSING, ConditionStatus.FALSE, "Queued", text),
        Verdict(ConditionType.TIERS_READY, ConditionStatus.UNKNOWN, "Queued", text),
    )
    gone = (ConditionType.CLEANED_UP, ConditionType.OBJECTIVES_MET)
    kept = [one for one in old.conditions or [] if one.type not in gone]
    servers = [
        ServerStatus(
            name=one.name, state=ServerState.PENDING, image=one.image, leads_to=one.leads_to
        )
        if one.state is ServerState.FAILED
        else one
        for one in old.servers or []
    ]
    return old.model_copy(
        update={
            **retried,
            "state": State.QUEUED,
            "finished_at": None,
            "turn_started_at": None,
            "used_seconds": 0.0,
            "servers": servers or None,
            "storage": Storage(version=version_to_store(old.storage)),
            "conditions": merge_conditions(kept, verdicts, run.generation, format_time(now)),
        }
    )
