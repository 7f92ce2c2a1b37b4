"""A BenchmarkScenario as a document: of the catalogue, of a file, or of the API server. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from laptime.api import API_VERSION, SCENARIO_KIND
from laptime.api.config_maps import ConfigMapKey
from laptime.api.feeders import Csv
from laptime.api.scenario import BenchmarkScenarioSpec, Sql
from laptime.catalog.models import Scenario


class ScenarioError(ValueError):
    """A scenario cannot be used; the message says what to write instead.

    `reason` is CamelCase. What is not `fatal` may still come.
    """

    def __init__(self, reason: str, message: str, *, fatal: bool = True) -> None:
        super().__init__(message)
        self.reason = reason
        self.fatal = fatal


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
    return Scenario.model_validate(named, extra="forbid")


def stored_text(scenario: Scenario) -> str:
    """Return the text in which a run keeps its scenario."""
    return json.dumps(stored_document(scenario), ensure_ascii=False, indent=1)


def stored_document(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as JSON has it, without what it does not say."""
    return scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def document_of(scenario: Scenario, namespace: str) -> dict[str, Any]:
    """Return the BenchmarkScenario that describes a scenario, all SQL of ConfigMaps in it."""
    spec = scenario.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude={"name", "builtin"}
    )
    return {
        "apiVersion": API_VERSION,
        "kind": SCENARIO_KIND,
        "metadata": {"name": scenario.name, "namespace": namespace},
        "spec": spec,
    }


def document_spec(document: Mapping[str, Any]) -> BenchmarkScenarioSpec:
    """Return the spec of a document, with references to ConfigMaps as they are.

    Raises:
        pydantic.ValidationError: it does not fit the model.
    """
    return BenchmarkScenarioSpec.model_validate(document["spec"], extra="forbid")


def config_maps_of(spec: BenchmarkScenarioSpec) -> list[ConfigMapKey]:
    """Return the ConfigMaps that a scenario takes SQL and tables from, each key once."""
    wanted = {
        (one.config_map.name, one.config_map.key): one.config_map
        for one in _parts(spec)
        if one.config_map is not None
    }
    return [wanted[key] for key in sorted(wanted)]


def _parts(spec: BenchmarkScenarioSpec) -> Iterator[Sql | Csv]:
    yield from (feeder.csv for feeder in spec.feeders if feeder.csv is not None)
    if spec.data is None:
        return
    if (postgres := spec.data.postgres) is not None:
        yield from (*postgres.schema_, *postgres.seed, *postgres.reset, *postgres.warm)
    if (sqlite := spec.data.sqlite) is not None:
        yield from (*sqlite.schema_, *sqlite.seed)


def _with_texts(node: Any, texts: Mapping[tuple[str, str], str]) -> Any:
    """Return a spec with the text of each ConfigMap in its place."""
    if not texts:
        return node
    filled = dict(node)
    if node.get("data") is not None:
        filled["data"] = {
            database: {
                what: [_filled(one, "sql", texts) for one in parts]
                if what != "extensions"
                else parts
                for what, parts in content.items()
            }
            for database, content in node["data"].items()
        }
    if node.get("feeders") is not None:
        filled["feeders"] = [
            {**one, "csv": _filled(one["csv"], "text", texts)} if one.get("csv") else one
            for one in node["feeders"]
        ]
    return filled


def _filled(
    part: Mapping[str, Any], what: str, texts: Mapping[tuple[str, str], str]
) -> Mapping[str, Any]:
    wanted = part.get("configMap")
    return part if wanted is None else {what: texts[wanted["name"], wanted["key"]]}
