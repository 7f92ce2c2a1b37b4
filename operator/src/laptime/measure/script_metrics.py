"""k6's metrics of a script: merged without loss, and what thresholds compare. Pure.

Numbers of a trend are counted in cells: the first 22 bits of a float64, which are its sign, its
exponent and ten bits of its fraction. A cell is at most 0.1 % wide, whatever the numbers are about.
"""

from __future__ import annotations

import math
import operator
import re
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from laptime.api.script import ScriptMetric
from laptime.api.text import shown, told_apart
from laptime.measure.generator import GeneratorMetric, GeneratorThreshold

_SHIFT = 42
_BITS = 64
_EXPRESSION = re.compile(
    r"\s*(?P<method>[a-z]+)(\((?P<share>[0-9]{1,3}([.][0-9]*)?)\))?\s*"
    r"(?P<operator><=|>=|===|==|!=|<|>)\s*(?P<bound>[-+]?[0-9]+([.][0-9]*)?([eE][-+]?[0-9]{1,3})?)\s*"
)
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "===": operator.eq,
    "!=": operator.ne,
}


LARGEST = 1e290
"""Numbers beyond it are in no figure, so that sums over generators and repetitions are numbers."""


def too_large(metric: GeneratorMetric) -> bool:
    """Return whether a metric has a number that is too large for sums and means."""
    return max(abs(metric.min), abs(metric.max)) > LARGEST


def finite(value: float) -> float:
    """Return a number, or the largest or least one instead of one beyond it: JSON has no others."""
    return min(max(value, -sys.float_info.max), sys.float_info.max)


def merged_metrics(
    parts: Sequence[Mapping[str, GeneratorMetric]],
) -> dict[str, GeneratorMetric]:
    """Return the metrics of all parts together, by name."""
    names = {name: None for part in parts for name in part}
    return {name: merged_metric([part[name] for part in parts if name in part]) for name in names}


def merged_metric(parts: Sequence[GeneratorMetric]) -> GeneratorMetric:
    """Return the metric of all samples of its parts together; there must be one at least.

    The last value is that of the last part: which of them was later nobody knows.
    """
    used = [part for part in parts if part.samples] or parts[:1]
    cells: Counter[int] = Counter()
    for part in used:
        for cell, count in _pairs(part):
            cells[cell] += count
    return GeneratorMetric(
        type=used[0].type,
        contains=used[0].contains,
        samples=sum(part.samples for part in used),
        sum=finite(sum(part.sum for part in used)),
        min=min(part.min for part in used),
        max=max(part.max for part in used),
        last=used[-1].last,
        passes=sum(part.passes for part in used),
        cells=None
        if any(part.cells is None for part in used)
        else [number for cell in sorted(cells) for number in (cell, cells[cell])],
    )


def percentile(metric: GeneratorMetric, share: float) -> float | None:
    """Return the value at or below which that share (0 … 1) of a trend's samples lies.

    It is as far from 0 as any of its cell, and no more than the least or largest sample. None
    where there are no samples, or they were too different to be kept.
    """
    if not metric.samples or not metric.cells:
        return None
    wanted = max(1, math.ceil(share * metric.samples - 1e-9))
    seen = 0
    for value, count in sorted((_end_of(cell), count) for cell, count in _pairs(metric)):
        seen += count
        if seen >= wanted:
            return min(max(value, metric.min), metric.max)
    return metric.max


def shown_metrics(metrics: Mapping[str, GeneratorMetric]) -> list[ScriptMetric]:
    """Return what metrics say, by name; names are as they can be shown.

    Those without samples and those that are too large are left out.
    """
    return [
        _shown(name, one)
        for name, one in sorted(metrics.items())
        if one.samples and not too_large(one)
    ]


def _shown(name: str, metric: GeneratorMetric) -> ScriptMetric:
    spread = metric.type in ("gauge", "trend")
    value = {
        "counter": metric.sum,
        "gauge": metric.last,
        "rate": metric.passes / metric.samples,
    }.get(metric.type, metric.sum / metric.samples)
    return ScriptMetric(
        name=told_apart(name),
        type=shown(metric.type),
        contains=shown(metric.contains),
        samples=metric.samples,
        value=value,
        min=metric.min if spread else None,
        max=metric.max if spread else None,
        p50=percentile(metric, 0.5),
        p90=percentile(metric, 0.9),
        p95=percentile(metric, 0.95),
        p99=percentile(metric, 0.99),
    )


def _pairs(metric: GeneratorMetric) -> Iterable[tuple[int, int]]:
    cells = metric.cells or []
    return zip(cells[::2], cells[1::2], strict=False)


def _end_of(cell: int) -> float:
    bits = (cell << _SHIFT) | ((1 << _SHIFT) - 1) if cell else 0
    value: float = struct.unpack(">d", (bits & ((1 << _BITS) - 1)).to_bytes(8, "big"))[0]
    return value if math.isfinite(value) else 0.0


def judged_again(
    thresholds: Sequence[GeneratorThreshold], metric: GeneratorMetric | None, seconds: float
) -> GeneratorThreshold:
    """Return a threshold as k6 would judge it over the merged samples of its metric.

    `thresholds` are what its generators said of it, `metric` is None where none saw a sample or the
    metric was one too many to be kept: then a count is that of all, and anything else is missed
    where one of them missed it. `seconds` is what counters are divided by.
    """
    seen = [one for one in thresholds if one.samples]
    first = next((one for one in seen if not one.met), (seen or thresholds)[0])
    parsed = _EXPRESSION.fullmatch(first.expression)
    if parsed is None:
        return first
    if metric is not None:
        value = _value(metric, parsed["method"], float(parsed["share"] or 0) / 100, seconds)
        samples, contains = metric.samples, metric.contains
    else:
        # A sum of parts is not kept because each of them keeps it.
        value = sum(one.value for one in thresholds) if parsed["method"] == "count" else None
        samples, contains = sum(one.samples for one in thresholds), first.contains
    if value is None:
        return first
    met = _OPERATORS[parsed["operator"]](value, float(parsed["bound"]))
    changes = {"met": met, "value": finite(value), "samples": samples}
    return first.model_copy(update={**changes, "contains": contains})


def keeps_bound(expression: str, low: float, high: float) -> bool | None:
    """Return whether all values from `low` to `high` keep the bound of a threshold's expression.

    None where some of them do, or the expression cannot be read.
    """
    parsed = _EXPRESSION.fullmatch(expression)
    if parsed is None:
        return None
    bound = float(parsed["bound"])
    keeps = _OPERATORS[parsed["operator"]]
    if low < high and low <= bound <= high and keeps in (operator.eq, operator.ne):
        return None
    ends = {keeps(low, bound), keeps(high, bound)}
    return ends.pop() if len(ends) == 1 else None


def bound_of(expression: str) -> float | None:
    """Return what a threshold compares with, in k6's unit; None where it cannot be read."""
    parsed = _EXPRESSION.fullmatch(expression)
    return None if parsed is None else float(parsed["bound"])


def _value(metric: GeneratorMetric, method: str, share: float, seconds: float) -> float | None:
    if method == "count":
        return metric.sum
    if method == "rate" and metric.type == "counter":
        return metric.sum / seconds if seconds > 0 else None
    if not metric.samples:
        return None
    return {
        "rate": metric.passes / metric.samples,
        "value": metric.last,
        "avg": metric.sum / metric.samples,
        "min": metric.min,
        "max": metric.max,
        "med": percentile(metric, 0.5),
        "p": percentile(metric, share),
    }.get(method)
