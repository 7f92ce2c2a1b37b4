"""Ranks that claim no more than the figures show."""

from __future__ import annotations

from collections.abc import Mapping

from laptime.analysis.statistics import can_be_told_apart, interval_of_logs, is_faster


def fastest_first(scores: Mapping[str, Mapping[int, float]], of: int = 1) -> list[str]:
    """Return the servers by what their throughputs are around, from their logarithms.

    None comes after one that it is faster than for sure. That does not follow from the figures
    alone: each is of all repetitions of one server, while two servers are compared in pairs. A
    machine that stumbled in one trial moves the one and not the other. `of` as in
    `can_be_told_apart`; servers without repetitions are left out.
    """
    value = {
        name: interval_of_logs(list(logs.values())).value for name, logs in scores.items() if logs
    }
    left = sorted(value, key=lambda name: -value[name])
    faster = {
        (one, other) for one in left for other in left if is_faster(scores[one], scores[other], of)
    }
    found: list[str] = []
    while left:
        unbeaten = [name for name in left if not any((one, name) in faster for one in left)]
        # Pairs with different repetitions in common can go round in a circle: then by figures.
        found.append((unbeaten or left)[0])
        left.remove(found[-1])
    return found


def ranks(scores: Mapping[str, Mapping[int, float]]) -> dict[str, int]:
    """Return the rank of each server by its logarithms of throughput, by repetition.

    A server's rank is above that of every server that is faster for sure, and at least one more
    than their number. That cannot be told apart is not transitive (a like b, b like c, a faster
    than c): ranks are then 1, 1, 2, so servers that differ for sure never share one. All pairs
    are compared together (Bonferroni). Servers with fewer than two repetitions have no rank.
    """
    known = {name: score for name, score in scores.items() if len(score) > 1}
    pairs = len(known) * (len(known) - 1) // 2
    found: dict[str, int] = {}
    for name in fastest_first(known, pairs):
        faster = [other for other in found if can_be_told_apart(known[other], known[name], pairs)]
        above = max((found[other] for other in faster), default=0)
        found[name] = 1 + max(len(faster), above)
    return found
