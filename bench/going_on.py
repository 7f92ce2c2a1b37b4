"""What benches share that count whole runs on a cluster and go on where they stopped."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Generic, Protocol, TypeVar

from laptime_proof import lines
from laptime_proof.journal import commit_of

E = TypeVar("E")
ROOT = Path(__file__).resolve().parents[1]
NOT_ASKED_YET = float("nan")
"""`others` of entries that were written before it was kept: no number, so beyond no limit."""
MEASURING = (
    *(
        f"operator/src/laptime/{name}"
        for name in ("api", "catalog", "manifests", "measure", "plan", "reconcile")
    ),
    *("agent/src", "images/exporter", "images/k6"),
)
"""What the figures of any run rest on, in whole folders: which trials there are, the pods of each,
what is done between them, the load, what is read of it and how that is merged. What is judged, and
the servers, a bench names beside it."""
NOT_MEASURING = tuple(
    f":(top,exclude,glob)**/{name}" for name in ("testdata/**", "*_test.go", "*.jsonl", "*.md")
)


class Noise(Protocol):
    """What others took of the CPU time of nodes, as shares: means of the trials of a run."""

    @property
    def stolen(self) -> float:
        """By the hypervisor."""

    @property
    def others(self) -> float | None:
        """By all but the pods of the run; None where nobody told."""


@dataclass(frozen=True)
class Limits:
    """How much others may take of what a bench judges. Fixed before it is run, never by results.

    Beyond them nothing is judged: neither a pass nor a miss is Laptime's own. Nor is it where
    nobody told what others took, but for entries of before that was asked for (NOT_ASKED_YET).
    """

    stolen: float
    others: float | None
    """None: no limit, for a reason that the bench gives."""

    def beyond(self, noise: Noise) -> str:
        """Return what was too much, beside its limit, or is not known; empty: nothing."""
        taken = (("stolen", noise.stolen, self.stolen), ("others", noise.others, self.others))
        return ", ".join(
            f"{what} not known" if share is None else f"{what} {share:.1%} (at most {most:.0%})"
            for what, share, most in taken
            if most is not None and (share is None or share > most)
        )


OF_FIGURES = Limits(stolen=0.01, others=0.05)
"""Where a figure is judged: what Laptime itself calls a quiet node (docs/measurement.md)."""
OF_BEHAVIOUR = Limits(stolen=0.05, others=0.20)
"""Where it is judged what Laptime says. That must be right on a machine that others use as well, so
much more is allowed; but they must not be what limits a server, or what a difference is hidden by:
less than the quarter of a node from which Laptime itself doubts what it measured there."""


@dataclass(frozen=True)
class Count(Generic[E]):
    """What was done so far of what is counted, and what is to be done now."""

    commit: str
    """Of what is judged."""
    entries: list[E]
    """Those of this commit, or of all; whoever does more adds them here."""
    wanted: int
    """How many are to be done now."""
    kind: str = ""
    """Which of several kinds is counted; empty: there is one."""


def count_of(
    doc: str | None,
    flag: str,
    most: int,
    journal: Path,
    subject: Sequence[str],
    read: Callable[[dict[str, Any]], Any],
    kinds: Sequence[str] = (),
    *,
    of_all_commits: bool = False,
    whole: Callable[[Any], bool] = lambda _: True,
) -> Count[Any]:
    """Return what the command line asks for: `--FLAG` so many now, `--table` none.

    `subject` are the paths of what is judged; `read` makes an entry of its fields. With
    `of_all_commits` entries of others are there too, but it is those of this commit that are
    counted up to `most`, as far as they are `whole`. With `kinds`, the first of them is counted or
    that of `--kind`, by the `kind` of entries. Exits with a message when files of the subject are
    not committed, unless only the table is asked for.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument(f"--{flag}", type=int, default=most, help="how many now, of those left")
    parser.add_argument("--table", action="store_true", help="print what was done so far")
    if kinds:
        parser.add_argument("--kind", choices=kinds, default=kinds[0])
    asked = vars(parser.parse_args())
    kind = asked.get("kind", "")
    commit = commit_of(ROOT, *subject)
    if commit.endswith("+") and not asked["table"]:
        parser.error("files of what is judged differ from the commit: commit them first")
    every = [one for one in lines.entries(journal, read) if not kinds or one.kind == kind]
    of_commit = [one for one in every if one.commit == commit]
    wanted = 0 if asked["table"] else min(asked[flag], most - sum(map(whole, of_commit)))
    return Count(commit, every if of_all_commits else of_commit, wanted, kind)


def share_of_nodes(results: Mapping[str, Any], what: str) -> float:
    """Return a share of the nodes' CPUs, such as `busyShare`: the mean of all measured trials."""
    found = [
        node.get(what) or 0.0
        for trial in results["trials"]
        if trial.get("figures")
        for node in (trial.get("usage") or {}).get("nodes") or []
    ]
    return round(mean(found), 4) if found else 0.0


def others_of_nodes(results: Mapping[str, Any]) -> float | None:
    """Return the share of the nodes' CPUs that all but the pods of the run used, likewise.

    None where nobody told.
    """
    found = [
        node["othersCores"] / node["cpus"]
        for trial in results["trials"]
        if trial.get("figures")
        for node in (trial.get("usage") or {}).get("nodes") or []
        if node.get("othersCores") is not None and node.get("cpus")
    ]
    return round(mean(found), 4) if found else None


@dataclass(frozen=True)
class Taken:
    """What others took of one run: see Noise."""

    stolen: float
    others: float | None = None

    @classmethod
    def of(cls, results: Mapping[str, Any]) -> Taken:
        """Return what a results.json says of it."""
        return cls(share_of_nodes(results, "stolenShare"), others_of_nodes(results))
