"""Factors as the operator draws them on a page, for many runs at once.

`candidates.ours` has the interval of each pair by what chance does to it. On a page a third server
that lies between two for sure makes it narrower, and two that cannot be told apart are drawn wider,
to where they meet (`Comparison.factors`); a test holds the two beside each other.
"""

from __future__ import annotations

import math

import numpy as np
from candidates import Array, Said, Truths

from laptime.analysis.statistics import NOTICEABLE_RATIO


def factors(said: Said, servers: int) -> tuple[Array, Array]:
    """Return the ends of each server's factor against the first one: rounds by servers, as logs."""
    value, low, faster = _all_with_all(said, servers)
    at, ends = value[:, :, 0], np.stack([low[:, :, 0], -low[:, 0]])
    known, rows = ends.copy(), np.arange(len(at))
    for one, other in zip(*np.triu_indices(servers, 1), strict=True):
        turned = at[:, one] > at[:, other]
        below, above = np.where(turned, other, one), np.where(turned, one, other)
        upper, lower = known[1][rows, below], known[0][rows, above]
        told = faster[:, one, other] | faster[:, other, one]
        apart = faster[rows, 0, below], faster[rows, above, 0]
        drawn = (lower > upper) & ~told & ~(apart[0] & apart[1])
        meeting = (upper + lower) / 2
        meeting = np.where(apart[0] & (meeting >= 0), upper, meeting)
        meeting = np.where(apart[1] & (meeting <= 0), lower, meeting)
        if one == 0:
            meeting = np.zeros_like(meeting)
        wider = np.maximum(ends[1][rows, below], meeting)
        ends[1][rows, below] = np.where(drawn, wider, ends[1][rows, below])
        wider = np.minimum(ends[0][rows, above], meeting)
        ends[0][rows, above] = np.where(drawn, wider, ends[0][rows, above])
    return ends[0], ends[1]


def _all_with_all(said: Said, servers: int) -> tuple[Array, Array, Truths]:
    """Return of each server beside each: the difference, its lower end, whether it is faster."""
    one, other = np.triu_indices(servers, 1)
    value, low = np.zeros((2, len(said.difference), servers, servers))
    claimed = np.zeros_like(value, dtype=bool)
    middle = said.difference if said.middle is None else said.middle
    estimate = said.difference if said.estimate is None else said.estimate
    told = np.abs(said.difference) > np.maximum(said.needed, math.log(NOTICEABLE_RATIO))
    for first, second, sign in ((one, other, 1), (other, one, -1)):
        value[:, first, second] = sign * estimate
        low[:, first, second] = sign * middle - said.half
        claimed[:, first, second] = told & (sign * said.difference > 0)
    steps = np.full_like(low, -np.inf)
    for third in range(servers):
        between = claimed[:, :, third, None] & claimed[:, None, third, :] & (value > 0)
        step = low[:, :, third, None] + low[:, None, third, :]
        steps = np.maximum(steps, np.where(between, step, -np.inf))
    low = np.minimum(np.maximum(low, steps), np.maximum(low, value))
    return value, low, claimed | (steps > -np.inf)
