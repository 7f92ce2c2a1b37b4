"""How often advice on the length of trials saves time, and how much of it.

    PYTHONPATH=bench python3 bench/comparing/length.py [--rounds N]

Runs whose noise is known are simulated second by second: what differs from trial to trial, and what
the seconds of a trial do, which are alike for a while (an autoregression of first order). From each
the operator reckons its advice (laptime.analysis.length). Whoever follows it gets the variance that
trials of that length really have, so it is known how many repetitions find the same differences
then, and in which share of the time. Right is advice that saves any time at all.

The share of errors that the operator allows itself (`CAREFUL`) is shown beside others. Everything
has a fixed seed. Exits with 1 when the operator's rule misses a goal in any row; both were fixed
before any rule was tried.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from candidates import Array
from outcomes import wilson

from laptime.analysis.comparing import Comparison
from laptime.analysis.length import (
    CAREFUL,
    SHORTEST_SECONDS,
    Measured,
    better_length,
    repetitions_needed,
)
from laptime.measure.batches import error_share

GOAL_RIGHT = 0.9
"""Share of advice that saves time. Missed where the whole 95 % interval of the count is below."""
GOAL_TIME = 0.8
"""Mean share of the time that is needed then, at most."""
FEWEST = 30
"""Rows with less advice than that are shown, and miss no goal."""
SIZES = ((2, 3), (2, 5), (4, 4), (6, 5), (2, 10), (4, 20))
"""Servers and repetitions."""
SECONDS = (10, 30, 60, 120)
AROUND = (5.0, 15.0, 40.0, 90.0)
WITHIN = (0.02, 0.2, 0.5, 0.9, 1.0)
"""Share of the variance of a trial that its own seconds make."""
ALIKE = {"seconds apart": 0.0, "alike for 5 s": 0.8, "alike for 20 s": 0.95}
EACH_MINUTE = "each minute"
IN_EACH = {f"the same in each, {loss:.0%}": loss for loss in (0.1, 0.2, 0.3, 0.4, 0.5)}
"""Loss of the second in the middle of each trial: it is alike in all of them."""
KINDS = (*ALIKE, "stumbles", "one noisy", "warming up", *IN_EACH, EACH_MINUTE)
RULES = {"as it looks": 0.0, "of five": 0.8416, "of ten": CAREFUL, "of twenty": 1.6449}
SEED = 20261130
_NOISE = 0.02
"""Standard deviation of a trial, as a logarithm."""
_RATE = 10_000
_WARMER = 0.03
"""So much faster is the end of a trial than its beginning: too little for a doubt."""
_STOOD_STILL = 0.3
"""Loss of each second of a checkpoint."""
_CHECKPOINT = np.where(np.arange(60) < 3, math.log1p(-_STOOD_STILL), 0.0)
"""Three seconds of each minute, which begins anywhere in a trial: a long one has all of it."""
_NOISIER = 9.0
"""Ratio of variances."""
_STUDENT = 5
"""Degrees of freedom of noise with stumbles."""


@dataclass(frozen=True)
class Case:
    """Runs of one size and kind of noise."""

    kind: str
    servers: int
    repetitions: int
    seconds: int
    around: float
    within: float

    @property
    def _alike(self) -> float:
        return ALIKE.get(self.kind, 0.0)

    def variance(self, seconds: float) -> float:
        """Return the variance of trials of so many seconds, beside that of those measured."""
        mine = self.within * mean_variance(seconds, self._alike)
        checkpoints = mean_of_checkpoints(round(seconds)).var() if self.kind == EACH_MINUTE else 0.0
        around = 1 - self.within + float(checkpoints) / _NOISE**2
        return around + mine / mean_variance(self.seconds, self._alike)

    def runs(self, rounds: int, dice: np.random.Generator) -> Array:
        """Return what ended in each second: rounds by repetitions by servers by seconds."""
        shape = (rounds, self.repetitions, self.servers)
        within = _NOISE * math.sqrt(self.within / mean_variance(self.seconds, self._alike))
        second = dice.standard_normal((*shape, self.seconds))
        for t in range(1, self.seconds if self._alike else 0):
            before, fresh = second[..., t - 1], second[..., t]
            second[..., t] = self._alike * before + math.sqrt(1 - self._alike**2) * fresh
        logs = within * second
        if self.kind == "stumbles":
            between = dice.standard_t(_STUDENT, shape) / math.sqrt(_STUDENT / (_STUDENT - 2))
        else:
            between = dice.standard_normal(shape)
        if self.kind == "one noisy":
            sizes = np.array([_NOISIER] + [1.0] * (self.servers - 1))
            between = between * np.sqrt(sizes / sizes.mean())
        logs += (_NOISE * math.sqrt(1 - self.within) * between)[..., None]
        if self.kind == "warming up":
            logs += _WARMER * np.linspace(-0.5, 0.5, self.seconds)
        if self.kind in IN_EACH:
            logs[..., self.seconds // 2] += math.log1p(-IN_EACH[self.kind])
        if self.kind == EACH_MINUTE:
            begin = dice.integers(0, len(_CHECKPOINT), shape)[..., None]
            logs += _CHECKPOINT[(begin + np.arange(self.seconds)) % len(_CHECKPOINT)]
        return np.asarray(np.rint(_RATE * np.exp(logs)), np.float64)


def mean_of_checkpoints(seconds: int) -> Array:
    """Return what checkpoints do to a trial of so many seconds, by when it begins."""
    begin = np.arange(len(_CHECKPOINT))[:, None]
    found: Array = _CHECKPOINT[(begin + np.arange(seconds)) % len(_CHECKPOINT)].mean(1)
    return found


def mean_variance(seconds: float, alike: float) -> float:
    """Return the variance of the mean of so many seconds, each of which has one of 1.

    `alike` is the correlation of neighbouring ones: an autoregression of first order.
    """
    lags = np.arange(1, round(seconds))
    sums = seconds + 2 * float(((seconds - lags) * alike**lags).sum())
    return sums / seconds**2


def known_of(case: Case, counts: Array) -> Measured | None:
    """Return what the operator knows of one run, by what ended in each second."""
    errors = [error_share(trial) for trial in counts.reshape(-1, case.seconds).tolist()]
    logs = np.log(counts.mean(-1))
    scores = {f"s{n}": dict(enumerate(logs[:, n].tolist(), 1)) for n in range(case.servers)}
    noise = Comparison(scores).noise
    if noise is None:
        return None
    within = float(np.mean([one**2 for one in errors if one is not None]))
    return Measured(case.servers, noise, within, case.seconds, case.around, SHORTEST_SECONDS)


@dataclass(frozen=True)
class Advice:
    """What was said of the time that is needed, and what it really is, as shares."""

    said: float
    really: float


def advised(case: Case, known: Measured, careful: float) -> Advice | None:
    """Return what became of the advice; None where there was none."""
    found = better_length("load", known, careful)
    if found is None:
        return None
    variance = case.variance(found.seconds) / case.variance(case.seconds)
    needed = repetitions_needed(case.servers, case.repetitions, variance)
    time = (case.around + found.seconds) * needed
    really = time / ((case.around + case.seconds) * case.repetitions)
    return Advice(found.time_share, really)


def cases() -> Iterator[Case]:
    """Yield all cases."""
    for kind, size, seconds, around, within in product(KINDS, SIZES, SECONDS, AROUND, WITHIN):
        yield Case(kind, *size, seconds, around, within)


def main() -> int:
    """Print how often advice was given, and what came of it; 1: a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="runs of each case")
    rounds = parser.parse_args().rounds
    told: dict[tuple[str, str], list[Advice]] = defaultdict(list)
    runs: dict[str, int] = defaultdict(int)
    for number, case in enumerate(cases()):
        size = f"{case.servers} x {case.repetitions}"
        for counts in case.runs(rounds, np.random.default_rng([SEED, number])):
            known = known_of(case, counts)
            for group in ("all", case.kind, size, f"trials of {case.seconds} s"):
                runs[group] += 1
            for rule, careful in RULES.items():
                one = None if known is None else advised(case, known, careful)
                if one is None:
                    continue
                groups = ["all"]
                if careful == CAREFUL:
                    groups += [case.kind, size, f"trials of {case.seconds} s"]
                for group in groups:
                    told[rule, group].append(one)
    print("| rule | runs | advised, % | of it right, % | time said | time needed | worst of 20 |")
    print(f"{'|---' * 7}|")
    missed = False
    for rule, careful in RULES.items():
        for group in runs:
            advice = told.get((rule, group), [])
            if advice:
                is_met = _row(rule, group, runs[group], advice)
                missed |= careful == CAREFUL and not is_met
    print(
        f"\n{'MISSED' if missed else 'met   '} right in {GOAL_RIGHT:.0%}, time {GOAL_TIME} at most"
    )
    return 1 if missed else 0


def _row(rule: str, group: str, runs: int, advice: Sequence[Advice]) -> bool:
    really = np.array([one.really for one in advice])
    right = float((really < 1).mean())
    said = float(np.mean([one.said for one in advice]))
    cells = (
        f"{rule}, {group}",
        f"{runs}",
        f"{100 * len(advice) / runs:.1f}",
        f"{100 * right:.1f}",
        f"{said:.2f}",
        f"{really.mean():.2f}",
        f"{np.quantile(really, 0.95):.2f}",
    )
    print(f"| {' | '.join(cells)} |", flush=True)
    enough = wilson(right, len(advice))[1] >= GOAL_RIGHT and really.mean() <= GOAL_TIME
    return len(advice) < FEWEST or bool(enough)


if __name__ == "__main__":
    sys.exit(main())
