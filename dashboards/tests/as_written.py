"""The dashboards as they are written, and what several tests ask of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import promql_parser

from laptime_dashboards.write import dashboards, encode

DOCUMENTS: dict[str, Any] = {uid: json.loads(encode(one)) for uid, one in dashboards().items()}


WIDTH = 24


# What Grafana puts in place of a variable, as a value that fits everywhere.
VARIABLE = re.compile(r"\$\{?[a-zA-Z_]+\}?")


def every_panel(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all panels, those in closed rows too."""
    return [one for panel in document["panels"] for one in (panel, *panel.get("panels", ()))]


def panels() -> Iterator[tuple[str, dict[str, Any]]]:
    for uid, document in DOCUMENTS.items():
        for panel in every_panel(document):
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
                form = r"label_values\((.*), \w+\)|query_result\((.*)\)"
                found = re.fullmatch(form, variable["query"]["query"])
                assert found is not None
                yield f"{uid}: variable {variable['name']}", found[1] or found[2]


PANELS = dict(panels())


LIMITS = "What limited each server (suspected), and what is doubtful"


SIDE_BY_SIDE = [
    f"laptime-{uid}: {title}"
    for uid in ("compare", "server")
    for title in ("Throughput", "Factor against the baseline")
]
"""Pictures of several runs."""


QUERIES = {**dict(queries()), **dict(series_of_variables())}


def parsed(expr: str) -> Any:
    return promql_parser.parse(
        VARIABLE.sub(
            lambda one: "5s" if "interval" in one[0] else "1" if one[0] == "$since" else "x", expr
        )
    )


def metric_names(expr: str) -> set[str]:
    found: set[str] = set()

    def visit(node: Any) -> bool:
        if isinstance(node, promql_parser.MatrixSelector):
            node = node.vector_selector
        if isinstance(node, promql_parser.VectorSelector):
            matchers = [one for one in node.matchers.matchers if one.name == "__name__"]
            assert node.name or matchers
            found.update([node.name] if node.name else matchers[0].value.split("|"))
        return True

    promql_parser.walk(parsed(expr), visit)
    return found


SCREEN = 1366
"""Pixels of the smallest screen on which nothing may be cut."""


CELL_LETTER, CELL_PADDING = 7, 12
"""Pixels of a letter of a sentence in a cell, and of what is beside a cell's text."""

SORTED = 22
"""Pixels of the arrow beside the head of a column that rows are sorted by."""

_ADVANCES = {
    letter: pixels
    for pixels, letters in {
        **{3.5: "ijl", 4: "I .:", 5.5: "frt/()", 6.5: "-", 7: "1", 7.5: "s", 8: "ackvxyzJL"},
        **{8.5: "ehnouEF27", 9: "bdgpqPRSZ035689", 9.5: "BKTXY4", 10: "AV", 10.5: "CDGHNU"},
        **{11: "OQ", 11.5: "w", 12.5: "mM", 14: "W"},
    }.items()
    for letter in letters
}
"""Of Inter Medium in 14 px with what Grafana adds between letters: heads of columns are set in it,
and cells in one that is hardly narrower."""


def cell_width(text: str) -> float:
    """Return the pixels that a word needs in a column."""
    return sum(_ADVANCES[letter] for letter in text) + CELL_PADDING


def shown(value: float, properties: dict[str, Any]) -> float:
    """Return the number that Grafana writes for a value in a column with these properties."""
    unit, decimals = properties["unit"], properties.get("decimals")
    if unit == "locale":
        # Zeros at the end are left out.
        return round(value, 3 if decimals is None else decimals)
    scale = 100 if unit == "percentunit" else next(
        (size for size in (1e6, 1e3) if unit == "s" and size * value < 1000), 1
    )  # fmt: skip
    value *= scale
    if decimals is None:
        # Three digits, or all before the point.
        decimals = max(0, 2 - math.floor(math.log10(value)))
    return round(value, decimals) / scale


SECONDS_OF_TRIALS = [
    name for name, one in PANELS.items() if "laptime_second_" in one["targets"][0]["expr"]
]


def look_of(name: str, line: str) -> dict[str, Any]:
    """Return what the rules of a panel give a line that is called so at first, by property.

    As in Grafana (`applyFieldOverrides` of its data package) a rule that gives it another name
    hides the first one from the rules after it.
    """
    found: dict[str, Any] = {}
    for rule in PANELS[name]["fieldConfig"]["overrides"]:
        assert rule["matcher"]["id"] == "byRegexp"
        if re.search(rule["matcher"]["options"].strip("/"), line):
            found |= {entry["id"]: entry["value"] for entry in rule["properties"]}
            line = found.get("displayName", line)
    return found


def at_first(server: str, position: object, rank: object = "undefined") -> str:
    """Return the name that Grafana gives a line of an XY chart before it gets another one."""
    labels = {"load": "closed", "position": position, "rank": rank, "server": server}
    told = ", ".join(f'{key}="{one}"' for key, one in labels.items())
    return f"Place {{{told}}}"
