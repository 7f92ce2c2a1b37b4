"""Laptime / Operator: whether the operator keeps up, and what it costs."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, stat, timeseries
from grafana_foundation_sdk.models import dashboard as dashboard_models

from laptime_dashboards.frame import OPERATOR_UID, frame
from laptime_dashboards.meanings import STATES
from laptime_dashboards.panel_defaults import (
    OPERATOR_STEP,
    figure,
    in_red,
    newest,
    query,
    time_series,
)
from laptime_dashboards.selectors import quantile, rate

_SILENT = "the operator is not scraped, or not running"
_JOBS = 'job=~".*laptime-(operator|agent|prometheus)"'
# Every operator and the control plane have metrics of these names.
_DEPTH = 'workqueue_depth{name="benchmarkrun"}'
_CONTROLLER = 'controller="benchmarkrun"'


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    made = frame(
        "Operator", OPERATOR_UID, "Queue, reconcile times, errors and API calls of the operator."
    )
    for panel in (
        last_event(),
        waiting_runs(),
        depth(),
        silent(),
        reconcile_rate(),
        reconcile_errors(),
        reconcile_times(),
        queue_depth(),
        reasons(),
        requests(),
        runs(),
        trial_lengths(),
        cpu(),
        memory(),
    ):
        made.with_panel(panel)
    return made


def last_event() -> stat.Panel:
    """How long ago anything was heard of a run."""
    return figure(
        "Last event",
        "Time since anything was heard of any run. The operator looks at all runs every minute, so "
        "with a run in the cluster it stays near that; a watch that froze makes it grow.",
        "s",
        _SILENT,
        [newest("max(laptime_last_event_age_seconds)", "ago")],
        limits=[(90, "orange"), (180, "red")],
    )


def waiting_runs() -> stat.Panel:
    """Runs that wait."""
    return figure(
        "Runs that wait",
        "Runs that wait for their turn.",
        "short",
        _SILENT,
        [newest('sum(laptime_runs{state="Queued"})', "queued")],
    )


def depth() -> stat.Panel:
    """Runs to be reconciled."""
    return figure(
        "Queue depth",
        "Runs that something happened to and that are not reconciled since. It is zero at nearly "
        "every moment.",
        "short",
        _SILENT,
        [newest(f"sum({_DEPTH})", "runs")],
        limits=[(20, "orange"), (100, "red")],
    )


def silent() -> stat.Panel:
    """Whether operator, agents and Prometheus are there."""
    return figure(
        "Operators at work",
        "1: one operator is at work. With several replicas the others stand by. 0: none holds the "
        "lease.",
        "short",
        _SILENT,
        [newest("sum(laptime_leader)", "at work")],
    )


def reconcile_rate() -> timeseries.Panel:
    """Reconciles by result."""
    counter = rate(f"controller_runtime_reconcile_total{{{_CONTROLLER}}}")
    panel = time_series(
        "Reconcile rate",
        "Reconciles of a run a second, by result. Many without any run going on is a loop.",
        "ops",
        _SILENT,
        [query(f"sum by (result) ({counter})", "{{result}}", step=OPERATOR_STEP)],
    )
    for result, color in (("success", "blue"), ("error", "red")):
        fixed = {"mode": "fixed", "fixedColor": color}
        panel.override_by_name(
            result, [dashboard_models.DynamicConfigValue(id_val="color", value=fixed)]
        )
    return panel


def reconcile_errors() -> timeseries.Panel:
    """Reconciles that failed."""
    counter = rate(f"controller_runtime_reconcile_errors_total{{{_CONTROLLER}}}")
    panel = time_series(
        "Reconcile errors",
        "Reconciles of a run that failed, a second; each is tried again. A few in an upgrade of "
        "the cluster are usual.",
        "ops",
        _SILENT,
        [query(f"sum({counter})", "errors", step=OPERATOR_STEP)],
        limits=[(0.1, "red")],
        most=0.2,
    )
    return in_red(panel)


def queue_depth() -> timeseries.Panel:
    """Runs to be reconciled, over time."""
    return time_series(
        "Queue depth over time",
        "Runs that something happened to and that are not reconciled since. One that grows says "
        "that the operator cannot keep up.",
        "short",
        _SILENT,
        [query(f"sum({_DEPTH})", "runs", step=OPERATOR_STEP)],
        most=1,
    )


def runs() -> timeseries.Panel:
    """Runs by state."""
    panel = time_series(
        "Runs by state",
        "Runs in the cluster, by where they are.",
        "short",
        _SILENT,
        [query("sum by (state) (laptime_runs)", "{{state}}", step=OPERATOR_STEP)],
        most=1,
    )
    for state, (_, color) in STATES.items():
        fixed = {"mode": "fixed", "fixedColor": color}
        panel.override_by_name(
            state, [dashboard_models.DynamicConfigValue(id_val="color", value=fixed)]
        )
    return panel


def reconcile_times() -> timeseries.Panel:
    """How long a reconcile takes."""
    buckets = f"controller_runtime_reconcile_time_seconds_bucket{{{_CONTROLLER}}}"
    return time_series(
        "Reconcile duration",
        "From the read of the run to the last action; the API server answers most of that time.",
        "s",
        "no reconcile in this time, or the operator is not scraped",
        [
            query(quantile(0.5, buckets), "p50", ref="A", step=OPERATOR_STEP),
            query(quantile(0.99, buckets), "p99", ref="B", step=OPERATOR_STEP),
        ],
        limits=[(1, "orange"), (5, "red")],
    )


def reasons() -> timeseries.Panel:
    """Reconciles that failed by reason."""
    counter = rate("laptime_reconcile_errors_total")
    panel = time_series(
        "Reconcile errors by reason",
        "Reconciles that failed a second, by reason. A conflict is tried again at once.",
        "ops",
        "no reason was told since the operator's start, or it is not scraped",
        [query(f"sum by (reason) ({counter})", "{{reason}}", step=OPERATOR_STEP)],
    )
    return in_red(panel)


def requests() -> timeseries.Panel:
    """Requests to the API server."""
    counter = rate("laptime_api_requests_total")
    panel = time_series(
        "Requests to the API server",
        "Requests a second by method and status code; code 0 means that it was not reached.",
        "reqps",
        _SILENT,
        [query(f"sum by (method, code) ({counter})", "{{method}} {{code}}", step=OPERATOR_STEP)],
    )
    # Whatever its place in the palette, whose first colour is green.
    shades = {"mode": "shades", "fixedColor": "red"}
    failed = dashboard_models.DynamicConfigValue(id_val="color", value=shades)
    return panel.override_by_regexp(r"/ ([45]\d\d|0)$/", [failed])


def trial_lengths() -> timeseries.Panel:
    """How long the measured phases are."""
    return time_series(
        "Length of trials",
        "Mean length of the measured phases of all trials since the operator's start.",
        "s",
        "no trial since the operator's start, or it is not scraped",
        [
            query(
                "sum(laptime_trial_seconds_sum) / (sum(laptime_trial_seconds_count) > 0)",
                "mean",
                step=OPERATOR_STEP,
            )
        ],
    )


def cpu() -> timeseries.Panel:
    """What Laptime itself costs in CPU."""
    counter = rate(f"process_cpu_seconds_total{{{_JOBS}}}")
    return time_series(
        "CPU of Laptime itself",
        "Cores in use by operator, agents and Prometheus: what they use is not there for servers.",
        "short",
        _SILENT,
        [query(f"sum by (job) ({counter})", "{{job}}", step=OPERATOR_STEP)],
    )


def memory() -> timeseries.Panel:
    """What Laptime itself costs in memory."""
    return time_series(
        "Memory of Laptime itself",
        "Resident memory of operator, agents and Prometheus.",
        "bytes",
        _SILENT,
        [
            query(
                f"sum by (job) (process_resident_memory_bytes{{{_JOBS}}})",
                "{{job}}",
                step=OPERATOR_STEP,
            )
        ],
    )
