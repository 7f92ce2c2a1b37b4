"""Connection tracking of the node: how full its table is, and what it had no room for.

What goes to the address of a Service passes it, and an entry outlives its connection by seconds to
minutes: a load that opens a connection for each request can fill the table. Then packets that would
open another one are dropped without a word.
"""

from __future__ import annotations

import time

from laptime_agent.files import KernelFile, open_if_there
from laptime_agent.hierarchy import Hierarchy
from laptime_agent.network import ProcessNetwork
from laptime_agent.processes import process_of_node
from laptime_agent.readings import TrackingReading

EVENTS = ("drop", "early_drop", "insert_failed")
"""What the kernel counts when there is no room, or no place, for an entry."""

_LIMIT = "sys/net/netfilter/nf_conntrack_max"
_FIRST_SEARCH_SECONDS = 1.0
_LONGEST_SEARCH_SECONDS = 60.0


class ConnectionTracking:
    """Reads the network namespace of the node, through a process in it.

    `proc` is where the host's /proc is; None: nothing is read. `own_proc` is that of this process:
    whoever reads a setting of the network is shown that of his own namespace. The limit is one for
    all namespaces, each of which may have so many entries.
    """

    def __init__(self, hierarchy: Hierarchy, proc: str | None, own_proc: str = "/proc") -> None:
        self._hierarchy = hierarchy
        self._proc = proc
        self._limit_path = f"{own_proc}/{_LIMIT}"
        self._limit: KernelFile | None = None
        self._network: ProcessNetwork | None = None
        self._search_due = 0.0
        self._search_seconds = _FIRST_SEARCH_SECONDS
        self.newest: TrackingReading | None = None
        """The last reading; None where the kernel does not track, or does not tell."""

    def read(self) -> None:
        """Take a reading."""
        if self._network is None and self._proc is not None:
            self._find(self._proc)
        self.newest = None if self._network is None else self._read(self._network)

    def _read(self, network: ProcessNetwork) -> TrackingReading | None:
        timestamp_ms = time.time_ns() // 1_000_000
        try:
            entries, events = parse_tracking(network.tracking())
        except (OSError, ValueError):
            # The process has ended, or the kernel does not track: the next search will tell.
            network.close()
            self._network = None
            return None
        self._search_seconds = _FIRST_SEARCH_SECONDS
        return TrackingReading(timestamp_ms, entries, self._read_limit(), events)

    def _read_limit(self) -> int | None:
        if self._limit is None:
            self._limit = open_if_there(self._limit_path)
        try:
            return None if self._limit is None else self._limit.read_integer()
        except (OSError, ValueError):
            return None

    def _find(self, proc: str) -> None:
        now = time.monotonic()
        if now < self._search_due:
            return
        self._search_due = now + self._search_seconds
        self._search_seconds = min(_LONGEST_SEARCH_SECONDS, 2 * self._search_seconds)
        process = process_of_node(proc, self._hierarchy)
        try:
            self._network = None if process is None else ProcessNetwork(proc, process)
        except OSError:
            return


def parse_tracking(text: bytes) -> tuple[int, dict[str, int]]:
    """Return entries, and events since the namespace began, of a file net/stat/nf_conntrack.

    A line for each CPU, in hexadecimal: the same number of entries in all of them, and events of
    this CPU. Kernels differ in the columns, so they are found by their names.

    Raises:
        ValueError: it is no such file.
    """
    names, *lines = [line.split() for line in text.splitlines()] or [[]]
    if not lines:
        raise ValueError("no CPU has a line")
    columns = [(name, names.index(name.encode())) for name in EVENTS]
    events = {name: sum(int(line[at], 16) for line in lines) for name, at in columns}
    return int(lines[0][names.index(b"entries")], 16), events
