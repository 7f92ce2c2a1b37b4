"""Services that are there already: driven and checked, and left as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conftest import Tool

from . import strangers
from .harness import Cluster, condition, light, run_manifest
from .own_services import OVER_TLS, certificate, deployment, service

GO = "docker.io/laptime/server-go-nethttp:0.1.0"
SECRET = "Bearer of good news"
# Answers `GET /hi` over TLS to whom it knows, and says at /ready that it serves.
SERVES = """
import http.server, ssl
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        known = self.headers["Authorization"] == "Bearer of good news"
        body = b'{"hello": "world"}'
        self.send_response(200 if known and self.path in ("/hi", "/ready") else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
"""


def identity(cluster: Cluster, name: str) -> tuple[Any, ...]:
    """Return what shows a change of a Service and of its pods."""
    metadata = cluster.get("service", name)["metadata"]
    pods = cluster.items("pods", f"app={name}")
    return (
        metadata["uid"],
        metadata["resourceVersion"],
        *((one["metadata"]["uid"], one["metadata"]["labels"]) for one in pods),
        *(one["status"]["containerStatuses"][0]["restartCount"] for one in pods),
    )


def test_services_of_the_namespace_are_driven_and_stay_as_they_are(
    cluster: Cluster, kubectl: Tool, image: str, tmp_path: Path
) -> None:
    listens = {"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}
    own = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    cluster.apply(deployment("plain", {"image": GO, "env": [own], **listens}, []))
    ports = [{"name": "web", "port": 80, "targetPort": 8080}]
    cluster.apply(service("plain", selector={"app": "plain"}, ports=ports))
    tls = certificate(tmp_path, f"secure.{cluster.namespace}.svc")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tls"}, "data": tls}
    cluster.apply(config)
    secret = {"stringData": {"laptime-authorization": SECRET, "other": "for nobody"}}
    metadata = {"name": "client"}
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **secret})
    python = {
        "image": image,
        "command": ["python3", "-c", SERVES + OVER_TLS],
        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
        "readinessProbe": {"tcpSocket": {"port": 8443}, "periodSeconds": 1},
    }
    volume = {"name": "tls", "configMap": {"name": "tls"}}
    cluster.apply(deployment("secure", python, [volume]))
    ports = [{"port": 443, "targetPort": 8443}]
    cluster.apply(service("secure", selector={"app": "secure"}, ports=ports))
    cluster.apply(service("outside", type="ExternalName", externalName="example.org"))
    for name in ("plain", "secure"):
        kubectl("rollout", "status", f"deployment/{name}", "-n", cluster.namespace)
    before = {name: identity(cluster, name) for name in ("plain", "secure")}

    known = {
        "name": "secure",
        "port": 443,
        "healthPath": "/ready",
        "tls": {"configMap": "tls"},
        "credentials": "client",
    }
    servers = [
        {"name": "plain", "service": {"name": "plain", "portName": "web"}},
        {"name": "secure", "service": known},
        {"name": "outside", "service": {"name": "outside", "port": 80}},
    ]
    manifest = run_manifest(
        "there", servers, scenario="hello", topology={}, loads=light("5s"), repetitions=1
    )
    run = cluster.apply(manifest)
    status = cluster.wait_end(run, 180)
    assert {name: identity(cluster, name) for name in before} == before

    out = {one["name"]: one.get("reason") for one in status["servers"]}
    assert out == {"plain": None, "secure": None, "outside": "ServiceRefused"}
    assert "example.org (ExternalName)" in condition(status, "ServersVerified")["message"]
    results = {one["server"]: one for one in cluster.documents(run).values()}
    assert set(results) == {"plain", "secure"}
    for result in results.values():
        assert result["figures"]["errors"] == 0, result
        assert result["attempt"] == 1, result
    rows = {one["server"]: one for one in status["results"]}
    for name in ("plain", "secure"):
        assert rows[name]["validity"] == "doubtful"
        said = " ".join(rows[name]["validityReasons"])
        assert f"Service {name} was there before" in said
        assert f"whether others used Service {name}" in said
        assert rows[name]["limitedBy"]["cause"] != "serverCpu"
    # What it was, the kubelet says.
    assert (
        "server-go-nethttp" in results["plain"]["images"]["server"]
        or "sha256:" in (results["plain"]["images"]["server"])
    )
    assert not any(one.startswith("NetworkPolicy/") for one in cluster.left_of(run))
    everything = json.dumps([one for one in cluster.stored(run).objects]) + json.dumps(status)
    assert "good news" not in everything


def test_a_pod_that_is_replaced_in_mid_trial_makes_the_trial_be_repeated(
    cluster: Cluster, kubectl: Tool, operator: str
) -> None:
    listens = {"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}
    cluster.apply(deployment("replaced", {"image": GO, **listens}, []))
    ports = [{"port": 80, "targetPort": 8080}]
    cluster.apply(service("replaced", selector={"app": "replaced"}, ports=ports))
    kubectl("rollout", "status", "deployment/replaced", "-n", cluster.namespace)
    servers = [{"name": "mine", "service": {"name": "replaced", "port": 80}}]
    manifest = run_manifest(
        "replaced", servers, scenario="hello", topology={}, loads=light("12s"), repetitions=1
    )
    # Names that the run would use: that of the policy to the Service, and of the second attempt.
    theirs = [
        strangers.make(cluster, "NetworkPolicy", "replaced-to-mine"),
        strangers.make(cluster, "Job", "replaced-trial-001-attempt-2"),
    ]
    run = cluster.apply(manifest)
    running = "laptime.dev/component=generator"
    cluster.wait(
        run,
        "its generator",
        lambda _: any(
            one["status"]["phase"] == "Running" for one in cluster.items("pods", running)
        ),
        90,
    )
    replaced = {"labelSelector": "app=replaced", "gracePeriodSeconds": "1"}
    cluster.reader.delete(cluster.path("pods"), **replaced)
    assert cluster.wait_end(run, 180)["state"] == "Succeeded"
    (result,) = cluster.documents(run).values()
    assert [one["reason"] for one in result["lostAttempts"]] == ["ServiceUnsteady"]
    assert result["attempt"] == 2
    assert result["figures"]["errors"] == 0
    for one in theirs:
        strangers.untouched(cluster, one)
