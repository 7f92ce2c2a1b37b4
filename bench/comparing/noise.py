"""Runs of servers that do not differ, with noise of many kinds. All rounds at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from laptime.api.status import Order
from laptime.plan import orders

Array = NDArray[np.float64]
Places = NDArray[np.intp]
"""Rounds by repetitions by servers: at which place of a repetition a server was measured."""

MADE_UP = (
    "equal", "one noisy", "half noisy", "all but one noisy", "one a little noisier",
    "half a little noisier", "one stumble", "stumbles", "two groups", "one in two groups", "drift",
)  # fmt: skip
"""Noise of 1 %, except: *noisy* is 10 % beside 0.5 %, *a little noisier* 3 % beside 1 %."""

DRIFTS = ("steep drift", "step", "walk", "wave")
"""What else a machine does over the time of a run, with noise of 1 %; see `disturbance`."""

_UNLIKE = ", felt unlike"
FELT_UNLIKE = tuple(f"{kind}{_UNLIKE}" for kind in ("drift", *DRIFTS[1:], "levels"))
"""What a machine does, of which servers take `SENSITIVITY` in turn: one that mostly waits for
something is slowed down less than one that computes. What it did to them on average over the run
belongs to what they were worth in that run, so it is taken off: but not of levels, which are drawn
for each repetition, so that a run is a sample of them."""
SENSITIVITY = (0.5, 2.0, 1.0)
"""Fixed before anything was simulated with it."""

_UNEQUAL = {"one noisy", "half noisy", "all but one noisy", *MADE_UP[4:6]}
_STUMBLE = (0.1, 0.6)
"""How much slower a trial is in which the machine stumbles, as a logarithm."""
_STUMBLING = 0.05
_SMOOTHED = 0.3
"""Of the standard deviation, as in a smoothed bootstrap (B. W. Silverman, G. A. Young, 1987)."""


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
    machine = kind.removesuffix(_UNLIKE)
    done = disturbance(machine, shape, dice)
    if machine != kind and machine != "levels":
        done = done - done.mean((1, 2), keepdims=True)
    felt = np.take_along_axis(done, planned(shape, int(dice.integers(2**30))), 2)
    if machine != kind:
        felt = felt * np.resize(SENSITIVITY, servers)
    return felt + 0.01 * calm


def disturbance(kind: str, shape: tuple[int, int, int], dice: np.random.Generator) -> Array:
    """Return what the machine does to the trials of each repetition, in their order.

    Raises:
        KeyError: nobody knows this kind.
    """
    rounds, repetitions, servers = shape
    count = repetitions * servers
    time = np.arange(count)
    if kind == "none":
        done = np.zeros((rounds, count))
    elif kind == "drift":
        done = np.cumsum(0.003 * dice.standard_normal((rounds, count)), 1)
        done = done + dice.normal(0, 0.1, (rounds, 1)) * time / count
    elif kind == "line":
        done = dice.normal(0, 0.1, (rounds, 1)) * time / count
    elif kind == "steep drift":
        done = dice.normal(0, 0.3, (rounds, 1)) * time / count
    elif kind == "step":
        at = dice.uniform(count / 3, 2 * count / 3, (rounds, 1))
        done = dice.normal(0, 0.1, (rounds, 1)) * (time >= at)
    elif kind == "levels":
        done = np.repeat(0.03 * dice.standard_normal((rounds, repetitions)), servers, 1)
    elif kind == "walk":
        done = np.cumsum(0.01 * dice.standard_normal((rounds, count)), 1)
    elif kind == "wave":
        period = dice.uniform(3, 30, (rounds, 1))
        done = 0.03 * np.sin(2 * np.pi * (time / period + dice.random((rounds, 1))))
    elif kind == "wave of two repetitions":
        done = 0.03 * np.sin(2 * np.pi * (time / (2 * servers) + dice.random((rounds, 1))))
    else:
        raise KeyError(kind)
    return done.reshape(shape)


@lru_cache(maxsize=64)
def planned(shape: tuple[int, int, int], seed: int, order: Order = Order.BALANCED) -> Places:
    """Return the places that the operator plans, with seeds from this one on."""
    rounds, repetitions, servers = shape
    names = [f"s{number:02}" for number in range(servers)]
    treatments = [(name, "load") for name in names]
    number = {treatment: place for place, treatment in enumerate(treatments)}
    runs = [
        [[number[one] for one in row] for row in orders(treatments, seed + run, repetitions, order)]
        for run in range(rounds)
    ]
    return np.argsort(np.array(runs), 2)


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


def as_left_over(
    runs: Sequence[Array], shape: tuple[int, int, int], dice: np.random.Generator
) -> Array:
    """Return noise of the size and shape of what was left over of trials of one measured run.

    Each server is as noisy as one of its servers, and its trials are drawn from all of them, with
    putting back and a little smoothed: of a dozen the same ones would come too often.
    """
    rounds, repetitions, servers = shape
    noise = np.empty(shape)
    for number, run in enumerate(dice.integers(0, len(runs), rounds)):
        rest = runs[run]
        sizes = np.sqrt((rest**2).mean(0))
        drawn = dice.choice((rest / sizes).ravel(), (repetitions, servers))
        smooth = _SMOOTHED * dice.standard_normal((repetitions, servers))
        noise[number] = dice.choice(sizes, servers) * (drawn + smooth) / math.hypot(1, _SMOOTHED)
    return noise


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
