"""Names of requests and values, made from those of paths and fields."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SEPARATORS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST = 40


def words_of(name: str) -> list[str]:
    """Return the words of a name: `petId`, `pet_id` and `pet-id` are pet and id."""
    return [word.lower() for word in _SEPARATORS.split(name) if word]


def singular(word: str) -> str:
    """Return the singular of an English word, as paths have them."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("ses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def request_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name that a request can have, and no other has yet."""
    words = "-".join(words_of(wanted.replace("{", "").replace("}", "")))
    name = words.lstrip("-0123456789")[:_LONGEST].rstrip("-") or "request"
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name[: _LONGEST - len(str(number)) - 1].rstrip('-')}-{number}"
    return unique
