"""One server in two runs: has it changed?

Two runs are not paired: their repetitions have nothing in common but the number. So it is Welch's
test of the logarithms, which lets the runs vary by different amounts: B. L. Welch, "The
Generalization of 'Student's' Problem when Several Different Population Variances are Involved",
Biometrika 34 (1947). The degrees of freedom are those of Welch and Satterthwaite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from laptime.analysis.statistics import CONFIDENCE, NOTICEABLE_RATIO, interval_of_logs
from laptime.api.results import Figures, Interval, TrialResult, Validity
from laptime.api.spec import BenchmarkRunSpec


class Change(StrEnum):
    """What became of a figure."""

    BETTER = "better"
    WORSE = "worse"
    NONE_FOUND = "no difference found"
    NOT_KNOWN = "not known"


class Metric(StrEnum):
    """The figures that are compared."""

    REQUESTS_PER_SECOND = "requests/s"
    P50 = "p50"
    P99 = "p99"


@dataclass(frozen=True)
class Comparison:
    """One figure of one server under one load in two runs."""

    server: str
    load: str
    metric: Metric
    before: Interval | None
    """Geometric mean of the repetitions; None: not measured."""
    after: Interval | None
    ratio: Interval | None
    """After divided by before. The intervals of all comparisons hold at once with 95 %."""
    change: Change


def compare_runs(
    spec: BenchmarkRunSpec, before: Sequence[TrialResult], after: Sequence[TrialResult]
) -> tuple[Comparison, ...]:
    """Return all figures of the servers and loads that both runs have, in the order of `spec`."""
    both = {(one.server, one.load) for one in before} & {(one.server, one.load) for one in after}
    pairs = [
        (server.name, load.name)
        for load in spec.loads
        for server in spec.servers
        if (server.name, load.name) in both
    ]
    of = len(pairs) * len(Metric)
    return tuple(
        _compare(server, load, metric, _logs(before, server, load, metric),
                 _logs(after, server, load, metric), of)
        for server, load in pairs
        for metric in Metric
    )  # fmt: skip


def welch_interval(before: Sequence[float], after: Sequence[float], confidence: float) -> Interval:
    """Return exp(mean(after) - mean(before)) of logarithms, with Welch's interval.

    Without an interval when one of them has a single value.

    Raises:
        ValueError: one of them has no value.
    """
    if not before or not after:
        raise ValueError("no value to compare")
    means = [math.fsum(logs) / len(logs) for logs in (before, after)]
    ratio = math.exp(means[1] - means[0])
    if len(before) < 2 or len(after) < 2:
        return Interval(value=ratio)
    errors = [
        math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1) / len(logs)
        for logs, mean in zip((before, after), means, strict=True)
    ]
    squared = math.fsum(errors)
    if squared == 0:
        return Interval(value=ratio, low=ratio, high=ratio)
    freedom = squared**2 / math.fsum(
        error**2 / (len(logs) - 1) for error, logs in zip(errors, (before, after), strict=True)
    )
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, 0.5 + confidence / 2)) * math.sqrt(squared)
    return Interval(
        value=ratio,
        low=math.exp(max(-690.0, math.log(ratio) - half)),
        high=math.exp(min(690.0, math.log(ratio) + half)),
    )


def what_differs(before: BenchmarkRunSpec, after: BenchmarkRunSpec) -> list[str]:
    """Return what else the two runs differ in: then a change need not be one of the server."""
    said = []
    if before.scenario != after.scenario:
        said.append(f"the scenario: {before.scenario} and {after.scenario}")
    if before.topology != after.topology:
        said.append("the topology, or the sizes of its tiers")
    said += _changed(
        "server", {s.name: s for s in before.servers}, {s.name: s for s in after.servers}
    )
    said += _changed(
        "load", {one.name: one for one in before.loads}, {one.name: one for one in after.loads}
    )
    return said


def _changed(what: str, before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    changed = [name for name in before if name in after and before[name] != after[name]]
    only = [name for name in {**before, **after} if (name in before) != (name in after)]
    return [
        *(f"the settings of {what} {name}" for name in changed),
        *(f"{what} {name} is in one of them only" for name in only),
    ]


def _compare(
    server: str,
    load: str,
    metric: Metric,
    before: Sequence[float],
    after: Sequence[float],
    of: int,
) -> Comparison:
    known = [interval_of_logs(logs) if logs else None for logs in (before, after)]
    if not before or not after:
        return Comparison(server, load, metric, known[0], known[1], None, Change.NOT_KNOWN)
    # Bonferroni: as with the ranking of one run, all answers hold together.
    ratio = welch_interval(before, after, 1 - (1 - CONFIDENCE) / of)
    return Comparison(server, load, metric, known[0], known[1], ratio, _change(ratio, metric))


def _change(ratio: Interval, metric: Metric) -> Change:
    if ratio.low is None or ratio.high is None:
        return Change.NOT_KNOWN
    noticeable = abs(math.log(ratio.value)) > math.log(NOTICEABLE_RATIO)
    if not noticeable or ratio.low <= 1 <= ratio.high:
        return Change.NONE_FOUND
    more_is_better = metric is Metric.REQUESTS_PER_SECOND
    return Change.BETTER if (ratio.value > 1) == more_is_better else Change.WORSE


_READ: Mapping[Metric, Callable[[Figures], float | None]] = {
    Metric.REQUESTS_PER_SECOND: lambda one: one.requests_per_second,
    Metric.P50: lambda one: one.latency.p50_seconds if one.latency else None,
    Metric.P99: lambda one: one.latency.p99_seconds if one.latency else None,
}


def _logs(trials: Sequence[TrialResult], server: str, load: str, metric: Metric) -> list[float]:
    found = [
        _READ[metric](trial.figures)
        for trial in trials
        if (trial.server, trial.load) == (server, load)
        and trial.figures is not None
        and trial.validity is not Validity.INVALID
    ]
    return [math.log(value) for value in found if value]
