"""What else there was on the nodes of a run: over its trials, node by node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.api.results import TrialResult
from laptime.api.usage import NodeUsage

_NAMED = 10


@dataclass(frozen=True)
class NodeLine:
    """One node: from the lowest figure of its trials to the highest, `-` where none is known."""

    node: str
    trials: int
    cpus: str
    others: str
    other_pods: str
    names: str
    """Other pods of the run's own namespace, each with the most that it used in a trial."""
    stolen: str
    still: str
    """How long nothing ran on it."""
    waiting: str
    frequency: str
    probe: str
    """CPU time of a fixed piece of work."""
    clock: str
    """By how much its clock was ahead of the first generator's."""


def node_lines(trials: Iterable[TrialResult]) -> list[NodeLine]:
    """Return a line for each node that was watched while a trial was measured on it."""
    by_node: dict[str, list[NodeUsage]] = {}
    for trial in trials:
        for node in trial.usage.nodes if trial.usage else ():
            by_node.setdefault(node.node, []).append(node)
    return [_line(name, by_node[name]) for name in sorted(by_node)]


def own_cpus(trials: Iterable[TrialResult]) -> str:
    """Return which parts of a run had CPUs for themselves, over its trials; empty: nobody told."""
    known: dict[str, list[int]] = {}
    for trial in trials:
        for part in trial.usage.components if trial.usage else ():
            if part.exclusive_cpus is not None:
                name = f"{part.component} {part.server}" if part.server else part.component
                known.setdefault(name, []).append(part.exclusive_cpus)
    if not known:
        return ""
    if not any(map(any, known.values())):
        return "No part of the run had CPUs for itself: other pods could run on all of them."
    said = ", ".join(f"{name} {_count(numbers)}" for name, numbers in known.items())
    return f"CPUs that no other pod could run on: {said}."


def _count(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low} to {high}" if low != high else str(low or "none")


def _line(name: str, read: Sequence[NodeUsage]) -> NodeLine:
    return NodeLine(
        node=name,
        trials=len(read),
        cpus=str(max(one.cpus for one in read) or "-"),
        others=_range([one.others_cores for one in read]),
        other_pods=_range([one.other_pods_cores for one in read]),
        names=_names(read),
        stolen=_range([one.stolen_share for one in read], 100, "%"),
        still=_range([one.stood_still_seconds for one in read], 1, " s"),
        waiting=_range([one.cpu_waiting_share for one in read], 100, "%"),
        frequency=_range([one.frequency_hertz for one in read], 1e-9, " GHz"),
        probe=_probe(read),
        clock=_range([one.clock_ahead_seconds for one in read], 1e3, " ms"),
    )


def _probe(read: Sequence[NodeUsage]) -> str:
    # Times of one piece of work say nothing beside those of another one.
    if len({one.probe_work for one in read if one.probe_work}) > 1:
        return "-"
    return _range([one.probe_seconds for one in read], 1e6, " µs")


def _range(values: Sequence[float | None], scale: float = 1, unit: str = "") -> str:
    known = [value * scale for value in values if value is not None]
    if not known:
        return "-"
    low, high = wording.number(min(known)), wording.number(max(known))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def _names(read: Sequence[NodeUsage]) -> str:
    told = [one.neighbours for one in read if one.neighbours is not None]
    most: dict[str, float] = {}
    for neighbour in (one for neighbours in told for one in neighbours):
        most[neighbour.pod] = max(neighbour.cores, most.get(neighbour.pod, 0.0))
    first = sorted(most, key=lambda pod: (-most[pod], pod))[:_NAMED]
    said = ", ".join(f"{pod} ({wording.number(most[pod])})" for pod in first)
    return said or ("none" if told else "-")
