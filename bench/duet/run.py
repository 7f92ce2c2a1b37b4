"""What measuring two servers at the same time gives on a noisy machine, and on a quiet one.

    PYTHONPATH=bench:proof python3 bench/duet/run.py [--rounds N] [--table]

A round is four runs of the same two unlike servers: in turn and as a duet, each beside a noisy
neighbour and without one. In turn there are TURNS repetitions, as a duet twice as many, which is
the same time. Which way and whether noise comes first changes from round to round.

The neighbour is made up: BURNERS processes of this machine, outside of the cluster, that use all
the CPU they get at the same times, drawn by the round's number: on and off for SPELL seconds in the
mean, exponentially. Each is a session of its own, since the kernel shares CPUs among sessions
(autogroup): all of one session take no more than the cluster does. How many there are was chosen by
the noise of trials in turn alone, before anything was measured as a duet beside them.

With no gain from the pairing at all the duet's interval would be NO_GAIN times as wide, by twice
the repetitions alone.

Goals: beside the neighbour the interval of the duet's factor is at most WIDTH times as wide as that
in turn, in logarithms, in the middle of the rounds; without it the factor of the duet divided by
the one in turn has an interval (Student's, of the logarithms, over the rounds) within BOUNDS. What
the duet says of itself, how wide the interval would be in turn, is printed beside what it was.

Goes on where it stopped: what came of each round is kept in journal.jsonl with the commit of what
it judges (SUBJECT). A round in which the neighbour made the interval in turn less than NOISIER
times as wide says nothing of noise, and does not count for the first goal. There is no other limit
of noise: who works beside the runs is this bench.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from math import exp, log, sqrt
from pathlib import Path
from random import Random
from statistics import mean, median, stdev
from typing import Any

from cluster_access import results_of, run_to_end
from going_on import MEASURING, NOT_MEASURING, Count, count_of, share_of_nodes
from laptime_proof import lines
from laptime_proof.runner import NOT_JUDGED_CODE
from scipy.stats import t as student

JOURNAL = Path(__file__).with_name("journal.jsonl")
SUBJECT = (*MEASURING, "operator/src/laptime/analysis", "bench/duet", *NOT_MEASURING)
"""What claims rest on: how trials are made, driven and compared."""

ROUNDS = 10
FEWEST = 5
TURNS = 6
BURNERS = 4
SPELL = 8.0
NOISIER = 2.0
WIDTH = 0.5
NO_GAIN = float(student.ppf(0.975, 2 * TURNS - 1) / student.ppf(0.975, TURNS - 1)) / sqrt(2)
BOUNDS = (0.95, 1.05)
LONGEST_SECONDS = 600.0
BASELINE, OTHER = "starlette", "go"


@dataclass(frozen=True)
class Way:
    """What came of one run: the factor of OTHER with its 95 % interval."""

    factor: float
    low: float
    high: float
    seconds: float
    """From its first measured request to its last answer."""
    trials: int
    busy: float
    stolen: float
    in_turn: str = ""
    """Of a duet: what its verdict says of the width in turn."""

    @property
    def width(self) -> float:
        """Width of the interval in logarithms."""
        return log(self.high / self.low)


@dataclass(frozen=True)
class Entry:
    """What came of one round. `began` is a Unix time."""

    commit: str
    began: float
    noisy: dict[str, Way]
    """By the pairing."""
    quiet: dict[str, Way]


def read(fields: dict[str, Any]) -> Entry:
    """Return an entry of its fields in the journal."""
    ways = {
        kind: {name: Way(**way) for name, way in fields[kind].items()}
        for kind in ("noisy", "quiet")
    }
    return Entry(fields["commit"], fields["began"], **ways)


def manifest(pairing: str) -> dict[str, Any]:
    """Return a run of two servers that share nothing but the machine, in a pairing."""
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "duet"},
        "spec": {
            "scenario": "hello",
            "servers": [
                {
                    "name": name,
                    "preset": preset,
                    "resources": {"cpu": "300m", "memory": "256Mi"},
                }
                for name, preset in ((BASELINE, "starlette"), (OTHER, "go-nethttp"))
            ],
            "loads": [
                {
                    "name": "closed",
                    "closed": {"connections": 4, "duration": "3s"},
                    "warmup": "1s",
                }
            ],
            "repetitions": TURNS * (2 if pairing == "duet" else 1),
            "pairing": pairing,
        },
    }


def burn(seed: int, parent: int) -> None:
    """Use a CPU in spells, as long as the parent process is there.

    Whoever ends all processes of a session does not reach one that has its own.
    """
    os.setsid()
    random = Random(seed)
    while os.getppid() == parent:
        until = time.monotonic() + random.expovariate(1 / SPELL)
        while time.monotonic() < until and os.getppid() == parent:
            pass
        time.sleep(random.expovariate(1 / SPELL))


@contextmanager
def neighbour(seed: int) -> Iterator[None]:
    """Have a noisy neighbour on this machine meanwhile."""
    # Of a fork this process is the parent itself, and not a server of processes.
    forked = multiprocessing.get_context("fork")
    burners = [
        forked.Process(target=burn, args=(seed, os.getpid()), daemon=True) for _ in range(BURNERS)
    ]
    for one in burners:
        one.start()
    try:
        yield
    finally:
        for one in burners:
            one.terminate()
            one.join()


def measure(pairing: str) -> Way:
    """Return what comes of a run that is measured now."""
    status = run_to_end(manifest(pairing), LONGEST_SECONDS)
    results = results_of("duet")
    (row,) = (one for one in results["rows"] if one["server"] == OTHER)
    factor = row["factor"]
    ends = [
        datetime.fromisoformat(one[key]).timestamp()
        for one in results["trials"]
        for key in ("startedAt", "finishedAt")
    ]
    said = [one for one in status["verdict"].split("; ") if one.startswith("in turn")]
    return Way(
        factor["value"],
        factor["low"],
        factor["high"],
        max(ends) - min(ends),
        len(results["trials"]),
        share_of_nodes(results, "busyShare"),
        share_of_nodes(results, "stolenShare"),
        said[0] if said else "",
    )


def a_round(number: int, commit: str) -> Entry:
    """Return what comes of a round that is measured now, the first of which is number 0."""
    began = time.time()
    pairings = ["interleaved", "duet"][:: -1 if number % 2 else 1]
    found: dict[str, dict[str, Way]] = {}
    for kind in ["noisy", "quiet"][:: -1 if number // 2 % 2 else 1]:
        with neighbour(number) if kind == "noisy" else nullcontext():
            found[kind] = {pairing: measure(pairing) for pairing in pairings}
    return Entry(commit, began, **found)


def widths(entry: Entry) -> float:
    """Return how wide the duet's interval was beside the neighbour, of that in turn."""
    return entry.noisy["duet"].width / entry.noisy["interleaved"].width


def noisy_enough(entry: Entry) -> bool:
    """Return whether the neighbour disturbed what was measured in turn."""
    return entry.noisy["interleaved"].width >= NOISIER * entry.quiet["interleaved"].width


def table(entries: list[Entry]) -> tuple[list[str], bool | None]:
    """Return lines that say what came of the rounds, and whether that is good; None: not known."""
    found = [
        f"{number}: noisy {_said(one.noisy)}: {widths(one):.2f} as wide "
        f"({one.noisy['duet'].in_turn}); quiet {_said(one.quiet)}"
        for number, one in enumerate(entries, 1)
    ]
    noisy = [one for one in entries if noisy_enough(one)]
    if len(entries) < 2 or not noisy:
        return found, None
    judged = len(noisy) >= FEWEST
    narrow = median(map(widths, noisy))
    below = sum(widths(one) <= WIDTH for one in noisy)
    logs = [log(one.quiet["duet"].factor / one.quiet["interleaved"].factor) for one in entries]
    half = float(student.ppf(0.975, len(logs) - 1)) * stdev(logs) / sqrt(len(logs))
    low, high = exp(mean(logs) - half), exp(mean(logs) + half)
    good = narrow <= WIDTH, BOUNDS[0] <= low and high <= BOUNDS[1]
    verdicts = [("met" if one else "MISSED") if judged else "not judged yet" for one in good]
    seconds = {
        pairing: median(one.noisy[pairing].seconds for one in entries)
        for pairing in ("interleaved", "duet")
    }
    found += [
        f"beside a noisy neighbour the interval is {narrow:.2f} as wide in the middle, in {below} "
        f"of {len(noisy)} rounds at most {WIDTH} ({NO_GAIN:.2f} with no gain): {verdicts[0]}; "
        f"{len(entries) - len(noisy)} rounds were not noisy",
        f"without it, the duet's factor is {exp(mean(logs)):.3f} ({low:.3f} to {high:.3f}) of that "
        f"in turn, goal: within {BOUNDS[0]} to {BOUNDS[1]}: {verdicts[1]}",
        f"in turn {seconds['interleaved']:.0f} s, as a duet {seconds['duet']:.0f} s; node busy "
        f"{median(one.quiet['duet'].busy for one in entries):.0%} in a quiet duet, stolen at most "
        f"{max(way.stolen for one in entries for way in one.quiet.values()):.1%}",
    ]
    return found, all(good) if judged else None


def _said(ways: dict[str, Way]) -> str:
    return ", ".join(
        f"{name} {way.factor:.2f} ({way.low:.2f} to {way.high:.2f})"
        for name, way in sorted(ways.items(), reverse=True)
    )


def main() -> int:
    """Go on with the rounds; print what they came to so far, beside the goals."""
    count: Count[Entry] = count_of(__doc__, "rounds", ROUNDS, JOURNAL, SUBJECT, read)
    entries = count.entries
    for _ in range(count.wanted):
        entry = a_round(len(entries), count.commit)
        lines.append(JOURNAL, entry)
        entries.append(entry)
        print(f"[{len(entries)}/{ROUNDS}] {table([entry])[0][0]}", flush=True)
    if not entries:
        print(f"no round on {count.commit} yet")
        return NOT_JUDGED_CODE
    found, good = table(entries)
    print(*found, sep="\n")
    return NOT_JUDGED_CODE if good is None else int(not good)


if __name__ == "__main__":
    sys.exit(main())
