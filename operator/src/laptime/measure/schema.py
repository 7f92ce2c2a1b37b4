"""Whether a server was measured on the schema of the database that it was checked on. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from laptime.api import doubts
from laptime.api.results import TrialResult
from laptime.measure.validity import Judgement, doubted

_BETWEEN = ","
_NOBODYS = "no server was checked on it: one has changed it since, or the database was made anew"


def on_their_schemas(
    results: Sequence[TrialResult], checked: Mapping[str, str], own_databases: bool = False
) -> list[TrialResult]:
    """Return results, doubtful where the database had another schema than at the server's check.

    `checked` says by the name of a server on which one its answers were right, with a comma between
    two: that before its first request, and that after its last. `own_databases`: no server is on
    that of another one, however alike they are. A server that
    migrates a database which others share changes what they are measured on, and is checked after
    some of them. Results of older versions say nothing, and what other versions of the question
    were answered is not compared.
    """
    return [_judged(one, checked, own_databases) for one in results]


def _judged(result: TrialResult, checked: Mapping[str, str], own_databases: bool) -> TrialResult:
    now, before = result.database_schema, checked.get(result.server)
    if now is None or before is None:
        return result
    right = before.split(_BETWEEN)
    if now in right or _question(now) not in map(_question, right):
        return result
    why = "it has changed since, or the database was made anew"
    if not own_databases:
        others = [name for name, said in checked.items() if now in said.split(_BETWEEN)]
        why = f"on that of server {others[0]}" if others else _NOBODYS
    said = doubts.OTHER_SCHEMA.says(server=result.server, why=why)
    return doubted(result, Judgement.of([said]))


def _question(schema: str) -> str:
    return schema.partition("-")[0]
