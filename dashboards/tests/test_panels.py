"""Every panel says what it shows, and asks for nothing that nobody exports."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from as_written import (
    CELL_LETTER,
    DOCUMENTS,
    LIMITS,
    PANELS,
    QUERIES,
    SCREEN,
    SECONDS_OF_TRIALS,
    WIDTH,
    every_panel,
    metric_names,
    panels,
    parsed,
)
from exported_metrics import exported
from laptime.analysis import wording
from laptime.api.isolation import Isolation, Quietness
from laptime.reconcile import run_metrics, run_samples
from laptime.reconcile.metrics import CONTROLLER

from laptime_dashboards.meanings import ISOLATION
from laptime_dashboards.write import write


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


@pytest.mark.parametrize("uid", ["laptime-compare", "laptime-server"])
def test_the_first_screen_of_several_runs_has_the_pictures_and_asks_little(uid: str) -> None:
    document = DOCUMENTS[uid]
    first = [one for one in document["panels"] if one["gridPos"]["y"] + one["gridPos"]["h"] <= 17]
    assert {"Throughput", "Factor against the baseline"} <= {one["title"] for one in first}
    seen = [one for one in document["panels"] if one["gridPos"]["y"] <= 22]
    asked = sum(len(one["targets"]) for one in seen)
    variables = [one for one in document["templating"]["list"] if one["type"] == "query"]
    assert asked + len(variables) <= 25


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


FIGURES = {name: one for name, one in PANELS.items() if one["type"] == "stat"}


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
        # As wide as letters of this weight are in Inter, in which Grafana sets them.
        lines = textwrap.wrap(said, int(width / (0.6 * size)))
        assert 1.2 * size * len(lines) <= height


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


def test_the_time_left_is_told_to_the_second() -> None:
    assert PANELS["laptime-run: Time left"]["fieldConfig"]["defaults"]["unit"] == "dthms"
    (rule,) = (
        one
        for one in PANELS["laptime-runs: All runs"]["fieldConfig"]["overrides"]
        if one["matcher"]["options"] == "Time left"
    )
    assert {"id": "unit", "value": "dthms"} in rule["properties"]


COMPARED = [name for name in QUERIES if re.match(r"laptime-compare: (?!variable)", name)]


@pytest.mark.parametrize("name", COMPARED)
def test_runs_are_compared_with_those_of_their_scenario_alone(name: str) -> None:
    """In two namespaces a run of the same name may be of something else."""
    assert 'scenario="$scenario"' in QUERIES[name]


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
    r"laptime_result_tie": f"{run_samples.MOST_TIES} ties",
    r"laptime_result_objective": f"{run_samples.MOST_OBJECTIVES} objectives",
    r"laptime_result_check_\w+": f"{run_samples.MOST_CHECKS} checks",
    r"laptime_result_script_\w+": f"{run_samples.MOST_METRICS} metrics",
    r"laptime_trial_\w+": f"{run_metrics.MOST_TRIALS} newer trials",
    r"laptime_result_\w+": f"{run_samples.MOST_ROWS} rows",
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
        "rows": run_samples.MOST_ROWS,
        "trials": run_metrics.MOST_TRIALS,
        "checks": run_samples.MOST_CHECKS,
        "metrics": run_samples.MOST_METRICS,
    }
    alone = run_samples.MOST_OBJECTIVES + run_samples.MOST_TIES
    assert (
        0.95
        <= (sum(most * each for most, each in parts.values()) + alone)
        / int(stated.replace(",", ""))
        <= 1
    )


def test_servers_of_one_rank_need_not_be_a_tie() -> None:
    """As those that surely differ by less than is worth knowing (`analysis.deciding.ties`)."""
    panel = PANELS["laptime-run: Ties"]
    text = panel["fieldConfig"]["defaults"]["noValue"]
    assert "told apart or surely as good as alike, nobody knows their noise" in text
    assert "less than is worth knowing are none, though they share a rank" in panel["description"]


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


OF_EXPORTERS = [
    name
    for name, panel in PANELS.items()
    for target in panel["targets"]
    if any(re.match("laptime_(postgres|pgbouncer)_", one) for one in metric_names(target["expr"]))
]


@pytest.mark.parametrize("name", sorted(set(OF_EXPORTERS)))
def test_where_exporters_are_left_out_nobody_says_that_nothing_waited(name: str) -> None:
    assert "exporters are left out" in PANELS[name]["fieldConfig"]["defaults"]["noValue"]


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
