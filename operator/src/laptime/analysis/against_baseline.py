"""Whether a run says of its servers that they are worse than the baseline. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.analysis.explained import ONE_SIDED, made_one_sided
from laptime.api import doubts
from laptime.api.doubts import Bearing, bearing
from laptime.api.results import ResultRow, RowState, Validity


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
    as the ranks are. A doubt by which it may be the other way round makes it not known, as for an
    objective. `control` is the name of the baseline's twin, which is not judged.
    """
    others = [row for row in rows if row.server not in (baseline, control)]
    beside = {row.load: row for row in rows if row.server == baseline}
    worse, not_known = [], [] if others else ["no other server was measured"]
    for row in others:
        where, figure = f"{row.server} under {row.load}", wording.metric(row.compared_by)
        before = beside.get(row.load)
        if row.factor is None:
            not_known.append(f"{where}, no factor of its {figure}")
            continue
        said, is_worse = f"{where}, {figure} {wording.factor(row.factor)}", _is_worse(row)
        if not is_worse and (missing := _what_is_missing(row, figure)) is not None:
            not_known.append(f"{where}, {missing}")
        elif (why := _why_doubtful(row, before, is_worse=is_worse)) is not None:
            not_known.append(f"{said} (doubtful: {why})")
        elif is_worse:
            worse.append(said + _doubtful(row, before))
    return AgainstBaseline(tuple(worse), tuple(not_known))


# Others than were compared, or there is no telling; what is worse may be these and not the server.
_OF_ANOTHER = doubts.OTHER_IMAGE, doubts.OTHER_SCHEMA, doubts.MORE_DOUBTS
# What the machine, and others on it, take they take from both: trials are in turn.
_IN_THE_INTERVAL = doubts.STOLEN_TIME, doubts.NEIGHBOURS, doubts.SHARED
# Nothing that one of the two has and the other has not, where it is said of both in these words.
_OF_BOTH = doubts.LIMIT_ADDED, doubts.NO_WARMUP, doubts.SESSIONS_TOO_LONG
_LIKE = 0.05
"""Of two drifts: from there on a trial's own is a doubt (measure/validity.py)."""


def _is_one(reason: str, kinds: Sequence[doubts.Doubt]) -> bool:
    return any(kind.said(reason) for kind in kinds)


def _why_doubtful(row: ResultRow, before: ResultRow | None, *, is_worse: bool) -> str | None:
    """Return the doubt by which a server may be the other thing than its interval says; or None."""
    if before is not None and (otherwise := made_one_sided(before, row)) is not None:
        return otherwise
    both = [(row, before, "")]
    if before is not None:
        both.append((before, row, f"of {before.server}: "))
    for one, other, whose in both:
        # A status that would be too large lacks them.
        if one.validity not in (None, Validity.VALID) and not one.validity_reasons:
            return f"{whose}the status does not say why; `report` does"
        for reason in one.validity_reasons:
            hides = not is_worse and _may_hide(reason, one, row)
            if _is_one(reason, _OF_ANOTHER) or (hides and not _said_of_both(reason, one, other)):
                return whose + reason
    return None


def _may_hide(reason: str, said_of: ResultRow, row: ResultRow) -> bool:
    """Whether a reason may be why a row is not worse; it is said of it, or of the baseline's."""
    # How others were made is judged of both together.
    if _is_one(reason, _IN_THE_INTERVAL) or doubts.made_otherwise(reason):
        return False
    if said_of is not row:
        return Bearing.LOOKS_WORSE in bearing(reason, row.compared_by)
    # What holds the load back makes all servers alike; who is better all the same is not worse.
    held = doubts.of_the_load(reason) and not _is_better(row)
    return held or Bearing.LOOKS_BETTER in bearing(reason, row.compared_by)


def _said_of_both(reason: str, row: ResultRow, other: ResultRow | None) -> bool:
    if other is None:
        return False
    share = doubts.share_of_repetitions(reason)
    if doubts.not_steady(reason):
        alike = [one for one in other.validity_reasons if doubts.about(one) == doubts.about(reason)]
        as_much = max(map(_unsteady_by, alike), default=-1.0)
        return _unsteady_by(reason) - as_much < _LIKE
    words = doubts.without_share(_of_its_server(reason, row))
    return _is_one(reason, _OF_BOTH) and any(
        doubts.without_share(_of_its_server(one, other)) == words
        and abs(doubts.share_of_repetitions(one) - share) < ONE_SIDED
        for one in other.validity_reasons
    )


def _unsteady_by(reason: str) -> float:
    """Return how much the repetitions of a row drift on the whole, by one reason; a share."""
    return doubts.drift(reason) * doubts.share_of_repetitions(reason)


def _of_its_server(reason: str, row: ResultRow) -> str:
    return reason.replace(f"server {row.server}", "server")


def _doubtful(row: ResultRow, before: ResultRow | None) -> str:
    """Return what a verdict says of the doubts in spite of which it stands; empty: no doubts."""
    said = list(row.validity_reasons)
    if before is not None:
        said += [f"of {before.server}: {one}" for one in before.validity_reasons]
    if not said:
        return ""
    more = f"; {len(said) - 1} more" if len(said) > 1 else ""
    return f" (doubtful: {said[0]}{more})"


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


def _is_better(row: ResultRow) -> bool:
    worse, _ = _ends(row)
    return worse is not None and (worse < 1 if row.compared_by.is_latency else worse > 1)


def _what_is_missing(row: ResultRow, figure: str) -> str | None:
    worse, _ = _ends(row)
    if worse is None:
        return f"nobody knows how far its {figure} may be off"
    # Those that are missing may be the bad ones.
    invalid = any(doubts.INVALID_REPETITIONS.said(reason) for reason in row.validity_reasons)
    if invalid or row.state is not RowState.MEASURED:
        return "not all of its repetitions count"
    return None
