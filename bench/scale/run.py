"""What thousands of runs cost: the operator beside 10,000 finished and 1,000 waiting runs.

    make bench-scale [BENCH="--finished 1000 --queued 100 --stored 100"]

Starts an embedded cluster of its own (`laptime-scale`) with an audit log, and stops it. First the
empty cluster is measured, and five kinds of runs in it; then it is filled with copies of these, and
all is measured again. What is printed beside its goal:

- in an idle minute: the operator's resident memory, its share of a core, its writes;
- after a restart: how long until it knows all runs;
- apply to first request and between trials, as `make bench-overhead` has them, by medians, beside
  those of the empty cluster;
- how many of its looks at a run took at most a second;
- how long Prometheus takes for all that the first screen of a run's dashboard asks when it is
  opened: not judged below 1,000 runs;
- its requests to the API server for each trial, by kind, from the run's being applied to its being
  folded: all that the audit log has of it, watches, status, events and logs included;
- the bytes that runs have in etcd, and that copies of each kind can be reported and compared.

Runs that wait are suspended: others would begin. Exits with 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import audit
import watched_operator as operator
from cluster_access import kubectl, kubectl_json
from etcd import Copies
from overhead.run import run as overhead
from overhead.run import viewers_of_the_run
from overhead.viewers import Look
from shapes import DEMO, SHAPES, manifest

NAME = os.environ.get("LAPTIME_CLUSTER_NAME", "laptime-scale")
NETWORK = Path("/run") / NAME / "namespaces" / "control" / "network"
AUDIT_LOG = Path("/var/lib") / NAME / "control" / "log" / "audit.log"
EMPTY = Path("/var/lib") / NAME / "bench-scale.json"
"""What was measured in the empty cluster."""
HERE = Path(__file__).parent

MOST_MEMORY_BYTES = 200e6
MOST_OF_A_CORE = 0.01
MOST_RESTART_SECONDS = 15.0
MOST_SLOWER = 1.1
SHARE_OF_LOOKS = 0.99
MOST_REQUESTS_PER_TRIAL = 30.0
LEAST_REQUESTS_PER_TRIAL = 1.0
"""Each trial has objects that are made for it: fewer are an audit log of somebody else."""
MOST_BYTES_OF_THE_DEMO = 60_000
MOST_SECONDS_TO_OPEN = 1.0
LEAST_RUNS_TO_OPEN = 1_000
LEAST_ANSWERED = 10
"""Queries of the first screen that have data of a run which is over: an empty one is soon there."""
_TIMES_OPENED = 10
_SCRAPED_SECONDS = 10.0
"""Until Prometheus has heard of a run's end."""
_LONGEST_SECONDS = 600.0


def main() -> int:
    """Measure and print; return 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--finished", type=int, default=10_000)
    parser.add_argument("--queued", type=int, default=1_000)
    parser.add_argument("--stored", type=int, default=1_000, help="of those finished, with results")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3, help="so often the waiting is measured")
    parser.add_argument("--short", type=int, default=6, help="and so many runs of one trial")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds")
    parser.add_argument("--kinds", default=",".join(SHAPES), help="which kinds of runs")
    parser.add_argument("--part", choices=("empty", "full"), help="the other one at another time")
    asked = parser.parse_args()
    kinds = asked.kinds.split(",")
    if asked.part != "full":
        say("the empty cluster")
        EMPTY.write_text(
            json.dumps(joined(waiting(asked.trials, asked.repeat), waiting(1, asked.short)))
        )
        for name in kinds:
            say(f"measuring {name}")
            measure(name)
    return 0 if asked.part == "empty" else full_cluster(asked, kinds)


def full_cluster(asked: argparse.Namespace, kinds: list[str]) -> int:
    """Fill the cluster, and measure again; return 1 when a goal is missed."""
    goals = Goals()
    empty = json.loads(EMPTY.read_text())
    sizes = fill(kinds, asked.finished, asked.queued, asked.stored)
    known = until_known(asked.finished + asked.queued)
    say(f"the operator knew all runs after {known:.0f} s")

    say(f"an idle time of {asked.idle:g} s")
    idle(asked.idle, goals)
    say("a restart")
    restart(asked.finished + asked.queued, goals)
    say("the full cluster")
    before = operator.read_for_sure()
    begin = time.time()
    full = waiting(asked.trials, asked.repeat)
    after = operator.read_for_sure()
    # What a run of eight trials asks for is counted; one of a single trial asks for more of each.
    counted = time.time()
    full = joined(full, waiting(1, asked.short))
    for what, seconds in full.items():
        goals.at_most(
            f"{what}, full / empty", median(seconds) / median(empty[what]), MOST_SLOWER,
            f"{spread(seconds)} and {spread(empty[what])}",
        )  # fmt: skip
    share = operator.share_within(before, after, 1.0)
    goals.at_least("looks of at most 1 s", share, SHARE_OF_LOOKS)
    judge_opening(opened(_TIMES_OPENED), after.runs, goals)
    asked_for = audit.requests(AUDIT_LOG, begin, counted)
    trials = asked.trials * asked.repeat
    judge_requests(asked_for, trials, goals)
    print(f"    {'operator, highest memory':40} {after.memory_bytes / 1e6:7.1f} MB")
    for name, size in sizes.items():
        print(f"    {name:40} {size:7,.0f} bytes in etcd for each run")
    if DEMO in sizes:
        goals.at_most("bytes of the demo's run", sizes[DEMO], MOST_BYTES_OF_THE_DEMO)
    say("reports of copies")
    read_back(kinds, asked.stored)
    return goals.missed()


class Goals:
    """Prints figures beside their goals."""

    def __init__(self) -> None:
        self._missed = 0

    def at_most(
        self, what: str, value: float, goal: float, more: str = "", *, judged: bool = True
    ) -> None:
        """Print a figure that is to be small."""
        self._print(what, value, goal, value <= goal if judged else None, more)

    def at_least(self, what: str, value: float, goal: float) -> None:
        """Print a figure that is to be large."""
        self._print(what, value, goal, value >= goal, "")

    def _print(self, what: str, value: float, goal: float, good: bool | None, more: str) -> None:
        self._missed += good is False
        met = "not judged" if good is None else "met" if good else "MISSED"
        print(f"  {what:42} {value:12,.3f}   goal {goal:10,.3f}   {met}  {more}", flush=True)

    def missed(self) -> int:
        """Return 1 when any was missed."""
        return int(self._missed > 0)


def judge_requests(asked_for: list[audit.Request], trials: int, goals: Goals) -> None:
    """Print what was asked for in so many trials, beside its goals."""
    each = len(asked_for) / trials
    goals.at_most("requests for each trial", each, MOST_REQUESTS_PER_TRIAL)
    goals.at_least("and some were seen", each, LEAST_REQUESTS_PER_TRIAL)
    for kind, count in audit.by_kind(asked_for).most_common():
        print(f"    {kind:40} {count / trials:7.2f}")


def opened(times: int) -> list[Look]:
    """Open the dashboard of the newest run so many times, one after the other."""
    time.sleep(_SCRAPED_SECONDS)
    with viewers_of_the_run(loads=True) as viewers:
        return [viewers.open() for _ in range(times)]


def judge_opening(looks: Sequence[Look], runs: int, goals: Goals) -> None:
    """Print how long the slowest look took, beside its goal, which is about so many runs."""
    seconds = [one.seconds for one in looks]
    goals.at_most(
        "first screen of a run's dashboard, s", max(seconds), MOST_SECONDS_TO_OPEN,
        f"{spread(seconds)}, {runs} runs known", judged=runs >= LEAST_RUNS_TO_OPEN,
    )  # fmt: skip
    goals.at_least("and so many queries had data", min(o.answered for o in looks), LEAST_ANSWERED)


def say(text: str) -> None:
    """Print a line with the time of day."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def waiting(trials: int, repeat: int) -> dict[str, list[float]]:
    """Return how long one waits around the measuring itself, by what for."""
    found: dict[str, list[float]] = {}
    for _ in range(repeat):
        for what, seconds in overhead(trials).items():
            found.setdefault(what, []).extend(seconds)
        wait_folded("bench-overhead")
    del found["last response to figures"]
    return found


def joined(*found: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return all seconds of each kind of waiting."""
    return {what: [one for part in found for one in part.get(what, [])] for what in found[0]}


def spread(seconds: list[float]) -> str:
    """Return the median with the least, the most and the number of what was measured."""
    low, high = min(seconds), max(seconds)
    return f"{median(seconds):.2f} s ({low:.2f} to {high:.2f}, {len(seconds)} times)"


def wait_folded(name: str) -> None:
    """Wait until a run is over and has nothing left but its archive."""
    until(lambda: (_status(name).get("storage") or {}).get("folded"), f"the archive of {name}")


def _status(name: str) -> dict[str, Any]:
    found: dict[str, Any] = kubectl_json("get", "br", name).get("status") or {}
    return found


def until(true: Callable[[], Any], what: str) -> float:
    """Wait until something is so; return for how many seconds."""
    begin = time.monotonic()
    while not true():
        if time.monotonic() - begin > _LONGEST_SECONDS:
            sys.exit(f"{what} did not come within {_LONGEST_SECONDS:g} s")
        time.sleep(0.5)
    return time.monotonic() - begin


def measure(name: str) -> None:
    """Have a kind of run measured and folded."""
    kubectl("apply", "-f", "-", stdin=json.dumps(manifest(name)))
    wait_folded(name)


def fill(kinds: list[str], finished: int, queued: int, stored: int) -> dict[str, float]:
    """Fill the cluster; return how many bytes a run of each kind has in etcd."""
    sizes: dict[str, float] = {}
    for number, name in enumerate(kinds):
        count = stored // len(kinds) + (number < stored % len(kinds))
        made = copy(Copies(name, 1, count, with_results=True))
        sizes[name] = made["bytes"] / count
        say(f"{count} copies of {name} with their results, {made['bytes'] / 1e6:.1f} MB")
    rest = finished - stored
    for number, name in enumerate(kinds):
        count = rest // len(kinds) + (number < rest % len(kinds))
        copy(Copies(name, 20_000, count))
    copy(Copies(kinds[0], 40_000, queued, suspended=True))
    last = f"{kinds[0][:-5]}{40_000 + queued - 1:05d}"
    until(lambda: _status(last).get("state") == "Suspended", f"{last}, suspended")
    until(quiet, "an operator that writes nothing")
    say(f"{finished} finished runs and {queued} that wait")
    return sizes


def quiet() -> bool:
    """Return whether the operator has written nothing for ten seconds."""
    now = time.time()
    return not audit.writes(audit.requests(AUDIT_LOG, now - 10, now))


def copy(copies: Copies) -> dict[str, Any]:
    """Put copies into etcd; return how many objects and bytes they are."""
    done = subprocess.run(
        ["nsenter", f"--net={NETWORK}", sys.executable, HERE / "etcd.py"],
        input=json.dumps([asdict(copies)]), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(done.stderr)
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def until_known(runs: int) -> float:
    """Wait until the operator knows so many runs; return for how many seconds."""
    return until(lambda: (said := operator.read()) and said.runs >= runs, f"{runs} runs")


def idle(seconds: float, goals: Goals) -> None:
    """Look at an operator that has nothing to do."""
    time.sleep(10)
    before = operator.read_for_sure()
    time.sleep(seconds)
    after = operator.read_for_sure()
    cores = (after.cpu_seconds - before.cpu_seconds) / (after.at - before.at)
    goals.at_most("operator, memory in MB", after.memory_bytes / 1e6, MOST_MEMORY_BYTES / 1e6)
    goals.at_most("operator, share of a core", cores, MOST_OF_A_CORE)
    asked = audit.requests(AUDIT_LOG, before.at, after.at)
    goals.at_most("operator, writes", len(audit.writes(asked)), 0)
    print(f"    requests: {dict(Counter(audit.by_kind(asked)))}")


def restart(runs: int, goals: Goals) -> None:
    """Delete the operator's pod; look how long the next one needs until it knows all runs."""
    old = operator.pod()
    kubectl("delete", "pod", old, "-n", operator.NAMESPACE, "--wait=true")
    end = time.monotonic() + 120
    while (reading := operator.read()) is None or reading.runs < runs:
        if time.monotonic() > end:
            sys.exit(f"the operator does not know {runs} runs 120 s after its restart")
        time.sleep(0.1)
    goals.at_most(
        "restart to all runs known, s", reading.at - operator.started_at(), MOST_RESTART_SECONDS
    )
    print(f"    memory after it: {reading.memory_bytes / 1e6:.1f} MB")


def read_back(kinds: list[str], stored: int) -> None:
    """Have copies of each kind reported, and each compared with the run that it is a copy of."""
    chance = random.Random(7)
    for name in kinds:
        copied = f"{name[:-5]}{chance.randint(1, stored // len(kinds)):05d}"
        for form in ("markdown", "json", "csv"):
            text = laptime("report", copied, "-o", form)
            if form != "json":
                assert len(text) > 100, (copied, form)
                continue
            original = laptime("report", name, "-o", form)
            assert text == original, copied
        document = json.loads(laptime("compare", name, copied, "-o", "json"))
        changes = Counter(one["change"] for one in document["comparisons"])
        assert changes["better"] + changes["worse"] == 0, (copied, changes)
        print(f"    {copied}: {len(document['comparisons'])} figures compared")


def laptime(*arguments: str) -> str:
    """Return what the command line prints."""
    program = Path(sys.executable).with_name("laptime")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"laptime {' '.join(arguments)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
