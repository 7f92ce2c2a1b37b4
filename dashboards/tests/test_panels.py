"""Every panel says what it shows, and asks for nothing that nobody exports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from exported_metrics import exported

from laptime_dashboards.write import dashboards, encode, write

DOCUMENTS: dict[str, Any] = {uid: json.loads(encode(one)) for uid, one in dashboards().items()}
WIDTH = 24

# What Grafana puts in place of a variable, as a value that fits everywhere.
VARIABLE = re.compile(r"\$\{?[a-zA-Z_]+\}?")


def panels() -> Iterator[tuple[str, dict[str, Any]]]:
    for uid, document in DOCUMENTS.items():
        for panel in document["panels"]:
            if panel["type"] != "row":
                yield f"{uid}: {panel['title']}", panel


def queries() -> Iterator[tuple[str, str]]:
    for name, panel in panels():
        for target in panel["targets"]:
            yield f"{name} {target['refId']}", target["expr"]
    for uid, document in DOCUMENTS.items():
        for annotation in (document.get("annotations") or {}).get("list") or []:
            yield f"{uid}: annotation {annotation['name']}", annotation["target"]["expr"]


def series_of_variables() -> Iterator[tuple[str, str]]:
    for uid, document in DOCUMENTS.items():
        for variable in document["templating"]["list"]:
            if variable["type"] == "query":
                found = re.fullmatch(r"label_values\((.*), \w+\)", variable["query"]["query"])
                assert found is not None
                yield f"{uid}: variable {variable['name']}", found[1]


PANELS = dict(panels())
QUERIES = {**dict(queries()), **dict(series_of_variables())}


def parsed(expr: str) -> Any:
    return promql_parser.parse(
        VARIABLE.sub(lambda one: "5s" if "interval" in one[0] else "x", expr)
    )


def metric_names(expr: str) -> set[str]:
    found: set[str | None] = set()

    def visit(node: Any) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            found.add(node.name)
        elif isinstance(node, promql_parser.MatrixSelector):
            found.add(node.vector_selector.name)
        return True

    promql_parser.walk(parsed(expr), visit)
    assert None not in found
    return {name for name in found if name}


def test_there_are_four_dashboards_with_names_of_their_own() -> None:
    assert {document["title"] for document in DOCUMENTS.values()} == {
        "Laptime / Runs",
        "Laptime / Run",
        "Laptime / Tiers",
        "Laptime / Operator",
    }
    assert {document["uid"] for document in DOCUMENTS.values()} == set(DOCUMENTS)
    assert len(PANELS) == sum(1 for _ in panels())
    assert not any(document["editable"] for document in DOCUMENTS.values())


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_says_what_it_shows(name: str) -> None:
    panel = PANELS[name]
    assert panel["title"]
    assert panel["description"].endswith((".", ")"))
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    assert defaults["noValue"]
    assert defaults["thresholds"]["steps"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    if panel["type"] in ("timeseries", "xychart"):
        assert panel["options"]["legend"]["showLegend"] is True


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_fits_into_the_grid_and_its_legend_into_the_panel(name: str) -> None:
    place = PANELS[name]["gridPos"]
    assert place["x"] + place["w"] <= WIDTH
    # A third of 1366 px: below it a table of a legend is cut off.
    assert PANELS[name]["type"] != "timeseries" or place["w"] >= WIDTH // 3


@pytest.mark.parametrize("uid", DOCUMENTS)
def test_no_panel_lies_over_another(uid: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DOCUMENTS[uid]["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_promql(name: str) -> None:
    parsed(QUERIES[name])


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_asks_only_for_what_is_exported(name: str) -> None:
    asked = metric_names(QUERIES[name])
    assert asked
    assert asked - exported() == set()


@pytest.mark.parametrize("name", PANELS)
def test_windows_fit_the_scrapes(name: str) -> None:
    references = [target["refId"] for target in PANELS[name]["targets"]]
    assert len(set(references)) == len(references)
    for target in PANELS[name]["targets"]:
        if "$__rate_interval" in target["expr"]:
            assert target["interval"] in ("$step", "5s")


def test_what_is_counted_is_asked_for_as_a_rate() -> None:
    plain = {
        name
        for name, expr in QUERIES.items()
        if re.search(r"_(total|bucket)\b", expr) and not re.search(r"rate\(|increase\(", expr)
    }
    assert plain == set()


@pytest.mark.parametrize("uid", DOCUMENTS)
def test_each_variable_is_defined_before_it_is_used(uid: str) -> None:
    known = {"__rate_interval"}
    for variable in DOCUMENTS[uid]["templating"]["list"]:
        asked = str((variable["query"] or {}).get("query")) if variable["type"] == "query" else ""
        assert set(re.findall(r"\$\{?(\w+)", asked)) <= known
        known.add(variable["name"])
    own = [expr for name, expr in QUERIES.items() if name.startswith(f"{uid}:")]
    assert set(re.findall(r"\$\{?(\w+)", " ".join(own))) <= known


def test_writing_removes_dashboards_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("{}")
    write(tmp_path)
    assert {file.stem for file in tmp_path.iterdir()} == set(DOCUMENTS)
    text = (tmp_path / "laptime-runs.json").read_text()
    assert text == json.dumps(json.loads(text), sort_keys=True, indent=1) + "\n"


@pytest.mark.parametrize("uid", DOCUMENTS)
def test_each_panel_has_a_number_and_is_of_a_version_that_nothing_rewrites(uid: str) -> None:
    panels = DOCUMENTS[uid]["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    # Grafana rewrites an XY chart without a version, or of one before 11.1, into one without lines.
    assert {panel["pluginVersion"] for panel in panels if panel["type"] != "row"} == {"11.1.0"}


@pytest.mark.parametrize("name", [name for name, one in PANELS.items() if one["type"] == "table"])
def test_an_empty_cell_does_not_say_what_an_empty_table_says(name: str) -> None:
    (organize,) = (one for one in PANELS[name]["transformations"] if one["id"] == "organize")
    titles = set(organize["options"]["renameByName"].values())
    overrides = {
        one["matcher"]["options"]: {entry["id"]: entry["value"] for entry in one["properties"]}
        for one in PANELS[name]["fieldConfig"]["overrides"]
    }
    assert titles
    assert {overrides[title]["noValue"] for title in titles} == {"-"}


def test_a_server_has_one_colour_in_lines_and_in_the_background() -> None:
    run = DOCUMENTS["laptime-run"]
    behind = {
        one["name"]: one["iconColor"]
        for one in run["annotations"]["list"]
        if one["name"].startswith("Server ")
    }
    coloured = 0
    for panel in run["panels"]:
        rules = [
            (re.compile(rule["matcher"]["options"].strip("/")), entry["value"]["fixedColor"])
            for rule in (panel.get("fieldConfig") or {}).get("overrides", [])
            for entry in rule["properties"]
            if entry["id"] == "color"
        ]
        if not rules:
            continue
        coloured += 1
        value = re.match(r"\^(\S+) \.\*position", rules[0][0].pattern)
        for place in range(1, 34):
            name = f"{place} some"
            if value:
                name = f'{value[1]} {{load="some", position="{place}", server="some"}}'
            found = [color for rule, color in rules if rule.search(name)]
            assert found == [behind[f"Server {(place - 1) % len(behind) + 1}"]], panel["title"]
    assert coloured >= 6
