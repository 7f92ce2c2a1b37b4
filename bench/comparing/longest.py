"""How often a server that is 3 % faster is found where a run makes as many repetitions as it may.

By noise as it was measured, both halves of it, since nothing was chosen by this: of the published
runs its size, and of the runs of two to six like servers (bench/alike) its shape as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from candidates import Array
from looks import FIRST, MOST, Look
from measured_noise import halves, left_over
from noise import as_left_over, as_measured
from outcomes import wilson

from laptime.analysis.looks import BY_WIDTH, shares_of_looks
from laptime.analysis.statistics import NOTICEABLE_RATIO

FASTER = 1.03
ENDS: Mapping[str, float] = {
    "precision": BY_WIDTH,
    "stopWhen: decided": shares_of_looks(FIRST, MOST)[-1],
}
"""What may end a run before `maxRepetitions`, and what may be wrong of what is said after these."""
SEED = 20261130
_AT_ONCE = 1000
"""Rounds, so that the pairs of 13 servers fit into memory."""

Draw = Callable[[Any, tuple[int, int, int], np.random.Generator], Array]


def found(noise: Array, errors: float) -> int:
    """Return in how many runs the second server is found to be faster than the first one.

    It is so by `FASTER`, and all others are like the first.
    """
    y = noise.copy()
    y[:, :, 1] += math.log(FASTER)
    look = Look(y, np.zeros(y.shape[2]))
    faster = look.difference[:, 0] < -math.log(NOTICEABLE_RATIO)
    return int((look.told(errors)[:, 0] & faster).sum())


def table(rounds: int, servers: Sequence[int]) -> Iterator[str]:
    """Yield a table in Markdown: the share that is found, with its 95 % interval."""
    noises: Mapping[str, tuple[Draw, Sequence[Any]]] = {
        "published runs, throughput": (as_measured, [*chain(*halves())]),
        "like servers, throughput": (as_left_over, [*chain(*left_over("throughput"))]),
        "like servers, p99": (as_left_over, [*chain(*left_over("p99"))]),
    }
    heads = [f"{count} servers, {end}" for count in servers for end in ENDS]
    yield f"a server that is {FASTER - 1:.0%} faster than the first, found in {MOST} repetitions"
    yield f"| noise | {' | '.join(heads)} |"
    yield "|---" * (len(heads) + 1) + "|"
    for place, (name, (draw, runs)) in enumerate(noises.items()):
        cells = []
        for count in servers:
            dice = np.random.default_rng([SEED, place, count])
            times = dict.fromkeys(ENDS, 0)
            for done in range(0, rounds, _AT_ONCE):
                noise = draw(runs, (min(_AT_ONCE, rounds - done), MOST, count), dice)
                for end, errors in ENDS.items():
                    times[end] += found(noise, errors)
            for one in times.values():
                low, high = wilson(one / rounds, rounds)
                cells.append(f"{one / rounds:.1%} ({low:.1%} to {high:.1%})")
        yield f"| {name} | {' | '.join(cells)} |"
