"""What the machine was doing meanwhile: a busy host explains a slow check."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_STAT = Path("/proc/stat")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CpuTimes:
    """CPU time of the whole machine since it started, in seconds: all of it, idle, stolen."""

    total: float
    idle: float
    stolen: float

    def stolen_since(self, earlier: CpuTimes) -> float:
        """Return which share of the CPU time since then the hypervisor took, from 0 to 1."""
        passed = self.total - earlier.total
        return (self.stolen - earlier.stolen) / passed if passed > 0 else 0.0

    def busy_since(self, earlier: CpuTimes) -> float:
        """Return which share of the CPU time since then was used here, from 0 to 1."""
        passed = self.total - earlier.total
        if passed <= 0:
            return 0.0
        return 1.0 - (self.idle - earlier.idle) / passed - self.stolen_since(earlier)


def cpu_times(stat: Path = _STAT) -> CpuTimes:
    """Read /proc/stat (proc_stat(5)): user nice system idle iowait irq softirq steal ..."""
    fields = [int(word) / _TICKS for word in stat.read_text().splitlines()[0].split()[1:9]]
    return CpuTimes(total=sum(fields), idle=fields[3] + fields[4], stolen=fields[7])
