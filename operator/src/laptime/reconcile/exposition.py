"""What Prometheus scrapes, as text over HTTP.

The client library needs 90 ms of CPU for the figures of 50 runs, at each scrape, although they
hardly ever change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import lru_cache

from prometheus_client import Metric
from prometheus_client.utils import floatToGoString

from laptime.reconcile.visitors import Visit, Visitors

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_IDLE_SECONDS = 30.0
_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


def exposition(families: Iterable[Metric]) -> bytes:
    """Return metrics in Prometheus' text format, version 0.0.4."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {family.documentation}\n")
        lines.append(f"# TYPE {family.name} {family.type}\n")
        for sample in family.samples:
            value = floatToGoString(sample.value)  # type: ignore[no-untyped-call]
            lines.append(f"{sample.name}{{{_labels(*sample.labels.items())}}} {value}\n")
    return "".join(lines).encode(errors="replace")


@lru_cache(maxsize=4096)
def _labels(*pairs: tuple[str, str]) -> str:
    """Return labels as text; many families have the same, and from one scrape to the next."""
    return ",".join(f'{name}="{text.translate(_ESCAPED)}"' for name, text in sorted(pairs))


Answer = Callable[[str, str, str], tuple[str, bytes]]
"""Gives content type and body for a path, the address of who asks, and the formats it takes."""


def serve(port: int, answer: Answer, *, idle_seconds: float = _IDLE_SECONDS) -> Visitors:
    """Answer every GET on a port (0: any that is free), each connection in a thread of its own.

    One on which nothing comes for so long is closed. Who scrapes makes a new one each time.
    """

    class Handler(Visit):
        timeout = idle_seconds

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            accept = self.headers.get("Accept", "")
            content_type, body = answer(path, self.client_address[0], accept)
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = Visitors(port, Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
