"""Which requests of its scenario a load sends, and whether that can work. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from laptime.api.durations import parse_duration
from laptime.api.loads import Load, Protocol
from laptime.catalog import Check, Request, Scenario, missing_capture
from laptime.plan.rows import MAX_WEIGHTS, Scarce, most_requests, weights_sum

OF_CONNECTIONS = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"}
)
"""Header fields that HTTP/2 has other means for (RFC 9113, section 8.2.2), as the generator has."""

_LONGEST_HOURS = 24
"""What the generator takes of a load; each duration that a run names itself is far below."""


@dataclass(frozen=True)
class SentSession:
    """What one user sends from beginning to end: the steps of a session, or a request alone."""

    name: str
    weight: int
    """How often it comes beside the others."""
    steps: tuple[Request, ...]


def sent_sessions(load: Load, scenario: Scenario) -> list[SentSession]:
    """Return the sessions that a load sends, in the order of the scenario.

    A load that names none sends all of them, and each request alone that is a step of none.

    Raises:
        ValueError: the scenario has none of that name, or none that could be sent alone; the
            message says what there is.
    """
    every = _every(scenario)
    wanted = load.endpoints
    weights: dict[str, int] = {}
    if load.mix is not None:
        weights = {one.name: one.weight for one in load.mix}
        wanted = list(weights)
    if wanted is None:
        steps = {step for session in scenario.sessions for step in session.steps}
        return [one for one in every if one.name not in steps]
    names = [one.name for one in every]
    for name in wanted:
        if name not in names:
            raise ValueError(
                f"load {load.name}: scenario {scenario.name} has no endpoint {name}; it has "
                f"{', '.join(names)}"
            )
    chosen = [one for one in every if one.name in wanted]
    for one in chosen:
        missing = missing_capture(one.steps, scenario.feeder_names)
        if missing is not None:
            sessions = [s.name for s in scenario.sessions if one.name in s.steps]
            raise ValueError(
                f"load {load.name}: {one.name} needs {{{{{missing[1]}}}}} of an answer before it: "
                f"name a session instead, such as {' or '.join(sessions)}"
            )
    if load.mix is None:
        # Named without a mix they take turns, as ever.
        return [SentSession(one.name, 1, one.steps) for one in chosen]
    return [SentSession(one.name, weights[one.name], one.steps) for one in chosen]


def _every(scenario: Scenario) -> list[SentSession]:
    requests = {request.name: request for request in scenario.requests}
    sessions = [
        SentSession(one.name, one.weight, tuple(requests[step] for step in one.steps))
        for one in scenario.sessions
    ]
    alone = [SentSession(one.name, one.weight, (one,)) for one in scenario.requests]
    return [*sessions, *alone]


def sent_requests(sessions: Sequence[SentSession]) -> list[Request]:
    """Return the requests that sessions have as steps, each once."""
    return list({step.name: step for one in sessions for step in one.steps}.values())


def _of_connections(load: Load, requests: Sequence[Request | Check]) -> str | None:
    """Return which header HTTP/2 has other means for, with what to write; None: there is none."""
    for request in requests if load.protocol is Protocol.HTTP2 else []:
        found = next((name for name in request.headers if name.lower() in OF_CONNECTIONS), None)
        if found is not None:
            return (
                f"load {load.name}: HTTP/2 has no header {found}, which {request.name} has: leave "
                "it out of the scenario, or write protocol: http1"
            )
    return None


def load_problem(load: Load, scenario: Scenario, generators: int = 1) -> str | None:
    """Return why a load cannot be sent and what to write instead; None when it can.

    Several generators share the rows of a feeder: each must do with the smallest part.
    """
    if load.script is not None:
        # What it sends nobody knows; the scenario's answers are checked over its protocol.
        return _of_connections(load, scenario.counting_checks)
    try:
        sessions = sent_sessions(load, scenario)
    except ValueError as error:
        return str(error)
    if (times := Counter(load.endpoints)).total() > len(times):
        name, most = times.most_common(1)[0]
        mix = ", ".join(f"{{name: {one}, weight: {weight}}}" for one, weight in times.items())
        return (
            f"load {load.name}: endpoints are sent equally often, and {name} is there {most} "
            f"times: write mix: [{mix}]"
        )
    if (problem := _of_connections(load, sent_requests(sessions))) is not None:
        return problem
    if load.stairs is not None:
        hours = parse_duration(load.stairs.duration) / 3600
        if hours > _LONGEST_HOURS:
            return (
                f"load {load.name}: its steps take {hours:g}h together, a day ({_LONGEST_HOURS}h) "
                "is the most: write fewer or shorter steps"
            )
    weights = [one.weight for one in sessions]
    if (total := weights_sum(weights)) > MAX_WEIGHTS:
        return (
            f"load {load.name}: the weights add up to {total}, which is more than {MAX_WEIGHTS}: "
            "write smaller ones"
        )
    scarce = scarce_rows(load, scenario, generators)
    if scarce is None:
        return None
    what = f"load {load.name}: {scarce.what} once"
    sent = _number_sent(load)
    if scarce.requests <= 0:
        return f"{what}, which is too few for this load: make more rows, or write use: cycle"
    if sent is None:
        return (
            f"{what}: give closed.requests, at most {scarce.requests}, instead of a duration or "
            "a search"
        )
    if sent > scarce.requests:
        return f"{what}: {sent} requests are too many, send at most {scarce.requests}"
    return None


def scarce_rows(load: Load, scenario: Scenario, generators: int = 1) -> Scarce | None:
    """Return which rows a load uses once, and how many requests they last for; None: none.

    Raises:
        ValueError: as `sent_sessions`.
    """
    if load.script is not None:
        return None
    return most_requests(
        [(one.weight, one.steps) for one in sent_sessions(load, scenario)],
        scenario.feeders,
        load.users or 1,
        generators,
    )


def _number_sent(load: Load) -> int | None:
    if load.closed is not None:
        return load.closed.requests
    if load.open is not None and load.measured_seconds is not None:
        return math.ceil(load.open.rate * load.measured_seconds)
    if load.ramp is not None and load.measured_seconds is not None:
        return math.ceil((load.ramp.from_ + load.ramp.to) / 2 * load.measured_seconds)
    if load.stairs is not None:
        return math.ceil(sum(one.rate * parse_duration(one.duration) for one in load.stairs.steps))
    return None
