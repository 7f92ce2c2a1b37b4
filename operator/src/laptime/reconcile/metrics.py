"""What the operator says of itself to Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from laptime.manifests.context import COMPONENT_LABEL, Component
from laptime.manifests.result import read_result
from laptime.reconcile.actions import Action, Create
from laptime.reconcile.run_metrics import RunFigures
from laptime.reconcile.views import Run, parse_time

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
        self._reconcile_seconds = Histogram(
            "laptime_reconcile_seconds",
            "Time of one look at one run.",
            buckets=_RECONCILE_BUCKETS,
            registry=self.registry,
        )
        self._errors = Counter(
            "laptime_reconcile_errors",
            "Looks at a run that failed, by reason.",
            ["reason"],
            registry=self.registry,
        )
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
            self.count({})

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return generate_latest(self.registry) + self._figures.text()

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

    def trials(self, run: Run, results: Mapping[str, TrialResult]) -> None:
        """Set the stored results of the trials of a run."""
        self._figures.see_trials(run, results)

    def forget(self, uid: str) -> None:
        """Say nothing more of a run that is gone."""
        self._figures.forget(uid)

    def request(self, method: str, code: int) -> None:
        """Count a request to the API server."""
        self._requests.labels(method, str(code)).inc()

    def error(self, reason: str) -> None:
        """Count a look at a run that failed."""
        self._errors.labels(reason).inc()

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
        """Time one look at a run."""
        with self._reconcile_seconds.time():
            yield
