"""One row of the result table: a server under a load, over all its repetitions."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from laptime.analysis.script import script_of_row
from laptime.analysis.statistics import interval_of_logs, paired_logs
from laptime.analysis.used import row_cause, row_usage, statements_per_request
from laptime.api.results import (
    Figures,
    Latency,
    ResultRow,
    RowState,
    Saturation,
    TrialOutcome,
    TrialResult,
    Validity,
)
from laptime.measure import (
    GeneratorError,
    Histogram,
    HistogramError,
    error_reason,
    latency_histogram,
    lateness_histogram,
    measured_phase,
    parse_payload,
    uncorrected_histogram,
)
from laptime.plan import Trial

MIN_SAMPLES_P999 = 1000
"""Below this many answers p99.9 is nothing but the slowest one."""
_MESSAGE = 300
_REASONS = 6


@dataclass(frozen=True)
class Cell:
    """Everything about one server under one load."""

    server: str
    load: str
    planned: int
    results: Sequence[TrialResult]
    payloads: Mapping[str, str]
    failure: tuple[str, str] | None
    """Why the whole server is out: reason and message."""

    @property
    def measured(self) -> list[TrialResult]:
        """The trials that were measured, by repetition."""
        found = [one for one in self.results if one.outcome is TrialOutcome.MEASURED]
        return sorted(found, key=lambda result: result.repetition)

    @property
    def failed(self) -> list[TrialResult]:
        """The trials that failed, by repetition."""
        found = [one for one in self.results if one.outcome is TrialOutcome.FAILED]
        return sorted(found, key=lambda result: result.repetition)

    @property
    def log_rates(self) -> dict[int, float]:
        """Logarithm of requests/s by repetition, where there is a figure of the work."""
        return log_rates(self.measured)


def log_rates(results: Iterable[TrialResult]) -> dict[int, float]:
    """Return the logarithm of requests/s by repetition, where there is a figure of the work."""
    return {
        result.repetition: math.log(result.figures.requests_per_second)
        for result in results
        if result.figures is not None and result.has_rate
    }


def log_rates_by_server(results: Iterable[TrialResult], load: str) -> dict[str, dict[int, float]]:
    """Return the logarithms of requests/s under a load by server; only servers that have any."""
    by_server: dict[str, list[TrialResult]] = {}
    for result in results:
        if result.load == load:
            by_server.setdefault(result.server, []).append(result)
    rates = {server: log_rates(found) for server, found in by_server.items()}
    return {server: rate for server, rate in rates.items() if rate}


def cells_of(
    trials: Sequence[Trial],
    results: Sequence[TrialResult],
    payloads: Mapping[str, str],
    server_failures: Mapping[str, tuple[str, str]],
) -> dict[tuple[str, str], Cell]:
    """Return the cells of all planned (server, load); results of other trials do not count."""
    by_trial = {result.trial: result for result in results}
    pairs = Counter((trial.server, trial.load) for trial in trials)
    found: dict[tuple[str, str], list[TrialResult]] = {pair: [] for pair in pairs}
    for trial in trials:
        if trial.name in by_trial:
            found[trial.server, trial.load].append(by_trial[trial.name])
    return {
        (server, load): Cell(
            server,
            load,
            planned,
            found[server, load],
            payloads,
            server_failures.get(server),
        )
        for (server, load), planned in pairs.items()
    }


def row_of(
    cell: Cell, baseline: Cell | None, published_factor: float | None, rank: int | None = None
) -> ResultRow:
    """Return the row of a cell; its factor is against the baseline's cell under the same load."""
    state, reason, message = _state(cell)
    measured = [result for result in cell.measured if result.figures is not None]
    figures = [result.figures for result in measured if result.figures is not None]
    requests, errors = sum(one.requests for one in figures), sum(one.errors for one in figures)
    # What is invalid is about something else than the work that was asked for. How many requests
    # there were and how many failed is said of all.
    counted = [one for one in measured if one.validity is not Validity.INVALID]
    rates = cell.log_rates
    pairs = paired_logs(rates, baseline.log_rates) if baseline else []
    times = _together(tuple(cell.payloads.get(result.trial, "") for result in counted))
    validity, reasons = _judge(cell, requests, errors, times)
    return ResultRow(
        server=cell.server,
        load=cell.load,
        state=state,
        reason=reason,
        message=message[:_MESSAGE] if message else None,
        trials=len(measured),
        failed_trials=len(cell.failed),
        requests=requests,
        errors=errors,
        error_rate=errors / requests if requests else None,
        requests_per_second=interval_of_logs(list(rates.values())) if rates else None,
        latency=times.latency,
        uncorrected_latency=times.uncorrected,
        lateness_p99_seconds=times.lateness_p99_seconds,
        saturation=_limits_found([one.figures for one in counted if one.figures is not None]),
        factor=interval_of_logs(pairs) if pairs else None,
        published_factor=published_factor,
        validity=validity,
        validity_reasons=[text[:_MESSAGE] for text in reasons[:_REASONS]],
        rank=rank,
        limited_by=row_cause(counted),
        usage=row_usage(counted),
        # Of all: too few of them are why a trial is invalid.
        statements_per_request=statements_per_request(measured),
        # Of all: a check that fails is why a trial is invalid.
        script=script_of_row(
            [one.script for one in measured if one.script is not None],
            [cell.payloads.get(one.trial, "") for one in measured],
        ),
    )


def _limits_found(figures: Sequence[Figures]) -> Saturation | None:
    """Return what the searches of all repetitions found: bounds that hold for each of them."""
    found = [one.saturation for one in figures if one.saturation is not None]
    if not found:
        return None
    highs = [one.high_rate for one in found if one.high_rate is not None]
    breaking = [one.breaking_rate for one in found if one.breaking_rate is not None]
    return Saturation(
        low_rate=min(one.low_rate for one in found),
        # A search that met its objective at every rate has no upper end, so all have none.
        high_rate=max(highs) if len(highs) == len(found) else None,
        breaking_rate=min(breaking, default=None),
        p99_objective_seconds=found[0].p99_objective_seconds,
        error_rate_objective=found[0].error_rate_objective,
    )


def _state(cell: Cell) -> tuple[RowState, str | None, str | None]:
    measured, failed = len(cell.measured), len(cell.failed)
    if cell.failure is not None and measured < cell.planned:
        return (RowState.PARTIAL if measured else RowState.FAILED), *cell.failure
    if measured == cell.planned:
        return RowState.MEASURED, None, None
    if not failed:
        return (RowState.PARTIAL if measured else RowState.PENDING), None, None
    first = cell.failed[0]
    if failed == cell.planned:
        return RowState.FAILED, first.reason or "TrialsFailed", first.message
    said = ": ".join(part for part in (first.reason, first.message) if part)
    message = f"{failed} of {cell.planned} trials failed, the first with {said}"
    return (RowState.PARTIAL if measured else RowState.PENDING), "TrialsFailed", message


def _judge(
    cell: Cell, requests: int, errors: int, times: _ResponseTimes
) -> tuple[Validity | None, list[str]]:
    measured = cell.measured
    if not measured:
        return None, []
    if not cell.log_rates:
        return Validity.INVALID, _in_repetitions(measured, {}) or ["no right answer"]
    reasons: list[str] = []
    invalid = sum(1 for one in measured if one.validity is Validity.INVALID)
    if invalid:
        are = "is" if invalid == 1 else "are"
        reasons.append(f"{invalid} of {len(measured)} repetitions {are} invalid and left out")
    of_errors = error_reason(requests, errors)
    if of_errors:
        reasons.append(of_errors)
    covered = {
        result.trial: error_reason(result.figures.requests, result.figures.errors)
        for result in measured
        if result.figures is not None and of_errors
    }
    reasons += _in_repetitions(measured, covered)
    if cell.failed:
        reasons.append(f"{len(cell.failed)} of {cell.planned} trials failed")
    if len(cell.log_rates) < 2:
        reasons.append("measured only once, so nobody knows how far chance goes: no interval")
    if times.missing:
        reasons.append(
            f"the response times of {times.missing} of {len(measured) - invalid} trials are missing"
        )
    if times.answers < MIN_SAMPLES_P999:
        reasons.append(f"only {times.answers} answers: p99.9 needs at least {MIN_SAMPLES_P999}")
    return (Validity.DOUBTFUL if reasons else Validity.VALID), reasons


def _in_repetitions(
    measured: Sequence[TrialResult], covered: Mapping[str, str | None]
) -> list[str]:
    """Return what the trials themselves say, once for all repetitions that say the same.

    `covered` is, by trial, a reason that the row says already for all of them together.
    """
    by_kind: dict[str, list[str]] = {}
    for result in measured:
        for reason in result.validity_reasons:
            if reason != covered.get(result.trial):
                by_kind.setdefault(_kind_of(reason), []).append(reason)
    return [
        f"{reasons[0]} (in {len(reasons)} of {len(measured)} repetitions)"
        for reasons in by_kind.values()
    ]


def _kind_of(reason: str) -> str:
    """Return a reason without its figures; digits in a quoted name are part of the name."""
    return re.sub(r"'[^']*'|[\d.,]+", lambda part: part[0] if "'" in part[0] else "0", reason)


@dataclass(frozen=True)
class _ResponseTimes:
    latency: Latency | None
    uncorrected: Latency | None
    lateness_p99_seconds: float | None
    answers: int
    missing: int
    """Trials whose response times could not be had."""


# A summary is made again after every trial: what has not changed since is not computed again.
@lru_cache(maxsize=1024)
def _together(payloads: tuple[str, ...]) -> _ResponseTimes:
    every = [_response_times(payload) for payload in payloads]
    found = [one for one in every if one is not None]
    latency, uncorrected, lateness = (
        _sum(one[place] for one in found) for place in range(len(_HISTOGRAMS))
    )
    return _ResponseTimes(
        latency.latency(),
        uncorrected.latency(),
        lateness.quantile_seconds(0.99) if lateness.total else None,
        latency.total,
        len(every) - len(found),
    )


_HISTOGRAMS = (latency_histogram, uncorrected_histogram, lateness_histogram)
# Kept as two flat arrays, which are a tenth of a dictionary's size.
_Counts: TypeAlias = "tuple[array[int], array[int]]"


@lru_cache(maxsize=1024)
def _response_times(payload: str) -> tuple[_Counts, ...] | None:
    try:
        parsed = parse_payload(payload)
        phase = None if isinstance(parsed, GeneratorError) else measured_phase(parsed)
        counts = [read(phase).counts for read in _HISTOGRAMS] if phase is not None else None
    except HistogramError:
        return None
    if counts is None:
        return None
    return tuple((array("L", one.keys()), array("Q", one.values())) for one in counts)


def _sum(parts: Iterable[_Counts]) -> Histogram:
    total: Counter[int] = Counter()
    for cells, counts in parts:
        for cell, count in zip(cells, counts, strict=True):
            total[cell] += count
    return Histogram(total)
