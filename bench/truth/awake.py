"""Keeps the machine's CPUs awake, as a machine on which response times are measured should be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Ends with its parent even when that is killed. SCHED_IDLE: any other thread that becomes ready
# takes the CPU at once. It yields all the time: where two others become ready together, the second
# one comes after the first, and a kernel that reckons in fair shares (EEVDF) may then say that it
# is this one's turn, until the next tick.
_SPIN = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
parent = int(sys.argv[2])
while os.getppid() == parent:
    for _ in range(100_000):
        os.sched_yield()
"""


@contextmanager
def awake() -> Iterator[None]:
    """Keep each CPU busy with a thread that gives way to all others.

    A CPU that sleeps takes tens of microseconds to wake up for a request or an answer, on a virtual
    machine more, since the hypervisor has to let it run again: as much as what is to be told apart.
    """
    spinning = [
        subprocess.Popen([sys.executable, "-c", _SPIN, str(cpu), str(os.getpid())])
        for cpu in sorted(os.sched_getaffinity(0))
    ]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
        for process in spinning:
            process.wait()
