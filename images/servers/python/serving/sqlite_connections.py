"""A pool of blocking connections to a SQLite file."""

import queue
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serving import sqlite_file


class SqliteConnections:
    """At most `size` connections to one SQLite file."""

    def __init__(self, file: Path, size: int, prepared_statements: bool, acquire_seconds: float):
        self._file = file
        self._prepared_statements = prepared_statements
        self._acquire_seconds = acquire_seconds
        # None stands for a connection that was not opened yet. The one used last goes out first.
        self._free: queue.LifoQueue[sqlite3.Connection | None] = queue.LifoQueue()
        for _ in range(size):
            self._free.put(None)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; raises queue.Empty when none comes back in time."""
        connection = self._free.get(timeout=self._acquire_seconds)
        try:
            if connection is None:
                connection = sqlite_file.connect(self._file, self._prepared_statements)
            yield connection
        finally:
            self._free.put(connection)

    def close(self) -> None:
        """Close the connections that nobody has borrowed."""
        while not self._free.empty():
            connection = self._free.get()
            if connection is not None:
                connection.close()
