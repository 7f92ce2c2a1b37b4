"""Pools of blocking connections, to Postgres with psycopg and to a SQLite file.

What both kinds of connection can do is enough for a query: `connection.execute(sql).fetchall()`.
"""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from psycopg_pool import ConnectionPool

from serving.settings import Settings
from serving.sqlite_connections import SqliteConnections

# How long a request waits for a connection, or for one to be opened; the default of SQLAlchemy and
# of psycopg's pool.
ACQUIRE_SECONDS = 30


class Connections(Protocol):
    """A pool, for any number of threads."""

    def connection(self) -> AbstractContextManager[Any]:
        """Lend a connection for the length of a `with` block."""

    def close(self) -> None:
        """Close the connections that nobody has borrowed."""


def open_connections(settings: Settings) -> Connections | None:
    """A pool of at most `database_connections` connections, opened when first needed.

    Each statement is a transaction of its own. None when the run has no database.
    """
    if settings.database_url is None:
        return None
    if settings.sqlite_file is not None:
        return SqliteConnections(
            settings.sqlite_file,
            settings.database_connections,
            settings.database_prepared_statements,
            ACQUIRE_SECONDS,
        )
    return ConnectionPool(
        settings.database_url,
        min_size=0,
        max_size=settings.database_connections,
        timeout=ACQUIRE_SECONDS,
        open=True,
        kwargs={
            "autocommit": True,
            # psycopg prepares a statement on its fifth execution; None turns that off.
            "prepare_threshold": 5 if settings.database_prepared_statements else None,
        },
    )
