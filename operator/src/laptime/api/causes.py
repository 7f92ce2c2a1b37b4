"""What can limit a server under a load: the answer to "why no more than that?"."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from laptime.api.base import TolerantModel


class Cause(StrEnum):
    """What held the throughput of a trial down."""

    SERVER_CPU = "serverCpu"
    SERVER_CONCURRENCY = "serverConcurrency"
    UNEVEN_WORKERS = "unevenWorkers"
    """One worker of a server is full, while others have room for what waits for it."""
    SERVER_MEMORY = "serverMemory"
    """The pod of the server waits for room in memory, or for pages that were given up there."""
    SERVER_DISK = "serverDisk"
    """The pod of the server waits for a disk."""
    PGBOUNCER_POOL = "pgbouncerPool"
    DATABASE_CONNECTIONS = "databaseConnections"
    POSTGRES_CPU = "postgresCpu"
    POSTGRES_LOCKS = "postgresLocks"
    """Statements wait for each other: for rows, transactions, or Postgres' own structures."""
    POSTGRES_IO = "postgresIo"
    """Statements wait for files to be read or written, the write-ahead log apart."""
    POSTGRES_WAL = "postgresWal"
    """Statements wait for the write-ahead log to be written or flushed: commits."""
    PGBOUNCER_CPU = "pgbouncerCpu"
    HAPROXY_CAP = "haproxyCap"
    HAPROXY_CPU = "haproxyCpu"
    UPSTREAM = "upstream"
    SERVICE_CPU = "serviceCpu"
    """Of a service that the scenario has around the servers; the evidence names it."""
    NETWORK = "network"
    """Between the nodes of generator and server; the evidence says which way."""
    GENERATOR = "generator"
    NODE = "node"
    OFFERED_LOAD = "offeredLoad"
    """Nothing: what was sent was answered in time, and more was not sent."""
    UNKNOWN = "unknown"


class LimitedBy(TolerantModel):
    """What seems to have limited a trial, or a server under a load, and what says so.

    A suspicion from readings: only a trial with more of this, and of nothing else, would prove it.
    """

    cause: Cause
    evidence: str = Field(description="The readings that say so, in a sentence with figures.")
    also: list[Cause] = Field(
        default_factory=list, description="What was close to its limit too, nearest first."
    )
