"""The counters of one cgroup, from cgroup v1 (with v2's pressure and disks beside it) or v2."""

from __future__ import annotations

import os
import re
from typing import Protocol

from laptime_agent.files import KernelFile, field, open_if_there
from laptime_agent.readings import CgroupReading

_RESOURCES = ("cpu", "memory", "io")
# Some kernels leave lines unfinished ("8:16 8:0 rbytes=…"), or have no number for a hidden device.
_OPERATIONS = re.compile(rb"(\d+:\d+) rbytes=\d+ wbytes=\d+ rios=(\d+) wios=(\d+)")


class Cgroup(Protocol):
    """An open cgroup. Both methods raise OSError when it is gone."""

    def cpu_nanoseconds(self) -> int:
        """Return the CPU time of the cgroup and all below it."""

    def read(self) -> CgroupReading:
        """Return all its counters."""

    def close(self) -> None:
        """Let go of its files."""


class CpuCounter:
    """The CPU counter of a cgroup alone: one file.

    Raises:
        OSError: the cgroup is not there, or, on `nanoseconds`, gone.
    """

    def __init__(self, mount: str, relative: str, version: int) -> None:
        self._version = version
        parts = (relative, "cpu.stat") if version == 2 else ("cpuacct", relative, "cpuacct.usage")
        self._file = KernelFile(os.path.join(mount, *parts))

    def nanoseconds(self) -> int:
        """Return the CPU time of the cgroup and all below it, ended ones included."""
        if self._version == 2:
            return _used_nanoseconds(self._file.read())
        return self._file.read_integer()

    def close(self) -> None:
        """Let go of its file."""
        self._file.close()


class CgroupV1:
    """A cgroup of the controllers cpuacct, cpu and memory, each with a tree of its own."""

    def __init__(self, mount: str, relative: str, with_pressure: bool) -> None:
        self._files: list[KernelFile] = []
        # These belong to v2, whose tree exists beside v1 with the same groups ("hybrid").
        self._waits = _Waits(os.path.join(mount, "unified", relative), with_pressure)
        try:
            self._usage = self._open(mount, "cpuacct", relative, "cpuacct.usage")
            self._cpu_stat = self._open(mount, "cpu", relative, "cpu.stat")
            self._memory_usage = self._open(mount, "memory", relative, "memory.usage_in_bytes")
            self._memory_stat = self._open(mount, "memory", relative, "memory.stat")
            self._memory_peak = self._open(mount, "memory", relative, "memory.max_usage_in_bytes")
        except OSError:
            self.close()
            raise

    def _open(self, *parts: str) -> KernelFile:
        file = KernelFile(os.path.join(*parts))
        self._files.append(file)
        return file

    def cpu_nanoseconds(self) -> int:
        """Return the CPU time of the cgroup and all below it."""
        return self._usage.read_integer()

    def read(self) -> CgroupReading:
        """Return all its counters; OSError when the cgroup is gone."""
        cpu = self._usage.read_integer()
        throttling = self._cpu_stat.read()
        memory = self._memory_usage.read_integer()
        inactive = field(self._memory_stat.read(), b"total_inactive_file") or 0
        return CgroupReading(
            cpu_nanoseconds=cpu,
            throttled_nanoseconds=field(throttling, b"throttled_time") or 0,
            throttled_periods=field(throttling, b"nr_throttled") or 0,
            working_set_bytes=max(0, memory - inactive),
            memory_peak_bytes=self._memory_peak.read_integer(),
            pressure=self._waits.pressure(),
            disk_operations=self._waits.disk_operations(),
        )

    def close(self) -> None:
        """Let go of its files."""
        for file in self._files:
            file.close()
        self._waits.close()


class CgroupV2:
    """A cgroup of the one tree of v2."""

    def __init__(self, mount: str, relative: str, with_pressure: bool) -> None:
        folder = os.path.join(mount, relative)
        self._files: list[KernelFile] = []
        self._waits = _Waits(folder, with_pressure)
        # Kernels before 5.19 keep no peak: then it is the highest of what was read.
        self._memory_peak = open_if_there(os.path.join(folder, "memory.peak"))
        self._highest_seen = 0
        try:
            self._cpu_stat = self._open(folder, "cpu.stat")
            self._memory_current = self._open(folder, "memory.current")
            self._memory_stat = self._open(folder, "memory.stat")
        except OSError:
            self.close()
            raise

    def _open(self, *parts: str) -> KernelFile:
        file = KernelFile(os.path.join(*parts))
        self._files.append(file)
        return file

    def cpu_nanoseconds(self) -> int:
        """Return the CPU time of the cgroup and all below it."""
        return _used_nanoseconds(self._cpu_stat.read())

    def read(self) -> CgroupReading:
        """Return all its counters; OSError when the cgroup is gone."""
        cpu = self._cpu_stat.read()
        memory = self._memory_current.read_integer()
        inactive = field(self._memory_stat.read(), b"inactive_file") or 0
        self._highest_seen = max(self._highest_seen, memory)
        peak = self._memory_peak.read_integer() if self._memory_peak else self._highest_seen
        return CgroupReading(
            cpu_nanoseconds=_used_nanoseconds(cpu),
            throttled_nanoseconds=1000 * (field(cpu, b"throttled_usec") or 0),
            throttled_periods=field(cpu, b"nr_throttled") or 0,
            working_set_bytes=max(0, memory - inactive),
            memory_peak_bytes=peak,
            pressure=self._waits.pressure(),
            disk_operations=self._waits.disk_operations(),
        )

    def close(self) -> None:
        """Let go of its files."""
        for file in self._files:
            file.close()
        if self._memory_peak is not None:
            self._memory_peak.close()
        self._waits.close()


def _used_nanoseconds(cpu_stat: bytes) -> int:
    # v2 counts microseconds.
    return 1000 * (field(cpu_stat, b"usage_usec") or 0)


class _Waits:
    """The files *.pressure and io.stat of a folder of v2, those that exist and are wanted."""

    def __init__(self, folder: str, wanted: bool) -> None:
        names = _RESOURCES if wanted else ()
        opened = {name: open_if_there(f"{folder}/{name}.pressure") for name in names}
        self._files = {name: file for name, file in opened.items() if file is not None}
        # It is there where the controller `io` is on in the groups above.
        self._io_stat = open_if_there(f"{folder}/io.stat") if wanted else None

    def pressure(self) -> dict[tuple[str, str], int]:
        return {
            key: value
            for resource, file in self._files.items()
            for key, value in parse_pressure(resource, _text_of(file)).items()
        }

    def disk_operations(self) -> dict[str, int]:
        return {} if self._io_stat is None else parse_operations(_text_of(self._io_stat))

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        if self._io_stat is not None:
            self._io_stat.close()


def _text_of(file: KernelFile) -> bytes:
    # With psi=0 on the kernel's command line the files exist, and cannot be read.
    try:
        return file.read()
    except OSError:
        return b""


def parse_pressure(resource: str, text: bytes) -> dict[tuple[str, str], int]:
    """Return the totals, in microseconds, of a file such as /proc/pressure/cpu."""
    totals = {}
    for kind, head in (("some", b"some "), ("full", b"full ")):
        start = text.find(head)
        if start >= 0:
            start = text.index(b"total=", start) + 6
            end = text.find(b"\n", start)
            totals[resource, kind] = int(text[start : end if end >= 0 else None])
    return totals


def parse_operations(text: bytes) -> dict[str, int]:
    """Return the reads and writes at each block device of a file io.stat, by its numbers."""
    return {
        device.decode(): int(reads) + int(writes)
        for device, reads, writes in _OPERATIONS.findall(text)
    }
