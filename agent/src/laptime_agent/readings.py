"""What is known of a cgroup, a pod and the node at one moment. Counters are cumulative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Pressure = Mapping[tuple[str, str], int]
"""Microseconds of waiting by (resource, kind): cpu, memory or io; `some` or `full`."""


@dataclass(frozen=True, slots=True)
class CgroupReading:
    """The counters of one cgroup and, where the kernel says so, of all below it."""

    cpu_nanoseconds: int
    """Of the cgroup and all below it."""
    throttled_nanoseconds: int
    """Of this cgroup's own quota alone: not of those below it."""
    throttled_periods: int
    working_set_bytes: int
    """Memory in use without the file cache that the kernel would give up first."""
    memory_peak_bytes: int
    """Highest memory in use since the cgroup was made, file cache included."""
    pressure: Pressure = field(default_factory=dict)
    disk_operations: Mapping[str, int] = field(default_factory=dict)
    """Reads and writes at block devices, by their numbers; of a pod, where the kernel tells."""


@dataclass(frozen=True, slots=True)
class NetworkReading:
    """Bytes through all interfaces of a network namespace but its loopback."""

    received_bytes: int
    transmitted_bytes: int


@dataclass(frozen=True, slots=True)
class TrackingReading:
    """Connection tracking of the node."""

    timestamp_ms: int
    entries: int
    limit: int | None
    """How many entries there can be; None where it is not told."""
    events: Mapping[str, int]
    """By what the kernel calls them, since the node's network was made."""


@dataclass(frozen=True, slots=True)
class NodeReading:
    """The whole node."""

    timestamp_ms: int
    """Unix time of the reading in milliseconds."""
    cpus: int
    cpu_seconds: Mapping[str, float]
    """By mode; `steal` is what the hypervisor gave to others."""
    load1: float
    memory_total_bytes: int
    memory_available_bytes: int
    frequency_hertz: tuple[float, float] | None
    """Lowest and mean of the CPUs; None where the kernel does not tell."""
    pressure: Pressure
    kernel: str = ""
    """Its release."""
    cpu_model: str = ""
    """Empty where the kernel does not tell."""
    stood_still_seconds: float | None = None
    """Since the agent began, see `Stalls`; None where the kernel does not tell."""
    probes: tuple[int, float] = (0, 0.0)
    """How often a fixed piece of work was done, and its CPU time in seconds, see `Speed`."""


@dataclass(frozen=True, slots=True)
class CpuReading:
    """A CPU counter alone."""

    timestamp_ms: int
    cpu_nanoseconds: int


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """A process, its threads included and its children not."""

    command: str
    """What the kernel calls it now, or called it when it had had some names already."""
    parent: int
    """The number of the process that it belonged to then."""
    cpu_seconds: float
    main_thread: tuple[float, float] | None = None
    """For how many seconds its first thread ran, and was ready and had no CPU; None: not told."""


@dataclass(frozen=True, slots=True)
class PodReading:
    """One pod; its containers by name."""

    timestamp_ms: int
    pod: CgroupReading
    throttled_nanoseconds: int
    """By the pod's quota or by those of its containers, whichever is more."""
    throttled_periods: int
    containers: Mapping[str, CgroupReading]
    network: NetworkReading | None
    exclusive_cpus: int | None = None
    """CPUs on which it may run and no other pod may."""
    processes: Mapping[int, ProcessReading] = field(default_factory=dict)
    """By the number of the process; empty where they are not told."""
