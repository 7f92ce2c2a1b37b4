"""How fast the CPUs of the node are: the CPU time that a fixed piece of work takes.

A CPU of a virtual machine is as fast as its host lets it be, and so is one whose core has a second
thread, or whose clock follows the heat. Of all that a guest may be told nothing: no time is stolen,
and there is no frequency to read. The work itself tells.
"""

from __future__ import annotations

import platform
import time

_ROUNDS = 1000
"""Some 0.15 ms: long beside an interrupt, and short beside what a server may lose."""
_TABLE = {number: 7 * number for number in range(64)}

WORK = f"1-{platform.python_implementation()}-{platform.python_version()}"
"""Which work it is. What it takes is compared with that of the same work alone."""


class Speed:
    """Does the work again and again, and adds up what it took.

    It is done once each time, as whatever else wakes up does what it has to: with caches that are
    somebody else's by then. Done again for warm caches it tells less of what a server met.
    """

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        """CPU time of all of them: time without a CPU is in nothing here."""

    def measure(self) -> None:
        """Do the work once more."""
        before = time.thread_time_ns()
        _work()
        self.seconds += (time.thread_time_ns() - before) / 1e9
        self.count += 1


def _work() -> int:
    number = 0
    for count in range(_ROUNDS):
        number = (number * 31 + _TABLE[count & 63]) & 0xFFFFFF
    return number
