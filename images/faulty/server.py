"""A server that answers scenario `users` rightly, or goes wrong in the way that FAULT says.

For end-to-end tests only: what Laptime says of a broken server is tried on a really broken one.
It makes its rows by the same formula as the scenario and asks no database: without any other fault
that alone is wrong where the run has one.

It also lets users log in, create items and read their own: POST /login and /items, GET /items/{id}.
Whoever comes with the token or the item of somebody else is refused, so that a test shows whether
each user of a load sends what is his.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable
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


class Market:
    """What users make, in memory: tokens by their holders, items by their owners."""

    def __init__(self) -> None:
        self.holders: dict[str, str] = {}
        self.owners: dict[str, str] = {}
        self.numbers = itertools.count(1)

    def log_in(self, user: dict[str, str]) -> tuple[int, dict[str, str]]:
        """Return status and body: a token for who knows his password, `secret of NAME`."""
        name = user.get("name", "")
        if user.get("password") != f"secret of {name}":
            return 401, {"detail": "not the password"}
        token = hashlib.sha256(name.encode()).hexdigest()
        self.holders[token] = name
        return 200, {"token": token}

    def create(self, holder: str) -> tuple[int, dict[str, str]]:
        """Return status and body of a new item."""
        item = f"item-{next(self.numbers)}"
        self.owners[item] = holder
        return 201, {"id": item, "owner": holder}

    def read(self, holder: str, item: str) -> tuple[int, dict[str, str]]:
        """Return status and body: only the owner may see an item."""
        owner = self.owners.get(item)
        if owner is None:
            return 404, {"detail": "no such item"}
        return (200, {"id": item, "owner": owner}) if owner == holder else (403, {"detail": "no"})


class Handler(BaseHTTPRequestHandler):
    """Serves all of it, and /healthz."""

    protocol_version = "HTTP/1.1"
    body = answer()
    market = Market()

    def do_GET(self) -> None:
        """Answer a request, or do what FAULT says instead."""
        if self.path.startswith("/items/"):
            self._for_holder(lambda one: self.market.read(one, self.path.removeprefix("/items/")))
            return
        if self.path != "/healthz" and FAULT == "memory":
            hoard = [bytearray(1 << 20) for _ in range(4096)]
            print(len(hoard))
        if self.path != "/healthz" and FAULT == "crash":
            print("the fault was asked for", file=sys.stderr, flush=True)
            os._exit(3)
        status = 503 if self.path == "/healthz" and FAULT == "never-ready" else 200
        self._say(status, b"ok" if self.path == "/healthz" else self.body)

    def do_POST(self) -> None:
        """Let a user log in, or create an item."""
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/login":
            status, said = self.market.log_in(json.loads(content))
            self._say(status, json.dumps(said).encode())
        elif self.path == "/items":
            self._for_holder(self.market.create)
        else:
            self._say(404, b"{}")

    def _for_holder(self, answer: Callable[[str], tuple[int, dict[str, str]]]) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        holder = self.market.holders.get(token)
        status, said = (401, {"detail": "log in"}) if holder is None else answer(holder)
        self._say(status, json.dumps(said).encode())

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write no access log."""


class Server(ThreadingHTTPServer):
    """Listens on the family of addresses that the pod has."""

    address_family = socket.AF_INET6 if ":" in os.environ.get("POD_IP", "") else socket.AF_INET


def main() -> None:
    """Serve until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if FAULT == "crash-at-start":
        time.sleep(0.2)
        sys.exit("cannot start: the fault was asked for")
    Server(("", PORT), Handler).serve_forever()


main()
