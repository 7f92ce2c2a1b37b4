"""Statements as Laptime counts them: before a run, and under load."""

from __future__ import annotations

import json

from tiers import Database

from laptime.measure.generator import GeneratorStatement
from laptime.measure.statements import statements_of_work
from laptime.verification.statement_counter import postgres_witness

# As the load generator asks, which cuts long ones too.
_RAN = """
SELECT coalesce(json_agg(json_build_object('query', left(query, 200), 'calls', calls)), '[]')
FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_%'
"""


def reset(database: Database) -> None:
    """Forget the statements that ran so far."""
    database.query("SELECT pg_stat_statements_reset()")


def counted(database: Database) -> tuple[int, int]:
    """Statements of work since the last reset: as the verifier counts, and as a trial does."""
    ran = json.loads(database.query(_RAN))
    with postgres_witness(database.url) as counter:
        verified = counter.total()
    return verified, statements_of_work(GeneratorStatement.model_validate(one) for one in ran)
