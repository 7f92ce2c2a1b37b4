"""SQLite files as a run prepares them: schema, seed and WAL mode, owned by the servers' user."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from containers import GID, UID, writable_folder

from laptime.catalog import Scenario

URL = "sqlite:///data/laptime.db"


def prepare(folder: Path, scenario: Scenario) -> Path:
    """Make the database of `scenario` in `folder`, which is to be a server's /data."""
    writable_folder(folder)
    file = folder / Path(URL).name
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        for _, sql in scenario.sqlite_sql:
            connection.executescript(sql)
    for path in folder.iterdir():
        shutil.chown(path, UID, GID)
    return folder
