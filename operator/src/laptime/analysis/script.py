"""What a script says over all repetitions of a server under its load."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.analysis.remembered import forgotten_by
from laptime.analysis.script_metrics import interval_of_values
from laptime.api import doubts
from laptime.api.doubts import Bearing, bearing
from laptime.api.interval import Interval
from laptime.api.metrics import Metric
from laptime.api.results import ObjectiveResult, Outcome, ResultRow, Validity
from laptime.api.script import (
    ITERATIONS,
    ComparedBy,
    ScriptFigures,
    ScriptMetric,
    ThresholdResult,
)
from laptime.api.spec import MAX_LOADS, MAX_SERVERS
from laptime.measure import (
    GeneratorError,
    checks_together,
    exceptions_together,
    hosts_together,
    keeps_bound,
    merged_metrics,
    parse_payload,
    shown_metrics,
)
from laptime.measure.causes import DROPPED_AT_MOST
from laptime.measure.generator import GeneratorMetric
from laptime.measure.script import may_have_had

MAX_OBJECTIVES = 128
"""Thresholds that become objectives of a run, those that were not met first."""
MAX_CHECKS = 20
MAX_THRESHOLDS = 32
MAX_METRICS = 60
MAX_HOSTS = 10
MAX_EXCEPTIONS = 3
"""What a row shows one by one; the trials have all."""
MAX_ROWS = MAX_SERVERS * MAX_LOADS
MOST_MERGED_BYTES = 48 * 2**20
"""Of what repetitions are merged with, for the rows of all runs: that of 40 of the largest ones."""
_AMOUNTS = frozenset({"http_reqs", ITERATIONS, "data_sent", "data_received"})
"""k6's own counters of what was done."""
_DROPPED = "dropped_iterations"
"""k6's counter of iterations that found no VU."""


def script_of_row(
    scripts: Sequence[ScriptFigures], trusted: Sequence[ScriptFigures], payloads: Sequence[str]
) -> ScriptFigures | None:
    """Return what the script says in all repetitions together; None for other loads.

    `trusted` are those of the repetitions that are not invalid: thresholds are judged by them, if
    there are any. `payloads` are the generator's results that its metrics are merged from, of the
    same repetitions, as the figures of metrics are: there are none where one of them is empty.
    """
    if not scripts:
        return None
    checks = checks_together(check for one in scripts for check in one.checks)
    hosts = hosts_together(host for one in scripts for host in one.other_hosts)
    warnings = dict.fromkeys(text for one in scripts for text in one.warnings)
    missing = sum(not one for one in payloads)
    # The sum of a part would be read as that of all.
    metrics = () if missing else _metrics_shown(tuple(payloads))
    if missing and any(one.metrics for one in trusted or scripts):
        of = f"{missing} of {len(payloads)} repetitions"
        warnings[f"metrics are left out: those of {of} are missing"] = None
    kept = first_metrics(metrics, MAX_METRICS)
    thresholds = _thresholds(trusted or scripts)
    exceptions = exceptions_together(thrown for one in scripts for thrown in one.exceptions)
    for what, found, most in (
        ("metrics", len(metrics), MAX_METRICS),
        ("checks", len(checks), MAX_CHECKS),
        ("thresholds", len(thresholds), MAX_THRESHOLDS),
        ("exceptions", len(exceptions), MAX_EXCEPTIONS),
        ("other hosts", len(hosts), MAX_HOSTS),
    ):
        if found > most:
            left_out = f"{found - most} {what} of all repetitions are left out"
            warnings[f"{left_out}: {most} are kept"] = None
    return ScriptFigures(
        warmup_named=all(one.warmup_named for one in scripts),
        executors=sorted({kind for one in scripts for kind in one.executors}),
        iterations=sum(one.iterations for one in scripts),
        iteration_seconds=sum(one.iteration_seconds for one in scripts),
        seconds=sum(one.seconds for one in scripts),
        compared_by=_compared_by(scripts),
        dropped_iterations=sum(one.dropped_iterations for one in scripts),
        aborted=any(one.aborted for one in scripts),
        checks_passed=sum(one.checks_passed for one in scripts),
        checks_failed=sum(one.checks_failed for one in scripts),
        wrong_answers=sum(one.wrong_answers for one in scripts),
        checks=checks[:MAX_CHECKS],
        exceptions=exceptions[:MAX_EXCEPTIONS],
        thresholds=thresholds[:MAX_THRESHOLDS],
        other_hosts=hosts[:MAX_HOSTS],
        metrics=kept,
        warnings=list(warnings),
    )


def first_metrics(metrics: Sequence[ScriptMetric], most: int) -> list[ScriptMetric]:
    """Return so many metrics by name: iterations, then whole ones, then parts of them by tags."""
    ordered = sorted(metrics, key=lambda one: (one.name != ITERATIONS, "{" in one.name, one.name))
    return sorted(ordered[:most], key=lambda one: one.name)


@dataclass
class _Merged:
    """The metrics of some repetitions together."""

    shown: tuple[ScriptMetric, ...]
    packed: bytes
    """All that one repetition more is merged with, in a seventh of its size (up to 7 MB); empty:
    there was no room for it."""


_MERGED: dict[tuple[str, ...], _Merged] = {}
"""By their payloads; what was used last is the last. Of a row that grows only the newest."""
forgotten_by(_MERGED.clear)


def _metrics_shown(payloads: tuple[str, ...]) -> tuple[ScriptMetric, ...]:
    """Return the metrics of repetitions together, of which there is one at least.

    A summary is made again after every trial: what has not changed since is not computed again.
    """
    found = _MERGED.pop(payloads, None)
    if found is not None:
        _MERGED[payloads] = found
        return found.shown
    before = _MERGED.pop(payloads[:-1], None)
    metrics: dict[str, GeneratorMetric]
    if before is not None and before.packed:
        # Its own bytes of before, which nobody else can have written.
        metrics, left = pickle.loads(before.packed), payloads[-1:]
    else:
        metrics, left = {}, payloads
    # One by one: together they may be hundreds of MB.
    for payload in left:
        parsed = parse_payload(payload)
        if not isinstance(parsed, GeneratorError) and parsed.script is not None:
            metrics = merged_metrics([metrics, parsed.script.metrics])
    merged = _Merged(tuple(shown_metrics(metrics)), pickle.dumps(metrics))
    _MERGED[payloads] = merged
    while len(_MERGED) > MAX_ROWS:
        del _MERGED[next(iter(_MERGED))]
    room = MOST_MERGED_BYTES
    for one in reversed(_MERGED.values()):
        room -= len(one.packed)
        if room < 0:
            one.packed = b""
    return merged.shown


def _compared_by(scripts: Sequence[ScriptFigures]) -> ComparedBy:
    # A slow server leaves less of an iteration to rest: what holds for one holds for all.
    rests = any(one.compared_by is ComparedBy.LATENCY for one in scripts)
    return ComparedBy.LATENCY if rests else ComparedBy.THROUGHPUT


def _thresholds(scripts: Sequence[ScriptFigures]) -> list[ThresholdResult]:
    """Return each threshold over all repetitions; those that were not met come first."""
    kinds = {metric.name: metric.type for one in scripts for metric in one.metrics}
    found: dict[tuple[str, str], list[ThresholdResult]] = {}
    for script in scripts:
        for one in script.thresholds:
            of_one = found.setdefault((one.metric, one.expression), [])
            of_one.append(_counted(one, script, kinds.get(one.metric, "")))
    together = [
        _over_repetitions(of_one, kinds.get(metric, "")) for (metric, _), of_one in found.items()
    ]
    return sorted(together, key=lambda one: one.met is True)


def _counted(threshold: ThresholdResult, script: ScriptFigures, kind: str) -> ThresholdResult:
    """Return a threshold as it is over repetitions: a counter without samples counted nothing.

    So has its metric it (script_metrics.py). Where a trial has left metrics out nobody knows it.
    """
    each_second = kind == "counter" and threshold.expression.lstrip().startswith("rate")
    if threshold.low is not None or not each_second or may_have_had(script, threshold.metric):
        return threshold
    met = keeps_bound(threshold.expression, 0.0, 0.0)
    measured = Interval(value=0.0)
    changes = {"met": met, "measured": measured, "low": 0.0, "high": 0.0}
    return threshold.model_copy(update=changes)


def _over_repetitions(thresholds: Sequence[ThresholdResult], kind: str) -> ThresholdResult:
    values = [one.low for one in thresholds if one.low is not None]
    measured = interval_of_values(values, kind) if values else None
    return thresholds[0].model_copy(
        update={
            "met": _met(thresholds, measured),
            "measured": measured,
            "low": min(values, default=None),
            "high": max(values, default=None),
            "repetitions": sum(one.repetitions for one in thresholds),
            "missed": sum(one.missed for one in thresholds),
            "without_samples": sum(one.low is None for one in thresholds),
        }
    )


def _met(thresholds: Sequence[ThresholdResult], measured: Interval | None) -> bool | None:
    """Return whether a threshold was met: where the whole interval says so, or its opposite.

    Measured once it is as k6 judged it, which has no repetitions.
    """
    if len(thresholds) == 1:
        return thresholds[0].met
    if measured is None or measured.low is None or measured.high is None:
        return None
    if any(one.met is None for one in thresholds):
        return None
    return keeps_bound(thresholds[0].expression, measured.low, measured.high)


def threshold_objectives(rows: Sequence[ResultRow]) -> list[ObjectiveResult]:
    """Return the thresholds of scripts as objectives of the run, those that were not met first."""
    found = [_objective(row, one) for row in rows if row.script for one in row.script.thresholds]
    return sorted(found, key=lambda one: one.outcome is Outcome.MET)[:MAX_OBJECTIVES]


def _objective(row: ResultRow, threshold: ThresholdResult) -> ObjectiveResult:
    outcome, reason, message = _outcome(row, threshold)
    return ObjectiveResult(
        server=row.server,
        load=row.load,
        metric=threshold.metric,
        bound=f"{threshold.metric}: {threshold.expression}",
        measured=wording.threshold(threshold),
        outcome=outcome,
        reason=reason,
        message=message,
    )


def _outcome(row: ResultRow, threshold: ThresholdResult) -> tuple[Outcome, str, str | None]:
    if threshold.met is False:
        if why := _in_doubt(row, threshold, Bearing.LOOKS_WORSE):
            return Outcome.NOT_KNOWN, "Doubtful", why
        return Outcome.MISSED, "BoundNotKept", None
    if threshold.met is None and threshold.without_samples:
        of = f" in {threshold.without_samples} of {threshold.repetitions} repetitions"
        said = f"its metric has no samples{of if threshold.repetitions > 1 else ''}"
        return Outcome.NOT_KNOWN, "TooFewAnswers", said
    if threshold.met is None and threshold.measured is not None and threshold.repetitions > 1:
        said = f"missed in {threshold.missed} of {threshold.repetitions} repetitions"
        return (
            Outcome.NOT_KNOWN,
            "IntervalAcrossBound",
            f"the interval reaches across the bound, {said}: more of them would make it narrower",
        )
    if threshold.met is None:
        return Outcome.NOT_KNOWN, "TooFewAnswers", "its metric has no samples"
    # Whoever answers quickly and wrongly meets every bound on time. A repetition that did is not
    # judged, and without it a script that checks its answers must not pass.
    if row.validity is Validity.INVALID:
        why = next(iter(row.validity_reasons), "no valid trial")
        return Outcome.NOT_KNOWN, "Invalid", why
    for reason in row.validity_reasons:
        if doubts.INVALID_REPETITIONS.said(reason):
            return Outcome.NOT_KNOWN, "Invalid", reason
    # Repetitions that the server did not live through are in no threshold at all.
    if row.failed_trials:
        of = f"{row.failed_trials} of {row.failed_trials + row.trials}"
        return Outcome.NOT_KNOWN, "Doubtful", f"{of} repetitions measured nothing"
    if why := _in_doubt(row, threshold, Bearing.LOOKS_BETTER):
        return Outcome.NOT_KNOWN, "Doubtful", why
    return Outcome.MET, "BoundKept", None


def _in_doubt(row: ResultRow, threshold: ThresholdResult, against: Bearing) -> str | None:
    """Return why the load was not the one that was asked for, if an outcome may be due to that.

    How many iterations were dropped is known however many they are. And k6 drops some while it
    makes its VUs: no more than an open load may lack say nothing of the others.
    """
    name = threshold.metric.partition("{")[0]
    if row.script is None or name == _DROPPED:
        return None
    dropped = row.script.dropped_iterations
    few = dropped <= DROPPED_AT_MOST * (row.script.iterations + dropped)
    metric = _judged_as(name, row.script)
    for reason in row.validity_reasons:
        if few and doubts.ITERATIONS_DROPPED.said(reason):
            continue
        if doubts.of_the_load(reason) and against in bearing(reason, metric):
            return reason
    return None


def _judged_as(name: str, script: ScriptFigures) -> Metric:
    """Return which figure's doubts a metric has: counters those of throughput.

    Nobody knows what others are about, so they are judged as response times are.
    """
    counters = {one.name for one in script.metrics if one.type == "counter"}
    return Metric.REQUESTS_PER_SECOND if name in _AMOUNTS | counters else Metric.P99
