"""Entries that outlive the process: a JSON line each, oldest first.

Hours of proof are spread over several sittings and several checkouts: the files lie in the cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

E = TypeVar("E")


def append(file: Path, entry: DataclassInstance) -> None:
    """Write an entry at the end; a process that is killed loses none that was written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab+") as lines:
        line = json.dumps(asdict(entry)).encode() + b"\n"
        if lines.tell():
            lines.seek(-1, 2)
            # What was left half written must not take this entry with it.
            line = line if lines.read(1) == b"\n" else b"\n" + line
        lines.write(line)


def entries(file: Path, read: Callable[[dict[str, Any]], E]) -> list[E]:
    """Return all entries, each made by `read` of its fields.

    A line that a killed process left half written is passed over, and one that `read` does not
    know (ValueError, TypeError, KeyError).
    """
    if not file.exists():
        return []
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            found.append(read(json.loads(line)))
        except (ValueError, TypeError, KeyError):
            continue
    return found
