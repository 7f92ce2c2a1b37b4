"""The container beside Postgres and PgBouncer that says to Prometheus how they are doing."""

from __future__ import annotations

from typing import Literal

from laptime.manifests.context import RunContext
from laptime.manifests.objects import Manifest
from laptime.manifests.pods import container, secret_variable
from laptime.manifests.secret import secret_name

PORT = 9187


def exporter_containers(
    ctx: RunContext, source: Literal["postgres", "pgbouncer"]
) -> list[Manifest]:
    """Return the exporter of a tier; nothing where no exporter is installed.

    It stands beside its tier since the password is only in the run's own Secret, and after it, so
    that the tier starts no later because of it.
    """
    if ctx.images.exporter is None:
        return []
    # Requests that are limits: it must not take a tier out of the class Guaranteed.
    own = {"cpu": "50m", "memory": "64Mi"}
    return [
        container(
            ctx,
            "exporter",
            ctx.images.exporter,
            resources={"requests": own, "limits": own},
            args=[source],
            # Two threads at most, however many cores the node has.
            env=[
                {"name": "GOMAXPROCS", "value": "2"},
                secret_variable("POSTGRES_PASSWORD", secret_name(ctx), "password"),
            ],
            ports={"metrics": PORT},
        )
    ]
