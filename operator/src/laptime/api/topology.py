"""The tiers around the servers under test."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ConfigDict, Field

from laptime.api.base import Model, rule, rules
from laptime.api.durations import DelayDuration, LatencyDuration, parse_duration
from laptime.api.resources import CPU_RULE, Quantity, Resources

MOST_CONNECTIONS = 10000
"""Of a Postgres."""
SIZED_TIERS = {"postgres": "Postgres", "pgbouncer": "PgBouncer", "haproxy": "HAProxy"}
"""Tiers whose CPU can be another one for each server, with what they are called."""
MIN_UPSTREAM_BYTES = 600
"""One user of the upstream's answer fits into that."""


class PoolMode(StrEnum):
    """PgBouncer's pool modes."""

    SESSION = "session"
    TRANSACTION = "transaction"
    STATEMENT = "statement"


class Databases(StrEnum):
    """Whose the databases in the Postgres of a run are."""

    SHARED = "shared"
    """All servers have the same one."""
    PER_SERVER = "perServer"
    """Each server has a copy: what it changes of the schema, no other one has."""


class Postgres(Model):
    """The Postgres of a run."""

    max_connections: int = Field(
        100,
        description="Most connections of a server, or of all pools of PgBouncer; Postgres takes 10 "
        "more, which are Laptime's own, and without PgBouncer those of the largest server a second "
        "time, for a pod that ends while the next one begins.",
        ge=10,
        le=MOST_CONNECTIONS,
    )
    databases: Databases | None = Field(
        None,
        description="shared, or left out: all servers have the same database. perServer: each has "
        "a copy of its own of what the scenario makes, for servers that migrate the schema as they "
        "start. The rows are on the disk once for each server, and once more.",
    )
    resources: Resources | None = Field(None, description="CPU and memory of its pod.")


class PgBouncer(Model):
    """The PgBouncer of a run, between the servers and Postgres."""

    pool_mode: PoolMode = Field(
        PoolMode.TRANSACTION, description="When a connection is given back."
    )
    pool_size: int = Field(
        25, description="Connections to Postgres (default_pool_size).", ge=1, le=9999
    )
    resources: Resources | None = Field(None, description="CPU and memory of its pod.")


class HAProxy(Model):
    """The HAProxy of a run, between the generator and the servers."""

    max_connections: int | None = Field(
        None,
        description="Most concurrent requests that it passes to a server; more wait in its queue.",
        ge=1,
        le=100000,
    )
    resources: Resources | None = Field(None, description="CPU and memory of its pod.")


def _own_cpu(tier: str) -> str:
    return (
        "CPU cores of its pod, such as 500m or 2; for the others as many as "
        f"topology.{tier}.resources.cpu says. Changed between trials, without a restart."
    )


class OwnPostgres(Model):
    """What Postgres has for one server otherwise than for the others."""

    model_config = ConfigDict(json_schema_extra=rules(CPU_RULE))
    cpu: Quantity = Field(description=_own_cpu("postgres"))


class OwnPgBouncer(Model):
    """What PgBouncer does for one server otherwise than for the others."""

    model_config = ConfigDict(json_schema_extra=rules(CPU_RULE))
    pool_mode: PoolMode | None = Field(
        None, description="When a connection is given back; left out: as topology.pgbouncer says."
    )
    pool_size: int | None = Field(
        None,
        description="Connections to Postgres; left out: as many as topology.pgbouncer says.",
        ge=1,
        le=9999,
    )
    cpu: Quantity | None = Field(None, description=_own_cpu("pgbouncer"))


class OwnHAProxy(Model):
    """What HAProxy does for one server otherwise than for the others."""

    model_config = ConfigDict(json_schema_extra=rules(CPU_RULE))
    max_connections: int | None = Field(
        None,
        description="Most concurrent requests that it passes to the server; left out: as many as "
        "topology.haproxy says.",
        ge=1,
        le=100000,
    )
    cpu: Quantity | None = Field(
        None,
        description=f"{_own_cpu('haproxy')} Its threads stay: for all servers as many as the most "
        "CPU of any asks for.",
    )


class OwnUpstream(Model):
    """How the upstream is for one server otherwise than for the others."""

    latency: LatencyDuration = Field(
        description="How long it takes to answer; to the others as long as topology.upstream says."
    )


class OwnTopology(Model):
    """What the tiers of a run do for one server otherwise than for the others."""

    postgres: OwnPostgres | None = Field(None, description="A limit of CPU of its own in Postgres.")
    pgbouncer: OwnPgBouncer | None = Field(
        None, description="A pool, or a limit of CPU, of its own in PgBouncer."
    )
    haproxy: OwnHAProxy | None = Field(
        None, description="A cap, or a limit of CPU, of its own in HAProxy."
    )
    upstream: OwnUpstream | None = Field(None, description="A latency of its own of the upstream.")

    def cpu_of(self, tier: str) -> str | None:
        """Return the CPU that one of `SIZED_TIERS` has for this server alone, or None."""
        own: OwnPostgres | OwnPgBouncer | OwnHAProxy | None = getattr(self, tier)
        return own.cpu if own is not None else None


class Database(StrEnum):
    """Where the data of a run are."""

    POSTGRES = "postgres"
    SQLITE = "sqlite"
    NONE = "none"


class Upstream(Model):
    """An HTTP service that the servers ask in turn: a stub that answers JSON after a while."""

    latency: LatencyDuration = Field("50ms", description="How long it takes to answer.")
    bytes: int = Field(
        5645, description="Size of its answer in bytes.", ge=MIN_UPSTREAM_BYTES, le=1_000_000
    )
    resources: Resources | None = Field(None, description="CPU and memory of its pod.")

    @property
    def latency_seconds(self) -> float:
        """How long it takes to answer, in seconds."""
        return parse_duration(self.latency)


class Delay(Model):
    """A longer network: what is added to every round trip between two tiers."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.servers) || has(self.database)",
                "write where: servers (between generator and servers) or database (between "
                "servers and database)",
            )
        )
    )
    servers: DelayDuration | None = Field(
        None, description="Between the generator and the servers, or the HAProxy before them."
    )
    database: DelayDuration | None = Field(
        None, description="Between the servers and Postgres, or the PgBouncer before it."
    )
    resources: Resources | None = Field(
        None,
        description="CPU and memory of the pod that forwards; with too little it delays more than "
        "is said here.",
    )

    @property
    def servers_milliseconds(self) -> int:
        """What is added to a round trip between the generator and the servers."""
        return _milliseconds(self.servers)

    @property
    def database_milliseconds(self) -> int:
        """What is added to a round trip between the servers and the database."""
        return _milliseconds(self.database)

    @property
    def servers_seconds(self) -> float:
        """What is added to a round trip between the generator and the servers, in seconds."""
        return self.servers_milliseconds / 1000

    @property
    def database_seconds(self) -> float:
        """What is added to a round trip between the servers and the database, in seconds."""
        return self.database_milliseconds / 1000


def _milliseconds(delay: str | None) -> int:
    # Earlier versions took parts of a millisecond too, and added the nearest whole number.
    return round(1000 * parse_duration(delay)) if delay is not None else 0


class Topology(Model):
    """The tiers around the servers; each can be left out."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.pgbouncer) || has(self.postgres)",
                "pgbouncer needs a Postgres behind it: add postgres: {} to the topology, "
                "or leave pgbouncer out",
                ".pgbouncer",
            ),
            rule(
                "!has(self.pgbouncer) || !has(self.postgres) || "
                "self.pgbouncer.poolSize <= self.postgres.maxConnections",
                "pgbouncer.poolSize must not be larger than postgres.maxConnections",
                ".pgbouncer",
            ),
            rule(
                "!has(self.database) || (self.database == 'postgres') == has(self.postgres)",
                "database: postgres goes with postgres: {}, sqlite and none go without it",
                ".database",
            ),
            rule(
                "!has(self.delay) || !has(self.delay.database) || has(self.postgres)",
                "delay.database needs a Postgres behind it: add postgres: {} to the topology",
                ".delay",
            ),
        )
    )
    database: Database | None = Field(
        None,
        description="Where the data are: Postgres, an SQLite file in each server's pod, or "
        "nowhere. Left out: Postgres if there is postgres, else nowhere.",
    )
    postgres: Postgres | None = Field(None, description="Postgres 17; left out: none.")
    pgbouncer: PgBouncer | None = Field(None, description="PgBouncer before Postgres.")
    haproxy: HAProxy | None = Field(None, description="HAProxy before the servers.")
    upstream: Upstream | None = Field(None, description="An HTTP service behind the servers.")
    delay: Delay | None = Field(
        None, description="A longer network between tiers, in whole milliseconds."
    )

    def as_seen_by(self, own: OwnTopology | None) -> Topology:
        """Return the topology as it is for a server with these settings of its own."""
        if own is None:
            return self
        changed: dict[str, Model] = {}
        for name in SIZED_TIERS:
            tier, other = self.tier(name), getattr(own, name)
            if tier is None or other is None:
                continue
            updates = other.model_dump(exclude_none=True, exclude={"cpu"})
            if other.cpu is not None:
                resources = tier.resources or Resources()
                updates["resources"] = resources.model_copy(update={"cpu": other.cpu})
            changed[name] = tier.model_copy(update=updates)
        if own.upstream is not None and self.upstream is not None:
            latency = {"latency": own.upstream.latency}
            changed["upstream"] = self.upstream.model_copy(update=latency)
        return self.model_copy(update=changed)

    def tier(self, name: str) -> Postgres | PgBouncer | HAProxy | None:
        """Return one of `SIZED_TIERS`, or None where there is none."""
        found: Postgres | PgBouncer | HAProxy | None = getattr(self, name)
        return found

    def cpu_of(self, tier: str) -> str | None:
        """Return the limit of CPU of one of `SIZED_TIERS`, or None."""
        found = self.tier(tier)
        return found.resources.cpu if found is not None and found.resources is not None else None

    @property
    def sqlite(self) -> bool:
        """Whether each server has the data in an SQLite file of its own."""
        return self.database is Database.SQLITE

    @property
    def own_databases(self) -> bool:
        """Whether each server has a database of its own in Postgres."""
        postgres = self.postgres
        return postgres is not None and postgres.databases is Databases.PER_SERVER
