"""What a run in one lane does to the factor that another one measures in its lane.

    PYTHONPATH=bench:proof python3 bench/lanes/run.py [--pairs N] [--table]

A run of two unlike servers is measured alone in the cluster, and while another run takes all of the
other lane's CPU from beginning to end, in turn. The factor measured so, divided by the one measured
alone, must have an interval within 0.95 to 1.05. A pair is both of these, in an order that changes
from pair to pair; the interval is Student's, of the logarithms of the pairs' ratios, and the spread
of the pairs is the machine's noise. `make bench-lanes` makes the cluster.

The database is DELAY away, as over a network, so that the servers are as fast as they need round
trips. Where a whole CPU was the limit a pair varied by 20 %, since the CPUs of a virtual machine
do: a request took 0.40 to 0.60 ms of one within a minute, whatever else ran. Two CPUs of a machine
also share caches and memory, which two nodes do not: with the database 6 ms away and the other CPU
busy, a request still took 5 % more CPU time, and a third of its time was spent there.

The run that counts has the second CPU alone, as a lane of a real cluster has its nodes: the control
plane, Laptime's own pods and this program are on the first, with the other lane.

The first NEAR pairs have a third part, which shows that this bench can fail: the other run is on a
node that has the same CPU. Its interval must be outside of the bounds.

Goes on where it stopped: what came of each pair is kept in journal.jsonl with the commit of what it
judges (SUBJECT). Judged once the interval is within the bounds or wholly outside, or after PAIRS. A
pair of which the hypervisor took more than LIMITS say is shown and not counted.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from cluster_access import kubectl, kubectl_json, results_of, run_to_end
from going_on import MEASURING, NOT_MEASURING, OF_FIGURES, Count, count_of, share_of_nodes
from laptime_proof import lines
from laptime_proof.runner import NOT_JUDGED_CODE
from scipy.stats import t as student

ROOT = Path(__file__).resolve().parents[2]
JOURNAL = Path(__file__).with_name("journal.jsonl")
SUBJECT = (*MEASURING, "bench/lanes", *NOT_MEASURING)
"""What claims rest on: what is done for a run, where its pods go, and how it is measured."""

PAIRS = 60
FEWEST = 6
NEAR = 4
DELAY = "20ms"
BOUNDS = (0.95, 1.05)
SLOW, FAST = "fastapi-async", "axum-sqlx"
REPETITIONS = 4
LIMITS = replace(OF_FIGURES, others=None)
"""Who else works on the machine is the other lane, and that is what this is about."""
LONGEST_SECONDS = 900.0


@dataclass(frozen=True)
class Entry:
    """What came of one pair. `began` is a Unix time."""

    commit: str
    began: float
    seconds: float
    alone: float
    """Factor of the fast server while nothing else was measured."""
    beside: float
    """The same while a run was measured in the other lane."""
    overlapped: int
    """Trials of `beside` during the whole of which the other run had its lane."""
    lanes: list[str]
    """Of the run that counts, both times, and of the other one."""
    stolen: float
    busy_alone: float
    """Share of its CPUs that was in use on the node of the run, mean of the trials."""
    busy_beside: float
    near: float | None = None
    """The factor while a run was measured on a node with the same CPU, where that was tried."""

    @property
    def others(self) -> None:
        """Not kept: see LIMITS."""

    @property
    def whole(self) -> bool:
        """Whether the hypervisor left it the machine."""
        return not LIMITS.beyond(self)


def manifest(
    name: str, placement: str, repetitions: int, seconds: int, delay: str | None
) -> dict[str, Any]:
    """Return a run of a slow and a fast server, with the database `delay` away."""
    away = {"delay": {"database": delay}} if delay else {}
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": {
            "scenario": "users",
            "servers": [
                {"name": one, "preset": one, "databaseConnections": 4} for one in (SLOW, FAST)
            ],
            "topology": {"postgres": {}, **away},
            "loads": [
                {
                    "name": "closed",
                    "closed": {"connections": 4, "duration": f"{seconds}s"},
                    "warmup": "1s",
                }
            ],
            "repetitions": repetitions,
            "placement": placement,
        },
    }


@contextmanager
def other_lane_busy(placement: str) -> Iterator[None]:
    """Have a run be measured in another lane, from before to after; it is cancelled at the end.

    Its database is beside its servers: it takes all of its CPU.
    """
    kubectl("delete", "benchmarkrun", "other", "--ignore-not-found", "--wait=true")
    # Longer than the run beside it, which has four repetitions.
    other = manifest("other", placement, 30, seconds=5, delay=None)
    kubectl("apply", "-f", "-", stdin=json.dumps(other))
    try:
        _wait_for("other", "Running")
        yield
        if _state("other") != "Running":
            sys.exit("the run in the other lane ended too early: the pair says nothing")
    finally:
        kubectl("patch", "benchmarkrun", "other", "--type=merge", "-p", '{"spec":{"cancel":true}}')
        _wait_for("other", "Cancelled")


def _state(name: str) -> str | None:
    said: str | None = (kubectl_json("get", "benchmarkrun", name).get("status") or {}).get("state")
    return said


def _wait_for(name: str, state: str) -> None:
    begun = time.monotonic()
    while _state(name) != state:
        if time.monotonic() - begun > LONGEST_SECONDS:
            sys.exit(f"{name} was not {state} in {LONGEST_SECONDS:.0f} s")
        time.sleep(0.5)


def factor_of(results: dict[str, Any]) -> float:
    """Return the fast server's throughput divided by the slow one's: geometric mean."""
    rates: dict[str, list[float]] = {SLOW: [], FAST: []}
    for trial in results["trials"]:
        if trial.get("figures"):
            rates[trial["server"]].append(log(trial["figures"]["requestsPerSecond"]))
    if min(map(len, rates.values())) < REPETITIONS:
        sys.exit(f"trials are missing: {rates}")
    return exp(mean(rates[FAST]) - mean(rates[SLOW]))


def run_alone() -> tuple[dict[str, Any], str]:
    """Measure the run that counts; return its results and its lane."""
    counts = manifest("counts", "counts", REPETITIONS, seconds=6, delay=DELAY)
    status = run_to_end(counts, LONGEST_SECONDS)
    return results_of("counts"), status["placement"]["lane"]


def run_beside(placement: str) -> tuple[dict[str, Any], str, str, int]:
    """Measure it while another run is; return the other lane, too, and the trials beside it."""
    with other_lane_busy(placement):
        results, lane = run_alone()
        other = kubectl_json("get", "benchmarkrun", "other")["status"]
        since = other["turnStartedAt"]
        overlapped = sum(one["startedAt"] > since for one in results["trials"])
        return results, lane, other["placement"]["lane"], overlapped


def measure(number: int, commit: str) -> Entry:
    """Return what came of a pair that is measured now, the first of which is number 0."""
    began, clock = time.time(), time.monotonic()
    near = None
    if number < NEAR:
        near = factor_of(run_beside("near")[0])
    if number % 2 == 0:
        alone, lane_alone = run_alone()
        beside, lane_beside, elsewhere, overlapped = run_beside("beside")
    else:
        beside, lane_beside, elsewhere, overlapped = run_beside("beside")
        alone, lane_alone = run_alone()
    return Entry(
        commit=commit,
        began=began,
        seconds=round(time.monotonic() - clock, 1),
        alone=factor_of(alone),
        beside=factor_of(beside),
        overlapped=overlapped,
        lanes=[lane_alone, lane_beside, elsewhere],
        stolen=max(share_of_nodes(one, "stolenShare") for one in (alone, beside)),
        busy_alone=share_of_nodes(alone, "busyShare"),
        busy_beside=share_of_nodes(beside, "busyShare"),
        near=near,
    )


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Return the geometric mean of ratios with Student's 95 % interval."""
    logs = [log(one) for one in ratios]
    half = float(student.ppf(0.975, len(logs) - 1)) * stdev(logs) / sqrt(len(logs))
    middle = mean(logs)
    return exp(middle), exp(middle - half), exp(middle + half)


def table(entries: list[Entry]) -> tuple[list[str], bool | None]:
    """Return lines that say what came of the pairs, and whether that is good; None: not known."""
    wrong = [
        one
        for one in entries
        if one.lanes[0] != one.lanes[1]
        or one.lanes[0] == one.lanes[2]
        or one.overlapped < 2 * REPETITIONS
    ]
    found = [f"not counted: {said}" for one in entries if (said := LIMITS.beyond(one))]
    entries = [one for one in entries if one.whole]
    ratios = [one.beside / one.alone for one in entries]
    if len(ratios) < 2:
        return [*found, "one pair has no interval"], None
    middle, low, high = interval(ratios)
    within = BOUNDS[0] <= low and high <= BOUNDS[1]
    outside = high < BOUNDS[0] or low > BOUNDS[1]
    judged = (len(entries) >= FEWEST and (within or outside)) or len(entries) >= PAIRS
    nearby = [one.near / one.alone for one in entries if one.near is not None]
    shown, blind = _near_lines(nearby)
    good = within and not wrong and not blind
    judged = judged and len(nearby) >= NEAR
    verdict = ("met" if good else "MISSED") if judged or wrong else "not judged yet"
    noise = exp(stdev(log(one) for one in ratios)) - 1
    found += [
        f"factor beside another run / alone: {middle:.3f} ({low:.3f} to {high:.3f}) in "
        f"{len(entries)} pairs, goal: within {BOUNDS[0]} to {BOUNDS[1]}: {verdict}",
        f"factor alone {median(one.alone for one in entries):.2f} in the middle; the ratio of a "
        f"pair varies by {noise:.1%}",
        f"node of the run busy {median(one.busy_alone for one in entries):.0%} alone, "
        f"{median(one.busy_beside for one in entries):.0%} beside; stolen at most "
        f"{max(one.stolen for one in entries):.1%}; "
        f"a pair took {median(one.seconds for one in entries):.0f} s",
    ]
    found += shown
    found += [f"a pair was not measured in two lanes at once: {one}" for one in wrong]
    return found, good if judged or wrong else None


def _near_lines(ratios: list[float]) -> tuple[list[str], bool]:
    """Return what came of the other run on the same CPU, and whether that was not seen."""
    if len(ratios) < 2:
        return [], False
    middle, low, high = interval(ratios)
    seen = high < BOUNDS[0] or low > BOUNDS[1]
    said = (
        f"with the other run on the same CPU: {middle:.3f} ({low:.3f} to {high:.3f}) in "
        f"{len(ratios)}, which must be outside: {'met' if seen else 'MISSED'}"
    )
    return [said], not seen


def main() -> int:
    """Go on with the pairs; print what they came to so far, beside the goal."""
    count: Count[Entry] = count_of(
        __doc__,
        "pairs",
        PAIRS,
        JOURNAL,
        SUBJECT,
        lambda fields: Entry(**fields),
        whole=lambda entry: entry.whole,
    )
    commit, entries = count.commit, count.entries
    # With all that it starts.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for _ in range(count.wanted):
        if table(entries)[1] is not None:
            break
        entry = measure(sum(one.whole for one in entries), commit)
        lines.append(JOURNAL, entry)
        entries.append(entry)
        said = f"{entry.beside:.3f} beside, {entry.alone:.3f} alone"
        said += f", {entry.near:.3f} on the same CPU" if entry.near is not None else ""
        print(f"[{len(entries)}/{PAIRS}] {said} ({entry.seconds:.0f} s)", flush=True)
    if not entries:
        print(f"no pair on {commit} yet")
        return NOT_JUDGED_CODE
    found, good = table(entries)
    print(*found, sep="\n")
    return NOT_JUDGED_CODE if good is None else int(not good)


if __name__ == "__main__":
    sys.exit(main())
