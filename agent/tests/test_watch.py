"""How the agent learns of pods, against scripted answers of an API server."""

from __future__ import annotations

import io
import json
import ssl
import subprocess
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from laptime_agent.pods import Pod
from laptime_agent.watch import ApiServer, PodWatch, Refused


class TheEnd(BaseException):
    """Nothing more was scripted."""


def wire(name: str, version: str = "1", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "uid": f"uid-{name}",
            "name": name,
            "namespace": "default",
            "resourceVersion": version,
            "labels": {
                "laptime.dev/run": "demo",
                "laptime.dev/run-uid": "uid-demo",
                "laptime.dev/component": "server",
            },
        },
        "spec": {},
        "status": status,
    }


def pod_list(*pods: dict[str, Any], version: str = "10") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}, "items": list(pods)}


class Cut(io.BytesIO):
    """An answer whose connection is lost after some lines."""

    def __init__(self, content: bytes, error: OSError) -> None:
        super().__init__(content)
        self._error = error

    def readline(self, *args: Any) -> bytes:
        if line := super().readline(*args):
            return line
        raise self._error


class ScriptedApi(ApiServer):
    def __init__(self, *answers: Any) -> None:
        super().__init__("api.example", 443, "token", None)
        object.__setattr__(self, "answers", iter(answers))
        object.__setattr__(self, "asked", [])
        object.__setattr__(self, "accepted", [])

    answers: Iterator[Any]
    asked: list[str]
    accepted: list[str]

    def get(self, path: str, timeout_seconds: float, accept: str) -> Any:
        self.asked.append(path)
        self.accepted.append(accept)
        answer = next(self.answers, TheEnd())
        if isinstance(answer, BaseException):
            raise answer
        lines = answer if isinstance(answer, list) else [answer]
        *lines, last = lines
        cut = isinstance(last, OSError)
        text = "".join(json.dumps(line) + "\n" for line in (lines if cut else [*lines, last]))
        return Cut(text.encode(), last) if cut else io.BytesIO(text.encode())


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    monkeypatch.setattr("laptime_agent.watch.sleep", made.append)
    return made


Run = Callable[..., tuple[PodWatch, list[set[str]], list[str]]]


@pytest.fixture
def run() -> Run:
    def play(
        *answers: Any, namespace: str | None = "default"
    ) -> tuple[PodWatch, list[set[str]], list[str]]:
        api = ScriptedApi(*answers)
        told: list[set[str]] = []

        def changed(pods: Mapping[str, Pod]) -> None:
            told.append({one.name for one in pods.values()})

        one = PodWatch(api, "node-1", namespace, changed)
        with pytest.raises(TheEnd):
            one._run_for_ever()
        return one, told, api.asked

    return play


def test_a_list_then_the_changes_since(run: Run) -> None:
    one, told, asked = run(
        pod_list(wire("a")),
        [
            {"type": "ADDED", "object": wire("b", "11")},
            {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "15"}}},
            {"type": "DELETED", "object": wire("a", "16")},
        ],
    )
    assert told == [{"a"}, {"a", "b"}, {"b"}]
    assert one.up
    first, second, third = (parse_qs(urlparse(path).query) for path in asked)
    assert first == {
        "fieldSelector": ["spec.nodeName=node-1"],
        "labelSelector": ["laptime.dev/run-uid"],
        # From the API server's memory, not from etcd by a quorum.
        "resourceVersion": ["0"],
    }
    assert second["resourceVersion"] == ["10"]
    assert second["watch"] == ["1"]
    assert third["resourceVersion"] == ["16"]
    assert all(urlparse(path).path == "/api/v1/namespaces/default/pods" for path in asked)


def test_all_namespaces(run: Run) -> None:
    _, _, asked = run(pod_list(), namespace=None)
    assert urlparse(asked[0]).path == "/api/v1/pods"


def test_of_neighbours_only_the_metadata_is_asked_for() -> None:
    told: list[set[str]] = []
    other = {"uid": "u", "name": "web", "namespace": "default", "resourceVersion": "11"}
    api = ScriptedApi(
        pod_list(),
        [{"type": "ADDED", "object": {"kind": "PartialObjectMetadata", "metadata": other}}],
    )
    one = PodWatch(
        api,
        "node-1",
        None,
        lambda pods: told.append({pod.name for pod in pods.values()}),
        neighbours=True,
    )
    with pytest.raises(TheEnd):
        one._run_for_ever()
    assert told == [set(), {"web"}]
    first = parse_qs(urlparse(api.asked[0]).query)
    assert first["labelSelector"] == ["!laptime.dev/run-uid"]
    assert first["fieldSelector"] == ["spec.nodeName=node-1"]
    # A list of one kind and objects of another: the API server refuses each in place of the other.
    assert [one.partition(";v=")[0] for one in api.accepted[:2]] == [
        "application/json;as=PartialObjectMetadataList",
        "application/json;as=PartialObjectMetadata",
    ]


def test_a_list_of_metadata_without_any_pod_is_null() -> None:
    """As API servers write it: in a namespace with nothing but runs there is no other pod."""
    told: list[set[str]] = []
    empty = {"metadata": {"resourceVersion": "10"}, "items": None}
    other = {"uid": "u", "name": "web", "namespace": "default", "resourceVersion": "11"}
    api = ScriptedApi(empty, [{"type": "ADDED", "object": {"metadata": other}}])
    one = PodWatch(
        api,
        "node-1",
        "default",
        lambda pods: told.append({pod.name for pod in pods.values()}),
        neighbours=True,
    )
    with pytest.raises(TheEnd):
        one._run_for_ever()
    assert told == [set(), {"web"}]


@pytest.mark.parametrize("answer", [None, [], {"items": 5}], ids=["null", "a list", "a number"])
def test_what_no_api_server_should_answer_does_not_end_it(run: Run, answer: Any) -> None:
    one, told, _ = run(answer, pod_list(wire("a")))
    assert told == [{"a"}]
    assert one.up


def test_watches_that_end_at_once_are_a_second_apart(run: Run, pauses: list[float]) -> None:
    ends = [{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "15"}}}]
    run(pod_list(), ends, ends, ends)
    assert len(pauses) == 3
    assert all(0.5 < one <= 1.0 for one in pauses)


def test_a_version_that_is_too_old_means_a_new_list(run: Run) -> None:
    _, told, asked = run(
        pod_list(wire("a")),
        [{"type": "ERROR", "object": {"code": 410, "message": "too old"}}],
        pod_list(wire("b")),
    )
    assert told == [{"a"}, {"b"}]
    assert "watch=1" not in asked[2]


def test_after_a_cut_it_goes_on_where_it_was(run: Run, pauses: list[float]) -> None:
    cut = [{"type": "ADDED", "object": wire("b", "11")}, OSError("connection reset")]
    one, told, asked = run(
        pod_list(wire("a")),
        cut,
        Refused(503, "starting"),
        [{"type": "DELETED", "object": wire("a", "12")}],
    )
    assert told == [{"a"}, {"a", "b"}, {"b"}]
    assert one.up
    later = [parse_qs(urlparse(path).query) for path in asked[1:]]
    assert [one["watch"] for one in later] == [["1"]] * 4
    assert [one["resourceVersion"] for one in later] == [["10"], ["11"], ["11"], ["12"]]
    assert pauses[:2] == [1.0, 2.0]


@pytest.mark.parametrize(
    "answer",
    [
        Refused(410, "too old"),
        [{"type": "ERROR", "object": {"code": 410, "message": "too old"}}],
        [{"type": "ADDED", "object": {}}],
    ],
    ids=["410", "410 in the watch", "not understood"],
)
def test_what_is_no_lost_connection_means_a_new_list(run: Run, answer: Any) -> None:
    _, told, asked = run(
        pod_list(wire("a")), OSError("connection reset"), answer, pod_list(wire("b"), version="20")
    )
    assert told == [{"a"}, {"b"}]
    listed = parse_qs(urlparse(asked[3]).query)
    assert "watch" not in listed
    # Another API server may be behind: nothing older than what is known already.
    assert listed["resourceVersion"] == ["10"]


def test_a_version_that_the_api_server_does_not_know_is_not_asked_for_twice(run: Run) -> None:
    restored = Refused(504, "Too large resource version")
    _, told, asked = run(pod_list(wire("a")), restored, restored, pod_list(wire("b"), version="3"))
    assert told == [{"a"}, {"b"}]
    versions = [parse_qs(urlparse(path).query)["resourceVersion"] for path in asked]
    assert versions == [["0"], ["10"], ["10"], ["0"], ["3"]]


def test_while_the_api_server_is_away_the_pods_stay(run: Run, pauses: list[float]) -> None:
    down = OSError("connection refused")
    one, told, _ = run(pod_list(wire("a")), down, down, down, down, down, down)
    assert told == [{"a"}]
    assert not one.up
    assert pauses == [1.0, 2.0, 5.0, 10.0, 10.0, 10.0]


def test_who_may_not_look_asks_again_later(run: Run, pauses: list[float]) -> None:
    one, told, _ = run(Refused(403, "forbidden"), pod_list(wire("a")))
    assert told == [{"a"}]
    assert pauses[0] == 1.0
    assert one.up


def test_a_pod_of_the_api_server() -> None:
    document = wire(
        "a",
        phase="Running",
        initContainerStatuses=[
            {"name": "old", "containerID": "containerd://0", "state": {"terminated": {}}},
            {"name": "exporter", "containerID": "containerd://1", "state": {"running": {}}},
        ],
        containerStatuses=[
            {"name": "server", "containerID": "cri-o://2", "state": {"running": {}}},
            {"name": "waits", "state": {"waiting": {}}},
        ],
    )
    document["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "f00"}
    document["metadata"]["labels"]["laptime.dev/trial"] = "demo-trial-001"
    pod = Pod.from_wire(document)
    assert pod.containers == {"exporter": "1", "server": "2"}
    assert pod.labels == {
        "run": "demo",
        "run_uid": "uid-demo",
        "component": "server",
        "server": "",
        "load": "",
        "trial": "demo-trial-001",
    }
    assert (pod.uid, pod.cgroup_uid) == ("uid-a", "f00")
    assert not pod.host_network
    assert not pod.over
    assert Pod.from_wire(wire("a", phase="Succeeded")).over


@pytest.mark.parametrize("uid", [None, ""])
def test_a_pod_that_only_has_the_name_of_a_run_is_of_none(uid: str | None) -> None:
    """Whoever makes pods can write it there, and the rest as well."""
    document = wire("a")
    labels = document["metadata"]["labels"]
    del labels["laptime.dev/run-uid"]
    if uid is not None:
        labels["laptime.dev/run-uid"] = uid
    assert not any(Pod.from_wire(document).labels.values())


LARGE = "x" * (255 * 2**10) + "\U0001f600"
"""As much as Kubernetes takes in annotations; in the memory each character has four bytes."""


class Streamed(io.RawIOBase):
    """A list whose items are made as they are read."""

    def __init__(self, items: Iterator[dict[str, Any]]) -> None:
        first = b'{"metadata":{"resourceVersion":"10"},"items":['
        self._parts = chain([first], self._each(items), [b"]}"])
        self._rest = b""

    @staticmethod
    def _each(items: Iterator[dict[str, Any]]) -> Iterator[bytes]:
        for number, item in enumerate(items):
            yield (b"," if number else b"") + json.dumps(item).encode()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and (part := next(self._parts, b"")):
            self._rest = part
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def large(name: str) -> dict[str, Any]:
    document = wire(name)
    document["metadata"]["annotations"] = {"a": LARGE, "kubernetes.io/config.mirror": LARGE}
    document["spec"] = {"containers": [{"name": "a", "env": [{"name": "A", "value": LARGE}]}]}
    return document


def test_large_pods_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent has 128 MiB, and so many pods as objects 300."""
    api = ScriptedApi()
    monkeypatch.setattr(ScriptedApi, "get", lambda *_: Streamed(large(f"p{n}") for n in range(100)))
    one = PodWatch(api, "node-1", None, lambda _: None)
    tracemalloc.start()
    one._list()
    now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(one._pods) == 100
    assert most < 12 * 2**20
    assert now < 2**20


def test_no_more_pods_are_known_than_a_node_can_have(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("laptime_agent.watch.MOST_PODS", 3)
    _, told, _ = run(
        pod_list(*(wire(f"p{n}") for n in range(9))),
        [
            {"type": "ADDED", "object": wire("more", "11")},
            {"type": "MODIFIED", "object": wire("p1", "12")},
            {"type": "DELETED", "object": wire("p0", "13")},
            {"type": "ADDED", "object": wire("next", "14")},
        ],
    )
    assert told[0] == {"p0", "p1", "p2"}
    assert told[-1] == {"p1", "p2", "next"}
    assert caplog.text.count("a pod is left out") == 1


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"uid": "odd"}},
        {"status": {"containerStatuses": [{"containerID": "a://1"}]}},
        {"status": {"containerStatuses": [{"name": "a", "containerID": 5}]}},
        {"status": "x"},
        {"spec": ["x"]},
    ],
)
def test_a_pod_that_nobody_understands_keeps_no_other_from_being_known(
    run: Run, change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    odd = {**wire("odd"), **change}
    later = {**odd, "metadata": {**odd["metadata"], "resourceVersion": "12"}}
    one, told, asked = run(
        pod_list(wire("a"), odd, wire("b")),
        [
            {"type": "MODIFIED", "object": later},
            {"type": "ADDED", "object": wire("c", "13")},
        ],
    )
    assert told[0] == {"a", "b"}
    assert told[-1] == {"a", "b", "c"}
    assert one.up
    # Nothing was listed anew.
    assert ["watch=1" in path for path in asked] == [False, True, True]
    assert caplog.text.count("a pod is left out") == 1


@pytest.mark.parametrize("said", [LARGE, "", "../../a", "a b"])
def test_what_is_no_uid_of_a_static_pod_is_not_taken_for_one(said: str) -> None:
    document = wire("a")
    document["metadata"]["annotations"] = {"kubernetes.io/config.mirror": said}
    assert Pod.from_wire(document).cgroup_uid == "uid-a"


def test_an_event_without_end_is_given_up(
    run: Run, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laptime_agent.watch.MOST_BYTES", 2**16)
    long = wire("b", "11")
    long["metadata"]["annotations"] = {"a": "x" * 2**17}
    _, told, asked = run(pod_list(wire("a")), [{"type": "ADDED", "object": long}], pod_list())
    assert told == [{"a"}, set()]
    assert "watch=1" not in asked[2]


def _signed(folder: Path) -> tuple[Path, Path, Path]:
    """Return a CA without identifiers, a certificate that it signed for localhost, and its key."""
    none = "subjectKeyIdentifier = none\nauthorityKeyIdentifier = none\n"
    (folder / "ca.cnf").write_text(
        "[req]\ndistinguished_name = n\nprompt = no\nx509_extensions = ca\n[n]\nCN = ca\n"
        f"[ca]\nbasicConstraints = CA:TRUE\n{none}"
    )
    (folder / "names").write_text(f"subjectAltName = DNS:localhost\n{none}")
    new = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    for command in (
        f"req -x509 -config ca.cnf {new} -keyout ca.key -out ca.crt",
        f"req -subj /CN=localhost {new} -keyout key -out request",
        "x509 -req -in request -out crt -CA ca.crt -CAkey ca.key -CAcreateserial -extfile names",
    ):
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True, cwd=folder)
    return folder / "ca.crt", folder / "crt", folder / "key"


class Empty(BaseHTTPRequestHandler):
    """An API server whose lists are empty."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""


def test_the_ca_of_a_cluster_need_not_have_what_python_3_13_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of older clusters have no identifiers of keys, and no use of them."""
    usual = ssl.create_default_context

    def strict(**more: Any) -> ssl.SSLContext:
        context = usual(**more)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    authority, certificate, key = _signed(tmp_path)
    httpd = HTTPServer(("127.0.0.1", 0), Empty)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    threading.Thread(target=httpd.handle_request, daemon=True).start()
    token = tmp_path / "token"
    token.write_text("s3cr3t")
    api = ApiServer("localhost", httpd.server_port, str(token), str(authority))
    try:
        assert api.get("/api/v1/pods", 10.0, "application/json").read() == b"{}"
    finally:
        httpd.server_close()
