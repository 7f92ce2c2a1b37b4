"""What Prometheus knows of the window of one trial: queries, and figures from the answers.

Nothing is computed in PromQL. Its `rate` and `increase` extrapolate to the ends of a range, and
that range ends where a query is evaluated; here the raw samples, whose times are those of the
readings, give the exact difference of a counter between the first request and the last response.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from laptime.api.usage import (
    MOST_PROCESSES,
    ComponentUsage,
    ConnectionTracking,
    CoresOverTime,
    Neighbour,
    NodeUsage,
    ProcessUsage,
    Source,
    TrialUsage,
)
from laptime.measure.clocks import Clocks
from laptime.measure.processes import PROCESS_METRICS, Processes
from laptime.measure.promql import (
    RUN_UID,
    PrometheusError,
    Query,
    TrialWindow,
    any_of,
    of_run,
    on_nodes,
    query_samples,
    selector,
)
from laptime.measure.timeseries import (
    MISSING_SHARE,
    Series,
    Window,
    add_to,
    growth,
    highest_rate,
    increase,
    seen_growth,
    spans,
    stood_still,
    unseen_ends,
)

KUBELET_MARGIN_SECONDS = 60.0
AGENT_LONGEST_GAP_SECONDS = 1.5
"""In a longer one a burst of a second would show with less than two thirds of its height."""
GAUGE_LONGEST_GAP_SECONDS = 3.0
"""Memory is read once a second, and scraped once: of a new agent or Prometheus it has no past."""
KUBELET_LONGEST_GAP_SECONDS = 45.0

_PERIOD_SECONDS = 0.1
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
_PRESSURE_ON_CPUS = {"resource": ("=~", "|cpu"), "kind": ("=~", "|some")}
"""Of pressure only that on the CPUs; other metrics have none of these labels."""
_NODE_CPU = "laptime_node_cpu_seconds_total"
_NODE_INFO = "laptime_node_info"
_NODE_PODS = "laptime_node_pods_cpu_seconds_total"
_NODE_PRESSURE = "laptime_node_pressure_seconds_total"
_TRACKED = "laptime_node_nf_conntrack_entries"
_TRACKED_LIMIT = "laptime_node_nf_conntrack_entries_limit"
_TRACKING_EVENTS = "laptime_node_nf_conntrack_events_total"
_STOOD_STILL = "laptime_node_stood_still_seconds_total"
_PROBE_SECONDS = "laptime_node_probe_cpu_seconds_sum"
_PROBES = "laptime_node_probe_cpu_seconds_count"
_NODE_METRICS = (
    "laptime_node_cpus",
    _NODE_CPU,
    "laptime_node_load1",
    "laptime_node_memory_available_bytes",
    "laptime_node_cpu_frequency_hertz",
    _NODE_INFO,
    _NODE_PODS,
    _NODE_PRESSURE,
    _PROBE_SECONDS,
    _PROBES,
    _STOOD_STILL,
    _TRACKED,
    _TRACKED_LIMIT,
    _TRACKING_EVENTS,
)
_NOT_GAUGES = (_NODE_CPU, _TRACKING_EVENTS, _STOOD_STILL, _PROBE_SECONDS, _PROBES)
_NEIGHBOURS = ("laptime_neighbour_cpu_seconds_total", "laptime_pod_cpu_seconds_total")
"""Pods of no run, and those of runs, of which others than the own one are neighbours too."""
_NAMED_CORES = 0.01
_MOST_NAMED = 10
_KUBELET_METRICS = {
    "container_cpu_usage_seconds_total": "cpu",
    "container_cpu_cfs_throttled_seconds_total": "throttled",
    "container_memory_working_set_bytes": "working_set",
    "container_memory_max_usage_bytes": "memory_peak",
}
_IDLE = ("idle", "steal")
_INTERRUPTS = ("irq", "softirq")


@dataclass
class _Pod:
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
        add_to(self.series, key, series)


async def trial_usage(
    query: Query, wanted: TrialWindow, clocks: Clocks | None = None
) -> TrialUsage:
    """Return what the pods of a run used in the window of a trial.

    Of `clocks` that are apart the difference is taken off; without them all are taken for right.
    The agent's readings, else the kubelet's, else nothing: `source` says which, `gaps` what is
    missing. Ask not before a second or two after the window: the last samples must be there.

    Raises:
        PrometheusError: Prometheus refused a query other than `stalls_query`; whatever else `query`
            raises is passed on.
    """
    found = await query_samples(query, agent_query(wanted), wanted.window)
    refused: list[str] = []
    if any(labels.get("component") == "server" for labels, _ in found):
        stalls, refused = await _stalls(query, wanted)
        found += stalls
    clocks = clocks or Clocks()
    ours, without_uid = of_run(clocks.in_the_windows_time(found), wanted)
    pods = _pods_of_agent(ours)
    own = {
        name: pod
        for name, pod in _there(pods, wanted.window).items()
        if pod.trial in ("", wanted.trial)
    }
    foreign: list[str] = []
    if own:
        usage = _usage(wanted, own, Source.AGENT, AGENT_LONGEST_GAP_SECONDS, [])
    else:
        usage, foreign = await _usage_of_kubelet(query, wanted, clocks.asked, without_uid)
    seen = {pod.node for pod in own.values() if pod.node}
    usage = await _with_nodes(query, wanted, usage, seen, pods, clocks, without_uid)
    return usage.missing(without_uid + foreign + refused)


async def _stalls(
    query: Query, wanted: TrialWindow
) -> tuple[list[tuple[Mapping[str, str], Series]], list[str]]:
    """Return how long the server waited for memory or a disk, and why that is not known.

    All else that is known of the trial is worth more than that, so it is a gap.
    """
    try:
        return await query_samples(query, stalls_query(wanted), wanted.window), []
    except PrometheusError as error:
        return [], [f"it is not known whether the server waited for memory or a disk: {error}"]


_NOT_IN_TIME = (
    "the agents tell of pods of the run, and of none of them in this window: scrapes are too far "
    "apart, or agents came later"
)


def not_watched(namespace: str) -> str:
    """Return that the agents tell of nodes and of no pod of the run, and where to look."""
    return (
        "the agents tell of the nodes and of no pod of the run: see whether watching.namespaces of "
        f"the chart names namespace {namespace} (docs/watching.md)"
    )


def agent_query(wanted: TrialWindow) -> str:
    """Return the PromQL selector of all samples of the pods of a trial, and of the run's tiers.

    With those of the trial beside it, which are told by their label.
    """
    labels = {
        "__name__": ("=~", "|".join((*_POD_METRICS, _POD_PRESSURE, *PROCESS_METRICS))),
        **_of_trial(wanted),
        # The whole pod, and of its containers only the exporter.
        "container": ("=~", f"|{_EXPORTER}"),
        **_PRESSURE_ON_CPUS,
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


def node_query(nodes: Iterable[str]) -> str:
    """Return the PromQL selector of all that is known of some nodes."""
    labels = {
        "__name__": ("=~", "|".join(_NODE_METRICS)),
        "node": ("=~", any_of(nodes)),
        **_PRESSURE_ON_CPUS,
    }
    return selector(labels)


def neighbours_query(nodes: Iterable[str], wanted: TrialWindow) -> str:
    """Return the PromQL selector of the CPU of the other pods on some nodes.

    Only of those in the namespace of the run: its author has no business with the others.
    """
    labels = {
        "__name__": ("=~", "|".join(_NEIGHBOURS)),
        "namespace": ("=", wanted.namespace),
        "node": ("=~", any_of(nodes)),
        RUN_UID: ("!=", wanted.uid),
    }
    return selector(labels)


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


def _pods_of_agent(found: Iterable[tuple[Mapping[str, str], Series]]) -> dict[str, _Pod]:
    pods: dict[str, _Pod] = {}
    for labels, series in found:
        name = labels["__name__"]
        key = _POD_METRICS.get(name)
        if name == _POD_PRESSURE:
            key = _PRESSURES.get((labels.get("resource", ""), labels.get("kind", "")))
        if key is None and name not in (*PROCESS_METRICS, _DISK_OPERATIONS):
            continue
        pod = pods.setdefault(
            labels["pod"],
            _Pod(
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


def _pods_of_kubelet(
    found: Iterable[tuple[Mapping[str, str], Series]], wanted: TrialWindow
) -> dict[str, _Pod]:
    pods: dict[str, _Pod] = {}
    for labels, series in _of_whole_pods(found):
        part = component_of_pod(labels["pod"], wanted)
        key = _KUBELET_METRICS.get(labels["__name__"])
        # A pod of another trial that is still being deleted has no say in this window.
        if part is None or key is None or series.covered(wanted.window) == 0.0:
            continue
        pod = pods.setdefault(labels["pod"], _Pod(part[0], part[1], labels.get("node")))
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


async def _usage_of_kubelet(
    query: Query, wanted: TrialWindow, nodes: Collection[str], without_uid: list[str]
) -> tuple[TrialUsage, list[str]]:
    """Return what the kubelets tell of the pods on these nodes, and what was left out, in words."""
    found = await query_samples(query, kubelet_query(wanted), wanted.window, KUBELET_MARGIN_SECONDS)
    of_trial = [one for one in found if component_of_pod(one[0]["pod"], wanted) is not None]
    ours, foreign = on_nodes(of_trial, nodes, wanted)
    pods = _there(_pods_of_kubelet(ours, wanted), wanted.window)
    if pods:
        gaps = ["only the kubelet's figures"]
        usage = _usage(wanted, pods, Source.KUBELET, KUBELET_LONGEST_GAP_SECONDS, gaps)
        return usage, foreign
    gaps = without_uid or ["neither the agent nor the kubelet has a sample of this window"]
    return TrialUsage(source=Source.NOBODY, complete=False, gaps=gaps), foreign


async def _with_nodes(
    query: Query,
    wanted: TrialWindow,
    usage: TrialUsage,
    seen: set[str],
    pods: Mapping[str, _Pod],
    clocks: Clocks,
    without_uid: list[str],
) -> TrialUsage:
    """Return what the pods of a trial used together with what their nodes did.

    `seen` are the nodes on which the agents saw pods of the trial. Agents tell of each node, but of
    the pods of some namespaces alone: so a node is judged too of which nobody knows what the run
    used there, and what others used there is not known then. Nor is it where there are pods
    `without_uid`, as that gap says: they may be of the run, or not. `pods` are those of the run, of
    the trial beside it too.
    """
    nodes = sorted(seen | set(clocks.asked))
    if not nodes:
        return usage
    found = await query_samples(query, node_query(nodes), wanted.whole)
    by_node: dict[str, list[tuple[Mapping[str, str], Series]]] = defaultdict(list)
    for labels, series in clocks.in_the_windows_time(found):
        by_node[labels["node"]].append((labels, series))
    if not by_node and not seen:
        return usage
    if usage.source is Source.NOBODY:
        why = _NOT_IN_TIME if pods else not_watched(wanted.namespace)
        usage = usage.model_copy(update={"gaps": without_uid or [why]})
    gaps = [f"no samples of node {node}" for node in nodes if node not in by_node]
    if seen:
        gaps += [f"no samples of any pod on node {node}" for node in sorted(by_node.keys() - seen)]
    still = {node: _stood_still(by_node[node], wanted.whole) for node in sorted(by_node)}
    of_nodes = {
        name: _node_gaps(name, found, still[name], wanted.window)
        for name, found in sorted(by_node.items())
    }
    gaps += [gap for of_one in of_nodes.values() for gap in of_one]
    gaps += clocks.gaps(wanted.window)
    read = [
        _node(
            name,
            by_node[name],
            wanted.window,
            _own_cpu(name, pods, wanted.window) if name in seen and not without_uid else None,
        ).model_copy(
            update={
                "clock_ahead_seconds": clocks.ahead(name),
                "stood_still_seconds": still[name],
                "complete": not of_nodes[name],
            }
        )
        for name in sorted(by_node)
    ]
    return usage.model_copy(
        update={
            "nodes": await _with_neighbours(query, wanted, read, pods, clocks),
            "gaps": [*usage.gaps, *gaps],
            "complete": usage.complete and not gaps,
        }
    )


async def _with_neighbours(
    query: Query,
    wanted: TrialWindow,
    nodes: list[NodeUsage],
    own: Collection[str],
    clocks: Clocks,
) -> list[NodeUsage]:
    """Return the nodes, those whose agents tell of other pods with the names of some.

    Of `own` pods an agent of an older version, which was there before, may not have told the run.
    """
    told = [one.node for one in nodes if one.other_pods_cores is not None]
    if not told:
        return nodes
    found = await query_samples(query, neighbours_query(told, wanted), wanted.window)
    series: dict[tuple[str, str], Series] = {}
    for labels, one in clocks.in_the_windows_time(found):
        # The query asks for no others; what is stored must not hang on that alone.
        if labels.get("namespace") == wanted.namespace and labels["pod"] not in own:
            key = labels["node"], labels["pod"]
            series[key] = one.merged(series[key]) if key in series else one
    return [
        one.model_copy(update={"neighbours": _neighbours(one.node, series, wanted.window)})
        if one.node in told
        else one
        for one in nodes
    ]


def _neighbours(
    node: str, series: Mapping[tuple[str, str], Series], window: Window
) -> list[Neighbour]:
    used = [
        Neighbour(pod=pod, cores=cores)
        for (where, pod), one in series.items()
        if where == node and (cores := seen_growth(one, window) / window.seconds) >= _NAMED_CORES
    ]
    return sorted(used, key=lambda one: (-one.cores, one.pod))[:_MOST_NAMED]


def _usage(
    wanted: TrialWindow,
    pods: Mapping[str, _Pod],
    source: Source,
    longest_gap: float,
    gaps: list[str],
) -> TrialUsage:
    """Return what these pods used; of the CPU of each there are samples in the window."""
    parts: dict[tuple[str, str], dict[str, _Pod]] = defaultdict(dict)
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


def _gaps(name: str, pod: _Pod, window: Window, longest: float) -> list[str]:
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


def _component(
    component: str, server: str | None, pods: list[_Pod], window: Window, resolution: float
) -> ComponentUsage:
    def grown(key: str) -> float | None:
        grows = [increase(pod.series[key], window) for pod in pods if key in pod.series]
        known = [one for one in grows if one is not None]
        return sum(known) if known and len(known) == len(pods) else None

    def of_exporters(key: str) -> float:
        grows = [increase(pod.series[key], window) for pod in pods if key in pod.series]
        return sum(one for one in grows if one is not None)

    def highest(key: str) -> int | None:
        # The last sample before the window and the first one after it speak of its ends.
        values = [
            max(pod.series[key].within(window.start - 1.0, window.end + 1.0), default=None)
            for pod in pods
            if key in pod.series
        ]
        known = [one for one in values if one is not None]
        return round(sum(known)) if known else None

    def fewest(key: str) -> int | None:
        # As those above: what was so at the ends of the window.
        of_pods = [
            min(pod.series[key].within(window.start - 1.0, window.end + 1.0), default=None)
            if key in pod.series
            else None
            for pod in pods
        ]
        known = [one for one in of_pods if one is not None]
        return round(sum(known)) if len(known) == len(pods) else None

    def own(key: str) -> float | None:
        of_pods = grown(key)
        return None if of_pods is None else max(0.0, of_pods - of_exporters(f"exporter_{key}"))

    def waiting(key: str) -> float | None:
        waited = grown(key)
        return None if waited is None else min(1.0, waited / window.seconds)

    cpu = own("cpu")
    working_set, exporters = highest("working_set"), highest("exporter_working_set") or 0
    throttled, periods = own("throttled"), own("periods")
    received, transmitted = grown("received"), grown("transmitted")
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
        memory_peak_bytes=highest("memory_peak"),
        cpu_waiting_share=waiting("waiting"),
        disk_waiting_share=waiting("disk_waiting"),
        memory_waiting_share=waiting("memory_waiting"),
        disk_operations_per_second=_disk_operations(pods, window),
        received_bytes=None if received is None else round(received),
        transmitted_bytes=None if transmitted is None else round(transmitted),
        exclusive_cpus=fewest("exclusive"),
        processes=_processes(pods, window),
    )


def _processes(pods: list[_Pod], window: Window) -> list[ProcessUsage] | None:
    """Return what the busiest processes used; None where they are not known of each pod."""
    every: list[ProcessUsage] = []
    for pod in pods:
        used = pod.processes.used(window, increase(pod.series["cpu"], window))
        if used is None:
            return None
        every += used
    return sorted(every, key=lambda one: (-one.cores, one.process))[:MOST_PROCESSES]


def _disk_operations(pods: list[_Pod], window: Window) -> float | None:
    """Return the reads and writes a second, each pod's at its busiest disk; None: not known.

    One operation is counted again at each device below the first, as at the disk of a volume. Of
    what began within the window, as the counter of a new agent, only what was seen counts.
    """
    busiest = [
        max(seen_growth(one, window) for one in pod.disks.values()) for pod in pods if pod.disks
    ]
    return sum(busiest) / window.seconds if len(busiest) == len(pods) else None


def _over_time(pods: list[_Pod], window: Window, resolution: float) -> CoresOverTime | None:
    """The use in each span of the window: no finer than the samples are."""
    length, every = spans(window, resolution)
    cores = [_cores(pods, span) for span in every]
    if all(one is None for one in cores):
        return None
    return CoresOverTime(span_seconds=length, cores=cores)


def _cores(pods: list[_Pod], span: Window) -> float | None:
    used = 0.0
    for pod in pods:
        grown = growth(pod.series["cpu"], span)
        if grown is None:
            return None
        exporter = pod.series.get("exporter_cpu")
        used += grown - ((growth(exporter, span) or 0.0) if exporter else 0.0)
    return round(max(0.0, used) / span.seconds, 3)


def _peak(pods: list[_Pod], window: Window) -> float | None:
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


def _there(pods: Mapping[str, _Pod], window: Window) -> dict[str, _Pod]:
    """Return the pods whose use of CPU is known of some part of a window."""
    return {
        name: pod
        for name, pod in pods.items()
        if "cpu" in pod.series and pod.series["cpu"].covered(window) > 0.0
    }


def _own_cpu(node: str, pods: Mapping[str, _Pod], window: Window) -> float | None:
    """Return the CPU time of the run's pods on a node in seconds, exporters included.

    None where one is told of from later in the window on: what it used before, which the node has
    counted, would be guessed from what it used then.
    """
    there = [pod.series["cpu"] for pod in _there(pods, window).values() if pod.node == node]
    if any(unseen_ends(one, window)[0] > MISSING_SHARE * window.seconds for one in there):
        return None
    used = [increase(one, window) for one in there]
    known = [one for one in used if one is not None]
    return sum(known) if len(known) == len(used) else None


def _modes(found: Iterable[tuple[Mapping[str, str], Series]]) -> dict[str, Series]:
    """Return the CPU time of a node by mode; waiting for a disk is idle time, and none of its own.

    What a CPU waited the kernel may take back, and call idle.
    """
    modes: dict[str, Series] = {}
    for labels, series in found:
        if labels["__name__"] == _NODE_CPU:
            add_to(modes, labels["mode"], series)
    waited = modes.pop("iowait", None)
    if waited is not None:
        modes["idle"] = modes["idle"].plus(waited) if "idle" in modes else waited
    return modes


def _node_gaps(
    name: str,
    found: Sequence[tuple[Mapping[str, str], Series]],
    stood_still_seconds: float | None,
    window: Window,
) -> list[str]:
    modes = _modes(found).values()
    gaps = []
    missing = window.seconds - min((one.covered(window) for one in modes), default=window.seconds)
    if missing > MISSING_SHARE * window.seconds:
        gaps.append(f"node {name}: no samples for {missing:.1f} s of the {window.seconds:.1f} s")
    elif any(increase(one, window) is None for one in modes):
        gaps.append(f"node {name}: a counter of its CPU time went back")
    if stood_still_seconds is None and _counts_stalls(found):
        gaps.append(f"it is not known whether node {name} stood still")
    return gaps


def _node(
    name: str,
    found: Sequence[tuple[Mapping[str, str], Series]],
    window: Window,
    own_cpu: float | None,
) -> NodeUsage:
    counters: dict[str, Series] = {}
    gauges: dict[str, tuple[float, ...]] = defaultdict(tuple)
    what: Mapping[str, str] = {}
    for labels, series in found:
        metric = labels["__name__"]
        if metric == _NODE_INFO:
            what = labels
        elif metric in (_NODE_PODS, _NODE_PRESSURE):
            add_to(counters, metric, series)
        elif labels.get("statistic") != "min" and metric not in _NOT_GAUGES:
            gauges[metric] += series.within(window.start - 1.0, window.end + 1.0)
    grown = {key: increase(series, window) for key, series in counters.items()}
    all_pods, waiting = grown.get(_NODE_PODS), grown.get(_NODE_PRESSURE)
    by_mode = {mode: increase(series, window) for mode, series in _modes(found).items()}
    modes = {mode: value for mode, value in by_mode.items() if value is not None}
    # Without one of them nobody knows what the others are shares of.
    total = sum(modes.values()) if len(modes) == len(by_mode) else 0.0
    load = gauges.get("laptime_node_load1")
    memory = gauges.get("laptime_node_memory_available_bytes")
    frequency = gauges.get("laptime_node_cpu_frequency_hertz")
    cpus = gauges.get("laptime_node_cpus")
    probe_seconds, probe_work = _probe(found, window)
    busy = sum(value for mode, value in modes.items() if mode not in _IDLE)
    interrupts = sum(modes.get(mode, 0.0) for mode in _INTERRUPTS)
    other_pods = others = None
    if own_cpu is not None:
        other_pods = None if all_pods is None else max(0.0, all_pods - own_cpu)
        # Interrupts are left out: where the kernel counts them apart from those whose packets they
        # are about, they would pass for others. Those that ran in the time of a pod are in its CPU
        # time as well, so others are too few, down to none beside a run of many small packets. What
        # other pods used is known without all that.
        rest = max(0.0, busy - interrupts - own_cpu) if total else None
        others = max((one for one in (rest, other_pods) if one is not None), default=None)
    return NodeUsage(
        node=name,
        cpus=round(max(cpus)) if cpus else 0,
        kernel=what.get("kernel"),
        cpu_model=what.get("cpu_model"),
        busy_share=busy / total if total else None,
        stolen_share=modes.get("steal", 0.0) / total if total else None,
        others_cores=None if others is None else others / window.seconds,
        other_pods_cores=None if other_pods is None else other_pods / window.seconds,
        cpu_waiting_share=None if waiting is None else min(1.0, waiting / window.seconds),
        load1=max(load) if load else None,
        memory_available_bytes=round(min(memory)) if memory else None,
        frequency_hertz=min(frequency) if frequency else None,
        probe_seconds=probe_seconds,
        probe_work=probe_work,
        connection_tracking=_tracking(found, window),
    )


def _counts_stalls(found: Iterable[tuple[Mapping[str, str], Series]]) -> bool:
    return any(labels["__name__"] == _STOOD_STILL for labels, _ in found)


def _stood_still(found: Iterable[tuple[Mapping[str, str], Series]], window: Window) -> float | None:
    """Return how long a node stood still; None where nobody counted it to the end of the window.

    Each agent counts for itself: a new one, or that of another release, begins with nothing.
    """
    of_agents = [
        stood_still(series, window)
        for labels, series in found
        if labels["__name__"] == _STOOD_STILL
    ]
    return max((one for one in of_agents if one is not None), default=None)


def _probe(
    found: Iterable[tuple[Mapping[str, str], Series]], window: Window
) -> tuple[float | None, str | None]:
    """Return what a fixed piece of work took, and which it was; None: nobody tells, or not of one.

    Each agent counts for itself: of two in one window, as after an upgrade, neither has all of it.
    Two that were asked at the same time are one agent, which two jobs scrape.
    """
    counters: dict[frozenset[tuple[str, str]], dict[str, Series]] = defaultdict(dict)
    for labels, series in found:
        if labels["__name__"] in (_PROBE_SECONDS, _PROBES) and series.covered(window) > 0.0:
            who = frozenset(one for one in labels.items() if one[0] != "__name__")
            counters[who][labels["__name__"]] = series
    works = {dict(who).get("work", "") for who in counters}
    if len(works) != 1 or any(len(one) != 2 for one in counters.values()):
        return None, None
    if max(one[_PROBES].times[0] for one in counters.values()) >= min(
        one[_PROBES].times[-1] for one in counters.values()
    ):
        return None, None
    one = max(counters.values(), key=lambda one: one[_PROBES].covered(window))
    seconds, count = (increase(one[name], window) for name in (_PROBE_SECONDS, _PROBES))
    return (seconds / count, works.pop()) if seconds and count else (None, None)


def _tracking(
    found: Iterable[tuple[Mapping[str, str], Series]], window: Window
) -> ConnectionTracking | None:
    gauges: dict[str, tuple[float, ...]] = defaultdict(tuple)
    events: dict[str, Series] = {}
    for labels, series in found:
        metric, event = labels["__name__"], labels.get("event", "")
        if metric in (_TRACKED, _TRACKED_LIMIT):
            gauges[metric] += series.within(window.start - 1.0, window.end + 1.0)
        elif metric == _TRACKING_EVENTS:
            events[event] = series.merged(events[event]) if event in events else series
    entries, limit = gauges.get(_TRACKED), gauges.get(_TRACKED_LIMIT)
    if not entries:
        return None
    grown = {event: increase(series, window) for event, series in events.items()}
    counts = {event: None if one is None else round(one) for event, one in grown.items()}
    return ConnectionTracking(
        entries=round(max(entries)),
        limit=round(min(limit)) if limit else None,
        dropped=counts.get("drop"),
        not_added=counts.get("insert_failed"),
        given_up_early=counts.get("early_drop"),
    )
