"""Whether Laptime names what limits a server: each cause is provoked by one thing, clearly.

    PYTHONPATH=bench python3 bench/cause/fixed.py [--repetitions N] [--only CAUSE]
    PYTHONPATH=bench python3 bench/cause/fixed.py --images

Beside it run.py draws set-ups in which a second resource is near, and has them explained.

Needs a cluster with the chart installed (KUBECONFIG, or the embedded one) and in it the images
that the second form prints. Each set-up (cases.py) is a run of N trials; each trial names its
cause. Prints how many were named rightly, beside the goal, and what was named instead; exits with 1
when a cause was tried fewer than 5 times, or a goal is missed: of all trials together, and of those
of each set-up, since one of twenty that is always wrong hardly shows in all.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cause.cases import CASES, Case
from cluster_access import kubectl, results_of, run_to_end

GOAL = 0.95
GOAL_OF_EACH = 0.8
"""Of the trials of a set-up: 4 of 5."""
FEWEST = 5
LONGEST_SECONDS = 400
ROOT = Path(__file__).resolve().parents[2]


def named(case: Case, number: int, repetitions: int) -> list[dict[str, Any]]:
    """Run a case; return what each of its trials named."""
    name = f"cause-{number:02d}"
    version = (ROOT / "VERSION").read_text().strip()
    status = run_to_end(case.manifest(name, version, repetitions), LONGEST_SECONDS)
    if status["state"] != "Succeeded":
        sys.exit(f"{case.cause}: {json.dumps(status, indent=1)}")
    trials = results_of(name)["trials"]
    kubectl("delete", "benchmarkrun", name, "--wait=false")
    return [trial.get("limitedBy") or {"cause": "none", "evidence": ""} for trial in trials]


def main() -> int:
    """Print the figures beside their goals; return 1 when one is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=FEWEST)
    parser.add_argument("--only", help="only the cases of this cause")
    parser.add_argument("--images", action="store_true", help="print the images that are needed")
    arguments = parser.parse_args()
    if arguments.images:
        print(*sorted({image for case in CASES for image in case.images}))
        return 0
    found = []
    for number, case in enumerate(CASES):
        if arguments.only and case.cause != arguments.only:
            continue
        print(f"{case.cause}: {case.why}")
        trials = named(case, number, arguments.repetitions)
        for one in trials:
            print(f"  {one['cause']:20} {one['evidence']}")
        found.append((case, [one["cause"] for one in trials]))
    lines, good = table(found)
    print("", *lines, sep="\n")
    return 0 if good else 1


def table(found: Sequence[tuple[Case, Sequence[str]]]) -> tuple[list[str], bool]:
    """Return what the trials of each case named, beside the goals, and whether these are met."""
    tried: Counter[str] = Counter()
    right: Counter[str] = Counter()
    instead: dict[str, Counter[str]] = {}
    missed = []
    for case, causes in found:
        rightly = sum(one == case.cause for one in causes)
        tried[case.cause] += len(causes)
        right[case.cause] += rightly
        instead.setdefault(case.cause, Counter()).update(one for one in causes if one != case.cause)
        if rightly < GOAL_OF_EACH * len(causes):
            missed.append(f"{case.cause} {rightly} of {len(causes)}: MISSED ({case.why})")
    lines = [f"{'cause':20} {'tried':>6} {'right':>6}  named instead"]
    for cause, count in tried.items():
        others = ", ".join(f"{name} {n}" for name, n in instead[cause].items())
        lines.append(f"{cause:20} {count:6} {right[cause]:6}  {others}")
    share = right.total() / max(1, tried.total())
    met = "met" if share >= GOAL else "MISSED"
    lines.append(f"{'named rightly':20} {share:13.1%}  goal {GOAL:.0%}: {met}")
    met = "MISSED" if missed else "met"
    lines += [f"{'of each set-up':20} {'':13}  goal {GOAL_OF_EACH:.0%}: {met}", *missed]
    enough = min(tried.values(), default=0) >= FEWEST
    if not enough:
        lines.append(f"each cause has to be tried at least {FEWEST} times")
    return lines, share >= GOAL and not missed and enough


if __name__ == "__main__":
    sys.exit(main())
