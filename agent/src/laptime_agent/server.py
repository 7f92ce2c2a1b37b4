"""The HTTP endpoint: /metrics and /healthz."""

from __future__ import annotations

import os
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6

from laptime_agent.exposition import CONTENT_TYPE

_IDLE_SECONDS = 120


def make_server(
    port: int, render: Callable[[str], bytes], healthy: Callable[[], bool]
) -> ThreadingHTTPServer:
    """Return a server that listens on a port (0: any that is free) and answers once it is run.

    `render` gets the address of who asks. Connections are kept: a new one each second would cost
    more than the metrics.
    """

    class Server(ThreadingHTTPServer):
        # The pod's addresses may all be of IPv6.
        address_family = AF_INET6 if ":" in os.environ.get("POD_IP", "") else AF_INET

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _IDLE_SECONDS

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, CONTENT_TYPE, render(self.client_address[0]))
            elif path == "/healthz":
                ok = healthy()
                self._answer(200 if ok else 503, "text/plain", b"ok\n" if ok else b"no samples\n")
            else:
                self._answer(404, "text/plain", b"see /metrics\n")

        def _answer(self, status: int, content_type: str, body: bytes) -> None:
            head = (
                f"HTTP/1.1 {status} {self.responses[status][0]}\r\n"
                f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            self.wfile.write(head.encode("latin-1") + body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: a line each second is of no use."""

    server = Server(("", port), Handler)
    server.daemon_threads = True
    return server
