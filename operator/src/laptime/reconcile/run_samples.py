"""What is written of one run for Prometheus, as the run says it. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from laptime.analysis import wording
from laptime.api.images import AND, brought_by_hand
from laptime.api.metrics import Metric
from laptime.api.resources import Resources, quantity
from laptime.api.results import Interval, ObjectiveResult, Outcome, ResultRow, Tie, Validity
from laptime.api.script import CheckResult, ScriptMetric
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionType, RunStatus, ServerStatus, State
from laptime.api.topology import SIZED_TIERS
from laptime.api.usage import Source
from laptime.manifests.objects import Component
from laptime.reconcile.run_families import Samples
from laptime.reconcile.views import Run, parse_time

MOST_ROWS = 500
"""Rows of result tables, over all runs: the newest runs first."""
MOST_CHECKS = 500
"""Checks of scripts in rows, over all runs, the newest runs first."""
MOST_METRICS = 200
"""Metrics of scripts in rows, each of which is up to some thirty series."""
MOST_OBJECTIVES = 500
"""Objectives and thresholds over all runs, the newest runs first."""
MOST_TIES = 200
"""Pairs that a load does not tell apart, over all runs, the newest runs first."""
_DIGEST = re.compile(r"(?:\A|sha\d+:)([0-9a-f]{12})[0-9a-f]+\Z")
"""The bits that a kubelet names, of which so many digits are shown, as container tools do."""
ACTIVE = frozenset(state for state in State if state.active)
_NOT_UNDERSTOOD = (
    "the operator does not understand the spec or the status of this run: kubectl describe br "
    "says what"
)
_UNITS = {"time": "ms", "data": "bytes"}
"""k6's units by what a metric contains."""
_QUANTILES = {"0.5": Metric.P50, "0.9": Metric.P90, "0.99": Metric.P99, "0.999": Metric.P999}


@dataclass(frozen=True)
class RowSamples:
    """What is written of a row of a run's results."""

    own: Samples
    checks: Sequence[Samples] = ()
    metrics: Sequence[Samples] = ()


@dataclass(frozen=True)
class RunSamples:
    """What is written of a run, each part as far as there may be of it, and no more of the run."""

    own: Samples
    rows: Sequence[RowSamples] = ()
    objectives: Sequence[Samples] = ()
    ties: Sequence[Samples] = ()
    servers: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    """Of each server, by its name: its place in the spec, its image, and the digest of that."""
    current: tuple[str, ...] = ()
    """The trials of the moment."""
    active: bool = False
    over: bool = False
    judged: tuple[str, str, Validity] | None = None
    """Of one that is over: when, its scenario, and its worst row."""


def samples_of_run(run: Run) -> RunSamples:
    """Return what is written of a run."""
    status = run.status
    own = Samples()
    _add_run(own, run)
    worst = _worst(status)
    over = status.finished_at if status.finished_at and worst is not None else None
    return RunSamples(
        own,
        rows=[
            _row(run, row, place) for place, row in enumerate((status.results or [])[:MOST_ROWS], 1)
        ],
        objectives=[_objective(run, one) for one in (status.objectives or [])[:MOST_OBJECTIVES]],
        ties=[_tie(run, one) for one in (status.ties or [])[:MOST_TIES]],
        servers=_of_servers(run),
        current=tuple(one for one in (status.current_trial, status.current_beside) if one),
        active=status.state in ACTIVE,
        over=status.state is not None and status.state.terminal,
        judged=(over, run.spec.scenario, worst) if over and worst is not None else None,
    )


def not_understood(key: tuple[str, str], manifest: Mapping[str, Any]) -> RunSamples:
    """Say that there is a run, and why nothing else is said of it: it is counted as others are."""
    spec, status = (manifest.get(part) or {} for part in ("spec", "status"))
    scenario = spec.get("scenario") if isinstance(spec, dict) else ""
    state = status.get("state") if isinstance(status, dict) else None
    known = state if isinstance(state, str) and state in set(State) else State.QUEUED.value
    samples = Samples()
    told = (scenario if isinstance(scenario, str) else "", known)
    samples.add("laptime_run_info", (*key, *told, "", "", "", "", _NOT_UNDERSTOOD), 1.0)
    created = epoch_seconds(manifest["metadata"]["creationTimestamp"])
    samples.add("laptime_run_created_timestamp_seconds", key, created)
    return RunSamples(samples)


def _add_run(samples: Samples, run: Run) -> None:
    status = run.status
    samples.add("laptime_run_info", (*run.key, run.spec.scenario, *_words(run)), 1.0)
    samples.add("laptime_run_created_timestamp_seconds", run.key, run.created.timestamp())
    samples.add("laptime_run_started_timestamp_seconds", run.key, epoch_seconds(status.started_at))
    samples.add(
        "laptime_run_finished_timestamp_seconds", run.key, epoch_seconds(status.finished_at)
    )
    if status.objectives is not None:
        missed = sum(one.outcome is Outcome.MISSED for one in status.objectives)
        samples.add("laptime_run_objectives_missed", run.key, missed)
    if status.isolation is not None:
        over = status.state is not None and status.state.terminal
        why = wording.isolation(status.isolation) if over else ""
        told_of = (*run.key, status.isolation.word.value, why)
        samples.add("laptime_run_isolation", told_of, 1.0)
    for component, name, resources in _limited(run):
        if resources is not None and resources.cpu is not None:
            cores = quantity(resources.cpu)
            labels = (*run.key, component, name, position_of(run.spec, name) if name else "")
            samples.add("laptime_run_cpu_limit_cores", labels, cores)
    progress = status.progress
    if progress is None:
        return
    if progress.total:
        ratio = progress.completed / progress.total
        samples.add("laptime_run_progress_ratio", run.key, ratio)
    samples.add("laptime_run_remaining_seconds", run.key, progress.remaining_seconds)
    if run.spec.verify_only:
        return  # it counts servers
    samples.add("laptime_run_trials", run.key, progress.total)
    samples.add("laptime_run_trials_completed", run.key, progress.completed)
    if status.results:
        # Not by those that failed: of a server with a wrong answer none was ever begun.
        measured = sum(row.trials for row in status.results)
        samples.add("laptime_run_trials_failed", run.key, progress.completed - measured)


def _of_servers(run: Run) -> dict[str, tuple[str, str, str]]:
    """Return place, image and digest of each server."""
    known = {one.name: one for one in run.status.servers or []}
    told = {}
    for server in run.spec.servers:
        one = known.get(server.name)
        image, digest = (one.image or "", _digest(one)) if one is not None else ("", "")
        told[server.name] = (position_of(run.spec, server.name), image, digest)
    return told


def _digest(server: ServerStatus) -> str:
    """Return which bits ran, as far as anybody knows: the beginnings of their digests.

    Two that differ are two images; one that was loaded into its node is of another kind.
    """
    said = wording.listing(
        [
            ("loaded " if brought_by_hand(one) else "") + digest[1]
            for one in (server.image_id or server.image or "").split(AND)
            if (digest := _DIGEST.search(one)) is not None
        ]
    )
    # The one that the node had may be older than the one that others get by this name.
    return f"{said or 'not known'}, its tag may have moved" if server.tag_unknown else said


def _limited(run: Run) -> Iterator[tuple[str, str, Resources | None]]:
    """Yield component, server (or nothing) and resources of each part of a run."""
    for server in run.spec.servers:
        yield Component.SERVER.value, server.name, server.resources
    topology = run.spec.topology
    for component, tier in (
        (Component.POSTGRES, topology.postgres),
        (Component.PGBOUNCER, topology.pgbouncer),
        (Component.HAPROXY, topology.haproxy),
        (Component.UPSTREAM, topology.upstream),
    ):
        if tier is not None:
            yield component.value, "", tier.resources
    for server in run.spec.servers:
        for name in SIZED_TIERS:
            own = run.spec.topology_of(server).tier(name)
            if own is not None and server.topology and server.topology.cpu_of(name):
                yield name, server.name, own.resources


def _words(run: Run) -> tuple[str, ...]:
    """Return state, baseline, fastest, factor, validity and verdict of a run."""
    status = run.status
    state = status.state.value if status.state is not None else "Queued"
    told = (state, status.baseline or "", status.fastest or "")
    # While a run goes on these change with each trial, and each text is a series more.
    if status.state is None or not status.state.terminal:
        return *told, "", "", ""
    worst = _worst(status)
    return *told, _factor(run), worst.value if worst else "", status.verdict or _end(status)


def _factor(run: Run) -> str:
    """Return the factor of the fastest server, with its interval where a row has it.

    The verdict is over all loads that are compared by the same figure: a row's factor is that of
    the run only where its load is the only one of these. Where several are fastest there is none.
    """
    status = run.status
    if status.fastest not in [server.name for server in run.spec.servers]:
        return ""  # an older version wrote that of one of them
    said = status.fastest_factor or ""
    groups: dict[tuple[Metric, str], list[Interval]] = {}
    for row in status.results or []:
        if row.server == status.fastest and row.factor is not None:
            # A load that stops after repetitions of its own is judged alone.
            alone = row.load if run.spec.stop_when is not None else ""
            groups.setdefault((row.compared_by, alone), []).append(row.factor)
    first = next(iter(groups.values()), [])
    # A factor that has one end stands there with it, but for older versions.
    if len(first) == 1 and said in (
        wording.factor_alone(first[0]),
        f"{wording.number(first[0].value)}x",
    ):
        return wording.factor(first[0])
    return said


def _end(status: RunStatus) -> str:
    """Return why a run that is over has no verdict: it ended before there was anything to judge."""
    outcome = status.condition(ConditionType.SUCCEEDED)
    return outcome.message if outcome is not None else ""


def _worst(status: RunStatus) -> Validity | None:
    """Return the validity of the least valid row; None where no row has one."""
    found = {row.validity for row in status.results or [] if row.validity is not None}
    return next((one for one in reversed(Validity) if one in found), None)


def position_of(spec: BenchmarkRunSpec, server: str) -> str:
    """Return the place of a server in the spec, from 1, which is its colour; "0" of a stranger."""
    names = [one.name for one in spec.servers]
    return str(names.index(server) + 1 if server in names else 0)


def _row(run: Run, row: ResultRow, place: int) -> RowSamples:
    position = position_of(run.spec, row.server)
    labels = (*run.key, row.server, row.load, position, str(place))
    own = Samples()
    own.add("laptime_result_trials", labels, row.trials)
    own.add("laptime_result_errors_ratio", labels, row.error_rate)
    own.add("laptime_result_rank", labels, row.rank)
    _add_interval(own, "laptime_result_requests_per_second", labels, row.requests_per_second)
    _add_interval(own, "laptime_result_factor", labels, row.factor)
    _add_latency(own, labels, row)
    if row.usage is not None:
        own.add("laptime_result_cpu_cores", labels, row.usage.cores_mean)
        own.add("laptime_result_memory_bytes", labels, row.usage.memory_bytes)
    over = run.status.state is not None and run.status.state.terminal
    if row.limited_by is not None:
        evidence = row.limited_by.evidence if over else ""
        limited = (*labels, row.limited_by.cause.value, evidence)
        own.add("laptime_result_limited_by", limited, 1.0)
    validity = row.validity.value if row.validity is not None else ""
    doubts = "; ".join(_doubts(row)) if over else ""
    own.add("laptime_result_state", (*labels, row.state.value, validity, doubts), 1.0)
    script, of_row = row.script, labels[:-1]
    if script is None:
        return RowSamples(own)
    for outcome, count in (("ended", script.iterations), ("dropped", script.dropped_iterations)):
        own.add("laptime_result_iterations", (*of_row, outcome), count)
    return RowSamples(
        own,
        [_check(of_row, one) for one in script.checks[:MOST_CHECKS]],
        [_metric(of_row, one) for one in script.metrics[:MOST_METRICS]],
    )


def _check(of_row: tuple[str, ...], check: CheckResult) -> Samples:
    samples = Samples()
    for outcome, count in (("passed", check.passed), ("failed", check.failed)):
        samples.add("laptime_result_check_answers", (*of_row, check.name, outcome), count)
    samples.add("laptime_result_check_rate", (*of_row, check.name), check.rate)
    return samples


def _metric(of_row: tuple[str, ...], metric: ScriptMetric) -> Samples:
    samples = Samples()
    unit = _UNITS.get(metric.contains, "")
    if unit and metric.type == "counter":
        unit += "/s"
    for figure in metric.figures:
        of_figure = (*of_row, metric.name, figure.name, unit)
        _add_interval(samples, "laptime_result_script_value", of_figure, figure.estimate)
        _add_interval(samples, "laptime_result_script_factor", of_figure, figure.factor)
    return samples


def _objective(run: Run, objective: ObjectiveResult) -> Samples:
    over = run.status.state is not None and run.status.state.terminal
    place = position_of(run.spec, objective.server)
    told = (objective.bound, objective.outcome.value, objective.measured if over else "")
    labels = (*run.key, objective.server, objective.load, place, *told)
    samples = Samples()
    samples.add("laptime_result_objective", labels, 1.0)
    return samples


def _tie(run: Run, tie: Tie) -> Samples:
    told = (wording.listing(tie.servers), wording.metric(tie.compared_by), wording.tie(tie))
    samples = Samples()
    samples.add("laptime_result_tie", (*run.key, tie.load, *told), 1.0)
    return samples


def _doubts(row: ResultRow) -> Iterator[str]:
    """Yield why a row is not to be trusted as a whole one is."""
    yield from row.validity_reasons
    if row.usage is not None and row.usage.source is Source.NOBODY:
        yield "nobody watched its pods"
    elif row.usage is not None and row.usage.unwatched:
        yield f"nobody watched its pods in {wording.repetitions(row.usage.unwatched)}"
    if row.failed_trials:
        yield f"{row.failed_trials} failed: {row.message or row.reason or 'no reason is known'}"


def _add_interval(
    samples: Samples, name: str, labels: tuple[str, ...], interval: Interval | None
) -> None:
    if interval is None:
        return
    low, high = interval.low, interval.high
    # Of one that has one end the other is as far away as it can be: a search found no upper one.
    if low is None and high is not None:
        low = 0.0
    elif high is None and low is not None:
        high = math.inf
    samples.add(name, (*labels, "estimate"), interval.value)
    samples.add(name, (*labels, "low"), low)
    samples.add(name, (*labels, "high"), high)


def _add_latency(samples: Samples, labels: tuple[str, ...], row: ResultRow) -> None:
    # As tables and reports have them.
    for quantile, metric in _QUANTILES.items():
        figure = row.response_time(metric)
        if figure is not None:
            # Among the requests without a right answer, which count as slower than all others.
            seconds = figure.seconds or Interval(value=math.inf)
            if seconds.low is None or seconds.high is None:
                seconds = Interval(value=seconds.value)
            name = "laptime_result_latency_seconds"
            _add_interval(samples, name, (*labels, quantile), seconds)


def epoch_seconds(text: str | None) -> float | None:
    """Return a time of a status in seconds since 1970; None: there is none."""
    time = parse_time(text)
    return time.timestamp() if time is not None else None
