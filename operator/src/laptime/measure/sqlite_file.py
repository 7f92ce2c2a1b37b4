"""Makes the SQLite database of a server's pod: runs as `laptime make-sqlite` before the server."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def _own_file_only(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


def make_database(sql_folder: Path, file: Path) -> None:
    """Make a database in WAL mode from all `*.sql` of a folder, in the order of their names.

    A file that a killed container has left half is made anew. Whoever the server runs as can
    write the database.

    Raises:
        sqlite3.Error: a statement fails.
        OSError: the file cannot be written.
    """
    unfinished = file.with_name(file.name + ".new")
    for left in file.parent.glob(unfinished.name + "*"):
        left.unlink()
    connection = sqlite3.connect(unfinished)
    # The statements are a stranger's: they are about this file and no other.
    connection.set_authorizer(_own_file_only)
    try:
        # What was being made when the power went is made again: nothing needs to be safe here.
        connection.execute("PRAGMA synchronous = OFF")
        for sql in sorted(sql_folder.glob("*.sql")):
            connection.executescript(f"BEGIN;\n{sql.read_text('utf-8')}\nCOMMIT;")
        connection.execute("ANALYZE")
        connection.commit()
        # Stays in the file, for every connection that is opened later.
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()
    unfinished.chmod(0o666)
    unfinished.rename(file)
