"""Ranks that claim no more than the figures show."""

from __future__ import annotations

from collections.abc import Mapping

from laptime.analysis.blocks import fullest
from laptime.analysis.comparing import Comparison


def fastest_first(
    scores: Mapping[str, Mapping[int, float]], comparison: Comparison | None = None
) -> list[str]:
    """Return the servers by what their figures are around, as tables have it.

    None comes after one that it is faster than for sure. That does not follow from the figures
    alone: each is of all repetitions of one server, while two servers are compared in pairs. A
    machine that stumbled in one trial moves the one and not the other. `comparison` is that of
    these servers, where it is known. Servers without repetitions are left out.
    """
    compared = comparison or Comparison(scores)
    value = {name: compared.estimate(name).value for name, logs in scores.items() if logs}
    left = sorted(value, key=lambda name: -value[name])
    faster = {(one, other) for one in left for other in left if compared.is_faster(one, other)}
    found: list[str] = []
    while left:
        unbeaten = [name for name in left if not any((one, name) in faster for one in left)]
        # Pairs with different repetitions in common can go round in a circle: then by figures.
        found.append((unbeaten or left)[0])
        left.remove(found[-1])
    return found


def ranks(
    scores: Mapping[str, Mapping[int, float]], comparison: Comparison | None = None
) -> dict[str, int]:
    """Return the rank of each server by its logarithms, more being better, by repetition.

    A server's rank is above that of every server that is faster for sure, and at least one more
    than their number. That cannot be told apart is not transitive (a like b, b like c, a faster
    than c): ranks are then 1, 1, 2, so servers that differ for sure never share one. All pairs
    are compared together; `comparison` is that of these servers, where it is known. Servers with
    fewer than two repetitions have no rank, nor have those with fewer than two beside most others.
    """
    known = {name: scores[name] for name, score in fullest(scores).items() if len(score) > 1}
    comparison = comparison or Comparison(known)
    found: dict[str, int] = {}
    for name in fastest_first(known, comparison):
        faster = [other for other in found if comparison.can_be_told_apart(other, name)]
        above = max((found[other] for other in faster), default=0)
        found[name] = 1 + max(len(faster), above)
    return found
