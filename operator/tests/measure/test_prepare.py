"""The database of a script is brought to its state once, however many generators there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from laptime.measure import prepare
from laptime.measure.generator import parse_generator_output
from laptime.measure.prepare import prepare_database
from laptime.verification import connect
from tests.verification.postgres_that_is_full import full_postgres


@pytest.fixture
def statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return statements for a database where nobody listens."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    file = tmp_path / "reset.json"
    file.write_text('["SELECT 1"]')
    return file


@pytest.mark.parametrize("index", [None, "0"])
def test_the_first_generator_does_it(
    statements: Path, monkeypatch: pytest.MonkeyPatch, index: str | None
) -> None:
    if index is None:
        monkeypatch.delenv("JOB_COMPLETION_INDEX", raising=False)
    else:
        monkeypatch.setenv("JOB_COMPLETION_INDEX", index)
    said = prepare_database(statements)
    assert said is not None
    assert said.reason == "DatabaseNotReachable"
    assert "could not be reset" in said.message
    # As the operator reads it in the log.
    assert parse_generator_output(f"some line\n{said.to_line()}\n") == said


def test_a_server_that_has_all_connections_open_is_no_fault_of_the_network(
    statements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "_FULL_SECONDS", 0.2)
    with full_postgres() as url:
        monkeypatch.setenv("DATABASE_URL", url)
        said = prepare_database(statements)
    assert said is not None
    assert said.reason == "TooManyConnections"
    assert "DATABASE_CONNECTIONS" in said.message


def test_the_others_leave_it_to_the_first(
    statements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")
    assert prepare_database(statements) is None


def test_the_databases_of_other_servers_forget_what_they_have_counted(
    statements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else autovacuum sees to what the trial before has written there while this one goes on."""
    asked: list[tuple[str, str]] = []

    class Fake:
        """A connection to the Postgres of a run whose servers have a database each."""

        def __init__(self, url: str) -> None:
            self._name = conninfo_to_dict(url)["dbname"]

        def __enter__(self) -> Fake:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def execute(self, sql: str) -> Fake:
            asked.append((str(self._name), sql))
            return self

        def fetchall(self) -> list[tuple[str]]:
            return [("laptime_old",), ("laptime_old_control",)]

    monkeypatch.setattr(prepare, "connect", Fake)
    monkeypatch.setenv("DATABASE_URL", "postgresql://laptime:secret@demo-postgres:5432/laptime_new")
    assert prepare_database(statements) is None
    # It is not among the statements that are counted, which are reset after it.
    assert [name for name, _ in asked] == [
        "laptime_new", "laptime_old", "laptime_old_control", "laptime_new",
    ]  # fmt: skip
    assert [sql for _, sql in asked[1:]] == [*2 * ["SELECT pg_stat_reset()"], "SELECT 1"]
