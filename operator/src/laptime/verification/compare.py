"""Whether an answer is the right one, and where it first differs. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jsonschema

from laptime.api.text import without_passwords

_QUOTED = 120


def parse_strict(text: str) -> Any:
    """Return the JSON value of a text; NaN and infinities are refused, as the standard says.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def refuse_constant(constant: str) -> None:
    """Take no NaN and no infinity for a number."""
    raise ValueError(f"{constant} is not JSON")


def quoted(value: Any) -> str:
    """Return a JSON value as short text: cut off when long, and without passwords."""
    text = without_passwords(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "…"


def first_difference(
    expected: Any,
    got: Any,
    path: str = "$",
    *,
    partly: bool = False,
    quote: Callable[[Any], str] = quoted,
) -> str | None:
    """Return where and how two JSON values first differ, None when they are equal.

    The order of an array counts, the order of an object's fields does not; 1 and 1.0 are the same
    number, 1 and true are not. With `partly` objects may have fields that are not expected.
    `quote` says how values stand in the text.
    """
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        return _object_difference(expected, got, path, partly, quote)
    if _is_array(expected) and _is_array(got):
        for index, (one, other) in enumerate(zip(expected, got, strict=False)):
            difference = first_difference(
                one, other, f"{path}[{index}]", partly=partly, quote=quote
            )
            if difference:
                return difference
        if len(expected) != len(got):
            return f"{path}: expected {len(expected)} items, got {len(got)}"
        return None
    same_kind = isinstance(expected, bool) == isinstance(got, bool)
    if same_kind and expected == got:
        return None
    return f"{path}: expected {quote(expected)}, got {quote(got)}"


def _object_difference(
    expected: Mapping[str, Any],
    got: Mapping[str, Any],
    path: str,
    partly: bool,
    quote: Callable[[Any], str],
) -> str | None:
    for key, value in expected.items():
        if key not in got:
            return f"{path}: the field {quote(key)} is missing"
        difference = first_difference(value, got[key], f"{path}.{key}", partly=partly, quote=quote)
        if difference:
            return difference
    extra = None if partly else next((key for key in got if key not in expected), None)
    return None if extra is None else f"{path}: unexpected field {quote(extra)}"


def first_violation(
    schema: Mapping[str, Any], got: Any, quote: Callable[[Any], str] = quoted
) -> str | None:
    """Return where and how a JSON value first breaks a JSON Schema, None when it does not.

    Raises:
        RecursionError: the schema refers to itself without an end, or the value is too deep.
        Unresolvable: the schema refers to what is not in it.
    """
    errors = jsonschema.Draft202012Validator(schema).iter_errors(got)
    first = min(errors, key=lambda error: list(error.absolute_path), default=None)
    if first is None:
        return None
    rule = f"{first.validator} {quote(first.validator_value)}"
    return f"{first.json_path}: expected {rule}, got {quote(first.instance)}"


def _is_array(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
