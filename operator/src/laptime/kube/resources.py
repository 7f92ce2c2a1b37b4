"""The kinds that Laptime asks for, and where each lives in the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laptime.api import GROUP, KIND, PLURAL, SCENARIO_KIND, SCENARIO_PLURAL, VERSION

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Resource:
    """Where a kind lives in the API."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    def path(self, namespace: str | None, name: str | None = None, sub: str | None = None) -> str:
        """Return the URL path of a collection, an object or a subresource of it."""
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [prefix]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, sub) if part is not None]
        return "/".join(parts)


RESOURCES = {
    resource.kind: resource
    for resource in (
        Resource("", "v1", "pods", "Pod"),
        Resource("", "v1", "services", "Service"),
        Resource("", "v1", "configmaps", "ConfigMap"),
        Resource("", "v1", "secrets", "Secret"),
        Resource("", "v1", "events", "Event"),
        Resource("apps", "v1", "deployments", "Deployment"),
        Resource("apps", "v1", "statefulsets", "StatefulSet"),
        Resource("batch", "v1", "jobs", "Job"),
        Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
        Resource("coordination.k8s.io", "v1", "leases", "Lease"),
        Resource(GROUP, VERSION, PLURAL, KIND),
        Resource(GROUP, VERSION, SCENARIO_PLURAL, SCENARIO_KIND),
    )
}
