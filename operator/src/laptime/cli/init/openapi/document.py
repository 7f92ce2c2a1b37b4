"""What an OpenAPI document says of its operations, one by one."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from laptime.cli.init.names import request_name
from laptime.cli.init.openapi.node import CannotMake, Node, follow_all, path_of
from laptime.cli.mistakes import Mistake

METHODS = ("get", "post", "put", "patch", "delete")
_OTHERS = ("head", "options", "trace", "query")
_JSON = re.compile(r"application/(json|[-.\w]+\+json)(;.*)?", re.IGNORECASE)
FORM = "application/x-www-form-urlencoded"
# Of these the specification says that a parameter of that name is ignored.
_NO_PARAMETERS = ("accept", "content-type", "authorization")


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operation."""

    name: str
    place: str
    """path, query, header or cookie."""
    required: bool
    node: Node
    """With its example, style and explode."""
    schema: Node
    """Of its value; that of its content where it has one."""
    as_json: bool = False


@dataclass(frozen=True)
class Body:
    """What an operation takes as its body."""

    media_type: str
    required: bool
    node: Node
    """The media type object, with its examples."""

    @property
    def schema(self) -> Node:
        """The schema of the body."""
        return self.node["schema"]


@dataclass(frozen=True)
class Operation:
    """One operation, and what a right answer to it is."""

    method: str
    path: str
    """As the document writes it, after the path of its server."""
    name: str
    """As a request is named."""
    node: Node
    parameters: tuple[Parameter, ...]
    body: Body | None
    status: int
    response: Node
    media_type: str | None
    """Of a right answer; None: it has no body, or nothing is said."""
    answer: Node
    """The schema of a right answer, where it is JSON."""
    security: tuple[tuple[str, ...], ...]
    """The names of schemes that go together, one after the other that will do; () is none."""
    notes: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"{self.method} {self.path}"

    @functools.cached_property
    def shape(self) -> str:
        """Its path, whatever the parameters are called."""
        return shape_of(self.path)


def shape_of(path: str) -> str:
    """Return a path whatever its parameters are called: `/pets/{}`."""
    return re.sub(r"\{[^{}]*\}", "{}", path)


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON."""
    return _JSON.fullmatch(media_type.strip()) is not None


def base_path(root: Node) -> str:
    """Return the path of the first server of a document, without a / at its end."""
    for server in root["servers"].each():
        url = server.text("url")
        for name, variable in server["variables"].items():
            url = url.replace(f"{{{name}}}", variable.text("default"))
        path = path_of(url, "servers[0].url").rstrip("/")
        return path if not path or path.startswith("/") else f"/{path}"
    return ""


def operations_of(root: Node, left_out: list[str]) -> list[Operation]:
    """Return the operations of a document; what cannot be one is named in `left_out`.

    Raises:
        Mistake: it has no operation at all.
    """
    prefix, found, taken = base_path(root), [], set[str]()
    for path, item in _items(root, left_out):
        for method in (*METHODS, *_OTHERS):
            node = item[method]
            title = f"{method.upper()} {prefix}{path}"
            if not node.is_mapping:
                continue
            if method in _OTHERS:
                left_out.append(f"{title}: a scenario has GET, POST, PUT, PATCH and DELETE")
                continue
            if node["deprecated"].value is True:
                left_out.append(f"{title}: it is deprecated; write it by hand if it is meant")
                continue
            try:
                follow_all(node)
                follow_all(item["parameters"])
                name = request_name(node.text("operationId") or f"{method} {path}", taken)
                one = _operation(root, prefix + path, name, method.upper(), item, node)
            except CannotMake as error:
                left_out.append(f"{title}: {error}")
                continue
            taken.add(one.name)
            found.append(one)
            if "callbacks" in node:
                left_out.append(f"{title}: callbacks: nobody listens for them in a run")
    if "webhooks" in root:
        left_out.append("webhooks: nobody listens for them in a run")
    return found


def _items(root: Node, left_out: list[str]) -> Iterator[tuple[str, Node]]:
    if not root["paths"].is_mapping:
        raise Mistake("the document has no paths: there is nothing to ask for")
    for path in root["paths"].names():
        if path.startswith("x-"):
            continue
        try:
            item = root["paths"][path]
        except CannotMake as error:
            left_out.append(f"{path}: {error}")
            continue
        if item["servers"].value and item["servers"].value != root["servers"].value:
            left_out.append(f"{path}: its own servers; all requests go to the server of the run")
        yield path, item


def _operation(root: Node, path: str, name: str, method: str, item: Node, node: Node) -> Operation:
    notes: list[str] = []
    status, response = _right_answer(node, method, notes)
    media_type, answer = _content(response)
    security = node["security"] if "security" in node else root["security"]
    return Operation(
        method=method,
        path=path,
        name=name,
        node=node,
        parameters=tuple(_parameters(item, node)),
        body=_body(node, notes),
        status=status,
        response=response,
        media_type=media_type,
        answer=answer,
        security=tuple(tuple(one.names()) for one in security.each()),
        notes=tuple(notes),
    )


def _parameters(item: Node, node: Node) -> Iterator[Parameter]:
    found: dict[tuple[str, str], Node] = {}
    for one in (*item["parameters"].each(), *node["parameters"].each()):
        found[one.text("in"), one.text("name")] = one
    for (place, name), one in found.items():
        if place == "header" and name.lower() in _NO_PARAMETERS:
            continue
        content = next(iter(one["content"].items()), None)
        yield Parameter(
            name=name,
            place=place,
            required=one["required"].value is True or place == "path",
            node=content[1] if content else one,
            schema=content[1]["schema"] if content else one["schema"],
            as_json=content is not None and is_json(content[0]),
        )


def _body(node: Node, notes: list[str]) -> Body | None:
    body = node["requestBody"]
    kinds = dict(body["content"].items())
    if not kinds:
        return None
    required = body["required"].value is True
    for wanted in (is_json, FORM.__eq__, lambda kind: kind.startswith("text/")):
        for kind, one in kinds.items():
            if wanted(kind.strip().lower()):
                return Body(kind, required, one)
    for kind, one in kinds.items():
        # Whatever it is: where the document shows one, that is sent.
        if isinstance(one["example"].value, str):
            return Body(kind, required, one)
    if required:
        raise CannotMake(
            f"its body is {' or '.join(kinds)}, which only a script can make: write one "
            "(docs/own-script.md), or a body as text"
        )
    notes.append(f"without its body ({' or '.join(kinds)})")
    return None


def _right_answer(node: Node, method: str, notes: list[str]) -> tuple[int, Node]:
    """Return the status of a right answer and what is said of it."""
    said = {key.upper(): key for key in node["responses"].names()}
    good = sorted(int(code) for code in said if re.fullmatch("2[0-9][0-9]", code))
    if good:
        status = 201 if method == "POST" and 201 in good else good[0]
        if len(good) > 1:
            others = ", ".join(str(one) for one in good if one != status)
            notes.append(f"status {status} is expected; {others} would be right too")
        return status, node["responses"][said[str(status)]]
    if "2XX" in said:
        status = 201 if method == "POST" else 200
        notes.append(f"the document says status 2XX: {status} was taken")
        return status, node["responses"][said["2XX"]]
    moved = sorted(int(code) for code in said if re.fullmatch("3[0-9][0-9]", code))
    if moved:
        return moved[0], node["responses"][said[str(moved[0])]]
    if "DEFAULT" in said:
        notes.append("the document says no status: 200 was taken")
        return 200, node["responses"]["default"]
    raise CannotMake("it has no answer with a status 2xx: write the one that is right")


def _content(response: Node) -> tuple[str | None, Node]:
    """Return media type and schema of an answer: JSON where there is a choice."""
    kinds = dict(response["content"].items())
    for kind, one in kinds.items():
        if is_json(kind):
            return _without_parameters(kind), one["schema"]
    nothing = Node(None, response.resolver)
    for kind in kinds:
        return (None if "*" in kind else _without_parameters(kind)), nothing
    return None, nothing


def _without_parameters(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()
