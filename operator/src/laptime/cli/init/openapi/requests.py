"""One operation as a request and its check, and what it needs of others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from laptime.cli.init.names import words_of
from laptime.cli.init.openapi.document import (
    FORM,
    Operation,
    Parameter,
    is_json,
    shape_of,
)
from laptime.cli.init.openapi.node import CannotMake, Node
from laptime.cli.init.openapi.schemas import answer_schema
from laptime.cli.init.openapi.sources import (
    Login,
    Rows,
    Source,
    Sources,
    all_rows,
    rows_at,
    squeezed,
)
from laptime.cli.init.openapi.values import (
    MISSING,
    Name,
    Template,
    example_of,
    filled,
    form_text,
    json_text,
    line_text,
    made_from,
    named,
    other_examples,
    plain,
    stated,
    url_text,
)
from laptime.cli.init.translation import Document

NUMBER = "n"
FIRST_NUMBER, LAST_NUMBER = 100_000_000_000, 999_999_999_999
"""Twelve digits, as a part of a UUID has them; so many that one hardly ever comes twice."""
_DIGITS = 12
_UNIQUE = ("email", "username", "login", "slug", "handle", "nickname")
_MOST_BODY = 65_536
_TOKEN = "token"


@dataclass
class Made:
    """An operation as a request, as far as it is made."""

    operation: Operation
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    body_value: Any = None
    """What the body is made of, before it is written."""
    needs: list[Operation] = field(default_factory=list)
    captures: list[Document] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def request(self) -> Document:
        """Return it as a request of a scenario."""
        one = self.operation
        sent: Document = {"name": one.name}
        if one.method != "GET":
            sent["method"] = one.method
        sent["path"] = self.path
        for key, value in (("headers", self.headers), ("cookies", self.cookies)):
            if value:
                sent[key] = dict(value)
        if self.body is not None:
            sent["body"] = self.body
        if one.status != 200:
            sent["expectStatus"] = one.status
        if self.captures:
            sent["captures"] = [dict(capture) for capture in self.captures]
        return sent

    def check(self) -> Document:
        """Return it as a check: status, media type and schema of a right answer."""
        one, check = self.operation, self.request()
        if one.media_type is not None and one.status not in (204, 205, 304):
            check["contentType"] = one.media_type
            if schema := answer_schema(one.answer) if one.answer else {}:
                check["jsonSchema"] = schema
        check["times"] = 1
        return check


class Requests:
    """Makes operations into requests; one that is needed by another is made before it."""

    def __init__(self, root: Node, operations: Sequence[Operation], login: Login | None) -> None:
        self._schemes = root["components"]["securitySchemes"]
        self._operations = operations
        self._rows = all_rows(operations)
        self._sources = Sources(operations)
        self._login = login
        self._made: dict[str, Made | None] = {}
        self._values: dict[tuple[str, str], str] = {}
        self.wanted: dict[str, list[str]] = {}
        """Values that nobody answers with, by the names of their feeders: who needs them."""
        self.left_out: list[str] = []

    def made(self, operation: Operation) -> Made | None:
        """Return an operation as a request; None where that cannot be, or is in the making."""
        if operation.title not in self._made:
            self._made[operation.title] = None
            try:
                self._made[operation.title] = self._make(operation)
            except CannotMake as error:
                self.left_out.append(f"{operation.title}: {error}")
        return self._made[operation.title]

    def _make(self, operation: Operation) -> Made:
        making = Made(operation, notes=list(operation.notes))
        self._parameters(making)
        if operation.body is not None:
            self._body(making, operation.body.media_type)
        if len(operation.response["content"].names()) > 1 and operation.media_type:
            making.headers.setdefault("accept", operation.media_type)
        if self._login is None or operation is not self._login.operation:
            self._become_known(making)
        return making

    # Parameters ---------------------------------------------------------------------------

    def _parameters(self, making: Made) -> None:
        operation, query, unsaid = making.operation, list[str](), list[str]()
        path = operation.path
        for one in operation.parameters:
            value = self._value_of(making, one)
            if value is MISSING:
                unsaid.append(one.name)
            elif one.place == "path":
                path = path.replace(f"{{{one.name}}}", _in_path(one, value))
            elif one.place == "query":
                query += _in_query(one, value)
            elif one.place == "header":
                making.headers[one.name] = line_text(value)
            elif one.place == "cookie":
                making.cookies[one.name] = line_text(value)
        if left := re.search(r"\{([^{}]+)\}", re.sub(r"\{\{.*?\}\}", "", path)):
            raise CannotMake(f"its path has {{{left[1]}}}, and no parameter of that name")
        making.path = path + ("?" + "&".join(query) if query else "")
        if unsaid:
            making.notes.append(f"without {', '.join(unsaid)}: no example")

    def _value_of(self, making: Made, one: Parameter) -> Any:
        """Return the value of a parameter; MISSING for one that may be left out, and is."""
        said = example_of(one.node)
        if said is MISSING and (one.required or _shows(one.schema)):
            said = stated(one.schema)
        if others := other_examples(one.node):
            making.notes.append(f"{one.name}: its other examples are not used: {', '.join(others)}")
        if one.place == "path":
            return self._path_value(making, one.name, said)
        if one.required or said is not MISSING:
            template = self._reference(making, one.name)
            if template is not None:
                return template
        if said is not MISSING or not one.required:
            return said
        making.notes.append(f"{one.name} is made from its schema, and means nothing")
        return made_from(one.schema, one.name)

    def _path_value(self, making: Made, name: str, said: Any) -> Any:
        operation = making.operation
        rows, deletes = rows_at(operation, name), operation.method == "DELETE"
        found = list(self._sources.linked(operation, name))
        if deletes:
            found = [source for source in found if source.producer.method == "POST"]
        value: Any = self._first(making, found)
        if value is None and rows is not None:
            value = self._row(making, rows, listed=not deletes)
        if value is not None:
            return value
        if deletes:
            raise CannotMake(
                "it would delete rows that no request makes again: write a request that makes one "
                f"and captures {name}, or ids with use: once"
            )
        if said is MISSING:
            raise CannotMake(
                f"nobody answers with {name}, and it has no example: write one into the document, "
                "or the request by hand"
            )
        return said

    def _row(self, making: Made, rows: Rows, *, listed: bool = True) -> Any:
        """Return the id of a row; of one that a request makes where that can be.

        Under load a row of a list may be one that another user is about to delete.
        """
        found = self._first(making, self._sources.made_by(rows))
        if found is None:
            found = self._from_body(making, rows)
        if found is None and listed:
            found = self._first(making, self._sources.listed_by(rows))
        return found

    def _first(self, making: Made, sources: Iterable[Source]) -> Template | None:
        """Return the template of the first value that can be had; who answers with it is needed."""
        for source in sources:
            if source.producer is making.operation:
                continue
            producer = self.made(source.producer)
            if producer is None:
                continue
            name = self._captured(producer, source)
            if name is None:
                continue
            _need(making, source.producer)
            making.notes.append(f"{{{{{name}}}}} is what {source.producer.name} answers")
            return named(name)
        return None

    def _captured(self, producer: Made, source: Source) -> str | None:
        """Return the name under which a value of an answer is kept."""
        for known in producer.captures:
            if {key: one for key, one in known.items() if key != "name"} == source.capture:
                return str(known["name"])
        if len(producer.captures) >= 8:
            return None
        name = self._free_name(source.wanted, str(source.capture))
        producer.captures.append({"name": name, **source.capture})
        return name

    def _free_name(self, wanted: str, of: str) -> str:
        plain_name = re.sub(r"[^-_A-Za-z0-9]", "_", wanted)[:36]
        if not re.match("[A-Za-z_]", plain_name) or plain_name in ("id", NUMBER):
            plain_name = f"the_{plain_name}"
        name, number = plain_name, 1
        while self._values.setdefault((name, ""), of) != of:
            number += 1
            name = f"{plain_name}{number}"
        return name

    def _from_body(self, making: Made, rows: Rows) -> Any:
        """Return the id of a row that its maker chooses himself, such as a user's name."""
        shape = shape_of(rows.collection)
        for one in self._operations:
            if one.method != "POST" or one.shape != shape or one is making.operation:
                continue
            producer = self.made(one)
            value = producer.body_value if producer is not None else None
            rated = [
                (rows.rates(name), name)
                for name, said in (value.items() if isinstance(value, Mapping) else [])
                if isinstance(said, Template | str | int)
            ]
            best = max(rated, default=(0, ""))
            if best[0] and isinstance(value, Mapping):
                _need(making, one)
                making.notes.append(f"the {rows.parameter} is the {best[1]} that {one.name} sends")
                return value[best[1]]
        return None

    def _reference(self, making: Made, name: str) -> Any:
        """Return the id of a row that a field means by its name, such as petId; None: of none."""
        for rows in self._rows:
            found = self._row(making, rows) if rows.is_called(name) else None
            if found is not None:
                return found
        return None

    # Bodies -------------------------------------------------------------------------------

    def _body(self, making: Made, media_type: str) -> None:
        operation = making.operation
        assert operation.body is not None
        node, schema = operation.body.node, operation.body.schema
        if others := other_examples(node):
            making.notes.append(f"its other example bodies are not used: {', '.join(others)}")
        value = example_of(node)
        if value is MISSING:
            value = made_from(schema)
        if _is_login(self._login, operation):
            value = self._credentials(making, value)
        else:
            value = filled(value, schema, lambda *one: self._field(making, *one))
        making.body_value = value
        making.headers["content-type"] = media_type
        if is_json(media_type):
            making.body = json_text(value)
        elif media_type.partition(";")[0].strip().lower() == FORM:
            making.body = _form(value)
        else:
            making.body = line_text(value)
        if len(making.body.encode()) > _MOST_BODY:
            raise CannotMake(f"its body is larger than {_MOST_BODY} bytes: write a smaller example")

    def _field(self, making: Made, name: str, value: Any, schema: Node) -> Any:
        """Return what stands in a field of a body instead of what the document says."""
        method = making.operation.method
        many = isinstance(value, list)
        if many and all(isinstance(one, str | int) for one in value) and name.endswith("s"):
            found = self._reference(making, name[:-1])
            return MISSING if found is None else [_as(found, value[0] if value else "")]
        if not isinstance(value, str | int) or isinstance(value, bool):
            return MISSING
        if squeezed(name) == "id":
            if method == "POST":
                return _numbered_id(value, schema)
            found = self._own_id(making)
        else:
            found = self._reference(making, name)
        if found is not None:
            return _as(found, value)
        return _numbered(name, value, schema)

    def _own_id(self, making: Made) -> Any:
        """Return the id of the row that an operation is about: by its path, or its collection."""
        path = making.operation.path
        for rows in self._rows:
            if path == rows.collection or path.startswith(f"{rows.collection}/{{"):
                return self._row(making, rows)
        return None

    def _credentials(self, making: Made, value: Any) -> Any:
        """Return the body of a login: the name and password that were registered before it."""
        login = self._login
        if not isinstance(value, Mapping) or login is None:
            return value
        value = {
            name: "password" if squeezed(name) == "granttype" else one
            for name, one in value.items()
        }
        registered = self.made(login.registration) if login.registration else None
        if registered is None or not isinstance(registered.body_value, Mapping):
            return value
        known = {squeezed(name): one for name, one in registered.body_value.items()}
        _need(making, registered.operation)
        making.notes.append(f"name and password are those that {registered.operation.name} sends")
        return {
            name: known.get(
                squeezed(name), known.get("email", one) if squeezed(name) == "username" else one
            )
            for name, one in value.items()
        }

    # Security -----------------------------------------------------------------------------

    def _become_known(self, making: Made) -> None:
        """Add what says who asks, by the first alternative of which all can be had."""
        alternatives = making.operation.security
        if not alternatives:
            return
        chosen = min(alternatives, key=lambda one: sum(not self._can_have(s) for s in one))
        if () in alternatives and not all(map(self._can_have, chosen)):
            chosen = ()
        for name in chosen:
            self._prove(making, name)

    def _can_have(self, scheme: str) -> bool:
        if self._login is None:
            return False
        node = self._schemes[scheme]
        token = self._login.token
        if node.text("in") == "cookie":
            return token is not None and "cookie" in token
        if token is None or "cookie" in token:
            return False
        return _is_bearer(node) or node.text("name").lower() == "authorization"

    def _prove(self, making: Made, scheme: str) -> None:
        node = self._schemes[scheme]
        kind, place, name = node.text("type"), node.text("in"), node.text("name")
        if kind not in ("http", "oauth2", "openIdConnect", "apiKey"):
            raise CannotMake(f"it needs {scheme} ({kind or 'not described'}), which a scenario has "
                             "no words for")  # fmt: skip
        token = self._token(making) if self._can_have(scheme) else None
        if token is None:
            basic = kind == "http" and node.text("scheme").lower() == "basic"
            wanted = _TOKEN if _is_bearer(node) else "basic" if basic else scheme
            feeder = self._free_name(wanted, f"security {wanted}")
            self.wanted.setdefault(feeder, []).append(making.operation.name)
            token = named(feeder)
        if kind != "apiKey":
            word = "Basic " if node.text("scheme").lower() == "basic" else "Bearer "
            making.headers["authorization"] = word + line_text(token)
        elif place == "header":
            word = "Bearer " if name.lower() == "authorization" else ""
            making.headers[name] = word + line_text(token)
        elif place == "cookie":
            making.cookies[name] = line_text(token)
        else:
            sign = "&" if "?" in making.path else "?"
            making.path += f"{sign}{url_text(name)}={url_text(token)}"

    def _token(self, making: Made) -> Template | None:
        login = self._login
        if login is None or login.token is None:
            return None
        producer = self.made(login.operation)
        if producer is None:
            return None
        name = self._captured(producer, Source(login.operation, _TOKEN, login.token))
        if name is not None:
            _need(making, login.operation)
        return named(name) if name is not None else None


def _need(making: Made, producer: Operation) -> None:
    if producer not in making.needs:
        making.needs.append(producer)


def _is_login(login: Login | None, operation: Operation) -> bool:
    return login is not None and operation is login.operation


def _is_bearer(scheme: Node) -> bool:
    bearer = scheme.text("type") == "http" and scheme.text("scheme").lower() == "bearer"
    return bearer or scheme.text("type") in ("oauth2", "openIdConnect")


def _shows(schema: Node) -> bool:
    """Whether a schema has an example, which is more than a default or a choice."""
    return "example" in schema or bool(schema["examples"].value)


def _as(found: Any, value: Any) -> Any:
    """Return what was found as the same kind of JSON as a value."""
    return Template(found.parts, isinstance(value, int)) if isinstance(found, Template) else found


def _numbered_id(value: Any, schema: Node) -> Any:
    """Return an id that a client chooses, another one each time."""
    if isinstance(value, int):
        small = schema.text("format") == "int32" or "maximum" in schema
        return MISSING if small else named(NUMBER, bare=True)
    if re.fullmatch("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        return Template((value[:24], Name(NUMBER)))
    return _with_number(value, schema)


def _numbered(name: str, value: Any, schema: Node) -> Any:
    """Return a value of which there may be one only, such as an address of mail."""
    words = words_of(name)
    known = {"".join(words[at:]) for at in range(len(words))}
    if not isinstance(value, str) or not known & set(_UNIQUE) or "enum" in schema:
        return MISSING
    return _with_number(value, schema)


def _with_number(value: str, schema: Node) -> Any:
    begin, at, end = value.partition("@")
    begin = begin.rstrip("0123456789")
    most = schema["maxLength"].value
    if isinstance(most, int):
        begin = begin[: max(0, most - _DIGITS - len(at + end))]
    example = f"{begin}{FIRST_NUMBER}{at}{end}"
    pattern = schema.text("pattern")
    try:
        fits = not pattern or re.search(pattern, example) is not None
    except re.error:
        fits = False
    if not fits or (isinstance(most, int) and len(example) > most):
        return MISSING
    return Template(tuple(part for part in (begin, Name(NUMBER), at + end) if part))


def _in_path(parameter: Parameter, value: Any) -> str:
    if parameter.node.text("style") not in ("", "simple"):
        raise CannotMake(f"{parameter.name} is of the style {parameter.node.text('style')}: write "
                         "the request by hand")  # fmt: skip
    if parameter.as_json:
        return url_text(plain(value))
    values = value if isinstance(value, list) else [value]
    if isinstance(value, Mapping) or not values or any(url_text(one) == "" for one in values):
        raise CannotMake(f"{parameter.name} is no value of a path: write another example")
    return ",".join(map(url_text, values))


def _in_query(parameter: Parameter, value: Any) -> list[str]:
    """Return the pairs of a parameter by its style (OpenAPI, Style Values)."""
    name, style = url_text(parameter.name), parameter.node.text("style") or "form"
    said = parameter.node["explode"].value
    apart = said if isinstance(said, bool) else style == "form"
    if parameter.as_json:
        return [f"{name}={url_text(plain(value))}"]
    if isinstance(value, Mapping):
        pairs = [(str(key), url_text(one)) for key, one in value.items()]
        if style == "deepObject":
            return [f"{name}[{url_text(key)}]={one}" for key, one in pairs]
        if apart:
            return [f"{url_text(key)}={one}" for key, one in pairs]
        return [f"{name}={','.join(f'{url_text(key)},{one}' for key, one in pairs)}"]
    if not isinstance(value, list):
        return [f"{name}={url_text(value)}"]
    values = [url_text(one) for one in value]
    if apart:
        return [f"{name}={one}" for one in values]
    separator = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}.get(style, ",")
    return [f"{name}={separator.join(values)}"]


def _form(value: Any) -> str:
    if not isinstance(value, Mapping):
        raise CannotMake("its form has no fields: write an example")
    return "&".join(
        f"{form_text(str(name))}={form_text(item)}"
        for name, one in value.items()
        for item in (one if isinstance(one, list) else [one])
    )
