"""Postgres of a run: its configuration, the scenario's schema and data, one pod, a Service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from laptime.api.resources import quantity
from laptime.api.topology import Postgres
from laptime.manifests.context import RunContext
from laptime.manifests.exporter import exporter_containers
from laptime.manifests.objects import Component, Manifest
from laptime.manifests.pods import (
    config_map,
    config_volume,
    container,
    deployment,
    helper_resources,
    pod_spec,
    resources,
    secret_variable,
    service,
    startup_probe,
)
from laptime.manifests.secret import USER, owning, secret_name
from laptime.manifests.sql_image import (
    sql_image_containers,
    sql_image_mounts,
    sql_image_volumes,
    stand_ins,
)
from laptime.plan.pools import DATABASE, copied_databases, most_connections

PORT = 5432
RESET_KEY = "reset.json"

_CONFIG_KEY = "postgresql.conf"
_EXTENSIONS_KEY = "extensions.sql"
_DATABASES_KEY = "databases.sql"
_EXTENSION = re.compile(r"[a-z][-_a-z0-9]*")
_COPY = re.compile(rf"{DATABASE}_[_a-z0-9]{{1,50}}")
_MIB = 2**20


def postgres_name(ctx: RunContext) -> str:
    """Return the name of the Deployment, the Service and the ConfigMap."""
    return ctx.object_name("postgres")


def postgres_objects(ctx: RunContext) -> list[Manifest]:
    """Return ConfigMap, Deployment and Service; nothing when the run has no Postgres."""
    if ctx.spec.topology.postgres is None:
        return []
    data = _files(ctx, ctx.spec.topology.postgres)
    return [
        owning(config_map(ctx, Component.POSTGRES, postgres_name(ctx), data)),
        _deployment(ctx, ctx.spec.topology.postgres, data),
        service(ctx, Component.POSTGRES, postgres_name(ctx), {"postgres": PORT}),
    ]


def postgres_config(postgres: Postgres, connections: int) -> str:
    """Return postgresql.conf: what this run sets beyond what the image has.

    `connections` is how many of them may be open at once.

    Data is as safe as in production (fsync and synchronous_commit stay on): a benchmark without
    them would measure something that nobody runs.
    """
    shared = _shared_buffers_mib(postgres)
    settings = {
        "max_connections": connections,
        "shared_buffers": f"{shared}MB",
        "effective_cache_size": f"{3 * shared}MB",
        "maintenance_work_mem": "64MB",
        "fsync": "on",
        "synchronous_commit": "on",
        # Every trial begins with a CHECKPOINT; none may fall into its middle: not by the clock in
        # the longest load, nor before 2.1 GB of WAL, at max_wal_size / 1.9.
        "checkpoint_timeout": "1d",
        "max_wal_size": "4GB",
        # What servers ask for: from any other PgBouncer would set it again for each request of a
        # client that resets its connections, as asyncpg does.
        "timezone": "'UTC'",
        "shared_preload_libraries": "'pg_stat_statements'",
        "pg_stat_statements.track": "top",
    }
    return "".join(f"{name} = {value}\n" for name, value in settings.items())


def _shared_buffers_mib(postgres: Postgres) -> int:
    # A quarter of the memory is what Postgres' documentation recommends.
    if postgres.resources is None or postgres.resources.memory is None:
        return 256
    return max(16, min(8192, int(quantity(postgres.resources.memory) / 4 / _MIB)))


def _files(ctx: RunContext, postgres: Postgres) -> dict[str, str]:
    return {
        _CONFIG_KEY: postgres_config(postgres, most_connections(ctx.spec)),
        RESET_KEY: json.dumps(ctx.scenario.reset_statements, indent=1),
        **_extensions(ctx),
        **_init_files(ctx),
        **_databases(ctx),
    }


def _init_files(ctx: RunContext) -> dict[str, str]:
    """Return the files that make schema and rows, in their order."""
    return dict(sorted({**dict(ctx.scenario.init_sql), **stand_ins(ctx)}.items()))


def _extensions(ctx: RunContext) -> dict[str, str]:
    """Return the file that the superuser runs, if there is anything to run.

    Raises:
        ValueError: a name would be more than a name there.
    """
    names = ctx.scenario.extensions
    for name in names:
        if not _EXTENSION.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of an extension")
    sql = "".join(f'CREATE EXTENSION IF NOT EXISTS "{name}";\n' for name in names)
    return {_EXTENSIONS_KEY: sql} if sql else {}


def _databases(ctx: RunContext) -> dict[str, str]:
    """Return the file that the superuser runs at the end, where servers share no database."""
    sql = copying_sql(copied_databases(ctx.spec))
    return {_DATABASES_KEY: sql} if sql else {}


def copying_sql(names: Iterable[str]) -> str:
    """Return the SQL that copies the run's database under these names; nobody may be in it then.

    Files are copied, not rows: that takes the least time, and no write-ahead log.

    Raises:
        ValueError: a name would be more than a name there.
    """
    sql = ""
    for name in names:
        if not _COPY.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a copy of the database")
        sql += (
            f"CREATE DATABASE {name} TEMPLATE {DATABASE} OWNER {USER} STRATEGY file_copy;\n"
            # What ALTER DATABASE has set is of the name, and no copy has it.
            "INSERT INTO pg_db_role_setting SELECT copy.oid, setrole, setconfig\n"
            "FROM pg_db_role_setting JOIN pg_database AS original ON original.oid = setdatabase,\n"
            "pg_database AS copy\n"
            f"WHERE original.datname = '{DATABASE}' AND copy.datname = '{name}';\n"
        )
    return sql


def _deployment(ctx: RunContext, postgres: Postgres, files: dict[str, str]) -> Manifest:
    paths = {key: key for key in (_CONFIG_KEY, _EXTENSIONS_KEY, _DATABASES_KEY) if key in files}
    paths |= {name: f"init.d/{name}" for name in _init_files(ctx)}
    pod = pod_spec(
        ctx,
        [
            container(
                ctx,
                "postgres",
                ctx.images.postgres,
                resources=resources(postgres.resources, cpu="100m", memory="256Mi"),
                env=[secret_variable("POSTGRES_PASSWORD", secret_name(ctx), "password")],
                ports={"postgres": PORT},
                mounts={
                    "/etc/laptime": "config",
                    "/var/lib/postgresql/data": "data",
                    "/dev/shm": "shm",
                    **sql_image_mounts(ctx),
                },
                startup_probe=startup_probe(
                    ctx,
                    # By TCP, which opens only after schema and data are there.
                    exec={
                        "command": [
                            "pg_isready",
                            "--quiet",
                            "--host=127.0.0.1",
                            f"--port={PORT}",
                            f"--username={USER}",
                            f"--dbname={DATABASE}",
                        ]
                    },
                ),
            ),
            *exporter_containers(ctx, "postgres"),
        ],
        # They ask for no more than Postgres: the pod is placed as without them.
        init_containers=sql_image_containers(ctx, helper_resources(postgres.resources)),
        volumes=[
            config_volume("config", postgres_name(ctx), paths),
            # Outlives a crash of the container. A new pod makes its data anew from the scenario,
            # which is quick and always gives the same rows.
            {"name": "data", "emptyDir": {"sizeLimit": "18Gi"}},
            # Where the processes of a parallel query share memory. A runtime gives 64 MiB, and a
            # query that finds it full fails. A limit of the memory of the pod bounds it, too.
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}},
            *sql_image_volumes(ctx),
        ],
    )
    # Not a StatefulSet: it would wait for a lost node before it replaces the pod, and there is no
    # volume that two pods could fight for.
    return deployment(ctx, Component.POSTGRES, postgres_name(ctx), pod, config=files)
