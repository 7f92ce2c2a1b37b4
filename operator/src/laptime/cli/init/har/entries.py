"""The entries of a HAR file: what was asked, and what was answered."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_STATIC = re.compile(
    r"(image|font|video|audio)/.*|text/css|(text|application)/(x-)?javascript|application/font.*"
)
_STATIC_PATH = re.compile(r".*\.(css|js|mjs|map|png|jpe?g|gif|svg|ico|webp|woff2?|ttf)")
_MOST_BODY = 65_536
_DEEPEST = 5
_MOST_FIELDS = 64
_FIELD = re.compile(r"[A-Za-z_$@][-\w$@.]{0,40}")
_NO_FIELD = re.compile(r"\d{4}|[0-9a-f]{8}-[0-9a-f]{4}")
Schema = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One request of a recording with its answer."""

    method: str
    scheme: str
    host: str
    path: str
    """With the query, as it was sent."""
    headers: Mapping[str, str]
    """By their names in small letters."""
    cookies: Mapping[str, str]
    body: str | None
    """None: it has none, or the recording has not got it."""
    body_type: str
    """Media type of a body; empty: it has none."""
    status: int
    media_type: str | None
    """Of the answer."""
    answer: Any
    """The answer where it is JSON; else None."""
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    answer_cookies: Mapping[str, str] = field(default_factory=dict)
    answer_is_empty: bool = False
    """It has no body, as that of many a redirect."""

    @property
    def title(self) -> str:
        """How messages name it: without its query, which may hold secrets."""
        return f"{self.method} {self.path.partition('?')[0]}"


def recorded_entries(log: Mapping[str, Any], left_out: list[str]) -> list[Entry]:
    """Return the entries of a recording in their order; those that cannot be read are named."""
    found = []
    for number, entry in enumerate(log["entries"]):
        try:
            found.append(_entry(entry))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            left_out.append(f"entry {number} cannot be read: {type(error).__name__}: {error}")
    return found


def left_out_reason(entry: Entry) -> str | None:
    """Return why a request cannot be asked again; None: it can."""
    if entry.scheme not in ("http", "https") or entry.status == 101:
        return "no plain HTTP: write a script (docs/own-script.md)"
    if entry.method not in _METHODS:
        return "a scenario has GET, POST, PUT, PATCH and DELETE"
    if entry.status < 200:
        return "the recording has no answer to it"
    if entry.status >= 400:
        return f"it was answered {entry.status}"
    if _STATIC.fullmatch(entry.media_type or "") or _STATIC_PATH.fullmatch(
        entry.path.partition("?")[0].lower()
    ):
        return "pictures, styles and programs of a page: write them by hand if they are meant"
    if entry.body_type.startswith("multipart/"):
        return f"its body is {entry.body_type}, which only a script can make (docs/own-script.md)"
    if entry.body_type and entry.body is None:
        return "its body is not in the recording"
    if entry.body is not None and (entry.method == "GET" or len(entry.body.encode()) > _MOST_BODY):
        return f"a GET has no body, and any other at most {_MOST_BODY} bytes"
    return None


def _entry(entry: Mapping[str, Any]) -> Entry:
    asked, answered = entry["request"], entry["response"]
    url = urlsplit(str(asked["url"]))
    headers, answer_headers = _pairs(asked, "headers"), _pairs(answered, "headers")
    content = answered.get("content") or {}
    status = int(answered["status"])
    body_type, body = _body(asked.get("postData") or {})
    media_type = str(content.get("mimeType") or "").partition(";")[0].strip().lower()
    cookies = _pairs(asked, "cookies", small=False) or _cookies(headers.get("cookie", ""))
    # What was asked under conditions is asked without them.
    asked_again = 200 if status == 304 else status
    return Entry(
        method=str(asked["method"]).upper(),
        scheme=url.scheme,
        host=url.netloc.rpartition("@")[2].lower(),
        path=(url.path or "/") + (f"?{url.query}" if url.query else ""),
        headers=headers,
        cookies=cookies,
        body=body,
        body_type=body_type,
        status=asked_again,
        media_type=media_type if "/" in media_type and media_type != "x-unknown" else None,
        answer=_json(content, media_type),
        answer_headers=answer_headers,
        answer_cookies=_pairs(answered, "cookies", small=False)
        or _cookies(answer_headers.get("set-cookie", "").partition(";")[0]),
        # A text may be left out of a recording, a size says what there was.
        answer_is_empty=status != 304
        and not content.get("text")
        and content.get("size", 0 if "text" in content else None) == 0,
    )


def _pairs(part: Mapping[str, Any], key: str, *, small: bool = True) -> dict[str, str]:
    pairs = ((str(one["name"]), str(one["value"])) for one in part.get(key) or [])
    return {name.lower() if small else name: value for name, value in pairs}


def _cookies(header: str) -> dict[str, str]:
    pairs = (one.strip().partition("=") for one in header.split(";"))
    return {name: value for name, equals, value in pairs if equals}


def _body(sent: Mapping[str, Any]) -> tuple[str, str | None]:
    media_type = str(sent.get("mimeType") or "").strip()
    if isinstance(sent.get("text"), str) and sent["text"]:
        # Half a pair of surrogates is no text that could be sent: ValueError.
        sent["text"].encode()
        return media_type or "text/plain", sent["text"]
    pairs = [(one["name"], one["value"]) for one in sent.get("params") or [] if "value" in one]
    if pairs and media_type.startswith("application/x-www-form-urlencoded"):
        return media_type, urlencode(pairs)
    return media_type, None


def _json(content: Mapping[str, Any], media_type: str) -> Any:
    text = content.get("text")
    if not isinstance(text, str) or "json" not in media_type:
        return None
    try:
        if content.get("encoding") == "base64":
            text = base64.b64decode(text).decode()
        return json.loads(text)
    except (binascii.Error, ValueError):
        return None


def schema_of_answer(answer: Any, depth: int = 0) -> Schema:
    """Return a JSON Schema of answers like this one: fields and their types, and no values.

    What may be a value itself, such as fields named by numbers or ids, is not in it.
    """
    if isinstance(answer, bool):
        return {"type": "boolean"}
    if isinstance(answer, int | float):
        return {"type": "number"}
    if isinstance(answer, str):
        return {"type": "string"}
    if isinstance(answer, list):
        items = [schema_of_answer(one, depth + 1) for one in answer]
        common = items[0] if items else {}
        for one in items[1:]:
            common = _common(common, one)
        return {"type": "array", "items": common} if common else {"type": "array"}
    if isinstance(answer, Mapping):
        named = all(_FIELD.fullmatch(key) and not _NO_FIELD.search(key) for key in answer)
        if not named or not answer or len(answer) > _MOST_FIELDS or depth >= _DEEPEST:
            return {"type": "object"}
        properties = {key: schema_of_answer(one, depth + 1) for key, one in answer.items()}
        return {
            "type": "object",
            "required": list(answer),
            "properties": {key: one for key, one in properties.items() if one},
        }
    return {}


def _common(one: Schema, other: Schema) -> Schema:
    """Return what holds of both."""
    if one.get("type") != other.get("type"):
        return {}
    made: Schema = {"type": one["type"]} if "type" in one else {}
    if "items" in one and "items" in other and (items := _common(one["items"], other["items"])):
        made["items"] = items
    if "required" in one and "required" in other:
        if required := [key for key in one["required"] if key in other["required"]]:
            made["required"] = required
        both = {
            key: _common(schema, other["properties"][key])
            for key, schema in one["properties"].items()
            if key in other["properties"]
        }
        if properties := {key: schema for key, schema in both.items() if schema}:
            made["properties"] = properties
    return made
