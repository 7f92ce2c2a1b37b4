"""Whether shorter trials would find the same differences in throughput in less time. Pure.

A trial costs what lies around it (a new pod, its start, the warm-up) and the seconds that are
measured. Its figure varies by what differs from one trial to the next, which no length changes, and
by what its own seconds do, which longer trials average out. Where both are known, so is the best
length: the root of what lies around a trial, times the variance within a second, divided by that
between trials (T. Kalibera and R. Jones, Rigorous benchmarking in reasonable time, ISMM 2013).

It is advice for the next run, and changes nothing in this one. That between trials is badly known
from few repetitions, so it is taken from the lower end of its interval. Longer trials are never
advised: what stands still for a while in each of them looks as if more seconds would average it out
(how often all that was right: bench/comparing/length.py).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from laptime.analysis.comparing import Noise
from laptime.analysis.deciding import seconds_of_repetition
from laptime.analysis.foreseen import errors_needed
from laptime.analysis.repeated import compared, fewest_answers
from laptime.analysis.statistics import ERRORS
from laptime.api.doubts import not_steady
from laptime.api.loads import Load
from laptime.api.metrics import Metric
from laptime.api.results import TrialLength, TrialResult
from laptime.api.spec import MAX_REPETITIONS, BenchmarkRunSpec

FEWEST_REPETITIONS = 3
"""Nothing is advised by fewer, and none are advised."""
WORTH_SAVING = 0.25
"""Share of the time that a change must save to be advised."""
SHORTEST_SECONDS = 8.0
"""A shorter trial does not show that its server was warming up, nor its own noise."""
CAREFUL = 1.2816
"""So many deviations lies the end of the interval of a variance: it is beyond in one of ten."""
_SLOWEST_ANSWERS = 4
"""Times the p99: so long is a trial at least."""
_TURNS = 10
"""Requests that each connection sends in a trial at least, on average."""
_READINGS = 5
"""Times what lies between two readings of a pod: fewer do not tell what limited a server."""


def trial_lengths(
    spec: BenchmarkRunSpec, results: Sequence[TrialResult]
) -> tuple[TrialLength, ...]:
    """Return for which loads shorter trials would do, from trials that have a figure of the work.

    Closed loads with a duration, compared by throughput. Not where the results decide how many
    repetitions there are, nor in pairs at the same time, nor where a server that is compared lacks
    a repetition.
    """
    if spec.by_results or spec.duet:
        return ()
    return tuple(_of_loads(spec, results))


def loads_judged_by_response_times(spec: BenchmarkRunSpec) -> set[str]:
    """Return the loads with an objective for one: shorter trials know less of it."""
    return {one.load for one in spec.objectives if one.metric.is_latency}


def _of_loads(spec: BenchmarkRunSpec, results: Sequence[TrialResult]) -> Iterator[TrialLength]:
    judged = loads_judged_by_response_times(spec)
    for load in spec.loads:
        seconds = load.measured_seconds
        if load.closed is None or seconds is None or load.name in judged:
            continue
        _, comparison = compared(spec, load.name, results)
        of_load = [
            one
            for one in results
            if one.load == load.name and one.server in comparison.servers and one.has_rate
        ]
        noise, within = comparison.noise, _within(of_load)
        if noise is None or within is None or noise.repetitions != spec.repetitions:
            continue
        repetition, timed = seconds_of_repetition(results, load.name), _timed(results, load)
        if repetition is None or len(of_load) != len(comparison.servers) * spec.repetitions:
            continue
        known = Measured(
            servers=len(comparison.servers),
            noise=noise,
            within=within,
            seconds=seconds,
            around=repetition / timed - seconds if timed else 0.0,
            shortest=_shortest(load, of_load),
        )
        better = better_length(load.name, known)
        if better is not None:
            yield better


@dataclass(frozen=True)
class Measured:
    """What trials of a load cost, and how they vary."""

    servers: int
    noise: Noise
    within: float
    """Their variance by what their own seconds do, of the logarithm, at this length."""
    seconds: float
    """That each measured."""
    around: float
    """Of a trial beside those."""
    shortest: float
    """Seconds that one must measure."""


def better_length(load: str, known: Measured, careful: float = CAREFUL) -> TrialLength | None:
    """Return a length at which shorter trials find the same sooner; None: none for sure.

    `careful` is how sure it has to be (see `CAREFUL`).
    """
    noise, within, seconds, around = known.noise, known.within, known.seconds, known.around
    too_few = noise.repetitions < FEWEST_REPETITIONS or known.servers < 2
    between = _lower_end(noise, careful) - within
    if too_few or around <= 0 or within <= 0 or between <= 0:
        # What varies more within trials than from one to the next is alike in each, and no noise.
        return None
    best = max(math.sqrt(around * within * seconds / between), known.shortest)
    if not best < seconds:
        return None
    best = float(math.ceil(best))
    variance = (between + within * seconds / best) / (between + within)
    needed = repetitions_needed(known.servers, noise.repetitions, variance)
    share = (around + best) * needed / ((around + seconds) * noise.repetitions)
    if needed > MAX_REPETITIONS or share > 1 - WORTH_SAVING:
        return None
    return TrialLength(
        load=load,
        seconds=best,
        repetitions=needed,
        instead_of_seconds=seconds,
        instead_of_repetitions=noise.repetitions,
        time_share=share,
    )


def repetitions_needed(servers: int, repetitions: int, variance: float) -> int:
    """Return how many repetitions find what so many did, with so many times the variance.

    One more than a run may have where that is not enough.
    """

    def smallest(count: int) -> float:
        return errors_needed(servers, count, ERRORS) / math.sqrt(count)

    found = smallest(repetitions)
    counts = range(FEWEST_REPETITIONS, MAX_REPETITIONS + 1)
    place = bisect_left(
        counts, True, key=lambda count: smallest(count) * math.sqrt(variance) <= found
    )
    return FEWEST_REPETITIONS + place


def _timed(results: Sequence[TrialResult], load: Load) -> int:
    """Return how many servers have a trial under a load of which it is known when it was."""
    return len(
        {
            one.server
            for one in results
            if one.load == load.name and one.started_at and one.finished_at
        }
    )


def _lower_end(noise: Noise, deviations: float) -> float:
    """Return the lower end of the interval of a variance.

    With the quantile of chi-squared by E. B. Wilson and M. M. Hilferty (1931).
    """
    spread = 2 / (9 * noise.degrees)
    return noise.variance / max(1e-3, 1 - spread + deviations * math.sqrt(spread)) ** 3


def _within(results: Sequence[TrialResult]) -> float | None:
    """Return the variance of a trial by its own seconds; None where it is not known of all.

    More than the whole of it is no error of a throughput.
    """
    if any(not_steady(reason) for one in results for reason in one.validity_reasons):
        # A trend is no noise, and a shorter trial would only hide it.
        return None
    errors = [one.figures.within_share for one in results if one.figures is not None]
    known = [one for one in errors if one is not None and 0 <= one <= 1]
    return fmean(one**2 for one in known) if known and len(known) == len(errors) else None


def _shortest(load: Load, results: Sequence[TrialResult]) -> float:
    """Return how long a trial of a load must be, in seconds.

    A p99 is kept, and a p99.9 where trials had one: with fewer answers it is the slowest of them.
    """
    figures = [one.figures for one in results if one.figures is not None]
    slowest = (one.latency.p99_seconds or one.latency.max_seconds for one in figures if one.latency)
    p99, p999 = fewest_answers(Metric.P99), fewest_answers(Metric.P999)
    answers = (
        max(_TURNS * (load.users or 0), p999 if one.requests >= p999 else p99)
        / one.requests_per_second
        for one in figures
    )
    apart = (one.usage.resolution_seconds or 0.0 for one in results if one.usage)
    return max(
        SHORTEST_SECONDS,
        _SLOWEST_ANSWERS * max(slowest, default=0.0),
        _READINGS * max(apart, default=0.0),
        *answers,
    )
