"""One run of parts at a time on a machine: their clusters and logs have the same names in each
checkout, and a part that reads figures runs alone."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MACHINE = Path("/run")
"""A folder that all checkouts of a machine have alike: the lock is held on it and leaves no file
behind, so that it is free as soon as its holder is dead."""
WAIT_SECONDS = 300.0
"""Long enough for one that was stopped to tidy up. One that goes on takes most of an hour."""
_LOOK_SECONDS = 0.5
_ANOTHER = "another `make test` or `make prove`"
_LOCKS = Path("/proc/locks")


class BusyError(Exception):
    """Another run goes on; its text says which, and what to do."""


@contextmanager
def taken(say: Callable[[str], None]) -> Iterator[None]:
    """Hold this machine's turn. Waits for a while for whoever has it, and says for whom.

    Raises:
        BusyError: the other one is still not over.
    """
    descriptor = os.open(MACHINE, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + WAIT_SECONDS
        waiting_for = ""
        while not _try(descriptor):
            holder = _holder(descriptor)
            if time.monotonic() >= deadline:
                raise BusyError(
                    f"{holder} is still running after {WAIT_SECONDS:.0f} s: its clusters have the "
                    "names of those that this one would start. Wait until it is over, or end it by "
                    "SIGTERM: it takes down what it started"
                )
            if holder != waiting_for:
                waiting_for = holder
                say(f"waiting for {holder}, {WAIT_SECONDS:.0f} s at most")
            time.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> str:
    """Name the process that has the lock, by proc_locks(5): `1: FLOCK ADVISORY WRITE PID DEV:INODE
    0 EOF`.
    """
    status = os.fstat(descriptor)
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    held = [line.split() for line in _LOCKS.read_text().splitlines() if "->" not in line]
    pids = [words[4] for words in held if words[1] == "FLOCK" and words[5] == file]
    for pid in pids:
        with suppress(OSError):
            return f"{_ANOTHER}, process {pid} in {os.readlink(f'/proc/{pid}/cwd')}"
    return _ANOTHER
