"""One connection to an API server: requests with their limits of time, and a gate for writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

import aiohttp
from kubernetes.aio import client

from laptime.kube.errors import KubeError, kube_error, reached
from laptime.kube.resources import Manifest
from laptime.list_stream import MOST_BYTES

REQUEST_TIMEOUT_SECONDS = 30
_LONGEST_LINE_BYTES = MOST_BYTES
"""Longest line of a log or a watch: no container can fill the memory with one that never ends."""


class Connection:
    """Sends requests. Every method raises KubeError when the API server says no."""

    def __init__(
        self,
        api: client.ApiClient,
        said: Callable[[str, int], None] | None = None,
        may_write: Callable[[], float] | None = None,
    ) -> None:
        self._api = api
        self._said = said
        self._may_write = may_write

    def gated(self, may_write: Callable[[], float]) -> Self:
        """Return a client over the same connections whose every write passes a gate.

        `may_write` says for how many seconds writing is still allowed. It is asked before each
        request that changes anything, which is not sent when they are over already, and again when
        they are over: if none were added meanwhile, the request is given up.
        """
        return type(self)(self._api, self._said, may_write)

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    async def _json(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Manifest | str | None = None,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> Manifest:
        response = await self._open(
            method,
            path,
            query=query,
            body=body,
            accept=accept,
            content_type=content_type,
            limits=aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SECONDS),
        )
        with reached():
            parsed = json.loads(await _whole(response))
            if not isinstance(parsed, dict):
                raise ValueError(f"an object was expected, not {type(parsed).__name__}")
        return parsed

    async def _open(
        self,
        method: str,
        path: str,
        *,
        limits: aiohttp.ClientTimeout,
        query: dict[str, str] | None = None,
        body: Manifest | str | None = None,
        accept: str = "*/*",
        content_type: str = "application/json",
    ) -> aiohttp.ClientResponse:
        """Send a request and return the open response of a success."""
        try:
            response = await self._send(method, path, limits, query, body, accept, content_type)
        except KubeError as error:
            if self._said is not None:
                self._said(method, error.status)
            raise
        if self._said is not None:
            self._said(method, response.status)
        return response

    async def _send(
        self,
        method: str,
        path: str,
        limits: aiohttp.ClientTimeout,
        query: dict[str, str] | None,
        body: Manifest | str | None,
        accept: str,
        content_type: str,
    ) -> aiohttp.ClientResponse:
        try:
            with reached():
                request = await self._api.param_serialize(
                    method=method,
                    resource_path=path,
                    query_params=[(key, value) for key, value in (query or {}).items() if value],
                    header_params={"Accept": accept, "Content-Type": content_type},
                    body=body,
                    auth_settings=["BearerToken"],
                )
                async with self._allowed(method):
                    wrapped = await self._api.call_api(*request, _request_timeout=limits)
                response: aiohttp.ClientResponse = wrapped.response
                if response.status < 400:
                    return response
                text = (await _whole(response)).decode(errors="replace")
        except client.ApiException as error:
            raise kube_error(error.status or 0, str(error.body or error.reason or "")) from error
        raise kube_error(response.status, text)

    @asynccontextmanager
    async def _allowed(self, method: str) -> AsyncIterator[None]:
        """Give a request up, if it writes, when the gate is shut before it is answered.

        Raises:
            KubeError: the gate is shut already.
            TimeoutError: it was shut meanwhile.
        """
        may_write = self._may_write
        if may_write is None or method == "GET":
            yield
            return
        left = may_write()
        if left <= 0:
            raise KubeError(0, "NotLeading", "another operator may be at work: nothing is written")
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle
        async with asyncio.timeout(None) as limit:

            def look() -> None:
                # A webhook may take longer than a lease lasts, which is renewed all along.
                nonlocal timer
                if (left := may_write()) > 0:
                    timer = loop.call_later(left, look)
                else:
                    limit.reschedule(loop.time())

            timer = loop.call_later(left, look)
            try:
                yield
            finally:
                timer.cancel()


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """Return an answer that is no list.

    Raises:
        ValueError: it is longer than any object can be.
    """
    whole = bytearray()
    async with response:
        while chunk := await response.content.readany():
            whole += chunk
            if len(whole) > MOST_BYTES:
                raise ValueError(f"an answer of more than {MOST_BYTES} bytes")
    return bytes(whole)


async def lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the lines of an answer as they come, however long they are within reason."""
    rest = bytearray()
    async with response:
        while True:
            with reached():
                chunk = await response.content.readany()
            if not chunk:
                break
            *whole, last = chunk.split(b"\n")
            for line in whole:
                yield bytes(rest + line)
                rest.clear()
            rest += last
            if len(rest) > _LONGEST_LINE_BYTES:
                raise KubeError(0, "Garbled", f"a line of more than {_LONGEST_LINE_BYTES} bytes")
    if rest:
        yield bytes(rest)
