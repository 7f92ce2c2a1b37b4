"""What a check keeps of an answer, and where: as the generator does, case by case."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from laptime.catalog import Capture
from laptime.verification.captures import MAX_VALUE_BYTES, captured

HEADERS = httpx.Headers(
    [
        ("Location", "/items/7"),
        ("set-cookie", "a=1; Path=/"),
        ("Set-Cookie", 'sid="x=y"; HttpOnly'),
        ("X", "first"),
        ("X", "second"),
    ]
)
BODY = b'{"token":"a\\"b","user":{"id":12,"a/b":[true,{"c.d":"deep"}],"none":null,"list":[1, 2]}}'


# images/k6/internal/session/session_test.go has the same.
@pytest.mark.parametrize(
    ("source", "value"),
    [
        ({"json": "/token"}, 'a"b'),
        ({"json": "/user/id"}, 12),
        ({"json": "/user/a~1b/0"}, True),
        ({"json": "/user/a~1b/1/c.d"}, "deep"),
        ({"json": "/user/list"}, [1, 2]),
        ({"json": "/user/none"}, None),
        ({"json": "/user/*"}, None),
        ({"json": "/user/#"}, None),
        ({"json": "/user/list/2"}, None),
        ({"json": "/user/id/x"}, None),
        ({"json": "/@this"}, None),
        ({"header": "location"}, "/items/7"),
        ({"header": "x"}, "first"),
        ({"header": "Locatio"}, None),
        ({"cookie": "sid"}, "x=y"),
        ({"cookie": "SID"}, None),
        ({"regex": r'"id":(\d+)'}, "12"),
        ({"regex": r"\d+"}, "12"),
        ({"regex": r"x(\d+)"}, None),
        ({"regex": r"(x)?\d+"}, None),
        ({"header": "Location", "regex": "/items/(.+)"}, "7"),
        ({"cookie": "sid", "regex": "[a-z]$"}, "y"),
        ({"json": "/user", "regex": r'"id":(\d+)'}, "12"),
    ],
)
def test_captures(source: dict[str, str], value: Any) -> None:
    capture = Capture.model_validate({"name": "it", **source})
    assert captured(capture, HEADERS, BODY) == value


def test_what_is_not_json_has_nothing_at_a_pointer() -> None:
    assert captured(Capture(name="it", pointer="/a"), HEADERS, b"<html>") is None


def test_a_value_that_no_request_would_carry_is_none() -> None:
    capture = Capture(name="it", regex="(?s).*")
    assert captured(capture, HEADERS, b"x" * MAX_VALUE_BYTES) == "x" * MAX_VALUE_BYTES
    assert captured(capture, HEADERS, b"x" * (MAX_VALUE_BYTES + 1)) is None
