"""How long until the published benchmarks are decided: by today's rule, and by the first one.

    PYTHONPATH=bench:proof python3 bench/deciding/run.py [--runs N] [--table]

The five quick variants of examples/, each with so many repetitions that both rules have the same
figures to judge: after each repetition it is asked whether the rule knows who is faster of all
servers that differ by more than 5 %. Which these are, and who is faster, is taken from all runs of
a benchmark together, so no rule decides what it is judged by.

Both rules are taken at their best, as if somebody had known with how many repetitions, from two on,
they would decide, and counted are the minutes from the begin of the run until then. A rule that has
not decided when the run ends has those of the whole run, which is said. Nobody knows that number
beforehand: so it is also said when a run with `stopWhen: decided` would have stopped, which looks
after each repetition from the third on, and errs in 5 % over all looks together. Of that one it is
counted in how many runs it claims what is wrong: a faster server for a slower one, or a difference
where all runs together show less than 1 %.

Needs a cluster with the chart installed (KUBECONFIG, or the embedded one) and the images of the
examples. One of the N is all five benchmarks once. Goes on where it stopped: journal.jsonl has the
figures of each trial with the commit of what made them (SUBJECT). The rules are today's, whenever
they are asked. A run that did not succeed or lost a trial is shown and not judged, and so
is one beside which others used more of the machine than LIMITS say. Exits with 1 when a goal is
missed, and says *not judged* before five judged runs of each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations, permutations
from math import log, sqrt
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import yaml
from cluster_access import results_of, run_to_end
from going_on import (
    MEASURING,
    NOT_ASKED_YET,
    NOT_MEASURING,
    OF_BEHAVIOUR,
    Count,
    count_of,
    others_of_nodes,
    share_of_nodes,
)
from laptime_proof import lines
from laptime_proof.runner import NOT_JUDGED_CODE

from laptime.analysis.comparing import Comparison
from laptime.analysis.distributions import student_quantile
from laptime.analysis.looks import ONCE, Looks, shares_of_looks
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
ALIKE = 1.01
"""Servers that differ by less than this should not be told apart."""
GOAL = 0.5
"""Of the minutes that the first rule takes, in all runs together."""
FIRST_LOOK = 3
LOOKS = Looks(FIRST_LOOK, shares_of_looks(FIRST_LOOK, REPETITIONS))
SUBJECT = (*MEASURING, "images/servers", "examples", "bench/deciding", *NOT_MEASURING)
"""What figures rest on. Not the rules: they judge figures that are there."""
LIMITS = OF_BEHAVIOUR
LONGEST_SECONDS = 3600.0
_OTHERWISE = ("stopWhen", "maxRepetitions", "smallestDifference", "precision", "objectives")

Logs = Mapping[str, Sequence[float]]
Orders = set[tuple[str, str]]
"""Pairs of servers, the faster one first."""
Rule = Callable[[Logs, int], Orders]


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
    """Servers under loads, of which a trial has no figure."""
    stolen: float
    busy: float
    state: str = "Succeeded"
    others: float | None = NOT_ASKED_YET

    @property
    def whole(self) -> bool:
        """Whether it can be judged: nothing of it is missing, and it had the machine."""
        return self.state == "Succeeded" and not self.lost and not LIMITS.beyond(self)


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
        state=status["state"],
        others=others_of_nodes(results),
    )


def differing(entries: Sequence[Entry], load: str, by: float) -> Orders:
    """Return the pairs of servers that differ by more than a ratio in all runs together."""
    means = {
        server: mean(mean(one.logs[load][server]) for one in entries)
        for server in entries[0].logs[load]
    }
    return {pair for pair in permutations(means, 2) if means[pair[0]] - means[pair[1]] > log(by)}


def ours(logs: Logs, repetitions: int, looks: Looks = ONCE) -> Orders:
    """Return what a run claims that has so many repetitions."""
    known = {name: dict(enumerate(of[:repetitions], start=1)) for name, of in sorted(logs.items())}
    comparison = Comparison(known, looks)
    return {pair for pair in permutations(known, 2) if comparison.is_faster(*pair)}


def looking(logs: Logs, repetitions: int) -> Orders:
    """Return what a run that stops once it is decided claims after so many repetitions."""
    return ours(logs, repetitions, LOOKS) if repetitions >= FIRST_LOOK else set()


def first_rule(logs: Logs, repetitions: int) -> Orders:
    """Return what the rule at first claims: each pair for itself, Student's t, Bonferroni."""
    found = set()
    pairs = list(combinations(sorted(logs), 2))
    needed = student_quantile(repetitions - 1, 1 - ERRORS / 2 / len(pairs))
    for pair in pairs:
        one, other = (logs[name][:repetitions] for name in pair)
        differences = [a - b for a, b in zip(one, other, strict=True)]
        error = stdev(differences) / sqrt(repetitions)
        if abs(mean(differences)) > needed * error:
            found.add(pair if mean(differences) > 0 else (pair[1], pair[0]))
    return found


def decided_after(entry: Entry, expected: Mapping[str, Orders], rule: Rule) -> int | None:
    """Return after how many repetitions a rule knows all of these orders; None: it never does."""
    for repetitions in range(2, REPETITIONS + 1):
        if all(expected[load] <= rule(of, repetitions) for load, of in entry.logs.items()):
            return repetitions
    return None


def wrong_claims(entry: Entry, entries: Sequence[Entry]) -> list[str]:
    """Return what a run claims at any look, against what all runs together say."""
    found: dict[str, None] = {}
    for load, of in entry.logs.items():
        by_more = differing(entries, load, ALIKE)
        for repetitions in range(FIRST_LOOK, REPETITIONS + 1):
            for one, other in looking(of, repetitions) - by_more:
                found[f"{one} before {other} under {load}"] = None
    return list(found)


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
    found, totals = [], [0.0, 0.0, 0.0]
    wrong = undecided = judged = 0
    for name in BENCHMARKS:
        made = [one for one in entries if one.benchmark == name]
        whole = [one for one in made if one.whole]
        for entry in made:
            if not entry.whole:
                why = ", ".join(filter(None, [*entry.lost, LIMITS.beyond(entry)]))
                found.append(f"{name}: not judged: {entry.state}; {why}")
        if not whole:
            continue
        expected = {load: differing(whole, load, APART) for load in whole[0].logs}
        judged += len(whole)
        found.append(
            f"{name}: {sum(map(len, expected.values()))} orders to be known, {len(whole)} runs"
        )
        for entry in whole:
            rules = [decided_after(entry, expected, one) for one in (ours, first_rule, looking)]
            for place, repetitions in enumerate(rules):
                totals[place] += minutes(entry, repetitions)
            undecided += rules[0] is None
            claims = wrong_claims(entry, whole)
            wrong += bool(claims)
            against = f"; wrong: {', '.join(claims)}" if claims else ""
            now, at_first, looked = (said(entry, one) for one in rules)
            found.append(f"  {now:<28} at first {at_first:<28} looking {looked}{against}")
    if not judged:
        return [*found, "no run can be judged"], False
    share = totals[0] / totals[1]
    enough = all(
        sum(one.benchmark == name and one.whole for one in entries) >= RUNS for name in BENCHMARKS
    )
    goals = (
        (f"all runs: {totals[0]:.1f} of {totals[1]:.1f} min, {share:.2f}, goal at most {GOAL}",
         share <= GOAL),
        (f"wrong claims in {wrong} of {judged} runs, goal at most {ERRORS:.0%}",
         wrong <= ERRORS * judged),
    )  # fmt: skip
    for words, met in goals:
        verdict = ("met" if met else "MISSED") if enough else f"not judged before {RUNS} of each"
        found.append(f"{words}: {verdict}")
    found += [
        f"with looks {totals[2]:.1f} min; not decided by today's rule when the run ended: "
        f"{undecided} of {judged}",
        f"machine busy {median(one.busy for one in entries):.0%} in the middle, stolen at most "
        f"{max(one.stolen for one in entries):.1%}",
    ]
    return found, all(met for _, met in goals)


def main() -> int:
    """Go on with the runs; print what they came to so far, beside the goal."""
    count: Count[Entry] = count_of(
        __doc__, "runs", RUNS * len(BENCHMARKS), JOURNAL, SUBJECT, lambda fields: Entry(**fields)
    )
    commit, entries = count.commit, count.entries
    # The flag counts whole rounds, the journal single runs.
    left = RUNS * len(BENCHMARKS) - sum(one.whole for one in entries)
    for _ in range(min(count.wanted * len(BENCHMARKS), left)):
        made = [one.benchmark for one in entries if one.whole]
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
    whole = [one.benchmark for one in entries if one.whole]
    if any(whole.count(name) < RUNS for name in BENCHMARKS):
        return NOT_JUDGED_CODE
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
