"""Laptime / Compare: two runs or more of one scenario, side by side."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, table, xychart
from grafana_foundation_sdk.models import common

from laptime_dashboards.frame import COMPARE_UID, frame, label_values, link_to_run, several
from laptime_dashboards.intervals import (
    GOES_ON_OF_RUNS,
    MOST_LINES,
    NO_UPPER_END,
    Rows,
    intervals,
    of_runs,
)
from laptime_dashboards.meanings import STATES, VALIDITIES
from laptime_dashboards.panel_defaults import HALF, NOT_TOLD, in_order, legend, not_told
from laptime_dashboards.run_answer import OF_A_SEARCH
from laptime_dashboards.selectors import CREATED
from laptime_dashboards.tables import (
    FACTOR_DECIMALS,
    FACTOR_UNIT,
    FAILED,
    HIDDEN,
    NO_END,
    OF_RESPONSE_TIMES,
    THREE_DIGITS,
    Column,
    coloured_words,
    rows,
    sorted_by,
)

_RUNS = 'namespace=~"$namespace",run=~"$run"'
_ROWS = of_runs(_RUNS, scenario="$scenario")
_OF_SCENARIO = _ROWS.among
"""In each namespace runs may have the same names, and be of something else."""
_NONE = f"none of these runs has a result yet, {not_told('the 500 rows')}"
_ROW = "namespace, run, server, load"
_NARROW = {"custom.minWidth": 85}
"""Of the column that takes what the others leave: Grafana would not make it so narrow."""


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
    for panel in (answers(), *pictures(_ROWS, _NONE), figures(), what_ran()):
        made.with_panel(panel)
    return made


def answers() -> table.Panel:
    """What each run came to."""
    labels = "namespace, run, baseline, state, validity, verdict, factor"
    return rows(
        "Verdicts",
        "What each run came to. Compare the factors of runs with the same baseline: each is "
        "against that of its own run, measured at the same time on the same nodes. Where several "
        "are fastest there is none. "
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
            Column("Baseline", label="baseline", width=100),
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


def pictures(runs: Rows, no_data: str, only: str = "") -> tuple[xychart.Panel, xychart.Panel]:
    """The throughput and the factor of each server in several runs, with their intervals.

    `only` is a sentence that says which lines can be compared.
    """
    *first, last = ("server", "load", *runs.of_their_runs)
    order = (
        f"From the top lines stand by {', '.join(first)} and {last}, of each the newest run first. "
        "Look for a server whose lines of two runs lie apart, and below for what differed between "
        f"them.{only}"
    )
    bounds = (
        f"{NO_UPPER_END} {GOES_ON_OF_RUNS} At most {MOST_LINES} lines of the newest runs are "
        "drawn; of the last of these some may be left out: the table below has all, and says which "
        "are doubtful. A server has the colour of its place in the newest of them that has it: "
        "servers of different runs may share one."
    )
    both = (
        intervals(
            "Throughput",
            "Right answers a second: each line is the 95 % interval of a server in one run, with "
            f"the estimate in it. {order} No interval here says whether the server was faster or "
            "the machine; the factors beside are free of what made a whole run slower. "
            f"{OF_A_SEARCH} {bounds}",
            "laptime_result_requests_per_second",
            "Requests/s",
            "locale",
            no_data,
            runs,
        ),
        intervals(
            "Factor against the baseline",
            "Each line is the 95 % interval of a server in one run, divided by the baseline of "
            "that run; of runs with different baselines factors cannot be compared. The grey "
            "points are at 1: an interval that covers its own says that no difference from the "
            f"baseline was found in that run. {order} {OF_RESPONSE_TIMES} Below two repetitions "
            f"there is only the estimate. {bounds}",
            "laptime_result_factor",
            "Factor",
            FACTOR_UNIT,
            f"no server was measured beside a baseline, {no_data}",
            runs,
            decimals=FACTOR_DECIMALS,
            compared=True,
        ),
    )
    # Names at the right stand in the order of the lines.
    names = legend().placement(common.LegendPlacement.RIGHT)
    left, right = (one.span(HALF).height(10).legend(names) for one in both)
    return left, right


def figures() -> table.Panel:
    """The figures of each server in each run."""
    panel = rows(
        "Servers",
        "The same server and load of several runs in rows below each other, the newest first, "
        "with intervals of 95 %. Whether it was faster in one of two runs, or the machine was, is "
        "said by kubectl laptime compare where both runs have another server that stays the same, "
        "and by no interval here. "
        f"{OF_RESPONSE_TIMES}",
        _NONE,
        [
            *interval_columns(_RUNS, _OF_SCENARIO),
            Column("Created", expr=created(_RUNS, _OF_SCENARIO), more=HIDDEN),
        ],
        height=11,
    )
    panel.with_transformation(in_order("Created", downwards=True))
    return panel.sort_by([sorted_by("Server"), sorted_by("Load")])


def created(runs: str, among: str = "") -> str:
    """Return a query with the milliseconds at which the run of each row was created."""
    each = f"max by ({_ROW}) (laptime_result_trials{{{runs}}})"
    return f"{each} * 0 + on (namespace, run) group_left () 1000 * {CREATED}{among}"


def interval_columns(runs: str, among: str = "") -> list[Column]:
    """Return the columns of a table with the figures of servers in several runs.

    `among` says at the end of each query which of the runs are meant. On a screen of 1366 px all
    columns are in sight.
    """
    columns = [
        Column("Server", label="server", width=100),
        Column("Load", label="load", width=70),
        Column("Run", label="run", longest=True, more={**link_to_run(), **_NARROW}),
        Column("Namespace", label="namespace", width=95),
    ]
    rate, factor = "laptime_result_requests_per_second", "laptime_result_factor"
    for title, short, metric, unit, decimals, widths in (
        ("Requests/s", "req/s", rate, THREE_DIGITS, None, (91, 77, 83)),
        ("Factor", "factor", factor, FACTOR_UNIT, FACTOR_DECIMALS, (80, 83, 89)),
    ):
        names = {"estimate": title, "low": f"low {short}", "high": f"high {short}"}
        for (bound, name), width in zip(names.items(), widths, strict=True):
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
        columns.append(
            Column(title, expr=expr, unit="s", width=75 if bound == "high" else 69, more=FAILED)
        )
    state = f"max by ({_ROW}, validity) (laptime_result_state{{{runs}}}){among}"
    return [
        *columns,
        Column("Validity", label="validity", width=71, more=coloured_words(VALIDITIES)),
        Column("", expr=state),
    ]


def what_ran() -> table.Panel:
    """What ran, and where."""
    return table_of_what_ran(_RUNS, _OF_SCENARIO)


def table_of_what_ran(runs: str, among: str = "") -> table.Panel:
    """Return a table of what servers ran in several runs, and where; `among` as with figures."""
    info = f'laptime_run_server_info{{{runs},image!=""}}'
    ran = f"max by (namespace, run, server, image, digest, nodes) ({info})"
    when = f"1000 * {ran} * on (namespace, run) group_left () {CREATED}{among}"
    return rows(
        "Images and nodes",
        "What each server ran and where, its newest run first: where that differs between two "
        "runs, so may its speed. Two digests are two images, though the tag is the same, unless "
        "one of them was loaded into its node: that has another digest than one that was pulled. "
        "No digest: nobody told. Nodes are those of trials, which the operator tells until it "
        "begins anew after the run.",
        f"no server of these runs was started yet, {NOT_TOLD}",
        [
            Column("Server", label="server", width=130),
            Column("Run", label="run", width=160),
            Column("Namespace", label="namespace", width=100),
            Column("Image", label="image"),
            Column("Digest", label="digest", width=200),
            Column("Nodes", label="nodes", width=200, longest=True),
            Column("Created", expr=when, unit="dateTimeAsIso", width=162),
        ],
        joined=False,
        height=8,
    ).sort_by([sorted_by("Server"), sorted_by("Created", newest_first=True)])
