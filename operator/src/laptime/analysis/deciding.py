"""What it would cost to tell apart those that cannot be. Pure.

The noise that was seen says how many more repetitions would find a difference of 5 % four times of
five, and the trials say how long a repetition takes. That is an estimate from few repetitions, and
is said as one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import combinations
from statistics import fmean, median_low

from laptime.analysis import wording
from laptime.analysis.comparing import Comparison
from laptime.analysis.repeated import compared
from laptime.api.results import Tie, TrialResult
from laptime.api.spec import MAX_REPETITIONS, BenchmarkRunSpec

WORTH_KNOWING = 0.05
"""Nobody is told what a smaller difference would cost to find, unless the run names one."""
MOST_TIES = 20
"""So many are said, those that cost least."""
_NAMED = 3


def seconds_of_repetition(
    results: Sequence[TrialResult],
    load: str | None = None,
    out: Collection[tuple[str, str]] = (),
) -> float | None:
    """Return how many seconds a repetition of all servers takes; None where nobody knows.

    Of all loads, or of one. Each server takes its own time under each load: a search takes minutes
    where others take seconds, and loads may have different numbers of repetitions. So does what
    lies before a trial, where its warm-up is. It counts as it mostly was: longer ones are attempts
    that were lost, or a run that was suspended. Trials at the same time count once. Each (server,
    load) that is `out` is measured no more, and takes nothing of a further one.
    """
    times = sorted(
        (
            datetime.fromisoformat(one.started_at),
            datetime.fromisoformat(one.finished_at),
            (one.server, one.load),
        )
        for one in results
        if one.started_at and one.finished_at
    )
    if len(times) < 2:
        return None
    lasted: dict[tuple[str, str], list[float]] = {}
    gaps: dict[str, list[float]] = {}
    spans, until = 0, times[0][0]
    for begin, end, cell in times:
        lasted.setdefault(cell, []).append((end - begin).total_seconds())
        if begin >= until:
            if spans:
                gaps.setdefault(cell[1], []).append((begin - until).total_seconds())
            spans += 1
        until = max(until, end)
    every = [gap for of_load in gaps.values() for gap in of_load]

    def before(of: str) -> float:
        known = gaps.get(of, [])
        known = known if len(known) > 1 else every
        return median_low(known) if known else 0.0

    a_repetition = [cell for cell in lasted if load in (None, cell[1]) and cell not in out]
    seconds = sum(fmean(lasted[cell]) + before(cell[1]) for cell in a_repetition)
    return seconds * spans / len(times)


def worth_knowing(spec: BenchmarkRunSpec) -> float:
    """Return the smallest difference that a run is told the cost of, as a share."""
    return spec.smallest_difference_share or WORTH_KNOWING


def what_would_decide(
    comparison: Comparison,
    tied: Sequence[str],
    repetitions: int,
    seconds: float | None,
    difference: float = WORTH_KNOWING,
) -> str | None:
    """Return what would tell servers apart that cannot be; None where nobody knows.

    `repetitions` are those that the run has, to which no more can be added than there may be in
    all; `seconds` are those of one; `difference` is how much they must differ by, as a share. It is
    about that pair of them that takes the most; pairs that differ by less for sure need nothing
    more.
    """
    most = MAX_REPETITIONS - repetitions
    needed = [
        comparison.more_repetitions(one, other, 1 + difference, most)
        for one, other in combinations(tied, 2)
        if not comparison.are_alike(one, other, 1 + difference)
    ]
    if most < 1 or seconds is None or not needed or None in needed:
        return None
    more = max(one for one in needed if one is not None)
    whom = wording.listing(tied) if len(tied) <= _NAMED else f"the fastest {len(tied)}"
    return wording.cost(whom, difference, more if more <= most else None, more * seconds)


def ties(
    spec: BenchmarkRunSpec,
    results: Sequence[TrialResult],
    out: Collection[tuple[str, str]] = (),
) -> tuple[Tie, ...]:
    """Return which pairs of servers no load tells apart, and what it would cost; see above.

    Load by load, and of all of them those that cost least. Each (server, load) that is `out` is
    measured no more. Pairs that differ by less than is worth knowing for sure are none, nor are
    those whose noise nobody knows.
    """
    difference = worth_knowing(spec)
    found = []
    for load in spec.loads:
        made = max((one.repetition for one in results if one.load == load.name), default=0)
        most = MAX_REPETITIONS - made
        metric, comparison = compared(spec, load.name, results)
        seconds = seconds_of_repetition(results, load.name if spec.stop_when else None, out)
        competing = [name for name in comparison.servers if (name, load.name) not in out]
        for pair in combinations(competing, 2) if most > 0 else ():
            if comparison.can_be_told_apart(*pair) or comparison.are_alike(*pair, 1 + difference):
                continue
            more = comparison.more_repetitions(*pair, 1 + difference, most)
            if more is None:
                continue
            within = more <= most
            found.append(
                Tie(
                    load=load.name,
                    servers=list(pair),
                    compared_by=metric,
                    difference=difference,
                    repetitions=more if within else None,
                    seconds=more * seconds if within and seconds is not None else None,
                )
            )
    cheapest = sorted(found, key=lambda one: one.repetitions or MAX_REPETITIONS)[:MOST_TIES]
    return tuple(one for one in found if one in cheapest)
