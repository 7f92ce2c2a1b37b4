"""Names that a script gave, as they can be shown. Pure."""

from __future__ import annotations

MAX_NAME = 100


def shown(name: str, most: int = MAX_NAME) -> str:
    """Return a name so that it moves no terminal, page or log line, and is no longer than that.

    What cannot be printed (control characters, marks of direction, line breaks) becomes �.
    """
    text = "".join(one if one.isprintable() else "�" for one in name)
    return text if len(text) <= most else text[: most - 1] + "…"
