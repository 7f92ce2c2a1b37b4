"""The CustomResourceDefinitions, generated from the models."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from laptime.api import GROUP, KIND, PLURAL, SCENARIO_KIND, SCENARIO_PLURAL, VERSION
from laptime.api.base import rule
from laptime.api.scenario import BenchmarkScenarioSpec
from laptime.api.spec import (
    CHANGEABLE,
    MAX_RUN_NAME_LENGTH,
    MAX_SCENARIO_NAME_LENGTH,
    BenchmarkRunSpec,
)
from laptime.api.status import RunStatus

Columns = tuple[tuple[str, str, str, int], ...]
"""Of `kubectl get`: heading, type, path, and 1 for what is only shown when asked for."""

_COLUMNS: Columns = (
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
_SCENARIO_COLUMNS: Columns = (
    ("Title", "string", ".spec.title", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
)


def build_crd(presets: Iterable[str]) -> dict[str, Any]:
    """Return the CRD of BenchmarkRun as a plain dict.

    The schema lists the presets, so that the API server refuses any other name and says which there
    are. It names no scenario: those of a namespace are only there.
    """
    spec = structural_schema(BenchmarkRunSpec.model_json_schema(by_alias=True))
    _only(spec["properties"]["servers"]["items"]["properties"]["preset"], presets)
    spec["x-kubernetes-validations"].append(_unchanged(spec))
    status = structural_schema(RunStatus.model_json_schema(by_alias=True, mode="serialization"))
    # The operator is the only writer of the status. A stored status of an older version must
    # stay readable, so nothing in it is required.
    _drop_required(status)
    status["properties"]["conditions"] |= {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    status["properties"]["conditions"]["items"]["required"] = ["type"]
    rules = [
        rule(
            f"size(self.metadata.name) <= {MAX_RUN_NAME_LENGTH} && "
            "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "metadata.name must be at most "
            f"{MAX_RUN_NAME_LENGTH} lower-case letters, digits and '-', start with a letter "
            "and end with a letter or digit: the names of the run's pods are made from it",
        )
    ]
    what = "A comparison of servers under load, measured in this cluster."
    crd = _crd(KIND, PLURAL, "br", _schema(what, spec, rules, status), _COLUMNS)
    (version,) = crd["spec"]["versions"]
    version["subresources"] = {"status": {}}
    # So whoever asks for what is not over yet need not read thousands of runs.
    version["selectableFields"] = [{"jsonPath": ".status.state"}]
    return crd


def build_scenario_crd(presets: Iterable[str]) -> dict[str, Any]:
    """Return the CRD of BenchmarkScenario as a plain dict.

    Presets by which published pools are named are those listed; a name that is none would silently
    bound nothing. It has no status: the operator reads scenarios, and writes none.
    """
    spec = structural_schema(BenchmarkScenarioSpec.model_json_schema(by_alias=True))
    measurement = spec["properties"]["published"]["properties"]["measurements"]["items"]
    _only_keys(measurement["properties"]["databaseConnections"], presets)
    rules = [
        rule(
            f"size(self.metadata.name) <= {MAX_SCENARIO_NAME_LENGTH} && "
            "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            f"metadata.name must be at most {MAX_SCENARIO_NAME_LENGTH} lower-case letters, digits "
            "and '-', start with a letter and end with a letter or digit",
        )
    ]
    what = "The work that servers are compared on: data, requests, and what a right answer is."
    schema = _schema(what, spec, rules)
    return _crd(SCENARIO_KIND, SCENARIO_PLURAL, "bsc", schema, _SCENARIO_COLUMNS)


def _schema(
    description: str,
    spec: dict[str, Any],
    rules: list[dict[str, str]],
    status: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "description": description,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            **({"status": status} if status else {}),
        },
        "x-kubernetes-validations": rules,
    }


def _crd(
    kind: str, plural: str, short: str, schema: dict[str, Any], columns: Columns
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
                "categories": ["laptime"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [
                        _column(name, type_, path, priority)
                        for name, type_, path, priority in columns
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


def _only_keys(field: dict[str, Any], names: Iterable[str]) -> None:
    """Have a map refuse other keys; as properties of an object they would silently be dropped."""
    names = sorted(names)
    listed = ", ".join(f"'{name}'" for name in names)
    field["x-kubernetes-validations"] = [
        rule(f"self.all(n, n in [{listed}])", f"write names of presets: {', '.join(names)}")
    ]


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
