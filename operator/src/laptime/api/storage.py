"""The version of what is stored: in the status of a run, and in the ConfigMaps with its results.

What carries none is of version 1. Version 2 folds the results of a run that is over into an archive
(docs/decisions/0011). Version 3 has the rule of the order of trials in the status: an older one
would go on with another order (docs/decisions/0053). Version 4 is that of a run which says `nodes`
or is in a lane, which an older one would measure elsewhere (docs/decisions/0060, 0061). Version 5
is that of a run whose servers are measured at the same time, which an older one would measure one
after the other (docs/decisions/0078). Version 6 is that of a run whose servers have a database
each, which an older one would have them share (docs/decisions/0083). All others stay at 3. A
version of Laptime reads what it knows, and leaves alone what it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from laptime.api import GROUP
from laptime.api.base import TolerantModel

STORED_VERSION = 6
"""The newest one that is read."""
DUET_VERSION = 5
"""What is written of a run whose servers are measured at the same time."""
PLACED_VERSION = 4
"""What is written of a run that says `nodes` or is in a lane."""
USUAL_VERSION = 3
"""What is written of a run that has nothing of a later one."""
VERSION_ANNOTATION = f"{GROUP}/stored-version"


class StoredByNewerVersion(ValueError):
    """A newer version of Laptime stored this: it cannot be read, and must not be changed."""

    def __init__(self, what: str, version: int) -> None:
        super().__init__(
            f"{what} is stored in the form of version {version}, this version of Laptime reads 1 "
            f"to {STORED_VERSION}: use the version that wrote it"
        )


class Storage(TolerantModel):
    """How a run and its results are stored."""

    version: int = Field(1, description="Version of the form in which they are stored.")
    folded: bool | None = Field(
        None,
        description="Of a run that is over: whether everything that was measured is in its "
        "archive alone, and the ConfigMaps of single trials are gone.",
    )
    bytes: int | None = Field(
        None, description="Of a run that is folded: what its archive needs in the cluster."
    )


def version_to_store(known: Storage | None) -> int:
    """Return the version of what is stored next of a run: none is older than what there is."""
    return max(USUAL_VERSION, known.version if known is not None else 0)


def check_version(what: str, metadata: Mapping[str, Any]) -> None:
    """Raise StoredByNewerVersion if an object with results, by its metadata, cannot be read."""
    text = (metadata.get("annotations") or {}).get(VERSION_ANNOTATION, "1")
    if text.isdecimal() and int(text) > STORED_VERSION:
        raise StoredByNewerVersion(what, int(text))
