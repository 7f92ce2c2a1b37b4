"""Brings the database of a run to the same state: runs as `laptime prepare` before a script.

The built-in loads do it themselves while the server starts. No psql does it here: the statements
are a stranger's, and psql has commands of its own that start programs.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from laptime.api.text import shown
from laptime.measure.generator import GeneratorError
from laptime.verification.connect import TooManyConnections, connect

_WORDS = 1000
_QUOTED = 300


_OF_STATEMENT = frozenset(
    ("0A", "21", "22", "23", "2B", "2D", "2F", "38", "39", "3D", "3F", "42", "44", "P0")
)
"""Classes of errors that are about the statement, and not about the state that Postgres is in
(appendix A of its manual). The generator, which resets for the built-in loads, has them too."""

_REFUSED_BY_EARLIER = "admin access needed"
"""What a PgBouncer answers that an earlier version of Laptime deployed.

The tiers of a run that goes on stay as they are when the operator is upgraded.
"""

_OTHERS = (
    "SELECT datname FROM pg_database WHERE datname ~ '^laptime_' AND datname <> current_database()"
)
"""The databases of servers that are not measured now; none where all servers have the same."""


def prepare_database(file: Path) -> GeneratorError | None:
    """Run the statements of a file, an array of JSON, one by one on the database of DATABASE_URL.

    Before them the PgBouncer of PGBOUNCER_URL, if there is one, gets other connections to it.
    The databases of other servers forget what they have counted: the statements have this one do
    so, and autovacuum would see to the others while it is measured.
    Of several generators the first one does it, as JOB_COMPLETION_INDEX says; the others begin when
    it does. Returns what went wrong, None when nothing did.
    """
    if os.environ.get("JOB_COMPLETION_INDEX", "0") != "0":
        return None
    statements = json.loads(file.read_text("utf-8"))
    url = os.environ["DATABASE_URL"]
    statement = None
    try:
        if pgbouncer := os.environ.get("PGBOUNCER_URL"):
            _renew_connections(pgbouncer)
        with connect(url) as connection:
            for (name,) in connection.execute(_OTHERS).fetchall():
                with connect(make_conninfo(url, dbname=name)) as other:
                    other.execute("SELECT pg_stat_reset()")
            for statement in statements:
                connection.execute(statement)
    except TooManyConnections as error:
        return _said("TooManyConnections", error)
    except psycopg.Error as error:
        # libpq leaves the password out of its errors.
        if statement is None:
            return _said("DatabaseNotReachable", error)
        for_good = (error.sqlstate or "")[:2] in _OF_STATEMENT
        quoted = json.dumps(shown(statement, _QUOTED), ensure_ascii=False)
        return _said("ResetFailed" if for_good else "GeneratorFailed", f"{quoted}: {error}")
    return None


def _renew_connections(console: str) -> None:
    """Have PgBouncer close its connections to Postgres, each when no transaction is on it.

    What servers before have set on their sessions goes with them. A server that has begun notices
    nothing: its own connections to PgBouncer stay. One that lets nobody do so stays as it is.
    """
    with connect(console) as connection:
        try:
            connection.execute("RECONNECT")
        except psycopg.Error as error:
            if _REFUSED_BY_EARLIER not in str(error):
                raise


def _said(reason: str, what: object) -> GeneratorError:
    return GeneratorError(reason, shown(f"the database could not be reset: {what}", _WORDS))
