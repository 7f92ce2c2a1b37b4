"""Runs of like servers, of several kinds: what is measured, and nothing of how it is judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cluster_access import kubectl

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
NEIGHBOUR = "noisy-neighbour"
DISTURBING = """
import random, time
dice = random.Random(20261127)
while True:
    end = time.monotonic() + dice.uniform(3, 20)
    while time.monotonic() < end:
        pass
    time.sleep(dice.uniform(3, 20))
"""


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


@contextmanager
def neighbour(version: str, kind: Kind) -> Iterator[None]:
    """Let a pod beside the runs disturb them, if their kind is so."""
    # One that a killed bench has left behind disturbs no other kind.
    kubectl("delete", "pod", NEIGHBOUR, "--ignore-not-found")
    if not kind.disturbed:
        yield
        return
    closed = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    busy = {
        "name": "busy",
        "image": f"docker.io/laptime/operator:{version}",
        "command": ["python3", "-c", DISTURBING],
        "securityContext": closed,
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NEIGHBOUR},
        "spec": {
            "containers": [busy],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    try:
        kubectl("wait", "--for=condition=Ready", f"pod/{NEIGHBOUR}", "--timeout=60s")
        yield
    finally:
        kubectl("delete", "pod", NEIGHBOUR, "--ignore-not-found")
