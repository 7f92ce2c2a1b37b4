"""The work on all runs: one in each lane is measured, the others cost nothing but a card each.

A trigger (a change of the run, of one of its objects, a line in a generator's log, a timer) only
says *look again*. What is done follows from what the API server has shown by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from laptime.api import KIND
from laptime.api.conditions import Verdict
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.kube import Kube, KubeError, Manifest
from laptime.manifests.context import RunContext
from laptime.measure.prometheus_http import PrometheusClient
from laptime.reconcile.abandon import StatusNotInSchema, StatusNotWritten
from laptime.reconcile.cache import Store, Watch
from laptime.reconcile.context import context_of
from laptime.reconcile.decide import asked_again, waiting
from laptime.reconcile.folding import Folding
from laptime.reconcile.history import History
from laptime.reconcile.lifetimes import Lifetimes
from laptime.reconcile.metrics import Metrics
from laptime.reconcile.pauses import pause_for
from laptime.reconcile.queue import NOT_ENABLED, Card, card_of
from laptime.reconcile.settings import Settings
from laptime.reconcile.statuses import PASSED_OVER_SECONDS, StatusDesk, with_verdicts
from laptime.reconcile.turns import CAP_EXCEEDED, Used, cap_exceeded, next_in_turn
from laptime.reconcile.views import NotUnderstood, Run, run_view
from laptime.reconcile.worker import Office, Worker

_WATCH_SECONDS = 60.0
_NOT_ENABLED_SECONDS = 5.0
_NOT_ENABLED_A_SECOND = 2.0
_LOOK_SECONDS = 60.0
_AGAIN_SECONDS = 1.0
# So long nobody tries again to accept a run whose status was refused.
_REFUSED_SECONDS = 30.0
_AT_ONCE = 10
# Several objects change at once; one look is enough for all of them.
_DEBOUNCE_SECONDS = 0.02


class Controller:
    """Knows all runs by one watch, accepts new ones, and gives lanes to one after the other."""

    def __init__(
        self, kube: Kube, settings: Settings, metrics: Metrics, logger: logging.Logger
    ) -> None:
        self._kube = kube
        self._settings = settings
        self.metrics = metrics
        self._logger = logger
        self._prometheus = PrometheusClient(settings.prometheus) if settings.prometheus else None
        self._runs: Store[Card] = Store(self._take, self._changed)
        self._watch = Watch(
            kube,
            self._runs,
            KIND,
            None,
            seconds=_WATCH_SECONDS,
            from_cache=True,
            heard=metrics.event,
        )
        # Those of the runs that something may have to be done with: they are few.
        self._open: dict[str, Card] = {}
        self._used = Used()
        self._ask_again_at = 0.0
        self.statuses = StatusDesk(kube, logger, self._written)
        self._folding = Folding(kube, self.statuses.write)
        self._history = History(kube, settings.history, self._runs.has)
        self._lifetimes = Lifetimes(kube)
        self._states: Counter[State] = Counter()
        self._state_of: dict[str, State] = {}
        # Runs that were looked at once, cancelled or not, and not again until they change.
        self._considered: set[tuple[str, bool]] = set()
        # Until when nobody looks again at those at which looking failed.
        self._not_before: dict[str, float] = {}
        # Until when those have no lane that nobody could write the status of.
        self._passed_over: dict[str, float] = {}
        # By the uids of their runs.
        self._workers: dict[str, Worker] = {}
        self._office = Office(
            kube=kube,
            settings=settings,
            metrics=metrics,
            logger=logger,
            query=self._prometheus.query if self._prometheus else None,
            runs=self._runs,
            statuses=self.statuses,
            works_beside=self._works_beside,
            pass_over=self._pass_over,
        )
        # Uids of runs that are held by somebody's finalizer, and have nothing in the cluster.
        self._taken_down: set[str] = set()
        self._to_accept = 0
        metrics.queue(self._depth)
        # What was known has changed: of whose turn it is, and of what is to be accepted.
        self._turns_changed, self._news = asyncio.Event(), asyncio.Event()
        self._gone = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin."""
        self._tasks = [
            asyncio.create_task(self._watch.run()),
            asyncio.create_task(self._look_after(self._give_turns, self._turns_changed)),
            asyncio.create_task(self._look_after(self._accept_all, self._news)),
            asyncio.create_task(self._look_after(self._show_older, self._gone)),
            asyncio.create_task(self._folding.run()),
            asyncio.create_task(self._history.run()),
            asyncio.create_task(self._lifetimes.run()),
        ]

    async def stop(self) -> None:
        """End all tasks. Nothing is lost: the next process goes on from the API server."""
        tasks = list(self._tasks)
        for worker in self._workers.values():
            worker.close()
            tasks.append(worker.task)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._prometheus is not None:
            await self._prometheus.aclose()

    # What is known of all runs -------------------------------------------------------------

    def _works_beside(self, worker: Worker) -> bool:
        """Return whether a run is worked on beside the one of a worker."""
        return any(one is not worker and not one.task.done() for one in self._workers.values())

    def _written(self, manifest: Manifest) -> None:
        """Take in a run as its status was written."""
        self._passed_over.pop(manifest["metadata"]["uid"], None)
        self._runs.renew(manifest)

    def _take(self, manifest: Manifest) -> Card:
        card = card_of(manifest)
        self.metrics.show(manifest)
        if card.uid in self._workers:
            self._workers[card.uid].see(manifest)
        return card

    def _changed(self, uid: str, card: Card | None) -> None:
        before = self._state_of.pop(uid, None)
        if before is not None:
            self._states[before] -= 1
        self._open.pop(uid, None)
        self._used.see(uid, card, datetime.now(UTC))
        self._folding.see(uid, card)
        self._history.see(uid, card)
        self._lifetimes.see(uid, card)
        if card is None:
            self.metrics.forget(uid)
            self._gone.set()
            self._considered -= {(uid, False), (uid, True)}
            self._taken_down.discard(uid)
            self._not_before.pop(uid, None)
            self._passed_over.pop(uid, None)
            self.statuses.forget(uid)
        else:
            self._state_of[uid] = card.state or State.QUEUED
            self._states[self._state_of[uid]] += 1
            if not card.over or card.asks_again:
                self._open[uid] = card
        if (card is None or card.deleting) and uid in self._workers:
            self._workers[uid].look_anew()
        self.metrics.count(self._states)
        self._look_again()

    async def _show_older(self) -> float:
        """Read the runs anew that there is room to show; return when to look again, in seconds.

        Of one that is over nothing more is heard.
        """
        for card in self.metrics.left_out(self._runs):
            try:
                manifest = await self._kube.get(KIND, card.namespace, card.name)
            except KubeError as error:
                self._logger.warning("%s/%s: %s", card.namespace, card.name, error)
                return _AGAIN_SECONDS
            # What has changed meanwhile, or is gone, is heard of by the watch.
            if manifest is not None and self._runs.has(manifest):
                self.metrics.show(manifest)
        return _LOOK_SECONDS

    # What is done with them ----------------------------------------------------------------

    def _look_again(self) -> None:
        self._turns_changed.set()
        self._news.set()

    async def _look_after(
        self, look: Callable[[], Awaitable[float]], changed: asyncio.Event
    ) -> None:
        """Look at all runs when they have changed, and after so many seconds as `look` returns."""
        while True:
            # Before the first list is whole, nobody knows whose turn it is.
            with suppress(KubeError):
                await self._watch.first()
                break
            await asyncio.sleep(_AGAIN_SECONDS)
        while True:
            changed.clear()
            try:
                due = await look()
            except Exception:
                self._logger.exception("looking after the runs failed")
                due = _AGAIN_SECONDS
            # Not wait_for, which can swallow a cancellation.
            with suppress(TimeoutError):
                async with asyncio.timeout(due):
                    await changed.wait()
            await asyncio.sleep(_DEBOUNCE_SECONDS)

    async def _give_turns(self) -> float:
        """Give free lanes away, which waits for no answer: one may take half a minute."""
        self._give_lanes()
        return _LOOK_SECONDS

    def _give_lanes(self) -> None:
        # Nothing is awaited here: no two runs get the same lane.
        at_work = []
        for one in self._workers.values():
            card = self._open.get(one.uid)
            if not one.task.done():
                at_work.append(one)
            elif one.leaves and card is not None and card.held:
                self._taken_down.add(one.uid)
        self._workers = {one.turn.card.uid: one for one in at_work}
        going_on: dict[str, float] = {}
        for worker in at_work:
            if worker.leaves:
                # Its time is counted with what is known of its run, which is gone.
                continue
            namespace = worker.key[0]
            going_on[namespace] = going_on.get(namespace, 0.0) + worker.seconds
        had = self._used.seconds(datetime.now(UTC), going_on)
        cards = self._in_line()
        while True:
            now = [one.turn for one in self._workers.values()]
            turn = next_in_turn(cards, now, had, self._settings.turns, self._lanes)
            if turn is None:
                return
            worker = Worker(self._office, turn)
            self._workers[turn.card.uid] = worker
            worker.task.add_done_callback(lambda _: self._look_again())

    def _in_line(self) -> list[Card]:
        """Return the runs that may have a lane, as they stand in line for one."""
        cards = []
        for uid, card in self._open.items():
            if uid in self._taken_down:
                continue
            until = self._passed_over.get(uid)
            if until is None:
                cards.append(card)
            elif until <= self._now():
                # It has nothing in the cluster by now, and so comes before nobody.
                cards.append(replace(card, state=State.QUEUED))
        return cards

    def _pass_over(self, worker: Worker) -> None:
        """Give no lane for a while to a run that gives one on without its status being written.

        The time that it had counts, which no status says: with some such runs one namespace would
        else come first for ever.
        """
        if worker.uid in self._state_of:
            self._passed_over[worker.uid] = self._now() + PASSED_OVER_SECONDS
        self._used.add(worker.key[0], worker.seconds, datetime.now(UTC))

    def _lanes(self, card: Card) -> Sequence[str]:
        """Return the lanes that a run may have; one that has begun stays where it was."""
        if card.lane is not None or card.started:
            return (card.lane,) if card.lane is not None else ()
        return self._settings.placements.lanes_of(card.wish, card.namespace)

    async def _accept_all(self) -> float:
        """Look once at each run that waits; return when to look again, in seconds."""
        # Of one whose turn it is nobody need say that it waits.
        self._give_lanes()
        again = _LOOK_SECONDS
        new: list[Card] = []
        for card in self._open.values():
            settled = card.refused is None and not card.news and not card.newer
            if card.uid in self._workers or card.deleting or settled:
                continue
            if (left := self._not_before.get(card.uid, 0.0) - self._now()) > 0:
                again = min(again, left)
                continue
            considered = (card.uid, card.cancel) in self._considered
            if card.refused == NOT_ENABLED and not card.newer:
                again = min(again, _NOT_ENABLED_SECONDS)
            elif (card.refused is not None or card.newer) and considered:
                continue
            new.append(card)
        # One look in each namespace tells whether it is enabled by now, however much goes on.
        closed = {card.namespace for card in new if card.refused == NOT_ENABLED}
        gate = asyncio.Semaphore(_AT_ONCE)
        opened = await self._opened(closed, gate)
        # One that is cancelled before it began needs no namespace; one that is new there is told
        # what the others were told.
        todo = [
            card
            for card in new
            if card.ends or card.refused != NOT_ENABLED or card.namespace in opened
        ]
        self._to_accept = len(todo)
        failed: list[str] = []

        async def one(card: Card) -> None:
            async with gate:
                self._to_accept -= 1
                try:
                    await self._accept(card)
                    self._considered.add((card.uid, card.cancel))
                except KubeError as error:
                    nonlocal again
                    # One that was changed in this moment is a usual thing, but not for minutes.
                    usual = error.conflict and card.uid not in self._passed_over
                    if isinstance(error, StatusNotWritten) and error.counts and not usual:
                        self._not_before[card.uid] = self._now() + _REFUSED_SECONDS
                        again = min(again, _REFUSED_SECONDS)
                    elif error.conflict:
                        again = _AGAIN_SECONDS
                    else:
                        failed.append(card.uid)
                    self._logger.warning("%s/%s: %s", card.namespace, card.name, error)
                    if isinstance(error, StatusNotInSchema):
                        await self.statuses.say_not_in_schema(card, error)
                except Exception:
                    # The others are accepted all the same, and it is not tried at each change.
                    self._not_before[card.uid] = self._now() + _LOOK_SECONDS
                    self._logger.exception("%s/%s: unexpected error", card.namespace, card.name)

        await asyncio.gather(*(one(card) for card in todo))
        if failed:
            # Nobody answers, or a webhook does not, however many ask.
            pause = pause_for(len(failed))
            still = [uid for uid in failed if uid in self._state_of]
            self._not_before.update(dict.fromkeys(still, self._now() + pause))
            again = min(again, pause)
        return again

    async def _opened(self, closed: set[str], gate: asyncio.Semaphore) -> set[str]:
        """Return which of the namespaces that were not enabled are by now.

        They are asked about every few seconds, and less often where there are hundreds of them.
        """
        now = self._now()
        if not closed or now < self._ask_again_at:
            return set()
        every = max(_NOT_ENABLED_SECONDS, len(closed) / _NOT_ENABLED_A_SECOND)
        self._ask_again_at = now + every

        async def opened(namespace: str) -> bool:
            async with gate:
                try:
                    return await self._may_work_in(namespace)
                except KubeError as error:
                    self._logger.warning("namespace %s: %s", namespace, error)
                    return False

        names = sorted(closed)
        answers = await asyncio.gather(*map(opened, names))
        return {name for name, answer in zip(names, answers, strict=True) if answer}

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _depth(self) -> int:
        """Return how many runs wait to be reconciled."""
        return self._to_accept + sum(worker.woken for worker in self._workers.values())

    async def _accept(self, card: Card) -> None:
        """Say of a run whether it is accepted and waits, or why not."""
        if card.newer:
            await self.statuses.leave_alone(card)
            return
        manifest = await self._kube.get(KIND, card.namespace, card.name)
        if manifest is None or manifest["metadata"]["uid"] != card.uid:
            return
        card = card_of(manifest)
        if card.uid in self._workers or (card.over and not card.asks_again):
            # It had its turn meanwhile.
            return
        now = datetime.now(UTC)
        try:
            run = run_view(manifest)
        except NotUnderstood as error:
            # The API server accepted it by another version's schema, or it was written by hand.
            await self.statuses.refuse(manifest, error.reason, str(error))
            return
        context = context_of(run, self._settings)
        if card.ends:
            await self.statuses.say(run, waiting(run, context, now), now)
            return
        if not await self._may_work_in(card.namespace):
            await self.statuses.refuse(
                manifest, NOT_ENABLED, self._settings.how_to_enable(card.namespace)
            )
            return
        if card.uid in self._workers:
            return
        refusal = None if run.begun else self._refusal(run, context)
        if refusal is not None:
            await self.statuses.refuse(manifest, *refusal)
        elif card.asks_again:
            await self.statuses.say(run, asked_again(run, now), now)
        elif run.status.state is None or run.status.state.waiting:
            await self.statuses.say(run, waiting(run, context, now), now)
        else:
            # It was refused in its middle, and goes on when it has its turn again.
            good = Verdict(ConditionType.ACCEPTED, ConditionStatus.TRUE, "Accepted", "goes on")
            await self.statuses.say(
                run, with_verdicts(run.status, run.generation, now, [good], "queued"), now
            )

    def _refusal(self, run: Run, context: RunContext) -> tuple[str, str] | None:
        """Return why a run may not begin as it is: CamelCase reason and message; None: it may."""
        exceeded = cap_exceeded(run.spec, run.namespace, self._settings.turns)
        if exceeded is not None:
            return CAP_EXCEEDED, exceeded
        return context.placement_problem

    async def _may_work_in(self, namespace: str) -> bool:
        try:
            async for _ in self._kube.pages("Pod", namespace, "laptime.dev/run-uid=nobody"):
                pass
        except KubeError as error:
            if error.forbidden:
                return False
            raise
        return True
