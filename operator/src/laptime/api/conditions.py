"""Setting conditions by the Kubernetes API conventions, in one place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from laptime.api.status import Condition, ConditionStatus, ConditionType
from laptime.api.text import plain_lines

NORMAL_REASONS = frozenset(
    {"Starting", "Queued", "Suspended", "Resumed", "Finished", "Verifying", "NotFinished"}
)
"""Reasons of conditions that are False although nothing is wrong: not yet, or over."""


@dataclass(frozen=True)
class Verdict:
    """What a condition should say now."""

    type: ConditionType
    status: ConditionStatus
    reason: str
    message: str = ""


def merge_conditions(
    old: Sequence[Condition], verdicts: Iterable[Verdict], generation: int, now: str
) -> list[Condition]:
    """Return the conditions with the verdicts set.

    `lastTransitionTime` changes only when a condition's status flips; the order is that of
    `ConditionType`. `now` is an RFC 3339 time.
    """
    merged = {condition.type: condition for condition in old}
    for verdict in verdicts:
        before = merged.get(verdict.type)
        flipped = before is None or before.status != verdict.status
        merged[verdict.type] = Condition(
            type=verdict.type,
            status=verdict.status,
            reason=verdict.reason,
            message=plain_lines(verdict.message)[:1024],
            observed_generation=generation,
            last_transition_time=now if before is None or flipped else before.last_transition_time,
        )
    order = [str(type_) for type_ in ConditionType]
    return sorted(merged.values(), key=lambda c: order.index(c.type) if c.type in order else 99)
