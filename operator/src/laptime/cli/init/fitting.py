"""Makes what `laptime init` has made small enough for a scenario. Pure."""

from __future__ import annotations

import json

from laptime.catalog.problems import MAX_SENT_BYTES
from laptime.cli.init.translation import Document

_ROOM = 0.9
"""What names and separators take beside the checks themselves."""


def fit_into(spec: Document, left_out: list[str]) -> None:
    """Take the largest JSON schemas out of checks until all of them have room in a pod's variable.

    What was taken out is named in `left_out`.
    """
    checks = spec["checks"]
    while sum(map(_bytes, checks)) > _ROOM * MAX_SENT_BYTES:
        large = max((one for one in checks if "jsonSchema" in one), key=_bytes, default=None)
        if large is None:
            return
        del large["jsonSchema"]
        left_out.append(
            f"checks.{large['name']}.jsonSchema: all schemas together are larger than "
            f"{MAX_SENT_BYTES} bytes: write what matters of it"
        )


def _bytes(check: Document) -> int:
    text = json.dumps(check)
    return len(text.encode()) + text.count("$")
