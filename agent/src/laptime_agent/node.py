"""The node: CPU by mode, stolen time, load, frequency, memory, pressure.

Where several nodes are on one machine, CPU and pressure are those of the node; load, frequency and
memory are those of the machine.
"""

from __future__ import annotations

import glob
import os
import time

from laptime_agent.cgroups import parse_pressure
from laptime_agent.files import KernelFile, open_if_there
from laptime_agent.hierarchy import NodeGroup
from laptime_agent.readings import NodeReading

_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_RESOURCES = ("cpu", "memory", "io")
# To ask for a frequency can interrupt that CPU: only now and then, and not all of a large machine.
_FREQUENCY_SECONDS = 10.0
_MOST_FREQUENCIES = 16
# A line of some 70 to 200 bytes for each CPU, before all else.
_LARGEST_STAT_BYTES = 1 << 20


class Node:
    """What the kernel says of the machine, or of the part that is the node.

    `proc` and `devices` are /proc and /sys/devices/system/cpu, where nothing is hidden from a
    container; `group` is that part.
    """

    def __init__(
        self,
        proc: str = "/proc",
        devices: str = "/sys/devices/system/cpu",
        group: NodeGroup | None = None,
    ) -> None:
        self._cpus = None if group is None else group.cpus
        self._stat = KernelFile(f"{proc}/stat", _LARGEST_STAT_BYTES)
        self._load = KernelFile(f"{proc}/loadavg")
        self._memory = KernelFile(f"{proc}/meminfo")
        pressure = f"{proc}/pressure/{{}}" if group is None else f"{group.pressure}/{{}}.pressure"
        opened = {name: open_if_there(pressure.format(name)) for name in _RESOURCES}
        self._pressure = {name: file for name, file in opened.items() if file is not None}
        frequencies = sorted(glob.glob(f"{devices}/cpu[0-9]*/cpufreq/scaling_cur_freq"))
        step = max(1, len(frequencies) // _MOST_FREQUENCIES)
        self._frequencies = [KernelFile(path) for path in frequencies[::step]]
        self._kernel = os.uname().release
        self._cpu_model = _model(f"{proc}/cpuinfo")
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")
        self._frequency: tuple[float, float] | None = None
        self._frequency_due = 0.0

    def read(
        self, stood_still_seconds: float | None = None, probes: tuple[int, float] = (0, 0.0)
    ) -> NodeReading:
        """Return the state of the node now, with what others found: stalls, and its speed."""
        timestamp_ms = time.time_ns() // 1_000_000
        stat = self._stat.read()
        memory = self._memory.read()
        return NodeReading(
            timestamp_ms=timestamp_ms,
            cpus=stat.count(b"\ncpu") if self._cpus is None else len(self._cpus),
            cpu_seconds=self._cpu_seconds(stat),
            load1=float(self._load.read().split(b" ", 1)[0]),
            memory_total_bytes=1024 * _kibibytes(memory, b"MemTotal"),
            memory_available_bytes=1024 * _kibibytes(memory, b"MemAvailable"),
            frequency_hertz=self._frequency_hertz(),
            pressure={
                key: value
                for resource, file in self._pressure.items()
                for key, value in parse_pressure(resource, _text_of(file)).items()
            },
            kernel=self._kernel,
            cpu_model=self._cpu_model,
            stood_still_seconds=stood_still_seconds,
            probes=probes,
        )

    def _cpu_seconds(self, stat: bytes) -> dict[str, float]:
        # The first line is the sum of all.
        names = {b"cpu"} if self._cpus is None else {b"cpu%d" % number for number in self._cpus}
        lines = (line.split() for line in stat.split(b"\n") if line.startswith(b"cpu"))
        own = [line[1:] for line in lines if line[0] in names]
        totals = [sum(map(int, of_mode)) for of_mode in zip(*own, strict=True)]
        ticks = dict(zip(_MODES, totals, strict=False))
        return {mode: count / self._ticks_per_second for mode, count in ticks.items()}

    def _frequency_hertz(self) -> tuple[float, float] | None:
        now = time.monotonic()
        if self._frequencies and now >= self._frequency_due:
            self._frequency_due = now + _FREQUENCY_SECONDS
            try:
                hertz = [1000.0 * file.read_integer() for file in self._frequencies]
            except (OSError, ValueError):
                # A CPU that was taken offline has no frequency.
                self._frequency = None
            else:
                self._frequency = (min(hertz), sum(hertz) / len(hertz))
        return self._frequency


def _model(path: str) -> str:
    """Return what CPUs the machine has; on arm64 the kernel tells numbers alone."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            names = (line.partition(":") for line in file)
            return next((value.strip() for key, _, value in names if "model name" in key), "")
    except OSError:
        return ""


def _kibibytes(text: bytes, name: bytes) -> int:
    start = text.find(name + b":")
    return int(text[start : text.index(b"\n", start)].split()[1]) if start >= 0 else 0


def _text_of(file: KernelFile) -> bytes:
    try:
        return file.read()
    except OSError:
        return b""
