"""What was run, when, on which commit, and how it went."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from laptime_proof import lines

UNKNOWN = "unknown"
"""In place of a commit where git knows none."""


class Outcome(StrEnum):
    """How a part went."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_JUDGED = "not judged"
    """The machine was too noisy for figures: no pass, and no miss."""
    NOT_RUN = "not run"
    """Something that it needs failed, or whoever ran it was ended before."""


@dataclass(frozen=True)
class Entry:
    """One part, run once. `began` is a Unix time; shares of CPU time are from 0 to 1."""

    part: str
    outcome: Outcome
    began: float
    seconds: float
    commit: str
    stolen: float
    busy: float = 0.0
    why: str = ""
    checkout: str = ""
    """The folder that it was run in: the journal is of all of them. Earlier entries have none."""


def commit_of(folder: Path, *paths: str) -> str:
    """Return the commit that is checked out, with `+` behind it where files differ from it.

    With `paths` (git's pathspecs, from the top of the checkout), the last commit that changed any
    of them, and only their files are looked at: a proof that takes hours is of what it runs, and
    words beside that may change meanwhile.
    """

    def said(*arguments: str) -> str:
        done = _git(folder, paths, *arguments)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = said("log", "-1", "--format=%h", "--abbrev=12") or UNKNOWN
    differs = said("status", "--porcelain", "--untracked-files=normal")
    return commit + ("+" if differs else "")


def same_as(folder: Path, commit: str, *paths: str) -> bool:
    """Return whether the files of `paths` are those of a commit, new ones among them.

    Of a commit that is none, or that this checkout has not got, nothing is the same.
    """
    told = _git(folder, paths, "diff", "--quiet", commit)
    new = _git(folder, paths, "ls-files", "--others", "--exclude-standard", "--full-name")
    return told.returncode == new.returncode == 0 and not new.stdout


def _git(folder: Path, paths: Iterable[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask git, which leaves out what the project says, and not what its user hides elsewhere."""
    named = [f":(top){path}" if path[:2] != ":(" else path for path in paths]
    return subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", *arguments, "--", *named],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


class Journal:
    """Entries in a file, oldest first."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def add(self, entry: Entry) -> None:
        """Write an entry at the end."""
        lines.append(self.file, entry)

    def entries(self) -> list[Entry]:
        """Return all entries."""
        return lines.entries(
            self.file, lambda fields: Entry(**{**fields, "outcome": Outcome(fields["outcome"])})
        )


def failed_last(entries: Iterable[Entry], checkout: str) -> dict[str, bool]:
    """Return of each part that was run, or wanted, in a checkout, whether it did not pass the last
    time.
    """
    return {
        entry.part: entry.outcome is not Outcome.PASSED
        for entry in entries
        if entry.checkout == checkout
    }


def passed_last(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the parts that passed when they were last run, and on which commit."""
    last = {entry.part: entry for entry in entries if entry.outcome is not Outcome.NOT_RUN}
    return {name: entry.commit for name, entry in last.items() if entry.outcome is Outcome.PASSED}


def passed_on(entries: Iterable[Entry], commit: str) -> set[str]:
    """Return the parts that passed when they were last run on this very commit; none where files
    differ from it, or where it is unknown which one it is.
    """
    if commit.endswith("+") or commit == UNKNOWN:
        return set()
    return set(passed_last(entry for entry in entries if entry.commit == commit))
