"""Whether the bounds that a user set were kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from laptime.analysis import wording
from laptime.api.durations import parse_duration
from laptime.api.objectives import Objective, ObjectiveMetric
from laptime.api.results import ObjectiveResult, ResultRow, RowState, Validity


def evaluate(objectives: Sequence[Objective], rows: Sequence[ResultRow]) -> list[ObjectiveResult]:
    """Return each objective with what was measured; what was not measured is not met."""
    by_pair = {(row.server, row.load): row for row in rows}
    return [_evaluate(one, by_pair) for one in objectives]


def _evaluate(objective: Objective, rows: Mapping[tuple[str, str], ResultRow]) -> ObjectiveResult:
    bound, at_most = objective.at_most, True
    if bound is None:
        bound, at_most = objective.at_least or "0", False
    metric = objective.metric
    row = rows.get((objective.server, objective.load))
    value = _value(metric, row) if row is not None else None
    limit = float(bound) if _is_number(metric) else parse_duration(bound)
    if row is None or value is None:
        measured, met = _why_nothing(row), False
    else:
        measured, met = _measured(metric, value, row), value <= limit if at_most else value >= limit
    return ObjectiveResult(
        server=objective.server,
        load=objective.load,
        metric=metric,
        bound=f"{metric} {'at most' if at_most else 'at least'} {bound}",
        measured=measured,
        met=met,
    )


def _is_number(metric: ObjectiveMetric) -> bool:
    return metric in (ObjectiveMetric.REQUESTS_PER_SECOND, ObjectiveMetric.ERROR_RATE)


def _value(metric: ObjectiveMetric, row: ResultRow) -> float | None:
    if metric is ObjectiveMetric.ERROR_RATE:
        return row.error_rate
    if metric is ObjectiveMetric.REQUESTS_PER_SECOND:
        return row.requests_per_second.value if row.requests_per_second else None
    if row.latency is None:
        return None
    return {
        ObjectiveMetric.MEAN: row.latency.mean_seconds,
        ObjectiveMetric.P50: row.latency.p50_seconds,
        ObjectiveMetric.P90: row.latency.p90_seconds,
        ObjectiveMetric.P99: row.latency.p99_seconds,
        ObjectiveMetric.P999: row.latency.p999_seconds,
    }[metric]


def _measured(metric: ObjectiveMetric, value: float, row: ResultRow) -> str:
    if metric is ObjectiveMetric.REQUESTS_PER_SECOND and row.requests_per_second:
        text = wording.with_interval(row.requests_per_second)
    elif metric is ObjectiveMetric.ERROR_RATE:
        text = f"{value:.3g}"
    else:
        text = wording.latency(value)
    return f"{text} (doubtful)" if row.validity is Validity.DOUBTFUL else text


def _why_nothing(row: ResultRow | None) -> str:
    if row is None or (row.state is RowState.PENDING and row.reason is None):
        return "not measured yet"
    if row.trials and row.requests == row.errors:
        return "no right answer"
    if row.trials:
        return f"invalid: {next(iter(row.validity_reasons), 'no valid trial')}"
    return f"not measured: {row.reason or 'no trial'}"
