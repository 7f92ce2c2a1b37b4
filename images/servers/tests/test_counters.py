"""Both counters draw one line between the work of a scenario and what drivers do around it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from counters import counted, reset
from tiers import Database


@pytest.fixture
def connection(database: Database) -> Iterator[psycopg.Connection]:
    """A connection that stands for the one of a server."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute("CREATE TEMPORARY TABLE t (id int)")
        reset(database)
        yield connection


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id FROM t",
        "INSERT INTO t (id) VALUES (1) RETURNING id",
        "UPDATE t SET id = 2",
        "DELETE FROM t",
        "SET TIME ZONE 'UTC'",
        "SET SESSION timezone TO 'UTC'",
        "SELECT set_config('TimeZone', 'UTC', false)",
    ],
)
def test_what_a_scenario_asks_for_counts(
    statement: str, connection: psycopg.Connection, database: Database
) -> None:
    for _ in range(3):
        connection.execute(statement)
    assert counted(database) == (3, 3)


@pytest.mark.parametrize(
    "statement",
    [
        "BEGIN",
        "COMMIT",
        "SELECT 1",
        "SELECT pg_advisory_unlock_all()",
        "SELECT typname FROM pg_type LIMIT 1",
        "SET application_name = 'x'",
        "SET search_path TO public",
        "DISCARD ALL",
        "/* ping */",
    ],
)
def test_what_drivers_do_by_themselves_does_not(
    statement: str, connection: psycopg.Connection, database: Database
) -> None:
    connection.execute(statement)
    assert counted(database) == (0, 0)
