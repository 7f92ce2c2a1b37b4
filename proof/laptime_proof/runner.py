"""Runs parts side by side, each with a log of its own, and goes on when one fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from laptime_proof import session
from laptime_proof.journal import UNKNOWN, Entry, Journal, Outcome
from laptime_proof.machine import CpuTimes, cpu_times
from laptime_proof.parts import Part

NOT_JUDGED_CODE = 75
"""Exit code of a bench that says nothing since the machine was too noisy (EX_TEMPFAIL)."""

_LOOK_SECONDS = 0.1
_STILL_SECONDS = 60.0
_STOP_SECONDS = 5.0 + sum(seconds for _, seconds in session.SIGNALS)
_LAST_WORDS = 60
_ROUNDING = 1e-6
_MOST_NAMED = 5
_MOST_EXPLAINED = 3
_LONGEST_REASON = 300
_BEHIND = ("chrt", "--idle", "0")
_NICEST = 19
_MAKE_FAILED = 2
_OF_MAKE = re.compile(r"^make(?:\[\d+\])?: ")
_LAST_CODE = re.compile(r"^make(?:\[\d+\])?: \*\*\* \[.*\D(\d+)$")
"""How make says what its recipe ended with, in whatever language. It always ends with 2 itself."""
_NAMED = re.compile(
    r"^(?:FAILED|ERROR) (?P<pytest>.*?::.*?)(?: - .*)?$"
    r"|^\s*--- FAIL: (?P<go>\S+)"
    r"|^test (?P<cargo>\S+) \.\.\. FAILED$"
)
"""How pytest, go test and cargo test name a test that failed, each on a line of its own."""
_ERROR = re.compile(r"^E {3,}(?P<words>\S.*)$")
_PLACE = re.compile(r"^(?P<place>\S+\.py:\d+): \w+(?:\.\w+)*$")
"""How pytest says what was wrong, on the first of such lines, and below it where that was."""

Command = Callable[[Part], list[str]]


@dataclass
class _Running:
    part: Part
    process: subprocess.Popen[bytes]
    log: Path
    began: float
    started: float
    said: float
    cpu: CpuTimes
    commit: str
    interrupted: bool = False
    """It was ended by whoever stopped all: that says nothing of the part."""


class Runner:
    """Runs parts whose needs are met, as many as `jobs` places take, and quiet ones alone."""

    def __init__(
        self,
        command: Command,
        folder: Path,
        logs: Path,
        journal: Journal,
        commit: Callable[[], str],
        jobs: int,
        say: Callable[[str], None],
    ) -> None:
        self._command = command
        self._folder = folder
        self._logs = logs
        self._journal = journal
        self._commit_of_files = commit
        self._commit = commit()
        self._jobs = jobs
        self._say = say
        self._running: dict[str, _Running] = {}
        self._stopped = threading.Event()
        self.entries: dict[str, Entry] = {}
        """What became of each part that is over."""

    def stop(self) -> None:
        """End what runs and begin nothing more but what tidies up. Safe in a signal handler."""
        self._stopped.set()

    def run(self, parts: Mapping[str, Part]) -> None:
        """Run the parts. What became of each is in `entries` and in the journal afterwards."""
        waiting = dict(parts)
        for name in parts:
            # Of a run that is killed nothing else says what it was to run.
            self._write(
                Entry(
                    name, Outcome.NOT_RUN, time.time(), 0.0, self._commit, 0.0,
                    why="not over", checkout=str(self._folder),
                )
            )  # fmt: skip
        try:
            self._until_over(waiting)
        except BaseException:
            # What was begun must not go on without anyone who ends it.
            self.stop()
            self._until_over(waiting)
            raise

    def _until_over(self, waiting: dict[str, Part]) -> None:
        while waiting or self._running:
            if self._stopped.is_set():
                self._end_all()
                self._only_tidying(waiting)
            for part in list(waiting.values()):
                if self._hopeless(part):
                    self._record(part, Outcome.NOT_RUN, time.time(), 0.0, why=self._blame(part))
                    del waiting[part.name]
                elif self._may_start(part, waiting):
                    self._start(part)
                    del waiting[part.name]
            self._look()
            time.sleep(_LOOK_SECONDS)

    def _hopeless(self, part: Part) -> bool:
        over = [self.entries[need] for need in part.needs if need in self.entries]
        if part.always:
            # There is nothing to tidy up after what was never begun.
            begun = [one for one in over if one.outcome is not Outcome.NOT_RUN or one.seconds]
            return len(over) == len(part.needs) and not begun
        return any(one.outcome is not Outcome.PASSED for one in over)

    def _blame(self, part: Part) -> str:
        bad = [
            need
            for need in part.needs
            if need in self.entries and self.entries[need].outcome is not Outcome.PASSED
        ]
        return f"needs {', '.join(bad)}" if bad else "there was nothing to do"

    def _may_start(self, part: Part, waiting: Mapping[str, Part]) -> bool:
        if any(need not in self.entries for need in part.needs):
            return False
        if any(one in waiting or one in self._running for one in part.after):
            return False
        others = [running.part for running in self._running.values()]
        if (part.quiet and others) or any(one.quiet for one in others):
            return False
        if part.behind:
            return not any(one.behind for one in others)
        places = [one.place for one in others if not one.behind]
        # One that is larger than all there is takes all of it.
        return not places or sum(places) + part.place < self._jobs + _ROUNDING

    def _start(self, part: Part) -> None:
        commit = self._commit_now()
        log = self._empty_log(part)
        leader = (sys.executable, "-IS", session.__file__, str(os.getpid()))
        try:
            with log.open("wb") as file:
                process = subprocess.Popen(
                    [*leader, *(_BEHIND if part.behind else ()), *self._command(part)],
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    # A group of its own, so that all that it started can be ended with it.
                    start_new_session=True,
                )
        except OSError as error:
            self._record(part, Outcome.FAILED, time.time(), 0.0, why=f"did not begin: {error}")
            return
        if part.behind:
            _step_back(process)
        now = time.monotonic()
        self._running[part.name] = _Running(
            part, process, log, time.time(), now, now, cpu_times(), commit
        )

    def _empty_log(self, part: Part) -> Path:
        """Return where a part's words go: what tidies up needs no room on a disk for that."""
        log = self._logs / f"{part.name}.log"
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
            log.write_bytes(b"")
        except OSError as error:
            self._say(f"{part.name:<20} has no log: {error}")
            return Path(os.devnull)
        return log

    def _commit_now(self) -> str:
        try:
            return self._commit_of_files()
        except OSError:
            return UNKNOWN

    def _look(self) -> None:
        for running in list(self._running.values()):
            code = running.process.poll()
            if code is not None:
                self._finish(running, code)
                del self._running[running.part.name]
            elif time.monotonic() - running.said > _STILL_SECONDS:
                running.said = time.monotonic()
                seconds = running.said - running.started
                self._say(f"{running.part.name:<20} still at it, {seconds:4.0f} s")

    def _finish(self, running: _Running, code: int) -> None:
        seconds = time.monotonic() - running.started
        if running.interrupted:
            self._record(
                running.part, Outcome.NOT_RUN, running.began, seconds, running, why="stopped"
            )
            return
        said: list[str] = []
        if code == 0:
            outcome = Outcome.PASSED
        else:
            with suppress(OSError):
                said = running.log.read_text(errors="replace").splitlines()
            not_judged = code_of_recipe(code, said) == NOT_JUDGED_CODE
            outcome = Outcome.NOT_JUDGED if not_judged else Outcome.FAILED
        names = failed_tests(said) if outcome is Outcome.FAILED else ""
        self._record(running.part, outcome, running.began, seconds, running, names)
        if outcome is Outcome.FAILED:
            self._say(f"the end of {running.log}:")
            for line in said[-_LAST_WORDS:]:
                self._say(f"  | {line}")

    def _record(
        self,
        part: Part,
        outcome: Outcome,
        began: float,
        seconds: float,
        running: _Running | None = None,
        why: str = "",
    ) -> None:
        stolen = busy = 0.0
        commit, changed = self._commit, False
        if running is not None:
            # What it needs was built by parts before it, so that all of them are of one commit.
            changed = not running.commit == self._commit_now() == commit
            now = cpu_times()
            stolen, busy = now.stolen_since(running.cpu), now.busy_since(running.cpu)
        if changed:
            commit = commit.rstrip("+") + "+"
        entry = Entry(
            part.name, outcome, began, seconds, commit, stolen, busy, why, str(self._folder)
        )
        self.entries[part.name] = entry
        self._write(entry)
        reason = f" ({why})" if why else ""
        self._say(f"{part.name:<20} {outcome}{reason}, {seconds:4.0f} s")
        if changed:
            self._say(f"{part.name:<20} files changed since the begin: it is of no commit")

    def _write(self, entry: Entry) -> None:
        try:
            self._journal.add(entry)
        except OSError as error:
            self._say(f"{entry.part:<20} is not in the journal: {error}")

    def _only_tidying(self, waiting: dict[str, Part]) -> None:
        for part in list(waiting.values()):
            if not part.always:
                if part.name not in self.entries:
                    self._record(part, Outcome.NOT_RUN, time.time(), 0.0, why="stopped")
                del waiting[part.name]

    def _end_all(self) -> None:
        # One that is over by itself and not looked at yet has an outcome of its own.
        ended = [
            one
            for one in self._running.values()
            if not one.part.always and one.process.poll() is None
        ]
        for running in ended:
            running.interrupted = True
            running.process.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        for running in ended:
            try:
                running.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(running.process.pid, signal.SIGKILL)
                running.process.wait()


def code_of_recipe(code: int, log: Sequence[str]) -> int:
    """Return what a recipe ended with: the make that ran it ended with `code`, and wrote `log`."""
    if code != _MAKE_FAILED:
        return code
    said = [int(found[1]) for line in log if (found := _LAST_CODE.match(line))]
    return said[-1] if said else code


def failed_tests(log: Sequence[str]) -> str:
    """Return the names of the tests that a log says failed, the first few, or nothing.

    What pytest says was wrong with the first of them follows: whoever has the summary alone must
    be able to tell one chance failure from another. Where no test is named, the last that the part
    said before make did.
    """
    names = list(
        dict.fromkeys(found[found.lastgroup or 0] for line in log if (found := _NAMED.match(line)))
    )
    if not names:
        said = [line.strip() for line in log if line.strip() and not _OF_MAKE.match(line)]
        return said[-1][:_LONGEST_REASON] if said else ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return "; ".join((", ".join(names[:_MOST_NAMED]) + more, *_reasons(log)[:_MOST_EXPLAINED]))


def _reasons(log: Sequence[str]) -> list[str]:
    """Return where each of pytest's failures was, and the first line of what was wrong."""
    found: list[str] = []
    words = ""
    for line in log:
        if error := _ERROR.match(line):
            words = words or error["words"]
        elif words and (place := _PLACE.match(line)):
            found.append(f"{place['place']}: {words[:_LONGEST_REASON]}")
            words = ""
        elif line.startswith("____"):
            # The next test's, or the next phase's of the same one.
            words = ""
    return found


def _step_back(process: subprocess.Popen[bytes]) -> None:
    """Let a session have what others leave: where the kernel shares processor time out between
    sessions, a process stands behind those of its own alone (sched(7), "the autogroup feature").
    """
    with suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(str(_NICEST))
