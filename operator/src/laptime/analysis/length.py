"""Whether trials of another length would find the same differences in less time. Pure.

A trial costs what lies around it (a new pod, its start, the warm-up) and the seconds that are
measured. Its figure varies by what differs from one trial to the next, which no length changes, and
by what its own seconds do, which longer trials average out. Where both are known, so is the best
length: the root of what lies around a trial, times the variance within a second, divided by that
between trials (T. Kalibera and R. Jones, Rigorous benchmarking in reasonable time, ISMM 2013).

It is advice for the next run, and changes nothing in this one. That between trials is badly known
from few repetitions, so it is taken from the end of its interval that speaks against the change.
How often that was right: bench/comparing/length.py.
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
from laptime.analysis.repeated import compared
from laptime.analysis.statistics import ERRORS
from laptime.api.doubts import not_steady
from laptime.api.loads import Load
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
_TIMES_LONGER = 4
_SLOWEST_ANSWERS = 4
"""Times the p99: so long is a trial at least."""
_TURNS = 10
"""Requests that each connection sends in a trial at least, on average."""


def trial_lengths(
    spec: BenchmarkRunSpec, results: Sequence[TrialResult]
) -> tuple[TrialLength, ...]:
    """Return for which loads another length would do, from trials that have a figure of the work.

    Closed loads with a duration, compared by throughput. Not where the results decide how many
    repetitions there are, nor in pairs at the same time.
    """
    if spec.by_results or spec.duet:
        return ()
    return tuple(_of_loads(spec, results))


def _of_loads(spec: BenchmarkRunSpec, results: Sequence[TrialResult]) -> Iterator[TrialLength]:
    judged = {one.load for one in spec.objectives if one.metric.is_latency}
    for load in spec.loads:
        seconds = load.measured_seconds
        if load.closed is None or seconds is None or load.name in judged:
            continue
        _, comparison = compared(spec, load.name, results)
        of_load = [
            one for one in results if one.load == load.name and one.server in comparison.servers
        ]
        noise, within = comparison.noise, _within(of_load)
        repetition = seconds_of_repetition(results, load.name)
        if noise is None or within is None or repetition is None:
            continue
        around = repetition / len({one.server for one in results if one.load == load.name})
        known = Measured(
            servers=len(comparison.servers),
            noise=noise,
            within=within,
            seconds=seconds,
            around=around - seconds,
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
    """Return a length at which trials find the same differences sooner; None: none for sure.

    `careful` is how sure it has to be (see `CAREFUL`).
    """
    noise, within, seconds, around = known.noise, known.within, known.seconds, known.around
    too_few = noise.repetitions < FEWEST_REPETITIONS or known.servers < 2
    least, most = (_end(noise, side * careful) for side in (1, -1))
    if too_few or around <= 0 or not 0 < within <= most:
        # What varies more within trials than from one to the next is alike in each, and no noise.
        return None
    for total, is_shorter in ((least, True), (most, False)):
        between = max(0.0, total - within)
        best = math.sqrt(around * within * seconds / between) if between else math.inf
        best = float(math.ceil(max(min(best, _TIMES_LONGER * seconds), known.shortest)))
        if best == seconds or (best < seconds) is not is_shorter:
            continue
        variance = (between + within * seconds / best) / (between + within)
        needed = repetitions_needed(known.servers, noise.repetitions, variance)
        share = (around + best) * needed / ((around + seconds) * noise.repetitions)
        if needed <= MAX_REPETITIONS and share <= 1 - WORTH_SAVING:
            return TrialLength(
                load=load,
                seconds=best,
                repetitions=needed,
                instead_of_seconds=seconds,
                instead_of_repetitions=noise.repetitions,
                time_share=share,
            )
    return None


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


def _end(noise: Noise, deviations: float) -> float:
    """Return an end of the interval of a variance; the lower one for more than no deviations.

    With the quantile of chi-squared by E. B. Wilson and M. M. Hilferty (1931).
    """
    spread = 2 / (9 * noise.degrees)
    return noise.variance / max(1e-3, 1 - spread + deviations * math.sqrt(spread)) ** 3


def _within(results: Sequence[TrialResult]) -> float | None:
    """Return the variance of a trial by its own seconds; None where it is not known of all."""
    if any(not_steady(reason) for one in results for reason in one.validity_reasons):
        # A trend is no noise, and a shorter trial would only hide it.
        return None
    errors = [one.figures.within_share for one in results if one.figures is not None]
    known = [one for one in errors if one is not None]
    return fmean(one**2 for one in known) if known and len(known) == len(errors) else None


def _shortest(load: Load, results: Sequence[TrialResult]) -> float:
    """Return how long a trial of a load must be, in seconds."""
    figures = [one.figures for one in results if one.figures is not None]
    slowest = (one.latency.p99_seconds or one.latency.max_seconds for one in figures if one.latency)
    turns = (_TURNS * (load.users or 0) / one.requests_per_second for one in figures)
    return max(SHORTEST_SECONDS, _SLOWEST_ANSWERS * max(slowest, default=0.0), *turns)
