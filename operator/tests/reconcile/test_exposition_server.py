"""Who connects to the operator's metrics and says nothing holds no thread of it for ever."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from laptime.reconcile.exposition import serve


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
