"""What only loads with arrivals of their own have: how requests were sent, what a search found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from laptime.analysis import wording
from laptime.api.metrics import Metric
from laptime.api.results import ResultRow, Saturation
from laptime.report.small_table import SmallTable

_PERCENTILES = (Metric.P50, Metric.P99, Metric.P999)


def arrival_tables(rows: Sequence[ResultRow]) -> list[SmallTable]:
    """Return the tables of the rows of one load; none for a closed load."""
    tables = (
        SmallTable(
            "Response times from the moment a request was due, and from when it was sent; lateness "
            "is of all repetitions together",
            (
                "Server", "p50, due", "p50, sent", "p99, due", "p99, sent", "p99.9, due",
                "p99.9, sent", "lateness p99",
            ),
            tuple(_sent(rows)),
        ),
        SmallTable(
            "The search for the highest rate that meets the objective, in requests/s",
            ("Server", "met up to", "missed from", "fewer completed than arrived from"),
            tuple(_searched(rows)),
        ),
    )  # fmt: skip
    return [table for table in tables if table.lines]


def _sent(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        if row.uncorrected_latency is None and row.lateness_p99_seconds is None:
            continue
        figures = (one for metric in _PERCENTILES for one in row.due_and_sent(metric))
        yield (
            row.server,
            *(wording.latency_figure(one, ends=True) for one in figures),
            "-" if row.lateness_p99_seconds is None else wording.latency(row.lateness_p99_seconds),
        )


def _searched(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        if row.saturation is not None:
            yield (row.server, *_rates(row.saturation))


def _rates(found: Saturation) -> tuple[str, str, str]:
    return (
        wording.number(found.low_rate) if found.low_rate else "no rate",
        "not found" if found.high_rate is None else wording.number(found.high_rate),
        "not found" if found.breaking_rate is None else wording.number(found.breaking_rate),
    )
