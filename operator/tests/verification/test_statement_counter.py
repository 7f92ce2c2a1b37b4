"""Counting statements without a database; images/servers/tests counts them on a real one."""

from __future__ import annotations

import pytest

from laptime.verification.statement_counter import postgres_witness
from laptime.verification.verdict import Wrong


def test_a_database_that_is_not_there_is_no_fault_of_the_server() -> None:
    with (
        pytest.raises(Wrong) as caught,
        postgres_witness("postgresql://laptime:secret@127.0.0.1:1/laptime"),
    ):
        pass
    assert caught.value.verdict.reason == "DatabaseNotReachable"
    assert "secret" not in caught.value.verdict.message
