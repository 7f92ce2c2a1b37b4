"""How far the rows go that a trial may use once each. Pure.

The generator reckons the same (images/k6/internal/spec/work.go and internal/session/work.go) and
refuses a trial that could use them up: here that is said before anything is deployed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from laptime.api.feeders import Feeder, Per, Use
from laptime.api.scenario import IdUse, Request
from laptime.catalog import rows_of, values_of

MAX_WEIGHTS = 10_000
"""The largest sum of weights once they have no common divisor."""

# Each thread of the generator begins at another place of the order, so that rows may be taken by so
# many times more than their share, as often as there are threads at most.
_SPREAD = 8

Sessions = Sequence[tuple[int, Sequence[Request]]]
"""Of each its weight and its steps."""


@dataclass(frozen=True)
class Scarce:
    """Rows that a load may use up."""

    what: str
    """Such as `feeder users gives each of its 100 rows`."""
    requests: int
    """So many requests, of all kinds together, can be sent for sure."""


@dataclass(frozen=True)
class _Source:
    what: str
    rows: int
    takes: tuple[int, ...]
    """How many rows each session takes."""


def weights_sum(weights: Sequence[int]) -> int:
    """Return the sum of weights without their common divisor."""
    return sum(weights) // math.gcd(*weights)


def most_requests(
    sessions: Sessions, feeders: Sequence[Feeder], connections: int, generators: int
) -> Scarce | None:
    """Return what ends first, None where nothing can: no row of it is used once.

    `connections` are the most that the load has, over all generators.
    """
    order = mix_order([weight for weight, _ in sessions])
    round_steps = sum(len(sessions[number][1]) for number in order)
    scarce: Scarce | None = None
    for source in _sources(sessions, feeders):
        taken = [source.takes[number] for number in order]
        if sum(taken) == 0:
            continue
        slack = 0
        # Where each request takes one there is nothing uneven.
        if sum(taken) != round_steps:
            slack = _SPREAD * _excess(taken, [len(sessions[number][1]) for number in order])
            if any(len(steps) > 1 for _, steps in sessions):
                # Sessions that have begun.
                slack += math.ceil(connections / generators) * max(source.takes)
        each = max(0, source.rows // generators - slack) * round_steps // sum(taken)
        if scarce is None or each * generators < scarce.requests:
            scarce = Scarce(source.what, each * generators)
    return scarce


def mix_order(weights: Sequence[int]) -> list[int]:
    """Return the order of sessions in one round: always the one most behind its share."""
    divisor = math.gcd(*weights)
    shares = [weight // divisor for weight in weights]
    behind = [0] * len(shares)
    order = []
    for _ in range(sum(shares)):
        behind = [one + share for one, share in zip(behind, shares, strict=True)]
        # The first of those that are behind the most.
        chosen = behind.index(max(behind))
        behind[chosen] -= sum(shares)
        order.append(chosen)
    return order


def _excess(taken: Sequence[int], steps: Sequence[int]) -> int:
    """Return how many rows more than its share any stretch of rounds may take."""
    ahead = least = most = 0.0
    for each, sent in zip(taken, steps, strict=True):
        ahead -= sum(taken) * sent / sum(steps)
        least = min(least, ahead)
        ahead += each
        most = max(most, ahead)
    return math.ceil(most - least - 1e-9)


def _sources(sessions: Sessions, feeders: Sequence[Feeder]) -> list[_Source]:
    found = [
        _Source(
            f"feeder {feeder.name} gives each of its {rows_of(feeder)} rows",
            rows_of(feeder),
            tuple(_takes(feeder, steps) for _, steps in sessions),
        )
        for feeder in feeders
        if feeder.use is Use.ONCE
    ]
    for request in {step.name: step for _, steps in sessions for step in steps}.values():
        if request.ids is not None and request.ids.use is IdUse.ONCE:
            found.append(
                _Source(
                    f"{request.name} uses each of its {request.ids.count} rows",
                    request.ids.count,
                    tuple(
                        sum(step.name == request.name for step in steps) for _, steps in sessions
                    ),
                )
            )
    return found


def _takes(feeder: Feeder, steps: Sequence[Request]) -> int:
    using = sum(
        any(name.partition(".")[0] == feeder.name for name in values_of(step)) for step in steps
    )
    return using if feeder.per is Per.REQUEST else min(using, 1)
