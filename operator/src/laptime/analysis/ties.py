"""Which servers cannot be told apart, as letters: those that share one are a group.

The compact letter display of H.-P. Piepho, "An Algorithm for a Letter-Based Representation of
All-Pairwise Comparisons", Journal of Computational and Graphical Statistics 13 (2004): a server may
have several letters, since A like B and B like C does not make A like C.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from string import ascii_uppercase

from laptime.analysis.comparing import Comparison
from laptime.analysis.logs import ByRepetition
from laptime.analysis.looks import ONCE, Looks
from laptime.analysis.ranks import fastest_first

LogRates = Mapping[str, ByRepetition]


def tie_groups(rates: LogRates, looks: Looks = ONCE) -> dict[str, str]:
    """Return each server's letters; `A` is the group of the fastest.

    All pairs are compared, so that all answers hold at once with 95 %. Empty when no pair has two
    repetitions in common: then nothing is known.
    """
    comparison = Comparison(rates, looks)
    order = fastest_first(rates, comparison)
    pairs = list(combinations(order, 2))
    if not any(len(rates[one].keys() & rates[other].keys()) > 1 for one, other in pairs):
        return {}
    groups = [frozenset(order)]
    for one, other in pairs:
        if comparison.can_be_told_apart(one, other):
            groups = _without_pair(groups, one, other)
    groups.sort(key=lambda group: sorted(order.index(name) for name in group))
    return {
        name: "".join(_letter(place) for place, group in enumerate(groups) if name in group)
        for name in order
    }


def _without_pair(groups: list[frozenset[str]], one: str, other: str) -> list[frozenset[str]]:
    split = [
        part
        for group in groups
        for part in ((group - {one}, group - {other}) if {one, other} <= group else (group,))
    ]
    unique = list(dict.fromkeys(split))
    return [group for group in unique if not any(group < wider for wider in unique)]


def _letter(place: int) -> str:
    turn, letter = divmod(place, len(ascii_uppercase))
    return ascii_uppercase[letter] + (str(turn + 1) if turn else "")
