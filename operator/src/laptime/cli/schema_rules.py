"""What the API server would say to a manifest, said without one: schema, defaults and CEL rules.

The schema is that of the CRD. Rules that look at an older version of the object are left out: a
file has none.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema

from laptime.api.resources import quantity

if TYPE_CHECKING:
    import cel

_NAMED = re.compile(r"(?:^|[.])([^.\[\]]+)(?:\[[^\]]*\])*")
"""The names in a path to a field, without which entry of a list it is in."""
_ALIKE = 0.7
"""From this ratio on a name is taken for another one that is misspelt."""
Schema = Mapping[str, Any]


def without_nulls(schema: Schema, value: Any) -> Any:
    """Return a document as the API server takes it: a field that is null is not there at all.

    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting-and-nullable
    """
    if isinstance(value, list) and "items" in schema:
        return [without_nulls(schema["items"], one) for one in value]
    if not isinstance(value, dict):
        return value
    known = schema.get("properties", {})
    return {
        name: without_nulls(known.get(name, {}), one)
        for name, one in value.items()
        if one is not None or name not in known or known[name].get("nullable")
    }


def editor_schema(crd: Schema) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a CRD's objects, for editors that complete and check.

    It knows fields, bounds and descriptions; rules over several fields `laptime validate` knows.
    """
    (version,) = crd["spec"]["versions"]
    whole: dict[str, Any] = _closed(version["schema"]["openAPIV3Schema"])
    api_version = f"{crd['spec']['group']}/{version['name']}"
    properties = {
        **{key: value for key, value in whole["properties"].items() if key != "status"},
        "apiVersion": {"const": api_version},
        "kind": {"const": crd["spec"]["names"]["kind"]},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": properties,
    }


def schema_violations(schema: Schema, document: Any) -> list[str]:
    """Return what breaks the schema, one sentence each: `spec.repetitions: 0 is less than …`."""
    validator = jsonschema.Draft202012Validator(_closed(schema))
    errors = sorted(validator.iter_errors(document), key=lambda error: list(map(str, error.path)))
    said = [f"{_place(error.absolute_path)}: {_words(error, schema)}" for error in errors]
    return said or list(_repeated(schema, document, ""))


def rule_violations(schema: Schema, document: Any) -> list[str]:
    """Return which CEL rules are broken, with what the schema says to write instead.

    The document must meet the schema.

    Raises:
        ImportError: the library that evaluates CEL is not installed.
    """
    import cel

    said = []
    for path, value, rules in _rules(schema, with_defaults(schema, document), ""):
        context = cel.Context({"self": value}, dict(_FUNCTIONS))
        said += [
            f"{path}{rule.get('fieldPath', '')}: {rule['message']}".lstrip(".")
            for rule in rules
            if not _holds(rule["rule"], context)
        ]
    return said


def _holds(expression: str, context: cel.Context) -> bool:
    try:
        return _compiled(expression).execute(context) is True
    except (RuntimeError, LookupError, TypeError, ValueError):
        # As for the API server: a rule that cannot be evaluated is not met.
        return False


# That takes longer than evaluating it, and each server and each load has the same rules.
@cache
def _compiled(expression: str) -> cel.Program:
    import cel

    return cel.compile(expression)


def _is_quantity(text: str) -> bool:
    try:
        quantity(text)
    except ValueError:
        return False
    return True


# The functions that Kubernetes adds to CEL, as far as the CRD uses them:
# https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-quantity-library
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "quantity": quantity,
    "isQuantity": _is_quantity,
    "isGreaterThan": lambda one, other: one > other,
    "isLessThan": lambda one, other: one < other,
}


def _repeated(schema: Schema, value: Any, path: str) -> Iterator[str]:
    """Yield which entries of a list have the key of an entry before them, or are that entry."""
    if isinstance(value, dict):
        for name, child in schema.get("properties", {}).items():
            if name in value:
                yield from _repeated(child, value[name], f"{path}.{name}".lstrip("."))
    if isinstance(value, list) and "items" in schema:
        keys = schema.get("x-kubernetes-list-map-keys", [])
        alone = schema.get("x-kubernetes-list-type") == "set"
        seen: set[tuple[str, ...]] = set()
        for place, item in enumerate(value):
            yield from _repeated(schema["items"], item, f"{path}[{place}]")
            entry = (str(item),) if alone else tuple(str(item.get(key)) for key in keys)
            if entry and entry in seen:
                yield f"{path}[{place}]: {' '.join(entry)} is there twice"
            seen.add(entry)


def _rules(
    schema: Schema, value: Any, path: str
) -> Iterator[tuple[str, Any, list[Mapping[str, str]]]]:
    """Yield each value that has rules, with where it is."""
    rules = schema.get("x-kubernetes-validations", [])
    own = [rule for rule in rules if "oldSelf" not in rule["rule"]]
    if own:
        yield path, value, own
    if isinstance(value, dict):
        for name, child in schema.get("properties", {}).items():
            if name in value:
                yield from _rules(child, value[name], f"{path}.{name}")
    if isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            yield from _rules(schema["items"], item, f"{path}[{place}]")


def with_defaults(schema: Schema, value: Any) -> Any:
    """Return the value as the API server completes it before it judges and stores it."""
    if isinstance(value, list) and "items" in schema:
        return [with_defaults(schema["items"], item) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    complete = {
        **{
            name: copy.deepcopy(child["default"])
            for name, child in properties.items()
            if "default" in child and name not in value
        },
        **value,
    }
    return {
        name: with_defaults(properties[name], child) if name in properties else child
        for name, child in complete.items()
    }


def _closed(node: Any) -> Any:
    """Return a structural schema as a JSON Schema that refuses unknown fields."""
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {
        key: {name: _closed(child) for name, child in value.items()}
        if key == "properties"
        else _closed(value)
        for key, value in node.items()
        if not key.startswith("x-kubernetes-")
    }
    if node.get("x-kubernetes-int-or-string"):
        closed["type"] = ["integer", "string"]
    if "properties" in node:
        closed["additionalProperties"] = False
    return closed


def _place(path: Any) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.lstrip(".") or "the manifest"


def _words(error: jsonschema.ValidationError, whole: Schema) -> str:
    rule: Any = error.validator_value
    instance: Any = error.instance
    if error.validator == "additionalProperties":
        schema: Any = error.schema
        return _unknown(set(instance), set(schema["properties"]))
    if error.validator == "enum":
        return f"{instance!r} is not one of {', '.join(map(str, rule))}"
    if error.validator == "required":
        missing = [name for name in rule if name not in instance]
        return f"{', '.join(missing)} is missing"
    text = str(error.message)
    text = text if len(text) <= 200 else text[:200] + "…"
    if _is_number(instance) and error.validator == "type" and _is_duration(error, whole):
        text += f": write it with a unit, such as {instance}s"
    return text


def _unknown(written: set[str], known: set[str]) -> str:
    """Return which of the fields are unknown, and which ones were probably meant."""
    unknown = sorted(written - known)
    alike = {name: _alike(name, known) for name in unknown}
    # One that stands there too was not meant.
    meant = {wrong: right for wrong, right in alike.items() if right and right not in written}
    said = f"unknown field {', '.join(unknown)}"
    if not meant:
        return said
    if len(unknown) == 1:
        return f"{said}: did you mean {meant[unknown[0]]}?"
    pairs = [f"{right} instead of {wrong}" for wrong, right in meant.items()]
    return f"{said}: did you mean {', '.join(pairs)}?"


def meant_by(schema: Schema, field: str) -> str | None:
    """Return the known field that is like an unknown one, by its path: `.spec.servers[0].prest`.

    None: there is none, or nothing is known of the place.
    """
    *parents, wrong = _NAMED.findall(field)
    node: Any = schema
    for part in parents:
        node = node.get("items", node).get("properties", {}).get(part, {})
    return _alike(wrong, set(node.get("items", node).get("properties", {})))


def _alike(name: str, known: set[str]) -> str | None:
    by_letters = {_letters(one): one for one in sorted(known)}
    close = difflib.get_close_matches(_letters(name), by_letters, n=1, cutoff=_ALIKE)
    return by_letters[close[0]] if close else None


def _letters(name: str) -> str:
    return re.sub(r"[-_]", "", str(name)).lower()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_duration(error: jsonschema.ValidationError, whole: Schema) -> bool:
    """Tell whether a field is a duration, as its rule says, which is only in the whole schema."""
    node: Any = whole
    for part in list(error.absolute_schema_path)[:-1]:
        node = node[part]
    return any("duration(self)" in one["rule"] for one in node.get("x-kubernetes-validations", []))
