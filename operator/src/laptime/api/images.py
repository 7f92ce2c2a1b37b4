"""The images of a run: which it was begun with, and which bits ran."""

from __future__ import annotations

from pydantic import Field

from laptime.api.base import TolerantModel


class RunImages(TolerantModel):
    """References of the images that a run was begun with: it has no others until its end."""

    postgres: str
    pgbouncer: str
    haproxy: str
    generator: str
    operator: str = Field(description="Of the pods that check answers and ask for profiles.")
    servers: dict[str, str] = Field(
        default_factory=dict, description="Of the presets of the run, by their name."
    )
    exporter: str | None = Field(None, description="What watches Postgres and PgBouncer.")
    upstream: str | None = None
    delay: str | None = None
