"""Laptime / Operator: whether the operator keeps up, and what it costs."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, stat, timeseries

from laptime_dashboards.frame import OPERATOR_UID, frame
from laptime_dashboards.panel_defaults import (
    OPERATOR_STEP,
    figure,
    newest,
    query,
    time_series,
)
from laptime_dashboards.selectors import quantile, rate

_SILENT = "The operator says nothing: is it scraped?"
_JOBS = 'job=~".*laptime-(operator|agent|prometheus)"'


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    made = frame(
        "Operator", OPERATOR_UID, "Queue, reconcile times, errors and API calls of the operator."
    )
    for panel in (
        last_event(),
        queue_length(),
        reconcile_rate(),
        error_rate(),
        runs(),
        reconcile_times(),
        errors(),
        requests(),
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


def queue_length() -> stat.Panel:
    """Runs that wait."""
    return figure(
        "Queue",
        "Runs that wait for their turn.",
        "short",
        _SILENT,
        [newest('sum(laptime_runs{state="Queued"})', "queued")],
    )


def reconcile_rate() -> stat.Panel:
    """Looks at runs in the last minute."""
    return figure(
        "Looks in the last minute",
        "How often the operator looked at a run. Many without any run going on is a loop.",
        "short",
        _SILENT,
        [newest("sum(increase(laptime_reconcile_seconds_count[1m]))", "looks")],
    )


def error_rate() -> stat.Panel:
    """Failed looks in the last ten minutes."""
    return figure(
        "Failed looks in 10 min",
        "Looks at a run that failed; each is tried again.",
        "short",
        "None since the operator's start",
        [newest("sum(increase(laptime_reconcile_errors_total[10m]))", "failed")],
        limits=[(1, "orange"), (20, "red")],
    )


def runs() -> timeseries.Panel:
    """Runs by state."""
    return time_series(
        "Runs by state",
        "Runs in the cluster, by where they are.",
        "short",
        _SILENT,
        [query("sum by (state) (laptime_runs)", "{{state}}", step=OPERATOR_STEP)],
    )


def reconcile_times() -> timeseries.Panel:
    """How long a look takes."""
    buckets = "laptime_reconcile_seconds_bucket"
    return time_series(
        "Time of one look at a run",
        "From the read of the run to the last action; the API server answers most of that time.",
        "s",
        "No look in this time",
        [
            query(quantile(0.5, buckets), "p50", ref="A", step=OPERATOR_STEP),
            query(quantile(0.99, buckets), "p99", ref="B", step=OPERATOR_STEP),
        ],
        limits=[(1, "orange"), (5, "red")],
    )


def errors() -> timeseries.Panel:
    """Failed looks by reason."""
    counter = rate("laptime_reconcile_errors_total")
    return time_series(
        "Failed looks",
        "Looks at a run that failed a second, by reason. A conflict is tried again at once.",
        "ops",
        "No errors",
        [query(f"sum by (reason) ({counter})", "{{reason}}", step=OPERATOR_STEP)],
        limits=[(0.1, "red")],
    )


def requests() -> timeseries.Panel:
    """Requests to the API server."""
    counter = rate("laptime_api_requests_total")
    return time_series(
        "Requests to the API server",
        "Requests a second by method and status code; code 0 means that it was not reached.",
        "reqps",
        _SILENT,
        [query(f"sum by (method, code) ({counter})", "{{method}} {{code}}", step=OPERATOR_STEP)],
    )


def trial_lengths() -> timeseries.Panel:
    """How long the measured phases are."""
    return time_series(
        "Length of trials",
        "Mean length of the measured phases of all trials since the operator's start.",
        "s",
        "No trial since the operator's start",
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
