"""In which order each repetition goes through what is compared. Pure.

A machine that gets slower all the time slows down most what comes last, and a server may leave
something behind for the one that follows. In few repetitions chance alone would have the same one
last, or behind the same other one, too often. The rows of a Williams square (E. J. Williams,
Experimental designs balanced for the estimation of residual effects of treatments, Australian
Journal of Scientific Research A 2, 1949) have each treatment once at each position, and behind each
other one once. Which treatment is which in the square, and in which order its rows come, is drawn.
Of more treatments than four each repetition is drawn by itself: chance makes their places differ
enough, and a part of a square, which is all that most runs would have, has them further from
balance than that. How it was chosen: docs/decisions/0053-balanced-order.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, islice
from typing import TypeVar

from laptime.api.status import Order, RunStatus

MOST_BALANCED = 4
"""So many treatments at most are ordered by squares."""

_Item = TypeVar("_Item")

Treatment = tuple[str, str]
"""A server under a load."""

Orders = tuple[tuple[Treatment, ...], ...]
"""Of each repetition, in which order it goes through all of them."""


def order_of(status: RunStatus) -> Order:
    """Return the rule by which a run's trials are ordered.

    A run that a version began that knew no rules, has a seed in its status and no rule.
    """
    if status.order is not None:
        return status.order
    return Order.BALANCED if status.seed is None else Order.DRAWN


def orders(
    treatments: Sequence[Treatment], seed: int, repetitions: int, order: Order = Order.BALANCED
) -> Orders:
    """Return the order of so many repetitions.

    It depends on the rule, the seed and the names of the treatments alone, not on how they are
    sorted, and more repetitions only add to its end.
    """
    return tuple(islice(_RULES[order](treatments, seed), repetitions))


def _drawn(treatments: Sequence[Treatment], seed: int) -> Iterator[tuple[Treatment, ...]]:
    """Draw each repetition by itself, as a run does that an older version began."""
    for repetition in count(1):
        yield tuple(_shuffled(treatments, "/".join, f"{seed}/{repetition}"))


def _balanced(treatments: Sequence[Treatment], seed: int) -> Iterator[tuple[Treatment, ...]]:
    """Go through Williams squares without an end; labels and order of rows are drawn in each."""
    if len(treatments) > MOST_BALANCED:
        yield from _drawn(treatments, seed)
        return
    squares = williams_squares(len(treatments))
    for turn in count(1):
        labels = _shuffled(treatments, "/".join, f"{seed}/{turn}/labels")
        for number in _shuffled(range(len(squares)), str, f"{seed}/{turn}/squares"):
            square = squares[number]
            for row in _shuffled(range(len(square)), str, f"{seed}/{turn}/rows/{number}"):
                yield tuple(labels[place] for place in square[row])


_RULES: Mapping[Order, Callable[[Sequence[Treatment], int], Iterator[tuple[Treatment, ...]]]] = {
    Order.DRAWN: _drawn,
    Order.BALANCED: _balanced,
}


@lru_cache(maxsize=16)
def williams_squares(size: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return the squares, each with its rows, that are balanced together: places from 0.

    One with an even size, in which each place follows each other one once; two with an odd size,
    one the mirror of the other, in which it does so twice. Of two treatments the square comes
    twice, as one of four rows: of three rows two are always of one kind and one of the other, and
    all six such orders are equally likely. With single squares they would be four, and a wave of
    the machine as long as two repetitions would meet the same server at its crest more often.
    """
    steps = [place // 2 + 1 if place % 2 else -place // 2 for place in range(size)]
    rows = tuple(tuple((step + row) % size for step in steps) for row in range(size))
    if size == 2:
        return (rows + rows,)
    if size % 2 == 0:
        return (rows,)
    return rows, tuple(row[::-1] for row in rows)


def _shuffled(items: Iterable[_Item], name: Callable[[_Item], str], key: str) -> list[_Item]:
    # Ordered by a hash and not by random.shuffle, whose order may differ between Python versions:
    # an operator of a new version must go on with the same plan.
    return sorted(items, key=lambda item: hashlib.sha256(f"{key}/{name(item)}".encode()).digest())
