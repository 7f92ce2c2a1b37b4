"""How often `kubectl laptime compare` says of like servers in two runs that they differ.

    PYTHONPATH=bench:proof python3 bench/comparing/between_runs.py [--rounds N]

First of what was measured: pairs of the runs of like servers that `make bench-alike` keeps (their
throughputs), by the time between them. One server of four is taken to have changed: by itself, and
beside others that stay the same. Whatever is found is wrong. Then of servers of two kinds, that
`make bench-duet` keeps: how often their factor was another one in two runs within an hour.

Then simulated: runs of unlike numbers of repetitions and unlike noise, by the degrees of freedom of
Welch and Satterthwaite, by Cochran's and Cox's weights and by the operator's rule, with a fixed
seed.

See docs/decisions/0081-two-runs-by-what-stays-the-same.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

import duet.run
import numpy as np
from alike.kinds import KINDS, NAMES, manifest
from alike.run import JOURNAL, Entry
from laptime_proof import lines
from numpy.typing import NDArray
from scipy import special

from laptime.analysis.two_runs import Change, Comparison, compare_runs
from laptime.api.results import Figures, TrialOutcome, TrialResult
from laptime.api.spec import BenchmarkRunSpec

KIND = KINDS["four"]
SERVERS = NAMES[: KIND.servers]
NEXT_SECONDS = 200.0
HOUR = 3600.0
DISTANCES: Mapping[str, tuple[float, float]] = {
    "the next run, some 100 s later": (0.0, NEXT_SECONDS),
    "within an hour": (0.0, HOUR),
    "six hours and more": (6 * HOUR, math.inf),
}
BESIDE = (0, 1, 3)
"""Servers that stay the same."""

SEED = 20261129
LINES = (4, 12)
SHAPES = (
    (3, 3, 1), (3, 3, 3), (3, 3, 10), (5, 5, 1), (5, 5, 3), (5, 3, 3), (3, 8, 1), (8, 3, 3),
    (8, 8, 1), (8, 8, 3),
)  # fmt: skip
"""Repetitions of the earlier and of the later run, and how many times as noisy the later one is."""
_ERRORS = 0.05
_FEW = 8

Array = NDArray[np.float64]


def spec_of_alike() -> BenchmarkRunSpec:
    """Return the spec of the runs of like servers."""
    return BenchmarkRunSpec.model_validate(manifest("alike", "1", KIND)["spec"])


def trials_of(throughput: Mapping[str, Sequence[float]], load: str) -> list[TrialResult]:
    """Return the trials of a run, with throughputs alone."""
    return [
        TrialResult(
            trial=f"{server}-{number}",
            ordinal=1,
            server=server,
            load=load,
            repetition=number,
            outcome=TrialOutcome.MEASURED,
            figures=Figures(
                requests=round(2 * rate), errors=0, window_seconds=2.0, requests_per_second=rate
            ),
        )
        for server, rates in throughput.items()
        for number, rate in enumerate(rates, start=1)
    ]


@dataclass(frozen=True)
class Told:
    """What pairs of like runs were said to be, as shares."""

    pairs: int
    any_line: float
    """Pairs with a difference in any of the servers' lines, none of them the same."""
    differs: Mapping[int, float]
    """Lines of one server that are said to differ, by how many others stay the same."""
    widths: Mapping[int, float]
    """How far the interval of such a line reaches to each side, in the middle, as a share."""
    unlike: float
    """Lines that cannot be judged, since those that stay the same did not change alike."""


def told(
    spec: BenchmarkRunSpec, pairs: Sequence[tuple[list[TrialResult], list[TrialResult]]]
) -> Told:
    """Return how often what has not changed is said to have, or not to be known."""
    load = spec.loads[0].name
    any_line = unlike = 0
    differs = dict.fromkeys(BESIDE, 0)
    widths: dict[int, list[float]] = {count: [] for count in BESIDE}
    for before, after in pairs:
        any_line += any(map(_differs, compare_runs(spec, before, after)))
        for place, server in enumerate(SERVERS):
            others = [*SERVERS[place + 1 :], *SERVERS[:place]]
            for count in BESIDE:
                among = {server, *others[:count]}
                (found,) = (
                    one
                    for one in compare_runs(
                        spec,
                        [one for one in before if one.server in among],
                        [one for one in after if one.server in among],
                        same=[(name, load) for name in among - {server}],
                    )
                    if one.server == server
                )
                differs[count] += _differs(found)
                if found.ratio is not None and found.ratio.low and found.ratio.high:
                    widths[count].append(math.sqrt(found.ratio.high / found.ratio.low) - 1)
                unlike += count == BESIDE[-1] and found.change is Change.NOT_KNOWN
    of = max(1, len(pairs))
    return Told(
        len(pairs),
        any_line / of,
        {count: found / of / len(SERVERS) for count, found in differs.items()},
        {count: median(each) for count, each in widths.items() if each},
        unlike / of / len(SERVERS),
    )


def _differs(one: Comparison) -> bool:
    return one.change in (Change.BETTER, Change.WORSE)


def factors_apart(entries: Sequence[duet.run.Entry], pairing: str) -> tuple[int, int]:
    """Return in how many pairs of rounds the factor of two unlike servers was another one.

    By the intervals of 95 % that both runs had, beside a noisy neighbour or both without it; and of
    how many pairs.
    """
    apart = of = 0
    for ways in ([one.noisy for one in entries], [one.quiet for one in entries]):
        for one, other in combinations([way[pairing] for way in ways], 2):
            halves = [way.width / 2 for way in (one, other)]
            apart += abs(math.log(one.factor / other.factor)) > math.hypot(*halves)
            of += 1
    return apart, of


def quantiles(errors: Array, free: Sequence[int], share: float) -> Mapping[str, Array]:
    """Return how many standard errors each rule asks for, by the squared errors of both runs."""
    squared = errors.sum(0)
    welch = squared**2 / sum(errors[run] ** 2 / free[run] for run in (0, 1))
    of_run = [float(special.stdtrit(degrees, 1 - share / 2)) for degrees in free]
    by_welch = special.stdtrit(welch, 1 - share / 2)
    few = min(free) < _FEW - 1
    return {
        "Welch": by_welch,
        "Cochran": sum(errors[run] * of_run[run] for run in (0, 1)) / squared,
        "ours": np.full_like(squared, max(of_run)) if few else by_welch,
    }


def normal(shape: tuple[int, ...], dice: np.random.Generator) -> Array:
    """Return noise as it is mostly taken to be."""
    return dice.standard_normal(shape)


def groups(shape: tuple[int, ...], dice: np.random.Generator) -> Array:
    """Return noise of pods that come in two groups, each as likely."""
    return 0.5 * dice.standard_normal(shape) + 3 * (dice.random(shape) < 0.5) - 1.5


def simulated(
    shape: tuple[int, int, float],
    count: int,
    rounds: int,
    noise: Callable[[tuple[int, ...], np.random.Generator], Array] = normal,
) -> Mapping[str, tuple[float, float]]:
    """Return by rule how many runs have a false line among so many, and how wide one is."""
    dice = np.random.default_rng([SEED, *map(int, shape), count])
    wrong: dict[str, Any] = {}
    width: dict[str, float] = {}
    for _ in range(count):
        runs = [noise((rounds, shape[0]), dice), shape[2] * noise((rounds, shape[1]), dice)]
        errors = np.array([one.var(1, ddof=1) / one.shape[1] for one in runs])
        apart = np.abs(runs[1].mean(1) - runs[0].mean(1))
        asked = quantiles(errors, [shape[0] - 1, shape[1] - 1], _ERRORS / count)
        for rule, needed in asked.items():
            half = needed * np.sqrt(errors.sum(0))
            wrong[rule] = wrong.get(rule, False) | (apart > half)
            width[rule] = width.get(rule, 0.0) + float(np.median(half))
    return {
        rule: (float(found.mean()), width[rule] / width["Welch"]) for rule, found in wrong.items()
    }


def _measured() -> Iterator[str]:
    spec = spec_of_alike()
    every = [one for one in lines.entries(JOURNAL, lambda fields: Entry(**fields)) if one.whole]
    runs = [
        (one.began, trials_of(one.throughput, spec.loads[0].name))
        for one in sorted(every, key=lambda one: one.began)
        if one.kind == "four"
    ]
    yield f"{len(runs)} runs of {len(SERVERS)} like servers, {KIND.repetitions} repetitions"
    beside = " | ".join(f"one line beside {count}" for count in BESIDE)
    yield f"| apart | pairs | any of {len(SERVERS)} lines | {beside} | not known |"
    yield "|---" * (4 + len(BESIDE)) + "|"
    for name, (least, most) in DISTANCES.items():
        pairs = [
            (one, other)
            for (began, one), (later, other) in combinations(runs, 2)
            if least <= later - began < most
        ]
        found = told(spec, pairs)
        shares = " | ".join(
            f"{share:.1%}, +-{found.widths[count]:.0%}" for count, share in found.differs.items()
        )
        yield f"| {name} | {found.pairs} | {found.any_line:.1%} | {shares} | {found.unlike:.1%} |"
    rounds = lines.entries(duet.run.JOURNAL, duet.run.read)
    yield ""
    for pairing in ("interleaved", "duet"):
        apart, of = factors_apart(rounds, pairing)
        yield f"factors of two unlike servers, {pairing}: {apart} of {of} pairs of runs apart"


def main() -> None:
    """Print a table of what was measured, and one of each kind of simulated noise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40000)
    rounds = parser.parse_args().rounds
    print(*_measured(), sep="\n", flush=True)
    for noise in (normal, groups):
        print(f"\nsimulated, {rounds} pairs of like runs, noise: {noise.__name__}")
        print(f"| repetitions, noise | {' | '.join(f'{count} lines' for count in LINES)} |")
        print("|---" * (1 + len(LINES)) + "|")
        for shape in SHAPES:
            cells = [
                ", ".join(
                    f"{rule} {wrong:.1%} {width:.2f}x"
                    for rule, (wrong, width) in simulated(shape, count, rounds, noise).items()
                )
                for count in LINES
            ]
            said = f"{shape[0]} and {shape[1]}, {shape[2]}x"
            print(f"| {said} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
