"""The figures of runs for Prometheus: progress, trials and results, as the runs say themselves.

Level-triggered: every scrape shows what the newest look found, and nothing of a deleted run.
The number of series is bounded, whatever the runs are: the newest runs are shown and no others.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nlargest
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from laptime.analysis import wording
from laptime.api.attempts import trial_of
from laptime.api.images import AND, brought_by_hand
from laptime.api.metrics import Metric
from laptime.api.resources import Resources, quantity
from laptime.api.results import (
    Interval,
    ObjectiveResult,
    Outcome,
    ResultRow,
    Tie,
    TrialOutcome,
    TrialResult,
    Validity,
)
from laptime.api.script import CheckResult, ScriptMetric
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionType, RunStatus, ServerStatus, State
from laptime.api.topology import SIZED_TIERS
from laptime.api.usage import Source
from laptime.manifests.objects import Component
from laptime.plan import Trial
from laptime.reconcile.exposition import exposition
from laptime.reconcile.queue import Card
from laptime.reconcile.views import NotUnderstood, Run, parse_time, run_view

MOST_RUNS = 50
MOST_ROWS = 500
"""Rows of result tables, over all runs: the newest runs first."""
MOST_TRIALS = 500
"""Trials over all runs, the newest runs first."""

MOST_CHECKS = 500
"""Checks of scripts in rows, over all runs, the newest runs first."""
MOST_METRICS = 200
"""Metrics of scripts in rows, each of which is up to some thirty series."""
MOST_OBJECTIVES = 500
"""Objectives and thresholds over all runs, the newest runs first."""
MOST_TIES = 200
"""Pairs that a load does not tell apart, over all runs, the newest runs first."""

_METADATA = ("name", "namespace", "uid", "creationTimestamp")
"""What is looked at of a run's metadata."""
_LONGEST_TEXT = 2000
"""Characters of a label: no sentence of a run is longer."""
_DIGEST = re.compile(r"(?:\A|sha\d+:)([0-9a-f]{12})[0-9a-f]+\Z")
"""The bits that a kubelet names, of which so many digits are shown, as container tools do."""
_logger = logging.getLogger("laptime")
_ACTIVE = frozenset(state for state in State if state.active)
_AHEAD = 50
"""Trials to come that are shown of a run with too many of them."""

_NOT_UNDERSTOOD = (
    "the operator does not understand the spec or the status of this run: kubectl describe br "
    "says what"
)
_RUN = ("namespace", "run")
_ROW = (*_RUN, "server", "load", "position")
_TABLE = (*_ROW, "place")
"""Of a row in the table of results, and its place there, from 1."""
_TRIAL = (*_RUN, "trial", "server", "load", "repetition", "position")
_UNITS = {"time": "ms", "data": "bytes"}
"""k6's units by what a metric contains."""
_QUANTILES = {"0.5": Metric.P50, "0.9": Metric.P90, "0.99": Metric.P99, "0.999": Metric.P999}


_Rank = tuple[bool, str, tuple[str, str]]
"""Who is measured, then who is newer, is shown before others."""
_Sample = tuple[str, tuple[str, ...], float]


class _Samples(list[_Sample]):
    """Samples of one run: the names of their families, the texts of their labels, their values."""

    def add(self, name: str, labels: Iterable[str], value: float | None) -> None:
        if value is not None:
            self.append((name, tuple(text[:_LONGEST_TEXT] for text in labels), float(value)))


class _Families:
    """Metric families of one scrape, made as they are needed."""

    def __init__(self) -> None:
        self._families: dict[str, GaugeMetricFamily] = {}

    def declare(self, name: str, help_: str, labels: Iterable[str]) -> None:
        self._families[name] = GaugeMetricFamily(name, help_, labels=list(labels))

    def take(self, samples: Iterable[_Sample]) -> None:
        for name, labels, value in samples:
            self._families[name].add_metric(list(labels), value)

    def all(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families.values()


@dataclass(frozen=True)
class _Row:
    """What is written of a row of a run's results."""

    own: _Samples
    checks: Sequence[_Samples] = ()
    metrics: Sequence[_Samples] = ()


@dataclass(frozen=True)
class _Told:
    """What is written of a run, each part as far as there may be of it, and no more of the run."""

    own: _Samples
    rows: Sequence[_Row] = ()
    objectives: Sequence[_Samples] = ()
    ties: Sequence[_Samples] = ()
    servers: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    """Of each server, by its name: its place in the spec, its image, and the digest of that."""
    current: tuple[str, ...] = ()
    """The trials of the moment."""
    active: bool = False
    over: bool = False
    judged: tuple[str, str, Validity] | None = None
    """Of one that is over: when, its scenario, and its worst row."""


@dataclass(frozen=True)
class _Trials:
    """What is known of the trials of one run."""

    plan: tuple[Trial, ...]
    results: Mapping[str, TrialResult]

    def has(self, plan: tuple[Trial, ...], results: Mapping[str, TrialResult]) -> bool:
        """Whether this plan and these very results are known already."""
        return (
            len(results) == len(self.results)
            and all(self.results.get(name) is result for name, result in results.items())
            and plan == self.plan
        )

    @cached_property
    def nodes(self) -> dict[str, set[str]]:
        """The nodes that each server was measured on."""
        found: dict[str, set[str]] = {}
        for one in self.results.values():
            if one.outcome is TrialOutcome.MEASURED:
                found.setdefault(one.server, set()).update(one.nodes.get("server", ()))
        return found

    def around_the_newest(self, most: int) -> tuple[Trial, ...]:
        """Return so many trials of the plan: those that are over last, and some to come."""
        end = min(len(self.plan), max(most, len(self.results) + _AHEAD))
        return self.plan[max(0, end - most) : end]


class _Shown:
    """A run that is shown; it is parsed when it is, and not when it is heard of.

    Until then it is held as text, and afterwards only what is written of it. As objects it can be
    twenty times as large.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        metadata = manifest["metadata"]
        self.key = (str(metadata["namespace"]), str(metadata["name"]))
        status = manifest.get("status")
        state = status.get("state") if isinstance(status, dict) else None
        # Times of the API server are ordered like their texts.
        active = isinstance(state, str) and state in _ACTIVE
        self.rank: _Rank = (active, metadata["creationTimestamp"], self.key)
        named = {name: metadata[name] for name in _METADATA if name in metadata}
        held = {"metadata": named, "spec": manifest.get("spec"), "status": status}
        text = json.dumps(held, ensure_ascii=False, separators=(",", ":"))
        self._held: bytes | _Told = text.encode(errors="surrogatepass")

    @property
    def told(self) -> _Told:
        """What is written of it."""
        held = self._held
        if isinstance(held, bytes):
            held = self._held = self._parsed(json.loads(held))
        return held

    def _parsed(self, manifest: Mapping[str, Any]) -> _Told:
        try:
            return _told(run_view(manifest))
        except NotUnderstood:
            pass
        except Exception:
            # Whatever it is: of all other runs something is to be said.
            _logger.exception("%s/%s: nothing can be said of it", *self.key)
        return _not_understood(self.key, manifest)


class RunFigures(Collector):
    """Holds what was last seen of all runs, and writes it down when it is scraped.

    Scrapes come in a thread of their own, so what is held is replaced and never changed.
    """

    def __init__(self) -> None:
        self._runs: dict[str, _Shown] = {}
        self._trials: dict[str, _Trials] = {}
        self._text: tuple[tuple[object, object], bytes] | None = None

    @property
    def shown(self) -> tuple[tuple[str, str], ...]:
        """Namespaces and names of what is shown: the runs that are measured, then the newest."""
        return tuple(one.key for _, one in self._in_order())

    def _in_order(self) -> list[tuple[str, _Shown]]:
        return sorted(self._runs.items(), key=lambda one: one[1].rank, reverse=True)

    def see(self, manifest: Mapping[str, Any]) -> None:
        """Take in a run, if it is among those that are shown."""
        seen = _Shown(manifest)
        uid = manifest["metadata"]["uid"]
        last = None
        if uid not in self._runs and len(self._runs) >= MOST_RUNS:
            last = min(self._runs, key=lambda other: self._runs[other].rank)
            if seen.rank <= self._runs[last].rank:
                return
        # One of the same name that is not known to be gone yet would double its series.
        runs = {
            other: one
            for other, one in self._runs.items()
            if one.key != seen.key and (other != last)
        }
        runs[uid] = seen
        self._runs = runs
        self._trials = {uid: one for uid, one in self._trials.items() if uid in runs}

    def see_trials(
        self, run: Run, plan: tuple[Trial, ...], results: Mapping[str, TrialResult]
    ) -> None:
        """Replace what is known of the trials of one run: those of its plan, and these results.

        The plan is the run's own, which grows where its results decide how long it is.
        """
        known = self._trials.get(run.uid)
        # This is called at each look, and what did not change is not written down anew.
        if known is None or not known.has(plan, results):
            self._trials = {**self._trials, run.uid: _Trials(plan, dict(results))}

    def forget(self, uid: str) -> None:
        """Drop a run that is gone; an older one has room then."""
        self._runs = {other: run for other, run in self._runs.items() if other != uid}
        self._trials = {other: one for other, one in self._trials.items() if other != uid}

    def left_out(self, cards: Iterable[Card]) -> list[Card]:
        """Return which of all runs there is room for and are not shown, the newest first."""
        room = MOST_RUNS - len(self._runs)
        if room <= 0:
            return []
        others = (card for card in cards if card.uid not in self._runs)
        return nlargest(room, others, key=_rank_of)

    def clear(self) -> None:
        """Drop all runs."""
        self._runs, self._trials = {}, {}

    def text(self) -> bytes:
        """Return all families as Prometheus reads them, written anew only when they changed."""
        shown = (self._runs, self._trials)
        if self._text is None or any(a is not b for a, b in zip(self._text[0], shown, strict=True)):
            self._text = (shown, exposition(self.collect()))
        return self._text[1]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield all families; called for each scrape."""
        families = _declared()
        trials, rows = MOST_TRIALS, MOST_ROWS
        checks, metrics, objectives = MOST_CHECKS, MOST_METRICS, MOST_OBJECTIVES
        ties = MOST_TIES
        every = [(uid, one.key, one.told) for uid, one in self._in_order()]
        active = sum(told.active and uid in self._trials for uid, _, told in every)
        families.take(_doubtful_in_a_row((key, told) for _, key, told in every))
        for uid, key, told in every:
            families.take(told.own)
            for row in told.rows[:rows]:
                families.take(row.own)
                for of_check in row.checks[:checks]:
                    families.take(of_check)
                for of_metric in row.metrics[:metrics]:
                    families.take(of_metric)
                checks -= len(row.checks[:checks])
                metrics -= len(row.metrics[:metrics])
            rows -= len(told.rows[:rows])
            for objective in told.objectives[:objectives]:
                families.take(objective)
            objectives -= len(told.objectives[:objectives])
            for tie in told.ties[:ties]:
                families.take(tie)
            ties -= len(told.ties[:ties])
            known = self._trials.get(uid)
            families.take(_servers(key, told, known))
            if known is not None and told.servers:
                # Each of those that are measured at once has its part of what is left.
                shown = known.around_the_newest(trials // max(1, active))
                trials, active = trials - len(shown), active - 1
                for trial in shown:
                    families.take(_of_trial(key, told, trial, known.results.get(trial.name)))
        yield from families.all()


def _rank_of(card: Card) -> _Rank:
    return card.active, card.created, (card.namespace, card.name)


def _declared() -> _Families:
    families = _Families()
    for name, help_, labels in (
        (
            "laptime_run_info",
            "1 for each run; factor, validity and verdict are empty until the run is over. The "
            "verdict of one that came to no result, or that is not understood, says why.",
            (*_RUN, "scenario", "state", "baseline", "fastest", "factor", "validity", "verdict"),
        ),
        ("laptime_run_created_timestamp_seconds", "When the run was made.", _RUN),
        ("laptime_run_started_timestamp_seconds", "When the run got its turn.", _RUN),
        ("laptime_run_finished_timestamp_seconds", "When the run was over.", _RUN),
        (
            "laptime_run_progress_ratio",
            "Share of the trials that are over; with verifyOnly of the servers that are checked.",
            _RUN,
        ),
        ("laptime_run_trials", "Trials of the run in all.", _RUN),
        ("laptime_run_trials_completed", "Trials of the run that are over.", _RUN),
        ("laptime_run_trials_failed", "Trials that are over and measured nothing.", _RUN),
        ("laptime_run_objectives_missed", "Objectives of the run that were missed.", _RUN),
        ("laptime_run_remaining_seconds", "Estimate of the time left.", _RUN),
        (
            "laptime_run_isolation",
            "1 for whether the run had its nodes for itself: quiet, shared, disturbed or notKnown, "
            "by its worst trial; why is there when the run is over.",
            (*_RUN, "isolation", "why"),
        ),
        (
            "laptime_run_server_info",
            "1 for each server, with its place in the spec from 1, the image that it ran, which "
            "bits that was, and, when the run is over, the nodes that it was measured on.",
            (*_RUN, "server", "position", "image", "digest", "nodes"),
        ),
        ("laptime_run_current_trial", "1 for the trial that is set up or measured now.", _TRIAL),
        (
            "laptime_run_cpu_limit_cores",
            "CPU limit of each pod of a component; none where the spec sets none.",
            (*_RUN, "component", "server", "position"),
        ),
        (
            "laptime_doubtful_runs_in_a_row",
            "How many of the newest runs with results are not valid, until the first that is.",
            ("namespace", "scenario"),
        ),
        ("laptime_trial_info", "1 for each trial that the results so far ask for.", _TRIAL),
        ("laptime_trial_started_timestamp_seconds", "First measured request.", _TRIAL),
        ("laptime_trial_finished_timestamp_seconds", "Last measured response.", _TRIAL),
        (
            "laptime_trial_requests_per_second",
            "Right answers a second in the measured phase of the trial.",
            _TRIAL,
        ),
        (
            "laptime_trial_outcome",
            "1 for the outcome and validity of a trial that is over.",
            (*_TRIAL, "outcome", "validity"),
        ),
        (
            "laptime_trial_seconds_complete",
            "1 when Prometheus had every second of a measured trial at its end, 0 when it lacked "
            "some.",
            _TRIAL,
        ),
        ("laptime_result_trials", "Measured trials behind a row.", _TABLE),
        ("laptime_result_errors_ratio", "Errors divided by requests.", _TABLE),
        ("laptime_result_rank", "Rank under this load; equals share one.", _TABLE),
        (
            "laptime_result_latency_seconds",
            "Percentiles over the repetitions, as the table of results has them, +Inf: failed; "
            "with low and high end of its 95 % interval where it has one.",
            (*_TABLE, "quantile", "bound"),
        ),
        ("laptime_result_cpu_cores", "CPU of the server, mean of the repetitions.", _TABLE),
        ("laptime_result_memory_bytes", "Highest working set of the server.", _TABLE),
        (
            "laptime_result_limited_by",
            "1 for the cause that limited a row; evidence is there when the run is over.",
            (*_TABLE, "cause", "evidence"),
        ),
        (
            "laptime_result_state",
            "1 for the state and validity of a row; doubts are there when the run is over.",
            (*_TABLE, "state", "validity", "doubts"),
        ),
        (
            "laptime_result_objective",
            "1 for each objective and each threshold of a script, with what came of it; what was "
            "measured is there when the run is over.",
            (*_RUN, "server", "load", "position", "bound", "outcome", "measured"),
        ),
        (
            "laptime_result_tie",
            "1 for each two servers that a load of a run that is over does not tell apart, with "
            "what it would cost to do so.",
            (*_RUN, "load", "servers", "compared_by", "cost"),
        ),
        (
            "laptime_result_iterations",
            "Iterations of a script in all repetitions: ended, or dropped for want of a VU.",
            (*_ROW, "outcome"),
        ),
        (
            "laptime_result_check_answers",
            "Answers of a check of a script in all repetitions: passed or failed.",
            (*_ROW, "check", "outcome"),
        ),
        ("laptime_result_check_rate", "Share of its answers that were right.", (*_ROW, "check")),
    ):
        families.declare(name, help_, labels)
    for name, what in (
        (
            "laptime_result_script_value",
            "A figure of a metric of a script, in k6's unit, of a counter each second",
        ),
        ("laptime_result_script_factor", "That figure divided by the baseline's"),
    ):
        help_ = (
            f"{what}, over all repetitions: the estimate, low and high end of its 95 % interval."
        )
        families.declare(name, help_, (*_ROW, "metric", "figure", "unit", "bound"))
    for name, what in (
        ("laptime_result_requests_per_second", "Right answers a second"),
        ("laptime_result_factor", "Throughput, or the compared latency, divided by the baseline's"),
    ):
        help_ = (
            f"{what}, over all repetitions: the estimate, low and high end of its 95 % interval, 0 "
            "or +Inf for one that a search did not find."
        )
        families.declare(name, help_, (*_TABLE, "bound"))
    return families


def _not_understood(key: tuple[str, str], manifest: Mapping[str, Any]) -> _Told:
    """Say that there is a run, and why nothing else is said of it: it is counted as others are."""
    spec, status = (manifest.get(part) or {} for part in ("spec", "status"))
    scenario = spec.get("scenario") if isinstance(spec, dict) else ""
    state = status.get("state") if isinstance(status, dict) else None
    known = state if isinstance(state, str) and state in set(State) else State.QUEUED.value
    samples = _Samples()
    told = (scenario if isinstance(scenario, str) else "", known)
    samples.add("laptime_run_info", (*key, *told, "", "", "", "", _NOT_UNDERSTOOD), 1.0)
    created = _seconds(manifest["metadata"]["creationTimestamp"])
    samples.add("laptime_run_created_timestamp_seconds", key, created)
    return _Told(samples)


def _told(run: Run) -> _Told:
    """Return what is written of a run."""
    status = run.status
    own = _Samples()
    _add_run(own, run)
    worst = _worst(status)
    over = status.finished_at if status.finished_at and worst is not None else None
    return _Told(
        own,
        rows=[
            _row(run, row, place) for place, row in enumerate((status.results or [])[:MOST_ROWS], 1)
        ],
        objectives=[_objective(run, one) for one in (status.objectives or [])[:MOST_OBJECTIVES]],
        ties=[_tie(run, one) for one in (status.ties or [])[:MOST_TIES]],
        servers=_of_servers(run),
        current=tuple(one for one in (status.current_trial, status.current_beside) if one),
        active=status.state in _ACTIVE,
        over=status.state is not None and status.state.terminal,
        judged=(over, run.spec.scenario, worst) if over and worst is not None else None,
    )


def _add_run(samples: _Samples, run: Run) -> None:
    status = run.status
    samples.add("laptime_run_info", (*run.key, run.spec.scenario, *_words(run)), 1.0)
    samples.add("laptime_run_created_timestamp_seconds", run.key, run.created.timestamp())
    samples.add("laptime_run_started_timestamp_seconds", run.key, _seconds(status.started_at))
    samples.add("laptime_run_finished_timestamp_seconds", run.key, _seconds(status.finished_at))
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


def _servers(key: tuple[str, str], told: _Told, trials: _Trials | None) -> _Samples:
    samples = _Samples()
    for server, (place, *image) in told.servers.items():
        # While a run goes on there may be more with each trial, and each text is a series more.
        nodes = trials.nodes.get(server, ()) if trials is not None and told.over else ()
        labels = (*key, server, place, *image, wording.listing(sorted(nodes)))
        samples.add("laptime_run_server_info", labels, 1.0)
    return samples


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


def _doubtful_in_a_row(runs: Iterable[tuple[tuple[str, str], _Told]]) -> _Samples:
    """Return how many of the newest runs that are over are not valid, one by one.

    By namespace and scenario: two namespaces may have scenarios of one name.
    """
    over = [(*told.judged, key[0]) for key, told in runs if told.judged is not None]
    counts: dict[tuple[str, str], int] = {}
    ended: set[tuple[str, str]] = set()
    for _, name, worst, namespace in sorted(over, key=lambda one: one[0], reverse=True):
        scenario = (namespace, name)
        counts.setdefault(scenario, 0)
        if worst is Validity.VALID:
            ended.add(scenario)
        counts[scenario] += scenario not in ended
    samples = _Samples()
    for of_scenario, count in counts.items():
        samples.add("laptime_doubtful_runs_in_a_row", of_scenario, count)
    return samples


def position_of(spec: BenchmarkRunSpec, server: str) -> str:
    """Return the place of a server in the spec, from 1, which is its colour; "0" of a stranger."""
    names = [one.name for one in spec.servers]
    return str(names.index(server) + 1 if server in names else 0)


def _row(run: Run, row: ResultRow, place: int) -> _Row:
    position = position_of(run.spec, row.server)
    labels = (*run.key, row.server, row.load, position, str(place))
    own = _Samples()
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
        return _Row(own)
    for outcome, count in (("ended", script.iterations), ("dropped", script.dropped_iterations)):
        own.add("laptime_result_iterations", (*of_row, outcome), count)
    return _Row(
        own,
        [_check(of_row, one) for one in script.checks[:MOST_CHECKS]],
        [_metric(of_row, one) for one in script.metrics[:MOST_METRICS]],
    )


def _check(of_row: tuple[str, ...], check: CheckResult) -> _Samples:
    samples = _Samples()
    for outcome, count in (("passed", check.passed), ("failed", check.failed)):
        samples.add("laptime_result_check_answers", (*of_row, check.name, outcome), count)
    samples.add("laptime_result_check_rate", (*of_row, check.name), check.rate)
    return samples


def _metric(of_row: tuple[str, ...], metric: ScriptMetric) -> _Samples:
    samples = _Samples()
    unit = _UNITS.get(metric.contains, "")
    if unit and metric.type == "counter":
        unit += "/s"
    for figure in metric.figures:
        of_figure = (*of_row, metric.name, figure.name, unit)
        _add_interval(samples, "laptime_result_script_value", of_figure, figure.estimate)
        _add_interval(samples, "laptime_result_script_factor", of_figure, figure.factor)
    return samples


def _objective(run: Run, objective: ObjectiveResult) -> _Samples:
    over = run.status.state is not None and run.status.state.terminal
    place = position_of(run.spec, objective.server)
    told = (objective.bound, objective.outcome.value, objective.measured if over else "")
    labels = (*run.key, objective.server, objective.load, place, *told)
    samples = _Samples()
    samples.add("laptime_result_objective", labels, 1.0)
    return samples


def _tie(run: Run, tie: Tie) -> _Samples:
    told = (wording.listing(tie.servers), wording.metric(tie.compared_by), wording.tie(tie))
    samples = _Samples()
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
    samples: _Samples, name: str, labels: tuple[str, ...], interval: Interval | None
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


def _add_latency(samples: _Samples, labels: tuple[str, ...], row: ResultRow) -> None:
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


def _of_trial(
    key: tuple[str, str], told: _Told, trial: Trial, result: TrialResult | None
) -> _Samples:
    # Its pods are labelled by the attempt that counts.
    name = result.attempt_name if result is not None else trial.name
    position = told.servers.get(trial.server, ("0",))[0]
    labels = (*key, name, trial.server, trial.load, str(trial.repetition), position)
    samples = _Samples()
    samples.add("laptime_trial_info", labels, 1.0)
    for current in told.current:
        if trial_of(current) == trial.name:
            # As its pods are labelled now.
            samples.add("laptime_run_current_trial", (*key, current, *labels[3:]), 1.0)
    if result is None:
        return samples
    samples.add("laptime_trial_started_timestamp_seconds", labels, _seconds(result.started_at))
    samples.add("laptime_trial_finished_timestamp_seconds", labels, _seconds(result.finished_at))
    outcome = (*labels, result.outcome.value, result.validity.value)
    samples.add("laptime_trial_outcome", outcome, 1.0)
    if result.usage is not None:
        complete = result.seconds_missing is None
        samples.add("laptime_trial_seconds_complete", labels, float(complete))
    if result.figures is not None:
        rate = result.figures.requests_per_second
        samples.add("laptime_trial_requests_per_second", labels, rate)
    return samples


def _seconds(text: str | None) -> float | None:
    time = parse_time(text)
    return time.timestamp() if time is not None else None
