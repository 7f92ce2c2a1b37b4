"""When a deletion that came to nothing is tried again, or whatever nobody answered.

One that was refused ever less often, or once the run has changed.

A run that an admission policy protects, say, must hold up no other, nor be asked for for ever.
"""

from __future__ import annotations

import time

_SECONDS = (30.0, 300.0, 3600.0)
# Of those that nobody answers for so many are tried again in a second, but none waits longer for
# that than a moment: an outage of a second keeps a thousand of them no minutes.
_TRIED_A_SECOND = 5.0
_SHORTEST_SECONDS, _LONGEST_SECONDS = 1.0, 10.0


def pause_for(unanswered: int) -> float:
    """Return after how many seconds so many runs are tried again that nobody answered for."""
    return min(max(_SHORTEST_SECONDS, unanswered / _TRIED_A_SECOND), _LONGEST_SECONDS)


class Pauses:
    """Of each run, by its uid, how often it was refused and until when it is left alone."""

    def __init__(self) -> None:
        self._refused: dict[str, tuple[int, float]] = {}

    def left(self, uid: str) -> float:
        """Return for how many seconds a run is still left alone; 0 when it may be tried."""
        _, until = self._refused.get(uid, (0, 0.0))
        return max(0.0, until - time.monotonic())

    def begin(self, uid: str) -> float:
        """Take in that it was refused; return for how many seconds it is left alone."""
        before, _ = self._refused.get(uid, (0, 0.0))
        pause = _SECONDS[min(before, len(_SECONDS) - 1)]
        self._refused[uid] = (before + 1, time.monotonic() + pause)
        return pause

    def put_off(self, uid: str, seconds: float) -> None:
        """Take in that nobody said whether it may go, which may pass at any time."""
        before, _ = self._refused.get(uid, (0, 0.0))
        self._refused[uid] = (before, time.monotonic() + seconds)

    def end(self, uid: str) -> None:
        """Have it tried at once: it has changed, or is gone."""
        self._refused.pop(uid, None)
