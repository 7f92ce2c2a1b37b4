"""What earlier runs could say of the noise of the next one: candidates, and how often each errs.

    python3 bench/comparing/history.py [--rounds N]

Five earlier runs of the same shape are drawn with each run. Their variances, never their means,
enter it as so many degrees of freedom as they agree with each other (G. K. Smyth, "Linear Models
and Empirical Bayes Methods", Statistical Applications in Genetics and Molecular Biology 3, 2004).
A candidate bounds how many these are, or when they count at all. Worlds differ in what noise does
between the earlier runs and this one; servers never differ. Printed are the share of runs with any
difference claimed, that of the 95 % intervals that hold the truth, and how wide intervals are
beside those of a run that knows of no other. With a fixed seed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from candidates import (
    Array,
    Said,
    fitted,
    inverse_trigamma,
    mean_and_error,
    ours,
    range_of_many,
)
from outcomes import outcome
from scipy import special

from laptime.analysis.comparing import NOISIER, PAIRS_SHARE
from laptime.analysis.statistics import claim_confidence

SHAPES = ((2, 3), (2, 5), (4, 3), (4, 4), (6, 3))
EARLIER = 5
SEED = 20261127
_ERRORS = 0.05
_NOISE = 0.01
_SPREAD = 0.35
"""Standard deviation of the logarithm of a run's noise where it varies from run to run. Between the
loads of the measured runs (data/measured.json) it is 0.45, and 0.1 between 34 like runs of one
server on one machine (bench/alike)."""


@dataclass(frozen=True)
class History:
    """What earlier runs say, by rounds: a variance and the degrees of freedom that it is worth."""

    variance: Array
    degrees: Array

    def at_most(self, degrees: float) -> History:
        """Return it with less weight."""
        return History(self.variance, np.minimum(self.degrees, degrees))

    def where(self, counts: Array) -> History:
        """Return it where it counts, and nothing elsewhere."""
        return History(self.variance, np.where(counts, self.degrees, 0.0))


def history_of(variances: Array, degrees: int) -> History:
    """Return what the pooled variances of earlier runs say: rounds by runs."""
    half = degrees / 2
    logs = np.log(variances) - float(special.digamma(half)) + math.log(half)
    spread = logs.var(1, ddof=1) - float(special.polygamma(1, half))
    worth = 2 * inverse_trigamma(np.maximum(spread, 1e-2))
    level = np.exp(logs.mean(1) + special.digamma(worth / 2) - np.log(worth / 2))
    return History(level, worth)


def knowing(y: Array, history: History, never_less: bool = False) -> Said:
    """Return what `ours` would say that knows of earlier runs, below 8 repetitions.

    `never_less`: they give certainty, but never make a run steadier than it looks.
    """
    _, repetitions, servers = y.shape
    _, own, degrees = fitted(y)
    seen = own.mean(1)
    freedom = history.degrees + degrees
    together = (history.degrees * history.variance + degrees * seen) / freedom
    if never_less:
        together = np.maximum(together, seen)
    one, other = np.triu_indices(servers, 1)
    difference, error_of_pair = mean_and_error(y)
    count = len(one)
    alone_freedom = history.degrees + repetitions - 1
    if servers == 2:
        error = np.sqrt(2 * together / repetitions)[:, None]
        needed = special.stdtrit(freedom, 0.5 + claim_confidence(repetitions) / 2)[:, None]
        half = special.stdtrit(freedom, 1 - _ERRORS / 2)[:, None]
        return Said(difference, needed * error, half * error)
    of_model = _ERRORS * (1 - PAIRS_SHARE)
    share = 1 - of_model * (1 - 1 / repetitions)
    critical = np.maximum(
        range_of_many(servers, freedom, share), special.stdtrit(alone_freedom, 1 - of_model / 2)
    )
    noisy = own > NOISIER * together[:, None]
    variances = np.maximum(own, together[:, None])
    error = np.sqrt((variances[:, one] + variances[:, other]) / repetitions)
    wild = noisy[:, one] | noisy[:, other]
    # Of a noisy server it is known only what it did itself.
    strict = np.maximum(critical, float(special.stdtrit(repetitions - 1, 1 - of_model / 2)))
    alone = claim_confidence(repetitions, round(count / PAIRS_SHARE))
    of_all = float(special.stdtrit(repetitions - 1, 0.5 + alone / 2))
    needed = np.where(wild, strict[:, None], critical[:, None]) * error
    needed = np.minimum(needed, of_all * error_of_pair)
    own_half = float(special.stdtrit(repetitions - 1, 1 - _ERRORS / 2))
    half = np.where(wild, own_half, special.stdtrit(freedom, 1 - _ERRORS / 2)[:, None]) * error
    return Said(difference, needed, half)


def _looks_alike(y: Array, history: History) -> Array:
    alike: Array = fitted(y)[1].mean(1) <= NOISIER * history.variance
    return alike


CANDIDATES: Mapping[str, Callable[[Array, History], Said]] = {
    "no history (ours)": lambda y, _: ours(y),
    "as much as they agree": knowing,
    "at most 8 degrees": lambda y, history: knowing(y, history.at_most(8)),
    "at most 4 degrees": lambda y, history: knowing(y, history.at_most(4)),
    "at most 8, where it looks alike": lambda y, history: knowing(
        y, history.at_most(8).where(_looks_alike(y, history))
    ),
    "at most 8, never steadier than seen": lambda y, history: knowing(
        y, history.at_most(8), never_less=True
    ),
}


def _levels(rounds: int, spread: float, dice: np.random.Generator) -> Array:
    return _NOISE * np.exp(spread * dice.standard_normal((rounds, EARLIER + 1)))


def _calm(shape: tuple[int, ...], dice: np.random.Generator) -> Array:
    return dice.standard_normal(shape)


def _heavy(shape: tuple[int, ...], dice: np.random.Generator) -> Array:
    return dice.standard_t(4, shape) / math.sqrt(2)


def _groups(shape: tuple[int, ...], dice: np.random.Generator) -> Array:
    return 0.5 * dice.standard_normal(shape) + 3 * (dice.random(shape) < 0.5)


@dataclass(frozen=True)
class World:
    """What noise does: between runs, and in this one."""

    spread: float = 0.0
    factors: tuple[float, ...] = (1.0,)
    """Of the noise of this run's first servers beside the earlier runs'; others have the last."""
    earlier: Callable[[tuple[int, ...], np.random.Generator], Array] = _calm
    now: Callable[[tuple[int, ...], np.random.Generator], Array] = _calm


WORLDS: Mapping[str, World] = {
    "as before": World(),
    "varies from run to run": World(spread=_SPREAD),
    "half as noisy": World(factors=(0.5,)),
    "twice as noisy": World(factors=(2.0,)),
    "one twice as noisy": World(factors=(2.0, 1.0)),
    "one five times as noisy": World(factors=(5.0, 1.0)),
    "heavy tails": World(earlier=_heavy, now=_heavy),
    "pods in two groups": World(earlier=_groups, now=_groups),
    "pods in two groups, new": World(now=_groups),
}


def drawn(
    world: World, shape: tuple[int, int, int], dice: np.random.Generator
) -> tuple[Array, History]:
    """Return runs of servers that do not differ, and what those before them say."""
    rounds, repetitions, servers = shape
    levels = _levels(rounds, world.spread, dice)
    variances = np.empty((rounds, EARLIER))
    for number in range(EARLIER):
        before = levels[:, number, None, None] * world.earlier(shape, dice)
        variances[:, number] = fitted(before)[1].mean(1)
    factors = [world.factors[min(one, len(world.factors) - 1)] for one in range(servers)]
    y = levels[:, -1, None, None] * np.array(factors) * world.now(shape, dice)
    return y, history_of(variances, (repetitions - 1) * (servers - 1))


def main() -> None:
    """Print a table for each shape."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10000)
    rounds = parser.parse_args().rounds
    print(f"{rounds} runs each, after {EARLIER} earlier ones")
    for servers, repetitions in SHAPES:
        print(f"\n{servers} servers, {repetitions} repetitions")
        print(f"| what counts | {' | '.join(WORLDS)} |")
        print("|---" * (len(WORLDS) + 1) + "|")
        for name, rule in CANDIDATES.items():
            cells = []
            for number, world in enumerate(WORLDS.values()):
                dice = np.random.default_rng([SEED, servers, repetitions, number])
                y, history = drawn(world, (rounds, repetitions, servers), dice)
                found = outcome(rule(y, history), ours(y), servers)
                cells.append(f"{found.false:.1%}, {found.coverage:.1%}, {found.interval:.2f}")
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
