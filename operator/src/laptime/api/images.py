"""The images of a run: which it was begun with, and which bits ran."""

from __future__ import annotations

import re

from pydantic import Field

from laptime.api.base import TolerantModel

AND = " and "
"""Between the images of a part that has several."""

_TAG = re.compile(r":[^:/]+\Z")
_CONFIGURED = re.compile(r"(?:docker://)?sha256:")
# What `ctr images import --digests` calls it, as kind has it do.
_IMPORTED = re.compile(r"(?:^|/)import-\d{4}-\d\d-\d\d@")


def bits(image: str) -> frozenset[str]:
    """Return the digests in what a trial says of a part's image, or of its images.

    Before the digest a kubelet says one of the names that its node has for these bits, which may
    be another one on another node, or once somebody else has pulled them.
    """
    return frozenset(one.rpartition("@")[2] for one in image.split(AND))


def by_its_digest(image: str) -> bool:
    """Return whether a reference names an image by its digest, so that it is the same for ever."""
    return "@" in image


def brought_by_hand(image_id: str) -> bool:
    """Return whether an image was loaded into its node, and not pulled by it.

    containerd and Docker then say the hash of its configuration, or a name that the loading has
    made up. What CRI-O says without a digest says nothing of that.
    """
    return _CONFIGURED.match(image_id) is not None or _IMPORTED.search(image_id) is not None


def comparable(one: str, other: str) -> bool:
    """Return whether what two kubelets say of images are hashes of the same kind.

    A node that pulled an image says another one than one into which it was loaded.
    """
    return by_its_digest(one) == by_its_digest(other)


def by_digest(image: str, image_id: str) -> str | None:
    """Return an image that is named by a tag, by the digest that a kubelet says of it.

    In the repository that it is named with, since nobody knows whether another one has that digest.
    None: the kubelet says none of that repository.
    """
    name = image if _TAG.search(image) is None else image.rpartition(":")[0]
    known, _, digest = image_id.rpartition("://")[2].rpartition("@")
    return f"{name}@{digest}" if known and _whole(known) == _whole(name) else None


def _whole(repository: str) -> str:
    """Return the name of a repository as container runtimes write it, with its registry."""
    first, _, rest = repository.partition("/")
    if not rest or not (first == "localhost" or "." in first or ":" in first):
        first, rest = "docker.io", repository
    if first in ("docker.io", "index.docker.io"):
        return f"docker.io/{rest if '/' in rest else f'library/{rest}'}"
    return f"{first}/{rest}"


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
