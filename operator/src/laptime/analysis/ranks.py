"""Ranks that claim no more than the figures show."""

from __future__ import annotations

import math
from collections.abc import Mapping

from laptime.analysis.statistics import can_be_told_apart


def ranks(scores: Mapping[str, Mapping[int, float]]) -> dict[str, int]:
    """Return the rank of each server by its logarithms of throughput, by repetition.

    A server's rank is above that of every server that is faster for sure, and at least one more
    than their number. That cannot be told apart is not transitive (a like b, b like c, a faster
    than c): ranks are then 1, 1, 2, so servers that differ for sure never share one. All pairs
    are compared together (Bonferroni). Servers with fewer than two repetitions have no rank.
    """
    known = {name: score for name, score in scores.items() if len(score) > 1}
    pairs = len(known) * (len(known) - 1) // 2
    mean = {name: math.fsum(score.values()) / len(score) for name, score in known.items()}
    found: dict[str, int] = {}
    for name in sorted(known, key=lambda one: -mean[one]):
        faster = [other for other in found if can_be_told_apart(known[other], known[name], pairs)]
        above = max((found[other] for other in faster), default=0)
        found[name] = 1 + max(len(faster), above)
    return found
