"""Asking the kubelets of pods that do not get on whether they are there at all.

That a server is not ready is what its kubelet says, and one that stands still says nothing. What is
remembered here only makes things quicker: a new operator asks again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from laptime.kube import Kube
from laptime.reconcile.views import Hearing, PodView

_logger = logging.getLogger("laptime")

_SLOW_SECONDS = 5.0
"""Most pods are ready by then."""
_AGAIN_SECONDS = 3.0


class Kubelets:
    """What was heard of the kubelets of a run's pods."""

    def __init__(self, kube: Kube, wake: Callable[[], None]) -> None:
        """Have heard nothing yet; `wake` is called for each answer."""
        self._kube = kube
        self._wake = wake
        self._heard: dict[str, Hearing] = {}
        self._first: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def look(self, namespace: str, pods: Iterable[PodView], now: datetime) -> Mapping[str, Hearing]:
        """Return what was heard so far, by pod; ask again where it was long ago."""
        slow = {pod.name: pod.main for pod in pods if _is_slow(pod, now)}
        for gone in set(self._asked) - set(slow):
            self._forget(gone)
        for pod, container in sorted(slow.items()):
            due = time.monotonic() - self._asked.get(pod, -_AGAIN_SECONDS) >= _AGAIN_SECONDS
            if pod not in self._tasks and due:
                self._asked[pod] = time.monotonic()
                self._tasks[pod] = asyncio.create_task(self._ask(namespace, pod, container))
        return dict(self._heard)

    def close(self) -> None:
        """End all questions."""
        for pod in list(self._asked):
            self._forget(pod)

    def _forget(self, pod: str) -> None:
        if (task := self._tasks.pop(pod, None)) is not None:
            task.cancel()
        for known in (self._heard, self._first, self._asked):
            known.pop(pod, None)

    async def _ask(self, namespace: str, pod: str, container: str) -> None:
        try:
            answered = await self._kube.kubelet_answers(namespace, pod, container)
        except Exception:
            _logger.exception("asking the kubelet of pod %s failed", pod)
            answered = False
        moment = time.monotonic()
        if answered is None:
            # What was heard before is of before.
            self._first.pop(pod, None)
            self._heard.pop(pod, None)
        elif answered:
            first = self._first.setdefault(pod, moment)
            self._heard[pod] = Hearing(heard_seconds=moment - first)
        else:
            self._first.pop(pod, None)
            self._heard[pod] = Hearing(silent=True)
        self._tasks.pop(pod, None)
        self._wake()


def _is_slow(pod: PodView, now: datetime) -> bool:
    waits = pod.live and not (pod.ready or pod.ended) and pod.node is not None
    return waits and pod.age(now) >= _SLOW_SECONDS
