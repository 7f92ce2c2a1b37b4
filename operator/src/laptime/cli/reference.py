"""The reference pages in docs/reference: tables of every field, made from JSON schemas. Pure.

Descriptions, bounds and rules are those of the schemas, so that a page cannot say anything else
than what the API server and Helm enforce.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

GENERATED = "<!-- Generated from {source}: change that, `make generate`. -->"
_UNSET = object()


def resource_page(crd: Schema) -> str:
    """Return the page of every field of a resource, from its CustomResourceDefinition."""
    (version,) = crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    parts = [
        GENERATED.format(source="the models in operator/src/laptime/api"),
        f"# Reference: {crd['spec']['names']['kind']}",
        f"`{crd['spec']['group']}/{version['name']}`, kind `{crd['spec']['names']['kind']}`, short "
        f"name `{crd['spec']['names']['shortNames'][0]}`. {schema['description']} The API server "
        "refuses whatever breaks a bound or a rule, and says so in the words below; "
        "`kubectl laptime validate FILE` says the same without a cluster. The spec is yours"
        + (", the status is the operator's." if "status" in schema["properties"] else ".")
        + f" For editors there is a [JSON schema]({crd['spec']['names']['singular']}.schema.json).",
        "`[]` stands for each entry of a list, `.*` for each value of a map. Where there is no "
        "default, nothing is set.",
        _rule_list("Of `metadata`:", schema),
    ]
    for name in [one for one in ("spec", "status") if one in schema["properties"]]:
        parts.append(f"## {name}")
        parts += _object_parts(name, schema["properties"][name], depth=3)
    return "\n\n".join(part for part in parts if part) + "\n"


def values_page(schema: Schema, values: Schema) -> str:
    """Return the page of every value of the chart.

    `schema` is values.schema.json and `values` is values.yaml, which has the defaults.
    """
    parts = [
        GENERATED.format(source="charts/laptime/values.schema.json and values.yaml"),
        "# Reference: values of the chart",
        "Everything that `helm install --set …` and `--values FILE` take. Helm refuses a value "
        "that is not here, or not as it is allowed here. Values of the types *image* and "
        "*quantities* are objects; their fields stand at the end.",
    ]
    for name, child in schema["properties"].items():
        parts += [f"## {name}", _values_table(name, child, values.get(name, _UNSET), schema)]
    parts.append("## Types")
    for name, definition in schema["$defs"].items():
        if "properties" in definition:
            parts += [
                f"### {name}",
                definition["description"],
                table(
                    ("Field", "Type", "Allowed", "What it is"),
                    [
                        (f"`{key}`", _type(one, schema), _allowed(one, schema), one["description"])
                        for key, one in definition["properties"].items()
                    ],
                ),
            ]
    return "\n\n".join(parts) + "\n"


def _object_parts(path: str, node: Schema, depth: int) -> Iterator[str]:
    """Yield an object's description, table and rules, and after it those of the objects in it."""
    if depth > 3:
        yield f"### {path}"
    yield node.get("description", "")
    required = node.get("required", ())
    yield table(
        ("Field", "Type", "Default", "Allowed", "What it is"),
        [
            (
                f"`{path}.{name}`",
                _type(child, node),
                "required" if name in required else _default(child.get("default", _UNSET)),
                _allowed(child, node),
                child["description"],
            )
            for name, child in node["properties"].items()
        ],
    )
    yield _rule_list("Rules:", node)
    for name, child in node["properties"].items():
        where, inner = _inner(f"{path}.{name}", child)
        if "properties" in inner:
            yield from _object_parts(where, inner, depth + 1)


def _inner(path: str, node: Schema) -> tuple[str, Schema]:
    """Return the path and the schema of what a list or a map holds, or of the node itself."""
    if "items" in node:
        return _inner(f"{path}[]", node["items"])
    if isinstance(node.get("additionalProperties"), dict):
        return _inner(f"{path}.*", node["additionalProperties"])
    return path, node


def _values_table(path: str, node: Schema, default: Any, root: Schema) -> str:
    return table(
        ("Value", "Type", "Default", "Allowed", "What it is"),
        list(_value_rows(path, node, default, root)),
    )


def _value_rows(
    path: str, node: Schema, default: Any, root: Schema
) -> Iterator[tuple[str, str, str, str, str]]:
    if "$ref" not in node and node.get("properties"):
        for name, child in node["properties"].items():
            below = default.get(name, _UNSET) if isinstance(default, dict) else _UNSET
            yield from _value_rows(f"{path}.{name}", child, below, root)
        return
    each = node.get("additionalProperties")
    if isinstance(each, dict) and "$ref" in each and isinstance(default, dict) and default:
        for name, value in default.items():
            yield from _value_rows(f"{path}.{name}", each, value, root)
        return
    yield (
        f"`{path}`",
        _type(node, root),
        _default(default),
        _allowed(node, root),
        node["description"],
    )


def _type(node: Schema, root: Schema) -> str:
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        definition = root["$defs"][name]
        if "properties" in definition:
            return f"[{name}](#{name.lower()})"
        return _type(definition, root)
    if node.get("x-kubernetes-int-or-string"):
        return "quantity"
    if "type" not in node and node.get("x-kubernetes-preserve-unknown-fields"):
        return "any JSON"
    if isinstance(node.get("type"), list):
        return " or ".join(node["type"])
    if "items" in node:
        return f"list of {_type(node['items'], root)}"
    if isinstance(node.get("additionalProperties"), dict):
        return f"map of {_type(node['additionalProperties'], root)}"
    return str(node.get("type") or "string")


def _default(value: Any) -> str:
    if value is _UNSET:
        return ""
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _allowed(node: Schema, root: Schema) -> str:
    return "; ".join(_bounds(node, root))


def _bounds(node: Schema, root: Schema) -> Iterator[str]:
    """Yield what a value must be, in words."""
    if "$ref" in node:
        definition = root["$defs"][node["$ref"].rsplit("/", 1)[1]]
        if "properties" not in definition:
            yield from _bounds(definition, root)
        return
    if "enum" in node:
        yield ", ".join(f"`{value}`" for value in node["enum"])
    yield from _between(node, "minimum", "maximum", "")
    if "pattern" in node:
        yield f"matches `{node['pattern']}`"
    else:
        yield from _between(node, "minLength", "maxLength", " characters")
    yield from _between(node, "minItems", "maxItems", " entries")
    if node.get("uniqueItems") or node.get("x-kubernetes-list-type") == "set":
        yield "no entry twice"
    if node.get("x-kubernetes-list-map-keys"):
        yield f"no `{'`, `'.join(node['x-kubernetes-list-map-keys'])}` twice"
    if "propertyNames" in node:
        names = node["propertyNames"]
        refused = names.get("not", {}).get("pattern")
        yield f"keys do not match `{refused}`" if refused else f"keys match `{names['pattern']}`"
    # Rules of objects stand below the object's own table.
    if "properties" not in node:
        yield from (rule["message"] for rule in node.get("x-kubernetes-validations", ()))
    for inner in ("items", "additionalProperties"):
        child = node.get(inner)
        if isinstance(child, dict) and "properties" not in child:
            yield from (f"each: {one}" for one in _bounds(child, root))


def _between(node: Schema, least: str, most: str, unit: str) -> Iterator[str]:
    low, high = node.get(least), node.get(most)
    if low is not None and high is not None:
        yield f"{low:,} to {high:,}{unit}"
    elif low is not None:
        yield f"at least {low:,}{unit}"
    elif high is not None:
        yield f"at most {high:,}{unit}"


def _rule_list(heading: str, node: Schema) -> str:
    found = node.get("x-kubernetes-validations", ())
    if not found:
        return ""
    return f"{heading}\n\n" + "\n".join(f"- {_text(rule['message'])}" for rule in found)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *([_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(cell: str) -> str:
    """Return text for a cell or an entry of a list: in code, nothing but the bar needs an escape.

    Elsewhere `<` and `*` would be taken for markup.
    """
    pieces = cell.replace("|", "\\|").split("`")
    for number in range(0, len(pieces), 2):
        pieces[number] = pieces[number].replace("<", "&lt;").replace("*", "\\*")
    return "`".join(pieces)
