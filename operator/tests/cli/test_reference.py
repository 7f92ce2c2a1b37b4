"""The reference pages have every field and every value, each with a description."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.cli.generate import catalogue_crd, catalogue_scenario_crd, write_reference
from laptime.cli.reference import resource_page, values_page

CHART = Path(__file__).parents[3] / "charts" / "laptime"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
VALUES_SCHEMA = json.loads((CHART / "values.schema.json").read_text())
CRD_SCHEMA = catalogue_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def _fields(path: str, node: Any) -> Iterator[tuple[str, Any]]:
    """Yield each field below a node of the CRD with its path."""
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from _fields(f"{path}.{name}", child)
    if "items" in node:
        yield from _fields(f"{path}[]", node["items"])
    if isinstance(node.get("additionalProperties"), dict):
        yield from _fields(f"{path}.*", node["additionalProperties"])


def _properties(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield each property that a JSON schema declares, definitions included."""
    for name, child in node.get("properties", {}).items():
        yield name, child
    for child in node.values():
        for inner in child if isinstance(child, list) else [child]:
            if isinstance(inner, dict):
                yield from _properties(inner)


def _leaves(path: str, value: Any, schema: Any) -> Iterator[str]:
    """Yield the path of each value of values.yaml that has a row of its own."""
    if "$ref" in schema or not isinstance(value, dict):
        yield path
        return
    each = schema.get("additionalProperties")
    children = schema.get("properties", {})
    if not children and not (isinstance(each, dict) and "$ref" in each):
        yield path
        return
    for name, child in value.items():
        yield from _leaves(f"{path}.{name}", child, children.get(name, each))


def _rows(page: str) -> dict[str, list[str]]:
    """Return the cells of each row of the tables by its first one."""
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in cells}


@pytest.mark.parametrize(
    ("crd", "part"),
    [(catalogue_crd(), "spec"), (catalogue_crd(), "status"), (catalogue_scenario_crd(), "spec")],
    ids=["run-spec", "run-status", "scenario-spec"],
)
def test_every_field_has_a_row_and_a_description(crd: dict[str, Any], part: str) -> None:
    rows = _rows(resource_page(crd))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    fields = dict(_fields(part, schema["properties"][part]))
    assert {path for path in rows if path.split(".")[0] == part} == set(fields)
    for path, field in fields.items():
        assert field.get("description"), f"{path} has no description"
        assert rows[path][-1], path


def test_every_rule_of_the_crd_is_said() -> None:
    page = resource_page(catalogue_crd())
    messages = set(re.findall(r'"message": "([^"]*)"', json.dumps(CRD_SCHEMA)))
    assert messages
    plain = page.replace("&lt;", "<").replace("\\*", "*").replace("\\|", "|")
    assert [message for message in messages if message not in plain] == []


def test_no_value_of_the_chart_lacks_a_description() -> None:
    found = list(_properties(VALUES_SCHEMA))
    assert len(found) > 100
    assert [name for name, schema in found if not schema.get("description")] == []


def test_every_value_of_the_chart_has_a_row_with_its_default() -> None:
    rows = _rows(values_page(VALUES_SCHEMA, VALUES))
    paths = set()
    for name, value in VALUES.items():
        paths |= set(_leaves(name, value, VALUES_SCHEMA["properties"][name]))
    assert "operator.resources.requests" in paths
    assert "images.servers.axum-sqlx" in paths
    assert paths <= set(rows)
    for path in paths:
        default: Any = VALUES
        for part in path.split("."):
            default = default[part]
        assert json.loads(rows[path][1].strip("`")) == default, path


def test_every_value_that_the_schema_allows_has_a_default() -> None:
    rows = _rows(values_page(VALUES_SCHEMA, VALUES))
    assert [path for path, row in rows.items() if len(row) == 4 and not row[1]] == []


def test_a_map_of_objects_that_is_empty_says_what_they_are() -> None:
    page = values_page(VALUES_SCHEMA, VALUES)
    assert _rows(page)["placements"][:2] == ["map of [placement](#placement)", "`{}`"]
    assert "| `generators` | [placedPods](#placedpods) |" in page
    assert "| `runtimeClassName` | string |" in page


def test_cells_are_one_line_and_hold_no_markup() -> None:
    schema = {
        "properties": {
            "a": {"type": "string", "pattern": "^(x|<y>)$", "description": "a <b> | *c* `<d>`"}
        },
        "$defs": {},
    }
    page = values_page(schema, {"a": "x"})
    row = r'| `a` | string | `"x"` | matches `^(x\|<y>)$` | a &lt;b> \| \*c\* `<d>` |'
    assert row in page.splitlines()


def test_committed_pages_are_those_that_would_be_written(tmp_path: Path) -> None:
    write_reference(tmp_path, CHART)
    committed = CHART.parents[1] / "docs" / "reference"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "benchmarkrun.md",
        "benchmarkrun.schema.json",
        "benchmarkscenario.md",
        "benchmarkscenario.schema.json",
        "reasons.md",
        "values.md",
    ]
    for name in names:
        assert (tmp_path / name).read_text() == (committed / name).read_text(), "make generate"
