"""Panels of one run that say which server is faster, how sure that is, and what limited each."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import stat, table, xychart
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as dashboard_models
from grafana_foundation_sdk.models.xychart import SeriesMapping, XYShowMode

from laptime_dashboards.meanings import CAUSES, PERCENTILES, STATES, UNBOUNDED, VALIDITIES
from laptime_dashboards.panel_defaults import (
    DATA_SOURCE,
    FACTOR_DECIMALS,
    FACTOR_UNIT,
    FULL,
    HIDDEN,
    NOT_TOLD,
    SERVER_AND_LOAD,
    THIRD,
    Column,
    absent,
    coloured_words,
    figure,
    in_server_colors,
    legend,
    newest,
    not_told,
    numbers,
    rows,
    sorted_by,
    thresholds,
    transformation,
    words,
)
from laptime_dashboards.selectors import ROW, RUN

NO_RESULT = f"no trial of the run was measured, {not_told('the 500 rows')}"

PLACE = Column("Place", label="place", number=True, more=HIDDEN)
"""What to sort by: loads and servers in the order of the spec, as in the pictures."""

OF_A_SEARCH = (
    "Of a search (saturation) it is the middle between the rate that was met and the one that was "
    "missed."
)
_NO_END = "Where a search found no upper end the line goes on to the edge."
_GOES_ON = (
    "One to twice the highest estimate is longer than is drawn; its end says how far it goes."
)
_NOT_TOLD_SHORT = "run gone or not among the newest 50, or operator not scraped"
"""In a small panel."""
_TEXT = 14
"""Pixels of letters there: of a size of its own a sentence shrinks until it fits into one line."""
_DRAWN = "Drawn"
"""Field of what two queries bring that are drawn alike."""
_ONE = "=1"
"""In the place of a server: no name of one begins so. One word, as names of lines have to be."""
_SHARING_A_RANK = SERVER_AND_LOAD.replace("} ", "}(=${__field.labels.rank}) ", 1)
"""What a line is called then; XY charts leave out last words that all names share."""
_SMALL, _STATE = 3, 6
"""Widths of the figures: the trials of a duet have a line each."""
_LOW = 4
_HIGH = 6
"""Heights of the figures, of which a verdict needs four lines, and of the pictures: below them, on
a small screen, there is room for three servers with two lines each."""


def verdict() -> table.Panel:
    """The result in a sentence, and whether it can be trusted."""
    series = f'laptime_run_info{{{RUN},verdict!=""}}'
    return rows(
        "Verdict",
        "The result in a sentence, and the validity of the least valid row, when the run is over.",
        "the run is not over, the time range ends before the operator has told of its end, "
        f"{NOT_TOLD}",
        [
            Column("Verdict", label="verdict", longest=True),
            Column(
                "Validity",
                label="validity",
                width=90,
                more=coloured_words(VALIDITIES),
            ),
            Column("", expr=f"max by (verdict, validity) ({series})"),
        ],
        joined=False,
        width=FULL - _STATE - 2 * _SMALL,
        height=_LOW,
        # Room for another line of a sentence; the words say themselves what they are.
    ).show_header(False)


def state() -> stat.Panel:
    """Where the run is, and which trial is measured."""
    current = f"max by (server, load, repetition) (laptime_run_current_trial{{{RUN}}})"
    named = f'label_replace({current}, "word", "repetition", "", "")'
    numbered = f'label_join({named}, "which", " ", "word", "repetition")'
    panel = figure(
        "State",
        f"Where the run is ({', '.join(STATES)}), and the trial that is set up or measured now: "
        "two of a duet.",
        "short",
        "run gone or not in this time (choose one), not among the newest 50, or operator not "
        "scraped",
        [
            newest(f"max by (state) (laptime_run_info{{{RUN}}})", ref="A"),
            newest(f'label_join({numbered}, "now", ", ", "server", "load", "which")', ref="B"),
        ],
        width=_STATE,
        height=_LOW,
        text_size=_TEXT,
        labels=["state", "now"],
    )
    named_states = dashboard_models.DynamicConfigValue(id_val="mappings", value=words(STATES))
    return panel.override_by_regexp("/^state$/", [named_states])


def progress() -> stat.Panel:
    """How far the run is."""
    return figure(
        "Progress",
        "Share of the trials that are over, with verifyOnly of the servers that are checked; of a "
        "run that was refused there are none.",
        "percentunit",
        _NOT_TOLD_SHORT,
        [
            newest(
                f"max(laptime_run_progress_ratio{{{RUN}}}) or 0 * max(laptime_run_info{{{RUN}}})",
                "over",
            )
        ],
        width=_SMALL,
        height=_LOW,
        text_size=_TEXT,
    )


def time_left() -> stat.Panel:
    """The estimate of the time left."""
    return figure(
        "Time left",
        "Hours, minutes and seconds, by the trials so far; 0 of a run that is over, and none of "
        "one that waits and was not accepted.",
        "dthms",
        f"no estimate, {_NOT_TOLD_SHORT}",
        [
            newest(
                f"max(laptime_run_remaining_seconds{{{RUN}}})"
                f" or 0 * max(laptime_run_finished_timestamp_seconds{{{RUN}}})",
                "left",
            )
        ],
        width=_SMALL,
        height=_LOW,
        text_size=_TEXT,
    )


def factors() -> xychart.Panel:
    """Each server's factor against the baseline with its interval."""
    return _intervals(
        "Factor against the baseline",
        "Each line is the 95 % interval of a server's throughput, or response time where the rate "
        "is fixed, divided by the baseline's, with the estimate in it. The broken line (of one row "
        "alone a grey point) is at 1: an interval over it says that no difference from the "
        "baseline was found. (=2) after names: "
        "they share rank 2, so they are not told apart; Ties has the pairs of a run that is over, "
        "of other ranks too. Below two repetitions there is only the estimate. "
        f"{_NO_END} {_GOES_ON}",
        "laptime_result_factor",
        "Factor",
        FACTOR_UNIT,
        FACTOR_DECIMALS,
        compared=True,
    )


def throughputs() -> xychart.Panel:
    """Each server's throughput with its interval."""
    return _intervals(
        "Throughput",
        "Right answers a second: the estimate over all repetitions within its 95 % interval. "
        f"{OF_A_SEARCH} {_NO_END} {_GOES_ON}",
        "laptime_result_requests_per_second",
        "Requests/s",
        # The unit is in the name of the axis: in each number it would leave room for few of them.
        "locale",
    )


def percentiles() -> xychart.Panel:
    """Response times to p99.9."""
    points = " | ".join(word for word, _ in PERCENTILES.values())
    name = f"{points} (ms)"
    panel = _lines(
        "Response times",
        "Each line is a server's response times over all repetitions, to the right on a "
        f"logarithmic axis; its points are, from the left, the exact {points}. A long line makes "
        "some wait long. Of few answers the last is not known, and the line has a point less. So "
        "it has where one fell among requests without a right answer, which makes no server "
        "quicker: the table of results says failed.",
        # On a logarithmic axis there is no place for it.
        f'laptime_result_latency_seconds{{{ROW},bound="estimate",'
        f'quantile=~"{"|".join(PERCENTILES)}"}} < Inf',
        "quantile",
        name,
        "none",
        # As in the throughput the unit is in the name of the axis, whose ends would be cut off.
        scale="1000 * ",
    )
    logarithmic = {"type": common.ScaleDistribution.LOG, "log": 10}
    axis = [_property("custom.scaleDistribution", logarithmic)]
    panel.override_by_regexp(f"/^{re.escape(name)}/", axis)
    return panel.override_by_regexp("/^quantile/", [_property("mappings", words(PERCENTILES))])


def limits() -> table.Panel:
    """What held each server back, and what is doubtful."""
    return rows(
        "What limited each server (suspected), and what is doubtful",
        "The cause in most repetitions and, when the run is over, the readings that make it "
        "suspected and what is to be doubted (docs/measurement.md). kubectl laptime explain tries "
        "whether it is so.",
        NO_RESULT,
        [
            Column("Load", label="load", width=75),
            Column("Server", label="server", width=115),
            Column(
                "Suspected cause",
                label="cause",
                # Grafana makes rows as high as the values need, and not their words.
                width=205,
                more={"mappings": words(CAUSES)},
            ),
            Column("Evidence", label="evidence"),
            Column(
                "Validity",
                label="validity",
                width=75,
                more=coloured_words(VALIDITIES),
            ),
            Column("Doubts", label="doubts", width=300, longest=True),
            Column(
                "",
                expr=f"max by (server, load, cause, evidence) (laptime_result_limited_by{{{ROW}}})",
            ),
            Column(
                "",
                expr="max by (server, load, place, validity, doubts) "
                f"(laptime_result_state{{{ROW}}})",
            ),
            PLACE,
        ],
        width=FULL,
        # Four servers with two lines each.
        height=9,
    ).sort_by([sorted_by(PLACE.title)])


def _intervals(
    title: str,
    description: str,
    metric: str,
    name: str,
    unit: str,
    decimals: int | None = None,
    *,
    compared: bool = False,
) -> xychart.Panel:
    """Return a picture of a figure's intervals: a line for each server, one below the other.

    A `compared` one has a line at 1, and the rank beside the names of servers that share one.
    """
    # Of two repetitions an interval can be so wide that all others would be dots beside it.
    highest = f'max({metric}{{{ROW},bound="estimate"}})'
    # A factor's end above 1 that is cut below it would seem to be below.
    most = f"2 * scalar({f'clamp_min({highest}, 1)' if compared else highest})"
    series = f"{metric}{{{ROW}}}"
    more = [_at_one(series), _shared_ranks()] if compared else []
    panel = _lines(title, description, series, "bound", name, unit, most=most, more=more)
    if compared:
        broken = {"fill": "dash", "dash": [4, 4]}
        # Of one row a line is nothing: a point, smaller than that of the baseline's own figure.
        line = {"custom.pointSize.fixed": 2, "custom.lineWidth": 1, "custom.lineStyle": broken}
        grey = {"color": {"mode": "fixed", "fixedColor": "#7d8590"}}
        unnamed = {"custom.hideFrom": {"viz": False, "legend": True, "tooltip": False}}
        properties = [_property(key, one) for key, one in {**line, **grey, **unnamed}.items()]
        panel.override_by_regexp(f'/^Place .*server="{_ONE}"/', properties)
        # Of a server that shares none the label is not a number.
        panel.override_by_regexp(
            r'/^Place .*rank="\d/', [_property("displayName", _SHARING_A_RANK)]
        )
    return panel if decimals is None else panel.decimals(decimals)


def _at_one(series: str) -> str:
    """Return a query with 1 in the place of each row of a load that has some of the series."""
    each = f"max by (load, place) (laptime_result_state{{{ROW}}}) and on (load) {series}"
    return f'label_replace({each}, "server", "{_ONE}", "", "")'


def _shared_ranks() -> str:
    """Return a query with the rank of each server that shares it under its load as a label."""
    ranks = f'count_values by (server, load) ("rank", laptime_result_rank{{{ROW}}})'
    # Of all servers, chosen or not; and once, though two operators may speak of it.
    once = f"max by (server, load) (laptime_result_rank{{{RUN}}})"
    return f'{ranks} and on (load, rank) (count_values by (load) ("rank", {once}) > 1)'


def _lines(
    title: str,
    description: str,
    series: str,
    point: str,
    name: str,
    unit: str,
    *,
    scale: str = "",
    most: str = "",
    more: Sequence[str] = (),
) -> xychart.Panel:
    """Return a picture with a line for each server, one below the other, through its points.

    `point` is the label that tells the points of a server apart; a hovering mouse shows it. What
    is above `most` is drawn there, and the mouse shows what it is. Of two queries in `more` the
    first brings other points, the second more labels of servers.
    """
    values = f"max by (server, load, position, place, {point}) ({series})"
    # Of several queries Grafana names each value by its query; of one it is the value.
    drawn = _DRAWN if more else "Value #B" if most else "Value"
    not_drawn = ("Time", "place", *(f"Value #{ref}" for ref in "BCD"[: 3 if more else 0]))
    panel = (
        xychart.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit(unit)
        .no_value(absent(NO_RESULT))
        .height(_HIGH)
        .span(THIRD)
        .thresholds(thresholds())
        .mapping(SeriesMapping.AUTO)
        .show(XYShowMode.POINTS_AND_LINES)
        .line_width(3)
        .legend(legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.SINGLE))
        .with_target(newest(f"{scale}{values}", ref="A"))
        .with_transformation(transformation("merge", {}))
        # The lines and the names below by the place in the table of results: downwards from 0.
        .with_transformation(numbers("place"))
        .with_transformation(
            transformation(
                "calculateField",
                {
                    "mode": "binary",
                    "binary": {"left": "0", "operator": "-", "right": "place"},
                    "alias": "Place",
                },
            )
        )
    )
    if most:
        panel.with_target(newest(f"clamp_max({values}, {most})", ref="B"))
    for ref, expr in zip("CD", more, strict=False):
        panel.with_target(newest(expr, ref=ref))
    if more:
        _draw_the_larger(panel, "Value #B", "Value #C")
    (
        panel.with_transformation(_sorted("Place", downwards=True))
        .with_transformation(
            transformation(
                "organize",
                {
                    "excludeByName": dict.fromkeys(not_drawn, True),
                    "renameByName": {drawn: name, "Value #A": "Exact"},
                    "indexByName": {drawn: 0, "Place": 1, "Value #A": 2},
                },
            )
        )
        .with_transformation(
            transformation(
                "partitionByValues",
                {
                    "fields": ["server", "load", "position", *(["rank"] if more else [])],
                    "keepFields": False,
                    "naming": {"asLabels": True},
                },
            )
        )
    )
    if most:
        hidden_value = _property(
            "custom.hideFrom", {"viz": True, "legend": False, "tooltip": False}
        )
        words_of_exact = _property("mappings", words(UNBOUNDED))
        panel.override_by_regexp("/^Exact/", [hidden_value, words_of_exact])
    # What tells the frames apart is in their labels, and these are in the names at first.
    in_server_colors(panel, {}, place='^Place .*position="PLACE"', points=True)
    for field in (name, point, "Exact"):
        panel.override_by_regexp(f"/^{re.escape(field)}/", [_property("displayName", field)])
    hidden = _property("custom.axisPlacement", "hidden")
    panel.override_by_regexp("/^Place/", [_property("displayName", SERVER_AND_LOAD), hidden])
    return panel


def _draw_the_larger(panel: xychart.Panel, *fields: str) -> None:
    """Put what a row has of these into one field, and leave rows out that have none."""
    either = {"include": list(fields), "reducer": "max"}
    calculation = {"mode": "reduceRow", "reduce": either, "alias": _DRAWN}
    panel.with_transformation(transformation("calculateField", calculation))
    none = {"fieldName": _DRAWN, "config": {"id": "isNull", "options": {}}}
    left_out = {"type": "exclude", "match": "any", "filters": [none]}
    panel.with_transformation(transformation("filterByValue", left_out))


def _sorted(field: str, *, downwards: bool = False) -> dashboard_models.DataTransformerConfig:
    """Return a transformation that sorts rows, and so the servers in a legend."""
    return transformation("sortBy", {"fields": {}, "sort": [{"field": field, "desc": downwards}]})


def _property(name: str, value: object) -> dashboard_models.DynamicConfigValue:
    return dashboard_models.DynamicConfigValue(id_val=name, value=value)
