"""What the tiers said of the window of one trial: who waited for whom."""

from __future__ import annotations

from pydantic import Field

from laptime.api.base import TolerantModel


class ProxyEvidence(TolerantModel):
    """HAProxy, in front of the server of the trial. Means over the window."""

    queue_mean: float = Field(description="Requests that wait for a free connection.")
    queue_max: float
    sessions_mean: float = Field(description="Requests that are at the server.")
    sessions_max: float
    idle_share: float | None = Field(None, description="Share of its own time without work.")


class PoolEvidence(TolerantModel):
    """PgBouncer. Means over the window."""

    pool_size: int | None = None
    active_mean: float = Field(description="Connections to Postgres that are in use.")
    active_max: float
    waiting_mean: float = Field(description="Clients that wait for a connection.")
    waiting_max: float
    wait_seconds: float | None = Field(None, description="Time that clients waited, summed.")
    queries: float | None = None


class DatabaseEvidence(TolerantModel):
    """Postgres. Means over the window."""

    max_connections: int | None = None
    connections_max: float
    active_mean: float = Field(description="Connections that run a statement.")
    on_cpu_mean: float = Field(description="Of these, those that wait for nothing but a CPU.")
    waits: dict[str, float] = Field(
        default_factory=dict, description="Of the others, by what they wait for: `Type:Event`."
    )
    statements: float | None = None
    statement_seconds: float | None = Field(None, description="Time spent in statements, summed.")


class TierEvidence(TolerantModel):
    """Each tier of which Prometheus has samples in the window."""

    proxy: ProxyEvidence | None = None
    pool: PoolEvidence | None = None
    database: DatabaseEvidence | None = None
