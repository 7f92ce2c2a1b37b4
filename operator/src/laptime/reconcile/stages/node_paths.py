"""Between two trials: what the nodes of generators and servers exchange, once for each pair.

Where pods go the first trial decides, so it is measured after that one, when nothing else of the
run sends anything. Figures do not wait for it: what cannot be measured is said, and not tried
again.
"""

from __future__ import annotations

from collections.abc import Sequence

from laptime.api.node_path import MOST_PATHS, NodePath
from laptime.api.results import TrialResult
from laptime.api.status import State
from laptime.api.text import plain
from laptime.manifests.node_path import (
    PATH_SECONDS,
    path_generator_job,
    path_names,
    path_server_job,
)
from laptime.manifests.objects import Component
from laptime.plan import in_time
from laptime.reconcile.actions import Create, Decision, Delete
from laptime.reconcile.diagnose import diagnose
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.stages.verdicts import verdict_in
from laptime.reconcile.views import PodView, WorkloadView

_SOON_SECONDS = 1.0
_LONGEST_SECONDS = 2.0 * PATH_SECONDS
"""So long after a trial nothing else is done for it, whatever is known by then."""
_MOST_UNKNOWN = 2
_LONGEST_MESSAGE = 300
_ENDING = "ending what measured the network between nodes"
_COMPONENTS = (Component.PATH_SERVER, Component.PATH_GENERATOR)


def measure_node_paths(situation: Situation) -> Decision | None:
    """Measure the next pair of nodes; None when there is none, or when it takes too long."""
    if situation.under_way() or _next_trial_is_set_up(situation):
        return None
    number = len(situation.node_paths) + 1
    begun = path_names(situation.context, number)[0] in situation.observed.jobs
    late = situation.step_seconds(State.RUNNING) >= _LONGEST_SECONDS
    pair = None if late else _next_pair(situation)
    if pair is None or not begun:
        # What a node that is gone still seems to run is no trial's affair for ever.
        if not _ended(situation, number) and not late:
            return _decision(situation, _ENDING)
        if pair is None:
            return None
    _go_on(situation, number, *pair)
    return _decision(situation, f"measuring the network from node {pair[0]} to {pair[1]}")


def _next_trial_is_set_up(situation: Situation) -> bool:
    """Return whether the next trial was begun with already: it is not left for this any more."""
    left = situation.trials_left()
    return bool(left) and situation.run.status.current_trial == situation.attempt(left[0]).name


def _decision(situation: Situation, said: str) -> Decision:
    situation.progressing("Preparing", said)
    return situation.decision(State.RUNNING, requeue_seconds=_SOON_SECONDS)


def _next_pair(situation: Situation) -> tuple[str, str] | None:
    """Return two nodes that the last measured trial was the first one on, and nothing is known of.

    Or one of the last two, which were measured at the same time.

    Once, whatever comes of it: after the trials that follow it nobody asks again.
    """
    paths = situation.node_paths
    unknown = [one for one in paths if one.message is not None]
    measured = [one for one in situation.observed.results.values() if one.figures is not None]
    if not measured or len(paths) >= MOST_PATHS or len(unknown) >= _MOST_UNKNOWN:
        return None
    *earlier, last = in_time(measured)
    newest = [last, *(one for one in earlier if one.attempt_name == last.beside)]
    known = {(one.generator_node, one.server_node) for one in paths}
    known.update(pair for one in earlier if one not in newest for pair in _pairs(one))
    return next((pair for one in newest for pair in _pairs(one) if pair not in known), None)


def _pairs(result: TrialResult) -> list[tuple[str, str]]:
    """Return each node of a trial's generators with each of its server, where they are apart."""
    return [
        (generator, server)
        for generator in dict.fromkeys(result.nodes.get("generator", ()))
        for server in result.nodes.get("server", ())
        if generator != server
    ]


def _ended(situation: Situation, number: int) -> bool:
    """Have the Jobs of all paths go; return whether nothing of them is alive."""
    numbers = range(1, number + 1)
    names = {name for one in numbers for name in path_names(situation.context, one)}
    jobs = [job for name, job in situation.observed.jobs.items() if name in names]
    situation.actions += [Delete("Job", job.name) for job in jobs if not job.deleting]
    pods = [pod for one in _COMPONENTS for pod in situation.observed.pods_of(one)]
    return not jobs and all(pod.ended or pod.stuck(situation.now) for pod in pods)


def _go_on(situation: Situation, number: int, generator: str, server: str) -> None:
    """Take a path a step further: who serves, who asks, what was found."""
    serving, asking = path_names(situation.context, number)
    jobs, refusal = situation.observed.jobs, situation.observed.refusal
    serves, asks = jobs.get(serving), jobs.get(asking)
    # Nothing of an earlier path is alive.
    served, asked = (
        job.own(situation.observed.pods_of(one)) if job else []
        for one, job in zip(_COMPONENTS, (serves, asks), strict=True)
    )
    found = verdict_in(asked)
    if found is not None:
        situation.remember_path(_path(generator, server, found))
        return
    said = _why_not(situation, [one for one in (serves, asks) if one], asked or served)
    if refusal is not None and (serves is None or asks is None):
        # A quota that has room for trials alone, or what keeps them from going on, too.
        said = refusal.message
    if said is not None:
        situation.remember_path(_unknown(generator, server, said))
    elif serves is None:
        situation.actions.append(Create(path_server_job(situation.context, number, server)))
    elif asks is None and (address := _address(served)) is not None:
        made = path_generator_job(situation.context, number, generator, address)
        situation.actions.append(Create(made))


def _address(served: Sequence[PodView]) -> str | None:
    return next((pod.address for pod in served if pod.phase == "Running" and pod.address), None)


def _why_not(
    situation: Situation, jobs: Sequence[WorkloadView], pods: Sequence[PodView]
) -> str | None:
    """Return why nothing will be found any more; None while it may."""
    failed = next((one for one in jobs if one.failed_reason), None)
    late = bool(jobs) and jobs[0].age(situation.now) >= PATH_SECONDS
    if failed is None and not late:
        return None
    ends = [one for pod in pods for one in pod.containers if one.exit_code]
    if ends:
        last = ends[-1]
        words = " ".join(one for one in (last.exit_reason, last.exit_message) if one)
        return f"what measures it ended with exit code {last.exit_code}: {words or 'no word'}"
    problem = diagnose("what measures it", pods, situation.now)
    if problem is not None:
        return problem.message
    if not pods:
        # The Job, which could say more, is not kept.
        return "its pod was not made: a quota, or what checks pods, may have refused it"
    if failed is not None and not late:
        return f"{failed.failed_reason}: {failed.failed_message}"
    return f"nothing was found in {PATH_SECONDS} s"


def _unknown(generator: str, server: str, said: str) -> NodePath:
    return NodePath(
        generator_node=generator,
        server_node=server,
        message=plain(said.strip())[:_LONGEST_MESSAGE],
    )


def _path(generator: str, server: str, found: dict[str, object]) -> NodePath:
    """Return what was found; a program of another version may say something else."""
    try:
        path = NodePath.model_validate({**found, "generatorNode": generator, "serverNode": server})
    except ValueError:
        return _unknown(generator, server, "what was found has another form")
    if path.message is not None or not found.get("ok"):
        return _unknown(generator, server, path.message or "nothing was found")
    return path
