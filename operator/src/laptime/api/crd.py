"""The CustomResourceDefinition, generated from the models."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from laptime.api import GROUP, KIND, PLURAL, VERSION
from laptime.api.base import rule
from laptime.api.scenario_rules import ScenarioFacts, scenario_rules
from laptime.api.spec import CHANGEABLE, MAX_RUN_NAME_LENGTH, BenchmarkRunSpec
from laptime.api.status import RunStatus

_COLUMNS = (
    ("Scenario", "string", ".spec.scenario", 0),
    ("State", "string", ".status.state", 0),
    ("Progress", "string", ".status.progress.text", 0),
    ("Fastest", "string", ".status.fastest", 0),
    ("Factor", "string", ".status.fastestFactor", 0),
    ("Baseline", "string", ".status.baseline", 1),
    ("Seed", "integer", ".status.seed", 1),
    ("Verdict", "string", ".status.verdict", 1),
    ("Age", "date", ".metadata.creationTimestamp", 0),
)


def build_crd(scenarios: Iterable[ScenarioFacts]) -> dict[str, Any]:
    """Return the CRD as a plain dict.

    The schema lists the names that the catalogue offers, so that the API server refuses any other
    name and says which there are.
    """
    known = sorted(scenarios, key=lambda one: one.name)
    spec = structural_schema(BenchmarkRunSpec.model_json_schema(by_alias=True))
    properties = spec["properties"]
    _only(properties["scenario"], [one.name for one in known])
    _only(
        properties["servers"]["items"]["properties"]["preset"],
        {preset for one in known for preset in one.presets},
    )
    _only(
        properties["loads"]["items"]["properties"]["endpoints"]["items"],
        {endpoint for one in known for endpoint in one.endpoints},
    )
    spec["x-kubernetes-validations"] += [*scenario_rules(known), _unchanged(spec)]
    status = structural_schema(RunStatus.model_json_schema(by_alias=True, mode="serialization"))
    # The operator is the only writer of the status. A stored status of an older version must
    # stay readable, so nothing in it is required.
    _drop_required(status)
    status["properties"]["conditions"] |= {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    status["properties"]["conditions"]["items"]["required"] = ["type"]
    schema = {
        "description": "A comparison of servers under load, measured in this cluster.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
        "x-kubernetes-validations": [
            rule(
                f"size(self.metadata.name) <= {MAX_RUN_NAME_LENGTH} && "
                "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name must be at most "
                f"{MAX_RUN_NAME_LENGTH} lower-case letters, digits and '-', start with a letter "
                "and end with a letter or digit: the names of the run's pods are made from it",
            )
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["br"],
                "categories": ["laptime"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    # So whoever asks for what is not over yet need not read thousands of runs.
                    "selectableFields": [{"jsonPath": ".status.state"}],
                    "additionalPrinterColumns": [
                        _column(name, type_, path, priority)
                        for name, type_, path, priority in _COLUMNS
                    ],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _unchanged(spec: dict[str, Any]) -> dict[str, str]:
    """Return the rule that nothing of the spec changes but what may."""
    required = {
        *spec["required"],
        *(n for n, one in spec["properties"].items() if "default" in one),
    }
    same = [
        f"self.{name} == oldSelf.{name}"
        if name in required
        else f"has(self.{name}) == has(oldSelf.{name}) && "
        f"(!has(self.{name}) || self.{name} == oldSelf.{name})"
        for name in spec["properties"]
        if name not in CHANGEABLE
    ]
    return rule(
        " && ".join(same),
        f"only {', '.join(CHANGEABLE)} of a spec can be changed once the run is accepted: delete "
        "the run and apply it again, or apply it under another name",
    )


def _column(name: str, type_: str, path: str, priority: int) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": type_, "jsonPath": path}
    # The API server stores no zero here. Written out, it would make every second field manager
    # (Helm after kubectl) conflict with the first.
    return {**column, "priority": priority} if priority else column


def _only(field: dict[str, Any], names: Iterable[str]) -> None:
    field["enum"] = sorted(names)
    field.pop("maxLength", None)


def structural_schema(json_schema: dict[str, Any]) -> dict[str, Any]:
    """Return pydantic's JSON schema as a structural schema of Kubernetes.

    References are written out, titles dropped, `anyOf [X, null]` becomes X (an optional field is
    left out, never null), and a default of null is dropped.
    """
    definitions = json_schema.get("$defs", {})
    result = _convert(json_schema, definitions)
    assert isinstance(result, dict)
    return result


def _convert(node: Any, definitions: dict[str, Any]) -> Any:
    if not isinstance(node, dict):
        return node
    node = copy.copy(node)
    if "$ref" in node:
        target = definitions[node.pop("$ref").rsplit("/", 1)[1]]
        node = {**target, **node}
    if "anyOf" in node:
        kinds = [kind for kind in node.pop("anyOf") if kind.get("type") != "null"]
        (only,) = kinds
        converted = _convert(only, definitions)
        # A description at the field says more than the one of its type; rules of both hold.
        rules = [
            *converted.get("x-kubernetes-validations", []),
            *node.get("x-kubernetes-validations", []),
        ]
        node = {**converted, **node}
        if rules:
            node["x-kubernetes-validations"] = rules
    for key in ("title", "$defs", "const"):
        node.pop(key, None)
    if "default" in node and node["default"] is None:
        del node["default"]
    if "properties" in node:
        node["properties"] = {
            name: _convert(child, definitions) for name, child in node["properties"].items()
        }
        # Structural schemas refuse unknown fields by pruning; `false` beside properties is not
        # allowed there.
        node.pop("additionalProperties", None)
    elif isinstance(node.get("additionalProperties"), dict):
        node["additionalProperties"] = _convert(node["additionalProperties"], definitions)
    if "items" in node:
        node["items"] = _convert(node["items"], definitions)
    if node.get("type") == "integer":
        node["format"] = "int64"
    return node


def _drop_required(node: Any) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("required"), list):
            node.pop("required")
        for child in node.values():
            _drop_required(child)
