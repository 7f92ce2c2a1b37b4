"""Two like servers on nodes of which one has half the CPU time: are they told apart?

    PYTHONPATH=bench:proof python3 bench/nodes/run.py [--runs N] [--table]

`rotate`: each repetition has both servers on one node, the next one on the other, and what a node
does is taken off with the repetition. At least 19 of 20 runs must not tell the servers apart, and
no trial may be doubtful for where it was. `any`: each trial is placed anew. Left alone the
scheduler mostly takes the node of the pod before, so a coin that is drawn by SEED closes one of the
nodes for the next trial while one is measured. Each trial that was elsewhere than the first must be
doubtful and name both nodes; how much wider the interval of the factor is, is printed beside it.
`make bench-nodes` makes the cluster.

Goes on where it stopped: what came of each run is kept in journal.jsonl with the commit of what it
judges (SUBJECT). A run that did not succeed, lost a trial or compares nothing is shown and not
counted. The machine must not be full, or the node with less CPU time is not the slower one and
nothing is shown: that count is not judged, whatever came of it. How busy it was is printed. Nor is
a run counted of which the hypervisor took more than LIMITS say.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from random import Random
from statistics import geometric_mean, median
from threading import Event, Thread
from typing import Any

from cluster_access import kubectl, kubectl_json, results_of, run_to_end
from going_on import MEASURING, NOT_MEASURING, OF_BEHAVIOUR, Count, count_of, share_of_nodes
from laptime_proof import lines
from laptime_proof.runner import NOT_JUDGED_CODE

ROOT = Path(__file__).resolve().parents[2]
JOURNAL = Path(__file__).with_name("journal.jsonl")
SUBJECT = (
    *MEASURING,
    *("operator/src/laptime/analysis", "charts/laptime/templates", "charts/laptime/values.yaml"),
    *("images/servers/fastapi-async", "images/servers/python", "bench/nodes"),
    *NOT_MEASURING,
)
"""What claims rest on: where trials go, in which order, and the judgement."""

PLAN = ("rotate", "rotate", "rotate", "rotate", "any") * 5
"""What each run says of nodes, in this order: the machine may change in the meantime."""
MOST_APART = 1
"""Of the 20 runs that rotate."""
SLOW_ENOUGH = 0.8
"""What the slow node does of what the fast one does, at most: else nothing is judged."""
SEED = 20261126
"""Of the nodes that are open for each trial of a run that says `any`."""
NODES = ("laptime-2", "laptime-4")
SERVERS = ("one", "two")
REPETITIONS = 4
LIMITS = replace(OF_BEHAVIOUR, others=None)
"""The nodes share one machine, so that what a run does on one of them is others' work on the next.
That the machine was not full is asked by SLOW_ENOUGH."""
LONGEST_SECONDS = 900.0
ELSEWHERE = "what differs may be the nodes"


@dataclass(frozen=True)
class Entry:
    """What came of one run. `began` is a Unix time, `seconds` from applied to ended."""

    commit: str
    nodes: str
    """What the run said of nodes."""
    began: float
    seconds: float
    apart: bool
    """Whether the servers were told apart."""
    factor: list[float] | None
    """Ends of the interval of the second server's throughput divided by the first one's."""
    turns: list[list[str]]
    """Nodes of the servers, by repetition."""
    doubted: int
    """Trials that are doubtful for their nodes."""
    missed: int
    """Trials that were elsewhere than the first one and do not say so."""
    lost: int
    """Trials without a figure."""
    stolen: float
    """Share of their CPUs that the hypervisor took from the nodes, mean of the trials."""
    busy: float
    """Share of their CPUs that was in use, mean of the trials."""
    throughput: dict[str, list[float]]
    """Right answers per second of each trial, by node."""
    ranked: bool = True
    """Whether it says of each server which place it has."""
    state: str = "Succeeded"

    @property
    def others(self) -> None:
        """Not kept: see LIMITS."""

    @property
    def whole(self) -> bool:
        """Whether it can be judged: nothing of it is missing, and it had the machine."""
        measured = [len(nodes) for nodes in self.turns] == [len(SERVERS)] * REPETITIONS
        compared = self.ranked and self.factor is not None
        return self.state == "Succeeded" and measured and compared and not LIMITS.beyond(self)


def manifest(name: str, nodes: str) -> dict[str, Any]:
    """Return a run of like servers."""
    server = {"preset": "fastapi-async", "databaseConnections": 4, "workers": 1}
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": {
            "scenario": "users",
            "servers": [{"name": one, **server} for one in SERVERS],
            "topology": {"postgres": {}},
            "loads": [
                {
                    "name": "closed",
                    "closed": {"connections": 4, "duration": "2s"},
                    "warmup": "1s",
                }
            ],
            "repetitions": REPETITIONS,
            "placement": "two",
            "nodes": nodes,
        },
    }


@contextmanager
def placed_by_chance(run: str, number: int) -> Iterator[None]:
    """Have each trial of a run find one of the nodes closed, drawn anew while one is measured."""
    coin, over = Random(f"{SEED}/{number}"), Event()

    def draw() -> None:
        closed = coin.choice(NODES)
        for node in NODES:
            kubectl("cordon" if node == closed else "uncordon", node)

    def follow() -> None:
        measured: str | None = None
        while not over.wait(0.3):
            known = kubectl("get", "benchmarkrun", run, "--ignore-not-found", "-o", "json")
            status = json.loads(known).get("status") or {} if known else {}
            trial = status.get("currentTrial")
            if trial is not None and trial != measured and _placed(trial):
                measured = trial
                draw()

    draw()
    follower = Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join()
        for node in NODES:
            kubectl("uncordon", node)


def _placed(trial: str) -> bool:
    """Whether the server's pod of a trial has its node: what is closed now is for the next one."""
    labels = f"laptime.dev/trial={trial},laptime.dev/component=server"
    pods = kubectl_json("get", "pods", "-l", labels)["items"]
    return any(pod["spec"].get("nodeName") for pod in pods)


def entry_of(
    results: dict[str, Any],
    nodes: str,
    commit: str,
    began: float,
    seconds: float,
    state: str = "Succeeded",
) -> Entry:
    """Return what a run's results.json says."""
    rows = {row["server"]: row for row in results["rows"]}
    ranks = [rows.get(name, {}).get("rank") for name in SERVERS]
    factor = rows.get(SERVERS[1], {}).get("factor") or {}
    turns: dict[int, list[str]] = defaultdict(list)
    throughput: dict[str, list[float]] = defaultdict(list)
    first: str | None = None
    doubted, missed, lost = 0, 0, 0
    for trial in sorted(results["trials"], key=lambda one: one["ordinal"]):
        if not trial.get("figures"):
            lost += 1
            continue
        (node,) = trial["nodes"]["server"]
        first = first or node
        turns[trial["repetition"]].append(node)
        throughput[node].append(trial["figures"]["requestsPerSecond"])
        said = [reason for reason in trial["validityReasons"] if ELSEWHERE in reason]
        doubted += bool(said)
        if nodes == "any" and node != first:
            missed += not any(node in reason and first in reason for reason in said)
    low, high = factor.get("low"), factor.get("high")
    return Entry(
        commit=commit,
        nodes=nodes,
        began=began,
        seconds=round(seconds, 1),
        apart=any(rank not in (None, 1) for rank in ranks),
        factor=[low, high] if low is not None and high is not None else None,
        turns=[turns[one] for one in sorted(turns)],
        doubted=doubted,
        missed=missed,
        lost=lost,
        stolen=share_of_nodes(results, "stolenShare"),
        busy=share_of_nodes(results, "busyShare"),
        throughput=dict(throughput),
        ranked=None not in ranks,
        state=state,
    )


def wrong(entry: Entry) -> str | None:
    """Return what a run did that it must not, beside telling the servers apart; None: nothing."""
    if entry.missed:
        return f"{entry.missed} trials were elsewhere and do not say so"
    if entry.nodes == "any":
        return None
    if entry.doubted:
        return f"{entry.doubted} trials are doubtful for their nodes"
    if any(len(set(nodes)) > 1 for nodes in entry.turns):
        return f"a repetition had more than one node: {entry.turns}"
    counts = [sum(node in turn for turn in entry.turns) for node in entry.throughput]
    if len(counts) < 2 or max(counts) - min(counts) > 1:
        return f"nodes have not as many repetitions each: {entry.turns}"
    return None


def table(entries: list[Entry]) -> tuple[list[str], bool | None]:
    """Return lines that say what came of the runs, and whether that is good; None: not judged."""
    found, good = [], True
    for one in entries:
        if not one.whole:
            noise = LIMITS.beyond(one)
            found.append(
                f"not counted: {one.nodes}, {one.state}; {one.lost} trials lost, "
                f"nodes {one.turns}, factor {one.factor}, {'' if one.ranked else 'not '}ranked"
                f"{noise and f'; {noise}'}"
            )
    entries = [one for one in entries if one.whole]
    if not entries:
        return [*found, "no run can be judged"], None
    for nodes in dict.fromkeys(PLAN):
        runs = [one for one in entries if one.nodes == nodes]
        if not runs:
            continue
        apart = sum(one.apart for one in runs)
        widths = [log(one.factor[1] / one.factor[0]) for one in runs if one.factor]
        bad = [said for one in runs if (said := wrong(one)) is not None]
        met = not bad and (nodes == "any" or apart <= MOST_APART)
        good &= met
        goal = "" if nodes == "any" else f" (goal: at most {MOST_APART} of {PLAN.count(nodes)})"
        found += [
            f"{nodes:<8} told apart in {apart} of {len(runs)} runs{goal}; doubtful for their nodes "
            f"{sum(one.doubted for one in runs)} trials: {'met' if met else 'MISSED'}",
            *(f"{'':<8} {said}" for said in bad),
            f"{'':<8} interval of the factor, highest by lowest: {_ratio(widths)} in the middle",
        ]
    wide: dict[str, float] = {}
    for nodes in dict.fromkeys(PLAN):
        known = [
            log(one.factor[1] / one.factor[0])
            for one in entries
            if one.nodes == nodes and one.factor
        ]
        if known:
            wide[nodes] = median(known)
    if len(wide) < 2:
        good = False
        found.append(f"{'':<8} no width of both to compare: MISSED")
    else:
        narrower = wide["rotate"] < wide["any"]
        good &= narrower
        found.append(
            f"{'':<8} that of rotate is {wide['rotate'] / wide['any']:.2f} times as wide as "
            f"that of any, in logarithms (goal: below 1): {'met' if narrower else 'MISSED'}"
        )
    by_node: dict[str, list[float]] = defaultdict(list)
    for one in entries:
        for node, rates in one.throughput.items():
            by_node[node] += rates
    middles = sorted(geometric_mean(rates) for rates in by_node.values())
    slow = len(middles) > 1 and middles[0] <= SLOW_ENOUGH * middles[-1]
    if not slow:
        found.append(f"{'':<8} no node was slow enough for this to show anything: not judged")
    speeds = ", ".join(f"{geometric_mean(by_node[node]):,.0f}/s on {node}" for node in by_node)
    found.append(
        f"{'machine':<8} {speeds}; busy {median(one.busy for one in entries):.0%} in the middle, "
        f"stolen at most {max(one.stolen for one in entries):.1%}; "
        f"a run took {median(one.seconds for one in entries):.0f} s"
    )
    return found, good if slow else None


def left(entries: list[Entry]) -> list[str]:
    """Return what is still to be done of PLAN, in its order: a run that is not whole is no run."""
    found = list(PLAN)
    for one in entries:
        if one.whole and one.nodes in found:
            found.remove(one.nodes)
    return found


def _ratio(widths: list[float]) -> str:
    return f"{exp(median(widths)):.2f}" if widths else "none"


def main() -> int:
    """Go on with the runs; print what they came to so far, beside the goal."""
    count: Count[Entry] = count_of(
        __doc__,
        "runs",
        len(PLAN),
        JOURNAL,
        SUBJECT,
        lambda fields: Entry(**fields),
        whole=lambda entry: entry.whole,
    )
    commit, entries = count.commit, count.entries
    for nodes in left(entries)[: count.wanted]:
        began, clock = time.time(), time.monotonic()
        by_chance = placed_by_chance("nodes", len(entries)) if nodes == "any" else nullcontext()
        with by_chance:
            status = run_to_end(manifest("nodes", nodes), LONGEST_SECONDS)
        spent = time.monotonic() - clock
        entry = entry_of(results_of("nodes"), nodes, commit, began, spent, status["state"])
        lines.append(JOURNAL, entry)
        entries.append(entry)
        apart = "told apart" if entry.apart else "not told apart"
        said = f"{apart}, {entry.turns}, factor {entry.factor} ({entry.seconds:.0f} s)"
        print(f"[{len(entries)}/{len(PLAN)}] {nodes}: {said}", flush=True)
    if not entries:
        print(f"no run on {commit} yet")
        return NOT_JUDGED_CODE
    found, good = table(entries)
    print(*found, sep="\n")
    if good is None or left(entries):
        return NOT_JUDGED_CODE
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
