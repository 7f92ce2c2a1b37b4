"""Tables of the scenario's feeders, as files of the generators."""

from __future__ import annotations

import re

from laptime.catalog import Feeder
from laptime.manifests.context import RunContext
from laptime.manifests.objects import Component, Manifest
from laptime.manifests.pods import config_map, config_volume

FOLDER = "/feeders"

_FILE = re.compile(r"[A-Za-z_][-_0-9A-Za-z]*[.]csv")


def feeders_name(ctx: RunContext) -> str:
    """Return the name of the ConfigMap with all tables."""
    return ctx.object_name("feeders")


def feeder_path(feeder: Feeder) -> str:
    """Return where a generator finds the table of a feeder."""
    return f"{FOLDER}/{feeder.name}.csv"


def feeder_objects(ctx: RunContext) -> list[Manifest]:
    """Return the ConfigMap; nothing when no feeder has a table.

    Raises:
        ValueError: a name would be more than a name there.
    """
    files = ctx.scenario.feeder_files
    for name in files:
        if not _FILE.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a feeder's table")
    return [config_map(ctx, Component.FEEDERS, feeders_name(ctx), files)] if files else []


def feeder_volumes(ctx: RunContext) -> list[Manifest]:
    """Return the volume of a generator's pod; nothing when no feeder has a table."""
    names = {name: name for name in ctx.scenario.feeder_files}
    return [config_volume("feeders", feeders_name(ctx), names)] if names else []
