#!/usr/bin/env python3
"""Run a command that ends with whoever wants it: session.py PID COMMAND...

SIGTERM ends all that the command has started, and so does the death of the process PID, which must
be the parent. The kernel tells of a death only who has asked for it, and that one process alone: a
make would tell the shell of its recipe, which waits for what it runs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

SIGNALS = ((signal.SIGINT, 60), (signal.SIGTERM, 20), (signal.SIGKILL, 5))
"""What ends a session, and for how many seconds each is waited for. On an interrupt alone pytest
puts back what it has changed, and that may be a cluster to take down."""
_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> bool:
    """Have SIGTERM sent to this process when its parent dies; returns whether that still lives."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent


def main(parent: int, command: list[str]) -> int:
    """Run the command, whose session this process leads; returns its exit code, as a shell does."""
    left = list(SIGNALS)

    def end(*_: object) -> None:
        if left:
            number, seconds = left.pop(0)
            signal.alarm(seconds)
            os.killpg(0, number)

    def begin_to_end(*_: object) -> None:
        signal.signal(signal.SIGTERM, _pass_over)
        end()

    # What is ignored, and not passed over, the command would ignore as well.
    signal.signal(signal.SIGINT, _pass_over)
    signal.signal(signal.SIGALRM, end)
    signal.signal(signal.SIGTERM, begin_to_end)
    if not end_with(parent):
        return 1
    code = subprocess.Popen(command).wait()
    if len(left) < len(SIGNALS):
        # What the command has left behind, and this process.
        os.killpg(0, signal.SIGKILL)
    return code if code >= 0 else 128 - code


def _pass_over(*_: object) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
