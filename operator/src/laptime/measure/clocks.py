"""How far the clocks of nodes are apart, and samples brought onto one of them.

A trial's window has the times of the node of its first generator, the agent's samples those of
their nodes, and what has no time of its own that of Prometheus. The agent of each node says its
node's time whenever it is asked, and Prometheus keeps that under the time at which it asked: the
difference is by how much the node's clock is ahead, and what the answer took. That is never less
than nothing, so the lowest of several is the nearest to the truth (as in the clock filter of NTP:
RFC 5905, section 10).

A clock that is set meanwhile may take that of Prometheus along, on the same machine. So the agent
says by it, too, when the node booted, which nothing else moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from laptime.measure.promql import (
    AGENT_MARGIN_SECONDS,
    Query,
    TrialWindow,
    any_of,
    query_samples,
    selector,
)
from laptime.measure.timeseries import Series, Window

CLOCK_METRIC = "laptime_node_clock_seconds"
BOOT_METRIC = "laptime_node_boot_time_seconds"
MAX_LEFT_SHARE = 0.05
"""Of a window: by more it may not be off without a word."""

_MOST_SECONDS = AGENT_MARGIN_SECONDS - 1.5
"""What can be taken off: of clocks that are further apart the samples at an end of the window were
not asked for."""
_QUICKEST_OF = 4
"""Answers of which one is taken to have been quick."""
_GENERATOR = "generator"
_OF_SCRAPES = frozenset({"laptime_pod_cpu_cores_peak"})
"""The agent's metrics without a time of their own."""

Found = Iterable[tuple[Mapping[str, str], Series]]


@dataclass(frozen=True)
class Clock:
    """A node's clock beside that of Prometheus."""

    ahead_seconds: float
    left_seconds: float
    """By how much that changed meanwhile: somebody set it, or answers were late for a while."""
    set_seconds: float = 0.0
    """By how much somebody set it, as far as the agent tells (older versions do not)."""


@dataclass(frozen=True)
class Clocks:
    """Those of the nodes of a trial; without any all are taken for right."""

    generators: Sequence[str] = ()
    """Nodes of the generators: the window has the times of the first of them."""
    of_nodes: Mapping[str, Clock] = field(default_factory=dict)
    asked: Sequence[str] = ()
    """Nodes whose clocks should be known."""

    def ahead(self, node: str | None) -> float | None:
        """Return by how many seconds a node's clock is ahead of the window's; None: not known."""
        if self.generators and node == self.generators[0]:
            return 0.0
        first, other = self._first, self.of_nodes.get(node or "")
        if first is None or other is None:
            return None
        return other.ahead_seconds - first.ahead_seconds

    def in_the_windows_time(self, found: Found) -> list[tuple[Mapping[str, str], Series]]:
        """Return samples of agents with the times that the window's clock had."""
        return [(labels, series.later(self._late(labels))) for labels, series in found]

    def in_prometheus_time(self, window: Window) -> Window:
        """Return a window as Prometheus' own clock has it."""
        fast = self._first.ahead_seconds if self._first else 0.0
        return Window(window.start - fast, window.end - fast)

    def gaps(self, window: Window) -> list[str]:
        """Return, in words, where samples may still be off by too much of a window."""
        most = MAX_LEFT_SHARE * window.seconds
        others = [one for one in self.asked if one != self.generators[0]]
        said = [self._moved(most), *(self._apart(one, most) for one in others)]
        return [one for one in said if one]

    @property
    def _first(self) -> Clock | None:
        return self.of_nodes.get(self.generators[0]) if self.generators else None

    def _late(self, labels: Mapping[str, str]) -> float:
        if labels["__name__"] in _OF_SCRAPES:
            return self._first.ahead_seconds if self._first else 0.0
        return -(self.ahead(labels.get("node")) or 0.0)

    def _moved(self, most: float) -> str | None:
        # The window has the old time and what was read since the new one, on one node too.
        by = self._first.set_seconds if self._first else 0.0
        if by <= most:
            return None
        return (
            f"the clock of node {self.generators[0]} was set by {by:.2f} s meanwhile: more than "
            f"{MAX_LEFT_SHARE:.0%} of the time"
        )

    def _apart(self, node: str, most: float) -> str | None:
        names = " and ".join(sorted((node, self.generators[0])))
        first, other = self._first, self.of_nodes.get(node)
        if first is None or other is None:
            return f"it is not known how far the clocks of nodes {names} are apart"
        apart = abs(other.ahead_seconds - first.ahead_seconds)
        left = other.left_seconds + first.left_seconds
        said = f"the clocks of nodes {names} are {apart:.2f} s apart"
        if apart > _MOST_SECONDS:
            return f"{said}, more than can be taken off: set them by NTP"
        if left > most:
            return f"{said}, give or take {left:.2f} s: more than {MAX_LEFT_SHARE:.0%} of the time"
        return None


async def read_clocks(
    query: Query, wanted: TrialWindow, nodes: Mapping[str, Sequence[str]]
) -> Clocks:
    """Return what is known of the clocks of the nodes that the parts of a trial ran on.

    `nodes` are their names by part, those of the generators in the order of their indices; results
    of older versions have none, and then nothing is asked.

    Raises:
        PrometheusError: Prometheus refused the query; whatever `query` raises is passed on.
    """
    every = sorted({node for names in nodes.values() for node in names})
    if not nodes.get(_GENERATOR):
        return Clocks()
    found = await query_samples(query, clock_query(every), wanted.window)
    return Clocks(nodes[_GENERATOR], node_clocks(found), every)


def clock_query(nodes: Iterable[str]) -> str:
    """Return the PromQL selector of what the agents of some nodes said of their clocks."""
    labels = {
        "__name__": ("=~", any_of((CLOCK_METRIC, BOOT_METRIC))),
        "node": ("=~", any_of(nodes)),
    }
    return selector(labels)


def node_clocks(found: Found) -> dict[str, Clock]:
    """Return the clock of each node that said its time often enough."""
    said: dict[str, list[tuple[float, float]]] = defaultdict(list)
    moved: dict[str, float] = {}
    for labels, series in found:
        node = labels["node"]
        if labels.get("__name__") == BOOT_METRIC:
            # Each alone: a node of another cluster may have the name, and booted at another time.
            by = max(series.values) - min(series.values)
            moved[node] = max(by, moved.get(node, 0.0))
        else:
            said[node] += zip(series.times, series.values, strict=True)
    return {
        node: _clock([time - asked for asked, time in sorted(samples)], moved.get(node, 0.0))
        for node, samples in said.items()
        if len(samples) >= 2 * _QUICKEST_OF
    }


def _clock(ahead: Sequence[float], set_seconds: float) -> Clock:
    # The last ones are as many as are left over, and so many.
    starts = range(0, len(ahead) - 2 * _QUICKEST_OF + 1, _QUICKEST_OF)
    lowest = [min(ahead[start : start + _QUICKEST_OF]) for start in starts]
    lowest.append(min(ahead[starts[-1] + _QUICKEST_OF :]))
    return Clock(min(lowest), max(lowest) - min(lowest), set_seconds)
