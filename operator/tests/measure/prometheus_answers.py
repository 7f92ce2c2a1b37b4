"""Answers in the form of Prometheus' HTTP API, made of synthetic series or recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

START = 1_700_000_000.0
"""Of the window of the synthetic trial; it lasts LENGTH seconds."""
LENGTH = 10.0

UID = "7e2d8a70-4f0a-4f0b-9f2c-3b8f5c0f9a11"
"""Of the run."""
_OF_NOBODYS_RUN = ("laptime_node_", "laptime_neighbour_", "container_")
_TIERS = ("haproxy", "pgbouncer", "postgres")
WITHOUT_UID = (
    "Prometheus has samples of pods of a run of this name without the label run_uid, which says of "
    "which run they are. They are left out: agents of an older version do not say it, nor does a "
    "scrape configuration that does not take it (docs/watching.md)"
)

Matrix = list[dict[str, Any]]


def one_series(
    name: str,
    value: Callable[[float], float],
    labels: Mapping[str, str],
    *,
    start: float = START - 5.0,
    end: float = START + LENGTH + 5.0,
    step: float = 1.0,
    phase: float = 0.37,
    without: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Return a series with a sample each second, a function of the time since START.

    Pods of runs say the uid of the run, and those of tiers which they are, unless `labels` have
    another one: none is "", which is no label. `without` leaves the samples between two moments
    (since START) out.
    """
    count = int((end - start - phase) / step) + 1
    times = [start + phase + number * step for number in range(count)]
    if without is not None:
        times = [one for one in times if not without[0] < one - START < without[1]]
    own = {} if name.startswith(_OF_NOBODYS_RUN) else {"run_uid": UID}
    tier = name.removeprefix("laptime_").partition("_")[0]
    own |= {"component": tier} if tier in _TIERS else {}
    every = {"__name__": name, **own, **labels}
    return {
        "metric": {label: value for label, value in every.items() if value},
        "values": [[round(one, 3), repr(value(one - START))] for one in times],
    }


def answer(result: Matrix) -> dict[str, Any]:
    """Return a whole answer."""
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


class FakePrometheus:
    """Answers each query with the first matrix whose key is a part of it."""

    def __init__(self, matrices: Mapping[str, Matrix | dict[str, Any]]) -> None:
        self._matrices = matrices
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    async def __call__(self, path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """Be the injected query."""
        self.asked.append((path, parameters))
        for part, found in self._matrices.items():
            if part in parameters["query"]:
                return found if isinstance(found, dict) else answer(found)
        return answer([])


def pod(
    name: str,
    component: str,
    *,
    cores: float,
    labels: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterable[dict[str, Any]]:
    """Yield the agent's series of a pod that uses this many cores and 100 MB all the time."""
    common = {
        "namespace": "default",
        "pod": name,
        "node": "n1",
        "run": "demo",
        "component": component,
        **(labels or {}),
    }
    rates = {
        "laptime_pod_cpu_seconds_total": cores,
        "laptime_pod_cpu_throttled_seconds_total": 0.2,
        "laptime_pod_cpu_throttled_periods_total": 5.0,
        "laptime_pod_network_receive_bytes_total": 1000.0,
        "laptime_pod_network_transmit_bytes_total": 2000.0,
    }
    for metric, rate in rates.items():
        yield one_series(metric, _linear(rate), common, **options)
    for metric, constant in {
        "laptime_pod_memory_working_set_bytes": 1e8,
        "laptime_pod_memory_peak_bytes": 1.5e8,
    }.items():
        yield one_series(metric, _constant(constant), common, **options)
    for resource, kind, rate in (
        *(("cpu", "some", 0.25), ("cpu", "full", 0.1), ("io", "some", 9.0)),
        *(("io", "full", 0.4), ("memory", "some", 9.0), ("memory", "full", 0.15)),
    ):
        yield one_series(
            "laptime_pod_pressure_seconds_total",
            _linear(rate),
            {**common, "resource": resource, "kind": kind},
            **options,
        )


def process(
    pod: str,
    number: int,
    command: str,
    cores: float,
    *,
    parent: int = 1,
    main: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Return the agent's series of a process of a server, or of what its main thread was `main`."""
    labels = {
        **{"namespace": "default", "pod": pod, "node": "n1", "run": "demo"},
        **{"component": "server", "server": "axum", "trial": "demo-trial-001"},
        **{"process": str(number), "parent": str(parent), "command": command},
    }
    if main is not None:
        metric = "laptime_pod_process_main_thread_seconds_total"
        return one_series(metric, _linear(cores), {**labels, "state": main}, **options)
    return one_series("laptime_pod_process_cpu_seconds_total", _linear(cores), labels, **options)


def node(
    name: str = "n1", steal: float = 0.1, all_pods: float | None = None
) -> Iterable[dict[str, Any]]:
    """Yield the agent's series of a node of two CPUs, half of which are idle.

    `all_pods` is how many cores its pods use together; None: that of an older agent.
    """
    for mode, rate in {"user": 0.7, "system": 0.2, "steal": steal, "idle": 1.1 - steal}.items():
        yield one_series(
            "laptime_node_cpu_seconds_total", _linear(rate), {"node": name, "mode": mode}
        )
    yield one_series("laptime_node_cpus", _constant(2.0), {"node": name})
    yield one_series(
        "laptime_node_info",
        _constant(1.0),
        {"node": name, "kernel": "6.18.44", "cpu_model": "Xeon"},
    )
    yield one_series("laptime_node_load1", _linear(0.1), {"node": name})
    yield one_series("laptime_node_memory_available_bytes", _linear(-1e6, 8e9), {"node": name})
    for statistic, hertz in (("min", 2.0e9), ("mean", 2.5e9)):
        yield one_series(
            "laptime_node_cpu_frequency_hertz",
            _constant(hertz),
            {"node": name, "statistic": statistic},
        )
    if all_pods is not None:
        yield one_series("laptime_node_pods_cpu_seconds_total", _linear(all_pods), {"node": name})
        yield one_series(
            "laptime_node_pressure_seconds_total",
            _linear(0.3),
            {"node": name, "resource": "cpu", "kind": "some"},
        )


def probes(
    seconds_each: float, node: str = "n1", work: str = "1", job: str = "agent", **options: Any
) -> Iterable[dict[str, Any]]:
    """Yield the agent's series of a fixed piece of work, done five times a second."""
    name = "laptime_node_probe_cpu_seconds"
    labels = {"node": node, "work": work, "job": job}
    yield one_series(f"{name}_count", _linear(5.0), labels, **options)
    yield one_series(f"{name}_sum", _linear(5.0 * seconds_each), labels, **options)


def tracking(
    entries: Callable[[float], float],
    limit: float | None = 262_144.0,
    node: str = "n1",
    **per_second: float,
) -> Iterable[dict[str, Any]]:
    """Yield the agent's series of a node's connection tracking: how many of each event a second."""
    yield one_series("laptime_node_nf_conntrack_entries", entries, {"node": node})
    if limit is not None:
        yield one_series(
            "laptime_node_nf_conntrack_entries_limit", _constant(limit), {"node": node}
        )
    for event in ("drop", "early_drop", "insert_failed"):
        yield one_series(
            "laptime_node_nf_conntrack_events_total",
            _linear(per_second.get(event, 0.0)),
            {"node": node, "event": event},
        )


def neighbour(
    name: str, cores: float, namespace: str = "default", node: str = "n1", **options: Any
) -> dict[str, Any]:
    """Return the agent's series of a pod that is of no run."""
    labels = {"namespace": namespace, "pod": name, "node": node}
    return one_series("laptime_neighbour_cpu_seconds_total", _linear(cores), labels, **options)


def _linear(rate: float, at_start: float = 100.0) -> Callable[[float], float]:
    return lambda time: at_start + rate * time


def _constant(value: float) -> Callable[[float], float]:
    return lambda _: value
