"""What the pods of a trial used in its window, by component."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from laptime.api.usage import (
    MOST_PROCESSES,
    ComponentUsage,
    CoresOverTime,
    ProcessUsage,
    Source,
    TrialUsage,
)
from laptime.measure.pod_series import PodSeries
from laptime.measure.promql import TrialWindow
from laptime.measure.timeseries import (
    MISSING_SHARE,
    Series,
    Window,
    growth,
    highest_rate,
    increase,
    seen_growth,
    spans,
)

GAUGE_LONGEST_GAP_SECONDS = 3.0
"""Memory is read once a second, and scraped once: of a new agent or Prometheus it has no past."""
_PERIOD_SECONDS = 0.1


def usage_of_pods(
    wanted: TrialWindow,
    pods: Mapping[str, PodSeries],
    source: Source,
    longest_gap: float,
    gaps: list[str],
) -> TrialUsage:
    """Return what these pods used; of the CPU of each there are samples in the window."""
    parts: dict[tuple[str, str], dict[str, PodSeries]] = defaultdict(dict)
    for name, pod in pods.items():
        parts[pod.component, pod.server or ""][name] = pod
    of_one = [
        gap
        for part in sorted(parts)
        for name, pod in sorted(parts[part].items())
        for gap in _gaps(name, pod, wanted.window, longest_gap)
    ]
    distances = [
        after - before
        for part in parts.values()
        for pod in part.values()
        for before, after in pairwise(pod.series["cpu"].times)
    ]
    resolution = round(median(distances), 3) if distances else None
    return TrialUsage(
        source=source,
        resolution_seconds=resolution,
        complete=not of_one and source is Source.AGENT,
        gaps=[*gaps, *of_one],
        components=[
            _component(
                component,
                server or None,
                list(parts[component, server].values()),
                wanted.window,
                resolution or 1.0,
            )
            for component, server in sorted(parts)
        ],
    )


def _gaps(name: str, pod: PodSeries, window: Window, longest: float) -> list[str]:
    cpu = pod.series["cpu"]
    found = []
    missing = window.seconds - cpu.covered(window)
    if missing > MISSING_SHARE * window.seconds:
        found.append(f"{name}: no samples for {missing:.1f} s of the {window.seconds:.1f} s")
    gap = cpu.longest_gap(window)
    if gap > longest and not found:
        found.append(f"{name}: {gap:.1f} s without a sample")
    memory = pod.series.get("working_set")
    if not found and memory is not None:
        gap = memory.longest_gap(window)
        if gap > max(longest, GAUGE_LONGEST_GAP_SECONDS):
            found.append(f"{name}: {gap:.1f} s without a sample of its memory")
    if increase(cpu, window) is None and not found:
        found.append(f"{name}: its CPU counter went back")
    return found


@dataclass(frozen=True)
class _Together:
    """The pods of a component, of which what each used is added up."""

    pods: list[PodSeries]
    window: Window

    def grown(self, key: str) -> float | None:
        """Return by how much a counter grew in the window; None: it is not known of each pod."""
        grows = self._grows(key)
        return sum(grows) if grows and len(grows) == len(self.pods) else None

    def own(self, key: str) -> float | None:
        """Return the same without the exporters beside them."""
        of_pods, of_exporters = self.grown(key), sum(self._grows(f"exporter_{key}"))
        return None if of_pods is None else max(0.0, of_pods - of_exporters)

    def share(self, key: str) -> float | None:
        """Return which share of the window a counter of seconds grew by."""
        seconds = self.grown(key)
        return None if seconds is None else min(1.0, seconds / self.window.seconds)

    def highest(self, key: str) -> int | None:
        """Return the sum of the highest values of a gauge; None: it is not known of any pod."""
        known = [max(values) for values in self._values(key) if values]
        return round(sum(known)) if known else None

    def fewest(self, key: str) -> int | None:
        """Return the sum of the lowest values of a gauge; None: it is not known of each pod."""
        known = [min(values) for values in self._values(key) if values]
        return round(sum(known)) if len(known) == len(self.pods) else None

    def _grows(self, key: str) -> list[float]:
        grows = [increase(one, self.window) for one in self._series(key)]
        return [one for one in grows if one is not None]

    def _values(self, key: str) -> list[tuple[float, ...]]:
        # The last sample before the window and the first one after it speak of its ends.
        start, end = self.window.start - 1.0, self.window.end + 1.0
        return [one.within(start, end) for one in self._series(key)]

    def _series(self, key: str) -> list[Series]:
        return [pod.series[key] for pod in self.pods if key in pod.series]


def _component(
    component: str, server: str | None, pods: list[PodSeries], window: Window, resolution: float
) -> ComponentUsage:
    used = _Together(pods, window)
    cpu = used.own("cpu")
    working_set = used.highest("working_set")
    exporters = used.highest("exporter_working_set") or 0
    throttled, periods = used.own("throttled"), used.own("periods")
    received, transmitted = used.grown("received"), used.grown("transmitted")
    return ComponentUsage(
        component=component,
        server=server,
        pods=len(pods),
        nodes=sorted({pod.node for pod in pods if pod.node}),
        cpu_seconds=cpu,
        cores_mean=None if cpu is None else cpu / window.seconds,
        cores_peak=_peak(pods, window),
        cores_over_time=None if cpu is None else _over_time(pods, window, resolution),
        throttled_seconds=throttled,
        throttled_share=(
            None
            if periods is None
            else min(1.0, periods * _PERIOD_SECONDS / (window.seconds * len(pods)))
        ),
        working_set_bytes=None if working_set is None else max(0, working_set - exporters),
        memory_peak_bytes=used.highest("memory_peak"),
        cpu_waiting_share=used.share("waiting"),
        disk_waiting_share=used.share("disk_waiting"),
        memory_waiting_share=used.share("memory_waiting"),
        disk_operations_per_second=_disk_operations(pods, window),
        received_bytes=None if received is None else round(received),
        transmitted_bytes=None if transmitted is None else round(transmitted),
        exclusive_cpus=used.fewest("exclusive"),
        processes=_processes(pods, window),
    )


def _processes(pods: list[PodSeries], window: Window) -> list[ProcessUsage] | None:
    """Return what the busiest processes used; None where they are not known of each pod."""
    every: list[ProcessUsage] = []
    for pod in pods:
        used = pod.processes.used(window, increase(pod.series["cpu"], window))
        if used is None:
            return None
        every += used
    return sorted(every, key=lambda one: (-one.cores, one.process))[:MOST_PROCESSES]


def _disk_operations(pods: list[PodSeries], window: Window) -> float | None:
    """Return the reads and writes a second, each pod's at its busiest disk; None: not known.

    One operation is counted again at each device below the first, as at the disk of a volume. Of
    what began within the window, as the counter of a new agent, only what was seen counts.
    """
    busiest = [
        max(seen_growth(one, window) for one in pod.disks.values()) for pod in pods if pod.disks
    ]
    return sum(busiest) / window.seconds if len(busiest) == len(pods) else None


def _over_time(pods: list[PodSeries], window: Window, resolution: float) -> CoresOverTime | None:
    """The use in each span of the window: no finer than the samples are."""
    length, every = spans(window, resolution)
    cores = [_cores(pods, span) for span in every]
    if all(one is None for one in cores):
        return None
    return CoresOverTime(span_seconds=length, cores=cores)


def _cores(pods: list[PodSeries], span: Window) -> float | None:
    used = 0.0
    for pod in pods:
        grown = growth(pod.series["cpu"], span)
        if grown is None:
            return None
        exporter = pod.series.get("exporter_cpu")
        used += grown - ((growth(exporter, span) or 0.0) if exporter else 0.0)
    return round(max(0.0, used) / span.seconds, 3)


def _peak(pods: list[PodSeries], window: Window) -> float | None:
    """The highest use over a second: of the counters, and of the agent's finer readings."""
    together = highest_rate([pod.series["cpu"] for pod in pods], window)
    # What a scrape says is of each second that ended since the one before, and none of them may
    # have begun before the window. Of two that take turns it is the one before that.
    of_one = [
        value
        for one in (pod.series["peak"] for pod in pods if "peak" in pod.series)
        for before, time, value in zip(one.times, one.times[1:], one.values[1:], strict=False)
        if before >= window.start + 1.0 and window.start + 2.0 <= time <= window.end
    ]
    return max([together, *of_one])
