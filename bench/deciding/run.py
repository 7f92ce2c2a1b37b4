"""How long until the published benchmarks are decided: by today's rule, and by the first one.

    PYTHONPATH=bench:proof python3 bench/deciding/run.py [--runs N] [--table]

The five quick variants of examples/, each with so many repetitions that both rules have the same
figures to judge: after each repetition it is asked whether the rule tells all servers apart that
differ by more than 5 %. Which these are is taken from all runs of a benchmark together, so no rule
decides what it is judged by. Counted are the minutes until then, from the begin of the run; of a
rule that has not decided when the run ends those of the whole run, so that the ratio of the two
flatters nobody but the first rule. Needs a cluster with the chart installed (KUBECONFIG, or the
embedded one) and the images of the examples.

One of the N is all five benchmarks once. Goes on where it stopped: journal.jsonl has the figures of
each trial with the commit of what made them (SUBJECT). The rules are today's, whenever they are
asked. Exits with 1 when the goal is missed, and says *not judged* before five runs of each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import yaml
from cluster_access import results_of, run_to_end
from going_on import Count, count_of, share_of_nodes
from laptime_proof import lines
from laptime_proof.runner import NOT_JUDGED_CODE

from laptime.analysis.comparing import Comparison
from laptime.analysis.distributions import student_quantile
from laptime.analysis.repeated import logs_by_server, scores
from laptime.api.metrics import Metric
from laptime.api.results import TrialResult

ROOT = Path(__file__).resolve().parents[2]
JOURNAL = Path(__file__).with_name("journal.jsonl")
BENCHMARKS = ("users", "sleep", "tasks", "recipes", "apibench")
REPETITIONS = 8
RUNS = 5
ERRORS = 0.05
"""Share of runs in which either rule may call like servers different."""
APART = 1.05
"""Servers that differ by more than this are to be told apart."""
GOAL = 0.5
"""Of the minutes that the first rule takes, in all runs together."""
SUBJECT = (
    *("operator/src/laptime/plan", "images/k6", "images/servers", "examples", "bench/deciding"),
    *(f":(top,exclude,glob)**/{name}" for name in ("testdata/**", "*_test.go", "*.jsonl", "*.md")),
)
"""What figures rest on. Not the rules: they judge figures that are there."""
LONGEST_SECONDS = 3600.0
_OTHERWISE = ("stopWhen", "maxRepetitions", "smallestDifference", "precision", "objectives")

Logs = Mapping[str, Sequence[float]]
Rule = Callable[[Logs, int], set[tuple[str, str]]]


@dataclass(frozen=True)
class Entry:
    """The figures of one run. `began` is a Unix time."""

    commit: str
    began: float
    benchmark: str
    ends: list[float]
    """Seconds from the begin of the run to the end of each repetition."""
    logs: dict[str, dict[str, list[float]]]
    """Logarithms of the figure that a load is compared by, more being better: by load and server,
    in the order of the repetitions."""
    lost: list[str]
    """Servers under loads, of which a trial has no figure: they are left out."""
    stolen: float
    busy: float


def manifest(benchmark: str) -> dict[str, Any]:
    """Return the quick variant of a published benchmark, with REPETITIONS and nothing to end it."""
    file = ROOT / "examples" / f"{benchmark}-quick.yaml"
    run: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec = {name: value for name, value in run["spec"].items() if name not in _OTHERWISE}
    metadata = {"name": f"deciding-{benchmark}"}
    return {**run, "metadata": metadata, "spec": {**spec, "repetitions": REPETITIONS}}


def entry_of(
    benchmark: str, results: dict[str, Any], status: Mapping[str, Any], commit: str, began: float
) -> Entry:
    """Return what a run's results.json and status say."""
    trials = [TrialResult.model_validate(one) for one in results["trials"]]
    start = datetime.fromisoformat(status["startedAt"])
    ends = [
        max(
            (datetime.fromisoformat(one.finished_at) - start).total_seconds()
            for one in trials
            if one.repetition <= repetition and one.finished_at
        )
        for repetition in range(1, REPETITIONS + 1)
    ]
    logs: dict[str, dict[str, list[float]]] = {}
    lost = []
    for load in dict.fromkeys(one.load for one in trials):
        # The published benchmarks have closed loads alone.
        metric = Metric.REQUESTS_PER_SECOND
        known = scores(logs_by_server(trials, load, metric), metric)
        logs[load] = {}
        for server in dict.fromkeys(one.server for one in trials):
            of: Mapping[int, float] = known.get(server, {})
            if len(of) == REPETITIONS:
                logs[load][server] = [of[number] for number in sorted(of)]
            else:
                lost.append(f"{server} under {load}")
    return Entry(
        commit=commit,
        began=began,
        benchmark=benchmark,
        ends=[round(one, 1) for one in ends],
        logs=logs,
        lost=lost,
        stolen=share_of_nodes(results, "stolenShare"),
        busy=share_of_nodes(results, "busyShare"),
    )


def differing(entries: Sequence[Entry], load: str) -> set[tuple[str, str]]:
    """Return the pairs of servers that differ by more than APART in all runs together."""
    servers = sorted(set.union(*(set(one.logs[load]) for one in entries)))
    found = set()
    for pair in combinations(servers, 2):
        runs = [one.logs[load] for one in entries if set(pair) <= set(one.logs[load])]
        difference = mean(mean(of[pair[0]]) - mean(of[pair[1]]) for of in runs) if runs else 0.0
        if abs(difference) > log(APART):
            found.add(pair)
    return found


def ours(logs: Logs, repetitions: int) -> set[tuple[str, str]]:
    """Return the pairs that the operator tells apart after so many repetitions."""
    known = {name: dict(enumerate(of[:repetitions], start=1)) for name, of in sorted(logs.items())}
    comparison = Comparison(known)
    return {pair for pair in combinations(known, 2) if comparison.can_be_told_apart(*pair)}


def first_rule(logs: Logs, repetitions: int) -> set[tuple[str, str]]:
    """Return the pairs that the rule at first tells apart: each for itself, Bonferroni."""
    found = set()
    pairs = list(combinations(sorted(logs), 2))
    for one, other in pairs:
        differences = [a - b for a, b in zip(logs[one], logs[other], strict=True)][:repetitions]
        error = stdev(differences) / sqrt(repetitions)
        needed = student_quantile(repetitions - 1, 1 - ERRORS / 2 / len(pairs)) * error
        if abs(mean(differences)) > needed:
            found.add((one, other))
    return found


def decided_after(
    entry: Entry, expected: Mapping[str, set[tuple[str, str]]], rule: Rule
) -> int | None:
    """Return after how many repetitions a rule tells all of these apart; None: it never does."""
    for repetitions in range(2, REPETITIONS + 1):
        if all(
            {pair for pair in expected[load] if set(pair) <= set(logs)} <= rule(logs, repetitions)
            for load, logs in entry.logs.items()
        ):
            return repetitions
    return None


def minutes(entry: Entry, repetitions: int | None) -> float:
    """Return when a run was decided, in minutes from its begin; None: at its end."""
    return entry.ends[(repetitions or REPETITIONS) - 1] / 60


def said(entry: Entry, repetitions: int | None) -> str:
    """Return how long a rule took, for people."""
    if repetitions is None:
        return f"not in {minutes(entry, None):.1f} min"
    return f"{minutes(entry, repetitions):.1f} min ({repetitions} repetitions)"


def table(entries: Sequence[Entry]) -> tuple[list[str], bool]:
    """Return lines that say how long each run took by both rules, and whether that is good."""
    by_benchmark = {
        name: of for name in BENCHMARKS if (of := [one for one in entries if one.benchmark == name])
    }
    found, totals = list(_lines(by_benchmark)), [0.0, 0.0]
    for of in by_benchmark.values():
        expected = {load: differing(of, load) for load in of[0].logs}
        for entry in of:
            for place, rule in enumerate((ours, first_rule)):
                totals[place] += minutes(entry, decided_after(entry, expected, rule))
    share = totals[0] / totals[1]
    met = share <= GOAL
    enough = all(len(by_benchmark.get(name, [])) >= RUNS for name in BENCHMARKS)
    verdict = ("met" if met else "MISSED") if enough else f"not judged before {RUNS} runs of each"
    found += [
        f"all runs: {totals[0]:.1f} of {totals[1]:.1f} min, {share:.2f}, goal at most {GOAL}: "
        f"{verdict}",
        f"machine busy {median(one.busy for one in entries):.0%} in the middle, stolen at most "
        f"{max(one.stolen for one in entries):.1%}",
    ]
    return found, met


def _lines(by_benchmark: Mapping[str, Sequence[Entry]]) -> Iterator[str]:
    for name, of in by_benchmark.items():
        expected = {load: differing(of, load) for load in of[0].logs}
        orders = sum(map(len, expected.values()))
        yield f"{name}: {orders} orders to be known, {len(of)} runs"
        for entry in of:
            new, old = (decided_after(entry, expected, rule) for rule in (ours, first_rule))
            lost = f"; without {', '.join(entry.lost)}" if entry.lost else ""
            yield f"  {said(entry, new):<28} at first {said(entry, old)}{lost}"
        for load, pairs_of in expected.items():
            close = [
                abs(mean(one.logs[load][a]) - mean(one.logs[load][b]))
                for a, b in pairs_of
                for one in of
                if a in one.logs[load] and b in one.logs[load]
            ]
            if close:
                yield f"  {load}: {len(pairs_of)} orders, the closest {exp(min(close)):.2f}x"


def main() -> int:
    """Go on with the runs; print what they came to so far, beside the goal."""
    count: Count[Entry] = count_of(
        __doc__, "runs", RUNS * len(BENCHMARKS), JOURNAL, SUBJECT, lambda fields: Entry(**fields)
    )
    commit, entries = count.commit, count.entries
    # The flag counts whole rounds, the journal single runs.
    for _ in range(min(count.wanted * len(BENCHMARKS), RUNS * len(BENCHMARKS) - len(entries))):
        made = [one.benchmark for one in entries]
        benchmark = min(BENCHMARKS, key=lambda name: (made.count(name), BENCHMARKS.index(name)))
        began, clock = time.time(), time.monotonic()
        run = manifest(benchmark)
        status = run_to_end(run, LONGEST_SECONDS)
        entry = entry_of(benchmark, results_of(run["metadata"]["name"]), status, commit, began)
        lines.append(JOURNAL, entry)
        entries.append(entry)
        took = (time.monotonic() - clock) / 60
        print(f"[{len(entries)}/{RUNS * len(BENCHMARKS)}] {benchmark}: {took:.1f} min", flush=True)
    if not entries:
        print(f"no run on {commit} yet")
        return NOT_JUDGED_CODE
    found, good = table(entries)
    print(*found, sep="\n")
    if any(sum(one.benchmark == name for one in entries) < RUNS for name in BENCHMARKS):
        return NOT_JUDGED_CODE
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
