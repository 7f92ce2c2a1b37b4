"""How often a run finds the difference that it calls the smallest it can find: on the real cluster.

    PYTHONPATH=bench:proof python3 bench/detectable/run.py [--runs N] [--table]

Each run has a server, a slower one of the same image, and the control. Their CPU is limited, and is
what limits them: with less of it a server answers as many fewer requests, so by how much it is
slower is known. In the first runs, FIRST of them, it is not. In each later one it is slower by what
the runs before called `control.smallestDetectable`: by their quadratic mean, since it is variances
that have a mean. Found is a slower server whose factor has its whole interval below 1.

Laptime promises four of five; judged is whether it is at least GOAL, from FEWEST runs on: the share
that was found, and not the ends of its interval, which are wide then. Whether the servers differed
by what was set is asked of the factors of all these runs together: where they are not WITHIN that,
or others took more of the machine than LIMITS say, nothing is judged. Needs a cluster with the
chart installed (KUBECONFIG, or the embedded one) and the image of the reference server. Goes on
where it stopped: journal.jsonl has each run with the commit of what it judges (SUBJECT). Exits with
1 when the goal is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, log1p, sqrt
from pathlib import Path
from statistics import mean, median
from typing import Any

from cluster_access import results_of, run_to_end
from going_on import MEASURING, NOT_MEASURING, OF_BEHAVIOUR, ROOT, Count, Taken, count_of
from laptime_proof import lines
from laptime_proof.runner import NOT_JUDGED_CODE
from scipy.stats import binomtest

JOURNAL = Path(__file__).with_name("journal.jsonl")
SUBJECT = (
    *MEASURING,
    *("operator/src/laptime/analysis", "images/reference", "bench/detectable"),
    *NOT_MEASURING,
)
"""What claims rest on: how trials are made and measured, and how they are compared."""

FIRST = 3
RUNS = 40
"""With a difference."""
FEWEST = 20
GOAL = 0.70
WITHIN = (0.8, 1.1)
"""So many times what was set the measured differences may be in their mean: of FEWEST runs chance
moves it by some 6 %. More is easier to find, and would pass where what was set is missed."""
LIMITS = OF_BEHAVIOUR
MILLICORES = 500
REPETITIONS = 5
LONGEST_SECONDS = 900.0
BASELINE, SLOWER = "one", "slower"


@dataclass(frozen=True)
class Entry:
    """What came of one run. `began` is a Unix time, `seconds` from applied to ended."""

    commit: str
    began: float
    seconds: float
    millicores: int
    """Of the slower server, where the other one has MILLICORES."""
    smallest: float | None
    """What the run called the smallest detectable difference, as a share."""
    factor: list[float] | None
    """Of the slower server: value, lower and upper end."""
    stolen: float
    others: float | None
    state: str = "Succeeded"

    @property
    def difference(self) -> float:
        """By how much the other one is faster, as a share."""
        return MILLICORES / self.millicores - 1

    @property
    def whole(self) -> bool:
        """Whether it says anything: nothing of it is missing, and it had the machine."""
        known = self.smallest is not None and self.factor is not None
        return self.state == "Succeeded" and known and not LIMITS.beyond(self)

    @property
    def counts(self) -> bool:
        """Whether there was a difference that could be found."""
        return self.whole and self.difference > 0

    @property
    def found(self) -> bool:
        """Whether the slower one was told apart, as the slower one."""
        return self.factor is not None and self.factor[2] < 1


def manifest(millicores: int, version: str) -> dict[str, Any]:
    """Return a run whose second server has so much CPU."""

    def server(name: str, cpu: int) -> dict[str, Any]:
        return {
            "name": name,
            "image": f"docker.io/laptime/reference:{version}",
            "databaseConnections": 8,
            "workers": 1,
            "resources": {"cpu": f"{cpu}m", "memory": "128Mi"},
        }

    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "detectable"},
        "spec": {
            "scenario": "users",
            "servers": [server(BASELINE, MILLICORES), server(SLOWER, millicores)],
            "baseline": BASELINE,
            "control": True,
            "topology": {"postgres": {}},
            "loads": [
                {
                    "name": "closed",
                    "closed": {"connections": 8, "duration": "3s"},
                    "warmup": "1s",
                }
            ],
            "repetitions": REPETITIONS,
        },
    }


def millicores_of_next(entries: Sequence[Entry]) -> int:
    """Return how much CPU the slower server of the next run has, by what the runs before said."""
    said = [one.smallest for one in entries if one.whole and one.smallest is not None]
    if len(said) < FIRST:
        return MILLICORES
    return round(MILLICORES / exp(sqrt(mean(log1p(one) ** 2 for one in said))))


def entry_of(
    results: dict[str, Any], millicores: int, commit: str, began: float, seconds: float, state: str
) -> Entry:
    """Return what a run's results.json says."""
    rows = {row["server"]: row for row in results["rows"]}
    factor = rows.get(SLOWER, {}).get("factor") or {}
    ends: list[Any] = [factor.get(end) for end in ("value", "low", "high")]
    smallest = [one.get("smallestDetectable") for one in results.get("control", [])]
    taken = Taken.of(results)
    return Entry(
        commit=commit,
        began=began,
        seconds=round(seconds, 1),
        millicores=millicores,
        smallest=smallest[0] if smallest else None,
        factor=None if None in ends else ends,
        stolen=taken.stolen,
        others=taken.others,
        state=state,
    )


def table(entries: Sequence[Entry]) -> tuple[list[str], bool | None]:
    """Return every run and how often the difference was found; None: not judged."""
    said = []
    for one in entries:
        verdict = "like servers" if one.difference == 0 else ("found" if one.found else "not found")
        if not one.whole:
            verdict = f"not counted: {'; '.join(filter(None, [one.state, LIMITS.beyond(one)]))}"
        factor = "-" if one.factor is None else "{:.3f} ({:.3f} to {:.3f})".format(*one.factor)
        smallest = "-" if one.smallest is None else f"{one.smallest:.1%}"
        said.append(
            f"set {one.difference:5.1%}, smallest {smallest:>5}, factor {factor}: {verdict}"
        )
    judged = [one for one in entries if one.counts]
    if not judged:
        return [*said, "no run can be judged"], None
    found, of = sum(one.found for one in judged), len(judged)
    ends = binomtest(found, of).proportion_ci(method="exact")
    measured = mean(-log(one.factor[0]) for one in judged if one.factor)
    as_set = measured / mean(log1p(one.difference) for one in judged)
    differed = WITHIN[0] <= as_set <= WITHIN[1]
    good = found >= GOAL * of
    verdict = ("met" if good else "MISSED") if differed and of >= FEWEST else "not judged"
    said += [
        f"the smallest detectable difference was found in {found} of {of} runs: {found / of:.0%} "
        f"({ends.low:.0%} to {ends.high:.0%}), goal at least {GOAL:.0%}, from {FEWEST} runs on: "
        f"{verdict}",
        f"the servers differed by {as_set:.2f} of what was set, which was "
        f"{median(one.difference for one in judged):.1%} in the middle"
        f"{'' if differed else ': not what was to be found'}",
        f"stolen at most {max(one.stolen for one in judged):.1%}; a run took "
        f"{median(one.seconds for one in judged):.0f} s",
    ]
    return said, good if verdict != "not judged" else None


def main() -> int:
    """Go on with the runs; print what they came to so far, beside the goal."""
    count: Count[Entry] = count_of(
        __doc__,
        "runs",
        FIRST + RUNS,
        JOURNAL,
        SUBJECT,
        lambda fields: Entry(**fields),
        whole=lambda entry: entry.whole,
    )
    entries = count.entries
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    for _ in range(count.wanted):
        millicores = millicores_of_next(entries)
        began, clock = time.time(), time.monotonic()
        run = manifest(millicores, version)
        status = run_to_end(run, LONGEST_SECONDS)
        entry = entry_of(
            results_of(run["metadata"]["name"]),
            millicores,
            count.commit,
            began,
            time.monotonic() - clock,
            status["state"],
        )
        lines.append(JOURNAL, entry)
        entries.append(entry)
        print(f"[{len(entries)}/{FIRST + RUNS}] {table([entry])[0][0]}", flush=True)
    if not entries:
        print(f"no run on {count.commit} yet")
        return NOT_JUDGED_CODE
    found, good = table(entries)
    print(*found, sep="\n")
    return NOT_JUDGED_CODE if good is None else int(not good)


if __name__ == "__main__":
    sys.exit(main())
