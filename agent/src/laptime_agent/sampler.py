"""The loop that reads everything once a second, and the CPU counters of pods more often."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping

from laptime_agent.connections import ConnectionTracking
from laptime_agent.hierarchy import Hierarchy
from laptime_agent.neighbours import Neighbours
from laptime_agent.node import Node
from laptime_agent.own_cpus import OwnCpus
from laptime_agent.pods import Pod
from laptime_agent.readings import NodeReading
from laptime_agent.search import ProcessSearch
from laptime_agent.speed import Speed
from laptime_agent.stalls import Stalls
from laptime_agent.tracking import TrackedPod

READINGS_PER_SECOND = 5
"""How often the CPU counters are read, for the peak; all else is read once a second."""

_ROOTS_SECONDS = 5.0

logger = logging.getLogger(__name__)


class Sampler:
    """Reads the pods that it is told of, and the node.

    `proc` is where the host's /proc is; None leaves the network of pods and the node out, and
    the processes of servers.
    """

    def __init__(self, hierarchy: Hierarchy, node: Node, proc: str | None) -> None:
        self._hierarchy = hierarchy
        self._node = node
        self._search = None if proc is None else ProcessSearch(proc)
        self._wanted: dict[object, Mapping[str, Pod]] = {}
        self._lock = threading.Lock()
        self._tracked: dict[str, TrackedPod] = {}
        self._roots_due = 0.0
        self.neighbours = Neighbours(hierarchy)
        self.connections = ConnectionTracking(hierarchy, proc)
        self._own_cpus = OwnCpus(hierarchy)
        self._speed = Speed()
        self.node: NodeReading | None = None
        """The last reading of the node."""
        self.pods: tuple[TrackedPod, ...] = ()
        """All pods that are tracked; replaced and never changed, so that others may read it."""
        self._stood_still_seconds: float | None = None
        self.late_ticks = 0
        """How often the loop came more than a whole tick late."""

    def tell(self, source: object, pods: Mapping[str, Pod]) -> None:
        """Take all pods that a source (a watch) knows, by uid. May be called from any thread."""
        with self._lock:
            self._wanted[source] = pods

    def run_for_ever(self) -> None:
        """Read at fixed moments, whatever a reading takes and whoever scrapes."""
        tick_seconds = 1.0 / READINGS_PER_SECOND
        stalls = Stalls(self.neighbours.cpu_seconds)
        due = time.monotonic()
        wait = 0.0
        count = 0
        while True:
            stalls.round_ended(max(0.0, wait))
            stood_still = stalls.seconds != self._stood_still_seconds
            self._stood_still_seconds = stalls.seconds
            # The reading after one says when it ended.
            self.tick(everything=stood_still or count % READINGS_PER_SECOND == 0)
            count += 1
            due += tick_seconds
            wait = due - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            elif wait < -tick_seconds:
                self.late_ticks += 1
                due = time.monotonic()

    def tick(self, everything: bool) -> None:
        """Read the CPU counters of all pods, or everything."""
        self._reconcile()
        if not everything:
            for one in self.pods:
                one.read_cpu()
        else:
            self._read_all()
        if self.pods:
            self._speed.measure()

    def _read_all(self) -> None:
        for one in self.pods:
            one.read()
        probes = self._speed.count, self._speed.seconds
        self.node = self._node.read(self._stood_still_seconds, probes)
        self.neighbours.read()
        self.connections.read()
        self._own_cpus.read(self.pods)
        if self._search is not None:
            self._search.look(self.pods)

    def _reconcile(self) -> None:
        with self._lock:
            wanted = {uid: pod for pods in self._wanted.values() for uid, pod in pods.items()}
        for uid in [uid for uid in self._tracked if uid not in wanted]:
            self._tracked[uid].forget()
            if self._tracked[uid].past:
                del self._tracked[uid]
        for uid, pod in wanted.items():
            if uid in self._tracked:
                self._tracked[uid].pod = pod
            elif not pod.over:
                self._tracked[uid] = TrackedPod(pod, self._hierarchy)
        missing = [one for one in self._tracked.values() if not one.found and not one.ended]
        if missing:
            self._find_cgroups(missing)
        self.pods = tuple(self._tracked.values())

    def _find_cgroups(self, missing: Iterable[TrackedPod]) -> None:
        now = time.monotonic()
        search_roots = now >= self._roots_due
        for one in missing:
            if not one.find(search_roots) and search_roots:
                self._roots_due = now + _ROOTS_SECONDS
