"""What it would cost to tell apart those that cannot be. Pure.

The noise that was seen says how many more repetitions would find a difference of 5 % four times of
five, and the trials say how long a repetition takes. That is an estimate from few repetitions, and
is said as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import combinations, pairwise
from statistics import median

from laptime.analysis import wording
from laptime.analysis.comparing import Comparison
from laptime.api.durations import format_duration
from laptime.api.results import TrialResult

WORTH_KNOWING = 1.05
"""Nobody is told what a smaller difference would cost to find."""
MOST_REPETITIONS = 100
"""A run has no more of them."""
_NAMED = 3


def seconds_of_repetition(results: Sequence[TrialResult]) -> float | None:
    """Return how long a repetition of all servers and loads took; None where nobody knows.

    What lies between two trials counts as it mostly was: longer ones are attempts that were lost,
    or a run that was suspended.
    """
    times = sorted(
        (datetime.fromisoformat(one.started_at), datetime.fromisoformat(one.finished_at))
        for one in results
        if one.started_at and one.finished_at
    )
    if len(times) < 2:
        return None
    lasted = sum((end - begin).total_seconds() for begin, end in times) / len(times)
    between = median((after[0] - one[1]).total_seconds() for one, after in pairwise(times))
    a_repetition = len({(one.server, one.load) for one in results})
    return (lasted + max(0.0, between)) * a_repetition


def what_would_decide(
    comparison: Comparison,
    tied: Sequence[str],
    repetitions: int,
    seconds: float | None,
    ratio: float = WORTH_KNOWING,
) -> str | None:
    """Return what would tell servers apart that cannot be; None where nobody knows.

    `repetitions` are those that the run has, to which no more can be added than there may be in
    all; `seconds` are those of one; `ratio` is how much they must differ by to be worth the time.
    It is about that pair of them that takes the most; pairs that differ by less for sure need
    nothing more.
    """
    most = MOST_REPETITIONS - repetitions
    if most < 1:
        return None
    needed = [
        comparison.more_repetitions(one, other, ratio, most)
        for one, other in combinations(tied, 2)
        if not comparison.are_alike(one, other, ratio)
    ]
    if seconds is None or not needed or None in needed:
        return None
    more = max(one for one in needed if one is not None)
    by = f"{100 * (ratio - 1):.3g} %"
    whom = wording.listing(tied) if len(tied) <= _NAMED else f"the fastest {len(tied)}"
    if more > most:
        return (
            f"to find a difference of {by} between {whom} takes more than {MOST_REPETITIONS} "
            "repetitions: longer trials or a quieter machine help more"
        )
    times = f"{more} more repetition{'' if more == 1 else 's'}"
    return (
        f"about {times} ({format_duration(more * seconds)}) would tell {whom} apart, if they "
        f"differ by {by} or more"
    )
