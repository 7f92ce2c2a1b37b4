"""Pods of a run reach each other, DNS and what the run names, and nobody else reaches them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from conftest import OPERATOR_NAMESPACE, Tool

from .harness import AXUM, POSTGRES_ALONE, Cluster, light, run_manifest
from .test_scripts import own_script

PROMETHEUS = (
    f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/laptime-prometheus:9090/proxy/api/v1"
)
SERVES = """
import http.server, socket, threading
class Server(http.server.HTTPServer):
    address_family = socket.AF_INET6 # and IPv4 too
for port in (8000, 8001):
    server = Server(("", port), http.server.SimpleHTTPRequestHandler)
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
    egress = [{"cidr": str(ip_network(outside)), "ports": [8001]}]
    # Long enough to try all ways while it is measured.
    small: dict[str, Any] = {"loads": light("24s"), "topology": POSTGRES_ALONE, "repetitions": 1}
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
    # A policy comes to hold a moment after its pods have their addresses, as Kubernetes says.
    deadline = time.monotonic() + 15
    while reaches("inside", outside, 8000) or reaches("outside", inside, 8000):
        assert time.monotonic() < deadline, "the policies do not come to hold"
    with ThreadPoolExecutor(len(expected)) as at_once:
        found = at_once.map(lambda way: reaches(*way), expected)
        assert dict(zip(expected, found, strict=True)) == expected
    assert cluster.status(run)["state"] == "Running"
    kubectl("delete", "pod", "inside", "-n", cluster.namespace, "--now")
    assert cluster.wait_end(run, 120)["state"] == "Succeeded"
    assert not any(one.startswith("NetworkPolicy/") for one in cluster.left_of(run))


REACHES = """
import http from 'k6/http';
import {{ check, sleep }} from 'k6';
const places = {places};
const token = (() => {{
  try {{
    return open('/var/run/secrets/kubernetes.io/serviceaccount/token');
  }} catch (_) {{
    return null;
  }}
}})();
export const options = {{
  scenarios: {{
    // A policy comes to hold a moment after its pod has an address.
    attempts: {{
      executor: 'per-vu-iterations', vus: 1, iterations: 1, exec: 'attempts', startTime: '4s',
    }},
    load: {{ executor: 'constant-vus', vus: 1, duration: '12s' }},
  }},
}};
// Whoever is reached answers, with an error at least, or resets the connection (1220).
const closed = (answer) =>
  answer.status === 0 &&
  (answer.error_code === 1050 || (answer.error_code >= 1100 && answer.error_code < 1220));
export function attempts() {{
  const names = Object.keys(places);
  const answers = http.batch(
    names.map((name) => ['GET', `http://${{places[name]}}/`, null, {{ timeout: '2s' }}]),
  );
  names.forEach((name, place) => check(answers[place], {{ [`${{name}} is closed`]: closed }}));
  check(token, {{ 'there is no token': (found) => found === null }});
}}
export default function () {{
  const answer = http.get(`${{__ENV.TARGET}}/`, {{ tags: {{ name: 'list' }} }});
  check(answer, {{ 'its server is open': (a) => a.status === 200 }});
  sleep(0.05);
}}
"""


def address_of_node(cluster: Cluster) -> str:
    (node, *_) = cluster.reader.get("/api/v1/nodes")["items"]
    found = {one["type"]: one["address"] for one in node["status"]["addresses"]}
    address: str = found["InternalIP"]
    return address


def in_url(address: str, port: int = 8000) -> str:
    """Return it as it stands in a URL."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


ANSWERS = """
import http.server, socket, sys, threading
class Server(http.server.HTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
for address in sys.argv[1:]:
    server = Server((address, 8000), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever).start()
print("there", flush=True)
"""
BEYOND = {"the network": "203.0.113.7", "the cloud's metadata": "169.254.169.254"}
BEYOND_IPV6 = {"the network": "2001:db8::7", "the cloud's metadata": "fd00:ec2::254"}


@contextmanager
def beyond(kubeconfig: str, addresses: dict[str, str]) -> Iterator[dict[str, str]]:
    """Have somebody answer at addresses outside of the cluster; give them with their ports.

    The embedded cluster has no way out, so they stand on each of its nodes. Of another cluster
    nobody knows.
    """
    folder = Path("/run") / Path(kubeconfig).parent.name / "namespaces"
    nodes = [one / "network" for one in sorted(folder.glob("laptime*"))]
    with ExitStack() as stack:
        for network in nodes:
            stack.enter_context(_answering(network, list(addresses.values())))
        yield {name: in_url(address) for name, address in addresses.items()} if nodes else {}


@contextmanager
def _answering(network: Path, addresses: list[str]) -> Iterator[None]:
    inside = ["nsenter", f"--net={network}"]
    try:
        for address in addresses:
            # What was left by a test that was killed may stand there.
            subprocess.run([*inside, "ip", "address", "replace", address, "dev", "lo"], check=True)
        command = [*inside, sys.executable, "-c", ANSWERS, *addresses]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as there:
            try:
                assert there.stdout is not None
                assert there.stdout.readline() == b"there\n"
                yield
            finally:
                there.kill()
    finally:
        for address in addresses:
            subprocess.run([*inside, "ip", "address", "del", address, "dev", "lo"], check=False)


@pytest.fixture
def outer(kubeconfig: str, cluster: Cluster) -> Iterator[dict[str, str]]:
    """Places outside of the cluster that answer."""
    on_ipv6 = ":" in address_of_node(cluster)
    with beyond(kubeconfig, BEYOND_IPV6 if on_ipv6 else BEYOND) as places:
        yield places


def test_a_script_reaches_its_server_and_nobody_else(
    cluster: Cluster, kubectl: Tool, image: str, outer: dict[str, str]
) -> None:
    """Each attempt is a check of its own; and what is live of a script is there while it runs."""
    pods: dict[str, dict[str, str]] = {
        "outside": {},
        # As a pod of another run has it: runs have their turns one after the other.
        "another": {"laptime.dev/run-uid": "of-another-run"},
    }
    for name, labels in pods.items():
        cluster.apply(pod(name, image, labels))
    ready = ("--for=condition=Ready", "--timeout=60s", "-n", cluster.namespace)
    kubectl("wait", *ready, "pod/outside", "pod/another")
    service = f"{OPERATOR_NAMESPACE}.svc"
    places = {
        "another run": in_url(cluster.get("pod", "another")["status"]["podIP"]),
        "the operator": f"laptime-operator.{service}:8081",
        "Prometheus": f"laptime-prometheus.{service}:9090",
        "the API server": "kubernetes.default.svc:443",
        "the node": in_url(address_of_node(cluster), 10250),
        **outer,
    }

    def reaches(place: str) -> bool:
        host, _, port = place.rpartition(":")
        command = ("--", "python3", "-c", CONNECTS, host.strip("[]"), port)
        return kubectl.run("exec", "-n", cluster.namespace, "outside", *command).returncode == 0

    # Whoever is of no run reaches all of them: else nothing would be shown.
    with ThreadPoolExecutor(len(places)) as at_once:
        assert all(at_once.map(reaches, places.values())), places
    source = REACHES.format(places=json.dumps(places))
    script = {"configMap": own_script(cluster, "reaches", source), "warmup": "0s"}
    manifest = run_manifest(
        "reaches",
        [AXUM],
        loads=[{"name": "own", "script": {**script, "duration": "20s"}}],
        topology=POSTGRES_ALONE,
        repetitions=1,
    )
    run = cluster.apply(manifest)
    status = cluster.wait_end(run, 120)
    (row,) = status["results"]
    found = {one["name"]: (one["passed"], one["failed"]) for one in row["script"]["checks"]}
    assert found.pop("its server is open")[1] == 0, found
    expected = [*(f"{name} is closed" for name in places), "there is no token"]
    assert found == dict.fromkeys(expected, (1, 0))
    assert row["validity"] != "invalid", row
    # None of them is taken for the server.
    assert {(one["requests"], one["errors"]) for one in row["script"]["otherHosts"]} == {(1, 1)}
    assert row["errors"] == 0
    live = f'laptime_generator_requests_total{{run="{run}",namespace="{cluster.namespace}"}}'
    counted = cluster.reader.get(f"{PROMETHEUS}/query", query=f"max_over_time({live}[10m])")
    assert counted["data"]["result"], "no scrape has seen a request while the script ran"
