"""The services around the servers: in their first state before each trial and each check."""

from __future__ import annotations

from dataclasses import replace

from laptime.api.side_services import SideService
from laptime.api.status import State
from laptime.api.text import plain
from laptime.manifests.side_services import (
    reset_job,
    reset_name,
    side_service_deployment,
    side_service_name,
    side_service_service,
)
from laptime.reconcile.actions import Apply, Create, Delete
from laptime.reconcile.diagnose import (
    Part,
    Problem,
    diagnose,
    diagnose_refusal,
    late,
    not_ready,
    stands,
    taken_away,
    too_many,
)
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.stages.verdicts import verdict_in
from laptime.reconcile.views import PodView, WorkloadView

_FAILED = "ServiceResetFailed"
_TOO_LONG = "DeadlineExceeded"
_SHOWN = 300


def side_services_ready(situation: Situation, purpose: str, left_alone: bool) -> bool:
    """Have a fresh pod of each service that needs one; return whether all services are ready.

    Unless `left_alone`, something of an earlier trial lives that could write to a new one.
    """
    settled = True
    for one in situation.context.scenario.services:
        current = situation.observed.deployments.get(side_service_name(situation.context, one))
        if one.fresh and (current is None or current.trial != purpose):
            if left_alone:
                # Its Service first: nothing of this trial gets to the pod of the one before.
                situation.actions += [
                    Apply(side_service_service(situation.context, one, purpose)),
                    Apply(side_service_deployment(situation.context, one, purpose)),
                ]
            settled = False
        settled = settled and stands(_pods(situation, one, purpose))
    return settled


def side_services_reset(situation: Situation, purpose: str, left_alone: bool) -> bool:
    """Have each service reset that says how; return whether it is done for this purpose.

    None is begun unless the services are `left_alone`: what a server writes while it ends, or when
    it starts, is then undone by the reset, or comes after it.
    """
    done = True
    prefix = f"{situation.run.name}-reset-"
    for name, job in situation.observed.jobs.items():
        if name.startswith(prefix) and job.trial != purpose and not job.deleting:
            situation.actions.append(Delete("Job", name))
    for one in situation.context.scenario.services:
        if one.reset is None:
            continue
        name = reset_name(situation.context, one, purpose)
        found = situation.observed.jobs.get(name)
        if found is None:
            if left_alone:
                job_of_it = reset_job(situation.context, one, one.reset, purpose)
                situation.actions.append(Create(job_of_it))
        elif (
            found.failed_reason is not None and not found.deleting and _lost(situation, one, found)
        ):
            # It was nobody's doing, and is done again.
            situation.actions.append(Delete("Job", name))
        done = done and found is not None and _is_done(situation, one, found)
    return done


def reset_again(situation: Situation, purpose: str) -> None:
    """Have services reset once more for a purpose that begins anew under the same name."""
    for one in situation.context.scenario.services:
        name = reset_name(situation.context, one, purpose)
        job = situation.observed.jobs.get(name)
        if one.reset is not None and job is not None and not job.deleting:
            situation.actions.append(Delete("Job", name))


def side_problem(situation: Situation, purpose: str) -> Problem | None:
    """Return what keeps a service from being in its first state; fatal when its time is over."""
    for one in situation.context.scenario.services:
        problem = _pod_problem(situation, one, purpose) if one.fresh else None
        if one.reset is not None:
            job = situation.observed.jobs.get(reset_name(situation.context, one, purpose))
            problem = _reset_problem(situation, one, job) if job is not None else None
        if problem is not None:
            return problem.of(Part.TIER)
    return None


def fresh_components(situation: Situation) -> list[str]:
    """Return the components of which each trial has a pod to itself, beside its server."""
    return [one.component for one in situation.context.scenario.services if one.fresh]


def _pods(situation: Situation, one: SideService, purpose: str) -> list[PodView]:
    return situation.observed.pods_of(one.component, trial=purpose if one.fresh else None)


def _pod_problem(situation: Situation, one: SideService, purpose: str) -> Problem | None:
    pods, limit = _pods(situation, one, purpose), situation.spec.startup_seconds
    if stands(pods):
        return None
    deployment = situation.observed.deployments.get(side_service_name(situation.context, one))
    checked_for = situation.step_seconds(State.VERIFYING)
    refused = diagnose_refusal(one.title, deployment, situation.without_resources)
    if refused is not None:
        return replace(refused, fatal=refused.fatal or checked_for >= limit)
    longest = situation.patience_seconds
    if not pods and max(checked_for, situation.step_seconds(State.RUNNING, purpose)) >= longest:
        # Not fatal: that a trial never begins, no other attempt of it would change.
        return replace(not_ready(one.title, pods, longest), fatal=False)
    problem = too_many(one.title, pods) or diagnose(one.title, pods, situation.now)
    if problem is not None and problem.fatal:
        return problem
    if problem is not None and problem.passes:
        limit = longest
    return late(one.title, pods, situation.observed.kubelets, limit, situation.now) or problem


def _reset_pods(situation: Situation, one: SideService, job: WorkloadView) -> list[PodView]:
    return job.own(situation.observed.pods_of(one.reset_component, trial=job.trial))


def _ended_well(situation: Situation, one: SideService, job: WorkloadView) -> bool:
    """Whether a reset has ended well: its Job does not while the cluster's container is there.

    That pod is Running; of one that a kubelet refuses or evicts nobody knows what it has done.
    """
    pods = [
        pod
        for pod in _reset_pods(situation, one, job)
        if pod.once and pod.ended and pod.phase == "Running" and not pod.deleting
    ]
    return job.complete or any(all(part.exit_code == 0 for part in pod.own) for pod in pods)


def _is_done(situation: Situation, one: SideService, job: WorkloadView) -> bool:
    if job.deleting or not _ended_well(situation, one, job):
        return False
    if one.reset is None or one.reset.request is None:
        return True
    verdict = verdict_in(_reset_pods(situation, one, job))
    return verdict is not None and bool(verdict.get("ok"))


def _lost(situation: Situation, one: SideService, job: WorkloadView) -> bool:
    """Whether a reset that failed came to nothing by what became of its pod."""
    if job.failed_reason == _TOO_LONG:
        return False
    pods = _reset_pods(situation, one, job)
    gone = not pods or any(pod.deleting for pod in pods)
    return gone or taken_away(f"the reset of {one.title}", pods) is not None


def _reset_problem(situation: Situation, one: SideService, job: WorkloadView) -> Problem | None:
    what, pods = f"the reset of {one.title}", _reset_pods(situation, one, job)
    limit = situation.spec.startup_seconds
    verdict = verdict_in(pods)
    if verdict is not None and not verdict.get("ok"):
        return Problem(_FAILED, f"{what} failed: {verdict.get('message')}", fatal=True)
    if job.deleting or _ended_well(situation, one, job):
        return None
    too_long = Problem(_FAILED, f"{what} did not end within {limit:g} s", fatal=True)
    if job.failed_reason is None:
        problem = taken_away(what, pods) or diagnose(what, pods, situation.now)
        if job.age(situation.now) < limit:
            return problem
        late_one = too_long if pods else not_ready(what, pods, limit)
        return replace(problem or late_one, fatal=True)
    if job.failed_reason == _TOO_LONG:
        return too_long
    if _lost(situation, one, job):
        return taken_away(what, pods)
    return Problem(_FAILED, f"{what} failed: {_last_words(pods)}", fatal=True)


def _last_words(pods: list[PodView]) -> str:
    ended = [one for pod in pods for one in pod.containers if one.exit_code]
    if not ended:
        return "its pod did not end well"
    said = plain((ended[-1].exit_message or "").strip()[-_SHOWN:])
    return f"exit code {ended[-1].exit_code}{'; it said: ' if said else ''}{said}"
