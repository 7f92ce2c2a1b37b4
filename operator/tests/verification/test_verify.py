"""The contract checker against real servers on this machine, good ones and broken ones."""

from __future__ import annotations

import gzip
import json
import re
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from laptime.api.answers import CheckedAnswer
from laptime.catalog import Capture, Check, scenarios
from laptime.verification import judge as judge_module
from laptime.verification.schema import database_schema
from laptime.verification.verdict import MAX_VERDICT_BYTES, Verdict, Wrong
from laptime.verification.verify import NOBODY, Client, Task, main, verify, wait_until_healthy
from tests.private_ca import Authority, as_in_python_3_13, tls_server
from tests.serving import served
from tests.verification.localhost_certificate import CERTIFICATE, KEY

CHECK = scenarios()["users"].checks[0]
ROWS: Any = CHECK.expected
Answer = tuple[int, str, bytes]


def right_answer(asked: int) -> Answer:
    return 200, "application/json", json.dumps(ROWS).encode()


def healthy(asked: int) -> Answer:
    return 200, "text/plain", b"ok"


@contextmanager
def server(
    answer: Callable[[int], Answer] = right_answer, health: Callable[[int], Answer] = healthy
) -> Iterator[str]:
    """Serve `answer` on / and `health` on /healthz; each is told how often it was asked."""
    asked = {"/": 0, "/healthz": 0}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked[self.path] += 1
            handle = health if self.path == "/healthz" else answer
            status, content_type, body = handle(asked[self.path])
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the output of the tests clean."""

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}"


def verdict_on(
    answer: Callable[[int], Answer] = right_answer,
    health: Callable[[int], Answer] = healthy,
    wait_seconds: float = 60.0,
) -> Verdict:
    with server(answer, health) as target:
        return verify(Task(target=target, wait_seconds=wait_seconds, checks=[CHECK]))


def answering(rows: object, **change: Any) -> Callable[[int], Answer]:
    body = json.dumps(rows).encode()
    return lambda _: (
        change.get("status", 200),
        change.get("content_type", "application/json"),
        change.get("body", body),
    )


def changed(index: int, **fields: object) -> list[dict[str, object]]:
    return [{**row, **fields} if at == index else row for at, row in enumerate(ROWS)]


def test_a_right_server_passes() -> None:
    assert verdict_on() == Verdict(True, "AnswersRight", "1 check passed")


def test_the_charset_of_the_content_type_does_not_matter() -> None:
    assert verdict_on(answering(ROWS, content_type="Application/JSON; charset=utf-8")).ok


@pytest.mark.parametrize(
    ("answer", "reason", "says"),
    [
        (
            answering(ROWS, status=500, body=b"boom"),
            "WrongStatus",
            'status 200, got 500; it said "b',
        ),
        (answering(ROWS, status=307), "WrongStatus", "got 307"),
        (answering(ROWS, content_type="text/html"), "WrongContentType", 'got "text/html"'),
        (answering(ROWS, body=b"<html>"), "NotJson", 'it said "<html>"'),
        (answering(ROWS, body=b"\xff\xfe"), "NotJson", "not JSON"),
        (answering(ROWS[:-1]), "WrongAnswer", "$: expected 100 items, got 99"),
        (answering([]), "WrongAnswer", "$: expected 100 items, got 0"),
        (answering({"detail": "x"}), "WrongAnswer", '$: expected [{"user_id"'),
        (answering(changed(3, username="eve")), "WrongAnswer", '$[3].username: expected "user'),
        (answering(changed(3, password="x")), "WrongAnswer", '$[3]: unexpected field "password"'),
        (answering(list(reversed(ROWS))), "WrongAnswer", "$[0].user_id: expected"),
    ],
)
def test_the_first_thing_wrong_is_named(
    answer: Callable[[int], Answer], reason: str, says: str
) -> None:
    verdict = verdict_on(answer)
    assert (verdict.ok, verdict.reason) == (False, reason)
    assert verdict.message.startswith("GET /: ")
    assert says in verdict.message


def test_a_server_that_is_right_only_once_is_wrong() -> None:
    verdict = verdict_on(
        lambda asked: right_answer(asked) if asked == 1 else (503, "text/plain", b"")
    )
    assert verdict.reason == "WrongStatus"
    assert "asked again" in verdict.message


def test_where_any_value_is_right_it_must_stay_the_same() -> None:
    loose = CHECK.model_copy(update={"expected": None, "json_schema": {"type": "integer"}})
    with server(lambda asked: (200, "application/json", str(asked).encode())) as target:
        verdict = verify(Task(target=target, wait_seconds=60, checks=[loose]))
    assert verdict.reason == "AnswerNotStable"
    assert "$: expected 1, got 2" in verdict.message


def test_the_schema_counts_where_no_value_is_given() -> None:
    loose = CHECK.model_copy(update={"expected": None})
    with server(answering(changed(0, email=7))) as target:
        verdict = verify(Task(target=target, wait_seconds=60, checks=[loose]))
    assert verdict.reason == "WrongAnswer"
    assert '$[0].email: expected type "string", got 7' in verdict.message


def test_it_waits_for_a_server_that_is_not_healthy_yet() -> None:
    verdict = verdict_on(
        health=lambda asked: healthy(asked) if asked > 3 else (503, "text/plain", b"not yet"),
        wait_seconds=20,
    )
    assert verdict.ok


def test_a_server_that_never_gets_healthy_is_not_ready() -> None:
    verdict = verdict_on(health=lambda _: (503, "text/plain", b""), wait_seconds=0.3)
    assert verdict.reason == "NotReady"
    assert "503" in verdict.message
    assert "waited 0.3s" in verdict.message


def test_a_server_that_nobody_can_reach_is_named_so() -> None:
    with server() as target:
        pass
    verdict = verify(Task(target=target, wait_seconds=0.2, checks=[CHECK]))
    assert verdict.reason == "NotReachable"
    assert "refused" in verdict.message


def test_a_name_that_does_not_exist_is_not_reachable() -> None:
    task = Task(target="http://nowhere.invalid:1", wait_seconds=0, checks=[CHECK])
    assert verify(task).reason == "NotReachable"


def test_a_server_that_hangs_has_timed_out() -> None:
    hasty = CHECK.model_copy(update={"timeout_seconds": 0.2})
    released = threading.Event()

    def hang(_: int) -> Answer:
        released.wait(5)
        return right_answer(1)

    with server(hang) as target:
        verdict = verify(Task(target=target, wait_seconds=60, checks=[hasty]))
        released.set()
    assert verdict.reason == "TimedOut"


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_module, "_MAX_ANSWER_BYTES", 1000)
    verdict = verdict_on()
    assert verdict.reason == "WrongAnswer"
    assert (
        "GET /: the answer has more than 1000 bytes, which is the most that Laptime compares"
    ) in verdict.message


def test_an_answer_of_any_size_is_right_where_nothing_of_it_is_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judge_module, "_MAX_ANSWER_BYTES", 1000)
    export = Check.model_validate(
        {
            "name": "export",
            "path": "/",
            "contentType": "text/csv",
            "captures": [{"name": "by", "header": "server"}],
        }
    )
    with server(lambda _: (200, "text/csv", b"x" * 3_000_000)) as target:
        task = Task(target=target, wait_seconds=5.0, checks=[export], show_answers=True)
        seen: list[CheckedAnswer] = []
        assert verify(task, show=seen.append).ok
        assert seen[0].answered.startswith("200 text/csv\nxxx")
        looking: list[dict[str, Any]] = [
            {"captures": [{"name": "a", "regex": "x+"}]},
            {"jsonSchema": {}},
            {"expectedPart": []},
        ]
        for looks in looking:
            check = Check.model_validate({"name": "export", "path": "/", **looks})
            verdict = verify(task.model_copy(update={"checks": [check]}))
            assert "the most that Laptime compares" in verdict.message


def environment(target: str) -> dict[str, str]:
    checks = [check.to_wire() for check in scenarios()["users"].checks]
    document = {"target": target, "waitSeconds": 1, "checks": checks}
    return {"LAPTIME_VERIFY": json.dumps(document)}


def test_the_job_leaves_its_verdict_in_the_termination_log_and_on_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "termination-log"
    with server() as target:
        assert main(environment(target), log) == 0
    expected = {"ok": True, "reason": "AnswersRight", "message": "1 check passed"}
    assert json.loads(log.read_text()) == expected
    assert json.loads(capsys.readouterr().out) == expected


def test_a_wrong_answer_is_a_judgement_and_no_failure_of_the_job(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    with server(answering([])) as target:
        assert main(environment(target), log) == 0
    assert json.loads(log.read_text())["reason"] == "WrongAnswer"


@pytest.mark.parametrize("document", ["", "[]", "{}", '{"target": "http://x", "checks": []}'])
def test_a_task_that_cannot_be_read_fails_the_job(document: str, tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    assert main({"LAPTIME_VERIFY": document}, log) == 2
    verdict = json.loads(log.read_text())
    assert (verdict["ok"], verdict["reason"]) == (False, "TaskUnreadable")


def test_rows_are_brought_back_once_a_server_is_healthy_and_before_it_is_checked() -> None:
    """A server may make the tables as it starts, and what is brought back is in them."""
    happened: list[str] = []

    def health(asked: int) -> Answer:
        happened.append("health")
        return (200 if asked > 2 else 503), "text/plain", b""

    def answer(asked: int) -> Answer:
        happened.append("asked")
        return right_answer(asked)

    with server(answer, health) as target:
        task = Task(target=target, wait_seconds=60, checks=[CHECK])
        assert verify(task, prepare=lambda: happened.append("rows")).ok
    assert happened[:4] == ["health", "health", "health", "rows"]
    assert set(happened[4:]) == {"asked"}


def test_a_job_brings_the_rows_back_from_the_file_that_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = "laptime.verification.statement_counter.postgres_witness"
    monkeypatch.setattr(counter, lambda _: nullcontext(None))
    given: list[Path] = []

    def cannot(file: Path) -> None:
        given.append(file)
        raise Wrong("ResetFailed", "no such table")

    log = tmp_path / "log"
    with server() as target:
        told = environment(target)
        task = {**json.loads(told["LAPTIME_VERIFY"]), "reset": "/etc/reset.json"}
        told |= {
            "LAPTIME_VERIFY": json.dumps(task),
            "DATABASE_URL": "postgresql://nobody@none/none",
        }
        for reset, reason in ((cannot, "ResetFailed"), (given.append, "AnswersRight")):
            assert main(told, log, reset) == 0
            assert json.loads(log.read_text())["reason"] == reason
    assert given == [Path("/etc/reset.json")] * 2


@pytest.mark.parametrize("counts", [True, False])
def test_a_job_says_on_which_schema_its_server_was_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counts: bool
) -> None:
    """What only waits for a server opens no connection before it is there."""
    asked: list[tuple[str, str]] = []
    url = "postgresql://nobody@none/none"

    def schema(url: str, query: str) -> str:
        asked.append((url, query))
        return "q1-abc"

    def witness(_: str) -> AbstractContextManager[None]:
        assert counts
        return nullcontext(None)

    monkeypatch.setattr("laptime.verification.statement_counter.postgres_witness", witness)
    monkeypatch.setattr("laptime.verification.schema.database_schema", schema)
    log = tmp_path / "log"
    with server() as target:
        told = environment(target)
        task = {**json.loads(told["LAPTIME_VERIFY"]), "schemaQuery": "SELECT 1", "counts": counts}
        told |= {"LAPTIME_VERIFY": json.dumps(task), "DATABASE_URL": url}
        assert main(told, log) == 0
    assert json.loads(log.read_text())["schema"] == "q1-abc"
    # Before the first check and after the last one, and once where there are none.
    assert asked == (2 if counts else 1) * [(url, "SELECT 1")]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("q1-abc", "q1-def", "q1-abc,q1-def"),
        ("q1-abc", "q1-abc", "q1-abc"),
        # What is right is not known.
        (None, "q1-def", None),
        ("q1-abc", None, None),
    ],
)
def test_a_job_says_the_schema_before_its_servers_first_request_and_after_the_last(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str | None,
    after: str | None,
    said: str | None,
) -> None:
    """A server makes a table with its first request, and `reset` drops it before each trial."""
    happened: list[str] = []

    def schema(*_: str) -> str | None:
        happened.append("asked")
        return before if len(happened) == 2 else after

    def witness(_: str) -> AbstractContextManager[None]:
        return nullcontext(None)

    monkeypatch.setattr("laptime.verification.statement_counter.postgres_witness", witness)
    monkeypatch.setattr("laptime.verification.schema.database_schema", schema)
    log = tmp_path / "log"
    with server() as target:
        told = environment(target)
        more = {"schemaQuery": "SELECT 1", "reset": "/etc/reset.json"}
        task = {**json.loads(told["LAPTIME_VERIFY"]), **more}
        told |= {"LAPTIME_VERIFY": json.dumps(task), "DATABASE_URL": "postgresql://nobody@none/n"}
        assert main(told, log, reset=lambda _: happened.append("reset")) == 0
    assert happened == ["reset", "asked", "asked"]
    assert json.loads(log.read_text()).get("schema") == said


def test_a_schema_that_nobody_can_ask_for_is_not_said() -> None:
    nowhere = "postgresql://laptime:secret@127.0.0.1:1/laptime"
    assert database_schema(nowhere, "SELECT 1") is None


@pytest.mark.parametrize(("refused", "said"), [(0, "q1-abc"), (1, "q1-abc"), (2, None)])
def test_a_schema_with_a_locked_table_is_asked_for_once_more(
    monkeypatch: pytest.MonkeyPatch, refused: int, said: str | None
) -> None:
    asked: list[str] = []

    class Connection(nullcontext[None]):
        def __enter__(self) -> Any:
            return self

        def execute(self, query: str) -> Connection:
            asked.append(query)
            if len(asked) <= refused:
                raise psycopg.errors.LockNotAvailable
            return self

        def nextset(self) -> None:
            return None

        def fetchone(self) -> tuple[str]:
            return ("q1-abc",)

    monkeypatch.setattr("laptime.verification.schema.connect", lambda _: Connection())
    assert database_schema("postgresql://nobody@none/n", "SELECT 1") == said
    assert len(asked) == min(refused + 1, 2)


def test_a_missing_termination_log_does_not_matter(tmp_path: Path) -> None:
    with server() as target:
        assert main(environment(target), tmp_path / "missing" / "log") == 0


@pytest.mark.parametrize("character", ["x", "é", "𝄞", '"'])
def test_a_verdict_always_fits_into_the_termination_log(character: str) -> None:
    text = Verdict(False, "WrongAnswer", character * 20_000).to_json()
    assert len(text.encode()) <= MAX_VERDICT_BYTES
    assert json.loads(text)["message"].endswith("…")


def test_of_a_health_without_an_end_no_body_is_read() -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 2**20
            assert read < 64 * 2**20
            yield b"x" * 2**20

    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=endless())

    with httpx.Client(base_url="http://x", transport=httpx.MockTransport(handler)) as client:
        wait_until_healthy(client, 5.0)
    assert read < 4 * 2**20


# ---- a server that is there already


class _Known(BaseHTTPRequestHandler):
    """Answers whom it knows, and says elsewhere that it serves."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == "Bearer secret"
        body = json.dumps(ROWS).encode() if self.path == "/" else b"ok"
        self.send_response(200 if known and self.path in ("/", "/ready?full=1") else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture
def known(tmp_path: Path) -> Iterator[str]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Known)
    (tmp_path / "server.pem").write_text(CERTIFICATE + KEY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    with served(httpd) as port:
        yield f"https://localhost:{port}"


@pytest.mark.timed
def test_a_service_is_asked_as_the_client_that_it_knows(known: str, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(CERTIFICATE)
    task = Task(target=known, wait_seconds=10, health_path="/ready?full=1", checks=[CHECK])
    environment = {
        "LAPTIME_VERIFY": task.model_dump_json(by_alias=True),
        "LAPTIME_AUTHORIZATION": "Bearer secret\n",
        "SSL_CERT_FILE": str(tmp_path / "ca.crt"),
    }
    assert main(environment, tmp_path / "log") == 0
    assert Verdict(**json.loads((tmp_path / "log").read_text())).ok
    client = Client.of(environment)
    assert verify(task, client=client).ok
    # Whoever is let in is let in at once; the others would wait in vain.
    task = task.model_copy(update={"wait_seconds": 1})
    unknown = verify(task, client=Client(certificates=client.certificates))
    assert (unknown.reason, unknown.message) == (
        "NotReady",
        "GET /ready?full=1 answers 401, expected 200 (waited 1s)",
    )
    stranger = verify(task, client=Client(authorization="Bearer secret"))
    assert stranger.reason == "NotReachable"
    assert "CERTIFICATE_VERIFY_FAILED" in stranger.message


def test_a_private_ca_of_a_server_need_not_have_what_python_3_13_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generator, which does not ask for it, would measure the server."""
    as_in_python_3_13(monkeypatch)
    authority = Authority(tmp_path, "ours")
    with tls_server(authority.server("localhost")) as address:
        trusted = Client(certificates=authority.certificate).trusts()
        assert httpx.get(address, verify=trusted).text == "{}"


def test_a_server_that_repeats_credentials_has_nobody_told_them() -> None:
    def repeats(asked: int) -> Answer:
        return 500, "text/plain", b"unexpected header Authorization: Bearer s3cr3t, token s3cr3t"

    with server(repeats) as target:
        task = Task(target=target, wait_seconds=5.0, checks=[CHECK])
        verdict = verify(task, client=Client(authorization="Bearer s3cr3t"))
    assert "got 500" in verdict.message
    assert "s3cr3t" not in verdict.message
    assert "Authorization: (credentials), token (credentials)" in verdict.message


def test_without_credentials_nothing_is_sent_and_nothing_trusted_beyond_the_machine() -> None:
    assert Client.of({}) == NOBODY
    assert (NOBODY.headers(), NOBODY.trusts()) == ({}, True)


@pytest.mark.parametrize("text", ["", "no certificate", None])
def test_certificates_that_cannot_be_read_are_the_run_s_mistake(
    text: str | None, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "ca.crt").write_text(text)
    task = Task(target="https://localhost:1", wait_seconds=0.0, checks=[CHECK])
    verdict = verify(task, client=Client(certificates=tmp_path / "ca.crt"))
    assert verdict.reason == "CertificatesUnreadable"
    assert "the ConfigMap that tls names" in verdict.message


def test_what_has_no_health_is_asked_as_soon_as_it_can_be_reached() -> None:
    def never(asked: int) -> Answer:
        raise AssertionError("nobody asks for the health")

    with server(health=never) as target:
        checks = [CHECK.model_copy(update={"path": "/"})]
        assert verify(Task(target=target, health_path=None, checks=checks)).ok


def test_what_cannot_be_reached_in_time_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    target = f"http://127.0.0.1:{port}"
    found = verify(Task(target=target, health_path=None, wait_seconds=0.1, checks=[CHECK]))
    assert (found.ok, found.reason) == (False, "NotReachable")
    assert found.message.startswith(target)
    assert found.message.endswith("(waited 0.1s)")


def test_what_is_healthy_at_another_port_is_not_asked_for_its_health_at_its_own() -> None:
    def never(asked: int) -> Answer:
        raise AssertionError("nobody asks the target for its health")

    def late(asked: int) -> Answer:
        return (200 if asked > 2 else 503), "text/plain", b""

    with server(health=never) as target, server(health=late) as health:
        task = Task(target=target, health_target=health, wait_seconds=60, checks=[CHECK])
        assert verify(task) == Verdict(True, "AnswersRight", "1 check passed")
        # What a script is going to ask is waited for.
        assert verify(task.model_copy(update={"checks": []})).ok


def test_what_is_not_healthy_at_another_port_is_named_with_it() -> None:
    with server() as target, server(health=lambda _: (503, "text/plain", b"")) as health:
        task = Task(target=target, health_target=health, wait_seconds=0.1, checks=[CHECK])
        found = verify(task)
    assert (found.reason, found.message) == (
        "NotReady",
        f"GET {health}/healthz answers 503, expected 200 (waited 0.1s)",
    )


def test_what_is_healthy_and_takes_no_connections_is_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    target = f"http://127.0.0.1:{port}"
    with server() as health:
        found = verify(Task(target=target, health_target=health, wait_seconds=0.5, checks=[CHECK]))
    assert (found.ok, found.reason) == (False, "NotReachable")
    assert found.message.startswith(target)


def test_what_is_healthy_and_takes_no_more_connections_is_not_ready() -> None:
    """It did once: whoever asks then is refused, which is no answer of one that serves."""
    listening = socket.create_server(("127.0.0.1", 0))
    target = f"http://127.0.0.1:{listening.getsockname()[1]}"

    def once() -> None:
        listening.accept()[0].close()
        listening.close()

    thread = threading.Thread(target=once, daemon=True)
    thread.start()
    found = waited_for(target, 0.5)
    thread.join()
    assert (found.ok, found.reason) == (False, "NotReachable")
    assert "it takes no connection: " in found.message


@contextmanager
def taking(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Have each connection answered by the next one, the last by all after it; b"" is no answer."""
    asked: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if not (line := self.rfile.readline()):
                return
            asked.append(line)
            while self.rfile.readline().strip():
                pass
            self.wfile.write(answers[min(len(asked), len(answers)) - 1])

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}", asked
        listening.shutdown()
        thread.join()


def page(status: str) -> bytes:
    """Return what HAProxy says for a server."""
    fields = "cache-control: no-cache\r\ncontent-type: text/html\r\n"
    return f"HTTP/1.1 {status}\r\n{fields}\r\n<html><body><h1>{status}</h1>\n".encode()


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
NOBODY_THERE, GONE = page("503 Service Unavailable"), page("502 Bad Gateway")


def waited_for(target: str, seconds: float) -> Verdict:
    with server() as health:
        return verify(Task(target=target, health_target=health, wait_seconds=seconds, checks=[]))


@pytest.mark.parametrize(
    ("answers", "times"),
    [
        ([NOT_FOUND], 1),
        ([NOBODY_THERE, GONE, NOBODY_THERE, NOT_FOUND], 4),
        ([b"", b"", NOT_FOUND], 3),
        ([b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\n<html"], 1),
        ([b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"], 1),
        # The settings of a server that speaks HTTP/2 alone.
        ([b"\0\0\0\4\0\0\0\0\0"], 1),
    ],
)
def test_what_is_healthy_at_another_port_is_asked_until_it_takes_a_request_itself(
    answers: list[bytes], times: int
) -> None:
    with taking(*answers) as (target, asked):
        found = waited_for(target, 60)
        assert found.ok
        assert asked == [b"GET / HTTP/1.1\r\n"] * times


def test_what_is_not_there_behind_haproxy_is_not_reachable() -> None:
    with taking(NOBODY_THERE) as (target, asked):
        found = waited_for(target, 0.3)
    assert (found.ok, found.reason) == (False, "NotReachable")
    # What is left of the time once the other port was healthy.
    said = r"GET /: HAProxy says 503 Service Unavailable \(waited 0\.[1-3]s\)"
    assert re.search(said, found.message)
    assert len(asked) > 1


@pytest.mark.parametrize("answer", [b"", GONE])
def test_what_closes_connections_for_as_long_as_is_waited_is_checked_then(answer: bytes) -> None:
    with taking(answer) as (target, asked):
        assert waited_for(target, 0.3).ok
    assert len(asked) > 1


def test_what_holds_a_request_has_taken_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laptime.verification.verify._TAKEN_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert waited_for(f"http://127.0.0.1:{listening.getsockname()[1]}", 60).ok


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_an_answer_is_compressed_where_the_scenario_asks_for_it(encoding: str | None) -> None:
    # As under load, where nobody adds a field of his own.
    seen: list[tuple[str | None, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = self.headers.get("accept-encoding")
            body = json.dumps({"token": "t"}).encode()
            self.send_response(200)
            if self.path != "/healthz":
                seen.append((asked, self.headers.get("accept")))
            if asked is not None:
                body = gzip.compress(body)
                self.send_header("Content-Encoding", asked)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the output of the tests clean."""

    headers = {"accept-encoding": encoding} if encoding else {}
    check = Check(name="me", path="/me", headers=headers, times=1, expected={"token": "t"})
    kept = check.model_copy(update={"captures": [Capture(name="token", pointer="/token")]})
    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        target = f"http://127.0.0.1:{port}"
        assert verify(Task(target=target, checks=[check])).ok
        verdict = verify(Task(target=target, checks=[kept]))
    assert seen == [(encoding, None)] * 2
    assert verdict.ok == (encoding is None)
    if encoding is not None:
        assert verdict.reason == "CaptureMissing"
        assert "the answer is compressed, and under load nobody looks into it" in verdict.message
