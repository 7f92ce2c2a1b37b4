"""The last stage: everything that the run needed goes, its results stay."""

from __future__ import annotations

from collections.abc import Sequence

from laptime.api.conditions import Verdict
from laptime.api.results import ObjectiveResult, Outcome, RowState
from laptime.api.status import ConditionStatus, ConditionType, ServerState, State
from laptime.api.text import plain_lines
from laptime.catalog import UNKNOWN
from laptime.manifests.kept_scripts import kept_script_name
from laptime.manifests.result import answers_name, readings_name, results_name
from laptime.manifests.scenario import scenario_name
from laptime.reconcile.actions import Decision, Delete, Fold
from laptime.reconcile.diagnose import Problem
from laptime.reconcile.readings import Patience
from laptime.reconcile.stages.profiles import say_profiled
from laptime.reconcile.stages.readings import store_readings
from laptime.reconcile.stages.situation import Situation
from laptime.report import End
from laptime.report.document import result_files

_SOON_SECONDS = 1.0
_ONLY_VERIFIED = (
    "every server gave the answers of the scenario's contract, and nothing was measured, as "
    "spec.verifyOnly asks"
)
# Thresholds of scripts are objectives as well, and there may be many.
_NAMED = 20
_MOST_OF_A_MESSAGE = 1024
"""As conditions have it."""
# Usage and seconds of a trial come together: who gives up before, loses both of the last trials.
_READING_SECONDS = Patience().fetched_seconds + 15.0
# After the readings, longer than a pod on a lost node is waited for.
LONGEST_SECONDS = 240.0
"""So long what a run has deployed may take to go."""


def finish(situation: Situation) -> Decision:
    """Store the results of all trials together, clean up, and end the run.

    That has an end too: what could not be stored or deleted by then is said in a condition, and the
    next run has its turn.
    """
    observed = situation.observed
    so_far = situation.step_seconds(State.FINISHING)
    if readings_to_come(situation, so_far):
        situation.progressing("Finishing", "reading what the last trials used")
        return situation.decision(State.FINISHING, requeue_seconds=_SOON_SECONDS)
    leftovers = clean_up(situation)
    unstored = _store_results(situation)
    if (leftovers or unstored) and so_far < LONGEST_SECONDS:
        situation.progressing("Finishing", "cleaning up: " + ", ".join(unstored + leftovers))
        return situation.decision(State.FINISHING, requeue_seconds=_SOON_SECONDS)
    if unstored:
        # Not once more: what was folded before is deleted by somebody else from here on.
        situation.actions = [one for one in situation.actions if not isinstance(one, Fold)]
    # Not before all is stored: whoever waited for this asks for the report next.
    _say_outcome(situation)
    say_profiled(situation)
    refusal = f": {observed.refusal.message}" if observed.refusal else ""
    if leftovers:
        message = f"still there after {LONGEST_SECONDS:g} s: {', '.join(leftovers)}{refusal}"
        situation.say(
            Verdict(ConditionType.CLEANED_UP, ConditionStatus.FALSE, "ObjectsLeft", message)
        )
    if unstored and situation.outcome().status == ConditionStatus.TRUE:
        situation.fail(
            Problem("ResultsNotStored", f"single results are stored, {unstored[0]} is not{refusal}")
        )
    situation.say(
        Verdict(ConditionType.PROGRESSING, ConditionStatus.FALSE, "Finished", "the run is over")
    )
    return situation.decision(_state(situation.outcome()), requeue_seconds=0.0, finished=True)


def readings_to_come(situation: Situation, so_far: float) -> bool:
    """Store the readings that are here; return whether others are still waited for.

    The last trial's samples are on their way; the figures of the run rest on them.
    """
    store_readings(situation)
    observed = situation.observed
    return bool(observed.readings or observed.unread) and so_far < _READING_SECONDS


def _store_results(situation: Situation) -> list[str]:
    """Have everything in the archive; return its ConfigMap while something is not."""
    observed, run = situation.observed, situation.run
    archived = observed.results_config_map is not None and not observed.archive_outdated
    if archived and observed.single <= observed.archived:
        return []
    if observed.summary is None and not observed.single:
        # A run that only verifies, and came to no answer.
        return []
    if situation.outcome().status == ConditionStatus.FALSE and run.given_up is None:
        # Said in this pass: the figures of the next one are of a run of which no more comes.
        return [f"ConfigMap {results_name(run.name)}"]
    # Before anything is deleted: it is what the run was made for.
    situation.actions.insert(0, Fold(_files(situation)))
    return [f"ConfigMap {results_name(run.name)}"]


def _files(situation: Situation) -> dict[str, str]:
    """Return the files about the whole run; none where nothing was measured."""
    observed, run = situation.observed, situation.run
    if observed.summary is None:
        return {}
    trials = [observed.results[t.name] for t in situation.trials if t.name in observed.results]
    known = situation.context.scenario
    scenario = None if known is UNKNOWN else known
    return result_files(
        run.name,
        run.namespace,
        run.spec,
        situation.seed,
        observed.summary,
        trials,
        scenario,
        run.status.placement,
        situation.node_paths,
        _end(situation),
        run.status.scripts or (),
    )


def _end(situation: Situation) -> End:
    outcome = _outcome(situation)
    succeeded = outcome.status == ConditionStatus.TRUE
    # The verdict says what came of a run that succeeded.
    message = "" if succeeded else plain_lines(outcome.message)[:_MOST_OF_A_MESSAGE]
    return End(str(_state(outcome)), outcome.reason, message)


def _state(outcome: Verdict) -> State:
    if outcome.status == ConditionStatus.TRUE:
        return State.SUCCEEDED
    return State.CANCELLED if outcome.reason == "Cancelled" else State.FAILED


def clean_up(situation: Situation) -> list[str]:
    """Delete what the results do not need; return what is still there.

    Secrets belong to ConfigMaps, and go with them.
    """
    observed, run = situation.observed, situation.run
    situation.forget_first_checks()
    keep = {
        results_name(run.name),
        scenario_name(run.name),
        *observed.results,
        *map(readings_name, observed.results),
        *observed.profiles,
        *(answers_name(run.name, server.name) for server in run.spec.servers),
        *(kept_script_name(run.name, name) for name in run.spec.script_config_maps),
    }
    doomed = [
        *(("Job", name) for name, job in observed.jobs.items() if not job.deleting),
        *(("Deployment", name) for name, one in observed.deployments.items() if not one.deleting),
        *(("Service", name) for name in observed.services),
        *(("ConfigMap", name) for name in observed.config_maps if name not in keep),
    ]
    _delete(situation, doomed)
    left = [f"{kind} {name}" for kind, name in doomed]
    left += [f"Pod {pod.name}" for pod in observed.pods if not pod.stuck(situation.now)]
    if not left:
        # After the last pod that it is about.
        _delete(situation, [("NetworkPolicy", name) for name in observed.network_policies])
        left = [f"NetworkPolicy {name}" for name in observed.network_policies]
    return left


def _delete(situation: Situation, doomed: Sequence[tuple[str, str]]) -> None:
    """Delete what is not being deleted yet: others' finalizers hold some of it for a while."""
    going = situation.observed.deleting
    situation.actions += [Delete(kind, name) for kind, name in doomed if (kind, name) not in going]


def _say_outcome(situation: Situation) -> None:
    """Say in `Succeeded` whether every server was measured, unless the run was given up before."""
    if situation.outcome().status == ConditionStatus.FALSE:
        return
    situation.say(_outcome(situation), *_objectives(situation))


def _outcome(situation: Situation) -> Verdict:
    """Return whether every server was measured, or why the run was given up before."""
    if situation.outcome().status == ConditionStatus.FALSE:
        return situation.outcome()
    failures: dict[str, str] = {}
    reason = "ServersFailed"
    for server in situation.spec.servers:
        if situation.server_state(server.name) is ServerState.FAILED:
            failures[server.name] = situation.server_message(server.name)
    for row in situation.observed.summary.rows if situation.observed.summary else []:
        if row.state in (RowState.FAILED, RowState.PENDING) and row.server not in failures:
            failures[row.server] = (
                f"server {row.server} under {row.load}: {row.message or row.reason}"
            )
    if len(failures) == len(situation.spec.servers):
        reason = "AllServersFailed"
    if failures:
        return Verdict(
            ConditionType.SUCCEEDED, ConditionStatus.FALSE, reason, "; ".join(failures.values())
        )
    summary = situation.observed.summary
    reason, words = "Completed", (summary.verdict if summary else None) or "every trial was run"
    if situation.spec.verify_only:
        reason, words = "OnlyVerified", _ONLY_VERIFIED
    return Verdict(ConditionType.SUCCEEDED, ConditionStatus.TRUE, reason, words)


def _objectives(situation: Situation) -> list[Verdict]:
    summary = situation.observed.summary
    if summary is None or not summary.objectives:
        return []
    missed = [one for one in summary.objectives if one.outcome is Outcome.MISSED]
    unknown = [one for one in summary.objectives if one.outcome is Outcome.NOT_KNOWN]
    texts = [f"{_asked(one)}, measured {one.measured}" for one in missed]
    texts += [f"{_asked(one)}: not known: {one.message or one.measured}" for one in unknown]
    more = len(texts) - _NAMED
    said = "; ".join(texts[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
    if missed:
        verdict = (ConditionStatus.FALSE, "ObjectivesMissed", said)
    elif unknown:
        verdict = (ConditionStatus.UNKNOWN, unknown[0].reason, said)
    else:
        count = len(summary.objectives)
        verdict = (ConditionStatus.TRUE, "AllMet", f"all {count} objectives are met")
    return [Verdict(ConditionType.OBJECTIVES_MET, *verdict)]


def _asked(objective: ObjectiveResult) -> str:
    return f"{objective.server} under {objective.load}: {objective.bound}"
