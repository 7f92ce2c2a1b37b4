"""The processes of the node: which of them are a pod's, and how much CPU time they had."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from laptime_agent.files import KernelFile, open_if_there
from laptime_agent.hierarchy import MONITOR, Hierarchy
from laptime_agent.readings import ProcessReading

MOST_PROCESSES = 64
"""Processes of a pod that are told of one by one.

Each is a series of its own in Prometheus, and some servers have a process for each connection.
"""

_MOST_NAMES = 4
"""Names and parents of a process that are told, one after the other: it may give itself a new name
each second, and each would be three more series in Prometheus. Most have one or two: a container's
first process is runc before it is the image's program."""
_MONITOR = f"-{MONITOR}-".encode()
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class ProcessTimes:
    """The CPU time of processes, which is read every second."""

    __slots__ = ("_processes",)

    def __init__(self) -> None:
        self._processes: dict[int, _Process] = {}

    def follow(self, proc: str, processes: Iterable[int]) -> None:
        """Take these processes too; of more than can be told, those that have used most by now."""
        known = self.read()
        for number in processes:
            if number in known:
                continue
            try:
                self._processes[number] = _Process(f"{proc}/{number}")
            except OSError:
                continue
            reading = self._read(number)
            if reading is None:
                continue
            known[number] = reading
            # One by one, so that never many more files are open than will be kept.
            if len(known) > MOST_PROCESSES:
                idlest = min(known, key=lambda one: (known[one].cpu_seconds, -one))
                del known[idlest]
                self._processes.pop(idlest).close()

    def read(self) -> dict[int, ProcessReading]:
        """Return a reading of each process by its number; those that ended are let go of."""
        read = ((number, self._read(number)) for number in list(self._processes))
        return {number: reading for number, reading in read if reading is not None}

    def close(self) -> None:
        """Let go of all processes."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()

    def _read(self, number: int) -> ProcessReading | None:
        try:
            return self._processes[number].read()
        except (OSError, ValueError):
            # It has ended; or its files say nothing that can be understood, as of one that ends.
            self._processes.pop(number).close()
            return None


class _Process:
    """A process by its folder in /proc.

    Its files are kept open: they go on to be those of this process and of no other one, which may
    soon have the same number.

    Raises:
        OSError: there is no such process; on `read`, it has ended.
    """

    __slots__ = ("_main_thread", "_names", "_stat")

    def __init__(self, folder: str) -> None:
        self._names: list[tuple[str, int]] = []
        self._stat = KernelFile(f"{folder}/stat")
        self._main_thread = open_if_there(f"{folder}/schedstat")

    def read(self) -> ProcessReading:
        reading = parse_stat(self._stat.read())
        name = (reading.command, reading.parent)
        if name not in self._names[-1:] and len(self._names) < _MOST_NAMES:
            self._names.append(name)
        reading = replace(reading, command=self._names[-1][0], parent=self._names[-1][1])
        if self._main_thread is None:
            return reading
        running, waiting, _ = map(int, self._main_thread.read().split())
        return replace(reading, main_thread=(running / 1e9, waiting / 1e9))

    def close(self) -> None:
        self._stat.close()
        if self._main_thread is not None:
            self._main_thread.close()


def parse_stat(text: bytes) -> ProcessReading:
    """Return the reading of a process, of its file /proc/PID/stat: of all threads together."""
    # The name of the program is in parentheses, and may have such and spaces in it.
    begin, end = text.index(b"("), text.rindex(b")")
    fields = text[end + 1 :].split(None, 13)
    ticks = int(fields[11]) + int(fields[12])
    command = text[begin + 1 : end].decode("utf-8", "replace")
    return ProcessReading(command, int(fields[1]), ticks / _TICKS_PER_SECOND)


def processes_of(proc: str, uids: Iterable[str]) -> dict[str, list[int]]:
    """Return the processes of each pod, the first ones first, by the pod's uid.

    Pods without a process are left out. The cgroup of every process of the node is looked at:
    `cgroup.procs` shows nobody the processes of a PID namespace that is not below his own, and to
    share the host's would be a privilege.
    """
    wanted = {
        spelling: uid for uid in uids for spelling in (uid.encode(), uid.replace("-", "_").encode())
    }
    found: dict[str, list[int]] = {}
    for process, text in _cgroups(proc):
        # It is in the pod's cgroup and not in the pod's network, but in the node's.
        if _MONITOR in text:
            continue
        for uid in {uid for spelling, uid in wanted.items() if spelling in text}:
            found.setdefault(uid, []).append(process)
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
