"""Panels of one run: the figures that it stored, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping

from grafana_foundation_sdk.builders import table

from laptime_dashboards.meanings import OUTCOMES, VALIDITIES
from laptime_dashboards.panel_defaults import NOT_TOLD, in_order, not_told
from laptime_dashboards.run_answer import NO_RESULT, OF_A_SEARCH, PLACE
from laptime_dashboards.selectors import ROW, RUN
from laptime_dashboards.tables import (
    FAILED,
    OF_RESPONSE_TIMES,
    THREE_DIGITS,
    Column,
    coloured_words,
    rows,
    sorted_by,
)

_BY_ROW = "max by (server, load)"


def table_of_results() -> table.Panel:
    """The final table: what each server reached under each load."""
    panel = rows(
        "Results",
        "The figures of the report. Servers under the same load that share a rank cannot be told "
        f"apart. The other intervals are in the pictures above. {OF_RESPONSE_TIMES} Requests/s: "
        f"right answers a second. {OF_A_SEARCH}",
        NO_RESULT,
        [
            # On a screen of 1366 px all of them are in sight.
            Column("Load", label="load", width=80),
            _row_value("Rank", "laptime_result_rank", decimals=0, width=75),
            Column("Server", label="server", longest=True),
            _estimate("Requests/s", "laptime_result_requests_per_second"),
            _estimate("Factor", "laptime_result_factor"),
            _latency("p50", "0.5"),
            _latency("p90", "0.9"),
            _latency("p99", "0.99"),
            _latency("low p99", "0.99", "low"),
            _latency("high p99", "0.99", "high"),
            _latency("p99.9", "0.999"),
            _row_value("Errors", "laptime_result_errors_ratio", "percentunit", width=70),
            _row_value("Cores", "laptime_result_cpu_cores", "short", 2, width=60),
            _row_value("Memory", "laptime_result_memory_bytes", "bytes", width=80),
            _row_value("Trials", "laptime_result_trials", "short", 0, width=55),
            Column(
                "Validity",
                label="validity",
                width=80,
                more=coloured_words(VALIDITIES),
            ),
            Column(
                "", expr=f"max by (server, load, place, validity) (laptime_result_state{{{ROW}}})"
            ),
            PLACE,
        ],
    )
    panel.with_transformation(in_order(PLACE.title))
    return panel.sort_by([sorted_by("Load"), sorted_by("Rank")])


def ties() -> table.Panel:
    """Who is not told apart, and what would do it."""
    return rows(
        "Ties",
        "Servers that a load does not tell apart when the run is over, and about how many "
        "repetitions more would do it, by the noise of this run: at most 20, the cheapest. Two "
        "that surely differ by less than is worth knowing are none, though they share a rank.",
        "no tie is known: all servers are told apart or surely as good as alike, nobody knows "
        "their noise, the run is not over, "
        f"{not_told('the 200 ties')}",
        [
            Column("Load", label="load", width=90),
            Column("Compared by", label="compared_by", width=110),
            Column("Servers", label="servers", width=220),
            Column("What would tell them apart", label="cost", longest=True),
            Column(
                "",
                expr="max by (load, servers, compared_by, cost) "
                f'(laptime_result_tie{{{RUN},load=~"$load"}})',
            ),
        ],
        height=5,
    ).sort_by([sorted_by("Load"), sorted_by("Servers")])


def trials() -> table.Panel:
    """Every trial in its place in the plan."""
    labels = "trial, server, load, repetition"
    started = f"max by ({labels}) (laptime_trial_started_timestamp_seconds{{{RUN}}})"
    finished = f"max by ({labels}) (laptime_trial_finished_timestamp_seconds{{{RUN}}})"
    return rows(
        "Trials",
        "Every measurement in the order of the plan. One that was asked for again (spec.retry) was "
        "made last, and stands in its old place.",
        "no trial is over, the time range ends after the operator began anew or had 500 newer "
        f"trials to tell of (a click on the run in Runs shows its own time), {NOT_TOLD}",
        [
            Column("Trial", label="trial", longest=True),
            Column("Server", label="server", width=130),
            Column("Load", label="load", width=90),
            Column("Repetition", label="repetition", width=90),
            Column(
                "",
                expr=f"max by ({labels}, outcome, validity) (laptime_trial_outcome{{{RUN}}})",
            ),
            Column(
                "Outcome",
                label="outcome",
                width=90,
                more=coloured_words(OUTCOMES),
            ),
            Column(
                "Validity",
                label="validity",
                width=80,
                more=coloured_words(VALIDITIES),
            ),
            Column("Started", expr=f"1000 * {started}", unit="dateTimeAsIso", width=162),
            Column("Length", expr=f"{finished} - {started}", unit="s", decimals=1, width=70),
            Column(
                "Requests/s",
                expr=f"max by ({labels}) (laptime_trial_requests_per_second{{{RUN}}})",
                unit=THREE_DIGITS,
                width=95,
            ),
        ],
        height=10,
        # Their names end with their numbers.
    ).sort_by([sorted_by("Trial")])


def _estimate(title: str, metric: str) -> Column:
    """Return a column with a figure that has an interval, without it."""
    return _row_value(title, metric, THREE_DIGITS, selector='bound="estimate"', width=95)


def _latency(title: str, quantile: str, bound: str = "estimate") -> Column:
    """Return a column with a percentile, or with an end of its interval."""
    name, selector = "laptime_result_latency_seconds", f'quantile="{quantile}",bound="{bound}"'
    return _row_value(title, name, "s", selector=selector, width=75, more=FAILED)


def _row_value(
    title: str,
    metric: str,
    unit: str = "short",
    decimals: int | None = None,
    *,
    selector: str = "",
    width: int | None = None,
    more: Mapping[str, object] | None = None,
) -> Column:
    wanted = f"{ROW},{selector}" if selector else ROW
    expr = f"{_BY_ROW} ({metric}{{{wanted}}})"
    return Column(title, expr=expr, unit=unit, decimals=decimals, width=width, more=more)
