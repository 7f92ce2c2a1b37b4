"""The statements that a database ran for a trial, and those that the work needs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from laptime.api.loads import Load
from laptime.api.results import Figures
from laptime.catalog import Request
from laptime.measure.generator import GeneratorStatement

_SHOWN = 200
# Possessive: it could be cut into comments in more ways than can be tried, and a word in a comment
# is no statement.
_GAP = r"(?:[\s;]|/\*.*?\*/|--[^\n]*+)*+"
# What a driver does around the work and no scenario counts: transactions, settings, clean-up, and
# pings (of a number, or of nothing but a comment). The time zone is a setting that scenarios ask
# for. The counter of the verifier (statement_counter.py) draws the same line, in SQL.
_AROUND = re.compile(
    _GAP + r"((BEGIN|START\s+TRANSACTION|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|SHOW|RESET"
    r"|DISCARD|DEALLOCATE|LISTEN|UNLISTEN|CLOSE"
    r"|SET(?!\s+((SESSION|LOCAL)\s+)?TIME\s*ZONE\b))\b"
    r"|SELECT\s+[$]?\d+[\s;]*$|$)",
    re.IGNORECASE | re.DOTALL,
)
# What a driver asks the catalogue. A server that sleeps in the database does that itself.
_CATALOGUE = re.compile(r"\bpg_(?!sleep\b)", re.IGNORECASE)


def statements_of_work(statements: Iterable[GeneratorStatement]) -> int:
    """Return how many statements ran that do work, in the measured phase."""
    return sum(one.calls for one in statements if _is_work(one.query[:_SHOWN]))


def _is_work(query: str) -> bool:
    return _AROUND.match(query) is None and _CATALOGUE.search(query) is None


def expected_statements(
    requests: Sequence[Request], endpoints: Mapping[str, Figures], load: Load
) -> float | None:
    """Return the statements per right answer that the work needs, by the scenario's contract.

    None for a user's own script, and where the scenario does not say it of each endpoint.
    """
    if load.script is not None:
        return None
    by_name = {request.name: request.statements for request in requests}
    right = {name: one.requests - one.errors for name, one in endpoints.items()}
    total = sum(right.values())
    needed = 0.0
    for name, count in right.items():
        statements = by_name.get(name)
        if statements is None:
            return None
        needed += statements * count
    return needed / total if total > 0 else None


def most_in_flight(load: Load) -> int:
    """Return how many requests may be under way at once."""
    return (load.users or 0) if load.closed is not None or load.open is not None else 0
