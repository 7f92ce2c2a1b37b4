"""Whether a run says of its servers that they are worse than the baseline. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.api import doubts
from laptime.api.results import ResultRow, RowState


@dataclass(frozen=True)
class AgainstBaseline:
    """The rows that are worse than the baseline's for sure, and those of which nobody knows it."""

    worse: tuple[str, ...]
    """In words: server, load, and its factor."""
    not_known: tuple[str, ...]
    """In words: server, load, and what is missing."""


def against_baseline(
    rows: Sequence[ResultRow], baseline: str | None, control: str | None = None
) -> AgainstBaseline:
    """Return what the rows of a run that is over say of its servers beside the baseline.

    Each by the figure that its load is compared by: what is worse is told apart from the baseline,
    as the ranks are. `control` is the name of the baseline's twin, which is not judged.
    """
    others = [row for row in rows if row.server not in (baseline, control)]
    worse, not_known = [], [] if others else ["no other server was measured"]
    for row in others:
        where = f"{row.server} under {row.load}"
        figure = wording.metric(row.compared_by)
        if row.factor is not None and _is_worse(row):
            worse.append(f"{where}, {figure} {wording.factor(row.factor)}")
        elif why := _why_not_known(row, figure):
            not_known.append(f"{where}, {why}")
    return AgainstBaseline(tuple(worse), tuple(not_known))


def _ends(row: ResultRow) -> tuple[float | None, float | None]:
    """Return the ends of a row's factor: the worse one, then the better one."""
    if row.factor is None:
        return None, None
    low, high = row.factor.low, row.factor.high
    return (high, low) if row.compared_by.is_latency else (low, high)


def _is_worse(row: ResultRow) -> bool:
    _, better = _ends(row)
    # Whoever is not told apart from the baseline has an interval that holds 1.
    return better is not None and (better > 1 if row.compared_by.is_latency else better < 1)


def _why_not_known(row: ResultRow, figure: str) -> str | None:
    worse, _ = _ends(row)
    if row.factor is None:
        return f"no factor of its {figure}"
    if worse is None:
        return f"nobody knows how far its {figure} may be off"
    # Those that are missing may be the bad ones.
    invalid = any(doubts.INVALID_REPETITIONS.said(reason) for reason in row.validity_reasons)
    if invalid or row.state is not RowState.MEASURED:
        return "not all of its repetitions count"
    return None
