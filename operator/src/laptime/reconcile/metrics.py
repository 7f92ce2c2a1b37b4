"""What the operator says of itself to Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.status import State
from laptime.manifests.objects import COMPONENT_LABEL, Component
from laptime.manifests.result import read_result
from laptime.plan import Trial
from laptime.reconcile.actions import Action, Create
from laptime.reconcile.exposition import CONTENT_TYPE
from laptime.reconcile.handed_on import HandedOn
from laptime.reconcile.queue import Card
from laptime.reconcile.run_metrics import RunFigures
from laptime.reconcile.views import Run, parse_time

SECONDS_PATH = "/seconds"
"""Where the seconds of trials are fetched; at all other paths are the metrics."""
CONTROLLER = "benchmarkrun"
"""Whose reconciles and queue they are: other operators have metrics of these names."""
_RECONCILE_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_TRIAL_BUCKETS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


class Metrics:
    """All metrics of one operator process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing counted; `clock` gives seconds."""
        self._clock = clock
        self.registry = CollectorRegistry()
        # CPU and memory of the operator itself: what it costs is part of what can be asked.
        ProcessCollector(registry=self.registry)
        self._runs = Gauge(
            "laptime_runs", "Runs in the cluster, by state.", ["state"], registry=self.registry
        )
        self._trials = Counter(
            "laptime_trials",
            "Trials whose result was stored, by outcome.",
            ["outcome"],
            registry=self.registry,
        )
        self._trial_seconds = Histogram(
            "laptime_trial_seconds",
            "Length of the measured phase of trials.",
            buckets=_TRIAL_BUCKETS,
            registry=self.registry,
        )
        # The names under which every operator made with controller-runtime has them.
        reconciles = Counter(
            "controller_runtime_reconcile",
            "Reconciles of a run, by result.",
            ["controller", "result"],
            registry=self.registry,
        )
        self._succeeded = reconciles.labels(CONTROLLER, "success")
        self._failed = reconciles.labels(CONTROLLER, "error")
        self._errors = Counter(
            "controller_runtime_reconcile_errors",
            "Reconciles of a run that failed; each is tried again.",
            ["controller"],
            registry=self.registry,
        ).labels(CONTROLLER)
        self._reconcile_seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Time of one reconcile of a run.",
            ["controller"],
            buckets=_RECONCILE_BUCKETS,
            registry=self.registry,
        ).labels(CONTROLLER)
        self._reasons = Counter(
            "laptime_reconcile_errors",
            "Reconciles of a run that failed, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self._depth = Gauge(
            "workqueue_depth",
            "Runs that something happened to and that are not reconciled since.",
            ["name"],
            registry=self.registry,
        ).labels(CONTROLLER)
        self._requests = Counter(
            "laptime_api_requests",
            "Requests to the API server, by method and status code (0: it was not reached).",
            ["method", "code"],
            registry=self.registry,
        )
        self._leading = True
        self._leader = Gauge(
            "laptime_leader",
            "1 for the operator that is at work, 0 for one that stands by.",
            registry=self.registry,
        )
        self._leader.set(1)
        age = Gauge(
            "laptime_last_event_age_seconds",
            "Time since anything was heard of any run; a watch that froze makes it grow.",
            registry=self.registry,
        )
        self._figures = RunFigures()
        self.handed_on = HandedOn()
        """The seconds of trials, at a path of their own."""
        self._last_event = self._clock()
        age.set_function(lambda: clock() - self._last_event if self._leading else 0.0)
        for state in State:
            self._runs.labels(state.value).set(0)
        for outcome in TrialOutcome:
            self._trials.labels(outcome.value)

    def leads(self, leading: bool) -> None:
        """Note whether this operator is the one at work; a standby says nothing of any run."""
        self._leading = leading
        self._leader.set(leading)
        self._last_event = self._clock()
        if not leading:
            self._figures.clear()
            self.handed_on.clear()
            self.count({})

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return generate_latest(self.registry) + self._figures.text()

    def answer(self, path: str, reader: str, accept: str) -> tuple[str, bytes]:
        """Return content type and body for a GET of a reader that takes certain formats."""
        if path == SECONDS_PATH:
            return self.handed_on.answer(reader, accept)
        return CONTENT_TYPE, self.text()

    def event(self) -> None:
        """Note that something was heard of a run."""
        self._last_event = self._clock()

    def count(self, states: Mapping[State, int]) -> None:
        """Set how many runs there are in each state (queued without one)."""
        for state in State:
            self._runs.labels(state.value).set(states.get(state, 0))

    def show(self, manifest: Mapping[str, Any]) -> None:
        """Take in a run as the API server has it, for its figures."""
        self._figures.see(manifest)

    def left_out(self, cards: Iterable[Card]) -> list[Card]:
        """Return which of all runs there is room to show, and are not shown: the newest first."""
        return self._figures.left_out(cards)

    def trials(self, run: Run, plan: tuple[Trial, ...], results: Mapping[str, TrialResult]) -> None:
        """Set the trials that a run needs and the stored results of those that are over."""
        self._figures.see_trials(run, plan, results)

    def forget(self, uid: str) -> None:
        """Say nothing more of a run that is gone."""
        self._figures.forget(uid)

    def request(self, method: str, code: int) -> None:
        """Count a request to the API server."""
        self._requests.labels(method, str(code)).inc()

    def error(self, reason: str) -> None:
        """Say why a reconcile failed."""
        self._reasons.labels(reason).inc()

    def queue(self, depth: Callable[[], int]) -> None:
        """Have the number of runs that wait to be reconciled read at each scrape."""
        self._depth.set_function(depth)

    def carried_out(self, actions: Sequence[Action]) -> None:
        """Count the trials whose results were stored."""
        for action in actions:
            if not isinstance(action, Create) or action.manifest["kind"] != "ConfigMap":
                continue
            labels = action.manifest["metadata"]["labels"]
            if (
                labels.get(COMPONENT_LABEL) != Component.RESULT
                or "immutable" not in action.manifest
            ):
                continue
            result, _ = read_result(action.manifest)
            self._trials.labels(result.outcome.value).inc()
            begin, end = parse_time(result.started_at), parse_time(result.finished_at)
            if begin is not None and end is not None:
                self._trial_seconds.observe((end - begin).total_seconds())

    @contextmanager
    def reconcile(self) -> Iterator[None]:
        """Count and time one reconcile of a run."""
        try:
            with self._reconcile_seconds.time():
                yield
        except Exception:
            self._failed.inc()
            self._errors.inc()
            raise
        self._succeeded.inc()
