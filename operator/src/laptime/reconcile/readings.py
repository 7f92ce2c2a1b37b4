"""Asking Prometheus about measured trials, beside the reconcile and without holding it up.

With the question goes what it should have: the seconds of the trial, which it fetches from the
operator (docs/decisions/0017-each-second-in-prometheus.md).

Nothing here has to be remembered: what is asked follows from results that have no readings yet,
and Prometheus still has the samples when a new operator asks again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from laptime.api.results import TrialOutcome, TrialReadings, TrialResult
from laptime.measure.each_second import Stored, TrialSeconds, stored, trial_seconds
from laptime.measure.promql import PrometheusError, Query, TrialWindow
from laptime.measure.readings import no_readings, trial_readings
from laptime.measure.timeseries import Window
from laptime.plan.pools import pool_name
from laptime.reconcile.handed_on import HandedOn
from laptime.reconcile.run_samples import position_of
from laptime.reconcile.views import Run, parse_time

_AT_ONCE = 4
# So many times as long as before it takes until seconds of which none has arrived are shown again.
_LESS_OFTEN = 4


@dataclass(frozen=True)
class Patience:
    """How long an answer is waited for, in seconds."""

    settle_seconds: float = 2.2
    """The agent reads and Prometheus scrapes once a second: so long after a result was seen there
    is a sample from behind its window."""
    late_seconds: float = 8.0
    """As long samples that are missing may still be on their way."""
    again_seconds: float = 0.5
    unreachable_seconds: float = 20.0
    """As long a Prometheus that does not answer is asked again: it may just be starting anew."""
    unfetched_seconds: float = 10.0
    """As long somebody may come who fetches the seconds of trials, if nobody does."""
    fetched_seconds: float = 75.0
    """As long the seconds may take where somebody does: one's own Prometheus may scrape slowly."""


_logger = logging.getLogger("laptime")


class ReadingsDesk:
    """The questions of one run to Prometheus: one task for each trial that has no readings."""

    def __init__(
        self,
        query: Query | None,
        wake: Callable[[], None],
        handed_on: HandedOn,
        patience: Patience | None = None,
    ) -> None:
        """Ask by `query` (None: nobody watches) and call `wake` whenever an answer is there.

        `handed_on` is where Prometheus fetches the seconds of trials.
        """
        self._patience = patience or Patience()
        self._handed_on = handed_on
        self._query = query
        self._wake = wake
        self._tasks: dict[str, asyncio.Task[TrialReadings]] = {}
        self._asking = asyncio.Semaphore(_AT_ONCE)

    def look(
        self,
        run: Run,
        results: Iterable[TrialResult],
        stored: set[str],
        payloads: Mapping[str, str],
    ) -> tuple[dict[str, TrialReadings], frozenset[str]]:
        """Return the readings that are here and not stored, and the trials that wait for theirs.

        `payloads` are what the generators of the trials printed, by trial.
        """
        if self._query is None:
            return {}, frozenset()
        ready: dict[str, TrialReadings] = {}
        unread: set[str] = set()
        for result in results:
            if result.outcome is not TrialOutcome.MEASURED or result.trial in stored:
                self._tasks.pop(result.trial, None)
                continue
            task = self._tasks.get(result.trial)
            if task is None:
                payload = payloads.get(result.trial, "")
                task = asyncio.create_task(self._read(self._query, run, result, payload))
                task.add_done_callback(lambda _: self._wake())
                self._tasks[result.trial] = task
            if not task.done():
                unread.add(result.trial)
            elif task.cancelled() or task.exception() is not None:
                why = "it was stopped" if task.cancelled() else repr(task.exception())
                failed = no_readings(result.trial, f"reading failed: {why}")
                # Nobody has looked whether Prometheus has the seconds, which is not that it has.
                ready[result.trial] = failed.model_copy(
                    update={"seconds_missing": "whether Prometheus has them is not known"}
                )
            else:
                ready[result.trial] = task.result()
        return ready, frozenset(unread)

    def forget(self, trials: Iterable[str]) -> None:
        """Forget what was read of trials whose results are gone."""
        for trial in trials:
            task = self._tasks.pop(trial, None)
            if task is not None:
                task.cancel()

    def close(self) -> None:
        """End all questions; they are asked again when somebody looks again."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    async def _read(
        self, query: Query, run: Run, result: TrialResult, payload: str
    ) -> TrialReadings:
        readings, missing = await asyncio.gather(
            self._usage(query, run, result), self._hand_on(query, run, result, payload)
        )
        return readings.model_copy(update={"trial": result.trial, "seconds_missing": missing})

    async def _usage(self, query: Query, run: Run, result: TrialResult) -> TrialReadings:
        begin, last = parse_time(result.started_at), parse_time(result.finished_at)
        if begin is None or last is None or last <= begin:
            return no_readings(result.trial, "the trial has no window of time")
        end = last
        if result.figures is not None:
            # A load of some duration has its throughput of that window; the last answers to it, or
            # the last time-outs, can come long after, when there is nothing left to do.
            end = min(end, begin + timedelta(seconds=result.figures.window_seconds))
        window = Window(begin.timestamp(), end.timestamp())
        wanted = TrialWindow(
            run.namespace,
            run.name,
            run.uid,
            result.attempt_name,
            window,
            until=last.timestamp(),
            server=result.server,
            beside=result.beside,
        )
        server = run.spec.server(result.server)
        pool = pool_name(run.spec, server)
        # Of the pods of somebody else's Service nothing is read, wherever they are.
        nodes = dict(result.nodes)
        if not server.deployed:
            nodes.pop("server", None)
        failing_since: float | None = None
        # What is waited for is counted from here: the times of a trial are those of its nodes.
        clock = asyncio.get_running_loop()
        since = clock.time()
        await asyncio.sleep(self._patience.settle_seconds)
        while True:
            try:
                async with self._asking:
                    readings = await trial_readings(query, wanted, result.server, pool, nodes)
            except PrometheusError as error:
                failing_since = failing_since or clock.time()
                if clock.time() - failing_since >= self._patience.unreachable_seconds:
                    _logger.warning("%s: no readings: %s", result.trial, error)
                    return no_readings(result.trial, f"nothing was read from Prometheus: {error}")
            else:
                if readings.usage.complete or clock.time() - since >= self._patience.late_seconds:
                    return readings
            await asyncio.sleep(self._patience.again_seconds)

    async def _hand_on(
        self, query: Query, run: Run, result: TrialResult, payload: str
    ) -> str | None:
        """Have Prometheus fetch the seconds of a trial; return what it lacks in the end."""
        key = (run.namespace, run.name, result.attempt_name)
        labels = dict(zip(("namespace", "run", "trial"), key, strict=True)) | {
            "server": result.server,
            "load": result.load,
            "repetition": str(result.repetition),
            "position": position_of(run.spec, result.server),
        }
        # In a thread: a long trial has thousands of histograms.
        series = await asyncio.to_thread(trial_seconds, payload, labels)
        if series is None:
            return "the generator's result has no seconds, or is not stored"
        try:
            return await self._until_stored(query, key, series)
        finally:
            self._handed_on.withdraw(key)

    async def _until_stored(
        self, query: Query, key: tuple[str, str, str], series: TrialSeconds
    ) -> str | None:
        patience, clock = self._patience, asyncio.get_running_loop()
        since = answered_at = again_at = clock.time()
        offered = shown = False
        fewest, pause = math.inf, patience.again_seconds
        problem = "nobody has fetched them from the operator (docs/watching.md)"
        while True:
            found = await self._ask(query, series)
            now = clock.time()
            if isinstance(found, PrometheusError):
                if now - answered_at >= patience.unreachable_seconds:
                    return f"nothing was read from Prometheus: {found}"[:500]
            elif found.seconds_missing <= 0:
                return found.problem
            else:
                answered_at = now
                if shown:
                    # Fetched half a second ago at least, and not there: it was lost on its way.
                    problem = found.problem or ""
                if found.seconds_missing < fewest:
                    # Some have arrived since, and more may.
                    fewest, pause, again_at = found.seconds_missing, patience.again_seconds, now
                if not offered:
                    await asyncio.to_thread(self._handed_on.offer, key, series)
                    offered = True
                elif shown and now >= again_at:
                    # What is too old for Prometheus it refuses each time, while others measure.
                    self._handed_on.again(key)
                    again_at, pause = now + pause, _LESS_OFTEN * pause
            read = self._handed_on.read
            if now - since >= (patience.fetched_seconds if read else patience.unfetched_seconds):
                _logger.warning("%s: seconds that are not in Prometheus: %s", key[2], problem)
                return problem
            shown = self._handed_on.was_shown(key)
            await asyncio.sleep(patience.again_seconds)

    async def _ask(self, query: Query, series: TrialSeconds) -> Stored | PrometheusError:
        """Return what Prometheus has of a trial's seconds, or why it does not say."""
        try:
            async with self._asking:
                return await stored(query, series)
        except PrometheusError as error:
            return error
