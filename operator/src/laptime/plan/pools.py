"""The databases that servers have in Postgres, and their connections to them. Pure."""

from __future__ import annotations

from collections.abc import Callable

from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.topology import PgBouncer, PoolMode
from laptime.catalog import processes_of

DATABASE = "laptime"
"""Name of a run's database, and of the pool of servers without anything of their own."""
OWN_CONNECTIONS = 10
"""What Postgres has beside `maxConnections`: for the exporter, for checks, resets and counts of
statements, and some to spare."""


def database_name(spec: BenchmarkRunSpec, server: Server) -> str:
    """Return the database in Postgres that a server has: the run's, or a copy of its own."""
    if not spec.topology.own_databases or not server.deployed:
        return DATABASE
    # PgBouncer takes no '-' as it is. No server has a '_' in its name, nor a digit at its
    # beginning, as a pool of some size has: no two names are the same.
    return f"{DATABASE}_{server.name.replace('-', '_')}"


def copied_databases(spec: BenchmarkRunSpec) -> list[str]:
    """Return the copies of the run's database that there are, in the order of the servers."""
    if not spec.topology.own_databases:
        return []
    return [database_name(spec, server) for server in spec.deployed]


def pool_name(spec: BenchmarkRunSpec, server: Server) -> str:
    """Return by which name of a database a server asks, and so which pool PgBouncer has for it.

    Servers with the same settings share a pool, as all without any of their own do: they are
    measured one at a time. A database of its own has a pool of its own.
    """
    if (database := database_name(spec, server)) != DATABASE:
        return database
    run, own = spec.topology.pgbouncer, spec.topology_of(server).pgbouncer
    if own is None or run is None or _of_pool(own) == _of_pool(run):
        return DATABASE
    return f"{DATABASE}_{own.pool_size}_{own.pool_mode}"


def _of_pool(tier: PgBouncer) -> tuple[int, PoolMode]:
    """Return what a pool differs in; the CPU is PgBouncer's own."""
    return tier.pool_size, tier.pool_mode


def pool_sizes(spec: BenchmarkRunSpec) -> dict[str, int]:
    """Return how many connections each pool may have, by name: those that some server uses."""
    found = {}
    for server in spec.deployed:
        tier = spec.topology_of(server).pgbouncer
        if tier is not None:
            found[pool_name(spec, server)] = tier.pool_size
    return found


def server_connections(server: Server) -> int:
    """Return how many connections the pools of a server may have open, all processes together."""
    return processes_of(server) * server.database_connections


def known_connections(server: Server) -> int:
    """Return how many of these it has for sure: workers of an image may be threads of one pool."""
    return server_connections(server) if server.preset else server.database_connections


def connections_needed(
    spec: BenchmarkRunSpec, of: Callable[[Server], int] = server_connections
) -> int:
    """Return how many connections Postgres has to take, beside Laptime's own.

    Each pool of PgBouncer keeps the connections that it has made, so those of all servers are there
    in the end. Without it they are those of the largest server: one is measured at a time.
    """
    if spec.topology.pgbouncer is not None:
        return sum(pool_sizes(spec).values())
    return max(map(of, spec.deployed), default=0)


def most_connections(spec: BenchmarkRunSpec) -> int:
    """Return how many connections the Postgres of a run takes, all that there may be.

    Those of the spec are the servers'. Laptime's own are taken from nobody, and it finds some when
    the servers have all of theirs. The pod of a trial begins while that of the trial before ends,
    and may open its whole pool at once: for those of the other there is as much again.
    """
    postgres = spec.topology.postgres
    most = 0 if postgres is None else postgres.max_connections
    before = 0 if spec.topology.pgbouncer is not None else min(most, connections_needed(spec))
    return most + before + OWN_CONNECTIONS
