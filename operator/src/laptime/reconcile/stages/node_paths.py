"""Between two trials: what the nodes of generators and servers exchange, once for each pair.

Where pods go the first trial decides, so it is measured after that one, when nothing else of the
run sends anything. Figures do not wait for it: what cannot be measured is said, and not tried
again.
"""

from __future__ import annotations

from laptime.api.node_path import MOST_PATHS, NodePath
from laptime.api.status import State
from laptime.manifests.context import Component
from laptime.manifests.node_path import (
    PATH_SECONDS,
    path_generator_job,
    path_names,
    path_server_job,
)
from laptime.plan import in_time
from laptime.reconcile.actions import Create, Decision, Delete
from laptime.reconcile.diagnose import Problem, diagnose
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.stages.verdicts import verdict_in
from laptime.reconcile.views import PodView, WorkloadView

_SOON_SECONDS = 1.0
# The kubelet ends these pods after PATH_SECONDS: who still seems to be there is on a node that is
# gone, and holds up no trial.
_GONE_SECONDS = 3.0 * PATH_SECONDS


def measure_node_paths(situation: Situation) -> Decision | None:
    """Measure the next pair of nodes; None when all are known and nothing of it is left."""
    if situation.under_way():
        return None
    number = len(situation.node_paths) + 1
    pair = _next_pair(situation)
    begun = path_names(situation.context, number)[0] in situation.observed.jobs
    if pair is None or not begun:
        if not _ended(situation, number):
            said = "ending what measured the network between nodes"
            return _decision(situation, said)
        if pair is None:
            return None
    _go_on(situation, number, *pair)
    return _decision(situation, f"measuring the network from node {pair[0]} to {pair[1]}")


def _decision(situation: Situation, said: str) -> Decision:
    situation.progressing("Preparing", said)
    return situation.decision(State.RUNNING, requeue_seconds=_SOON_SECONDS)


def _next_pair(situation: Situation) -> tuple[str, str] | None:
    """Return two nodes of the last measured trial of which nothing is known yet."""
    known = {(one.generator_node, one.server_node) for one in situation.node_paths}
    measured = [one for one in situation.observed.results.values() if one.figures is not None]
    if not measured or len(known) >= MOST_PATHS:
        return None
    last = list(in_time(measured))[-1]
    pairs = (
        (generator, server)
        for generator in dict.fromkeys(last.nodes.get("generator", ()))
        for server in last.nodes.get("server", ())
        if generator != server
    )
    return next((pair for pair in pairs if pair not in known), None)


def _ended(situation: Situation, number: int) -> bool:
    """Have the Jobs of all paths go; return whether nothing of them is alive."""
    numbers = range(1, number + 1)
    names = {name for one in numbers for name in path_names(situation.context, one)}
    jobs = [
        job
        for name, job in situation.observed.jobs.items()
        if name in names and job.age(situation.now) < _GONE_SECONDS
    ]
    situation.actions += [Delete("Job", job.name) for job in jobs if not job.deleting]
    pods = (
        pod
        for component in (Component.PATH_SERVER, Component.PATH_GENERATOR)
        for pod in situation.observed.pods_of(component)
    )
    return not jobs and all(pod.ended or pod.age(situation.now) >= _GONE_SECONDS for pod in pods)


def _go_on(situation: Situation, number: int, generator: str, server: str) -> None:
    """Take a path a step further: who serves, who asks, what was found."""
    serving, asking = path_names(situation.context, number)
    job = situation.observed.jobs.get(serving)
    refusal = situation.observed.refusal
    if job is None and refusal is not None:
        # A quota that has room for trials alone, or what keeps them from going on, too.
        path = NodePath(generator_node=generator, server_node=server, message=refusal.message)
        situation.remember_path(path)
        return
    if job is None:
        situation.actions.append(Create(path_server_job(situation.context, number, server)))
        return
    # Nothing of an earlier path is alive.
    served = [one for one in situation.observed.pods_of(Component.PATH_SERVER) if _of(one, job)]
    asked = [one for one in situation.observed.pods_of(Component.PATH_GENERATOR) if _of(one, job)]
    found = verdict_in(asked)
    if found is not None:
        situation.remember_path(_path(generator, server, found))
        return
    asks = situation.observed.jobs.get(asking)
    late = job.age(situation.now) >= PATH_SECONDS
    if late or (asks is not None and asks.failed_reason) or job.failed_reason:
        problem = _problem(situation, served, asked, asks is not None)
        said = problem.message if problem else f"nothing was found in {PATH_SECONDS} s"
        situation.remember_path(
            NodePath(generator_node=generator, server_node=server, message=said)
        )
        return
    address = next((pod.address for pod in served if pod.phase == "Running" and pod.address), None)
    if asks is None and address is not None:
        made = path_generator_job(situation.context, number, generator, address)
        situation.actions.append(Create(made))


def _of(pod: PodView, job: WorkloadView) -> bool:
    """Return whether a pod is of a path that began with a Job, and of no earlier one."""
    return pod.created >= job.created


def _problem(
    situation: Situation, served: list[PodView], asked: list[PodView], asks: bool
) -> Problem | None:
    what = "what measures the network"
    return diagnose(what, asked if asks else served, situation.now)


def _path(generator: str, server: str, found: dict[str, object]) -> NodePath:
    """Return what was found; a program of another version may say something else."""
    try:
        path = NodePath.model_validate({**found, "generatorNode": generator, "serverNode": server})
    except ValueError:
        return NodePath(
            generator_node=generator, server_node=server, message="what was found has another form"
        )
    return path
