"""A script that is in an image: its files are copied into the generator's pod, nothing of it runs.

An image of files need not have a program in it that could copy them, so one of Laptime's is put
beside them first (docs/decisions/0049-a-script-in-an-image.md).
"""

from __future__ import annotations

from laptime.api.script_load import SCRIPT_FOLDER, ScriptLoad
from laptime.manifests.context import Manifest, RunContext
from laptime.manifests.pods import container, resources

SCRIPT_CONTAINER = "script"
"""Copies the files; it is of the author's image."""
CARRIER_CONTAINER = "carrier"
"""Brings the program that does so; it is of the generator's image."""

_CARRY = "/usr/local/bin/carry"
_CARRIER_FOLDER, _FILES_FOLDER = "/laptime-carrier", "/laptime-files"
_CARRIER, _FILES = "carrier", "scripts"
# The folder of the files may not be filled by more than what carry itself allows.
_MOST_FILES, _MOST_CARRIER = "1100Mi", "16Mi"


def script_image_containers(ctx: RunContext, script: ScriptLoad) -> list[Manifest]:
    """Return the init containers that copy the files of a script's image into its volume."""
    if script.image is None:
        return []
    small = resources(None, cpu="10m", memory="32Mi")
    copying = container(
        ctx,
        SCRIPT_CONTAINER,
        script.image,
        resources=small,
        command=[f"{_CARRIER_FOLDER}/carry"],
        args=[script.folder or SCRIPT_FOLDER, _FILES_FOLDER, script.key],
    )
    # It has no /tmp, which the other containers have as their home, and changes no program.
    copying["volumeMounts"] = [
        {"name": _CARRIER, "mountPath": _CARRIER_FOLDER, "readOnly": True},
        {"name": _FILES, "mountPath": _FILES_FOLDER},
    ]
    return [
        container(
            ctx,
            CARRIER_CONTAINER,
            ctx.images.generator,
            resources=small,
            command=[_CARRY],
            args=["--self", f"{_CARRIER_FOLDER}/carry"],
            mounts={_CARRIER_FOLDER: _CARRIER},
        ),
        # The image may name a folder to start in that its user cannot enter.
        {**copying, "workingDir": "/"},
    ]


def script_volumes(script: ScriptLoad) -> list[Manifest]:
    """Return the volume with the script and the files beside it, and what it takes to fill it."""
    if script.image is not None:
        return [
            {"name": _CARRIER, "emptyDir": {"sizeLimit": _MOST_CARRIER}},
            {"name": _FILES, "emptyDir": {"sizeLimit": _MOST_FILES}},
        ]
    sources: list[Manifest] = [{"configMap": {"name": name}} for name in script.config_maps]
    if len(sources) == 1:
        return [{"name": _FILES, **sources[0]}]
    return [{"name": _FILES, "projected": {"sources": sources}}]
