"""Hides in what is said of answers what a scenario captures from them or feeds. Pure."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from laptime.catalog import Value, plain_text
from laptime.verification.compare import parse_strict, quoted

SHORTEST_SECRET = 8
"""A captured text that is shorter is an id rather than a token."""
SHORTEST_FED = 4
"""Without each shorter text a message would say nothing."""
_CODED = re.compile("%[0-9A-F]{2}")
_TOO_DEEP = "(nested too deeply)"


class Mask:
    """What is not to be shown, and what is shown in its place; it grows as answers come."""

    def __init__(self) -> None:
        self._instead: dict[str, str] = {}
        """By each text as which a secret may stand somewhere."""
        self._pattern: re.Pattern[str] | None = None
        """Finds them; None: to be made of those that came last."""

    def hide(self, secret: str, instead: str) -> None:
        """Show `instead` wherever a text stands, also as JSON, a URL, HTML or an error has it."""
        if not secret:
            return
        self._instead |= {form: instead for form in forms_of(secret)}
        # Whoever hides twice finds nothing of a secret in what is shown already.
        self._instead[instead] = instead
        self._pattern = None

    def hide_captured(self, name: str, value: Value) -> None:
        """Show the name of a captured value in its place, and in that of all that is in it."""
        for part in _parts(value):
            self._hide_all_of(plain_text(part), name, SHORTEST_SECRET)

    def hide_fed(self, name: str, value: Value) -> None:
        """Show the name of a feeder's value in its place; numbers of a range are no secret."""
        if isinstance(value, str):
            self._hide_all_of(value, name, SHORTEST_FED)

    def _hide_all_of(self, text: str, name: str, shortest: int) -> None:
        for one in pieces_of(text):
            if len(one) >= shortest and one not in self._instead:
                self.hide(one, f"{{{{{name}}}}}")

    def text(self, text: str) -> str:
        """Return a text without what is hidden."""
        if not self._instead:
            return text
        if self._pattern is None:
            # The longest first: one may begin as another does.
            longest_first = sorted(self._instead, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(_wherever_it_stands, longest_first)))
        return self._pattern.sub(lambda found: self._instead[found[0]], text)

    def body(self, body: bytes) -> str:
        """Return the body of an answer without what is hidden."""
        text = body.decode("utf-8", "replace").strip()
        if not self._instead:
            return text
        try:
            # A token may be spelled in many ways in JSON: \u0065 is an e.
            masked = json.dumps(self._tree(parse_strict(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.text(text)
        return masked.encode("utf-8", "replace").decode()

    def quoted(self, value: Any) -> str:
        """Return a JSON value as short text; what is hidden is so before the text is cut."""
        if not self._instead:
            return quoted(value)
        try:
            return quoted(self._tree(value))
        except RecursionError:
            return _TOO_DEEP

    def _tree(self, node: Any) -> Any:
        if isinstance(node, str):
            return self.text(node)
        if node is None or isinstance(node, bool):
            return node
        # A number, or a list or an object as it was captured.
        if (instead := self._instead.get(plain_text(node))) is not None:
            return instead
        if isinstance(node, Mapping):
            return {self.text(str(key)): self._tree(child) for key, child in node.items()}
        if isinstance(node, Sequence):
            return [self._tree(child) for child in node]
        return node


def _wherever_it_stands(form: str) -> str:
    """Return the pattern of a text: of a short word only where no longer one goes on.

    What stands before it may be coded, as in `%20word`, `\\nword` or `\\u003eword`.
    """
    if len(form) >= SHORTEST_SECRET or not (form.isalnum() and form.isascii()):
        return re.escape(form)
    coded = (r"%[0-9A-Fa-f]{2}", r"%25[0-9A-Fa-f]{2}", r"\\[bfnrtv]", r"\\x[0-9A-Fa-f]{2}")
    before = "|".join(f"(?<={one})" for one in (*coded, r"\\u[0-9A-Fa-f]{4}"))
    return f"(?:(?<![A-Za-z0-9])|{before}){form}(?![A-Za-z0-9])"


def pieces_of(text: str) -> list[str]:
    """Return what of a text a server may repeat alone.

    Without the blanks around it, and a token without its scheme.
    """
    bare = text.strip()
    _, _, token = bare.partition(" ")
    return list(dict.fromkeys([text, bare, *([token] if len(token) >= SHORTEST_SECRET else [])]))


def forms_of(secret: str) -> set[str]:
    """Return the texts as which one may stand somewhere."""
    if secret.isalnum() and secret.isascii():
        return {secret}
    escaped = [json.dumps(secret, ensure_ascii=ascii_)[1:-1] for ascii_ in (False, True)]
    forms = {secret, repr(secret)[1:-1], repr(secret.encode("utf-8", "replace"))[2:-1]}
    coded = {quote(secret, safe=safe, errors="replace") for safe in ("", "/")}
    coded.add(quote_plus(secret, errors="replace"))
    forms |= coded | {_CODED.sub(lambda found: found[0].lower(), form) for form in coded}
    forms |= {*escaped, *(form.replace("/", r"\/") for form in escaped)}
    forms |= {html.escape(secret, quote=quotes) for quotes in (False, True)}
    return {form for form in forms if form}


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value and all that is in it."""
    yield value
    if isinstance(value, Mapping):
        for child in value.values():
            yield from _parts(child)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for child in value:
            yield from _parts(child)
