"""What stands for a ConfigMap that cannot be read, so that the rest of its scenario is checked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

_Keys = Collection[tuple[str, str]]
_STATEMENT = "SELECT 1;"
_VALUE = "1"
"""May stand wherever a template wants it."""


def with_stand_ins(
    document: Mapping[str, Any], unread: _Keys
) -> tuple[dict[str, Any], dict[tuple[str, str], str]]:
    """Return a scenario, and texts for what is unread of it, that nothing can be said against.

    Tables have the columns that templates name; how many rows they have does not count.
    """
    texts = dict.fromkeys(unread, _STATEMENT)
    columns: dict[tuple[str, str], dict[str, None]] = {}
    feeders = []
    for feeder in document["spec"].get("feeders") or []:
        key = _key((feeder.get("csv") or {}).get("configMap"))
        if key in texts:
            named = columns.setdefault(key, {})
            named |= dict.fromkeys(_named(feeder["name"], document["spec"]))
            texts[key] = _table(named)
        feeders.append({k: v for k, v in feeder.items() if key not in texts or k != "use"})
    spec = document["spec"] | ({"feeders": feeders} if feeders else {})
    return {**document, "spec": spec}, texts


def _key(config_map: Mapping[str, str] | None) -> tuple[str, str]:
    return (config_map["name"], config_map["key"]) if config_map else ("", "")


def _table(columns: Collection[str]) -> str:
    names = columns or ["unread"]
    return "\n".join([",".join(names), ",".join(_VALUE for _ in names), ""])


def _named(feeder: str, node: Any) -> list[str]:
    """Return the columns of a feeder that templates name, wherever they stand."""
    if isinstance(node, str):
        return re.findall(rf"{{{{\s*{re.escape(feeder)}[.]([A-Za-z_][-_0-9A-Za-z]*)", node)
    if isinstance(node, Mapping):
        return _named(feeder, list(node.values()))
    return [name for one in node for name in _named(feeder, one)] if isinstance(node, list) else []
