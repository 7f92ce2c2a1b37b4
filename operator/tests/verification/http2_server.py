"""A server on this machine that speaks HTTP/2 from the first byte (h2c), or by ALPN with TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from h2.exceptions import ProtocolError

Answer = tuple[int, str, bytes]


@contextmanager
def http2_server(
    answer: Callable[[str], Answer],
    http1: bytes | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """Serve what `answer` says of a path; `http1` is what HTTP/1.1 is answered, None: nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listener, answer, http1, tls), daemon=True).start()
    scheme = "http" if tls is None else "https"
    try:
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)  # else whoever accepts holds it open
        listener.close()


def _accept(
    listener: socket.socket,
    answer: Callable[[str], Answer],
    http1: bytes | None,
    tls: ssl.SSLContext | None,
) -> None:
    with contextlib.suppress(OSError):  # closed
        while True:
            connection, _ = listener.accept()
            threading.Thread(
                target=_serve, args=(connection, answer, http1, tls), daemon=True
            ).start()


def _serve(
    connection: socket.socket,
    answer: Callable[[str], Answer],
    http1: bytes | None,
    tls: ssl.SSLContext | None,
) -> None:
    with contextlib.suppress(OSError, ProtocolError):
        if tls is not None:
            connection = tls.wrap_socket(connection, server_side=True)
        with connection:
            first = connection.recv(65536)
            if not first.startswith(b"PRI "):
                connection.sendall(http1 or b"")
                return
            _converse(connection, first, answer)


def _converse(connection: socket.socket, first: bytes, answer: Callable[[str], Answer]) -> None:
    state = H2Connection(H2Configuration(client_side=False, header_encoding=None))
    state.initiate_connection()
    received = first
    while received:
        for event in state.receive_data(received):
            if not isinstance(event, RequestReceived):
                continue
            status, content_type, body = answer(dict(event.headers)[b":path"].decode())
            head = [(":status", str(status)), ("content-type", content_type)]
            state.send_headers(event.stream_id, head)
            state.send_data(event.stream_id, body, end_stream=True)
        connection.sendall(state.data_to_send())
        received = connection.recv(65536)
