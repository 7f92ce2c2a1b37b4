"""SQLite of a run: every pod of a server has a database file of its own, fresh for every trial."""

from __future__ import annotations

from laptime.api.server import Server
from laptime.manifests.context import RunContext
from laptime.manifests.objects import Component, Manifest
from laptime.manifests.pods import (
    config_map,
    config_volume,
    container,
    helper_resources,
    variable,
)

FOLDER = "/data"
FILE = f"{FOLDER}/laptime.db"
URL = f"sqlite://{FILE}"

_SQL_FOLDER = "/etc/laptime/sql"


def sqlite_name(ctx: RunContext) -> str:
    """Return the name of the ConfigMap with schema and data."""
    return ctx.object_name("sqlite")


def sqlite_objects(ctx: RunContext) -> list[Manifest]:
    """Return the ConfigMap; nothing when the run does not use SQLite."""
    if not ctx.spec.topology.sqlite:
        return []
    return [config_map(ctx, Component.SQLITE, sqlite_name(ctx), dict(ctx.scenario.sqlite_sql))]


def sqlite_volumes(ctx: RunContext) -> list[Manifest]:
    """Return the volumes of a server's pod: the SQL, and the folder of the database."""
    if not ctx.spec.topology.sqlite:
        return []
    files = {name: name for name, _ in ctx.scenario.sqlite_sql}
    return [
        config_volume("sql", sqlite_name(ctx), files),
        {"name": "data", "emptyDir": {"sizeLimit": "4Gi"}},
    ]


def sqlite_mounts(ctx: RunContext) -> dict[str, str]:
    """Return where a server's container has the folder of the database: its path, its volume."""
    return {FOLDER: "data"} if ctx.spec.topology.sqlite else {}


def sqlite_containers(ctx: RunContext, server: Server) -> list[Manifest]:
    """Return the container that makes the database before the server starts."""
    if not ctx.spec.topology.sqlite:
        return []
    return [
        container(
            ctx,
            "seed",
            ctx.images.operator,
            resources=helper_resources(server.resources),
            command=["laptime"],
            args=["make-sqlite", _SQL_FOLDER, FILE],
            env=[variable("HOME", "/tmp")],
            mounts={_SQL_FOLDER: "sql", **sqlite_mounts(ctx)},
        )
    ]
