"""Pictures draw what was measured, and all of it."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from as_written import (
    PANELS,
    QUERIES,
    SECONDS_OF_TRIALS,
    SIDE_BY_SIDE,
    at_first,
    look_of,
)

from laptime_dashboards.intervals import MOST_LINES
from laptime_dashboards.meanings import PERCENTILES
from laptime_dashboards.panel_defaults import SERVER_COLORS

AT_ONE = "=1"
"""The place in a spec that the grey points of several runs have, as no server has it."""


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


def test_the_picture_of_response_times_says_which_are_not_in_it() -> None:
    panel = PANELS["laptime-run: Response times"]
    # On a logarithmic axis there is no room for it.
    assert all("} < Inf)" in one["expr"] for one in panel["targets"])
    assert "failed" in panel["description"]


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


@pytest.mark.parametrize(
    "name",
    ["laptime-run: Factor against the baseline", "laptime-run: Throughput", *SIDE_BY_SIDE],
)
def test_one_wide_interval_does_not_make_dots_of_the_others(name: str) -> None:
    panel = PANELS[name]
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


def test_a_picture_of_cpu_without_data_says_that_nobody_may_have_watched() -> None:
    panel = PANELS["laptime-run: CPU of the server, all repetitions"]
    assert "no agent watched the server" in panel["fieldConfig"]["defaults"]["noValue"]
    of_requests = PANELS["laptime-run: Requests of each second, all repetitions"]
    assert "agent" not in of_requests["fieldConfig"]["defaults"]["noValue"]


@pytest.mark.parametrize(
    "name", ["laptime-run: Errors of each second", "laptime-tiers: Generator: errors"]
)
def test_a_picture_of_errors_says_of_which_trials_it_is_the_mean(name: str) -> None:
    """Of a trial without errors of some kind there is no series of that kind."""
    assert QUERIES[f"{name} A"].startswith("avg by (position, server, ")
    assert "the mean of those that had some of the kind" in PANELS[name]["description"]


@pytest.mark.parametrize("name", SECONDS_OF_TRIALS)
def test_a_picture_of_seconds_without_data_says_that_prometheus_may_have_lost_them(
    name: str,
) -> None:
    assert "does not keep them any more" in PANELS[name]["fieldConfig"]["defaults"]["noValue"]


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


def names_in_an_xy_chart(names: list[str]) -> list[str]:
    """Return what Grafana makes of them: without the words that all begin or end with."""
    if len(names) == 1:
        return names
    every = [name.split() for name in names]

    def shared(step: int) -> int:
        columns = zip(*(one[::step] for one in every), strict=False)
        return len(list(itertools.takewhile(lambda words: len(set(words)) == 1, columns)))

    return [" ".join(one[shared(1) : len(one) - shared(-1)]) for one in every]


XY_CHARTS = {name: one for name, one in PANELS.items() if one["type"] == "xychart"}


@pytest.mark.parametrize("name", XY_CHARTS)
def test_an_xy_chart_says_in_its_description_why_it_may_be_empty(name: str) -> None:
    """Itself it says Err, or No data alone, whatever text it has for that."""
    panel = XY_CHARTS[name]
    reason = panel["fieldConfig"]["defaults"]["noValue"].removeprefix("No data: ")
    assert panel["description"].endswith(f" Where it says Err or No data: {reason}.")


@pytest.mark.parametrize("name", XY_CHARTS)
def test_a_line_of_an_xy_chart_has_a_whole_name_whatever_all_names_share(name: str) -> None:
    *of_some, form = (
        entry["value"]
        for rule in XY_CHARTS[name]["fieldConfig"]["overrides"]
        for entry in rule["properties"]
        if entry["id"] == "displayName" and "labels.server" in entry["value"]
    )
    # What is left out are the first and the last words: names of all kinds have as many.
    assert {len(one.split()) for one in of_some} <= {len(form.split())}

    of_one_run = {"run": "first", "scenario": "users", "namespace": "team"}

    def named(*lines: tuple[str, str]) -> list[str]:
        names = []
        for server, load in lines:
            labels = {"server": server, "load": load, "repetition": "1", **of_one_run}
            names.append(form)
            for label, value in labels.items():
                names[-1] = names[-1].replace(f"${{__field.labels.{label}}}", value)
        return names_in_an_xy_chart(names)

    assert named(("one", "closed"), ("two", "closed")) == ["one", "two"]
    of_two_loads = named(("one", "closed"), ("two", "closed"), ("one", "open"))
    assert [re.sub(" (#1|· first)", "", one) for one in of_two_loads] == [
        "one · closed",
        "two · closed",
        "one · open",
    ]
    assert named(("one", "closed"), ("one", "open")) == ["closed", "open"]


def named_as(name: str, *lines: dict[str, str]) -> list[str]:
    """Return what lines with these labels are called in a picture of several runs.

    And after them their grey points at 1, which have names too, in a picture of factors.
    """

    def form(position: object) -> str:
        return str(look_of(name, at_first("some", position))["displayName"])

    assert set(re.findall(r"labels\.(\w+)", form(1))) == set(lines[0])
    names = []
    for one in (form(1), form(AT_ONE)) if "Factor" in name else (form(1),):
        for labels in lines:
            names.append(one)
            for label, value in labels.items():
                names[-1] = names[-1].replace(f"${{__field.labels.{label}}}", value)
    return names_in_an_xy_chart(names)


def row_of_a_run(name: str) -> dict[str, str]:
    """Return labels that a picture of several runs has of a line."""
    one = {"server": "one", "run": "first", "load": "closed", "namespace": "team"}
    return one | ({"scenario": "users"} if name.startswith("laptime-server") else {})


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_a_line_of_several_runs_says_which_it_is_of(name: str) -> None:
    one = row_of_a_run(name)
    other = {**one, "run": "second"}
    assert named_as(name, one, other)[:2] == ["first", "second"]
    assert named_as(name, one, {**other, "server": "two"})[:2] == ["one · first", "two · second"]
    # Points at 1 have no run in their names, so all others have it.
    run = "first · closed · " if "Factor" in name else ""
    # Of two namespaces runs may have one name.
    of_namespaces = named_as(name, one, {**one, "namespace": "others"})[:2]
    if "scenario" in one:
        # Another scenario is other work.
        of_scenarios = named_as(name, one, {**one, "scenario": "plain"})[:2]
        assert of_scenarios == [f"{run}users", f"{run}plain"]
        run += "users · " if run else ""
    assert of_namespaces == [f"{run}team", f"{run}others"]


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_the_only_line_of_several_runs_has_a_name_and_so_has_its_point(name: str) -> None:
    """A point that is called as its line is would leave no word that both do not share."""
    line, *points = named_as(name, row_of_a_run(name))
    assert "first" in line
    assert points == (["=1"] if "Factor" in name else [])


def test_the_picture_of_factors_has_a_line_at_1() -> None:
    name = "laptime-run: Factor against the baseline"
    expr = QUERIES[f"{name} C"]
    # A sample of that metric is 1, and there is one for each row; none where there is no factor.
    assert expr.startswith("label_replace(max by (load, place) (laptime_result_state{")
    assert ") and on (load) laptime_result_factor{" in expr
    assert expr.endswith(', "server", "=1", "", "")')
    last = look_of(name, at_first("=1", "undefined"))
    # Where one row is drawn it is a point, which lines alone would not show.
    assert PANELS[name]["fieldConfig"]["defaults"]["custom"]["show"] == "points+lines"
    assert "custom.show" not in last
    # Smaller than those of servers.
    assert 0 < last["custom.pointSize.fixed"] < 5
    assert (last["custom.hideFrom"]["viz"], last["custom.hideFrom"]["legend"]) == (False, True)
    assert last["color"]["fixedColor"] not in SERVER_COLORS
    assert last["custom.lineStyle"]["fill"] == "dash"
    assert "custom.pointSize.fixed" not in look_of(name, at_first("one", 1))
    assert "The broken line (of one row alone a grey point) is at 1" in PANELS[name]["description"]


def test_servers_that_share_a_rank_say_so_in_the_picture_of_factors() -> None:
    name = "laptime-run: Factor against the baseline"
    alone, tied = (look_of(name, at_first("one", 1, rank)) for rank in ("undefined", 2))
    # And look as all others do.
    assert {**tied, "displayName": alone["displayName"]} == alone
    assert tied["displayName"] == alone["displayName"].replace(
        "labels.server}", "labels.server}(=${__field.labels.rank})"
    )
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


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_several_runs_are_drawn_as_one_is(name: str) -> None:
    """A line for each row of each run, over its whole interval."""
    panel, of_one = PANELS[name], PANELS[f"laptime-run: {name.partition(': ')[2]}"]
    assert (panel["type"], panel["fieldConfig"]["defaults"]) == (
        of_one["type"],
        {
            **of_one["fieldConfig"]["defaults"],
            "noValue": panel["fieldConfig"]["defaults"]["noValue"],
        },
    )
    exact = QUERIES[f"{name} A"]
    assert exact.startswith("max by (namespace, run, server, load, bound) (laptime_result_")
    assert "bound=" not in exact
    (split,) = (
        one["options"]["fields"]
        for one in panel["transformations"]
        if one["id"] == "partitionByValues"
    )
    told = {"scenario"} if name.startswith("laptime-server") else set()
    assert set(split) == {"namespace", "run", "server", "load", "position"} | told
    # Names stand in the order of the lines, and there is room for them.
    assert panel["options"]["legend"]["placement"] == "right"
    assert "Look for a server whose lines of two runs lie apart" in panel["description"]
    # The last one has the place 0, and Grafana would let the axis end there.
    assert look_of(name, at_first("one", 1))["custom.axisSoftMin"] < 0


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_each_row_of_several_runs_has_a_place_of_its_own(name: str) -> None:
    """In the tables of two runs a server may have the same place, or another one."""
    panel = PANELS[name]
    *others, order = [one["refId"] for one in panel["targets"]]
    done = panel["transformations"]
    kinds = [(one["id"], (one.get("filter") or {}).get("options")) for one in done]
    labels = [*(["scenario"] if name.startswith("laptime-server") else []), "load", "server"]
    told = "server, load and scenario" if "scenario" in labels else "server and load"
    end = 4 + len(labels)
    assert kinds[:end] == [
        ("merge", f"/^[{''.join(others)}]$/"),
        *[("sortBy", order)] * (1 + len(labels)),
        ("calculateField", order),
        ("merge", None),
    ]
    # The last sort counts most. Places go upwards from 0: the last row of these is at the top.
    sorts = [one["options"]["sort"][0] for one in done[1 : end - 2]]
    assert [(one["field"], one["desc"]) for one in sorts] == [
        (f"Value #{order}", False),
        *((label, True) for label in labels),
    ]
    assert done[end - 2]["options"] == {"mode": "index", "alias": "Place"}
    newest = QUERIES[f"{name} {order}"]
    assert newest.startswith(f"topk({MOST_LINES}, group by (namespace, run, server, load) (")
    assert "(laptime_run_created_timestamp_seconds)" in newest
    # What is not among the newest has no place, and no line.
    (left_out,) = (one["options"] for one in done if one["id"] == "filterByValue")
    assert [one["fieldName"] for one in left_out["filters"]] == ["Drawn", "Place"]
    words = panel["description"]
    assert f"From the top lines stand by {told}, of each the newest run first." in words
    # All rows of a run were created at once: of the oldest that is drawn any may be missing.
    assert f"At most {MOST_LINES} lines of the newest runs are drawn" in words
    assert "of the last of these some may be left out: the table below has all" in words
    # Without any figure nothing else is there either: an empty picture says why it is empty.
    series = re.findall(r"laptime_result_\w+\{[^}]*\}", QUERIES[f"{name} A"])
    assert [one for one in panel["targets"] if series[0] not in one["expr"]] == []


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_a_server_has_one_colour_in_a_picture_of_several_runs(name: str) -> None:
    """Whatever its place was in the specs of older ones."""
    place = PANELS[name]["targets"][-2]["expr"]
    assert place.startswith("max by (server, position) (topk by (server) (1, laptime_result_")
    assert " * 0 + on (namespace, run) group_left () max by (namespace, run) (" in place
    by_row = [one["expr"] for one in PANELS[name]["targets"][:2]]
    assert not any("position" in expr for expr in by_row)
    words = PANELS[name]["description"]
    assert "the colour of its place in the newest of them that has it" in words
    # The first of one spec and that of another are two servers.
    assert "servers of different runs may share one" in words
    # Nor is a line cut by those that are drawn alone.
    assert "twice the highest estimate of all these runs, drawn or not" in words


@pytest.mark.parametrize("uid", ["laptime-compare", "laptime-server"])
def test_the_factors_of_several_runs_have_a_point_at_1_beside_each(uid: str) -> None:
    name = f"{uid}: Factor against the baseline"
    expr = QUERIES[f"{name} C"]
    each = "group by (namespace, run, server, load) (laptime_result_factor{"
    assert expr.startswith(f"label_replace(label_replace({each}")
    # Neither a bound of the row nor a place of a server, so it is a line of its own. The place of a
    # server that is in no spec is 0.
    assert expr.endswith(f', "bound", "=1", "", ""), "position", "{AT_ONE}", "", "")')
    last = look_of(name, at_first("one", AT_ONE))
    assert 0 < last["custom.pointSize.fixed"] < 5
    assert (last["custom.hideFrom"]["viz"], last["custom.hideFrom"]["legend"]) == (False, True)
    assert last["color"]["fixedColor"] not in SERVER_COLORS
    for place in (0, 1, 10):
        assert "custom.hideFrom" not in look_of(name, at_first("one", place))
    assert "The grey points are at 1" in PANELS[name]["description"]
    # A rank is of one run: beside the rows of others it would say that they are not told apart.
    assert "rank" not in "".join(one["expr"] for one in PANELS[name]["targets"])
    assert (
        "of runs with different baselines factors cannot be compared"
        in (PANELS[name]["description"])
    )
