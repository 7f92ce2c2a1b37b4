"""Tables can be read, have the digits that the report has, and lead where they say."""

from __future__ import annotations

import re
from typing import Any

import pytest
from as_written import (
    DOCUMENTS,
    LIMITS,
    PANELS,
    QUERIES,
    SCREEN,
    SORTED,
    WIDTH,
    cell_width,
    shown,
)
from laptime.analysis import wording
from laptime.api.causes import Cause


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


TABLES = {name: one for name, one in PANELS.items() if one["type"] == "table"}


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
        by = {one["displayName"] for one in panel["options"].get("sortBy", ())}
        # And a line between the columns.
        needed = {head: cell_width(head) + 1 + SORTED * (head in by) for head in widths}
        assert {head: one for head, one in needed.items() if one > widths[head]} == {}
    (organize,) = (one for one in panel["transformations"] if one["id"] == "organize")
    others = set(organize["options"]["renameByName"].values()) - set(widths) - hidden
    # What has no width shares what is left, and needs so much.
    left = SCREEN * panel["gridPos"]["w"] / WIDTH - 60 - sum(widths.values())
    columns = columns_of(panel)
    # Grafana makes it 150 px wide at least where nothing is said, and the table goes on unseen.
    assert others
    assert left >= sum(columns[one].get("custom.minWidth", 150) for one in others)


def test_a_cause_stands_on_one_line() -> None:
    """Rows are as high as a value needs, such as serverCpu, and not the words for it."""
    column = columns_of(PANELS[f"laptime-run: {LIMITS}"])["Suspected cause"]
    (mapping,) = column["mappings"]
    causes = [one["text"] for one in mapping["options"].values()]
    assert len(causes) == len(Cause)
    assert max(map(cell_width, causes)) <= column["custom.width"]


def test_a_cause_that_no_experiment_has_proved_is_called_suspected() -> None:
    titles = [one["title"] for one in PANELS.values()] + [
        column for panel in TABLES.values() for column in columns_of(panel)
    ]
    of_causes = [one for one in titles if re.search("limited|cause", one, re.IGNORECASE)]
    assert LIMITS in of_causes
    assert [one for one in of_causes if "suspected" not in one.lower()] == []


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_would_be_empty_in_newer_grafanas_says_why_in_its_description(
    name: str,
) -> None:
    """They show the text for no data where there are no columns, and queries that are joined leave
    theirs without any row."""
    panel = TABLES[name]
    done = [one["id"] for one in panel["transformations"]]
    (organize,) = (one for one in panel["transformations"] if one["id"] == "organize")
    left = [one for one in organize["options"]["renameByName"] if one.startswith("Value #")]
    reason = panel["fieldConfig"]["defaults"]["noValue"].removeprefix("No data: ")
    told = panel["description"].endswith(f" Where it has no rows: {reason}.")
    assert told == ("merge" in done and bool(left))


@pytest.mark.parametrize("name", TABLES)
def test_no_cell_of_a_table_is_cut(name: str) -> None:
    """Names are as long as people make them, and wrapped; words with a colour are known."""
    panel = TABLES[name]
    (organize,) = (one for one in panel["transformations"] if one["id"] == "organize")
    columns = columns_of(panel)
    moments = {
        "dateTimeAsIso": "2026-08-30 20:04:56",
        "time:MM-DD HH:mm": "08-30 20:04",
    }
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
            assert max(map(cell_width, words)) <= column["custom.width"], title


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


@pytest.mark.parametrize("uid", ["laptime-compare", "laptime-server"])
def test_what_a_server_ran_stands_in_the_order_of_its_runs(uid: str) -> None:
    """Two neighbours are one change; names of runs have no order in time."""
    panel = PANELS[f"{uid}: Images and nodes"]
    assert [(one["displayName"], one["desc"]) for one in panel["options"]["sortBy"]] == [
        ("Server", False),
        ("Created", True),
    ]
    assert columns_of(panel)["Created"]["unit"] == "dateTimeAsIso"
    (target,) = panel["targets"]
    # In milliseconds, as that unit wants it.
    assert target["expr"].startswith("1000 * max by (")
    assert "laptime_run_created_timestamp_seconds" in target["expr"]


def sorts_of(name: str) -> list[tuple[str, bool]]:
    """Return what the rows of a table are sorted by, and whether downwards; the first counts most.

    Grafana sorts the rows before it makes a table of them, one sort after the other, and then the
    table, in which rows that are equal stay as they were.
    """
    panel = TABLES[name]
    kinds = [one["id"] for one in panel["transformations"]]
    before = [one["options"]["sort"] for one in panel["transformations"] if one["id"] == "sortBy"]
    # Of several fields in one it takes the first. They are found by the titles of the columns.
    assert [len(one) for one in before] == [1] * len(before)
    assert kinds[len(kinds) - len(before) :] == ["sortBy"] * len(before)
    then = [(one["displayName"], one["desc"]) for one in panel["options"].get("sortBy") or ()]
    return then + [(one["field"], one["desc"]) for (one,) in reversed(before)]


@pytest.mark.parametrize("name", TABLES)
def test_no_table_is_sorted_by_a_column_that_is_hidden(name: str) -> None:
    """Grafana before 12.2 does not find it: rows are sorted by it before they are a table."""
    columns = columns_of(TABLES[name])
    sorts = [one["displayName"] for one in TABLES[name]["options"].get("sortBy") or ()]
    assert [one for one in sorts if columns[one].get("custom.hidden")] == []
    assert {one for one, _ in sorts_of(name)} <= set(columns)


def test_rows_of_runs_that_are_compared_stand_in_the_order_of_their_lines() -> None:
    name = "laptime-compare: Servers"
    panel = PANELS[name]
    assert sorts_of(name) == [("Server", False), ("Load", False), ("Created", True)]
    # When it was stands below, beside what it ran: there is no room for it here.
    assert columns_of(panel)["Created"]["custom.hidden"] is True


def test_a_factor_of_a_run_stands_beside_its_baseline() -> None:
    panel = PANELS["laptime-compare: Verdicts"]
    columns = list(columns_of(panel))
    assert columns.index("Factor") == columns.index("Baseline") + 1
    assert "with the same baseline" in panel["description"]


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
    assert sorts_of(f"laptime-run: {name}") == [(column, False) for column in columns]
    (organize,) = (one for one in panel["transformations"] if one["id"] == "organize")
    assert set(columns) <= set(organize["options"]["renameByName"].values())
    overrides = {
        one["matcher"]["options"]: {entry["id"]: entry["value"] for entry in one["properties"]}
        for one in panel["fieldConfig"]["overrides"]
    }
    assert [one for one in columns if overrides[one].get("custom.hidden")] == (
        ["Place"] if "Place" in columns else []
    )


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
    assert sorts_of("laptime-runs: All runs") == [("Until", True)]


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
    asked = [
        expr for name, expr in QUERIES.items() if re.match("laptime-server: (?!variable)", name)
    ]
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


@pytest.mark.parametrize("name", ["Results", LIMITS])
def test_rows_stand_in_the_order_of_the_spec(name: str) -> None:
    panel = PANELS[f"laptime-run: {name}"]
    assert sorts_of(f"laptime-run: {name}")[-1] == ("Place", False)
    # Of the query that has every row.
    (of_all,) = (one["expr"] for one in panel["targets"] if "_result_state{" in one["expr"])
    assert "place" in of_all.partition(")")[0]
    assert "convertFieldType" in [one["id"] for one in panel["transformations"]]
