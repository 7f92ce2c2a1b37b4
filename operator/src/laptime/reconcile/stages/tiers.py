"""Whether the tiers of a run stand, and since when."""

from __future__ import annotations

from laptime.api.conditions import Verdict
from laptime.api.status import ConditionStatus, ConditionType
from laptime.reconcile.diagnose import Problem, diagnose, diagnose_refusal, not_ready
from laptime.reconcile.stages.situation import Situation

_TITLES = {
    "postgres": "Postgres",
    "pgbouncer": "PgBouncer",
    "haproxy": "HAProxy",
    "upstream": "the upstream",
    "delay": "the delay",
}


def tier_names(situation: Situation) -> list[str]:
    """Return the components of the tiers that this run has."""
    topology = situation.spec.topology
    return [name for name in _TITLES if getattr(topology, name) is not None]


def tiers_ready(situation: Situation) -> bool:
    """Say in `TiersReady` how the tiers are, and return whether they all stand.

    A tier that cannot come up, or does not in time, fails the run while there is a trial left.
    """
    problems: list[Problem] = []
    waiting: list[str] = []
    for name in tier_names(situation):
        pods = situation.observed.pods_of(name)
        if pods and pods[-1].ready and not pods[-1].deleting:
            continue
        waiting.append(_TITLES[name])
        deployment = situation.observed.deployments.get(f"{situation.run.name}-{name}")
        problem = diagnose_refusal(_TITLES[name], deployment) or diagnose(
            _TITLES[name], pods, situation.now
        )
        if problem is None and _overdue(situation):
            problem = not_ready(_TITLES[name], pods, situation.spec.startup_seconds)
        if problem is not None:
            problems.append(problem)
    if not waiting:
        situation.say(
            Verdict(
                ConditionType.TIERS_READY,
                ConditionStatus.TRUE,
                "Ready",
                ", ".join(_TITLES[name] for name in tier_names(situation)) or "none needed",
            )
        )
        return True
    first = problems[0] if problems else None
    situation.say(
        Verdict(
            ConditionType.TIERS_READY,
            ConditionStatus.FALSE,
            first.reason if first else "Starting",
            first.message if first else f"waiting for {', '.join(waiting)}",
        )
    )
    if first is not None and (first.fatal or _overdue(situation)):
        if situation.measured():
            # A profile more or less does not fail a run.
            situation.tiers_lost = first
        else:
            situation.fail(first)
    return False


def _overdue(situation: Situation) -> bool:
    since = situation.condition_since(ConditionType.TIERS_READY, ConditionStatus.FALSE)
    if since is None:
        return False
    return (situation.now - since).total_seconds() >= situation.spec.startup_seconds
