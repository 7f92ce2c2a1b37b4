"""Everything of a run that is deployed once, and the address under which a server is reached."""

from __future__ import annotations

from laptime.api.server import Server
from laptime.manifests.context import RunContext
from laptime.manifests.delay import (
    DATABASE_PORT,
    Link,
    delay_name,
    delay_objects,
    delayed_port,
)
from laptime.manifests.feeders import feeder_objects
from laptime.manifests.haproxy import haproxy_name, haproxy_objects, haproxy_port
from laptime.manifests.meeting import meeting_objects
from laptime.manifests.objects import Manifest
from laptime.manifests.pgbouncer import pgbouncer_objects
from laptime.manifests.postgres import postgres_objects
from laptime.manifests.server import database_address, server_name, server_service
from laptime.manifests.side_services import side_service_objects
from laptime.manifests.sqlite import sqlite_objects
from laptime.manifests.target import service_url
from laptime.manifests.upstream import upstream_objects


def tier_objects(ctx: RunContext) -> list[Manifest]:
    """Return the tiers and the Services of all servers, what takes longest to start first.

    The Secret of the database is not among them: it is created once and never applied again. Nor
    are the Deployments of the servers: they change with every trial.
    """
    return [
        *postgres_objects(ctx),
        *sqlite_objects(ctx),
        *feeder_objects(ctx),
        *upstream_objects(ctx),
        *side_service_objects(ctx),
        # HAProxy resolves them when it starts, so they come before it.
        *(server_service(ctx, server) for server in ctx.spec.deployed),
        *pgbouncer_objects(ctx),
        *haproxy_objects(ctx),
        *meeting_objects(ctx),
        *delay_objects(ctx, _links(ctx)),
    ]


def target_url(ctx: RunContext, server: Server) -> str:
    """Return the URL, without a path, at which the generator and the verifier reach a server.

    Raises:
        ValueError: it is a Service that cannot be driven now.
    """
    if server.service is not None:
        return service_url(ctx, server, server.service)
    return _deployed_url(ctx, server)


def health_url(ctx: RunContext, server: Server) -> str | None:
    """Return the URL, without a path, at which the two ask whether a server serves.

    It leads the same way as the load, to the other port. None: they ask the target.
    """
    return None if server.own_health_port is None else _deployed_url(ctx, server, health=True)


def _deployed_url(ctx: RunContext, server: Server, *, health: bool = False) -> str:
    host, port = _server_address(ctx, server, health=health)
    if ctx.spec.topology.delay is not None and ctx.spec.topology.delay.servers is not None:
        host, port = delay_name(ctx), delayed_port(ctx, server, health=health)
    return f"http://{host}:{port}"


def _server_address(ctx: RunContext, server: Server, *, health: bool = False) -> tuple[str, int]:
    if ctx.spec.topology.haproxy is not None:
        return haproxy_name(ctx), haproxy_port(ctx, server, health=health)
    own = server.own_health_port if health else None
    return server_name(ctx, server), own or server.listen_port


def _links(ctx: RunContext) -> list[Link]:
    delay = ctx.spec.topology.delay
    if delay is None:
        return []
    domain = f"{ctx.namespace}.svc.{ctx.cluster_domain}"
    links: list[Link] = []
    if delay.servers is not None:
        for server in ctx.spec.deployed:
            for health in (False,) if server.own_health_port is None else (False, True):
                host, port = _server_address(ctx, server, health=health)
                to = f"{host}.{domain}:{port}"
                here = delayed_port(ctx, server, health=health)
                links.append(Link(here, to, delay.servers_milliseconds))
    if delay.database is not None:
        host, port = database_address(ctx)
        to = f"{host}.{domain}:{port}"
        links.append(Link(DATABASE_PORT, to, delay.database_milliseconds))
    return links
