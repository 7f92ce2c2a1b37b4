"""What the agent knows of a pod, from the API server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

UID_LABEL = "laptime.dev/run-uid"
"""Pods of runs have it; the name of a run alone anybody may write on his own."""
SERVER = "server"
"""The component that a pod is in which a server runs."""
_LABELS = {
    "run": "laptime.dev/run",
    "run_uid": UID_LABEL,
    "component": "laptime.dev/component",
    "server": "laptime.dev/server",
    "load": "laptime.dev/load",
    "trial": "laptime.dev/trial",
}
_MIRROR = "kubernetes.io/config.mirror"
# Whoever makes pods can write there what he likes, and as much.
_UID = re.compile(r"[0-9A-Za-z-]{1,64}")
_LONGEST_ID = 128


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod on this node. Of one that is of no run nothing but its metadata is known."""

    uid: str
    cgroup_uid: str
    """The uid in the names of its cgroups."""
    namespace: str
    name: str
    labels: Mapping[str, str]
    """run, run_uid, component, server, load and trial; empty where the pod has none."""
    containers: Mapping[str, str]
    """Id of each container that has been started, by the container's name."""
    host_network: bool
    over: bool
    """Whether all its containers have ended for good."""

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> Pod:
        """Return the pod of an object of the API server, or of its metadata alone.

        Raises:
            KeyError: it is no pod.
        """
        metadata = document["metadata"]
        status = document.get("status") or {}
        labels = metadata.get("labels") or {}
        if not labels.get(UID_LABEL):
            # It is of no run, whatever else it says.
            labels = {}
        statuses = (status.get("initContainerStatuses") or []) + (
            status.get("containerStatuses") or []
        )
        mirrored = (metadata.get("annotations") or {}).get(_MIRROR, "")
        return cls(
            uid=metadata["uid"],
            # A static pod's uid is that of its file, not that of its mirror in the API.
            cgroup_uid=mirrored if _UID.fullmatch(mirrored) else metadata["uid"],
            namespace=metadata["namespace"],
            name=metadata["name"],
            labels={name: labels.get(label, "") for name, label in _LABELS.items()},
            containers={
                one["name"]: one["containerID"].rpartition("//")[2][:_LONGEST_ID]
                for one in statuses
                if one.get("containerID") and "terminated" not in (one.get("state") or {})
            },
            host_network=bool((document.get("spec") or {}).get("hostNetwork")),
            over=status.get("phase") in ("Succeeded", "Failed"),
        )
