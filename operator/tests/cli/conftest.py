"""An API server of a few lines that holds BenchmarkRuns and ConfigMaps, for the commands."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import typer.main
import yaml

from laptime.api import KIND
from laptime.api.spec import CHANGEABLE
from tests.serving import served

RUNS = "/apis/laptime.dev/v1alpha1/namespaces/"
REFUSED_CHANGE = {
    "kind": "Status",
    "message": "BenchmarkRun is invalid",
    "details": {
        "causes": [
            {"field": "spec", "message": 'Invalid value: "object": only cancel can be changed'}
        ]
    },
}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave this process to whoever ends it: a command takes SIGTERM and SIGHUP for its own."""
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


UNAUTHORIZED: tuple[int, Any] = (401, {"kind": "Status", "message": "Unauthorized"})


def _node(name: str) -> dict[str, Any]:
    about = (
        *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion"),
        *("kubeProxyVersion", "kubeletVersion", "machineID", "operatingSystem", "osImage"),
        "systemUUID",
    )
    return {
        "metadata": {"name": name},
        "status": {
            "nodeInfo": {one: f"{one} of {name}" for one in about},
            "capacity": {"cpu": "4", "memory": "8Gi"},
        },
    }


def _other_spec(kept: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Return whether a run would be changed in what the API server lets nobody change."""
    if wanted["kind"] != KIND:
        return False
    there, asked = (
        {key: one for key, one in (document.get("spec") or {}).items() if key not in CHANGEABLE}
        for document in (kept, wanted)
    )
    return there != asked


def _merged(kept: Any, wanted: Any) -> Any:
    """Return what an apply makes of fields that another manager has."""
    if not (isinstance(kept, dict) and isinstance(wanted, dict)):
        return wanted
    return {**kept, **{key: _merged(kept.get(key), one) for key, one in wanted.items()}}


class FakeApiServer:
    """Answers GET, POST, PUT, server-side apply and DELETE; remembers what was asked."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.accepted: list[str] = []
        """What answers each request asked for."""
        self.impersonated: list[dict[str, str]] = []
        """As whom each request acts, by the headers that say it."""
        self.applied: list[dict[str, Any]] = []
        self.refuse: tuple[int, dict[str, Any] | str] | None = None
        self.refuse_judged: tuple[int, dict[str, Any] | str] | None = None
        """What it answers to whoever only asks whether it would take something."""
        self.statuses: list[dict[str, Any]] = []
        """What the operator would write: each read of a run takes the next one, the last stays."""
        self.status_of_new: dict[str, Any] = {}
        self.deleted: set[str] = set()
        self.others_applied = False
        """Whether the fields of what is there are another manager's."""
        self.may_list_results = True
        self.may_read_scenarios = True
        self.token: str | None = None
        """The only one that it accepts; None: it takes any, and none."""
        self.nodes: list[str] = []
        """Their names; without any nobody may look at them."""
        self.resizes = True
        """Whether it is of Kubernetes 1.33 or later."""
        self.collected_after = 1
        """At which look for the results of a deleted run they are gone."""
        self._uids = 0
        self._lost: tuple[str, str] | None = None
        self._lost_after: tuple[str, str] | None = None
        self._losses = 0

    def lose(
        self, times: int, method: str, path: str, after: tuple[str, str] | None = None
    ) -> None:
        """Have the next requests that begin so answered by 429; `after`: once one was asked."""
        self._losses, self._lost, self._lost_after = times, (method, path), after

    def _nodes(self, where: str, path: str) -> tuple[int, dict[str, Any]]:
        if not self.nodes:
            return 403, {"kind": "Status", "message": "nodes is forbidden"}
        listed = [_node(name) for name in self.nodes]
        if where.endswith("/nodes"):
            most = int(parse_qs(urlsplit(path).query).get("limit", ["500"])[0])
            more = {"continue": str(most)} if most < len(listed) else {}
            return 200, {"items": listed[:most], "metadata": more}
        found = [one for one in listed if one["metadata"]["name"] == where.rsplit("/", 1)[1]]
        return (200, found[0]) if found else (404, {"kind": "Status", "message": "not found"})

    def _is_lost(self, method: str, path: str) -> bool:
        if self._lost_after == (method, path.partition("?")[0]):
            self._lost_after = None
        elif self._lost_after is not None:
            return False
        if not self._losses or self._lost is None or method != self._lost[0]:
            return False
        lost = path.startswith(self._lost[1])
        self._losses -= lost
        return lost

    def put(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        self._uids += 1
        name = path.rsplit("/", 1)[1]
        namespace = path.split("/namespaces/")[1].split("/")[0]
        document = document | {
            "metadata": {
                "creationTimestamp": "2026-01-01T00:00:00Z",
                **document.get("metadata", {}),
                "name": name,
                "namespace": namespace,
                "uid": f"uid-{self._uids}",
            }
        }
        self.objects[path] = document
        return document

    def list(self, where: str, path: str) -> dict[str, Any]:
        """Return the objects of a collection by label, in pages of ten."""
        query = parse_qs(urlsplit(path).query)
        self._collect_garbage(query)
        wanted = [one.split("=") for one in query.get("labelSelector", [""])[0].split(",") if one]
        found = []
        for name, document in sorted(self.objects.items()):
            labels = document["metadata"].get("labels", {})
            everywhere = where == "/apis/laptime.dev/v1alpha1/benchmarkruns" and (
                "/benchmarkruns/" in name
            )
            if (everywhere or name.rsplit("/", 1)[0] == where) and all(
                # `label=value`, or only `label`: it is there.
                labels.get(one[0]) == one[1] if len(one) > 1 else one[0] in labels
                for one in wanted
            ):
                found.append(document)
        start = int(query.get("continue", ["0"])[0])
        more = str(start + 10) if start + 10 < len(found) else ""
        return {"items": found[start : start + 10], "metadata": {"continue": more}}

    def _collect_garbage(self, query: dict[str, Any]) -> None:
        """Delete what a deleted run has left, when it was looked for so many times."""
        if query.get("labelSelector", [""])[0].partition("=")[2] not in self.deleted:
            return
        self.collected_after -= 1
        if self.collected_after > 0:
            return
        for path, document in list(self.objects.items()):
            labels = document["metadata"].get("labels", {})
            if self.deleted & {labels.get(f"laptime.dev/{it}") for it in ("run-uid", "archive-of")}:
                del self.objects[path]

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any] | str]:
        self.requests.append((method, path))
        where, _, _ = path.partition("?")
        if self._is_lost(method, path):
            return 429, {"kind": "Status", "message": "too many requests"}
        if self.refuse is not None:
            return self.refuse
        if method in ("POST", "PUT", "PATCH") and "dryRun=All" in path:
            if self.refuse_judged is not None:
                return self.refuse_judged
            document = yaml.safe_load(body)
            kept = self.objects.get(where)
            if method == "PATCH" and kept is not None:
                if self.others_applied:
                    document["spec"] = _merged(kept["spec"], document["spec"])
                if _other_spec(kept, document):
                    return 422, REFUSED_CHANGE
            return 200, document
        if method == "POST":
            document = yaml.safe_load(body)
            self.applied.append(document)
            return 201, self.put(f"{where}/{document['metadata']['name']}", document)
        if method == "PUT":
            document = yaml.safe_load(body)
            self.applied.append(document)
            self.objects[where] = document
            return 200, document
        if method == "PATCH":
            document = yaml.safe_load(body)
            self.applied.append(document)
            kept = self.objects.get(where)
            if kept is not None:
                spec = document.get("spec")
                kept["spec"] = _merged(kept["spec"], spec) if self.others_applied else spec
                return 200, kept
            return 201, self.put(where, document | {"status": self.status_of_new})
        if where == "/version":
            return 200, {"major": "1", "minor": "34", "gitVersion": "v1.34.1"} | dict.fromkeys(
                ("buildDate", "compiler", "gitCommit", "gitTreeState", "goVersion", "platform"), ""
            )
        if where == "/api/v1/":
            one = {"kind": "Pod", "namespaced": True, "singularName": "", "verbs": ["patch"]}
            names = ["pods", "pods/resize"] if self.resizes else ["pods"]
            listed = [{**one, "name": name} for name in names]
            return 200, {"groupVersion": "v1", "resources": listed}
        if where.startswith("/api/v1/nodes"):
            return self._nodes(where, path)
        if where.endswith("/configmaps") and not self.may_list_results:
            return 403, {"kind": "Status", "message": "configmaps is forbidden"}
        if "/benchmarkscenarios/" in where and not self.may_read_scenarios:
            return 403, {"kind": "Status", "message": "benchmarkscenarios is forbidden"}
        if where.endswith(("/configmaps", "/benchmarkruns")):
            return 200, self.list(where, path)
        if where not in self.objects:
            kind, name = where.rsplit("/", 2)[1:]
            return 404, {
                "kind": "Status",
                "message": f'{kind} "{name}" not found',
                "details": {"kind": kind, "name": name},
            }
        if method == "DELETE":
            self.deleted.add(self.objects[where]["metadata"]["uid"])
            return 200, self.objects.pop(where)
        if where.startswith(RUNS) and self.statuses:
            status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
            self.objects[where]["status"] = status
        return 200, self.objects[where]


def own_scenario(path: str) -> dict[str, Any]:
    answer = {"contentType": "application/json", "expected": {"share": 1.0}}
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkScenario",
        "metadata": {"name": "desk"},
        "spec": {
            "data": {"postgres": {"schema": [{"configMap": {"name": "sql", "key": "a.sql"}}]}},
            "requests": [{"name": "front", "path": path}],
            "checks": [{"name": "front", "path": path, **answer}],
        },
    }


@pytest.fixture
def api_server() -> Iterator[tuple[FakeApiServer, int]]:
    fake = FakeApiServer()

    class Handler(BaseHTTPRequestHandler):
        def do_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            fake.accepted.append(self.headers.get("Accept", ""))
            acts_as = {key: one for key, one in self.headers.items() if key.startswith("Imp")}
            fake.impersonated.append(acts_as)
            body = self.rfile.read(length)
            if fake.token is not None and self.headers["Authorization"] != f"Bearer {fake.token}":
                status, answer = UNAUTHORIZED
            else:
                status, answer = fake.answer(self.command, self.path, body)
            text = answer if isinstance(answer, str) else json.dumps(answer)
            self.send_response(status)
            self.send_header(
                "Content-Type", "text/plain" if isinstance(answer, str) else "application/json"
            )
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_PATCH = do_DELETE = do_POST = do_PUT = do_any

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield fake, port


@pytest.fixture
def fake(api_server: tuple[FakeApiServer, int]) -> FakeApiServer:
    return api_server[0]


@pytest.fixture
def kubeconfig(api_server: tuple[FakeApiServer, int], tmp_path: Path) -> Path:
    return write_kubeconfig(tmp_path, f"http://127.0.0.1:{api_server[1]}")


def write_kubeconfig(folder: Path, server: str) -> Path:
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [{"name": "test", "cluster": {"server": server}}],
                "users": [{"name": "test", "user": {}}],
                "contexts": [
                    {
                        "name": "test",
                        "context": {"cluster": "test", "user": "test", "namespace": "team"},
                    }
                ],
            }
        )
    )
    return path


@pytest.fixture
def unreachable_kubeconfig(tmp_path: Path) -> Path:
    # Port 1 needs no reservation: nothing of an ordinary machine listens there.
    return write_kubeconfig(tmp_path, "http://127.0.0.1:1")


@pytest.fixture
def finished_status() -> dict[str, Any]:
    def row(server: str, rate: float, factor: float, published: float) -> dict[str, Any]:
        latency = dict.fromkeys(("meanSeconds", "p80Seconds", "p90Seconds", "maxSeconds"), 0.01) | {
            "p50Seconds": 0.0154,
            "p99Seconds": 0.0291,
            "p999Seconds": 1.404,
        }
        return {
            "server": server,
            "load": "closed",
            "state": "Measured",
            "trials": 5,
            "requests": 50_000,
            "errors": 0,
            "errorRate": 0.0,
            "requestsPerSecond": {"value": rate, "low": rate - 8, "high": rate + 8},
            "latency": latency,
            "factor": {"value": factor, "low": factor - 0.5, "high": factor + 0.5},
            "publishedFactor": published,
            "validity": "valid",
        }

    return {
        "state": "Succeeded",
        "verdict": "axum is the fastest.",
        "baseline": "fastapi",
        "seed": 7,
        "progress": {"completed": 10, "total": 10, "percent": 100, "text": "10/10"},
        "fastest": "axum",
        "results": [row("fastapi", 612, 1, 1), row("axum", 15_363, 25.1, 25.1)],
        "resultsConfigMap": "demo-results",
        "conditions": [
            {
                "type": "Succeeded",
                "status": "True",
                "reason": "Measured",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }


@pytest.fixture
def manifest() -> dict[str, Any]:
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "demo"},
        "spec": {
            "scenario": "users",
            "servers": [
                {"name": "fastapi", "preset": "fastapi-sync"},
                {"name": "axum", "preset": "axum-sqlx"},
            ],
            "topology": {"postgres": {}},
            "loads": [{"name": "closed", "closed": {"connections": 10, "duration": "5s"}}],
        },
    }


@pytest.fixture
def manifest_file(manifest: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "demo.yaml"
    path.write_text(yaml.safe_dump(manifest))
    return path


# A process has one command, and makes all of them anew each time: a quarter of these tests.
_command = cache(typer.main.get_command)


@pytest.fixture
def laptime(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Run a command; returns exit code, output and errors."""
    from laptime.cli import follow, main, patience

    monkeypatch.setattr(typer.main, "get_command", _command)
    monkeypatch.setattr(patience, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.01)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main.run_command([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call
