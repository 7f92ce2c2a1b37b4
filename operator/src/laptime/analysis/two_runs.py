"""One server in two runs: has it changed?

Its figures vary within the runs, and the machine is another one each time, which no repetition of
one run tells. Where both runs have a server that stays the same, what that one did is taken off.

Two runs are not paired: their repetitions have nothing in common but the number. So it is Welch's
test of the logarithms, which lets the runs vary by different amounts: B. L. Welch, "The
Generalization of 'Student's' Problem when Several Different Population Variances are Involved",
Biometrika 34 (1947). The degrees of freedom are those of Welch and Satterthwaite, or in few
repetitions those of the shorter run, with which normal noise errs in no more than it may, however
unlike the runs are (M. R. Mickey and M. B. Brown, "Bounds on the Distribution Functions of the
Behrens-Fisher Statistic", Annals of Mathematical Statistics 37, 1966).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from laptime.analysis.blocks import block_of
from laptime.analysis.distributions import student_quantile
from laptime.analysis.logs import Logs, at_least, has_no_end, interval_of, left_open
from laptime.analysis.looks import looks_of
from laptime.analysis.relative import InBoth, beside, relative
from laptime.analysis.repeated import fewest_answers, logs_of
from laptime.analysis.statistics import NOTICEABLE_RATIO
from laptime.api.metrics import Metric
from laptime.api.results import Figures, Interval, TrialResult
from laptime.api.spec import BenchmarkRunSpec


class Change(StrEnum):
    """What became of a figure."""

    BETTER = "better"
    WORSE = "worse"
    NONE_FOUND = "no difference found"
    NOT_KNOWN = "not known"
    SAME_SERVER = "same server"
    """None of its own: it stays the same, and its figures say what the machine did."""


TOLD_SPEEDS = 1.05
"""CPUs that are apart by less are as fast for whoever compares servers on them."""
_AS_BUSY = 0.1
"""Shares of CPUs. Idle ones took a quarter longer than busy ones, so this is some 3 %."""

_FEWEST_FREE_FOR_WELCH = 7
"""Degrees of freedom of each run: 8 repetitions. With fewer Welch's are too many, far out, where
all lines at once are judged: in 12 % of runs of 8 and 3 one of four lines differs by mistake."""

_FEWEST_FREE = 3
"""Of each run, to say of the speed of its CPUs that it was another one: two servers need three
repetitions."""

_SHARES = 1000
"""Of repetitions that fail: as many are tried, to find the one that makes chance likeliest."""

METRICS = (Metric.REQUESTS_PER_SECOND, Metric.P50, Metric.P99, Metric.P999)
"""The figures that are compared."""

_METRICS_OF_SEARCHES = (Metric.REQUESTS_PER_SECOND,)
"""Response times are those at the rate that was met, and a better server meets a higher one."""


@dataclass(frozen=True)
class Comparison:
    """One figure of one server under one load in two runs."""

    server: str
    load: str
    metric: Metric
    before: Interval | None
    """What its repetitions are around; None: not measured, or failed."""
    after: Interval | None
    ratio: Interval | None
    """After divided by before, relative to `relative_to`: then it is not the quotient of the two.
    The intervals of all comparisons hold at once with 95 %; those of the same servers do, too."""
    change: Change
    failed_before: int = 0
    """Repetitions in which it fell among the requests without a right answer, or none was right."""
    failed_after: int = 0
    open_ended: bool = False
    """Whether a search of either run found no rate that the server missed: its ratio has no end."""
    relative_to: tuple[str, ...] = ()
    """Servers that are the same in both runs, whose own change is taken off."""

    @property
    def may_be_worse(self) -> bool:
        """Whether nobody can say if it is as good as in the earlier run, which had it."""
        if self.change is not Change.NOT_KNOWN:
            return False
        return self.before is not None or (self.failed_before > 0 and self.after is None)


def compare_runs(
    spec: BenchmarkRunSpec,
    before: Sequence[TrialResult],
    after: Sequence[TrialResult],
    later: BenchmarkRunSpec | None = None,
    same: Collection[tuple[str, str]] = (),
) -> tuple[Comparison, ...]:
    """Return all figures of the servers and loads that both runs have, in the order of `spec`.

    That is the spec of the earlier run, and `later` that of the later one where it is another. A
    run that looked at its results again and again has wider intervals, here as in its own report.
    `same` are the servers and loads that are the same in both runs (`same_in_both`): beside them
    the others under the load are compared, where there are others, be it in one of the runs alone.
    """
    looks = looks_of(spec), looks_of(later or spec)
    both = {(one.server, one.load) for one in before} & {(one.server, one.load) for one in after}
    pairs = [
        (server.name, load.name)
        for load in spec.loads
        for server in spec.servers
        if (server.name, load.name) in both
    ]
    either = {(one.server, one.load) for one in (*before, *after)}
    others = _asked_in_both(spec, later or spec) & either - {*same}
    with_others = {load for _, load in others}
    beside_them = [pair for pair in pairs if pair in same and pair[1] in with_others]
    asked = (*spec.loads, *(later or spec).loads)
    searched = {load.name for load in asked if load.saturation is not None}
    lines = {
        (*pair, metric): (_logs(before, *pair, metric), _logs(after, *pair, metric))
        for pair in pairs
        for metric in (_METRICS_OF_SEARCHES if pair[1] in searched else METRICS)
    }
    # Those of the same servers claim nothing, and take no certainty from the others.
    of = Counter(line[:2] in beside_them for line, logs in lines.items() if all(logs))
    never = _never_right(before), _never_right(after)
    found = []
    for line, logs in lines.items():
        if not any(logs):
            continue
        server, load, metric = line
        is_same = line[:2] in beside_them
        errors = [look.errors_of([one]) for look, one in zip(looks, logs, strict=True)]
        its_same = {
            name: lines[name, load, metric]
            for name, its_load in beside_them
            if its_load == load and not is_same
        }
        one = _Line(
            server,
            load,
            metric,
            logs,
            (errors[0], errors[1]),
            max(1, of[is_same]),
            (line[:2] in never[0], line[:2] in never[1]),
        )
        compared = one.compared(its_same)
        found.append(replace(compared, change=Change.SAME_SERVER) if is_same else compared)
    return tuple(found)


def _asked_in_both(spec: BenchmarkRunSpec, later: BenchmarkRunSpec) -> set[tuple[str, str]]:
    """Return the servers and loads that both specs have."""
    asked = [
        {(server.name, load.name) for server in one.servers for load in one.loads}
        for one in (spec, later)
    ]
    return asked[0] & asked[1]


def measured_in_one(
    spec: BenchmarkRunSpec,
    before: Sequence[TrialResult],
    after: Sequence[TrialResult],
    later: BenchmarkRunSpec,
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return which servers and loads of both specs have trials in the earlier, or later, run only.

    Such as a server whose answers were wrong in the later run, so that nothing of it was measured.
    """
    trials = [{(one.server, one.load) for one in of_run} for of_run in (before, after)]
    both = _asked_in_both(spec, later)
    return sorted(both & trials[0] - trials[1]), sorted(both & trials[1] - trials[0])


def count_less(before: Sequence[TrialResult], after: Sequence[TrialResult]) -> list[str]:
    """Return of which servers and loads a smaller part of the trials counts in the later run.

    What counts in both may look as it did then, while the server is about to break. Trials that say
    nothing of it, such as those of a lost node, are none of it.
    """
    counts = [_counts(trials) for trials in (before, after)]
    return [
        f"{server} under {load}: {later[0]} of {later[1]} trials count in the later run, "
        f"{earlier[0]} of {earlier[1]} in the earlier one"
        for server, load in sorted(counts[0].keys() & counts[1].keys())
        if (earlier := counts[0][server, load]) and (later := counts[1][server, load])
        if 0 < later[0] * earlier[1] < earlier[0] * later[1]
    ]


def _counts(trials: Sequence[TrialResult]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how many trials of a server under a load count, and how many there are."""
    found: dict[tuple[str, str], list[bool]] = {}
    for one in trials:
        if not one.lost:
            counts = one.has_rate or (one.figures is not None and _is_silent(one.figures))
            found.setdefault((one.server, one.load), []).append(counts)
    return {pair: (sum(each), len(each)) for pair, each in found.items()}


def welch_interval(before: Sequence[float], after: Sequence[float], confidence: float) -> Interval:
    """Return exp(mean(after) - mean(before)) of logarithms, with Welch's interval.

    Where a run has few values, with the degrees of freedom of the one that has fewest. Without an
    interval when one of them has a single value.

    Raises:
        ValueError: one of them has no value.
    """
    if not before or not after:
        raise ValueError("no value to compare")
    means = [_mean(logs) for logs in (before, after)]
    if len(before) < 2 or len(after) < 2:
        return Interval(value=math.exp(means[1] - means[0]))
    free = [len(logs) - 1 for logs in (before, after)]
    errors = [
        math.fsum((log - mean) ** 2 for log in logs) / degrees / len(logs)
        for logs, mean, degrees in zip((before, after), means, free, strict=True)
    ]
    return _around(means[1] - means[0], errors, free, confidence)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _around(
    difference: float, errors: Sequence[float], free: Sequence[int], confidence: float
) -> Interval:
    """Return the ratio of two runs whose logarithms differ by so much, with its interval.

    By the square of each run's standard error, and its degrees of freedom.
    """
    squared = math.fsum(errors)
    degrees = float(min(free))
    if squared and degrees >= _FEWEST_FREE_FOR_WELCH:
        degrees = squared**2 / math.fsum(
            error**2 / of_run for error, of_run in zip(errors, free, strict=True)
        )
    half = student_quantile(degrees, 0.5 + confidence / 2) * math.sqrt(squared)
    return Interval(
        value=math.exp(difference),
        low=math.exp(max(-690.0, difference - half)),
        high=math.exp(min(690.0, difference + half)),
    )


def speeds_apart(before: Sequence[TrialResult], after: Sequence[TrialResult]) -> str | None:
    """Return that the CPUs under the servers were not as fast in both runs, for people; else None.

    By what a fixed piece of work took there in the trials that are compared: those of a server and
    load that both runs have, each server on nodes that were about as busy both times, since an idle
    CPU is slow to begin. Welch's interval of the mean difference of a server and load, so that it
    does not matter how many trials there are of which; the variance of a run is that of its trials
    around the mean of their own.
    """
    works = [_works(trials) for trials in (before, after)]
    if not all(works):
        return None
    if works[0] != works[1] or len(works[0]) > 1:
        return "the work that agents measure the speed of CPUs by: that cannot be compared"
    took = [_probes(trials) for trials in (before, after)]
    busy = [
        {row: _mean([share for _, share in each]) for row, each in of_run.items()}
        for of_run in took
    ]
    rows = [
        [[log for log, _ in of_run[row]] for of_run in took]
        for row in sorted(took[0].keys() & took[1].keys())
        if abs(busy[1][row] - busy[0][row]) <= _AS_BUSY
    ]
    runs = [[row[number] for row in rows] for number in (0, 1)]
    free = [sum(map(len, of_run)) - len(rows) for of_run in runs]
    if min(free) < _FEWEST_FREE:
        return None
    errors = [
        math.fsum((log - _mean(logs)) ** 2 for logs in of_run for log in logs)
        / degrees
        * math.fsum(1 / len(logs) for logs in of_run)
        / len(rows) ** 2
        for of_run, degrees in zip(runs, free, strict=True)
    ]
    difference = _mean([_mean(after) - _mean(before) for before, after in rows])
    ratio = _around(difference, errors, free, confidence=0.95)
    if ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
        return None
    if 1 / TOLD_SPEEDS < ratio.value < TOLD_SPEEDS:
        return None
    ends = f"{ratio.value:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})"
    return f"the speed of the servers' CPUs: a fixed piece of work took {ends} as long after"


def _works(trials: Sequence[TrialResult]) -> set[str]:
    nodes = (node for one in trials if one.usage for node in one.usage.nodes)
    return {node.probe_work for node in nodes if node.probe_work}


def _probes(trials: Sequence[TrialResult]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return the logarithm of what the work took, and how busy it was there, by server and load."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for one in trials:
        if one.figures is None or one.usage is None:
            continue
        server = one.usage.component("server", one.server)
        there = [
            (math.log(node.probe_seconds), node.busy_share)
            for node in one.usage.nodes
            if server is not None and node.node in server.nodes
            if node.probe_seconds and node.busy_share is not None
        ]
        if there:
            mean = tuple(math.fsum(each) / len(there) for each in zip(*there, strict=True))
            found.setdefault((one.server, one.load), []).append((mean[0], mean[1]))
    return found


@dataclass(frozen=True)
class _Line:
    """A figure of a server under a load in both runs."""

    server: str
    load: str
    metric: Metric
    logs: InBoth
    errors: tuple[float, float]
    """How often what each of the runs says may be wrong."""
    of: int
    """Lines that are judged together."""
    never_right: tuple[bool, bool]

    @property
    def share(self) -> float:
        """How often it may err: as with the ranking of one run all answers hold together."""
        return min(self.errors) / self.of

    def compared(self, others: Mapping[str, InBoth]) -> Comparison:
        """Return what became of it, beside others that are the same in both runs."""
        failed = [sum(map(math.isinf, logs.values())) for logs in self.logs]
        known = [
            interval_of(logs, 1 - share) if logs and not lost else None
            for logs, lost, share in zip(self.logs, failed, self.errors, strict=True)
        ]
        of_both = Comparison(
            self.server, self.load, self.metric, known[0], known[1], None, Change.NOT_KNOWN
        )
        if None in known:
            of_both = replace(of_both, failed_before=failed[0], failed_after=failed[1])
            return self._by_failures(of_both, failed, others)
        names = beside(self.logs, others)
        before, after = (
            relative(self.logs[run], [others[name][run] for name in names])
            if names
            else self.logs[run]
            for run in (0, 1)
        )
        ratio = _ratio(before, after, self.share)
        change = _change(ratio, self.metric)
        endless = has_no_end(before, after)
        if endless:
            # What has no upper end is never the worse one, nor is it like the other. How much
            # better it is nobody knows.
            worse = {Change.BETTER: before, Change.WORSE: after}.get(change)
            change = Change.NOT_KNOWN if worse is None or has_no_end(worse) else change
            ratio = Interval(value=ratio.value)
        elif self._unlike({name: others[name] for name in names}):
            change = Change.NOT_KNOWN
        return replace(of_both, ratio=ratio, change=change, open_ended=endless, relative_to=names)

    def _by_failures(
        self, of_both: Comparison, failed: Sequence[int], others: Mapping[str, InBoth]
    ) -> Comparison:
        repetitions = [len(logs) for logs in self.logs]
        change = _change_of_failures(repetitions, failed, self.never_right, self.share)
        lost = {Change.BETTER: 0, Change.WORSE: 1}.get(change)
        if lost is None:
            return replace(of_both, change=change)
        there = {name: one for name, one in others.items() if all(one)}
        if any(math.isinf(log) for one in there.values() for log in one[lost].values()):
            # What stays the same failed as well.
            return of_both
        return replace(of_both, change=change, relative_to=tuple(there))

    def _unlike(self, others: Mapping[str, InBoth]) -> bool:
        """Return whether servers that are the same in both runs did not change alike for sure.

        Then nobody knows what the machine did to this one.
        """
        if len(others) < 2:
            return False
        # Of two one is as far from the other as that is from it.
        share = min(self.errors) / (1 if len(others) == 2 else len(others))
        for name, own in others.items():
            rest = [one for other, one in others.items() if other != name]
            before, after = (relative(own[run], [one[run] for one in rest]) for run in (0, 1))
            if _change(_ratio(before, after, share), self.metric) in (Change.BETTER, Change.WORSE):
                return True
        return False


def _ratio(before: Logs, after: Logs, share: float) -> Interval:
    by_chance = welch_interval(list(before.values()), list(after.values()), 1 - share)
    return at_least(by_chance, left_open(before, after))


def _change_of_failures(
    repetitions: Sequence[int], failed: Sequence[int], never_right: Sequence[bool], share: float
) -> Change:
    """Return what became of a figure that is not known in one of the runs, by where it failed.

    It failed in so many of its repetitions. A server that was never right is worse than one that
    was, if both runs have two repetitions or more. A percentile that is close to the requests
    without a right answer may fall among them by chance.
    """
    if all(0 < count == of for count, of in zip(failed, repetitions, strict=True)):
        return Change.NONE_FOUND
    for clean, lost, change in ((0, 1, Change.WORSE), (1, 0, Change.BETTER)):
        if failed[clean] or not failed[lost] or min(repetitions) < 2:
            continue
        # Either run may be the one that looks worse.
        by_chance = 2 * _by_chance(repetitions[clean], failed[lost], repetitions[lost])
        if never_right[lost] or by_chance <= share:
            return change
    return Change.NOT_KNOWN


def _by_chance(clean: int, failed: int, of: int) -> float:
    """Return how likely like repetitions are at most to fail in none of `clean`, but so often.

    That is in `failed` or more `of` others, whatever share of repetitions fails: an exact test of
    two shares, as that of G. A. Barnard, "Significance Tests for 2 x 2 Tables", Biometrika 34.
    """
    shares = (number / _SHARES for number in range(1, _SHARES))
    return max(
        (1 - share) ** clean
        * math.fsum(
            math.comb(of, count) * share**count * (1 - share) ** (of - count)
            for count in range(failed, of + 1)
        )
        for share in shares
    )


def _change(ratio: Interval, metric: Metric) -> Change:
    if ratio.low is None or ratio.high is None:
        return Change.NOT_KNOWN
    noticeable = abs(math.log(ratio.value)) > math.log(NOTICEABLE_RATIO)
    if not noticeable or ratio.low <= 1 <= ratio.high:
        return Change.NONE_FOUND
    return Change.WORSE if (ratio.value > 1) == metric.is_latency else Change.BETTER


def _logs(trials: Sequence[TrialResult], server: str, load: str, metric: Metric) -> Logs:
    """Return the logarithms of a figure; infinite where no request had a right answer at all.

    For throughput only where that is so in all repetitions: it is no percentile of requests. A
    percentile is that of all repetitions or none. Empty where one has too few requests for it, or
    right answers and no response times, as those of version 1 with other answers as well: the rest
    would be the best of the repetitions, or the silent ones.
    """
    own = [one for one in trials if (one.server, one.load) == (server, load)]
    every = {block_of(one): one.figures for one in own if one.figures is not None}
    silent = {block for block, one in every.items() if _is_silent(one)}
    counted = {block_of(one) for one in own if one.has_rate} | silent
    fewest = fewest_answers(metric)
    if metric.is_latency and any(
        one.requests < fewest or (block not in silent and one.latency is None)
        for block, one in every.items()
        if block in counted
    ):
        return Logs({})
    known = logs_of(own, metric)
    if not silent or (not metric.is_latency and len(silent) < len(every)):
        return known
    return Logs({**known, **dict.fromkeys(silent, math.inf)}, known.within, known.endless)


def _never_right(trials: Sequence[TrialResult]) -> set[tuple[str, str]]:
    """Return the servers and loads of which no repetition had a right answer."""
    answers: dict[tuple[str, str], list[bool]] = {}
    for one in trials:
        if one.figures is not None:
            answers.setdefault((one.server, one.load), []).append(not _is_silent(one.figures))
    return {pair for pair, each in answers.items() if not any(each)}


def _is_silent(figures: Figures) -> bool:
    """Return whether it has requests, and none of them had a right answer."""
    return 0 < figures.requests == figures.errors
