"""Whether the tiers of a run stand, and since when."""

from __future__ import annotations

import re
from dataclasses import replace

from laptime.api.attempts import Fault
from laptime.api.conditions import Verdict
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.api.topology import SIZED_TIERS
from laptime.reconcile.diagnose import (
    Part,
    Problem,
    diagnose,
    diagnose_refusal,
    late,
    not_ready,
    scaled_to_none,
    stands,
    taken_away,
    too_many,
    words_lost,
)
from laptime.reconcile.fault import whose_fault
from laptime.reconcile.stages.rests_on import new_since
from laptime.reconcile.stages.side_services import fresh_components
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.views import PodView, WorkloadView

_OWN = {**SIZED_TIERS, "upstream": "the upstream", "delay": "the delay"}


def tier_names(situation: Situation) -> list[str]:
    """Return the components of the tiers of this run: its own, and the services of its scenario."""
    return list(tier_titles(situation))


def tier_titles(situation: Situation) -> dict[str, str]:
    """Return the same with what they are called."""
    topology = situation.spec.topology
    own = {name: said for name, said in _OWN.items() if getattr(topology, name) is not None}
    return own | {one.component: one.title for one in situation.context.scenario.services}


def _standing(situation: Situation) -> dict[str, str]:
    """Return the tiers that stand all the time, by component, with their titles.

    A service of which each trial has a fresh pod is one of them until the first server is checked.
    """
    fresh: list[str] = []
    if situation.run.status.state in (State.VERIFYING, State.RUNNING):
        fresh = fresh_components(situation)
    return {name: said for name, said in tier_titles(situation).items() if name not in fresh}


def tiers_ready(situation: Situation) -> bool:
    """Say in `TiersReady` how the tiers are, and return whether they all stand.

    A tier that cannot come up, or does not in time, fails the run while there is a trial left.
    """
    problems: list[Problem] = []
    waiting: list[str] = []
    standing = _standing(situation)
    for name, title in standing.items():
        pods = situation.observed.pods_of(name)
        if stands(pods):
            continue
        waiting.append(title)
        problem = _problem(situation, name, title, pods)
        if problem is not None:
            problems.append(problem.of(Part.TIER))
    if not waiting:
        situation.say(
            Verdict(
                ConditionType.TIERS_READY,
                ConditionStatus.TRUE,
                "Ready",
                ", ".join(tier_titles(situation).values()) or "none needed",
            )
        )
        return True
    first = situation.tiers_problem = problems[0] if problems else None
    situation.say(
        Verdict(
            ConditionType.TIERS_READY,
            ConditionStatus.FALSE,
            first.reason if first else "Starting",
            first.message if first else f"waiting for {', '.join(waiting)}",
        )
    )
    if first is not None and _hopeless(situation, first):
        if situation.measured():
            # A profile more or less does not fail a run.
            situation.tiers_lost = first
        else:
            situation.fail(first)
    return False


def tier_pods(situation: Situation) -> list[PodView]:
    """Return the pods of all tiers of the run."""
    return [pod for name in tier_names(situation) for pod in situation.observed.pods_of(name)]


def tier_trouble(situation: Situation, job: WorkloadView) -> Problem | None:
    """Return what happened to a tier since the Job of a trial or a check was made, or None.

    Whatever a server did meanwhile, it did without its database or its proxy.
    """
    for name, what in tier_titles(situation).items():
        pods = situation.observed.pods_of(name)
        # One that was evicted stays to be seen, long after another one took its place.
        problem = taken_away(what, pods[-1:]) or too_many(what, pods)
        if problem is None and any(new_since(pod, job) for pod in pods):
            said = diagnose(what, pods, situation.now)
            text = f": {said.message}" if said else ""
            problem = Problem("TierRestarted", f"{what} was started again meanwhile{text}")
        if problem is None and not any(pod.ready for pod in pods):
            text = f"{what} is not ready any more"
            problem = diagnose(what, pods, situation.now) or Problem("TierLost", text)
        if problem is not None:
            return problem.of(Part.TIER)
    return None


def _problem(situation: Situation, name: str, what: str, pods: list[PodView]) -> Problem | None:
    limit = situation.spec.startup_seconds
    deployment = situation.observed.deployments.get(f"{situation.run.name}-{name}")
    refused = diagnose_refusal(what, deployment, situation.without_resources)
    problem = (
        refused
        or too_many(what, pods)
        or scaled_to_none(what, deployment)
        or diagnose(what, pods, situation.now)
    )
    if problem is not None and problem.reason in ("Crashed", "CrashLoop") and name in _OWN:
        problem = words_lost(what, pods) or _in_the_scenario(situation, problem)
    if problem is not None or not _since_seconds(situation) >= limit:
        return problem
    if not pods:
        return situation.explained(not_ready(what, pods, limit))
    return late(what, pods, situation.observed.kubelets, limit, situation.now)


def _in_the_scenario(situation: Situation, problem: Problem) -> Problem:
    """Return the same problem, with the place in the scenario instead of a file in the pod."""
    message = problem.message
    for file, place in situation.context.scenario.sql_places.items():
        message = re.sub(rf"psql:\S*/{re.escape(file)}:(\d+):", rf"{place}, line \1:", message)
    return replace(problem, message=message)


def _hopeless(situation: Situation, problem: Problem) -> bool:
    """Whether a tier is waited for no longer.

    Once servers were measured on it, it could come up, and something has happened to it; so it is
    once they are checked on it and it is not ready any more. So may what the cluster itself did to
    it, or did not do yet, once that is well again, and a registry that is away.
    """
    state = situation.run.status.state
    gone_again = state is State.VERIFYING and problem.reason == "NotReady"
    if state is State.RUNNING or gone_again or problem.passes or _of_the_cluster(problem):
        return _since_seconds(situation) >= situation.patience_seconds
    return problem.fatal or _since_seconds(situation) >= situation.spec.startup_seconds


def _of_the_cluster(problem: Problem) -> bool:
    fault = whose_fault(problem.reason, Part.TIER, once_well=False)
    return fault in (Fault.NODE, Fault.CLUSTER)


def _since_seconds(situation: Situation) -> float:
    return situation.condition_seconds(ConditionType.TIERS_READY, ConditionStatus.FALSE)
