"""Runs of like servers, of several kinds: what is measured, and nothing of how it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NAMES = (
    "one", "two", "three", "four", "five", "six", "seven",
    "eight", "nine", "ten", "eleven", "twelve", "thirteen",
)  # fmt: skip
FIGURES = ("throughput", "p99")
CLOSED = {"name": "closed", "closed": {"connections": 8, "duration": "2s"}, "warmup": "1s"}
OPEN = {
    "name": "open",
    "open": {"rate": 400, "maxConnections": 64, "duration": "3s"},
    "warmup": "1s",
}


@dataclass(frozen=True)
class Kind:
    """What runs are alike in."""

    servers: int
    repetitions: int
    load: dict[str, Any]
    disturbed: bool = False
    """Whether a pod beside them takes a CPU for some seconds, now and then."""

    @property
    def figures(self) -> tuple[str, ...]:
        """Return what its servers are told apart by, of FIGURES."""
        return FIGURES if "closed" in self.load else ("p99",)


KINDS = {
    "four": Kind(4, 4, CLOSED),
    "two": Kind(2, 5, CLOSED),
    "two-open": Kind(2, 5, OPEN),
    "six": Kind(6, 3, CLOSED),
    "thirteen": Kind(13, 3, CLOSED),
    "disturbed": Kind(4, 4, CLOSED, disturbed=True),
}


def manifest(name: str, version: str, kind: Kind) -> dict[str, Any]:
    """Return a run of like servers."""
    server = {
        "image": f"docker.io/laptime/reference:{version}",
        "databaseConnections": 8,
        "workers": 1,
    }
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": {
            "scenario": "users",
            "servers": [{"name": one, **server} for one in NAMES[: kind.servers]],
            "topology": {"postgres": {}},
            "loads": [kind.load],
            "repetitions": kind.repetitions,
        },
    }
