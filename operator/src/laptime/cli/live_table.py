"""The figures of a run while it goes on: one bar per server and load."""

from __future__ import annotations

from rich import box
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from laptime.analysis import wording
from laptime.api.metrics import Metric
from laptime.api.results import ResultRow, RowState
from laptime.cli.progress import View
from laptime.cli.result_table import format_rate

_BAR_WIDTH = 24


def live_table(view: View) -> Table:
    """Return a table of what is measured so far; the longest bar of each load is its fastest."""
    several = len({row.load for row in view.rows}) > 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("server")
    if several:
        table.add_column("load")
    table.add_column("trials", justify="right")
    table.add_column("requests/s so far", no_wrap=True)
    for heading in ("", "p99", "factor"):
        table.add_column(heading, justify="right")
    for row in view.rows:
        cells = [escape(row.server), *([escape(row.load)] if several else []), _trials(row, view)]
        if row.state is RowState.FAILED:
            table.add_row(*cells, Text(row.reason or "failed", "red"), "", "", "")
            continue
        rate, p99 = row.requests_per_second, row.response_time(Metric.P99)
        most = max(
            other.requests_per_second.value
            for other in view.rows
            if other.load == row.load and other.requests_per_second
        ) if rate else 1.0  # fmt: skip
        table.add_row(
            *cells,
            ProgressBar(
                total=most or 1.0,
                completed=rate.value if rate else 0.0,
                width=_BAR_WIDTH,
                finished_style="green",
                complete_style="cyan",
            ),
            format_rate(rate) if rate else "",
            wording.latency_figure(p99) if p99 else "",
            _factor(row),
        )
    return table


def _factor(row: ResultRow) -> str:
    if row.factor is None:
        return ""
    # Loads of both kinds stand below each other, and of one less is faster.
    of = f" of {wording.metric(row.compared_by)}" if row.compared_by.is_latency else ""
    return f"{wording.factor(row.factor)}{of}"


def _trials(row: ResultRow, view: View) -> str:
    over = row.trials + row.failed_trials
    return f"{over}/{view.repetitions}" if view.repetitions else str(over)
