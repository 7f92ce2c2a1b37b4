"""Runs made up: servers of known throughput on a machine that drifts, stumbles and jumps."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from laptime.analysis.looks import BY_WIDTH
from laptime.analysis.statistics import ERRORS, half_width, interval_of_logs
from laptime.api.spec import PRECISION_REPETITIONS

SERVERS = 2
NOISE = 0.01


@dataclass(frozen=True)
class Machine:
    """How a machine disturbs trials, as changes of the logarithm of throughput."""

    drift: float = 0.0
    """Standard deviation of a random walk from one trial to the next; also a trend and a wave."""
    bursts: bool = False
    """About every twelfth trial others take 5 to 30 % for one to five trials."""
    outliers: float = 0.0
    """Share of single trials that are 10 to 60 % slower."""
    tail: bool = False
    """Noise of Student's t with 2 degrees of freedom: without a variance."""


MACHINES: Mapping[str, Machine] = {
    "calm": Machine(),
    "drift": Machine(drift=0.003),
    "bursts": Machine(bursts=True),
    "outliers": Machine(outliers=0.05),
    "heavy tails": Machine(tail=True),
    "drift, bursts, outliers": Machine(drift=0.003, bursts=True, outliers=0.05),
}


def paired_differences(machine: Machine, repetitions: int, dice: random.Random) -> list[float]:
    """Return the differences of logarithms of two like servers, in shuffled blocks."""
    trials = _disturbances(machine, repetitions * SERVERS, dice)
    differences = []
    for block in range(repetitions):
        of_block = trials[block * SERVERS : (block + 1) * SERVERS]
        dice.shuffle(of_block)
        differences.append(of_block[0] - of_block[1])
    return differences


def _disturbances(machine: Machine, count: int, dice: random.Random) -> list[float]:
    walk, trend = 0.0, dice.gauss(0, 0.1) if machine.drift else 0.0
    wave = dice.uniform(5, 30)
    burst_left, burst_depth, until_burst = 0, 0.0, dice.expovariate(1 / 12)
    found = []
    for number in range(count):
        value = dice.gauss(0, NOISE)
        if machine.tail:
            chi = dice.expovariate(1.0)  # chi-squared with 2 degrees of freedom, divided by 2
            value += NOISE * dice.gauss(0, 1) / math.sqrt(max(chi, 1e-12))
        if machine.drift:
            walk += dice.gauss(0, machine.drift)
            value += walk + trend * number / count
            value += 0.05 * math.sin(2 * math.pi * number / wave)
        if machine.bursts:
            until_burst -= 1
            if until_burst <= 0 and burst_left <= 0:
                burst_left, burst_depth = dice.randint(1, 5), dice.uniform(0.05, 0.3)
                until_burst = burst_left + dice.expovariate(1 / 12)
            if burst_left > 0:
                value -= burst_depth
                burst_left -= 1
        if dice.random() < machine.outliers:
            value -= dice.uniform(0.1, 0.6)
        found.append(value)
    return found


@dataclass
class Coverage:
    """How often intervals held the truth, how wide they were, how many repetitions they took."""

    rounds: int = 0
    covered: int = 0
    half_widths: list[float] = field(default_factory=list)
    repetitions: int = 0

    @property
    def share(self) -> float:
        """Share of the intervals that held the truth."""
        return self.covered / self.rounds

    def add(self, differences: list[float], errors: float = ERRORS) -> None:
        """Count the interval of a run, which may miss the truth in so many."""
        interval = interval_of_logs(differences, 1 - errors)
        assert interval.low is not None
        assert interval.high is not None
        self.rounds += 1
        self.covered += interval.low <= 1 <= interval.high
        self.half_widths.append(half_width(interval) or 0.0)
        self.repetitions += len(differences)


def fixed_runs(machine: Machine, repetitions: int, rounds: int, dice: random.Random) -> Coverage:
    """Return the coverage of runs with a fixed number of repetitions."""
    coverage = Coverage()
    for _ in range(rounds):
        coverage.add(paired_differences(machine, repetitions, dice))
    return coverage


def stopped_runs(
    machine: Machine,
    precision: float,
    most: int,
    rounds: int,
    dice: random.Random,
    errors: float = BY_WIDTH,
) -> Coverage:
    """Return the coverage of runs that repeat until the interval is narrow enough.

    Each look's interval may miss the truth in the share `errors` of runs.
    """
    coverage = Coverage()
    for _ in range(rounds):
        differences = paired_differences(machine, most, dice)
        repetitions = PRECISION_REPETITIONS
        while repetitions < most:
            width = half_width(interval_of_logs(differences[:repetitions], 1 - errors))
            if width is not None and width <= precision:
                break
            repetitions += 1
        coverage.add(differences[:repetitions], errors)
    return coverage
