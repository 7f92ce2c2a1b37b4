"""Whether the load generator tells the truth, against a server whose truth is known.

    PYTHONPATH=bench:proof python3 bench/truth/run.py [--runs N] [--table]

Compared are the percentiles, raw and corrected for coordinated omission, over HTTP/1.1 and HTTP/2,
without and with TLS, of several endpoints and of answers in chunks, the rate of open loads up to
where generator or server have no CPU to spare, the throughput at the server's capacity, the
capacity that a search finds, and what 1, 2 and 4 generators measured together (parts.py). All CPUs
are kept awake meanwhile. Needs Go.

A run has each figure once, beside its goal, in some ten minutes. Goes on where it stopped:
journal.jsonl has the figures of each run with the commit of what made them (SUBJECT). A run during
which the hypervisor or others took more CPU time than the limits say is shown and not judged.
Exits with 1 when fewer than 95 % of all goals of all judged runs are met, and says *not judged*
before ten of them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from going_on import NOT_MEASURING, Count, Limits, count_of
from laptime_proof import lines
from laptime_proof.machine import cpu_times
from laptime_proof.runner import NOT_JUDGED_CODE
from truth.awake import awake
from truth.parts import PARTS, Check, build, cpu_of_children

JOURNAL = Path(__file__).with_name("journal.jsonl")
SUBJECT = ("images/k6", "operator/src/laptime/measure", "bench/truth", *NOT_MEASURING)
"""What figures and goals rest on."""
RUNS = 10
SECONDS = 12.0
"""Length of each trial."""
GOAL = 0.95
"""Of all goals of all runs."""
LIMITS = Limits(stolen=0.01, others=0.03)
"""Others are all that is not the bench's own: it is on this machine, and not in a run's pods."""


@dataclass(frozen=True)
class Entry:
    """The figures of one run. `began` is a Unix time."""

    commit: str
    began: float
    checks: list[Check]
    stolen: float
    others: float

    @property
    def judged(self) -> bool:
        """Whether nobody else had so much of the machine that a miss may be theirs."""
        return not LIMITS.beyond(self)


def read(fields: dict[str, Any]) -> Entry:
    """Return the entry of a line of the journal."""
    return Entry(**{**fields, "checks": [Check(**one) for one in fields["checks"]]})


def measure(commit: str) -> Entry:
    """Run everything once; the built programs and records are gone afterwards."""
    began, checks = time.time(), list[Check]()
    with tempfile.TemporaryDirectory(prefix="laptime-truth-") as name:
        folder = Path(name)
        print("Building k6 and the server", flush=True)
        programs = build(folder)
        before, own = cpu_times(), cpu_of_children() + time.process_time()
        with awake():
            for part in PARTS:
                print((part.__doc__ or "").split("\n", 1)[0], flush=True)
                checks += part(programs, folder, SECONDS)
        after = cpu_times()
    total = after.total - before.total
    own = cpu_of_children() + time.process_time() - own
    others = after.busy_since(before) - own / total
    stolen = after.stolen_since(before)
    return Entry(commit, began, checks, round(stolen, 4), round(max(others, 0.0), 4))


def of_run(entry: Entry) -> list[str]:
    """Return a line for each figure of a run."""
    found = [f"{'':<48}{'measured':>13}{'truth':>14}{'apart':>11}{'goal':>11}"]
    for check in entry.checks:
        figures = f"{check.figure:>13}{check.truth:>14}{check.error:>11}{check.goal:>11}"
        found.append(f"{check.what:<48}{figures}  {'met' if check.met else 'MISSED'}")
    return found


def table(entries: list[Entry]) -> tuple[list[str], bool]:
    """Return what all runs came to, and whether enough goals were met."""
    found = []
    for number, entry in enumerate(entries, start=1):
        met = sum(one.met for one in entry.checks)
        noise = f"stolen {entry.stolen:.1%}, others {entry.others:.1%}"
        verdict = "" if entry.judged else ": not judged"
        found.append(f"run {number}: {met} of {len(entry.checks)} goals met; {noise}{verdict}")
    judged = [one for one in entries if one.judged]
    checks = [check for entry in judged for check in entry.checks]
    for what in dict.fromkeys(check.what for check in checks):
        each = [check for check in checks if check.what == what]
        missed = [check for check in each if not check.met]
        if missed:
            apart = ", ".join(f"{check.error} of {check.goal}" for check in missed)
            found.append(f"  {what}: missed in {len(missed)} of {len(each)} runs: {apart}")
    if not checks:
        return [*found, "no run can be judged"], False
    share = sum(check.met for check in checks) / len(checks)
    verdict = ("met" if share >= GOAL else "MISSED") if len(judged) >= RUNS else "not judged yet"
    middle = median(sum(one.met for one in entry.checks) / len(entry.checks) for entry in judged)
    found.append(
        f"{sum(check.met for check in checks)} of {len(checks)} goals of {len(judged)} runs met: "
        f"{share:.1%}, {middle:.1%} in the middle run; goal {GOAL:.0%}: {verdict}"
    )
    return found, share >= GOAL


def main() -> int:
    """Go on with the runs; print each, and what all came to."""
    count: Count[Entry] = count_of(
        __doc__, "runs", RUNS, JOURNAL, SUBJECT, read, whole=lambda one: one.judged
    )
    entries = count.entries
    for _ in range(count.wanted):
        entry = measure(count.commit)
        lines.append(JOURNAL, entry)
        entries.append(entry)
        print(*of_run(entry), sep="\n", flush=True)
    if not entries:
        print(f"no run on {count.commit} yet")
        return NOT_JUDGED_CODE
    found, good = table(entries)
    print(*found, sep="\n")
    if sum(one.judged for one in entries) < RUNS:
        return NOT_JUDGED_CODE
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
