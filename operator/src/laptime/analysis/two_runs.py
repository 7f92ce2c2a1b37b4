"""One server in two runs: has it changed?

Two runs are not paired: their repetitions have nothing in common but the number. So it is Welch's
test of the logarithms, which lets the runs vary by different amounts: B. L. Welch, "The
Generalization of 'Student's' Problem when Several Different Population Variances are Involved",
Biometrika 34 (1947). The degrees of freedom are those of Welch and Satterthwaite, or in few
repetitions those of the shorter run, with which normal noise errs in no more than it may, however
unlike the runs are (M. R. Mickey and M. B. Brown, "Bounds on the Distribution Functions of the
Behrens-Fisher Statistic", Annals of Mathematical Statistics 37, 1966).
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from laptime.analysis.blocks import block_of
from laptime.analysis.distributions import student_quantile
from laptime.analysis.logs import Logs, at_least, has_no_end, interval_of, left_open
from laptime.analysis.looks import Looks, looks_of
from laptime.analysis.repeated import fewest_answers, logs_of
from laptime.analysis.statistics import NOTICEABLE_RATIO
from laptime.api.base import Model
from laptime.api.metrics import Metric
from laptime.api.placement import Nodes, RunPlacement
from laptime.api.results import Figures, Interval, TrialResult
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import KeptScript
from laptime.api.text import shown


class Change(StrEnum):
    """What became of a figure."""

    BETTER = "better"
    WORSE = "worse"
    NONE_FOUND = "no difference found"
    NOT_KNOWN = "not known"


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

_MOST_SETTINGS = 8
"""Of one server, load or topology that differ: who changes more compares two of them."""

_SHARES = 1000
"""Of repetitions that fail: as many are tried, to find the one that makes chance likeliest."""

_MOST_OF_A_SETTING = 120
"""Characters; the name of an image with its digest has some hundred."""

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
    """After divided by before. The intervals of all comparisons hold at once with 95 %."""
    change: Change
    failed_before: int = 0
    """Repetitions in which it fell among the requests without a right answer, or none was right."""
    failed_after: int = 0
    open_ended: bool = False
    """Whether a search of either run found no rate that the server missed: its ratio has no end."""

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
) -> tuple[Comparison, ...]:
    """Return all figures of the servers and loads that both runs have, in the order of `spec`.

    That is the spec of the earlier run, and `later` that of the later one where it is another. A
    run that looked at its results again and again has wider intervals, here as in its own report.
    """
    looks = looks_of(spec), looks_of(later or spec)
    both = {(one.server, one.load) for one in before} & {(one.server, one.load) for one in after}
    pairs = [
        (server.name, load.name)
        for load in spec.loads
        for server in spec.servers
        if (server.name, load.name) in both
    ]
    asked = (*spec.loads, *(later or spec).loads)
    searched = {load.name for load in asked if load.saturation is not None}
    figures = [
        (
            server,
            load,
            metric,
            _logs(before, server, load, metric),
            _logs(after, server, load, metric),
        )
        for server, load in pairs
        for metric in (_METRICS_OF_SEARCHES if load in searched else METRICS)
    ]
    of = sum(1 for *_, one, other in figures if one and other)
    never = _never_right(before), _never_right(after)
    return tuple(
        _compare(*figure, of, looks, (figure[:2] in never[0], figure[:2] in never[1]))
        for figure in figures
        if figure[-1] or figure[-2]
    )


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
    asked = [
        {(server.name, load.name) for server in one.servers for load in one.loads}
        for one in (spec, later)
    ]
    both = asked[0] & asked[1]
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


def paired_otherwise(before: Sequence[TrialResult], after: Sequence[TrialResult]) -> list[str]:
    """Return which servers had the machine alone in one of two runs, and with another one beside.

    By the trials themselves: where a server of a duet is out, the other one is measured alone.
    """
    kinds = [_measured_beside(trials) for trials in (before, after)]
    return [
        f"the pairing: {server} under {load} was measured "
        + " and then ".join(
            "beside another server" if kind[server, load] else "alone" for kind in kinds
        )
        for server, load in sorted(kinds[0].keys() & kinds[1].keys())
        if kinds[0][server, load] is not kinds[1][server, load]
    ]


def _measured_beside(trials: Sequence[TrialResult]) -> dict[tuple[str, str], bool]:
    return {
        (one.server, one.load): one.beside is not None for one in trials if one.figures is not None
    }


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


def what_differs(
    before: BenchmarkRunSpec,
    after: BenchmarkRunSpec,
    works: tuple[str | None, str | None] = (None, None),
    placements: tuple[RunPlacement | None, RunPlacement | None] = (None, None),
    scripts: tuple[Sequence[KeptScript], Sequence[KeptScript]] = ((), ()),
) -> list[str]:
    """Return what else the two runs differ in: then a change need not be one of the server.

    `works` are the hashes of their scenarios, None where nobody knows it; `placements` are where
    they were let be measured, None where that was said of none; `scripts` are the ConfigMaps that
    they began with, none where an older version measured.
    """
    said = []
    if before.scenario != after.scenario:
        said.append(f"the scenario: {before.scenario} and {after.scenario}")
    elif None not in works and works[0] != works[1]:
        said.append(
            f"the work: scenario {before.scenario} was changed between them ({works[0]} and "
            f"{works[1]})"
        )
    hashes = [{one.config_map: one.hash for one in each} for each in scripts]
    said += [
        f"the script: ConfigMap {name} was changed between them ({hashes[0][name]} and "
        f"{hashes[1][name]})"
        for name in sorted(hashes[0].keys() & hashes[1].keys())
        if hashes[0][name] != hashes[1][name]
    ]
    said += placed_otherwise(*placements)
    nodes = [one.nodes or Nodes.FIXED for one in (before, after)]
    if nodes[0] is not nodes[1]:
        said.append(f"the nodes: {nodes[0]} and {nodes[1]}")
    if before.topology != after.topology:
        said.append(f"the topology: {_apart(before.topology, after.topology)}")
    if before.generator != after.generator:
        said.append(f"the generator: {_apart(before.generator, after.generator)}")
    said += _changed(
        "server",
        {one.name: _as_deployed(one) for one in before.servers},
        {one.name: _as_deployed(one) for one in after.servers},
    )
    said += _changed(
        "load", {one.name: one for one in before.loads}, {one.name: one for one in after.loads}
    )
    return said


def other_images(
    spec: BenchmarkRunSpec,
    before: Sequence[TrialResult],
    after: Sequence[TrialResult],
    later: BenchmarkRunSpec,
) -> list[str]:
    """Return which images were other ones, of those that the specs name in one way or not at all.

    By their IDs: a tag may have moved, and those of tiers, generators and presets come with a
    version of Laptime. Older versions do not say them.
    """
    named = [{one.name: one.image for one in each.servers} for each in (spec, later)]
    moved = {name for name in named[0] if name in named[1] and named[0][name] == named[1][name]}
    used = [_images(trials, moved) for trials in (before, after)]
    return [
        f"the image of {part}: {' and '.join(_image_ids(each[part]) for each in used)}"
        for part in sorted(used[0].keys() & used[1].keys())
        if used[0][part] != used[1][part]
    ]


def _images(trials: Sequence[TrialResult], servers: Collection[str]) -> dict[str, set[str]]:
    """Return the IDs of images by what they are for, of servers only those of these names."""
    found: dict[str, set[str]] = {}
    for one in trials:
        for part, image in one.images.items():
            if part != "server":
                found.setdefault(shown(part), set()).add(image)
            elif one.server in servers:
                found.setdefault(f"server {one.server}", set()).add(image)
    return found


def _image_ids(images: Collection[str]) -> str:
    return " or ".join(shown(one, _MOST_OF_A_SETTING) for one in sorted(images))


def placed_otherwise(before: RunPlacement | None, after: RunPlacement | None) -> list[str]:
    """Return in what the placements of two runs differ; None: a run had none."""
    if (before and before.name) != (after and after.name):
        names = " and ".join(one.name if one else "none" for one in (before, after))
        return [f"the placement: {names}"]
    if (before and before.lane) != (after and after.lane):
        lanes = " and ".join((one and one.lane) or "none" for one in (before, after))
        return [f"the lane: {lanes}"]
    rules = {one.rules for one in (before, after) if one and one.rules}
    if before is not None and len(rules) > 1:
        return [f"the placement: {before.name} was changed between them"]
    return []


def _as_deployed(server: Server) -> Server:
    return server.model_copy(update={"workers": server.worker_count})


def _changed(what: str, before: Mapping[str, Model], after: Mapping[str, Model]) -> list[str]:
    changed = [name for name in before if name in after and before[name] != after[name]]
    only = [name for name in {**before, **after} if (name in before) != (name in after)]
    return [
        *(
            f"{what} {name}: {apart}"
            for name in changed
            if (apart := _apart(before[name], after[name]))
        ),
        *(f"{what} {name} is in one of them only" for name in only),
    ]


def _apart(before: Model, after: Model) -> str:
    """Return in which settings two of a kind differ: `image mine:41 and mine:42`."""
    settings = [dict(_settings(one.to_wire())) for one in (before, after)]
    names = [name for name in {**settings[0], **settings[1]} if _differs(name, settings)]
    said = [_both(name, *(one.get(name) for one in settings)) for name in names]
    more = [f"{len(said) - _MOST_SETTINGS} more"] if len(said) > _MOST_SETTINGS else []
    return ", ".join([*said[:_MOST_SETTINGS], *more])


def _both(name: str, before: str | None, after: str | None) -> str:
    values = ["none" if one is None else shown(one, _MOST_OF_A_SETTING) for one in (before, after)]
    # What variables hold may be credentials.
    if ".env." in f".{name}" or values[0] == values[1]:
        return f"{name} is another one"
    return f"{name} {' and '.join(values)}"


def _differs(name: str, settings: Sequence[Mapping[str, str]]) -> bool:
    return len({one.get(name) for one in settings}) > 1


def _settings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the settings in a part of a spec, as one writes them: `pgbouncer.poolSize`, `25`."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _settings(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and all(isinstance(one, dict) and "name" in one for one in value):
        for one in value:
            rest = {key: part for key, part in one.items() if key != "name"}
            yield from _settings(rest, f"{path}.{shown(one['name'])}")
    elif path:
        yield path, value if isinstance(value, str) and value else json.dumps(value)


def _compare(
    server: str,
    load: str,
    metric: Metric,
    before: Logs,
    after: Logs,
    of: int,
    looks: tuple[Looks, Looks],
    never_right: tuple[bool, bool],
) -> Comparison:
    errors = [look.errors_of([logs]) for look, logs in zip(looks, (before, after), strict=True)]
    failed = [sum(1 for log in logs.values() if math.isinf(log)) for logs in (before, after)]
    known = [
        interval_of(logs, 1 - share) if logs and not lost else None
        for logs, lost, share in zip((before, after), failed, errors, strict=True)
    ]
    # Bonferroni: as with the ranking of one run, all answers hold together.
    share = min(errors) / max(1, of)
    if known[0] is None or known[1] is None:
        change = _change_of_failures((len(before), len(after)), failed, never_right, share)
        return Comparison(
            server, load, metric, known[0], known[1], None, change, failed[0], failed[1]
        )
    by_chance = welch_interval(list(before.values()), list(after.values()), 1 - share)
    ratio = at_least(by_chance, left_open(before, after))
    change = _change(ratio, metric)
    endless = has_no_end(before, after)
    if endless:
        # What has no upper end is never the worse one, nor is it like the other. How much better
        # it is nobody knows.
        worse = {Change.BETTER: before, Change.WORSE: after}.get(change)
        change = Change.NOT_KNOWN if worse is None or has_no_end(worse) else change
        ratio = Interval(value=ratio.value)
    return Comparison(server, load, metric, known[0], known[1], ratio, change, open_ended=endless)


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
