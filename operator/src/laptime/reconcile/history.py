"""How many finished runs a namespace keeps, where the administrator has set a limit.

The oldest ones beyond it are deleted, but none that nobody had the time to keep the report of: a
run stays for a minimum age after its end, and until it is folded. What is marked to be kept stays,
and counts for nothing, and so does what a newer version of Laptime has stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from laptime.api import KIND
from laptime.api.status import State
from laptime.kube import Kube, KubeError, Manifest
from laptime.reconcile.pauses import Pauses
from laptime.reconcile.queue import Card

_AGAIN_SECONDS = 30.0
_logger = logging.getLogger("laptime")


@dataclass(frozen=True)
class HistoryLimits:
    """Finished runs that each namespace keeps; None: all."""

    successful: int | None = None
    failed: int | None = None
    minimum_age: timedelta = timedelta(days=1)
    """So long a run stays after its end, whatever the limits say."""

    def of(self, state: State) -> int | None:
        """Return the limit for runs that ended so."""
        return self.successful if state is State.SUCCEEDED else self.failed


def surplus(
    cards: Iterable[Card], limits: HistoryLimits, now: datetime
) -> tuple[list[Card], datetime | None]:
    """Return which runs of one namespace are to be deleted now, and when the next one may be."""
    ended: dict[State, list[tuple[datetime, str, Card]]] = {}
    for card in cards:
        if card.asks_again:
            # It is as good as queued: what it waits for may take longer than it may stay.
            continue
        if card.deleting:
            # It goes already, and so is none of those that stay.
            continue
        if card.state is not None and card.finished is not None and not card.kept:
            ended.setdefault(card.state, []).append((card.finished, card.uid, card))
    doomed: list[Card] = []
    later: list[datetime] = []
    for state, runs in ended.items():
        limit = limits.of(state)
        if limit is None:
            continue
        runs.sort(reverse=True)
        for finished, _, card in runs[limit:]:
            if card.archive is not None:
                # It is heard of again when it is folded.
                continue
            may_go = finished + limits.minimum_age
            if may_go <= now:
                doomed.append(card)
            else:
                later.append(may_go)
    return doomed, min(later, default=None)


class History:
    """Looks at a namespace when something of it has ended, and when the next run may go."""

    def __init__(
        self, kube: Kube, limits: HistoryLimits, heard: Callable[[Manifest], bool]
    ) -> None:
        """`heard` says whether a run is known in the version that it has."""
        self._kube = kube
        self._limits = limits
        self._heard = heard
        self._ended: dict[str, dict[str, Card]] = {}
        self._due: dict[str, float] = {}
        self._namespaces: dict[str, str] = {}
        self._pauses = Pauses()
        self._changed = asyncio.Event()

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self._limits.successful is not None or self._limits.failed is not None

    def see(self, uid: str, card: Card | None) -> None:
        """Take in what is known of a run now; None: it is gone."""
        if not self.limited:
            return
        before = self._namespaces.pop(uid, None)
        if before is not None:
            self._ended[before].pop(uid, None)
        self._pauses.end(uid)
        if card is not None and card.finished is not None and not card.newer:
            self._namespaces[uid] = card.namespace
            self._ended.setdefault(card.namespace, {})[uid] = card
            self._due[card.namespace] = 0.0
            self._changed.set()

    async def run(self) -> None:
        """Go on for ever."""
        clock = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            for namespace, due in list(self._due.items()):
                if due <= clock.time():
                    # Before it is looked at: what changes meanwhile is looked at again.
                    del self._due[namespace]
                    try:
                        seconds = await self._look_at(namespace)
                    except KubeError as error:
                        _logger.warning("namespace %s: runs stay for now: %s", namespace, error)
                        seconds = _AGAIN_SECONDS
                    except Exception:
                        _logger.exception("namespace %s: its runs cannot be counted", namespace)
                        seconds = _AGAIN_SECONDS
                    if seconds is not None:
                        self._due.setdefault(namespace, clock.time() + seconds)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(self._due.values(), default=None)):
                    await self._changed.wait()

    async def _look_at(self, namespace: str) -> float | None:
        """Delete what is too much; return in how many seconds to look again.

        Raises:
            KubeError: nobody says which runs there are.
        """
        now = datetime.now(UTC)
        doomed, later = surplus(self._ended[namespace].values(), self._limits, now)
        versions: dict[str, str] = {}
        if any(self._pauses.left(card.uid) <= 0 for card in doomed):
            there = await self._there(namespace)
            if there is None:
                return _AGAIN_SECONDS
            versions = there
            # Nobody brings them back, and the clock of this node alone may be days ahead.
            now = min(now, await self._kube.time(KIND, namespace))
            cards = [card for uid, card in self._ended[namespace].items() if uid in versions]
            doomed, later = surplus(cards, self._limits, now)
        due = [max(0.0, (later - now).total_seconds())] if later is not None else []
        # The oldest first: they are too many even if newer ones go meanwhile.
        for card in reversed(doomed):
            if self._ended[namespace].get(card.uid) != card:
                # Somebody keeps it, or asks for its failed trials again. It was heard of again.
                continue
            if (left := self._pauses.left(card.uid)) > 0 or card.uid not in versions:
                due.append(max(0.0, left))
                continue
            try:
                await self._kube.delete(
                    KIND, card.namespace, card.name, card.uid, version=versions[card.uid]
                )
                _logger.info("%s/%s: deleted, one run too many", card.namespace, card.name)
            except KubeError as error:
                _logger.warning("%s/%s: %s", card.namespace, card.name, error)
                if not (error.refused or error.conflict or error.not_found):
                    # Nobody answers, or a webhook does not, for the others neither.
                    return _AGAIN_SECONDS
                due.append(self._pauses.begin(card.uid) if error.refused else _AGAIN_SECONDS)
        return min(due, default=None)

    async def _there(self, namespace: str) -> dict[str, str] | None:
        """Return the resource versions of the runs that have ended and are there in this moment.

        None: one has changed.

        A watch may be behind: a run that is gone would be counted among those that stay, and one
        that is there would go for it, for good. So would one that somebody has just said to keep,
        or whose failed trials are asked for again. Of what has changed the watch is about to tell.
        """
        found: dict[str, str] = {}
        async for page in self._kube.pages(KIND, namespace, metadata_only=True):
            for one in page.items:
                uid = one["metadata"]["uid"]
                if uid in self._ended[namespace]:
                    if not self._heard(one):
                        return None
                    found[uid] = one["metadata"]["resourceVersion"]
        return found
