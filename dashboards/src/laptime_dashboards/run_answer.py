"""Panels of one run that say which server is faster, how sure that is, and what limited each."""

from __future__ import annotations

from grafana_foundation_sdk.builders import barchart, stat, table, xychart
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as dashboard_models
from grafana_foundation_sdk.models.xychart import SeriesMapping, XYShowMode

from laptime_dashboards.meanings import CAUSES, PERCENTILES, STATES, VALIDITIES
from laptime_dashboards.panel_defaults import (
    DATA_SOURCE,
    FULL,
    HALF,
    QUARTER,
    THIRD,
    WRAPPED,
    Column,
    absent,
    figure,
    in_server_colors,
    legend,
    newest,
    rows,
    thresholds,
    transformation,
    words,
)
from laptime_dashboards.selectors import ROW, RUN

NO_RESULT = "no trial of the run was measured, or the operator is not scraped"
COLOURED: dict[str, object] = {"custom.cellOptions": {"type": "color-text"}}

_SERVER_AND_LOAD = "${__field.labels.server}, ${__field.labels.load}"
_HIGH = 7
"""Height of the pictures: with the rows above and below they fit on a screen of 768 px."""


def verdict() -> table.Panel:
    """The result in a sentence, and whether it can be trusted."""
    series = f'laptime_run_info{{{RUN},verdict!=""}}'
    return rows(
        "Verdict",
        "The result in a sentence, and the validity of the least valid row, when the run is over.",
        "the run is not over, or the time range ends before the operator has told of its end",
        [
            Column("Verdict", label="verdict", more=WRAPPED),
            Column(
                "Validity",
                label="validity",
                width=90,
                more={"mappings": words(VALIDITIES), **COLOURED},
            ),
            Column("", expr=f"max by (verdict, validity) ({series})"),
        ],
        joined=False,
        width=HALF,
        height=4,
    )


def state() -> stat.Panel:
    """Where the run is, and which trial is measured."""
    current = "max by (server, load, repetition) (laptime_run_current_trial"
    return figure(
        "State",
        f"Where the run is ({', '.join(STATES)}), and the trial that is set up or measured now.",
        "short",
        "there is no such run in this time, or the operator is not scraped",
        [
            newest(f"max by (state) (laptime_run_info{{{RUN}}})", "{{state}}", ref="A"),
            newest(
                f"{current}{{{RUN}}})", "{{server}}, {{load}}, repetition {{repetition}}", ref="B"
            ),
        ],
        width=QUARTER,
        names=True,
    )


def progress() -> stat.Panel:
    """How far the run is."""
    return figure(
        "Progress",
        "Share of the trials that are over, and the estimate of the time left while it goes on.",
        "percentunit",
        "the run has not begun, or the operator is not scraped",
        [newest(f"max(laptime_run_progress_ratio{{{RUN}}})", "of the trials")],
        width=3,
    )


def time_left() -> stat.Panel:
    """The estimate of the time left."""
    return figure(
        "Time left",
        "Estimate from the trials so far.",
        "s",
        "the run is over, or the operator is not scraped",
        [newest(f"max(laptime_run_remaining_seconds{{{RUN}}})", "left")],
        width=3,
    )


def factors() -> xychart.Panel:
    """Each server's factor against the baseline with its interval."""
    return _intervals(
        "Factor against the baseline",
        "Each line is the 95 % interval of a server's throughput, or response time where the rate "
        "is fixed, divided by the baseline's, with the estimate in it. An interval over 1: no "
        "difference was found. Below two repetitions there is only the estimate.",
        "laptime_result_factor",
        "Factor",
        "none",
    )


def throughputs() -> xychart.Panel:
    """Each server's throughput with its interval."""
    return _intervals(
        "Throughput",
        "Right answers a second: the estimate over all repetitions within its 95 % interval.",
        "laptime_result_requests_per_second",
        "Requests/s",
        "reqps",
    )


def percentiles() -> barchart.Panel:
    """Response times to p99.9."""
    shown = f'laptime_result_latency_seconds{{{ROW},quantile=~"{"|".join(PERCENTILES)}"}}'
    by_name = f'label_join(max by (position, server, load, quantile) ({shown}), "name", " ",'
    panel = (
        barchart.Panel()
        .title("Response times")
        .description(
            "Exact percentiles over all repetitions, on a logarithmic axis. A server whose p99.9 "
            "is far above its p50 makes some wait long."
        )
        .datasource(DATA_SOURCE)
        .unit("s")
        .no_value(absent(NO_RESULT))
        .height(_HIGH)
        .span(THIRD)
        .thresholds(thresholds())
        .orientation(common.VizOrientation.VERTICAL)
        .show_value(common.VisibilityMode.NEVER)
        .scale_distribution(
            common_builders.ScaleDistributionConfig().type(common.ScaleDistribution.LOG).log(10)
        )
        .legend(legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
        .with_target(newest(f'{by_name} "position", "server", "load")', ref="A"))
        .with_transformation(
            transformation(
                "groupingToMatrix",
                {"columnField": "name", "rowField": "quantile", "valueField": "Value"},
            )
        )
    )
    in_server_colors(panel, {})
    named = dashboard_models.DynamicConfigValue(id_val="mappings", value=words(PERCENTILES))
    panel.override_by_regexp("/^quantile/", [named])
    return panel


def limits() -> table.Panel:
    """What held each server back, and what is doubtful."""
    return rows(
        "What limited each server, and what is doubtful",
        "The cause in most repetitions and, when the run is over, the readings that say so and "
        "what is to be doubted (docs/measurement.md).",
        "no trial was measured, or the operator is not scraped",
        [
            Column("Load", label="load", width=80),
            Column("Server", label="server", width=130),
            Column("Limited by", label="cause", width=190, more={"mappings": words(CAUSES)}),
            Column("Evidence", label="evidence", more=WRAPPED),
            Column(
                "Validity",
                label="validity",
                width=80,
                more={"mappings": words(VALIDITIES), **COLOURED},
            ),
            Column("Doubts", label="doubts", more=WRAPPED),
            Column(
                "",
                expr=f"max by (server, load, cause, evidence) (laptime_result_limited_by{{{ROW}}})",
            ),
            Column(
                "", expr=f"max by (server, load, validity, doubts) (laptime_result_state{{{ROW}}})"
            ),
        ],
        width=FULL,
        height=6,
    )


def _intervals(title: str, description: str, metric: str, name: str, unit: str) -> xychart.Panel:
    """Return a picture of a figure's intervals: a line for each server, one below the other."""
    labels = "server, load, position, bound"
    values = f"max by ({labels}) ({metric}{{{ROW}}})"
    place = f"max by (server, load) (laptime_result_place{{{ROW}}})"
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
        .with_target(newest(values, ref="A"))
        .with_target(newest(f"0 * {values} - on (server, load) group_left () {place}", ref="B"))
        .with_transformation(transformation("merge", {}))
        .with_transformation(
            transformation(
                "organize",
                {
                    "excludeByName": {"Time": True, "bound": True},
                    "renameByName": {"Value #A": name, "Value #B": "Place"},
                    "indexByName": {"Value #A": 0, "Value #B": 1},
                },
            )
        )
        .with_transformation(
            transformation(
                "partitionByValues",
                {
                    "fields": ["server", "load", "position"],
                    "keepFields": False,
                    "naming": {"asLabels": True},
                },
            )
        )
    )
    # What tells the frames apart is in their labels, and these are in the names at first.
    in_server_colors(panel, {}, place='^Place .*position="PLACE"')
    panel.override_by_regexp(f"/^{name}/", [_property("displayName", name)])
    hidden = _property("custom.axisPlacement", "hidden")
    panel.override_by_regexp("/^Place/", [_property("displayName", _SERVER_AND_LOAD), hidden])
    return panel


def _property(name: str, value: str) -> dashboard_models.DynamicConfigValue:
    return dashboard_models.DynamicConfigValue(id_val=name, value=value)
