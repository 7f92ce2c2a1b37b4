"""Templates of requests: `/items/{{item}}`. Pure.

What they mean is said once in docs/generator.md, and this is how the verifier and the rules of
scenarios read them. The generator has its own reader (images/k6/internal/session), which must
understand the same: both are tested with the cases of `testdata/templates.json` there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from laptime.api.scenario import ID_PLACEHOLDER, Check, Exchange

Value = str | int | float | bool | list["Value"] | dict[str, "Value"]
"""Of a feeder a text or a number, of an answer whatever stands there; null is no value."""

_NAME = "[A-Za-z_][-_0-9A-Za-z]*"
_REFERENCE = re.compile(rf"({_NAME}(?:[.]{_NAME})?)\s*(?:[|]\s*(.*))?", re.DOTALL)
_QUOTED = re.compile(r"(['\"])(.*)\1", re.DOTALL)
_SHORT = re.compile(re.escape(ID_PLACEHOLDER))
_MEDIA_TYPE = re.compile(r"\s*application/(?:json|[-.\w]+[+]json)\s*(?:;.*)?", re.IGNORECASE)


class Encoding(StrEnum):
    """How a value becomes part of a request."""

    RAW = "raw"
    URL = "url"
    JSON = "json"


class Place(StrEnum):
    """Where a value stands: not every character may stand everywhere."""

    PATH = "a path"
    HEADER = "a header field"
    COOKIE = "a cookie"
    BODY = "a body"
    JSON_BODY = "a JSON body"
    QUERY = "a query"
    """Of the check's `afterwards`."""

    @property
    def encoding(self) -> Encoding:
        """What it asks for, where the template says nothing else."""
        return {Place.PATH: Encoding.URL, Place.JSON_BODY: Encoding.JSON}.get(self, Encoding.RAW)

    def first_wrong(self, text: str) -> int | None:
        """Return which character of a text, from 0, would end the line or what it stands in.

        None: it may stand there.
        """
        allowed = _ALLOWED.get(self)
        found = None if allowed is None else allowed.match(text)
        return None if found is None or found.end() == len(text) else found.end()


_ALLOWED = {
    # RFC 3986, and brackets, which browsers leave too. All else clients write in ways of their own.
    Place.PATH: re.compile(r"(?:[-!$&'()*+,./:;=?@\[\]_~0-9A-Za-z]|%[0-9A-Fa-f]{2})*"),
    Place.HEADER: re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*"),
    Place.COOKIE: re.compile(r"[!#-+\--:<-\[\]-~]*"),
    # What ends no text, name or number of SQL.
    Place.QUERY: re.compile(r"[-_0-9A-Za-z]{0,128}"),
}


@dataclass(frozen=True)
class Part:
    """A piece of a template: text, or a value where it has a name."""

    text: str = ""
    name: str = ""
    encoding: Encoding | None = None
    """None: as its place asks."""


def parts_of(template: str, *, ids: bool = False) -> list[Part]:
    """Return the parts of a template; with `ids` {id} is a value too.

    Raises:
        ValueError: it cannot be read; the message says what to write.
    """
    parts: list[Part] = []
    rest = template
    while True:
        before, opened, after = rest.partition("{{")
        parts += _literal(before, ids)
        if not opened:
            return parts
        inside, closed, rest = after.partition("}}")
        if not closed:
            raise ValueError(
                f"{{{{{after[:20]}: no }}}} follows; for the text itself write {{{{'{{{{'}}}}"
            )
        inside = inside.strip()
        if quoted := _QUOTED.fullmatch(inside):
            parts.append(Part(text=quoted[2]))
        else:
            parts.append(_reference(inside))


def names_in(template: str) -> list[str]:
    """Return the names of the values of a template, in their order; ValueError as `parts_of`."""
    return [part.name for part in parts_of(template) if part.name]


def rendered(template: str, place: Place, values: Mapping[str, Value]) -> str:
    """Return a template with values of these names in it; {id} is one where it is among them.

    Raises:
        ValueError: it cannot be read, there is no such value, or it cannot stand there.
    """
    text = ""
    for part in parts_of(template, ids=ID_PLACEHOLDER in values):
        text += encoded(part, place, values[part.name]) if part.name in values else part.text
        if part.name and part.name not in values:
            raise ValueError(f"there is no value {{{{{part.name}}}}}")
    if place is Place.PATH and text.startswith("//"):
        raise ValueError("it begins with two /, which would name another host")
    if place is Place.HEADER:
        check_ends(text)
    return text


def check_ends(field: str, what: str = "it") -> None:
    """Check that the value of a header field neither begins nor ends with a blank.

    Raises:
        ValueError: it does. HTTP counts such blanks to no value: clients leave them out, or refuse.
    """
    if field != field.strip(" \t"):
        raise ValueError(
            f"{what} begins or ends with a blank, which none may: take the blank out, also one "
            "beside a comma of a CSV"
        )


def check_path(path: str) -> None:
    """Check that a path is sent as it is written, its values aside.

    Raises:
        ValueError: it cannot be read, or the verifier and the generator would send it in two
            spellings, of which a server may refuse one; the message says what to write.
    """
    parts = parts_of(path, ids=True)
    for part in parts:
        known = _ALLOWED[Place.PATH].match(part.text)
        if known is not None and (rest := part.text[known.end() :]):
            raise ValueError(
                f"{rest[:20]!r} cannot stand in a path as it is: write %{ord(rest[0]):02X} for "
                f"{rest[0]}" + ("" if rest[0] == "%" else ", or {{... | url}} for a value with it")
            )
    text = "".join("-" if part.name else part.text for part in parts)
    if {".", ".."} & set(text.partition("?")[0].split("/")):
        raise ValueError(
            "some clients take the segments . and .. out of a path: write the one that is meant, "
            "without them"
        )


def encoded(part: Part, place: Place, value: Value) -> str:
    """Return a value as it stands in a request.

    Raises:
        ValueError: it cannot stand there.
    """
    text = plain_text(value)
    match part.encoding or place.encoding:
        case Encoding.URL:
            text = quote(text, safe="", errors="replace")
        case Encoding.JSON:
            text = json.dumps(text, ensure_ascii=False)[1:-1]
    if (wrong := place.first_wrong(text)) is not None:
        # Where it is, and not what: a value may be secret, and this may end in a status.
        raise ValueError(
            f"{{{{{part.name}}}}}: character {wrong + 1} ({text[wrong]!r}) cannot stand in "
            f"{place}, which takes "
            + ("letters, digits, '-' and '_' only, up to 128" if place is Place.QUERY else _INSTEAD)
        )
    return text


_INSTEAD = (
    "no control characters and no separators: leave them out, or write {{... | url}} for the value"
)


def plain_text(value: Value) -> str:
    """Return a value as text: a string as it is, all else as JSON has it."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def templates_of(exchange: Exchange) -> list[tuple[str, Place, str]]:
    """Return all templates of a request: the field, the place, and the template."""
    found = [("path", Place.PATH, exchange.path)]
    found += [(f"headers.{n}", Place.HEADER, text) for n, text in exchange.headers.items()]
    found += [(f"cookies.{n}", Place.COOKIE, text) for n, text in exchange.cookies.items()]
    if exchange.body is not None:
        found.append(("body", body_place(exchange), exchange.body))
    return found


def check_templates(check: Check) -> Iterator[tuple[str, Place | None, str]]:
    """Yield all templates of a check: the field, the place, and the template.

    Of an expected answer there is no place: a value stands in it as it is.
    """
    yield from templates_of(check)
    for name, text in check.expect_headers.items():
        yield f"expectHeaders.{name}", Place.HEADER, text
    for one in check.afterwards:
        yield "afterwards", Place.QUERY, one.query
    for field, expected in (
        ("expected", check.expected),
        ("expectedPart", check.expected_part),
        ("afterwards", [one.rows for one in check.afterwards]),
    ):
        for text in _texts(expected):
            yield field, None, text


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for child in node.values():
            yield from _texts(child)
    elif isinstance(node, Sequence):
        for child in node:
            yield from _texts(child)


def body_place(exchange: Exchange) -> Place:
    """Return where values in the body of a request stand, by its content type."""
    kinds = [text for name, text in exchange.headers.items() if name.lower() == "content-type"]
    return Place.JSON_BODY if any(map(_MEDIA_TYPE.fullmatch, kinds)) else Place.BODY


def _literal(text: str, ids: bool) -> list[Part]:
    if not ids:
        return [Part(text=text)] if text else []
    first, *others = _SHORT.split(text)
    parts = [Part(text=first)] if first else []
    for one in others:
        parts.append(Part(name=ID_PLACEHOLDER))
        if one:
            parts.append(Part(text=one))
    return parts


def _reference(inside: str) -> Part:
    found = _REFERENCE.fullmatch(inside)
    if found is None:
        raise ValueError(
            f"{{{{{inside[:40]}}}}}: write a name, such as {{{{token}}}} or {{{{users.email}}}}; "
            "for the text itself write {{'{{'}}"
        )
    name, encoding = found[1], found[2]
    if encoding is None:
        return Part(name=name)
    if encoding.strip() not in list(Encoding):
        raise ValueError(
            f"{{{{{inside[:40]}}}}}: {encoding.strip()[:20]!r} is no encoding; write raw, url or "
            "json"
        )
    return Part(name=name, encoding=Encoding(encoding.strip()))
