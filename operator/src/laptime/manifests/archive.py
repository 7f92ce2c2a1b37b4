"""The archive of a run that is over: one ConfigMap, and more where it does not fit into one.

Here are the objects; what is in an archive is in report/archive.py. The first object is called
`<run>-results`. It names the others, the parts, which have the same label as no other object of a
run: a version of Laptime that does not know archives does not see them, and so deletes none. The
name of a part ends in a hash of its content, so that it says whether it is the one that is meant.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from laptime.api import GROUP
from laptime.api.storage import VERSION_ANNOTATION, check_version
from laptime.api.text import shown
from laptime.manifests.context import RunContext
from laptime.manifests.objects import RUN_LABEL, Component, Manifest, known_as
from laptime.manifests.result import results_name

ARCHIVE_KEY = "archive.xz"
ARCHIVE_LABEL = f"{GROUP}/archive-of"
"""On the parts of an archive: the uid of the run."""
RETRY_ANNOTATION = f"{GROUP}/retry"
"""On the archive: how often failed trials had been asked for again when it was written."""
PARTS_ANNOTATION = f"{GROUP}/archive-parts"
_README_KEY = "README"
_README = (
    "Everything that was measured: kubectl laptime report {name} -n {namespace}\n"
    "Without it: base64 -d | xz -d gives a line of JSON with results.json, and then what each "
    "trial had stored.\n"
)
_DIGITS = 16
MAX_PART_BYTES = 800_000
"""An object of the API server may have 1 MiB in all."""


class ArchiveError(ValueError):
    """An archive is not whole, or is none; the message says what is wrong."""


def archive_config_maps(ctx: RunContext, packed: bytes) -> tuple[Manifest, list[Manifest]]:
    """Return the ConfigMap of an archive, and its parts, which have to be there before it."""
    first, *rest = [
        packed[start : start + MAX_PART_BYTES] for start in range(0, len(packed), MAX_PART_BYTES)
    ]
    parts = [_part(ctx, content) for content in rest]
    head = ctx.manifest(
        "v1",
        "ConfigMap",
        results_name(ctx.name),
        ctx.labels(Component.RESULT),
        data={_README_KEY: _README.format(name=ctx.name, namespace=ctx.namespace)},
        binaryData={ARCHIVE_KEY: base64.b64encode(first).decode()},
    )
    annotations = head["metadata"]["annotations"]
    annotations[VERSION_ANNOTATION] = str(ctx.stored_version)
    annotations[PARTS_ANNOTATION] = " ".join(part["metadata"]["name"] for part in parts)
    return head, parts


def _part(ctx: RunContext, content: bytes) -> Manifest:
    labels = {
        "app.kubernetes.io/managed-by": "laptime",
        "app.kubernetes.io/part-of": ctx.name,
        RUN_LABEL: ctx.name,
        ARCHIVE_LABEL: ctx.uid,
    }
    return ctx.manifest(
        "v1",
        "ConfigMap",
        f"{results_name(ctx.name)}-{_digest(content)}",
        labels,
        immutable=True,
        binaryData={ARCHIVE_KEY: base64.b64encode(content).decode()},
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def is_archive(manifest: Mapping[str, Any]) -> bool:
    """Whether a ConfigMap with a run's results is an archive; version 1 wrote its files plainly."""
    return ARCHIVE_KEY in (manifest.get("binaryData") or {})


def archive_parts(head: Mapping[str, Any]) -> list[str]:
    """Return the names of the parts of an archive.

    Raises:
        ArchiveError: they are none, and may be those of anything else.
        StoredByNewerVersion: this version cannot read it.
    """
    metadata = head["metadata"]
    check_version(f"ConfigMap {metadata['name']}", metadata)
    named = str((metadata.get("annotations") or {}).get(PARTS_ANNOTATION, "")).split()
    parts = re.compile(rf"{re.escape(known_as(metadata))}-[0-9a-f]{{{_DIGITS}}}")
    for name in named:
        if not parts.fullmatch(name):
            raise ArchiveError(f"{shown(name)} is no name of a part of {metadata['name']}")
    return named


def joined(head: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any] | None]) -> bytes:
    """Return the archive that a ConfigMap and its parts, by name, hold.

    Raises:
        ArchiveError: a part is missing, or is not what it was.
    """
    whole = bytearray(_content(head))
    for name in archive_parts(head):
        part = parts.get(name)
        if part is None:
            raise ArchiveError(f"ConfigMap {name}, a part of the archive, is missing")
        content = _content(part)
        if not name.endswith(f"-{_digest(content)}"):
            raise ArchiveError(f"ConfigMap {name}, a part of the archive, was changed")
        whole += content
    return bytes(whole)


def is_part(name: str, manifest: Mapping[str, Any]) -> bool:
    """Whether a ConfigMap holds what the part of this name does, whoever made it."""
    try:
        return name.endswith(f"-{_digest(_content(manifest))}")
    except ArchiveError:
        return False


def _content(manifest: Mapping[str, Any]) -> bytes:
    text = (manifest.get("binaryData") or {}).get(ARCHIVE_KEY, "")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        name = manifest["metadata"]["name"]
        raise ArchiveError(f"ConfigMap {name} holds no archive: {error}") from None
