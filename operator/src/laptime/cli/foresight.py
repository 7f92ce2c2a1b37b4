"""What a run would find, by the noise of the runs that its namespace has measured already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laptime.cli.mistakes import Mistake, NewerVersion, Unreachable
from laptime.cli.stored_results import stored_results

if TYPE_CHECKING:
    from laptime.analysis.foreseen import Deviations
    from laptime.api.metrics import Metric
    from laptime.api.results import TrialLength
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.catalog import Scenario
    from laptime.cli.cluster_access import Cluster

_MOST_RUNS = 5
"""Runs whose noise is taken: the newest tell most of the machine as it is."""
_LOOKED_AT = 30
"""Of so many at most: a namespace may have thousands, of other work."""


@dataclass(frozen=True)
class _Earlier:
    """What an earlier run says of noise."""

    name: str
    same_work: bool
    noise: Deviations
    spec: BenchmarkRunSpec
    lengths: Sequence[TrialLength]


@dataclass
class _Found:
    """What was found of earlier runs, the newest first."""

    runs: list[_Earlier] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """Why the results of some could not be read."""

    def of(self, metric: Metric) -> list[_Earlier]:
        """Return those that compare servers by a figure: of the same work, else of other work."""
        known = [one for one in self.runs if metric in one.noise]
        return ([one for one in known if one.same_work] or known)[:_MOST_RUNS]


def what_it_would_find(
    cluster: Cluster,
    namespace: str,
    name: str,
    spec: BenchmarkRunSpec,
    own: Scenario | None = None,
) -> list[str]:
    """Return how small a difference a run would find, and what more repetitions would, in lines.

    By the noise of the newest runs of its scenario and placement in the namespace, else of others.
    Empty where there is nothing to compare.

    Raises:
        Mistake: the API server does not list the runs, or not to this user.
    """
    from laptime.analysis import foreseen, wording

    if foreseen.found_from(0.0, spec, 2) is None or spec.verify_only:
        return []
    lines = []
    metrics = foreseen.asked_metrics(spec)
    found = _earlier(cluster, namespace, spec) if metrics else _Found()
    for metric in metrics:
        known = found.of(metric)
        if known:
            deviation = foreseen.together(one.noise for one in known)[metric]
            said = _said(name, spec, metric, deviation, own)
            lines.append(f"{_of_whom(known, deviation)}, {said}.")
            continue
        why = f" Results that could not be read: {found.unread[0]}" if found.unread else ""
        lines.append(
            f"How small a difference in {_word(metric)} it would find is not known yet: that is "
            f"reckoned from an earlier run of two servers or more, in two repetitions or more, and "
            f"namespace {namespace} has none among its newest {_LOOKED_AT}.{why}"
        )
    lines += _lengths(found, spec)
    others = [one.name for one in spec.loads if not foreseen.can_be_foreseen(one)]
    if others:
        lines.append(f"Of {wording.listing(others)} nothing is said: a search, or a script.")
    return lines


def _lengths(found: _Found, spec: BenchmarkRunSpec) -> Iterator[str]:
    """Yield of each load what the newest run that had it says of the length of trials.

    Of the same work and size. Nothing of a load whose response times are asked for this time.
    """
    from laptime.analysis import wording
    from laptime.analysis.length import loads_judged_by_response_times

    judged = loads_judged_by_response_times(spec)
    alike = [one for one in found.runs if one.same_work and _size(one.spec) == _size(spec)]
    for load in spec.loads:
        run = next((one for one in alike if load in one.spec.loads), None)
        if run is None or load.name in judged:
            continue
        for one in run.lengths:
            if one.load == load.name:
                yield f"By {run.name}, under {load.name}: {wording.trial_length(one)}."


def _size(spec: BenchmarkRunSpec) -> tuple[int, int, bool]:
    """Return how many servers are compared, in how many repetitions, and whether results decide."""
    servers = sum(one.name != spec.control_name for one in spec.servers)
    return servers, spec.repetitions, spec.by_results


def _of_whom(known: Sequence[_Earlier], deviation: float) -> str:
    from laptime.analysis import wording

    other = "" if known[0].same_work else ", of other work, pairing or placement"
    names = wording.listing([one.name for one in known])
    return f"By the noise of {names} ({wording.share(deviation)} between repetitions{other})"


def _said(
    name: str, spec: BenchmarkRunSpec, metric: Metric, deviation: float, own: Scenario | None
) -> str:
    from laptime.analysis import foreseen, wording
    from laptime.api.durations import format_duration

    said = f"repetitions find differences in {_word(metric)} four times of five"
    found: list[str] = []
    for count in _counts(spec):
        share = foreseen.found_from(deviation, spec, count)
        if share is None:
            found.append(f"1 repetition finds no difference in {_word(metric)}")
            said = said.partition(" in ")[0] + " four times of five"
            continue
        lasts = format_duration(_seconds(name, spec, count, own))
        found.append(f"{count} {said} from {wording.share(share)} on (about {lasts})")
        said = "do"
    return ", ".join(found)


def _counts(spec: BenchmarkRunSpec) -> list[int]:
    """Return of how many repetitions it is said: those of the run, and more, as far as allowed."""
    from laptime.api.spec import MAX_REPETITIONS, MAX_TRIALS

    if spec.by_results:
        wanted = [spec.first_look, spec.most_repetitions]
    elif spec.repetitions == 1:
        wanted = [1, 3, 6]
    else:
        wanted = [spec.repetitions * times for times in (1, 2, 4)]
    most = min(MAX_REPETITIONS, MAX_TRIALS // (len(spec.servers) * len(spec.loads)))
    return [one for one in dict.fromkeys(wanted) if one <= max(most, wanted[0])]


def _word(metric: Metric) -> str:
    if metric.is_latency:
        return f"{metric} response times"
    return "throughput"


def _seconds(name: str, spec: BenchmarkRunSpec, repetitions: int, own: Scenario | None) -> float:
    from laptime.catalog import UNKNOWN
    from laptime.plan import plan_profiles, plan_trials, profiling_seconds, remaining_seconds

    fixed = {"repetitions": repetitions, "precision": None, "stop_when": None}
    asked = spec.model_copy(update={**fixed, "max_repetitions": None})
    profiling = profiling_seconds(asked, plan_profiles(name, asked))
    trials = plan_trials(name, asked, seed=0)
    return remaining_seconds(asked, trials, {}, own or UNKNOWN) + profiling


def _earlier(cluster: Cluster, namespace: str, spec: BenchmarkRunSpec) -> _Found:
    """Return the newest runs that say something, until enough of them did the same work."""
    from laptime.analysis.foreseen import deviations

    found = _Found()
    for name in cluster.newest_runs(namespace, _LOOKED_AT):
        try:
            run = cluster.run(namespace, name)
        except NewerVersion:
            continue
        if run is None or run.spec is None or not run.over:
            continue
        if run.status.results_config_map is None:
            continue
        same = (run.spec.scenario, run.spec.placement, run.spec.duet) == (
            spec.scenario,
            spec.placement,
            spec.duet,
        )
        others = sum(not one.same_work for one in found.runs)
        if not same and others >= _MOST_RUNS:
            continue
        try:
            stored = stored_results(cluster, run)
        except Unreachable:
            raise
        except Mistake as mistake:
            found.unread.append(str(mistake))
            continue
        report = stored.report
        noise = deviations(report.spec, report.trials)
        if noise:
            lengths = report.summary.trial_lengths
            found.runs.append(_Earlier(name, same, noise, report.spec, lengths))
        if sum(one.same_work for one in found.runs) >= _MOST_RUNS:
            break
    return found
