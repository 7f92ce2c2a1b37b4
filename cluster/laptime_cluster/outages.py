"""What happens to nodes: they are stopped, frozen, drained and cut off, and come back."""

import shutil
import time
from pathlib import Path

from laptime_cluster import builds, cgroups, components, lifecycle, namespaces, processes
from laptime_cluster.commands import ClusterError, run
from laptime_cluster.layout import ADMIN_KUBECONFIG
from laptime_cluster.places import Node, nodes

_DRAIN_SECONDS = 120


def node_called(name: str) -> Node:
    """Return a node of the cluster; ClusterError when it has none of that name."""
    there = {node.name: node for node in nodes()}
    if name not in there:
        raise ClusterError(f"there is no node {name}; there are {', '.join(there) or 'none'}")
    return there[name]


def stop(node: Node) -> None:
    """Kill all that runs on a node, as when its power fails. It keeps its disk."""
    cgroups.kill_all(node.cgroup)
    shutil.rmtree(node.pids, ignore_errors=True)


def start(node: Node) -> None:
    """Start a node that was stopped, and wait until it is ready again."""
    if alive := [str(one) for one in components.of_node(node) if processes.is_alive(one)]:
        raise ClusterError(f"{node.name} is not stopped: {', '.join(alive)}")
    # Times of Kubernetes have whole seconds.
    since = float(int(time.time()))
    # A socket that nobody listens at would be taken for a containerd that is ready.
    node.containerd_socket.unlink(missing_ok=True)
    processes.start(components.containerd(node))
    lifecycle.wait_for(f"containerd of {node.name}", node.containerd_socket.exists, 30)
    for daemon in components.of_kubelet(node):
        processes.start(daemon)
    # What it said before it was stopped may still stand there.
    lifecycle.await_node(node, since)


def freeze(node: Node) -> None:
    """Have all that runs on a node stand still: its connections stay, and nobody answers."""
    cgroups.freeze(node, True)


def thaw(node: Node) -> None:
    """Have a node that was frozen go on."""
    cgroups.freeze(node, False)


def slow(node: Node, percent: float) -> None:
    """Have all that runs on a node get this share of its CPUs together; 100: all of them.

    Raises ClusterError when that is none, or more than it has.
    """
    if not 0 < percent <= 100:
        raise ClusterError(f"{percent:g} % is no share of a node's CPUs: write 1 to 100")
    cgroups.limit_cpu(node, len(node.cpus) * percent / 100 if percent < 100 else None)


def cut(node: Node) -> None:
    """Pull the cable of a node out: it goes on, reaches nobody, and nobody reaches it."""
    namespaces.connect(node, False)


def mend(node: Node) -> None:
    """Plug the cable of a node in again."""
    namespaces.connect(node, True)


def drain(node: Node) -> None:
    """Evict the pods of a node as an administrator would, and let no others come."""
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force")
    _kubectl("drain", node.name, *options, f"--timeout={_DRAIN_SECONDS}s")


def uncordon(node: Node) -> None:
    """Let pods come to a node again."""
    _kubectl("uncordon", node.name)


def _kubectl(*arguments: str) -> None:
    program: Path = builds.ensure_kubectl()
    run([program, "--kubeconfig", ADMIN_KUBECONFIG, *arguments])
