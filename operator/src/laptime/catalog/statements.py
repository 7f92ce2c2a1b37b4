"""Splits SQL into its statements, which a database is sent one by one. Pure."""

from __future__ import annotations

import re

# What nothing closes goes to the end: looked for from each opening, a text of a stranger that is
# full of them would take hours. A $ in a name opens nothing.
_TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
    | '(?:[^']|'')*'
    | "[^"]*"
    | (?<![\w$])\$(?P<tag>[A-Za-z_][A-Za-z_0-9]*|)\$.*?(?:\$(?P=tag)\$|\Z)
    | (?P<end>;)
    | [^-/'"$;]+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def statements_of(sql: str) -> list[str]:
    """Return the statements of a text without their semicolons, and without comments.

    A semicolon in quotes, or in the body of a function between two of the same $tag$, ends none.
    """
    found, current = [], ""
    for token in _TOKEN.finditer(sql):
        if token["end"]:
            found.append(current)
            current = ""
        else:
            current += " " if token["comment"] else token[0]
    return [text for one in [*found, current] if (text := one.strip())]
