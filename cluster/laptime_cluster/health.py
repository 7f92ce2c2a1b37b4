"""Whether the cluster works, as told by the cluster itself."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from laptime_cluster import api, components, configuration, processes
from laptime_cluster.commands import ClusterError, run
from laptime_cluster.layout import (
    DNS_SERVICE_ADDRESS,
    FINGERPRINT,
    FIRST_SERVICE_ADDRESS,
    NETWORK_NAMESPACE,
    NODE_NAME,
)
from laptime_cluster.namespaces import inside_network

_API_NAME = "kubernetes.default.svc.cluster.local"


def fingerprint() -> str:
    """Changes with every command line and configuration file that a cluster was started from."""
    digest = hashlib.sha256()
    for daemon in components.ALL:
        digest.update(repr(daemon).encode())
    for path, text in configuration.files().items():
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
    found = [
        f"{name} does not run"
        for name in processes.dead([daemon.name for daemon in components.ALL])
    ]
    if found:
        return found
    if not api.is_ready():
        return ["the API server is not ready"]
    try:
        if not is_node_ready():
            found.append("the node is not ready")
    except (OSError, ClusterError) as error:
        return [str(error)]
    if not is_dns_answering():
        found.append("CoreDNS does not answer at its Service")
    return found


def is_node_ready() -> bool:
    """Whether the node is ready and open for pods."""
    node = api.get(f"/api/v1/nodes/{NODE_NAME}")
    if node is None or node["spec"].get("taints"):
        return False
    conditions: list[dict[str, Any]] = node["status"].get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def is_dns_answering() -> bool:
    """Whether a name resolves through the Service, as a pod would do it (kube-proxy included)."""
    if not NETWORK_NAMESPACE.exists():
        return False
    query = Path(__file__).with_name("name_query.py")
    command = [sys.executable, "-I", "-S", str(query), DNS_SERVICE_ADDRESS, _API_NAME]
    return run(inside_network(command), check=False).strip() == FIRST_SERVICE_ADDRESS


def has_default_service_account() -> bool:
    """Whether the first namespace accepts pods: they need its service account."""
    return api.get("/api/v1/namespaces/default/serviceaccounts/default") is not None


def describe() -> str:
    """The state of every daemon and of the node, for people."""
    lines = []
    for daemon in components.ALL:
        alive = processes.is_alive(daemon.name)
        lines.append(f"{daemon.name:<26}{'running' if alive else 'not running'}")
    for problem in problems():
        lines.append(f"problem: {problem}")
    return "\n".join(lines)


def node_summary() -> str:
    """Version and capacity of the node, in one line."""
    node = api.get(f"/api/v1/nodes/{NODE_NAME}")
    if node is None:
        return "no node"
    status = node["status"]
    capacity = json.dumps({key: status["allocatable"][key] for key in ("cpu", "memory", "pods")})
    return f"node {NODE_NAME}, Kubernetes {status['nodeInfo']['kubeletVersion']}, {capacity}"
