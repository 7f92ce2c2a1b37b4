"""A wrong clock for one pod of a node, given from outside: no program knows that it can be done.

The pods of a DaemonSet, such as the agents of the chart, get a library loaded before all else, from
a folder of their node in which it also finds by how much it lies. A node whose offset is 0 has the
right time.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laptime_cluster import api
from laptime_cluster.commands import ClusterError, run
from laptime_cluster.layout import SOURCE
from laptime_cluster.places import Node, nodes

_SOURCE = SOURCE / "clock" / "clock.c"
_LIBRARY = "clock.so"
_ON_NODE = "/var/lib/kubelet/clock"
"""Where the folder is for the kubelet; each node has another one there."""
_IN_POD = "/clock"
_OFFSET = "offset"
_MERGE = "application/strategic-merge-patch+json"


def set_offset(node: Node, seconds: float, namespace: str, daemon_set: str) -> None:
    """Have the clock of a DaemonSet's pod on a node be wrong by so many seconds.

    The first time its pods on all nodes are replaced; later ones follow within a second. Raises
    ClusterError when there is no such DaemonSet.
    """
    for one in nodes():
        folder = _folder(one)
        if not (folder / _LIBRARY).exists():
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            library = folder / _LIBRARY
            run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o", library, _SOURCE])
            _write(one, 0.0)
    _write(node, seconds)
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{daemon_set}"
    found = api.get(path)
    if found is None:
        raise ClusterError(f"there is no DaemonSet {daemon_set} in the namespace {namespace}")
    status, text = api.request("PATCH", path, _patch(found), _MERGE)
    if status != 200:
        raise ClusterError(f"the API server answered {status} to PATCH {path}: {text[:500]}")


def _folder(node: Node) -> Path:
    return node.state / "kubelet" / "clock"


def _write(node: Node, seconds: float) -> None:
    half = _folder(node) / "half"
    half.write_text(f"{seconds:+.6f}\n", encoding="utf-8")
    half.chmod(0o644)
    half.replace(_folder(node) / _OFFSET)


def _patch(daemon_set: Mapping[str, Any]) -> Mapping[str, object]:
    environment = {
        "LD_PRELOAD": f"{_IN_POD}/{_LIBRARY}",
        "LAPTIME_CLOCK_FILE": f"{_IN_POD}/{_OFFSET}",
    }
    containers = [
        {
            "name": one["name"],
            "env": [{"name": name, "value": value} for name, value in environment.items()],
            "volumeMounts": [{"name": "clock", "mountPath": _IN_POD, "readOnly": True}],
        }
        for one in daemon_set["spec"]["template"]["spec"]["containers"]
    ]
    volume = {"name": "clock", "hostPath": {"path": _ON_NODE, "type": "Directory"}}
    return {"spec": {"template": {"spec": {"containers": containers, "volumes": [volume]}}}}
