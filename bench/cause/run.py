"""Whether Laptime names what limits a server, and proves it: set-ups drawn by a seed, on a cluster.

    PYTHONPATH=bench:proof python3 bench/cause/run.py [--setups N] [--table]
    PYTHONPATH=bench:proof python3 bench/cause/run.py --images

Each set-up (draws.py) is a run of one server that something limits, or two things together, more
or less clearly. What that is, and what more of each resource would give, says a model (model.py)
that knows nothing of Laptime. Then `laptime explain` tries what the run suspects. Counted is

- of the causes that are *suspected*, how many limit: the first one, or of two in series either;
- of those that are *confirmed*, how many do, by the very change that was tried;
- of all set-ups, and of those that an experiment can try at all, how many got a right confirmation,
  and no wrong one;
- of pairs in series, how often both are named: the one as suspected, the other as what is near its
  limit too.

Needs a cluster with the chart installed (KUBECONFIG, or the embedded one) and in it the images
that the second form prints. Goes on where it stopped: journal.jsonl has each set-up with the commit
of what was judged (SUBJECT), which is the seed as well. Set-ups of all commits are judged together,
each by what its commit said of it, and those of the present commit once more by themselves: either
can miss, these where chance alone would make it so bad less often than SURELY. Exits with 1 when a
goal is missed, and says *not judged* while there are fewer of a cause, or of pairs, than WANTED
says: what is drawn next is one that lacks. A set-up beside which others used more of the machine
than LIMITS say is shown and not judged, nor is one of PAIRS_BY_CHANCE. How busy the machine was is
printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from cause.draws import BORDER, IN_SERIES, TRIED, WANTED, WORTH, drawn, lacking, limits, next_kind
from cause.manifests import IMAGES, manifest, with_more
from cause.model import NODE_CPUS, gain, throughput
from cluster_access import kubectl, kubectl_json, results_of, run_to_end
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
from scipy.stats import binom

from laptime.api.causes import Cause

ROOT = Path(__file__).resolve().parents[2]
JOURNAL = Path(__file__).with_name("journal.jsonl")
SUBJECT = (
    *MEASURING,
    *(
        f"operator/src/laptime/{name}"
        for name in (
            "analysis",
            "cli/experiments.py",
            "cli/explain_command.py",
            "cli/explain_findings.py",
            "cli/explain_plan.py",
        )
    ),
    *(f"images/{name}" for name in ("reference", "upstream", "servers/go-nethttp")),
    *("bench/cause", *NOT_MEASURING),
)
"""What is judged, and what the figures rest on."""
SETUPS = sum(WANTED.values())
GOAL_CONFIRMED, GOAL_SUSPECTED, GOAL_PROVEN, GOAL_BOTH = 0.98, 0.85, 0.80, 0.80
SURELY = 0.03
"""Few set-ups that are as bad by chance less often than this miss a goal."""
LIMITS = OF_BEHAVIOUR
PAIRS_BY_CHANCE = frozenset({"01d41fad7467", "fc298bae7a3d"})
"""Commits at which a pair was what came out as one by the model, of two resources that end at about
one rate. Its times are fixed, and there a millisecond more or less decides whether either alone
gives something: of none of these pairs is it known."""
LONGEST_SECONDS = 400.0
NAME = "cause"


@dataclass(frozen=True)
class Tried:
    """What an experiment found of one change."""

    change: str
    finding: str
    gain: list[float | None]
    """How many times as good, with the ends of its interval."""
    true_gain: float
    """By the model."""


@dataclass(frozen=True)
class Entry:
    """What came of one set-up. `seconds` from applied to explained."""

    commit: str
    number: int
    drawn_for: str
    truth: list[list[str]]
    """What limits: single causes, or pairs if no single one does."""
    rate: list[float]
    """Requests per second, by the model and as measured."""
    suspected: str
    also: list[str]
    evidence: str
    tried: list[Tried]
    why_not: str
    """What explain said where it tried nothing."""
    stolen: float
    busy: float
    seconds: float
    others: float | None = NOT_ASKED_YET

    @property
    def why_not_judged(self) -> str:
        """What speaks against judging it; empty: nothing.

        Others took so much of the machine that what was named is not Laptime's own, or the truth is
        not known.
        """
        if self.commit in PAIRS_BY_CHANCE and not any(len(each) == 1 for each in self.truth):
            return "a pair by chance"
        return LIMITS.beyond(self)

    @property
    def judged(self) -> bool:
        """Whether it counts."""
        return not self.why_not_judged


def explained() -> tuple[list[dict[str, Any]], str]:
    """Return what `laptime explain` found for the run, or what it said instead."""
    program = Path(sys.executable).with_name("laptime")
    command = [str(program), "explain", NAME, "-n", "default", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        return [], " ".join(done.stderr.split())
    return json.loads(done.stdout)["explained"], ""


def one(commit: str, number: int, kind: str, version: str) -> Entry:
    """Measure a set-up and have it explained."""
    began = time.monotonic()
    it = drawn(commit, number, kind)
    kubectl("delete", "benchmarkrun", f"{NAME}-server-explain", "--ignore-not-found", "--wait=true")
    run = manifest(NAME, version, it)
    status = run_to_end(run, LONGEST_SECONDS)
    if status["state"] != "Succeeded":
        sys.exit(f"set-up {number} ({kind}): {json.dumps(status, indent=1)}")
    results = results_of(NAME)
    (row,) = results["rows"]
    found, why_not = explained()
    limited = row.get("limitedBy") or {"cause": "none", "evidence": ""}
    tried, better = [], with_more(it, [arm["server"] for arm in found])
    for arm in found:
        interval = arm["gain"] or {}
        ends = [interval.get(end) for end in ("value", "low", "high")]
        true_gain = round(throughput(better[arm["server"]]) / throughput(it), 3)
        tried.append(Tried(arm["change"], arm["finding"], ends, true_gain))
    return Entry(
        commit=commit,
        number=number,
        drawn_for=kind,
        truth=sorted(sorted(one.value for one in each) for each in limits(it)),
        rate=[round(throughput(it), 1), row["requestsPerSecond"]["value"]],
        suspected=limited["cause"],
        also=limited.get("also", []),
        evidence=limited["evidence"],
        tried=tried,
        why_not=why_not,
        stolen=share_of_nodes(results, "stolenShare"),
        busy=share_of_nodes(results, "busyShare"),
        seconds=round(time.monotonic() - began, 1),
        others=others_of_nodes(results),
    )


def suspected_rightly(entry: Entry) -> bool:
    """Return whether what is suspected limits, alone or as one of two in series."""
    return any(entry.suspected in each for each in entry.truth)


def at_the_bound(entry: Entry) -> bool:
    """Return whether what is suspected gives almost what counts, by the model.

    False of a set-up of another commit that draws and model of today no longer make.
    """
    it = drawn(entry.commit, entry.number, entry.drawn_for)
    if round(throughput(it), 1) != entry.rate[0]:
        return False
    try:
        return WORTH - BORDER <= gain(it, Cause(entry.suspected)) < WORTH
    except (KeyError, ValueError):
        return False


def both_named(entry: Entry) -> bool | None:
    """Return whether both of a pair in series are named; None where a single cause limits."""
    if any(len(each) == 1 for each in entry.truth):
        return None
    named = {entry.suspected, *entry.also}
    return any(set(each) <= named for each in entry.truth)


def confirmed(entry: Entry) -> list[bool]:
    """Return of each confirmed change whether it gives what counts, by the model."""
    return [one.true_gain >= WORTH for one in entry.tried if one.finding == "confirmed"]


def proven(entry: Entry) -> bool:
    """Return whether something that limits was confirmed, and nothing else."""
    found = confirmed(entry)
    return bool(found) and all(found)


def _line(name: str, good: int, of: int, goal: float | None) -> tuple[str, bool]:
    share = good / of if of else 0.0
    met = goal is None or share >= goal
    beside = "" if goal is None else f"  goal {goal:.0%}: {'met' if met else 'MISSED'}"
    return f"{name:<46} {good:>4} of {of:<4} {share:6.1%}{beside}", met


def _judged(entries: list[Entry]) -> list[tuple[str, int, int, float]]:
    """Return what has a goal: its name, how often it is right, out of how many, and the goal."""
    right = [one for entry in entries for one in confirmed(entry)]
    pairs = [both for one in entries if (both := both_named(one)) is not None]
    every = len(entries)
    return [
        (
            "suspected causes that limit",
            sum(map(suspected_rightly, entries)),
            every,
            GOAL_SUSPECTED,
        ),
        ("confirmed changes that give 5 %", sum(right), len(right), GOAL_CONFIRMED),
        ("set-ups with a right confirmation", sum(map(proven, entries)), every, GOAL_PROVEN),
        ("pairs of which both are named", sum(pairs), len(pairs), GOAL_BOTH),
    ]


def _set_ups(entries: list[Entry]) -> list[str]:
    """Return every set-up, right or wrong, with what was tried of it."""
    found = []
    for entry in entries:
        truth = ", ".join("+".join(each) for each in entry.truth)
        also = f" ({', '.join(entry.also)})" if entry.also else ""
        mark = "right" if suspected_rightly(entry) else "WRONG"
        beyond = "" if entry.judged else f"; not judged: {entry.why_not_judged}"
        found.append(
            f"{entry.commit[:7]} {entry.number:>3} {mark} {truth:<44} "
            f"suspected {entry.suspected}{also}; {entry.rate[1]:.0f}/s, model {entry.rate[0]:.0f}"
            f"{beyond}"
        )
        for arm in entry.tried:
            said = "-" if arm.gain[0] is None else f"{arm.gain[0]:.2f}"
            ends = "" if None in arm.gain else f" ({arm.gain[1]:.2f} to {arm.gain[2]:.2f})"
            found.append(
                f"          {arm.finding:<9} {said}x{ends}, model {arm.true_gain:.2f}: {arm.change}"
            )
        if entry.why_not:
            found.append(f"          not tried: {entry.why_not[:150]}")
    return found


def table(entries: list[Entry], commit: str) -> tuple[list[str], bool]:
    """Return every set-up, counts beside their goals, and whether all are met.

    Of all set-ups together, and of those of one commit: either can miss a goal.
    """
    found, good = _set_ups(entries), True
    entries = [one for one in entries if one.judged]
    if not entries:
        return [*found, "no set-up can be judged"], False
    for name, right, of, goal in _judged(entries):
        said, met = _line(name, right, of, goal)
        found.append(said)
        good &= met
    possible = [one for one in entries if one.drawn_for in {*TRIED}]
    wrong = [one for one in entries if not suspected_rightly(one)]
    refuted = [
        one.true_gain < WORTH
        for entry in entries
        for one in entry.tried
        if one.finding == "refuted"
    ]
    for name, count, of in (
        ("suspected wrongly, within 2 % of the bound", sum(map(at_the_bound, wrong)), len(wrong)),
        ("refuted changes that give less", sum(refuted), len(refuted)),
        ("rightly confirmed of those that can be tried", sum(map(proven, possible)), len(possible)),
    ):
        found.append(_line(name, count, of, None)[0])
    commits = Counter(one.commit for one in entries)
    found.append(", ".join(f"{of} on {one}" for one, of in commits.items()))
    present = [one for one in entries if one.commit == commit]
    if 0 < len(present) < len(entries):
        for name, right, of, goal in _judged(present):
            missed = binom.cdf(right, of, goal) < SURELY
            good &= not missed
            said = ": MISSED" if missed else ""
            found.append(f"  on the present commit: {name} {right} of {of}{said}")
    found.append(
        f"machine busy {median(one.busy for one in entries):.0%} in the middle, stolen at most "
        f"{max(one.stolen for one in entries):.1%}; a set-up took "
        f"{median(one.seconds for one in entries):.0f} s; causes: "
        f"{len({one.drawn_for for one in entries} - {IN_SERIES})}"
    )
    return found, good


def main() -> int:
    """Go on with the set-ups; print them all, and the counts beside their goals."""
    if "--images" in sys.argv:
        print(*IMAGES)
        return 0
    count: Count[Entry] = count_of(
        __doc__,
        "setups",
        SETUPS,
        JOURNAL,
        SUBJECT,
        _read,
        of_all_commits=True,
        whole=lambda entry: entry.judged,
    )
    if count.wanted:
        cpus = [one["status"]["capacity"]["cpu"] for one in kubectl_json("get", "nodes")["items"]]
        if cpus != [str(NODE_CPUS)]:
            print(f"not judged: the model is of one node of {NODE_CPUS} CPUs, here are {cpus}")
            return NOT_JUDGED_CODE
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    for _ in range(count.wanted):
        had = [one.drawn_for for one in count.entries if one.judged]
        number = sum(one.commit == count.commit for one in count.entries)
        kind = next_kind(count.commit, number, had)
        entry = one(count.commit, number, kind, version)
        lines.append(JOURNAL, entry)
        count.entries.append(entry)
        print(f"[{len(count.entries)}] {entry.drawn_for} ({entry.seconds:.0f} s)", flush=True)
    if not count.entries:
        print("no set-up yet")
        return NOT_JUDGED_CODE
    found, good = table(count.entries, count.commit)
    print(*found, sep="\n")
    if lacks := Counter(lacking(one.drawn_for for one in count.entries if one.judged)):
        print("not judged yet, it lacks", ", ".join(f"{of} of {one}" for one, of in lacks.items()))
        return NOT_JUDGED_CODE
    return 0 if good else 1


def _read(fields: dict[str, Any]) -> Entry:
    return Entry(**{**fields, "tried": [Tried(**one) for one in fields["tried"]]})


if __name__ == "__main__":
    sys.exit(main())
