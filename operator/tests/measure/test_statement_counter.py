"""Counting statements on a real Postgres, where the machine has one (LAPTIME_TEST_POSTGRES)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest

from laptime.measure.statement_counter import StatementCounter, postgres_counter
from laptime.measure.verdict import Wrong

URL = os.environ.get("LAPTIME_TEST_POSTGRES")


def test_a_database_that_is_not_there_is_no_fault_of_the_server() -> None:
    with (
        pytest.raises(Wrong) as caught,
        postgres_counter("postgresql://laptime:secret@127.0.0.1:1/laptime"),
    ):
        pass
    assert caught.value.verdict.reason == "StatementsNotCounted"
    assert "secret" not in caught.value.verdict.message


@pytest.fixture
def server() -> Iterator[psycopg.Connection]:
    """A connection that stands for the one of a server."""
    if URL is None:
        pytest.skip("LAPTIME_TEST_POSTGRES names no database with pg_stat_statements")
    with psycopg.connect(URL, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        connection.execute("CREATE TEMPORARY TABLE t (id int)")
        yield connection


@pytest.fixture
def counter(server: psycopg.Connection) -> Iterator[StatementCounter]:
    """What the verifier counts with."""
    assert URL is not None
    with postgres_counter(URL) as counter:
        yield counter


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id FROM t",
        "INSERT INTO t (id) VALUES (1) RETURNING id",
        "UPDATE t SET id = 2",
        "DELETE FROM t",
        "SET TIME ZONE 'UTC'",
        "SELECT set_config('TimeZone', 'UTC', false)",
    ],
)
def test_what_a_scenario_asks_for_counts(
    statement: str, server: psycopg.Connection, counter: StatementCounter
) -> None:
    before = counter.total()
    for _ in range(3):
        server.execute(statement)
    assert counter.total() - before == 3


@pytest.mark.parametrize(
    "statement",
    [
        "BEGIN",
        "COMMIT",
        "SELECT 1",
        "SELECT pg_advisory_unlock_all()",
        "SELECT typname FROM pg_type LIMIT 1",
        "SET application_name = 'x'",
        "DISCARD ALL",
    ],
)
def test_what_drivers_do_by_themselves_does_not(
    statement: str, server: psycopg.Connection, counter: StatementCounter
) -> None:
    before = counter.total()
    server.execute(statement)
    assert counter.total() == before
