"""How many CPUs a pod of a run has for itself, as the kubelet's static CPU manager gives them.

A set of CPUs that is smaller than the node's says nothing by itself: others may be in it too. So
all containers of the node are looked at. Those that may run everywhere and do not are nobody: the
pause of each pod is one, which the CPU manager moves nowhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from laptime_agent.hierarchy import Hierarchy
from laptime_agent.tracking import TrackedPod

LOOK_SECONDS = 5.0
RAN_SHARE = 0.01
"""Of one CPU, since the last look: more is none of a pause."""


@dataclass(frozen=True, slots=True)
class _Container:
    cpus: frozenset[int]
    nanoseconds: int


class OwnCpus:
    """Tells pods which CPUs are theirs alone, now and then; where nothing is told, nothing."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._due = 0.0
        self._last: tuple[float, Mapping[str, _Container]] | None = None

    def read(self, pods: Iterable[TrackedPod]) -> None:
        """Set `exclusive_cpus` of each of these pods."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + LOOK_SECONDS
        tracked = {one.path: one for one in pods if one.path is not None}
        tree = self._hierarchy.tree_of_pods
        every = None if tree is None else self._hierarchy.cpus_of(tree)
        if every is None:
            return
        # Those that the API server names, and not the pause.
        sets = {
            path: self._read(self._hierarchy.find_containers(path, pod.pod.containers.values()))
            for path, pod in tracked.items()
        }
        if all(one.cpus == every for found in sets.values() for one in found.values()):
            # No pod of a run has anything else than all have: to look at the others is dear.
            self._last = None
            for path, pod in tracked.items():
                pod.exclusive_cpus = 0 if sets[path] else None
            return
        there = {
            path: self._read({name: name for name in self._hierarchy.containers_of(path)})
            for path in self._hierarchy.own_pods().values()
        }
        seen = {name: one for containers in there.values() for name, one in containers.items()}
        before, self._last = self._last, (now, seen)
        for path, pod in tracked.items():
            pod.exclusive_cpus = None
            if before is not None and sets[path]:
                others = self._others(there, path, every, before, now)
                own = frozenset[int]().union(*(one.cpus for one in sets[path].values()))
                pod.exclusive_cpus = len(own - others)

    def _others(
        self,
        there: Mapping[str, Mapping[str, _Container]],
        own: str,
        every: frozenset[int],
        before: tuple[float, Mapping[str, _Container]],
        now: float,
    ) -> frozenset[int]:
        """Return the CPUs that containers of other pods may run on, and pauses would not."""
        least = RAN_SHARE * (now - before[0]) * 1e9
        found: frozenset[int] = frozenset()
        for path, containers in there.items():
            for name, one in containers.items() if path != own else ():
                known = before[1].get(name, one)
                if one.cpus != every or one.nanoseconds - known.nanoseconds > least:
                    found |= one.cpus
        return found

    def _read(self, paths: Mapping[str, str]) -> dict[str, _Container]:
        """Return what is there of containers, by the name under which each is given."""
        found = {}
        for name, path in paths.items():
            cpus = self._hierarchy.cpus_of(path)
            try:
                counter = self._hierarchy.open_cpu(path)
            except OSError:
                continue
            try:
                nanoseconds = counter.nanoseconds()
            except (OSError, ValueError):
                continue
            finally:
                counter.close()
            if cpus:
                found[name] = _Container(cpus, nanoseconds)
        return found
