"""Whether intervals hold what they say: on runs made up, and on real trials.

    python3 bench/precision/run.py [--rounds N] [--blocks N] [--seconds S] [--only-simulated]
                                   [--k6 FILE] [--trials FILE]

1. Simulated: two like servers on machines that drift, stumble and jump, in shuffled blocks. How
   often does the interval of the factor cover 1, with a fixed number of repetitions and
   when a run stops at a precision?
2. Real: our k6 drives servers of one binary on 127.0.0.1 in short trials, a fresh process each,
   in shuffled blocks: one of them does 3 % more work. Blocks are drawn from these at random,
   without putting back, and compared as the operator does: how often is the slower one found?

What is claimed of three servers and more: bench/comparing. Whether like servers are told apart:
bench/alike, by runs of which nothing is drawn again. --trials keeps the trials in a file, or
takes them from it. Exits with 1 when a goal is missed. Needs Go.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from statistics import median

from loopback import build, measure_blocks
from simulation import MACHINES, Coverage, fixed_runs, stopped_runs

from laptime.analysis.statistics import can_be_told_apart, half_width, interval_of_logs

GOAL_COVERAGE = 0.94
REPETITIONS = (5, 8, 20)
PRECISIONS = (0.01, 0.02)
MOST_REPETITIONS = 60
COMPARISONS = 2000
MOST_DRAWN = 40


def _fixed(name: str, repetitions: int, rounds: int, dice: random.Random) -> Coverage:
    return fixed_runs(MACHINES[name], repetitions, rounds, dice)


def _stopped(name: str, precision: float, rounds: int, dice: random.Random) -> Coverage:
    return stopped_runs(MACHINES[name], precision, MOST_REPETITIONS, rounds, dice)


def simulated(rounds: int, seed: int) -> float:
    """Print the coverage on every machine, with an own seed for each; return the lowest."""
    print(f"Simulated: how often the interval of the factor covers the truth ({rounds} runs each)")
    print(f"  {'machine':<26}{'repetitions':>14}{'coverage':>10}{'half-width':>12}")
    with ProcessPoolExecutor() as workers:
        parts: list[tuple[str, float | None, Future[Coverage]]] = []
        for name in MACHINES:
            for repetitions in REPETITIONS:
                dice = random.Random(f"{seed} {name} {repetitions}")
                parts.append((name, None, workers.submit(_fixed, name, repetitions, rounds, dice)))
            for precision in PRECISIONS:
                dice = random.Random(f"{seed} {name} {precision}")
                found = workers.submit(_stopped, name, precision, rounds, dice)
                parts.append((name, precision, found))
        return min(_print_coverage(name, at, found.result()) for name, at, found in parts)


def _print_coverage(name: str, precision: float | None, coverage: Coverage) -> float:
    repetitions = f"{coverage.repetitions / coverage.rounds:.0f}"
    if precision is not None:
        repetitions += f" to ±{precision:.0%}"
    # Not the mean: a single run in which heavy tails struck twice can be wider than all others.
    width = median(coverage.half_widths)
    print(f"  {name:<26}{repetitions:>14}{coverage.share:>10.1%}{width:>12.2%}", flush=True)
    return coverage.share


def drawn(logs: Mapping[str, Sequence[float]], count: int, dice: random.Random) -> float:
    """Return the share of comparisons of so many random blocks that find the slower server."""
    blocks = range(len(logs["one"]))
    found = 0
    for _ in range(COMPARISONS):
        chosen = dice.sample(blocks, count)
        one, slower = ({b: logs[name][b] for b in chosen} for name in ("one", "slower"))
        found += can_be_told_apart(one, slower)
    return found / COMPARISONS


def real(logs: Mapping[str, Sequence[float]], dice: random.Random) -> tuple[float, bool]:
    """Print what comparisons of real trials say.

    Returns the share of the longest comparisons that find the slower server, and whether all blocks
    together find it.
    """
    blocks = len(logs["one"])
    print(f"\nReal trials: {COMPARISONS} comparisons of blocks drawn from {blocks}")
    print(f"  {'repetitions':>11}{'3 % slower, found':>20}")
    found = 0.0
    for count in sorted({min(count, blocks) for count in (*REPETITIONS, MOST_DRAWN)}):
        found = drawn(logs, count, dice)
        print(f"  {count:>11}{found:>20.1%}")
    interval = interval_of_logs([logs["slower"][n] - logs["one"][n] for n in range(blocks)])
    print(
        f"  all {blocks} blocks: factor {interval.value:.4f} "
        f"(± {half_width(interval) or math.inf:.2%})"
    )
    one, slower = (dict(enumerate(logs[name])) for name in ("one", "slower"))
    return found, can_be_told_apart(one, slower)


def trials_of(args: argparse.Namespace, dice: random.Random) -> Mapping[str, Sequence[float]]:
    """Return the logarithms of requests/s: from the file, or measured now."""
    kept = Path(args.trials) if args.trials else None
    if kept is not None and kept.exists():
        loaded: Mapping[str, Sequence[float]] = json.loads(kept.read_text())
        return loaded
    with tempfile.TemporaryDirectory(prefix="laptime-precision-") as folder:
        programs = build(Path(folder), Path(args.k6).resolve() if args.k6 else None)
        print(f"\nMeasuring {args.blocks} blocks of 2 trials of {args.seconds:g} s", flush=True)
        logs = measure_blocks(programs, args.blocks, args.seconds, dice)
    if kept is not None:
        kept.write_text(json.dumps(logs))
    return logs


def main() -> int:
    """Run both parts; the last lines are the figures beside their goals."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=8000)
    parser.add_argument("--blocks", type=int, default=120)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--k6", help="a k6 that is built already")
    parser.add_argument("--trials", help="file that the trials are kept in or taken from")
    parser.add_argument("--only-simulated", action="store_true")
    args = parser.parse_args()
    dice = random.Random(args.seed)
    lowest = simulated(args.rounds, args.seed)
    goals = [
        (
            f"lowest coverage on simulated data {lowest:.1%} (goal: {GOAL_COVERAGE:.0%})",
            lowest >= GOAL_COVERAGE,
        )
    ]
    if not args.only_simulated:
        found, in_all = real(trials_of(args, dice), dice)
        goals += [
            (
                f"server with 3 % more work found: with {MOST_DRAWN} repetitions in {found:.0%}, "
                f"with all blocks {'yes' if in_all else 'no'} (goal: yes)",
                in_all,
            ),
        ]
    print()
    for said, met in goals:
        print(f"{'met   ' if met else 'MISSED'} {said}")
    return 0 if all(met for _, met in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
