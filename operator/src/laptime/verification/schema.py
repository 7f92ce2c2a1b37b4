"""On which schema the database is when a server has been waited for or checked."""

from __future__ import annotations

import psycopg

from laptime.verification.connect import TooManyConnections, connect


def database_schema(url: str, query: str) -> str | None:
    """Return what stands for the definitions in a database (`laptime.manifests.schema_query`).

    None where nobody can say: it is no reason to check nothing.
    """
    try:
        with connect(url) as connection:
            answers = connection.execute(query)
            while answers.nextset():
                pass
            row = answers.fetchone()
    except (psycopg.Error, TooManyConnections):
        return None
    return str(row[0]) if row else None
