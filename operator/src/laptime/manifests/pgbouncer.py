"""PgBouncer of a run, between the servers and Postgres."""

from __future__ import annotations

import math
from collections.abc import Mapping

from laptime.api.topology import PgBouncer
from laptime.manifests import postgres
from laptime.manifests.context import RunContext
from laptime.manifests.exporter import exporter_containers
from laptime.manifests.objects import Component, Manifest
from laptime.manifests.pods import (
    config_map,
    config_volume,
    container,
    deployment,
    pod_spec,
    resources,
    secret_variable,
    service,
    startup_probe,
)
from laptime.manifests.secret import ADMIN, CONSOLE_KEY, USER, secret_name
from laptime.plan.pools import DATABASE, database_name, pool_name

PORT = 6432

_CONSOLE = "pgbouncer"
"""The database of PgBouncer's own, which takes its commands."""
_CONFIG_KEY = "pgbouncer.ini"
_SPARE_CLIENTS = 100


def pgbouncer_name(ctx: RunContext) -> str:
    """Return the name of the Deployment, the Service and the ConfigMap."""
    return ctx.object_name("pgbouncer")


def console_address(ctx: RunContext) -> str:
    """Return where PgBouncer takes commands: host, port and database."""
    return f"{pgbouncer_name(ctx)}:{PORT}/{_CONSOLE}"


def console_variable(ctx: RunContext) -> Manifest:
    """Return PGBOUNCER_URL, by which an admin asks."""
    # Secrets of runs that an earlier version has begun do not have it: there nobody asks.
    return secret_variable("PGBOUNCER_URL", secret_name(ctx), CONSOLE_KEY, optional=True)


def pgbouncer_objects(ctx: RunContext) -> list[Manifest]:
    """Return ConfigMap, Deployment and Service; nothing when the run has no PgBouncer."""
    tier = ctx.spec.topology.pgbouncer
    if tier is None:
        return []
    data = {_CONFIG_KEY: pgbouncer_config(ctx, tier)}
    pod = pod_spec(
        ctx,
        [
            container(
                ctx,
                "pgbouncer",
                ctx.images.pgbouncer,
                resources=resources(tier.resources, cpu="50m", memory="32Mi"),
                ports={"pgbouncer": PORT},
                mounts={"/etc/laptime": "config", "/etc/laptime-secret": "users"},
                startup_probe=startup_probe(ctx, tcpSocket={"port": PORT}),
            ),
            *exporter_containers(ctx, "pgbouncer"),
        ],
        volumes=[
            config_volume("config", pgbouncer_name(ctx), {_CONFIG_KEY: _CONFIG_KEY}),
            {
                "name": "users",
                "secret": {
                    "secretName": secret_name(ctx),
                    "items": [{"key": "userlist.txt", "path": "userlist.txt"}],
                },
            },
        ],
        grace_seconds=2,
    )
    return [
        config_map(ctx, Component.PGBOUNCER, pgbouncer_name(ctx), data),
        deployment(ctx, Component.PGBOUNCER, pgbouncer_name(ctx), pod, config=data),
        service(ctx, Component.PGBOUNCER, pgbouncer_name(ctx), {"pgbouncer": PORT}),
    ]


def pgbouncer_config(ctx: RunContext, tier: PgBouncer) -> str:
    """Return pgbouncer.ini; only integers, enumerated words and checked names go into it."""
    # One server runs at a time, and the pod of the trial before may not have ended yet. The spare
    # ones are for checks and for a pool that is being closed.
    largest = max(one.worker_count * one.database_connections for one in ctx.spec.servers)
    clients = 2 * largest + _SPARE_CLIENTS
    timeout = max(120, *(math.ceil(load.timeout_seconds) for load in ctx.spec.loads))
    settings: dict[str, str | int] = {
        "listen_addr": "*",
        "listen_port": PORT,
        # No socket file: the root file system is read-only, and nobody would use it.
        "unix_socket_dir": "",
        "auth_type": "scram-sha-256",
        "auth_file": "/etc/laptime-secret/userlist.txt",
        # For RECONNECT, which the first generator of each trial asks for. A server, which has the
        # run's role, would be able to pause or stop it.
        "admin_users": ADMIN,
        # For figures of the pool: SHOW POOLS, SHOW STATS.
        "stats_users": USER,
        "pool_mode": str(tier.pool_mode),
        "default_pool_size": tier.pool_size,
        "max_client_conn": clients,
        # Prepared statements of clients keep working although the server connection changes.
        "max_prepared_statements": 200,
        "ignore_startup_parameters": "extra_float_digits",
        "query_wait_timeout": timeout,
        # Connections once made stay: the first requests of a trial, which are mostly its warm-up,
        # pay for them, and no later one.
        "server_idle_timeout": 0,
        "server_lifetime": 86400,
        "server_tls_sslmode": "disable",
        # Postgres may come up after PgBouncer: try again at once (the default is after 15 s).
        "server_login_retry": 1,
        "server_connect_timeout": 5,
        "dns_nxdomain_ttl": 1,
        "log_connections": 0,
        "log_disconnections": 0,
        "log_stats": 0,
    }
    where = f"host={postgres.postgres_name(ctx)} port={postgres.PORT}"
    # Here too, where not even an admin changes them.
    databases = {DATABASE: f"{where} dbname={DATABASE} {_pool(tier)}"}
    if ctx.spec.topology.own_databases:
        # A server that goes there all the same would be on another one than it is judged by.
        databases = {}
    for server in ctx.spec.deployed:
        name, own = pool_name(ctx.spec, server), ctx.spec.topology_of(server).pgbouncer
        if name != DATABASE and own is not None:
            databases[name] = f"{where} dbname={database_name(ctx.spec, server)} {_pool(own)}"
    return f"[databases]\n{_lines(databases)}\n[pgbouncer]\n{_lines(settings)}"


def _pool(tier: PgBouncer) -> str:
    return f"pool_size={tier.pool_size} pool_mode={tier.pool_mode}"


def _lines(settings: Mapping[str, str | int]) -> str:
    return "".join(f"{name} = {value}".rstrip() + "\n" for name, value in settings.items())
