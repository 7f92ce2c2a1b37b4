"""What users who think make of a load. Pure.

Where requests come at a rate, a user who thinks between two steps of a session sends the later one
later than the schedule says, and keeps his connection meanwhile. The last think time of a session
does not count: the user leaves. In a closed load he begins another one, after thinking.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from laptime.api.durations import format_duration, parse_duration
from laptime.api.loads import Load
from laptime.plan.endpoints import SentSession

MOST_BEHIND = 0.05
"""Of the time at a rate, for how long its requests may come after the beginnings of their sessions.
By that share fewer of them come within it than the rate says, as the first ones have nobody yet who
is at a later step."""

REQUESTS_BOUND_SECONDS = 3600.0
"""So long a trial bound by requests may wait for answers; what its users think comes on top."""


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


def thinking_seconds(load: Load, sessions: Sequence[SentSession]) -> float:
    """Return for how long the users of a load bound by requests think for all of these, in seconds.

    They take so long at least, however fast the answers are: each user thinks after every answer,
    for the mean of what is drawn. 0 of other loads. Where the load has no think time of its own,
    those of the sessions count.
    """
    if load.closed is None or load.closed.requests is None or load.users is None:
        return 0.0
    return load.closed.requests * _mean_think_seconds(load, sessions) / load.users


def _mean_think_seconds(load: Load, sessions: Sequence[SentSession]) -> float:
    if load.think_time is not None:
        return sum(load.think_time.seconds) / 2
    requests = sum(one.weight * len(one.steps) for one in sessions)
    thinking = sum(
        one.weight * sum(step.think_time.seconds) / 2
        for one in sessions
        for step in one.steps
        if step.think_time is not None
    )
    return thinking / requests if requests else 0.0


def thinking_problem(load: Load, sessions: Sequence[SentSession]) -> str | None:
    """Return why users who think cannot send a load's requests in time; None when they can."""
    thinking = thinking_seconds(load, sessions)
    if load.closed is None or load.users is None or thinking <= REQUESTS_BOUND_SECONDS:
        return None
    mean = _mean_think_seconds(load, sessions)
    most = math.floor(REQUESTS_BOUND_SECONDS * load.users / mean)
    return (
        f"load {load.name}: users think for {mean:.3g} s after an answer on average, and "
        f"{load.closed.requests} requests of {load.users} of them take {format_duration(thinking)} "
        f"for that alone, of which an hour is the most: write requests: {most} or fewer, more "
        "connections, or a duration instead of requests"
    )
