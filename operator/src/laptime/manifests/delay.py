"""A longer network between two tiers of a run: a pod that forwards and holds back answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from laptime.api.server import Server
from laptime.manifests.context import RunContext
from laptime.manifests.objects import Component, Manifest
from laptime.manifests.pods import (
    container,
    deployment,
    pod_spec,
    resources,
    service,
    startup_probe,
    variable,
)

DATABASE_PORT = 6432
HEALTH_PORT = 8404

_FIRST_PORT = 8001
_FIRST_HEALTH_PORT = 8101


@dataclass(frozen=True)
class Link:
    """One way through the pod: connections to a port of it go on to an address."""

    port: int
    to: str
    delay_milliseconds: int
    """What is added to each round trip."""


def delay_name(ctx: RunContext) -> str:
    """Return the name of the Deployment and the Service."""
    return ctx.object_name("delay")


def delayed_port(ctx: RunContext, server: Server, *, health: bool = False) -> int:
    """Return the port that leads to a server: each has one, in the order of spec.servers.

    With `health` the one that leads to its health port, where that is another one.
    """
    first = _FIRST_HEALTH_PORT if health else _FIRST_PORT
    return first + [one.name for one in ctx.spec.servers].index(server.name)


def delay_objects(ctx: RunContext, links: Sequence[Link]) -> list[Manifest]:
    """Return Deployment and Service; nothing when there are no links.

    Raises:
        ValueError: there are links, and the operator has no image for them.
    """
    if not links:
        return []
    if ctx.images.delay is None:
        raise ValueError("there is no image for the delay: set images.delay of the chart")
    wanted = ctx.spec.topology.delay.resources if ctx.spec.topology.delay is not None else None
    document = {
        "healthPort": HEALTH_PORT,
        "links": [
            {"port": link.port, "to": link.to, "delayMs": link.delay_milliseconds} for link in links
        ],
    }
    ports = {f"p{link.port}": link.port for link in links}
    pod = pod_spec(
        ctx,
        [
            container(
                ctx,
                "delay",
                ctx.images.delay,
                # No limit of our own: what is throttled delays more than it should.
                resources=resources(wanted, cpu="50m", memory="64Mi"),
                env=[variable("LAPTIME_DELAY", json.dumps(document, separators=(",", ":")))],
                ports={**ports, "health": HEALTH_PORT},
                startup_probe=startup_probe(ctx, httpGet={"path": "/healthz", "port": HEALTH_PORT}),
            )
        ],
        grace_seconds=2,
    )
    # Names are looked up for every connection: as they are, not below five domains first.
    pod["dnsConfig"] = {"options": [{"name": "ndots", "value": "1"}]}
    return [
        deployment(ctx, Component.DELAY, delay_name(ctx), pod),
        service(ctx, Component.DELAY, delay_name(ctx), ports),
    ]
