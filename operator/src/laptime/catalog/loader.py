"""Reads the catalogue out of the package data, once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any

import yaml

from laptime.api.server import Server
from laptime.catalog.documents import scenario_of
from laptime.catalog.models import Preset, Scenario


@cache
def scenarios() -> Mapping[str, Scenario]:
    """Return the scenarios that come with Laptime by name, sorted."""
    found = [scenario_of(_yaml(entry), builtin=True) for entry in _entries("scenarios")]
    return MappingProxyType({one.name: one for one in found})


@cache
def presets() -> Mapping[str, Preset]:
    """Return all server presets by name, sorted."""
    named = ((entry.name.removesuffix(".yaml"), _yaml(entry)) for entry in _entries("presets"))
    return MappingProxyType(
        {name: Preset.model_validate({"name": name, **document}) for name, document in named}
    )


def processes_of(server: Server) -> int:
    """Return the processes of a server, each with a pool of its own; of an image its workers."""
    preset = presets().get(server.preset or "")
    return preset.processes_of(server) if preset else server.worker_count


def threads_of(server: Server) -> int | None:
    """Return the threads of a worker process: the run's, else the preset's, else None."""
    preset = presets().get(server.preset or "")
    return preset.threads_of(server) if preset else server.threads


def _entries(folder: str) -> list[Traversable]:
    found = (one for one in (files(__package__) / folder).iterdir() if one.name.endswith(".yaml"))
    return sorted(found, key=lambda entry: entry.name)


def _yaml(entry: Traversable) -> dict[str, Any]:
    document = yaml.load(entry.read_text("utf-8"), Loader=_LOADER)
    if not isinstance(document, dict):
        raise ValueError(f"{entry.name} is not a mapping")
    return document


# Ten times as fast; not every build of the library has it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
