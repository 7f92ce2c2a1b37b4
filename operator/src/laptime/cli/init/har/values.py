"""Which values of a recorded request came from an earlier answer, and which are secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from laptime.cli.init.har.entries import Entry
from laptime.cli.init.names import singular, words_of
from laptime.cli.init.openapi.values import Template, escaped, json_text, named
from laptime.cli.init.translation import PLACEHOLDER, Document

# What a browser or a connection adds: it says nothing of the request.
_NOISE = re.compile(
    r":.*|sec-.*|host|connection|content-length|transfer-encoding|accept-encoding|user-agent|"
    r"referer|origin|pragma|cache-control|dnt|te|trailer|expect|keep-alive|upgrade.*|priority|"
    r"if-.*|cookie|range|proxy-.*|x-forwarded-.*|traceparent|tracestate|save-data|purpose"
)
# In the words of a name, a - between two: what means nothing else anywhere, then whole words.
_SECRET = re.compile(
    r"passw|passphrase|passcode|pwd|secret(?!ar)|token|credential|authori[sz]|signature|assertion|"
    r"saml|verifier|[cx]srf|bearer|(api|app)-?key|-key$|session-?id$|"
    r"\b((user|new|old)?(pass|pw)\d*|auth|jwt|otp|cvc|cvv)\b|"
    r"\b(session|sid|pin)$|\bpin-?code$|phpsessid$|^sig$"
)
# In an address these are secrets only where the value is one: a sort key is none.
_DRAWN_SECRETS = ("key", "code")
# A name with a value in a text: of JSON, GraphQL, XML, settings and parts. A variable has none.
_NAMED_IN_TEXT = re.compile(
    r"(?<![\w$-])([A-Za-z][\w-]*)[\\\"']*\s*[:=>](?!\s*\$)|\bname\s*=\s*[\"']?([\w-]+)"
)
# These say what kind of secret is meant, or how much text: a server takes no other value.
_NO_SECRET = re.compile(
    r".*-(type(-hint)?|method|algorithm|count|length|limit|version)|(max|min|num|total)-.*tokens"
)
# Browsers leave some of them as they are.
_NO_URI = re.compile(r"%(?![0-9a-fA-F]{2})|[^-!$%&'()*+,./:;=?@\[\]_~0-9A-Za-z]")
_IDS = ("id", "uuid", "guid", "key", "slug", "sku", "code", "number", "ref")
_RANDOM = re.compile(r"(?=.*\d)[-\w.~+/=]{16,}")
_TOKEN = re.compile(r"[-\w.~+/=]{4,}", re.ASCII)
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# A digit before letters, but for 10ms and 1080p.
_DIGIT_FIRST = re.compile(r"(?!\d+[A-Za-z]{1,2}\Z).*\d[A-Za-z]")
_SHORTEST_PART = 3
"""Letters that words have on average which are written together, as in camelCase."""
_SEGMENT_ID = re.compile(r"\d+|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MOST_HEADERS = 16
_MOST_CAPTURES = 8
_SHORTEST_SECRET = 4
_LAST_OF_LOCATION = "([^/?#]+)/?$"


@dataclass
class _Answered:
    """A value in an answer."""

    request: Document
    capture: Document
    key: str
    """How the answer calls it."""
    is_id: bool


@dataclass
class Filling:
    """Puts names in the place of values while requests are read in their order."""

    keep_secrets: bool = False
    notes: list[str] = field(default_factory=list)
    wanted: dict[str, str] = field(default_factory=dict)
    """Feeders whose values are to be written, with what they are."""
    unsure: list[str] = field(default_factory=list)
    """Where a secret may stand, or what stood may be none there, a line for each place."""
    _answered: dict[str, _Answered] = field(default_factory=dict)
    _cookies: dict[str, _Answered] = field(default_factory=dict)
    _secrets: dict[str, str] = field(default_factory=dict)
    """Secrets that no answer has: the name of the feeder of each."""
    _names: set[str] = field(default_factory=set)

    def feeders(self) -> list[Document]:
        """Return the feeders of what no answer has."""
        return [
            {"name": name, "values": [value if self.keep_secrets else PLACEHOLDER]}
            for value, name in self._secrets.items()
        ]

    def hidden(self, text: str) -> str:
        """Return a text without the secrets that stand in it."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "(secret)").replace(quote(secret, safe=""), "(secret)")
        return text

    def request(self, entry: Entry) -> Document:
        """Return a request as a scenario has it, without a name."""
        sent: Document = {} if entry.method == "GET" else {"method": entry.method}
        sent["path"] = self._path(entry)
        headers = {
            name: self._header(name, value, entry)
            for name, value in entry.headers.items()
            if not _NOISE.fullmatch(name)
        }
        if headers:
            sent["headers"] = dict(list(headers.items())[:_MOST_HEADERS])
        if cookies := dict(self._sent_cookies(entry)):
            sent["cookies"] = cookies
        if entry.body is not None:
            sent["body"] = self._body(entry.body, entry.body_type, entry)
        if entry.status != 200:
            sent["expectStatus"] = entry.status
        return sent

    def answered(self, entry: Entry, request: Document) -> None:
        """Remember what an answer has: a later request may need it."""
        row = _row_of(entry.path)
        for pointer, key, value in _leaves(entry.answer):
            text = value if isinstance(value, str) else json.dumps(value)
            known = self._answered.get(text)
            # Of what was made here a later list is no better source.
            if known is None or known.request.get("method") is None:
                words = words_of(key)
                is_id = bool(words) and words[-1] in _IDS
                called = f"{row}-{key}" if key in _IDS else key
                self._answered[text] = _Answered(request, {"json": pointer}, called, is_id)
        location = entry.answer_headers.get("location", "").rstrip("/").rpartition("/")[2]
        if location and "?" not in location:
            capture = {"header": "location", "regex": _LAST_OF_LOCATION}
            made = _Answered(request, capture, f"{row}-id", True)
            self._answered.setdefault(unquote(location), made)
        for name, value in entry.answer_cookies.items():
            self._cookies[name] = _Answered(request, {"cookie": name}, name, False)
            self._answered[unquote(value)] = self._cookies[name]
        for name, value in entry.answer_headers.items():
            if _is_secret(name) and name != "set-cookie":
                self._answered[value] = _Answered(request, {"header": name}, name, False)

    def drop_unused(self, requests: Sequence[Document]) -> None:
        """Take captures out that no request names."""
        text = json.dumps([{**one, "captures": []} for one in requests])
        for one in requests:
            kept = [c for c in one.get("captures", []) if f"{{{{{c['name']}" in text]
            one.pop("captures", None)
            if kept:
                one["captures"] = kept

    # The parts of a request --------------------------------------------------------------

    def _path(self, entry: Entry) -> str:
        path, mark, query = entry.path.partition("?")
        segments = []
        for segment in path.split("/"):
            # As in /cart;jsessionid=…
            plain, *parameters = segment.split(";")
            value = unquote(plain)
            name = self._known(value, id_here=bool(_SEGMENT_ID.fullmatch(value)))
            written = [f"{{{{{name}}}}}" if name else _safe(plain)]
            written += [self._pair(one, entry) for one in parameters]
            segments.append(";".join(written))
        pairs = [self._pair(one, entry) for one in query.split("&")] if mark else []
        return "/".join(segments) + mark + "&".join(pairs)

    def _pair(self, pair: str, entry: Entry) -> str:
        """Return a name with its value, as they stand in an address."""
        key, equals, value = pair.partition("=")
        name, plain = unquote(key), unquote(value.replace("+", " "))
        secret = _is_secret(name) or (name.lower() in _DRAWN_SECRETS and _is_drawn(plain))
        found = self._value(name, plain, entry, secret=secret)
        written = found.written(_safe) if isinstance(found, Template) else _safe(value)
        return f"{_safe(key)}{equals}{written}"

    def _header(self, name: str, value: str, entry: Entry) -> str:
        if not _is_secret(name):
            return escaped(value)
        word, space, token = value.partition(" ") if name == "authorization" else ("", "", value)
        if not token:
            word, space, token = "", "", word
        called = "token" if name == "authorization" else name
        known = self._known(token, secret_here=True)
        found = known or self._secret(called, token, f"the header {name}", entry)
        return f"{word}{space}{{{{{found}}}}}"

    def _sent_cookies(self, entry: Entry) -> Iterator[tuple[str, str]]:
        for name, value in entry.cookies.items():
            found = self._cookies.get(name)
            known = (
                self._captured(found)
                if found is not None
                else self._known(unquote(value), secret_here=_is_secret(name))
            )
            if known is not None:
                yield name, f"{{{{{known}}}}}"
            elif _is_secret(name):
                found_name = self._secret(name, value, f"the cookie {name}", entry)
                yield name, f"{{{{{found_name}}}}}"
            else:
                note = f"the cookie {name} is left out: no answer of the recording sets it"
                if note not in self.notes:
                    self.notes.append(note)

    def _body(self, body: str, media_type: str, entry: Entry) -> str:
        form = media_type.startswith("application/x-www-form-urlencoded")
        # Beacons, and whoever leaves the header out, send JSON as another type.
        if "json" in media_type or (body.lstrip()[:1] in ("{", "[") and not form):
            try:
                return json_text(self._tree("", json.loads(body), entry))
            except ValueError:
                return self._text(body, entry, "|raw" if "json" in media_type else "")
        if form:
            pairs = []
            for key, value in parse_qsl(body, keep_blank_values=True):
                found = self._value(key, value, entry)
                pairs.append(
                    f"{quote(key, safe='')}="
                    + (found.written(_safe, "|url") if isinstance(found, Template)
                       else quote(value, safe=""))
                )  # fmt: skip
            return "&".join(pairs)
        return self._text(body, entry)

    def _text(self, body: str, entry: Entry, encoding: str = "") -> str:
        """Return a body of which nobody knows where its values are, secrets in it by their names.

        `encoding` is what its place would not do by itself.
        """
        if self.keep_secrets:
            return escaped(body)
        self._look_for_secrets(body, "the body", entry)
        # Each form that it may have, with what is written for it.
        forms: dict[str, tuple[str, str]] = {}
        for secret, name in self._secrets.items():
            if len(secret) >= _SHORTEST_SECRET:
                forms[quote(secret, safe="")] = f"{{{{{name}|url}}}}", name
                forms[secret] = f"{{{{{name}{encoding}}}}}", name
        longest_first = sorted(forms, key=len, reverse=True)
        written, end = "", 0
        for found in re.finditer("|".join(map(re.escape, longest_first)) or "(?!)", body):
            before = escaped(body[end : found.start()])
            # With the braces that follow it a single one would be read otherwise.
            written += f"{before[:-1]}{{{{'{{'}}}}" if before.endswith("{") else before
            template, name = forms[found[0]]
            written, end = written + template, found.end()
            self._doubt(name, "the body", entry)
        return written + escaped(body[end:])

    def _doubt(self, name: str, where: str, entry: Entry) -> None:
        said = f"whether {{{{{name}}}}} is meant in {where} of {entry.title}: its text stood there"
        if not self.keep_secrets and said not in self.unsure:
            self.unsure.append(said)

    def _look_for_secrets(self, text: str, where: str, entry: Entry) -> None:
        """Say that a secret may stand in a text, where a name in it is one of secrets."""
        said = f"whether a secret stands in {where} of {entry.title}: it is written as it was sent"
        names = (found[1] or found[2] for found in _NAMED_IN_TEXT.finditer(text))
        if not self.keep_secrets and said not in self.unsure and any(map(_is_secret, names)):
            self.unsure.append(said)

    def _tree(self, key: str, node: Any, entry: Entry) -> Any:
        if isinstance(node, Mapping):
            # As a form is sent as JSON: {"name": "password", "value": …}.
            called = str(node.get("name") or "")
            return {
                name: self._tree(called if called and name == "value" else str(name), one, entry)
                for name, one in node.items()
            }
        if isinstance(node, list):
            return [self._tree(key, one, entry) for one in node]
        if node is None or isinstance(node, bool | float):
            return node
        found = self._value(key, str(node), entry)
        return Template(found.parts, isinstance(node, int)) if found is not None else node

    def _value(
        self, key: str, value: str, entry: Entry, secret: bool | None = None
    ) -> Template | None:
        """Return the template of a value that has a name; None: it stands as it is.

        `secret` says whether it is one; None: its key does.
        """
        secret = _is_secret(key) if secret is None else secret
        words = words_of(key)
        is_id = bool(words) and words[-1] in _IDS
        known = self._known(value, id_here=is_id, secret_here=secret)
        if known is not None and value in self._secrets and not secret:
            self._doubt(known, f"the field {key}", entry)
        if known is None and secret and value:
            known = self._secret(key, value, f"the field {key}", entry)
        if known is None:
            self._look_for_secrets(value, f"the field {key}", entry)
        return named(known) if known is not None else None

    # What values are called ---------------------------------------------------------------

    def _known(self, value: str, *, id_here: bool = False, secret_here: bool = False) -> str | None:
        """Return the name of a value that an answer has had.

        One that may be the same by chance, such as 1, has to be an id there and here; a word has to
        be a secret here.
        """
        if value in self._secrets:
            return self._secrets[value]
        found = self._answered.get(value)
        if found is None:
            return None
        secret = secret_here and len(value) >= _SHORTEST_SECRET
        if not (secret or (found.is_id and id_here) or _is_drawn(value)):
            return None
        return self._captured(found)

    def _captured(self, found: _Answered) -> str | None:
        captures = found.request.setdefault("captures", [])
        for one in captures:
            if {key: text for key, text in one.items() if key != "name"} == found.capture:
                return str(one["name"])
        if len(captures) >= _MOST_CAPTURES:
            return None
        name = self._free(found.key)
        captures.append({"name": name, **found.capture})
        return name

    def _secret(self, called: str, value: str, what: str, entry: Entry) -> str:
        name = self._secrets.get(value)
        if name is None:
            name = self._free(called)
            self._secrets[value] = name
            if not self.keep_secrets:
                self.wanted[name] = f"{what} of {entry.title}"
        return name

    def _free(self, wanted: str) -> str:
        words = words_of(wanted) or ["value"]
        plain = (words[0] + "".join(word.capitalize() for word in words[1:]))[:36]
        if not plain[0].isalpha() or plain == "id":
            plain = f"the{plain.capitalize()}"
        name, number = plain, 1
        while name in self._names:
            number += 1
            name = f"{plain}{number}"
        self._names.add(name)
        return name


def _is_drawn(value: str) -> bool:
    """Return whether a value looks like nothing that somebody writes: a token, however short.

    A long one with digits; a digit before letters, as in `a7Fk`; letters in no case of words, as in
    `kQzTbW`. Words, numbers, dates, versions and `item12` may be the same by chance.
    """
    if _RANDOM.fullmatch(value):
        return True
    if not _TOKEN.fullmatch(value):
        return False
    return any(map(_is_no_word, re.split(r"[-_.~+/=]+", value)))


def _is_no_word(chunk: str) -> bool:
    parts = _PARTS.findall(chunk)
    mixed = len(parts) > 2 and sum(map(len, parts)) < _SHORTEST_PART * len(parts)
    return mixed or _DIGIT_FIRST.match(chunk) is not None


def _is_secret(name: str) -> bool:
    words = "-".join(words_of(name))
    return _SECRET.search(words) is not None and _NO_SECRET.fullmatch(words) is None


def _safe(text: str) -> str:
    """Return a part of an address with nothing in it that a template has, or no path may have."""
    return _NO_URI.sub(lambda found: quote(found[0], safe=""), text)


def _row_of(path: str) -> str:
    static = [one for one in path.partition("?")[0].split("/") if one and one[0].isalpha()]
    words = words_of(static[-1]) if static else []
    return "-".join([*words[:-1], singular(words[-1])]) if words else "row"


def _leaves(node: Any, pointer: str = "", key: str = "") -> Iterator[tuple[str, str, str | int]]:
    """Yield place, name and value of all texts and whole numbers of an answer."""
    if isinstance(node, Mapping):
        for name, one in node.items():
            part = str(name).replace("~", "~0").replace("/", "~1")
            if part:
                yield from _leaves(one, f"{pointer}/{part}", str(name))
    elif isinstance(node, list):
        for index, one in enumerate(node):
            yield from _leaves(one, f"{pointer}/{index}", key)
    elif isinstance(node, str | int) and not isinstance(node, bool) and pointer:
        yield pointer, key, node
