"""One pod of a run: finds its cgroups, is told of its processes, and reads them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from laptime_agent.cgroups import Cgroup
from laptime_agent.hierarchy import Hierarchy
from laptime_agent.network import ProcessNetwork
from laptime_agent.peaks import CpuPeak
from laptime_agent.pods import SERVER, Pod
from laptime_agent.processes import ProcessTimes
from laptime_agent.readings import CgroupReading, NetworkReading, PodReading
from laptime_agent.trace import CpuTrace

# A pod has its cgroup within a second of being scheduled, or it waits for something.
_EAGER_SEARCHES = 25
_PATIENT_SECONDS = 1.0

LINGER_SECONDS = 5.0
"""So long after its end a pod is still told of: the next scrapes have its last reading."""


class TrackedPod:
    """A pod that the API server named, with its cgroups as far as they exist."""

    def __init__(self, pod: Pod, hierarchy: Hierarchy) -> None:
        self.pod = pod
        self.peak = CpuPeak()
        self.trace = CpuTrace()
        self.newest: PodReading | None = None
        """The last reading; None before the first."""
        self.exclusive_cpus: int | None = None
        """How many CPUs are its own, which whoever looks sets; None: not known."""
        self._ended_at: float | None = None
        self._hierarchy = hierarchy
        self._searches = 0
        self._search_due = 0.0
        self._path: str | None = None
        self._cgroup: Cgroup | None = None
        self._containers: dict[str, tuple[str, Cgroup]] = {}
        self._network: ProcessNetwork | None = None
        self._processes = ProcessTimes()
        # Of containers that ended: what they were throttled stays part of the pod's.
        self._ended_throttled = (0, 0)
        self._last_of_containers: dict[str, CgroupReading] = {}

    @property
    def path(self) -> str | None:
        """Where its cgroup is; None: not there yet, or no more."""
        return self._path if self._cgroup is not None else None

    @property
    def found(self) -> bool:
        """Whether the pod's cgroup is open."""
        return self._cgroup is not None

    @property
    def ended(self) -> bool:
        """Whether nobody wants it any more, or its cgroup is gone: it never comes back."""
        return self._ended_at is not None

    @property
    def past(self) -> bool:
        """Whether it ended so long ago that every scrape has its last reading."""
        ended = self._ended_at
        return ended is not None and time.monotonic() - ended >= LINGER_SECONDS

    @property
    def wants_network(self) -> bool:
        """Whether a process of the pod is still looked for."""
        return self.found and self._network is None and not self.pod.host_network

    @property
    def wants_processes(self) -> bool:
        """Whether each process of the pod is told of, and so looked for: it is a server's."""
        return self.found and self.pod.labels.get("component") == SERVER

    def find(self, search_roots: bool) -> bool:
        """Look for the pod's cgroup, after a while less often; returns whether it is open now."""
        now = time.monotonic()
        if self._cgroup is None and not self.ended and now >= self._search_due:
            self._searches += 1
            if self._searches > _EAGER_SEARCHES:
                self._search_due = now + _PATIENT_SECONDS
            path = self._hierarchy.find_pod(self.pod.cgroup_uid, search_roots)
            if path is not None:
                try:
                    self._cgroup = self._hierarchy.open(path)
                except OSError:
                    return False
                self._path = path
        return self.found

    def follow(self, network: ProcessNetwork) -> None:
        """Take the network from a process of the pod."""
        self._network = network

    def follow_processes(self, proc: str, processes: Iterable[int]) -> None:
        """Take the CPU time of these processes too; `proc` is where the host's /proc is."""
        self._processes.follow(proc, processes)

    def read_cpu(self) -> None:
        """Take a reading of the CPU counter alone; the first of a pod is one of everything."""
        if self.newest is None:
            self.read()
        elif self._cgroup is not None:
            try:
                moment, timestamp = time.monotonic_ns(), time.time_ns()
                cpu = self._cgroup.cpu_nanoseconds()
            except OSError:
                self.forget()
            else:
                self._add_cpu(moment, timestamp, cpu)

    def read(self) -> None:
        """Take a reading of everything; afterwards `newest` is it, or None."""
        if self._cgroup is None:
            return
        self._find_containers()
        try:
            moment, timestamp = time.monotonic_ns(), time.time_ns()
            own = self._cgroup.read()
        except OSError:
            self.forget()
            return
        self._add_cpu(moment, timestamp, own.cpu_nanoseconds)
        containers = self._read_containers()
        throttled, periods = self._ended_throttled
        throttled += sum(one.throttled_nanoseconds for one in containers.values())
        periods += sum(one.throttled_periods for one in containers.values())
        self.newest = PodReading(
            timestamp_ms=round(timestamp / 1e6),
            pod=own,
            throttled_nanoseconds=max(own.throttled_nanoseconds, throttled),
            throttled_periods=max(own.throttled_periods, periods),
            containers=containers,
            network=self._read_network(),
            exclusive_cpus=self.exclusive_cpus,
            processes=self._processes.read(),
        )

    def _add_cpu(self, moment: int, timestamp: int, cpu: int) -> None:
        self.peak.add(moment, cpu)
        self.trace.add(round(timestamp / 1e6), cpu)

    def forget(self) -> None:
        """Close everything: the pod has ended. Its last readings stay."""
        if self.ended:
            return
        if self._cgroup is not None:
            self._cgroup.close()
        for name in list(self._containers):
            self._end_container(name)
        if self._network is not None:
            self._network.close()
        self._processes.close()
        self._cgroup = self._network = None
        self._ended_at = time.monotonic()

    def _find_containers(self) -> None:
        wanted = self.pod.containers
        for name, (known, _) in list(self._containers.items()):
            if wanted.get(name) not in (known, None):
                self._end_container(name)
        missing = {id_: name for name, id_ in wanted.items() if name not in self._containers}
        if missing and self._path is not None:
            for id_, path in self._hierarchy.find_containers(self._path, missing).items():
                try:
                    cgroup = self._hierarchy.open(path, with_pressure=False)
                except OSError:
                    continue
                self._containers[missing[id_]] = (id_, cgroup)

    def _read_containers(self) -> Mapping[str, CgroupReading]:
        readings = {}
        for name, (_, cgroup) in list(self._containers.items()):
            try:
                readings[name] = self._last_of_containers[name] = cgroup.read()
            except OSError:
                self._end_container(name)
        return readings

    def _end_container(self, name: str) -> None:
        self._containers.pop(name)[1].close()
        last = self._last_of_containers.pop(name, None)
        if last is not None:
            throttled, periods = self._ended_throttled
            self._ended_throttled = (
                throttled + last.throttled_nanoseconds,
                periods + last.throttled_periods,
            )

    def _read_network(self) -> NetworkReading | None:
        if self._network is None:
            return None
        try:
            return self._network.read()
        except OSError:
            # That process has ended; another one of the pod will do.
            self._network.close()
            self._network = None
            return None
