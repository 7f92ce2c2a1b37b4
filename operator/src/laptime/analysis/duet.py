"""Two servers at the same time: which trials are made together, and what that gained. Pure.

How far two trials differ that were measured one after the other is in a duet's repetitions too: one
server's trial beside the other one's of the repetition before or after. Where the machine disturbs
both alike, they differ more than the two trials of one repetition do. Where each of two servers
has what it takes from the other, that is even. What the two do to each other beside that is in
both, as if it were the machine's: it is about trials in turn on such a machine, and not about one
that nobody else uses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import variance

from laptime.analysis import wording
from laptime.analysis.comparing import Scores
from laptime.analysis.statistics import paired_logs
from laptime.api.results import TrialResult
from laptime.plan import Trial

FEWEST = 5
"""Repetitions from which on it is said: of fewer, chance alone makes it 0.3 or 3 often enough."""

FULL = 0.85
"""Of a node's CPUs: of two, more would be less than a third of one that is free."""


def with_partners(left: Sequence[Trial], results: Sequence[TrialResult]) -> list[Trial]:
    """Return those of the trials left that are made: in a duet with a partner, or alone throughout.

    Figures of both kinds are about different things, so a load has one of them. Where both servers
    were measured together, one whose partner is out is not measured alone. Where one was measured
    alone, all that is left is. Other trials than those of a duet are what they are.
    """
    if all(trial.beside is None for trial in left):
        return list(left)
    there = {trial.name for trial in left} | {one.trial for one in results}
    together, alone = kinds(results)
    return [
        trial if trial.beside in there and trial.load not in alone else replace(trial, beside=None)
        for trial in left
        if trial.beside is None or trial.beside in there or trial.load not in together
    ]


def kinds(results: Sequence[TrialResult]) -> tuple[set[str], set[str]]:
    """Return under which loads servers were measured together, and under which alone."""
    measured = [one for one in results if one.figures is not None]
    together = {one.load for one in measured if one.beside is not None}
    return together, {one.load for one in measured} - together


def width_in_turn(scores: Scores) -> float | None:
    """Return how wide the interval would be of two servers in turn, in the time of the duet.

    In multiples of the interval at the same time: sqrt(2 v / w), where w is the variance of the
    logarithm of the ratio in one repetition, v that between neighbouring ones, and 2 is there
    since in turn there are half as many repetitions. Student's factors, which are alike from a few
    repetitions on, are left out. None below FEWEST repetitions of both, or without any noise.
    """
    if len(scores) != 2:
        return None
    one, other = scores.values()
    together = paired_logs(one, other)
    if len(together) < FEWEST:
        return None
    following = {repetition - 1: value for repetition, value in other.items()}
    before = {repetition + 1: value for repetition, value in other.items()}
    in_turn = [
        logs for shifted in (following, before) if len(logs := paired_logs(one, shifted)) > 1
    ]
    return _ratio(in_turn, together)


def _ratio(in_turn: Sequence[Sequence[float]], together: Sequence[float]) -> float | None:
    noise = variance(together)
    if not in_turn or noise <= 0:
        return None
    apart = math.fsum(map(variance, in_turn)) / len(in_turn)
    return math.sqrt(2 * apart / noise)


def said(scores: Scores, results: Sequence[TrialResult]) -> list[str]:
    """Return, for the verdict, what was measured at once and what that gave; else nothing.

    `results` are all of a duet, `scores` are of its first ranking. It says when to measure two
    servers in turn: where they fill the node themselves, each would have more of it alone, and
    their factor may be another one. What others take of it, which is what a duet is for, says
    nothing of that.
    """
    parts = pairing_said(results)
    together = [one for one in results if one.beside and one.figures]
    wide = width_in_turn(scores)
    if wide is not None and together:
        width = wording.number(wide)
        parts.append(f"in turn, an interval of the same time would be about {width}x as wide")
    if together and 2 * sum(map(_full, together)) > len(together):
        parts.append("the two fill the node: give each less CPU, or leave pairing out")
    return parts


def pairing_said(results: Sequence[TrialResult]) -> list[str]:
    """Return under which loads of a duet two servers were measured at once, and where one alone."""
    together, alone = kinds(results)
    parts = [wording.DUET] if together else []
    for load in sorted(alone):
        servers = {one.server for one in results if one.load == load and one.figures is not None}
        parts.append(
            f"under {load} only {servers.pop()} was measured, alone"
            if len(servers) == 1
            else f"under {load} each server was measured alone"
        )
    return parts


def _full(result: TrialResult) -> bool:
    """Return whether the run itself used nearly all CPUs of a server's node in a trial."""
    there = result.nodes.get("server", ())
    nodes = result.usage.nodes if result.usage is not None else []
    return any(
        node.node in there
        and node.busy_share is not None
        and node.others_cores is not None
        and node.busy_share * node.cpus - node.others_cores >= FULL * node.cpus
        for node in nodes
    )
