"""What the tiers said of the window of one trial: who waited for whom."""

from __future__ import annotations

from pydantic import Field

from laptime.api.base import Reading, TolerantModel


class ProxyEvidence(TolerantModel):
    """HAProxy, in front of the server of the trial. Means over the window."""

    queue_mean: Reading = Field(description="Requests that wait for a free connection.")
    queue_max: Reading
    sessions_mean: Reading = Field(description="Requests that are at the server.")
    sessions_max: Reading
    idle_share: Reading | None = Field(None, description="Share of its own time without work.")


class PoolEvidence(TolerantModel):
    """PgBouncer. Means over the window."""

    pool_size: int | None = None
    active_mean: Reading = Field(description="Connections to Postgres that are in use.")
    active_max: Reading
    waiting_mean: Reading = Field(description="Clients that wait for a connection.")
    waiting_max: Reading
    wait_seconds: Reading | None = Field(None, description="Time that clients waited, summed.")
    queries: Reading | None = None


class DatabaseEvidence(TolerantModel):
    """Postgres. Means over the window."""

    max_connections: int | None = None
    connections_max: Reading
    active_mean: Reading = Field(description="Connections that run a statement.")
    on_cpu_mean: Reading = Field(description="Of these, those that wait for nothing but a CPU.")
    idle_in_transaction_mean: Reading | None = Field(
        None,
        description="Connections with a transaction open that wait for the server's next "
        "statement. None in results of versions that did not read it.",
    )
    waits: dict[str, Reading] = Field(
        default_factory=dict, description="Of the others, by what they wait for: `Type:Event`."
    )
    statements: Reading | None = None
    statement_seconds: Reading | None = Field(None, description="Time spent in statements, summed.")


class TierEvidence(TolerantModel):
    """Each tier of which Prometheus has samples in the window."""

    proxy: ProxyEvidence | None = None
    pool: PoolEvidence | None = None
    database: DatabaseEvidence | None = None
