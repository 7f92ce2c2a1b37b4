"""Metrics of a script over its repetitions: what they are around, and factors. Pure.

What is above 0 in every repetition is compared as throughput is, by logarithms. A share has its
interval from the values themselves (Student's t), as whatever was 0 or below it once has; of that
there is no factor. A counter that a repetition does not have counted nothing there. Where one has a
figure that nobody knows its server has none: the other repetitions would be a selection of them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev

from laptime.analysis.blocks import block_of
from laptime.analysis.distributions import student_quantile
from laptime.analysis.looks import ONCE, Looks
from laptime.analysis.remembered import remembered
from laptime.analysis.repeated import fewest_values, repeated
from laptime.analysis.statistics import CONFIDENCE, interval_of_logs
from laptime.api.base import significant
from laptime.api.interval import Interval
from laptime.api.metrics import Metric
from laptime.api.results import ResultRow, TrialResult
from laptime.api.script import MetricFigure, ScriptMetric
from laptime.measure.script import may_have_had
from laptime.measure.script_metrics import LARGEST

RATE = "rate"
_SHARES = {"med": 0.5, "p(90)": 0.9, "p(95)": 0.95, "p(99)": 0.99}

Values = Mapping[int, float]
"""A figure by block."""
_Frozen = tuple[tuple[str, tuple[tuple[int, float], ...]], ...]


def interval_of_values(
    values: Sequence[float], kind: str = "", *, confidence: float = CONFIDENCE
) -> Interval:
    """Return what values are around, with its interval; a single one has none.

    `kind` is the type of their metric in k6: a rate is a share (0 … 1), and a counter that never
    counted down is at least 0.

    Raises:
        ValueError: there is no value.
    """
    if len(set(values)) == 1:
        # Exactly: bounds such as `count==1` are about it.
        end = values[0] if len(values) > 1 else None
        return Interval(value=values[0], low=end, high=end)
    share = kind == "rate"
    # Numbers near the largest one have no sum: they are added up as smaller ones.
    scale = max(1.0, max(map(abs, values), default=0.0) / LARGEST)
    if values and min(values) > 0 and not share and scale == 1:
        return interval_of_logs([math.log(one) for one in values], confidence)
    scaled = [one / scale for one in values]
    mean = fmean(scaled)
    quantile = student_quantile(len(values) - 1, 0.5 + confidence / 2)
    half = quantile * stdev(scaled) / math.sqrt(len(values))
    counted = kind == "counter" and min(values) >= 0
    least = 0.0 if share or counted else -sys.float_info.max
    most = 1.0 if share else sys.float_info.max
    return Interval(
        value=mean * scale,
        low=max(least, (mean - half) * scale),
        high=min(most, (mean + half) * scale),
    )


def compared_metrics(
    trials: Mapping[str, Sequence[TrialResult]],
    baseline: str,
    control: str | None,
    looks: Looks = ONCE,
) -> dict[str, dict[str, list[MetricFigure]]]:
    """Return the figures of all metrics under one load, by server and metric.

    `trials` are, by server, those whose figures count.
    """
    counters = {
        one.name: one
        for results in trials.values()
        for result in results
        for one in (result.script.metrics if result.script is not None else [])
        if one.type == "counter"
    }
    values: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    kinds: dict[str, str] = {}
    not_known: set[tuple[str, str, str]] = set()
    for server, results in trials.items():
        for result in results:
            for metric, name, value in _values(result, counters):
                if value is None or math.isinf(value):
                    not_known.add((metric.name, name, server))
                else:
                    by_server = values.setdefault((metric.name, name), {})
                    by_server.setdefault(server, {})[block_of(result)] = value
                    kinds[metric.name] = metric.type
    found: dict[str, dict[str, list[MetricFigure]]] = {}
    for (metric_name, name), by_server in values.items():
        frozen = tuple(
            (server, tuple(sorted(one.items())))
            for server, one in by_server.items()
            if (metric_name, name, server) not in not_known
        )
        compared = _compared(frozen, kinds[metric_name], baseline, control, looks)
        for server, (estimate, factor) in compared.items():
            figure = MetricFigure(name=name, estimate=estimate, factor=factor)
            found.setdefault(server, {}).setdefault(metric_name, []).append(figure)
    return found


def with_figures(row: ResultRow, figures: Mapping[str, list[MetricFigure]]) -> ResultRow:
    """Return the row of a script with these figures of its metrics, by their names."""
    if row.script is None or not figures:
        return row
    metrics = [
        one.model_copy(update={"figures": figures.get(one.name, [])}) for one in row.script.metrics
    ]
    return row.model_copy(update={"script": row.script.model_copy(update={"metrics": metrics})})


def _values(
    result: TrialResult, counters: Mapping[str, ScriptMetric]
) -> Iterator[tuple[ScriptMetric, str, float | None]]:
    """Yield metric, name and value of each figure that is compared; None: nobody knows it.

    `counters` are those that any trial under the load has.
    """
    script = result.script
    if script is None:
        return
    for one in script.metrics:
        if one.type == "counter":
            if script.seconds > 0:
                yield one, RATE, one.value / script.seconds
        elif one.type == "gauge":
            yield one, "value", one.value
        elif one.type == "rate":
            yield one, RATE, one.value
        else:
            yield one, "avg", one.value
            percentiles = zip(_SHARES.items(), (one.p50, one.p90, one.p95, one.p99), strict=True)
            for (name, share), value in percentiles:
                # With fewer it is the largest one.
                yield one, name, value if one.samples >= fewest_values(share) else None
    if script.seconds > 0:
        # Generators write no metric without samples.
        for name in counters.keys() - {one.name for one in script.metrics}:
            yield counters[name], RATE, None if may_have_had(script, name) else 0.0


# A summary is made again after every trial: what has not changed since is not computed again.
@remembered(8192)
def _compared(
    frozen: _Frozen, kind: str, baseline: str, control: str | None, looks: Looks
) -> dict[str, tuple[Interval, Interval | None]]:
    """Return estimate and factor of one figure by server."""
    values = {server: dict(of_server) for server, of_server in frozen}
    logs = {
        server: {repetition: math.log(value) for repetition, value in one.items()}
        for server, one in values.items()
        if min(one.values()) > 0
    }
    # Whether more of it is better nobody knows: a factor is the same either way.
    compared = repeated(logs, Metric.REQUESTS_PER_SECOND, baseline, control, looks)
    found = {}
    for server, one in values.items():
        of_logs = compared.get(server)
        estimate = None if of_logs is None else of_logs.estimate
        if estimate is None or kind == "rate" or len(set(one.values())) == 1:
            estimate = interval_of_values(
                list(one.values()), kind, confidence=1 - looks.errors_of([one])
            )
        factor = None if of_logs is None else of_logs.factor
        found[server] = (_significant(estimate), factor and _significant(factor))
    return found


def _significant(interval: Interval) -> Interval:
    """Return an interval in six digits: there are many of them."""
    return interval.model_copy(
        update={name: significant(end) for name, end in interval if end is not None}
    )
