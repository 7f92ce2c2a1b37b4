"""On which schema the database is when a server has been waited for or checked."""

from __future__ import annotations

import psycopg

from laptime.verification.connect import TooManyConnections, connect


def database_schema(url: str, query: str) -> str | None:
    """Return what stands for the definitions in a database (`laptime.manifests.schema_query`).

    It is asked once more where somebody holds a lock on a table, as a migration does for a moment.
    None where nobody can say: it is no reason to check nothing.
    """
    try:
        with connect(url) as connection:
            try:
                row = _last(connection, query)
            except psycopg.errors.LockNotAvailable:
                row = _last(connection, query)
    except (psycopg.Error, TooManyConnections):
        return None
    return str(row[0]) if row else None


def _last(connection: psycopg.Connection, query: str) -> tuple[object, ...] | None:
    answers = connection.execute(query)
    while answers.nextset():
        pass
    return answers.fetchone()
