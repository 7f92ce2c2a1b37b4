"""How often a rule erred in many runs, and the goals for that."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from candidates import Array, Said
from drawn import factors

GOAL_FALSE = 0.05
"""Share of the runs in which any difference may be claimed. Missed where the whole 95 % interval
of the share that was counted lies above it."""
GOAL_COVERAGE = (0.94, 0.965)
"""Missed where the whole interval of the count is below it. Above it an interval is wider than it
had to be: that is said, and is safe."""


@dataclass(frozen=True)
class Outcome:
    """How often a rule erred."""

    rounds: int
    false: float
    """Share of the runs in which any two servers were told apart that do not differ, or the slower
    one was called the faster."""
    coverage: float
    """Share of the intervals against the first server that held the truth."""
    width: float
    """Geometric mean of what must be differed by, divided by that of the first rule."""
    interval: float
    """The same of the half-widths of intervals."""

    @property
    def too_many(self) -> bool:
        """Whether more runs made a false claim than chance explains."""
        return wilson(self.false, self.rounds)[0] > GOAL_FALSE

    @property
    def too_few(self) -> bool:
        """Whether fewer intervals held the truth than chance explains."""
        return wilson(self.coverage, self.rounds)[1] < GOAL_COVERAGE[0]


def wilson(share: float, rounds: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of so many rounds (Wilson)."""
    z, n = 1.96, rounds
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return middle - half, middle + half


def outcome(
    said: Said,
    first: Said,
    servers: int,
    truth: Array | None = None,
    *,
    as_drawn: bool = False,
) -> Outcome:
    """Return how often a rule erred, beside the first one on the same runs.

    `truth` are the logarithms that the servers are worth; None: all the same. `as_drawn`: factors
    as they stand on a page (drawn.py), and not by what chance does to each pair.
    """
    worth = np.zeros(servers) if truth is None else truth
    one, other = np.triu_indices(servers, 1)
    apart = worth[one] - worth[other]
    wrong = said.told & (np.sign(said.difference) != np.sign(apart))
    against_first = slice(0, servers - 1)
    covered, half = said.covers(apart)[:, against_first], said.half[:, against_first]
    if as_drawn:
        low, high = factors(said, servers)
        covered = ((low <= worth - worth[0]) & (worth - worth[0] <= high))[:, 1:]
        half = ((high - low) / 2)[:, 1:]
    return Outcome(
        len(said.difference),
        float(wrong.any(1).mean()),
        float(covered.mean()),
        _ratio(said.needed, first.needed),
        _ratio(half, first.half[:, against_first]),
    )


def _ratio(one: Array, other: Array) -> float:
    return float(np.exp((np.log(one) - np.log(other)).mean()))
