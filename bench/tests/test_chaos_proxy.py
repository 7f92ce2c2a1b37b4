"""The proxy of make chaos: what it passes on, and what it does when it is told to misbehave."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from chaos import tampering
from chaos.node import plain_log
from chaos.proxy import Proxy
from chaos.wire import Request, refusal, status_of

RUNS = "/apis/laptime.dev/v1alpha1/namespaces/chaos/benchmarkruns"
JOBS = "/apis/batch/v1/namespaces/chaos/jobs"
PODS = "/api/v1/namespaces/chaos/pods"


class Upstream:
    """A server that answers with what it was asked, and keeps watches open."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.words: list[bytes] = [b'{"type":"ADDED"}\n', b'{"type":"MODIFIED"}\n']
        self.document: dict[str, Any] = {"metadata": {"resourceVersion": "41"}}
        mine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                mine.asked.append((self.command, self.path, body))
                if "watch=true" in self.path:
                    self.send_response(200)
                    self.send_header("Connection", "close")
                    self.end_headers()
                    for word in mine.words:
                        self.wfile.write(word)
                        self.wfile.flush()
                        time.sleep(0.05)
                    return
                text = json.dumps(mine.document, separators=(",", ":")).encode()
                self.send_response(201 if self.command == "POST" else 200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PATCH = do_DELETE = do

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    found = Upstream()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[Proxy]:
    address = ("127.0.0.1", upstream.server.server_address[1])
    found = Proxy(("127.0.0.1", 0), address, None, None)
    yield found
    found.close()


def ask(proxy: Proxy, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    """Return status and body; status 0 when the connection ends before the answer does."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=5)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.IncompleteRead as error:
        return 0, error.partial
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def job(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def soon(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_it_passes_everything_on_and_notes_it(upstream: Upstream, proxy: Proxy) -> None:
    assert ask(proxy, "GET", f"{PODS}?labelSelector=a") == (
        200, b'{"metadata":{"resourceVersion":"41"}}',
    )  # fmt: skip
    assert ask(proxy, "POST", JOBS, job("a-trial-001"))[0] == 201
    assert [(m, p) for m, p, _ in upstream.asked] == [
        ("GET", f"{PODS}?labelSelector=a"),
        ("POST", JOBS),
    ]
    assert json.loads(upstream.asked[1][2]) == job("a-trial-001")
    assert [(one.verb, one.status, one.name) for one in proxy.seen] == [
        ("list", 200, ""),
        ("create", 201, "a-trial-001"),
    ]
    assert proxy.writes == 1


def test_it_knows_the_stage_of_the_run(proxy: Proxy) -> None:
    status = {"status": {"state": "Running", "currentTrial": "a-trial-002"}}
    ask(proxy, "PATCH", f"{RUNS}/a/status", status)
    assert proxy.stage == "Running a-trial-002"


def test_a_watch_is_said_as_it_comes(upstream: Upstream, proxy: Proxy) -> None:
    assert ask(proxy, "GET", f"{PODS}?watch=true") == (200, b"".join(upstream.words))


def test_the_moment_is_that_of_the_nth_write(proxy: Proxy) -> None:
    struck: list[int] = []
    proxy.when(2, lambda: struck.append(proxy.writes))
    ask(proxy, "GET", PODS)
    ask(proxy, "POST", JOBS, job("one"))
    assert struck == []
    ask(proxy, "DELETE", f"{JOBS}/one")
    soon(lambda: struck == [2])


@pytest.mark.parametrize(("after", "done"), [(False, 1), (True, 2)])
def test_killed_before_or_after_a_write(
    upstream: Upstream, proxy: Proxy, after: bool, done: int
) -> None:
    killed: list[int] = []
    proxy.tamper = tampering.Killed(2, lambda: killed.append(len(upstream.asked)), after=after)
    assert ask(proxy, "POST", JOBS, job("one"))[0] == 201
    assert ask(proxy, "POST", JOBS, job("two")) == (0, b"")
    assert killed == [done]
    assert len(upstream.asked) == done
    assert proxy.tamper.bites == 1


def test_answers_break_off_after_so_many_bytes(upstream: Upstream, proxy: Proxy) -> None:
    upstream.document = {"text": "x" * 100_000}
    proxy.tamper = tampering.AnswersCut(1, 0.5)
    status, said = ask(proxy, "GET", PODS)
    assert status == 0
    assert 40_000 < len(said) < 60_000
    assert ask(proxy, "GET", PODS)[0] == 200


def test_a_write_is_done_and_its_answer_lost(upstream: Upstream, proxy: Proxy) -> None:
    proxy.tamper = tampering.AnswersLost(1)
    assert ask(proxy, "GET", PODS)[0] == 200
    assert ask(proxy, "POST", JOBS, job("one")) == (0, b"")
    assert upstream.asked[-1][:2] == ("POST", JOBS)
    assert ask(proxy, "POST", JOBS, job("two"))[0] == 201


def test_a_watch_breaks_off_after_so_many_bytes(upstream: Upstream, proxy: Proxy) -> None:
    head = len(b"".join(upstream.words))
    proxy.tamper = cut = tampering.WatchesCut(head + 60)
    status, said = ask(proxy, "GET", f"{PODS}?watch=true")
    assert cut.bites == 1
    assert said != b"".join(upstream.words), status


def test_a_frozen_watch_stays_open_and_says_nothing(upstream: Upstream, proxy: Proxy) -> None:
    proxy.tamper = frozen = tampering.WatchesFrozen()
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=0.5)
    connection.request("GET", f"{PODS}?watch=true")
    with pytest.raises(TimeoutError):
        connection.getresponse()
    connection.close()
    soon(lambda: frozen.bites == 1)


def test_watches_are_too_old(upstream: Upstream, proxy: Proxy) -> None:
    proxy.tamper = tampering.WatchesExpired()
    status, said = ask(proxy, "GET", f"{PODS}?watch=true")
    assert status == 410
    assert json.loads(said)["reason"] == "Expired"
    assert upstream.asked == []


def test_a_stale_list_is_of_an_earlier_version(upstream: Upstream, proxy: Proxy) -> None:
    ask(proxy, "GET", PODS)
    proxy.tamper = stale = tampering.ListsStale(lambda: proxy.version_at(time.monotonic()))
    assert ask(proxy, "GET", f"{PODS}?watch=true")[0] == 410
    assert stale.bites == 0
    assert ask(proxy, "GET", f"{PODS}?limit=5")[0] == 200
    assert upstream.asked[-1][1] == (
        f"{PODS}?limit=5&resourceVersion=41&resourceVersionMatch=Exact"
    )
    # Then it watches from there.
    assert ask(proxy, "GET", f"{PODS}?watch=true")[0] == 200
    assert stale.bites == 1


def test_a_refusal_never_reaches_the_api_server(upstream: Upstream, proxy: Proxy) -> None:
    answer = refusal(429, "TooManyRequests", "later", Retry_After="1")
    assert b"Retry-After: 1\r\n" in answer
    assert status_of(answer) == 429
    proxy.tamper = tampering.Refused(answer)
    assert ask(proxy, "GET", PODS)[0] == 429
    assert upstream.asked == []
    proxy.tamper = tampering.Refused(refusal(409, "Conflict", "again"), 1)
    assert ask(proxy, "GET", PODS)[0] == 200
    assert ask(proxy, "POST", JOBS, job("one"))[0] == 409
    assert ask(proxy, "POST", JOBS, job("one"))[0] == 201


@pytest.mark.parametrize("done", [False, True])
def test_what_is_never_answered(upstream: Upstream, proxy: Proxy, done: bool) -> None:
    proxy.tamper = silent = tampering.Unanswered(1, done=done)
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=0.5)
    connection.request("GET", PODS)
    with pytest.raises(TimeoutError):
        connection.getresponse()
    connection.close()
    soon(lambda: silent.bites == 1)
    soon(lambda: len(upstream.asked) == done)


def test_another_clock_sets_other_times(upstream: Upstream, proxy: Proxy) -> None:
    times = {"creationTimestamp": "2026-11-23T06:59:30Z", "startedAt": "2026-11-23T23:59:00Z"}
    upstream.document = {"metadata": times}
    proxy.tamper = clock = tampering.ClockDiffers(90)
    later = {"creationTimestamp": "2026-11-23T07:01:00Z", "startedAt": "2026-11-24T00:00:30Z"}
    assert json.loads(ask(proxy, "GET", f"{PODS}/a")[1]) == {"metadata": later}
    assert clock.bites == 2
    # When a run began, its operator has said, by its own clock.
    later["startedAt"] = times["startedAt"]
    assert json.loads(ask(proxy, "GET", f"{RUNS}/a")[1]) == {"metadata": later}


def test_an_api_server_that_is_away_is_a_connection_that_ends() -> None:
    found = Proxy(("127.0.0.1", 0), ("127.0.0.1", 1), None, None)
    assert ask(found, "GET", PODS) == (0, b"")
    found.close()


def test_verbs() -> None:
    def verb(method: str, target: str) -> str:
        return Request(method, target, (), b"").verb

    assert verb("GET", RUNS) == verb("GET", "/apis/laptime.dev/v1alpha1/benchmarkruns") == "list"
    assert verb("GET", f"{PODS}/a") == "get"
    assert verb("GET", f"{PODS}/a/log?follow=true") == "follow"
    assert verb("GET", f"{PODS}?watch=true&a=b") == "watch"
    assert [verb(one, PODS) for one in ("POST", "PATCH", "DELETE")] == ["create", "patch", "delete"]


def test_a_log_as_the_node_keeps_it() -> None:
    kept = (
        "2026-11-23T06:59:30.1Z stdout F LAPTIME-READY\n"
        "2026-11-23T06:59:31.1Z stdout P LAPTIME-RES\n"
        "2026-11-23T06:59:31.1Z stdout F ULT abc\n"
    )
    assert plain_log(kept) == "LAPTIME-READY\nLAPTIME-RESULT abc\n"
