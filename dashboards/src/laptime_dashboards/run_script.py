"""Panels of one run: what came of its objectives, and what a k6 script of a user's own says."""

from __future__ import annotations

from grafana_foundation_sdk.builders import table

from laptime_dashboards.meanings import OBJECTIVES
from laptime_dashboards.panel_defaults import FULL, not_told
from laptime_dashboards.selectors import ROW
from laptime_dashboards.tables import (
    FACTOR_DECIMALS,
    FACTOR_UNIT,
    THREE_DIGITS,
    Column,
    coloured_words,
    rows,
    sorted_by,
)

_NO_SCRIPT = "no load of the run is a script, none of its trials was measured"
_NO_METRIC = f"{_NO_SCRIPT}, {not_told('the 500 rows or the 200 metrics')}"


def objectives() -> table.Panel:
    """Each objective of the run and each threshold of its scripts."""
    asked = f"max by (server, load, bound, outcome, measured) (laptime_result_objective{{{ROW}}})"
    return rows(
        "Objectives and thresholds",
        "What came of each objective of the run and each threshold of a script; when the run is "
        "over, with what was measured and its 95 % interval. Not known: the figures do not say it "
        "for sure.",
        "the run has none, none of its trials was measured, "
        f"{not_told('the 500 objectives and thresholds')}",
        [
            *_row_labels(),
            Column("Bound", label="bound"),
            Column(
                "Outcome",
                label="outcome",
                width=90,
                more=coloured_words(OBJECTIVES),
            ),
            Column("Measured", label="measured", longest=True),
            Column("", expr=asked),
        ],
        joined=False,
        width=FULL,
        height=7,
    ).sort_by([sorted_by("Load"), sorted_by("Bound")])


def checks() -> table.Panel:
    """Each check of a script by its name."""
    held = f"max by (server, load, check) (laptime_result_check_rate{{{ROW}}})"
    # As the report has it: a check that failed once never shows 100 %.
    rate = f"clamp_max({held} < 1, 0.999999) or {held}"
    passed, failed = (
        f'max by (server, load, check) (laptime_result_check_answers{{{ROW},outcome="{one}"}})'
        for one in ("passed", "failed")
    )
    return rows(
        "Checks of scripts",
        "How often each check held and how often it did not, in all repetitions. One that fails in "
        "more than 1 % of its answers makes the row invalid.",
        f"{_NO_SCRIPT}, the script has no checks, {not_told('the 500 rows or the 500 checks')}",
        [
            *_row_labels(),
            Column("Check", label="check", longest=True),
            Column("Passed", expr=passed, unit="locale", decimals=0, width=110),
            Column("Failed", expr=failed, unit="locale", decimals=0, width=110),
            Column("Rate", expr=rate, unit="percentunit", decimals=4, width=90),
        ],
        width=FULL,
        height=8,
    ).sort_by([sorted_by("Load"), sorted_by("Rate")])


def iterations() -> table.Panel:
    """Iterations of scripts, and those that were dropped."""
    ended, dropped = (
        f'max by (server, load) (laptime_result_iterations{{{ROW},outcome="{one}"}})'
        for one in ("ended", "dropped")
    )
    return rows(
        "Iterations of scripts",
        "In all repetitions, and of each second with the 95 % interval. Dropped: they were due and "
        "found no VU (maxVUs), so the load was less than the script asks for.",
        _NO_METRIC,
        [
            Column("Load", label="load", width=90),
            Column("Server", label="server", longest=True),
            Column("Ended", expr=ended, unit="locale", decimals=0, width=110),
            Column("Dropped", expr=dropped, unit="locale", decimals=0, width=110),
            *_interval("Rate/s", "value", 'metric="iterations"', "server, load"),
            *_interval("Factor", "factor", 'metric="iterations"', "server, load"),
        ],
        width=FULL,
        height=6,
    ).sort_by([sorted_by("Load"), sorted_by("Server")])


def metrics() -> table.Panel:
    """k6's and the script's own metrics under their names."""
    labels = "server, load, metric, figure, unit"
    return rows(
        "Metrics of scripts",
        "Counters (rate: each second), gauges (value), rates and trends under their names in k6 "
        "and in its units, over all repetitions with the 95 % interval, and divided by the "
        "baseline's. The report has more of them.",
        _NO_METRIC,
        [
            *_row_labels(),
            Column("Metric", label="metric", longest=True),
            Column("Figure", label="figure", width=70),
            Column("Unit", label="unit", width=60),
            *_interval("Value", "value", 'metric!="iterations"', labels),
            *_interval("Factor", "factor", 'metric!="iterations"', labels),
        ],
        width=FULL,
        height=10,
    ).sort_by([sorted_by("Load"), sorted_by("Metric")])


def _row_labels() -> list[Column]:
    return [
        Column("Load", label="load", width=90),
        Column("Server", label="server", width=130),
    ]


def _interval(title: str, what: str, selector: str, labels: str) -> list[Column]:
    """Return columns with the estimate of a figure and the ends of its interval."""
    unit, decimals = THREE_DIGITS, None
    if what == "factor":
        unit, decimals = FACTOR_UNIT, FACTOR_DECIMALS
    return [
        Column(
            name,
            expr=f"max by ({labels})"
            f' (laptime_result_script_{what}{{{ROW},{selector},bound="{bound}"}})',
            unit=unit,
            decimals=decimals,
            width=95,
        )
        for bound, name in (
            ("estimate", title),
            ("low", f"low {title.lower()}"),
            ("high", f"high {title.lower()}"),
        )
    ]
