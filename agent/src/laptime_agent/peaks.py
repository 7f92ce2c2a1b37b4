"""The highest use of CPU over any second, so that a burst is seen however rarely somebody looks."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque

# A window is a second, or this at least: the readings are not made to the microsecond.
_SHORTEST_NANOSECONDS = 900_000_000
_MOST_READERS = 16
_NONE = -1.0


class CpuPeak:
    """The mean use of CPU over each past second, and the highest of them that nobody has read yet.

    The readings come several times a second, so that a burst of one second is not cut in halves
    by two windows: at five a second, at most a tenth of it falls outside of the best window. The
    sampler adds, scrapes take, each in a thread of its own.
    """

    __slots__ = ("_lock", "_newest", "_peaks", "_readings")

    def __init__(self) -> None:
        self._readings: deque[tuple[int, int]] = deque()
        self._newest: float | None = None
        self._peaks: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, nanoseconds: int, cpu_nanoseconds: int) -> None:
        """Take a reading: a moment of a clock that only goes forward, and the CPU time until then.

        Raises nothing; a counter that went back (a new cgroup) begins a new history.
        """
        readings = self._readings
        if readings and cpu_nanoseconds < readings[-1][1]:
            readings.clear()
        readings.append((nanoseconds, cpu_nanoseconds))
        # Keep one reading that is a whole window old.
        while len(readings) > 2 and nanoseconds - readings[1][0] >= _SHORTEST_NANOSECONDS:
            readings.popleft()
        elapsed = nanoseconds - readings[0][0]
        if elapsed < _SHORTEST_NANOSECONDS:
            return
        cores = (cpu_nanoseconds - readings[0][1]) / elapsed
        with self._lock:
            self._newest = cores
            for reader, peak in self._peaks.items():
                if cores > peak:
                    self._peaks[reader] = cores

    def take(self, reader: str) -> float | None:
        """Return the peak, in cores, since this reader asked last; None before the first second.

        Each reader has its own, so that a second Prometheus or a curious person takes no peak away
        from the first.
        """
        with self._lock:
            if self._newest is None:
                return None
            # Who asks twice between two readings gets the use of the last second both times.
            peak = self._peaks.pop(reader, _NONE)
            self._peaks[reader] = _NONE
            if len(self._peaks) > _MOST_READERS:
                self._peaks.popitem(last=False)
            return self._newest if peak == _NONE else peak
