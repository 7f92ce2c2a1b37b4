"""A cluster that tests start, use and stop beside one that may be in use."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

NAME = os.environ.get("LAPTIME_TEST_CLUSTER") or "laptime-test"
PROGRAM = Path(__file__).resolve().parent.parent / "cluster.py"
ENVIRONMENT = {**os.environ, "LAPTIME_CLUSTER_NAME": NAME}
KUBECONFIG = f"/var/lib/{NAME}/admin.kubeconfig"


def cluster(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command of the program."""
    result = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env=ENVIRONMENT,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


@cache
def _kubectl() -> str:
    return cluster("path", "kubectl").stdout.split()[-1]


def kubectl(*arguments: str, text: str = "") -> str:
    """Return what kubectl says, as the administrator of the cluster."""
    return subprocess.run(
        [_kubectl(), "--kubeconfig", KUBECONFIG, *arguments],
        input=text,
        text=True,
        stdout=subprocess.PIPE,
        timeout=180,
        check=True,
    ).stdout


def pod(name: str, node: str | None = None, **labels: str) -> dict[str, Any]:
    """Return a pod that does nothing, on a node or on any."""
    container = {"name": "pause", "image": "docker.io/laptime/pause:1", "command": ["/pause"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}),
        },
    }


def start_pods(*pods: dict[str, Any]) -> None:
    """Create pods and wait until they are ready."""
    kubectl("apply", "-f", "-", text="\n---\n".join(map(json.dumps, pods)))
    names = [f"pod/{one['metadata']['name']}" for one in pods]
    kubectl("wait", "--for=condition=Ready", *names, "--timeout=60s")


def processes_of_the_cluster(place: str = "") -> dict[int, str]:
    """Process id and name of everything alive in the control groups of the cluster, or below."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                is_dead = (entry / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
                if not is_dead and f"/{NAME}/{place}" in (entry / "cgroup").read_text():
                    found[int(entry.name)] = (entry / "comm").read_text().strip()
            except OSError:
                continue
    return found
