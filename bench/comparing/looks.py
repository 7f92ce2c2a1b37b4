"""How often runs err that look after each repetition and stop once all orders are known.

    PYTHONPATH=bench python3 bench/comparing/looks.py [--rounds N] [--only SCHEDULE] [--held-out]

A schedule says which share of errors the claims and intervals of each look may make. Each of them
is tried on the same runs: servers that do not differ, with all kinds of noise of noise.py, looked
at after each repetition from the third to the last one: in which share of the runs are any two
told apart at any of the looks? Then servers that differ, each from the next one by 2, 5 and 20 %:
after how many repetitions are all orders known, how often does an interval of a factor hold the
truth where the run stops, and how many repetitions must a run without looks have to know all orders
in four of five runs?

The rule of 1 % is left out, since it hides errors where noise is small beside it. Everything has a
fixed seed. Goals are those of outcomes.py; exits with 1 when the operator's schedule misses one,
and a case that misses one is drawn again with other seeds and more runs, as in run.py.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from candidates import Array, Truths, left_out
from measured_noise import halves
from noise import DRIFTS, MADE_UP, as_measured, made_up
from outcomes import GOAL_COVERAGE, GOAL_FALSE, wilson
from scipy import special
from scipy.stats import norm

from laptime.analysis.comparing import NOISIER, PAIRS_SHARE
from laptime.analysis.distributions import studentized_range_quantile
from laptime.analysis.looks import shares_of_looks
from laptime.analysis.statistics import signed_ranks_suffice

SERVERS = (2, 4, 6)
FIRST, MOST = 3, 30
OTHERS = ((3, 5), (3, 10), (8, 30), (3, 60))
"""First and last looks that the operator's schedule is tried with as well."""
WORTH_KNOWING = 0.05
"""Servers that differ by exactly this must not be proven to differ by less."""
MEASURED = "measured"
NOISES = (*MADE_UP, MEASURED, *DRIFTS)
DIFFERENCES = (0.02, 0.05, 0.20)
POWER_NOISES = ("equal", MEASURED)
SEED = 20261127
AGAIN = 5
FRESH = 300
"""Draw of the runs that the operator's schedule is judged by: not those that it was chosen by."""
_KNOWN_IN = 0.8
_ERRORS = 0.05

Schedule = Callable[[int, int], Sequence[float]]
"""The shares of errors of all looks, from the first to the last one."""


def naive(first: int, most: int) -> Sequence[float]:
    """Return 5 % at each look."""
    return [_ERRORS] * (most - first + 1)


def _times(first: int, most: int) -> Array:
    return np.arange(first, most + 1) / most


def _pocock(times: Array) -> Array:
    return np.asarray(_ERRORS * np.log1p((math.e - 1) * times))


def _less(share: float) -> Callable[[Array], Array]:
    return lambda times: share * _pocock(times)


def _obrien_fleming(times: Array) -> Array:
    return np.asarray(2 * norm.sf(norm.isf(_ERRORS / 2) / np.sqrt(times)))


def _power(power: float) -> Callable[[Array], Array]:
    return lambda times: _ERRORS * times**power


def _each_anew(spending: Callable[[Array], Array]) -> Schedule:
    """Return what each look spends by itself: at most 5 % in all, whatever the figures are."""

    def schedule(first: int, most: int) -> Sequence[float]:
        return [float(one) for one in np.diff(spending(_times(first, most)), prepend=0)]

    return schedule


def _lan_demets(spending: Callable[[Array], Array]) -> Schedule:
    def schedule(first: int, most: int) -> Sequence[float]:
        times = _times(first, most)
        return nominal(tuple(times.tolist()), tuple(spending(times).tolist()))

    return schedule


@cache
def nominal(times: tuple[float, ...], spent: tuple[float, ...]) -> tuple[float, ...]:
    """Return two-sided levels whose looks together err as often as is spent, of a Brownian motion.

    P. Armitage, C. K. McPherson and B. C. Rowe, Repeated significance tests on accumulating data,
    Journal of the Royal Statistical Society A 132 (1969); levels: K. K. G. Lan and D. L. DeMets
    (1983), as above.
    """
    points, levels = 801, []
    grid, density, before, bound = np.zeros(1), np.ones(1), 0.0, 0.0
    used = 0.0
    for time, so_far in zip(times, spent, strict=True):
        step = math.sqrt(time - before)
        want = so_far - used

        def beyond(
            reach: float, grid: Array = grid, density: Array = density, step: float = step
        ) -> float:
            return float(
                density @ (norm.sf((reach - grid) / step) + norm.cdf((-reach - grid) / step))
            )

        low, high = 0.0, 12 * math.sqrt(time)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if beyond(middle) > want else (low, middle)
        bound = high
        used += beyond(bound)
        levels.append(float(2 * norm.sf(bound / math.sqrt(time))))
        fresh = np.linspace(-bound, bound, points)
        width = np.full(points, fresh[1] - fresh[0])
        width[[0, -1]] /= 2
        density = (norm.pdf((fresh[:, None] - grid[None, :]) / step) / step) @ density * width
        grid, before = fresh, time
    return tuple(levels)


def mixture(within: float) -> Schedule:
    """Return the levels of a confidence sequence: a normal mixture of likelihood ratios.

    H. Robbins, Statistical methods related to the law of the iterated logarithm, Annals of
    Mathematical Statistics 41 (1970). It has no last look, and is narrowest after some `within`.
    """

    def schedule(first: int, most: int) -> Sequence[float]:
        n = np.arange(first, most + 1)
        z = np.sqrt((n + within) / n * np.log((n + within) / (within * _ERRORS**2)))
        return [float(one) for one in 2 * norm.sf(z)]

    return schedule


OURS = "ours"
SCHEDULES: Mapping[str, Schedule] = {
    OURS: shares_of_looks,
    "5 % at each": naive,
    "each anew, like Pocock": _each_anew(_pocock),
    "each anew, evenly": _each_anew(_power(1)),
    "Lan-DeMets, like Pocock": _lan_demets(_pocock),
    "Lan-DeMets, like Pocock, 4.5 %": _lan_demets(_less(0.9)),
    "Lan-DeMets, like Pocock, 4 %": _lan_demets(_less(0.8)),
    "Lan-DeMets, like Pocock, 3 %": _lan_demets(_less(0.6)),
    "Lan-DeMets, evenly": _lan_demets(_power(1)),
    "Lan-DeMets, root": _lan_demets(_power(0.5)),
    "Lan-DeMets, power 1.5": _lan_demets(_power(1.5)),
    "Lan-DeMets, O'Brien-Fleming": _lan_demets(_obrien_fleming),
    "confidence sequence": mixture(5),
}


class Look:
    """What the first repetitions of many runs say, whatever share of errors is asked for.

    As candidates.ours, but signed ranks are counted instead of read off their interval: it holds a
    value as long as enough of the means of pairs lie at either side, and as many as do lie below it
    as the ranks below it are worth.
    """

    def __init__(self, y: Array, truth: Array) -> None:
        _, self.repetitions, self.servers = y.shape
        one, other = np.triu_indices(self.servers, 1)
        paired = y[:, :, one] - y[:, :, other]
        self._paired = paired
        self.difference: Array = paired.mean(1)
        self.of_pair: Array = paired.std(1, ddof=1) / math.sqrt(self.repetitions)
        self.truth = truth[one] - truth[other]
        self._least_ranks = _ranks_at_one_side(paired)
        self._of_truth = (
            _ranks_at_one_side(paired - self.truth) if truth.any() else self._least_ranks
        )
        left = (
            y - y.mean(2, keepdims=True) - y.mean(1, keepdims=True) + y.mean((1, 2), keepdims=True)
        )
        self.degrees = (self.repetitions - 1) * (self.servers - 1)
        own = (left**2).sum(1) * self.servers / self.degrees
        together = own.mean(1, keepdims=True)
        variances = np.maximum(own, together)
        self.of_model: Array = np.sqrt((variances[:, one] + variances[:, other]) / self.repetitions)
        noisy = own > NOISIER * together
        self.noisy: Truths = noisy[:, one] | noisy[:, other]

    def told(self, errors: float) -> Truths:
        """Return which pairs are told apart."""
        n, count = self.repetitions, len(self.truth)
        if signed_ranks_suffice(n, 1 - errors / count):
            return self._least_ranks < left_out(n, errors / count)
        told: Truths = np.abs(self.difference) > self._needed(errors)
        return told & ~self._holds(errors, np.zeros(count), self._least_ranks)

    def _needed(self, errors: float) -> Array:
        n, rarer = self.repetitions, errors * (1 - 1 / self.repetitions)
        if self.servers == 2:
            return _student(n - 1, rarer) * self.of_pair
        of_model = errors * (1 - PAIRS_SHARE)
        critical = max(
            _range(self.servers, self.degrees, of_model * (1 - 1 / n)), _student(n - 1, of_model)
        )
        alone = _student(n - 1, rarer / round(len(self.truth) / PAIRS_SHARE))
        needed: Array = np.minimum(critical * self.of_model, alone * self.of_pair)
        return needed

    def covered(self, errors: float) -> Truths:
        """Return which intervals of ratios hold the truth."""
        return self._holds(errors, self.truth, self._of_truth)

    def alike(self, errors: float, difference: float) -> Truths:
        """Return which pairs are proven to differ by less than this, as a ratio."""
        n, count, within = self.repetitions, len(self.truth), math.log1p(difference)
        if signed_ranks_suffice(n, 1 - errors / count):
            low, high = _ranks_below(self._paired + within), _ranks_below(within - self._paired)
            return np.maximum(low, high) < left_out(n, errors / count)
        return np.abs(self.difference) + self._needed(errors) < within

    def _holds(self, errors: float, value: Array, ranks: Array) -> Truths:
        n, count = self.repetitions, len(self.truth)
        if signed_ranks_suffice(n, 1 - errors):
            return ranks >= left_out(n, errors)
        away = np.abs(self.difference - value)
        by_pair = _student(n - 1, errors) * self.of_pair
        if self.servers == 2:
            return away <= by_pair
        degrees = np.where(self.noisy, _student(n - 1, errors), _student(self.degrees, errors))
        alone = _student(n - 1, errors * (1 - 1 / n) / round(count / PAIRS_SHARE)) * self.of_pair
        claimed = np.abs(self.difference) > alone
        return away <= np.where(claimed, by_pair, degrees * self.of_model)


def _ranks_at_one_side(paired: Array) -> Array:
    n = paired.shape[1]
    below = _ranks_below(paired)
    found: Array = np.minimum(below, n * (n + 1) // 2 - below)
    return found


def _ranks_below(paired: Array) -> Array:
    """Return the sum of the ranks of negative differences: as many means of pairs are negative."""
    order = np.argsort(np.abs(paired), 1)
    negative = np.take_along_axis(paired < 0, order, 1)
    found: Array = (negative * np.arange(1, paired.shape[1] + 1)[None, :, None]).sum(1)
    return found


@cache
def _student(degrees: int, errors: float) -> float:
    return float(special.stdtrit(degrees, 1 - errors / 2))


@cache
def _range(servers: int, degrees: int, errors: float) -> float:
    return studentized_range_quantile(1 - errors, servers, degrees) / math.sqrt(2)


@dataclass(frozen=True)
class Case:
    """Servers, each slower than the next by a ratio, and their noise."""

    servers: int
    noise: str
    first: int = FIRST
    most: int = MOST
    difference: float = 0.0

    def __str__(self) -> str:
        return f"{self.servers} servers, looks {self.first} to {self.most}, {self.noise}"

    @property
    def truth(self) -> Array:
        """Return the logarithms that the servers are worth."""
        found: Array = math.log1p(self.difference) * np.arange(self.servers, dtype=np.float64)
        return found

    def runs(self, rounds: int, measured: Sequence[Sequence[float]], draw: int = 0) -> Array:
        """Return the logarithms of so many runs."""
        dice = np.random.default_rng(
            [SEED, self.servers, self.most, NOISES.index(self.noise), draw]
        )
        shape = (rounds, self.most, self.servers)
        if self.noise == MEASURED:
            like = as_measured(measured, shape, dice)
        else:
            like = made_up(self.noise, shape, dice)
        return np.asarray(like + self.truth, np.float64)


@dataclass
class Seen:
    """What came of the looks of a case."""

    false: float
    """Share of the runs in which any two servers that do not differ were told apart."""
    known: float
    """Share of the runs in which all orders were known by the last look at least."""
    repetitions: float
    """Mean number at which runs stopped."""
    covered: float
    """Share of the intervals against the first server that held the truth where a run stopped."""
    wrong: float
    """Share of the runs that stopped with any order the wrong way round."""
    alike: float
    """Share of the runs in which servers that differ by `WORTH_KNOWING` were proven to do less."""


def seen(case: Case, y: Array, schedules: Mapping[str, Schedule]) -> dict[str, Seen]:
    """Return what comes of the looks at these runs, by each schedule."""
    rounds = len(y)
    shares = {name: one(case.first, case.most) for name, one in schedules.items()}
    false = {name: np.zeros(rounds, bool) for name in schedules}
    stopped = {name: np.zeros(rounds, int) for name in schedules}
    known = {name: np.zeros(rounds, bool) for name in schedules}
    wrong = {name: np.zeros(rounds, bool) for name in schedules}
    covered = {name: np.zeros(rounds) for name in schedules}
    alike = {name: np.zeros(rounds, bool) for name in schedules}
    differ = np.abs(Look(y[:, :2], case.truth).truth) >= math.log1p(WORTH_KNOWING) - 1e-9
    for place, n in enumerate(range(case.first, case.most + 1)):
        look = Look(y[:, :n], case.truth)
        for name in schedules:
            errors = shares[name][place]
            told = look.told(errors)
            false[name] |= (told & (look.truth == 0)).any(1)
            if differ.any():
                alike[name] |= (look.alike(errors, WORTH_KNOWING) & differ).any(1)
            goes_on = stopped[name] == 0
            all_known = told.all(1) & goes_on
            stops = goes_on if n == case.most else all_known
            known[name] |= all_known
            stopped[name][stops] = n
            reverse = told & (np.sign(look.difference) != np.sign(look.truth))
            wrong[name] |= stops & reverse.any(1)
            holds = look.covered(errors)[:, : case.servers - 1].mean(1)
            covered[name][stops] = holds[stops]
    return {
        name: Seen(
            float(false[name].mean()),
            float(known[name].mean()),
            float(stopped[name].mean()),
            float(covered[name].mean()),
            float(wrong[name].mean()),
            float(alike[name].mean()),
        )
        for name in schedules
    }


def fixed_number(case: Case, y: Array) -> int | None:
    """Return after how many repetitions a run without looks knows all orders in four of five."""
    for n in range(2, case.most + 1):
        if Look(y[:, :n], case.truth).told(_ERRORS).all(1).mean() >= _KNOWN_IN:
            return n
    return None


def main() -> int:
    """Print false differences, then repetitions, of each schedule."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=10000)
    parser.add_argument("--only", action="append", choices=list(SCHEDULES), help="these schedules")
    parser.add_argument("--held-out", action="store_true")
    args = parser.parse_args()
    measured = halves()[1 if args.held_out else 0]
    schedules = {name: SCHEDULES[name] for name in args.only or SCHEDULES}
    print(f"{args.rounds} runs each, looked at after each repetition from {FIRST} to {MOST}")
    for name, schedule in schedules.items():
        levels = schedule(FIRST, MOST)
        shown = ", ".join(f"{n}: {levels[n - FIRST]:.3%}" for n in (3, 5, 10, 20, 30))
        print(f"  {name}: {shown}")
    _print_like(args.rounds, measured, schedules)
    _print_apart(args.rounds, measured, schedules)
    return _goals(args.rounds, measured)


def _print_like(
    rounds: int, measured: Sequence[Sequence[float]], schedules: Mapping[str, Schedule]
) -> None:
    for servers in SERVERS:
        print(f"\n{servers} like servers: percent of runs with any false difference")
        print(f"| schedule | {' | '.join(NOISES)} |")
        print("|---" * (len(NOISES) + 1) + "|", flush=True)
        cells: dict[str, list[str]] = {name: [] for name in schedules}
        for noise in NOISES:
            case = Case(servers, noise)
            found = seen(case, case.runs(rounds, measured), schedules)
            for name, one in found.items():
                star = "*" if wilson(one.false, rounds)[0] > GOAL_FALSE else ""
                cells[name].append(f"{100 * one.false:.1f}{star}")
        for name, row in cells.items():
            print(f"| {name} | {' | '.join(row)} |", flush=True)


def _print_apart(
    rounds: int, measured: Sequence[Sequence[float]], schedules: Mapping[str, Schedule]
) -> None:
    print("\nServers that differ, each from the next one: repetitions until all orders are known")
    print("(mean), percent of runs that know them by the last look, coverage where they stop")
    heads = [f"{noise}, {d:.0%}" for noise in POWER_NOISES for d in DIFFERENCES]
    for servers in SERVERS:
        print(f"\n{servers} servers\n| schedule | {' | '.join(heads)} |")
        print("|---" * (len(heads) + 1) + "|")
        rows: dict[str, list[str]] = {name: [] for name in schedules}
        fixed = []
        for noise in POWER_NOISES:
            for difference in DIFFERENCES:
                case = Case(servers, noise, difference=difference)
                y = case.runs(rounds, measured)
                number = fixed_number(case, y)
                fixed.append(f"{number or 'more than 30'}")
                for name, one in seen(case, y, schedules).items():
                    rows[name].append(
                        f"{one.repetitions:.1f}, {100 * one.known:.0f}, {100 * one.covered:.1f}"
                    )
        print(f"| without looks, in four of five runs | {' | '.join(fixed)} |")
        for name, row in rows.items():
            print(f"| {name} | {' | '.join(row)} |", flush=True)


def _goals(rounds: int, measured: Sequence[Sequence[float]]) -> int:
    """Print what the operator's schedule reaches; a case that misses a goal is drawn again."""
    ours = {OURS: shares_of_looks}
    missed = False
    print("\nThe operator's schedule with other looks: percent of runs with any false difference")
    print(f"| servers, looks | {' | '.join(NOISES)} |\n{'|---' * (len(NOISES) + 1)}|")
    doubted = []
    for first, most in ((FIRST, MOST), *OTHERS):
        for servers in SERVERS:
            cells = []
            for noise in NOISES:
                case = Case(servers, noise, first, most)
                y = case.runs(rounds, measured, FRESH)
                false = seen(case, y, ours)[OURS].false
                cells.append(f"{100 * false:.1f}")
                if wilson(false, rounds)[0] > GOAL_FALSE:
                    doubted.append(case)
            print(f"| {servers}, {first} to {most} | {' | '.join(cells)} |", flush=True)
    for case in doubted:
        draws = range(1, AGAIN + 1)
        shares = [seen(case, case.runs(rounds, measured, n), ours)[OURS].false for n in draws]
        share = sum(shares) / AGAIN
        missed |= wilson(share, AGAIN * rounds)[0] > GOAL_FALSE
        print(f"again   {case}: {share:.2%} of {AGAIN * rounds} other runs", flush=True)
    lowest, wrong, alike = 1.0, 0.0, 0.0
    for servers in SERVERS:
        for noise in NOISES:
            case = Case(servers, noise, difference=WORTH_KNOWING)
            found = seen(case, case.runs(rounds, measured, FRESH), ours)[OURS]
            lowest = min(lowest, found.covered)
            wrong, alike = max(wrong, found.wrong), max(alike, found.alike)
    missed |= wilson(lowest, rounds)[1] < GOAL_COVERAGE[0]
    missed |= max(wilson(one, rounds)[0] for one in (wrong, alike)) > GOAL_FALSE
    print(f"\n{'MISSED' if missed else 'met   '} any false difference in at most {GOAL_FALSE:.0%}")
    print(
        f"       lowest coverage where runs stop, servers {WORTH_KNOWING:.0%} apart: {lowest:.1%}"
    )
    print(f"       most runs that stop with a wrong order: {wrong:.1%}; most that prove servers")
    print(f"       alike that differ by {WORTH_KNOWING:.0%}: {alike:.1%}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
