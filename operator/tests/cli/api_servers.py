"""Servers of the APIs that the tests' documents describe: written by hand, not from them."""

from __future__ import annotations

import json
import re
import secrets
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.serving import served

SHOP_KEY = "key of the shop"


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def matches(self, method: str, pattern: str) -> str | None:
        """Return what stands at {} of a path; the whole path where there is no {}; None."""
        if self.method != method:
            return None
        found = re.fullmatch(pattern.replace("{}", "([^/]+)"), self.path)
        return None if found is None else unquote(found[found.re.groups])


@dataclass(frozen=True)
class Answer:
    """An answer: JSON, unless it has no body."""

    status: int = 200
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


NOT_FOUND = Answer(404, {"code": 404})


@contextmanager
def serving(answer: Callable[[Asked], Answer]) -> Iterator[str]:
    """Serve an API on this machine, and yield its address."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_any(self) -> None:
            url = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                said = answer(Asked(self.command, url.path, parse_qs(url.query), headers, body))
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            sent = b"" if said.json is None else json.dumps(said.json).encode()
            if sent:
                self.send_header("Content-Type", "application/json; charset=utf-8")
            if said.status != 204:
                self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_any

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}"


class PetShop:
    """Clients choose the numbers of pets; orders are of pets that there are."""

    def __init__(self) -> None:
        self.pets: dict[int, dict[str, Any]] = {7: {"id": 7, "name": "Minka", "tag": None}}
        self.orders: list[dict[str, Any]] = []

    def __call__(self, asked: Asked) -> Answer:
        if asked.path == "/healthz":
            return Answer()
        if asked.matches("GET", "/v1/pets"):
            limit = int(asked.query["limit"][0])
            return Answer(json=list(self.pets.values())[:limit])
        if asked.matches("POST", "/v1/pets"):
            pet = asked.json
            if pet["id"] in self.pets or not isinstance(pet["name"], str):
                return Answer(409, {"code": 1})
            self.pets[pet["id"]] = pet
            return Answer(201)
        if asked.matches("PUT", "/v1/pets"):
            pet = asked.json
            if pet["id"] not in self.pets:
                return NOT_FOUND
            self.pets[pet["id"]] |= pet
            return Answer(json=self.pets[pet["id"]])
        if number := asked.matches("GET", "/v1/pets/{}"):
            pet = self.pets.get(int(number))
            return Answer(json=pet) if pet else NOT_FOUND
        if number := asked.matches("DELETE", "/v1/pets/{}"):
            return Answer(204) if self.pets.pop(int(number), None) else NOT_FOUND
        if asked.matches("GET", "/v1/store/inventory"):
            if asked.headers.get("x-shop-key") != SHOP_KEY:
                return Answer(401, {"code": 2})
            return Answer(json={"free": len(self.pets)})
        if asked.matches("POST", "/v1/store/orders"):
            order = asked.json
            if order["petId"] not in self.pets or order["quantity"] <= 0:
                return Answer(422, {"code": 3})
            self.orders.append({"id": len(self.orders), "complete": False, **order})
            return Answer(json=self.orders[-1])
        if number := asked.matches("GET", "/v1/store/orders/{}"):
            known = int(number) < len(self.orders)
            return Answer(json=self.orders[int(number)]) if known else NOT_FOUND
        return NOT_FOUND


class Orders:
    """Users register, log in with a form, and see their own orders."""

    def __init__(self) -> None:
        self.users: dict[str, str] = {}
        self.tokens: dict[str, str] = {}
        self.orders: dict[str, dict[str, Any]] = {}

    def __call__(self, asked: Asked) -> Answer:
        if asked.path == "/healthz":
            return Answer()
        if asked.matches("POST", "/auth/register"):
            email, password = asked.json["email"], asked.json["password"]
            if email in self.users or len(password) < 12:
                return Answer(422, {"detail": "taken, or too short"})
            self.users[email] = password
            return Answer(201, {"id": len(self.users), "email": email, "full_name": None})
        if asked.matches("POST", "/auth/token"):
            form = parse_qs(asked.body.decode())
            email = form["username"][0]
            if self.users.get(email) != form["password"][0]:
                return Answer(401, {"detail": "unknown"})
            token = secrets.token_urlsafe(24)
            self.tokens[token] = email
            return Answer(json={"access_token": token, "token_type": "bearer"})
        if asked.matches("GET", "/products"):
            row = {"id": 31, "name": "Lamp", "price": 9.5}
            return Answer(json={"total": 1, "items": [row]})
        token = asked.headers.get("authorization", "").removeprefix("Bearer ")
        user = self.tokens.get(token)
        if user is None:
            return Answer(401, {"detail": "who are you"})
        return self._as_user(asked, user, token)

    def _as_user(self, asked: Asked, user: str, token: str) -> Answer:
        if asked.matches("GET", "/users/me"):
            return Answer(json={"id": list(self.users).index(user) + 1, "email": user})
        if asked.matches("POST", "/auth/logout"):
            del self.tokens[token]
            return Answer(204)
        if asked.matches("GET", "/orders"):
            return Answer(json=list(self.orders.values()))
        if asked.matches("POST", "/orders"):
            lines = asked.json["lines"]
            if not lines or any(one["product_id"] != 31 for one in lines):
                return Answer(422, {"detail": "no such product"})
            order = {"id": str(uuid.uuid4()), "lines": lines, "note": asked.json.get("note")}
            self.orders[order["id"]] = order
            return Answer(201, order, {"Location": f"/orders/{order['id']}"})
        for method in ("GET", "PATCH", "DELETE"):
            key = asked.matches(method, "/orders/{}")
            if key is not None and key in self.orders:
                if method == "DELETE":
                    del self.orders[key]
                    return Answer(204)
                if method == "PATCH":
                    self.orders[key] |= asked.json
                return Answer(json=self.orders[key])
        return NOT_FOUND


def catalogue(asked: Asked) -> Answer:
    """A catalogue that can only be read."""
    path = asked.path.removeprefix("/api/v2")
    tree = {"name": "Books", "children": [{"name": "Maps"}]}
    rows: list[dict[str, Any]] = [
        {"sku": "BK-100", "name": "Atlas", "category": tree},
        {"sku": "BK-200", "name": "Globe / small"},
    ]
    if asked.path == "/healthz" or path == "/health":
        return Answer()
    if path == "/products":
        wanted = {
            "page": ["1"], "category": ["books & maps"], "tags": ["new,sale"],
            "price[min]": ["1"], "price[max]": ["20"],
        }  # fmt: skip
        if asked.query != wanted or asked.headers.get("x-locale") != "en":
            return Answer(400, {"got": asked.query})
        return Answer(json={"page": 1, "data": rows})
    if path == "/categories":
        return Answer(json=[tree])
    if path == "/search":
        enough = len(asked.query["q"][0]) >= 3
        return Answer(json=[rows[0], tree]) if enough else Answer(400, {})
    if path == "/latest":
        return Answer(302, headers={"Location": "/api/v2/products/BK-200"})
    for row in rows:
        if path == f"/products/{row['sku']}":
            return Answer(json=row)
        if path == f"/products/{row['sku']}/reviews":
            return Answer(json=[{"stars": 5}])
    return NOT_FOUND
