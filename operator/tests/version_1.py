"""A run that version 1 measured and stored, as it stood in the cluster."""

from __future__ import annotations

import json
import lzma
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parent / "fixtures" / "version-1-run.json.xz"


@cache
def _recorded() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(lzma.decompress(_FILE.read_bytes()))["items"]
    return items


def run() -> dict[str, Any]:
    """Return the BenchmarkRun `first`."""
    (found,) = (one for one in _recorded() if one["kind"] == "BenchmarkRun")
    return deepcopy(found)


def single() -> list[dict[str, Any]]:
    """Return the ConfigMaps of its trials."""
    return [deepcopy(one) for one in _recorded() if "-trial-" in one["metadata"]["name"]]


def files() -> dict[str, Any]:
    """Return the ConfigMap with the files of the whole run."""
    (found,) = (one for one in _recorded() if one["metadata"]["name"] == "first-results")
    return deepcopy(found)
