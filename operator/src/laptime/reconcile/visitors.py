"""An HTTP server that strangers cannot fill: never more than some connections, and room for others.

Each connection has a thread. Any pod of the cluster may open as many as it likes and say nothing on
them; the few that scrape and probe must get in all the same.
"""

from __future__ import annotations

import io
import os
import sys
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6, SHUT_RDWR, socket
from threading import BoundedSemaphore, Lock
from typing import Any

MOST_VISITORS = 16
"""Connections at a time: of two Prometheus and a kubelet it is three."""
_SOON_SECONDS = 0.1
"""So long a newcomer waits for the one that leaves for it."""
_HEAD_BYTES = 2**14
"""Of a request that is read; whoever scrapes needs a few hundred."""


class Visitors(ThreadingHTTPServer):
    """Answers each connection in a thread of its own, which ends with the process.

    When all places are taken a newcomer has that of the oldest one from the address with the most:
    who holds many makes room for his own, and for whoever else comes.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int, handler: type[Visit]) -> None:
        """Listen on a port (0: any that is free)."""
        # The pod's addresses may all be of IPv6.
        self.address_family = AF_INET6 if ":" in os.environ.get("POD_IP", "") else AF_INET
        self._places = BoundedSemaphore(MOST_VISITORS)
        self._lock = Lock()
        # Their addresses, in the order in which they came.
        self._here: dict[Any, str] = {}
        super().__init__(("", port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Have a connection answered where there is a place for it; else it is closed at once."""
        if not self._places.acquire(blocking=False):
            self._send_away(client_address[0])
            if not self._places.acquire(timeout=_SOON_SECONDS):
                self.shutdown_request(request)
                return
        with self._lock:
            self._here[request] = client_address[0]
        try:
            super().process_request(request, client_address)
        except Exception:
            self._left(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection until it is closed."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._left(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, unless it is that somebody went away."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def _send_away(self, newcomer: str) -> None:
        with self._lock:
            counts = Counter([newcomer, *self._here.values()])
            most = max(counts[address] for address in self._here.values()) if self._here else 0
            oldest: socket | None = next(
                (one for one, address in self._here.items() if counts[address] == most), None
            )
            if oldest is not None:
                # Its thread reads the end of it, and gives the place back.
                del self._here[oldest]
                with suppress(OSError):
                    oldest.shutdown(SHUT_RDWR)

    def _left(self, request: Any) -> None:
        with self._lock:
            self._here.pop(request, None)
        self._places.release()


class Visit(BaseHTTPRequestHandler):
    """Answers one connection; of the head of a request no more is read than any needs."""

    def handle_one_request(self) -> None:
        """Answer the next request."""
        whole = self.rfile
        head = _Head(whole)
        self.rfile = head
        try:
            super().handle_one_request()
        finally:
            self.rfile = whole
        if head.left == 0:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a line for each request is of no use."""


class _Head(io.BufferedIOBase):
    """The beginning of what comes, after which it ends."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.left = _HEAD_BYTES

    def readline(self, size: int | None = -1) -> bytes:
        most = self.left if size is None or size < 0 else min(size, self.left)
        line: bytes = self._file.readline(most)
        self.left -= len(line)
        return line
