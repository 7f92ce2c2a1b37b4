"""Where the cgroups of pods are: v1 or v2, made by the kubelet itself or through systemd."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from laptime_agent.cgroups import Cgroup, CgroupV1, CgroupV2, CpuCounter

# kind: /docker/ID/kubelet.slice/kubelet-kubepods.slice
_DEEPEST_ROOT = 4
MONITOR = "conmon"
"""CRI-O's process for each container: its cgroup has the container's id too, beside that one."""
# systemd's names have more before it, and '_' for '-'.
_POD = re.compile(r"(?:.*-)?pod([-\w]+)(?:\.slice)?")
_QUALITY_CLASSES = ("burstable", "besteffort", "guaranteed")


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """The group of a node that is not the whole machine."""

    cpus: frozenset[int] | None
    """The CPUs of the node; None: all."""
    pressure: str
    """The folder with its pressure files."""


class Hierarchy:
    """The cgroup tree of the host, mounted at `mount`.

    Raises:
        ValueError: there is no cgroup tree at `mount`.
    """

    def __init__(self, mount: str) -> None:
        self._mount = mount
        if os.path.exists(os.path.join(mount, "cgroup.controllers")):
            self.version = 2
            self._tree = mount
        elif os.path.isdir(os.path.join(mount, "cpuacct")):
            self.version = 1
            self._tree = os.path.join(mount, "cpuacct")
        else:
            raise ValueError(f"{mount} has neither cgroup.controllers (v2) nor cpuacct (v1)")
        self._roots: tuple[str, ...] = ()
        self._own_pod = ""
        self._settled = False

    def settle(self, uid: str) -> NodeGroup | None:
        """Stay in the kubelet's tree in which this pod is: other nodes may be on the machine.

        Returns the group which that kubelet works in; None when that is the whole machine, or the
        pod is not found.
        """
        found = self.find_pod(uid, search_roots=True)
        if found is None:
            return None
        self._settled = True
        self._own_pod = found
        self._roots = tuple(root for root in self._roots if found.startswith(f"{root}/"))
        group = self.group
        if not group:
            return None
        pressure = self._mount if self.version == 2 else os.path.join(self._mount, "unified")
        return NodeGroup(self.cpus_of(group), os.path.join(pressure, group))

    @property
    def tree_of_pods(self) -> str | None:
        """The cgroup of all pods of the own node; None where it is not known which that is."""
        return self._roots[0] if self._settled else None

    @property
    def group(self) -> str:
        """The cgroup that the own node's kubelet works in; empty: the whole machine, or unknown."""
        return os.path.dirname(self._roots[0]) if self._settled else ""

    def is_of_node(self, text: str) -> bool:
        """Return whether a file /proc/PID/cgroup is of a process of the node and of no pod of it.

        Always false before it is known which node that is.
        """
        if not self._settled:
            return False
        lines = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
        own = ("",) if self.version == 2 else ("cpuacct",)
        paths = [path for _, kinds, path in lines if any(one in own for one in kinds.split(","))]
        return any(self._outside_pods(path) for path in paths)

    def _outside_pods(self, path: str) -> bool:
        if path.startswith("/.."):
            # As seen from the container of the agent, one below its pod: it has a namespace of
            # cgroups, whose top is its own one.
            path = os.path.normpath(f"/{self._own_pod}/container{path}")
        path = path.strip("/") + "/"
        return path.startswith(f"{self.group}/") and not path.startswith(f"{self._roots[0]}/")

    def own_pods(self) -> dict[str, str]:
        """Return the paths of the cgroups of all pods of the own node, by their uids."""
        if not self._settled:
            return {}
        found = ((_POD.fullmatch(name), path) for name, path in self._pods())
        return {pod[1].replace("_", "-"): path for pod, path in found if pod}

    def find_pod(self, uid: str, search_roots: bool) -> str | None:
        """Return the path of a pod's cgroup below the tree, None when there is none (yet).

        With `search_roots` it looks for new trees of kubelets too, which takes milliseconds.
        """
        found = self._find_below_roots(uid)
        if found is None and search_roots and not self._settled:
            self._roots = tuple(_find_roots(self._tree))
            found = self._find_below_roots(uid)
        return found

    def _find_below_roots(self, uid: str) -> str | None:
        # systemd has no '-' within a part of a slice's name.
        wanted = (f"pod{uid}", f"pod{uid.replace('-', '_')}.slice")
        return next((path for name, path in self._pods() if name.endswith(wanted)), None)

    def _pods(self) -> Iterator[tuple[str, str]]:
        """Yield name and path of what is where the cgroups of pods are."""
        for root in self._roots:
            for parent in (root, *_quality_classes(os.path.join(self._tree, root), root)):
                for name in _folders(os.path.join(self._tree, parent)):
                    yield name, os.path.join(parent, name)

    def find_containers(self, pod: str, ids: Iterable[str]) -> dict[str, str]:
        """Return the paths of the containers in a pod's cgroup, by their id; those that exist."""
        names = list(_folders(os.path.join(self._tree, pod)))
        return {one: os.path.join(pod, name) for one in ids for name in names if _is_of(name, one)}

    def containers_of(self, pod: str) -> list[str]:
        """Return the paths of all containers in a pod's cgroup, its pause among them."""
        names = _folders(os.path.join(self._tree, pod))
        return [os.path.join(pod, name) for name in names if not _is_monitors(name)]

    def cpus_of(self, relative: str) -> frozenset[int] | None:
        """Return the CPUs that a cgroup may run on; None where the kernel does not tell."""
        tree = self._mount if self.version == 2 else os.path.join(self._mount, "cpuset")
        return _cpus(os.path.join(tree, relative))

    def open(self, relative: str, with_pressure: bool = True) -> Cgroup:
        """Return an open cgroup; OSError when it is not there."""
        if self.version == 2:
            return CgroupV2(self._mount, relative, with_pressure)
        return CgroupV1(self._mount, relative, with_pressure)

    def open_cpu(self, relative: str) -> CpuCounter:
        """Return the open CPU counter of a cgroup; OSError when it is not there."""
        return CpuCounter(self._mount, relative, self.version)


def _is_of(name: str, container: str) -> bool:
    """Whether a cgroup of this name is a container's: ID, crio-ID, cri-containerd-ID.scope."""
    return name.removesuffix(".scope").rpartition("-")[2] == container and not _is_monitors(name)


def _is_monitors(name: str) -> bool:
    return name.removesuffix(".scope").rpartition("-")[0].endswith(MONITOR)


def _find_roots(tree: str) -> Iterator[str]:
    """Yield the top cgroups of kubelets: kubepods, kubepods.slice, kubelet-kubepods.slice."""
    level = [""]
    for _ in range(_DEEPEST_ROOT):
        below: list[str] = []
        for parent in level:
            for name in _folders(os.path.join(tree, parent)):
                relative = os.path.join(parent, name)
                if name.removesuffix(".slice").endswith("kubepods"):
                    yield relative
                else:
                    below.append(relative)
        level = below


def _cpus(group: str) -> frozenset[int] | None:
    """Return the CPUs of a cpuset; None when there is none."""
    for name in ("cpuset.cpus.effective", "cpuset.effective_cpus"):
        try:
            with open(os.path.join(group, name), "rb") as file:
                return parse_cpus(file.read().decode())
        except (OSError, ValueError):
            # It is gone, or has none of its own yet.
            continue
    return None


def parse_cpus(text: str) -> frozenset[int]:
    """Return the numbers in a list of CPUs as the kernel writes it: 0-3,8."""
    ranges = [part.partition("-") for part in text.strip().split(",")]
    return frozenset(
        number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)
    )


def _quality_classes(folder: str, root: str) -> Iterator[str]:
    for name in _folders(folder):
        if name.removesuffix(".slice").endswith(_QUALITY_CLASSES):
            yield os.path.join(root, name)


def _folders(path: str) -> Iterator[str]:
    try:
        with os.scandir(path) as entries:
            yield from sorted(one.name for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        # It went away while it was looked at.
        return
