"""What the nodes of a trial did in its window, and who else used them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from laptime.api.usage import ConnectionTracking, Neighbour, NodeUsage
from laptime.measure.pod_series import PRESSURE_ON_CPUS, PodSeries, with_cpu_in
from laptime.measure.promql import RUN_UID, TrialWindow, any_of, selector
from laptime.measure.timeseries import (
    MISSING_SHARE,
    Series,
    Window,
    add_to,
    increase,
    seen_growth,
    stood_still,
    unseen_ends,
)

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
_IDLE = ("idle", "steal")
_INTERRUPTS = ("irq", "softirq")


def node_query(nodes: Iterable[str]) -> str:
    """Return the PromQL selector of all that is known of some nodes."""
    labels = {
        "__name__": ("=~", "|".join(_NODE_METRICS)),
        "node": ("=~", any_of(nodes)),
        **PRESSURE_ON_CPUS,
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


def usage_of_node(
    name: str,
    found: Sequence[tuple[Mapping[str, str], Series]],
    window: Window,
    own_cpu: float | None,
) -> NodeUsage:
    """Return what a node did by its series, and others beside the run's own pods.

    `own_cpu` is what those used, in seconds; None: it is not known.
    """
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


def neighbours_on(
    node: str, series: Mapping[tuple[str, str], Series], window: Window
) -> list[Neighbour]:
    """Return the busiest other pods on a node, by the CPU series of node and pod."""
    used = [
        Neighbour(pod=pod, cores=cores)
        for (where, pod), one in series.items()
        if where == node and (cores := seen_growth(one, window) / window.seconds) >= _NAMED_CORES
    ]
    return sorted(used, key=lambda one: (-one.cores, one.pod))[:_MOST_NAMED]


def cpu_of_run(node: str, pods: Mapping[str, PodSeries], window: Window) -> float | None:
    """Return the CPU time of the run's pods on a node in seconds, exporters included.

    None where one is told of from later in the window on: what it used before, which the node has
    counted, would be guessed from what it used then.
    """
    there = [pod.series["cpu"] for pod in with_cpu_in(pods, window).values() if pod.node == node]
    if any(unseen_ends(one, window)[0] > MISSING_SHARE * window.seconds for one in there):
        return None
    used = [increase(one, window) for one in there]
    known = [one for one in used if one is not None]
    return sum(known) if len(known) == len(used) else None


def node_gaps(
    name: str,
    found: Sequence[tuple[Mapping[str, str], Series]],
    still: float | None,
    window: Window,
) -> list[str]:
    """Return what is not known of a node that stood still for so many seconds (None: who knows)."""
    modes = _modes(found).values()
    gaps = []
    missing = window.seconds - min((one.covered(window) for one in modes), default=window.seconds)
    if missing > MISSING_SHARE * window.seconds:
        gaps.append(f"node {name}: no samples for {missing:.1f} s of the {window.seconds:.1f} s")
    elif any(increase(one, window) is None for one in modes):
        gaps.append(f"node {name}: a counter of its CPU time went back")
    if still is None and _counts_stalls(found):
        gaps.append(f"it is not known whether node {name} stood still")
    return gaps


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


def _counts_stalls(found: Iterable[tuple[Mapping[str, str], Series]]) -> bool:
    return any(labels["__name__"] == _STOOD_STILL for labels, _ in found)


def stood_still_seconds(
    found: Iterable[tuple[Mapping[str, str], Series]], window: Window
) -> float | None:
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
