"""What is told of a network namespace, that of a pod or of the node, through a process in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from laptime_agent.hierarchy import MONITOR, Hierarchy
from laptime_agent.readings import NetworkReading

_LARGEST_BYTES = 65536
_MONITOR = f"-{MONITOR}-".encode()


class ProcessNetwork:
    """The counters of the network namespace that a process is in.

    The folder of the process is kept open and not the file in it: an open `net/dev` would keep the
    namespace of a deleted pod alive, and a number alone may soon be that of another process.

    Raises:
        OSError: there is no such process.
    """

    __slots__ = ("_folder",)

    def __init__(self, proc: str, process: int) -> None:
        self._folder = os.open(f"{proc}/{process}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def read(self) -> NetworkReading:
        """Return the counters; OSError when the process has ended."""
        return parse_devices(self._text("net/dev"))

    def tracking(self) -> bytes:
        """Return what connection tracking counts for each CPU.

        OSError when the process has ended, or where this kernel tracks no connections.
        """
        return self._text("net/stat/nf_conntrack")

    def _text(self, path: str) -> bytes:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            # The kernel gives a page of such a file at a time, which ends with a whole line.
            parts = iter(lambda: os.read(file, _LARGEST_BYTES), b"")
            return b"".join(parts)
        finally:
            os.close(file)

    def close(self) -> None:
        """Let go of the process."""
        folder, self._folder = self._folder, -1
        if folder >= 0:
            os.close(folder)


def parse_devices(text: bytes) -> NetworkReading:
    """Return the sum over all interfaces but `lo` of a file /proc/PID/net/dev."""
    received = transmitted = 0
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(b":")
        if name.strip() != b"lo":
            numbers = rest.split()
            received += int(numbers[0])
            transmitted += int(numbers[8])
    return NetworkReading(received, transmitted)


def processes_of(proc: str, uids: Iterable[str]) -> dict[str, int]:
    """Return one process of each pod, by the pod's uid; pods without a process are left out.

    The cgroup of every process of the node is looked at: `cgroup.procs` shows nobody the processes
    of a PID namespace that is not below his own, and to share the host's would be a privilege.
    """
    wanted = {
        spelling: uid for uid in uids for spelling in (uid.encode(), uid.replace("-", "_").encode())
    }
    found: dict[str, int] = {}
    for process, text in _cgroups(proc):
        # It is in the pod's cgroup and not in the pod's network, but in the node's.
        if _MONITOR in text:
            continue
        for spelling, uid in wanted.items():
            if spelling in text:
                found.setdefault(uid, process)
    return found


def process_of_node(proc: str, hierarchy: Hierarchy) -> int | None:
    """Return a process that is in the node's own network namespace; None where none is known.

    Where the node is the whole machine, that is its first one; else one in the control group which
    the kubelet works in, and in none of its pods.
    """
    if hierarchy.tree_of_pods is None:
        return None
    if not hierarchy.group:
        return 1
    of_node = (
        process
        for process, text in _cgroups(proc)
        if hierarchy.is_of_node(text.decode("utf-8", "replace"))
    )
    return next(of_node, None)


def _cgroups(proc: str) -> Iterator[tuple[int, bytes]]:
    """Yield the processes, the first ones first, each with its file `cgroup`."""
    for process in sorted(int(name) for name in os.listdir(proc) if name.isdigit()):
        try:
            with open(f"{proc}/{process}/cgroup", "rb", buffering=0) as file:
                text = file.read()
        except OSError:
            continue
        yield process, text
