"""Runs that have had their time to live after their end: they are deleted.

It needs no lane and holds up nobody, however slowly the API server answers.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import UTC, datetime

from laptime.api import KIND
from laptime.kube import Kube, KubeError
from laptime.reconcile.pauses import Pauses, pause_for
from laptime.reconcile.queue import Card, card_of

_AGAIN_SECONDS = 1.0
# Clocks are set.
_LONGEST_SECONDS = 3600.0
# Many runs end at once; one look is enough for all of them.
_DEBOUNCE_SECONDS = 0.02
_logger = logging.getLogger("laptime")


class Lifetimes:
    """Keeps in mind when runs have had their time, and deletes them one after the other."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._mortal: dict[str, Card] = {}
        self._pauses = Pauses()
        self._changed = asyncio.Event()

    def see(self, uid: str, card: Card | None) -> None:
        """Take in what is known of a run now; None: it is gone."""
        self._mortal.pop(uid, None)
        self._pauses.end(uid)
        if card is None or card.newer or not card.over or card.asks_again or card.deleting:
            return
        if card.deadline is not None:
            self._mortal[uid] = card
            self._changed.set()

    async def run(self) -> None:
        """Go on for ever."""
        while True:
            self._changed.clear()
            try:
                due = await self._end_lives()
            except Exception:
                _logger.exception("looking for runs that have had their time failed")
                due = _AGAIN_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(due):
                    await self._changed.wait()
            await asyncio.sleep(_DEBOUNCE_SECONDS)

    async def _end_lives(self) -> float:
        """Delete the runs whose time is over; return in how many seconds the next one's is."""
        now = datetime.now(UTC)
        due = [_LONGEST_SECONDS]
        failed: list[str] = []
        for uid, card in list(self._mortal.items()):
            assert card.deadline is not None
            left = max((card.deadline - now).total_seconds(), self._pauses.left(uid))
            if left > 0:
                due.append(left)
                continue
            try:
                # Nobody brings it back, and the clock of this node alone may be days ahead.
                theirs = await self._kube.time(KIND, card.namespace)
                if (left := (card.deadline - theirs).total_seconds()) > 0:
                    due.append(left)
                    continue
                found = await self._kube.get(KIND, card.namespace, card.name)
                if found is None or card_of(found) != card:
                    # It is gone, or somebody has given it more time or asks for it again. A watch
                    # that is behind tells of that later.
                    due.append(_AGAIN_SECONDS)
                    continue
                version = found["metadata"]["resourceVersion"]
                await self._kube.delete(KIND, card.namespace, card.name, card.uid, version=version)
                self._mortal.pop(uid, None)
            except Exception as error:
                _logger.warning(
                    "%s/%s: it has had its time, and is not deleted yet: %s: %s",
                    card.namespace, card.name, type(error).__name__, error,
                )  # fmt: skip
                if not isinstance(error, KubeError) or not (error.refused or error.conflict):
                    failed.append(uid)
                else:
                    due.append(self._pauses.begin(uid) if error.refused else _AGAIN_SECONDS)
        # Nobody answers, or a webhook does not, however many ask.
        pause = pause_for(len(failed))
        for uid in failed:
            due.append(pause)
            if uid in self._mortal:
                self._pauses.put_off(uid, pause)
        return min(due)
