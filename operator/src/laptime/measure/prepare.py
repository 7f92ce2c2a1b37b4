"""Brings the database of a run to the same state: runs as `laptime prepare` before a script.

The built-in loads do it themselves while the server starts. No psql does it here: the statements
are a stranger's, and psql has commands of its own that start programs.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import psycopg

_CONNECT_SECONDS = 10


def prepare_database(file: Path) -> str | None:
    """Run the statements of a file, an array of JSON, one by one on the database of DATABASE_URL.

    Of several generators the first one does it, as JOB_COMPLETION_INDEX says; the others begin when
    it does. Returns what went wrong, None when nothing did.
    """
    if os.environ.get("JOB_COMPLETION_INDEX", "0") != "0":
        return None
    statements = json.loads(file.read_text("utf-8"))
    url = os.environ["DATABASE_URL"]
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_SECONDS) as connection:
            for statement in statements:
                connection.execute(statement)
    except psycopg.Error as error:
        # libpq leaves the password out of its errors.
        return f"the database could not be reset: {error}"
    return None
