"""What a run did not measure to its end, beside an earlier one of the same servers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from laptime.api.results import ResultRow, RowState, TrialResult
from laptime.api.spec import BenchmarkRunSpec

_ALL_MADE = frozenset({"Completed", "ServersFailed", "AllServersFailed", "ResultsNotStored"})
"""How runs end that have made all that they were to make, but for servers that are out."""

_UNFINISHED = (RowState.PARTIAL, RowState.PENDING)


def not_all_made(
    before: Sequence[TrialResult],
    after: Sequence[TrialResult],
    rows: Sequence[ResultRow],
    spec: BenchmarkRunSpec,
    end: str | None,
) -> dict[tuple[str, str], str]:
    """Return of which servers and loads of both runs the later one made not all repetitions.

    In words, with how many it made. `rows`, `spec` and `end` are those of the later run: its end as
    the CamelCase reason, None where nobody knows. Such as a run whose turn was over, be it for a
    server that is slow: what was never made is among no trials. What was lost was made. Where the
    results say how many there are, all of a load wait for the last trial of a repetition.
    """
    was, made = (Counter((one.server, one.load) for one in run) for run in (before, after))
    planned = Counter({load.name: spec.first_look for load in spec.loads})
    for one in after:
        planned[one.load] = max(planned[one.load], one.repetition)
    ended = end not in _ALL_MADE
    lacking = [row for row in rows if ended and _may_lack(row, end)]
    found = {}
    for row in rows:
        pair = row.server, row.load
        both = was[pair] and made[pair]
        if not both or row.state is RowState.FAILED or made[pair] >= spec.most_repetitions:
            continue
        # Whether another repetition of a load follows is known once all have made the last one.
        waits = any(
            one.load == row.load or made[one.server, one.load] < planned[row.load]
            for one in lacking
        )
        fewer = row.state in _UNFINISHED and made[pair] < planned[row.load]
        if ended and not _is_out(row) and (waits or fewer):
            said = (
                f"the later run ended after {made[pair]} of its repetitions, the earlier one made "
                f"{was[pair]}"
            )
        elif made[pair] < was[pair] and (_is_out(row) or fewer):
            # One that is given up in both, with as many of them, is no news.
            why = f": {row.reason}" if row.reason else ""
            said = (
                f"{made[pair]} of its repetitions were made in the later run, {was[pair]} in the "
                f"earlier one{why}"
            )
        else:
            continue
        found[pair] = f"{row.server} under {row.load}: {said}"
    return found


def _may_lack(row: ResultRow, end: str | None) -> bool:
    """Return whether trials of a row may have been left when its run was cut short.

    Where some failed, a row does not say if they are all that it lacks: by the end alone it may.
    """
    ended_too = end is not None and not _is_out(row)
    return row.state in _UNFINISHED and (row.reason is None or ended_too)


def _is_out(row: ResultRow) -> bool:
    """Return whether no more trials of it were to be made, with a reason that is its own."""
    return row.reason not in (None, "TrialsFailed")
