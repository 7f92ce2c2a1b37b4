"""Logs of containers, as their kubelets have them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp

from laptime.kube.connection import REQUEST_TIMEOUT_SECONDS, Connection, lines
from laptime.kube.errors import KubeError, reached
from laptime.kube.resources import RESOURCES
from laptime.measure.generator import CUT_LINE

LOG_BYTES = 2 * 2**20
"""So much of a log is read: twice as much as the longest result that can be stored."""
# A node keeps a line in parts of at most 16 KiB: so many of them are never longer than LOG_BYTES.
_TAIL_LINES = (20_000, LOG_BYTES // 2**14)
_KUBELET_SECONDS = 3
"""A kubelet that has not answered by then stands still, or its node is gone."""
_NOT_HANDED_ON = (0, 401, 429, 503)
"""Not reached, not known, too much to do: so an API server says for itself."""


class Logs(Connection):
    """Reads logs. Every method raises KubeError when the API server says no."""

    async def log(self, namespace: str, pod: str, container: str) -> str:
        """Return what a container has written to its log so far; of a long log the end.

        Of one that is longer than `LOG_BYTES` the first line is `CUT_LINE`.
        """
        for count in _TAIL_LINES:
            read = await self._tail(namespace, pod, container, count)
            # The API server counts the bytes from the first line that was asked for: where they
            # do not reach to the end, fewer lines do.
            if len(read) < LOG_BYTES:
                break
        cut = count != _TAIL_LINES[0] or read.count(b"\n") >= count
        return (f"{CUT_LINE}\n" if cut else "") + read.decode(errors="replace")

    async def _tail(self, namespace: str, pod: str, container: str, count: int) -> bytes:
        response = await self._open(
            "GET",
            RESOURCES["Pod"].path(namespace, pod, "log"),
            query={
                "container": container,
                "tailLines": str(count),
                "limitBytes": str(LOG_BYTES),
            },
            limits=aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SECONDS),
        )
        read = bytearray()
        async with response:
            while len(read) < LOG_BYTES:
                with reached():
                    chunk = await response.content.readany()
                if not chunk:
                    break
                read += chunk
        return bytes(read[:LOG_BYTES])

    async def kubelet_answers(self, namespace: str, pod: str, container: str) -> bool | None:
        """Return whether the kubelet of a pod that has a node answers at all.

        The API server hands a question for a log on to the kubelet. Whatever that says, such as
        that there is no log yet, it is there. None: nobody knows, since the API server has handed
        nothing on, or is not there itself.
        """
        try:
            response = await self._open(
                "GET",
                RESOURCES["Pod"].path(namespace, pod, "log"),
                query={"container": container, "tailLines": "1", "limitBytes": "1"},
                limits=aiohttp.ClientTimeout(total=_KUBELET_SECONDS),
            )
        except KubeError as error:
            if error.status in _NOT_HANDED_ON and not error.timed_out:
                return None
            if error.timed_out or error.status >= 500:
                # So it is where a kubelet cannot be reached, and where its own storage cannot.
                return False if await self._is_there(namespace, pod) else None
            return error.status in (400, 404)
        response.close()
        return True

    async def _is_there(self, namespace: str, pod: str) -> bool:
        """Return whether the API server answers what it need ask no kubelet for.

        Asked as a list: the operator may not get a pod by its name.
        """
        try:
            response = await self._open(
                "GET",
                RESOURCES["Pod"].collection(namespace),
                query={"fieldSelector": f"metadata.name={pod}", "limit": "1"},
                limits=aiohttp.ClientTimeout(total=_KUBELET_SECONDS),
            )
        except KubeError:
            return False
        response.close()
        return True

    async def follow_log(self, namespace: str, pod: str, container: str) -> AsyncIterator[str]:
        """Yield the lines of a container's log as they are written, until it ends."""
        response = await self._open(
            "GET",
            RESOURCES["Pod"].path(namespace, pod, "log"),
            query={"container": container, "follow": "true"},
            limits=aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_TIMEOUT_SECONDS),
        )
        async for line in lines(response):
            yield line.decode(errors="replace")
