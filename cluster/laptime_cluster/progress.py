"""Lines that say what is going on and how long it has taken so far."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_started = time.monotonic()


def say(message: str) -> None:
    """Print one line with the seconds since the command began."""
    print(f"[{time.monotonic() - _started:6.1f}s] {message}", flush=True)


@contextmanager
def ticking(describe: Callable[[], str]) -> Iterator[None]:
    """Print what `describe` returns every 3 s (30 s without a terminal) while the body runs."""
    done = threading.Event()
    interval_seconds = 3.0 if sys.stdout.isatty() else 30.0

    def tick() -> None:
        while not done.wait(interval_seconds):
            say(describe())

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
