"""What was run, when, on which commit, and how it went: one JSON line for each part.

It lies in the cache, outside of the checkout, so that hours of proof can be spread over several
sittings and over several checkouts of one commit.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class Outcome(StrEnum):
    """How a part went."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_JUDGED = "not judged"
    """The machine was too noisy for figures: no pass, and no miss."""
    NOT_RUN = "not run"
    """Something that it needs failed."""


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


def commit_of(folder: Path) -> str:
    """Return the commit that is checked out, with `+` behind it where files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "--short=12", "HEAD") or "unknown"
    return commit + ("+" if git("status", "--porcelain") else "")


class Journal:
    """Entries in a file, oldest first."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def add(self, entry: Entry) -> None:
        """Write an entry at the end; a process that is killed loses none that was written."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry)) + "\n")

    def entries(self) -> list[Entry]:
        """Return all entries; a line that a killed process left half written is passed over."""
        if not self.file.exists():
            return []
        found = []
        for line in self.file.read_text(encoding="utf-8").splitlines():
            try:
                fields = json.loads(line)
                found.append(Entry(**{**fields, "outcome": Outcome(fields["outcome"])}))
            except (ValueError, TypeError, KeyError):
                continue
        return found


def failed_last(entries: Iterable[Entry]) -> list[str]:
    """Return the parts that did not pass when they were run, or wanted, for the last time."""
    last = {entry.part: entry for entry in entries}
    return [name for name, entry in last.items() if entry.outcome is not Outcome.PASSED]


def passed_on(entries: Iterable[Entry], commit: str) -> set[str]:
    """Return the parts that passed on this very commit; none where files differ from it."""
    if commit.endswith("+"):
        return set()
    return {
        entry.part
        for entry in entries
        if entry.commit == commit and entry.outcome is Outcome.PASSED
    }
