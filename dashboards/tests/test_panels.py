"""Every panel says what it shows, and asks for nothing that nobody exports."""

from __future__ import annotations

import itertools
import json
import math
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from exported_metrics import exported
from laptime.analysis import wording
from laptime.api.causes import Cause
from laptime.api.isolation import Isolation, Quietness
from laptime.reconcile import run_metrics
from laptime.reconcile.metrics import CONTROLLER
from laptime.report.html.palette import LIGHT_SERVERS

from laptime_dashboards.meanings import CAUSES, ISOLATION, PERCENTILES, STATES
from laptime_dashboards.panel_defaults import SERVER_COLORS
from laptime_dashboards.write import dashboards, encode, write

DOCUMENTS: dict[str, Any] = {uid: json.loads(encode(one)) for uid, one in dashboards().items()}
WIDTH = 24

# What Grafana puts in place of a variable, as a value that fits everywhere.
VARIABLE = re.compile(r"\$\{?[a-zA-Z_]+\}?")


SURFACES = ("#ffffff", "#181b1f")
"""Of Grafana's panels, light and dark."""


def luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2.2."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


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


def test_there_are_six_dashboards_with_names_of_their_own() -> None:
    assert {document["title"] for document in DOCUMENTS.values()} == {
        "Laptime / Runs",
        "Laptime / Run",
        "Laptime / Compare",
        "Laptime / Server",
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
    # What is not known is no finding.
    assert re.match(r"No data: \S", defaults["noValue"])
    assert defaults["thresholds"]["steps"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    if panel["type"] in ("timeseries", "xychart"):
        assert panel["options"]["legend"]["showLegend"] is True
        # A mean over the time range would be no figure of any result.
        assert not panel["options"]["legend"].get("calcs")


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_fits_into_the_grid_and_its_legend_into_the_panel(name: str) -> None:
    place = PANELS[name]["gridPos"]
    assert place["x"] + place["w"] <= WIDTH
    # A third of 1366 px: below it a table of a legend is cut off.
    assert PANELS[name]["type"] != "timeseries" or place["w"] >= WIDTH // 3


@pytest.mark.parametrize("uid", DOCUMENTS)
def test_each_line_of_panels_is_full(uid: str) -> None:
    widths: dict[int, int] = {}
    for panel in every_panel(DOCUMENTS[uid]):
        if panel["type"] != "row":
            place = panel["gridPos"]
            widths[place["y"]] = widths.get(place["y"], 0) + place["w"]
    assert set(widths.values()) == {WIDTH}


@pytest.mark.parametrize("uid", DOCUMENTS)
def test_no_panel_lies_over_another(uid: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in every_panel(DOCUMENTS[uid]):
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


@pytest.mark.parametrize("name", QUERIES)
def test_a_name_that_others_have_too_is_asked_of_laptime_alone(name: str) -> None:
    """A Prometheus of a whole cluster has the queues of its control plane and of all operators."""

    def visit(node: Any) -> bool:
        if isinstance(node, promql_parser.MatrixSelector):
            node = node.vector_selector
        named = getattr(node, "name", None)
        if named and not named.startswith(("laptime_", "haproxy_")):
            matchers = {one.name: one.value for one in node.matchers.matchers}
            own = {"name": CONTROLLER, "controller": CONTROLLER}
            assert "laptime" in matchers.get("job", "") or own.items() & matchers.items(), named
        return True

    promql_parser.walk(parsed(QUERIES[name]), visit)


@pytest.mark.parametrize("name", PANELS)
def test_windows_fit_the_scrapes(name: str) -> None:
    references = [target["refId"] for target in PANELS[name]["targets"]]
    assert len(set(references)) == len(references)
    for target in PANELS[name]["targets"]:
        if "$__rate_interval" in target["expr"]:
            assert target["interval"] in ("$step", "5s")
        if "$__interval" in target["expr"]:
            # There is a sample in each second.
            assert target["interval"] in ("1s", "$step")


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_short(name: str) -> None:
    # As it is sent: Grafana puts a length of time in the place of these.
    assert len(re.sub(r"\$__(rate_)?interval", "10s", QUERIES[name])) <= 300


def test_the_first_screen_of_a_run_has_the_answer_and_asks_little() -> None:
    document = DOCUMENTS["laptime-run"]
    # 768 px less the head of a page, at 38 px a row of the grid.
    first = [one for one in document["panels"] if one["gridPos"]["y"] + one["gridPos"]["h"] <= 17]
    assert {one["title"] for one in first} == {
        "Verdict",
        "State",
        "Progress",
        "Time left",
        "Factor against the baseline",
        "Throughput",
        "Response times",
    }
    # Of three servers, with two lines each, below the head of the page, a title and the heads of
    # columns; of four when the page is moved.
    (below,) = (one for one in document["panels"] if one["title"] == LIMITS)
    assert 768 - 144 - 38 * below["gridPos"]["y"] - 74 >= 3 * 56
    assert below["gridPos"]["h"] >= 9
    # Grafana asks for a panel when it comes into sight; with the pictures below it is no more.
    seen = [one for one in document["panels"] if one["gridPos"]["y"] <= 22]
    assert "Requests of each second" in {one["title"] for one in seen}
    asked = sum(len(one.get("targets", ())) for one in seen)
    variables = [one for one in document["templating"]["list"] if one["type"] == "query"]
    annotations = (document.get("annotations") or {}).get("list") or []
    assert asked + len(variables) + len(annotations) <= 25


def test_the_head_has_no_setting_that_only_a_developer_understands() -> None:
    for document in DOCUMENTS.values():
        shown = {one["name"] for one in document["templating"]["list"] if not one.get("hide")}
        assert shown <= {"datasource", "namespace", "run", "server", "load", "scenario"}


def test_no_way_from_one_dashboard_to_another_loses_the_scrape_interval() -> None:
    for document in DOCUMENTS.values():
        (step,) = (one for one in document["templating"]["list"] if one["name"] == "step")
        assert {"1s", "10s", "30s"} <= set(step["query"].split(","))
        assert all(link["includeVars"] for link in document["links"])
    links = [
        link["url"]
        for panel in PANELS.values()
        for rule in panel["fieldConfig"]["overrides"]
        for entry in rule["properties"]
        if entry["id"] == "links"
        for link in entry["value"]
    ]
    assert links
    assert [url for url in links if "&var-step=${step}" not in url] == []


def test_a_panel_of_rates_says_that_there_is_none_of_one_scrape() -> None:
    texts = {
        name: panel["fieldConfig"]["defaults"]["noValue"]
        for name, panel in PANELS.items()
        if panel["type"] == "timeseries"
    }
    for name, text in texts.items():
        slow = any(
            "$__rate_interval" in one["expr"] and one["interval"] == "$step"
            for one in PANELS[name]["targets"]
        )
        assert ("scraped less often" in text) is slow, name


def test_what_is_counted_is_asked_for_as_a_rate() -> None:
    plain = {
        name
        for name, expr in QUERIES.items()
        if re.search(r"_(total|bucket)\b", expr) and not re.search(r"rate\(|increase\(", expr)
    }
    assert plain == set()


@pytest.mark.parametrize("uid", DOCUMENTS)
def test_each_variable_is_defined_before_it_is_used(uid: str) -> None:
    known = {"__rate_interval", "__interval"}
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
    panels = every_panel(DOCUMENTS[uid])
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


def test_a_server_has_one_colour_that_of_the_report() -> None:
    assert SERVER_COLORS == LIGHT_SERVERS
    coloured = 0
    for name, panel in PANELS.items():
        rules = [
            (re.compile(rule["matcher"]["options"].strip("/")), entry["value"]["fixedColor"])
            for rule in panel["fieldConfig"]["overrides"]
            for entry in rule["properties"]
            if entry["id"] == "color" and rule["matcher"]["id"] == "byRegexp"
        ]
        if not {color for _, color in rules} & set(SERVER_COLORS):
            continue
        coloured += 1
        value = re.match(r"\^(\S+) \.\*position", rules[0][0].pattern)
        for place in range(1, 34):
            line = f"{place} some"
            if value:
                line = f'{value[1]} {{load="some", position="{place}", server="some"}}'
            found = [color for rule, color in rules if rule.search(line)]
            assert found == [SERVER_COLORS[(place - 1) % len(SERVER_COLORS)]], name
    assert coloured >= 16


@pytest.mark.parametrize("name", PANELS)
def test_lines_of_servers_have_their_colours_whatever_panel_they_are_in(name: str) -> None:
    panel = PANELS[name]
    rules = panel["fieldConfig"]["overrides"]
    named = [
        rule["matcher"]
        for rule in rules
        if any(entry["id"] == "displayName" for entry in rule["properties"])
    ]
    for target in panel["targets"] if panel["type"] == "timeseries" else ():
        legend = target["legendFormat"]
        # Those of Postgres' limits are of a server too, and are no lines of its own.
        if "{{server}}" in legend and not legend.startswith("limit of cores"):
            assert legend.startswith("{{position}} "), name
            assert any(
                one["options"] == target["refId"]
                if one["id"] == "byFrameRefID"
                else re.search(one["options"].strip("/"), legend.replace("{{quantile}}", "0.99"))
                for one in named
            ), name


@pytest.mark.parametrize(
    ("name", "ref", "unit"),
    [
        ("HAProxy: saturation", "B", "s"),
        ("PgBouncer: saturation", "B", "s"),
        ("Postgres: utilisation", "A", "percentunit"),
    ],
)
def test_what_has_another_unit_has_another_axis(name: str, ref: str, unit: str) -> None:
    panel = PANELS[f"laptime-tiers: {name}"]
    (rule,) = (one for one in panel["fieldConfig"]["overrides"] if one["matcher"]["options"] == ref)
    properties = {entry["id"]: entry["value"] for entry in rule["properties"]}
    assert (properties["unit"], properties["custom.axisPlacement"]) == (unit, "right")
    assert panel["fieldConfig"]["defaults"]["unit"] == "short"
    # In the unit that it has: nothing is multiplied to fit an axis.
    assert all("1000 *" not in target["expr"] for target in panel["targets"])


def test_a_row_of_a_tier_that_a_run_may_not_have_is_closed_and_below_the_others() -> None:
    rows = [one for one in DOCUMENTS["laptime-tiers"]["panels"] if one["type"] == "row"]
    closed = [one["collapsed"] for one in rows]
    assert closed == sorted(closed)
    assert {one["title"].split(",")[0] for one in rows if one["collapsed"]} == {
        "Postgres",
        "Postgres: work",
        "PgBouncer",
        "HAProxy",
    }
    assert all(one["panels"] for one in rows if one["collapsed"])


def test_servers_of_one_colour_have_lines_of_different_kinds() -> None:
    rules = [
        (re.compile(rule["matcher"]["options"].strip("/")), tuple(entry["value"]["dash"]))
        for rule in PANELS["laptime-run: Throttling"]["fieldConfig"]["overrides"]
        for entry in rule["properties"]
        if entry["id"] == "custom.lineStyle"
    ]
    looks = {
        place: [dash for rule, dash in rules if rule.search(f"{place} some")]
        for place in range(1, 34)
    }
    assert looks[1] == []
    for colour in range(len(SERVER_COLORS)):
        same = [str(looks[place]) for place in range(colour + 1, 34, len(SERVER_COLORS))]
        assert len(set(same)) == len(same)


def test_a_server_has_the_look_of_its_place_whatever_the_scheme_of_colours() -> None:
    """In grey, two neighbours can be told apart by how bright they are or by their lines."""

    def brightness(color: str) -> float:
        red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    ranked = sorted(map(brightness, SERVER_COLORS))
    assert all(after - before >= 6 for before, after in pairwise(ranked))
    first = sorted(map(brightness, SERVER_COLORS[:4]))
    assert all(after - before >= 14 for before, after in pairwise(first))


@pytest.mark.parametrize("color", SERVER_COLORS)
def test_a_colour_of_a_server_stands_out_from_panels_light_and_dark(color: str) -> None:
    assert min(contrast(color, surface) for surface in SURFACES) >= 3


TABLES = {name: one for name, one in PANELS.items() if one["type"] == "table"}
FIGURES = {name: one for name, one in PANELS.items() if one["type"] == "stat"}
SCREEN = 1366
"""Pixels of the smallest screen on which nothing may be cut."""
LETTER, PADDING = 6.3, 14
"""Pixels of a letter of a column's head in the mean, and of what is left free beside it."""
CELL_LETTER, CELL_PADDING = 7, 12
"""The same of a cell."""


def columns_of(panel: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the properties of each column of a table."""
    return {
        rule["matcher"]["options"]: {one["id"]: one["value"] for one in rule["properties"]}
        for rule in panel["fieldConfig"]["overrides"]
    }


@pytest.mark.parametrize("name", TABLES)
def test_a_table_and_the_heads_of_its_columns_fit_on_a_small_screen(name: str) -> None:
    panel = TABLES[name]
    widths: dict[str, int] = {}
    hidden: set[str] = set()
    for rule in panel["fieldConfig"]["overrides"]:
        properties = {entry["id"]: entry["value"] for entry in rule["properties"]}
        if properties.get("custom.hidden"):
            hidden.add(rule["matcher"]["options"])
        elif "custom.width" in properties:
            widths[rule["matcher"]["options"]] = properties["custom.width"]
    assert widths
    if panel["options"].get("showHeader", True):
        assert {head for head, width in widths.items() if LETTER * len(head) + PADDING > width} == (
            set()
        )
    (organize,) = (one for one in panel["transformations"] if one["id"] == "organize")
    others = set(organize["options"]["renameByName"].values()) - set(widths) - hidden
    # What has no width shares what is left, and needs so much.
    left = SCREEN * panel["gridPos"]["w"] / WIDTH - 60 - sum(widths.values())
    assert others
    assert left >= 100 * len(others)


def test_a_cause_stands_on_one_line() -> None:
    """Rows are as high as a value needs, such as serverCpu, and not the words for it."""
    column = columns_of(PANELS[f"laptime-run: {LIMITS}"])["Suspected cause"]
    (mapping,) = column["mappings"]
    causes = [one["text"] for one in mapping["options"].values()]
    assert len(causes) == len(Cause)
    assert max(map(len, causes)) * CELL_LETTER + CELL_PADDING <= column["custom.width"]


def test_a_cause_that_no_experiment_has_proved_is_called_suspected() -> None:
    titles = [one["title"] for one in PANELS.values()] + [
        column for panel in TABLES.values() for column in columns_of(panel)
    ]
    of_causes = [one for one in titles if re.search("limited|cause", one, re.IGNORECASE)]
    assert LIMITS in of_causes
    assert [one for one in of_causes if "suspected" not in one.lower()] == []


@pytest.mark.parametrize("name", TABLES)
def test_no_cell_of_a_table_is_cut(name: str) -> None:
    """Names are as long as people make them, and wrapped; words with a colour are known."""
    panel = TABLES[name]
    (organize,) = (one for one in panel["transformations"] if one["id"] == "organize")
    columns = columns_of(panel)
    moments = {"dateTimeAsIso": "2026-11-30 12:34:56", "time:YYYY-MM-DD HH:mm": "2026-11-30 12:34"}
    for field, title in organize["options"]["renameByName"].items():
        column = columns[title]
        words = [
            one["text"]
            for mapping in column.get("mappings", ())
            if mapping["type"] == "value"
            for one in mapping["options"].values()
        ]
        if field.startswith("Value"):
            words.append(moments.get(column.get("unit", ""), ""))
        elif not words and not column.get("custom.hidden"):
            assert column["custom.wrapText"] is True, title
        if words and not column.get("custom.hidden"):
            needed = max(map(len, words)) * CELL_LETTER + CELL_PADDING
            assert needed <= column["custom.width"], title


LONGEST = {
    "laptime-runs: All runs": "Verdict",
    "laptime-run: Verdict": "Verdict",
    f"laptime-run: {LIMITS}": "Doubts",
    "laptime-run: Results": "Server",
    "laptime-run: Ties": "What would tell them apart",
    "laptime-run: Trials": "Trial",
    "laptime-run: Objectives and thresholds": "Measured",
    "laptime-run: Checks of scripts": "Check",
    "laptime-run: Iterations of scripts": "Server",
    "laptime-run: Metrics of scripts": "Metric",
    "laptime-run: Isolation": "Why",
    "laptime-compare: Verdicts": "Verdict",
    "laptime-compare: Servers": "Run",
    "laptime-compare: Images and nodes": "Nodes",
    "laptime-server: In each run": "Run",
    "laptime-server: Images and nodes": "Nodes",
}
"""Of each table the column whose text needs the most lines."""


@pytest.mark.parametrize("name", TABLES)
def test_a_row_is_as_high_as_its_longest_text_in_older_grafanas(name: str) -> None:
    """Before 12.2 the last column with this says it, also one that is hidden or has a number."""
    columns = columns_of(TABLES[name])
    cells = {title: one.get("custom.cellOptions", {}) for title, one in columns.items()}
    (title,) = (title for title, one in cells.items() if one.get("wrapText"))
    assert title == LONGEST[name]
    assert columns[title]["custom.wrapText"] is True
    assert not columns[title].get("custom.hidden")
    done = {one["id"]: one["options"] for one in TABLES[name]["transformations"]}
    fields = {shown: field for field, shown in done["organize"]["renameByName"].items()}
    numbers = done.get("convertFieldType", {"conversions": []})["conversions"]
    assert fields[title] not in {one["targetField"] for one in numbers}
    assert not fields[title].startswith("Value")


def test_runs_tell_which_server_is_fastest_beside_its_factor() -> None:
    panel = PANELS["laptime-runs: All runs"]
    columns = list(columns_of(panel))
    assert columns.index("Factor") == columns.index("Fastest") + 1
    assert "fastest" in QUERIES["laptime-runs: All runs A"].partition(")")[0]


def test_no_server_is_called_fastest_before_there_is_a_verdict() -> None:
    """It is the one that leads so far, which the next trial may change."""
    expr = QUERIES["laptime-runs: All runs A"]
    over, _, going_on = expr.partition(" or ")
    assert re.fullmatch(r'max by \(.*, fastest\) \(laptime_run_info\{verdict!=""\}\)', over)
    assert re.fullmatch(r'max by \(.*\) \(laptime_run_info\{verdict=""\}\)', going_on)
    assert "fastest" not in going_on
    description = PANELS["laptime-runs: All runs"]["description"]
    assert "Fastest, when the run is over: as in the verdict" in description
    assert "several are not told apart" in description


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_without_data_says_so_in_letters_that_can_be_read(name: str) -> None:
    """A panel of figures makes its text as small as it must be; one of names says nothing."""
    panel = FIGURES[name]
    assert panel["options"]["textMode"] != "name"
    said, place = panel["fieldConfig"]["defaults"]["noValue"], panel["gridPos"]
    width, height = SCREEN * place["w"] / WIDTH - 40, 38 * place["h"] - 48
    size = (panel["options"].get("text") or {}).get("valueSize")
    if size is None:
        # It is as small as one line needs.
        assert (width - 20) / len(said) >= 5
    else:
        lines = textwrap.wrap(said, int(width / (0.5 * size)))
        assert 1.2 * size * len(lines) <= height


def test_a_second_that_is_not_whole_is_not_drawn_as_one() -> None:
    """At any step: it is left out by its label, and not where a step has no other second."""
    drawn = {
        name: expr
        for name, expr in QUERIES.items()
        # Quantiles are of whole seconds alone as they are handed on.
        if re.search("laptime_second_(requests|latency_seconds)", expr)
    }
    assert len(drawn) == 2
    chosen = re.compile(r"laptime_second_requests\{[^}]*,whole!=\"false\"\}")
    assert [name for name, expr in drawn.items() if not chosen.search(expr)] == []


def test_a_step_of_several_seconds_shows_their_mean() -> None:
    """And that of trials which share a step: a sum would be as many times what was measured."""
    counted = {
        name: expr
        for name, expr in QUERIES.items()
        if re.search("laptime_second_(requests|errors|elapsed_seconds)", expr)
    }
    assert len(counted) == 7
    assert [name for name, expr in counted.items() if "last_over_time" in expr] == []
    assert [name for name, expr in counted.items() if re.search(r"sum by.*_second_", expr)] == []


@pytest.mark.parametrize("uid", ["laptime-run", "laptime-tiers"])
def test_nothing_of_an_earlier_run_of_the_same_name_is_drawn(uid: str) -> None:
    drawn = 0
    for name, panel in PANELS.items():
        if not name.startswith(f"{uid}:"):
            continue
        over_time = [target for target in panel["targets"] if not target.get("instant")]
        seconds = [one for one in panel["targets"] if "laptime_second_" in one["expr"]]
        expressions = [one["expr"] for one in over_time or seconds]
        filters = [
            one["options"]["filters"]
            for one in panel.get("transformations", ())
            if one["id"] == "filterByValue"
        ]
        if filters and expressions:
            # Only what the first query has, which is without earlier runs.
            assert [one["fieldName"] for one in filters[0]] == ["Value #A"]
            assert filters[0][0]["config"]["id"] == "isNull"
            expressions = expressions[:1]
        assert [expr for expr in expressions if "$since" not in expr] == [], name
        drawn += bool(expressions)
    assert drawn >= 12


def test_the_most_of_any_second_is_that_of_the_same_generator_as_the_line_below_it() -> None:
    """Of four that use half a core each the sum is 2, above the peak of each."""
    for ref in "AB":
        expr = QUERIES[f"laptime-tiers: Generator: utilisation {ref}"]
        assert expr.startswith("max by (server) (")


def test_the_creation_of_a_run_is_0_where_nobody_says_it() -> None:
    asked = QUERIES["laptime-run: variable since"]
    assert asked == QUERIES["laptime-tiers: variable since"]
    assert asked.startswith("scalar(max(laptime_run_created_timestamp_seconds{")
    assert asked.endswith(") or vector(0))")


def test_a_load_is_known_by_the_results_of_a_run_that_was_over_before_the_operator_began() -> None:
    """Of its trials nobody says anything any more; without a load no result would be shown."""
    names = metric_names(QUERIES["laptime-run: variable load"])
    assert names == {"laptime_trial_info", "laptime_result_state"}


def test_no_address_brings_the_creation_of_an_earlier_run() -> None:
    for uid in ("laptime-run", "laptime-tiers"):
        variables = {one["name"]: one for one in DOCUMENTS[uid]["templating"]["list"]}
        assert variables.pop("since")["skipUrlSync"]
        # What run, server and step it is, an address says.
        assert not [name for name, one in variables.items() if one["skipUrlSync"]]


def test_a_check_that_failed_once_in_a_million_answers_never_shows_100_percent() -> None:
    panel = PANELS["laptime-run: Checks of scripts"]
    (override,) = (
        one for one in panel["fieldConfig"]["overrides"] if one["matcher"]["options"] == "Rate"
    )
    properties = {one["id"]: one["value"] for one in override["properties"]}
    assert properties["decimals"] == 4
    rate = panel["targets"][-1]["expr"]
    assert rate.startswith("clamp_max(")
    assert " < 1, 0.999999) or max by (server, load, check) (laptime_result_check_rate{" in rate


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


FIGURES_OF_RESULTS = [
    (name, column, value)
    for name in ("laptime-run: Results", "laptime-compare: Servers", "laptime-server: In each run")
    for column, values in {
        "Requests/s": (15_363.4, 98.76, 0.43),
        "low req/s": (0.43,),
        "Factor": (25.06, 0.996, 0.00898),
        "low factor": (0.994, 1.00497),
        "high factor": (0.998, 24.36),
        "p50": (0.000642, 0.00898, 0.0154),
        "p99": (1.41,),
        "low p99": (0.000642, 1.39),
        "high p99": (1.43,),
        "Errors": (0.00003,),
        "Memory": (1.2 * 2**30,),
    }.items()
    if column in columns_of(PANELS[name])
    for value in values
]


@pytest.mark.parametrize(("name", "column", "value"), FIGURES_OF_RESULTS)
def test_a_figure_has_the_digits_that_the_report_has(name: str, column: str, value: float) -> None:
    written = shown(value, columns_of(PANELS[name])[column])
    assert wording.number(written) == wording.number(value)
    # An end of an interval that is not 1 says that two servers are told apart.
    assert written != 1


@pytest.mark.parametrize("name", ["Iterations of scripts", "Metrics of scripts"])
def test_a_figure_of_a_script_has_the_digits_that_the_report_has(name: str) -> None:
    columns = columns_of(PANELS[f"laptime-run: {name}"])
    for column, value in {"Value": 0.00123, "Rate/s": 0.00123, "low factor": 1.00497}.items():
        if column in columns:
            written = shown(value, columns[column])
            assert wording.number(written) == wording.number(value)
            assert written != 1


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("laptime-run: Results", ["p50", "p90", "p99", "p99.9"]),
        ("laptime-compare: Servers", ["p50", "p99"]),
        ("laptime-server: In each run", ["p50", "p99"]),
    ],
)
def test_a_percentile_among_requests_without_a_right_answer_is_called_failed(
    name: str, columns: list[str]
) -> None:
    for column in columns:
        (mapping,) = columns_of(PANELS[name])[column]["mappings"]
        # As the browser calls what Prometheus calls +Inf.
        assert mapping["type"] == "value"
        assert mapping["options"]["Infinity"]["text"] == wording.latency(None)


ASKING_FOR_RESPONSE_TIMES = [
    name for name, expr in QUERIES.items() if "laptime_result_latency_seconds" in expr
]


@pytest.mark.parametrize("name", ASKING_FOR_RESPONSE_TIMES)
def test_a_response_time_is_never_an_end_of_its_interval_and_no_end_is_one(name: str) -> None:
    """A maximum over all three bounds would be the high end."""
    panel, _, ref = name.rpartition(" ")
    fields = [one for one in PANELS[panel]["transformations"] if one["id"] == "organize"]
    column = fields[0]["options"]["renameByName"].get(f"Value #{ref}", "")
    wanted = {"low": "low", "high": "high"}.get(column.partition(" ")[0], "estimate")
    assert re.findall(r'bound="(\w+)"', QUERIES[name]) == [wanted]


@pytest.mark.parametrize(
    "name",
    ["laptime-run: Results", "laptime-compare: Servers", "laptime-server: In each run"],
)
def test_a_table_has_the_interval_of_the_p99_beside_it(name: str) -> None:
    (organize,) = (one for one in PANELS[name]["transformations"] if one["id"] == "organize")
    place = organize["options"]["indexByName"]
    titles = organize["options"]["renameByName"]
    names = [titles[field] for field in sorted(place, key=place.get)]
    assert names[names.index("p99") :][:3] == ["p99", "low p99", "high p99"]


@pytest.mark.parametrize("uid", ["laptime-compare", "laptime-server"])
def test_what_changed_between_two_runs_is_shown_by_digest_and_node(uid: str) -> None:
    """A tag that moved is the same text; by its digest it is seen to be another image."""
    panel = PANELS[f"{uid}: Images and nodes"]
    assert {"Image", "Digest", "Nodes"} <= set(columns_of(panel))
    (target,) = panel["targets"]
    assert "server, image, digest, nodes) (laptime_run_server_info{" in target["expr"]
    assert "loaded into its node" in panel["description"]


def test_the_picture_of_response_times_says_which_are_not_in_it() -> None:
    panel = PANELS["laptime-run: Response times"]
    # On a logarithmic axis there is no room for it.
    assert all("} < Inf)" in one["expr"] for one in panel["targets"])
    assert "failed" in panel["description"]


def test_success_and_failure_have_their_colours_and_each_state_one_of_its_own() -> None:
    rules = PANELS["laptime-operator: Runs by state"]["fieldConfig"]["overrides"]
    colours = {
        rule["matcher"]["options"]: entry["value"]["fixedColor"]
        for rule in rules
        for entry in rule["properties"]
    }
    assert (colours["Succeeded"], colours["Failed"]) == ("green", "red")
    assert set(colours) == set(STATES)
    assert len(set(colours.values())) == len(colours)
    # The same as where a state is a word.
    assert colours == {state: color for state, (_, color) in STATES.items()}


FAILED = r"error|fail|deadlock"


@pytest.mark.parametrize("name", [one for one in PANELS if PANELS[one]["type"] == "timeseries"])
def test_what_failed_is_never_green(name: str) -> None:
    """The first colour of Grafana's palette is, and an only line has the first."""
    config = PANELS[name]["fieldConfig"]
    lines = {
        line
        for target in PANELS[name]["targets"]
        for line in (target["legendFormat"], *metric_names(target["expr"]))
    }
    if not any(re.search(FAILED, line, re.IGNORECASE) for line in (name, *lines)):
        return
    assert config["defaults"]["color"] == {"mode": "shades", "fixedColor": "red"}
    colours = [
        entry["value"]["fixedColor"]
        for rule in config["overrides"]
        for entry in rule["properties"]
        if entry["id"] == "color"
    ]
    assert "green" not in colours


@pytest.mark.parametrize(
    ("name", "failed", "others"),
    [
        ("Requests to the API server", ["GET 0", "PUT 409", "GET 500"], ["GET 200", "PATCH 201"]),
        ("Reconcile rate", ["error"], []),
    ],
)
def test_lines_of_failures_among_others_are_red(
    name: str, failed: list[str], others: list[str]
) -> None:
    rules = [
        (rule["matcher"], entry["value"]["fixedColor"])
        for rule in PANELS[f"laptime-operator: {name}"]["fieldConfig"]["overrides"]
        for entry in rule["properties"]
        if entry["id"] == "color"
    ]

    def of(line: str) -> list[str]:
        return [
            color
            for matcher, color in rules
            if (
                matcher["options"] == line
                if matcher["id"] == "byName"
                else re.search(matcher["options"].strip("/"), line)
            )
        ]

    assert [of(line) for line in failed] == [["red"]] * len(failed)
    assert [of(line) for line in others] == [[]] * len(others)


@pytest.mark.parametrize("color", [one for _, one in STATES.values() if one.startswith("#")])
def test_a_colour_of_a_word_can_be_read_on_white_and_on_black(color: str) -> None:
    assert min(contrast(color, surface) for surface in SURFACES) >= 3


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        (LIMITS, ["Place"]),
        ("Results", ["Load", "Rank", "Place"]),
        ("Trials", ["Trial"]),
    ],
)
def test_the_rows_of_a_table_of_a_run_have_one_order(name: str, columns: list[str]) -> None:
    panel = PANELS[f"laptime-run: {name}"]
    assert [one["displayName"] for one in panel["options"]["sortBy"]] == columns
    assert not any(one["desc"] for one in panel["options"]["sortBy"])
    (organize,) = (one for one in panel["transformations"] if one["id"] == "organize")
    assert set(columns) <= set(organize["options"]["renameByName"].values())
    overrides = {
        one["matcher"]["options"]: {entry["id"]: entry["value"] for entry in one["properties"]}
        for one in panel["fieldConfig"]["overrides"]
    }
    assert [one for one in columns if overrides[one].get("custom.hidden")] == (
        ["Place"] if "Place" in columns else []
    )


def drawn_field(panel: dict[str, Any]) -> str:
    """Return the field that a picture of the answer draws over."""
    made = {
        one["options"].get("alias"): one["options"]
        for one in panel["transformations"]
        if one["id"] == "calculateField"
    }
    if "Drawn" in made:
        assert "Value #B" in made["Drawn"]["reduce"]["include"]
        return "Drawn"
    # Of one query the value has no letter.
    return "Value" if len(panel["targets"]) == 1 else "Value #B"


@pytest.mark.parametrize("name", ["Factor against the baseline", "Throughput"])
def test_one_wide_interval_does_not_make_dots_of_the_others(name: str) -> None:
    panel = PANELS[f"laptime-run: {name}"]
    expressions = {target["refId"]: target["expr"] for target in panel["targets"]}
    _, _, cut = expressions["B"].partition(f"clamp_max({expressions['A']}, 2 * scalar(")
    assert cut.removeprefix("clamp_min(").startswith("max(")
    assert 'bound="estimate"' in expressions["B"]
    (organize,) = (one for one in panel["transformations"] if one["id"] == "organize")
    # An XY chart draws over the first of the numbers; the exact one is what the mouse shows.
    place = organize["options"]["indexByName"]
    assert place[drawn_field(panel)] < place["Place"] < place["Value #A"]
    (hidden,) = (
        rule["properties"][0]["value"]
        for rule in panel["fieldConfig"]["overrides"]
        if rule["matcher"]["options"] == "/^Exact/"
        and rule["properties"][0]["id"] == "custom.hideFrom"
    )
    assert (hidden["viz"], hidden["tooltip"]) == (True, False)
    assert "twice the highest estimate" in panel["description"]


def test_an_end_of_a_factor_is_never_cut_on_the_other_side_of_1() -> None:
    """Twice the highest of the servers that are chosen may lie below 1."""
    expr = QUERIES["laptime-run: Factor against the baseline B"]
    cut = expr.partition(", 2 * scalar(")[2]
    assert cut.startswith("clamp_min(max(laptime_result_factor{")
    assert 'server=~"$server"' in cut
    assert cut.endswith('bound="estimate"}), 1)))')


def test_the_time_left_is_told_to_the_second() -> None:
    assert PANELS["laptime-run: Time left"]["fieldConfig"]["defaults"]["unit"] == "dthms"
    (rule,) = (
        one
        for one in PANELS["laptime-runs: All runs"]["fieldConfig"]["overrides"]
        if one["matcher"]["options"] == "Time left"
    )
    assert {"id": "unit", "value": "dthms"} in rule["properties"]


def test_the_way_to_a_run_that_goes_on_follows_the_clock_and_to_another_ends_after_it() -> None:
    panel = PANELS["laptime-runs: All runs"]
    (link,) = columns_of(panel)["Run"]["links"]
    # The words of the column: a number of an end, and Grafana's own word for no end.
    assert link["url"].endswith("&to=${__data.fields.Until.text}")
    until = columns_of(panel)["Until"]
    (mapping,) = until["mappings"]
    assert {value: one["text"] for value, one in mapping["options"].items()} == {"Infinity": "now"}
    assert (until["unit"], until["decimals"]) == ("none", 0)
    (expr,) = (one["expr"] for one in panel["targets"] if "finished" in one["expr"])
    assert " or (0 * max by (namespace, run) (laptime_run_created" in expr
    assert expr.endswith(" + Inf)")
    assert "time()" not in expr
    # Who scrapes the operator once a minute has heard of the end by then.
    (later,) = re.findall(r"finished_timestamp_seconds\) \+ (\d+)\)", expr)
    assert int(later) > 60
    # It is what the runs that go on stand first by.
    assert [one["displayName"] for one in panel["options"]["sortBy"]] == ["Until"]


COMPARED = [name for name in QUERIES if re.match(r"laptime-compare: (?!variable)", name)]


@pytest.mark.parametrize("name", COMPARED)
def test_runs_are_compared_with_those_of_their_scenario_alone(name: str) -> None:
    """In two namespaces a run of the same name may be of something else."""
    assert 'scenario="$scenario"' in QUERIES[name]


@pytest.mark.parametrize("uid", ["laptime-run", "laptime-tiers"])
def test_the_way_from_a_run_to_compare_brings_its_scenario(uid: str) -> None:
    variables = {one["name"]: one for one in DOCUMENTS[uid]["templating"]["list"]}
    assert variables["scenario"]["hide"] == 2
    assert not variables["scenario"]["skipUrlSync"]
    asked = QUERIES[f"{uid}: variable scenario"]
    assert asked == 'laptime_run_info{namespace="$namespace",run="$run"}'


def test_all_servers_of_a_run_may_be_chosen_on_the_way_to_server() -> None:
    (variable,) = (
        one for one in DOCUMENTS["laptime-server"]["templating"]["list"] if one["name"] == "server"
    )
    assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (True, True, ".*")
    asked = [expr for name, expr in QUERIES.items() if re.match(r"laptime-server: [IA]", name)]
    assert len(asked) >= 10
    assert all('server=~"$server"' in expr for expr in asked)
    # Which one a row is of is said then.
    assert "Server" in columns_of(PANELS["laptime-server: In each run"])


@pytest.mark.parametrize(
    "name",
    [
        "laptime-runs: All runs",
        "laptime-compare: Verdicts",
        "laptime-compare: Servers",
        "laptime-server: In each run",
    ],
)
def test_a_row_of_a_run_leads_to_that_run_alone(name: str) -> None:
    """Where several are chosen, or all, the way over the head leads to none."""
    (link,) = columns_of(PANELS[name])["Run"]["links"]
    wanted = "&var-namespace=${__data.fields.Namespace}&var-run=${__data.fields.Run}&"
    assert wanted in link["url"]
    assert "Namespace" in columns_of(PANELS[name])


def test_trials_stand_in_the_order_of_the_plan_and_say_so() -> None:
    """In which a trial that is measured again stands before many that were measured earlier."""
    panel = PANELS["laptime-run: Trials"]
    assert [one["displayName"] for one in panel["options"]["sortBy"]] == ["Trial"]
    assert panel["description"].startswith("Every measurement in the order of the plan.")


def test_the_live_line_is_of_the_servers_and_loads_that_are_chosen() -> None:
    live = QUERIES["laptime-run: Requests of each second B"]
    chosen = 'namespace="$namespace",run="$run",server=~"$server",load=~"$load"'
    assert f"laptime_generator_requests_total{{{chosen}}}" in live


def test_two_operators_that_speak_of_one_trial_break_no_panel_and_count_once() -> None:
    """As while one takes over from another; what is there twice cannot be joined with."""
    live = QUERIES["laptime-run: Requests of each second B"]
    assert "max by (trial, position) (laptime_run_current_trial{" in live
    lacking = QUERIES["laptime-run: Trials with seconds that are missing A"]
    once = 'max by (trial) (laptime_trial_seconds_complete{namespace="$namespace",run="$run"})'
    assert lacking == f"count({once}) - sum({once})"


@pytest.mark.parametrize(
    "name",
    [
        "laptime-run: Results",
        "laptime-runs: All runs",
        "laptime-compare: Verdicts",
        "laptime-compare: Servers",
        "laptime-server: In each run",
    ],
)
def test_a_column_of_factors_says_which_direction_is_faster(name: str) -> None:
    assert "Factor" in columns_of(PANELS[name])
    assert "factors are of response times: below 1 is faster." in PANELS[name]["description"]


def test_a_run_without_an_estimate_is_not_told_to_be_a_fault_of_scraping() -> None:
    panel = PANELS["laptime-run: Time left"]
    assert panel["fieldConfig"]["defaults"]["noValue"].startswith("No data: no estimate, ")
    assert "was not accepted" in panel["description"]


OF_THE_OPERATOR = [
    name
    for name, panel in PANELS.items()
    if name.startswith(("laptime-run: ", "laptime-compare: ", "laptime-server: "))
    and all(
        re.match("laptime_(run|result|trial)_", metric)
        for target in panel["targets"]
        for metric in metric_names(target["expr"])
    )
]


@pytest.mark.parametrize("name", OF_THE_OPERATOR)
def test_a_run_of_which_the_operator_says_nothing_may_be_gone_or_too_old(name: str) -> None:
    """Of one that was deleted no panel finds that it was not measured, or nobody scraped."""
    text = PANELS[name]["fieldConfig"]["defaults"]["noValue"]
    assert re.search(r"\bgone\b", text)
    assert f"newest {run_metrics.MOST_RUNS}" in text
    assert re.search("operator (is )?not scraped", text)


ROOM = {
    r"laptime_result_tie": f"{run_metrics.MOST_TIES} ties",
    r"laptime_result_objective": f"{run_metrics.MOST_OBJECTIVES} objectives",
    r"laptime_result_check_\w+": f"{run_metrics.MOST_CHECKS} checks",
    r"laptime_result_script_\w+": f"{run_metrics.MOST_METRICS} metrics",
    r"laptime_trial_\w+": f"{run_metrics.MOST_TRIALS} newer trials",
    r"laptime_result_\w+": f"{run_metrics.MOST_ROWS} rows",
}
"""Of which metrics there is how much over all runs; the first that fits."""


@pytest.mark.parametrize("name", OF_THE_OPERATOR)
def test_a_run_may_have_no_room_left_by_newer_ones(name: str) -> None:
    """What is shown of all runs is bounded, and one of the newest 50 may find nothing left."""
    asked = {metric for one in PANELS[name]["targets"] for metric in metric_names(one["expr"])}
    found = {
        next((room for form, room in ROOM.items() if re.fullmatch(form, metric)), None)
        for metric in asked
    }
    text = PANELS[name]["fieldConfig"]["defaults"]["noValue"]
    assert {room for room in found if room and room not in text} == set()


def test_every_part_of_the_answer_is_of_the_operator() -> None:
    assert {"Verdict", "State", "Progress", "Throughput", "Results", "Trials"} <= {
        name.removeprefix("laptime-run: ") for name in OF_THE_OPERATOR
    }


def test_the_documents_say_how_many_series_runs_may_take_at_most() -> None:
    text = (Path(__file__).parents[2] / "docs/dashboards.md").read_text()
    (stated,) = re.findall(r"at most some ([\d,]+) series", text)
    found = re.findall(r"(\d+) \u00d7 (\d+) of (\w+)", text)
    parts = {what: (int(most), int(each)) for most, each, what in found}
    assert {what: most for what, (most, _) in parts.items()} == {
        "runs": run_metrics.MOST_RUNS,
        "rows": run_metrics.MOST_ROWS,
        "trials": run_metrics.MOST_TRIALS,
        "checks": run_metrics.MOST_CHECKS,
        "metrics": run_metrics.MOST_METRICS,
    }
    alone = run_metrics.MOST_OBJECTIVES + run_metrics.MOST_TIES
    assert (
        0.95
        <= (sum(most * each for most, each in parts.values()) + alone)
        / int(stated.replace(",", ""))
        <= 1
    )


def test_both_trials_of_a_duet_are_in_its_state() -> None:
    """A panel of figures that reduces takes one of each query."""
    panel = PANELS["laptime-run: State"]
    options = panel["options"]["reduceOptions"]
    assert options["values"] is True
    assert "limit" not in options or options["limit"] >= 3
    # Each on one of three lines that share the height.
    place, size = panel["gridPos"], panel["options"]["text"]["valueSize"]
    letters = (SCREEN * place["w"] / WIDTH - 40) / (0.5 * size)
    assert letters >= len("fastapi-16, closed, repetition 3")
    assert 3 * 1.2 * size <= 38 * place["h"] - 48


def test_a_picture_of_cpu_without_data_says_that_nobody_may_have_watched() -> None:
    panel = PANELS["laptime-run: CPU of the server, all repetitions"]
    assert "no agent watched the server" in panel["fieldConfig"]["defaults"]["noValue"]
    of_requests = PANELS["laptime-run: Requests of each second, all repetitions"]
    assert "agent" not in of_requests["fieldConfig"]["defaults"]["noValue"]


WATCHED = re.compile(r"laptime_(pod|container|generator|node|neighbour)_")
"""What agents and generators say."""


def test_what_is_joined_with_what_the_operator_says_names_it_where_there_is_no_data() -> None:
    """Its lines end with the operator, whatever the agents say meanwhile."""
    joined = {}
    for name, panel in PANELS.items():
        asked = [metric_names(target["expr"]) for target in panel["targets"]]
        if any(
            any(one.startswith("laptime_run_") for one in names) and any(map(WATCHED.match, names))
            for names in asked
        ):
            joined[name] = panel["fieldConfig"]["defaults"]["noValue"]
    assert len(joined) >= 8
    assert [name for name, text in joined.items() if "operator" not in text] == []


@pytest.mark.parametrize(
    "name", ["laptime-run: Errors of each second", "laptime-tiers: Generator: errors"]
)
def test_a_picture_of_errors_says_of_which_trials_it_is_the_mean(name: str) -> None:
    """Of a trial without errors of some kind there is no series of that kind."""
    assert QUERIES[f"{name} A"].startswith("avg by (position, server, ")
    assert "the mean of those that had some of the kind" in PANELS[name]["description"]


SECONDS_OF_TRIALS = [
    name for name, one in PANELS.items() if "laptime_second_" in one["targets"][0]["expr"]
]


@pytest.mark.parametrize("name", SECONDS_OF_TRIALS)
def test_a_picture_of_seconds_without_data_says_that_prometheus_may_have_lost_them(
    name: str,
) -> None:
    assert "does not keep them any more" in PANELS[name]["fieldConfig"]["defaults"]["noValue"]


def test_that_no_second_is_missing_is_said_of_when_it_was_asked() -> None:
    """Prometheus gives up what is older than it keeps, and may lose all; nobody asks again."""
    assert len(SECONDS_OF_TRIALS) >= 5
    description = PANELS["laptime-run: Trials with seconds that are missing"]["description"]
    assert "lacked seconds right after the trial" in description
    assert "prometheus.retention" in description
    assert "everything that was counted is drawn" not in description


@pytest.mark.parametrize("name", ["Throughput", "Results"])
def test_what_the_throughput_of_a_search_is_stands_beside_it(name: str) -> None:
    assert (
        "the middle between the rate that was met and the one that was missed"
        in PANELS[f"laptime-run: {name}"]["description"]
    )


def test_verdicts_have_room() -> None:
    # In lines of a table of small cells, beside the validity.
    place = PANELS["laptime-run: Verdict"]["gridPos"]
    letters = int((SCREEN * place["w"] / WIDTH - 40 - 90) / CELL_LETTER)
    assert letters * ((38 * place["h"] - 48) // 22) >= 300
    overrides = PANELS["laptime-runs: All runs"]["fieldConfig"]["overrides"]
    properties = [{one["id"]: one["value"] for one in rule["properties"]} for rule in overrides]
    taken = sum(one.get("custom.width", 0) for one in properties if not one.get("custom.hidden"))
    assert SCREEN - 60 - taken >= 350


@pytest.mark.parametrize("name", ["Factor against the baseline", "Throughput", "Response times"])
def test_servers_stand_in_an_order_in_the_pictures_of_the_answer(name: str) -> None:
    panel = PANELS[f"laptime-run: {name}"]
    of_servers = [one["expr"] for one in panel["targets"] if one["refId"] in "AB"]
    assert all("position, place, " in expr for expr in of_servers)
    organize = panel["transformations"][-2]["options"]
    drawn = drawn_field(panel)
    assert min(organize["indexByName"], key=organize["indexByName"].get) == drawn
    assert organize["renameByName"][drawn] not in ("Place", "Exact")
    done = {
        one["id"]: (at, one)
        for at, one in enumerate(panel["transformations"])
        if one["options"].get("alias") != "Drawn"
    }
    # Place 10 is below 9, so it is a number before it is sorted by; the first is at the top.
    order = ["merge", "convertFieldType", "calculateField", "sortBy", "organize"]
    assert sorted(order, key=lambda one: done[one][0]) == order
    (conversion,) = done["convertFieldType"][1]["options"]["conversions"]
    assert conversion == {"targetField": "place", "destinationType": "number"}
    binary = done["calculateField"][1]["options"]["binary"]
    assert binary == {"left": "0", "operator": "-", "right": "place"}


@pytest.mark.parametrize("name", ["Results", LIMITS])
def test_rows_stand_in_the_order_of_the_spec(name: str) -> None:
    panel = PANELS[f"laptime-run: {name}"]
    assert panel["options"]["sortBy"][-1]["displayName"] == "Place"
    # Of the query that has every row.
    (of_all,) = (one["expr"] for one in panel["targets"] if "_result_state{" in one["expr"])
    assert "place" in of_all.partition(")")[0]
    assert "convertFieldType" in [one["id"] for one in panel["transformations"]]


def test_each_cause_has_words_and_none_says_that_all_was_answered() -> None:
    assert set(CAUSES) == {one.value for one in Cause}
    # Requests may have failed beside it.
    assert [text for text, _ in CAUSES.values() if "answered" in text] == []


def test_the_words_for_nodes_are_those_that_runs_have() -> None:
    assert set(ISOLATION) == {one.value for one in Quietness}
    panel = PANELS["laptime-run: Isolation"]
    mappings = {
        rule["matcher"]["options"]: entry["value"]
        for rule in panel["fieldConfig"]["overrides"]
        for entry in rule["properties"]
        if entry["id"] == "mappings"
    }
    assert set(mappings["Nodes"][0]["options"]) == set(ISOLATION)
    # The reason begins with the same word, which is there once.
    pattern = mappings["Why"][0]["options"]["pattern"].strip("/")
    assert mappings["Why"][0]["options"]["result"]["text"] == "$1"
    for quietness in Quietness:
        isolation = Isolation.model_validate({"word": quietness, "message": "others used much"})
        told = re.sub(pattern, r"\1", wording.isolation(isolation))
        assert told.startswith("others used much"), told


def test_other_pods_are_all_pods_of_a_node_without_those_of_the_run() -> None:
    expr = QUERIES["laptime-run: Other pods on the nodes A"]
    assert metric_names(expr) == {
        "laptime_node_pods_cpu_seconds_total",
        "laptime_pod_cpu_seconds_total",
    }
    assert " - on (node) " in expr


def names_in_an_xy_chart(names: list[str]) -> list[str]:
    """Return what Grafana makes of them: without the words that all begin or end with."""
    every = [name.split() for name in names]

    def shared(step: int) -> int:
        columns = zip(*(one[::step] for one in every), strict=False)
        return len(list(itertools.takewhile(lambda words: len(set(words)) == 1, columns)))

    return [" ".join(one[shared(1) : len(one) - shared(-1)]) for one in every]


XY_CHARTS = {name: one for name, one in PANELS.items() if one["type"] == "xychart"}


@pytest.mark.parametrize("name", XY_CHARTS)
def test_a_line_of_an_xy_chart_has_a_whole_name_whatever_all_names_share(name: str) -> None:
    form, *of_some = (
        entry["value"]
        for rule in XY_CHARTS[name]["fieldConfig"]["overrides"]
        for entry in rule["properties"]
        if entry["id"] == "displayName" and "labels.server" in entry["value"]
    )
    # What is left out are the first and the last words: names of all kinds have as many.
    assert {len(one.split()) for one in of_some} <= {len(form.split())}

    def named(*lines: tuple[str, str]) -> list[str]:
        names = []
        for server, load in lines:
            labels = {"server": server, "load": load, "repetition": "1"}
            names.append(form)
            for label, value in labels.items():
                names[-1] = names[-1].replace(f"${{__field.labels.{label}}}", value)
        return names_in_an_xy_chart(names)

    assert named(("one", "closed"), ("two", "closed")) == ["one", "two"]
    of_two_loads = named(("one", "closed"), ("two", "closed"), ("one", "open"))
    assert [one.replace(" #1", "") for one in of_two_loads] == [
        "one · closed",
        "two · closed",
        "one · open",
    ]
    assert named(("one", "closed"), ("one", "open")) == ["closed", "open"]


def rules_of(name: str, key: str) -> list[tuple[re.Pattern[str], Any]]:
    """Return the rules that set a property of lines of a panel: of which names, and to what."""
    return [
        (re.compile(rule["matcher"]["options"].strip("/")), entry["value"])
        for rule in PANELS[name]["fieldConfig"]["overrides"]
        for entry in rule["properties"]
        if entry["id"] == key
    ]


def at_first(server: str, position: object, rank: object = "undefined") -> str:
    """Return the name that Grafana gives a line of an XY chart before it gets another one."""
    labels = {"load": "closed", "position": position, "rank": rank, "server": server}
    told = ", ".join(f'{key}="{one}"' for key, one in labels.items())
    return f"Place {{{told}}}"


def test_the_picture_of_factors_has_a_line_at_1() -> None:
    name = "laptime-run: Factor against the baseline"
    expr = QUERIES[f"{name} C"]
    # A sample of that metric is 1, and there is one for each row; none where there is no factor.
    assert expr.startswith("label_replace(max by (load, place) (laptime_result_state{")
    assert ") and on (load) laptime_result_factor{" in expr
    assert expr.endswith(', "server", "=1", "", "")')
    line = at_first("=1", "undefined")
    last = {}
    for key in ("custom.pointSize.fixed", "custom.hideFrom", "color", "custom.lineStyle"):
        found = [value for rule, value in rules_of(name, key) if rule.search(line)]
        last[key] = found[-1]
    # Where one row is drawn it is a point, which lines alone would not show.
    assert PANELS[name]["fieldConfig"]["defaults"]["custom"]["show"] == "points+lines"
    assert rules_of(name, "custom.show") == []
    # Smaller than those of servers.
    assert 0 < last["custom.pointSize.fixed"] < 5
    assert (last["custom.hideFrom"]["viz"], last["custom.hideFrom"]["legend"]) == (False, True)
    assert last["color"]["fixedColor"] not in SERVER_COLORS
    assert last["custom.lineStyle"]["fill"] == "dash"
    assert not any(
        rule.search(at_first("one", 1)) for rule, _ in rules_of(name, "custom.pointSize.fixed")
    )
    assert "The broken line (of one row alone a grey point) is at 1" in PANELS[name]["description"]


def test_servers_that_share_a_rank_say_so_in_the_picture_of_factors() -> None:
    name = "laptime-run: Factor against the baseline"
    rules = rules_of(name, "displayName")

    def named(line: str) -> str:
        return str([value for rule, value in rules if rule.search(line)][-1])

    alone, tied = named(at_first("one", 1)), named(at_first("one", 1, 2))
    assert tied == alone.replace("labels.server}", "labels.server}(=${__field.labels.rank})")
    (split,) = (
        one["options"]["fields"]
        for one in PANELS[name]["transformations"]
        if one["id"] == "partitionByValues"
    )
    assert "rank" in split
    assert QUERIES[f"{name} D"].startswith('count_values by (server, load) ("rank", ')
    assert QUERIES[f"{name} D"].endswith(" > 1)")
    assert "(=2)" in PANELS[name]["description"]


def test_a_row_of_a_picture_without_anything_to_draw_is_left_out() -> None:
    """As one of a server that has a rank and no factor: it would be a name without a line."""
    done = PANELS["laptime-run: Factor against the baseline"]["transformations"]
    kinds = [one["options"].get("alias") or one["id"] for one in done]
    assert kinds.index("merge") < kinds.index("Drawn") < kinds.index("filterByValue")
    assert kinds.index("filterByValue") < kinds.index("organize")
    (left_out,) = (one["options"] for one in done if one["id"] == "filterByValue")
    assert left_out["type"] == "exclude"
    assert [one["fieldName"] for one in left_out["filters"]] == ["Drawn"]


@pytest.mark.parametrize("name", ["Factor against the baseline", "Throughput", "Response times"])
def test_points_of_one_colour_differ_in_all_grafanas_that_draw_them(name: str) -> None:
    """Of one repetition a figure is a point; Grafana 11.1 knows at least the size of it."""
    keys = ("custom.pointSize.fixed", "custom.pointShape", "custom.fillOpacity")
    looks = {}
    for place in range(1, 34):
        line = at_first("some", place)
        looks[place] = [
            [value for rule, value in rules_of(f"laptime-run: {name}", key) if rule.search(line)]
            for key in keys
        ]
    assert looks[1] == [[], [], []]
    for colour in range(1, len(SERVER_COLORS) + 1):
        same = [looks[place] for place in range(colour, 34, len(SERVER_COLORS))]
        sizes = [one[0] for one in same]
        assert len(set(map(str, sizes))) == len(sizes)
        shapes = [str(one[1:]) for one in same]
        # A neighbour among them has another shape or is empty.
        assert all(one != other for one, other in pairwise(shapes))


def test_response_times_are_points_since_bars_would_stand_on_an_arbitrary_floor() -> None:
    assert {one["type"] for one in PANELS.values()} == {"timeseries", "xychart", "table", "stat"}
    panel = PANELS["laptime-run: Response times"]
    properties = {
        entry["id"]: entry["value"]
        for rule in panel["fieldConfig"]["overrides"]
        for entry in rule["properties"]
        if rule["matcher"]["options"].startswith(("/^p50", "/^quantile"))
    }
    assert properties["custom.scaleDistribution"]["type"] == "log"
    # A hovering mouse says which point it is.
    assert set(properties["mappings"][0]["options"]) == set(PERCENTILES)
