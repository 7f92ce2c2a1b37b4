"""The readings of a CPU counter that a reader has not had yet, so that no scrape loses any."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque

KEPT = 50
"""Readings: those of ten seconds. Who comes more seldom misses the oldest, and has the newest."""

_MOST_READERS = 16


class CpuTrace:
    """The last readings of one counter, each with its moment, and how far each reader got.

    A scrape once a second would else know the counter to a second at the beginning and the end of
    a pod, which is where the window of a trial begins and ends. The sampler adds, scrapes take,
    each in a thread of its own.
    """

    __slots__ = ("_count", "_lock", "_points", "_taken")

    def __init__(self) -> None:
        self._points: deque[tuple[int, int]] = deque(maxlen=KEPT)
        self._count = 0
        self._taken: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, timestamp_ms: int, cpu_nanoseconds: int) -> None:
        """Take a reading made at a Unix time; one that is not later than the last is left out."""
        with self._lock:
            if self._points and timestamp_ms <= self._points[-1][0]:
                return
            self._points.append((timestamp_ms, cpu_nanoseconds))
            self._count += 1

    def take(self, reader: str) -> list[tuple[int, int]]:
        """Return what was added since this reader asked last, oldest first.

        Nothing new: the last reading once more, for a counter that is in no scrape would be taken
        for one that ended. A reader who never asked gets all that is kept.
        """
        with self._lock:
            new = self._count - self._taken.pop(reader, 0)
            self._taken[reader] = self._count
            if len(self._taken) > _MOST_READERS:
                self._taken.popitem(last=False)
            points = list(self._points)
        return points[-max(1, min(new, len(points))) :] if points else []
