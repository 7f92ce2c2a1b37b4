"""What each process of a pod used in a window, from the agent's series. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from laptime.api.usage import ProcessUsage
from laptime.measure.timeseries import Series, Window, add_to, highest_rate, increase

_CPU = "laptime_pod_process_cpu_seconds_total"
_MAIN_THREAD = "laptime_pod_process_main_thread_seconds_total"
PROCESS_METRICS = (_CPU, _MAIN_THREAD)
_TOLD = (0.9, 1.1)
"""Of the CPU time of a pod: below it there are processes that nobody followed, above it some of
what is told is not so."""
_BETWEEN_READINGS_SECONDS = 1.2
"""Of a process; and what a busy node adds."""
_FEWEST_READINGS = 3
"""Readings of a process, a second apart, that a window must have for them to tell its use."""


@dataclass
class _Process:
    labels: Mapping[str, str] = field(default_factory=dict)
    until: float = 0.0
    """When it last had these labels."""
    series: dict[str, Series] = field(default_factory=dict)
    """CPU time, and for how long its main thread was running and waiting."""


class Processes:
    """The processes of one pod, by their numbers."""

    def __init__(self) -> None:
        self._known: dict[str, _Process] = {}

    def add(self, labels: Mapping[str, str], series: Series) -> None:
        """Add a series of one of `PROCESS_METRICS`."""
        number = labels.get("process", "")
        if not number.isdecimal():
            return
        one = self._known.setdefault(number, _Process())
        key = "cpu" if labels["__name__"] == _CPU else labels.get("state", "")
        # It may have begun under another name: that of its parent.
        if key == "cpu" and ("cpu" not in one.series or one.until < series.times[-1]):
            one.labels, one.until = labels, series.times[-1]
        add_to(one.series, key, series)

    def used(self, window: Window, cpu_seconds: float | None) -> list[ProcessUsage] | None:
        """Return what each used; None where they do not account for the CPU time of their pod."""
        every = (_used(int(number), one, window) for number, one in self._known.items())
        found = [one for one in every if one is not None]
        told = sum(one.cores for one in found) * window.seconds
        least, most = _TOLD
        if (
            not found
            or cpu_seconds is None
            or not least * cpu_seconds <= told <= most * cpu_seconds
        ):
            return None
        return found


def _used(number: int, one: _Process, window: Window) -> ProcessUsage | None:
    """Return what a process used; None where it was not there, or not told of, all the time."""
    cpu, parent = one.series.get("cpu"), one.labels.get("parent", "")
    if cpu is None or not parent.isdecimal():
        return None
    used = increase(cpu, window)
    if (
        used is None
        or len(cpu.within(window.start, window.end)) < _FEWEST_READINGS
        or cpu.times[0] > window.start
        # A pod is deleted as soon as its trial is over, often before its next reading.
        or cpu.times[-1] < window.end - _BETWEEN_READINGS_SECONDS
    ):
        return None

    def share(state: str) -> float | None:
        grown = increase(one.series[state], window) if state in one.series else None
        return None if grown is None else grown / window.seconds

    return ProcessUsage(
        process=number,
        parent=int(parent),
        command=one.labels.get("command", ""),
        cores=used / window.seconds,
        cores_peak=highest_rate([cpu], window),
        main_thread_cores=share("running"),
        main_thread_waiting_share=share("waiting"),
    )
