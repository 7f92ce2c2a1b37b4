"""The rows of a result as CSV (RFC 4180), one server under one load per line.

But for its line ends: they are those of a text, and what prints or writes it makes them the
machine's.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence

from laptime.analysis.repeated import LATENCIES
from laptime.api.metrics import Metric
from laptime.api.results import Interval, LatencyFigure, ResultRow

Value = str | int | float | None
_ENDS = (("", "value"), ("_low", "low"), ("_high", "high"))


def _interval(field: Callable[[ResultRow], Interval | None], part: str) -> Callable[..., Value]:
    def read(row: ResultRow) -> Value:
        interval = field(row)
        return None if interval is None else getattr(interval, part)

    return read


def _figure(metric: Metric, part: str) -> Callable[..., Value]:
    return lambda row: _part(row.response_time(metric), part)


def _uncorrected(metric: Metric, part: str) -> Callable[..., Value]:
    def read(row: ResultRow) -> Value:
        due, sent = row.due_and_sent(metric)
        # Beside an estimate of another kind the difference would look like a queue.
        return _part(sent, part) if due == row.response_time(metric) else None

    return read


def _part(figure: LatencyFigure | None, part: str) -> Value:
    """Return value or end of a response time; one among requests that failed is infinite."""
    if figure is None:
        return None
    return math.inf if figure.seconds is None else getattr(figure.seconds, part)


def _found(part: str) -> Callable[..., Value]:
    def read(row: ResultRow) -> Value:
        return None if row.saturation is None else getattr(row.saturation, part)

    return read


def _said(part: str) -> Callable[[ResultRow], Value]:
    def read(row: ResultRow) -> Value:
        return None if row.script is None else getattr(row.script, part)

    return read


COLUMNS: dict[str, Callable[[ResultRow], Value]] = {
    "server": lambda row: row.server,
    "load": lambda row: row.load,
    "state": lambda row: row.state,
    "reason": lambda row: row.reason,
    "trials": lambda row: row.trials,
    "failed_trials": lambda row: row.failed_trials,
    "lost_attempts": lambda row: row.lost_attempts or 0,
    "requests": lambda row: row.requests,
    "errors": lambda row: row.errors,
    "error_rate": lambda row: row.error_rate,
    "requests_per_second": _interval(lambda row: row.requests_per_second, "value"),
    "requests_per_second_low": _interval(lambda row: row.requests_per_second, "low"),
    "requests_per_second_high": _interval(lambda row: row.requests_per_second, "high"),
    "compared_by": lambda row: row.compared_by,
    "rank": lambda row: row.rank,
    "factor": _interval(lambda row: row.factor, "value"),
    "factor_low": _interval(lambda row: row.factor, "low"),
    "factor_high": _interval(lambda row: row.factor, "high"),
    "published_factor": lambda row: row.published_factor,
    **{
        f"{metric}_seconds{end}": _figure(metric, part)
        for metric in LATENCIES
        for end, part in _ENDS
    },
    "max_seconds": lambda row: row.latency.max_seconds if row.latency else None,
    **{
        f"uncorrected_{metric}_seconds{end}": _uncorrected(metric, part)
        for metric in LATENCIES
        if metric is not Metric.MEAN
        for end, part in _ENDS
    },
    "lateness_p99_seconds": lambda row: row.lateness_p99_seconds,
    "saturation_low_rate": _found("low_rate"),
    "saturation_high_rate": _found("high_rate"),
    "saturation_breaking_rate": _found("breaking_rate"),
    "iterations": _said("iterations"),
    "dropped_iterations": _said("dropped_iterations"),
    "checks_passed": _said("checks_passed"),
    "checks_failed": _said("checks_failed"),
    "validity": lambda row: row.validity,
    "validity_reasons": lambda row: "; ".join(row.validity_reasons),
}
"""The columns, in their order; what is not known is an empty cell."""


def to_csv(rows: Sequence[ResultRow]) -> str:
    """Return the rows with a head line; figures have all their digits."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(read(row)) for read in COLUMNS.values()])
    return file.getvalue()


def _cell(value: Value) -> Value:
    # A spreadsheet must not take a text of a server under test for a formula.
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value
