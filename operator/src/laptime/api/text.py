"""Text of strangers as it can be shown: one rule for terminals, pages, queries and logs. Pure.

Servers, scripts, images, admission webhooks and whoever may write ConfigMaps are not trusted. What
they say is cleaned where it comes in, and once more where it is printed.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

MAX_NAME = 100
_DIGITS = 8
_REPLACED = "�"


def plain(text: str) -> str:
    """Return text that moves no terminal, page or log line: one line of what can be printed.

    Breaks and other spaces become a space each; control characters (C0, C1), marks of direction,
    invisible characters and halves of surrogates become �.
    """
    return text if text.isprintable() else "".join(map(_printable, text))


def plain_lines(text: str) -> str:
    """Return a document as `plain` does, but with its line feeds and tabs."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(one if one in "\n\t" else _printable(one) for one in text)


def plain_tree(document: Any) -> Any:
    """Return JSON-ready data, all its texts and keys as `plain_lines` has them."""
    if isinstance(document, str):
        return plain_lines(document)
    if isinstance(document, list):
        return [plain_tree(one) for one in document]
    if isinstance(document, dict):
        return {plain_lines(str(key)): plain_tree(one) for key, one in document.items()}
    return document


def has_more_values(document: Any, most: int) -> bool:
    """Return whether JSON-ready data has more than so many values, those of values counted too."""
    left = [document]
    while left:
        one = left.pop()
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        most -= len(inner)
        if most < 0:
            return True
        left.extend(value for value in inner if isinstance(value, dict | list))
    return False


def shown(name: str, most: int = MAX_NAME) -> str:
    """Return a name as `plain` has it, no longer than that."""
    # Of a name of megabytes only what is shown is looked at.
    text = plain(name[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"


def told_apart(name: str, most: int = MAX_NAME) -> str:
    """Return a name as `shown` does; those that differ only in what is cut off still differ.

    A longer one ends with some digits of a hash of the whole.
    """
    if len(name) <= most:
        return plain(name)
    digits = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return f"{plain(name[: most - _DIGITS - 1])}…{digits}"


# Of a URL (at its very beginning a text may be cut off within one), of a list of settings, and of a
# printed configuration. No more than what such a password may have in it, so that JSON stays JSON:
# there what the run's own may be, since words and numbers stand behind a colon as well.
# And the run's own wherever they stand: 48 hexadecimal digits, as many as no digest in use has.
_PASSWORD = re.compile(
    r"""(\A|://[^:/@\s"'\\]*:)[^@/\s"'\\<>]+@"""
    r"""|(password\s*=(?!>)\s*["']?)[^\s&"'\\;,]+"""
    r"""|((?:password|passwd|pwd)[\\"']{0,8}\s{0,8}(?:=>|[=:]|\s[\\"'])\s{0,8}[\\"']{0,8})"""
    r"""[A-Za-z0-9_-]{16,}"""
    r"""|(?:(?<![0-9a-f])|(?<=%[0-9a-f]{2}))[0-9a-f]{48}(?![0-9a-f])""",
    re.IGNORECASE,
)


def without_passwords(text: str) -> str:
    """Return text with … for the passwords of URLs and settings of databases, and of runs.

    A program that cannot read the DATABASE_URL that it was given likes to print it.
    """
    return _PASSWORD.sub(
        lambda found: f"{found[1]}…@" if found[1] is not None else f"{found[2] or found[3] or ''}…",
        text,
    )


def _printable(one: str) -> str:
    if one.isprintable():
        return one
    return " " if one.isspace() else _REPLACED
