"""What rules for comparing servers claim of servers that do not differ, and what they find.

    python3 bench/comparing/run.py [--rounds N] [--only RULE] [--held-out]

Every candidate, on made-up noise of many kinds and on noise as it was measured, with 2, 4, 6 and
13 servers in 3, 5 and 10 repetitions: in which share of the runs are any two servers told apart,
how many of the 95 % intervals of factors hold the truth, and how much must servers differ, and how
wide are the intervals, beside the first rule. Then: how often is a server found that is faster by
2, 5 and 20 %.

Noise as measured is drawn from the half of the measured runs that the rule was chosen by;
--held-out draws it from the other one. Everything has a fixed seed. Exits with 1 when `ours` misses
a goal; goals, and what counts as reaching them, were set before the candidates were compared.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from candidates import RULES, Array, Said
from measured_noise import halves
from noise import MADE_UP, as_measured, made_up

SERVERS = (2, 4, 6, 13)
REPETITIONS = (3, 5, 10)
MEASURED = "measured"
NOISES = (*MADE_UP, MEASURED)
POWER_AT = (0.02, 0.05, 0.20)
POWER_NOISES = ("equal", MEASURED)
SEED = 20261123

GOAL_FALSE = 0.05
"""Share of the runs in which any difference may be claimed. Missed where the whole 95 % interval
of the share that was counted lies above it."""
GOAL_COVERAGE = (0.94, 0.965)
"""Missed where the whole interval of the count is below it. Above it an interval is wider than it
had to be: that is said, and is safe."""
PERMUTED = "permutation, step-down max-T"
_SLOWER_BY = 20
"""Permutation takes so many times as long for a round: it gets fewer of them."""


@dataclass(frozen=True)
class Case:
    """Servers, repetitions and noise."""

    servers: int
    repetitions: int
    noise: str

    def runs(self, rounds: int, measured: Sequence[Sequence[float]]) -> Array:
        """Return the logarithms of so many runs of servers that do not differ."""
        seed = [SEED, self.servers, self.repetitions, NOISES.index(self.noise)]
        dice = np.random.default_rng(seed)
        shape = (rounds, self.repetitions, self.servers)
        if self.noise == MEASURED:
            return as_measured(measured, shape, dice)
        return made_up(self.noise, shape, dice)


@dataclass(frozen=True)
class Outcome:
    """How often a rule erred."""

    rounds: int
    false: float
    """Share of the runs in which any two servers were told apart."""
    coverage: float
    """Share of the intervals against the first server that held the truth."""
    width: float
    """Geometric mean of what must be differed by, divided by that of the first rule."""
    interval: float
    """The same of the half-widths of intervals."""

    @property
    def too_many(self) -> bool:
        """Whether more runs made a false claim than chance explains."""
        return self._ends(self.false)[0] > GOAL_FALSE

    @property
    def too_few(self) -> bool:
        """Whether fewer intervals held the truth than chance explains."""
        return self._ends(self.coverage)[1] < GOAL_COVERAGE[0]

    def _ends(self, share: float) -> tuple[float, float]:
        """Return the 95 % interval of a share of the rounds (Wilson)."""
        z, n = 1.96, self.rounds
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return middle - half, middle + half


def outcome(said: Said, first: Said, servers: int) -> Outcome:
    """Return how often a rule erred, beside the first one on the same runs."""
    against_first = slice(0, servers - 1)
    return Outcome(
        len(said.difference),
        float(said.told.any(1).mean()),
        float(said.covered[:, against_first].mean()),
        _ratio(said.needed, first.needed),
        _ratio(said.half[:, against_first], first.half[:, against_first]),
    )


def _ratio(one: Array, other: Array) -> float:
    return float(np.exp((np.log(one) - np.log(other)).mean()))


def power(
    rule: str, case: Case, rounds: int, measured: Sequence[Sequence[float]]
) -> tuple[float, ...]:
    """Return how often a server is found that is faster than the first by each of `POWER_AT`."""
    found = []
    for difference in POWER_AT:
        y = case.runs(rounds, measured)
        y[:, :, 1] += math.log1p(difference)
        said = RULES[rule](y)
        found.append(float((said.difference[:, 0] < -said.needed[:, 0]).mean()))
    return tuple(found)


def main() -> int:
    """Print a table for each shape; the last lines are the figures of `ours` beside their goals."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--only", action="append", choices=list(RULES), help="these rules")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--shapes", default="", help="such as 4x5,13x3: these, with commas")
    args = parser.parse_args()
    rules = list(dict.fromkeys([*(args.only or RULES)]))
    measured = halves()[1 if args.held_out else 0]
    shapes = [(k, n) for k in SERVERS for n in REPETITIONS]
    if args.shapes:
        shapes = [(int(k), int(n)) for k, n in (one.split("x") for one in args.shapes.split(","))]
    print(f"{args.rounds} runs each; measured noise of {len(measured)} loads")
    of_ours: dict[Case, Outcome] = {}
    for servers, repetitions in shapes:
        print(f"\n{servers} servers, {repetitions} repetitions")
        print(f"| rule | {' | '.join(NOISES)} | 2, 5, 20 % found: {', '.join(POWER_NOISES)} |")
        print("|---" * (len(NOISES) + 2) + "|")
        for rule in rules:
            rounds = max(1, args.rounds // (_SLOWER_BY if rule == PERMUTED else 1))
            cells = []
            for noise in NOISES:
                case = Case(servers, repetitions, noise)
                y = case.runs(rounds, measured)
                found = outcome(RULES[rule](y), next(iter(RULES.values()))(y), servers)
                cells.append(
                    f"{found.false:.1%}, {found.coverage:.1%}, "
                    f"{found.width:.2f}, {found.interval:.2f}"
                )
                if rule == "ours":
                    of_ours[case] = found
            shares = [
                power(rule, Case(servers, repetitions, noise), rounds, measured)
                for noise in POWER_NOISES
            ]
            cells.append("; ".join(" ".join(f"{one:.0%}" for one in of_one) for of_one in shares))
            print(f"| {rule} | {' | '.join(cells)} |", flush=True)
    return _goals(of_ours)


def _goals(found: dict[Case, Outcome]) -> int:
    low, high = GOAL_COVERAGE
    wrong = {case: one for case, one in found.items() if one.too_many}
    narrow = {case: one for case, one in found.items() if one.too_few}
    wide = sum(1 for one in found.values() if one.coverage > high)
    print()
    for said, missed in (
        (f"any false difference in at most {GOAL_FALSE:.0%} of runs", wrong),
        (f"coverage of factors at least {low:.0%}", narrow),
    ):
        print(f"{'MISSED' if missed else 'met   '} {said}, in {len(found)} cases")
        for case, one in missed.items():
            named = f"{case.servers} x {case.repetitions}, {case.noise}"
            print(f"         {named}: {one.false:.1%} false, coverage {one.coverage:.1%}")
    print(f"       wider than need be (coverage above {high:.1%}): {wide} of {len(found)} cases")
    return 1 if wrong or narrow else 0


if __name__ == "__main__":
    sys.exit(main())
