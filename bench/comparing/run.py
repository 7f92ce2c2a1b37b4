"""What rules for comparing servers claim of servers that do not differ, and of such that do.

    PYTHONPATH=bench python3 bench/comparing/run.py [--rounds N] [--only RULE] [--held-out]

Every candidate, on made-up noise of many kinds and on noise as it was measured, with 2, 4, 6 and
13 servers in 3, 5 and 10 repetitions: in which share of the runs are any two servers told apart,
how many of the 95 % intervals of factors hold the truth, and how much must servers differ, and how
wide are the intervals, beside the first rule. Likewise of servers that do differ, evenly from the
first to the last one, which is 1.05, 1.5 or 4 times as fast: how often is a slower one called the
faster, and how many of the intervals of factors, as `ours` draws them on a page, hold the truth?
Then: how often is a server found that is faster by 2, 5 and 20 %, and how often one that is faster
by 3 % in the most repetitions that a run makes by itself (longest.py).

A machine that drifts does so to trials in the order that the operator plans; other orders are
beside it in orders.py. Some of what a machine does is felt unlike: a server takes half of it and
another one twice. Noise as measured has the size of that of published runs, and what was left
over of runs of like servers has its shape as well; that of thirteen servers is drawn by itself.
All are drawn from the half of the measured runs that the rule was chosen by; --held-out draws them
from the other one, and what they came to is printed once more with its interval. Everything has a
fixed seed.

Exits with 1 when `ours` misses a goal; goals, and what counts as reaching them, were set before the
candidates were compared. A case that misses one is drawn again, with other seeds and ten times as
many runs, and missed is what misses there as well: of some 770 counts that are judged some are off
by chance.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import longest
import numpy as np
from candidates import RULES, Array
from measured_noise import halves, left_over
from noise import DRIFTS, FELT_UNLIKE, MADE_UP, as_left_over, as_measured, made_up
from outcomes import GOAL_COVERAGE, GOAL_FALSE, Outcome, outcome, wilson

SERVERS = (2, 4, 6, 13)
REPETITIONS = (3, 5, 10)
MEASURED = "measured"
LEFT_OVER = "left over"
OF_THIRTEEN = "left over of thirteen"
NOISES = (*MADE_UP, MEASURED, *DRIFTS, LEFT_OVER, *FELT_UNLIKE, OF_THIRTEEN)
"""Its seed is the place of a noise: a new one stands last."""
FACTORS = (1.05, 1.5, 4.0)
"""So many times as fast as the first server is the last one, and the others lie between evenly."""
FACTOR_NOISES = ("equal", "half noisy", MEASURED)
POWER_AT = (0.02, 0.05, 0.20)
POWER_NOISES = ("equal", MEASURED)
SEED = 20261123

AGAIN = 10
"""So many times as many runs are made of a case that missed a goal."""
FIRST = next(iter(RULES))
PERMUTED = "permutation, step-down max-T"
_SLOWER_BY = 20
"""Permutation takes so many times as long for a round: it gets fewer of them."""


@dataclass(frozen=True)
class Measured:
    """One half of what was really measured."""

    deviations: Sequence[Sequence[float]]
    """Of the servers of each load."""
    left_over: Mapping[str, Sequence[Array]]
    """Of the trials of each figure of each run of like servers, by the name of the noise."""


@dataclass(frozen=True)
class Case:
    """Servers, repetitions and noise."""

    servers: int
    repetitions: int
    noise: str
    factor: float = 1.0
    """Of the last server; 1: servers do not differ."""

    def __str__(self) -> str:
        return f"{self.servers} x {self.repetitions}, {self.of}"

    @property
    def of(self) -> str:
        """What stands above its column."""
        return self.noise if self.factor == 1 else f"{self.noise}, factors to {self.factor:g}"

    @property
    def truth(self) -> Array:
        """The logarithms that the servers are worth."""
        return np.linspace(0.0, math.log(self.factor), self.servers)

    def outcome(self, rule: str, y: Array) -> Outcome:
        """Return how often a rule errs in runs of this case."""
        said, first = RULES[rule](y), RULES[FIRST](y)
        as_drawn = rule == "ours" and self.factor != 1
        return outcome(said, first, self.servers, self.truth, as_drawn=as_drawn)

    def runs(self, rounds: int, measured: Measured, draw: int = 0) -> Array:
        """Return the logarithms of so many runs."""
        seed = [SEED, self.servers, self.repetitions, NOISES.index(self.noise)]
        if self.factor != 1:
            seed.append(FACTORS.index(self.factor) + AGAIN + 1)
        dice = np.random.default_rng([*seed, draw] if draw else seed)
        shape = (rounds, self.repetitions, self.servers)
        if self.noise == MEASURED:
            noise = as_measured(measured.deviations, shape, dice)
        elif self.noise in measured.left_over:
            noise = as_left_over(measured.left_over[self.noise], shape, dice)
        else:
            noise = made_up(self.noise, shape, dice)
        return noise + self.truth


def cases(servers: int, repetitions: int) -> list[Case]:
    """Return what is tried of a shape: servers that do not differ, and such that do."""
    alike = [Case(servers, repetitions, noise) for noise in NOISES]
    return alike + [
        Case(servers, repetitions, noise, factor) for factor in FACTORS for noise in FACTOR_NOISES
    ]


def power(rule: str, case: Case, rounds: int, measured: Measured) -> tuple[float, ...]:
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
    half = 1 if args.held_out else 0
    of_like = {LEFT_OVER: left_over()[half], OF_THIRTEEN: left_over(thirteen=True)[half]}
    measured = Measured(halves()[half], of_like)
    shapes = [(k, n) for k in SERVERS for n in REPETITIONS]
    if args.shapes:
        shapes = [(int(k), int(n)) for k, n in (one.split("x") for one in args.shapes.split(","))]
    print(
        f"{args.rounds} runs each; noise of {len(measured.deviations)} measured loads, and "
        f"what was left over of {len(of_like[LEFT_OVER])} figures of runs of like servers, "
        f"and of {len(of_like[OF_THIRTEEN])} of thirteen"
    )
    of_ours: dict[Case, Outcome] = {}
    for servers, repetitions in shapes:
        print(f"\n{servers} servers, {repetitions} repetitions")
        of_shape = cases(servers, repetitions)
        heads = [*(case.of for case in of_shape), f"2, 5, 20 % found: {', '.join(POWER_NOISES)}"]
        print(f"| rule | {' | '.join(heads)} |")
        print("|---" * (len(heads) + 1) + "|")
        for rule in rules:
            rounds = max(1, args.rounds // (_SLOWER_BY if rule == PERMUTED else 1))
            cells = []
            for case in of_shape:
                found = case.outcome(rule, case.runs(rounds, measured))
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
    print("", *longest.table(args.rounds, sorted({servers for servers, _ in shapes})), sep="\n")
    print("", *of_measured(of_ours), sep="\n")
    return _goals(of_ours, args.rounds, measured)


def of_measured(found: Mapping[Case, Outcome]) -> Iterator[str]:
    """Yield what `ours` came to by noise as it was measured: a table, and a line for each noise."""
    low, high = GOAL_COVERAGE
    shapes = dict.fromkeys((case.servers, case.repetitions) for case in found)
    by_noise = {
        noise: [found[Case(*shape, noise)] for shape in shapes]
        for noise in (MEASURED, LEFT_OVER, OF_THIRTEEN)
    }
    yield "ours, runs with any false difference (95 % interval), coverage of factors"
    yield f"| servers x repetitions | {' | '.join(by_noise)} |"
    yield "|---" * (len(by_noise) + 1) + "|"
    for (servers, repetitions), of_shape in zip(
        shapes, zip(*by_noise.values(), strict=True), strict=True
    ):
        cells = []
        for one in of_shape:
            least, most = wilson(one.false, one.rounds)
            cells.append(f"{one.false:.1%} ({least:.1%} to {most:.1%}), {one.coverage:.1%}")
        yield f"| {servers} x {repetitions} | {' | '.join(cells)} |"
    for noise, of_noise in by_noise.items():
        false = sum(one.false <= GOAL_FALSE for one in of_noise)
        within = sum(low <= one.coverage <= high for one in of_noise)
        above = sum(one.coverage > high for one in of_noise)
        yield (
            f"{noise}: false in at most {GOAL_FALSE:.0%} of runs in {false} of {len(of_noise)} "
            f"cases; coverage within {low:.0%} to {high:.1%} in {within}, above in {above}"
        )


def _again(case: Case, rounds: int, measured: Measured) -> Outcome:
    """Return how often `ours` errs in other runs of a case, many more of them."""
    outcomes = []
    for draw in range(1, AGAIN + 1):
        y = case.runs(rounds, measured, draw)
        outcomes.append(case.outcome("ours", y))
    return replace(
        outcomes[0],
        rounds=AGAIN * rounds,
        false=sum(one.false for one in outcomes) / AGAIN,
        coverage=sum(one.coverage for one in outcomes) / AGAIN,
    )


def _goals(found: dict[Case, Outcome], rounds: int, measured: Measured) -> int:
    low, high = GOAL_COVERAGE
    print()
    doubted = {case: one for case, one in found.items() if one.too_many or one.too_few}
    again = {case: _again(case, rounds, measured) for case in doubted}
    for case, one in doubted.items():
        more = again[case]
        print(f"again   {case}: {one.false:.1%} false, coverage {one.coverage:.1%}; in")
        print(f"        {more.rounds} other runs {more.false:.2%} and {more.coverage:.2%}")
    wrong = {case: again[case] for case, one in doubted.items() if one.too_many}
    wrong = {case: one for case, one in wrong.items() if one.too_many}
    narrow = {case: again[case] for case, one in doubted.items() if one.too_few}
    narrow = {case: one for case, one in narrow.items() if one.too_few}
    wide = sum(1 for one in found.values() if one.coverage > high)
    for said, missed in (
        (f"any false difference in at most {GOAL_FALSE:.0%} of runs", wrong),
        (f"coverage of factors at least {low:.0%}", narrow),
    ):
        print(f"{'MISSED' if missed else 'met   '} {said}, in {len(found)} cases")
        for case, one in missed.items():
            print(f"        {case}: {one.false:.2%} false, coverage {one.coverage:.2%}")
    print(f"       wider than need be (coverage above {high:.1%}): {wide} of {len(found)} cases")
    return 1 if wrong or narrow else 0


if __name__ == "__main__":
    sys.exit(main())
