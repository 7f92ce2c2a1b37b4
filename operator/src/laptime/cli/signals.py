"""Being ended from outside: a job that is cancelled, a terminal that is closed."""

from __future__ import annotations

import signal
import sys
from types import FrameType

INTERRUPTED = (KeyboardInterrupt, SystemExit)
"""What Ctrl-C raises, and what a signal does to which `end_as_by_ctrl_c` was said."""
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def end_as_by_ctrl_c() -> None:
    """Have SIGTERM and SIGHUP raise SystemExit, with 143 and 129.

    They would end the process where it is: without a word of what goes on in the cluster, and with
    the private keys of the kubeconfig in files, which the client deletes at the end.
    """
    for number in _ENDING:
        # What is ignored (nohup) stays so, and what somebody else handles is theirs.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _: FrameType | None) -> None:
    # A terminal that is closed sends more than one: none is to interrupt the end.
    for one in _ENDING:
        signal.signal(one, signal.SIG_IGN)
    sys.exit(128 + number)
