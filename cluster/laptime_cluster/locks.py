"""Locks between processes that leave no file behind: they are held on folders."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laptime_cluster.progress import say


@contextmanager
def exclusively(folder: Path, what: str) -> Iterator[None]:
    """Hold the lock of a folder; says that it waits for `what` when another process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {what} in another process")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
