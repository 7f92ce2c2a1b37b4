"""A script's files in the generator's pod: of ConfigMaps that the run keeps, or of an image."""

from __future__ import annotations

from laptime.api.script_load import SCRIPT_FOLDER, ScriptLoad
from laptime.manifests.context import RunContext
from laptime.manifests.image_files import (
    FILES_FOLDER,
    Copying,
    copying_containers,
    copying_volumes,
)
from laptime.manifests.kept_scripts import kept_script_name
from laptime.manifests.objects import Manifest

SCRIPT_CONTAINER = "script"
"""Copies the files; it is of the author's image."""

_FILES = "scripts"


def script_image_containers(
    ctx: RunContext, script: ScriptLoad, resources: Manifest
) -> list[Manifest]:
    """Return the init containers that copy the files of a script's image into its volume."""
    if script.image is None:
        return []
    words = (script.folder or SCRIPT_FOLDER, FILES_FOLDER, script.key)
    copying = Copying(SCRIPT_CONTAINER, script.image, words)
    return copying_containers(ctx, [copying], _FILES, resources)


def script_volumes(ctx: RunContext, script: ScriptLoad) -> list[Manifest]:
    """Return the volume with the script and the files beside it, and what it takes to fill it."""
    if script.image is not None:
        return copying_volumes(_FILES)
    kept = [kept_script_name(ctx.name, name) for name in script.config_maps]
    sources: list[Manifest] = [{"configMap": {"name": name}} for name in kept]
    if len(sources) == 1:
        return [{"name": _FILES, **sources[0]}]
    return [{"name": _FILES, "projected": {"sources": sources}}]
