"""A pod that takes a CPU now and then: runs beside it are disturbed as on a busy cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from cluster_access import kubectl

NEIGHBOUR = "noisy-neighbour"
OURS = "laptime.dev/bench=alike"
"""The label of what this bench has made: of that name there may be somebody else's."""
DISTURBING = """
import random, time
dice = random.Random(20261127)
while True:
    end = time.monotonic() + dice.uniform(3, 20)
    while time.monotonic() < end:
        pass
    time.sleep(dice.uniform(3, 20))
"""


@contextmanager
def neighbour(version: str, disturbs: bool) -> Iterator[None]:
    """Let a pod in the namespace of the runs disturb them.

    Or none: then only one that a killed bench has left behind is taken away, by its label.
    """
    kubectl("delete", "pods", "--selector", OURS)
    if not disturbs:
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
        "metadata": {"name": NEIGHBOUR, "labels": dict([OURS.split("=")])},
        "spec": {
            "containers": [busy],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
    }
    # Not applied: somebody else's pod of that name stays as it is, and the bench says so.
    kubectl("create", "-f", "-", stdin=json.dumps(pod))
    try:
        kubectl("wait", "--for=condition=Ready", f"pod/{NEIGHBOUR}", "--timeout=60s")
        yield
    finally:
        kubectl("delete", "pods", "--selector", OURS)
