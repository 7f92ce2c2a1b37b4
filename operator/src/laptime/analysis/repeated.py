"""A figure with its repetitions: throughput and response times are compared in one way. Pure.

A figure of a trial is kept as its logarithm. A response time over all requests that fell among
those without a right answer is infinite: slower than all others. A server with such a repetition
has no figure to compare, since nobody knows how much slower it was. The throughput of a search lies
between the highest rate that was met and the lowest that was missed, and is taken to be in their
middle; where the server itself missed none, nobody knows how much more it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from laptime.analysis.blocks import block_of
from laptime.analysis.comparing import Comparison
from laptime.analysis.logs import ByRepetition, Logs, has_no_end, left_open
from laptime.analysis.looks import ONCE, Looks, looks_of
from laptime.analysis.ranks import ranks
from laptime.api.doubts import leaves_end_open
from laptime.api.loads import Load
from laptime.api.metrics import Metric
from laptime.api.results import Figures, Interval, LatencyFigure, LatencyFigures, TrialResult
from laptime.api.script import ComparedBy
from laptime.api.spec import BenchmarkRunSpec

LATENCIES = (Metric.MEAN, Metric.P50, Metric.P90, Metric.P99, Metric.P999)
_HALF_A_CELL = 0.5e-6
_COARSE_BELOW = 100e-6
"""Seconds. Generators count in microseconds: below, one of them is more than the 1 % that counts as
a difference, and servers whose repetitions all fall into one cell seem not to vary at all."""
COMPARED = (Metric.REQUESTS_PER_SECOND, *LATENCIES)


def compared_by(spec: BenchmarkRunSpec, load: Load, results: Iterable[TrialResult]) -> Metric:
    """Return the figure that servers are compared by under a load, by its results so far.

    Where requests come at a rate of their own, all servers that keep up have the same throughput,
    and where a script rests it says how long: there it is the response time that the first
    objective under the load is about, or p99. A slow server leaves less of an iteration to rest, so
    what holds for one holds for all.
    """
    if load.paced is None and not any(
        one.load == load.name
        and one.script is not None
        and one.script.compared_by is ComparedBy.LATENCY
        for one in results
    ):
        return Metric.REQUESTS_PER_SECOND
    asked = (one.metric for one in spec.objectives if one.load == load.name)
    return next((metric for metric in asked if metric.is_latency), Metric.P99)


def fewest_answers(metric: Metric) -> int:
    """Return how many requests a trial needs for a figure: with fewer it is the slowest one."""
    return 1 if metric.share is None else fewest_values(metric.share)


def fewest_values(share: float) -> int:
    """Return how many values a percentile needs, by its share (0 ≤ share < 1).

    With fewer it is the largest one.
    """
    return round(1 / (1 - share))


def logs_of(results: Iterable[TrialResult], metric: Metric, sent: bool = False) -> Logs:
    """Return the logarithms of a figure by block, where there is one of the work.

    Infinite where a response time fell among the requests without a right answer. Repetitions with
    too few requests for a percentile are left out. `sent`: response times from when a request was
    really sent, which open loads have.
    """
    found, within, endless = {}, [], False
    for result in results:
        if result.figures is not None and result.has_rate:
            log, half = _log(result.figures, metric, sent)
            if log is not None:
                found[block_of(result)] = log
                within.append(half)
                endless |= metric is Metric.REQUESTS_PER_SECOND and _endless(result)
    return Logs(found, math.fsum(within) / len(within) if within else 0.0, endless)


def logs_by_server(results: Iterable[TrialResult], load: str, metric: Metric) -> dict[str, Logs]:
    """Return the logarithms of a figure under a load by server; only servers that have any."""
    by_server: dict[str, list[TrialResult]] = {}
    for result in results:
        if result.load == load:
            by_server.setdefault(result.server, []).append(result)
    logs = {server: logs_of(found, metric) for server, found in by_server.items()}
    return {server: one for server, one in logs.items() if one}


def scores(logs: Mapping[str, ByRepetition], metric: Metric) -> dict[str, Logs]:
    """Return the logarithms of servers such that more is better, of those that have a figure."""
    sign = -1.0 if metric.is_latency else 1.0
    return {
        server: Logs(
            {repetition: sign * log for repetition, log in one.items()},
            left_open(one),
            has_no_end(one),
        )
        for server, one in logs.items()
        if one and not _failed(one)
    }


def compared(
    spec: BenchmarkRunSpec, load: str, results: Iterable[TrialResult]
) -> tuple[Metric, Comparison]:
    """Return the figure that a load is compared by, and how its servers compare by it.

    All that have it, as in the table: one that is measured no more is still one of them, and asks
    for as much certainty. Without the control, which is no competitor.
    """
    of_load = [one for one in results if one.load == load]
    metric = compared_by(spec, spec.load(load), of_load)
    known = scores(logs_by_server(of_load, load, metric), metric)
    competing = {
        server.name: known[server.name]
        for server in spec.servers
        if server.name in known and server.name != spec.control_name
    }
    return metric, Comparison(competing, looks_of(spec))


def factor_of(score: Interval, metric: Metric) -> Interval:
    """Return a figure or ratio of scores, more being better, as that of the figure itself."""
    if not metric.is_latency:
        return score
    low, high = (None if end is None else 1 / end for end in (score.high, score.low))
    return Interval(value=1 / score.value, low=low, high=high)


@dataclass(frozen=True)
class Repeated:
    """A figure of one server under one load, over its repetitions."""

    estimate: Interval | None
    """None: there is none, or in some repetitions it fell among the requests that failed."""
    failed: int = 0
    """Repetitions in which it fell among the requests without a right answer."""
    factor: Interval | None = None
    rank: int | None = None


def repeated(
    logs: Mapping[str, ByRepetition],
    metric: Metric,
    baseline: str,
    control: str | None = None,
    looks: Looks = ONCE,
) -> dict[str, Repeated]:
    """Return the figure of each server under a load; the control has no rank."""
    known = scores(logs, metric)
    compared = {server: score for server, score in known.items() if server != control}
    comparison = Comparison(compared, looks)
    places = ranks(compared, comparison)
    estimates, factors = comparison.estimates(), comparison.factors(baseline)
    if control is not None and control in known:
        # It is compared with the baseline alone.
        both = {one: known[one] for one in (control, baseline) if one in known}
        alone = Comparison(both, looks)
        estimates[control] = alone.estimate(control)
        # On the page beside the baseline: of two that are not told apart the figures meet. Where
        # that of the baseline ends is what others say of it, too.
        estimates |= alone.overlapping({one: estimates[one] for one in both}, stays=baseline)
        if control in (of_control := alone.factors(baseline)):
            factors[control] = of_control[control]
    return {
        server: Repeated(
            estimate=factor_of(estimates[server], metric) if server in estimates else None,
            failed=_failed(one),
            factor=factor_of(factors[server], metric) if server in factors else None,
            rank=places.get(server),
        )
        for server, one in logs.items()
    }


def latency_figures(
    figures: Mapping[Metric, Repeated],
    together: Mapping[Metric, float | None],
    fewest: int,
    compared_by: Metric,
) -> LatencyFigures | None:
    """Return the response times of a row.

    `together` are those of all repetitions at once, in seconds: what is known of a percentile that
    single repetitions have too few requests for; `fewest` is how many one of them has. Without
    those repetitions, which are the slower ones of a server, its p99.9 could be below its p99.
    What servers are compared by is left as they are compared. A percentile that is below a lower
    one all the same is left out: they are of different requests.
    """
    found = {}
    highest = 0.0
    for metric in LATENCIES:
        one, seconds = figures.get(metric), together.get(metric)
        too_few = fewest < fewest_answers(metric) and metric is not compared_by
        if one is not None and too_few and metric in together and seconds is None:
            # Of all of them together it fell among requests without a right answer. Repetitions
            # that have one of their own are the longest and cleanest ones.
            found[metric.value] = LatencyFigure(failed=one.failed)
        elif one is not None and not (too_few and seconds is not None and not one.failed):
            if one.estimate is not None and metric is not Metric.MEAN:
                highest = max(highest, one.estimate.value)
            found[metric.value] = LatencyFigure(
                seconds=one.estimate, failed=one.failed, factor=one.factor, rank=one.rank
            )
        # Of times that are all the same a figure over repetitions is off in its last digit.
        elif seconds is not None and (seconds >= highest or math.isclose(seconds, highest)):
            highest = highest if metric is Metric.MEAN else seconds
            found[metric.value] = LatencyFigure(seconds=Interval(value=seconds))
    return LatencyFigures(**found) if found else None


def _failed(logs: ByRepetition) -> int:
    return sum(1 for log in logs.values() if math.isinf(log))


def _endless(result: TrialResult) -> bool:
    """Return whether the server may do any amount more than its search found."""
    searched = result.figures.saturation if result.figures else None
    if searched is None:
        return False
    return searched.high_rate is None or any(map(leaves_end_open, result.validity_reasons))


def _log(figures: Figures, metric: Metric, sent: bool) -> tuple[float | None, float]:
    """Return the logarithm of a figure, None without one, and how far to each side it may lie."""
    if metric is Metric.REQUESTS_PER_SECOND:
        return _log_of_rate(figures)
    latency = figures.uncorrected_latency if sent else figures.latency
    if latency is None or figures.requests < fewest_answers(metric):
        return None, 0.0
    seconds: float | None = getattr(latency, f"{metric.value}_seconds")
    if seconds is None:
        return math.inf, 0.0
    if seconds <= 0:
        return None, 0.0
    # A mean is of many requests, and falls between the cells.
    coarse = metric is not Metric.MEAN and seconds < _COARSE_BELOW
    return math.log(seconds), _HALF_A_CELL / seconds if coarse else 0.0


def _log_of_rate(figures: Figures) -> tuple[float, float]:
    searched = figures.saturation
    if searched is None or not searched.low_rate:
        return math.log(figures.requests_per_second), 0.0
    low = math.log(searched.low_rate)
    # Where no rate was missed the highest one stands for what is known, and the doubt says so.
    high = low if searched.high_rate is None else math.log(searched.high_rate)
    return (low + high) / 2, (high - low) / 2
