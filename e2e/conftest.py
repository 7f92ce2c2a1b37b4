"""What the end-to-end tests stand on: a cluster, kubectl, Helm, what the chart renders, and a
namespace of their own.

The cluster is the one that KUBECONFIG names, else the embedded one, which must be up
(`make cluster`).
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "laptime"
CRD_FILE = ROOT / "crds" / "laptime.dev_benchmarkruns.yaml"
CRD_NAME = "benchmarkruns.laptime.dev"
OPERATOR_NAMESPACE = "laptime-system"
RELEASE = "laptime"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
"""What the Pod Security level `restricted` asks of a container, and a read-only root."""


class Tool:
    """A command-line program with the cluster's access in its environment."""

    def __init__(self, program: str, kubeconfig: str) -> None:
        self._program = program
        self._environment = {**os.environ, "KUBECONFIG": kubeconfig}

    def run(
        self, *arguments: str, stdin: str | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Return the finished process, whatever its exit code; seconds of time-out."""
        return subprocess.run(
            [self._program, *arguments],
            input=stdin,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 120) -> str:
        """Return the standard output; fail the test with everything it said on an error."""
        done = self.run(*arguments, stdin=stdin, timeout=timeout)
        if done.returncode != 0:
            pytest.fail(f"{self._program} {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *arguments: str, stdin: str | None = None) -> Any:
        """Return the standard output parsed as JSON."""
        return json.loads(self(*arguments, stdin=stdin))


class Api:
    """Asks the API server over one connection: a process of kubectl each time costs a quarter of a
    CPU-second, and most of what tests ask and write they ask and write again and again.
    """

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content: str = "application/json",
        accept: str = "application/json",
        **query: str,
    ) -> tuple[int, bytes]:
        """Return status and content of any answer."""
        headers = {"Accept": accept, **({} if body is None else {"Content-Type": content})}
        request = self._api.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        answer = self._api.call_api(*request, _request_timeout=60)
        return answer.status, answer.read()

    def get(self, path: str, **query: str) -> Any:
        """Return the JSON document at a path; fail the test with the server's words on an error."""
        return self._document("GET", path, self.ask("GET", path, **query))

    def find(self, path: str) -> Any:
        """Return the JSON document at a path; None if there is none."""
        answer = self.ask("GET", path)
        return None if answer[0] == 404 else self._document("GET", path, answer)

    def text(self, path: str) -> str:
        """Return what is at a path, through the API server's proxy perhaps; "" on an error."""
        status, data = self.ask("GET", path, accept="*/*")
        return data.decode() if status == 200 else ""

    def names(self, path: str, **query: str) -> list[str]:
        """Return the names of the objects of a list, without what is in them."""
        kind = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        found = self._document("GET", path, self.ask("GET", path, accept=kind, **query))
        # Of none it is null.
        return [one["metadata"]["name"] for one in found["items"] or ()]

    def changes(self, path: str, name: str, version: str, seconds: int) -> Iterator[dict[str, Any]]:
        """Yield what happens to an object of the list at a path from a version on, as watches say.

        It ends after so many seconds.
        """
        request = self._api.param_serialize(
            "GET",
            path,
            query_params=[
                ("watch", "1"),
                ("fieldSelector", f"metadata.name={name}"),
                ("resourceVersion", version),
                ("timeoutSeconds", str(seconds)),
            ],
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
        )
        answer = self._api.call_api(*request, _request_timeout=seconds + 10)
        if answer.status != 200:
            return
        rest = b""
        for piece in answer.response.stream():
            *lines, rest = (rest + piece).split(b"\n")
            yield from map(json.loads, lines)

    def create(self, path: str, manifest: dict[str, Any]) -> Any:
        """Create an object in the list at a path; return it."""
        answer = self.ask("POST", path, manifest, fieldValidation="Strict")
        return self._document("POST", path, answer)

    def apply(self, path: str, manifest: dict[str, Any]) -> Any:
        """Apply an object at its path, server-side; return it."""
        answer = self.ask(
            *("PATCH", path, manifest),
            content="application/apply-patch+yaml",
            fieldManager="e2e",
            force="true",
            fieldValidation="Strict",
        )
        return self._document("PATCH", path, answer)

    def merge(self, path: str, patch: dict[str, Any]) -> Any:
        """Merge a patch into the object at a path; return it."""
        answer = self.ask("PATCH", path, patch, content="application/merge-patch+json")
        return self._document("PATCH", path, answer)

    def delete(self, path: str, *, missing_ok: bool = False, **query: str) -> None:
        """Delete an object, or those of a list, and in the background what they own."""
        answer = self.ask("DELETE", path, propagationPolicy="Background", **query)
        if not (missing_ok and answer[0] == 404):
            self._document("DELETE", path, answer)

    def _document(self, method: str, path: str, answer: tuple[int, bytes]) -> Any:
        status, data = answer
        if not 200 <= status < 300:
            pytest.fail(f"{method} {path}: {status} {data.decode(errors='replace')}")
        return json.loads(data)


class Rendered:
    """The objects that the chart renders with some values."""

    def __init__(self, helm: Tool, folder: Path, values: dict[str, Any]) -> None:
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        text = helm("template", RELEASE, str(CHART), "-n", OPERATOR_NAMESPACE, "-f", str(file))
        # The one written in C: CRD and dashboards take the other one seconds.
        documents = yaml.load_all(text, yaml.CSafeLoader)
        self.objects: list[dict[str, Any]] = [one for one in documents if one]

    def find(self, kind: str, name: str) -> dict[str, Any]:
        """Return the one object of that kind and name."""
        (found,) = (
            one for one in self.objects if one["kind"] == kind and one["metadata"]["name"] == name
        )
        return found

    def names(self, kind: str) -> list[str]:
        """Return the names of the objects of a kind, with their namespace where they have one."""
        return [
            "/".join(filter(None, (one["metadata"].get("namespace"), one["metadata"]["name"])))
            for one in self.objects
            if one["kind"] == kind
        ]

    def images(self) -> dict[str, Any]:
        """Return what the operator reads from its file of images."""
        document = json.loads(self.find("ConfigMap", "laptime-images")["data"]["images.json"])
        assert isinstance(document, dict)
        return document

    def pods(self) -> Iterator[dict[str, Any]]:
        """Yield the spec of each pod: the operator's and that of `helm test`."""
        for one in self.objects:
            if one["kind"] == "Deployment" and one["metadata"]["name"] == "laptime-operator":
                yield one["spec"]["template"]["spec"]
            elif one["kind"] == "Pod":
                yield one["spec"]

    def pod_of(self, kind: str, name: str) -> dict[str, Any]:
        """Return the spec of the pods of a workload."""
        pod = self.find(kind, name)["spec"]["template"]["spec"]
        assert isinstance(pod, dict)
        return pod

    def prometheus_url(self) -> str:
        """Return the address of the Prometheus that the operator asks; "" where there is none."""
        (container,) = self.pod_of("Deployment", "laptime-operator")["containers"]
        (url,) = (
            one["value"] for one in container["env"] if one["name"] == "LAPTIME_PROMETHEUS_URL"
        )
        return str(url)


def _cluster(*arguments: str) -> str:
    """Return the last line of a command of the embedded cluster; fail with what was wrong."""
    command = [sys.executable, str(ROOT / "cluster" / "cluster.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = f"{done.stdout}{done.stderr}".strip()
        pytest.fail(f"set KUBECONFIG or run `make cluster` (cluster.py {arguments[0]}: {said})")
    return done.stdout.strip().rpartition("\n")[2]


@pytest.fixture(scope="session")
def kubeconfig() -> str:
    """Path of the kubeconfig of the cluster under test."""
    if os.environ.get("KUBECONFIG"):
        return os.environ["KUBECONFIG"]
    path = _cluster("kubeconfig")
    if not Path(path).is_file():
        pytest.fail("no cluster: set KUBECONFIG or run `make cluster`")
    return path


@pytest.fixture(scope="session")
def kubectl(kubeconfig: str) -> Tool:
    """Run kubectl as the administrator of the cluster."""
    return Tool(_cluster("path", "kubectl"), kubeconfig)


@pytest.fixture(scope="session")
def helm(kubeconfig: str) -> Tool:
    """Run Helm as the administrator of the cluster."""
    return Tool(_cluster("path", "helm"), kubeconfig)


@pytest.fixture
def render(helm: Tool, tmp_path: Path) -> Any:
    """Return a function from values to what the chart renders."""
    return lambda **values: Rendered(helm, tmp_path, values)


@pytest.fixture(scope="session")
def api(kubeconfig: str) -> client.ApiClient:
    """The Python client, for what would take too long process by process."""
    configuration = client.Configuration()
    config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
    return client.ApiClient(configuration)


@pytest.fixture(scope="session")
def reader(api: client.ApiClient) -> Api:
    """Objects, and through the API server's proxy what services answer."""
    return Api(api)


@pytest.fixture(scope="session")
def crd(kubectl: Tool) -> dict[str, Any]:
    """The CRD of this checkout, installed in the cluster."""
    wanted: dict[str, Any] = yaml.safe_load(CRD_FILE.read_text())
    # Forced, because Helm may own it: what is tested is always the file of this checkout.
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD_FILE.parent))
    kubectl("wait", "--for=condition=Established", f"crd/{CRD_NAME}", "--timeout=30s")
    return wanted


@pytest.fixture(scope="session")
def release(helm: Tool, kubectl: Tool, crd: dict[str, Any]) -> str:
    """The release of the chart of this checkout; installed if there is none, else upgraded.

    It need not be ready: that is the business of the tests marked `operator`.
    """
    helm(
        *("upgrade", "--install", RELEASE, str(CHART), "--namespace", OPERATOR_NAMESPACE),
        *("--create-namespace", "--reset-then-reuse-values", "--take-ownership"),
    )
    return RELEASE


@pytest.fixture(scope="module")
def namespace(reader: Api) -> Iterator[str]:
    """A fresh namespace at the Pod Security level `restricted`, deleted afterwards."""
    name = f"e2e-{secrets.token_hex(4)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    reader.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    yield name
    reader.delete(f"/api/v1/namespaces/{name}")
