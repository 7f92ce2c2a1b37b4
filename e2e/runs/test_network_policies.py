"""Pods of a run reach each other, DNS and what the run names, and nobody else reaches them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conftest import OPERATOR_NAMESPACE, Tool

from .harness import AXUM, POSTGRES_ALONE, Cluster, light, run_manifest

SERVES = """
import http.server, threading
for port in (8000, 8001):
    server = http.server.HTTPServer(("", port), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever).start()
"""
CONNECTS = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"


def pod(name: str, image: str, labels: dict[str, str]) -> dict[str, Any]:
    """Return a pod that listens on two ports, and from which connections can be tried."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "main",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python3", "-c", SERVES],
                    "workingDir": "/tmp",
                    "readinessProbe": {"tcpSocket": {"port": 8001}, "periodSeconds": 1},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }


@pytest.fixture
def image(kubectl: Tool, operator: str) -> str:
    """The operator's image, which has Python."""
    return kubectl(
        *("get", "deployment", "laptime-operator", "-n", OPERATOR_NAMESPACE),
        *("-o", "jsonpath={.spec.template.spec.containers[0].image}"),
    )


def test_a_run_is_alone_with_what_it_names(cluster: Cluster, kubectl: Tool, image: str) -> None:
    def start(name: str, labels: dict[str, str]) -> str:
        cluster.apply(pod(name, image, labels))
        ready = ("--for=condition=Ready", "--timeout=60s")
        kubectl("wait", *ready, "-n", cluster.namespace, f"pod/{name}")
        address: str = cluster.get("pod", name)["status"]["podIP"]
        return address

    def reaches(source: str, host: str, port: int) -> bool:
        command = ("--", "python3", "-c", CONNECTS, host, str(port))
        return kubectl.run("exec", "-n", cluster.namespace, source, *command).returncode == 0

    outside = start("outside", {})
    egress = [{"cidr": f"{outside}/32", "ports": [8001]}]
    # Long enough to try all ways while it is measured.
    small: dict[str, Any] = {"loads": light("15s"), "topology": POSTGRES_ALONE, "repetitions": 1}
    manifest = run_manifest("alone", [AXUM], egress=egress, **small)
    run = cluster.apply(manifest)
    cluster.wait(run, "its first trial", lambda status: status.get("state") == "Running", 90)
    # A pod of the run, as a server's image would be one.
    uid = cluster.get("benchmarkrun", run)["metadata"]["uid"]
    inside = start("inside", {"laptime.dev/run-uid": uid})

    database = f"{run}-postgres"
    expected = {
        # By a name: DNS answers.
        ("inside", database, 5432): True,
        ("inside", outside, 8001): True,
        ("inside", outside, 8000): False,
        ("inside", "kubernetes.default.svc", 443): False,
        ("outside", database, 5432): False,
        ("outside", inside, 8000): False,
        # Whoever is of no run is left alone.
        ("outside", "kubernetes.default.svc", 443): True,
    }
    with ThreadPoolExecutor(len(expected)) as at_once:
        found = at_once.map(lambda way: reaches(*way), expected)
        assert dict(zip(expected, found, strict=True)) == expected
    assert cluster.status(run)["state"] == "Running"
    kubectl("delete", "pod", "inside", "-n", cluster.namespace, "--now")
    assert cluster.wait_end(run, 120)["state"] == "Succeeded"
    assert not any(one.startswith("NetworkPolicy/") for one in cluster.left_of(run))
