"""A pool of aiosqlite's connections to one SQLite file."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self

import aiosqlite

from serving import sqlite_file


class AsyncSqliteConnections:
    """At most `size` connections, opened when first needed; each has a thread of its own."""

    def __init__(self, file: Path, size: int, prepared_statements: bool):
        self._connect = partial(sqlite_file.connect, file, prepared_statements)
        # None stands for a connection that was not opened yet. The one used last goes out first.
        self._free: asyncio.LifoQueue[aiosqlite.Connection | None] = asyncio.LifoQueue()
        for _ in range(size):
            self._free.put_nowait(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while not self._free.empty():
            connection = self._free.get_nowait()
            if connection is not None:
                await connection.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[aiosqlite.Connection]:
        """Lend a connection for the length of an `async with` block."""
        connection = await self._free.get()
        try:
            if connection is None:
                connection = await aiosqlite.Connection(self._connect, iter_chunk_size=64)
            yield connection
        finally:
            self._free.put_nowait(connection)
