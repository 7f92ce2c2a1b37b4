"""What else runs on the node: the CPU of all its pods together, and of those that are of no run."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from laptime_agent.cgroups import CpuCounter
from laptime_agent.hierarchy import Hierarchy
from laptime_agent.pods import Pod
from laptime_agent.readings import CpuReading

MOST_NEIGHBOURS = 250
"""Pods that are read one by one. All together are whole whatever their number is."""

_SEARCH_SECONDS = 2.0


class Neighbours:
    """Reads the pods that it is told of, and the tree of all pods of the own node.

    Where it is not known which tree that is, it reads nothing.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._told: dict[object, Mapping[str, Pod]] = {}
        self._lock = threading.Lock()
        self._tree: CpuCounter | None = None
        self._counters: dict[str, CpuCounter] = {}
        self._search_due = 0.0
        self.all_pods: CpuReading | None = None
        """The last reading of all pods of the node together, those of runs and ended ones too."""
        self.pods: tuple[tuple[Pod, CpuReading], ...] = ()
        """The last reading of each; replaced and never changed, so that others may read it."""

    def tell(self, source: object, pods: Mapping[str, Pod]) -> None:
        """Take all pods that a source (a watch) knows, by uid. May be called from any thread."""
        with self._lock:
            self._told[source] = pods

    def cpu_seconds(self) -> float | None:
        """Return the CPU time of all pods of the node now; None where it is not known."""
        try:
            return None if self._tree is None else self._tree.nanoseconds() / 1e9
        except (OSError, ValueError):
            return None

    def read(self) -> None:
        """Take a reading of everything."""
        with self._lock:
            wanted = {uid: pod for pods in self._told.values() for uid, pod in pods.items()}
        self._find(wanted)
        self.all_pods = None
        if self._tree is not None:
            self.all_pods = _reading(self._tree)
            if self.all_pods is None:
                self._tree = None
        found = []
        for uid, counter in list(self._counters.items()):
            reading = _reading(counter)
            if reading is None:
                del self._counters[uid]
            else:
                found.append((wanted[uid], reading))
        self.pods = tuple(found)

    def _find(self, wanted: Mapping[str, Pod]) -> None:
        for uid in self._counters.keys() - wanted.keys():
            self._counters.pop(uid).close()
        if self._tree is None:
            self._tree = self._open(self._hierarchy.tree_of_pods)
        missing = wanted.keys() - self._counters.keys()
        room = MOST_NEIGHBOURS - len(self._counters)
        now = time.monotonic()
        if not missing or room <= 0 or now < self._search_due:
            return
        self._search_due = now + _SEARCH_SECONDS
        paths = self._hierarchy.own_pods()
        # Pods that are over stay in the API, and have no cgroup.
        there = sorted(uid for uid in missing if wanted[uid].cgroup_uid in paths)
        for uid in there[:room]:
            counter = self._open(paths[wanted[uid].cgroup_uid])
            if counter is not None:
                self._counters[uid] = counter

    def _open(self, path: str | None) -> CpuCounter | None:
        try:
            return None if path is None else self._hierarchy.open_cpu(path)
        except OSError:
            return None


def _reading(counter: CpuCounter) -> CpuReading | None:
    """Return a reading; None, and the counter is closed, when its cgroup is gone."""
    timestamp_ms = time.time_ns() // 1_000_000
    try:
        return CpuReading(timestamp_ms, counter.nanoseconds())
    except (OSError, ValueError):
        counter.close()
        return None
