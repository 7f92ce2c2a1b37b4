"""Whether the cluster works, as told by the cluster itself."""

import hashlib
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from laptime_cluster import api, cgroups, components, configuration, processes
from laptime_cluster.commands import ClusterError, run
from laptime_cluster.layout import DNS_SERVICE_ADDRESS, FINGERPRINT, FIRST_SERVICE_ADDRESS
from laptime_cluster.namespaces import inside_network, is_connected
from laptime_cluster.places import Node, nodes

_API_NAME = "kubernetes.default.svc.cluster.local"
# Kubernetes' own word that a node does not work; every other taint is somebody's wish.
_AWAY_TAINTS = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


def fingerprint() -> str:
    """Changes with every command line and configuration file that a cluster was started from."""
    digest = hashlib.sha256()
    there = nodes()
    for daemon in components.every(there):
        digest.update(repr(daemon).encode())
    for path, text in configuration.files(there).items():
        digest.update(f"{path}\0{text}\0".encode())
    return digest.hexdigest()


def is_current() -> bool:
    """Whether the running cluster was started from this very configuration."""
    try:
        return FINGERPRINT.read_text(encoding="utf-8") == fingerprint()
    except OSError:
        return False


def problems() -> list[str]:
    """What keeps the cluster from working; empty when it is healthy."""
    there = nodes()
    if not there:
        return ["there is no cluster"]
    found = [f"{name} does not run" for name in processes.dead(components.every(there))]
    if found:
        return found
    if not api.is_ready():
        return ["the API server is not ready"]
    try:
        found += [f"the node {node.name} is not ready" for node in there if not is_node_ready(node)]
    except (OSError, ClusterError) as error:
        return [str(error)]
    found += [
        f"CoreDNS does not answer at its Service on {node.name}"
        for node in there
        if not is_dns_answering(node)
    ]
    return found


def outages() -> list[str]:
    """The nodes that were stopped, frozen or cut off, each with the command that undoes it."""
    found = []
    for node in nodes():
        # `stop` takes the process ids away; those of a daemon that dies by itself stay.
        if not node.pids.exists():
            found.append(f"the node {node.name} is stopped (`start {node.name}` starts it)")
        elif cgroups.is_frozen(node):
            found.append(f"the node {node.name} is frozen (`thaw {node.name}` has it go on)")
        elif not is_connected(node):
            found.append(f"the node {node.name} is cut off (`mend {node.name}` joins it again)")
    return found


def is_node_ready(node: Node) -> bool:
    """Whether a node works, though pods may be kept off it by a cordon or a taint."""
    found = api.get(f"/api/v1/nodes/{node.name}")
    return found is not None and _taints(found).isdisjoint(_AWAY_TAINTS) and _says_ready(found)


def is_node_open(node: Node, since: float = 0.0) -> bool:
    """Whether a node is ready and open for pods, as its kubelet has said since a Unix time."""
    found = api.get(f"/api/v1/nodes/{node.name}")
    return found is not None and not _taints(found) and _says_ready(found, since)


def _taints(node: dict[str, Any]) -> set[str]:
    return {taint["key"] for taint in node["spec"].get("taints", ())}


def _says_ready(node: dict[str, Any], since: float = 0.0) -> bool:
    conditions: list[dict[str, Any]] = node["status"].get("conditions", [])
    return any(
        item["type"] == "Ready"
        and item["status"] == "True"
        and datetime.fromisoformat(item["lastHeartbeatTime"]).timestamp() >= since
        for item in conditions
    )


def is_dns_answering(node: Node) -> bool:
    """Whether a name resolves through the Service, as a pod would do it (kube-proxy included)."""
    if not node.network_namespace.exists():
        return False
    query = Path(__file__).with_name("name_query.py")
    command = [sys.executable, "-I", "-S", str(query), DNS_SERVICE_ADDRESS, _API_NAME]
    return run(inside_network(node, command), check=False).strip() == FIRST_SERVICE_ADDRESS


def has_default_service_account() -> bool:
    """Whether the first namespace accepts pods: they need its service account."""
    return api.get("/api/v1/namespaces/default/serviceaccounts/default") is not None


def describe() -> str:
    """The state of every daemon and of the nodes, for people."""
    lines = []
    for daemon in components.every(nodes()):
        alive = processes.is_alive(daemon)
        lines.append(f"{daemon!s:<32}{'running' if alive else 'not running'}")
    for problem in problems():
        lines.append(f"problem: {problem}")
    return "\n".join(lines)


def summary() -> str:
    """Version and capacity of the nodes, in one line."""
    found = []
    for node in nodes():
        known = api.get(f"/api/v1/nodes/{node.name}")
        if known is None:
            found.append(f"no node {node.name}")
            continue
        status = known["status"]
        names = ("cpu", "memory", "pods")
        capacity = json.dumps({name: status["allocatable"][name] for name in names})
        version = status["nodeInfo"]["kubeletVersion"]
        cpus = ",".join(map(str, node.cpus))
        found.append(f"node {node.name} (CPU {cpus}), Kubernetes {version}, {capacity}")
    return "; ".join(found)
