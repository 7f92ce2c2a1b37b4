"""Which nodes the trials of a run belong on: those of its first, or of their repetition's. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from laptime.api.placement import Nodes
from laptime.api.results import TrialResult


@dataclass(frozen=True)
class Places:
    """Where the next trial belongs, by its part; what has no nodes may go anywhere."""

    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    firm: bool = True
    """Whether it waits for them; else it rather goes elsewhere, and its figures are doubtful."""
    avoided: tuple[tuple[str, ...], ...] = ()
    """Nodes that the server would rather not be on; what is in more of these groups the less so."""


@dataclass(frozen=True)
class NodeDesign:
    """How the nodes are part of the design of a run."""

    nodes: Nodes
    deployed: frozenset[str]
    """The servers that Laptime deploys: where the pods of a Service are says nothing of theirs."""

    def of_trial(
        self,
        results: Sequence[TrialResult],
        repetition: int,
        lost: int,
        parts: Collection[str],
    ) -> Places:
        """Return where these parts of a trial belong, in an attempt after `lost` others.

        `fixed`: where those measured first were. A difference between nodes is then the same for
        all servers, and never taken for one between them. `rotate`: the same within a repetition,
        which is a block of the design (Montgomery, Design and Analysis of Experiments, chapter 4):
        what a node does to all servers of a block is taken off with the block. `any`: anywhere.
        """
        if self.nodes is Nodes.ANY:
            return Places()
        if self.nodes is Nodes.FIXED:
            return self._first(results, lost, parts)
        block = [one for one in results if one.repetition == repetition]
        others = [one for one in results if one.repetition != repetition]
        places = self._first(block, lost, parts)
        known = self._first(others, 0, {"server"})
        if not places.nodes and lost > 1 and known.nodes:
            # Twice in vain: where it was measured before, it works.
            return replace(known, firm=False)
        failed = {
            node
            for one in block
            if one.figures is None and one.server in self.deployed
            for node in one.nodes.get("server", ())
        }
        return replace(places, avoided=self._used(others, failed))

    def of_tiers(self, results: Sequence[TrialResult], parts: Collection[str]) -> Places:
        """Return where these parts were, that stay for all trials and may have to be made anew."""
        return Places() if self.nodes is Nodes.ANY else self._first(results, 0, parts)

    def _first(self, results: Iterable[TrialResult], lost: int, parts: Collection[str]) -> Places:
        """Return where those measured first were.

        After an attempt that was lost it may go elsewhere: the node may have been why. So may the
        trials after one that did, until one was back.
        """
        first: dict[str, list[str]] = {}
        last: dict[str, list[str]] = {}
        for result in in_time(results):
            for part in result.nodes.keys() & set(parts):
                if part != "server" or result.server in self.deployed:
                    first.setdefault(part, result.nodes[part])
                    last[part] = result.nodes[part]
        if not first:
            return Places()
        stayed = all(set(last[part]) <= set(nodes) for part, nodes in first.items())
        once = {part: tuple(dict.fromkeys(nodes)) for part, nodes in first.items()}
        return Places(once, firm=stayed and not lost)

    def _used(
        self, results: Iterable[TrialResult], failed: Collection[str]
    ) -> tuple[tuple[str, ...], ...]:
        """Return the nodes that servers were on, and those of them that had more repetitions.

        Where something `failed` in this repetition counts as one more of both.
        """
        first: dict[int, list[str]] = {}
        for result in in_time(results):
            if result.server in self.deployed and "server" in result.nodes:
                first.setdefault(result.repetition, result.nodes["server"])
        turns = Counter(node for nodes in first.values() for node in set(nodes))
        fewest = min(turns.values(), default=0)
        more = {node for node, count in turns.items() if count > fewest}
        return tuple(tuple(sorted(one)) for one in ({*turns, *failed}, more | {*failed}) if one)


def in_time(results: Iterable[TrialResult]) -> list[TrialResult]:
    """Return those that measured something, in the order in which they did.

    That is the plan's, those that were asked for again after all before. Their times do not count:
    they are of the clocks of generators' nodes, which may be minutes apart. So one whose result
    somebody deleted, and that was measured anew, is where it was planned.
    """
    measured = (one for one in results if one.figures is not None)
    return sorted(measured, key=lambda one: (one.retry, one.ordinal))
