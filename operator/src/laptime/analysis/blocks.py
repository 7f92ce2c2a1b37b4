"""Which trials were measured beside each other, so that they can be compared. Pure.

A repetition is a block: its trials come one after the other, and what the machine did meanwhile
goes out of their differences. What is asked for again (`spec.retry`) is measured at another time.
So the trials of a repetition that were measured for one value of it are a block of their own, and
nothing is paired with what was measured on another day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from laptime.api.results import TrialResult

_APART = 1_000
"""Between the numbers of two rounds: more than a run may have repetitions."""
_ROUNDS = 101
"""More than there are values of `retry`."""


def block_of(result: TrialResult) -> int:
    """Return the number of a trial's block: that of its repetition, unless it was asked again."""
    return result.repetition + _APART * result.retry


def block_of_loads(blocks: Sequence[int]) -> int:
    """Return the number of what a server measured under several loads in one repetition.

    Two servers share it where they share the block of each load.
    """
    rounds = 0
    for block in reversed(blocks):
        rounds = rounds * _ROUNDS + block // _APART
    return repetition_of(blocks[0]) + _APART * rounds


def repetition_of(block: int) -> int:
    """Return the repetition that a block is of."""
    return block % _APART


def measured_apart(one: Collection[int], other: Collection[int]) -> bool:
    """Return whether two servers have repetitions in common, but too few blocks to be compared.

    Below two nothing is known of how far chance goes; of a single repetition there is one.
    """
    both = set(map(repetition_of, one)) & set(map(repetition_of, other))
    return len(set(one) & set(other)) < min(2, len(both))


def later_than(one: Collection[int], other: Collection[int]) -> bool:
    """Return whether a server was measured apart from another one, and asked again for that."""
    rounds = {repetition_of(block): block for block in other}
    again = any(block > rounds.get(repetition_of(block), block) for block in one)
    return again and measured_apart(one, other)


def fullest(scores: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    """Return of each repetition the block that most servers have; of two the one measured first."""
    counted = Counter(block for score in scores.values() for block in score)
    kept: dict[int, int] = {}
    for block in sorted(counted):
        best = kept.setdefault(repetition_of(block), block)
        if counted[block] > counted[best]:
            kept[repetition_of(block)] = block
    blocks = set(kept.values())
    return {
        name: {block: log for block, log in score.items() if block in blocks}
        for name, score in scores.items()
    }
