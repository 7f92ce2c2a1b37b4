"""The work on the run whose turn it is: look, decide, say, do, again and again until it is over."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from laptime.analysis.remembered import forget
from laptime.api import KIND
from laptime.api.status import RunStatus
from laptime.kube import Kube, KubeError, Manifest
from laptime.manifests.context import RunContext
from laptime.measure.promql import Query
from laptime.reconcile.abandon import StatusNotInSchema, StatusNotWritten, abandoned, deployed
from laptime.reconcile.actions import Apply, Decision, Resize
from laptime.reconcile.cache import Store, version_of
from laptime.reconcile.children import Children, Watches, kinds_of_run
from laptime.reconcile.context import context_of
from laptime.reconcile.decide import decide
from laptime.reconcile.execute import NameTaken, NotResized, execute
from laptime.reconcile.generator_logs import LogDesk
from laptime.reconcile.irrevocable import grave, stored_result
from laptime.reconcile.kubelets import Kubelets
from laptime.reconcile.metrics import Metrics
from laptime.reconcile.observe import Memory, observe
from laptime.reconcile.queue import NOT_ENABLED, Card, card_of
from laptime.reconcile.readings import ReadingsDesk
from laptime.reconcile.scenarios import Found, ScenarioDesk
from laptime.reconcile.settings import Settings
from laptime.reconcile.sightings import AtWork
from laptime.reconcile.statuses import StatusDesk
from laptime.reconcile.targets import TargetDesk
from laptime.reconcile.turns import CAP_EXCEEDED, Turn, cap_exceeded
from laptime.reconcile.views import (
    STUCK_SECONDS,
    NotUnderstood,
    Observed,
    Refusal,
    ResizeRefused,
    Run,
    run_view,
)

# The last one short enough to say within 30 s what the API server refuses for startupTimeout / 2.
_RETRY_SECONDS = (0.2, 1.0, 2.0, 5.0, 10.0)
# So often an error that nobody expected may happen, one time after the other.
_TRIES = 3
# Several objects change at once; one look is enough for all of them.
_DEBOUNCE_SECONDS = 0.02
_AFTER_ACTIONS_SECONDS = 0.05
_GOING_SECONDS = 1.0
_PROGRESS_SECONDS = 5.0
"""How far a run is, is written no more often than this, unless something else has changed."""
_ERRORS_PASS_SECONDS = 300.0
# So long an object of an earlier run of the same name may take to go.
_PASSING_SECONDS = 20.0
# So long rights may be missed in the middle of a run until they count as taken away.
_FORBIDDEN_SECONDS = 120.0
# So long a status may not be written until the lane is given on without it.
_UNWRITTEN_SECONDS = 300.0


@dataclass
class _Unwritten:
    """Since when a status cannot be written, and why."""

    since: float
    error: StatusNotWritten


@dataclass(frozen=True)
class Office:
    """What every worker works with, and whom it tells and asks about the others."""

    kube: Kube
    settings: Settings
    metrics: Metrics
    logger: logging.Logger
    query: Query | None
    """How Prometheus is asked; None when there is none."""
    runs: Store[Card]
    """All runs, as they were heard of."""
    statuses: StatusDesk
    works_beside: Callable[[Worker], bool]
    """Whether a run is worked on beside the one of a worker."""
    pass_over: Callable[[Worker], None]
    """Called when a run gives its lane on without its status being written."""


class Worker:
    """The task of a run that has its turn, with what it remembers only to be quicker."""

    def __init__(self, office: Office, turn: Turn) -> None:
        """Begin to work on a run."""
        card = turn.card
        self.turn = turn
        self.uid = card.uid
        self.key = (card.namespace, card.name)
        self._began = time.monotonic()
        self._office = office
        self._kube = office.kube
        self._event = asyncio.Event()
        self._manifest: Manifest | None = None
        self._run: tuple[int, Run] | None = None
        self._refusal: Refusal | None = None
        self._refused_at = 0.0
        self._resize_refused: ResizeRefused | None = None
        self._applied: tuple[Apply, ...] = ()
        self._said_at = 0.0
        self._at_work = AtWork()
        self._leaves_since: float | None = None
        self._cleared = False
        self._forbidden_since: float | None = None
        self._unwritten: _Unwritten | None = None
        self._aside = False
        kinds = kinds_of_run(policies=office.settings.network is not None)
        self._children = Children(card.uid, self.wake, kinds)
        self._watches = Watches(self._kube, card.namespace, self._children)
        self._memory = Memory(
            self._children,
            ReadingsDesk(office.query, self.wake, office.metrics.handed_on),
            Kubelets(self._kube, self.wake),
        )
        extensions = office.settings.extensions
        self._scenario = ScenarioDesk(self._kube, self._children, extensions, self.wake)
        self._targets = TargetDesk(self._kube, card.namespace, self.wake)
        self._logs = LogDesk(self._kube, card.namespace, self._memory.logs, self.wake)
        self.task = asyncio.create_task(self._work())

    @property
    def seconds(self) -> float:
        """For how long this process has worked on it, without a gap."""
        # What was before is in the run's status by then.
        return time.monotonic() - (self._at_work.since or self._began)

    @property
    def leaves(self) -> bool:
        """Whether its run is deleted or taken down, and it waits for the pods to end."""
        return self._leaves_since is not None and not self._aside

    @property
    def woken(self) -> bool:
        """Whether something has happened that was not looked at yet."""
        return self._event.is_set()

    def wake(self) -> None:
        """Have the run looked at soon."""
        self._event.set()

    def look_anew(self) -> None:
        """Have the run looked at as the API server has it."""
        self._manifest = None
        self.wake()

    def see(self, manifest: Manifest) -> None:
        """Take in a newer version of the run."""
        if self._manifest is None or version_of(manifest) > version_of(self._manifest):
            self._manifest = manifest
            self.wake()

    def close(self) -> None:
        """End the watches, all that follow logs, and the questions to Prometheus.

        What was computed of its trials is kept no longer, unless another run goes on: that would
        compute it once more, in the middle of its trials.
        """
        if not self._office.works_beside(self):
            forget()
        self._memory.desk.close()
        self._memory.kubelets.close()
        self._watches.close()
        self._targets.close()
        self._scenario.close()
        self._logs.close()

    async def _work(self) -> None:
        """Look at the run whenever it is woken or due, until it is over."""
        failures = unexpected = 0
        office = self._office
        try:
            while True:
                self._event.clear()
                due: float | None
                try:
                    with office.metrics.reconcile():
                        due = await self._look()
                    failures = unexpected = 0
                    self._unwritten = None
                    if due is None:
                        return
                except KubeError as error:
                    due = _RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)]
                    failures += 1
                    await self._note(error)
                    if error.conflict or self._unwritten:
                        # What was heard of the run is not what there is, or there is nobody to
                        # write to: then it cannot be read either.
                        self._manifest = None
                    office.metrics.error(error.label)
                    if not (error.terminating or error.not_found):
                        office.logger.warning("%s/%s: %s; again in %g s", *self.key, error, due)
                    # What will be refused again, and is no object of the run: its status.
                    unexpected += error.refused and not error.forbidden and self._refusal is None
                    await self._give_up(error, unexpected - len(_RETRY_SECONDS))
                except Exception as error:
                    due = _RETRY_SECONDS[min(unexpected, len(_RETRY_SECONDS) - 1)]
                    unexpected += 1
                    office.metrics.error(type(error).__name__)
                    office.logger.exception("%s/%s: unexpected error", *self.key)
                    await self._give_up(error, unexpected - _TRIES)
                if await self._steps_aside():
                    due = 0.0
                # Not wait_for, which can swallow a cancellation.
                with suppress(TimeoutError):
                    async with asyncio.timeout(due):
                        await self._event.wait()
                await asyncio.sleep(_DEBOUNCE_SECONDS)
        finally:
            self.close()

    async def _look(self) -> float | None:
        """Do what the run needs next; return when to look again, in seconds, None: never.

        Raises:
            KubeError: something could not be read or done; look again a little later.
        """
        if self._aside:
            # No status says so, and yet whoever has the lane next must not share it.
            due = await self._take_down()
            if due is None:
                self._office.pass_over(self)
            return due
        manifest = await self._current()
        if manifest is None:
            return self._until_gone()
        if "deletionTimestamp" in manifest["metadata"]:
            # While a finalizer holds it, nobody else takes down what it has in the cluster.
            return await self._take_down()
        card = card_of(manifest)
        try:
            run = self._parsed(manifest)
        except NotUnderstood as error:
            # What it has in the cluster must go before anybody else has the lane.
            if error.of_status and card.active:
                raise
            if card.active and (due := await self._take_down()) is not None:
                return due
            # The API server accepted it by another version's schema, or it was written by hand.
            await self._refuse(manifest, error.reason, str(error))
            return None
        self._cleared, self._leaves_since = False, None
        if card.over or card.rests:
            return None
        if card.started and card.lane != self.turn.lane:
            # It got its turn by an older state of the run, whose lane is another one.
            return None
        try:
            await self._watches.first()
            found = await self._scenario.find(run)
            # What is kept can be anybody's until the status says that the run has begun with it.
            certain = found.kept and run.status.scenario_hash is not None
            if not certain and (exceeded := self._over_caps(run, found)):
                await self._refuse(manifest, CAP_EXCEEDED, exceeded)
                return None
            context = context_of(run, self._office.settings, found.scenario, self.turn.lane)
            if context.placement_problem is not None and not run.begun:
                await self._refuse(manifest, *context.placement_problem)
                return None
            observed, decision, now = await self._decide(run, context, found)
        except KubeError as error:
            if not error.forbidden or (card.active and self._may_be_allowed_again()):
                raise
            namespace = self.key[0]
            message = self._office.settings.how_to_enable(namespace)
            await self._refuse(manifest, NOT_ENABLED, message)
            return None
        self._forbidden_since = None
        self._office.metrics.trials(run, decision.trials, observed.results)
        if self._worth_saying(run.status, decision.status):
            await self._office.statuses.say(run, decision.status, now)
            self._said_at = time.monotonic()
        await self._execute(run, context, decision, now)
        state = decision.status.state
        gives_lane_back = state is not None and not state.active
        return None if gives_lane_back else self._again(decision)

    async def _refuse(self, manifest: Manifest, reason: str, message: str) -> None:
        await self._office.statuses.refuse(manifest, reason, message, self.seconds)

    def _may_be_allowed_again(self) -> bool:
        """Whether rights that are missed may come back, so that the lane stays where it is.

        Whoever had it meanwhile would be measured beside what this run has in the cluster. An API
        server that was just started knows no RoleBinding yet, and one of which somebody changes the
        role is deleted and made again.
        """
        now = time.monotonic()
        self._forbidden_since = self._forbidden_since or now
        return now - self._forbidden_since < _FORBIDDEN_SECONDS

    async def _take_down(self) -> float | None:
        """Take down what the run has; return when to look again, None: nothing works any more."""
        self._leaves_since = self._leaves_since or time.monotonic()
        self._cleared = self._cleared or await self._clear()
        return self._until_gone(known=self._cleared)

    def _until_gone(self, *, known: bool = True) -> float | None:
        """Return when to look again at a run that leaves; None: no pod of it works any more.

        Who has its lane next would share the nodes with them. A pod whose node is gone never ends.
        `known` says whether all of its pods are.
        """
        now = time.monotonic()
        self._leaves_since = self._leaves_since or now
        phases = [one.get("status", {}).get("phase") for one in self._children.of("Pod")]
        working = not known or any(phase not in ("Succeeded", "Failed") for phase in phases)
        return _GOING_SECONDS if working and now - self._leaves_since < STUCK_SECONDS else None

    def _over_caps(self, run: Run, found: Found) -> str | None:
        """Return which cap a run exceeds that has begun with no scenario yet.

        Nobody knew of the services of one before.
        Without services it was asked when it was accepted, unless the caps have changed.
        """
        services = found.scenario.services
        if run.begun and not services:
            return None
        turns = self._office.settings.turns
        return cap_exceeded(run.spec, run.namespace, turns, services)

    def _again(self, decision: Decision) -> float:
        sized = any(isinstance(one, Resize) for one in decision.actions)
        # What a quota refuses is asked for again, and not all the time; nor what came to nothing,
        # since a webhook takes it back.
        applied = tuple(one for one in decision.actions if isinstance(one, Apply))
        in_vain = applied == self._applied and len(applied) == len(decision.actions)
        self._applied = applied
        if decision.actions and not (in_vain or (sized and self._resize_refused)):
            return _AFTER_ACTIONS_SECONDS
        return decision.requeue_seconds or _AFTER_ACTIONS_SECONDS

    async def _current(self) -> Manifest | None:
        """Return the run as it was heard of last; None when it is gone.

        What is read here the controller may not have heard of, while its watch is out: by what it
        knows it would give the lane to this run again and again, and to nobody else.
        """
        if self._manifest is not None:
            return self._manifest
        found = await self._kube.get(KIND, *self.key)
        if found is None or found["metadata"]["uid"] != self.uid:
            self._office.runs.remove(self.uid)
            return None
        self._manifest = found
        self._office.runs.renew(found)
        return found

    def _parsed(self, manifest: Manifest) -> Run:
        version = version_of(manifest)
        if self._run is None or self._run[0] != version:
            self._run = (version, run_view(manifest))
        return self._run[1]

    async def _decide(
        self, run: Run, context: RunContext, found: Found
    ) -> tuple[Observed, Decision, datetime]:
        """Decide; what cannot be taken back only on what was read in this very moment."""
        fresh, pods_fresh = False, False
        while True:
            now = datetime.now(UTC)
            observed = await observe(self._kube, run, context, self._memory, now)
            self._logs.follow(observed)
            observed = replace(
                observed,
                targets=await self._targets.look(run),
                refusal=self._refused(now),
                resize_refused=self._resize_refused,
                at_work_seconds=self._at_work.look(time.monotonic(), time.time()),
                scenario_kept=found.kept,
                scenario_problem=found.problem,
                scenario_looked_at=found.looked_at,
            )
            decision = decide(run, observed, context, now)
            if fresh:
                break
            if grave(run, decision):
                await asyncio.gather(self._watches.refresh(), self._targets.refresh())
                fresh = True
            elif not pods_fresh and any(map(stored_result, decision.actions)):
                # A figure is only as good as the pods that it was measured on.
                await self._watches.refresh("Pod")
                pods_fresh = True
            else:
                break
        return observed, decision, now

    def _refused(self, now: datetime) -> Refusal | None:
        """Return what cannot be done, and since when: as long ago as no clock that is set says."""
        if self._refusal is None:
            return None
        lasts = timedelta(seconds=time.monotonic() - self._refused_at)
        return replace(self._refusal, since=now - lasts)

    def _worth_saying(self, old: RunStatus, new: RunStatus) -> bool:
        """Whether somebody waits for what has changed; how far it is can wait a few seconds."""
        if old == new:
            return False
        before = (old.progress.completed, old.progress.total) if old.progress else None
        after = (new.progress.completed, new.progress.total) if new.progress else None
        quiet = {"progress": None}
        if before != after or old.model_copy(update=quiet) != new.model_copy(update=quiet):
            return True
        return time.monotonic() - self._said_at >= _PROGRESS_SECONDS

    async def _execute(
        self, run: Run, context: RunContext, decision: Decision, now: datetime
    ) -> None:
        if self._refusal is None:
            self._refused_at = time.monotonic()
        try:
            created = await execute(self._kube, run, context, decision.actions, self._children)
        except NotResized as error:
            self._resize_refused = error.refused
            # What comes before it is done: nothing of that is refused any more.
            self._refusal = None
            self._office.logger.warning("%s/%s: %s", *self.key, error)
            return
        except NameTaken as taken:
            patience = _PASSING_SECONDS if taken.passing else 0.0
            self._refusal = Refusal(str(taken), now, "NameTaken", patience)
            self._office.logger.warning("%s/%s: %s", *self.key, taken)
            return
        except KubeError as error:
            # One that is away would else be taken for one that refuses, when it is back.
            there = error.refused or await self._answers()
            if error.status and there:
                # What it refuses, it refuses again; its own errors may pass.
                wait = None if error.refused else _ERRORS_PASS_SECONDS
                message = f"the API server refuses {error.message}"
                room = error.out_of_room
                self._refusal = Refusal(message, now, patience_seconds=wait, room=room)
            elif error.timed_out and there:
                message = (
                    "the API server does not say in time whether it does what is asked of it "
                    f"({error.message}), and answers other questions: so it is where an admission "
                    "webhook does not answer. Look at the cluster's webhook configurations, at "
                    "what they lead to, and at their timeoutSeconds"
                )
                self._refusal = Refusal(message, now, patience_seconds=_ERRORS_PASS_SECONDS)
            raise
        self._refusal = None
        if any(isinstance(one, Resize) for one in decision.actions):
            self._resize_refused = None
        self._memory.keep(created, context)
        self._office.metrics.carried_out(decision.actions)

    async def _answers(self) -> bool:
        """Return whether the API server answers a question.

        If not, nobody knows of what it refused before whether it does so when it is back.
        """
        try:
            await self._kube.get(KIND, *self.key)
        except KubeError:
            self._refusal = None
            return False
        return True

    # The last resort -----------------------------------------------------------------------

    async def _give_up(self, error: Exception, too_many: int) -> None:
        """End a run that nobody can go on with, once it was tried often enough."""
        if too_many < 0:
            return
        try:
            manifest = await self._kube.get(KIND, *self.key)
            if manifest is None or manifest["metadata"]["uid"] != self.uid:
                return
            if card_of(manifest).over:
                return
            await self._clear()
            status = abandoned(manifest, error, datetime.now(UTC))
            await self._office.statuses.write(manifest["metadata"], status)
        except Exception as failed:
            # It is tried again, like everything else.
            self._office.logger.exception("%s/%s: cannot be given up yet", *self.key)
            await self._note(failed)

    async def _note(self, error: Exception) -> None:
        """Take in why a look has failed, or the end of the run could not be said."""
        if isinstance(error, StatusNotWritten) and not error.counts:
            # Nothing at all may be stored just now, and what was refused as well as the end of the
            # run for it. When there is room again it is tried once more before.
            self._refusal = None
        if not (isinstance(error, StatusNotWritten) and error.counts):
            self._unwritten = None
        elif self._unwritten is None:
            self._unwritten = _Unwritten(time.monotonic(), error)
            if isinstance(error, StatusNotInSchema):
                await self._office.statuses.say_not_in_schema(self.turn.card, error)
        else:
            self._unwritten.error = error

    async def _steps_aside(self) -> bool:
        """Return whether the run gives its lane on, since its status cannot be written for long.

        Its author can bring that about, by an object as large as can be stored or by a change in
        each moment, and so can a policy that nobody thought through.
        """
        unwritten = self._unwritten
        if unwritten is None or time.monotonic() - unwritten.since < _UNWRITTEN_SECONDS:
            return False
        self._aside = True
        self._office.metrics.error("StatusNotWritten")
        said = "%s/%s: gives its lane on, since its status cannot be written: %s"
        self._office.logger.error(said, *self.key, unwritten.error)
        await self._office.statuses.say_unwritten(self.turn.card, unwritten.error)
        return True

    async def _clear(self) -> bool:
        """Delete what the run has deployed; return whether all was asked for that may be.

        Where the rights are gone, nobody can know what it has.
        """
        try:
            await self._watches.refresh()
        except KubeError as error:
            self._office.logger.warning("%s/%s: cannot be cleaned up: %s", *self.key, error)
            return error.forbidden
        cleared = True
        for action in deployed(self._children):
            child = self._children.find(action.kind, action.name)
            try:
                if child is not None:
                    await self._kube.delete(action.kind, self.key[0], child.name, child.uid)
            except KubeError as error:
                # One that may not be deleted keeps no other.
                self._office.logger.warning("%s/%s: cannot be cleaned up: %s", *self.key, error)
                cleared = False
        return cleared
