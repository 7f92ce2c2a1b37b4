"""Pods that clusters leave as they are: no mesh beside them, no agent in them, no eviction.

All pods of a run are made here, so that none goes without. What a cluster adds in spite of it shows
by comparison with what each pod says that was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from laptime.api import GROUP
from laptime.manifests.objects import Manifest

ASKED_ANNOTATION = f"{GROUP}/asked"
"""On a pod: what of it is as its run asked for, for whoever looks at it later. A later version of
Laptime may ask for something else, and goes on with what stands."""

# Whoever looks for the word in labels takes it from there alone; older versions look for it in
# annotations. A mesh without sidecars (Istio's ambient mode) takes the traffic of whole nodes.
LABELS: Mapping[str, str] = {
    "sidecar.istio.io/inject": "false",
    "istio.io/dataplane-mode": "none",
    "kuma.io/sidecar-injection": "disabled",
    "admission.datadoghq.com/enabled": "false",
}
_OPENTELEMETRY = "opentelemetry.io/inject"
_LANGUAGES = ("apache-httpd", "dotnet", "go", "java", "nginx", "nodejs", "python", "sdk")
ANNOTATIONS: Mapping[str, str] = {
    # Meshes.
    "sidecar.istio.io/inject": "false",
    "linkerd.io/inject": "disabled",
    "kuma.io/sidecar-injection": "disabled",
    "consul.hashicorp.com/connect-inject": "false",
    "appmesh.k8s.aws/sidecarInjectorWebhook": "disabled",
    "openservicemesh.io/sidecar-injection": "disabled",
    # Agents that watch programs from within.
    "dynatrace.com/inject": "false",
    "oneagent.dynatrace.com/inject": "false",
    f"sidecar.{_OPENTELEMETRY}": "false",
    **{f"instrumentation.{_OPENTELEMETRY}-{language}": "false" for language in _LANGUAGES},
    # Who takes pods away to save nodes, or to even them out.
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
    "descheduler.alpha.kubernetes.io/prefer-no-eviction": "true",
}


@dataclass(frozen=True)
class Asked:
    """What a pod was to be."""

    main: str
    """Name of its first container: the one that it is there for."""
    resources: Mapping[str, Mapping[str, str]]
    """Requests and limits of that container."""
    images: Mapping[str, str]
    """Of all its containers, by their names, init containers too."""


def pod_template(
    labels: Mapping[str, str], spec: Manifest, annotations: Mapping[str, str] | None = None
) -> Manifest:
    """Return the template of a pod of a run; nothing is selected by what is added here."""
    return {
        "metadata": {
            "labels": {**labels, **LABELS},
            "annotations": {**ANNOTATIONS, **(annotations or {}), ASKED_ANNOTATION: _asked(spec)},
        },
        "spec": spec,
    }


def _asked(spec: Manifest) -> str:
    main, *_ = spec["containers"]
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    content = {
        "main": main["name"],
        "resources": main["resources"],
        "images": {one["name"]: one["image"] for one in containers},
    }
    return json.dumps(content, separators=(",", ":"))


def asked_of(metadata: Mapping[str, Any]) -> Asked | None:
    """Return what the run asked for a pod; None where an older version made it, or somebody else.

    Who may make pods may write anything here: what cannot be read says nothing.
    """
    text = (metadata.get("annotations") or {}).get(ASKED_ANNOTATION)
    try:
        found = json.loads(text) if text else {}
        return Asked(
            main=str(found["main"]),
            resources={
                kind: {str(name): str(value) for name, value in found["resources"][kind].items()}
                for kind in ("requests", "limits")
                if kind in found["resources"]
            },
            images={str(name): str(image) for name, image in found["images"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
