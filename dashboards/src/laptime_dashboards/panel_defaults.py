"""What all panels share: the data source, legends, steps, charts and transformations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as dashboard_builders
from grafana_foundation_sdk.builders import prometheus, stat, table, timeseries, xychart
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as dashboard_models
from grafana_foundation_sdk.models.prometheus import Dataquery as PrometheusQuery
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.xychart import SeriesMapping, XYShowMode

from laptime_dashboards.selectors import SINCE_CREATION, WINDOW

DATA_SOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")

RUN_STEP = "$step"
"""Least step of queries about runs: the scrape interval, which is 1 s unless the reader says so."""

SECOND = "1s"
"""Least step of queries about what generators counted in each second."""

OPERATOR_STEP = "5s"
"""Least step of queries about the operator: it is scraped every 5 s."""

FULL, HALF, THIRD, QUARTER = 24, 12, 8, 6
"""Widths of panels. A third is 430 px on a screen of 1366 px, the least that a legend fits in."""

_GONE, _SILENT = "the run is gone or not among the newest 50", "or the operator is not scraped"
NOT_TOLD = f"{_GONE}, {_SILENT}"
"""Why the operator may say nothing of a run: the end of a list of reasons."""

SERVER_COLORS = ("#2a62ca", "#c38666", "#4b7e65", "#9c749d", "#8b7c0e", "#8b8b8b")
"""Of the servers of a run, by their place in the spec: those of the report, which can be seen on
black too, and told apart on grey paper (laptime/report/html/palette.py)."""

SERVER = "${__field.labels.server}"
"""What a line of a server is called."""

SERVER_AND_LOAD = "${__field.labels.server} · ${__field.labels.load}"
"""What a line of a server under a load is called. XY charts leave out the words that all their
lines begin or end with, such as the one load of a run: what joins two names is a word of its own,
so that it goes with the second."""

_DASHES: tuple[tuple[int, ...], ...] = ((), (10, 5), (2, 5), (10, 5, 2, 5), (16, 4, 4, 4), (4, 8))
"""Of the seventh server and those after it, which have the colour of the first and so on."""

_POINTS: tuple[tuple[str, int, int, int], ...] = (
    ("circle", 5, 50, 1),
    ("square", 8, 50, 1),
    ("circle", 10, 0, 2),
    ("square", 12, 0, 2),
    ("circle", 14, 50, 1),
    ("square", 16, 50, 1),
)
"""Of the same: shape, size in pixels, how full in percent, and width of the edge in pixels. A
figure of one repetition is a point alone. All Grafanas know at least the size: no two are equal."""

MOST_SERVERS = 33
"""Of one run: 32 and a control arm."""

Threshold = tuple[float, str]


def query(
    expr: str, legend: str = "", *, ref: str = "A", step: str = RUN_STEP
) -> prometheus.Dataquery:
    """Return a query over the time range."""
    return (
        prometheus.Dataquery()
        .datasource(DATA_SOURCE)
        .expr(expr)
        .legend_format(legend or "__auto")
        .interval(step)
        .ref_id(ref)
        .range()
    )


def of_run(expr: str, legend: str, *, ref: str = "A", step: str = RUN_STEP) -> prometheus.Dataquery:
    """Return a query over the time range that leaves earlier runs of the same name out."""
    return query(f"{expr} and on () {SINCE_CREATION}", legend, ref=ref, step=step)


def newest(expr: str, legend: str = "", *, ref: str = "A") -> prometheus.Dataquery:
    """Return a query for the newest values only, as rows of a table or figures."""
    return (
        prometheus.Dataquery()
        .datasource(DATA_SOURCE)
        .expr(expr)
        .legend_format(legend or "__auto")
        .format(PromQueryFormat.TABLE if not legend else PromQueryFormat.TIME_SERIES)
        .ref_id(ref)
        .instant()
    )


def not_told(room: str) -> str:
    """Return the same of what it tells so much of at most, over all runs, as `the 500 rows`."""
    return f"{_GONE}, newer runs have taken {room}, {_SILENT}"


def absent(why: str) -> str:
    """Return what is said where there is no data: that, and why it may be so. It is no finding."""
    return f"No data: {why}"


def with_reason(description: str, no_data: str) -> str:
    """Return the description of an XY chart with why it may be empty.

    XY charts have no text of ours for that: by Grafana's source they say Err, newer ones No data.
    """
    return f"{description} Where it says Err or No data: {no_data}."


def legend() -> common_builders.VizLegendOptions:
    """Return a legend of names alone: a mean over the time range would be no figure of the run."""
    return (
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
    )


def thresholds(*steps: Threshold) -> dashboard_builders.ThresholdsConfig:
    """Return absolute thresholds: no colour below the first, then the colour of each."""
    models = [dashboard_models.Threshold(color="text")]
    models += [dashboard_models.Threshold(value=value, color=color) for value, color in steps]
    return (
        dashboard_builders.ThresholdsConfig()
        .mode(dashboard_models.ThresholdsMode.ABSOLUTE)
        .steps(models)
    )


def time_series(
    title: str,
    description: str,
    unit: str,
    no_data: str,
    queries: Sequence[prometheus.Dataquery],
    *,
    limits: Sequence[Threshold] = (),
    width: int = HALF,
    most: float | None = None,
) -> timeseries.Panel:
    """Return a panel with lines over time; `limits` are drawn as lines, `most` ends the axis."""
    if any(WINDOW in one.expr and one.interval == RUN_STEP for one in map(_built, queries)):
        # Of one scrape in a window there is no rate.
        no_data += ", or it is scraped less often than each second (docs/dashboards.md)"
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit(unit)
        .no_value(absent(no_data))
        .min(0)
        .height(9)
        .span(width)
        .legend(legend())
        .tooltip(
            common_builders.VizTooltipOptions()
            .mode(common.TooltipDisplayMode.MULTI)
            .sort(common.SortOrder.DESCENDING)
        )
        .line_width(2)
        .fill_opacity(8)
        .show_points(common.VisibilityMode.AUTO)
        # A trial of some seconds is a piece of a line: what lies between two trials is nothing.
        .span_nulls(False)
        .thresholds(thresholds(*limits))
    )
    if limits:
        panel.thresholds_style(
            common_builders.GraphThresholdsStyleConfig().mode(
                common.GraphThresholdsStyleMode.DASHED
            )
        )
    if most is not None:
        panel.axis_soft_max(most)
    for one in queries:
        panel.with_target(one)
    return panel


def xy_chart(title: str, description: str, unit: str, no_data: str) -> xychart.Panel:
    """Return a chart of lines through points whose fields its queries name.

    Newer Grafanas do not show the text for no data in it, so that ends its description.
    """
    return (
        xychart.Panel()
        .title(title)
        .description(with_reason(description, no_data))
        .datasource(DATA_SOURCE)
        .unit(unit)
        .no_value(absent(no_data))
        .thresholds(thresholds())
        .mapping(SeriesMapping.AUTO)
        .show(XYShowMode.POINTS_AND_LINES)
        .legend(legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.SINGLE))
    )


def in_red(panel: timeseries.Panel) -> timeseries.Panel:
    """Draw what failed in shades of red: the first colour of Grafana's palette is green."""
    shades = dashboard_builders.FieldColor().mode(dashboard_models.FieldColorModeId.SHADES)
    return panel.color_scheme(shades.fixed_color("red"))


def _built(query: prometheus.Dataquery) -> PrometheusQuery:
    return query.build()


def on_the_right(panel: timeseries.Panel, ref: str, unit: str, *, most: float) -> timeseries.Panel:
    """Give the lines of a query an axis of their own, on the right, with their unit."""
    values = {
        "unit": unit,
        "custom.axisPlacement": common.AxisPlacement.RIGHT,
        "custom.axisSoftMax": most,
        "custom.lineStyle": {"fill": "dash", "dash": [3, 3]},
    }
    properties = [
        dashboard_models.DynamicConfigValue(id_val=key, value=value)
        for key, value in values.items()
    ]
    return panel.override_by_query(ref, properties)


def closed_row(
    title: str, panels: Sequence[timeseries.Panel | table.Panel]
) -> dashboard_builders.Row:
    """Return a row that is closed at first: nothing is asked for what is not open."""
    row = dashboard_builders.Row(title)
    for panel in panels:
        row.with_panel(panel)
    return row


def figure(
    title: str,
    description: str,
    unit: str,
    no_data: str,
    queries: Sequence[prometheus.Dataquery],
    *,
    limits: Sequence[Threshold] = (),
    width: int = QUARTER,
    height: int = 4,
    text_size: int | None = None,
    labels: Sequence[str] = (),
) -> stat.Panel:
    """Return a panel with big figures, or with the words of these labels of queries for tables.

    Without a `text_size` in pixels, figures and the text for no data are as large as one line is.
    """
    shown = common_builders.ReduceDataOptions().calcs(["lastNotNull"])
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit(unit)
        .no_value(absent(no_data))
        .height(height)
        .span(width)
        .graph_mode(common.BigValueGraphMode.NONE)
        .color_mode(common.BigValueColorMode.VALUE)
        .reduce_options(shown)
        .thresholds(thresholds(*limits))
    )
    if labels:
        # Each row: of a duet two trials are measured at once.
        shown.values(True)
        # Not the names of series: where there is none, a panel of names says nothing at all.
        panel.text_mode(common.BigValueTextMode.VALUE)
        shown.fields(f"/^({'|'.join(labels)})$/")
        # One below the other: beside each other, words shrink until they cannot be read.
        panel.orientation(common.VizOrientation.HORIZONTAL)
    if text_size is not None:
        panel.text(common_builders.VizTextDisplayOptions().value_size(text_size))
    for one in queries:
        panel.with_target(one)
    return panel


def in_server_colors(
    panel: timeseries.Panel | xychart.Panel,
    names: Mapping[str, str],
    *,
    place: str = "^PLACE ",
    dashed: Sequence[str] = (),
    points: bool = False,
) -> None:
    """Give the lines of a server the colour of its place in the spec, the same in every panel.

    `place` is a regular expression for the name that a line has at first, in which PLACE stands for
    the place. `names` says by the reference of a query, or by a regular expression between two `/`
    for the names at first, what these lines are called in the end; those in `dashed` are broken.
    With `points`, where lines of an XY chart may be points alone, these tell servers of one colour
    apart.
    """
    count = len(SERVER_COLORS)
    for index, color in enumerate(SERVER_COLORS):
        fixed = {"mode": "fixed", "fixedColor": color}
        _override(panel, place, range(index + 1, MOST_SERVERS + 1, count), "color", fixed)
    for turn, dash in enumerate(_DASHES):
        style = {"fill": "dash", "dash": list(dash)}
        places = range(turn * count + 1, min((turn + 1) * count, MOST_SERVERS) + 1)
        if dash and places:
            _override(panel, place, places, "custom.lineStyle", style)
            for key, value in _point(turn).items() if points else ():
                _override(panel, place, places, key, value)
    for ref, name in names.items():
        properties = [dashboard_models.DynamicConfigValue(id_val="displayName", value=name)]
        if ref in dashed:
            style = {"fill": "dash", "dash": [3, 3]}
            properties.append(
                dashboard_models.DynamicConfigValue(id_val="custom.lineStyle", value=style)
            )
        if ref.startswith("/"):
            panel.override_by_regexp(ref, properties)
        else:
            panel.override_by_query(ref, properties)


def _point(turn: int) -> dict[str, object]:
    """Return how the points of servers look whose colour was had so many times before."""
    shape, pixels, full, edge = _POINTS[turn]
    return {
        "custom.pointShape": shape,
        "custom.pointSize.fixed": pixels,
        "custom.fillOpacity": full,
        "custom.pointStrokeWidth": edge,
    }


def _override(
    panel: timeseries.Panel | xychart.Panel,
    place: str,
    places: Sequence[int],
    key: str,
    value: object,
) -> None:
    numbers = "|".join(map(str, places))
    panel.override_by_regexp(
        f"/{place.replace('PLACE', f'({numbers})')}/",
        [dashboard_models.DynamicConfigValue(id_val=key, value=value)],
    )


def in_order(
    field: str, *, downwards: bool = False, of: str = ""
) -> dashboard_models.DataTransformerConfig:
    """Return a transformation that sorts rows, by a hidden column too, and so names in a legend."""
    wanted = {"fields": {}, "sort": [{"field": field, "desc": downwards}]}
    return transformation("sortBy", wanted, of=of)


def transformation(
    name: str, options: Mapping[str, object], *, of: str = ""
) -> dashboard_models.DataTransformerConfig:
    """Return a transformation of what the queries brought.

    With `of` it is of one query alone, by its reference, or of several, by a regular expression
    between two `/`.
    """
    matcher = dashboard_models.MatcherConfig(id_val="byRefId", options=of) if of else None
    return dashboard_models.DataTransformerConfig(
        id_val=name, filter_val=matcher, options=dict(options)
    )


def numbers(label: str) -> dashboard_models.DataTransformerConfig:
    """Return a transformation that reads the numbers in a label."""
    conversion = {"targetField": label, "destinationType": "number"}
    return transformation("convertFieldType", {"conversions": [conversion]})


def words(meanings: Mapping[str, tuple[str, str]]) -> list[dict[str, object]]:
    """Return value mappings: from a value to its text and its colour."""
    options = {
        value: {"text": text, "color": color, "index": place}
        for place, (value, (text, color)) in enumerate(meanings.items())
    }
    return [{"type": "value", "options": options}]
