"""The kinds that Laptime asks for, and where each lives in the API."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from laptime.api import GROUP, KIND, PLURAL, SCENARIO_KIND, SCENARIO_PLURAL, VERSION
from laptime.api.text import shown

Manifest = dict[str, Any]

# No object of these kinds, and no namespace, is called otherwise. Names stand in paths of URLs: one
# with a slash, or of two dots, would lead to another kind or namespace.
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True)
class Resource:
    """Where a kind lives in the API. No path of it leads to another kind or namespace."""

    group: str
    version: str
    plural: str
    kind: str

    def collection(self, namespace: str | None) -> str:
        """Return the URL path of all objects in a namespace; None: in the whole cluster.

        Raises:
            ValueError: there can be no namespace of this name.
        """
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [] if namespace is None else ["namespaces", _name(namespace)]
        return "/".join((prefix, *parts, self.plural))

    def path(self, namespace: str, name: str, sub: str | None = None) -> str:
        """Return the URL path of an object, or of a subresource of it.

        Raises:
            ValueError: there can be no namespace or object of this name.
        """
        parts = (self.collection(_name(namespace)), _name(name), sub)
        return "/".join(part for part in parts if part is not None)


def _name(text: str) -> str:
    # It may come out of JSON that anybody wrote, and be anything.
    if not isinstance(text, str) or not _NAME.fullmatch(text):
        raise ValueError(f"{shown(repr(text))} is no name of an object or namespace")
    return text


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
