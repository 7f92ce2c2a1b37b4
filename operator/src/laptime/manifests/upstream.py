"""The upstream of a run: a stub behind the servers that answers JSON after a while."""

from __future__ import annotations

from laptime.api.durations import parse_duration
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

PORT = 8080
PATH = "/users"


def upstream_name(ctx: RunContext) -> str:
    """Return the name of the Deployment and the Service."""
    return ctx.object_name("upstream")


def upstream_url(ctx: RunContext, server: Server) -> str | None:
    """Return the URL that a server fetches; None when the run has no upstream.

    It has the latency in it where that is the server's own.
    """
    if ctx.spec.topology.upstream is None:
        return None
    own = server.topology.upstream if server.topology is not None else None
    after = f"/after/{parse_duration(own.latency) * 1e6:.0f}us" if own is not None else ""
    return f"http://{upstream_name(ctx)}:{PORT}{after}{PATH}"


def upstream_objects(ctx: RunContext) -> list[Manifest]:
    """Return Deployment and Service; nothing when the run has no upstream.

    Raises:
        ValueError: the run has an upstream, and the operator no image for it.
    """
    upstream = ctx.spec.topology.upstream
    if upstream is None:
        return []
    if ctx.images.upstream is None:
        raise ValueError("there is no image for the upstream: set images.upstream of the chart")
    pod = pod_spec(
        ctx,
        [
            container(
                ctx,
                "upstream",
                ctx.images.upstream,
                resources=resources(upstream.resources, cpu="50m", memory="32Mi"),
                env=[
                    variable("PORT", str(PORT)),
                    variable("LATENCY_SECONDS", f"{upstream.latency_seconds:g}"),
                    variable("ANSWER_BYTES", str(upstream.bytes)),
                ],
                ports={"http": PORT},
                startup_probe=startup_probe(ctx, httpGet={"path": "/healthz", "port": PORT}),
            )
        ],
        grace_seconds=2,
    )
    return [
        deployment(ctx, Component.UPSTREAM, upstream_name(ctx), pod),
        service(ctx, Component.UPSTREAM, upstream_name(ctx), {"http": PORT}),
    ]
