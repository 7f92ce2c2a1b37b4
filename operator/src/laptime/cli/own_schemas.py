"""The schemas of runs and scenarios, and what the API server makes of a document by them."""

from __future__ import annotations

from functools import cache
from typing import Any

_METADATA = {"type": "object", "properties": {"name": {"type": "string"}}}


def as_taken(document: dict[str, Any], schema: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a run, or what the schema is of, as the API server takes it."""
    from laptime.cli.schema_rules import without_nulls

    taken: dict[str, Any] = without_nulls(schema or _schema(), document)
    return taken


def violations(
    document: dict[str, Any], schema: dict[str, Any] | None = None
) -> tuple[list[str], bool]:
    """Return what the API server would refuse in a run, and whether rules could be checked."""
    from laptime.cli.schema_rules import rule_violations, schema_violations

    schema = schema or _schema()
    named = {**document, "metadata": {"name": document["metadata"]["name"]}}
    taken = as_taken(named, schema)
    said = schema_violations(schema, taken)
    if said:
        return said, True
    try:
        return rule_violations(schema, taken), True
    except ImportError:
        return [], False


@cache
def _schema() -> dict[str, Any]:
    from laptime.cli.generate import catalogue_crd

    return _named(catalogue_crd())


@cache
def scenario_schema() -> dict[str, Any]:
    """Return the schema of scenarios, as the API server has it."""
    from laptime.cli.generate import catalogue_scenario_crd

    return _named(catalogue_scenario_crd())


def _named(crd: dict[str, Any]) -> dict[str, Any]:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    # The API server has a schema of its own for metadata; the rules see the name.
    return {**schema, "properties": {**schema["properties"], "metadata": _METADATA}}
