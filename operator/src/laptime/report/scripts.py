"""What a script says beside its requests: checks, iterations, requests to others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from laptime.analysis import wording
from laptime.api.results import ResultRow
from laptime.api.script import ScriptMetric
from laptime.report.small_table import SmallTable


def script_tables(rows: Sequence[ResultRow]) -> list[SmallTable]:
    """Return the tables of the rows of one load; none where it is no script."""
    tables = (
        SmallTable(
            "What the script counted, in all repetitions",
            ("Server", "iterations", "dropped", "checks", "compared by"),
            tuple(_counted(rows)),
        ),
        SmallTable(
            "Checks of the script; those that failed most come first",
            ("Server", "check", "passed", "failed", "share failed"),
            tuple(_checks(rows)),
        ),
        SmallTable(
            "Exceptions that ended iterations of the script",
            ("Server", "exception", "iterations"),
            tuple(_exceptions(rows)),
        ),
        SmallTable(
            "Requests of the script to other hosts, which are in no figure of the server",
            ("Server", "host", "requests", "errors"),
            tuple(_hosts(rows)),
        ),
        SmallTable(
            "Metrics of the script, in all repetitions",
            ("Server", "metric", "samples", "value", "least", "p50", "p90", "p99", "most"),
            tuple(_metrics(rows)),
        ),
    )
    return [table for table in tables if table.lines]


def _counted(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        if row.script is not None:
            said = row.script
            yield (
                row.server,
                f"{said.iterations:,}",
                f"{said.dropped_iterations:,}",
                wording.checks(said) or "none",
                str(said.compared_by),
            )


def _checks(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        for one in row.script.checks if row.script else []:
            share = wording.share(one.failed_share)
            yield (row.server, one.name, f"{one.passed:,}", f"{one.failed:,}", share)


def _exceptions(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        for one in row.script.exceptions if row.script else []:
            yield (row.server, one.message, f"{one.iterations:,}")


# Of requests and VUs there are better figures than k6's own.
_NOT_SHOWN = ("checks", "data_", "http_req", "iterations", "vus")


def _metrics(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        for one in row.script.metrics if row.script else []:
            if one.name.startswith(_NOT_SHOWN):
                continue
            spread = (one.min, one.p50, one.p90, one.p99, one.max)
            yield (
                row.server,
                one.name,
                f"{one.samples:,}",
                wording.share(one.value) if one.type == "rate" else _value(one.value, one),
                *("-" if value is None else _value(value, one) for value in spread),
            )


def _value(value: float, metric: ScriptMetric) -> str:
    return wording.in_unit(value, metric.contains)


def _hosts(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        for one in row.script.other_hosts if row.script else []:
            yield (row.server, one.host, f"{one.requests:,}", f"{one.errors:,}")
