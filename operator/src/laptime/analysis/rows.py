"""One row of the result table: a server under a load, over all its repetitions."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from laptime.analysis import wording
from laptime.analysis.remembered import remembered
from laptime.analysis.repeated import LATENCIES, Repeated, latency_figures
from laptime.analysis.script import script_of_row
from laptime.analysis.used import row_cause, row_usage, statements_per_request
from laptime.api import doubts
from laptime.api.doubts import Said
from laptime.api.metrics import Metric
from laptime.api.results import (
    Figures,
    ResponseTimes,
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
    """Why the whole server is out, or this load of it: reason and message."""

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
    def counted(self) -> list[TrialResult]:
        """The measured trials that have a figure of the work, by repetition."""
        return [one for one in self.measured if one.has_rate]

    @property
    def trusted(self) -> list[TrialResult]:
        """The measured trials that are not invalid, also those that asked nothing by requests."""
        return [one for one in self.measured if one.validity is not Validity.INVALID]


def cells_of(
    trials: Sequence[Trial],
    results: Sequence[TrialResult],
    payloads: Mapping[str, str],
    server_failures: Mapping[str, tuple[str, str]],
    load_failures: Mapping[tuple[str, str], tuple[str, str]],
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
            server_failures.get(server) or load_failures.get((server, load)),
        )
        for (server, load), planned in pairs.items()
    }


def row_of(
    cell: Cell,
    figures: Mapping[Metric, Repeated],
    sent: Mapping[Metric, Repeated],
    compared_by: Metric,
    published_factor: float | None,
    earlier: Sequence[str] = (),
    published_missing: str | None = None,
) -> ResultRow:
    """Return the row of a cell, given its figures over the repetitions.

    `sent` are its response times from when requests were really sent. `compared_by` is the figure
    that its factor and its rank are about. `earlier` are the servers that it cannot be compared
    with, since they were measured before it was asked for again. `published_missing` is why it has
    no published factor where others have one.
    """
    state, reason, message = _state(cell)
    measured = [result for result in cell.measured if result.figures is not None]
    every = [result.figures for result in measured if result.figures is not None]
    requests, errors = sum(one.requests for one in every), sum(one.errors for one in every)
    # What is invalid is about something else than the work that was asked for. How many requests
    # there were and how many failed is said of all.
    counted = [one for one in measured if one.validity is not Validity.INVALID]
    times = _together(
        tuple(
            (cell.payloads.get(one.trial, ""), one.figures.errors)
            for one in counted
            if one.figures is not None
        )
    )
    validity, reasons = _judge(cell, requests, errors, times, earlier)
    rate, compared = figures.get(Metric.REQUESTS_PER_SECOND), figures.get(compared_by)
    fewest = min((one.figures.requests for one in counted if one.figures), default=0)
    return ResultRow(
        server=cell.server,
        load=cell.load,
        state=state,
        reason=reason,
        message=message[:_MESSAGE] if message else None,
        trials=len(measured),
        failed_trials=len(cell.failed),
        lost_attempts=sum(len(one.lost_attempts) for one in cell.results) or None,
        requests=requests,
        errors=errors,
        error_rate=errors / requests if requests else None,
        requests_per_second=rate.estimate if rate else None,
        latency=times.latency,
        latency_figures=latency_figures(figures, _seconds(times.latency), fewest, compared_by),
        uncorrected_latency=times.uncorrected,
        uncorrected_figures=latency_figures(sent, _seconds(times.uncorrected), fewest, compared_by),
        lateness_p99_seconds=times.lateness_p99_seconds,
        saturation=_limits_found([one.figures for one in counted if one.figures is not None]),
        compared_by=compared_by,
        factor=compared.factor if compared else None,
        published_factor=published_factor,
        published_missing=published_missing and published_missing[:_MESSAGE],
        validity=validity,
        validity_reasons=_first(reasons),
        rank=compared.rank if compared else None,
        limited_by=row_cause(counted),
        usage=row_usage(counted),
        # Of all: too few of them are why a trial is invalid.
        statements_per_request=statements_per_request(measured),
        # Of all: a check that fails is why a trial is invalid. But metrics are what figures are of.
        script=script_of_row(
            [one.script for one in measured if one.script is not None],
            [one.script for one in counted if one.script is not None],
            [cell.payloads.get(one.trial, "") for one in counted or measured],
        ),
    )


def _first(reasons: Sequence[Said]) -> list[str]:
    if len(reasons) > _REASONS:
        # What orders, experiments and thresholds depend on is never among those only counted.
        decisive = doubts.leaves_end_open, doubts.of_the_load
        last = sorted(reasons, key=lambda one: not any(is_one(one) for is_one in decisive))
        others = last[_REASONS - 1 :]
        more = doubts.MORE_DOUBTS.says(others=len(others))
        reasons = [*(one for one in reasons if one not in others), more]
    return [text[:_MESSAGE] for text in reasons]


def _seconds(times: ResponseTimes | None) -> dict[Metric, float | None]:
    if times is None:
        return {}
    return {metric: getattr(times, f"{metric.value}_seconds") for metric in LATENCIES}


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
    message = f"{_failures(cell)}, the first with {said}"
    return (RowState.PARTIAL if measured else RowState.PENDING), "TrialsFailed", message


def _failures(cell: Cell) -> Said:
    """Return how many trials failed, and whose fault it was when it was not the server's."""
    failed, planned = len(cell.failed), cell.planned
    if all(one.lost for one in cell.failed):
        whose = " and ".join(sorted({f"the {one.fault}" for one in cell.failed}))
        return doubts.TRIALS_LOST.says(failed=failed, planned=planned, whose=whose)
    return doubts.TRIALS_FAILED.says(failed=failed, planned=planned)


def _judge(
    cell: Cell, requests: int, errors: int, times: _Together, earlier: Sequence[str]
) -> tuple[Validity | None, list[Said]]:
    measured = cell.measured
    if not measured:
        return None, []
    invalid = len(measured) - len(cell.trusted)
    if not cell.trusted:
        return Validity.INVALID, (
            _in_repetitions(measured) or [doubts.NO_RIGHT_ANSWER.says(mostly="")]
        )
    reasons: list[Said] = []
    if invalid:
        are = "is" if invalid == 1 else "are"
        reasons.append(
            doubts.INVALID_REPETITIONS.says(invalid=invalid, trials=len(measured), are=are)
        )
    of_errors = error_reason(requests, errors)
    if of_errors:
        reasons.append(of_errors)
    reasons += _in_repetitions(measured, doubts.about(of_errors) if of_errors else None)
    if cell.failed:
        reasons.append(_failures(cell))
    if len(cell.trusted) < 2:
        reasons.append(doubts.MEASURED_ONCE.says())
    if earlier:
        reasons.append(doubts.ASKED_AGAIN.says(others=wording.listing(earlier)))
    if times.missing:
        reasons.append(doubts.TIMES_MISSING.says(missing=times.missing, trials=len(cell.trusted)))
    # Where none are known nobody knows how many there were.
    if requests and times.answers < MIN_SAMPLES_P999 and (times.answers or not times.missing):
        reasons.append(doubts.FEW_ANSWERS.says(answers=times.answers, needed=MIN_SAMPLES_P999))
    return (Validity.DOUBTFUL if reasons else Validity.VALID), reasons


def _in_repetitions(
    measured: Sequence[TrialResult], covered: tuple[str, ...] | None = None
) -> list[Said]:
    """Return what the trials themselves say, once for all repetitions that say the same.

    `covered` is what a reason is about that the row says already for all of them together.
    """
    by_kind: dict[tuple[str, ...], list[str]] = {}
    for result in measured:
        for reason in result.validity_reasons:
            if (about := doubts.about(reason)) != covered:
                by_kind.setdefault(about, []).append(reason)
    return [doubts.in_repetitions(reasons, len(measured)) for reasons in by_kind.values()]


@dataclass(frozen=True)
class _Together:
    latency: ResponseTimes | None
    uncorrected: ResponseTimes | None
    lateness_p99_seconds: float | None
    answers: int
    missing: int
    """Trials whose response times could not be had."""


# A summary is made again after every trial: what has not changed since is not computed again.
@remembered(1024)
def _together(trials: tuple[tuple[str, int], ...]) -> _Together:
    """Return what trials, each a payload and a number of errors, say of times together."""
    every = [(_response_times(payload), errors) for payload, errors in trials]
    found = [one for one, _ in every if one is not None]
    failed = sum(errors for one, errors in every if one is not None)
    latency, uncorrected, lateness = (
        _sum(one[place] for one in found) for place in range(len(_HISTOGRAMS))
    )
    return _Together(
        latency.response_times(failed),
        uncorrected.response_times(failed),
        lateness.quantile_seconds(0.99) if lateness.total else None,
        latency.total,
        len(every) - len(found),
    )


_HISTOGRAMS = (latency_histogram, uncorrected_histogram, lateness_histogram)
# Kept as two flat arrays, which are a tenth of a dictionary's size.
_Counts: TypeAlias = "tuple[array[int], array[int]]"


@remembered(1024)
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
