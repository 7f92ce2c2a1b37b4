"""Panels of one run: the figures that it stored, with their intervals."""

from __future__ import annotations

from grafana_foundation_sdk.builders import stat, table

from laptime_dashboards.meanings import CAUSES, OUTCOMES, STATES, VALIDITIES
from laptime_dashboards.panel_defaults import (
    FULL,
    THIRD,
    WRAPPED,
    Column,
    figure,
    newest,
    rows,
    sorted_by,
    words,
)
from laptime_dashboards.selectors import ROW, RUN, TRIAL

_NO_RESULT = "No trial of the run is over yet"
_THROUGHPUT = "laptime_result_requests_per_second"
_BY_ROW = "max by (server, load)"


def verdict() -> table.Panel:
    """The result in a sentence."""
    sentence = Column("Verdict", label="verdict", more=WRAPPED)
    series = f'laptime_run_info{{{RUN}, verdict!=""}}'
    return rows(
        "Verdict",
        "The result in a sentence, when the run is over.",
        "The run is not over yet",
        [sentence, Column("", expr=f"max by (verdict) ({series})")],
        joined=False,
        height=4,
    ).show_header(False)


def state() -> stat.Panel:
    """Where the run is."""
    return figure(
        "State",
        f"Where the run is: {', '.join(STATES)}.",
        "short",
        "There is no such run",
        [newest(f"max by (state) (laptime_run_info{{{RUN}}})", "{{state}}")],
        width=THIRD,
        height=3,
        names=True,
    )


def progress() -> stat.Panel:
    """How far the run is."""
    return figure(
        "Progress",
        "Share of the trials that are over.",
        "percentunit",
        "The run has not begun",
        [newest(f"max(laptime_run_progress_ratio{{{RUN}}})", "done")],
        width=THIRD,
        height=3,
    )


def time_left() -> stat.Panel:
    """The estimate of the time left."""
    return figure(
        "Time left",
        "Estimate from the trials so far.",
        "s",
        "None: the run is over, or waits",
        [newest(f"max(laptime_run_remaining_seconds{{{RUN}}})", "left")],
        width=THIRD,
        height=3,
    )


def table_of_results() -> table.Panel:
    """The final table: what each server reached under each load."""
    return rows(
        "Results",
        "Means over the repetitions. Of two servers under the same load, those with the same rank "
        "cannot be told apart. Below two repetitions there is no interval.",
        _NO_RESULT,
        [
            # On a screen of 1366 px all of them are in sight.
            Column("Load", label="load", width=80),
            _row_value("Rank", "laptime_result_rank", width=75),
            Column("Server", label="server", width=120),
            _row_value("Requests/s", _THROUGHPUT, "locale", width=95),
            _latency("p50", "0.5"),
            _latency("p90", "0.9"),
            _latency("p99", "0.99"),
            _latency("p99.9", "0.999"),
            _row_value("Errors", "laptime_result_errors_ratio", "percentunit", 2, width=70),
            _row_value("Cores", "laptime_result_cpu_cores", "short", 2, width=60),
            _row_value("Memory", "laptime_result_memory_bytes", "bytes", 0, width=80),
            _row_value("Trials", "laptime_result_trials", "short", 0, width=55),
            Column(
                "Validity",
                label="validity",
                width=80,
                more={
                    "mappings": words(VALIDITIES),
                    "custom.cellOptions": {"type": "color-text"},
                },
            ),
            Column("", expr=f"max by (server, load, validity) (laptime_result_state{{{ROW}}})"),
        ],
    ).sort_by([sorted_by("Load"), sorted_by("Rank")])


def factors() -> table.Panel:
    """Throughput and factors with the ends of their intervals."""
    return rows(
        "Throughput and factor, with 95 % intervals",
        "A factor is the throughput divided by the baseline's, paired by repetition. An interval "
        "of a factor that contains 1 means: no difference found.",
        _NO_RESULT,
        [
            Column("Load", label="load", width=80),
            Column("Server", label="server", width=140),
            _row_value("Requests/s", _THROUGHPUT, "locale", width=130),
            _row_value("Requests/s, low", f"{_THROUGHPUT}_low", "locale", width=130),
            _row_value("Requests/s, high", f"{_THROUGHPUT}_high", "locale", width=130),
            _row_value("Factor", "laptime_result_factor", "none", 2, width=125),
            _row_value("Factor, low", "laptime_result_factor_low", "none", 2, width=125),
            _row_value("Factor, high", "laptime_result_factor_high", "none", 2, width=125),
        ],
        width=FULL,
        height=8,
    )


def doubts() -> table.Panel:
    """Rows that are not whole."""
    return rows(
        "Doubts",
        "Rows that are not whole: not measured yet, with failed trials, or with figures in doubt.",
        "Every row is measured and valid",
        [
            Column("Load", label="load", width=70),
            Column("Server", label="server", width=105),
            Column("State", label="state", width=80),
            Column(
                "Validity",
                label="validity",
                width=80,
                more={
                    "mappings": words(VALIDITIES),
                    "custom.cellOptions": {"type": "color-text"},
                },
            ),
            Column(
                "",
                expr="max by (server, load, state, validity)"
                f' (laptime_result_state{{{ROW}, validity!="valid"}})',
            ),
        ],
        joined=False,
        width=8,
        height=10,
    )


def limits() -> table.Panel:
    """What held each server back."""
    return rows(
        "What limited each server",
        "The cause in most repetitions, and the readings that say so when the run is over "
        "(docs/measurement.md).",
        "No trial is over yet, or nobody watched",
        [
            Column("Load", label="load", width=70),
            Column("Server", label="server", width=105),
            Column(
                "Limited by",
                label="cause",
                width=150,
                more={
                    "mappings": words(CAUSES),
                    "custom.cellOptions": {"type": "color-text"},
                },
            ),
            Column("Evidence", label="evidence", more=WRAPPED),
            Column(
                "",
                expr=f"max by (server, load, cause, evidence) (laptime_result_limited_by{{{ROW}}})",
            ),
        ],
        joined=False,
        width=16,
        height=10,
    )


def trials() -> table.Panel:
    """Every trial in its order."""
    labels = "trial, server, load, repetition"
    started = f"max by ({labels}) (laptime_trial_started_timestamp_seconds{{{TRIAL}}})"
    finished = f"max by ({labels}) (laptime_trial_finished_timestamp_seconds{{{TRIAL}}})"
    return rows(
        "Trials",
        "Every measurement in the order in which it was made.",
        _NO_RESULT,
        [
            Column("Trial", label="trial", width=190),
            Column("Server", label="server", width=130),
            Column("Load", label="load", width=90),
            Column("Repetition", label="repetition", width=90),
            Column(
                "",
                expr=f"max by ({labels}, outcome, validity) (laptime_trial_outcome{{{TRIAL}}})",
            ),
            Column(
                "Outcome",
                label="outcome",
                width=90,
                more={
                    "mappings": words(OUTCOMES),
                    "custom.cellOptions": {"type": "color-text"},
                },
            ),
            Column(
                "Validity",
                label="validity",
                width=80,
                more={
                    "mappings": words(VALIDITIES),
                    "custom.cellOptions": {"type": "color-text"},
                },
            ),
            Column("Started", expr=f"1000 * {started}", unit="dateTimeAsIso", width=160),
            Column("Length", expr=f"{finished} - {started}", unit="s", decimals=1, width=70),
            Column(
                "Requests/s",
                expr=f"max by ({labels}) (laptime_trial_requests_per_second{{{TRIAL}}})",
                unit="locale",
                decimals=0,
                width=95,
            ),
        ],
        height=10,
    )


def _latency(title: str, quantile: str) -> Column:
    """Return a column with a percentile."""
    selector = f'quantile="{quantile}"'
    return _row_value(title, "laptime_result_latency_seconds", "s", 1, selector, width=75)


def _row_value(
    title: str,
    metric: str,
    unit: str = "short",
    decimals: int = 0,
    more: str = "",
    width: int | None = None,
) -> Column:
    selector = f"{ROW}, {more}" if more else ROW
    expr = f"{_BY_ROW} ({metric}{{{selector}}})"
    return Column(title, expr=expr, unit=unit, decimals=decimals, width=width)
