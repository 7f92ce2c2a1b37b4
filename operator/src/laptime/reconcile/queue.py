"""Whose turn it is: one run at a time is measured, first come, first served. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from laptime.api.status import ConditionStatus, ConditionType
from laptime.reconcile.views import Run


@dataclass(frozen=True)
class Turn:
    """Whether a run may start pods; otherwise its place in the queue and who is before it."""

    granted: bool
    position: int = 0
    ahead: str = ""


def turn_of(run: Run, runs: Iterable[Run]) -> Turn:
    """Return a run's turn among all runs of the cluster, itself included.

    A run that is active keeps its turn until it is over. When none is, the oldest one gets it that
    is neither over nor being deleted nor refused (`Accepted=False`: it cannot start anyway).
    """
    waiting = [one for one in runs if _competes(one)]
    waiting.sort(key=lambda one: (not _active(one), one.created, one.key))
    keys = [one.key for one in waiting]
    if run.key not in keys:
        return Turn(granted=False, position=len(keys) + 1)
    place = keys.index(run.key)
    if place == 0:
        return Turn(granted=True)
    namespace, name = keys[place - 1]
    return Turn(granted=False, position=place, ahead=f"{namespace}/{name}")


def _active(run: Run) -> bool:
    return run.status.state is not None and run.status.state.active


def _competes(run: Run) -> bool:
    if run.deleting:
        return False
    if run.status.state is not None and run.status.state.terminal:
        return False
    accepted = run.status.condition(ConditionType.ACCEPTED)
    return accepted is None or accepted.status != ConditionStatus.FALSE
