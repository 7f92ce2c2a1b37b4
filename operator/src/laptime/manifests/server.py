"""A server under test: its Service, and its Deployment, which has a fresh pod for every trial."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from laptime.api.server import Server
from laptime.catalog import threads_of
from laptime.manifests import delay, pgbouncer, postgres
from laptime.manifests.context import RunContext
from laptime.manifests.objects import TRIAL_LABEL, Component, Manifest
from laptime.manifests.pods import (
    container,
    deployment,
    pod_address_variable,
    pod_spec,
    resources,
    secret_variable,
    service,
    startup_probe,
    variable,
    writable_folders,
)
from laptime.manifests.secret import database_parts, database_variables
from laptime.manifests.side_services import expanded, side_variables
from laptime.manifests.sqlite import URL, sqlite_containers, sqlite_mounts, sqlite_volumes
from laptime.manifests.upstream import upstream_url
from laptime.plan import profile_name
from laptime.plan.pools import pool_name
from laptime.plan.told import given_way, nameable, told

_PROFILE_PORTS = (6060, 6061, 6062)
"""The first that the server itself does not listen on."""


def server_name(ctx: RunContext, server: Server) -> str:
    """Return the name of the Deployment and the Service."""
    return ctx.object_name("server", server.name)


def server_service(ctx: RunContext, server: Server, trial: str | None = None) -> Manifest:
    """Return the Service of a server; with a trial it leads to that trial's pod and no other.

    With a trial it leads there as soon as the pod has an address: whoever sends the requests
    waits for the server itself, every 50 ms, which is up to a second faster than to wait until
    the kubelet has probed it. A pod of an earlier trial is out of it at once; one that was only
    being deleted would stay, and connections to it end nowhere instead of being refused.

    Apply it before the Deployment: then a Deployment that has the trial means that its Service
    has it too. The hash is the same for all trials, so `tier_objects` does not show as drift.
    """
    manifest = service(
        ctx,
        Component.SERVER,
        server_name(ctx, server),
        _ports(server),
        server=server.name,
    )
    if trial is not None:
        manifest["spec"]["selector"][TRIAL_LABEL] = trial
        manifest["spec"]["publishNotReadyAddresses"] = True
    if trial is not None and trial == profile_name(ctx.name, server.name):
        port = profile_port(server)
        manifest["spec"]["ports"].append(
            {"name": "profile", "port": port, "targetPort": port, "protocol": "TCP"}
        )
    return manifest


def profile_port(server: Server) -> int:
    """Return the port on which a server can be asked for a profile, while one is taken."""
    return next(port for port in _PROFILE_PORTS if port not in _ports(server).values())


def _ports(server: Server) -> dict[str, int]:
    own = server.own_health_port
    return {"http": server.listen_port, **({} if own is None else {"health": own})}


def server_deployment(ctx: RunContext, server: Server, trial: str | None) -> Manifest:
    """Return the Deployment of a server: without a pod, or with a fresh one for a trial.

    The name of the trial is a label of the pod template. So a new trial means a new pod. It need
    not wait until the one of the trial before has gone: no request reaches that one any more, and
    it has gone long before the measuring begins.

    In the trial of a profile, and only there, the server is told where to be asked for one.
    """
    profiled = trial == profile_name(ctx.name, server.name)
    # The file of SQLite has a volume of its own, which can be written to.
    folders = [one for one in server.writable if one not in sqlite_mounts(ctx)]
    mounts, volumes = writable_folders(folders)
    pod = pod_spec(
        ctx,
        [
            container(
                ctx,
                "server",
                ctx.digests.get(server.name) or ctx.images.of(server),
                resources=resources(server.resources, cpu="50m", memory="64Mi"),
                command=server.command,
                args=server.args,
                env=_environment(ctx, server, profiled),
                ports={
                    **_ports(server),
                    **({"profile": profile_port(server)} if profiled else {}),
                },
                mounts=sqlite_mounts(ctx) | mounts,
                startup_probe=startup_probe(
                    ctx,
                    httpGet={
                        "path": server.health,
                        "port": server.own_health_port or server.listen_port,
                    },
                ),
                expand=_expanding(ctx, server),
            )
        ],
        init_containers=sqlite_containers(ctx, server),
        volumes=[*sqlite_volumes(ctx), *volumes],
        # A user's own image need not know Laptime's user: its files may belong to the user that
        # its Dockerfile or the run names. It may be any but root.
        own_user=server.image is None,
        user=server.user,
        # Nobody asks it any more, and the next trial is not measured beside it.
        grace_seconds=2,
    )
    return deployment(
        ctx,
        Component.SERVER,
        server_name(ctx, server),
        pod,
        replicas=0 if trial is None else 1,
        server=server.name,
        trial=trial,
        overlap=True,
    )


def database_address(ctx: RunContext) -> tuple[str, int]:
    """Return host and port of the tier that the servers take for their Postgres."""
    if ctx.spec.topology.pgbouncer is not None:
        return pgbouncer.pgbouncer_name(ctx), pgbouncer.PORT
    return postgres.postgres_name(ctx), postgres.PORT


def _environment(ctx: RunContext, server: Server, profiled: bool) -> list[Manifest]:
    environment = [*side_variables(ctx), pod_address_variable()]
    environment += [
        variable("PORT", str(server.listen_port)),
        variable("WORKERS", str(server.worker_count)),
        variable("DATABASE_CONNECTIONS", str(server.database_connections)),
        # PgBouncer is set up to keep them working in every pool mode.
        variable("DATABASE_PREPARED_STATEMENTS", "true"),
    ]
    if profiled:
        environment.append(variable("PROFILE_PORT", str(profile_port(server))))
    threads = threads_of(server)
    if threads is not None:
        environment.append(variable("THREADS", str(threads)))
    if (url := upstream_url(ctx, server)) is not None:
        environment.append(variable("UPSTREAM_URL", url))
    if ctx.spec.topology.sqlite:
        environment.append(variable("DATABASE_URL", URL))
    if ctx.spec.topology.postgres is not None:
        host, port = database_address(ctx)
        if ctx.spec.topology.delay is not None and ctx.spec.topology.delay.database is not None:
            host, port = delay.delay_name(ctx), delay.DATABASE_PORT
        database = pool_name(ctx.spec, server)
        environment += database_parts(host, port, database)
        environment += database_variables(ctx, host, port, database)
    known, left_out = told(ctx.spec, server), given_way(server)
    # The contract's own go before a user's of the same name, but for those that give way.
    own = [one for one in server.env if one.name in left_out or one.name not in known]
    expand = _expanding(ctx, server)
    return [
        # Before what refers to them.
        *(one for one in environment if one["name"] not in left_out),
        *(
            secret_variable(one.name, one.secret, one.secret_key)
            for one in own
            if one.secret is not None
        ),
        *({"name": one.name, "value": expand(one.value)} for one in own if one.secret is None),
    ]


def _expanding(ctx: RunContext, server: Server) -> Callable[[str], str]:
    """Return what leaves to the kubelet what a server's texts may name."""
    names = {name for name, lacking in nameable(ctx.spec, server).items() if lacking is None}
    return partial(expanded, names=names)
