"""Laptime / Runs: all runs at a glance, and the way into one of them."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, stat, table, timeseries
from grafana_foundation_sdk.models import dashboard as dashboard_models

from laptime_dashboards.frame import RUNS_UID, frame, link_to_run
from laptime_dashboards.meanings import OUTCOMES, STATES, VALIDITIES
from laptime_dashboards.panel_defaults import (
    FULL,
    OPERATOR_STEP,
    QUARTER,
    figure,
    in_order,
    newest,
    query,
    time_series,
    words,
)
from laptime_dashboards.selectors import CREATED
from laptime_dashboards.tables import HIDDEN, OF_RESPONSE_TIMES, Column, coloured_words, rows

_WIDTH = QUARTER


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    return (
        frame(
            "Runs",
            RUNS_UID,
            "All benchmark runs: state, validity, verdict, factor.",
            begin="now-1h",
            refresh="5s",
        )
        .with_panel(going_on())
        .with_panel(waiting())
        .with_panel(over())
        .with_panel(failed())
        .with_panel(all_runs())
        .with_panel(trials())
    )


def _count(title: str, description: str, states: str, what: str) -> stat.Panel:
    return figure(
        title,
        description,
        "short",
        "the operator is not scraped",
        [newest(f'sum(laptime_runs{{state=~"{states}"}})', what)],
        width=_WIDTH,
        height=3,
    )


def going_on() -> stat.Panel:
    """Runs that have their turn."""
    return _count(
        "Running",
        "Runs that have their turn: one, or one in each lane, so that no run disturbs another.",
        "Deploying|Verifying|Running|Finishing|Suspending",
        "running",
    )


def waiting() -> stat.Panel:
    """Runs that wait for their turn."""
    return _count(
        "Waiting",
        "Runs that wait until those before them are over, and those that are suspended.",
        "Queued|Suspended",
        "waiting",
    )


def over() -> stat.Panel:
    """Runs that came to their end."""
    return _count(
        "Succeeded",
        "Runs that are over and have their results. Whether these can be trusted is the validity "
        "below.",
        "Succeeded",
        "succeeded",
    )


def failed() -> stat.Panel:
    """Runs that could not be measured."""
    return _count(
        "Failed or cancelled",
        "Runs that ended without all of their results; their conditions say why.",
        "Failed|Cancelled",
        "failed or cancelled",
    )


def all_runs() -> table.Panel:
    """Every run with its state and verdict, and a link into it."""
    run = "namespace, run"
    link = link_to_run(
        "&var-scenario=${__data.fields.Scenario}"
        "&from=${__data.fields.Created.numeric}&to=${__data.fields.Until.text}"
    )
    labels = f"{run}, scenario, state, validity, verdict, factor"
    # Who leads while a run goes on is no finding: that waits for the verdict, as the factor does.
    info = (
        f'max by ({labels}, fastest) (laptime_run_info{{verdict!=""}})'
        f' or max by ({labels}) (laptime_run_info{{verdict=""}})'
    )
    return rows(
        "All runs",
        "The newest 50 runs, those that go on first. A click on a name shows that run in its own "
        "time, up to now while it goes on. A run is as valid as its least valid row. Trials: "
        "how many are over, and how many measured nothing. Fastest, when the run is over: as in "
        "the verdict, by the first figure that its loads are compared by; several are not told "
        "apart. The factor is that of the fastest "
        "server against the baseline: the verdict's, with its 95 % interval where it is of one "
        "load. Where several are fastest it is empty: each has its own in its run. "
        f"{OF_RESPONSE_TIMES}",
        "there is no run (docs/first-run.md), or the operator is not scraped",
        [
            Column("Run", label="run", width=120, more=link),
            Column("Namespace", label="namespace", width=95),
            Column("State", label="state", width=93, more=coloured_words(STATES)),
            Column(
                "Validity",
                label="validity",
                width=75,
                more=coloured_words(VALIDITIES),
            ),
            Column("Verdict", label="verdict", longest=True),
            Column("", expr=info),
            Column("Fastest", label="fastest", width=100),
            Column("Factor", label="factor", width=95),
            Column(
                "Trials",
                expr=f"max by ({run}) (laptime_run_progress_ratio)",
                unit="percentunit",
                decimals=0,
                width=60,
            ),
            Column(
                "Failed",
                expr=f"max by ({run}) (laptime_run_trials_failed)",
                unit="short",
                decimals=0,
                width=60,
            ),
            Column(
                "Time left",
                expr=f"max by ({run}) (laptime_run_remaining_seconds)",
                unit="dthms",
                width=75,
            ),
            Column("Scenario", label="scenario", width=75),
            Column("Created", expr=f"1000 * {CREATED}", unit="time:MM-DD HH:mm", width=99),
            Column(
                "Until",
                # A little later than its end: the operator has told of the end by then, also where
                # it is scraped once a minute. Without an end it is first, and up to now: a moment
                # would stay the same while the run goes on.
                expr=f"1000 * (max by ({run}) (laptime_run_finished_timestamp_seconds) + 75)"
                f" or (0 * {CREATED} + Inf)",
                unit="none",
                decimals=0,
                width=160,
                # For the link and the order only.
                more={"mappings": words({"Infinity": ("now", "text")}), **HIDDEN},
            ),
        ],
        height=15,
    ).with_transformation(in_order("Until", downwards=True))


def trials() -> timeseries.Panel:
    """Trials that came to their end."""
    panel = time_series(
        "Trials of the last ten minutes",
        "Trials whose result was stored within ten minutes, by outcome. A failed one says in its "
        "run why.",
        "none",
        "the operator is not scraped",
        [
            query(
                "sum by (outcome) (round(increase(laptime_trials_total[10m])))",
                "{{outcome}}",
                step=OPERATOR_STEP,
            )
        ],
        width=FULL,
    )
    for outcome, (_, color) in OUTCOMES.items():
        fixed = {"mode": "fixed", "fixedColor": color}
        panel.override_by_name(
            outcome, [dashboard_models.DynamicConfigValue(id_val="color", value=fixed)]
        )
    return panel
