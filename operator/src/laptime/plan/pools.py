"""The pools that servers have in the PgBouncer of a run. Pure."""

from __future__ import annotations

from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.topology import PgBouncer, PoolMode

DATABASE = "laptime"
"""Name of a run's database, and of the pool of servers without settings of their own."""
SPARE_CONNECTIONS = 10
"""What Postgres keeps for the exporter, for checks and resets, and some to spare."""


def pool_name(spec: BenchmarkRunSpec, server: Server) -> str:
    """Return by which name of a database a server asks PgBouncer, and so which pool it has.

    Servers with the same settings share a pool, as all without any of their own do: they are
    measured one at a time.
    """
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


def connections_needed(spec: BenchmarkRunSpec) -> int:
    """Return how many connections Postgres has to take for all pools; 0: it is fine with one.

    Each pool keeps the connections that it has made, so those of all servers are there in the end,
    beside Laptime's own. A single pool that is full stands back while Laptime asks.
    """
    sizes = pool_sizes(spec)
    return sum(sizes.values()) + SPARE_CONNECTIONS if len(sizes) > 1 else 0
