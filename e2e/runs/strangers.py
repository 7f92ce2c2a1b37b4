"""Objects of somebody else that have the names of a run's."""

from __future__ import annotations

import time
from typing import Any

from .harness import Cluster

LABELS = {"app": "shop"}
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_POD: dict[str, Any] = {
    "containers": [
        {"name": "theirs", "image": "registry.invalid/theirs:1", "securityContext": _RESTRICTED}
    ]
}
_API = {"Deployment": "apps/v1", "Job": "batch/v1", "NetworkPolicy": "networking.k8s.io/v1"}
# What a stranger would have in an object of a kind.
CONTENTS: dict[str, dict[str, Any]] = {
    "ConfigMap": {"data": {"theirs": "yes"}},
    "Secret": {"stringData": {"password": "theirs"}},
    "Service": {"spec": {"selector": LABELS, "ports": [{"port": 80}]}},
    "NetworkPolicy": {"spec": {"podSelector": {"matchLabels": LABELS}}},
    "Deployment": {
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": _POD},
        }
    },
    "Job": {
        "spec": {
            "suspend": True,
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {**_POD, "restartPolicy": "Never"},
            },
        }
    },
}


def make(cluster: Cluster, kind: str, name: str, **labels: str) -> dict[str, Any]:
    """Make somebody else's object, and return it as it is stored."""
    manifest = {
        "apiVersion": _API.get(kind, "v1"),
        "kind": kind,
        "metadata": {"name": name, "labels": {**LABELS, **labels}},
        **CONTENTS[kind],
    }
    cluster.create(manifest)
    deadline = time.monotonic() + 30
    # Its controller writes an annotation into it.
    while kind == "Deployment" and not _observed(cluster.get("deployment", name)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return cluster.get(kind.lower(), name)


def _observed(deployment: dict[str, Any]) -> bool:
    return (deployment.get("status") or {}).get("observedGeneration") == 1


def untouched(cluster: Cluster, before: dict[str, Any]) -> None:
    """Fail when an object is not what it was."""
    now = cluster.get(before["kind"].lower(), before["metadata"]["name"])
    # Its controller may say in its status how it is.
    for one in (before, now):
        one.pop("status", None)
        one["metadata"].pop("resourceVersion", None)
        one["metadata"].pop("managedFields", None)
    assert now == before
