"""Whether a server was measured on the schema of the database that it was checked on. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from laptime.api import doubts
from laptime.api.results import TrialResult
from laptime.measure.validity import Judgement, doubted


def on_their_schemas(
    results: Sequence[TrialResult], checked: Mapping[str, str]
) -> list[TrialResult]:
    """Return results, doubtful where the database had another schema than at the server's check.

    `checked` says by the name of a server on which one its answers were right. A server that
    migrates a database which others share changes what they are measured on, and is checked after
    some of them. Results of older versions say nothing, and what other versions of the question
    were answered is not compared.
    """
    return [_judged(one, checked) for one in results]


def _judged(result: TrialResult, checked: Mapping[str, str]) -> TrialResult:
    now, before = result.database_schema, checked.get(result.server)
    if now is None or before is None or now == before or _question(now) != _question(before):
        return result
    others = [name for name, schema in checked.items() if schema == now]
    why = f"on that of server {others[0]}" if others else "a server has changed it since"
    said = doubts.OTHER_SCHEMA.says(server=result.server, why=why)
    return doubted(result, Judgement.of([said]))


def _question(schema: str) -> str:
    return schema.partition("-")[0]
