"""What is wrong with a scenario that its schema cannot say. Pure.

The same rules hold for the scenarios of the catalogue, for `kubectl laptime validate`, and for the
operator before a run begins. Each message says what to write instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from laptime.api.base import Model
from laptime.api.scenario import ID_PLACEHOLDER, Check, Exchange, InitSql, Request, Sql
from laptime.api.server import MAX_POOL
from laptime.catalog.documents import stored_text
from laptime.catalog.header_names import header_problems, name_problems
from laptime.catalog.loader import presets
from laptime.catalog.models import Scenario
from laptime.catalog.service_problems import service_problems
from laptime.catalog.statements import statements_of
from laptime.catalog.templates import Encoding, Part, parts_of
from laptime.catalog.work_problems import work_problems

MAX_SQL_BYTES = 700_000
"""Of schema and seed together: they are in one ConfigMap of the run, but what is in images."""
MAX_SENT_BYTES = 80_000
"""Of requests with their sessions, and of checks: each are in one variable of a pod, which has 128
KiB at most."""
MAX_RESET_BYTES = 40_000
"""Of reset and warm together, as JSON: they are in one variable with the requests."""
MAX_KEPT_BYTES = 1_000_000
"""Of the whole scenario, all texts in it: a run keeps it in a ConfigMap, which holds 1 MiB."""

_NO_BODY = (204, 205, 304)
_VALUE = "\0"
"""Stands for a value in the path of a check, which cannot hold it."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def scenario_problems(scenario: Scenario) -> list[str]:
    """Return all that is wrong, one sentence each; nothing for a good one."""
    return [
        *_about_data(scenario),
        *service_problems(scenario.services),
        *work_problems(scenario),
        *_about_requests(scenario),
        *_about_checks(scenario),
        *_about_published(scenario),
        *_about_size(scenario),
    ]


def _about_data(scenario: Scenario) -> Iterator[str]:
    postgres = scenario.data.postgres if scenario.data else None
    sqlite = scenario.data.sqlite if scenario.data else None
    if postgres is not None:
        yield from _statements("data.postgres.schema", postgres.schema_)
        yield from _statements("data.postgres.seed", postgres.seed)
        yield from _statements("data.postgres.reset", postgres.reset)
        yield from _statements("data.postgres.warm", postgres.warm)
        for name in _twice(postgres.extensions):
            yield f"data.postgres.extensions: {name} is there twice"
        written = (*postgres.reset, *postgres.warm)
        statements = [one for part in written for one in statements_of(part.text)]
        if (size := _in_variable(json.dumps(statements))) > MAX_RESET_BYTES:
            yield (
                f"data.postgres: reset and warm have {size} bytes as they are sent, the most is "
                f"{MAX_RESET_BYTES}: make a function in the schema and call it"
            )
    if sqlite is not None:
        yield from _statements("data.sqlite.schema", sqlite.schema_)
        yield from _statements("data.sqlite.seed", sqlite.seed)
    for where, files, otherwise in (
        ("postgres", scenario.init_sql, ", or put them into an image"),
        ("sqlite", scenario.sqlite_sql, ""),
    ):
        size = _bytes(text for _, text in files)
        if size > MAX_SQL_BYTES:
            yield (
                f"data.{where}: schema and seed have {size} bytes, the most is {MAX_SQL_BYTES}: "
                "make rows by SQL, such as generate_series, instead of writing them out"
                f"{otherwise}"
            )


def _statements(place: str, parts: Iterable[Sql]) -> Iterator[str]:
    for number, part in enumerate(parts):
        if isinstance(part, InitSql) and part.image is not None:
            # Only Postgres itself reads what is in there.
            continue
        if not statements_of(part.text):
            yield f"{place}[{number}] has no statement: write one that ends with ;, or leave it out"


def _about_requests(scenario: Scenario) -> Iterator[str]:
    yield from _exchanges("requests", scenario.requests)
    # Tables are in a file of their own.
    feeders = [one for one in scenario.feeders if one.csv is None]
    if (size := _sent([*scenario.requests, *scenario.sessions, *feeders])) > MAX_SENT_BYTES:
        yield (
            f"requests, sessions and lists of values have {size} bytes together, the most is "
            f"{MAX_SENT_BYTES}: write long lists of values as csv"
        )
    for request in scenario.requests:
        asking = [check for check in scenario.checks if _asks_the_same(check, request)]
        if any(check.expect_status == request.expect_status for check in asking):
            continue
        others = ", ".join(f"{check.name} {check.expect_status}" for check in asking)
        yield (
            f"requests.{request.name}: no check asks {request.method} {request.path}"
            + (f" and expects status {request.expect_status} ({others})" if asking else "")
            + ", so nobody would know whether its answers are right: add a check with method "
            + f"{request.method} and path {_example(request)}"
            + (f", and expectStatus {request.expect_status}" if asking else "")
        )


def _example(request: Request) -> str:
    number = request.ids.first if request.ids else 1
    return request.path.replace(ID_PLACEHOLDER, str(number))


def _asks_the_same(check: Check, request: Exchange) -> bool:
    """Whether a check asks for what a load asks for: any text stands for a value of its path."""
    if check.method != request.method:
        return False
    try:
        asked = "".join(part.text or _VALUE for part in parts_of(check.path, ids=True))
        wanted = parts_of(request.path, ids=True)
    except ValueError:
        # What is wrong with the template is said already.
        return True
    return _becomes(wanted, asked)


def _becomes(template: Sequence[Part], text: str) -> bool:
    """Whether a template can become a text, whichever values stand in it.

    Part by part, with all places of the text at which the parts so far may end: a regular
    expression would try each way to share the text among the values, which never ends.
    """
    ends = {0}
    for part in template:
        if part.text:
            ends = {end + len(part.text) for end in ends if text.startswith(part.text, end)}
        else:
            ends = set(_ends_of_value(part, text, ends))
    return len(text) in ends


def _ends_of_value(part: Part, text: str, begins: Container[int]) -> Iterator[int]:
    """Yield where a value may end that begins at one of these places."""
    inside = False
    for place, character in enumerate(text):
        inside = (inside or place in begins) and _stands_in(part, character)
        if inside:
            yield place + 1


def _stands_in(part: Part, character: str) -> bool:
    if character == _VALUE or part.encoding is Encoding.RAW:
        return True
    return character.isdecimal() if part.name == ID_PLACEHOLDER else character not in "/?&="


def _about_checks(scenario: Scenario) -> Iterator[str]:
    yield from _exchanges("checks", scenario.checks)
    if (size := _sent(scenario.checks)) > MAX_SENT_BYTES:
        yield (
            f"checks have {size} bytes together, the most is {MAX_SENT_BYTES}: compare less of "
            "large answers, by expectedPart or jsonSchema"
        )
    kept = False
    for check in scenario.checks:
        place = f"checks.{check.name}"
        if not kept and _mentions_id(check):
            yield (
                f"{place}: no check before it keeps an id: write keepsId: true in one of them, or "
                "a number instead of {id}"
            )
        kept = kept or check.keeps_id
        if check.expected is not None and check.expected_part is not None:
            yield (
                f"{place}: write either expected (the whole answer) or expectedPart (fields that "
                "it has)"
            )
        if check.expect_status in _NO_BODY and check.knows_body:
            yield (
                f"{place}: an answer with status {check.expect_status} has no body: leave "
                "contentType, jsonSchema and expected out"
            )
        if check.constant and not _is_compared(check, scenario):
            yield (
                f"{place}.constant: no request is this very one: write it at the check that has "
                "the name, method, path, headers, cookies, body and status of a request without "
                "values, and says something of its body"
            )
        if check.content_type is not None and not re.fullmatch(
            r"[-+.\w]+/[-+.\w]+", check.content_type
        ):
            yield (
                f"{place}.contentType: {check.content_type!r} is no media type: write for example "
                "application/json, without parameters"
            )
        yield from _about_schema(place, check)
        yield from _about_afterwards(place, check, scenario)


def _is_compared(check: Check, scenario: Scenario) -> bool:
    """Whether answers under load are compared by what a check says."""
    alike = (one for one in scenario.requests if one.name == check.name)
    return any(scenario.body_check(one, scenario.requests) == "same" for one in alike)


def _about_schema(place: str, check: Check) -> Iterator[str]:
    schema = check.json_schema
    if schema is None:
        return
    import jsonschema
    from referencing.exceptions import Unresolvable

    if (leads := next(_leading_out(schema), None)) is not None:
        yield f"{place}.jsonSchema: {leads} leads out of the schema: write #/$defs/... instead"
        return
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        where = "/".join(map(str, error.absolute_path)) or "the schema"
        yield f"{place}.jsonSchema is no JSON Schema: {where}: {error.message[:200]}"
        return
    if check.keeps_id and "id" not in schema.get("required", []):
        yield (
            f"{place}: keepsId takes the field id of the answer: write required: [id] in its "
            "jsonSchema"
        )
    said = json.dumps(check.expected)
    compared = check.expected is not None and ID_PLACEHOLDER not in said and "{{" not in said
    validator = jsonschema.Draft202012Validator(schema)
    try:
        # What refers to itself without an end does so for any value.
        broken = next(validator.iter_errors(check.expected if compared else None), None)
    except RecursionError:
        yield f"{place}.jsonSchema refers to itself without an end: leave the $ref out"
        return
    except Unresolvable as error:
        yield f"{place}.jsonSchema: there is no {error.ref[:100]} in it: write it there"
        return
    if compared and broken is not None:
        yield f"{place}: expected does not meet its own jsonSchema: {broken.message[:200]}"


def _about_afterwards(place: str, check: Check, scenario: Scenario) -> Iterator[str]:
    if check.afterwards and not scenario.offers_postgres:
        yield f"{place}.afterwards asks Postgres: write data.postgres, or leave afterwards out"
    for number, one in enumerate(check.afterwards):
        rows = one.rows
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            yield (
                f"{place}.afterwards[{number}].rows must be an array of rows, each an array of "
                "values, such as [[3]]"
            )
        if len(statements_of(one.query)) != 1:
            yield f"{place}.afterwards[{number}].query must be one query"


def _about_published(scenario: Scenario) -> Iterator[str]:
    for number, one in enumerate(scenario.published.measurements if scenario.published else []):
        if (one.load.closed is None) == (one.load.open is None):
            yield f"published.measurements[{number}].load: write either closed or open"
        known = {request.name for request in scenario.requests}
        known |= {session.name for session in scenario.sessions}
        for name in one.load.endpoints or []:
            if name not in known:
                yield (
                    f"published.measurements[{number}].load.endpoints: there is no request {name}; "
                    f"there is {', '.join(sorted(known))}"
                )
        yield from _about_pools(
            f"published.measurements[{number}].databaseConnections", one.database_connections
        )
        for place, row in enumerate(one.servers):
            pool = row.database_connections
            if pool is not None and not 1 <= pool <= MAX_POOL:
                yield (
                    f"published.measurements[{number}].servers[{place}].databaseConnections: "
                    f"{pool} is no count of connections: write 1 to {MAX_POOL}, or leave it out"
                )


def _about_pools(place: str, by_preset: Mapping[str, int]) -> Iterator[str]:
    for preset, connections in by_preset.items():
        if preset not in presets():
            yield f"{place}: there is no preset {preset}; there is {', '.join(presets())}"
        elif not 1 <= connections <= MAX_POOL:
            yield (
                f"{place}.{preset}: {connections} is no count of connections: write 1 to "
                f"{MAX_POOL}, or leave {preset} out"
            )


def _exchanges(place: str, exchanges: Iterable[Exchange]) -> Iterator[str]:
    every = list(exchanges)
    for name in _twice(one.name for one in every):
        yield f"{place}: two have the name {name}: give each a name of its own"
    for one in every:
        yield from header_problems(f"{place}.{one.name}.headers", one.headers)
        yield from name_problems(f"{place}.{one.name}.cookies", one.cookies)
        if one.method == "GET" and one.body is not None:
            yield f"{place}.{one.name}: a GET has no body: write method POST, or leave body out"


def _mentions_id(check: Check) -> bool:
    said = (check.path, check.body or "", json.dumps([check.expected, check.expected_part]))
    return any(ID_PLACEHOLDER in text for text in said)


def _leading_out(node: Any) -> Iterator[str]:
    """Yield references that a library might fetch from somewhere."""
    if isinstance(node, list):
        for child in node:
            yield from _leading_out(child)
    if isinstance(node, dict):
        for key, value in node.items():
            if key in _REFERENCES and not str(value).startswith("#"):
                yield f"{key}: {str(value)[:100]}"
            elif key == "$id":
                yield f"$id: {str(value)[:100]}"
            yield from _leading_out(value)


def _twice(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    again: dict[str, None] = {}
    for name in names:
        if name in seen:
            again[name] = None
        seen.add(name)
    return list(again)


def _about_size(scenario: Scenario) -> Iterator[str]:
    size = len(stored_text(scenario).encode())
    if size > MAX_KEPT_BYTES:
        yield (
            f"the scenario has {size} bytes with all its texts, the most is {MAX_KEPT_BYTES}, "
            "since a run keeps it in a ConfigMap: make rows by SQL, or leave columns of tables out"
        )


def _sent(parts: Iterable[Model]) -> int:
    wire = [one.model_dump(mode="json", by_alias=True, exclude_defaults=True) for one in parts]
    return _in_variable(json.dumps(wire))


def _in_variable(text: str) -> int:
    """Return how many bytes of a pod's variable a text takes."""
    # Each $ is written twice, so that the kubelet expands none.
    return len(text.encode()) + text.count("$")


def _bytes(texts: Iterable[str]) -> int:
    return sum(map(_in_variable, texts))
