"""The figures of runs for Prometheus: progress, trials and results, as the runs say themselves.

Level-triggered: every scrape shows what the newest look found, and nothing of a deleted run.
The number of series is bounded, whatever the runs are: the newest runs are shown and no others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from laptime.analysis import wording
from laptime.api.attempts import trial_of
from laptime.api.results import TrialOutcome, TrialResult, Validity
from laptime.plan import Trial
from laptime.reconcile.exposition import exposition
from laptime.reconcile.queue import Card
from laptime.reconcile.run_families import Families, Samples
from laptime.reconcile.run_samples import (
    ACTIVE,
    MOST_CHECKS,
    MOST_METRICS,
    MOST_OBJECTIVES,
    MOST_ROWS,
    MOST_TIES,
    RunSamples,
    epoch_seconds,
    not_understood,
    samples_of_run,
)
from laptime.reconcile.views import NotUnderstood, Run, run_view

MOST_RUNS = 50
MOST_TRIALS = 500
"""Trials over all runs, the newest runs first."""
_METADATA = ("name", "namespace", "uid", "creationTimestamp")
"""What is looked at of a run's metadata."""
_logger = logging.getLogger("laptime")
_AHEAD = 50
"""Trials to come that are shown of a run with too many of them."""
_Rank = tuple[bool, str, tuple[str, str]]
"""Who is measured, then who is newer, is shown before others."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """What is written of a trial."""

    name: str
    attempt_name: str
    """As its pods are labelled: by the attempt that counts."""
    server: str
    load: str
    repetition: int
    outcome: tuple[str, str] | None = None
    """Outcome and validity; None while it is to come."""
    started_at: str | None = None
    finished_at: str | None = None
    seconds_complete: bool | None = None
    requests_per_second: float | None = None

    @staticmethod
    def of(trial: Trial, result: TrialResult | None) -> _Trial:
        planned = (trial.server, trial.load, trial.repetition)
        if result is None:
            return _Trial(trial.name, trial.name, *planned)
        return _Trial(
            trial.name,
            result.attempt_name,
            *planned,
            (result.outcome.value, result.validity.value),
            result.started_at,
            result.finished_at,
            None if result.usage is None else result.seconds_missing is None,
            None if result.figures is None else result.figures.requests_per_second,
        )


@dataclass(frozen=True)
class _Trials:
    """What is written of the trials of one run, and no more of them: it is shown when it is over.

    As they are read, the results of 50 runs would fill the memory many times.
    """

    around: tuple[_Trial, ...]
    """Those of the plan around the newest result, as many as are ever shown."""
    planned: int
    over: int
    nodes: Mapping[str, frozenset[str]]
    """The nodes that each server was measured on."""

    @staticmethod
    def of(plan: Sequence[Trial], results: Mapping[str, TrialResult]) -> _Trials:
        nodes: dict[str, set[str]] = {}
        for one in results.values():
            if one.outcome is TrialOutcome.MEASURED:
                nodes.setdefault(one.server, set()).update(one.nodes.get("server", ()))
        begin, end = _around(len(plan), len(results), MOST_TRIALS)
        return _Trials(
            tuple(_Trial.of(trial, results.get(trial.name)) for trial in plan[begin:end]),
            len(plan),
            len(results),
            {server: frozenset(names) for server, names in nodes.items()},
        )

    def around_the_newest(self, most: int) -> tuple[_Trial, ...]:
        """Return so many trials of the plan: those that are over last, and some to come."""
        first, _ = _around(self.planned, self.over, MOST_TRIALS)
        begin, end = _around(self.planned, self.over, most)
        return self.around[begin - first : end - first]


def _around(planned: int, over: int, most: int) -> tuple[int, int]:
    """Return where in a plan so many trials around the newest one that is over begin and end."""
    end = min(planned, max(most, over + _AHEAD))
    return max(0, end - most), end


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
        active = isinstance(state, str) and state in ACTIVE
        self.rank: _Rank = (active, metadata["creationTimestamp"], self.key)
        named = {name: metadata[name] for name in _METADATA if name in metadata}
        held = {"metadata": named, "spec": manifest.get("spec"), "status": status}
        text = json.dumps(held, ensure_ascii=False, separators=(",", ":"))
        self._held: bytes | RunSamples = text.encode(errors="surrogatepass")

    @property
    def told(self) -> RunSamples:
        """What is written of it."""
        held = self._held
        if isinstance(held, bytes):
            held = self._held = self._parsed(json.loads(held))
        return held

    def _parsed(self, manifest: Mapping[str, Any]) -> RunSamples:
        try:
            return samples_of_run(run_view(manifest))
        except NotUnderstood:
            pass
        except Exception:
            # Whatever it is: of all other runs something is to be said.
            _logger.exception("%s/%s: nothing can be said of it", *self.key)
        return not_understood(self.key, manifest)


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
        seen = _Trials.of(plan, results)
        # This is called at each look, and what did not change is not written down anew.
        if self._trials.get(run.uid) != seen:
            self._trials = {**self._trials, run.uid: seen}

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
        families = Families()
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
                    families.take(_of_trial(key, told, trial))
        yield from families.all()


def _rank_of(card: Card) -> _Rank:
    return card.active, card.created, (card.namespace, card.name)


def _servers(key: tuple[str, str], told: RunSamples, trials: _Trials | None) -> Samples:
    samples = Samples()
    for server, (place, *image) in told.servers.items():
        # While a run goes on there may be more with each trial, and each text is a series more.
        nodes = trials.nodes.get(server, ()) if trials is not None and told.over else ()
        labels = (*key, server, place, *image, wording.listing(sorted(nodes)))
        samples.add("laptime_run_server_info", labels, 1.0)
    return samples


def _doubtful_in_a_row(runs: Iterable[tuple[tuple[str, str], RunSamples]]) -> Samples:
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
    samples = Samples()
    for of_scenario, count in counts.items():
        samples.add("laptime_doubtful_runs_in_a_row", of_scenario, count)
    return samples


def _of_trial(key: tuple[str, str], told: RunSamples, trial: _Trial) -> Samples:
    position = told.servers.get(trial.server, ("0",))[0]
    of_server = (trial.server, trial.load, str(trial.repetition), position)
    labels = (*key, trial.attempt_name, *of_server)
    samples = Samples()
    samples.add("laptime_trial_info", labels, 1.0)
    for current in told.current:
        if trial_of(current) == trial.name:
            # As its pods are labelled now.
            samples.add("laptime_run_current_trial", (*key, current, *of_server), 1.0)
    if trial.outcome is None:
        return samples
    samples.add("laptime_trial_started_timestamp_seconds", labels, epoch_seconds(trial.started_at))
    samples.add(
        "laptime_trial_finished_timestamp_seconds", labels, epoch_seconds(trial.finished_at)
    )
    samples.add("laptime_trial_outcome", (*labels, *trial.outcome), 1.0)
    if trial.seconds_complete is not None:
        samples.add("laptime_trial_seconds_complete", labels, float(trial.seconds_complete))
    if trial.requests_per_second is not None:
        rate = trial.requests_per_second
        samples.add("laptime_trial_requests_per_second", labels, rate)
    return samples
