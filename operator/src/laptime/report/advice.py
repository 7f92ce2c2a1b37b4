"""What to do about what stands beside the figures, from the closed lists. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from laptime.api.doubts import doubt
from laptime.api.reasons import REASONS
from laptime.api.results import ResultRow

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def advice(rows: Sequence[ResultRow]) -> dict[str, str]:
    """Return what to do about each failure and each kind of doubt of rows, once, in their order.

    The texts are plain: links lead to pages that a report does not have beside it.
    """
    return {what: _LINK.sub(r"\1", text) for row in rows for what, text in _of_row(row)}


def _of_row(row: ResultRow) -> Iterator[tuple[str, str]]:
    known = REASONS.get(row.reason or "")
    if known is not None and not known.normal:
        yield known.name, known.advice
    for reason in row.validity_reasons:
        found = doubt(reason)
        if found is not None:
            yield found.kind, found.advice
