"""The items of a list of the API server, read one by one while it still arrives. Pure.

A list of thousands of runs is a hundred megabytes of JSON, and many times that as objects of
Python. So only one item of it is ever held.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any

_SPACE = " \t\r\n"
MOST_BYTES = 16 * 2**20
"""No single object is longer: etcd takes 1.5 MiB of one, of which JSON can make six times as much.
"""


class ListStream:
    """Takes in the bytes of a list and gives its items back; what else it says is in `rest`."""

    def __init__(self) -> None:
        """Begin before the first byte."""
        self.rest: dict[str, Any] = {}
        """The list without its items, such as its metadata; whole once `done`."""
        self.done = False
        self._text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._json = json.JSONDecoder()
        self._begun = self._inside = False

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Yield the items that are whole with these bytes.

        Raises:
            ValueError: this is no list in JSON, or one of its items is too long.
        """
        self._text += self._decoder.decode(chunk)
        at = 0
        try:
            while not self.done:
                found, at = self._items(at) if self._inside else (None, self._field(at))
                if found is not None:
                    yield found
        except _MoreIsNeeded:
            pass
        finally:
            self._text = self._text[at:]
        if len(self._text) > MOST_BYTES:
            raise ValueError(f"an item of a list has more than {MOST_BYTES} bytes")

    def _items(self, at: int) -> tuple[dict[str, Any] | None, int]:
        """Return the next item, or None where the list ends, and the place behind it."""
        where = self._after(at, ",", optional=True)
        if self._peek(where) == "]":
            self._inside = False
            return None, where + 1
        item, end = self._value(where)
        if not isinstance(item, dict):
            raise ValueError(f"an item of a list is {type(item).__name__}")
        return item, end

    def _field(self, at: int) -> int:
        """Read the next field of the list itself; return the place behind it."""
        if not self._begun:
            where = self._after(at, "{")
            self._begun = True
            return where
        where = self._after(at, ",", optional=True)
        if self._peek(where) == "}":
            self.done = True
            return self._next(where) + 1
        key, where = self._value(where)
        where = self._after(where, ":")
        if key == "items":
            if self._peek(where) != "[":
                value, where = self._value(where)
                if value is not None:
                    raise ValueError("the items of a list are no list")
                return where
            self._inside = True
            return self._next(where) + 1
        self.rest[str(key)], where = self._value(where)
        return where

    def _next(self, at: int) -> int:
        while at < len(self._text) and self._text[at] in _SPACE:
            at += 1
        if at == len(self._text):
            raise _MoreIsNeeded
        return at

    def _peek(self, at: int) -> str:
        return self._text[self._next(at)]

    def _after(self, at: int, mark: str, *, optional: bool = False) -> int:
        where = self._next(at)
        if self._text[where] == mark:
            return self._next(where + 1)
        if optional:
            return where
        raise ValueError(f"expected {mark!r} in a list, found {self._text[where : where + 20]!r}")

    def _value(self, at: int) -> tuple[Any, int]:
        try:
            value, end = self._json.raw_decode(self._text, self._next(at))
        except json.JSONDecodeError as error:
            raise _MoreIsNeeded from error
        if end == len(self._text):
            # A number may go on.
            raise _MoreIsNeeded
        return value, end


class _MoreIsNeeded(Exception):
    """What has come so far ends in the middle of something."""
