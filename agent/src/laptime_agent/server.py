"""The HTTP endpoint: /metrics and /healthz."""

from __future__ import annotations

from collections.abc import Callable

from laptime_agent.exposition import CONTENT_TYPE
from laptime_agent.visitors import Visit, Visitors

_IDLE_SECONDS = 120


def make_server(port: int, render: Callable[[str], bytes], healthy: Callable[[], bool]) -> Visitors:
    """Return a server that listens on a port (0: any that is free) and answers once it is run.

    `render` gets the address of who asks. Connections are kept: a new one each second would cost
    more than the metrics.
    """

    class Handler(Visit):
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

    return Visitors(port, Handler)
