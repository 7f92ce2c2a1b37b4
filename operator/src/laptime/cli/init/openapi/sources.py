"""Which operation answers what another one needs: the id of a path, the token of a header."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from laptime.cli.init.names import singular, words_of
from laptime.cli.init.openapi.document import Operation, shape_of
from laptime.cli.init.openapi.node import CannotMake, Node, path_of
from laptime.cli.init.openapi.values import fields_in, properties_of, type_of

_KEYS = ("id", "uuid", "key", "slug", "sku", "code", "number", "isbn", "username", "name")
"""What rows are told apart by, where a parameter's name ends with it."""
_COMMON = ("id", "name", "key", "code", "type", "status", "number")
_TOKENS = ("accesstoken", "token", "idtoken", "jwt", "authtoken", "bearertoken", "sessiontoken")
_LOGIN = {"login", "signin", "token", "session", "sessions", "auth", "authenticate", "authorize"}
_NO_LOGIN = {"refresh", "revoke", "logout", "verify", "register", "signup", "reset"}
_IDENTITY = ("username", "email", "login", "user", "name", "phone")
_Fields = list[tuple[int, str, str]]
"""Fields of an answer: the place of the object that each is in, its name, its JSON pointer."""
_LAST_OF_LOCATION = "([^/?#]+)/?$"


@dataclass(frozen=True)
class Source:
    """A value that the answer of an operation has."""

    producer: Operation
    wanted: str
    """How it is best called in templates."""
    capture: dict[str, str]
    """Where it is, as a capture has it."""


@dataclass(frozen=True)
class Login:
    """The operation by which a client becomes known."""

    operation: Operation
    token: dict[str, str] | None
    """Where the token is; None: nothing says so."""
    registration: Operation | None
    """What makes the user that logs in; None: the server must know one."""


def squeezed(name: str) -> str:
    """Return a name without what words are joined by: `petid`."""
    return "".join(words_of(name))


@dataclass(frozen=True)
class Rows:
    """What a collection holds, by the parameter that stands for one row in paths."""

    collection: str
    """Its path, such as /pets."""
    parameter: str

    @property
    def row(self) -> str:
        """What one of them is called: pet."""
        static = [one for one in self.collection.split("/") if one and not one.startswith("{")]
        words = words_of(static[-1]) if static else ["row"]
        return "".join([*words[:-1], singular(words[-1])]) if words else "row"

    @property
    def value_name(self) -> str:
        """How a template calls the id of a row."""
        words = words_of(self.parameter)
        if len(words) < 2 and squeezed(self.parameter) in _KEYS:
            words = [self.row, *words]
        return words[0] + "".join(word.capitalize() for word in words[1:])

    def is_called(self, field: str) -> bool:
        """Whether a field of that name stands for a row of it."""
        name = squeezed(field)
        own = squeezed(self.parameter)
        return name == f"{self.row}id" or (name == own and own not in _COMMON)

    def rates(self, field: str) -> int:
        """Return how well a field of a row's answer fits its parameter; 0: not at all."""
        name, own = squeezed(field), squeezed(self.parameter)
        if name == own or own == f"{self.row}{name}" or name == f"{self.row}{own}":
            return 3
        if name in _KEYS and own.endswith(name):
            return 2
        return 1 if name in ("id", "uuid") and own.endswith("id") else 0


def rows_at(operation: Operation, parameter: str) -> Rows | None:
    """Return what a parameter of a path stands for; None where it is not a whole segment."""
    before, found, after = operation.path.partition(f"/{{{parameter}}}")
    return Rows(before, parameter) if found and after[:1] in ("", "/") else None


def all_rows(operations: Sequence[Operation]) -> list[Rows]:
    """Return all that parameters of paths stand for."""
    found: dict[Rows, None] = {}
    for operation in operations:
        for one in operation.parameters:
            rows = rows_at(operation, one.name) if one.place == "path" else None
            if rows is not None:
                found[rows] = None
    return list(found)


class Sources:
    """Who answers with what, of all operations of a document; each answer is read once."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._made: dict[str, list[tuple[Operation, _Fields]]] = {}
        self._lists: dict[str, list[tuple[Operation, _Fields]]] = {}
        self._named: dict[str, list[tuple[Operation, str]]] = {}
        self._links: list[tuple[Operation, Node]] = []
        for one in operations:
            # What cannot be read answers with nothing; that is said where it is made a request.
            with suppress(CannotMake):
                self._read(one)

    def _read(self, one: Operation) -> None:
        self._links += [(one, link) for _, link in one.response["links"].items()]
        if one.method == "POST":
            fields = _fields_of(_objects_in(one.answer))
            self._made.setdefault(one.shape, []).append((one, fields))
        elif one.method == "GET" and not one.path.endswith("}"):
            fields = _fields_of(_rows_in(one.answer))
            self._lists.setdefault(one.shape, []).append((one, fields))
            called: dict[str, _Fields] = {}
            for place, name, pointer in fields:
                called.setdefault(squeezed(name), []).append((place, name, pointer))
            for name, alike in called.items():
                best = _best(alike, lambda _: 1)
                self._named.setdefault(name, []).append((one, best or ""))

    def made_by(self, rows: Rows) -> Iterator[Source]:
        """Yield who makes a row and answers with its id."""
        for one, fields in self._made.get(shape_of(rows.collection), ()):
            pointer = _best(fields, rows.rates)
            headers = {name.lower() for name in one.response["headers"].names()}
            if pointer is not None:
                yield Source(one, rows.value_name, {"json": pointer})
            elif "location" in headers:
                where = {"header": "location", "regex": _LAST_OF_LOCATION}
                yield Source(one, rows.value_name, where)

    def listed_by(self, rows: Rows) -> Iterator[Source]:
        """Yield who lists rows with their ids; last other lists, if the name means nothing else."""
        own, shape = squeezed(rows.parameter), shape_of(rows.collection)
        for one, fields in self._lists.get(shape, ()):
            pointer = _best(fields, rows.rates)
            if pointer is not None:
                yield Source(one, rows.value_name, {"json": pointer})
        for one, pointer in () if own in _COMMON else self._named.get(own, ()):
            if one.shape != shape:
                yield Source(one, rows.value_name, {"json": pointer})

    def linked(self, operation: Operation, parameter: str) -> Iterator[Source]:
        """Yield whose answers the document itself links to a parameter of an operation."""
        own_id = operation.node.text("operationId")
        own_path = f"{operation.path}/{operation.method}".lower()
        for one, link in self._links:
            named = link.text("operationId") == own_id != ""
            reference = link.text("operationRef").replace("~1", "/").lower()
            if not named and not reference.endswith(own_path):
                continue
            for name, value in link["parameters"].items():
                capture = _expression(value.value)
                if name.rpartition(".")[2] == parameter and capture is not None:
                    rows = rows_at(operation, parameter)
                    yield Source(one, rows.value_name if rows else parameter, capture)


def _expression(value: Any) -> dict[str, str] | None:
    """Return the capture that a runtime expression of OpenAPI means."""
    if not isinstance(value, str):
        return None
    if value.startswith("$response.body#/"):
        return {"json": value.removeprefix("$response.body#")}
    if value.startswith("$response.header."):
        return {"header": value.removeprefix("$response.header.").lower()}
    return None


def _fields_of(found: Iterator[tuple[str, Node]]) -> _Fields:
    """Return the fields that are plain values, with the place of what they are in."""
    return [
        (place, field, f"{pointer}/{_token_of(field)}")
        for place, (pointer, schema) in enumerate(found)
        for field, one in properties_of(schema).items()
        if type_of(one) not in ("object", "array")
    ]


def _best(fields: _Fields, rate: Callable[[str], int]) -> str | None:
    """Return where the field is that is rated best; None: none is rated."""
    rated = ((rate(name), -place, pointer) for place, name, pointer in fields)
    best = max(rated, default=(0, 0, ""))
    return best[2] if best[0] else None


def _token_of(name: str) -> str:
    """Return a name as a JSON pointer has it (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _objects_in(schema: Node) -> Iterator[tuple[str, Node]]:
    """Yield the object that an answer is, and those that stand in it."""
    yield "", schema
    for name, one in properties_of(schema).items():
        if type_of(one) == "object" or properties_of(one):
            yield f"/{_token_of(name)}", one


def _rows_in(schema: Node) -> Iterator[tuple[str, Node]]:
    """Yield the first row of each list in an answer."""
    if schema["items"]:
        yield "/0", schema["items"]
        return
    for pointer, one in _objects_in(schema):
        for name, inner in properties_of(one).items():
            if inner["items"]:
                yield f"{pointer}/{_token_of(name)}/0", inner["items"]


def login_of(root: Node, operations: Sequence[Operation]) -> Login | None:
    """Return the operation by which a client gets its token or its cookie; None: there is none."""
    schemes = list(root["components"]["securitySchemes"].items())
    urls = {
        path_of(flow.text("tokenUrl"), "tokenUrl of a security scheme").strip("/")
        for _, scheme in schemes
        for _, flow in scheme["flows"].items()
    } - {""}
    cookies = [s.text("name") for _, s in schemes if s.text("in") == "cookie"]
    rated = []
    for place, one in enumerate(operations):
        words = {word for part in one.path.split("/") for word in words_of(part)}
        words |= set(words_of(one.node.text("operationId")))
        asked = one.path.strip("/")
        standard = any(asked == url or asked.endswith(f"/{url}") for url in urls)
        token = _token(one.answer) or ({"json": "/access_token"} if standard else None)
        if token is None and cookies and words & _LOGIN and _has_password(one):
            token = {"cookie": cookies[0]}
        if one.method != "POST" or token is None or "refresh" in words:
            continue
        rated.append((standard, bool(words & _LOGIN) - bool(words & _NO_LOGIN), -place, token))
    if not rated:
        return None
    best = max(rated, key=lambda one: one[:3])
    login = operations[-best[2]]
    return Login(login, best[3], _registration(login, operations))


def _token(schema: Node) -> dict[str, str] | None:
    for pointer, one in _objects_in(schema):
        for name in properties_of(one):
            if squeezed(name) in _TOKENS:
                return {"json": f"{pointer}/{_token_of(name)}"}
    return None


def _has_password(operation: Operation) -> bool:
    return any("password" in squeezed(name) for name in _body_fields(operation))


def _body_fields(operation: Operation) -> list[str]:
    if operation.body is None:
        return []
    examples = operation.body.node["example"].value
    return [*properties_of(operation.body.schema), *fields_in(examples)]


def _registration(login: Operation, operations: Sequence[Operation]) -> Operation | None:
    """Return what makes the user that logs in: nobody has to be known for it."""
    if not _has_password(login):
        return None
    asked = {squeezed(name) for name in _body_fields(login)}
    for one in operations:
        if one is login or one.method != "POST" or not _has_password(one):
            continue
        if (one.security and () not in one.security) or "{" in one.path:
            continue
        known = {squeezed(name) for name in _body_fields(one)}
        if any(name in known and (name in asked or "username" in asked) for name in _IDENTITY):
            return one
    return None
