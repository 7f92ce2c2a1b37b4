"""What a script says beside its requests: checks, iterations, metrics, requests to others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from laptime.analysis import wording
from laptime.analysis.repeated import fewest_values
from laptime.api.results import ResultRow
from laptime.api.script import MetricFigure, ScriptMetric
from laptime.report.small_table import SmallTable


def script_tables(rows: Sequence[ResultRow]) -> list[SmallTable]:
    """Return the tables of the rows of one load; none where it is no script."""
    tables = (
        *counted_tables(rows),
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
            "Metrics of the script, in all repetitions that count; of a counter each second, of a "
            "trend the mean, beside it the factor against the baseline",
            (
                "Server", "metric", "samples", "sum", "value (95 %)", "factor (95 %)", "least",
                "med (95 %)", "p(95) (95 %)", "p(95) factor (95 %)", "p(99) (95 %)", "most",
            ),
            tuple(_metrics(rows)),
        ),
    )  # fmt: skip
    return [table for table in tables if table.lines]


def counted_tables(rows: Sequence[ResultRow]) -> list[SmallTable]:
    """Return the first of these tables: iterations, checks, what response times count from."""
    tables = (
        SmallTable(
            "What the script counted, in all repetitions",
            (
                "Server", "iterations", "each second (95 %)", "factor (95 %)", "dropped", "checks",
                "compared by",
            ),
            tuple(_counted(rows)),
        ),
        SmallTable(
            "What response times count from",
            ("Server", "executor", "from"),
            tuple(_counted_from(rows)),
        ),
        SmallTable(
            "Checks of the script; those that failed most come first",
            ("Server", "check", "passed", "failed", "rate"),
            tuple(_checks(rows)),
        ),
    )  # fmt: skip
    return [table for table in tables if table.lines]


def says_more(metric: ScriptMetric) -> bool:
    """Return whether a metric says more than Laptime's own figures of requests and VUs do."""
    return metric.name not in _KNOWN_BETTER


# By their whole names: a script's own `data_load_time` is another one.
_KNOWN_BETTER = frozenset(
    {
        "checks", "data_received", "data_sent", "http_req_blocked", "http_req_connecting",
        "http_req_duration", "http_req_failed", "http_req_receiving", "http_req_sending",
        "http_req_tls_handshaking", "http_req_waiting", "http_reqs", "vus", "vus_max",
    }
)  # fmt: skip


def _counted(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        if row.script is not None:
            said, done = row.script, row.script.iterations_figure
            yield (
                row.server,
                f"{said.iterations:,}",
                "-" if done is None else wording.with_interval(done.estimate),
                _factor(done),
                f"{said.dropped_iterations:,}",
                wording.checks(said) or "none",
                wording.metric(row.compared_by),
            )


def _counted_from(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        for executor in row.script.executors if row.script else []:
            yield (row.server, executor, wording.counted_from(executor))


def _checks(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        for one in row.script.checks if row.script else []:
            answers = one.passed + one.failed
            rate = wording.rate(one.passed / answers) if answers else "-"
            yield (row.server, one.name, f"{one.passed:,}", f"{one.failed:,}", rate)


def _exceptions(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        for one in row.script.exceptions if row.script else []:
            yield (row.server, one.message, f"{one.iterations:,}")


def _metrics(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        for one in row.script.metrics if row.script else []:
            if not says_more(one):
                continue
            value = one.figure({"trend": "avg", "gauge": "value"}.get(one.type, "rate"))
            yield (
                row.server,
                one.name,
                f"{one.samples:,}",
                wording.in_unit(one.value, one.contains) if one.type == "counter" else "-",
                _estimate(one, value, None if one.type == "counter" else one.value),
                _factor(value),
                _value(one, one.min),
                _percentile(one, "med", 0.5, one.p50),
                _percentile(one, "p(95)", 0.95, one.p95),
                _factor(one.figure("p(95)")),
                _percentile(one, "p(99)", 0.99, one.p99),
                _value(one, one.max),
            )


def _estimate(metric: ScriptMetric, figure: MetricFigure | None, together: float | None) -> str:
    """Return what repetitions are around, or what all of them are together where that is all."""
    interval = figure.estimate if figure is not None else None
    if interval is None:
        return _value(metric, together)
    if metric.type == "rate":
        return wording.share_with_interval(interval)
    if metric.type == "counter" and metric.contains != "data":
        return f"{wording.with_interval(interval)}/s"
    each_second = metric.type == "counter"
    return wording.interval_in_unit(interval, metric.contains, each_second=each_second)


def _percentile(metric: ScriptMetric, name: str, share: float, together: float | None) -> str:
    """Return a percentile; of too few samples in all it would be the largest one, and is none."""
    enough = metric.samples >= fewest_values(share)
    return _estimate(metric, metric.figure(name), together if enough else None)


def _value(metric: ScriptMetric, value: float | None) -> str:
    if value is None:
        return "-"
    if metric.type == "rate":
        return wording.share(value)
    return wording.in_unit(value, metric.contains)


def _factor(figure: MetricFigure | None) -> str:
    return "-" if figure is None or figure.factor is None else wording.factor(figure.factor)


def _hosts(rows: Iterable[ResultRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        for one in row.script.other_hosts if row.script else []:
            yield (row.server, one.host, f"{one.requests:,}", f"{one.errors:,}")
