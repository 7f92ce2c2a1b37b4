"""When the processes of the node are looked at, and what their pods are told of them."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress

from laptime_agent.network import ProcessNetwork
from laptime_agent.processes import processes_of
from laptime_agent.tracking import TrackedPod

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0


class Pauses:
    """The pauses between searches: none before something new, then longer and longer ones."""

    def __init__(self) -> None:
        self._due = 0.0
        self._seconds = _FIRST_PAUSE_SECONDS
        self._searched_for: frozenset[str] = frozenset()

    def end(self, wanted: frozenset[str], now: float) -> bool:
        """End the pause if it is time to, and begin the next one; returns whether it did.

        `now` is in seconds, of any clock.
        """
        if not wanted:
            return False
        if not wanted <= self._searched_for:
            self._due, self._seconds = now, _FIRST_PAUSE_SECONDS
        if now < self._due:
            return False
        self._due = now + self._seconds
        self._seconds = min(_LONGEST_PAUSE_SECONDS, 2 * self._seconds)
        self._searched_for = wanted
        return True


class ProcessSearch:
    """Finds a process of each pod for its network, and all those of servers for their CPU time.

    `proc` is where the host's /proc is. Every process of the node is looked at, so that is done
    once for both and less and less often: for a network as long as it is in vain, for the processes
    of a server as long as it lives, for it may fork more of them at any time.
    """

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._network_pauses = Pauses()
        self._server_pauses = Pauses()

    def look(self, pods: Collection[TrackedPod]) -> None:
        """Look for what these pods want, when it is time to."""
        networks = {one.pod.cgroup_uid: one for one in pods if one.wants_network}
        servers = {one.pod.cgroup_uid: one for one in pods if one.wants_processes}
        # A container is something new too: it may begin long after its pod, whose image is pulled.
        started = (one.pod.containers.values() for one in servers.values())
        now = time.monotonic()
        for_networks = self._network_pauses.end(frozenset(networks), now)
        for_servers = self._server_pauses.end(frozenset(servers).union(*started), now)
        if not for_networks and not for_servers:
            return
        for uid, processes in processes_of(self._proc, networks.keys() | servers.keys()).items():
            if uid in networks:
                with suppress(OSError):
                    networks[uid].follow(ProcessNetwork(self._proc, processes[0]))
            if uid in servers:
                servers[uid].follow_processes(self._proc, processes)
