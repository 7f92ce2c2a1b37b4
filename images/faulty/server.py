"""A server that answers scenario `users` rightly, or goes wrong in the way that FAULT says.

For end-to-end tests only: what Laptime says of a broken server is tried on a really broken one.
It makes its rows by the same formula as the scenario and asks no database: without any other fault
that alone is wrong where the run has one.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULT = os.environ.get("FAULT", "none")
PORT = int(os.environ.get("PORT", "8080"))


def rows() -> list[dict[str, str]]:
    """Return the first 100 users, ordered by id."""
    users = [
        {
            "user_id": str(uuid.UUID(hashlib.md5(f"laptime-user-{n}".encode()).hexdigest())),
            "username": f"user{n}",
            "email": f"user{n}@example.com",
        }
        for n in range(1, 2001)
    ]
    return sorted(users, key=lambda user: user["user_id"])[:100]


def answer() -> bytes:
    """Return the body of an answer, wrong in the way that FAULT says."""
    users = rows()
    match FAULT:
        case "wrong-value":
            users[41]["email"] = "somebody@example.com"
        case "wrong-order":
            users[0], users[1] = users[1], users[0]
        case "missing-field":
            del users[7]["username"]
        case "too-few":
            users.pop()
    return json.dumps(users).encode()


class Handler(BaseHTTPRequestHandler):
    """Serves / and /healthz."""

    protocol_version = "HTTP/1.1"
    body = answer()

    def do_GET(self) -> None:
        """Answer a request, or do what FAULT says instead."""
        if self.path != "/healthz" and FAULT == "memory":
            hoard = [bytearray(1 << 20) for _ in range(4096)]
            print(len(hoard))
        if self.path != "/healthz" and FAULT == "crash":
            print("the fault was asked for", file=sys.stderr, flush=True)
            os._exit(3)
        status = 503 if self.path == "/healthz" and FAULT == "never-ready" else 200
        body = b"ok" if self.path == "/healthz" else self.body
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write no access log."""


def main() -> None:
    """Serve until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if FAULT == "crash-at-start":
        time.sleep(0.2)
        sys.exit("cannot start: the fault was asked for")
    ThreadingHTTPServer(("0.0.0.0", PORT), Handler).serve_forever()


main()
