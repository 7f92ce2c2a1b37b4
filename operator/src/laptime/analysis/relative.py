"""A server beside others that are the same in two runs, repetition by repetition. Pure.

What the machine did to all servers of a repetition goes out of their difference, and so does what
it did to all of a run: then what is left between two runs is the server's own. That is a difference
of differences, for which the others have to have nothing but the time in common with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from laptime.analysis.logs import Logs, has_no_end, left_open

InBoth: TypeAlias = tuple[Logs, Logs]
"""A figure of a server in the earlier run and in the later one."""

_FEWEST = 2
"""Repetitions that a server and the others share: with one nothing is known of chance."""


def beside(own: InBoth, others: Mapping[str, InBoth]) -> tuple[str, ...]:
    """Return which of these servers a server can be looked at beside, in both runs.

    The one that shares most repetitions with it, and all that were measured in as many of those:
    who lacks one takes it from all. Not those with a repetition without a figure, nor without an
    upper end. Empty where fewer than two repetitions are left in either run.
    """
    known = {name: one for name, one in others.items() if all(map(_is_known, one))}
    shared = {
        name: min(len(_shared(own[run], one[run])) for run in (0, 1)) for name, one in known.items()
    }
    most = max(shared.values(), default=0)
    if most < _FEWEST:
        return ()
    first = known[next(name for name, count in shared.items() if count == most)]
    blocks = [_shared(own[run], first[run]) for run in (0, 1)]
    return tuple(
        name for name, one in known.items() if all(blocks[run] <= one[run].keys() for run in (0, 1))
    )


def relative(own: Logs, others: Sequence[Logs]) -> Logs:
    """Return the logarithms of a figure less the mean of the others', where all have one."""
    blocks = set(own).intersection(*others)
    return Logs(
        {
            block: own[block] - math.fsum(one[block] for one in others) / len(others)
            for block in sorted(blocks)
        },
        left_open(own) + left_open(*others) / len(others),
        has_no_end(own),
    )


def _is_known(logs: Logs) -> bool:
    return all(map(math.isfinite, logs.values())) and not has_no_end(logs)


def _shared(one: Logs, other: Logs) -> set[int]:
    return set(one) & set(other)
