"""The third stage: the trials, one after the other, each result stored before the next begins."""

from __future__ import annotations

from laptime.api.results import TrialOutcome
from laptime.api.status import State
from laptime.manifests.generator import deadline_seconds, trial_job
from laptime.manifests.pods import quantity
from laptime.manifests.result import result_config_map
from laptime.measure import (
    GeneratorError,
    GeneratorResult,
    failed_trial,
    kept_payload,
    merge_results,
    parse_generator_output,
    trial_result,
)
from laptime.plan import Trial
from laptime.reconcile.actions import Create, Decision, Delete
from laptime.reconcile.diagnose import Problem, diagnose
from laptime.reconcile.stages.readings import store_readings
from laptime.reconcile.stages.servers import (
    never_prepared,
    run_only,
    server_pods,
    server_problem,
)
from laptime.reconcile.stages.situation import GRACE_SECONDS, Situation
from laptime.reconcile.stages.tiers import tier_names
from laptime.reconcile.views import PodView, WorkloadView

_SOON_SECONDS = 1.0
_MEASURING_SECONDS = 5.0
# SIGKILL, SIGTERM, and what k6 makes of SIGTERM and SIGINT.
_KILLED_CODES = (137, 143, 105)
# What the log of a generator that was ended looks like.
_CUT_SHORT = ("ResultMissing", "ResultGarbled")
# How long a Job may have no pod before its controller must have lost it.
_POD_MISSING_SECONDS = 15.0
_TIMED_OUT = Problem(
    "GeneratorTimedOut", "the generator took longer than this load ever should: it was ended"
)


def run_trials(situation: Situation) -> Decision | None:
    """Run the next trial that has no result; None when there is none left."""
    _drop_finished_jobs(situation)
    store_readings(situation)
    left = situation.trials_left()
    if not left:
        return None
    trial = left[0]
    job = situation.observed.jobs.get(trial.name)
    where = f"{trial.server} under {trial.load}, repetition {trial.repetition}"
    if job is None:
        problem = _prepare(situation, trial)
        situation.progressing("Preparing", f"setting up {where}", problem)
        return situation.decision(
            State.RUNNING, requeue_seconds=_SOON_SECONDS, current_trial=trial.name
        )
    problem = _follow(situation, trial, job)
    situation.progressing("Measuring", f"measuring {where}", problem)
    started = any(pod.ready for pod in situation.observed.pods_of("generator", trial=trial.name))
    return situation.decision(
        State.RUNNING,
        requeue_seconds=_MEASURING_SECONDS if started and not problem else _SOON_SECONDS,
        current_trial=trial.name,
    )


def _drop_finished_jobs(situation: Situation) -> None:
    """Delete Jobs whose result is stored; a failed generator that ended stays to be looked at."""
    for trial, result in situation.observed.results.items():
        job = situation.observed.jobs.get(trial)
        if job is None or job.deleting:
            continue
        alive = [pod for pod in situation.observed.pods_of("generator", trial=trial) if pod.live]
        if result.outcome is TrialOutcome.MEASURED or alive:
            situation.actions.append(Delete("Job", trial))


def _prepare(situation: Situation, trial: Trial) -> Problem | None:
    """Bring up a fresh pod of the server; start the generator when nothing else is alive."""
    settled = run_only(situation, trial.server, trial.name)
    if settled and situation.tiers_ready and not generators_alive(situation, trial):
        situation.actions.append(Create(trial_job(situation.context, trial)))
        return None
    problem = server_problem(situation, trial.server, trial.name) or never_prepared(
        situation, trial
    )
    if problem is not None and problem.fatal:
        _store_failure(situation, trial, problem)
    return problem


def generators_alive(situation: Situation, trial: Trial) -> bool:
    """Return whether an earlier generator may still send requests.

    One whose result was stored as measured has printed it: it has nothing left to send. One whose
    node was lost may be shown as running for as long as the node does not come back.
    """
    measured = {
        name
        for name, result in situation.observed.results.items()
        if result.outcome is TrialOutcome.MEASURED
    }
    return any(
        pod.trial != trial.name
        and pod.phase not in ("Succeeded", "Failed")
        and pod.trial not in measured
        and not pod.stuck(situation.now)
        for pod in situation.observed.pods_of("generator")
    )


def _follow(situation: Situation, trial: Trial, job: WorkloadView) -> Problem | None:
    """Store the trial's result once there is one, or why there will be none."""
    generators = situation.observed.pods_of("generator", trial=trial.name)
    problem = _disturbance(situation, trial, job)
    outputs = situation.observed.outputs.get(trial.name, {})
    parsed = [parse_generator_output(outputs[index]) for index in sorted(outputs)]
    errors = [one for one in parsed if isinstance(one, GeneratorError)]
    if problem is None and errors:
        problem = server_problem(situation, trial.server, trial.name) or _failure(
            situation, generators, errors
        )
    if problem is not None:
        _store_failure(situation, trial, problem)
        return problem
    results = [one for one in parsed if isinstance(one, GeneratorResult)]
    if len(results) < situation.spec.generator.parallelism:
        return _lost_or_late(situation, trial, job, generators)
    merged = merge_results(results)
    if isinstance(merged, GeneratorError):
        problem = Problem(merged.reason, merged.message)
        _store_failure(situation, trial, problem)
        return problem
    load = situation.spec.load(trial.load)
    resources = situation.spec.generator.resources
    result = trial_result(
        trial,
        merged,
        load,
        situation.context.scenario.requests,
        quantity(resources.cpu) if resources and resources.cpu else None,
    )
    payload = kept_payload(merged)
    situation.actions.append(Create(result_config_map(situation.context, result, payload)))
    return None


def _disturbance(situation: Situation, trial: Trial, job: WorkloadView) -> Problem | None:
    """Return what makes the figures of a trial worthless: a server or a tier that went down."""
    problem = server_problem(situation, trial.server, trial.name)
    if problem is not None and problem.fatal:
        return problem
    pods = server_pods(situation, trial.server, trial.name)
    if any(pod.restarts for pod in pods) or len(pods) > 1:
        return problem or Problem(
            "ServerRestarted",
            f"server {trial.server} was started again while it was measured",
        )
    for name in tier_names(situation):
        for pod in situation.observed.pods_of(name):
            if pod.last_started is not None and pod.last_started > job.created:
                return Problem(
                    "TierRestarted", f"{name} was started again while {trial.server} was measured"
                )
    return None


def _lost_or_late(
    situation: Situation, trial: Trial, job: WorkloadView, generators: list[PodView]
) -> Problem | None:
    problem = _diagnosis(situation, generators)
    age = (situation.now - job.created).total_seconds()
    longest = deadline_seconds(situation.context, situation.spec.load(trial.load)) + GRACE_SECONDS
    if job.failed_reason is not None:
        problem = problem or _job_failure(job)
        _store_failure(situation, trial, problem)
    elif age >= longest:
        # The controller of Jobs should have ended it.
        problem = problem or _TIMED_OUT
        _store_failure(situation, trial, problem)
    elif age >= _POD_MISSING_SECONDS and (
        len({pod.index for pod in generators}) < situation.spec.generator.parallelism
    ):
        problem = Problem("GeneratorLost", "the generator's pod is gone: it was deleted or killed")
        _store_failure(situation, trial, problem)
    elif problem is not None and (problem.fatal or age >= situation.spec.startup_seconds):
        _store_failure(situation, trial, problem)
    return problem or server_problem(situation, trial.server, trial.name)


def _diagnosis(situation: Situation, generators: list[PodView]) -> Problem | None:
    """Return what is wrong with the first generator that anything is wrong with."""
    problems = (diagnose("the generator", [pod], situation.now) for pod in generators)
    return next((problem for problem in problems if problem is not None), None)


def _failure(
    situation: Situation, generators: list[PodView], errors: list[GeneratorError]
) -> Problem:
    """Return why generators failed.

    When one of several fails, its Job ends the others, so what one said of itself comes first.
    """
    said = [one for one in errors if one.reason not in _CUT_SHORT]
    return (
        _diagnosis(situation, generators)
        or (_reported(said[0]) if said else None)
        or _killed(generators)
        or _reported(errors[0])
    )


def _reported(error: GeneratorError) -> Problem:
    if error.reason == "GeneratorsIncomplete":
        return Problem("GeneratorLost", f"a generator was lost: {error.message}")
    return Problem(error.reason, f"the generator failed: {error.message}")


def _killed(generators: list[PodView]) -> Problem | None:
    """Return the problem of a generator that somebody ended before it had a result."""
    codes = [one.exit_code for pod in generators for one in pod.containers]
    if any(pod.deleting for pod in generators) or any(code in _KILLED_CODES for code in codes):
        return Problem(
            "GeneratorLost", "the generator's pod was deleted or killed before it had a result"
        )
    return None


def _job_failure(job: WorkloadView) -> Problem:
    if job.failed_reason == "DeadlineExceeded":
        return _TIMED_OUT
    return Problem(
        "GeneratorLost",
        f"the generator's pod was killed or lost before it had a result ({job.failed_reason}: "
        f"{job.failed_message})",
    )


def _store_failure(situation: Situation, trial: Trial, problem: Problem) -> None:
    result = failed_trial(trial, problem.reason, problem.message)
    situation.actions.append(Create(result_config_map(situation.context, result, "")))
