"""A proxy between operator and API server, which can be told to misbehave.

It ends TLS with the API server's own certificate, has one request for each connection, and passes
answers on byte by byte. What it is told to do to them stands in tampering.py.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from chaos.wire import LONGEST_HEAD_BYTES, WRITES, Request, read_request, status_of

_READ_BYTES = 65536
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


class Cut(Exception):
    """The connection to the operator is to end here, after these last words."""

    def __init__(self, last: bytes = b"") -> None:
        super().__init__()
        self.last = last


class Tamper(Protocol):
    """What is done to requests and answers while it is in place. Runs in the proxy's thread."""

    bites: int
    """To how many of them something was done."""

    async def request(self, request: Request, line: Line) -> bool:
        """Answer a request; False leaves it to the proxy."""

    async def answer(self, request: Request, answer: bytes) -> bytes:
        """Return what is to be answered instead of a whole answer."""

    async def streamed(self, request: Request, data: bytes) -> bytes:
        """Return what is to be said instead of what a stream says; Cut ends it."""


@dataclass(frozen=True)
class Seen:
    """A request that was answered, as the API server did."""

    at: float
    """By the monotonic clock, when the answer was there."""
    verb: str
    path: str
    status: int
    name: str = ""
    """Of the object that a write is for."""

    @property
    def writes(self) -> bool:
        """Whether it changed something."""
        return self.verb in WRITES


class Line:
    """The connection to the operator on which one request came."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._proxy = proxy
        self._writer = writer
        self._gone = asyncio.ensure_future(reader.read(1))

    async def send(self, data: bytes) -> None:
        """Send a part of an answer to the operator."""
        self._writer.write(data)
        await self._writer.drain()

    async def fetch(self, request: Request, target: str | None = None) -> bytes:
        """Return the API server's whole answer."""
        answer = b"".join([data async for data in self.stream(request, target)])
        self._proxy.answered(request, answer)
        return answer

    async def stream(self, request: Request, target: str | None = None) -> AsyncIterator[bytes]:
        """Yield the API server's answer as it comes; end it when the operator goes away."""
        reader, writer = await self._proxy.upstream()
        try:
            writer.write(request.wire(target))
            while True:
                read = asyncio.ensure_future(reader.read(_READ_BYTES))
                await asyncio.wait({read, self._gone}, return_when=asyncio.FIRST_COMPLETED)
                if not read.done():
                    read.cancel()
                    return
                if not (data := await read):
                    return
                yield data
        finally:
            writer.transport.abort()

    async def silence(self) -> None:
        """Say nothing until the operator goes away."""
        await asyncio.wait({self._gone})

    def cut(self) -> None:
        """End the connection without another word."""
        self._gone.cancel()
        self._writer.transport.abort()

    async def end(self) -> None:
        """End the connection in order."""
        self._gone.cancel()
        with suppress(OSError, asyncio.TimeoutError):
            self._writer.close()
            await asyncio.wait_for(self._writer.wait_closed(), 2)


class Proxy:
    """Runs in a thread of its own until it is closed."""

    def __init__(
        self,
        address: tuple[str, int],
        server: tuple[str, int],
        inside: ssl.SSLContext | None,
        outside: ssl.SSLContext | None,
    ) -> None:
        """Listen at `address` (TLS as `inside` says), ask the API server at `server` (`outside`).

        Raises:
            OSError: it cannot listen there.
        """
        self.tamper: Tamper | None = None
        self.seen: list[Seen] = []
        self.writes = 0
        """Writes that were asked for since `begin`."""
        self.refused: Counter[int] = Counter()
        """Answers of the API server from 400 on, by their status."""
        self.stage = ""
        """State and trial that the operator has last written."""
        self._versions: list[tuple[float, int]] = []
        self._server = server
        self._outside = outside
        self._when: tuple[int, Callable[[], None]] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        starting = asyncio.start_server(self._serve, *address, ssl=inside, limit=LONGEST_HEAD_BYTES)
        self._listening = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listening.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Listen no more; connections that are open break off."""

        async def end() -> None:
            self._listening.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def begin(self) -> None:
        """Forget what was seen, for the next run."""
        self.tamper = None
        self._when = None
        self.seen = []
        self._versions = []
        self.writes = 0
        self.refused = Counter()
        self.stage = ""

    def when(self, write: int, call: Callable[[], None]) -> None:
        """Call a function, which must not wait, when so many writes were answered."""
        self._when = (write, call)

    async def upstream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection to the API server."""
        return await asyncio.open_connection(*self._server, ssl=self._outside)

    def version_at(self, at: float) -> str | None:
        """Return the newest resource version that was seen by then (monotonic); None: none was."""
        found = [version for seen, version in self._versions if seen <= at]
        return str(max(found)) if found else None

    def said(self, data: bytes) -> None:
        """Note the resource versions in what the API server says."""
        if versions := [int(one) for one in _VERSION.findall(data)]:
            self._versions.append((time.monotonic(), max(versions)))

    def answered(self, request: Request, answer: bytes) -> None:
        """Note what the API server answered."""
        self.said(answer)
        status = status_of(answer)
        name = ""
        if request.writes and request.body:
            document = request.document()
            name = str((document.get("metadata") or {}).get("name") or "")
            said = document.get("status") or {}
            if request.path.endswith("/status") and status < 300:
                self.stage = f"{said.get('state', '')} {said.get('currentTrial') or ''}".strip()
        if status >= 400:
            self.refused[status] += 1
        self.seen.append(Seen(time.monotonic(), request.verb, request.path, status, name))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = None
        try:
            request = await read_request(reader)
            if request is None:
                return
            if request.writes:
                self.writes += 1
                request = replace(request, number=self.writes)
            line = Line(self, reader, writer)
            await self._exchange(request, line)
            if self._when and request.number == self._when[0]:
                self._when[1]()
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # The API server is away, or the operator is.
            pass
        except asyncio.CancelledError:
            # The proxy is closed. This is the task's end: nobody waits for it to be cancelled.
            pass
        finally:
            if line is not None:
                line.cut()
            writer.transport.abort()

    async def _exchange(self, request: Request, line: Line) -> None:
        tamper = self.tamper
        if tamper is not None and await tamper.request(request, line):
            return
        if request.streams:
            async for data in line.stream(request):
                self.said(data)
                now = self.tamper
                try:
                    await line.send(data if now is None else await now.streamed(request, data))
                except Cut as cut:
                    await line.send(cut.last)
                    break
        else:
            answer = await line.fetch(request)
            if tamper is not None:
                answer = await tamper.answer(request, answer)
            await line.send(answer)
        await line.end()
