"""What became of each fault, over as many sittings as it takes.

What is counted is what was done on one commit. A fault that failed has failed on this commit,
whatever comes afterwards; one that did not bite is tried again at another moment, and has failed
when it never bites.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from chaos.plan import KINDS, MOST_TRIES, Fault
from laptime_proof import lines


@dataclass(frozen=True)
class Entry:
    """One fault, injected once. `began` is a Unix time."""

    commit: str
    kind: str
    number: int
    began: float
    write: int
    """The write of the run at which it came."""
    stage: str
    """Where the run was then: its state and its trial."""
    bit: str
    """What shows that it was felt; empty: nothing does."""
    recovery_seconds: float
    """From its end to the next write of the operator that was done and answered."""
    seconds: float
    """From the run's being applied to its end."""
    problems: list[str] = field(default_factory=list)


class Record:
    """Entries in a file, oldest first."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def add(self, entry: Entry) -> None:
        """Write an entry at the end."""
        lines.append(self.file, entry)

    def entries(self, commit: str) -> list[Entry]:
        """Return the entries of a commit."""
        return [entry for entry in self._every() if entry.commit == commit]

    def keep_only(self, commit: str) -> None:
        """Forget the entries of all other commits: they are in git's history."""
        mine = self.entries(commit)
        if len(mine) == len(self._every()):
            return
        new = self.file.with_suffix(".new")
        new.unlink(missing_ok=True)
        new.touch()
        for entry in mine:
            lines.append(new, entry)
        new.replace(self.file)

    def _every(self) -> list[Entry]:
        return lines.entries(self.file, lambda fields: Entry(**fields))


@dataclass(frozen=True)
class Standing:
    """What became of one fault so far."""

    entries: tuple[Entry, ...]

    @property
    def failed(self) -> bool:
        """Whether something went wrong, or it never bit."""
        toothless = len(self.entries) >= MOST_TRIES and not self.bit
        return toothless or any(entry.problems for entry in self.entries)

    @property
    def bit(self) -> bool:
        """Whether it was felt."""
        return any(entry.bit for entry in self.entries)

    @property
    def done(self) -> bool:
        """Whether it is not tried any more."""
        return self.bit or self.failed


def standing(faults: Sequence[Fault], entries: Iterable[Entry]) -> dict[tuple[str, int], Standing]:
    """Return what became of each planned fault."""
    found: dict[tuple[str, int], list[Entry]] = {(f.kind.name, f.number): [] for f in faults}
    for entry in entries:
        found.get((entry.kind, entry.number), []).append(entry)
    return {key: Standing(tuple(some)) for key, some in found.items()}


def table(standings: dict[tuple[str, int], Standing]) -> list[str]:
    """Return a line for each kind, what failed, and a line for all."""
    lines = [
        f"{'kind':<22}{'planned':>8}{'done':>6}{'bit':>5}{'failed':>8}"
        f"{'recovery, median':>18}{'longest':>9}"
    ]
    for kind in KINDS:
        mine = [one for (name, _), one in standings.items() if name == kind.name]
        lines.append(_line(kind.name, mine))
    lines.append(_line("all", list(standings.values())))
    for (name, number), one in standings.items():
        if one.done and not one.bit:
            lines.append(f"FAILED: {name}-{number}: it did not bite in {len(one.entries)} tries")
        lines += [
            f"FAILED: {name}-{number}, write {entry.write}, {entry.stage}: {problem}"
            for entry in one.entries
            for problem in entry.problems
        ]
    return lines


def _line(name: str, some: Sequence[Standing]) -> str:
    seconds = [
        entry.recovery_seconds for one in some for entry in one.entries if entry.bit
    ]  # fmt: skip
    times = f"{median(seconds):>16.1f} s{max(seconds):>7.1f} s" if seconds else ""
    return (
        f"{name:<22}{len(some):>8}{sum(one.done for one in some):>6}"
        f"{sum(one.bit for one in some):>5}{sum(one.failed for one in some):>8}{times}"
    )
