"""Finds in an answer what later requests need of it. Pure.

As the generator does (images/k6/internal/session/capture.go): what a check could keep, a user of a
load can keep as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx

from laptime.catalog import Capture, Value, pattern_of, plain_text
from laptime.verification.compare import parse_strict

MAX_VALUE_BYTES = 16 * 1024
"""A value that is longer is none that a request carries."""


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
    if capture.pointer is not None:
        return _at(capture.pointer, body)
    if capture.header is not None:
        return next(iter(headers.get_list(capture.header)), None)
    if capture.cookie is not None:
        # Of several the last one counts, as it does for browsers; an empty one takes a cookie away.
        return next(filter(None, reversed(list(_cookies(headers, capture.cookie)))), None)
    return body.decode("utf-8", "replace")


def _at(pointer: str, body: bytes) -> Value | None:
    """Return what stands at a JSON pointer (RFC 6901) of a body."""
    try:
        node: Any = parse_strict(body.decode("utf-8"))
    except ValueError:
        return None
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping):
            node = node.get(key)
        elif isinstance(node, Sequence) and not isinstance(node, str):
            node = node[int(key)] if key.isdecimal() and int(key) < len(node) else None
        else:
            return None
    found: Value | None = node
    return found


def _cookies(headers: httpx.Headers, name: str) -> Iterator[str]:
    for line in headers.get_list("set-cookie"):
        found, equals, value = line.partition(";")[0].partition("=")
        if equals and found.strip() == name:
            yield value.strip().strip('"')
