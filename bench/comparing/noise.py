"""Runs of servers that do not differ, with noise of many kinds. All rounds at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MADE_UP = (
    "equal", "one noisy", "half noisy", "all but one noisy", "one a little noisier",
    "half a little noisier", "one stumble", "stumbles", "two groups", "one in two groups", "drift",
)  # fmt: skip
"""Noise of 1 %, except: *noisy* is 10 % beside 0.5 %, *a little noisier* 3 % beside 1 %."""

_UNEQUAL = {"one noisy", "half noisy", "all but one noisy", *MADE_UP[4:6]}
_STUMBLE = (0.1, 0.6)
"""How much slower a trial is in which the machine stumbles, as a logarithm."""
_STUMBLING = 0.05


def made_up(kind: str, shape: tuple[int, int, int], dice: np.random.Generator) -> Array:
    """Return rounds by repetitions by servers of logarithms around the same truth.

    Raises:
        KeyError: nobody knows this kind of noise.
    """
    _, repetitions, servers = shape
    calm = dice.standard_normal(shape)
    if kind in _UNEQUAL:
        return calm * _deviations(kind, servers)
    if kind == "equal":
        return 0.01 * calm
    if kind == "stumbles":
        return 0.01 * calm - (dice.random(shape) < _STUMBLING) * dice.uniform(*_STUMBLE, shape)
    if kind == "one stumble":
        hit = np.zeros((shape[0], repetitions * servers))
        hit[np.arange(shape[0]), dice.integers(0, hit.shape[1], shape[0])] = 1
        return 0.01 * calm - hit.reshape(shape) * dice.uniform(*_STUMBLE, (shape[0], 1, 1))
    if kind == "two groups":
        return 0.005 * calm + 0.03 * (dice.random(shape) < 0.5)
    if kind == "one in two groups":
        groups = np.zeros(shape)
        groups[:, :, 0] = 0.03 * ((dice.random(shape[:2]) < 0.5) - 0.5)
        return 0.01 * calm + groups
    if kind == "drift":
        count = repetitions * servers
        walk = np.cumsum(0.003 * dice.standard_normal((shape[0], count)), 1)
        walk += dice.normal(0, 0.1, (shape[0], 1)) * np.arange(count) / count
        order = np.argsort(dice.random(shape), 2)
        return np.take_along_axis(walk.reshape(shape), order, 2) + 0.01 * calm
    raise KeyError(kind)


def as_measured(
    runs: Sequence[Sequence[float]], shape: tuple[int, int, int], dice: np.random.Generator
) -> Array:
    """Return noise whose standard deviations are those of servers of one measured run.

    `runs` are the standard deviations of the servers of each of them. Those of one run are drawn
    with putting back, since there are more servers here than it had.
    """
    rounds, repetitions, servers = shape
    deviations = np.empty((rounds, 1, servers))
    for number, run in enumerate(dice.integers(0, len(runs), rounds)):
        deviations[number, 0] = dice.choice(runs[run], servers)
    return deviations * dice.standard_normal((rounds, repetitions, servers))


def _deviations(kind: str, servers: int) -> Array:
    many = max(1, servers // 2)
    low, high, noisy = {
        "one noisy": (0.005, 0.1, 1),
        "half noisy": (0.005, 0.1, many),
        "all but one noisy": (0.005, 0.1, servers - 1),
        "one a little noisier": (0.01, 0.03, 1),
        "half a little noisier": (0.01, 0.03, many),
    }[kind]
    return np.array([high] * noisy + [low] * (servers - noisy))
