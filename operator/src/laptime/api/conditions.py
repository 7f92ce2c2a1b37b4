"""Setting conditions by the Kubernetes API conventions, in one place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from laptime.api.reasons import REASONS
from laptime.api.status import Condition, ConditionStatus, ConditionType
from laptime.api.text import plain_lines

NORMAL_REASONS = frozenset(one.name for one in REASONS.values() if one.normal)
"""Reasons of conditions that are False although nothing is wrong: not yet, or over."""

TRUE_WHEN = {
    ConditionType.ACCEPTED: "the run may be measured: it has its turn or waits for it",
    ConditionType.TIERS_READY: (
        "Postgres, PgBouncer, HAProxy, upstream, delay and services of the scenario stand, as far "
        "as the run has them"
    ),
    ConditionType.SERVERS_VERIFIED: ("every server gave the answers of the scenario's contract"),
    ConditionType.SCRIPTS_SELF_CONTAINED: (
        "no script imports from another host than its target, or names one that the run does not "
        "name; False is a warning where the run goes on. There only with scripts"
    ),
    ConditionType.PROGRESSING: (
        "something goes on; False while the run waits, is held up by a problem, or is over"
    ),
    ConditionType.SUSPENDED: "the run pauses; there only when it ever did",
    ConditionType.SUCCEEDED: (
        "every server has figures under every load; Unknown until the run is over"
    ),
    ConditionType.OBJECTIVES_MET: (
        "every objective was met; False when one was missed, Unknown when none was missed and the "
        "figures do not say of one whether it was met. There only with `objectives` or with a "
        "script that has thresholds, when the run is over"
    ),
    ConditionType.PROFILED: (
        "there is a flame graph of every server with `profile: true`; there only with such "
        "servers, when the run is over"
    ),
    ConditionType.CLEANED_UP: (
        "never said: the condition is there only when something of the run could not be deleted "
        "in time"
    ),
}
"""What it says of a run that a condition is True (Markdown)."""


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
