"""HTTP as the proxy needs it: one request for each connection, answers byte by byte as they are."""

from __future__ import annotations

import json
import re
from asyncio import IncompleteReadError, StreamReader
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

LONGEST_HEAD_BYTES = 2**20
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
_LEFT_OUT = ("connection", "accept-encoding")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
WRITES = frozenset(_VERBS.values())
"""Verbs that change something."""
_COLLECTION = re.compile(r"/(?:api|apis/[^/]+)/[^/]+(?:/namespaces/[^/]+)?/[^/]+")


@dataclass(frozen=True)
class Request:
    """A request as it came, and which write of the operator's it is."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    number: int = 0
    """From 1, of those that write; 0 for the others."""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, list[str]]:
        """The query, by names."""
        return parse_qs(self.target.partition("?")[2])

    @property
    def verb(self) -> str:
        """What it is to Kubernetes: get, list, watch, follow, create, update, patch, delete."""
        if self.method in _VERBS:
            return _VERBS[self.method]
        if self.query.get("watch") == ["true"]:
            return "watch"
        if self.query.get("follow") == ["true"]:
            return "follow"
        return "list" if _COLLECTION.fullmatch(self.path) else "get"

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.method in _VERBS

    @property
    def streams(self) -> bool:
        """Whether its answer comes bit by bit and has no end of its own."""
        return self.verb in ("watch", "follow")

    def document(self) -> dict[str, Any]:
        """Return the JSON document in its body; an empty one if there is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def wire(self, target: str | None = None) -> bytes:
        """Return it as it is sent on: its answer ends with the connection, uncompressed."""
        lines = [f"{self.method} {target or self.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines.append("Connection: close")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


async def read_request(reader: StreamReader) -> Request | None:
    """Return the request that a client sends; None when it goes away without one."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _ = first.split(" ", 2)
    pairs = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    lengths = [int(value) for name, value in pairs if name.lower() == "content-length"]
    body = await reader.readexactly(lengths[0]) if lengths else b""
    kept = tuple(pair for pair in pairs if pair[0].lower() not in _LEFT_OUT)
    return Request(method, target, kept, body)


def status_of(answer: bytes) -> int:
    """Return the status code of an answer; 0 when it is none."""
    found = _STATUS.match(answer)
    return int(found[1]) if found else 0


def refusal(code: int, reason: str, message: str, **headers: str) -> bytes:
    """Return an answer with which Kubernetes refuses."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    body = json.dumps(status).encode()
    lines = [f"HTTP/1.1 {code} {reason}", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode() + body
