"""What the parts of a run used while a trial was measured."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from laptime.api.base import Reading, TolerantModel


class Source(StrEnum):
    """Who read the figures."""

    AGENT = "agent"
    KUBELET = "kubelet"
    NOBODY = "nobody"


class CoresOverTime(TolerantModel):
    """CPU cores in use, one figure for each span of the window from its start on."""

    span_seconds: int = Field(
        description="Length of a span. The last one ends with the window: it has half to one and "
        "a half times this length."
    )
    cores: list[float | None] = Field(
        description="Mean of each span, to a thousandth of a core; at most 120. null: no samples."
    )

    def by_second(self) -> dict[int, float]:
        """Return the cores in use by whole second since the start of the window."""
        return {
            number * self.span_seconds + second: cores
            for number, cores in enumerate(self.cores)
            if cores is not None
            for second in range(self.span_seconds)
        }


MOST_PROCESSES = 16
"""Of a server's processes that are kept of each trial."""


class ProcessUsage(TolerantModel):
    """A process of a server, its threads included."""

    process: int = Field(description="Its number on the node.")
    parent: int = Field(description="The number of the process that made it.")
    command: str = Field(description="What the kernel calls it: at most 15 characters.")
    cores: Reading = Field(description="CPU cores, mean of the window.")
    cores_peak: Reading = Field(description="Highest use over any second.")
    main_thread_cores: Reading | None = Field(
        None, description="Of `cores` those that its main thread used; None: not known."
    )
    main_thread_waiting_share: Reading | None = Field(
        None,
        description="Share of the window in which its main thread was ready and had no CPU; None: "
        "not known.",
    )


class ComponentUsage(TolerantModel):
    """All pods of one component of a run, in the window of one trial."""

    component: str
    server: str | None = None
    pods: int
    nodes: list[str] = Field(
        default_factory=list, description="Those that the pods ran on; empty: not known."
    )
    cpu_seconds: Reading | None = Field(
        None, description="CPU time within the window; None when the samples do not tell."
    )
    cores_mean: Reading | None = Field(None, description="CPU time divided by the window.")
    cores_peak: Reading | None = Field(None, description="Highest use over any second.")
    cores_over_time: CoresOverTime | None = Field(
        None, description="None when `cpuSeconds` is not known."
    )
    throttled_seconds: Reading | None = Field(
        None, description="Time that tasks were held back by a CPU limit, summed over CPUs."
    )
    throttled_share: Reading | None = Field(
        None, description="Share of the periods of 0.1 s in which a CPU limit was reached."
    )
    working_set_bytes: int | None = Field(None, description="Highest within the window.")
    memory_peak_bytes: int | None = Field(
        None, description="The kernel's own peak since the pods began, file cache included."
    )
    cpu_waiting_share: Reading | None = Field(
        None, description="Share of the window in which a task was ready and had no CPU."
    )
    disk_waiting_share: Reading | None = Field(
        None,
        description="Of a server: share of the window in which tasks waited for a disk and none "
        "ran, a mean of the CPUs that had any. Who waits in an io_uring counts, whatever for. None "
        "where kernel or agent do not tell.",
    )
    memory_waiting_share: Reading | None = Field(
        None,
        description="The same of memory: of room for more, or of pages that were given up and "
        "are read again.",
    )
    disk_operations_per_second: Reading | None = Field(
        None,
        description="Of a server: reads and writes a second, at the disk that had most of them, at "
        "least. None where the pod used none, or kernel or agent do not tell.",
    )
    received_bytes: int | None = None
    transmitted_bytes: int | None = None
    exclusive_cpus: int | None = Field(
        None,
        description="CPUs that these pods alone could run on, fewest within the window: those that "
        "the kubelet's static CPU manager gave them. None where the agent does not tell.",
    )
    processes: list[ProcessUsage] | None = Field(
        None,
        description="Of a server: its processes, the busiest first, at most 16. None where the "
        "agent does not tell, or of more or less CPU time than the pods had.",
    )

    @property
    def worker_processes(self) -> list[ProcessUsage]:
        """The busiest process and those of its kind, the busiest first; empty: not known.

        Of one command and one parent, and none that is a parent itself: that may hand work on.
        """
        if not self.processes or self.pods != 1:
            return []
        busiest, parents = self.processes[0], {one.parent for one in self.processes}
        alike = [
            one
            for one in self.processes
            if (one.command, one.parent) == (busiest.command, busiest.parent)
            and one.process not in parents
        ]
        return alike if busiest in alike else []


class Neighbour(TolerantModel):
    """A pod on a node of the run that had no part in it."""

    pod: str
    cores: Reading = Field(description="CPU cores, mean of the window, at least.")


class ConnectionTracking(TolerantModel):
    """The table in which a node keeps track of connections, those of pods to Services above all."""

    entries: int = Field(description="Highest within the window.")
    limit: int | None = Field(None, description="How many entries there can be.")
    dropped: int | None = Field(
        None, description="Packets dropped within the window, for which there was no entry."
    )
    not_added: int | None = Field(
        None,
        description="Entries that could not be added within the window, whose packets were dropped "
        "too. Some kernels count a packet here and in `dropped`.",
    )
    given_up_early: int | None = Field(
        None,
        description="Entries of connections without an answer that the full table gave up for new "
        "ones within the window.",
    )

    @property
    def full_share(self) -> float | None:
        """How full it was at most; None where the limit is not known."""
        if self.given_up_early:
            return 1.0
        return self.entries / self.limit if self.limit else None

    @property
    def lost(self) -> int:
        """Packets that were dropped, at least."""
        return max(self.dropped or 0, self.not_added or 0)


class NodeUsage(TolerantModel):
    """One node with pods of the run, in the window of one trial."""

    node: str
    cpus: int
    complete: bool = Field(
        True,
        description="Whether nothing is missing of its CPU time, and of whether it stood still "
        "where its agent tells; true where an older version did not say.",
    )
    kernel: str | None = Field(None, description="Its release.")
    cpu_model: str | None = Field(None, description="What CPUs it has, where the kernel tells.")
    busy_share: Reading | None = Field(None, description="Share of all CPUs that was in use.")
    stolen_share: Reading | None = Field(
        None, description="Share of all CPUs that the hypervisor gave to others."
    )
    stood_still_seconds: Reading | None = Field(
        None,
        description="How long nothing ran on it: frozen, paused, or waiting for its disk. Only "
        "what lasted for a second or longer, until the last answer was there; None where the agent "
        "does not tell.",
    )
    others_cores: Reading | None = Field(
        None,
        description="CPU cores that everything but the run's tiers and the pods of the trial used, "
        "at least: without interrupts, those that ran in a pod's time twice, but never less than "
        "`otherPodsCores`. Mean of the window; None where the CPU time of a pod is not known.",
    )
    other_pods_cores: Reading | None = Field(
        None,
        description="CPU cores of all other pods on the node, of whatever namespace. Mean of the "
        "window; None where the agent does not tell.",
    )
    neighbours: list[Neighbour] | None = Field(
        None,
        description="Those of them that are in the run's own namespace and used 0.01 cores or "
        "more, at most 10, the largest first. None where the agent does not tell.",
    )
    cpu_waiting_share: Reading | None = Field(
        None, description="Share of the window in which a task was ready and had no CPU."
    )
    load1: Reading | None = Field(None, description="Highest within the window.")
    memory_available_bytes: int | None = Field(None, description="Lowest within the window.")
    frequency_hertz: Reading | None = Field(None, description="Mean of the CPUs, lowest of all.")
    probe_seconds: Reading | None = Field(
        None,
        description="CPU time that a fixed piece of work took, mean of the window: the longer, the "
        "slower its CPUs were, by their clock, by what else a core had to do, or by the host of a "
        "virtual machine. None where the agent does not tell.",
    )
    probe_work: str | None = Field(
        None, description="Which work that was: times of another one cannot be compared."
    )
    connection_tracking: ConnectionTracking | None = Field(
        None, description="None where the kernel does not track, or the agent does not tell."
    )
    clock_ahead_seconds: Reading | None = Field(
        None,
        description="By how much its clock was ahead of that of the first generator's node, which "
        "the window is told in; taken off before anything was read. None: not known.",
    )


class TrialUsage(TolerantModel):
    """What was used in the window of one trial, and how far that can be trusted."""

    source: Source
    resolution_seconds: Reading | None = Field(
        None, description="Usual time between two readings of a pod."
    )
    complete: bool = Field(description="Whether nothing is missing.")
    gaps: list[str] = Field(default_factory=list, description="What is missing, in words.")
    components: list[ComponentUsage] = Field(default_factory=list)
    nodes: list[NodeUsage] = Field(default_factory=list)

    def component(self, name: str, server: str | None = None) -> ComponentUsage | None:
        """Return the usage of a component; None when there is none.

        With `server`, that of this server: pods of another one may still have been ending, and of a
        Service that Laptime does not deploy there is none.
        """
        found = [
            one
            for one in self.components
            if one.component == name and (server is None or one.server in (server, None))
        ]
        return next(iter(found), None)

    def missing(self, gaps: Iterable[str]) -> TrialUsage:
        """Return the same without what these gaps tell of, each of which is told once."""
        every = list(dict.fromkeys([*self.gaps, *gaps]))
        complete = self.complete and every == self.gaps
        return self.model_copy(update={"complete": complete, "gaps": every})


class RowUsage(TolerantModel):
    """What a server used under a load, over all repetitions that were read."""

    source: Source
    cores_mean: Reading | None = Field(None, description="CPU cores, mean of the repetitions.")
    cores_peak: Reading | None = Field(None, description="Highest use over any second of any one.")
    memory_bytes: int | None = Field(None, description="Highest working set of any repetition.")
    requests_per_cpu_second: Reading | None = Field(
        None, description="Right answers divided by the CPU time of the server."
    )
    requests_per_second_per_mib: Reading | None = Field(
        None, description="Throughput divided by the highest working set."
    )
    unwatched: int | None = Field(
        None,
        description="Repetitions in which nobody read anything of its pods, where they were "
        "watched in others; left out where there was none.",
    )
    doubts: list[str] = Field(
        default_factory=list, description="Why these figures and the cause may be off."
    )
