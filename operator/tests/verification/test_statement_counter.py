"""Counting statements without a database; images/servers/tests counts them on a real one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import psycopg
import pytest

from laptime.verification import connect
from laptime.verification.statement_counter import PostgresWitness, postgres_witness
from laptime.verification.verdict import Wrong
from tests.verification.postgres_that_is_full import IN_USE, RESERVED, full_postgres


def test_a_database_that_is_not_there_is_no_fault_of_the_server() -> None:
    with (
        pytest.raises(Wrong) as caught,
        postgres_witness("postgresql://laptime:secret@127.0.0.1:1/laptime"),
    ):
        pass
    assert caught.value.verdict.reason == "DatabaseNotReachable"
    assert "secret" not in caught.value.verdict.message


@pytest.mark.parametrize("words", [IN_USE, RESERVED])
def test_a_database_whose_connections_a_server_has_all_open_is_no_fault_of_the_network(
    monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr(connect, "_FULL_SECONDS", 0.2)
    with full_postgres(words) as url, pytest.raises(Wrong) as caught, postgres_witness(url):
        pass
    assert caught.value.verdict.reason == "TooManyConnections"
    assert "DATABASE_CONNECTIONS" in caught.value.verdict.message
    assert words in caught.value.verdict.message
    assert "secret" not in caught.value.verdict.message


def test_a_database_that_is_full_for_a_moment_is_asked_again() -> None:
    with full_postgres(refusals=2) as url, postgres_witness(url):
        pass


class Refusing:
    """A connection on which each query ends with an error."""

    def __init__(self, error: psycopg.Error) -> None:
        self.error = error

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def execute(self, query: str, **_: Any) -> None:
        if query.startswith("SELECT"):
            raise self.error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (psycopg.errors.QueryCanceled("canceling statement due to timeout"), "QueryFailed"),
        (psycopg.errors.UndefinedTable("relation t does not exist"), "QueryFailed"),
        (psycopg.errors.AdminShutdown("terminating connection"), "DatabaseNotReachable"),
    ],
)
def test_a_query_that_takes_too_long_is_no_fault_of_the_network(
    error: psycopg.Error, reason: str
) -> None:
    witness = PostgresWitness(cast("psycopg.Connection", Refusing(error)))
    with pytest.raises(Wrong) as caught:
        witness.rows("SELECT * FROM orders")
    said = caught.value.verdict
    assert said.reason == reason
    assert ("SELECT * FROM orders" in said.message) is (reason == "QueryFailed")
    assert ("10 s" in said.message) is isinstance(error, psycopg.errors.QueryCanceled)
