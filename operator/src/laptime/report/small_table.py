"""A small table beside that of the results, for Markdown and for the page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SmallTable:
    """Words ready to be shown, but not escaped; the first cell of a line is the server."""

    caption: str
    headings: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
