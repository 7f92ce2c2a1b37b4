"""A server that is there already: where its Service is reached, who may reach it, and as whom.

Nothing of it is made, changed or labelled: all that is here are parts of the run's own objects.
"""

from __future__ import annotations

from laptime.api.server import Server
from laptime.api.service import AUTHORIZATION_KEY, Service
from laptime.manifests.context import RunContext, Target
from laptime.manifests.objects import COMPONENT_LABEL, SERVER_LABEL, UID_LABEL, Component, Manifest
from laptime.manifests.pods import config_volume, secret_variable, variable

AUTHORIZATION_VARIABLE = "LAPTIME_AUTHORIZATION"

_CA_FOLDER = "/etc/laptime/ca"
_CA_FILE = "ca.crt"
_CA_VOLUME = "ca"
_DRIVERS = (Component.GENERATOR, Component.VERIFIER)


def target_of(ctx: RunContext, server: Server) -> Target:
    """Return where a Service leads to.

    Raises:
        ValueError: it cannot be driven now, or nobody has looked.
    """
    target = ctx.targets.get(server.name)
    if target is None:
        raise ValueError(f"server {server.name}: its Service was not found")
    return target


def service_url(ctx: RunContext, server: Server, service: Service) -> str:
    """Return the URL of a Service, without a path: under the name that certificates have."""
    scheme = "http" if service.tls is None else "https"
    return f"{scheme}://{service.name}.{ctx.namespace}.svc:{target_of(ctx, server).port}"


def client_variables(server: Server) -> list[Manifest]:
    """Return by which variables a container is known to a server, and knows it."""
    service = server.service
    if service is None:
        return []
    found: list[Manifest] = []
    if service.credentials is not None:
        found.append(
            secret_variable(AUTHORIZATION_VARIABLE, service.credentials, AUTHORIZATION_KEY)
        )
    if service.tls is not None:
        # What Go and OpenSSL both take instead of the certificates of the machine.
        found.append(variable("SSL_CERT_FILE", f"{_CA_FOLDER}/{_CA_FILE}"))
        found.append(variable("SSL_CERT_DIR", _CA_FOLDER))
    return found


def client_mounts(server: Server) -> dict[str, str]:
    """Return the mounts of such a container: path and name of the volume."""
    return {_CA_FOLDER: _CA_VOLUME} if server.service and server.service.tls else {}


def client_volumes(server: Server) -> list[Manifest]:
    """Return the volumes of its pod."""
    if server.service is None or server.service.tls is None:
        return []
    tls = server.service.tls
    return [config_volume(_CA_VOLUME, tls.config_map, {tls.key: _CA_FILE})]


def reach_name(ctx: RunContext, server: Server) -> str:
    """Return the name of the policy that lets the run reach a Service."""
    return ctx.object_name("to", server.name)


def reach_policy(ctx: RunContext, server: Server) -> Manifest:
    """Return the NetworkPolicy that lets generator and verifier of a server reach its pods.

    Nothing else of the run may, and they may reach nothing else by it. That the pods let them in is
    for those who own them to say.
    """
    target = target_of(ctx, server)
    drivers = {
        "matchLabels": {UID_LABEL: ctx.uid, SERVER_LABEL: server.name},
        "matchExpressions": [
            {"key": COMPONENT_LABEL, "operator": "In", "values": [str(one) for one in _DRIVERS]}
        ],
    }
    pods = {"podSelector": {"matchLabels": dict(target.selector)}}
    return ctx.manifest(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        reach_name(ctx, server),
        ctx.labels(Component.NETWORK, server=server.name),
        spec={
            "podSelector": drivers,
            "policyTypes": ["Egress"],
            "egress": [{"to": [pods], "ports": [{"port": target.pod_port, "protocol": "TCP"}]}],
        },
    )
