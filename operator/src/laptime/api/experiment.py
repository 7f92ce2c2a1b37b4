"""What a server can be given more of, to see whether that is what limits it."""

from __future__ import annotations

from enum import StrEnum

from laptime.api import GROUP

EXPLAINS_LABEL = f"{GROUP}/explains"
"""Of an experiment: the uid of the run whose server it is about."""
ABOUT_ANNOTATION = f"{GROUP}/explains-server"
"""Of an experiment: run and server that it is about, as `run/server`; their names may have more
than one way to be put together to its own."""
FEWEST_REPETITIONS = 5
"""Below that an interval is so wide that hardly anything is confirmed or refuted."""


class Resource(StrEnum):
    """A resource of a server, or what a tier gives to it alone; named as the fields in the spec."""

    DATABASE_CONNECTIONS = "databaseConnections"
    THREADS = "threads"
    WORKERS = "workers"
    CPU = "cpu"
    MEMORY = "memory"
    POSTGRES_CPU = "postgres.cpu"
    PGBOUNCER_CPU = "pgbouncer.cpu"
    HAPROXY_CPU = "haproxy.cpu"
    UPSTREAM_LATENCY = "upstream.latency"
    POOL_SIZE = "pgbouncer.poolSize"
    MAX_CONNECTIONS = "haproxy.maxConnections"


TIER_CPU = {
    Resource.POSTGRES_CPU: "postgres",
    Resource.PGBOUNCER_CPU: "pgbouncer",
    Resource.HAPROXY_CPU: "haproxy",
}
"""Resources that are changed in a pod that stands, and of which tier."""
