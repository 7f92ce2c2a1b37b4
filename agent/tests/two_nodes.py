"""Trees of cgroups as two kubelets make them on one machine, in a temporary folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from laptime_agent.hierarchy import Hierarchy

AGENT = "aaaaaaaa-1111-2222-3333-444455556666"
ONE, TWO, FAR = (AGENT.replace("a", letter) for letter in "bcd")


class Machine:
    """Two nodes with a pod each, and their agents."""

    def __init__(self, folder: Path, version: int, systemd: bool) -> None:
        self.folder, self.version, self.systemd = folder, version, systemd
        if version == 2:
            (folder / "cgroup.controllers").write_text("cpu memory")
        else:
            (folder / "cpuset").mkdir()
        for node in ("a", "b"):
            self.set_cpu(self.tree(node), 9)
        self.set_cpu(self.pod("a", AGENT), 1)
        self.set_cpu(self.pod("b", FAR), 1)

    def tree(self, node: str) -> str:
        return f"cluster/{node}/" + ("kubepods.slice" if self.systemd else "kubepods")

    def pod(self, node: str, uid: str) -> str:
        if self.systemd:
            name = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
            return f"{self.tree(node)}/kubepods-burstable.slice/{name}"
        return f"{self.tree(node)}/burstable/pod{uid}"

    def set_cpu(self, group: str, seconds: float) -> None:
        folder = self.folder / ("" if self.version == 2 else "cpuacct") / group
        folder.mkdir(parents=True, exist_ok=True)
        if self.version == 2:
            (folder / "cpu.stat").write_text(f"usage_usec {round(seconds * 1e6)}\nuser_usec 1\n")
        else:
            (folder / "cpuacct.usage").write_text(f"{round(seconds * 1e9)}\n")

    def end(self, group: str) -> None:
        shutil.rmtree(self.folder / ("" if self.version == 2 else "cpuacct") / group)

    def settled(self) -> Hierarchy:
        hierarchy = Hierarchy(str(self.folder))
        hierarchy.settle(AGENT)
        return hierarchy

    def set_cpus(self, group: str, cpus: str) -> None:
        """Say on which CPUs a group may run."""
        name = "cpuset.cpus.effective" if self.version == 2 else "cpuset.effective_cpus"
        folder = self.folder / ("" if self.version == 2 else "cpuset") / group
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{cpus}\n")

    def container(self, node: str, uid: str, name: str, cpus: str, seconds: float) -> None:
        """Say of a container of a pod where it may run, and how long it has run."""
        letter = name[0] * 64
        group = f"cri-containerd-{letter}.scope" if self.systemd else letter
        path = f"{self.pod(node, uid)}/{group}"
        self.set_cpu(path, seconds)
        self.set_cpus(path, cpus)
