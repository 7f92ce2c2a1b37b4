"""A BenchmarkScenario as a document: of the catalogue, of a file, or of the API server. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from laptime.api import API_VERSION
from laptime.api.scenario import SCENARIO_KIND, BenchmarkScenarioSpec, ConfigMapKey, Sql
from laptime.catalog.models import Scenario


class ScenarioError(ValueError):
    """A scenario cannot be used; the message says what to write instead.

    `reason` is CamelCase.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def scenario_of(
    document: Mapping[str, Any],
    texts: Mapping[tuple[str, str], str] | None = None,
    *,
    builtin: bool = False,
) -> Scenario:
    """Return the scenario that a BenchmarkScenario describes.

    `texts` are what its ConfigMaps hold, by name and key.

    Raises:
        pydantic.ValidationError: it does not fit the model.
        KeyError: a text is missing.
    """
    if (document.get("apiVersion"), document.get("kind")) != (API_VERSION, SCENARIO_KIND):
        raise ValueError(f"not a {SCENARIO_KIND} ({API_VERSION})")
    spec = _with_texts(document["spec"], texts or {})
    named = {**spec, "name": document["metadata"]["name"], "builtin": builtin}
    return Scenario.model_validate(named)


def config_maps_of(spec: BenchmarkScenarioSpec) -> list[ConfigMapKey]:
    """Return the ConfigMaps that a scenario takes its SQL from, each key once."""
    wanted = {
        (one.config_map.name, one.config_map.key): one.config_map
        for one in _parts(spec)
        if one.config_map is not None
    }
    return [wanted[key] for key in sorted(wanted)]


def _parts(spec: BenchmarkScenarioSpec) -> Iterator[Sql]:
    if spec.data is None:
        return
    if (postgres := spec.data.postgres) is not None:
        yield from (*postgres.schema_, *postgres.seed, *postgres.reset, *postgres.warm)
    if (sqlite := spec.data.sqlite) is not None:
        yield from (*sqlite.schema_, *sqlite.seed)


def _with_texts(node: Any, texts: Mapping[tuple[str, str], str]) -> Any:
    """Return data with the text of each ConfigMap in its place."""
    data = node.get("data")
    if data is None or not texts:
        return node
    filled = {
        database: {
            what: [_filled(one, texts) for one in parts] if what != "extensions" else parts
            for what, parts in content.items()
        }
        for database, content in data.items()
    }
    return {**node, "data": filled}


def _filled(part: Mapping[str, Any], texts: Mapping[tuple[str, str], str]) -> Mapping[str, Any]:
    wanted = part.get("configMap")
    return part if wanted is None else {"sql": texts[wanted["name"], wanted["key"]]}
