"""What rules for comparing servers claim of servers that do not differ: the candidates, simulated.

Each round is a run: servers that do not differ, measured in some repetitions, with noise of one
kind. A rule says for each pair how many standard errors they must differ by. Everything is done
for all rounds at once. `ours` is what the operator does (analysis/comparing.py) below the
repetitions that signed ranks need; a test holds the two beside each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from laptime.analysis.comparing import PAIRS_SHARE
from laptime.analysis.statistics import studentized_range_quantile

Array = NDArray[np.float64]
SHAPES = ((2, 5), (3, 5), (4, 4), (6, 5), (13, 3))
"""Servers and repetitions."""
POWER_AT = (0.02, 0.05, 0.20)


@dataclass(frozen=True)
class Rule:
    """What a rule says of the pairs of each round."""

    difference: Array
    error: Array
    alone: Array | float
    """Standard errors of a 95 % interval of one factor."""
    together: Array | float
    """Standard errors of a difference that is claimed."""


def noise(kind: str, shape: tuple[int, int, int], dice: np.random.Generator) -> Array:
    """Return rounds by repetitions by servers of logarithms around the same truth.

    Raises:
        KeyError: nobody knows this kind of noise.
    """
    _, repetitions, servers = shape
    calm = dice.standard_normal(shape)
    of_each = _unequal(kind, servers)
    if of_each is not None:
        return calm * of_each
    if kind == "equal":
        return 0.01 * calm
    if kind == "stumbles":
        return 0.01 * calm - (dice.random(shape) < 0.05) * dice.uniform(0.1, 0.6, shape)
    if kind == "one stumble":
        hit = np.zeros((shape[0], repetitions * servers))
        hit[np.arange(shape[0]), dice.integers(0, hit.shape[1], shape[0])] = 1
        return 0.01 * calm - hit.reshape(shape) * dice.uniform(0.1, 0.6, (shape[0], 1, 1))
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


def _unequal(kind: str, servers: int) -> Array | None:
    many = max(1, servers // 2)
    low, high, noisy = {
        "one noisy": (0.005, 0.1, 1),
        "half noisy": (0.005, 0.1, many),
        "all but one noisy": (0.005, 0.1, servers - 1),
        "one a little noisier": (0.01, 0.03, 1),
        "half a little noisier": (0.01, 0.03, many),
    }.get(kind, (0.0, 0.0, 0))
    if not noisy:
        return None
    return np.array([high] * noisy + [low] * (servers - noisy))


NOISES = (
    "equal", "one noisy", "half noisy", "all but one noisy", "one a little noisier",
    "half a little noisier", "one stumble", "stumbles", "two groups", "one in two groups", "drift",
)  # fmt: skip


def pairs(y: Array) -> Rule:
    """Return the rule before: each pair for itself, Student's t, Bonferroni over all pairs."""
    _, repetitions, servers = y.shape
    one, other = np.triu_indices(servers, 1)
    paired = y[:, :, one] - y[:, :, other]
    error = paired.std(1, ddof=1) / math.sqrt(repetitions)
    alone, together = (float(stats.t.ppf(1 - 0.025 / of, repetitions - 1)) for of in (1, len(one)))
    return Rule(paired.mean(1), error, alone, together)


def games_howell(y: Array) -> Rule:
    """Return the studentized range with the variance and the degrees of freedom of each pair."""
    found = pairs(y)
    together = _range(y.shape[2], y.shape[1] - 1)
    return Rule(found.difference, found.error, found.alone, together)


def tukey(y: Array) -> Rule:
    """Return the studentized range with one variance for all."""
    means, own, degrees = _fitted(y)
    together = own.mean(1, keepdims=True)
    return _rule(y, means, together + 0 * own, degrees, _range(y.shape[2], degrees))


def shrunk(y: Array) -> Rule:
    """Return a variance of each server, drawn half-way to that of all."""
    means, own, degrees = _fitted(y)
    half_way = (own + own.mean(1, keepdims=True)) / 2
    return _rule(y, means, half_way, degrees, _range(y.shape[2], degrees))


def trimmed(y: Array) -> Rule:
    """Return one variance for all, of residuals cut at two robust standard deviations."""
    rounds, repetitions, servers = y.shape
    degrees = (repetitions - 1) * (servers - 1)
    centred = y - np.median(y, 2, keepdims=True)
    place = np.median(centred, 1, keepdims=True)
    spread = 1.4826 * np.median(np.abs(centred - place), (1, 2), keepdims=True)
    bound = 2 * spread * math.sqrt(repetitions * servers / degrees)
    shift = np.zeros((rounds, repetitions, 1))
    for _ in range(6):
        shift = shift + np.clip(centred - place - shift, -bound, bound).mean(2, keepdims=True)
        place = place + np.clip(centred - place - shift, -bound, bound).mean(1, keepdims=True)
    left = centred - place - shift
    kept = np.maximum((np.abs(left) < bound).mean((1, 2)), 0.3)
    variance = (np.clip(left, -bound, bound) ** 2).sum((1, 2)) / degrees / kept**2
    every = np.repeat(variance[:, None], servers, 1)
    return _rule(y, place[:, 0, :], every, degrees, _range(servers, degrees))


def permuted(y: Array, draws: int = 199) -> Rule:
    """Return Tukey's statistic beside its largest under other orders within repetitions."""
    if y.shape[2] == 2:
        return pairs(y)
    found = tukey(y)
    dice = np.random.default_rng(1)
    needed = np.empty(len(y))
    for number, of_round in enumerate(y):
        order = np.argsort(dice.random((draws, *of_round.shape)), 2)
        other = tukey(np.take_along_axis(np.broadcast_to(of_round, order.shape), order, 2))
        largest = np.sort((np.abs(other.difference) / other.error).max(1))
        needed[number] = largest[math.ceil(0.95 * (draws + 1)) - 1]
    return Rule(found.difference, found.error, found.alone, needed[:, None])


def ours(y: Array) -> Rule:
    """Return what the operator does: no server is steadier than all together, see comparing.py."""
    _, repetitions, servers = y.shape
    if servers == 2:
        return pairs(y)
    means, own, degrees = _fitted(y)
    together = own.mean(1, keepdims=True)
    of_pairs, of_model = 0.05 * PAIRS_SHARE, 0.05 * (1 - PAIRS_SHARE)
    critical = max(
        _range(servers, degrees, 1 - of_model),
        float(stats.t.ppf(1 - of_model / 2, repetitions - 1)),
    )
    found = _rule(y, means, np.maximum(own, together), degrees, critical)
    one, other = np.triu_indices(servers, 1)
    noisy = own > 1.5 * together
    by_pairs = pairs(y)
    alone = np.where(noisy[:, one] | noisy[:, other], by_pairs.alone, found.alone)
    # Pairs alone: where they need less, less is needed.
    of_all = float(stats.t.ppf(1 - of_pairs / 2 / len(one), repetitions - 1))
    needed = np.minimum(critical * found.error, of_all * by_pairs.error)
    return Rule(found.difference, found.error, alone, needed / found.error)


RULES: Mapping[str, Callable[[Array], Rule]] = {
    "pairs, Bonferroni (before)": pairs,
    "Tukey in blocks": tukey,
    "Games-Howell in blocks": games_howell,
    "variances half-way to all": shrunk,
    "trimmed residuals": trimmed,
    "permutation, max-T": permuted,
    "ours": ours,
}


@dataclass(frozen=True)
class Errors:
    """How often a rule erred."""

    false: float
    """Share of the runs in which any two servers were told apart."""
    coverage: float
    """Share of the intervals against the first server that held 1."""
    width: float
    """Geometric mean of what must be differed by, divided by that of the rule before."""


def errors(
    kind: str,
    servers: int,
    repetitions: int,
    rounds: int,
    rules: Mapping[str, Callable[[Array], Rule]],
) -> dict[str, Errors]:
    """Return how often each rule errs on so many runs of servers that do not differ."""
    dice = np.random.default_rng([servers, repetitions, NOISES.index(kind)])
    y = noise(kind, (rounds, repetitions, servers), dice)
    before = pairs(y)
    base = np.log(before.together * before.error).mean()
    found = {}
    for name, rule in rules.items():
        said = rule(y)
        needed = said.together * said.error
        first = slice(0, servers - 1)
        covered = np.abs(said.difference) <= said.alone * said.error
        found[name] = Errors(
            float((np.abs(said.difference) > needed).any(1).mean()),
            float(covered[:, first].mean()),
            float(np.exp(np.log(needed).mean() - base)),
        )
    return found


def power(
    servers: int, repetitions: int, rounds: int, rule: Callable[[Array], Rule]
) -> list[float]:
    """Return how often a server is found that is faster than the first by each of `POWER_AT`."""
    found = []
    for difference in POWER_AT:
        dice = np.random.default_rng([servers, repetitions, 99])
        y = noise("equal", (rounds, repetitions, servers), dice)
        y[:, :, 1] += math.log1p(difference)
        said = rule(y)
        found.append(float((said.difference[:, 0] < -(said.together * said.error)[:, 0]).mean()))
    return found


def _range(servers: int, degrees: int, share: float = 0.95) -> float:
    return studentized_range_quantile(share, servers, degrees) / math.sqrt(2)


def _fitted(y: Array) -> tuple[Array, Array, int]:
    """Return means, a variance of each server and the degrees of freedom of all of them."""
    _, repetitions, servers = y.shape
    left = y - y.mean(2, keepdims=True) - y.mean(1, keepdims=True) + y.mean((1, 2), keepdims=True)
    own = (left**2).sum(1) * servers / ((repetitions - 1) * (servers - 1))
    return y.mean(1), own, (repetitions - 1) * (servers - 1)


def _rule(y: Array, means: Array, variances: Array, degrees: int, together: float) -> Rule:
    one, other = np.triu_indices(y.shape[2], 1)
    error = np.sqrt((variances[:, one] + variances[:, other]) / y.shape[1])
    alone = float(stats.t.ppf(0.975, degrees))
    return Rule(means[:, one] - means[:, other], error, alone, together)
