"""What runs of searches say of servers whose capacity is known, as it was before and now.

    python3 bench/search/run.py [--runs N]

Searches are simulated (images/k6/internal/saturation/simulation, with the search that the generator
has, and with the rule that it had before): the capacity of each step is drawn around a server's,
and some steps hold a stall, which misses at any rate. A run has three servers and five repetitions,
and what is said of them is said by the operator's own code. Counted are how often a server's
interval of 95 % holds its capacity, how far the figures lie beside it on average, in how many runs
of like servers any two are told apart, how often one that is faster is found, and how many steps a
search takes. Everything has a fixed seed; the goals were set before anything was counted. Needs Go.

Exits with 1 when the rule of now misses a goal.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from laptime.analysis.comparing import Comparison
from laptime.analysis.logs import Logs
from laptime.analysis.statistics import half_width

K6_MODULE = Path(__file__).resolve().parents[2] / "images" / "k6"
SEED = 20261125
RULES = {"before": ("-rule", "before", "-spread=false"), "now": ("-rule", "now")}
NOISES = (0.0, 0.01, 0.05)
"""Standard deviation of the capacity between the steps of a search."""
BETWEEN = (0.0, 0.03)
"""The same between repetitions."""
STALLS = (0.0, 0.02)
"""Share of the steps that hold one."""
FASTER = (0.02, 0.05, 0.10, 0.20)
SERVERS, REPETITIONS = 3, 5
CAPACITIES = (300, 1000, 5000, 20_000, 60_000)

GOAL_COVERAGE = 0.93
GOAL_BIAS = 0.02
GOAL_FALSE = 0.05


@dataclass(frozen=True)
class Searched:
    """One search and the truth about it; rates are requests/s."""

    run: int
    server: str
    repetition: int
    capacity: float
    low: float
    high: float
    steps: int
    misses: int


@dataclass(frozen=True)
class Said:
    """What runs said of servers."""

    coverage: float
    """Of the servers' own intervals."""
    bias: float
    """Mean of the figures beside the truth, as a share."""
    width: float
    """Median of the half-widths, as a share."""
    factors: float
    """Coverage of the intervals of the factors against the last server."""
    told_apart: float
    """Share of the runs in which any two servers were."""
    first_alone: float
    """Share of the runs in which the first server is faster than all others for sure."""


def simulated(program: Path, *flags: str) -> list[Searched]:
    """Return the searches of the runs that the flags ask for."""
    found = subprocess.run(
        [str(program), "-seed", str(SEED), *flags], stdout=subprocess.PIPE, text=True, check=True
    )
    searches = []
    for line in found.stdout.splitlines():
        run, server, repetition, capacity, low, high, steps, misses = line.split()
        searches.append(
            Searched(
                int(run), server, int(repetition), float(capacity), float(low), float(high),
                int(steps), int(misses),
            )
        )  # fmt: skip
    return searches


def scores_of(searches: Sequence[Searched], rule: str) -> dict[str, Logs]:
    """Return what the operator makes of a run's searches; before, it took the rate that was met."""
    found: dict[str, Logs] = {}
    for server in dict.fromkeys(one.server for one in searches):
        own = [one for one in searches if one.server == server]
        if rule == "before":
            found[server] = Logs({one.repetition: math.log(one.low) for one in own})
            continue
        found[server] = Logs(
            {one.repetition: math.log(one.low * one.high) / 2 for one in own},
            fmean(math.log(one.high / one.low) / 2 for one in own),
        )
    return found


def said_of(searches: Sequence[Searched], rule: str) -> Said:
    """Return how true it is what runs of these searches say."""
    by_run: dict[int, list[Searched]] = {}
    for one in searches:
        by_run.setdefault(one.run, []).append(one)
    holds, beside, widths, factors, apart, first = [], [], [], [], [], []
    for of_run in by_run.values():
        truth = {one.server: one.capacity for one in of_run}
        comparison = Comparison(scores_of(of_run, rule))
        for server, figure in comparison.estimates().items():
            assert figure.low is not None
            assert figure.high is not None
            holds.append(figure.low <= truth[server] <= figure.high)
            beside.append(math.log(figure.value / truth[server]))
            widths.append(half_width(figure) or 0.0)
        last = list(truth)[-1]
        for server, factor in comparison.factors(last).items():
            if server != last:
                exact = truth[server] / truth[last]
                assert factor.low is not None
                assert factor.high is not None
                factors.append(
                    factor.low <= exact * (1 + 1e-9) and exact <= factor.high * (1 + 1e-9)
                )
        pairs = [(one, two) for one in truth for two in truth if one < two]
        apart.append(any(comparison.can_be_told_apart(*pair) for pair in pairs))
        first.append(all(comparison.is_faster("0", other) for other in truth if other != "0"))
    return Said(
        fmean(holds), math.expm1(fmean(beside)), median(widths), fmean(factors), fmean(apart),
        fmean(first),
    )  # fmt: skip


def build(folder: Path) -> Path:
    """Build the simulation; exits with Go's message."""
    program = folder / "simulation"
    command = ["go", "build", "-o", str(program), "./internal/saturation/simulation"]
    built = subprocess.run(command, cwd=K6_MODULE, env={**os.environ, "CGO_ENABLED": "0"})
    if built.returncode != 0:
        sys.exit(1)
    return program


def true_of_like_ones(program: Path, runs: int) -> list[str]:
    """Print what is said of like servers, and return which goals the rule of now misses."""
    missed = []
    print(f"{SERVERS} like servers, {REPETITIONS} repetitions, {runs} runs each")
    print(
        f"{'noise of steps':>14}{'repetitions':>12}{'stalls':>8}  {'rule':<8}{'coverage':>9}"
        f"{'bias':>9}{'half-width':>11}{'factors':>9}{'told apart':>11}"
    )
    for noise in NOISES:
        for between in BETWEEN:
            for stalls in STALLS:
                for rule, how in RULES.items():
                    flags = (
                        *how, "-runs", str(runs), "-noise", str(noise), "-stalls", str(stalls),
                        "-between", str(between), "-servers", str(SERVERS),
                        "-repetitions", str(REPETITIONS),
                    )  # fmt: skip
                    said = said_of(simulated(program, *flags), rule)
                    print(
                        f"{noise:>14.0%}{between:>12.0%}{stalls:>8.0%}  {rule:<8}"
                        f"{said.coverage:>9.1%}{said.bias:>+9.1%}{said.width:>11.1%}{said.factors:>9.1%}"
                        f"{said.told_apart:>11.1%}",
                        flush=True,
                    )
                    good = (
                        said.coverage >= GOAL_COVERAGE
                        and abs(said.bias) <= GOAL_BIAS
                        and said.factors >= GOAL_COVERAGE
                        and said.told_apart <= GOAL_FALSE
                    )
                    if rule == "now" and not good:
                        missed.append(f"noise {noise:.0%}, {between:.0%}, stalls {stalls:.0%}")
    return missed


def found_of_faster_ones(program: Path, runs: int) -> None:
    """Print how often a server that is faster than the two others is found, and its factor true."""
    print("\nThe first of three servers is faster: found for sure; and factors that hold the truth")
    print(
        f"{'noise of steps':>14}{'stalls':>8}  {'rule':<8}"
        + "".join(f"{by:>16.0%}" for by in FASTER)
    )
    for noise, stalls in ((0.0, 0.0), (0.01, 0.0), (0.05, 0.02)):
        for rule, how in RULES.items():
            flags = (*how, "-runs", str(runs), "-noise", str(noise), "-stalls", str(stalls))
            said = [said_of(simulated(program, *flags, "-faster", str(by)), rule) for by in FASTER]
            print(
                f"{noise:>14.0%}{stalls:>8.0%}  {rule:<8}"
                + "".join(f"{one.first_alone:>8.1%}{one.factors:>8.1%}" for one in said),
                flush=True,
            )


def steps_taken(program: Path, runs: int) -> None:
    """Print how many steps searches take."""
    print("\nSteps of a search from 100/s, with a stall in 2 % of them")
    print(
        f"{'capacity':>9}{'noise':>7}  {'rule':<8}{'mean':>6}{'95 %':>6}{'most':>6}{'missed':>8}"
        f"{'cut off':>9}"
    )
    for capacity in CAPACITIES:
        for noise in (0.01, 0.05):
            for rule, how in RULES.items():
                flags = (
                    *how, "-runs", str(runs), "-noise", str(noise),
                    "-lowest", str(capacity), "-highest", str(capacity),
                )  # fmt: skip
                searches = simulated(program, *flags)
                steps = sorted(one.steps for one in searches)
                wide = fmean(one.high > 1.05 * one.low + 0.01 for one in searches)
                print(
                    f"{capacity:>9}{noise:>7.0%}  {rule:<8}{fmean(steps):>6.1f}"
                    f"{steps[math.ceil(0.95 * len(steps)) - 1]:>6}{steps[-1]:>6}"
                    f"{fmean(one.misses for one in searches):>8.1f}{wide:>9.2%}",
                    flush=True,
                )


def main() -> None:
    """Print all tables; exit with 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs of each kind")
    runs: int = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="laptime-search-") as name:
        program = build(Path(name))
        steps_taken(program, runs)
        found_of_faster_ones(program, runs)
        print()
        missed = true_of_like_ones(program, runs)
    print(
        f"\nGoals: coverage at least {GOAL_COVERAGE:.0%}, bias within {GOAL_BIAS:.0%}, like ones "
        f"told apart in at most {GOAL_FALSE:.0%} of runs"
    )
    for one in missed:
        print(f"MISSED: {one}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
