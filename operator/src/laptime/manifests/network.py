"""Who may talk to the pods of a run, and to whom they may: each other, and little else."""

from __future__ import annotations

from typing import Any

from laptime.api.egress import Destination
from laptime.manifests.context import RunContext
from laptime.manifests.objects import UID_LABEL, Component, Manifest

_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
_DNS_PORT, _DNS_BEHIND = 53, 5353
"""OpenShift's DNS answers on the second one, and its network asks policies about that."""


def network_name(ctx: RunContext) -> str:
    """Return the name of the policy."""
    return ctx.object_name("network")


def network_policy(ctx: RunContext) -> Manifest:
    """Return the NetworkPolicy of all pods of a run.

    Raises:
        ValueError: the administrator has switched policies off.
    """
    if ctx.network is None:
        raise ValueError("NetworkPolicies are switched off")
    pods = {"matchLabels": {UID_LABEL: ctx.uid}}
    each_other = [{"podSelector": pods}]
    ingress: list[Manifest] = [{"from": each_other}]
    if ctx.network.watchers:
        names = {"matchExpressions": [_in(_NAMESPACE_LABEL, ctx.network.watchers)]}
        # Its port is called so in every pod that has something to say.
        ports = [{"port": "metrics", "protocol": "TCP"}]
        ingress.append({"from": [{"namespaceSelector": names}], "ports": ports})
    egress: list[Manifest] = [
        {"to": each_other},
        # Without a `to` it would be everybody's port 53: that is for the administrator to choose.
        {"to": list(ctx.network.dns), "ports": _dns_ports(named=bool(ctx.network.dns))},
        *(_to(one) for one in ctx.spec.egress),
    ]
    return ctx.manifest(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        network_name(ctx),
        ctx.labels(Component.NETWORK),
        spec={
            "podSelector": pods,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": egress,
        },
    )


def _dns_ports(*, named: bool) -> list[Manifest]:
    numbers = (_DNS_PORT, _DNS_BEHIND) if named else (_DNS_PORT,)
    return [{"port": port, "protocol": name} for port in numbers for name in ("UDP", "TCP")]


def _in(label: str, names: tuple[str, ...]) -> Manifest:
    return {"key": label, "operator": "In", "values": list(names)}


def _to(destination: Destination) -> Manifest:
    peer: Manifest = (
        {"ipBlock": {"cidr": destination.cidr}}
        if destination.cidr is not None
        else {"namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: destination.namespace}}}
    )
    allowed: dict[str, Any] = {"to": [peer]}
    if destination.ports:
        allowed["ports"] = [{"port": port, "protocol": "TCP"} for port in destination.ports]
    return allowed
