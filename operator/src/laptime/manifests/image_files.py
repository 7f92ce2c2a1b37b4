"""Files of an image of the author's: they are copied into a pod of ours, nothing of it runs.

An image of files need not have a program in it that could copy them, so one of Laptime's is put
beside them first (docs/decisions/0049-a-script-in-an-image.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laptime.manifests.context import RunContext
from laptime.manifests.objects import Manifest
from laptime.manifests.pods import container

CARRIER_CONTAINER = "carrier"
"""Brings the program that copies; it is of the generator's image."""

FILES_FOLDER = "/laptime-files"
"""Where a container that copies has the volume for the files."""

_CARRY = "/usr/local/bin/carry"
_CARRIER_FOLDER, _CARRIER = "/laptime-carrier", "carrier"
# The folder of the files may not be filled by more than what carry itself allows.
_MOST_FILES, _MOST_CARRIER = "1100Mi", "16Mi"


@dataclass(frozen=True)
class Copying:
    """A container that copies files of an image, which is its own."""

    name: str
    image: str
    words: Sequence[str]
    """What carry is told (images/k6/carry)."""


def copying_containers(
    ctx: RunContext, copying: Sequence[Copying], volume: str, resources: Manifest
) -> list[Manifest]:
    """Return the init containers that copy files of images into a volume; none for no images."""
    if not copying:
        return []
    carrier = container(
        ctx,
        CARRIER_CONTAINER,
        ctx.images.generator,
        resources=resources,
        command=[_CARRY],
        args=["--self", f"{_CARRIER_FOLDER}/carry"],
        mounts={_CARRIER_FOLDER: _CARRIER},
    )
    return [carrier, *(_container(ctx, one, volume, resources) for one in copying)]


def copying_volumes(volume: str) -> list[Manifest]:
    """Return the volume that files of images are copied into, and what it takes to fill it."""
    return [
        {"name": _CARRIER, "emptyDir": {"sizeLimit": _MOST_CARRIER}},
        {"name": volume, "emptyDir": {"sizeLimit": _MOST_FILES}},
    ]


def _container(ctx: RunContext, one: Copying, volume: str, resources: Manifest) -> Manifest:
    copying = container(
        ctx,
        one.name,
        one.image,
        resources=resources,
        command=[f"{_CARRIER_FOLDER}/carry"],
        args=one.words,
    )
    # It has no /tmp, which the other containers have as their home, and changes no program.
    copying["volumeMounts"] = [
        {"name": _CARRIER, "mountPath": _CARRIER_FOLDER, "readOnly": True},
        {"name": volume, "mountPath": FILES_FOLDER},
    ]
    # The image may name a folder to start in that its user cannot enter.
    return {**copying, "workingDir": "/"}
