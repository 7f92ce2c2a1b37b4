"""Where a Service that a run names leads to, or why it is not driven. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from laptime.api import KIND
from laptime.api.service import Service
from laptime.api.text import plain
from laptime.manifests.context import Target
from laptime.manifests.objects import RUN_LABEL, UID_LABEL
from laptime.reconcile.views import PodView, TargetView, pod_view

Manifest = Mapping[str, Any]


def service_view(
    service: Service, namespace: str, manifest: Manifest | None, pods: Iterable[Manifest] = ()
) -> TargetView:
    """Return what is known of a Service, given the pods that its selector matches now."""
    if manifest is None:
        return TargetView(
            service.name,
            refused=(
                "ServiceMissing",
                f"there is no Service {service.name} in namespace {namespace}: create it, or write "
                f"one of those that kubectl get services -n {namespace} lists",
            ),
        )
    version = "/".join(str(manifest["metadata"].get(key)) for key in ("uid", "resourceVersion"))
    live = [pod for pod in pods if _counts(pod)]
    why = _leads_astray(service, namespace, manifest) or _astray_behind(service, live)
    target = None if why else _target(service, manifest)
    if target is None:
        return TargetView(service.name, version, refused=why or _no_port(service, manifest))
    views = sorted((_stranger(pod) for pod in live), key=lambda pod: pod.name)
    return TargetView(service.name, version, target, pods=tuple(views))


def selector_of(manifest: Manifest | None) -> str | None:
    """Return the label selector of the pods of a Service; None: it has none."""
    selector = ((manifest or {}).get("spec") or {}).get("selector") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or None


def _leads_astray(service: Service, namespace: str, manifest: Manifest) -> tuple[str, str] | None:
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    selector = spec.get("selector") or {}
    labels = metadata.get("labels") or {}
    owners = {owner.get("kind") for owner in metadata.get("ownerReferences") or []}
    if "deletionTimestamp" in metadata:
        return "ServiceMissing", f"Service {service.name} is being deleted: create it anew"
    if UID_LABEL in labels or KIND in owners or {UID_LABEL, RUN_LABEL} & set(selector):
        return _refused(
            service,
            "belongs to a run, whose pods come and go: name a Service of your own, or write what "
            "the run deploys as image or preset",
        )
    if spec.get("type") == "ExternalName":
        return _refused(
            service,
            f"leads out of the cluster's Services, to {plain(str(spec.get('externalName')))} "
            f"(ExternalName): write a Service with a selector of pods in namespace {namespace}",
        )
    if not selector:
        return _refused(
            service,
            "has no selector, so its endpoints are made by hand and may be anywhere: write a "
            f"Service with a selector of pods in namespace {namespace}",
        )
    if spec.get("clusterIP") == "None":
        return _refused(
            service,
            "has no address of its own (clusterIP: None), so each client finds its own way to the "
            "pods: write a Service with an address and the same selector",
        )
    return None


def _astray_behind(service: Service, pods: Iterable[Manifest]) -> tuple[str, str] | None:
    for pod in pods:
        name = pod["metadata"]["name"]
        if UID_LABEL in (pod["metadata"].get("labels") or {}):
            return _refused(
                service,
                f"selects pod {name} of a run: write a selector that matches none of Laptime's "
                "pods",
            )
        if (pod.get("spec") or {}).get("hostNetwork"):
            return _refused(
                service,
                f"selects pod {name}, which is in the network of its node (hostNetwork), where no "
                "NetworkPolicy holds: write a Service of pods with addresses of their own",
            )
    return None


def _target(service: Service, manifest: Manifest) -> Target | None:
    spec = manifest["spec"]
    for port in spec.get("ports") or []:
        asked = (
            port.get("name") == service.port_name
            if service.port is None
            else port.get("port") == service.port
        )
        if asked and port.get("protocol", "TCP") == "TCP":
            pod_port = port.get("targetPort") or port["port"]
            return Target(port["port"], pod_port, dict(spec["selector"]))
    return None


def _no_port(service: Service, manifest: Manifest) -> tuple[str, str]:
    asked = service.port_name if service.port is None else service.port
    ports = [
        f"{one['port']} ({one['name']})" if one.get("name") else str(one["port"])
        for one in manifest["spec"].get("ports") or []
        if one.get("protocol", "TCP") == "TCP"
    ]
    return (
        "ServicePortMissing",
        f"Service {service.name} has no TCP port {asked}; it has {', '.join(ports) or 'none'}: "
        "write one of these as port, or its name as portName",
    )


def _refused(service: Service, why: str) -> tuple[str, str]:
    return "ServiceRefused", f"Service {service.name} {why}"


def _counts(pod: Manifest) -> bool:
    over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return "deletionTimestamp" not in pod["metadata"] and not over


def _stranger(pod: Manifest) -> PodView:
    # What its labels say is for its owner: here they mean nothing.
    return pod_view({**pod, "metadata": {**pod["metadata"], "labels": {}}})
