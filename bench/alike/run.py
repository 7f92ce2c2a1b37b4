"""How often like servers are told apart: independent runs on the real cluster, counted.

    PYTHONPATH=bench:proof python3 bench/alike/run.py [--runs N] [--kind KIND] [--table]

Each run measures servers of one image, four of them in four repetitions unless another kind is
asked for, and whatever it tells apart is wrong. Nothing is drawn again from what was measured, so
the count can miss its goal. Needs a cluster with the chart installed (KUBECONFIG, or the embedded
one) and the images of reference server and operator.

Goes on where it stopped: the figures of each trial are kept in journal.jsonl with the commit of
what made them (SUBJECT). Which servers they tell apart is asked of the operator's rule as it is
now, so that hours of measuring outlive a change of the rule; where the run itself said otherwise,
that is printed. Like servers are alike whatever measured them, so runs of all commits are judged
together, and those of the present commit once more by themselves. Judged from 60 runs on; until
then the exit code says *not judged*. The machine need not be quiet: like servers must not be told
apart on a busy one either. How busy it was is printed. A run that did not succeed or lost a trial
is shown and not counted.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from statistics import median, stdev
from typing import Any

from alike.kinds import KINDS, manifest
from alike.neighbour import neighbour
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
from scipy.stats import binom, binomtest

from laptime.analysis.ranks import ranks

ROOT = Path(__file__).resolve().parents[2]
JOURNAL = Path(__file__).with_name("journal.jsonl")
SUBJECT = (
    *MEASURING,
    *("images/reference", "bench/alike/kinds.py", "bench/alike/neighbour.py"),
    *NOT_MEASURING,
)
"""What figures rest on. Not the judgement."""

RUNS = 100
FEWEST = 60
GOAL = 0.05
"""Share of runs that may tell any two servers apart."""
SURELY = 0.035
"""A count that GOAL gives by chance less often than this is a miss: 7 of 60, 10 of 100."""

LIMITS = OF_BEHAVIOUR
OUTSIDE = ("stolenShare", "othersCores", "probeSeconds")
"""Of the usage of the only node."""
LONGEST_SECONDS = 900.0


@dataclass(frozen=True)
class Entry:
    """What came of one run. `began` is a Unix time, `seconds` from applied to ended."""

    commit: str
    began: float
    seconds: float
    apart: list[str]
    """The figures by which the run itself told any two servers apart, of FIGURES."""
    lost: int
    """Trials without a figure."""
    stolen: float
    """Share of its CPUs that the hypervisor took from the node, mean of the trials."""
    busy: float
    """Share of its CPUs that was in use, mean of the trials."""
    throughput: dict[str, list[float]]
    """Right answers per second of each trial, by server, in the order of the repetitions."""
    p99: dict[str, list[float]]
    """99th percentile of each trial in seconds, likewise."""
    outside: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    """What was known of each trial from outside of its server, by OUTSIDE, then likewise: it could
    explain noise. Empty of runs that were made before it was kept."""
    kind: str = "four"
    """Of KINDS."""
    state: str = "Succeeded"
    others: float | None = NOT_ASKED_YET
    """Share of its CPUs that all but the run used, mean of the trials."""

    @property
    def beyond(self) -> str:
        """What others took beyond LIMITS, where they are not meant to; empty: nothing."""
        return "" if KINDS[self.kind].disturbed else LIMITS.beyond(self)

    @property
    def whole(self) -> bool:
        """Whether it can be judged: nothing of it is missing, and it had the machine."""
        kind = KINDS[self.kind]
        expected = [kind.repetitions] * kind.servers
        return (
            self.state == "Succeeded"
            and not self.beyond
            and all(
                [len(trials) for trials in of.values()] == expected
                for of in (self.throughput, self.p99)
            )
        )


def entry_of(
    results: dict[str, Any],
    commit: str,
    began: float,
    seconds: float,
    kind: str = "four",
    state: str = "Succeeded",
) -> Entry:
    """Return what a run's results.json says."""
    rows = results["rows"]
    ranks = {
        "throughput": [row.get("rank") for row in rows],
        "p99": [((row.get("latencyFigures") or {}).get("p99") or {}).get("rank") for row in rows],
    }
    throughput: dict[str, list[float]] = defaultdict(list)
    p99: dict[str, list[float]] = defaultdict(list)
    outside: dict[str, dict[str, list[float | None]]] = {
        what: defaultdict(list) for what in OUTSIDE
    }
    lost = 0
    for trial in sorted(results["trials"], key=lambda one: one["repetition"]):
        figures = trial.get("figures")
        if not figures:
            lost += 1
            continue
        throughput[trial["server"]].append(figures["requestsPerSecond"])
        p99[trial["server"]].append(figures["latency"]["p99Seconds"])
        nodes: list[dict[str, Any]] = (trial.get("usage") or {}).get("nodes") or [{}]
        for what, of in outside.items():
            of[trial["server"]].append(nodes[0].get(what))
    return Entry(
        commit=commit,
        began=began,
        seconds=round(seconds, 1),
        apart=[
            name
            for name in KINDS[kind].figures
            if any(rank not in (None, 1) for rank in ranks[name])
        ],
        lost=lost,
        stolen=share_of_nodes(results, "stolenShare"),
        busy=share_of_nodes(results, "busyShare"),
        throughput=dict(throughput),
        p99=dict(p99),
        outside={what: dict(of) for what, of in outside.items()},
        kind=kind,
        state=state,
        others=others_of_nodes(results),
    )


def told_apart(entry: Entry) -> list[str]:
    """Return the figures by which today's rule tells any two servers of a whole run apart."""
    signs = {"throughput": (entry.throughput, 1.0), "p99": (entry.p99, -1.0)}
    found = []
    for figure in KINDS[entry.kind].figures:
        of, sign = signs[figure]
        scores = {
            name: {number: sign * log(one) for number, one in enumerate(trials, start=1)}
            for name, trials in of.items()
        }
        if any(rank > 1 for rank in ranks(scores).values()):
            found.append(figure)
    return found


def noise(entry: Entry, figure: str) -> float:
    """Return the standard deviation of a trial in logarithms: the middle of the servers' own."""
    trials = entry.throughput if figure == "throughput" else entry.p99
    return median(stdev([log(one) for one in of]) for of in trials.values() if len(of) > 1)


def least_that_misses(runs: int) -> int:
    """Return the least count of false runs that is a miss: chance gives it less than SURELY."""
    return next(k for k in range(runs + 2) if binom.sf(k - 1, runs, GOAL) < SURELY)


def table(entries: list[Entry], commit: str) -> tuple[list[str], bool]:
    """Return lines that say how often like servers were told apart, and whether that is good.

    Of all runs together, and of those of one commit: either can miss the goal.
    """
    found, good = [], True
    for one in entries:
        if not one.whole:
            figures = sum(map(len, one.throughput.values()))
            beyond = one.beyond and f"; {one.beyond}, told apart: {', '.join(one.apart) or 'none'}"
            found.append(
                f"not counted: {one.state}; {figures} trials have figures, {one.lost} none{beyond}"
            )
    entries = [one for one in entries if one.whole]
    if not entries:
        return [*found, "no run can be judged"], False
    runs = len(entries)
    present = [one for one in entries if one.commit == commit]
    for figure in KINDS[entries[0].kind].figures:
        false = _falsely(figure, entries)
        ends = binomtest(false, runs).proportion_ci(method="exact")
        limit = least_that_misses(runs)
        met = false < limit
        good &= met
        verdict = "met" if met else "MISSED"
        verdict = verdict if runs >= FEWEST else f"not judged before {FEWEST} runs"
        spread = [exp(one) - 1 for one in sorted(noise(entry, figure) for entry in entries)]
        found += [
            f"{figure:<12} told apart in {false} of {runs} runs: {false / runs:.1%} "
            f"({ends.low:.1%} to {ends.high:.1%}), goal: fewer than {limit}: {verdict}",
            *_of_present(figure, present, runs),
            f"{'':<12} noise of a trial {median(spread):.1%} ({spread[0]:.1%} to {spread[-1]:.1%})",
        ]
        good &= _falsely(figure, present) < least_that_misses(len(present))
    commits = Counter(one.commit for one in entries)
    found.append(f"{'':<12} {', '.join(f'{runs} on {one}' for one, runs in commits.items())}")
    otherwise = sum(told_apart(one) != one.apart for one in entries)
    if otherwise:
        found.append(f"{'':<12} {otherwise} runs said otherwise when they were made")
    found.append(
        f"{'machine':<12} busy {median(one.busy for one in entries):.0%} in the middle, stolen at "
        f"most {max(one.stolen for one in entries):.1%}; "
        f"a run took {median(one.seconds for one in entries):.0f} s"
    )
    return found, good


def _falsely(figure: str, entries: list[Entry]) -> int:
    return sum(figure in told_apart(one) for one in entries)


def _of_present(figure: str, present: list[Entry], runs: int) -> list[str]:
    """Return a line for the runs of the present commit, unless all are of it."""
    if len(present) == runs:
        return []
    false, limit = _falsely(figure, present), least_that_misses(len(present))
    said = "" if false < limit else ": MISSED"
    return [f"{'':<12} {false} of {len(present)} on the present commit, fewer than {limit}{said}"]


def main() -> int:
    """Go on with the runs; print what they came to so far, beside the goal."""
    count: Count[Entry] = count_of(
        __doc__,
        "runs",
        RUNS,
        JOURNAL,
        SUBJECT,
        lambda fields: Entry(**fields),
        tuple(KINDS),
        of_all_commits=True,
        whole=lambda entry: entry.whole,
    )
    commit, entries, kind = count.commit, count.entries, KINDS[count.kind]
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    with neighbour(version, kind.disturbed) if count.wanted else nullcontext():
        for _ in range(count.wanted):
            began, clock = time.time(), time.monotonic()
            status = run_to_end(manifest("alike", version, kind), LONGEST_SECONDS)
            seconds = time.monotonic() - clock
            entry = entry_of(
                results_of("alike"), commit, began, seconds, count.kind, status["state"]
            )
            lines.append(JOURNAL, entry)
            entries.append(entry)
            apart = ", ".join(entry.apart) or "none"
            said = f"told apart: {apart}" if entry.whole else "not counted"
            print(f"[{len(entries)}/{RUNS}] {said} ({entry.seconds:.0f} s)", flush=True)
    if not entries:
        print(f"no run of kind {count.kind} yet")
        return NOT_JUDGED_CODE
    found, good = table(entries, commit)
    print(*found, sep="\n")
    if sum(one.whole for one in entries) < FEWEST:
        return NOT_JUDGED_CODE
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
