"""What sessions of several steps make of a load whose requests come at a rate. Pure.

A user who thinks between two steps sends the later one later than the schedule says, and keeps his
connection meanwhile. The last think time of a session does not count: the user leaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from laptime.api.durations import parse_duration
from laptime.api.loads import Load
from laptime.plan.endpoints import SentSession

MOST_BEHIND = 0.05
"""Of the time at a rate, for how long its requests may come after the beginnings of their sessions.
By that share fewer of them come within it than the rate says, as the first ones have nobody yet who
is at a later step."""


@dataclass(frozen=True)
class WithinSessions:
    """Means over the requests of sessions, and the longest session."""

    behind_seconds: float = 0.0
    """How long after the beginning of its session a request comes because users think."""
    thinking_seconds: float = 0.0
    """For how long, for each request, a user keeps a connection to think."""
    most_steps: int = 1


ALONE = WithinSessions()
"""Of requests that are sent alone."""


def within_sessions(sessions: Sequence[SentSession]) -> WithinSessions:
    """Return what a load has of think times within its sessions."""
    requests = sum(one.weight * len(one.steps) for one in sessions)
    if not requests:
        return ALONE
    behind = thinking = 0.0
    for one in sessions:
        later = list(_later(one))
        behind += one.weight * sum(later)
        thinking += one.weight * later[-1]
    return WithinSessions(
        behind / requests, thinking / requests, max(len(one.steps) for one in sessions)
    )


def _later(session: SentSession) -> Iterator[float]:
    """Yield how long users have thought on average before each step of a session."""
    seconds = 0.0
    for step in session.steps:
        yield seconds
        if step.think_time is not None:
            seconds += sum(step.think_time.seconds) / 2


def seconds_at_a_rate(load: Load) -> float | None:
    """Return the shortest time that an open load stays at a rate; None of other loads.

    A ramp takes its whole time, since what comes late of it is at a rate like that before.
    """
    if load.saturation is not None:
        return load.saturation.step_seconds
    if load.stairs is not None:
        return min(parse_duration(step.duration) for step in load.stairs.steps)
    return load.measured_seconds if load.paced is not None else None


def too_short(load: Load, within: WithinSessions) -> bool:
    """Return whether sessions take so long that a rate would hardly be there at any time."""
    seconds = seconds_at_a_rate(load)
    return seconds is not None and within.behind_seconds > MOST_BEHIND * seconds


def shape_problem(load: Load, sessions: Sequence[SentSession]) -> str | None:
    """Return why a load at a rate would not measure what it says; None when it would."""
    within = within_sessions(sessions)
    if not too_short(load, within):
        return None
    what = "step" if load.saturation or load.stairs else "duration"
    least = math.ceil(within.behind_seconds / MOST_BEHIND)
    return (
        f"load {load.name}: users think for {within.behind_seconds:.3g} s before a request of a "
        f"session on average, and {seconds_at_a_rate(load):g} s ({what}) are too short for that: "
        f"the server would be asked for less than the rate. Write at least {least}s, shorter "
        "think times in the scenario, or a closed load"
    )
