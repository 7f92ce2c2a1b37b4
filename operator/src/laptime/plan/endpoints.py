"""Which requests of its scenario a load sends, and whether that can work. Pure."""

from __future__ import annotations

import math

from laptime.api.durations import parse_duration
from laptime.api.loads import Load
from laptime.catalog import IdUse, Request, Scenario

# With several requests in turn, each thread of the generator begins with another one: one of them
# may be sent by so many more than its share (images/k6/internal/spec/ids.go).
_SPREAD = 8
# With weights the order is not that even: by so many times more.
_UNEVEN = 3


def sent_requests(load: Load, scenario: Scenario) -> list[Request]:
    """Return the requests that a load sends, in the order of the scenario.

    Raises:
        ValueError: the scenario has no such request; the message lists those it has.
    """
    wanted = load.endpoints
    if load.mix is not None:
        wanted = [one.name for one in load.mix]
    if wanted is None:
        return list(scenario.requests)
    names = [request.name for request in scenario.requests]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ValueError(
            f"load {load.name}: scenario {scenario.name} has no endpoint {unknown[0]}; it has "
            f"{', '.join(names)}"
        )
    return [request for request in scenario.requests if request.name in wanted]


def weight_of(load: Load, request: Request) -> int | None:
    """Return how often a load sends a request beside its others; None: they take turns."""
    if load.mix is None:
        return None
    return next(one.weight for one in load.mix if one.name == request.name)


def load_problem(load: Load, scenario: Scenario, generators: int = 1) -> str | None:
    """Return why a load cannot be sent and what to write instead; None when it can.

    Several generators share the rows of a request: each must do with the smallest part.
    """
    if load.script is not None:
        return None
    try:
        requests = sent_requests(load, scenario)
    except ValueError as error:
        return str(error)
    for request in requests:
        if request.ids is None or request.ids.use is not IdUse.ONCE:
            continue
        most = _most_sent(load, request, requests, generators)
        sent = _number_sent(load)
        what = f"load {load.name}: {request.name} uses each of its {request.ids.count} rows once"
        if sent is None:
            return (
                f"{what}: give closed.requests, at most {most}, instead of a duration or a search"
            )
        if sent > most:
            return f"{what}: {sent} requests are too many, send at most {most}"
    return None


def _most_sent(load: Load, request: Request, requests: list[Request], generators: int) -> int:
    """Return how many requests a load can send until this one has used up its rows."""
    assert request.ids is not None
    each = request.ids.count // generators
    if len(requests) == 1:
        return each * generators
    weights = [weight_of(load, one) or 1 for one in requests]
    spread = _SPREAD if len(set(weights)) == 1 else _SPREAD * _UNEVEN
    own = weight_of(load, request) or 1
    return max(0, each - spread) * sum(weights) // own * generators


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
