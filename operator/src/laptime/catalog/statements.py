"""Splits SQL into its statements, which a database is sent one by one. Pure."""

from __future__ import annotations

import re

# What nothing closes goes to the end: looked for from each opening, a text of a stranger that is
# full of them would take hours. A $ in a name opens nothing.
_TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*)
    | (?P<opened>/\*)
    | (?<=[eE])(?<![\w$][eE])'(?:\\(?:.|\Z)|[^'\\]|'')*(?:'|\Z)
    | '(?:[^']|'')*'
    | "[^"]*"
    | (?<![\w$])\$(?P<tag>[A-Za-z_][A-Za-z_0-9]*|)\$.*?(?:\$(?P=tag)\$|\Z)
    | (?P<end>;)
    | [^-/'"$;]+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_BORDER = re.compile(r"/\*|\*/")


def statements_of(sql: str) -> list[str]:
    """Return the statements of a text without their semicolons, and without comments.

    A semicolon in quotes, or in the body of a function between two of the same $tag$, ends none.
    """
    found, current, place = [], "", 0
    while (token := _TOKEN.match(sql, place)) is not None:
        place = _end_of_comment(sql, place) if token["opened"] else token.end()
        if token["end"]:
            found.append(current)
            current = ""
        else:
            current += " " if token["comment"] or token["opened"] else token[0]
    return [text for one in [*found, current] if (text := one.strip())]


def _end_of_comment(sql: str, begins: int) -> int:
    """Return where a comment ends that may have others in it, as Postgres has them."""
    depth = 0
    for border in _BORDER.finditer(sql, begins):
        depth += 1 if border[0] == "/*" else -1
        if depth == 0:
            return border.end()
    return len(sql)
