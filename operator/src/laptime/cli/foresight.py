"""What a run would find, by the noise of the runs that its namespace has measured already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laptime.cli.mistakes import Mistake
from laptime.cli.stored_results import Stored, stored_results

if TYPE_CHECKING:
    from laptime.analysis.foreseen import Deviations
    from laptime.api.metrics import Metric
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.cli.cluster_access import Cluster

_MOST_RUNS = 5
"""Runs whose noise is taken: the newest tell most of the machine as it is."""
_LOOKED_AT = 30
"""Of so many at most: a namespace may have thousands, of other work."""
_MORE = (2, 4)
"""Times as many repetitions, for what more of them would find."""


@dataclass(frozen=True)
class _Earlier:
    """What an earlier run says of noise."""

    name: str
    same_work: bool
    noise: Deviations


def what_it_would_find(
    cluster: Cluster, namespace: str, name: str, spec: BenchmarkRunSpec
) -> list[str]:
    """Return how small a difference a run would find, and what more repetitions would, in lines.

    By the noise of the newest runs of its scenario and placement in the namespace, else of others.
    Empty where there is nothing to compare.
    """
    from laptime.analysis import foreseen

    if foreseen.found_from(0.0, spec, 2) is None or spec.verify_only:
        return []
    earlier = list(_earlier(cluster, namespace, spec))
    known = [one for one in earlier if one.same_work] or earlier
    noise = foreseen.together(one.noise for one in known)
    lines = []
    for metric in foreseen.asked_metrics(spec):
        if metric in noise:
            of = [one for one in known if metric in one.noise]
            whose = _of_whom(of, noise[metric])
            lines.append(f"{whose}, {_found(name, spec, metric, noise[metric])}.")
        else:
            lines.append(
                f"How small a difference in {_word(metric)} it would find is not known: no earlier "
                f"run in namespace {namespace} compares servers by that in several repetitions."
            )
    return lines


def _of_whom(known: list[_Earlier], deviation: float) -> str:
    from laptime.analysis import wording

    other = "" if known[0].same_work else ", of other work or in another placement"
    names = wording.listing([one.name for one in known])
    return f"By the noise of {names} ({wording.share(deviation)} between repetitions{other})"


def _found(name: str, spec: BenchmarkRunSpec, metric: Metric, deviation: float) -> str:
    from laptime.analysis import foreseen, wording
    from laptime.api.durations import format_duration
    from laptime.api.spec import MAX_REPETITIONS

    first = max(2, spec.most_repetitions)
    said = f"repetitions find differences in {_word(metric)} four times of five"
    found: list[str] = []
    for count in (first, *(first * by for by in _MORE if first * by <= MAX_REPETITIONS)):
        share = foreseen.found_from(deviation, spec, count)
        assert share is not None
        lasts = format_duration(_seconds(name, spec, count))
        found.append(f"{count} {said} from {wording.share(share)} on (about {lasts})")
        said = "do"
    return ", ".join(found)


def _word(metric: Metric) -> str:
    if metric.is_latency:
        return f"{metric} response times"
    return "throughput"


def _seconds(name: str, spec: BenchmarkRunSpec, repetitions: int) -> float:
    from laptime.plan import plan_trials, remaining_seconds

    fixed = {"repetitions": repetitions, "precision": None, "stop_when": None}
    asked = spec.model_copy(update={**fixed, "max_repetitions": None})
    return remaining_seconds(asked, plan_trials(name, asked, seed=0), {})


def _earlier(cluster: Cluster, namespace: str, spec: BenchmarkRunSpec) -> Iterator[_Earlier]:
    """Yield the newest runs that say something, until enough of them did the same work."""
    from laptime.analysis.foreseen import deviations

    alike = others = 0
    for found in cluster.newest_runs(namespace, _LOOKED_AT):
        run = cluster.run(namespace, found)
        if run is None or not run.over or run.spec is None:
            continue
        same = (run.spec.scenario, run.spec.placement) == (spec.scenario, spec.placement)
        if not same and others >= _MOST_RUNS:
            continue
        try:
            stored: Stored = stored_results(cluster, run)
        except Mistake:
            continue  # gone, or of a version that is not known
        noise = deviations(stored.report.spec, stored.report.trials)
        if not noise:
            continue
        alike, others = alike + same, others + (not same)
        yield _Earlier(found, same, noise)
        if alike >= _MOST_RUNS:
            return
