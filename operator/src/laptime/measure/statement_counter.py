"""How many statements a server sends to Postgres for one request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import psycopg

from laptime.measure.verdict import Wrong

_CONNECT_SECONDS = 10

# Statements about tables, and the time zone that a scenario asks for (as a function it is a
# set_config of constants that nobody can see). Neither the beginning and
# end of transactions nor what drivers ask the catalogue or tell a connection that they give back:
# those would make up for a statement that is missing. One that sleeps is the server's own.
_TOTAL = r"""
SELECT coalesce(sum(calls), 0)::bigint
FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
AND query !~* '\mpg_(?!sleep\M)'
AND (query ~* '\m(from|into|update)\M' OR query ~* '\mtime\s*zone\M|\mset_config\(')
"""


class StatementCounter(Protocol):
    """Says how many statements were sent so far."""

    def total(self) -> int:
        """Return the number of statements about tables that ended until now."""


class PostgresCounter:
    """Counts by pg_stat_statements."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def total(self) -> int:
        """Return the number of statements about tables that ended until now.

        Raises:
            Wrong: the database cannot be asked; that is not the server's fault.
        """
        try:
            row = self._connection.execute(_TOTAL).fetchone()
        except psycopg.Error as error:
            raise _wrong("asked", error) from None
        return int(row[0]) if row else 0


@contextmanager
def postgres_counter(url: str) -> Iterator[StatementCounter]:
    """Yield a counter of the statements that the database of a run gets.

    Raises:
        Wrong: the database cannot be reached.
    """
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_SECONDS)
    except psycopg.Error as error:
        raise _wrong("reached", error) from None
    with connection:
        yield PostgresCounter(connection)


def _wrong(what: str, error: psycopg.Error) -> Wrong:
    """Return what is said of a database that is ready and does not answer, or not as it should."""
    lost = isinstance(error, psycopg.OperationalError)
    reason = "DatabaseNotReachable" if lost else "StatementsNotCounted"
    # libpq leaves the password out of its errors.
    return Wrong(reason, f"the database cannot be {what}: {error}")
