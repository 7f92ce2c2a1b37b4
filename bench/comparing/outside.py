"""What a trial's noise has to do with what others did on its node, before it and during it.

    python3 bench/comparing/outside.py

From runs of like servers (`data/outside.json`, trial by trial): how much of what is left over of a
trial, without its server and its repetition, goes with the CPU that others used on the node in the
two seconds before its load, and while it lasted. Only the first is beyond what a server can do:
on a full node one that takes less leaves others more. Beside each share stands what chance alone
explains.

See docs/decisions/0077-others-work-is-no-covariate.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).parent / "data" / "outside.json"
KINDS = ("four", "disturbed")
FIGURES = ("throughput", "p99")
READINGS = {"before": "two seconds before the load", "during": "while it lasted"}
_FEWEST = 10
"""Trials of a run whose reading is there: with fewer nothing is left after its effects."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Explained:
    """What a reading explains of a figure, over some runs."""

    runs: int
    share: float
    """Of the variance that is left over, mean of the runs."""
    chance: float
    """What a reading that has nothing to do with it would explain on average."""
    together: float
    """With one slope for all runs."""
    slope: float
    """Change of the figure's logarithm for a core more."""


def explained(
    runs: Sequence[Sequence[Mapping[str, Any]]], figure: str, reading: str
) -> Explained | None:
    """Return what a reading explains of a figure of like servers; None: no run has enough of it."""
    shares, chances, sums = [], [], np.zeros(3)
    for run in runs:
        trials = [one for one in run if one[reading] is not None]
        if len(trials) < _FEWEST:
            continue
        effects = _effects(trials)
        y = _left_over(np.log([one[figure] for one in trials]), effects)
        x = _left_over(np.array([one[reading] for one in trials], float), effects)
        products = np.array([x @ x, x @ y, y @ y])
        shares.append(products[1] ** 2 / products[0] / products[2])
        chances.append(1 / (len(trials) - np.linalg.matrix_rank(effects)))
        sums += products
    if not shares:
        return None
    return Explained(
        runs=len(shares),
        share=float(np.mean(shares)),
        chance=float(np.mean(chances)),
        together=float(sums[1] ** 2 / sums[0] / sums[2]),
        slope=float(sums[1] / sums[0]),
    )


def _effects(trials: Sequence[Mapping[str, Any]]) -> Array:
    """Return a column for each server and each repetition: whether a trial is of it."""
    columns = [
        [float(one[what] == value) for one in trials]
        for what in ("server", "repetition")
        for value in sorted({one[what] for one in trials})
    ]
    return np.array(columns).T


def _left_over(values: Array, effects: Array) -> Array:
    rest: Array = values - effects @ (np.linalg.pinv(effects) @ values)
    return rest


def main() -> None:
    """Print a line for each kind of run, figure and reading."""
    every = json.loads(DATA.read_text())["runs"]
    what = f"{'runs':<14} {'figure':<11} {'others used …':<28}"
    print(f"{what} explains  chance  one slope  a core more")
    for kind in KINDS:
        runs = [one["trials"] for one in every if one["kind"] == kind]
        for figure in FIGURES:
            for reading, said in READINGS.items():
                found = explained(runs, figure, reading)
                if found is not None:
                    print(
                        f"{found.runs:>2} {kind:<11} {figure:<11} {said:<28} {found.share:>7.0%} "
                        f"{found.chance:>7.0%} {found.together:>10.0%} "
                        f"{math.expm1(found.slope):>+11.0%}"
                    )


if __name__ == "__main__":
    main()
