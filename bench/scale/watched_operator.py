"""The operator as its own metrics show it, and as its pod does."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from cluster_access import kubectl, kubectl_json

NAMESPACE = "laptime-system"
_SELECTOR = "app.kubernetes.io/component=operator"
_SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Reading:
    """What the operator said at a moment."""

    at: float
    samples: dict[str, float]
    """By name and labels, as Prometheus writes them."""

    @property
    def cpu_seconds(self) -> float:
        """CPU time that its process has used."""
        return self.samples["process_cpu_seconds_total"]

    @property
    def memory_bytes(self) -> float:
        """Resident memory of its process."""
        return self.samples["process_resident_memory_bytes"]

    @property
    def runs(self) -> int:
        """Runs that it knows."""
        return round(sum(v for k, v in self.samples.items() if k.startswith("laptime_runs{")))

    def reconciles(self) -> dict[float, float]:
        """Return how many looks took at most so many seconds, by the bounds of the histogram."""
        prefix = 'controller_runtime_reconcile_time_seconds_bucket{controller="benchmarkrun",le="'
        return {
            float(key.removeprefix(prefix).rstrip('"}')): value
            for key, value in self.samples.items()
            if key.startswith(prefix)
        }


def pod() -> str:
    """Return the name of the operator's pod that is not ending."""
    found = kubectl_json("get", "pods", "-n", NAMESPACE, "-l", _SELECTOR)["items"]
    alive = [one for one in found if "deletionTimestamp" not in one["metadata"]]
    return str(alive[0]["metadata"]["name"]) if alive else ""


def read() -> Reading | None:
    """Return what the operator says now; None when it does not answer."""
    name = pod()
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}:8081/proxy/metrics"
    text = kubectl("get", "--raw", path, check=False) if name else ""
    samples = {
        found["name"] + (f"{{{found['labels']}}}" if found["labels"] else ""): float(found["value"])
        for found in _SAMPLE.finditer(text)
    }
    return Reading(time.time(), samples) if "process_cpu_seconds_total" in samples else None


def read_for_sure(seconds: float = 120.0) -> Reading:
    """Return what the operator says, once it answers."""
    end = time.monotonic() + seconds
    while (reading := read()) is None:
        if time.monotonic() > end:
            raise TimeoutError("the operator does not answer")
        time.sleep(0.2)
    return reading


def started_at() -> float:
    """Return the Unix time at which the operator's container was started."""
    found = kubectl_json("get", "pod", pod(), "-n", NAMESPACE)
    state = found["status"]["containerStatuses"][0]["state"]
    text = state["running"]["startedAt"]
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone


def share_within(before: Reading, after: Reading, seconds: float) -> float:
    """Return which share of the looks between two readings took at most so many seconds."""
    earlier, later = before.reconciles(), after.reconciles()
    done = {bound: count - earlier.get(bound, 0.0) for bound, count in later.items()}
    return done[seconds] / max(1.0, done[float("inf")])
