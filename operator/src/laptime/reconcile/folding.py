"""The work on runs that are over and whose results still lie about singly: they are deleted.

It needs no lane and holds up nobody. Whatever goes wrong, all is in the archive already; it is
tried again later, ever less often, and by the next process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from laptime.api import KIND
from laptime.api.status import RunStatus
from laptime.api.storage import Storage, version_to_store
from laptime.kube import Kube, KubeError, Manifest
from laptime.reconcile.fold import delete_folded
from laptime.reconcile.queue import Card
from laptime.reconcile.views import status_view

_AGAIN_SECONDS = (1.0, 5.0, 30.0, 300.0, 3600.0)
_logger = logging.getLogger("laptime")


@dataclass
class _Task:
    card: Card
    due: float = 0.0
    failures: int = 0


class Folding:
    """Keeps in mind which runs have something to delete, and does it one run after the other."""

    def __init__(
        self, kube: Kube, write_status: Callable[[Manifest, RunStatus], Awaitable[None]]
    ) -> None:
        """`write_status` writes the status of a run whose metadata it is given."""
        self._kube = kube
        self._write_status = write_status
        self._tasks: dict[str, _Task] = {}
        self._changed = asyncio.Event()

    def see(self, uid: str, card: Card | None) -> None:
        """Take in what is known of a run now; None: it is gone."""
        if card is None or card.newer or card.archive is None or card.deleting:
            self._tasks.pop(uid, None)
        elif uid not in self._tasks:
            self._tasks[uid] = _Task(card)
            self._changed.set()

    async def run(self) -> None:
        """Go on for ever."""
        clock = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            for uid, task in list(self._tasks.items()):
                if task.due <= clock.time() and uid in self._tasks:
                    await self._work_on(uid, task)
            due = min((task.due for task in self._tasks.values()), default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._changed.wait()

    async def _work_on(self, uid: str, task: _Task) -> None:
        card = task.card
        try:
            await self._fold(card)
            self._tasks.pop(uid, None)
        except Exception as error:
            _logger.warning(
                "%s/%s: its single results stay for now, all is in %s too: %s: %s",
                card.namespace, card.name, card.archive, type(error).__name__, error,
            )  # fmt: skip
            if not isinstance(error, KubeError):
                task.failures = len(_AGAIN_SECONDS)
            pause = _AGAIN_SECONDS[min(task.failures, len(_AGAIN_SECONDS) - 1)]
            task.due = asyncio.get_running_loop().time() + pause
            task.failures += 1

    async def _fold(self, card: Card) -> None:
        assert card.archive is not None
        size = await delete_folded(self._kube, card.namespace, card.name, card.uid, card.archive)
        manifest = await self._kube.get(KIND, card.namespace, card.name)
        if manifest is None or manifest["metadata"]["uid"] != card.uid:
            return
        status = status_view(manifest)
        if status.state is None or not status.state.terminal or status.storage is None:
            return
        folded = True if size is not None else None
        storage = Storage(version=version_to_store(status.storage), folded=folded, bytes=size)
        if status.storage != storage:
            await self._write_status(
                manifest["metadata"], status.model_copy(update={"storage": storage})
            )
