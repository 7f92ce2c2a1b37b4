"""How small a difference a run will find, by the noise of earlier ones. Pure.

What a run calls faster is what differs by more standard errors than chance allows; how large one is
in so many repetitions follows from how much a repetition's ratio of two servers mostly differs from
the next one's. That is a property of the machine and of the work, so that runs of before tell it.
It enters no result: a run judges by its own noise alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean

from laptime.analysis.comparing import POWER, critical
from laptime.analysis.distributions import student_quantile
from laptime.analysis.looks import looks_of
from laptime.analysis.repeated import compared, compared_by
from laptime.analysis.statistics import NOTICEABLE_RATIO
from laptime.api.loads import Load
from laptime.api.metrics import Metric
from laptime.api.results import TrialResult
from laptime.api.spec import BenchmarkRunSpec

Deviations = Mapping[Metric, Sequence[float]]
"""By what servers are compared by: the standard deviation of a repetition's ratio of two servers, a
logarithm, of each pair under each load."""


def deviations(spec: BenchmarkRunSpec, results: Iterable[TrialResult]) -> Deviations:
    """Return how noisy the comparisons of a run were; empty of fewer than two repetitions.

    Of the loads that can be foreseen alone (see below).
    """
    measured = list(results)
    found: dict[Metric, list[float]] = defaultdict(list)
    for load in filter(can_be_foreseen, spec.loads):
        metric, comparison = compared(spec, load.name, measured)
        pairs = combinations(comparison.servers, 2)
        known = (comparison.deviation(*pair) for pair in pairs)
        found[metric] += [one for one in known if one is not None and math.isfinite(one)]
    return {metric: noise for metric, noise in found.items() if noise}


def together(runs: Iterable[Deviations]) -> dict[Metric, float]:
    """Return one deviation for all pairs of some runs, by what servers are compared by.

    The quadratic mean: that of few repetitions is mostly too small, and their median would be, but
    variances are right on average. One wild run makes the promise a careful one.
    """
    every: dict[Metric, list[float]] = defaultdict(list)
    for run in runs:
        for metric, noise in run.items():
            every[metric] += noise
    return {metric: math.sqrt(fmean(one**2 for one in noise)) for metric, noise in every.items()}


def can_be_foreseen(load: Load) -> bool:
    """Return whether it can be said what a load will find.

    Not of a search, whose figures leave a step open however often it is repeated, nor of a script:
    what it is compared by is known when it has run.
    """
    return load.saturation is None and load.script is None


def asked_metrics(spec: BenchmarkRunSpec) -> list[Metric]:
    """Return by what the servers of a run will be compared, each once, in the loads' order."""
    loads = filter(can_be_foreseen, spec.loads)
    return list(dict.fromkeys(compared_by(spec, load, ()) for load in loads))


def found_from(deviation: float, spec: BenchmarkRunSpec, repetitions: int) -> float | None:
    """Return the smallest difference that a run finds in so many repetitions, as a share.

    In four of five such runs, between two servers that are as noisy as `deviation` says (see
    above), with the bound that so many servers ask for, and noticeable. None for one repetition,
    or one server.
    """
    servers = sum(one.name != spec.control_name for one in spec.servers)
    if servers < 2 or repetitions < 2:
        return None
    error = deviation / math.sqrt(repetitions)
    asked = critical(servers, repetitions, looks_of(spec).errors(repetitions)) * error
    of_power = student_quantile(repetitions - 1, POWER) * error
    return math.expm1(max(asked, math.log(NOTICEABLE_RATIO)) + of_power)


def errors_needed(servers: int, repetitions: int, errors: float) -> float:
    """Return how many standard errors two of some servers must differ by to be found.

    In four of five runs of so many repetitions, two or more, of which so many (`errors`, a share)
    may be wrong.
    """
    of_power = student_quantile(repetitions - 1, POWER)
    return critical(servers, repetitions, errors) + of_power
