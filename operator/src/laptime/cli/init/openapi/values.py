"""Values of requests: from the examples of an OpenAPI document, else from its schemas. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from laptime.cli.init.openapi.node import CannotMake, Node

MISSING: Any = object()
"""Stands for no value, since null is one."""
_BY_FORMAT = {
    "date": "2024-01-31",
    "date-time": "2024-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "user@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000001",
    "byte": "dGV4dA==",
    "password": "Correct-Horse-7",
}
_TRIED = (
    "text",
    "Text",
    "TEXT",
    "abc",
    "ABC",
    "123",
    "1",
    "12345",
    "text-1",
    "2024-01-31",
    "+15550100",
)
_LONGEST = 65_536
"""Of what is made, in letters: no request takes more."""
_GREATEST = 1e300


Fill = Callable[[str, Any, Node], Any]
"""What stands in a field instead, by its name, its value and its schema; MISSING: what it has."""


@dataclass(frozen=True)
class Name:
    """The name of a value in a template."""

    name: str


@dataclass(frozen=True)
class Template:
    """A text with names in it."""

    parts: tuple[str | Name, ...]
    bare: bool = False
    """In JSON it is a number, and stands without quotation marks."""

    def written(self, literal: Callable[[str], str], encoding: str = "") -> str:
        """Return it as the model writes templates, each text in it as `literal` has it."""
        return "".join(
            f"{{{{{part.name}{encoding}}}}}" if isinstance(part, Name) else literal(part)
            for part in self.parts
        )


def named(name: str, *, bare: bool = False) -> Template:
    """Return the template of a value alone."""
    return Template((Name(name),), bare)


def escaped(text: str) -> str:
    """Return a text as a template that means it."""
    return text.replace("{{", "{{'{{'}}").replace("{id}", "{{'{'}}id}")


def json_text(value: Any) -> str:
    """Return JSON in which templates stand.

    Raises:
        CannotMake: a number is none of JSON, as YAML has .nan and .inf.
    """
    if isinstance(value, Template):
        text = value.written(lambda one: escaped(json.dumps(one, ensure_ascii=False)[1:-1]))
        return text if value.bare else f'"{text}"'
    if isinstance(value, Mapping):
        fields = (f"{json_text(str(key))}: {json_text(one)}" for key, one in value.items())
        return "{" + ", ".join(fields) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    try:
        return escaped(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except ValueError:
        said = json.dumps(value)
        raise CannotMake(f"{said} is no value of JSON: write another example") from None


def url_text(value: Any) -> str:
    """Return a value as a path or a query has it, percent-encoded."""
    if isinstance(value, Template):
        return value.written(_quoted)
    return _quoted(plain(value))


def form_text(value: Any) -> str:
    """Return a value as the body of a form has it."""
    if isinstance(value, Template):
        return value.written(_quoted, "|url")
    return _quoted(plain(value))


def line_text(value: Any) -> str:
    """Return a value as a header field or a text has it."""
    return value.written(escaped) if isinstance(value, Template) else escaped(plain(value))


def plain(value: Any) -> str:
    """Return a value of JSON as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _quoted(text: str) -> str:
    return quote(text, safe="")


def example_of(node: Node) -> Any:
    """Return the example of a parameter or of a media type; MISSING if it has none."""
    if "example" in node:
        return node["example"].value
    for _, one in node["examples"].items():
        if "value" in one:
            return one["value"].value
    return MISSING


def other_examples(node: Node) -> list[str]:
    """Return the names of the examples that `example_of` does not take."""
    return [] if "example" in node else node["examples"].names()[1:]


def stated(schema: Node) -> Any:
    """Return the value that a schema itself says: its example, default, or the first one allowed.

    MISSING if it says none.
    """
    if "example" in schema:
        return schema["example"].value
    for one in schema["examples"].each():
        return one.value
    for key in ("default", "const"):
        if key in schema:
            return schema[key].value
    for one in schema["enum"].each():
        return one.value
    return MISSING


def made_from(schema: Node, place: str = "", seen: tuple[int, ...] = ()) -> Any:
    """Return a value that meets a schema: what it says itself, else the simplest one.

    Raises:
        CannotMake: it cannot be made; the message says what to write.
    """
    said = stated(schema)
    if said is not MISSING:
        return said
    if schema.target is not None:
        if schema.target in seen:
            raise CannotMake(f"{place or schema.name} contains itself: write an example")
        seen = (*seen, schema.target)
    if "allOf" in schema:
        return _all_of(schema, place, seen)
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return _first_made(list(schema[key].each()), place, seen)
    match type_of(schema):
        case "object":
            return _object(schema, place, seen)
        case "array":
            item = schema["items"]
            return _items(schema, made_from(item, f"{place}[0]", seen), place) if item else []
        case "integer" | "number" as kind:
            return _a_number(schema, kind, place)
        case "boolean":
            return True
        case "null":
            return None
        case "string":
            return _a_text(schema, place)
    raise CannotMake(f"{place or 'the body'} has no type: write an example")


def type_of(schema: Node) -> str:
    """Return the type of a schema, the first that is not null; empty if it says none."""
    said = schema["type"].value
    types = said if isinstance(said, list) else [said] if isinstance(said, str) else []
    for one in types:
        if one != "null":
            return str(one)
    if types:
        return "null"
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    return "array" if "items" in schema else ""


def properties_of(schema: Node, seen: tuple[int, ...] = ()) -> dict[str, Node]:
    """Return the fields of an object, those of all its parts (allOf, and the first variant)."""
    if schema.target is not None:
        if schema.target in seen:
            return {}
        seen = (*seen, schema.target)
    found = dict(schema["properties"].items())
    for one in schema["allOf"].each():
        found |= properties_of(one, seen)
    for key in ("oneOf", "anyOf"):
        for one in schema[key].each():
            if fields := properties_of(one, seen):
                return {**fields, **found}
    return found


def required_of(schema: Node, seen: tuple[int, ...] = ()) -> set[str]:
    """Return the names of the fields that an object must have."""
    if schema.target is not None:
        if schema.target in seen:
            return set()
        seen = (*seen, schema.target)
    listed = schema["required"].value
    found = {str(one) for one in listed} if isinstance(listed, list) else set()
    for one in schema["allOf"].each():
        found |= required_of(one, seen)
    return found


def _items(schema: Node, item: Any, place: str) -> list[Any]:
    least = max(1, _number(schema, "minItems", 0))
    # Of lists in lists each multiplies what is in it.
    if least > 1 and least * len(json_text(item)) > _LONGEST:
        raise CannotMake(f"{place or 'the body'} has {least:.6g} items or more: write an example")
    return [item] * int(least)


def _object(schema: Node, place: str, seen: tuple[int, ...]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    required = required_of(schema)
    for name, one in schema["properties"].items():
        if one["readOnly"].value is True:
            continue
        if name in required or stated(one) is not MISSING:
            made[name] = made_from(one, f"{place}.{name}" if place else name, seen)
    if not made and schema["additionalProperties"].is_mapping and required:
        made = {name: made_from(schema["additionalProperties"], name, seen) for name in required}
    return made


def _all_of(schema: Node, place: str, seen: tuple[int, ...]) -> Any:
    made: dict[str, Any] = {}
    for one in schema["allOf"].each():
        if stated(one) is MISSING and not type_of(one) and not _composed(one):
            continue  # It only says what is required, or describes.
        part = made_from(one, place, seen)
        if not isinstance(part, dict):
            return part
        made |= part
    fields = properties_of(schema)
    for name in sorted(required_of(schema) - set(made)):
        if name in fields and fields[name]["readOnly"].value is not True:
            made[name] = made_from(fields[name], f"{place}.{name}" if place else name, seen)
    return made | _object(schema, place, seen)


def _composed(schema: Node) -> bool:
    return any(key in schema for key in ("allOf", "oneOf", "anyOf"))


def _first_made(variants: list[Node], place: str, seen: tuple[int, ...]) -> Any:
    said = f"{place or 'the body'} has no variant: write an example"
    for one in variants:
        if type_of(one) == "null":
            continue
        try:
            return made_from(one, place, seen)
        except CannotMake as error:
            said = str(error)
    raise CannotMake(said)


def _number(schema: Node, key: str, otherwise: float) -> float:
    value = schema[key].value
    if not isinstance(value, int | float) or isinstance(value, bool):
        return otherwise
    # No number of JSON is infinite; .inf and .nan of YAML say nothing.
    return value if abs(value) <= _GREATEST else otherwise


def _bound(schema: Node, key: str, excluding: str, none: float) -> tuple[float, bool]:
    """Return a bound and whether it is excluded itself: 3.0 has a flag for that, 3.1 a number."""
    bound, apart = _number(schema, key, none), _number(schema, excluding, none)
    tighter = apart if none == -math.inf and apart >= bound else bound
    tighter = apart if none == math.inf and apart <= bound else tighter
    said = schema[excluding].value
    return tighter, said is True or (tighter == apart and math.isfinite(apart))


def _a_number(schema: Node, kind: str, place: str) -> int | float:
    step = _number(schema, "multipleOf", 1) or 1
    least, above = _bound(schema, "minimum", "exclusiveMinimum", -math.inf)
    most, below = _bound(schema, "maximum", "exclusiveMaximum", math.inf)
    value = math.ceil(max(least, min(1, most)) / step) * step
    if above and value <= least:
        value += step
    if value > most or (below and value >= most):
        value = (math.ceil(most / step) - 1) * step if below else math.floor(most / step) * step
    if kind == "number" and value < least and "multipleOf" not in schema:
        value = (least + most) / 2
    if not least <= value <= most or (above and value == least) or (below and value == most):
        raise CannotMake(f"{place or 'a number'}: none was found in its bounds: write an example")
    return int(value) if value == int(value) else value


def _a_text(schema: Node, place: str) -> str:
    least, most = _number(schema, "minLength", 0), _number(schema, "maxLength", math.inf)
    if least > _LONGEST:
        raise CannotMake(f"{place or 'a text'} has {least:.6g} letters or more: write an example")
    form = schema.text("format")
    if form == "binary":
        raise CannotMake(f"{place or 'the body'} is a file: write an example")
    first = [_BY_FORMAT[form]] if form in _BY_FORMAT else []
    for name in ("email", "password"):
        if not first and name in place.rpartition(".")[2].lower():
            first = [_BY_FORMAT[name]]
    pattern = schema.text("pattern")
    for one in (*first, *_TRIED):
        text = one.ljust(int(least), one[-1])[: int(min(most, _LONGEST))]
        if not pattern or _matches(pattern, text):
            return text
    raise CannotMake(f"{place or 'a text'} must match {pattern[:60]}: write an example that does")


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False


def filled(value: Any, schema: Node, fill: Fill, name: str = "") -> Any:
    """Return a value with what `fill` says in the place of its fields; MISSING leaves one."""
    replaced = fill(name, value, schema) if name and not isinstance(value, Mapping) else MISSING
    if replaced is not MISSING:
        return replaced
    if isinstance(value, Mapping):
        known, others = properties_of(schema), schema["additionalProperties"]
        return {
            str(key): filled(one, known.get(str(key), others), fill, str(key))
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [filled(one, schema["items"], fill) for one in value]
    return value


def fields_in(value: Any) -> Iterator[str]:
    """Yield the names of all fields of a value that are no objects."""
    children = value.items() if isinstance(value, Mapping) else []
    for name, one in children:
        if isinstance(one, Mapping | list):
            yield from fields_in(one)
        if not isinstance(one, Mapping):
            yield str(name)
    for one in value if isinstance(value, list) else []:
        yield from fields_in(one)
