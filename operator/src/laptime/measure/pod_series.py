"""The series of the pods of a trial: how Prometheus is asked for them, and which are whose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from laptime.measure.processes import PROCESS_METRICS, Processes
from laptime.measure.promql import TrialWindow, selector
from laptime.measure.timeseries import Series, Window, add_to

_EXPORTER = "exporter"
_POD_METRICS = {
    "laptime_pod_cpu_seconds_total": "cpu",
    "laptime_pod_cpu_cores_peak": "peak",
    "laptime_pod_cpu_throttled_seconds_total": "throttled",
    "laptime_pod_cpu_throttled_periods_total": "periods",
    "laptime_pod_memory_working_set_bytes": "working_set",
    "laptime_pod_memory_peak_bytes": "memory_peak",
    "laptime_pod_network_receive_bytes_total": "received",
    "laptime_pod_network_transmit_bytes_total": "transmitted",
    "laptime_pod_cpus_exclusive": "exclusive",
    # The exporter beside a tier is no part of what is measured.
    "laptime_container_cpu_seconds_total": "exporter_cpu",
    "laptime_container_cpu_throttled_seconds_total": "exporter_throttled",
    "laptime_container_cpu_throttled_periods_total": "exporter_periods",
    "laptime_container_memory_working_set_bytes": "exporter_working_set",
}
_POD_PRESSURE = "laptime_pod_pressure_seconds_total"
_PRESSURES = {
    ("cpu", "some"): "waiting",
    ("io", "full"): "disk_waiting",
    ("memory", "full"): "memory_waiting",
}
_DISK_OPERATIONS = "laptime_pod_disk_operations_total"
PRESSURE_ON_CPUS = {"resource": ("=~", "|cpu"), "kind": ("=~", "|some")}
"""Of pressure only that on the CPUs; other metrics have none of these labels."""
_KUBELET_METRICS = {
    "container_cpu_usage_seconds_total": "cpu",
    "container_cpu_cfs_throttled_seconds_total": "throttled",
    "container_memory_working_set_bytes": "working_set",
    "container_memory_max_usage_bytes": "memory_peak",
}


@dataclass
class PodSeries:
    """One pod and its series, by what they count."""

    component: str
    server: str | None
    node: str | None
    trial: str = ""
    """Empty: it is of no trial alone, or nobody says of which."""
    series: dict[str, Series] = field(default_factory=dict)
    disks: dict[str, Series] = field(default_factory=dict)
    """Reads and writes at each."""
    processes: Processes = field(default_factory=Processes)

    def add(self, key: str, series: Series) -> None:
        """Add a series; one of a time that there is another one of goes on with that."""
        add_to(self.series, key, series)


def agent_query(wanted: TrialWindow) -> str:
    """Return the PromQL selector of all samples of the pods of a trial, and of the run's tiers.

    With those of the trial beside it, which are told by their label.
    """
    labels = {
        "__name__": ("=~", "|".join((*_POD_METRICS, _POD_PRESSURE, *PROCESS_METRICS))),
        **_of_trial(wanted),
        # The whole pod, and of its containers only the exporter.
        "container": ("=~", f"|{_EXPORTER}"),
        **PRESSURE_ON_CPUS,
    }
    return selector(labels)


def stalls_query(wanted: TrialWindow) -> str:
    """Return the PromQL selector of how long a server waited for memory or a disk, and used one.

    Asked for by itself: of all pods, and of all that the kernel counts, it would be many series.
    """
    labels = {
        "__name__": ("=~", f"{_POD_PRESSURE}|{_DISK_OPERATIONS}"),
        **_of_trial(wanted),
        "component": ("=", "server"),
        # Operations have neither.
        "resource": ("=~", "|io|memory"),
        "kind": ("=~", "|full"),
    }
    return selector(labels)


def _of_trial(wanted: TrialWindow) -> dict[str, tuple[str, str]]:
    trials = wanted.trial if wanted.beside is None else f"{wanted.trial}|{wanted.beside}"
    return {
        "namespace": ("=", wanted.namespace),
        "run": ("=", wanted.run),
        # Tiers have no trial; servers and generators of other trials are none of ours.
        "trial": ("=~", f"|{trials}"),
    }


def kubelet_query(wanted: TrialWindow) -> str:
    """Return the PromQL selector of what the kubelet (cAdvisor) knows of the pods of a run."""
    labels = {
        "__name__": ("=~", "|".join(_KUBELET_METRICS)),
        "namespace": ("=", wanted.namespace),
        "pod": ("=~", f"{wanted.run}-.+"),
        # The whole pod, not its containers; nor its sandbox, which has no name of a container
        # either, and that of its image.
        "container": ("=", ""),
        "image": ("=", ""),
    }
    return selector(labels)


def pods_of_agent(found: Iterable[tuple[Mapping[str, str], Series]]) -> dict[str, PodSeries]:
    """Return pods with their series, by name, as agents tell of them."""
    pods: dict[str, PodSeries] = {}
    for labels, series in found:
        name = labels["__name__"]
        key = _POD_METRICS.get(name)
        if name == _POD_PRESSURE:
            key = _PRESSURES.get((labels.get("resource", ""), labels.get("kind", "")))
        if key is None and name not in (*PROCESS_METRICS, _DISK_OPERATIONS):
            continue
        pod = pods.setdefault(
            labels["pod"],
            PodSeries(
                labels.get("component", ""),
                labels.get("server"),
                labels.get("node"),
                labels.get("trial", ""),
            ),
        )
        if key is not None:
            pod.add(key, series)
        elif name == _DISK_OPERATIONS:
            add_to(pod.disks, labels.get("device", ""), series)
        else:
            pod.processes.add(labels, series)
    return pods


def pods_of_kubelet(
    found: Iterable[tuple[Mapping[str, str], Series]], wanted: TrialWindow
) -> dict[str, PodSeries]:
    """Return the pods of a trial with their series, by name, as kubelets tell of them."""
    pods: dict[str, PodSeries] = {}
    for labels, series in _of_whole_pods(found):
        part = component_of_pod(labels["pod"], wanted)
        key = _KUBELET_METRICS.get(labels["__name__"])
        # A pod of another trial that is still being deleted has no say in this window.
        if part is None or key is None or series.covered(wanted.window) == 0.0:
            continue
        pod = pods.setdefault(labels["pod"], PodSeries(part[0], part[1], labels.get("node")))
        pod.add(key, series)
    return pods


def _of_whole_pods(
    found: Iterable[tuple[Mapping[str, str], Series]],
) -> list[tuple[Mapping[str, str], Series]]:
    """Return the series of the cgroups of pods, without those of what is in them.

    Where Prometheus drops the label `image`, the sandbox cannot be told by it.
    """
    every = list(found)
    outer: dict[str, str] = {}
    for labels, _ in every:
        pod, path = labels["pod"], labels.get("id", "")
        outer[pod] = min(outer.get(pod, path), path, key=len)
    return [one for one in every if one[0].get("id", "") == outer[one[0]["pod"]]]


def component_of_pod(pod: str, wanted: TrialWindow) -> tuple[str, str | None] | None:
    """Return component and server of a pod by its name alone, which is all that the kubelet tells.

    None for pods that have no part in the trial.
    """
    rest = pod.removeprefix(f"{wanted.run}-")
    tier = re.fullmatch(
        r"(postgres|pgbouncer|haproxy|upstream|delay|service-.+)-[a-z0-9]+-[a-z0-9]+", rest
    )
    if tier:
        return tier[1], None
    server = re.fullmatch(r"server-(.+)-[a-z0-9]+-[a-z0-9]+", rest)
    if server and wanted.server in (None, server[1]):
        return "server", server[1]
    if pod.startswith(f"{wanted.trial}-"):
        return "generator", None
    return None


def with_cpu_in(pods: Mapping[str, PodSeries], window: Window) -> dict[str, PodSeries]:
    """Return the pods whose use of CPU is known of some part of a window."""
    return {
        name: pod
        for name, pod in pods.items()
        if "cpu" in pod.series and pod.series["cpu"].covered(window) > 0.0
    }
