"""A check with values in the places of its templates. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laptime.api.scenario import ID_PLACEHOLDER, Afterwards, Check
from laptime.catalog.templates import Place, Value, body_place, parts_of, plain_text, rendered


def filled(check: Check, values: Mapping[str, Value]) -> Check:
    """Return a check as it is asked: what is in braces is filled in, also in what is expected.

    But for `afterwards`, which may name what the answer to this very check has.

    Raises:
        ValueError: a value is missing, or cannot stand where it is wanted.
    """

    def texts(fields: Mapping[str, str], place: Place) -> dict[str, str]:
        return {name: rendered(text, place, values) for name, text in fields.items()}

    body = None if check.body is None else rendered(check.body, body_place(check), values)
    return check.model_copy(
        update={
            "path": rendered(check.path, Place.PATH, values),
            "headers": texts(check.headers, Place.HEADER),
            "cookies": texts(check.cookies, Place.COOKIE),
            "body": body,
            "expect_headers": texts(check.expect_headers, Place.HEADER),
            "expected": _expected(check.expected, values),
            "expected_part": _expected(check.expected_part, values),
        }
    )


def filled_afterwards(afterwards: Afterwards, values: Mapping[str, Value]) -> Afterwards:
    """Return what must hold as it is asked; it is filled in later, with what the answer had too.

    Raises:
        ValueError: as for `filled`.
    """
    return Afterwards(
        query=rendered(afterwards.query, Place.QUERY, values),
        rows=_expected(afterwards.rows, values),
    )


def _expected(node: Any, values: Mapping[str, Value]) -> Any:
    """Return a JSON value with values in its texts; a text that is nothing else becomes it.

    So `"{{item}}"` is a number where one was captured.
    """
    if isinstance(node, Mapping):
        return {key: _expected(child, values) for key, child in node.items()}
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_expected(child, values) for child in node]
    if not isinstance(node, str):
        return node
    if node == ID_PLACEHOLDER:
        return values.get(ID_PLACEHOLDER, node)
    parts = parts_of(node)
    for part in parts:
        if part.name and part.name not in values:
            raise ValueError(f"there is no value {{{{{part.name}}}}}")
    if len(parts) == 1 and parts[0].name:
        return values[parts[0].name]
    return "".join(plain_text(values[part.name]) if part.name else part.text for part in parts)
