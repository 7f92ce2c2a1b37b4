"""Whether the bounds that a user set were kept: met, missed, or not known. Pure.

A bound is kept, or missed, where the whole interval of the figure says so and no doubt bears on it.
What figures cannot tell is said to be not known, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

from laptime.analysis import wording
from laptime.analysis.distributions import student_quantile
from laptime.analysis.logs import ROUNDING, interval_of, unbounded
from laptime.analysis.looks import Looks
from laptime.analysis.repeated import fewest_answers, logs_of
from laptime.analysis.rows import Cell
from laptime.analysis.statistics import CONFIDENCE
from laptime.api.doubts import Bearing, bearing
from laptime.api.durations import duration_of_any_digits
from laptime.api.metrics import Metric
from laptime.api.objectives import Objective
from laptime.api.results import (
    Figures,
    Interval,
    LatencyFigure,
    ObjectiveResult,
    Outcome,
    ResultRow,
    RowState,
    Validity,
)

_MESSAGE = 300


@dataclass(frozen=True)
class _Said:
    """What came of an objective, and why."""

    outcome: Outcome
    reason: str
    measured: str
    message: str | None = None


def evaluate(
    objectives: Sequence[Objective],
    rows: Sequence[ResultRow],
    cells: Mapping[tuple[str, str], Cell],
    looks: Looks,
) -> list[ObjectiveResult]:
    """Return each objective with what was measured and what came of it."""
    by_pair = {(row.server, row.load): row for row in rows}
    return [_evaluate(one, by_pair, cells, looks) for one in objectives]


def _evaluate(
    objective: Objective,
    rows: Mapping[tuple[str, str], ResultRow],
    cells: Mapping[tuple[str, str], Cell],
    looks: Looks,
) -> ObjectiveResult:
    pair = objective.server, objective.load
    row, cell = rows.get(pair), cells.get(pair)
    bound = objective.at_most if objective.at_most is not None else objective.at_least
    side = "at least" if objective.at_most is None else "at most"
    said = _judged(objective, row, cell, looks)
    return ObjectiveResult(
        server=objective.server,
        load=objective.load,
        metric=objective.metric,
        bound=f"{objective.metric} {side} {bound}",
        measured=said.measured,
        outcome=said.outcome,
        reason=said.reason,
        message=said.message[:_MESSAGE] if said.message else None,
    )


def _judged(objective: Objective, row: ResultRow | None, cell: Cell | None, looks: Looks) -> _Said:
    metric = objective.metric
    nothing = _why_nothing(row)
    if row is None or cell is None or nothing is not None:
        return _Said(Outcome.NOT_KNOWN, "NotMeasured", nothing or "not measured yet", nothing)
    if not row.requests:
        why = "no request was counted, so the server was asked nothing"
        return _Said(Outcome.NOT_KNOWN, "NotMeasured", why, why)
    errors = error_rate([one.figures for one in cell.measured if one.figures is not None])
    if metric is Metric.ERROR_RATE:
        written = wording.beside(_limit(objective), "{:.3g}".format)
        return _by_interval(objective, row, errors, wording.with_interval(errors, "", written))
    if row.requests == row.errors:
        nothing = "no right answer"
        return _missed_by_errors(row, "NoRightAnswer", nothing, nothing)
    if row.validity is Validity.INVALID:
        why = next(iter(row.validity_reasons), "no valid trial")
        return _Said(Outcome.NOT_KNOWN, "Invalid", f"invalid: {why}", why)
    if metric is Metric.REQUESTS_PER_SECOND:
        rate = row.requests_per_second
        if rate is None:
            # Of a script whose requests are all in a repetition that is invalid.
            why = "no repetition that counts has a throughput"
            return _Said(Outcome.NOT_KNOWN, "NotMeasured", why, why)
        rate = _alone(rate, cell, metric, looks)
        written = wording.beside(_limit(objective))
        return _by_interval(objective, row, rate, wording.with_interval(rate, "", written))
    figure = row.response_time(metric)
    if figure is not None and figure.seconds is not None:
        own = _alone(figure.seconds, cell, metric, looks)
        figure = figure.model_copy(update={"seconds": own})
    trials = [one.figures for one in cell.counted if one.figures]
    return _latency(objective, row, figure, trials, errors)


def _alone(drawn: Interval, cell: Cell, metric: Metric, looks: Looks) -> Interval:
    """Return a figure as it is: in a row it reaches as far as to servers it is not told from."""
    if drawn.low is None:
        return drawn
    logs = logs_of(cell.counted, metric)
    return unbounded(interval_of(logs, 1 - looks.errors_of([logs])), logs)


def _latency(
    objective: Objective,
    row: ResultRow,
    figure: LatencyFigure | None,
    trials: Sequence[Figures],
    errors: Interval,
) -> _Said:
    """Judge a response time: of all requests, of which few enough may be without a right answer."""
    metric, allowed = objective.metric, objective.allowed_error_rate
    measured = wording.latency_figure(figure, ends=True, bound=_limit(objective))
    failing = f"{wording.share(errors.value)} of the requests had no right answer"
    limit = f"{wording.share(allowed)} may" if allowed else "none may"
    low, high = errors.low or 0.0, errors.high or 0.0
    if low > allowed:
        why = f"{failing}, {limit}"
        return _missed_by_errors(row, "TooManyErrors", f"{measured}, {failing}", why)
    if high > allowed:
        why = f"{failing} ({wording.share(low)} to {wording.share(high)}), {limit}"
        return _Said(Outcome.NOT_KNOWN, "IntervalAcrossBound", f"{measured}, {failing}", why)
    if figure is not None and figure.failed:
        of = f"in {figure.failed} of {wording.repetitions(len(trials))}"
        said = f"{measured}, {failing}"
        why = f"{failing}, and {wording.metric(metric)} fell among them {of}"
        if figure.failed == len(trials) and objective.at_most is not None:
            return _missed_by_errors(row, "BoundNotKept", said, why)
        return _Said(Outcome.NOT_KNOWN, "IntervalAcrossBound", said, why)
    fewest = fewest_answers(metric)
    if figure is None or figure.seconds is None or min(one.requests for one in trials) < fewest:
        why = f"{wording.metric(metric)} needs {fewest:,} requests in each repetition"
        return _Said(Outcome.NOT_KNOWN, "TooFewAnswers", measured, why)
    return _by_interval(objective, row, figure.seconds, measured)


def _missed_by_errors(row: ResultRow, reason: str, measured: str, message: str) -> _Said:
    """Return that a bound was missed by some requests that failed, if they are not in doubt."""
    return _in_doubt(row, Bearing.LOOKS_WORSE, Metric.ERROR_RATE, measured) or _Said(
        Outcome.MISSED, reason, measured, message
    )


def _in_doubt(row: ResultRow, against: Bearing, metric: Metric, measured: str) -> _Said | None:
    """Return that an outcome is not known where a doubt bears on a figure in that direction."""
    for reason in row.validity_reasons:
        if against in bearing(reason, metric):
            return _Said(Outcome.NOT_KNOWN, "Doubtful", f"{measured} (doubtful)", reason)
    return None


def _limit(objective: Objective) -> float:
    bound = (objective.at_least if objective.at_most is None else objective.at_most) or "0"
    return duration_of_any_digits(bound) if objective.metric.is_latency else float(bound)


def _by_interval(objective: Objective, row: ResultRow, figure: Interval, measured: str) -> _Said:
    """Judge by where the whole interval lies, and by the doubts that bear on the outcome."""
    if figure.low is None:
        why = "measured only once: nobody knows how far chance goes"
        return _Said(Outcome.NOT_KNOWN, "MeasuredOnce", measured, why)
    # Of a search that found no upper end.
    high = math.inf if figure.high is None else figure.high
    at_most = objective.at_most is not None
    limit = _limit(objective)
    # Figures come out of means of logarithms: one that is kept exactly is off by the last digits.
    above, below = limit * (1 + ROUNDING), limit * (1 - ROUNDING)
    met = high <= above if at_most else figure.low >= below
    if not met and not (figure.low > above if at_most else high < below):
        doubtful = _in_doubt(row, Bearing.LOOKS_WORSE, objective.metric, measured)
        if figure.high is None and doubtful is not None:
            return doubtful
        why = "the interval reaches across the bound: more repetitions would make it narrower"
        return _Said(Outcome.NOT_KNOWN, "IntervalAcrossBound", measured, why)
    # More is better of a throughput alone: a bound on the other side asks for something bad.
    asks_for_good = at_most is not (objective.metric is Metric.REQUESTS_PER_SECOND)
    against = Bearing.LOOKS_BETTER if met is asks_for_good else Bearing.LOOKS_WORSE
    outcome = Outcome.MET if met else Outcome.MISSED
    return _in_doubt(row, against, objective.metric, measured) or _Said(
        outcome, "BoundKept" if met else "BoundNotKept", measured
    )


def error_rate(trials: Sequence[Figures]) -> Interval:
    """Return the share of requests without a right answer, with its 95 % interval.

    Errors come in heaps, so repetitions say how much the share varies (Student's t); but no less
    than single requests would by chance (E. B. Wilson, Probable Inference, JASA 22, 1927). Where
    not one of them failed it is 0 for sure: a bound is about what was asked, not about what never
    happened.
    """
    requests = sum(one.requests for one in trials)
    errors = sum(one.errors for one in trials)
    if not errors:
        return Interval(value=0.0, low=0.0, high=0.0)
    share = errors / requests
    z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    middle = (share + z * z / (2 * requests)) / (1 + z * z / requests)
    half = z / (1 + z * z / requests) * math.sqrt(
        share * (1 - share) / requests + z * z / (4 * requests * requests)
    )  # fmt: skip
    low, high = middle - half, middle + half
    shares = [one.errors / one.requests for one in trials if one.requests]
    if len(shares) > 1:
        t = student_quantile(len(shares) - 1, 0.5 + CONFIDENCE / 2)
        width = t * stdev(shares) / math.sqrt(len(shares))
        low, high = min(low, fmean(shares) - width), max(high, fmean(shares) + width)
    return Interval(value=share, low=max(0.0, low), high=min(1.0, high))


def _why_nothing(row: ResultRow | None) -> str | None:
    if row is None or (row.state is RowState.PENDING and row.reason is None and not row.trials):
        return "not measured yet"
    return None if row.trials else f"not measured: {row.reason or 'no trial'}"
