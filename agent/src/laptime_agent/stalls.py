"""How long the node stood still: frozen, paused, or without a disk or memory that everybody needs.

While it does its pods answer nobody, its counters grow no more, and nobody reads them: only its
clock goes on. So the loop that reads the counters asks the clock after each of its rounds. That the
node was not *reached* meanwhile is something else, and shows in nothing here.
"""

from __future__ import annotations

import time

from laptime_agent.files import open_if_there

LEAST_SECONDS = 1.0
"""Less is a busy node: a lock of the kernel, a reading of many pods."""


class Stalls:
    """Counts them, for the thread that makes it: its own scheduling is what is looked at.

    `schedule` is where the kernel says how long that thread was ready and had no CPU, which is what
    a full node does and none of our business. Where it does not say so that time counts.
    """

    def __init__(self, schedule: str = "/proc/thread-self/schedstat") -> None:
        self.seconds = 0.0
        """The sum of all of them."""
        self._schedule = open_if_there(schedule)
        self._last = self._explained()

    def round_ended(self, slept: float) -> None:
        """Count what nothing explains of the round since the last call.

        `slept` is how many seconds of it the thread had asked to sleep.
        """
        before, self._last = self._last, self._explained()
        still = self._last[0] - before[0] - (self._last[1] - before[1]) - slept
        if still >= LEAST_SECONDS:
            self.seconds += still

    def _explained(self) -> tuple[float, float]:
        """The clock that goes on while a machine sleeps; all that was worked, and waited for."""
        ready = 0 if self._schedule is None else int(self._schedule.read().split()[1])
        return time.clock_gettime(time.CLOCK_BOOTTIME), time.process_time() + ready / 1e9
