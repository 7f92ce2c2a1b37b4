"""The database file that a server finds."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from laptime.catalog import scenarios
from laptime.measure.sqlite_file import make_database


def folder_with(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "sql"
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text)
    return folder


@pytest.mark.parametrize("scenario", ["posts", "tasks"])
def test_a_server_finds_the_rows_in_wal_mode_and_may_write(scenario: str, tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    for name, text in scenarios()[scenario].sqlite_sql:
        (folder / name).write_text(text)
    file = tmp_path / "laptime.db"
    make_database(folder, file)
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute(f"SELECT count(*) > 100 FROM {scenario}").fetchone() == (1,)
        connection.execute(f"DELETE FROM {scenario} WHERE id = 1")
    assert stat.S_IMODE(file.stat().st_mode) == 0o666
    assert {path.name for path in tmp_path.glob("laptime.db*")} <= {
        "laptime.db",
        "laptime.db-wal",
        "laptime.db-shm",
    }


def test_what_a_killed_container_left_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "x.db.new").write_text("half a file")
    (tmp_path / "x.db.new-journal").write_text("and its journal")
    make_database(folder_with(tmp_path, a="CREATE TABLE t (n integer);"), tmp_path / "x.db")
    assert sorted(path.name for path in tmp_path.glob("x.db*")) == ["x.db"]


def test_files_run_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path, **{"20-b": "INSERT INTO t VALUES (1);", "10-a": "CREATE TABLE t (n integer);"}
    )
    make_database(folder, tmp_path / "x.db")
    assert sqlite3.connect(tmp_path / "x.db").execute("SELECT n FROM t").fetchall() == [(1,)]


def test_a_wrong_statement_leaves_no_database(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.Error, match="syntax error"):
        make_database(folder_with(tmp_path, a="oops;"), tmp_path / "x.db")
    assert not (tmp_path / "x.db").exists()
