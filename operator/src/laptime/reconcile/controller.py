"""The reconcile of all runs: every trigger ends here, and all do the same.

A trigger (a change of a run, of one of its pods, a line in a generator's log, a timer) only says
*look again*. What is done follows from what the API server shows at that moment.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pydantic

from laptime.api import API_VERSION, KIND
from laptime.api.conditions import Verdict, merge_conditions
from laptime.api.status import ConditionStatus, ConditionType, RunStatus, State
from laptime.catalog import scenarios
from laptime.kube import Kube, KubeError
from laptime.manifests.context import RunContext
from laptime.measure.generator import RESULT_PREFIX
from laptime.measure.prometheus_http import http_query
from laptime.reconcile.abandon import abandoned, deployed
from laptime.reconcile.children import KINDS, METADATA_ONLY, Children
from laptime.reconcile.decide import decide
from laptime.reconcile.events import event_manifest, transitions
from laptime.reconcile.execute import NameTaken, execute
from laptime.reconcile.metrics import Metrics
from laptime.reconcile.observe import GENERATOR_CONTAINER, ResultCache, observe
from laptime.reconcile.queue import turn_of
from laptime.reconcile.readings import ReadingsDesk
from laptime.reconcile.views import Refusal, Run, format_time, pod_view, run_view
from laptime.settings import Settings

# The last one short enough to say within 30 s what the API server refuses for startupTimeout / 2.
_RETRY_SECONDS = (0.2, 1.0, 2.0, 5.0, 10.0)
# So often an error that nobody expected may happen, one time after the other.
_TRIES = 3
_NOT_ENABLED_SECONDS = 5.0
# Several objects change at once; one look is enough for all of them.
_DEBOUNCE_SECONDS = 0.02
_RESYNC_SECONDS = 60.0
_WATCH_SECONDS = 240.0
_ERRORS_PASS_SECONDS = 300.0
# So long an object of an earlier run of the same name may take to go.
_PASSING_SECONDS = 20.0


class Controller:
    """Reconciles every run, each in a task of its own."""

    def __init__(
        self, kube: Kube, settings: Settings, metrics: Metrics, logger: logging.Logger
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._metrics = metrics
        self._logger = logger
        self._http = httpx.AsyncClient()
        self.query = (
            http_query(self._http, settings.prometheus_url) if settings.prometheus_url else None
        )
        """How Prometheus is asked; None when there is none."""
        # By the uid of their run: a run of the same name is another run.
        self._workers: dict[str, _Worker] = {}
        # Turns are given under this lock: two runs must not both find the lane free.
        self._turns = asyncio.Lock()
        self._resync: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin the periodic look at all runs, which catches what a lost event would have told."""
        self._resync = asyncio.create_task(self._look_at_all())

    async def stop(self) -> None:
        """End all tasks. Nothing is lost: the next process goes on from the API server."""
        tasks = [self._resync, *(worker.task for worker in self._workers.values())]
        for worker in self._workers.values():
            worker.close()
        for task in tasks:
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        await self._http.aclose()
        await self._kube.close()

    def wake(self, namespace: str, name: str, uid: str) -> None:
        """Have a look at a run soon: something was heard of it."""
        self._metrics.event()
        worker = self._workers.get(uid)
        if worker is None or worker.task.done():
            worker = _Worker((namespace, name), uid, self)
            self._workers[uid] = worker
        worker.wake()

    def forget(self, namespace: str, name: str, uid: str) -> None:
        """End the work on a run that is gone, and let the next one have its turn."""
        self._metrics.forget(namespace, name)
        worker = self._workers.pop(uid, None)
        if worker is not None:
            worker.close()
            worker.task.cancel()
        self.wake_all()

    def wake_all(self) -> None:
        """Have a look at every run soon: a turn may be free."""
        for worker in self._workers.values():
            worker.wake()

    async def _look_at_all(self) -> None:
        while True:
            try:
                async for page in self._kube.pages(KIND, None, metadata_only=True):
                    for metadata in (one["metadata"] for one in page.items):
                        self.wake(metadata["namespace"], metadata["name"], metadata["uid"])
            except Exception as error:
                # Whatever a connection throws: the next look may succeed.
                self._logger.warning("cannot list runs: %r", error)
            await asyncio.sleep(_RESYNC_SECONDS)

    async def reconcile(self, worker: _Worker) -> float | None:
        """Look at one run and do what it needs next; return when to look again, in seconds.

        Raises:
            KubeError: something could not be read or done; look again a little later.
        """
        namespace, name = worker.key
        manifest = await self._kube.get(KIND, namespace, name)
        if manifest is None or manifest["metadata"]["uid"] != worker.uid:
            self.forget(namespace, name, worker.uid)
            return None
        now = _now()
        try:
            run = run_view(manifest)
        except pydantic.ValidationError as error:
            # The API server accepted it by another version's schema.
            await self._refuse(manifest, "SpecNotUnderstood", str(error), now)
            return None
        context = RunContext(
            name=run.name,
            namespace=run.namespace,
            uid=run.uid,
            spec=run.spec,
            scenario=scenarios()[run.spec.scenario],
            images=self._settings.images,
            cluster_domain=self._settings.cluster_domain,
        )
        if run.deleting:
            return None
        terminal = run.status.state is not None and run.status.state.terminal
        worker.watch(active=run.status.state is not None and run.status.state.active)
        try:
            children = await self._children(run.uid, namespace)
            observed = await observe(
                self._kube, run, context, worker.cache, worker.printed, worker.desk, children
            )
        except KubeError as error:
            if not error.forbidden or terminal:
                raise
            await self._refuse(manifest, "NamespaceNotEnabled", self._how_to_enable(namespace), now)
            return _NOT_ENABLED_SECONDS
        async with self._turns:
            runs = await self._runs()
            self._metrics.runs(runs)
            run = next((one for one in runs if one.key == run.key and one.uid == run.uid), run)
            self._metrics.trials(run, observed.results)
            observed = replace(observed, refusal=worker.refusal)
            decision = decide(run, observed, turn_of(run, runs), context, now)
            await self._say(run, decision.status, now)
        # In an extra step, so that a slow API server holds up this run alone.
        try:
            await execute(self._kube, run, context, decision.actions, children)
        except NameTaken as taken:
            patience = _PASSING_SECONDS if taken.passing else 0.0
            since = worker.refusal.since if worker.refusal else now
            worker.refusal = Refusal(str(taken), since, "NameTaken", patience)
            return _RETRY_SECONDS[0]
        except KubeError as error:
            if error.status:
                since = worker.refusal.since if worker.refusal else now
                # What it refuses, it refuses again; its own errors may pass.
                wait = None if error.refused else _ERRORS_PASS_SECONDS
                message = f"the API server refuses {error.message}"
                worker.refusal = Refusal(message, since, patience_seconds=wait)
            raise
        worker.refusal = None
        self._metrics.carried_out(decision.actions)
        if decision.status.state is not None and decision.status.state.terminal and not terminal:
            self.wake_all()
        return 0.05 if decision.actions and not terminal else decision.requeue_seconds

    async def _runs(self) -> list[Run]:
        found: list[Run] = []
        async for page in self._kube.pages(KIND, None):
            for manifest in page.items:
                with suppress(pydantic.ValidationError):
                    found.append(run_view(manifest))
        return found

    async def _children(self, uid: str, namespace: str) -> Children:
        children = Children(uid)

        async def read(kind: str) -> None:
            slim = kind in METADATA_ONLY
            async for page in self._kube.pages(
                kind, namespace, children.selector, metadata_only=slim
            ):
                for one in page.items:
                    children.stores[kind].put(one)

        await asyncio.gather(*(read(kind) for kind in KINDS))
        return children

    async def _say(self, run: Run, status: RunStatus, now: datetime) -> None:
        if status == run.status:
            return
        # With the uid: a run of the same name never gets this one's status.
        await self._write_status(
            {"name": run.name, "namespace": run.namespace, "uid": run.uid}, status
        )
        for type_, reason, message in transitions(run, status):
            self._logger.info("%s/%s: %s: %s", run.namespace, run.name, reason, message)
            event = event_manifest(run, type_, reason, message, now, secrets.token_hex(8))
            try:
                await self._kube.create(event)
            except KubeError as error:
                # An event is a courtesy; the condition says the same and stays.
                self._logger.warning("cannot write an event: %s", error)

    async def _refuse(
        self, manifest: dict[str, Any], reason: str, message: str, now: datetime
    ) -> None:
        """Say `Accepted=False` of a run that cannot even be looked at."""
        metadata = manifest["metadata"]
        old = RunStatus.model_validate(manifest.get("status") or {})
        verdict = Verdict(ConditionType.ACCEPTED, ConditionStatus.FALSE, reason, message)
        generation = metadata.get("generation", 1)
        status = old.model_copy(
            update={
                "state": old.state or State.QUEUED,
                "observed_generation": generation,
                "conditions": merge_conditions(
                    old.conditions or [], [verdict], generation, format_time(now)
                ),
            }
        )
        if status != old:
            self._logger.warning(
                "%s/%s: %s: %s", metadata["namespace"], metadata["name"], reason, message
            )
            await self._write_status(metadata, status)

    def _how_to_enable(self, namespace: str) -> str:
        return (
            f"the operator may not work in namespace {namespace}. Its administrator allows it "
            f"with: kubectl create rolebinding laptime -n {namespace} "
            f"--clusterrole={self._settings.runs_role} "
            f"--serviceaccount={self._settings.service_account}"
        )

    # What the workers need -----------------------------------------------------------------

    async def watch_pods(self, worker: _Worker) -> None:
        """Wake the worker whenever a pod of its run changes; follow its generators' logs."""
        namespace, _ = worker.key
        selector = Children(worker.uid).selector
        async for _, manifest in self._kube.watch(
            "Pod", namespace, selector, since="", seconds=_WATCH_SECONDS
        ):
            worker.wake()
            if "name" not in manifest["metadata"]:
                continue
            pod = pod_view(manifest)
            if pod.component == "generator" and any(
                container.name == GENERATOR_CONTAINER and container.running
                for container in pod.containers
            ):
                worker.follow(pod.name)

    async def follow_generator(self, worker: _Worker, pod: str) -> None:
        """Wake the worker in the moment in which a generator prints its result.

        The kubelet reports the end of a container about a second later.
        """
        namespace, _ = worker.key
        async for line in self._kube.follow_log(namespace, pod, GENERATOR_CONTAINER):
            if line.startswith(RESULT_PREFIX):
                worker.printed.add(pod)
                worker.wake()
                return

    async def work(self, worker: _Worker) -> None:
        """Reconcile a run again and again, whenever it is woken or due."""
        failures = unexpected = 0
        while True:
            worker.clear()
            due: float | None
            try:
                with self._metrics.reconcile():
                    due = await self.reconcile(worker)
                failures = unexpected = 0
            except KubeError as error:
                due = _RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)]
                failures += 1
                self._metrics.error(error.reason)
                if not (error.terminating or error.not_found):
                    self._logger.warning("%s/%s: %s; again in %g s", *worker.key, error, due)
                # What the API server will refuse again, and is no object of the run: its status.
                unexpected += error.refused and not error.forbidden and worker.refusal is None
                await self._give_up(worker, error, unexpected - len(_RETRY_SECONDS))
            except Exception as error:
                self._metrics.error(type(error).__name__)
                due = _RETRY_SECONDS[min(unexpected, len(_RETRY_SECONDS) - 1)]
                unexpected += 1
                self._logger.exception("%s/%s: unexpected error", *worker.key)
                await self._give_up(worker, error, unexpected - _TRIES)
            await worker.wait(due)
            await asyncio.sleep(_DEBOUNCE_SECONDS)

    async def _give_up(self, worker: _Worker, error: Exception, too_many: int) -> None:
        """End a run that nobody can go on with, once it was tried often enough."""
        if too_many < 0:
            return
        try:
            namespace, name = worker.key
            manifest = await self._kube.get(KIND, namespace, name)
            if manifest is None or manifest["metadata"]["uid"] != worker.uid:
                return
            if (manifest.get("status") or {}).get("state") in (State.SUCCEEDED, State.FAILED):
                return
            await self._clear(worker)
            await self._write_status(manifest["metadata"], abandoned(manifest, error, _now()))
            self.wake_all()
        except Exception:
            # It is tried again, like everything else.
            self._logger.exception("%s/%s: cannot be given up yet", *worker.key)

    async def _clear(self, worker: _Worker) -> None:
        """Delete what a run has deployed, as far as that can be done."""
        try:
            children = await self._children(worker.uid, worker.key[0])
            for action in deployed(children):
                child = children.find(action.kind, action.name)
                assert child is not None
                await self._kube.delete(action.kind, worker.key[0], child.name, child.uid)
        except KubeError as error:
            self._logger.warning("%s/%s: cannot be cleaned up: %s", *worker.key, error)

    async def _write_status(self, metadata: dict[str, Any], status: RunStatus) -> None:
        """Write the status of the run with this name, namespace and uid, and of no other."""
        await self._kube.apply_status(
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "metadata": {key: metadata[key] for key in ("name", "namespace", "uid")},
                "status": status.to_wire(),
            }
        )


class _Worker:
    """The task of one run, with what it remembers only to be quicker."""

    def __init__(self, key: tuple[str, str], uid: str, controller: Controller) -> None:
        self.key = key
        self.uid = uid
        self.cache = ResultCache()
        self.printed: set[str] = set()
        self.refusal: Refusal | None = None
        self.desk = ReadingsDesk(controller.query, self.wake)
        self._controller = controller
        self._event = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._logs: dict[str, asyncio.Task[None]] = {}
        self.task = asyncio.create_task(controller.work(self))

    def wake(self) -> None:
        """Have the run looked at soon."""
        self._event.set()

    def clear(self) -> None:
        """Forget earlier wakes: the look that begins now sees what they were about."""
        self._event.clear()

    async def wait(self, seconds: float | None) -> None:
        """Wait for a wake, at most so many seconds (None: for ever)."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)

    def watch(self, *, active: bool) -> None:
        """Watch the pods of the run while it is active, and only then."""
        if not active:
            self.close()
        elif self._watch is None or self._watch.done():
            self._watch = self._start(self._controller.watch_pods(self), again=True)

    def follow(self, pod: str) -> None:
        """Follow the log of a generator, once."""
        if pod not in self._logs:
            self._logs[pod] = self._start(self._controller.follow_generator(self, pod), again=False)

    def close(self) -> None:
        """End the watch, all that follow logs, and the questions to Prometheus."""
        self.desk.close()
        for task in (self._watch, *self._logs.values()):
            if task is not None:
                task.cancel()
        self._watch = None
        self._logs.clear()

    def _start(self, work: Awaitable[None], *, again: bool) -> asyncio.Task[None]:
        return asyncio.create_task(_quietly(work, self.wake if again else None))


def _now() -> datetime:
    return datetime.now(UTC)


async def _quietly(work: Awaitable[None], after: Callable[[], None] | None) -> None:
    """Do work that only makes things quicker: its failure is no error."""
    with suppress(KubeError, OSError, asyncio.TimeoutError, ValueError):
        await work
    if after is not None:
        await asyncio.sleep(0.5)
        after()
