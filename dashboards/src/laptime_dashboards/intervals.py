"""Pictures of figures with their intervals: a line for each row of results, one below the other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import xychart
from grafana_foundation_sdk.models import dashboard as dashboard_models

from laptime_dashboards.meanings import UNBOUNDED
from laptime_dashboards.panel_defaults import (
    SERVER_AND_LOAD,
    THIRD,
    in_order,
    in_server_colors,
    newest,
    numbers,
    transformation,
    words,
    xy_chart,
)
from laptime_dashboards.selectors import CREATED, ROW, RUN

NO_UPPER_END = "Where a search found no upper end the line goes on to the edge."
GOES_ON = "One to twice the highest estimate is longer than is drawn; its end says how far it goes."
GOES_ON_OF_RUNS = GOES_ON.replace("estimate", "estimate of all these runs, drawn or not,", 1)

MOST_LINES = 40
"""Rows of several runs in one picture, of the newest runs: more could not be told apart.

Of the oldest of these it may be any of its rows, since all were created at once.
"""

HIGH = 6
"""Height of the pictures of a run: below them, on a small screen, there is room for three servers
with two lines each."""

_DRAWN = "Drawn"
"""Field of what two queries bring that are drawn alike."""
_ONE = "=1"
"""In the place of the name of a server, a run or a bound, or of a server's place in a spec: no name
begins so, and a server in no spec has the place 0. One word, as names of lines have to be."""
_SHARING_A_RANK = SERVER_AND_LOAD.replace("} ", "}(=${__field.labels.rank}) ", 1)
"""What a line is called then; XY charts leave out last words that all names share."""


@dataclass(frozen=True)
class Rows:
    """Rows of results that a picture draws: those of one run, or of several."""

    matchers: str
    """Labels that their series have."""
    labels: tuple[str, ...] = ("server", "load")
    """What tells one from another."""
    among: str = ""
    """The end of each query: which of the runs are meant."""
    called: str = SERVER_AND_LOAD
    """What a line is called."""
    of_their_runs: tuple[str, ...] = ()
    """Labels of their runs that tell their lines apart."""

    @property
    def several(self) -> bool:
        """Whether they are of several runs, each of which has its own order and places."""
        return "run" in self.labels

    @property
    def called_at_one(self) -> str:
        """What a point at 1 beside a line of several runs is called.

        XY charts leave out first and last words that all names share: of one row alone nothing
        would be left if its point were called as its line is.
        """
        return self.called.replace("${__field.labels.run}", _ONE)

    @property
    def by(self) -> str:
        """Their labels, as a query has them."""
        return ", ".join(self.labels)


OF_RUN = Rows(ROW)
"""Those of the run and the servers that the reader has chosen."""


def of_runs(matchers: str, *, scenario: str = "") -> Rows:
    """Return the rows of several runs: those of one scenario, or of all, which their lines tell."""
    labels = ("namespace", "run", "server", "load")
    if scenario:
        among = f' and on (namespace, run) laptime_run_info{{scenario="{scenario}"}}'
        return Rows(matchers, labels, among, _called("server", "run", "load", "namespace"))
    called = _called("server", "run", "load", "scenario", "namespace")
    return Rows(matchers, labels, "", called, ("scenario",))


def _called(*labels: str) -> str:
    """Return what a line with these labels is called, each of which is a word of its own."""
    return " · ".join(f"${{__field.labels.{label}}}" for label in labels)


def intervals(
    title: str,
    description: str,
    metric: str,
    name: str,
    unit: str,
    no_data: str,
    rows: Rows = OF_RUN,
    *,
    decimals: int | None = None,
    compared: bool = False,
) -> xychart.Panel:
    """Return a picture of a figure's intervals: a line for each row, one below the other.

    A `compared` one shows where 1 is and, of one run, the rank beside the names of servers that
    share one.
    """
    # Of two repetitions an interval can be so wide that all others would be dots beside it.
    highest = f'max({metric}{{{rows.matchers},bound="estimate"}})'
    # A factor's end above 1 that is cut below it would seem to be below.
    most = f"2 * scalar({f'clamp_min({highest}, 1)' if compared else highest})"
    series = f"{metric}{{{rows.matchers}}}"
    more: list[str] = []
    if compared:
        # A rank is one among the servers of a run: beside those of others it would say too much.
        more = [_one_in_each(series, rows)] if rows.several else [_at_one(series), _shared_ranks()]
    panel = lines(
        title,
        description,
        series,
        "bound",
        name,
        unit,
        no_data,
        rows,
        most=most,
        more=more,
        looks=_looks_of_compared(rows) if compared else {},
    )
    return panel if decimals is None else panel.decimals(decimals)


def _looks_of_compared(rows: Rows) -> dict[str, list[dashboard_models.DynamicConfigValue]]:
    """Return how what is at 1 looks, and what servers of one run that share a rank are called."""
    broken = {"fill": "dash", "dash": [4, 4]}
    # Of one row a line is nothing: a point, smaller than that of the baseline's own figure.
    line = {"custom.pointSize.fixed": 2, "custom.lineWidth": 1, "custom.lineStyle": broken}
    grey = {"color": {"mode": "fixed", "fixedColor": "#7d8590"}}
    unlisted = {"custom.hideFrom": {"viz": False, "legend": True, "tooltip": False}}
    at_one = [of_field(key, one) for key, one in {**line, **grey, **unlisted}.items()]
    if rows.several:
        called = of_field("displayName", rows.called_at_one)
        return {f'/^Place .*position="{_ONE}"/': [*at_one, called]}
    return {
        f'/^Place .*server="{_ONE}"/': at_one,
        # Of a server that shares none the label is not a number.
        r'/^Place .*rank="\d/': [of_field("displayName", _SHARING_A_RANK)],
    }


def _at_one(series: str) -> str:
    """Return a query with 1 in the place of each row of a load that has some of the series."""
    each = f"max by (load, place) (laptime_result_state{{{ROW}}}) and on (load) {series}"
    return f'label_replace({each}, "server", "{_ONE}", "", "")'


def _one_in_each(series: str, rows: Rows) -> str:
    """Return a query with 1 for each row that has some of the series, as a line of its own."""
    each = f"group by ({rows.by}) ({series}){rows.among}"
    own = f'label_replace({each}, "bound", "{_ONE}", "", "")'
    return f'label_replace({own}, "position", "{_ONE}", "", "")'


def _shared_ranks() -> str:
    """Return a query with the rank of each server that shares it under its load as a label."""
    ranks = f'count_values by (server, load) ("rank", laptime_result_rank{{{ROW}}})'
    # Of all servers, chosen or not; and once, though two operators may speak of it.
    once = f"max by (server, load) (laptime_result_rank{{{RUN}}})"
    return f'{ranks} and on (load, rank) (count_values by (load) ("rank", {once}) > 1)'


def _newest_places(series: str, rows: Rows) -> str:
    """Return a query with the place of each server in the newest run that has some of the series.

    Specs of several runs may name the same servers in another order; in one picture a server has
    one colour.
    """
    created = f"{series} * 0 + on (namespace, run) group_left () {CREATED}{rows.among}"
    return f"max by (server, position) (topk by (server) (1, {created}))"


def _newest_rows(series: str, rows: Rows) -> str:
    """Return a query with the rows of the newest runs that have some of the series, and when.

    When is the creation of their runs in Unix seconds.
    """
    each = f"group by ({rows.by}) ({series})"
    told = ", ".join(rows.of_their_runs)
    created = f"{CREATED}{rows.among}"
    if told:
        info = f"laptime_run_info * on (namespace, run) group_left {CREATED}"
        created = f"max by (namespace, run, {told}) ({info})"
    return f"topk({MOST_LINES}, {each} * on (namespace, run) group_left ({told}) {created})"


def lines(
    title: str,
    description: str,
    series: str,
    point: str,
    name: str,
    unit: str,
    no_data: str,
    rows: Rows = OF_RUN,
    *,
    scale: str = "",
    most: str = "",
    more: Sequence[str] = (),
    looks: Mapping[str, list[dashboard_models.DynamicConfigValue]] | None = None,
) -> xychart.Panel:
    """Return a picture with a line for each row, one below the other, through its points.

    `point` is the label that tells the points of a row apart; a hovering mouse shows it. What
    is above `most` is drawn there, and the mouse shows what it is. Of two queries in `more` the
    first brings other points, the second more labels of servers. `looks` has what some lines have
    for themselves, by a regular expression for the name that a line has at first.
    """
    known = rows.by if rows.several else f"{rows.by}, position, place"
    values = f"max by ({known}, {point}) ({series}){rows.among}"
    queries = [f"{scale}{values}", *([f"clamp_max({values}, {most})"] if most else []), *more]
    if rows.several:
        queries += [_newest_places(series, rows), _newest_rows(series, rows)]
    refs = "ABCDEF"[: len(queries)]
    # Of several queries Grafana names each value by its query; of one it is the value.
    chosen = bool(more) or rows.several
    drawn = _DRAWN if chosen else "Value #B" if most else "Value"
    not_drawn = ("Time", "place", *(f"Value #{ref}" for ref in refs[1:] if chosen))
    panel = xy_chart(title, description, unit, no_data).height(HIGH).span(THIRD).line_width(3)
    for ref, expr in zip(refs, queries, strict=True):
        panel.with_target(newest(expr, ref=ref))
    if rows.several:
        _put_in_order(panel, refs, rows)
    else:
        _put_in_places(panel)
    if chosen:
        needed = [_DRAWN, "Place"] if rows.several else [_DRAWN]
        _draw_the_larger(panel, ["Value #B", *(["Value #C"] if more else [])], needed)
    split = [
        *rows.labels,
        *rows.of_their_runs,
        "position",
        *(["rank"] if more and not rows.several else []),
    ]
    (
        panel.with_transformation(in_order("Place", downwards=True))
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
                {"fields": split, "keepFields": False, "naming": {"asLabels": True}},
            )
        )
    )
    if most:
        hidden_value = of_field("custom.hideFrom", {"viz": True, "legend": False, "tooltip": False})
        words_of_exact = of_field("mappings", words(UNBOUNDED))
        panel.override_by_regexp("/^Exact/", [hidden_value, words_of_exact])
    # What tells the frames apart is in their labels, and these are in the names at first.
    in_server_colors(panel, {}, place='^Place .*position="PLACE"', points=True)
    for field in (name, point, "Exact"):
        panel.override_by_regexp(f"/^{re.escape(field)}/", [of_field("displayName", field)])
    # Of several runs places begin with 0, where the axis would end and the last line be cut.
    below = [of_field("custom.axisSoftMin", -0.5)] if rows.several else []
    panel.override_by_regexp("/^Place/", [of_field("custom.axisPlacement", "hidden"), *below])
    # Last comes what all others are called: no rule after it finds a line by its first name.
    called = [of_field("displayName", rows.called)]
    for first_name, properties in {**(looks or {}), "/^Place/": called}.items():
        panel.override_by_regexp(first_name, properties)
    return panel


def _put_in_places(panel: xychart.Panel) -> None:
    """Give the lines and the names below the places of the table of results: downwards from 0."""
    downwards = {"left": "0", "operator": "-", "right": "place"}
    calculation = {"mode": "binary", "binary": downwards, "alias": "Place"}
    (
        panel.with_transformation(transformation("merge", {}))
        .with_transformation(numbers("place"))
        .with_transformation(transformation("calculateField", calculation))
    )


def _put_in_order(panel: xychart.Panel, refs: str, rows: Rows) -> None:
    """Give the rows that the last query has places of their own: upwards from 0.

    From the top they stand by server, load and what is told of their runs; of each the newest run
    is the first.
    """
    others, order = refs[:-1], refs[-1]
    # What a transformation is not of stays before what it is of where that is one frame alone, and
    # what comes later in a merge is put into all rows that it fits.
    panel.with_transformation(transformation("merge", {}, of=f"/^[{others}]$/"))
    panel.with_transformation(in_order(f"Value #{order}", of=order))
    for label in (*rows.of_their_runs, "load", "server"):
        panel.with_transformation(in_order(label, downwards=True, of=order))
    numbered = {"mode": "index", "alias": "Place"}
    panel.with_transformation(transformation("calculateField", numbered, of=order))
    panel.with_transformation(transformation("merge", {}))


def _draw_the_larger(panel: xychart.Panel, fields: Sequence[str], needed: Sequence[str]) -> None:
    """Put what a row has of these into one field, and leave rows out that lack what is needed."""
    either = {"include": list(fields), "reducer": "max"}
    calculation = {"mode": "reduceRow", "reduce": either, "alias": _DRAWN}
    panel.with_transformation(transformation("calculateField", calculation))
    none = [{"fieldName": one, "config": {"id": "isNull", "options": {}}} for one in needed]
    left_out = {"type": "exclude", "match": "any", "filters": none}
    panel.with_transformation(transformation("filterByValue", left_out))


def of_field(name: str, value: object) -> dashboard_models.DynamicConfigValue:
    """Return a property for the fields that an override is of."""
    return dashboard_models.DynamicConfigValue(id_val=name, value=value)
