"""Laptime / Compare: two runs or more of one scenario, side by side."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, table

from laptime_dashboards.frame import COMPARE_UID, frame, label_values, link_to_run, several
from laptime_dashboards.meanings import STATES, VALIDITIES
from laptime_dashboards.panel_defaults import (
    FACTOR_DECIMALS,
    FACTOR_UNIT,
    FAILED,
    NO_END,
    NOT_TOLD,
    OF_RESPONSE_TIMES,
    THREE_DIGITS,
    Column,
    coloured_words,
    not_told,
    rows,
    sorted_by,
)

_RUNS = 'namespace=~"$namespace",run=~"$run"'
_OF_SCENARIO = (
    " and on (namespace, run) "
    f'max by (namespace, run) (laptime_run_info{{{_RUNS},scenario="$scenario"}})'
)
"""In each namespace runs may have the same names, and be of something else."""
_NONE = f"none of these runs has a result yet, {not_told('the 500 rows')}"
_ROW = "namespace, run, server, load"


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    made = frame("Compare", COMPARE_UID, "Runs of one scenario side by side.", begin="now-1h")
    for name, label, what, series in (
        ("scenario", "Scenario", "The work of the runs", "laptime_run_info"),
        (
            "namespace",
            "Namespace",
            "Where the runs are",
            'laptime_run_info{scenario="$scenario"}',
        ),
        (
            "run",
            "Runs",
            "Those to compare",
            'laptime_run_info{scenario="$scenario",namespace=~"$namespace"}',
        ),
    ):
        variable = label_values(name, label, what, series, name)
        made.with_variable(variable if name == "scenario" else several(variable))
    return made.with_panel(answers()).with_panel(figures()).with_panel(what_ran())


def answers() -> table.Panel:
    """What each run came to."""
    labels = "namespace, run, state, validity, verdict, factor"
    return rows(
        "Verdicts",
        "What each run came to. Compare the factors: each is against the baseline of its own run, "
        "measured at the same time on the same nodes. Where several are fastest there is none. "
        f"{OF_RESPONSE_TIMES}",
        f"there is no such run, {NOT_TOLD}",
        [
            Column("Run", label="run", width=170, more=link_to_run()),
            Column("Namespace", label="namespace", width=110),
            Column("State", label="state", width=95, more=coloured_words(STATES)),
            Column(
                "Validity",
                label="validity",
                width=80,
                more=coloured_words(VALIDITIES),
            ),
            Column("Factor", label="factor", width=130),
            Column("Verdict", label="verdict", longest=True),
            Column(
                "",
                expr=f'max by ({labels}) (laptime_run_info{{{_RUNS},scenario="$scenario"}})',
            ),
        ],
        joined=False,
        height=6,
    )


def figures() -> table.Panel:
    """The figures of each server in each run."""
    return rows(
        "Servers",
        "The same server of several runs in rows below each other, with intervals of 95 %. Whether "
        "it was faster in one of two runs, or the machine was, is said by kubectl laptime compare "
        "where both runs have another server that stays the same, and by no interval here. "
        f"{OF_RESPONSE_TIMES}",
        _NONE,
        interval_columns(_RUNS, _OF_SCENARIO),
        height=11,
    ).sort_by([sorted_by("Server"), sorted_by("Load")])


def interval_columns(runs: str, among: str = "") -> list[Column]:
    """Return the columns of a table with the figures of servers in several runs.

    `among` says at the end of each query which of the runs are meant. On a screen of 1366 px all
    columns are in sight.
    """
    columns = [
        Column("Server", label="server", width=100),
        Column("Load", label="load", width=75),
        Column("Run", label="run", longest=True, more=link_to_run()),
        Column("Namespace", label="namespace", width=75),
    ]
    rate, factor = "laptime_result_requests_per_second", "laptime_result_factor"
    for title, short, metric, unit, decimals in (
        ("Requests/s", "req/s", rate, THREE_DIGITS, None),
        ("Factor", "factor", factor, FACTOR_UNIT, FACTOR_DECIMALS),
    ):
        for bound, name, width in (
            ("estimate", title, 80),
            ("low", f"low {short}", 80),
            ("high", f"high {short}", 84),
        ):
            selector = f'{runs},bound="{bound}"'
            expr = f"max by ({_ROW}) ({metric}{{{selector}}}){among}"
            more = NO_END if bound == "high" else None
            columns.append(
                Column(name, expr=expr, unit=unit, decimals=decimals, width=width, more=more)
            )
    for title, share, bound in (
        ("p50", "0.5", "estimate"),
        ("p99", "0.99", "estimate"),
        ("low p99", "0.99", "low"),
        ("high p99", "0.99", "high"),
    ):
        selector = f'{runs},quantile="{share}",bound="{bound}"'
        expr = f"max by ({_ROW}) (laptime_result_latency_seconds{{{selector}}}){among}"
        columns.append(Column(title, expr=expr, unit="s", width=68, more=FAILED))
    state = f"max by ({_ROW}, validity) (laptime_result_state{{{runs}}}){among}"
    return [
        *columns,
        Column("Validity", label="validity", width=70, more=coloured_words(VALIDITIES)),
        Column("", expr=state),
    ]


def what_ran() -> table.Panel:
    """What ran, and where."""
    return table_of_what_ran(_RUNS, _OF_SCENARIO)


def table_of_what_ran(runs: str, among: str = "") -> table.Panel:
    """Return a table of what servers ran in several runs, and where; `among` as with figures."""
    return rows(
        "Images and nodes",
        "What each server ran and where: where it differs between two runs, so may its speed. Two "
        "digests are two images, though the tag is the same, unless one of them was loaded into "
        "its node: that has another digest than one that was pulled. No digest: nobody told. Nodes "
        "are those of trials, which the operator tells until it begins anew after the run.",
        f"no server of these runs was started yet, {NOT_TOLD}",
        [
            Column("Server", label="server", width=130),
            Column("Run", label="run", width=160),
            Column("Namespace", label="namespace", width=100),
            Column("Image", label="image"),
            Column("Digest", label="digest", width=200),
            Column("Nodes", label="nodes", width=200, longest=True),
            Column(
                "",
                expr="max by (namespace, run, server, image, digest, nodes)"
                f' (laptime_run_server_info{{{runs},image!=""}}){among}',
            ),
        ],
        joined=False,
        height=8,
    ).sort_by([sorted_by("Server"), sorted_by("Run")])
