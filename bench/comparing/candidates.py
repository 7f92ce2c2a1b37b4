"""Rules for comparing servers: the candidates, for many runs at once.

A rule says of each pair of servers in each round whether it tells them apart, how much they would
have to differ for that, and the 95 % interval of their ratio. `ours` is what the operator does
(analysis/comparing.py); a test holds the two beside each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from laptime.analysis.comparing import NOISIER, PAIRS_SHARE
from laptime.analysis.distributions import studentized_range_quantile
from laptime.analysis.statistics import (
    SIGNED_RANK_REPETITIONS,
    claim_confidence,
    signed_ranks_suffice,
)

Array = NDArray[np.float64]
Truths = NDArray[np.bool_]
_ERRORS = 0.05
_HUBER = 1.345
"""Residuals count in full up to so many standard deviations: 95 % efficient for normal noise."""


@dataclass(frozen=True)
class Said:
    """What a rule says: rounds by pairs, the pairs in the order of `np.triu_indices`."""

    difference: Array
    needed: Array
    """Differences from here on are claimed."""
    half: Array
    """How far the 95 % interval of a difference reaches to each side, where it is symmetric."""
    middle: Array | None = None
    """What that interval is around, where it is not the difference."""
    estimate: Array | None = None
    """What the ratio is said to be, where that is not the difference that is judged."""

    @property
    def told(self) -> Truths:
        """Whether two servers are told apart."""
        return np.abs(self.difference) > self.needed

    @property
    def covered(self) -> Truths:
        """Whether the interval holds the truth, which is no difference."""
        return self.covers(np.zeros(1))

    def covers(self, truth: Array) -> Truths:
        """Return whether the intervals hold these differences, one for each pair."""
        middle = self.difference if self.middle is None else self.middle
        held: Truths = np.abs(middle - truth) <= self.half
        return held


def pairs(y: Array) -> Said:
    """Return the rule at first: each pair for itself, Student's t, Bonferroni over all pairs."""
    _, repetitions, servers = y.shape
    difference, error = mean_and_error(y)
    count = servers * (servers - 1) // 2
    alone, together = (_student(repetitions - 1, _ERRORS / of) for of in (1, count))
    return Said(difference, together * error, alone * error)


def trimmed_pairs(y: Array) -> Said:
    """Return each pair for itself with a fifth of the differences cut at either end.

    K. K. Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61 (1974).
    """
    _, repetitions, servers = y.shape
    cut = repetitions // 5
    left = repetitions - 2 * cut
    paired = np.sort(_differences(y), 1)
    kept = paired[:, cut : repetitions - cut]
    pulled = np.clip(paired, kept[:, :1], kept[:, -1:])
    error = pulled.std(1, ddof=1) * math.sqrt((repetitions - 1) / (left * (left - 1)))
    count = servers * (servers - 1) // 2
    alone, together = (_student(left - 1, _ERRORS / of) for of in (1, count))
    return Said(kept.mean(1), together * error, alone * error)


def games_howell(y: Array) -> Said:
    """Return the studentized range with the variance and the degrees of freedom of each pair."""
    _, repetitions, servers = y.shape
    difference, error = mean_and_error(y)
    together = _range(servers, repetitions - 1)
    return Said(difference, together * error, _student(repetitions - 1, _ERRORS) * error)


def tukey(y: Array) -> Said:
    """Return the studentized range with one variance for all."""
    means, own, degrees = fitted(y)
    same = np.broadcast_to(own.mean(1, keepdims=True), own.shape)
    return _by_variances(y, means, same, degrees)


def shrunk(y: Array) -> Said:
    """Return a variance of each server, drawn half-way to that of all."""
    means, own, degrees = fitted(y)
    return _by_variances(y, means, (own + own.mean(1, keepdims=True)) / 2, degrees)


def moderated(y: Array) -> Said:
    """Return a variance of each server, drawn to that of all as far as they look alike.

    G. K. Smyth, "Linear Models and Empirical Bayes Methods", Statistical Applications in Genetics
    and Molecular Biology 3 (2004): how many degrees of freedom what is known from all of them is
    worth follows from how far the logarithms of the variances lie apart.
    """
    if y.shape[2] == 2:
        return pairs(y)
    means, own, degrees = fitted(y)
    of_one = degrees / y.shape[2]
    logs = np.log(np.maximum(own, 1e-300)) - special.digamma(of_one / 2) + math.log(of_one / 2)
    spread = logs.var(1, ddof=1) - float(special.polygamma(1, of_one / 2))
    prior = 2 * inverse_trigamma(np.maximum(spread, 1e-3))
    level = np.exp(logs.mean(1) + special.digamma(prior / 2) - np.log(prior / 2))
    drawn = (prior * level)[:, None] + of_one * own
    freedom = np.minimum(prior + of_one, degrees)
    one, other = np.triu_indices(y.shape[2], 1)
    variances = drawn / (prior + of_one)[:, None]
    error = np.sqrt((variances[:, one] + variances[:, other]) / y.shape[1])
    together = range_of_many(y.shape[2], freedom)[:, None]
    alone = special.stdtrit(freedom, 1 - _ERRORS / 2)[:, None]
    return Said(means[:, one] - means[:, other], together * error, alone * error)


def huber(y: Array) -> Said:
    """Return one variance for all, with residuals that are cut where they are too large.

    P. J. Huber, Robust Statistics (1981), sections 7.3 to 7.6.
    """
    rounds, repetitions, servers = y.shape
    degrees = (repetitions - 1) * (servers - 1)
    centred = y - np.median(y, 2, keepdims=True)
    place = np.median(centred, 1, keepdims=True)
    spread = 1.4826 * np.median(np.abs(centred - place), (1, 2), keepdims=True)
    bound = _HUBER * spread * math.sqrt(repetitions * servers / degrees)
    shift = np.zeros((rounds, repetitions, 1))
    for _ in range(6):
        shift = shift + np.clip(centred - place - shift, -bound, bound).mean(2, keepdims=True)
        place = place + np.clip(centred - place - shift, -bound, bound).mean(1, keepdims=True)
    left = centred - place - shift
    kept = np.maximum((np.abs(left) < bound).mean((1, 2)), 0.3)
    variance = (np.clip(left, -bound, bound) ** 2).sum((1, 2)) / degrees / kept**2
    every = np.repeat(variance[:, None], servers, 1)
    return _by_variances(y, place[:, 0, :], every, degrees)


def permuted(y: Array, draws: int = 199) -> Said:
    """Return Tukey's statistic beside its largest under other orders within repetitions.

    Step-down (P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing, 1993): once the
    pair that differs most is told apart, the next one has only the others to be compared with.
    """
    if y.shape[2] == 2:
        return pairs(y)
    found = tukey(y)
    dice = np.random.default_rng(1)
    scale = found.needed / _range(y.shape[2], (y.shape[1] - 1) * (y.shape[2] - 1))
    needed = np.empty_like(found.needed)
    rank = math.ceil((1 - _ERRORS) * (draws + 1)) - 1
    for number, of_round in enumerate(y):
        order = np.argsort(dice.random((draws, *of_round.shape)), 2)
        other = tukey(np.take_along_axis(np.broadcast_to(of_round, order.shape), order, 2))
        critical = _range(y.shape[2], (y.shape[1] - 1) * (y.shape[2] - 1))
        statistic = np.abs(other.difference) / (other.needed / critical)
        ours_first = np.argsort(-np.abs(found.difference[number]) / scale[number])
        largest = np.maximum.accumulate(statistic[:, ours_first[::-1]], 1)[:, ::-1]
        steps = np.sort(largest, 0)[rank]
        own = np.abs(found.difference[number][ours_first]) / scale[number][ours_first]
        failed = np.maximum.accumulate(own <= steps)
        # What comes after a pair that is not told apart is not told apart either.
        steps = np.where(failed, np.maximum(steps, own), steps)
        needed[number, ours_first] = steps * scale[number][ours_first]
    return Said(found.difference, needed, found.half)


def ours(y: Array) -> Said:
    """Return what the operator does: no server is steadier than all together, see comparing.py."""
    _, repetitions, servers = y.shape
    count = servers * (servers - 1) // 2
    by_ranks = signed_ranks_suffice(repetitions, 1 - _ERRORS / count)
    if by_ranks:
        return _by_ranks(y, _ERRORS / count)
    if servers == 2:
        said = pairs(y)
        needed = _student(repetitions - 1, 1 - claim_confidence(repetitions))
        return Said(said.difference, needed * mean_and_error(y)[1], said.half)
    _, own, degrees = fitted(y)
    together = own.mean(1, keepdims=True)
    of_model = _ERRORS * (1 - PAIRS_SHARE)
    critical = max(
        _range(servers, degrees, 1 - of_model * (1 - 1 / repetitions)),
        _student(repetitions - 1, of_model),
    )
    variances = np.maximum(own, together)
    one, other = np.triu_indices(servers, 1)
    error = np.sqrt((variances[:, one] + variances[:, other]) / repetitions)
    difference, error_of_pair = mean_and_error(y)
    # Pairs alone: where they need less, less is needed.
    of_all = _student(
        repetitions - 1, 1 - claim_confidence(repetitions, round(count / PAIRS_SHARE))
    )
    needed = np.minimum(critical * error, of_all * error_of_pair)
    if repetitions >= SIGNED_RANK_REPETITIONS:
        # What is told apart must not lie in an interval that holds 1.
        ranked = _by_ranks(y, _ERRORS)
        assert ranked.middle is not None
        reach = np.where(difference > 0, ranked.half - ranked.middle, ranked.half + ranked.middle)
        needed = np.maximum(needed, np.abs(difference) + reach)
        return Said(difference, needed, ranked.half, ranked.middle, ranked.difference)
    noisy = own > NOISIER * together
    of_pair = noisy[:, one] | noisy[:, other]
    alone = np.where(of_pair, _student(repetitions - 1, _ERRORS), _student(degrees, _ERRORS))
    by_pair = np.abs(difference) > of_all * error_of_pair
    half = np.where(by_pair, _student(repetitions - 1, _ERRORS) * error_of_pair, alone * error)
    return Said(difference, needed, half)


RULES: Mapping[str, Callable[[Array], Said]] = {
    "pairs, Bonferroni (at first)": pairs,
    "Tukey in blocks": tukey,
    "Games-Howell in blocks": games_howell,
    "variances half-way to all": shrunk,
    "moderated variances": moderated,
    "Huber": huber,
    "trimmed pairs": trimmed_pairs,
    "permutation, step-down max-T": permuted,
    "ours": ours,
}


def _differences(y: Array) -> Array:
    one, other = np.triu_indices(y.shape[2], 1)
    paired: Array = y[:, :, one] - y[:, :, other]
    return paired


def mean_and_error(y: Array) -> tuple[Array, Array]:
    """Return the mean differences of all pairs, with the standard error of each by itself."""
    paired = _differences(y)
    return paired.mean(1), paired.std(1, ddof=1) / math.sqrt(y.shape[1])


def _by_ranks(y: Array, errors: float) -> Said:
    """Return signed ranks of each pair, with the confidence that so many errors leave."""
    repetitions = y.shape[1]
    paired = _differences(y)
    one, other = np.triu_indices(repetitions)
    means = np.sort((paired[:, one] + paired[:, other]) / 2, 1)
    count = means.shape[1]
    difference = (means[:, (count - 1) // 2] + means[:, count // 2]) / 2

    def ends(share: float) -> tuple[Array, Array]:
        end = left_out(repetitions, share)
        return means[:, end - 1], means[:, count - end]

    low, high = ends(errors)
    # As far as the nearer end is: from there on the interval does not hold 0.
    needed = np.where(difference > 0, difference - low, high - difference)
    low, high = ends(_ERRORS)
    return Said(difference, needed, (high - low) / 2, (high + low) / 2)


@lru_cache(maxsize=256)
def left_out(count: int, errors: float) -> int:
    """Return which of the sorted means of pairs bounds an interval by signed ranks."""
    likely = np.array([1.0])
    for rank in range(1, count + 1):
        likely = (np.pad(likely, (0, rank)) + np.pad(likely, (rank, 0))) / 2
    return int((np.cumsum(likely) <= errors / 2).sum())


@lru_cache(maxsize=256)
def _student(degrees: int, errors: float) -> float:
    return float(special.stdtrit(degrees, 1 - errors / 2))


def _range(servers: int, degrees: float, share: float = 1 - _ERRORS) -> float:
    return studentized_range_quantile(share, servers, degrees) / math.sqrt(2)


def range_of_many(servers: int, degrees: Array, share: float = 1 - _ERRORS) -> Array:
    """Return the studentized range for as many degrees of freedom, between some that are known."""
    known = np.geomspace(0.5, 200, 16)
    quantiles = [_range(servers, float(one), share) for one in known]
    found: Array = np.exp(np.interp(1 / degrees, 1 / known[::-1], np.log(quantiles[::-1])))
    return found


def inverse_trigamma(values: Array) -> Array:
    """Return where the trigamma function has these values, by Newton's method."""
    found: Array = 0.5 + 1 / values
    for _ in range(20):
        trigamma = special.polygamma(1, found)
        found = found + trigamma * (1 - trigamma / values) / special.polygamma(2, found)
    return found


def fitted(y: Array) -> tuple[Array, Array, int]:
    """Return means, a variance of each server and the degrees of freedom of all of them."""
    _, repetitions, servers = y.shape
    left = y - y.mean(2, keepdims=True) - y.mean(1, keepdims=True) + y.mean((1, 2), keepdims=True)
    own = (left**2).sum(1) * servers / ((repetitions - 1) * (servers - 1))
    return y.mean(1), own, (repetitions - 1) * (servers - 1)


def _by_variances(y: Array, means: Array, variances: Array, degrees: int) -> Said:
    one, other = np.triu_indices(y.shape[2], 1)
    error = np.sqrt((variances[:, one] + variances[:, other]) / y.shape[1])
    together = _range(y.shape[2], degrees)
    alone = _student(degrees, _ERRORS)
    return Said(means[:, one] - means[:, other], together * error, alone * error)
