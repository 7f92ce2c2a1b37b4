"""What is said of runs: their status, events, and what cannot be said in a status."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from laptime.api import API_VERSION, KIND
from laptime.api.conditions import Verdict, merge_conditions
from laptime.api.status import ConditionStatus, ConditionType, Progress, RunStatus, State
from laptime.api.storage import USUAL_VERSION, Storage, StoredByNewerVersion
from laptime.kube import Kube, KubeError, Manifest
from laptime.reconcile.abandon import StatusNotInSchema, StatusNotWritten, not_written
from laptime.reconcile.events import event_manifest, transitions
from laptime.reconcile.queue import Card
from laptime.reconcile.sightings import without_absence
from laptime.reconcile.views import Run, format_time, seconds_used, understood

PASSED_OVER_SECONDS = 900.0
"""So long a run has no lane that held one without its status being written."""
_NOT_BEGUN = Verdict(ConditionType.PROGRESSING, ConditionStatus.FALSE, "Queued", "it has not begun")


class StatusDesk:
    """Writes the statuses of all runs, and events."""

    def __init__(
        self, kube: Kube, logger: logging.Logger, written: Callable[[Manifest], None]
    ) -> None:
        """Call `written` with each run whose status was written, as it is then."""
        self._kube = kube
        self._logger = logger
        self._written = written
        # Until when it is not said again of those that the schema is older than the operator.
        self._told: dict[str, float] = {}

    def forget(self, uid: str) -> None:
        """Keep nothing of a run that is gone."""
        self._told.pop(uid, None)

    async def say(self, run: Run, status: RunStatus, now: datetime) -> None:
        """Write a status, and tell what changed for the worse or to another state."""
        if status == run.status:
            return
        metadata = {
            "name": run.name,
            "namespace": run.namespace,
            "uid": run.uid,
            "resourceVersion": run.version,
        }
        await self.write(metadata, status)
        for type_, reason, message in transitions(run, status):
            self._logger.info("%s/%s: %s: %s", run.namespace, run.name, reason, message)
            event = event_manifest(run, type_, reason, message, now, secrets.token_hex(8))
            try:
                await self._kube.create(event)
            except KubeError as error:
                # An event is a courtesy; the condition says the same and stays.
                self._logger.warning("cannot write an event: %s", error)

    async def refuse(
        self, manifest: Manifest, reason: str, message: str, at_work_seconds: float = 0.0
    ) -> None:
        """Say `Accepted=False` of a run that cannot even be looked at.

        `at_work_seconds` is for how long somebody has worked on it.
        """
        metadata = manifest["metadata"]
        old = understood(manifest)
        bad = Verdict(ConditionType.ACCEPTED, ConditionStatus.FALSE, reason, message)
        now = datetime.now(UTC)
        verdicts, before = [bad], old
        if old.state is State.DEPLOYING and old.scenario_hash is None:
            # Nothing of it has begun: only the rules of its scenario were looked at.
            verdicts.append(_NOT_BEGUN)
            nothing = {"state": State.QUEUED, "started_at": None, "images": None, "placement": None}
            before = old.model_copy(update=nothing)
        status = with_verdicts(before, metadata.get("generation", 1), now, verdicts, reason)
        if old.turn_started_at is not None:
            # It has no turn while it may have none.
            used = round(seconds_used(without_absence(old, now, at_work_seconds), now), 1)
            status = status.model_copy(update={"turn_started_at": None, "used_seconds": used})
        if status != old:
            self._logger.warning(
                "%s/%s: %s: %s", metadata["namespace"], metadata["name"], reason, message
            )
            await self.write(metadata, status)

    async def write(self, metadata: Manifest, status: RunStatus) -> None:
        """Write the status of a run as it was seen, and of no other one of that name.

        Raises:
            StatusNotWritten: it is another one, or was changed since (409), or it was refused.
        """
        meant = ("name", "namespace", "uid", "resourceVersion")
        document = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {key: metadata[key] for key in meant},
            "status": status.to_wire(),
        }
        try:
            written = await self._kube.apply_status(document)
        except KubeError as error:
            raise not_written(error) from error
        self._written(written)

    async def leave_alone(self, card: Card) -> None:
        """Say, beside its status, that a run can be gone on with by a newer version alone."""
        what = f"the status of {card.namespace}/{card.name}"
        message = str(StoredByNewerVersion(what, card.stored_version))
        self._logger.warning("%s", message)
        await self._say_beside(card, "StoredByNewerVersion", message)

    async def say_unwritten(self, card: Card, error: StatusNotWritten) -> None:
        """Say, beside its status, that a run gives its lane on."""
        message = (
            f"the status of the run could not be written for minutes: {error}. What the run has in "
            "the cluster is taken down, and others have its turn; it is tried again later. Mend "
            "what the API server says, or delete the run"
        )
        await self._say_beside(card, "StatusNotWritten", message)

    async def say_not_in_schema(self, card: Card, error: StatusNotInSchema) -> None:
        """Say, beside its status, why a run does not go on and what is to be applied.

        At once, since it does not pass by itself, and not again for as long as a run is passed
        over: it is tried more often than that, and an event lasts no longer than an hour.
        """
        now = asyncio.get_running_loop().time()
        if self._told.get(card.uid, 0.0) <= now:
            self._told[card.uid] = now + PASSED_OVER_SECONDS
            await self._say_beside(card, error.reason, error.message)

    async def _say_beside(self, card: Card, reason: str, message: str) -> None:
        now, suffix = datetime.now(UTC), secrets.token_hex(8)
        with suppress(KubeError):
            await self._kube.create(event_manifest(card, "Warning", reason, message, now, suffix))


def with_verdicts(
    status: RunStatus,
    generation: int,
    now: datetime,
    verdicts: Sequence[Verdict],
    text: str,
) -> RunStatus:
    """Return a status that says whether a run is accepted; `text`: what `kubectl get` shows."""
    progress = status.progress or Progress()
    if progress.total:
        text = f"{progress.completed}/{progress.total}, {text}"
    conditions = merge_conditions(status.conditions or [], verdicts, generation, format_time(now))
    return status.model_copy(
        update={
            "state": status.state or State.QUEUED,
            "progress": progress.model_copy(update={"text": text}),
            "observed_generation": generation,
            "storage": status.storage or Storage(version=USUAL_VERSION),
            "conditions": conditions,
        }
    )
