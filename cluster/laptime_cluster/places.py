"""Where daemons run: the control plane, and each node, with the paths and addresses of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from laptime_cluster.layout import (
    CGROUP,
    FAMILIES,
    FIRST_NODE,
    NAMESPACE_FILES,
    NODES,
    RUN,
    STATE,
)

MOST_NODES = 100
_FIRST_NODE_ADDRESS = 11


@dataclass(frozen=True)
class Place:
    """Something with daemons: a network namespace, a control group and folders of its own."""

    name: str
    addresses: tuple[str, ...]
    """In the network of the nodes, one for each family."""

    @property
    def address(self) -> str:
        """The one of the first family."""
        return self.addresses[0]

    @property
    def state(self) -> Path:
        """Its files on disk."""
        return STATE / self.name

    @property
    def run(self) -> Path:
        """Its sockets and process ids."""
        return RUN / self.name

    @property
    def config(self) -> Path:
        """The configuration files of its daemons."""
        return self.state / "config"

    @property
    def logs(self) -> Path:
        """What its daemons have to say, and on a node the logs of its pods."""
        return self.state / "log"

    @property
    def pids(self) -> Path:
        """A file with the process id of each daemon that was started."""
        return self.run / "pids"

    @property
    def cgroup(self) -> str:
        """Its control group in every hierarchy, of daemons and pods."""
        return f"{CGROUP}/{self.name}"

    @property
    def network_namespace(self) -> Path:
        """The file that keeps its network namespace."""
        return NAMESPACE_FILES / self.name / "network"

    @property
    def mount_namespace(self) -> Path | None:
        """The file that keeps its mount namespace; None: it has that of the machine."""
        return None


@dataclass(frozen=True)
class Node(Place):
    """A node: its kubelet, what that needs, and its share of the machine."""

    pod_ranges: tuple[str, ...]
    """One for each family."""
    cpus: tuple[int, ...]
    """Those that its daemons and pods run on."""
    reserved_share: float
    """The share of the machine's memory that is not for its pods."""
    port: str
    """The end of its cable in the control plane."""

    @property
    def mount_namespace(self) -> Path:
        """The file that keeps its mount namespace."""
        return NAMESPACE_FILES / self.name / "mount"

    @property
    def containerd_root(self) -> Path:
        """Where its containerd keeps images and containers."""
        return self.state / "containerd"

    @property
    def containerd_socket(self) -> Path:
        """Where its containerd listens."""
        return self.run / "containerd.sock"


CONTROL = Place("control", tuple(family.control_address for family in FAMILIES))


def make_nodes(count: int, cpus: Sequence[int]) -> tuple[Node, ...]:
    """Return so many nodes that share the CPUs of the machine."""
    return tuple(
        Node(
            name=FIRST_NODE if number == 0 else f"{FIRST_NODE}-{number + 1}",
            addresses=tuple(one.nodes.format(_FIRST_NODE_ADDRESS + number) for one in FAMILIES),
            pod_ranges=tuple(family.pods.format(number) for family in FAMILIES),
            cpus=share,
            reserved_share=1 - 1 / count,
            port=f"port{_FIRST_NODE_ADDRESS + number}",
        )
        for number, share in enumerate(shares(cpus, count))
    )


def shares(cpus: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Deal CPUs to nodes: neighbours together, and one each, in turn, where there are too few."""
    if count > len(cpus):
        return [(cpus[number % len(cpus)],) for number in range(count)]
    ends = [len(cpus) * number // count for number in range(count + 1)]
    return [tuple(cpus[a:b]) for a, b in pairwise(ends)]


def record(count: int, cpus: Sequence[int]) -> tuple[Node, ...]:
    """Note which nodes the cluster has, and return them."""
    NODES.write_text(json.dumps({"count": count, "cpus": list(cpus)}), encoding="utf-8")
    return make_nodes(count, cpus)


def nodes() -> tuple[Node, ...]:
    """Return the nodes of the cluster there is; none without one."""
    try:
        found = json.loads(NODES.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return make_nodes(found["count"], found["cpus"])
