"""Places in a run and in its schema: finding, changing and listing them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Json = Any
_BOUNDS = (
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)


def full_run() -> dict[str, Json]:
    """Return a run with every optional part written."""
    run = yaml.safe_load((Path(__file__).parent / "schema" / "run.yaml").read_text())
    assert isinstance(run, dict)
    return run


def changed(run: dict[str, Json], changes: dict[str, Json]) -> dict[str, Json]:
    """Return a copy of the run with the values put at their places; None leaves a field out."""
    result = copy.deepcopy(run)
    for place, value in changes.items():
        *parents, last = (int(part) if part.isdigit() else part for part in place.split("."))
        target: Any = result
        for part in parents:
            target = target[part]
        if value is None:
            target.pop(last, None)
        else:
            target[last] = copy.deepcopy(value)
    return result


def field_of(place: str) -> str:
    """Return a place as the API server writes it: `spec.servers[0].name`."""
    return re.sub(r"\.(\d+)", r"[\1]", place)


def any_item(field: str) -> str:
    """Return the field with the indexes left out: `spec.servers[].name`."""
    return re.sub(r"\[\d+\]", "[]", field)


def rules_of(schema: dict[str, Json], field: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field that the message points to, message) of every CEL rule of a schema."""
    for rule in schema.get("x-kubernetes-validations", []):
        yield (field or "<nil>") + rule.get("fieldPath", ""), rule["message"]
    for name, child in schema.get("properties", {}).items():
        yield from rules_of(child, f"{field}.{name}" if field else name)
    if "items" in schema:
        yield from rules_of(schema["items"], f"{field}[]")


@dataclass(frozen=True)
class Bound:
    """A bound of the schema on a field."""

    field: str
    keyword: str
    limit: int
    schema: dict[str, Json]

    def __str__(self) -> str:
        return f"{self.field} {self.keyword} {self.limit}"


def bounds_of(schema: dict[str, Json], field: str) -> Iterator[Bound]:
    """Yield every bound of a schema, the fields of objects before those of their items."""
    for keyword in _BOUNDS:
        if keyword in schema:
            yield Bound(field, keyword, int(schema[keyword]), schema)
    for name, child in schema.get("properties", {}).items():
        yield from bounds_of(child, f"{field}.{name}")
    if "items" in schema:
        yield from bounds_of(schema["items"], f"{field}[]")


def defaults_of(schema: dict[str, Json], field: str) -> Iterator[tuple[str, Json]]:
    """Yield (field, default) for every default of a schema."""
    if "default" in schema:
        yield field, schema["default"]
    for name, child in schema.get("properties", {}).items():
        yield from defaults_of(child, f"{field}.{name}")
    if "items" in schema:
        yield from defaults_of(schema["items"], f"{field}[]")


def place_in(run: dict[str, Json], field: str) -> str:
    """Return the place of a field in a run: the first item of each list that has the field.

    Raises:
        LookupError: the run has no such field.
    """
    found = next(_places(run, re.findall(r"\[\]|[^.\[\]]+", field)), None)
    if found is None:
        raise LookupError(f"{field} is nowhere in the run")
    return ".".join(found)


def _places(node: Json, parts: list[str]) -> Iterator[list[str]]:
    if not parts:
        yield []
    elif parts[0] == "[]" and isinstance(node, list):
        for index, item in enumerate(node):
            for rest in _places(item, parts[1:]):
                yield [str(index), *rest]
    elif isinstance(node, dict) and parts[0] in node:
        for rest in _places(node[parts[0]], parts[1:]):
            yield [parts[0], *rest]
