"""What a check keeps of an answer, and where: as the generator does, case by case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from laptime.catalog import Capture, plain_text
from laptime.verification.captures import MAX_BODY_BYTES, MAX_VALUE_BYTES, captured

# The generator is tested with the same cases.
SHARED: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "images/k6/internal/session/testdata/captures.json").read_text(
        "utf-8"
    )
)
HEADERS = httpx.Headers()
BODY = str(SHARED["body"]).encode()


def found(case: dict[str, Any]) -> Any:
    """Return what a case captures from its answer."""
    source = {key: case[key] for key in ("json", "header", "cookie", "regex") if key in case}
    lines = [line.partition(": ") for line in case.get("head", SHARED["head"])]
    headers = httpx.Headers([(name, value) for name, _, value in lines])
    capture = Capture.model_validate({"name": "it", **source})
    return captured(capture, headers, case.get("body", SHARED["body"]).encode())


@pytest.mark.parametrize("case", SHARED["cases"], ids=str)
def test_what_is_captured_is_what_the_generator_captures(case: dict[str, Any]) -> None:
    value = found(case)
    assert (None if value is None else plain_text(value)) == case.get("text")


@pytest.mark.parametrize(
    ("pointer", "value"), [("/user/id", 12), ("/user/a~1b/0", True), ("/user/list", [1, 2])]
)
def test_what_is_no_text_stays_what_it_is(pointer: str, value: Any) -> None:
    kept = found({"json": pointer})
    assert (type(kept), kept) == (type(value), value)


def test_what_is_not_json_has_nothing_at_a_pointer() -> None:
    assert captured(Capture(name="it", pointer="/a"), HEADERS, b"<html>") is None


def test_a_value_that_no_request_would_carry_is_none() -> None:
    capture = Capture(name="it", regex="(?s).*")
    assert captured(capture, HEADERS, b"x" * MAX_VALUE_BYTES) == "x" * MAX_VALUE_BYTES
    assert captured(capture, HEADERS, b"x" * (MAX_VALUE_BYTES + 1)) is None


def test_as_much_of_a_body_is_looked_at_as_under_load() -> None:
    assert SHARED["maxBody"] == MAX_BODY_BYTES
    # The last letter is cut in two.
    rest = ("é" * (MAX_BODY_BYTES // 2 + 10)).encode()
    for body, found in (
        (b'{"it": "a", "rest": "' + rest + b'"}', "a"),
        (b'{"rest": "' + rest + b'", "it": "a"}', None),
        (b'{"list": ["' + rest + b'"], "it": "a"}', None),
    ):
        assert len(body) > MAX_BODY_BYTES
        assert captured(Capture(name="it", pointer="/it"), HEADERS, body) == found
        by_regex = Capture(name="it", regex='"it": "(.)"')
        assert captured(by_regex, HEADERS, body) == found


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[",
        '{"a"',
        '{"a":',
        '{"a": NaN}',
        '{"b": NaN, "a": 1}',
        '{"b": 1 "a": 1}',
        '{"b" 1, "a": 1}',
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=lambda body: body[:20],
)
def test_what_ends_too_soon_has_nothing_behind_its_end(body: str) -> None:
    assert captured(Capture(name="it", pointer="/a"), HEADERS, body.encode()) is None
