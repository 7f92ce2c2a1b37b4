"""Finds in an answer what later requests need of it. Pure.

As the generator does (images/k6/internal/session/capture.go): what a check could keep, a user of a
load can keep as well.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from itertools import count

import httpx

from laptime.catalog import Capture, Value, pattern_of, plain_text
from laptime.verification.compare import refuse_constant

MAX_BODY_BYTES = 1024 * 1024
"""How much of a body is looked at, as under load: what stands behind it would never be found."""
MAX_VALUE_BYTES = 16 * 1024
"""A value that is longer is none that a request carries."""

_DECODER = json.JSONDecoder(parse_constant=refuse_constant)
_SPACE = re.compile(r"[ \t\n\r]*")


def captured(capture: Capture, headers: httpx.Headers, body: bytes) -> Value | None:
    """Return the value in an answer; None where it is not there."""
    value = _found(capture, headers, body)
    if capture.regex is not None and value is not None:
        found = pattern_of(capture.regex).search(plain_text(value))
        value = None if found is None else found[1 if found.re.groups else 0]
    if value is None or len(plain_text(value).encode()) > MAX_VALUE_BYTES:
        return None
    return value


def _found(capture: Capture, headers: httpx.Headers, body: bytes) -> Value | None:
    body = body[:MAX_BODY_BYTES]
    if capture.pointer is not None:
        return _at(capture.pointer, body)
    if capture.header is not None:
        return next(iter(headers.get_list(capture.header)), None)
    if capture.cookie is not None:
        # Of several the last one counts, as it does for browsers; an empty one takes a cookie away.
        return next(filter(None, reversed(list(_cookies(headers, capture.cookie)))), None)
    return body.decode("utf-8", "replace")


def _at(pointer: str, body: bytes) -> Value | None:
    """Return what stands at a JSON pointer (RFC 6901) of a body, which may have been cut off.

    Of a key that stands there twice the first one counts, as under load.
    """
    try:
        # The last letter may be cut off too.
        text = codecs.utf_8_decode(body, "strict", False)[0]
        at = _after_space(text, 0)
        for part in pointer.split("/")[1:]:
            at = _inside(text, at, part.replace("~1", "/").replace("~0", "~"))
        found: Value | None = _DECODER.raw_decode(text, at)[0]
    except (ValueError, RecursionError):
        return None
    return found


def _inside(text: str, at: int, key: str) -> int:
    """Return where a value begins in the object or array that begins somewhere.

    Raises:
        ValueError: it is not there, or what comes before it is not JSON.
    """
    keyed = text[at : at + 1] == "{"
    if not keyed and (text[at : at + 1] != "[" or not key.isdecimal()):
        raise ValueError("nothing has a key there")
    at = _after_space(text, at + 1)
    name: str | int
    for index in count():
        name, wanted = index, key if keyed else int(key)
        if keyed:
            name, at = _DECODER.raw_decode(text, at)
            at = _after(":", text, at)
        if name == wanted:
            break
        at = _after(",", text, _DECODER.raw_decode(text, at)[1])
    return at


def _after(sign: str, text: str, at: int) -> int:
    at = _after_space(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign}")
    return _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _cookies(headers: httpx.Headers, name: str) -> Iterator[str]:
    for line in headers.get_list("set-cookie"):
        found, equals, value = line.partition(";")[0].partition("=")
        if equals and found.strip() == name:
            yield value.strip().strip('"')
