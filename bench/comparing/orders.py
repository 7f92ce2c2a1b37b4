"""What orders of trials make of a machine that drifts: all candidates, on the same machines.

    python3 bench/comparing/orders.py [--rounds N] [--shapes 2x3,2x5/2]

Two to thirteen servers that do not differ, compared as the operator does it: the share of runs in
which any two are told apart, the share of 95 % intervals of factors that hold the truth, and what
servers must differ by, beside the order that is drawn anew in each repetition. Noise of 1 %, and a
machine that drifts in one of several ways (`noise.disturbance`), or servers that leave something
behind for the next one. `2x5/2`: two servers in five repetitions, under the first of two loads.
Some orders are also looked at by
a model that takes the place in the run into account as a covariate, for one degree of freedom.

*Drawn* and *Williams up to four* are what the operator plans, or planned. Goals (outcomes.py) and
the rule of choice were set before the first look: the order that misses a goal in the fewest cells,
and of those the narrower one. Orders in fours, several loads, what servers leave behind and 13 x 10
were added after it, *up to four* after a second one; the seed is another one since.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from candidates import Array, Said, ours, pairs
from noise import Places, disturbance, planned
from outcomes import Outcome, outcome

from laptime.analysis.distributions import student_quantile
from laptime.analysis.statistics import claim_confidence
from laptime.api.status import Order
from laptime.plan import williams_squares

SHAPES = "2x3,2x3/2,2x3/3,2x5,2x5/2,2x10,3x5,4x4,6x5,13x3,13x10"
MACHINES = (
    "none", "line", "steep drift", "drift", "step", "walk", "wave", "wave of two repetitions",
    "left behind",
)  # fmt: skip
LEFT_BEHIND = "left behind"
"""Each server makes the trial after it faster or slower by some 3 %, as its work leaves caches, the
database and the clock of the CPU."""
SEED = 20261127

Shape = tuple[int, int, int]
"""Rounds, repetitions, servers."""


def _drawn(shape: Shape, dice: np.random.Generator) -> Places:
    return planned(shape, int(dice.integers(2**30)), Order.DRAWN)


def _williams(shape: Shape, dice: np.random.Generator) -> Places:
    return planned(shape, int(dice.integers(2**30)), Order.BALANCED)


def _mirrored(shape: Shape, dice: np.random.Generator) -> Places:
    """Return repetitions that are drawn, each second one the reverse of the one before."""
    places = np.argsort(dice.random(shape), 2)
    last = shape[2] - 1
    places[:, 1::2] = last - places[:, : shape[1] - 1 : 2]
    return places


def _four(shape: Shape, dice: np.random.Generator) -> Places:
    """Return four repetitions: two that are drawn and the reverse of each, shuffled."""
    rounds, _, servers = shape
    two = np.argsort(dice.random((rounds, 2, servers)), 2)
    four = np.concatenate([two, servers - 1 - two], 1)
    return np.take_along_axis(four, np.argsort(dice.random((rounds, 4)), 1)[:, :, None], 1)


def _fours(shape: Shape, dice: np.random.Generator) -> Places:
    several = [_four(shape, dice) for _ in range(math.ceil(shape[1] / 4))]
    return np.concatenate(several, 1)[:, : shape[1]]


def _one_four(shape: Shape, dice: np.random.Generator) -> Places:
    rest = np.argsort(dice.random(shape), 2)
    return np.concatenate([_four(shape, dice), rest], 1)[:, : shape[1]]


def _mirrored_once(shape: Shape, dice: np.random.Generator) -> Places:
    """Return one repetition that is drawn, and each further one the reverse of that before it."""
    rounds, repetitions, servers = shape
    first = np.argsort(dice.random((rounds, 1, servers)), 2)
    backwards = np.arange(repetitions)[None, :, None] % 2 == 1
    return np.where(backwards, servers - 1 - first, first)


def _of_squares(copies: int, mirrored: bool = False) -> Callable[..., Places]:
    """Return Williams squares that so many of two servers are shuffled together of.

    `mirrored`: each row is followed by its reverse, or the other way round.
    """

    def places(shape: Shape, dice: np.random.Generator) -> Places:
        rounds, repetitions, servers = shape
        squares = [np.array(one) for one in williams_squares(servers)]
        if servers == 2:
            squares = [np.array([[0, 1], [1, 0]] * copies)]
        found: list[Places] = []
        while sum(one.shape[1] for one in found) < repetitions:
            if mirrored:
                rows = _by_pairs(np.concatenate(squares), rounds, dice)
            else:
                taken = [one[np.argsort(dice.random((rounds, len(one))), 1)] for one in squares]
                rows = np.concatenate(taken, 1)
            labels = np.argsort(dice.random((rounds, 1, servers)), 2)
            every = np.broadcast_to(labels, rows.shape)
            found.append(np.take_along_axis(every, rows, 2))
        return np.argsort(np.concatenate(found, 1)[:, :repetitions], 2)

    return places


def _by_pairs(rows: Places, rounds: int, dice: np.random.Generator) -> Places:
    """Return all rows in pairs of a row and its reverse, pairs and their order drawn."""
    number = {tuple(row): place for place, row in enumerate(rows.tolist())}
    reverse = [number[tuple(row[::-1])] for row in rows.tolist()]
    both = np.array([(one, other) for one, other in enumerate(reverse) if one < other])
    taken = both[np.argsort(dice.random((rounds, len(both))), 1)]
    turned = dice.random((rounds, len(both), 1)) < 0.5
    return rows[np.where(turned, taken[:, :, ::-1], taken).reshape(rounds, -1)]


CHOSEN = "Williams up to four, two in fours"
ORDERS: Mapping[str, Callable[[Shape, np.random.Generator], Places]] = {
    "drawn": _drawn,
    "mirrored in pairs": _mirrored,
    "mirrored, drawn once": _mirrored_once,
    "fours of two drawn and their mirrors": _fours,
    "one such four, then drawn": _one_four,
    "Williams": _of_squares(1),
    "Williams, two in fours": _of_squares(2),
    "Williams, each row and its mirror": _of_squares(1, mirrored=True),
    CHOSEN: _williams,
    "Williams, two in sixes": _of_squares(3),
}
WITH_PLACE = ("drawn", CHOSEN)


def with_place(y: Array, at: Places, loads: int = 1) -> Said:
    """Return what is said when the place in the run is a covariate.

    Of two servers it is exact (a line through the differences). Of more, what the line explains is
    taken out, and what is left is made larger by the degree of freedom that it cost.
    """
    _, repetitions, servers = y.shape
    x = (at + servers * loads * np.arange(repetitions)[None, :, None]).astype(np.float64)
    if servers == 2:
        return _line(y[:, :, 0] - y[:, :, 1], x[:, :, 0] - x[:, :, 1], pairs(y))
    of_x, of_y = _left(x), _left(y)
    squares = (of_x**2).sum((1, 2))
    slope = np.where(squares > 0, (of_x * of_y).sum((1, 2)) / np.maximum(squares, 1e-9), 0.0)
    flat = y - slope[:, None, None] * (x - x.mean((1, 2), keepdims=True))
    degrees = (repetitions - 1) * (servers - 1)
    return ours(flat + _left(flat) * (math.sqrt(degrees / (degrees - 1)) - 1))


def _line(differences: Array, x: Array, without: Said) -> Said:
    """Return the difference at no distance; as without the line where all distances are alike."""
    count = differences.shape[1]
    middle = x.mean(1, keepdims=True)
    squares = ((x - middle) ** 2).sum(1)
    known = squares > 0
    squares = np.where(known, squares, 1.0)
    slope = ((x - middle) * differences).sum(1) / squares
    at_none = differences.mean(1) - slope * middle[:, 0]
    left = differences - at_none[:, None] - slope[:, None] * x
    variance = (left**2).sum(1) / (count - 2)
    error = np.sqrt(variance * (1 / count + middle[:, 0] ** 2 / squares))
    alone, claimed = (
        student_quantile(count - 2, 0.5 + one / 2) for one in (0.95, claim_confidence(count))
    )
    with_line = (at_none, claimed * error, alone * error)
    plain = (without.difference, without.needed, without.half)
    return Said(
        *(np.where(known[:, None], a[:, None], b) for a, b in zip(with_line, plain, strict=True))
    )


def _left(y: Array) -> Array:
    """Return what servers and repetitions do not explain."""
    by_place: Array = (
        y - y.mean(2, keepdims=True) - y.mean(1, keepdims=True) + y.mean((1, 2), keepdims=True)
    )
    return by_place


@dataclass
class Tally:
    """What an order came to over all cells."""

    missed: int = 0
    widths: float = 0.0
    """Sum of the logarithms of widths."""
    cells: int = 0

    def add(self, one: Outcome) -> None:
        """Count a cell."""
        self.missed += one.too_many or one.too_few
        self.widths += math.log(one.width)
        self.cells += 1


def figures(order: str, machine: str, shape: Shape, loads: int, seed: int) -> tuple[Array, Places]:
    """Return the logarithms of runs of an order on a machine, of the servers under one load.

    With them the place of each server in its repetition.
    """
    rounds, repetitions, servers = shape
    whole = (rounds, repetitions, servers * loads)
    dice = np.random.default_rng([SEED, servers, loads, repetitions, seed])
    noise = 0.01 * dice.standard_normal(whole)
    leaves = 0.03 * dice.standard_normal((rounds, whole[2]))
    done = disturbance("none" if machine == LEFT_BEHIND else machine, whole, dice)
    at = ORDERS[order](whole, dice)
    if machine == LEFT_BEHIND:
        who = np.argsort(at, 2).reshape(rounds, -1)
        left = np.take_along_axis(leaves, who, 1)[:, :-1]
        done = np.pad(left, ((0, 0), (1, 0))).reshape(whole)
    y = noise + np.take_along_axis(done, at, 2)
    return y[:, :, ::loads], at[:, :, ::loads]


def _shape(text: str, rounds: int) -> tuple[Shape, int]:
    size, _, loads = text.partition("/")
    servers, repetitions = map(int, size.split("x"))
    # Many servers are many pairs: fewer runs.
    fewer = 1 if servers <= 4 else 2 if repetitions < 10 else 5
    return (rounds // fewer, repetitions, servers), int(loads or 1)


def main() -> None:
    """Print a table for each shape, and how often each order missed a goal."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--shapes", default=SHAPES)
    args = parser.parse_args()
    tallies: dict[str, Tally] = {}
    ways = [*((one, False) for one in ORDERS), *((one, True) for one in WITH_PLACE)]
    for text in args.shapes.split(","):
        shape, loads = _shape(text, args.rounds)
        print(f"\n{text}, {shape[0]} runs each")
        print(f"| order | {' | '.join(MACHINES)} |\n{'|---' * (len(MACHINES) + 1)}|")
        first: dict[str, Said] = {}
        for order, of_place in ways:
            label = f"{order}, place a covariate" if of_place else order
            cells = []
            for number, machine in enumerate(MACHINES):
                y, at = figures(order, machine, shape, loads, number)
                said = with_place(y, at, loads) if of_place else ours(y)
                found = outcome(said, first.setdefault(machine, said), shape[2])
                tallies.setdefault(label, Tally()).add(found)
                missed = "*" if found.too_many or found.too_few else ""
                cells.append(f"{found.false:.1%}, {found.coverage:.1%}, {found.width:.2f}{missed}")
            print(f"| {label} | {' | '.join(cells)} |", flush=True)
    print("\n| order | cells with a goal missed (*) | what must be differed by |\n|---|---|---|")
    for label, tally in tallies.items():
        width = math.exp(tally.widths / tally.cells)
        print(f"| {label} | {tally.missed} of {tally.cells} | {width:.3f} |")


if __name__ == "__main__":
    main()
