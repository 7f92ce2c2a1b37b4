"""Events on transitions: what `kubectl describe` shows of the way a run went. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from laptime.api import API_VERSION, KIND
from laptime.api.conditions import NORMAL_REASONS
from laptime.api.status import ConditionStatus, RunStatus
from laptime.reconcile.queue import Card
from laptime.reconcile.views import Run, format_time


def transitions(run: Run, new: RunStatus) -> list[tuple[str, str, str]]:
    """Return (type, reason, message) of what changed for the worse or to another state."""
    found: list[tuple[str, str, str]] = []
    if new.state != run.status.state and new.state is not None:
        message = new.verdict if new.state.terminal and new.verdict else f"the run is {new.state}"
        found.append(("Normal", str(new.state), message))
    for condition in new.conditions or []:
        before = run.status.condition(condition.type)
        if condition.status != ConditionStatus.FALSE or condition.reason in NORMAL_REASONS:
            continue
        if before is None or (before.status, before.reason) != (condition.status, condition.reason):
            found.append(("Warning", condition.reason, condition.message))
    return list(dict.fromkeys(found))


def event_manifest(
    run: Run | Card, type_: str, reason: str, message: str, now: datetime, suffix: str
) -> dict[str, Any]:
    """Return the Event object; `suffix` makes its name unique."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{run.name}.{suffix}", "namespace": run.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": run.name,
            "namespace": run.namespace,
            "uid": run.uid,
        },
        "type": type_,
        "reason": reason,
        "message": message[:1024],
        "firstTimestamp": format_time(now),
        "lastTimestamp": format_time(now),
        "count": 1,
        "source": {"component": "laptime"},
    }
