"""What a server does in Postgres: statements for one request, and rows that are there after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Protocol

import psycopg

from laptime.verification.connect import TooManyConnections, connect
from laptime.verification.verdict import Wrong

_QUERY_SECONDS = 10
_MOST_ROWS = 1000

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


class Witness(Protocol):
    """Sees what a server does in the database."""

    def total(self) -> int:
        """Return the number of statements about tables that ended until now."""

    def rows(self, query: str) -> list[list[Any]]:
        """Return what a query answers now, as JSON has it."""


class PostgresWitness:
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

    def rows(self, query: str) -> list[list[Any]]:
        """Return what a query answers now; numbers, texts, truth and null as JSON has them.

        Raises:
            Wrong: it is not one query that only reads, or takes too long.
        """
        try:
            with self._connection.transaction():
                self._connection.execute("SET TRANSACTION READ ONLY")
                self._connection.execute(f"SET LOCAL statement_timeout = '{_QUERY_SECONDS}s'")
                # Prepared, it cannot be several statements.
                found = self._connection.execute(query, prepare=True).fetchmany(_MOST_ROWS)
        except psycopg.errors.QueryCanceled:
            raise Wrong(
                "QueryFailed",
                f"the scenario's query {query!r} takes more than {_QUERY_SECONDS} s: make it "
                "faster; or it waits for a lock that a transaction of the server holds, which "
                "has to end before the answer",
            ) from None
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError):
                raise _wrong("asked", error) from None
            raise Wrong("QueryFailed", f"the scenario's query {query!r}: {error}") from None
        return [[_as_json(value) for value in row] for row in found]


def _as_json(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list | dict):
        return json.loads(json.dumps(value, default=str))
    return str(value)


@contextmanager
def postgres_witness(url: str) -> Iterator[Witness]:
    """Yield who sees what the database of a run gets.

    Raises:
        Wrong: the database cannot be reached, or has no connection left.
    """
    try:
        connection = connect(url)
    except TooManyConnections as error:
        raise Wrong("TooManyConnections", str(error)) from None
    except psycopg.Error as error:
        raise _wrong("reached", error) from None
    with connection:
        yield PostgresWitness(connection)


def _wrong(what: str, error: psycopg.Error) -> Wrong:
    """Return what is said of a database that is ready and does not answer, or not as it should."""
    lost = isinstance(error, psycopg.OperationalError)
    reason = "DatabaseNotReachable" if lost else "StatementsNotCounted"
    # libpq leaves the password out of its errors.
    return Wrong(reason, f"the database cannot be {what}: {error}")
