"""Real cgroups of this machine, laid out as a kubelet does it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")


class RealPod:
    """A pod's cgroup with one container in it."""

    def __init__(self, mount: Path) -> None:
        self.uid = str(uuid.uuid4())
        self.container = os.urandom(32).hex()
        self.version = 2 if (mount / "cgroup.controllers").exists() else 1
        trees = ["cpu", "cpuacct", "memory", "unified"] if self.version == 1 else ["."]
        self._tops = [mount / tree / f"agent-test-{os.getpid()}" for tree in trees]
        self._pods = [top / "kubepods" / "burstable" / f"pod{self.uid}" for top in self._tops]

    def make(self) -> None:
        """Make the groups; OSError where that is not allowed."""
        for pod in self._pods:
            (pod / self.container).mkdir(parents=True, exist_ok=True)
        if self.version == 2:
            here = (self._tops[0] / "cgroup.controllers").read_text().split()
            wanted = "+cpu +memory +io" if "io" in here else "+cpu +memory"
            for folder in reversed([self._pods[0], *list(self._pods[0].parents)[:3]]):
                (folder / "cgroup.subtree_control").write_text(wanted)

    def enter(self) -> None:
        """Put this process into the container."""
        for pod in self._pods:
            (pod / self.container / "cgroup.procs").write_text(str(os.getpid()))

    def limit_cores(self, cores: float) -> None:
        """Set the CPU limit of the container."""
        quota = round(cores * 100_000)
        name, text = (
            ("cpu.cfs_quota_us", f"{quota}")
            if self.version == 1
            else ("cpu.max", f"{quota} 100000")
        )
        (self._pods[0] / self.container / name).write_text(text)

    def cpu_nanoseconds(self) -> int:
        """What the kernel says of the pod, read in the simplest way."""
        if self.version == 1:
            return int((self._pods[1] / "cpuacct.usage").read_text())
        stat = dict(line.split() for line in (self._pods[0] / "cpu.stat").read_text().splitlines())
        return 1000 * int(stat["usage_usec"])

    def memory_peak_bytes(self) -> int:
        """What the kernel says of the pod, read in the simplest way."""
        if self.version == 1:
            return int((self._pods[2] / "memory.max_usage_in_bytes").read_text())
        return int((self._pods[0] / "memory.peak").read_text())

    def remove(self) -> None:
        """Remove the groups; there must be no process in them."""
        for top, pod in zip(self._tops, self._pods, strict=True):
            for folder in (pod / self.container, pod, pod.parent, pod.parent.parent, top):
                # Those above the pod may hold other pods still.
                if folder.exists() and not any(one.is_dir() for one in folder.iterdir()):
                    folder.rmdir()


@contextmanager
def real_pod() -> Iterator[RealPod]:
    """A real pod cgroup; OSError where this process may not make one."""
    pod = RealPod(MOUNT)
    try:
        pod.make()
        yield pod
    finally:
        pod.remove()
