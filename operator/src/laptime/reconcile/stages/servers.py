"""The servers of a trial: their pods run, those of all others do not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from laptime.api.status import State
from laptime.manifests.server import server_deployment, server_service
from laptime.manifests.verifier import check_seconds
from laptime.plan import Trial
from laptime.reconcile.actions import Apply
from laptime.reconcile.diagnose import (
    Problem,
    diagnose,
    diagnose_refusal,
    late,
    not_ready,
    taken_away,
    too_many,
)
from laptime.reconcile.stages.rests_on import came_since, on_these_pods
from laptime.reconcile.stages.side_services import (
    fresh_components,
    side_services_ready,
    side_services_reset,
)
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.stages.targets import (
    reachable,
    target_changed,
    target_pods,
    target_problem,
    target_words,
)
from laptime.reconcile.stages.tier_cpu import size_problem, tiers_sized
from laptime.reconcile.stages.tiers import tier_pods
from laptime.reconcile.views import PodView, WorkloadView

_OF_ONE_TRIAL = ("server", "generator", "profiler", "verifier")


def run_only(situation: Situation, purposes: Mapping[str, str]) -> bool:
    """Have one fresh pod of each of these servers, made for a purpose (a trial), and no others.

    Nearly always it is one server, and two where they are measured at the same time; the purpose
    that comes first is that of the services around them.

    Returns whether the Deployments say so, the pods are there and no other server's or trial's one
    is alive. The pod itself need not be ready yet, but who measures it has to know which one it is.
    A Service that is there already is left as it is, and must be ready. The services around it come
    first, ready and in their first state: it may need them when it starts. They get into that once
    nothing lives any more that could write to them, and before the server does.
    """
    live = [
        pod
        for component in _OF_ONE_TRIAL
        for pod in situation.observed.pods_of(component)
        if not (pod.ended or pod.stuck(situation.now))
    ]
    purpose = next(iter(purposes.values()))
    left_alone = all(pod.trial in purposes.values() for pod in live)
    settled = side_services_ready(situation, purpose, left_alone) and side_services_reset(
        situation, purpose, left_alone=not live
    )
    begins, order = settled, list(purposes)
    # What ends goes first, and of two that begin the one that leads.
    for one in sorted(
        situation.spec.deployed,
        key=lambda one: order.index(one.name) if one.name in purposes else -1,
    ):
        wanted = purposes.get(one.name) if begins else None
        current = situation.observed.deployments.get(f"{situation.run.name}-server-{one.name}")
        running = current.trial if current is not None and current.replicas > 0 else None
        if current is None or running != wanted:
            if wanted is not None:
                # Its Service first: a Deployment that has the trial means that the Service has it.
                service = server_service(situation.context, one, wanted)
                situation.actions.append(Apply(service))
            situation.actions.append(Apply(server_deployment(situation.context, one, wanted)))
            settled = False
    # One server alone has tiers.
    sized = len(purposes) > 1 or tiers_sized(situation, order[0], purpose, left_alone)
    alive = {
        (pod.server, pod.trial) for pod in situation.observed.pods_of("server") if not pod.deleting
    }
    deployed = {item for item in purposes.items() if situation.spec.server(item[0]).deployed}
    there = all(reachable(situation, *item) for item in purposes.items() if item not in deployed)
    single = all(too_many(*_pods_of(situation, *item)) is None for item in deployed)
    return there and settled and sized and single and alive == deployed


def never_prepared(situation: Situation, trial: Trial) -> Problem | None:
    """Return why a trial is not going to begin; None while it may.

    Its server's pod has as long as a start-up may take; so has everything else that is in the way.
    """
    limit = situation.patience_seconds
    if situation.step_seconds(State.RUNNING, trial.meeting) < limit:
        return None
    return _in_the_way(situation, trial.server, trial.name, limit, trial.beside)


def never_checked(situation: Situation, server: str, job_name: str) -> Problem | None:
    """Return why the check of a server does not come to an end; None while it may."""
    limit = situation.patience_seconds
    if job_name in situation.observed.jobs:
        limit += check_seconds(situation.context)
    if situation.step_seconds(State.VERIFYING) < limit:
        return None
    if job_name in situation.observed.jobs:
        return Problem("VerifierFailed", f"the verifier of {server} does not end", fatal=True)
    return _in_the_way(situation, server, job_name, limit)


def _in_the_way(
    situation: Situation, server: str, purpose: str, limit: float, beside: str | None = None
) -> Problem:
    pods = server_pods(situation, server, purpose)
    if not pods:
        return situation.explained(not_ready(f"server {server}", pods, limit))
    others = [pod.name for pod in others_alive(situation, (purpose, beside or purpose))]
    if not others and situation.tiers_problem is not None:
        return replace(situation.tiers_problem, fatal=True)
    why = ", and nothing says why" if situation.observed.refusal is None else ""
    if others:
        why = f", since pods did not end: {', '.join(others)}"
    return situation.explained(
        Problem("PodsInTheWay", f"nothing could be measured for {limit:g} s{why}", fatal=True)
    )


def server_pods(situation: Situation, server: str, purpose: str) -> list[PodView]:
    """Return the pods of a server that were made for a purpose, oldest first.

    Of a Service that is there already those behind it, which were made for no purpose of the run's.
    """
    if not situation.spec.server(server).deployed:
        return target_pods(situation, server)
    return situation.observed.pods_of("server", server=server, trial=purpose)


def _pods_of(situation: Situation, server: str, purpose: str) -> tuple[str, list[PodView]]:
    """Return what a server is called in messages, and its pods that were made for a purpose."""
    return f"server {server}", server_pods(situation, server, purpose)


def server_problem(situation: Situation, server: str, purpose: str) -> Problem | None:
    """Return what keeps a server from getting ready; fatal when its time is over."""
    unsized = size_problem(situation, server, purpose)
    if unsized is not None and unsized.fatal:
        return unsized
    if not situation.spec.server(server).deployed:
        return target_problem(situation, server, purpose) or unsized
    deployment = situation.observed.deployments.get(f"{situation.run.name}-server-{server}")
    what, pods = _pods_of(situation, server, purpose)
    limit = situation.spec.startup_seconds
    refused = diagnose_refusal(what, deployment, situation.without_resources)
    if refused is not None:
        late_now = situation.step_seconds(State.VERIFYING) >= limit
        return replace(refused, fatal=refused.fatal or late_now)
    own = situation.spec.server(server).image is not None
    problem = too_many(what, pods) or diagnose(what, pods, situation.now, own_image=own)
    if problem is not None and problem.fatal:
        return problem
    if problem is not None and problem.passes:
        limit = situation.patience_seconds
    kubelets = situation.observed.kubelets
    overdue = late(what, pods, kubelets, limit, situation.now, own_image=own)
    return overdue or problem or unsized


def server_taken_away(situation: Situation, server: str, purpose: str) -> Problem | None:
    """Return who or what took a server's pod away while the run needs it, or None."""
    deployment = situation.observed.deployments.get(f"{situation.run.name}-server-{server}")
    wanted = deployment is not None and not deployment.deleting and deployment.replicas > 0
    if not wanted or deployment is None or deployment.trial != purpose:
        return None
    return taken_away(*_pods_of(situation, server, purpose))


def with_pods(
    situation: Situation, server: str, purpose: str, job: dict[str, Any], beside: Iterable[str] = ()
) -> dict[str, Any]:
    """Return a Job that drives a server with the pods on which it is begun: its own, the tiers'.

    `beside` is what there is of earlier trials, in words.
    """
    pods = [*tier_pods(situation), *server_pods(situation, server, purpose)]
    return on_these_pods(job, pods, [*target_words(situation, server), *beside])


def server_replaced(
    situation: Situation, server: str, purpose: str, job: WorkloadView
) -> Problem | None:
    """Return that another pod of the server took the place of the one that a Job was begun on."""
    if not situation.spec.server(server).deployed:
        return target_changed(situation, server, job)
    what, pods = _pods_of(situation, server, purpose)
    if not any(came_since(pod, job) for pod in pods):
        return None
    replaced = Problem("PodDeleted", f"the pod of {what} was replaced while it was needed")
    return too_many(what, pods) or replaced


def others_alive(situation: Situation, purposes: Collection[str]) -> list[PodView]:
    """Return the pods of earlier trials and checks in which something may still run."""
    return [
        pod
        for component in (*_OF_ONE_TRIAL, *fresh_components(situation))
        for pod in situation.observed.pods_of(component)
        if pod.trial not in purposes and not pod.ended
    ]
