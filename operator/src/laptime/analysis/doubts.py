"""Which doubt bears on which figure, and in which direction: a closed table.

A doubt that can only have made a figure look worse than the server is does not question that a
bound was kept, and one that can only have flattered it does not question that it was missed. So a
gate can pass where a hypervisor takes time, and cannot pass on a figure that may be too good. A
reason that is not in the table bears on every figure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Flag, auto

from laptime.api.metrics import Metric


class Bearing(Flag):
    """In which direction a figure may be off."""

    NONE = 0
    LOOKS_WORSE = auto()
    """The server may be better than the figure: what kept a bound keeps it for sure."""
    LOOKS_BETTER = auto()
    """The server may be worse than the figure: what missed a bound misses it for sure."""
    EITHER = LOOKS_WORSE | LOOKS_BETTER


@dataclass(frozen=True)
class Doubt:
    """One kind of doubt: what its reason says, and what it bears on."""

    name: str
    says: str
    """A regular expression that finds it in a reason, whatever the numbers are."""
    throughput: Bearing
    latency: Bearing
    """Of percentiles over all requests, and of the mean of the right answers."""
    errors: Bearing


_NONE, _WORSE, _BETTER, _EITHER = (
    Bearing.NONE, Bearing.LOOKS_WORSE, Bearing.LOOKS_BETTER, Bearing.EITHER,
)  # fmt: skip

DOUBTS = (
    # A request that fails costs a server less, or more, than the work. Percentiles count it as
    # slower than all others already, and the bound says how many may fail.
    Doubt("errors", "of the requests had no right answer", _EITHER, _NONE, _NONE),
    Doubt("generator CPU", "generator used .* of its CPU", _WORSE, _WORSE, _WORSE),
    Doubt("generator held back", "generator was held back", _WORSE, _WORSE, _WORSE),
    Doubt("generator late", "generator sent 1 of 100 requests", _NONE, _WORSE, _NONE),
    Doubt("Little's law", "Little's law does not hold", _EITHER, _EITHER, _NONE),
    Doubt("rate not held", "the rate was not held", _EITHER, _EITHER, _EITHER),
    Doubt("still warming up", "slower than the rest", _WORSE, _WORSE, _WORSE),
    Doubt("slowing down", "faster than the rest", _BETTER, _BETTER, _BETTER),
    # What the server asks for is its own doing, and a gate is about what users get.
    Doubt("more statements", "the server does more than the work", _NONE, _NONE, _NONE),
    # The tier has the limit that the run gave it: the figures are those of this set-up.
    Doubt("tier held back", "held back by its CPU limit", _NONE, _NONE, _NONE),
    Doubt("stolen time", "the hypervisor took", _WORSE, _WORSE, _WORSE),
    # The interval, or that there is none, says it; percentiles look at each repetition's answers.
    Doubt("measured once", "measured only once", _NONE, _NONE, _NONE),
    Doubt("few answers", "answers: p99.9 needs", _NONE, _NONE, _NONE),
    # Percentiles are kept in the result of each trial: only their merged curve is incomplete.
    Doubt("times missing", "the response times of .* are missing", _NONE, _NONE, _NONE),
    # Those that are left are not a fair sample: why the others are gone may have to do with it.
    Doubt("invalid repetitions", r"repetitions (is|are) invalid", _EITHER, _EITHER, _EITHER),
    Doubt("failed trials", "trials failed", _EITHER, _EITHER, _EITHER),
)


def bearing(reason: str, metric: Metric) -> Bearing:
    """Return how a reason for doubt bears on a figure."""
    for doubt in DOUBTS:
        if re.search(doubt.says, reason):
            if metric is Metric.REQUESTS_PER_SECOND:
                return doubt.throughput
            return doubt.latency if metric.is_latency else doubt.errors
    return Bearing.EITHER
