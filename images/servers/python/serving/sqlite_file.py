"""Connections to a SQLite file that was prepared before the server starts."""

import sqlite3
from pathlib import Path
from urllib.parse import quote

BUSY_TIMEOUT_SECONDS = 5
# How many statements a connection keeps prepared; the default of the sqlite3 module.
_PREPARED_STATEMENTS = 128


def connect(file: Path, prepared_statements: bool) -> sqlite3.Connection:
    """Open `file`, which must exist and be in WAL mode, for any thread but one at a time.

    Raises sqlite3.OperationalError when there is no such file: an empty one would only hide that
    the run's database is missing.
    """
    connection = sqlite3.connect(
        f"file:{quote(str(file))}?mode=rw",
        uri=True,
        timeout=BUSY_TIMEOUT_SECONDS,
        check_same_thread=False,
        cached_statements=_PREPARED_STATEMENTS if prepared_statements else 0,
    )
    # Safe in WAL mode: a power failure can lose the last commits and break nothing.
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection
