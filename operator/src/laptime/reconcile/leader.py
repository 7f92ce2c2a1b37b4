"""Which of several operators is at work: a lease, held and given up as client-go does it.

A lease is an object that its holder renews. Who sees it unchanged for as long as it lasts, by his
own clock, takes it. No clocks are compared: what a lease says of times is for people.

The holder counts its time from before it asked, the others from after they have seen the answer, so
the holder's time is over first. Whatever it writes passes `Elector.left`, which looks at the
clock in that moment: a process that was frozen writes nothing when it wakes up, before it knows of
anything else. docs/decisions/0015 says what is left to chance, and what protects then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from laptime.kube import Kube, KubeError, Manifest

LEASE = "laptime-operator"
_logger = logging.getLogger("laptime")


@dataclass(frozen=True)
class Times:
    """How long is waited for what, in seconds."""

    lasts: int = 8
    """Nobody takes a lease before it was seen unchanged for so long."""
    margin: float = 2.0
    """So much earlier its holder writes nothing any more: a request may be under way so long."""
    give_up: float = 5.0
    """So long after the last success the holder goes on trying, then its work ends."""
    retry: float = 1.5
    """Between two looks, and between two renewals."""
    request: float = 2.5
    """So long an answer is waited for."""


def boot_seconds() -> float:
    """Return the seconds since the machine was started, those included in which it was asleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Elector:
    """Takes part for one process."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        identity: str,
        times: Times | None = None,
        clock: Callable[[], float] = boot_seconds,
    ) -> None:
        """Take part as `identity`, which no other process ever has."""
        self.identity = identity
        self._failing = ""
        self._kube = kube
        self._namespace = namespace
        self._times = times or Times()
        self._clock = clock
        # What was seen last, and since when it is unchanged.
        self._lease: Manifest | None = None
        self._since = 0.0
        self._held_since: float | None = None
        """Begin of the last request that was answered: the lease is ours by then."""

    def left(self) -> float:
        """Return for how many seconds the lease is held for certain; not positive: it is not."""
        if self._held_since is None:
            return 0.0
        over = self._held_since + self._times.lasts - self._times.margin
        return over - self._clock()

    async def acquire(self) -> None:
        """Return when the lease is held."""
        while True:
            try:
                await self._look()
                if self._may_take() and await self._take():
                    return
                self._failing = ""
            except Exception as error:
                # Whatever it is: nobody else goes on with it.
                self._say(error)
            await asyncio.sleep(self._pause())

    async def keep(self) -> None:
        """Renew the lease again and again; return when it is, or may be, somebody else's."""
        while (held := self._held_since) is not None:
            await asyncio.sleep(self._times.retry)
            try:
                if not await self._renew():
                    self._held_since = None
                self._failing = ""
            except Exception as error:
                self._say(error)
                if self._clock() - held >= self._times.give_up:
                    self._held_since = None

    async def _renew(self) -> bool:
        if self._lease is not None and await self._take():
            return True
        # An answer was lost, or somebody has changed the lease: it may still be ours.
        await self._look()
        return self._is_mine() and await self._take()

    async def release(self) -> None:
        """Give the lease back, so that nobody has to wait for its end."""
        held, self._held_since = self._held_since, None
        if held is not None:
            with suppress(KubeError, TimeoutError):
                await self._write("", 1)

    def _say(self, error: Exception) -> None:
        said = str(error) or "no answer in time"
        unexpected = not isinstance(error, KubeError | TimeoutError)
        if said != self._failing:
            _logger.warning("lease %s/%s: %s", self._namespace, LEASE, said, exc_info=unexpected)
        self._failing = said

    def _is_mine(self) -> bool:
        return _holder(self._lease) == self.identity

    def _may_take(self) -> bool:
        """Whether nobody else can hold it, as far as this process has seen."""
        if self._lease is None or self._is_mine() or not _holder(self._lease):
            return True
        return self._clock() - self._since >= _lasts(self._lease, self._times.lasts)

    def _pause(self) -> float:
        """Return how long to wait for the next look: the end of the lease, if that is sooner."""
        if self._lease is None or not _holder(self._lease):
            return self._times.retry
        ends = self._since + _lasts(self._lease, self._times.lasts) - self._clock()
        return max(0.05, min(self._times.retry, ends))

    async def _look(self) -> None:
        async with asyncio.timeout(self._times.request):
            found = await self._kube.get("Lease", self._namespace, LEASE)
        if _version(found) != _version(self._lease):
            # Its time begins when its change was seen, never earlier.
            self._since = self._clock()
        self._lease = found

    async def _take(self) -> bool:
        """Write that it is held; return whether it is. Nobody else's change is overwritten."""
        began = self._clock()
        try:
            self._lease = await self._write(self.identity, self._times.lasts)
        except KubeError as error:
            if error.conflict or error.not_found:
                self._lease = None
                return False
            raise
        if self._lease is None:
            return False
        self._since = self._clock()
        self._held_since = began
        return True

    async def _write(self, holder: str, lasts: int) -> Manifest | None:
        spec = (self._lease or {}).get("spec") or {}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        new = spec.get("holderIdentity") != holder
        metadata: Manifest = {"name": LEASE, "namespace": self._namespace}
        content: Manifest = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": lasts,
                "acquireTime": now if new else spec.get("acquireTime", now),
                "renewTime": now,
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + new,
            },
        }
        async with asyncio.timeout(self._times.request):
            if self._lease is None:
                return await self._kube.create(content)
            seen = self._lease["metadata"]
            metadata |= {"uid": seen["uid"], "resourceVersion": seen["resourceVersion"]}
            return await self._kube.apply(content)


class Work(Protocol):
    """What the one that holds the lease does."""

    def start(self) -> None:
        """Begin."""

    async def stop(self) -> None:
        """End at once; another one may go on already."""


async def work_when_leading(
    elector: Elector,
    begin: Callable[[], Work],
    leads: Callable[[bool], None],
) -> None:
    """Have the work done whenever the lease is held, for ever; `leads` is told of each change."""
    try:
        while True:
            leads(False)
            await elector.acquire()
            _logger.info("%s is at work", elector.identity)
            leads(True)
            work = begin()
            try:
                work.start()
                await elector.keep()
                _logger.warning("%s is at work no more: its lease is over", elector.identity)
            finally:
                await work.stop()
    finally:
        leads(False)
        await elector.release()


def _holder(lease: Manifest | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


def _lasts(lease: Manifest, otherwise: float) -> float:
    """Return how long a lease lasts by what its holder wrote: it may be one of another version."""
    said: Any = (lease.get("spec") or {}).get("leaseDurationSeconds")
    return float(said) if isinstance(said, int) and 0 < said <= 60 else otherwise


def _version(lease: Manifest | None) -> str | None:
    return None if lease is None else str(lease["metadata"].get("resourceVersion"))
