"""The logs of generators, followed so that a result is there in the moment that it is printed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from laptime.kube import LOG_BYTES, Kube, KubeError
from laptime.measure.generator import CUT_LINE, RESULT_PREFIX, cut_short
from laptime.reconcile.container_logs import GENERATOR_CONTAINER, Logs
from laptime.reconcile.views import Observed


class LogDesk:
    """Follows the logs of the generators of a run."""

    def __init__(self, kube: Kube, namespace: str, logs: Logs, wake: Callable[[], None]) -> None:
        """Keep in `logs` what has a result, and call `wake` then."""
        self._kube = kube
        self._namespace = namespace
        self._logs = logs
        self._wake = wake
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def close(self) -> None:
        """Follow none any more."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def follow(self, observed: Observed) -> None:
        """Follow the logs of the generators that run."""
        for pod in observed.pods_of("generator"):
            running = any(one.name == GENERATOR_CONTAINER and one.running for one in pod.containers)
            if running and pod.name not in self._tasks:
                task = asyncio.create_task(_quietly(self._follow(pod.name)))
                self._tasks[pod.name] = task

    async def _follow(self, pod: str) -> None:
        """Have the result of a generator in the moment in which it prints it.

        The kubelet reports the end of a container about a second later.
        """
        lines: deque[str] = deque()
        cut: list[str] = []
        size = 0
        async for line in self._kube.follow_log(self._namespace, pod, GENERATOR_CONTAINER):
            lines.append(line)
            size += len(line) + 1
            # The result is in the last lines.
            while size > LOG_BYTES and len(lines) > 1:
                size -= len(lines.popleft()) + 1
                cut = [CUT_LINE]
            # A stream that breaks off in the middle of a line has the beginning of a result.
            if line.startswith(RESULT_PREFIX) and not cut_short(line):
                self._logs[pod] = "\n".join([*cut, *lines]) + "\n"
                self._wake()
                return


async def _quietly(work: Awaitable[None]) -> None:
    """Do work that only makes things quicker: its failure is no error."""
    with suppress(KubeError):
        await work
