"""Schemas of OpenAPI 3.0 and 3.1 as JSON Schema (2020-12) that refers to nothing outside.

What a schema of 3.0 writes in words of its own (nullable, exclusiveMinimum: true) is said in those
of JSON Schema. What says nothing about an answer is left out.
"""

from __future__ import annotations

import json
import re
from typing import Any

from laptime.cli.init.openapi.node import Node

_TAKEN = (
    *("type", "enum", "const", "multipleOf", "maximum", "minimum", "exclusiveMaximum"),
    *("exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems"),
    *("uniqueItems", "maxProperties", "minProperties", "required", "minContains", "maxContains"),
    *("dependentRequired",),
)
_ONE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_BY_NAME = ("properties", "patternProperties", "dependentSchemas")
Schema = dict[str, Any]


def answer_schema(schema: Node) -> Schema:
    """Return the JSON Schema of an answer: fields that are only written are not in it.

    `oneOf` becomes `anyOf`: documents often list variants that overlap, which is no wrong answer.

    Raises:
        CannotMake: a reference in it leads nowhere.
    """
    making = _Making()
    made = making.converted(schema)
    if not isinstance(made, dict):
        return {} if made else {"not": {}}
    name = str(made.get("$ref", "")).removeprefix("#/$defs/")
    if name in making.defs and f'"#/$defs/{name}"' not in json.dumps(making.defs):
        made = making.defs.pop(name)
    return {**made, "$defs": making.defs} if making.defs else made


class _Making:
    def __init__(self) -> None:
        self.defs: dict[str, Schema] = {}
        self._names: dict[int, str] = {}

    def converted(self, node: Node) -> Schema | bool:
        if node.target is None:
            return self._plain(node)
        name = self._names.get(node.target)
        if name is None:
            name = _name(node.name, self.defs)
            self._names[node.target] = name
            self.defs[name] = {}
            plain = self._plain(node)
            self.defs[name] = plain if isinstance(plain, dict) else {} if plain else {"not": {}}
        return {"$ref": f"#/$defs/{name}"}

    def _plain(self, node: Node) -> Schema | bool:
        if isinstance(node.value, bool):
            return node.value
        made: Schema = {
            key: node.value[key] for key in _TAKEN if node.is_mapping and key in node.value
        }
        for key in _ONE:
            if key in node:
                made[key] = self.converted(node[key])
        for key in _LISTS:
            if variants := [self.converted(one) for one in node[key].each()]:
                made["anyOf" if key == "oneOf" and "anyOf" not in node else key] = variants
        for key in _BY_NAME:
            parts = {
                name: self.converted(one)
                for name, one in node[key].items()
                if one["writeOnly"].value is not True
            }
            if parts:
                made[key] = parts
        unseen = {n for n, one in node["properties"].items() if one["writeOnly"].value is True}
        _without(made, unseen)
        _bounds(made)
        return _nullable(made) if node["nullable"].value is True else made


def _without(made: Schema, unseen: set[str]) -> None:
    """Take fields out that no answer has, and what cannot be understood here."""
    required = made.get("required")
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        made.pop("required", None)
    elif unseen:
        made["required"] = [one for one in required if one not in unseen]
    if not isinstance(made.get("enum"), list):
        made.pop("enum", None)
    if "pattern" in made:
        try:
            re.compile(str(made["pattern"]))
        except re.error:
            # It is written in the regular expressions of JavaScript, which know more.
            del made["pattern"]


def _bounds(made: Schema) -> None:
    """Write bounds that are excluded as numbers, which 3.0 does by a flag beside the bound."""
    for bound, excluded in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(made.get(excluded), bool) and made.pop(excluded) and bound in made:
            made[excluded] = made.pop(bound)


def _nullable(made: Schema) -> Schema:
    if isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        return made
    return {"anyOf": [made, {"type": "null"}]} if made else made


def _name(wanted: str, known: Schema) -> str:
    plain = re.sub(r"[^-_.A-Za-z0-9]", "_", wanted) or "schema"
    name, number = plain, 1
    while name in known:
        number += 1
        name = f"{plain}-{number}"
    return name
