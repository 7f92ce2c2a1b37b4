"""Answers are checked over HTTP/2 where a load is sent so."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import httpx
import pytest

from laptime.api.loads import Protocol
from laptime.catalog import scenarios
from laptime.verification.verdict import Verdict
from laptime.verification.verify import NOBODY, Client, Task, verify
from tests.verification.http2_server import Answer, http2_server
from tests.verification.localhost_certificate import CERTIFICATE, KEY
from tests.verification.test_verify import answering, server

CHECK = scenarios()["users"].checks[0]
BOTH = [Protocol.HTTP1, Protocol.HTTP2]
HTTP1_ALONE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def right(path: str) -> Answer:
    if path == "/healthz":
        return 200, "text/plain", b"ok"
    return 200, "application/json", json.dumps(CHECK.expected).encode()


def judged(
    target: str, protocols: list[Protocol], wait: float = 20.0, client: Client = NOBODY
) -> Verdict:
    task = Task(target=target, wait_seconds=wait, checks=[CHECK], protocols=protocols)
    return verify(task, client=client)


def test_a_server_is_asked_over_http2_alone() -> None:
    with http2_server(right) as target:
        verdict = judged(target, [Protocol.HTTP2])
    assert verdict == Verdict(True, "AnswersRight", "1 check passed, over HTTP/2")


def test_a_server_that_answers_otherwise_over_http2_is_out() -> None:
    rows = json.dumps(CHECK.expected).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(rows)}\r\n"
    over_http1 = head.encode() + b"Connection: close\r\n\r\n" + rows
    wrong: Answer = (200, "application/json", b"[]")
    with http2_server(
        lambda path: right(path) if path == "/healthz" else wrong, http1=over_http1
    ) as target:
        assert judged(target, [Protocol.HTTP1]).ok
        verdict = judged(target, BOTH)
    assert verdict.reason == "WrongAnswer"
    assert verdict.message.startswith("over HTTP/2: GET /")


def test_wrong_answers_over_http1_are_said_to_be_so() -> None:
    with server(answering([])) as target:
        assert judged(target, BOTH).message.startswith("over HTTP/1.1: GET /")


@pytest.mark.parametrize("protocols", [[Protocol.HTTP2], BOTH])
def test_a_server_of_http1_is_told_what_to_write_at_once(protocols: list[Protocol]) -> None:
    with server() as target:
        verdict = judged(target, protocols, wait=600)
    assert verdict.reason == "WrongProtocol"
    assert verdict.message == (
        "GET /healthz answers 200 over HTTP/1.1, and does not answer over HTTP/2: have the server "
        "speak h2c, with prior knowledge, or write protocol: http1"
    )


def test_a_server_that_nobody_reaches_over_http2_is_named_so() -> None:
    with http2_server(right) as target:
        pass
    verdict = judged(target, [Protocol.HTTP2], wait=0.2)
    assert verdict.reason == "NotReachable"
    assert "waited 0.2s" in verdict.message


def test_a_server_of_http2_alone_is_checked_where_another_port_says_that_it_serves() -> None:
    with http2_server(right) as target, server() as health:
        verdict = verify(
            Task(target=target, health_target=health, checks=[CHECK], protocols=[Protocol.HTTP2])
        )
    assert verdict == Verdict(True, "AnswersRight", "1 check passed, over HTTP/2")


def test_a_server_of_http1_with_a_health_port_is_told_what_to_write() -> None:
    with server() as target, server() as health:
        verdict = verify(
            Task(target=target, health_target=health, checks=[CHECK], protocols=[Protocol.HTTP2])
        )
    assert verdict.reason == "WrongProtocol"
    assert verdict.message.startswith("it answers over HTTP/1.1, and does not answer over HTTP/2")


@pytest.mark.parametrize("chosen", ["h2", "http/1.1"])
def test_with_tls_the_server_chooses(tmp_path: Path, chosen: str) -> None:
    certificate, key = tmp_path / "ca.crt", tmp_path / "key"
    certificate.write_text(CERTIFICATE)
    key.write_text(KEY)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    tls.set_alpn_protocols([chosen])
    with http2_server(right, http1=HTTP1_ALONE, tls=tls) as target:
        verdict = judged(target, [Protocol.HTTP2], client=Client(certificates=certificate))
    if chosen == "h2":
        assert verdict.ok
    else:
        assert verdict.reason == "WrongProtocol"
        assert "have the server choose h2 by ALPN, or write protocol: http1" in verdict.message


def test_health_is_asked_for_once_where_the_server_chooses() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if asked.count("/healthz") > 1:
            raise httpx.ReadError("reset")
        body = json.dumps(CHECK.expected).encode()
        head = {"content-type": "application/json"}
        return httpx.Response(
            200, headers=head, content=body, extensions={"http_version": b"HTTP/2"}
        )

    task = Task(target="https://server:8443", checks=[CHECK], protocols=[Protocol.HTTP2])
    verdict = verify(task, httpx.MockTransport(answer))
    assert verdict == Verdict(True, "AnswersRight", "1 check passed, over HTTP/2")
