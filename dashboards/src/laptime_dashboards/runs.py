"""Laptime / Runs: all runs at a glance, and the way into one of them."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, stat, table, timeseries

from laptime_dashboards.frame import RUN_UID, RUNS_UID, frame
from laptime_dashboards.meanings import STATES
from laptime_dashboards.panel_defaults import (
    HALF,
    OPERATOR_STEP,
    QUARTER,
    Column,
    figure,
    newest,
    query,
    rows,
    sorted_by,
    time_series,
    words,
)

_WIDTH = QUARTER


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    return (
        frame(
            "Runs",
            RUNS_UID,
            "All benchmark runs: state, progress, fastest, factor.",
            begin="now-1h",
            refresh="5s",
        )
        .with_panel(going_on())
        .with_panel(waiting())
        .with_panel(over())
        .with_panel(failed())
        .with_panel(all_runs())
        .with_panel(progress())
        .with_panel(trials())
    )


def going_on() -> stat.Panel:
    """Runs that have their turn."""
    return figure(
        "Running",
        "Runs that have their turn: one at a time, so that no run disturbs another.",
        "short",
        "The operator says nothing",
        [newest('sum(laptime_runs{state=~"Deploying|Verifying|Running|Finishing"})', "running")],
        width=_WIDTH,
    )


def waiting() -> stat.Panel:
    """Runs that wait for their turn."""
    return figure(
        "Queued",
        "Runs that wait until those before them are over.",
        "short",
        "The operator says nothing",
        [newest('sum(laptime_runs{state="Queued"})', "queued")],
        width=_WIDTH,
    )


def over() -> stat.Panel:
    """Runs that came to their end."""
    return figure(
        "Succeeded",
        "Runs that are over and have their results.",
        "short",
        "The operator says nothing",
        [newest('sum(laptime_runs{state="Succeeded"})', "succeeded")],
        width=_WIDTH,
    )


def failed() -> stat.Panel:
    """Runs that could not be measured."""
    return figure(
        "Failed",
        "Runs that ended without a result; their conditions say why.",
        "short",
        "The operator says nothing",
        [newest('sum(laptime_runs{state="Failed"})', "failed")],
        limits=[(1, "red")],
        width=_WIDTH,
    )


def all_runs() -> table.Panel:
    """Every run with its state, and a link into it."""
    run = "namespace, run"
    created = f"max by ({run}) (laptime_run_created_timestamp_seconds)"
    link = {
        "title": "Look into ${__data.fields.Run}",
        "url": f"/d/{RUN_UID}?var-datasource=${{datasource}}"
        "&var-namespace=${__data.fields.Namespace}&var-run=${__data.fields.Run}"
        "&from=${__data.fields.Created.numeric}&to=${__data.fields.Until.numeric}",
    }
    return rows(
        "All runs",
        "The newest 50 runs. A click on a name shows that run in its own time. The factor is the "
        "highest of its servers against the baseline, under any load.",
        "No run yet: kubectl apply one (docs/first-run.md)",
        [
            Column("Run", label="run", width=150, more={"links": [link]}),
            Column("Namespace", label="namespace", width=100),
            Column(
                "State",
                label="state",
                width=95,
                more={
                    "mappings": words(STATES),
                    "custom.cellOptions": {"type": "color-text"},
                },
            ),
            Column(
                "",
                expr="max by (namespace, run, scenario, state, baseline, fastest, verdict)"
                " (laptime_run_info)",
            ),
            Column(
                "Progress",
                expr=f"max by ({run}) (laptime_run_progress_ratio)",
                unit="percentunit",
                width=110,
                more={
                    "min": 0,
                    "max": 1,
                    "custom.cellOptions": {"type": "gauge", "mode": "basic"},
                },
            ),
            Column(
                "Time left",
                expr=f"max by ({run}) (laptime_run_remaining_seconds)",
                unit="s",
                decimals=0,
                width=75,
            ),
            Column("Scenario", label="scenario", width=90),
            Column("Fastest", label="fastest", width=110),
            Column(
                "Factor",
                expr=f"max by ({run}) (laptime_result_factor)",
                unit="none",
                decimals=2,
                width=70,
            ),
            Column("Baseline", label="baseline", width=110),
            Column("Created", expr=f"1000 * {created}", unit="dateTimeAsIso", width=160),
            Column(
                "Until",
                # A little later than its end: the operator has told of the end by then.
                expr=f"1000 * (max by ({run}) (laptime_run_finished_timestamp_seconds) + 15"
                f" or (0 * {created} + time()))",
                unit="dateTimeAsIso",
                width=160,
                # For the link only. Newer Grafanas read the second of the two.
                more={"custom.hidden": True, "custom.hideFrom": {"viz": True}},
            ),
            Column("Verdict", label="verdict", width=500),
        ],
        height=12,
    ).sort_by([sorted_by("Created", newest_first=True)])


def progress() -> timeseries.Panel:
    """How far each run was at each moment."""
    return time_series(
        "Progress",
        "Share of the trials of each run that are over.",
        "percentunit",
        "No run in this time",
        [
            query(
                "max by (namespace, run) (laptime_run_progress_ratio)",
                "{{namespace}}/{{run}}",
                step=OPERATOR_STEP,
            )
        ],
        width=HALF,
        most=1,
    )


def trials() -> timeseries.Panel:
    """Trials that came to their end."""
    return time_series(
        "Trials of the last ten minutes",
        "Trials whose result was stored within ten minutes, by outcome. A failed one says in its "
        "run why.",
        "short",
        "No trial yet",
        [
            query(
                "sum by (outcome) (increase(laptime_trials_total[10m]))",
                "{{outcome}}",
                step=OPERATOR_STEP,
            )
        ],
        width=HALF,
    )
