"""How the database of a run gets back to its first state: who does it, from which file."""

from __future__ import annotations

from laptime.api.server import Server
from laptime.manifests.context import RunContext
from laptime.manifests.objects import Manifest
from laptime.manifests.pgbouncer import console_variable
from laptime.manifests.pods import config_volume
from laptime.manifests.postgres import PORT, RESET_KEY, postgres_name
from laptime.manifests.secret import database_variables
from laptime.plan.pools import database_name

_FOLDER = "/etc/laptime"
_VOLUME = "sql"
RESET_FILE = f"{_FOLDER}/{RESET_KEY}"
"""An array of JSON in such a container: the statements, one by one."""
RESET_MOUNTS = {_FOLDER: _VOLUME}


def reset_volume(ctx: RunContext) -> Manifest:
    """Return the volume with the statements, for a pod whose container has RESET_MOUNTS."""
    return config_volume(_VOLUME, postgres_name(ctx), {RESET_KEY: RESET_KEY})


def reset_variables(ctx: RunContext, server: Server) -> list[Manifest]:
    """Return where what resets the database finds it, and what is between it and the server."""
    database = database_name(ctx.spec, server)
    variables = database_variables(ctx, postgres_name(ctx), PORT, database)
    if ctx.spec.topology_of(server).pgbouncer is not None:
        variables.append(console_variable(ctx))
    return variables
