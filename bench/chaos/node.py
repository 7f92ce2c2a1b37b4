"""The embedded cluster from outside: its API server as the administrator, its processes, logs."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from laptime_cluster import api, cgroups, components, disks, health, processes
from laptime_cluster.layout import FIRST_NODE, STATE
from laptime_cluster.places import nodes
from laptime_cluster.processes import Daemon

SYSTEM = "laptime-system"
NAMESPACE = "chaos"
NODE = f"/api/v1/nodes/{FIRST_NODE}"
MERGE = "application/merge-patch+json"
_PATIENCE_SECONDS = 120.0
_LOG_LINE = re.compile(r"^\S+ std(?:out|err) ([FP]) (.*)$")
_KINDS = {
    "Pod": "/api/v1/{}/pods",
    "Service": "/api/v1/{}/services",
    "ConfigMap": "/api/v1/{}/configmaps",
    "Secret": "/api/v1/{}/secrets",
    "Deployment": "/apis/apps/v1/{}/deployments",
    "ReplicaSet": "/apis/apps/v1/{}/replicasets",
    "Job": "/apis/batch/v1/{}/jobs",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/{}/networkpolicies",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/{}/endpointslices",
}
RUNS = f"/apis/laptime.dev/v1alpha1/namespaces/{NAMESPACE}/benchmarkruns"


class ClusterBroken(Exception):
    """The cluster did not come back after a fault; its text says what is wrong with it."""


# The API server -----------------------------------------------------------------------------


def ask(method: str, path: str, body: object | None = None, content: str = "") -> Any:
    """Return what the API server answers; wait while it is away.

    Returns None for what does not exist, and for what exists already when it is to be created.

    Raises:
        ClusterBroken: it refused, or was away for two minutes.
    """
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            status, text = api.request(method, path, body, content or "application/json")
        except OSError as error:
            status, text = 0, str(error)
        if 200 <= status < 300:
            return json.loads(text)
        if status in (404, 409):
            return None
        # Right after its start the API server does not know yet who may do what.
        if time.monotonic() > end or status in (400, 422):
            raise ClusterBroken(f"{method} {path}: {status} {text[:500]}")
        time.sleep(0.3)


def pods(namespace: str, selector: str) -> list[dict[str, Any]]:
    """Return the pods that match a label selector and are not ending."""
    found = ask("GET", f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")["items"]
    return [one for one in found if "deletionTimestamp" not in one["metadata"]]


def delete_pod(pod: dict[str, Any]) -> None:
    """Delete a pod at once."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    ask("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}})


def left_of(run: str) -> set[str]:
    """Return kind/name of each object of a run."""
    found = set()
    for kind, path in _KINDS.items():
        where = path.format(f"namespaces/{NAMESPACE}")
        items = ask("GET", f"{where}?labelSelector=laptime.dev/run={run}")["items"]
        found |= {f"{kind}/{item['metadata']['name']}" for item in items}
    return found


def wait(what: str, until: Callable[[], Any], seconds: float = _PATIENCE_SECONDS) -> Any:
    """Return what a function returns once that is true.

    Raises:
        ClusterBroken: it is not after so many seconds.
    """
    end = time.monotonic() + seconds
    while not (found := until()):
        if time.monotonic() > end:
            raise ClusterBroken(f"{what} did not come within {seconds:.0f} s")
        time.sleep(0.2)
    return found


# Processes ----------------------------------------------------------------------------------


def daemon_pid(name: str) -> int:
    """Return the process of a daemon."""
    return int(_daemons()[name].pid_file.read_text())


def _daemons() -> dict[str, Daemon]:
    """Return the daemons of the cluster, which has one node, by their names."""
    return {daemon.name: daemon for daemon in components.every(nodes())}


def state_of(pid: int) -> str:
    """Return the state of a process as proc(5) has it; empty when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def operator_pid() -> int:
    """Return the operator's process; 0 when there is none."""
    for pid in sorted(cgroups.process_ids()):
        with suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if line[-2:] == [b"operator", b""] and any(b"laptime" in word for word in line):
                return pid
    return 0


def kill(pid: int) -> None:
    """Kill a process."""
    assert pid > 1, "0 would be this very program"
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_containers(pod: dict[str, Any]) -> int:
    """Kill what runs in a pod; return how many processes that was."""
    uid = pod["metadata"]["uid"]
    killed = 0
    for pid in cgroups.process_ids():
        with suppress(OSError):
            inside = Path(f"/proc/{pid}/cgroup").read_text()
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            if (uid in inside or uid.replace("-", "_") in inside) and name != "pause":
                kill(pid)
                killed += 1
    return killed


def stand_still(pid: int, seconds: float) -> float:
    """Stop a process for so long; return for how long it was seen to be stopped."""
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    stopped = 0.0
    try:
        while (now := time.monotonic() - began) < seconds and state_of(pid):
            if state_of(pid) == "T":
                stopped = now
            time.sleep(0.1)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    return stopped


def be_away(name: str, seconds: float) -> float:
    """Kill a daemon and start it again so much later; return for how long it was not there."""
    daemon = _daemons()[name]
    kill(daemon_pid(name))
    wait(f"the end of {name}", lambda: not processes.is_alive(daemon), 10)
    began = time.monotonic()
    try:
        time.sleep(seconds)
    finally:
        processes.start(daemon)
    return time.monotonic() - began


# Health -------------------------------------------------------------------------------------


def heal() -> None:
    """Undo what a fault may have left, and wait until the cluster is well.

    Raises:
        ClusterBroken: it does not become so.
    """
    for name, daemon in _daemons().items():
        if processes.is_alive(daemon):
            os.kill(daemon_pid(name), signal.SIGCONT)
        else:
            processes.start(daemon)
    disks.empty(DISK)
    be_full(False)
    cordon(None)
    untaint()
    ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/chaos")
    give_rights()
    wait("a healthy cluster", _well)


def _well() -> bool:
    try:
        return (
            not health.problems()
            and health.is_node_open(nodes()[0])
            and all(
                (one["status"].get("availableReplicas") or 0) >= 1
                and (one["status"].get("updatedReplicas") or 0) >= 1
                and one["status"].get("observedGeneration") == one["metadata"]["generation"]
                for one in ask("GET", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments")["items"]
            )
        )
    except OSError:
        return False


def give_rights() -> None:
    """Let the operator work in the namespace."""
    binding = {
        "metadata": {"name": "laptime"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "laptime-runs",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "laptime-operator", "namespace": SYSTEM}],
    }
    ask("POST", RIGHTS, binding)


RIGHTS = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
TAINT = {"key": "laptime.dev/chaos", "value": "yes", "effect": "NoExecute"}


def taint() -> None:
    """Have all pods of the node evicted."""
    wait("the taint", lambda: _set_taints(lambda other: [*other, TAINT]))


def untaint() -> None:
    """Take the taint away again."""
    wait("the end of the taint", lambda: _set_taints(lambda other: other))


def _set_taints(wanted: Callable[[list[Any]], list[Any]]) -> bool:
    """Make the taints of the node so, by those that are not ours; False: it changed meanwhile."""
    found = ask("GET", NODE)
    taints = found["spec"].get("taints") or []
    new = wanted([one for one in taints if one["key"] != TAINT["key"]])
    if new == taints:
        return True
    version = {"resourceVersion": found["metadata"]["resourceVersion"]}
    return ask("PATCH", NODE, {"metadata": version, "spec": {"taints": new}}, MERGE) is not None


def cordon(unschedulable: bool | None) -> None:
    """Have no pods scheduled any more; None: have them scheduled again."""
    ask("PATCH", NODE, {"spec": {"unschedulable": unschedulable}}, MERGE)


# Space --------------------------------------------------------------------------------------

DISK = STATE / FIRST_NODE / "kubelet"
"""A folder on the node's own disk."""
_ETCD = "http://127.0.0.1:2379/v3/maintenance/alarm"


def be_full(full: bool) -> None:
    """Have etcd take nothing more, as when it has as much as it may have; or end that."""
    action = "ACTIVATE" if full else "DEACTIVATE"
    body = json.dumps({"action": action, "memberID": 0, "alarm": "NOSPACE"}).encode()
    # Its gateway for gRPC; only the cluster's control plane reaches it, where this program runs.
    with urllib.request.urlopen(_ETCD, body, timeout=10) as answer:
        answer.read()


def refusal_of_a_write() -> str:
    """Return what the API server says against a small write; empty when it does it."""
    path = f"/api/v1/namespaces/{NAMESPACE}/events"
    event = {
        "metadata": {"generateName": "chaos-"},
        "involvedObject": {"kind": "Node", "name": FIRST_NODE, "namespace": NAMESPACE},
        "reason": "Chaos",
        "message": "whether anything is written",
        "type": "Normal",
    }
    status, text = api.request("POST", path, event, "application/json")
    return "" if status < 300 else str(json.loads(text).get("message"))


# Logs ---------------------------------------------------------------------------------------


@contextmanager
def generator_logs() -> Iterator[Callable[[], dict[str, str]]]:
    """Keep the logs of all generators, which else go with their pods.

    Yields a function that returns them by the name of the pod. A log is a file on the node: whoever
    has it open can read it when it is removed.
    """
    over = threading.Event()
    kept: dict[Path, BinaryIO] = {}

    def logs() -> set[Path]:
        return set((nodes()[0].logs / "pods").glob(f"{NAMESPACE}_*-trial-*/k6/*.log"))

    # A fault that did not bite has another run of the same name, and the kubelet takes its time.
    of_others = logs()

    def look() -> None:
        while not over.wait(0.2):
            for log in logs() - of_others - set(kept):
                with suppress(OSError):
                    kept[log] = log.open("rb")

    thread = threading.Thread(target=look, daemon=True)
    thread.start()

    def read() -> dict[str, str]:
        return {
            log.parent.parent.name.split("_")[1]: plain_log(_whole(kept[log]))
            for log in sorted(kept)
        }

    try:
        yield read
    finally:
        over.set()
        thread.join()
        for file in kept.values():
            file.close()


def _whole(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def plain_log(text: str) -> str:
    """Return what a container wrote, of a log as the node keeps it: long lines in parts."""
    said = []
    for line in text.split("\n"):
        if found := _LOG_LINE.match(line):
            said.append(found[2] + ("\n" if found[1] == "F" else ""))
    return "".join(said)
