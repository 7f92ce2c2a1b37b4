"""The metrics, in Prometheus' text format.

The agent's own metrics are prometheus-client's. Those of pods are written here: the labels of a pod
are put together once and not for each of its samples, every second anew, which is most of the cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest

from laptime_agent.pods import Pod
from laptime_agent.readings import (
    CgroupReading,
    CpuReading,
    NodeReading,
    PodReading,
    ProcessReading,
    TrackingReading,
)
from laptime_agent.sampler import Sampler
from laptime_agent.speed import WORK
from laptime_agent.tracking import TrackedPod

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Number = int | float


@dataclass(frozen=True)
class _Family:
    name: str
    kind: str
    help: str

    def head(self) -> str:
        return f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n"


def _seconds(nanoseconds: int) -> float:
    return nanoseconds / 1e9


_POD_CPU = _Family(
    "laptime_pod_cpu_seconds_total", "counter", "CPU time of all containers of the pod."
)
_POD: tuple[tuple[_Family, Callable[[PodReading], Number]], ...] = (
    (
        _Family(
            "laptime_pod_cpu_throttled_seconds_total",
            "counter",
            "Time that tasks were held back by the CPU limit, summed over CPUs.",
        ),
        lambda one: _seconds(one.throttled_nanoseconds),
    ),
    (
        _Family(
            "laptime_pod_cpu_throttled_periods_total",
            "counter",
            "Periods (of 0.1 s) in which the CPU limit was reached.",
        ),
        lambda one: one.throttled_periods,
    ),
    (
        _Family(
            "laptime_pod_memory_working_set_bytes",
            "gauge",
            "Memory in use without the file cache that would be given up first.",
        ),
        lambda one: one.pod.working_set_bytes,
    ),
    (
        _Family(
            "laptime_pod_memory_peak_bytes",
            "gauge",
            "Highest memory in use since the pod began, file cache included.",
        ),
        lambda one: one.pod.memory_peak_bytes,
    ),
)

_CONTAINER: tuple[tuple[_Family, Callable[[CgroupReading], Number]], ...] = (
    (
        _Family("laptime_container_cpu_seconds_total", "counter", "CPU time of the container."),
        lambda one: _seconds(one.cpu_nanoseconds),
    ),
    (
        _Family(
            "laptime_container_cpu_throttled_seconds_total",
            "counter",
            "Time that tasks were held back by the container's CPU limit, summed over CPUs.",
        ),
        lambda one: _seconds(one.throttled_nanoseconds),
    ),
    (
        _Family(
            "laptime_container_cpu_throttled_periods_total",
            "counter",
            "Periods (of 0.1 s) in which the container's CPU limit was reached.",
        ),
        lambda one: one.throttled_periods,
    ),
    (
        _Family(
            "laptime_container_memory_working_set_bytes",
            "gauge",
            "Memory in use without the file cache that would be given up first.",
        ),
        lambda one: one.working_set_bytes,
    ),
    (
        _Family(
            "laptime_container_memory_peak_bytes",
            "gauge",
            "Highest memory in use since the container began, file cache included.",
        ),
        lambda one: one.memory_peak_bytes,
    ),
)

_POD_PEAK = _Family(
    "laptime_pod_cpu_cores_peak",
    "gauge",
    "Highest use of CPU over any second since this reader's last scrape, in cores.",
)
_POD_EXCLUSIVE = _Family(
    "laptime_pod_cpus_exclusive", "gauge", "CPUs that the pod may run on and no other pod may."
)
_POD_PROCESS = _Family(
    "laptime_pod_process_cpu_seconds_total",
    "counter",
    "CPU time of a process of a server, its threads included.",
)
_POD_PRESSURE = _Family(
    "laptime_pod_pressure_seconds_total",
    "counter",
    "Time in which some, or the full set of, tasks of the pod waited for the resource.",
)
_POD_DISK = _Family(
    "laptime_pod_disk_operations_total",
    "counter",
    "Reads and writes of the pod at a block device.",
)
_POD_RECEIVED = _Family(
    "laptime_pod_network_receive_bytes_total", "counter", "Bytes received, without the loopback."
)
_POD_TRANSMITTED = _Family(
    "laptime_pod_network_transmit_bytes_total", "counter", "Bytes sent, without the loopback."
)
_POD_MAIN_THREAD = _Family(
    "laptime_pod_process_main_thread_seconds_total",
    "counter",
    "Time in which the main thread of a process of a server ran, or was ready and had no CPU.",
)
_NODE_INFO = _Family("laptime_node_info", "gauge", "Kernel and CPU model of the node.")
_NODE_CLOCK = _Family(
    "laptime_node_clock_seconds", "gauge", "The node's own time when it was asked (Unix time)."
)
_NODE_BOOT = _Family(
    "laptime_node_boot_time_seconds",
    "gauge",
    "When the node booted, by its own time now (Unix time): whoever sets its clock moves that.",
)
_NODE_CPU = _Family(
    "laptime_node_cpu_seconds_total",
    "counter",
    "CPU time of the node by mode; steal is what the hypervisor gave to others.",
)
_NODE_STILL = _Family(
    "laptime_node_stood_still_seconds_total",
    "counter",
    "Time in which nothing ran on the node, since the agent began; from a second on.",
)
_NODE_FREQUENCY = _Family(
    "laptime_node_cpu_frequency_hertz", "gauge", "Lowest and mean frequency of the CPUs."
)
_NODE_PROBE = _Family(
    "laptime_node_probe_cpu_seconds",
    "summary",
    "CPU time of a fixed piece of work, done while pods of runs are there: the longer, the slower "
    "the CPUs.",
)
_NODE_PRESSURE = _Family(
    "laptime_node_pressure_seconds_total",
    "counter",
    "Time in which some, or the full set of, tasks of the node waited for the resource.",
)
_NODE_PODS = _Family(
    "laptime_node_pods_cpu_seconds_total",
    "counter",
    "CPU time of all pods of the node, in whatever namespace, those that ended included.",
)
_NEIGHBOUR = _Family(
    "laptime_neighbour_cpu_seconds_total", "counter", "CPU time of a pod that is of no run."
)
_TRACKED = _Family(
    "laptime_node_nf_conntrack_entries", "gauge", "Connections that the node keeps track of."
)
_TRACKED_LIMIT = _Family(
    "laptime_node_nf_conntrack_entries_limit", "gauge", "How many of them it has room for."
)
_TRACKING_EVENTS = _Family(
    "laptime_node_nf_conntrack_events_total",
    "counter",
    "Packets dropped, entries given up early, and entries that could not be added.",
)
_NODE: tuple[tuple[_Family, Callable[[NodeReading], Number]], ...] = (
    (_Family("laptime_node_cpus", "gauge", "CPUs of the node."), lambda one: one.cpus),
    (
        _Family("laptime_node_load1", "gauge", "Tasks that run or wait, mean of a minute."),
        lambda one: one.load1,
    ),
    (
        _Family("laptime_node_memory_total_bytes", "gauge", "Memory of the node."),
        lambda one: one.memory_total_bytes,
    ),
    (
        _Family("laptime_node_memory_available_bytes", "gauge", "Memory that programs can have."),
        lambda one: one.memory_available_bytes,
    ),
)


def escaped(value: str) -> str:
    """Return a label's value as the text format wants it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items() if value)


def _clock_and_boot() -> tuple[float, float]:
    """Return what time it is by the node's clock, and when the node booted by it.

    Both clocks are read one after the other, and whoever is taken off the CPU in between reads
    another boot: so the quickest of some readings counts.
    """
    readings = []
    for _ in range(3):
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        asked = time.time()
        after = time.clock_gettime(time.CLOCK_BOOTTIME)
        readings.append((after - before, asked, asked - (before + after) / 2))
    _, asked, booted = min(readings)
    return asked, booted


class Exposition:
    """Writes down what a sampler last read on a node."""

    def __init__(self, sampler: Sampler, node: str, own: CollectorRegistry) -> None:
        self._sampler = sampler
        self._node = node
        self._own = own
        self._labels_of_pods: dict[str, tuple[Pod, str]] = {}

    def render(self, reader: str) -> bytes:
        """Return all metrics, for a reader known by this name (see CpuPeak and CpuTrace)."""
        asked, booted = _clock_and_boot()
        newest = [(one, one.newest) for one in self._sampler.pods if not one.past]
        pods = [(one, self._labels_of(one.pod), reading) for one, reading in newest if reading]
        neighbours = self._sampler.neighbours.pods
        uids = {one.pod.uid for one, _, _ in pods} | {pod.uid for pod, _ in neighbours}
        self._forget_labels(uids)
        # Without a time of its own: that of the reader says how far both clocks are apart.
        node = _labels({"node": self._node})
        clock = f"{_NODE_CLOCK.name}{{{node}}} {asked!r}\n"
        boot = f"{_NODE_BOOT.name}{{{node}}} {booted!r}\n"
        lines: list[str] = [_NODE_CLOCK.head(), clock, _NODE_BOOT.head(), boot, _POD_CPU.head()]
        lines.extend(self._cpu_lines(pods, reader))
        lines.extend(_pod_lines([(labels, reading) for _, labels, reading in pods]))
        lines.append(_POD_PEAK.head())
        lines.extend(self._peak_lines(pods, reader))
        lines.append(_NEIGHBOUR.head())
        lines.extend(_cpu_line(_NEIGHBOUR, self._labels_of(pod), one) for pod, one in neighbours)
        all_pods = self._sampler.neighbours.all_pods
        if all_pods is not None:
            lines.append(_NODE_PODS.head())
            lines.append(_cpu_line(_NODE_PODS, node, all_pods))
        tracking = self._sampler.connections.newest
        if tracking is not None:
            lines.extend(_tracking_lines(node, tracking))
        if self._sampler.node is not None:
            lines.extend(_node_lines(node, self._sampler.node))
        return "".join(lines).encode() + generate_latest(self._own)

    def _cpu_lines(
        self, pods: Iterable[tuple[TrackedPod, str, PodReading]], reader: str
    ) -> Iterator[str]:
        # Several samples of one series, each with its own time: the text format and OpenMetrics
        # have it so, and Prometheus stores them all.
        for one, labels, _ in pods:
            for timestamp_ms, nanoseconds in one.trace.take(reader):
                yield f"{_POD_CPU.name}{{{labels}}} {_seconds(nanoseconds)!r} {timestamp_ms}\n"

    def _peak_lines(
        self, pods: Iterable[tuple[TrackedPod, str, PodReading]], reader: str
    ) -> Iterator[str]:
        for one, labels, _ in pods:
            peak = None if one.ended else one.peak.take(reader)
            if peak is not None:
                # Without a time of its own: it is about the time until this scrape.
                yield f"{_POD_PEAK.name}{{{labels}}} {peak:.6g}\n"

    def _labels_of(self, pod: Pod) -> str:
        known = self._labels_of_pods.get(pod.uid)
        if known is not None and known[0] is pod:
            return known[1]
        labels = _labels(
            {"namespace": pod.namespace, "pod": pod.name, "node": self._node, **pod.labels}
        )
        self._labels_of_pods[pod.uid] = (pod, labels)
        return labels

    def _forget_labels(self, uids: set[str]) -> None:
        if len(self._labels_of_pods) > len(uids):
            for uid in self._labels_of_pods.keys() - uids:
                self._labels_of_pods.pop(uid, None)


def _cpu_line(family: _Family, labels: str, one: CpuReading) -> str:
    return f"{family.name}{{{labels}}} {_seconds(one.cpu_nanoseconds)!r} {one.timestamp_ms}\n"


def _pod_lines(pods: list[tuple[str, PodReading]]) -> Iterator[str]:
    for family, value in _POD:
        yield family.head()
        for labels, one in pods:
            yield f"{family.name}{{{labels}}} {value(one)!r} {one.timestamp_ms}\n"
    told = [(labels, one) for labels, one in pods if one.exclusive_cpus is not None]
    if told:
        yield _POD_EXCLUSIVE.head()
    for labels, one in told:
        yield f"{_POD_EXCLUSIVE.name}{{{labels}}} {one.exclusive_cpus} {one.timestamp_ms}\n"
    yield _POD_PRESSURE.head()
    for labels, one in pods:
        yield from _pressure_lines(_POD_PRESSURE.name, labels, one.pod.pressure, one.timestamp_ms)
    yield _POD_DISK.head()
    for labels, one in pods:
        for device, count in one.pod.disk_operations.items():
            series = f'{_POD_DISK.name}{{{labels},device="{device}"}}'
            yield f"{series} {count} {one.timestamp_ms}\n"
    networks = [(labels, one, one.network) for labels, one in pods if one.network]
    yield _POD_RECEIVED.head()
    for labels, one, network in networks:
        yield f"{_POD_RECEIVED.name}{{{labels}}} {network.received_bytes} {one.timestamp_ms}\n"
    yield _POD_TRANSMITTED.head()
    for labels, one, network in networks:
        sent = network.transmitted_bytes
        yield f"{_POD_TRANSMITTED.name}{{{labels}}} {sent} {one.timestamp_ms}\n"
    of_processes = [
        (f"{labels},{_process_labels(number, process)}", one, process)
        for labels, one in pods
        for number, process in one.processes.items()
    ]
    yield _POD_PROCESS.head()
    for labels, one, process in of_processes:
        yield f"{_POD_PROCESS.name}{{{labels}}} {process.cpu_seconds!r} {one.timestamp_ms}\n"
    yield _POD_MAIN_THREAD.head()
    for labels, one, process in of_processes:
        for state, spent in zip(("running", "waiting"), process.main_thread or (), strict=False):
            series = f'{_POD_MAIN_THREAD.name}{{{labels},state="{state}"}}'
            yield f"{series} {spent!r} {one.timestamp_ms}\n"
    for container_family, of_container in _CONTAINER:
        yield container_family.head()
        for labels, one in pods:
            for name, reading in one.containers.items():
                yield (
                    f'{container_family.name}{{{labels},container="{name}"}} '
                    f"{of_container(reading)!r} {one.timestamp_ms}\n"
                )


def _process_labels(number: int, one: ProcessReading) -> str:
    return _labels({"process": str(number), "parent": str(one.parent), "command": one.command})


def _pressure_lines(
    name: str, labels: str, pressure: Mapping[tuple[str, str], int], timestamp_ms: int
) -> Iterator[str]:
    for (resource, kind), microseconds in pressure.items():
        yield (
            f'{name}{{{labels},resource="{resource}",kind="{kind}"}} '
            f"{microseconds / 1e6!r} {timestamp_ms}\n"
        )


def _tracking_lines(labels: str, one: TrackingReading) -> Iterator[str]:
    stamp = one.timestamp_ms
    yield _TRACKED.head()
    yield f"{_TRACKED.name}{{{labels}}} {one.entries} {stamp}\n"
    if one.limit is not None:
        yield _TRACKED_LIMIT.head()
        yield f"{_TRACKED_LIMIT.name}{{{labels}}} {one.limit} {stamp}\n"
    yield _TRACKING_EVENTS.head()
    for event, count in one.events.items():
        yield f'{_TRACKING_EVENTS.name}{{{labels},event="{event}"}} {count} {stamp}\n'


def _node_lines(labels: str, node: NodeReading) -> Iterator[str]:
    stamp = node.timestamp_ms
    what = _labels({"kernel": node.kernel, "cpu_model": node.cpu_model})
    yield _NODE_INFO.head()
    yield f"{_NODE_INFO.name}{{{labels},{what}}} 1 {stamp}\n"
    yield _NODE_CPU.head()
    for mode, seconds in node.cpu_seconds.items():
        yield f'{_NODE_CPU.name}{{{labels},mode="{mode}"}} {seconds!r} {stamp}\n'
    for family, value in _NODE:
        yield family.head()
        yield f"{family.name}{{{labels}}} {value(node)!r} {stamp}\n"
    if node.stood_still_seconds is not None:
        yield _NODE_STILL.head()
        yield f"{_NODE_STILL.name}{{{labels}}} {node.stood_still_seconds!r} {stamp}\n"
    if node.frequency_hertz is not None:
        yield _NODE_FREQUENCY.head()
        for statistic, hertz in zip(("min", "mean"), node.frequency_hertz, strict=True):
            yield f'{_NODE_FREQUENCY.name}{{{labels},statistic="{statistic}"}} {hertz!r} {stamp}\n'
    yield _NODE_PROBE.head()
    series = f"{labels},{_labels({'work': WORK})}"
    for what_of, figure in zip(("count", "sum"), node.probes, strict=True):
        yield f"{_NODE_PROBE.name}_{what_of}{{{series}}} {figure!r} {stamp}\n"
    yield _NODE_PRESSURE.head()
    yield from _pressure_lines(_NODE_PRESSURE.name, labels, node.pressure, stamp)
