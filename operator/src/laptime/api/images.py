"""The images of a run: which it was begun with, and which bits ran."""

from __future__ import annotations

from pydantic import Field

from laptime.api.base import TolerantModel

AND = " and "
"""Between the images of a part that has several."""


def bits(image: str) -> frozenset[str]:
    """Return the digests in what a trial says of a part's image, or of its images.

    Before the digest a kubelet says one of the names that its node has for these bits, which may
    be another one on another node, or once somebody else has pulled them.
    """
    return frozenset(one.rpartition("@")[2] for one in image.split(AND))


class RunImages(TolerantModel):
    """References of the images that a run was begun with: it has no others until its end."""

    postgres: str = Field(description="Of Postgres, and of what resets it for a script.")
    pgbouncer: str = Field(description="Of PgBouncer.")
    haproxy: str = Field(description="Of HAProxy.")
    generator: str = Field(description="Of what sends the load.")
    operator: str = Field(description="Of the pods that check answers and ask for profiles.")
    servers: dict[str, str] = Field(
        default_factory=dict, description="Of the presets of the run, by their name."
    )
    exporter: str | None = Field(None, description="Of what watches Postgres and PgBouncer.")
    upstream: str | None = Field(None, description="Of the upstream.")
    delay: str | None = Field(None, description="Of what makes a network longer.")
