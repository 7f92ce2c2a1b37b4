"""What a cluster adds to the pods of a run: kept off where it listens, and said where not."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conftest import Tool

from .harness import AXUM, POSTGRES_ALONE, Cluster, light, run_manifest
from .own_services import OVER_TLS, certificate, deployment, service

HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
# Adds a container to each pod that it is asked about, named as the path that it is asked at.
ADDS = """
import base64, http.server, json, ssl, sys
WAITS = "import signal, sys; signal.signal(15, lambda *_: sys.exit()); signal.pause()"
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        added = {
            "name": self.path.split("?")[0].strip("/"),
            "image": sys.argv[1],
            "imagePullPolicy": "IfNotPresent",
            "command": ["python3", "-c", WAITS],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        # The first of all, as a mesh does that holds the others up.
        patch = [{"op": "add", "path": "/spec/containers/0", "value": added}]
        review["response"] = {
            "uid": review["request"]["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
        }
        del review["request"]
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
"""
LIMIT = {"limits": [{"type": "Container", "default": {"cpu": "900m"}}]}


@contextmanager
def webhooks(cluster: Cluster, kubectl: Tool, image: str, folder: Path) -> Iterator[None]:
    """Have a mesh add a proxy to all pods of runs but those that say no, as Istio's selector does;

    and somebody who does not ask add a container to all servers.
    """
    tls = certificate(folder, f"hook.{cluster.namespace}.svc")
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tls"}, "data": tls}
    )
    python = {
        "image": image,
        "command": ["python3", "-c", ADDS + OVER_TLS, image],
        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
        "readinessProbe": {"tcpSocket": {"port": 8443}, "periodSeconds": 1},
    }
    volume = {"name": "tls", "configMap": {"name": "tls"}}
    cluster.apply(deployment("hook", python, [volume]))
    ports = [{"port": 443, "targetPort": 8443}]
    cluster.apply(service("hook", selector={"app": "hook"}, ports=ports))
    ready = ("rollout", "status", "deployment/hook", "--timeout=60s")
    kubectl(*ready, "-n", cluster.namespace)
    of_runs = {"key": "laptime.dev/run", "operator": "Exists"}
    willing = {"key": "sidecar.istio.io/inject", "operator": "NotIn", "values": ["false"]}
    selectors: dict[str, dict[str, Any]] = {
        "istio-proxy": {"matchExpressions": [of_runs, willing]},
        "watcher": {"matchLabels": {"laptime.dev/component": "server"}},
    }
    name = f"laptime-e2e-{cluster.namespace}"
    here = {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}
    configuration = {
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": f"{added}.laptime.example",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 5,
                "namespaceSelector": here,
                "objectSelector": selector,
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
                "clientConfig": {
                    "caBundle": base64.b64encode(tls["ca.crt"].encode()).decode(),
                    "service": {
                        "name": "hook",
                        "namespace": cluster.namespace,
                        "path": f"/{added}",
                    },
                },
            }
            for added, selector in selectors.items()
        ],
    }
    cluster.reader.create(HOOKS, configuration)
    try:
        yield
    finally:
        cluster.reader.delete(f"{HOOKS}/{name}", missing_ok=True)


def containers_of(cluster: Cluster, kubectl: Tool, image: str, **labels: str) -> list[str]:
    """Return the containers that a pod with these labels would have; none is made."""
    template = deployment("probe", {"image": image}, [])["spec"]["template"]
    probe = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "labels": labels},
        "spec": template["spec"],
    }
    dry = ("create", "--dry-run=server", "-o", "json", "-n", cluster.namespace, "-f", "-")
    done = kubectl.run(*dry, stdin=json.dumps(probe))
    if done.returncode != 0:
        return []
    return [one["name"] for one in json.loads(done.stdout)["spec"]["containers"]]


def test_a_mesh_is_kept_off_and_what_is_added_all_the_same_is_said(
    cluster: Cluster, kubectl: Tool, image: str, tmp_path: Path
) -> None:
    """So is a limit that a LimitRange sets, and a pull Secret that is missing."""
    private = {"name": "private", "image": "docker.io/laptime/there-is-no-such-image:1"}
    with webhooks(cluster, kubectl, image, tmp_path):
        path = f"/api/v1/namespaces/{cluster.namespace}/limitranges"
        cluster.reader.create(path, {"metadata": {"name": "default"}, "spec": LIMIT})
        # The API server takes a moment to know of them, and then both do what they are there for.
        labels = {"laptime.dev/run": "x", "laptime.dev/component": "server"}
        deadline = time.monotonic() + 30
        while set(containers_of(cluster, kubectl, image, **labels)) != {
            *("main", "istio-proxy", "watcher")
        }:
            assert time.monotonic() < deadline, "the webhooks are not asked"
            time.sleep(0.2)
        run = cluster.apply(
            run_manifest(
                "injected",
                [AXUM, private],
                loads=light(),
                topology=POSTGRES_ALONE,
                repetitions=1,
                imagePullSecrets=[{"name": "regcred"}],
                startupTimeout="16s",
            )
        )
        status = cluster.wait_end(run, 180)
    servers = {one["name"]: one for one in status["servers"]}
    assert servers["axum"]["state"] == "Verified", servers
    said = servers["private"]
    assert (said["state"], said["reason"]) == ("Failed", "ImagePullFailed"), said
    assert "There is no Secret regcred in the run's namespace" in said["message"]
    (trial,) = cluster.documents(run).values()
    assert trial["validity"] == "doubtful", trial["validityReasons"]
    reasons = [one for one in trial["validityReasons"] if one.startswith("the cluster ")]
    parts = ("server axum", "the generator", "Postgres")
    assert set(reasons) == {
        "the cluster added container watcher to the pod of server axum: what it does there is in "
        "the figures",
        *(
            f"the cluster limits {part} to 900m of CPU, and nobody asked for a limit"
            for part in parts
        ),
    }
    # The image of a server is that of its own container, wherever others stand.
    assert servers["axum"]["image"] != image
    (row,) = (one for one in status["results"] if one["server"] == "axum")
    assert {f"{one} (in 1 of 1 repetition)" for one in reasons} <= set(row["validityReasons"])
