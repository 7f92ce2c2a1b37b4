"""What the operator has asked of the API server, by the API server's audit log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class Request:
    """A request that the API server has received."""

    at: float
    """Unix time."""
    verb: str
    kind: str
    """Resource and subresource, such as `pods/log`."""


def requests(path: Path, begin: float, end: float) -> list[Request]:
    """Return the requests that came between two Unix times; a watch counts when it begins."""
    return [one for one in _read(path) if begin <= one.at < end]


def _read(path: Path) -> Iterator[Request]:
    seen: set[str] = set()
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry["auditID"] in seen:
                # A watch has a line when it begins and one when it ends.
                continue
            seen.add(entry["auditID"])
            what = entry.get("objectRef") or {}
            kind = "/".join(filter(None, (what.get("resource", "?"), what.get("subresource"))))
            at = datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp()
            yield Request(at, entry["verb"], kind)


def by_kind(asked: list[Request]) -> Counter[str]:
    """Return how many there are of each verb and kind."""
    return Counter(f"{one.verb} {one.kind}" for one in asked)


def writes(asked: list[Request]) -> list[Request]:
    """Return those that change something."""
    return [one for one in asked if one.verb in WRITES]
