"""Panels of one run: each second as the generators counted it, and the trial of the moment live."""

from __future__ import annotations

import re

from grafana_foundation_sdk.builders import prometheus, stat, timeseries, xychart
from grafana_foundation_sdk.models import dashboard as dashboard_models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from laptime_dashboards.panel_defaults import (
    FULL,
    HALF,
    NOT_TOLD,
    RUN_STEP,
    SECOND,
    SERVER_AND_LOAD,
    figure,
    in_red,
    in_server_colors,
    newest,
    of_run,
    query,
    time_series,
    transformation,
    xy_chart,
)
from laptime_dashboards.selectors import EACH_SECOND, ROW, RUN, STEP, rate

NOT_OVER = (
    "no trial of this time is over, or this Prometheus does not fetch the operator's seconds, or "
    "does not keep them any more (docs/watching.md)"
)
"""Why there may be no seconds of trials."""
OF_SEVERAL_TRIALS = (
    "Of a long range, where a point is of several trials, the mean of those that had some of the "
    "kind."
)
"""What a picture of errors shows then: of the others there is no series of that kind."""
_AGE = "time() - $since"
"""What the seconds since a phase began are fewer than, unless it is of an earlier run."""
_REQUESTS = f'avg_over_time(laptime_second_requests{{{EACH_SECOND},whole!="false"}}[{STEP}])'
"""Of whole seconds alone: a last one that is not whole would look like a breakdown."""
_ELAPSED = f"avg_over_time(laptime_second_elapsed_seconds{{{EACH_SECOND}}}[{STEP}])"
"""Of the same seconds: the middle of those that are one point."""


def requests() -> timeseries.Panel:
    """Requests of each second, and of the trial that is measured now as they are scraped."""
    # Of the trial that is the newest at the end of the time range, at each moment of it. No two
    # runs of a namespace have a trial of one name. Two operators speak of it while one takes over.
    scraped = (
        f"sum by (trial, server, load) ({rate(f'laptime_generator_requests_total{{{ROW}}}')})"
        " * on (trial) group_left (position) max by (trial, position)"
        ' (laptime_run_current_trial{namespace="$namespace"} @ end())'
    )
    panel = time_series(
        "Requests of each second",
        "What each server answered, right or wrong, in each second of its measured phases, as "
        "counted; a last second that is not whole is left out. Broken lines: the trial of the "
        "moment, warm-up included, as scraped; they give way to what was counted when it is over.",
        "reqps",
        NOT_OVER,
        [
            of_run(
                f"avg by (position, server, load) ({_REQUESTS})",
                "{{position}} {{server}}, {{load}}",
                ref="A",
                step=SECOND,
            ),
            # A point is of four scrapes, so there is one for four: it costs Prometheus more than a
            # counted one, while something is measured. Without the factor Grafana asks for all.
            of_run(scraped, "{{position}} {{server}}, {{load}}: live", ref="B").interval_factor(4),
        ],
    )
    in_server_colors(panel, {"A": SERVER_AND_LOAD, "B": f"{SERVER_AND_LOAD}: live"}, dashed=["B"])
    return panel


def latency() -> timeseries.Panel:
    """The usual response time and a long one of each second."""
    shares = ("0.5", "0.99")
    panel = time_series(
        "Response times of each second: p50 and p99",
        "Of the right answers of each whole second of the measured phases, to 0.6 %; of a long "
        "range, where a point is several seconds, their highest. The p99 is the broken line. A p99 "
        "that rises again and again is a pause of the server.",
        "s",
        f"{NOT_OVER}, or they were measured by a Laptime that did not give these yet",
        [
            # Both by one query: it is asked again with each refresh, while the run measures.
            of_run(
                "max by (position, server, load, quantile) (max_over_time("
                f'laptime_second_latency_quantile_seconds{{{EACH_SECOND},quantile=~"{"|".join(shares)}"}}'
                f"[{STEP}]))",
                "{{position}} {{server}}, {{load}} {{quantile}}",
                step=SECOND,
            )
        ],
    )
    usual, long = (f"/ {re.escape(share)}$/" for share in shares)
    names = {usual: f"{SERVER_AND_LOAD} p50", long: f"{SERVER_AND_LOAD} p99"}
    in_server_colors(panel, names, dashed=[long])
    return panel


def errors() -> timeseries.Panel:
    """Answers of each second that were wrong, late or none."""
    counted = f"avg_over_time(laptime_second_errors{{{EACH_SECOND}}}[{STEP}])"
    panel = time_series(
        "Errors of each second",
        "Requests without a right answer in time, by kind, as counted. The kind dropped: given up "
        "unsent, since they had waited for longer than the time-out. The kind none, at zero: the "
        f"trial had no errors. {OF_SEVERAL_TRIALS}",
        "reqps",
        NOT_OVER,
        [
            of_run(
                f"avg by (position, server, load, kind) ({counted})",
                "{{position}} {{server}}, {{load}}: {{kind}}",
                step=SECOND,
            )
        ],
        # Else Grafana draws zeros below an axis to 100.
        most=1,
    )
    in_server_colors(panel, {"A": f"{SERVER_AND_LOAD}: ${{__field.labels.kind}}"})
    return in_red(panel)


def complete() -> stat.Panel:
    """Trials of which Prometheus lacks seconds."""
    whole = f"max by (trial) (laptime_trial_seconds_complete{{{RUN}}})"
    return figure(
        "Trials with seconds that are missing",
        "Of how many trials the Prometheus that the operator asks (prometheus.url) lacked seconds "
        "right after the trial, so that the pictures of this row have gaps; results have none. "
        "What it has lost since, or keeps no longer (prometheus.retention), is not counted here, "
        "nor what another Prometheus lacks.",
        "short",
        "no trial is over yet, nobody asked Prometheus what it has, the time range ends after the "
        f"operator began anew or had 500 newer trials to tell of, {NOT_TOLD}",
        [newest(f"count({whole}) - sum({whole})", "trials")],
        limits=[(1, "orange")],
        width=FULL,
        height=3,
    )


def requests_since_start() -> xychart.Panel:
    """Requests of each second of all trials, one over the other."""
    return _since_start(
        "Requests of each second, all repetitions",
        "The measured phases of all trials that are over, laid over each other: whether a server "
        "is steady, warms up, or gets slower.",
        "Requests/s",
        "reqps",
        _REQUESTS,
        NOT_OVER,
    )


def cpu_since_start() -> xychart.Panel:
    """CPU of the servers in all trials, one over the other."""
    pods = f'laptime_pod_cpu_seconds_total{{{RUN},component="server"}}'
    return _since_start(
        "CPU of the server, all repetitions",
        "CPU of the server's pod in the measured phases of all trials that are over, laid over "
        "each other, each the mean of four seconds or of a step, if that is longer.",
        "Cores",
        "short",
        f"0 * {_ELAPSED} + on (trial) group_left () sum by (trial) ({rate(pods)})",
        f"{NOT_OVER}, or no agent watched the server: of a Service that Laptime did not deploy "
        "nobody does",
    )


def _since_start(
    title: str, description: str, value: str, unit: str, expr: str, no_data: str
) -> xychart.Panel:
    """Return a chart of an expression with the labels of seconds over the time since the start."""
    panel = (
        xy_chart(title, description, unit, no_data)
        .min(0)
        .height(9)
        .span(HALF)
        .line_width(2)
        .with_target(_as_rows(f"{_ELAPSED} < {_AGE}", "A", SECOND))
        .with_target(_as_rows(expr, "B", RUN_STEP if "rate(" in expr else SECOND))
        .with_transformation(transformation("merge", {}))
        # What the first query leaves out has no place on the axis.
        .with_transformation(
            transformation(
                "filterByValue",
                {
                    "type": "exclude",
                    "match": "any",
                    "filters": [
                        {"fieldName": "Value #A", "config": {"id": "isNull", "options": {}}}
                    ],
                },
            )
        )
        .with_transformation(
            transformation(
                "organize",
                {
                    "excludeByName": dict.fromkeys(
                        ("Time", "namespace", "run", "trial", "phase", "whole", "job"), True
                    ),
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
    name = f"{SERVER_AND_LOAD} #${{__field.labels.repetition}}"
    panel.override_by_regexp(f"/^{value}/", [_property("displayName", name)])
    return panel


def _property(name: str, value: str) -> dashboard_models.DynamicConfigValue:
    return dashboard_models.DynamicConfigValue(id_val=name, value=value)


def _as_rows(expr: str, ref: str, step: str) -> prometheus.Dataquery:
    return query(expr, ref=ref, step=step).format(PromQueryFormat.TABLE)
