"""Whether a trial had its nodes for itself. Pure.

Pressure and frequency are told beside it and say nothing about others: a server that is at its
limit makes pressure too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from math import fsum, log, sqrt
from statistics import mean

from laptime.api import doubts
from laptime.api.isolation import Isolation, Quietness
from laptime.api.results import TrialResult
from laptime.api.usage import NodeUsage, TrialUsage
from laptime.measure.validity import node_doubts

MAX_QUIET_SHARE = 0.05
"""Of a node's CPUs that others may use while it counts as quiet: what kubelet, runtime and a few
daemons need on a node that is there for benchmarks alone."""

_FEWEST_FREE = 3
"""Degrees of freedom: two servers need three repetitions."""
_ORDER = tuple(Quietness)


def trial_isolation(usage: TrialUsage | None, nodes: Collection[str]) -> Isolation:
    """Return how far a trial had its nodes for itself: what is true of the worst of them.

    `nodes` are the names of those that parts of it ran on, as far as they are known.
    """
    read = usage.nodes if usage is not None else []
    judged = [_of_node(node) for node in read]
    for name in sorted(set(nodes) - {node.node for node in read}):
        judged.append(_not_known(f"nobody watched node {name}", name))
    return max(judged, key=_badness, default=_not_known("nobody watched its nodes"))


def run_isolation(results: Iterable[TrialResult]) -> Isolation | None:
    """Return that of the worst measured trial of a run; None when nothing is measured."""
    measured = [one for one in results if one.figures is not None]
    judged = [
        (one.isolation or _not_known("its version of Laptime did not tell")).model_copy(
            update={"trial": one.trial}
        )
        for one in measured
    ]
    if not judged:
        return None
    unknown = sum(one.word is Quietness.NOT_KNOWN for one in judged)
    worst = max(judged, key=_badness)
    # Validated, so that it is rounded as what is read back.
    return Isolation(
        **{
            **dict(worst),
            "trials_not_known": unknown or None,
            "cpu_speed_spread": _speed_spread(measured),
        }
    )


def _speed_spread(results: Iterable[TrialResult]) -> float | None:
    """Return by how much the speed of a node's CPUs varied, of the one that varied most.

    From trial to trial of one server under one load: a fixed piece of work takes longer on a node
    that is less busy, and that is no noise of either.
    """
    took: dict[str, dict[tuple[str | None, ...], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in results:
        for node in one.usage.nodes if one.usage else ():
            if node.probe_seconds:
                alike = node.probe_work, one.server, one.load
                took[node.node][alike].append(log(node.probe_seconds))
    spreads = []
    for groups in took.values():
        free = sum(len(each) - 1 for each in groups.values())
        if free >= _FEWEST_FREE:
            around = ((value, mean(each)) for each in groups.values() for value in each)
            spreads.append(sqrt(fsum((value - middle) ** 2 for value, middle in around) / free))
    return max(spreads, default=None)


def _badness(one: Isolation) -> tuple[int, float, float]:
    share = one.others_cores / one.cpus if one.others_cores and one.cpus else 0.0
    return _ORDER.index(one.word), share, one.stolen_share or 0.0


def _not_known(why: str, node: str | None = None) -> Isolation:
    return Isolation(word=Quietness.NOT_KNOWN, message=why, node=node)


def _of_node(node: NodeUsage) -> Isolation:
    word, message = _judged(node)
    return Isolation(
        word=word,
        message=message,
        node=node.node,
        cpus=node.cpus or None,
        others_cores=node.others_cores,
        other_pods_cores=node.other_pods_cores,
        stolen_share=node.stolen_share,
    )


def _judged(node: NodeUsage) -> tuple[Quietness, str | None]:
    if said := node_doubts(node):
        return Quietness.DISTURBED, "; ".join(said)
    others = node.others_cores
    if others is not None and node.cpus and others > MAX_QUIET_SHARE * node.cpus:
        figures = {"cores": others, "cpus": node.cpus, "node": node.node}
        return Quietness.SHARED, doubts.NEIGHBOURS.says(**figures)
    # What is known without the other pods is a lower bound: it can be too low, and no praise.
    if None in (others, node.other_pods_cores, node.stolen_share) or not node.cpus:
        said_not = f"it is not known what other pods on node {node.node} used"
        return Quietness.NOT_KNOWN, said_not
    if not node.complete:
        return Quietness.NOT_KNOWN, f"node {node.node} was not watched all of the time"
    return Quietness.QUIET, None
