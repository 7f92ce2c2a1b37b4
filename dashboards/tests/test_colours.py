"""Servers, success and failure have the colours that they are known by."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from as_written import PANELS, SIDE_BY_SIDE, at_first, look_of, metric_names
from laptime.api.causes import Cause
from laptime.report.html.palette import LIGHT_SERVERS

from laptime_dashboards.meanings import CAUSES, STATES
from laptime_dashboards.panel_defaults import SERVER_COLORS

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


def test_each_cause_has_words_and_none_says_that_all_was_answered() -> None:
    assert set(CAUSES) == {one.value for one in Cause}
    # Requests may have failed beside it.
    assert [text for text, _ in CAUSES.values() if "answered" in text] == []


@pytest.mark.parametrize(
    "name",
    [
        "laptime-run: Factor against the baseline",
        "laptime-run: Throughput",
        "laptime-run: Response times",
        *SIDE_BY_SIDE,
    ],
)
def test_points_of_one_colour_differ_in_all_grafanas_that_draw_them(name: str) -> None:
    """Of one repetition a figure is a point; Grafana 11.1 knows at least the size of it."""
    keys = ("custom.pointSize.fixed", "custom.pointShape", "custom.fillOpacity")
    looks = {}
    for place in range(1, 34):
        look = look_of(name, at_first("some", place))
        looks[place] = [look.get(key) for key in keys]
    assert looks[1] == [None, None, None]
    for colour in range(1, len(SERVER_COLORS) + 1):
        same = [looks[place] for place in range(colour, 34, len(SERVER_COLORS))]
        sizes = [one[0] for one in same]
        assert len(set(map(str, sizes))) == len(sizes)
        shapes = [str(one[1:]) for one in same]
        # A neighbour among them has another shape or is empty.
        assert all(one != other for one, other in pairwise(shapes))
