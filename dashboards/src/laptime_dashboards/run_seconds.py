"""Panels of one run: what the generators send and get, live and side by side."""

from __future__ import annotations

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import prometheus, timeseries, xychart
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as dashboard_models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.xychart import SeriesMapping, XYShowMode

from laptime_dashboards.panel_defaults import (
    DATA_SOURCE,
    HALF,
    RUN_STEP,
    in_server_colors,
    query,
    thresholds,
    time_series,
    transformation,
)
from laptime_dashboards.selectors import GENERATOR, SERVERS, TRIAL, placed, quantile, rate

_NO_GENERATOR = "No load in this time"
_SERVER_AND_LOAD = "${__field.labels.server}, ${__field.labels.load}"


def requests() -> timeseries.Panel:
    """Requests a second, warm-up included."""
    counter = f"laptime_generator_requests_total{{{GENERATOR}}}"
    panel = time_series(
        "Request rate",
        "Requests a second of each server under each load. In grey shade: warm-up, which no result "
        "contains.",
        "reqps",
        _NO_GENERATOR,
        [
            query(
                placed(f"sum by (server, load) ({rate(counter)})"),
                "{{position}} {{server}}, {{load}}",
            )
        ],
    )
    in_server_colors(panel, {"A": _SERVER_AND_LOAD})
    return panel


def latency() -> timeseries.Panel:
    """The usual response time and a long one."""
    buckets = f"laptime_generator_latency_seconds_bucket{{{GENERATOR}}}"
    shares = {"A": (0.5, "p50"), "B": (0.99, "p99")}
    panel = time_series(
        "Latency: p50 and p99",
        "Response times, from the generators' histograms, whose buckets are wide: the exact "
        "percentiles are in the results. The p99 is the broken line.",
        "s",
        _NO_GENERATOR,
        [
            query(
                placed(quantile(share, buckets, "server", "load")),
                f"{{{{position}}}} {{{{server}}}}, {{{{load}}}} {name}",
                ref=ref,
            )
            for ref, (share, name) in shares.items()
        ],
    )
    names = {ref: f"{_SERVER_AND_LOAD} {name}" for ref, (_, name) in shares.items()}
    in_server_colors(panel, names, dashed=["B"])
    return panel


def tail() -> timeseries.Panel:
    """Percentiles of each request of the scenario."""
    buckets = f"laptime_generator_latency_seconds_bucket{{{GENERATOR}}}"
    return time_series(
        "Latency of each endpoint: p90",
        "Response times of each request of the scenario, from the generators' histograms.",
        "s",
        _NO_GENERATOR,
        [query(quantile(0.9, buckets, "server", "endpoint"), "{{server}} {{endpoint}} p90")],
    )


def errors() -> timeseries.Panel:
    """Answers that were wrong, late or none."""
    return time_series(
        "Errors",
        "Requests a second without a right answer in time, by kind.",
        "reqps",
        "No errors",
        [
            query(
                "sum by (server, load, kind)"
                f" ({rate(f'laptime_generator_errors_total{{{GENERATOR}}}')})",
                "{{server}}, {{load}}: {{kind}}",
            )
        ],
        limits=[(0.001, "red")],
    )


def requests_since_start() -> xychart.Panel:
    """Request rates of all trials, one over the other."""
    counter = f'laptime_generator_requests_total{{{GENERATOR}, phase="measured"}}'
    trial_rate = f"sum by (server, load, trial) ({rate(counter)})"
    return _since_start(
        "Request rate since the start of the trial",
        "The measured phases of all trials that are over, laid over each other: whether a server "
        "is steady, warms up, or gets slower.",
        "Requests/s",
        "reqps",
        trial_rate,
        "repetition",
    )


def cpu_since_start() -> xychart.Panel:
    """CPU of the servers in all trials, one over the other."""
    return _since_start(
        "CPU of the server since the start of the trial",
        "CPU of the server's pod in the measured phases of all trials that are over, laid over "
        "each other.",
        "Cores",
        "short",
        f"sum by (server, trial) ({rate(f'laptime_pod_cpu_seconds_total{{{SERVERS}}}')})",
        "load, repetition",
    )


def _since_start(
    title: str,
    description: str,
    value: str,
    unit: str,
    expr: str,
    added: str,
) -> xychart.Panel:
    """Return a chart of an expression with the label `trial` over the seconds since its start.

    The starts are the operator's, as it knows them at the end of the time range: a trial is there
    as soon as its result is.
    """
    labels = f"trial, {added}"
    started = f"max by ({labels}) (laptime_trial_started_timestamp_seconds{{{TRIAL}}} @ end())"
    ended = f"max by ({labels}) (laptime_trial_finished_timestamp_seconds{{{TRIAL}}} @ end())"
    since = f"(0 * ({expr}) + time()) - on (trial) group_left ({added}) {started}"
    until = f"(0 * ({expr}) + time()) - on (trial) group_left ({added}) {ended}"
    inside = f"({since}) >= 0 and ({until}) <= 0"
    values = f"({expr}) * on (trial) group_left ({added}) (0 * {started} + 1) and ({inside})"
    panel = (
        xychart.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit(unit)
        .no_value("No trial of this time is over yet")
        .min(0)
        .height(10)
        .span(HALF)
        .thresholds(thresholds())
        .mapping(SeriesMapping.AUTO)
        .show(XYShowMode.POINTS_AND_LINES)
        .line_width(2)
        .legend(
            common_builders.VizLegendOptions()
            .display_mode(common.LegendDisplayMode.LIST)
            .placement(common.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.SINGLE))
        .with_target(_as_rows(placed(inside), "A"))
        .with_target(_as_rows(placed(values), "B"))
        .with_transformation(transformation("merge", {}))
        .with_transformation(
            transformation(
                "organize",
                {
                    "excludeByName": {"Time": True, "trial": True},
                    "renameByName": {"Value #A": "Since start", "Value #B": value},
                    "indexByName": {"Value #A": 0, "Value #B": 1},
                },
            )
        )
        .with_transformation(
            transformation(
                "partitionByValues",
                {
                    "fields": ["server", "load", "repetition", "position"],
                    "keepFields": False,
                    "naming": {"asLabels": True},
                },
            )
        )
    )
    # What tells the frames apart is in their labels, and these are in the names at first.
    in_server_colors(panel, {}, place=f'^{value} .*position="PLACE"')
    since_start = [_property("unit", "s"), _property("displayName", "Since start")]
    panel.override_by_regexp("/^Since start/", since_start)
    name = f"{_SERVER_AND_LOAD} #${{__field.labels.repetition}}"
    panel.override_by_regexp(f"/^{value}/", [_property("displayName", name)])
    return panel


def _property(name: str, value: str) -> dashboard_models.DynamicConfigValue:
    return dashboard_models.DynamicConfigValue(id_val=name, value=value)


def _as_rows(expr: str, ref: str) -> prometheus.Dataquery:
    return query(expr, ref=ref, step=RUN_STEP).format(PromQueryFormat.TABLE)
