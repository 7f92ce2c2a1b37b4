"""Schema and rows that are in images: each file is copied into the pod of Postgres."""

from __future__ import annotations

import re

from laptime.api.names import FILE_NAME
from laptime.catalog import PackedSql
from laptime.manifests.context import RunContext
from laptime.manifests.image_files import (
    FILES_FOLDER,
    Copying,
    copying_containers,
    copying_volumes,
)
from laptime.manifests.objects import Manifest

_FILES = "files"
_CONTAINER = re.compile(r"sql-(schema|seed)-(\d+)")
_FILE = re.compile(f"(/{FILE_NAME})+")


def sql_place(container: str) -> str | None:
    """Return the part of a scenario that a container of Postgres' pod copies; None: none."""
    found = _CONTAINER.fullmatch(container)
    return None if found is None else _place(found[1], int(found[2]))


def sql_image_containers(ctx: RunContext, resources: Manifest) -> list[Manifest]:
    """Return the init containers that copy the files, one for each part that is in an image.

    Raises:
        ValueError: a file is none that an image could have.
    """
    copying = [
        Copying(
            f"sql-{one.what}-{one.index}", one.image, (_file(one), f"{FILES_FOLDER}/{one.name}")
        )
        for one in ctx.scenario.packed_sql
    ]
    return copying_containers(ctx, copying, _FILES, resources)


def sql_image_volumes(ctx: RunContext) -> list[Manifest]:
    """Return the volume with the files, and what it takes to fill it; none where none is."""
    return copying_volumes(_FILES) if ctx.scenario.packed_sql else []


def sql_image_mounts(ctx: RunContext) -> dict[str, str]:
    """Return where Postgres finds the files."""
    return {FILES_FOLDER: _FILES} if ctx.scenario.packed_sql else {}


def stand_ins(ctx: RunContext) -> dict[str, str]:
    """Return the SQL that keeps the place of each part in an image among the others.

    Postgres' entrypoint runs the copied file of the same name instead. Where it does not, no run
    may go on without these rows: the image is of a release that knows of no such files.
    """
    return {
        one.name: f"DO $$ BEGIN RAISE EXCEPTION '{_place(one.what, one.index)} is in an image, and "
        "the image of Postgres did not take it from there: it may be of an earlier release of "
        "Laptime'; END $$;\n"
        for one in ctx.scenario.packed_sql
    }


def _place(what: str, index: int) -> str:
    return f"data.postgres.{what}[{index}]"


def _file(one: PackedSql) -> str:
    if not _FILE.fullmatch(one.file):
        raise ValueError(f"{one.file!r} cannot be a file of an image")
    return one.file
