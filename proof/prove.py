#!/usr/bin/env python3
"""Run the checks of the project side by side and say at the end how each of them went.

usage:
  proof/prove.py test [PART...]    what proves a change (make test); PART: lint, unit, e2e-runs, ...
  proof/prove.py test --changed    of that, what reads files that have changed since it passed
  proof/prove.py long [PART...]    what takes hours (make prove): benches, examples
  proof/prove.py standing          when each part last passed, on which commit, how often
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from laptime_proof import catalogue, turn
from laptime_proof.journal import (
    Journal,
    Outcome,
    commit_of,
    failed_last,
    passed_last,
    passed_on,
    same_as,
)
from laptime_proof.machine import cpu_times
from laptime_proof.parts import Part, PartsError, by_name, select
from laptime_proof.runner import Runner
from laptime_proof.session import end_with
from laptime_proof.summary import closing_lines, standing

ROOT = Path(__file__).resolve().parent.parent
ALL = (":(top)",)
SUBJECT = {
    "test": (),
    "long": (*ALL, ":(top,exclude,glob)bench/*/journal.jsonl", ":(top,exclude)docs/results"),
}
"""What parts are run on: all files, but what benches and examples write there themselves."""
CACHE = Path(os.environ.get("LAPTIME_CACHE") or Path.home() / ".cache" / "laptime")


def say(text: str) -> None:
    """Print a line with the time of day, at once."""
    show(f"[{time.strftime('%H:%M:%S')}] {text}" if text else "")


def show(line: str) -> None:
    """Print a line at once. A terminal that was closed is no reason to end without tidying up."""
    try:
        print(line, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def commit(what: str) -> str:
    """Return the commit of what is run now, with `+` behind it where files differ from it."""
    return commit_of(ROOT, *SUBJECT[what])


def make(part: Part) -> list[str]:
    """The command of a part, all of it: what chose parts would choose within it as well.

    Of the make that runs this it has the variables, and no flag: with -i nothing fails, with -n
    nothing is run.
    """
    _, dashes, variables = f" {os.environ.get('MAKEFLAGS', '')}".partition(" -- ")
    inherited = ("--unset=GNUMAKEFLAGS", f"MAKEFLAGS={dashes}{variables}")
    command = ("make", "--no-print-directory", "ONLY=", "FAILED=", "CHANGED=", part.name)
    return ["env", *inherited, *command]


def main(arguments: list[str]) -> int:
    """Run one command; returns the exit code: 1 when anything failed or could not be run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="%(prog)s"
    )
    parser.add_argument("what", choices=("test", "long", "standing"))
    parser.add_argument("names", nargs="*", metavar="PART")
    parser.add_argument(
        "--failed", action="store_true", help="only what did not pass the last time"
    )
    parser.add_argument(
        "--changed", action="store_true", help="only what reads files that differ since it passed"
    )
    parser.add_argument("--jobs", type=int, default=catalogue.JOBS, help="parts at a time")
    options = parser.parse_intermixed_args(arguments)
    journal = Journal(CACHE / "proof" / "journal.jsonl")
    if options.what == "standing":
        for line in standing([*catalogue.TEST, *catalogue.LONG], journal.entries()):
            print(line)
        return 0
    names = [name for word in options.names for name in word.replace(",", " ").split()]
    try:
        parts = by_name(catalogue.TEST if options.what == "test" else catalogue.LONG)
        select(parts, names)
        # What another run has found out until then counts as well.
        with turn.taken(say):
            chosen = choose(parts, names, options, journal)
            return run(options.what, chosen, journal, options.jobs) if chosen else 0
    except (PartsError, turn.BusyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def choose(
    parts: dict[str, Part], names: list[str], options: argparse.Namespace, journal: Journal
) -> dict[str, Part]:
    """Return what is to be run of what is wanted by name; where that is nothing, it is said why."""
    if options.failed:
        failed = failed_last(journal.entries(), str(ROOT))
        if not names and not failed.keys() & parts.keys():
            raise PartsError(f"nothing was run yet in {ROOT}, so that nothing is known of it")
        names = [*names, *(name for name in parts if failed.get(name))]
        if not names:
            never = [name for name, part in parts.items() if part.check and name not in failed]
            print("nothing that was run here failed the last time")
            if never:
                print(f"never run here: {', '.join(never)}")
            return {}
    if options.changed:
        names = changed(select(parts, names), journal)
        if not names:
            print("nothing that any part reads has changed since it passed")
            return {}
    if options.what == "long" and not names:
        # Hours of it fit into several sittings: what passed on this commit is not run again.
        over = passed_on(journal.entries(), commit(options.what))
        names = [name for name in parts if name not in over]
        if not names:
            print("all of it passed on this commit")
            return {}
    return select(parts, names)


def changed(parts: dict[str, Part], journal: Journal) -> list[str]:
    """Return the checks to be run: all but those whose files are what they last passed on."""
    last = passed_last(journal.entries())
    found = []
    for part in parts.values():
        if not part.check:
            continue
        paths = (*part.reads, *catalogue.READ_BY_ALL) if part.reads else ALL
        passed = last.get(part.name, "")
        if passed and same_as(ROOT, passed, *paths):
            say(f"{part.name:<20} passed on {passed}, and nothing that it reads has changed")
        else:
            found.append(part.name)
    return found


def run(what: str, parts: dict[str, Part], journal: Journal, jobs: int) -> int:
    """Run parts and print the summary; returns the exit code."""
    logs = CACHE / "proof" / "logs"
    runner = Runner(make, ROOT, logs, journal, lambda: commit(what), jobs, say)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        # A hangup that is ignored was to be, by nohup.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: runner.stop())
    began, cpu = time.monotonic(), cpu_times()
    runner.run(parts)
    stolen = cpu_times().stolen_since(cpu)
    for line in closing_lines(parts, runner.entries, time.monotonic() - began, stolen):
        say(line) if not line.startswith("parts: ") else show(line)
    return int(any(one.outcome is not Outcome.PASSED for one in runner.entries.values()))


def of_a_make(parent: int) -> bool:
    """Return whether a process is a make."""
    try:
        return Path(f"/proc/{parent}/comm").read_text() == "make\n"
    except OSError:
        return False


if __name__ == "__main__":
    # Where its make was killed nobody hears of a run any more, while it keeps others waiting.
    if of_a_make(os.getppid()) and not end_with(os.getppid()):
        sys.exit(1)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
