"""What is held of objects of the API server: what is looked at, and nothing else. Pure.

Whoever may write into a namespace can give an object the labels of a run, and megabytes of whatever
else. A string with one character that is not Latin takes four bytes for each of the others, so of
objects as they are a few hundred fill the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laptime.kube import Manifest
from laptime.manifests.archive import RETRY_ANNOTATION
from laptime.manifests.objects import (
    COMPONENT_LABEL,
    HASH_ANNOTATION,
    NAME_ANNOTATION,
    PLACEMENT_LABEL,
    PODS_ANNOTATION,
    RUN_LABEL,
    SECRET_ANNOTATION,
    SERVER_LABEL,
    TRIAL_LABEL,
    UID_LABEL,
)
from laptime.manifests.result import PROFILE_PROBLEM_ANNOTATION
from laptime.manifests.undisturbed import ASKED_ANNOTATION
from laptime.reconcile.views import COMPLETION_INDEX

MOST_BYTES = 64 * 2**20
"""Of all that is held for one run; one of 2,000 trials has a quarter of it."""

_WHOLE = None
"""In a shape: whatever is there."""
Shape = Mapping[str, Any]
"""The fields that are looked at, and of each what of it; a list has the shape of its items."""


def _fields(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, _WHOLE)


_LABELS = _fields(
    COMPONENT_LABEL, PLACEMENT_LABEL, RUN_LABEL, SERVER_LABEL, TRIAL_LABEL, UID_LABEL,
    COMPLETION_INDEX,
)  # fmt: skip
_ANNOTATIONS = _fields(
    ASKED_ANNOTATION, HASH_ANNOTATION, NAME_ANNOTATION, PODS_ANNOTATION, PROFILE_PROBLEM_ANNOTATION,
    RETRY_ANNOTATION, SECRET_ANNOTATION,
)  # fmt: skip
METADATA: Shape = {
    **_fields("name", "namespace", "uid", "resourceVersion", "generation"),
    **_fields("creationTimestamp", "deletionTimestamp"),
    "labels": _LABELS,
    "annotations": _ANNOTATIONS,
    "ownerReferences": [_fields("kind", "name", "uid")],
}
_RESOURCES = {"limits": _fields("cpu", "memory"), "requests": _fields("cpu", "memory")}
_CONTAINER = {**_fields("name", "image", "restartPolicy"), "resources": _RESOURCES}
_ENDED = _fields("exitCode", "reason", "message", "finishedAt")
_STATE = {
    "waiting": _fields("reason", "message"),
    "running": _fields("startedAt"),
    "terminated": _ENDED,
}
_CONTAINER_STATUS = {
    **_fields("name", "ready", "restartCount", "image", "imageID"),
    "resources": _RESOURCES,
    "state": _STATE,
    "lastState": {"terminated": _ENDED},
}
_CONDITION = _fields("type", "status", "reason", "message")
_TERM = {"matchFields": [{"values": [_WHOLE]}]}
_NODES = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}}
_POD: Shape = {
    "metadata": METADATA,
    "spec": {
        **_fields("nodeName", "hostNetwork", "restartPolicy"),
        "containers": [_CONTAINER],
        "initContainers": [_CONTAINER],
        "ephemeralContainers": [_CONTAINER],
        "imagePullSecrets": [_fields("name")],
        "schedulingGates": [_fields("name")],
        "affinity": {"nodeAffinity": _NODES},
    },
    "status": {
        **_fields("phase", "reason", "message", "podIP", "startTime", "observedGeneration"),
        "conditions": [_CONDITION],
        "initContainerStatuses": [_CONTAINER_STATUS],
        "containerStatuses": [_CONTAINER_STATUS],
    },
}
_DEPLOYMENT: Shape = {
    "metadata": METADATA,
    "spec": {**_fields("replicas"), "template": {"metadata": {"labels": _LABELS}}},
    "status": {"conditions": [_CONDITION]},
}
_JOB: Shape = {
    "metadata": METADATA,
    "status": {
        **_fields("active", "succeeded", "failed"),
        "conditions": [_CONDITION],
        "uncountedTerminatedPods": {"succeeded": [_WHOLE], "failed": [_WHOLE]},
    },
}
TARGET: Shape = {
    "metadata": METADATA,
    "spec": {
        **_fields("type", "externalName", "clusterIP", "selector"),
        "ports": [_fields("name", "port", "protocol", "targetPort")],
    },
}
"""Of a Service that a run drives and does not deploy."""
OF_KIND: Mapping[str, Shape] = {"Pod": _POD, "Deployment": _DEPLOYMENT, "Job": _JOB}
"""Of all other kinds of a run's objects nobody has to know more than that they are there."""
ONLY_THERE: Shape = {"metadata": METADATA}


def held(manifest: Manifest, shape: Shape) -> Manifest:
    """Return an object with nothing but what its shape has."""
    found: Manifest = _held(manifest, shape)
    return found


def _held(value: Any, shape: Any) -> Any:
    if isinstance(value, dict) and isinstance(shape, Mapping):
        return {name: _held(value[name], shape[name]) for name in shape if name in value}
    if isinstance(value, list) and isinstance(shape, list):
        return [_held(one, shape[0]) for one in value]
    return value
