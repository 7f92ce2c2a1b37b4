"""How long the node stood still: frozen, paused, or without a disk or memory that everybody needs.

While it does its pods answer nobody, its counters grow no more, and nobody reads them: only its
clock goes on. So the loop that reads the counters asks the clock after each of its rounds. That the
node was not *reached* meanwhile is something else, and shows in nothing here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from laptime_agent.files import KernelFile, open_if_there

LEAST_SECONDS = 1.0
"""Less is a busy node: a lock of the kernel, a reading of many pods."""
WENT_ON_SHARE = 0.5
"""Of a CPU: pods that used more of it all the while show that only this process stood still."""


@dataclass(frozen=True, slots=True)
class _Moment:
    clock: float
    """That which goes on while a machine sleeps."""
    explained: float
    """Seconds that this thread worked, or was ready and had no CPU."""
    pods: float | None
    """CPU seconds of all pods of the node."""


class Stalls:
    """Counts them, for the thread that makes it: its own scheduling is what is looked at.

    `schedule` is where the kernel says how long that thread was ready and had no CPU, which is what
    a full node does and none of our business. `pods_seconds` returns the CPU time of all pods of
    the node, None where it is not known.
    """

    def __init__(
        self,
        pods_seconds: Callable[[], float | None] = lambda: None,
        schedule: str = "/proc/thread-self/schedstat",
    ) -> None:
        self._pods_seconds = pods_seconds
        self._schedule = _told(schedule)
        self.seconds: float | None = None if self._schedule is None else 0.0
        """The sum of all of them; None where the kernel does not say who waits for a CPU."""
        self._last = self._now()
        self._usual = 0.0
        """CPU seconds of pods in the last round that was none."""

    def round_ended(self, slept: float) -> None:
        """Count what nothing explains of the round since the last call.

        `slept` is how many seconds of it the thread had asked to sleep.
        """
        before, self._last = self._last, self._now()
        now = self._last
        still = now.clock - before.clock - (now.explained - before.explained) - slept
        used = None if None in (before.pods, now.pods) else (now.pods or 0) - (before.pods or 0)
        if self.seconds is None:
            return
        if still < LEAST_SECONDS:
            self._usual = used or 0.0
        elif used is None or used <= 2 * self._usual + WENT_ON_SHARE * still:
            # What a round uses anyway was used before it and after it.
            self.seconds += still

    def _now(self) -> _Moment:
        ready = 0 if self._schedule is None else _ready_nanoseconds(self._schedule)
        return _Moment(
            time.clock_gettime(time.CLOCK_BOOTTIME),
            time.thread_time() + ready / 1e9,
            self._pods_seconds(),
        )


def _told(path: str) -> KernelFile | None:
    """Return the file, or None where it says nothing: a thread that runs was given a CPU once."""
    file = open_if_there(path)
    return file if file is not None and file.read().split()[2:] != [b"0"] else None


def _ready_nanoseconds(file: KernelFile) -> int:
    return int(file.read().split()[1])
