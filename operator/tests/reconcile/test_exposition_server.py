"""Who connects to the operator's metrics and says nothing holds no thread of it for ever."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from laptime.reconcile import visitors
from laptime.reconcile.exposition import serve
from laptime.reconcile.visitors import MOST_VISITORS


@pytest.fixture
def port() -> Iterator[int]:
    server = serve(0, lambda path, *_: ("text/plain", path.encode()), idle_seconds=0.2)
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("said", [b"", b"GET /metrics HTTP/1.1\r\nHost: "])
def test_a_connection_on_which_nothing_comes_is_closed(port: int, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(said)
        assert client.recv(1) == b""


def test_who_asks_again_is_answered_again(port: int) -> None:
    client = HTTPConnection("127.0.0.1", port, timeout=30)
    for path in ("/metrics", "/targets"):
        client.request("GET", path)
        assert client.getresponse().read() == path.encode()
    client.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has to leave does so at once; how soon that is says something of the machine."""
    monkeypatch.setattr(visitors, "_SOON_SECONDS", 60.0)


@contextmanager
def endless(answer: threading.Event | None = None) -> Iterator[int]:
    """Serve to whoever may say nothing for an hour; an answer waits for an event."""

    def body(path: str, *_: str) -> tuple[str, bytes]:
        if answer is not None:
            answer.wait()
        return "text/plain", path.encode()

    server = serve(0, body, idle_seconds=3600.0)
    try:
        yield server.server_address[1]
    finally:
        if answer is not None:
            answer.set()
        server.shutdown()
        server.server_close()


def connected(port: int, address: str, count: int = 1) -> list[socket.socket]:
    """Return connections from an address of this machine on which nothing is said."""
    return [
        socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(address, 0))
        for _ in range(count)
    ]


def asked(port: int, address: str) -> bytes:
    client = HTTPConnection("127.0.0.1", port, timeout=30, source_address=(address, 0))
    try:
        client.request("GET", "/metrics")
        return client.getresponse().read()
    finally:
        client.close()


def closed(client: socket.socket) -> bool:
    """Whether the other end has closed a connection on which nothing was to come."""
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    "strangers",
    [
        [("127.0.0.9", 10 * MOST_VISITORS)],
        # As many as there are places, each from a pod of its own.
        [(f"127.0.1.{number}", 1) for number in range(1, 3 * MOST_VISITORS)],
        # Behind the address of the node, as its kubelet.
        [("127.0.0.1", 3 * MOST_VISITORS)],
    ],
    ids=["one", "many", "behind the same address"],
)
@pytest.mark.usefixtures("patient")
def test_whoever_holds_connections_keeps_nobody_out(strangers: list[tuple[str, int]]) -> None:
    before = threading.active_count()
    with endless() as port, ExitStack() as stack:
        for address, count in strangers:
            for client in connected(port, address, count):
                stack.enter_context(client)
        for _ in range(3 * MOST_VISITORS):
            assert asked(port, "127.0.0.1") == b"/metrics"
            assert asked(port, "127.0.0.2") == b"/metrics"
        assert threading.active_count() - before <= MOST_VISITORS + 1


@pytest.mark.usefixtures("patient")
def test_who_has_one_connection_keeps_it_while_somebody_else_opens_hundreds() -> None:
    with endless() as port, ExitStack() as stack:
        (quiet,) = connected(port, "127.0.0.2")
        stack.enter_context(quiet)
        held = connected(port, "127.0.0.9", 10 * MOST_VISITORS)
        for client in held:
            stack.enter_context(client)
        assert asked(port, "127.0.0.3") == b"/metrics"
        quiet.sendall(b"GET /late HTTP/1.0\r\n\r\n")
        assert quiet.makefile("rb").read().endswith(b"/late")
        # Those of who has many are closed but for the newest ones.
        assert [closed(client) for client in held[:MOST_VISITORS]] == [True] * MOST_VISITORS
        assert not closed(held[-1])


def test_where_all_are_being_answered_a_newcomer_is_closed_at_once_and_they_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visitors, "_SOON_SECONDS", 0.01)
    answer = threading.Event()
    with endless(answer) as port, ExitStack() as stack:
        busy = [one for n in range(MOST_VISITORS) for one in connected(port, f"127.0.1.{n + 1}")]
        for client in busy:
            stack.enter_context(client)
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        (newcomer,) = connected(port, "127.0.0.2")
        stack.enter_context(newcomer)
        assert newcomer.recv(1) == b""
        answer.set()
        # The oldest had to leave for it; the others have their answers.
        for client in busy[1:]:
            assert client.makefile("rb").read().endswith(b"/metrics")
        assert asked(port, "127.0.0.2") == b"/metrics"


def test_of_the_head_of_a_request_no_more_is_read_than_any_needs() -> None:
    """A hundred lines of 64 KiB each is what Python waits for."""
    with endless() as port, connected(port, "127.0.0.9")[0] as client:
        line = b"X: " + b"x" * 60_000 + b"\r\n"
        # It goes on for ever: without a bound nobody would be answered, and nothing closed.
        client.sendall(b"GET /metrics HTTP/1.0\r\n" + 3 * line)
        with suppress(ConnectionError):
            while client.recv(2**16):
                pass
        assert asked(port, "127.0.0.9") == b"/metrics"


def test_the_agent_has_the_same_server() -> None:
    """It is a package of its own, in an image without the operator's."""
    theirs = Path(__file__).parents[3] / "agent/src/laptime_agent/visitors.py"
    assert theirs.read_text() == Path(visitors.__file__).read_text()
