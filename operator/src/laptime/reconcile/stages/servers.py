"""One server at a time: its pod runs, those of all others do not."""

from __future__ import annotations

from laptime.manifests.server import server_deployment, server_service
from laptime.reconcile.actions import Apply
from laptime.reconcile.diagnose import Problem, diagnose, diagnose_refusal, not_ready
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.views import PodView


def run_only(situation: Situation, server: str, purpose: str) -> bool:
    """Have one fresh pod of a server, made for a purpose (a trial), and none of any other.

    Returns whether the Deployments say so and no other server's or trial's pod is alive. The pod
    itself need not be ready yet.
    """
    settled = True
    for one in situation.spec.servers:
        wanted = purpose if one.name == server else None
        current = situation.observed.deployments.get(f"{situation.run.name}-server-{one.name}")
        running = current.trial if current is not None and current.replicas > 0 else None
        if current is None or running != wanted:
            if wanted is not None:
                # Its Service first: a Deployment that has the trial means that the Service has it.
                service = server_service(situation.context, one, wanted)
                situation.actions.append(Apply(service))
            situation.actions.append(Apply(server_deployment(situation.context, one, wanted)))
            settled = False
    return settled and not [
        pod
        for pod in situation.observed.pods_of("server")
        if not pod.deleting and (pod.server, pod.trial) != (server, purpose)
    ]


def server_pods(situation: Situation, server: str, purpose: str) -> list[PodView]:
    """Return the pods of a server that were made for a purpose, oldest first."""
    return situation.observed.pods_of("server", server=server, trial=purpose)


def server_problem(situation: Situation, server: str, purpose: str) -> Problem | None:
    """Return what keeps a server from getting ready; fatal when its time is over."""
    what = f"server {server}"
    deployment = situation.observed.deployments.get(f"{situation.run.name}-server-{server}")
    pods = server_pods(situation, server, purpose)
    problem = diagnose_refusal(what, deployment) or diagnose(what, pods, situation.now)
    if problem is not None and problem.fatal:
        return problem
    if pods and not pods[-1].ready:
        limit = situation.spec.startup_seconds
        if (situation.now - pods[-1].created).total_seconds() >= limit:
            late = problem or not_ready(what, pods, limit)
            return Problem(late.reason, late.message, fatal=True)
    return problem
