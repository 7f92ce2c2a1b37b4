"""Reads the catalogue out of the package data, once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any

import yaml

from laptime.catalog.models import Preset, Scenario

_RESET = "reset.sql"
_ONLY_POSTGRES = ".postgres.sql"
_ONLY_SQLITE = ".sqlite.sql"


@cache
def scenarios() -> Mapping[str, Scenario]:
    """Return all scenarios by name, sorted."""
    folders = sorted(
        (entry for entry in _folders().iterdir() if entry.is_dir()),
        key=lambda entry: entry.name,
    )
    return MappingProxyType({folder.name: _scenario(folder) for folder in folders})


@cache
def presets() -> Mapping[str, Preset]:
    """Return all server presets by name, sorted."""
    found = sorted(
        (
            entry
            for entry in (files(__package__) / "presets").iterdir()
            if entry.name.endswith(".yaml")
        ),
        key=lambda entry: entry.name,
    )
    names = [entry.name.removesuffix(".yaml") for entry in found]
    return MappingProxyType(
        {
            name: Preset.model_validate({"name": name, **_yaml(entry)})
            for name, entry in zip(names, found, strict=True)
        }
    )


def _folders() -> Traversable:
    return files(__package__) / "scenarios"


def _scenario(folder: Traversable) -> Scenario:
    document = _yaml(folder / "scenario.yaml")
    included = [_scenario(_folders() / name) for name in document.pop("includes", [])]
    if included:
        return Scenario.model_validate({"name": folder.name, **_together(included), **document})
    for check in document["checks"]:
        expected_file = check.pop("expectedFile", None)
        if expected_file:
            check["expected"] = json.loads((folder / expected_file).read_text("utf-8"))
    sql = sorted(
        (entry.name, entry.read_text("utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    )
    return Scenario.model_validate(
        {
            "name": folder.name,
            "initSql": [
                (name, text)
                for name, text in sql
                if name != _RESET and not name.endswith(_ONLY_SQLITE)
            ],
            "sqliteSql": _sqlite(sql),
            "resetSql": dict(sql).get(_RESET, ""),
            **document,
        }
    )


def _together(included: list[Scenario]) -> dict[str, Any]:
    """Return what several scenarios are as one."""
    return {
        "needsDatabase": any(one.needs_database for one in included),
        "needsUpstream": any(one.needs_upstream for one in included),
        "initSql": [file for one in included for file in one.init_sql],
        "sqliteSql": [file for one in included for file in one.sqlite_sql],
        "resetSql": "".join(one.reset_sql for one in included),
        "requests": [request for one in included for request in one.requests],
        "checks": [check for one in included for check in one.checks],
    }


def _sqlite(sql: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the files for SQLite: none, unless one says that it is only for SQLite or Postgres."""
    if not any(name.endswith((_ONLY_SQLITE, _ONLY_POSTGRES)) for name, _ in sql):
        return []
    return [
        (name, text) for name, text in sql if name != _RESET and not name.endswith(_ONLY_POSTGRES)
    ]


def _yaml(entry: Traversable) -> dict[str, Any]:
    document = yaml.safe_load(entry.read_text("utf-8"))
    if not isinstance(document, dict):
        raise ValueError(f"{entry.name} is not a mapping")
    return document
