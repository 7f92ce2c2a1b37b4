"""The CRD is a structural schema that says what the models say.

What the API server makes of it is tested on a real one, in e2e/test_schema.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import cel
import pytest

from laptime.api.crd import build_crd, build_scenario_crd, structural_schema
from laptime.api.durations import parse_duration
from laptime.api.scenario import BenchmarkScenarioSpec
from laptime.api.spec import CHANGEABLE, MAX_RUN_NAME_LENGTH, BenchmarkRunSpec
from laptime.catalog import scenarios
from laptime.cli.schema_rules import rule_violations

CRD = build_crd(["flask", "axum-sqlx"])
SCENARIO_CRD = build_scenario_crd(["flask", "axum-sqlx"])
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
SPEC = SCHEMA["properties"]["spec"]
SCENARIO_SCHEMA = SCENARIO_CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for child in node.values():
            yield from _nodes(child)
    elif isinstance(node, list):
        for child in node:
            yield from _nodes(child)


@pytest.mark.parametrize("schema", [SCHEMA, SCENARIO_SCHEMA], ids=["run", "scenario"])
def test_nothing_is_left_that_a_structural_schema_forbids(schema: dict[str, Any]) -> None:
    for node in _nodes(schema):
        assert not {"$ref", "$defs", "anyOf", "allOf", "const"} & set(node)
        assert "default" not in node or node["default"] is not None
        if node.get("type") == "object" and "properties" in node:
            assert "additionalProperties" not in node


# JSONSchemaProps of apiextensions.k8s.io/v1, as far as a schema of ours may say them.
KNOWN = {
    "default", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "items",
    "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties",
    "minimum", "multipleOf", "nullable", "pattern", "properties", "required", "title", "type",
    "uniqueItems", "additionalProperties", "oneOf", "not",
}  # fmt: skip
FLAGS = {"exclusiveMaximum", "exclusiveMinimum", "nullable", "uniqueItems"}


def _schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for child in schema.get("properties", {}).values():
        yield from _schemas(child)
    for key in ("items", "additionalProperties", "not"):
        if isinstance(child := schema.get(key), dict):
            yield from _schemas(child)
    for child in schema.get("oneOf", []):
        yield from _schemas(child)


@pytest.mark.parametrize("schema", [SCHEMA, SCENARIO_SCHEMA], ids=["run", "scenario"])
def test_a_schema_says_nothing_that_kubernetes_does_not_know(schema: dict[str, Any]) -> None:
    for node in _schemas(schema):
        said = {key for key in node if not key.startswith("x-kubernetes-")}
        assert said <= KNOWN, (said - KNOWN, node)
        assert all(isinstance(node[key], bool) for key in FLAGS & said), node


def test_presets_are_listed_and_scenarios_are_not() -> None:
    preset = SPEC["properties"]["servers"]["items"]["properties"]["preset"]
    assert preset["enum"] == ["axum-sqlx", "flask"]
    assert "enum" not in SPEC["properties"]["scenario"]
    assert not [name for name in scenarios() if f"'{name}'" in json.dumps(SCHEMA)]


def test_it_is_the_same_every_time() -> None:
    assert json.dumps(build_crd(["axum-sqlx", "flask"])) == json.dumps(CRD)
    assert json.dumps(build_scenario_crd(["axum-sqlx", "flask"])) == json.dumps(SCENARIO_CRD)


def test_a_scenario_has_no_status_since_nobody_writes_one() -> None:
    (version,) = SCENARIO_CRD["spec"]["versions"]
    assert set(version["schema"]["openAPIV3Schema"]["properties"]) == {
        "apiVersion",
        "kind",
        "metadata",
        "spec",
    }
    assert "subresources" not in version


def test_every_rule_has_a_message() -> None:
    nodes = [*_nodes(SCHEMA), *_nodes(SCENARIO_SCHEMA)]
    rules = [rule for node in nodes for rule in node.get("x-kubernetes-validations", [])]
    assert len(rules) > 30
    for rule in rules:
        assert len(rule["message"]) > 15, rule


def test_the_longest_names_fit_where_kubernetes_allows_63_characters() -> None:
    server = SPEC["properties"]["servers"]["items"]["properties"]["name"]["maxLength"]
    for middle in ("-server-", "-verify-", "-answer-"):
        assert MAX_RUN_NAME_LENGTH + len(middle) + server <= 63


def test_every_field_of_the_spec_is_described() -> None:
    def check(node: dict[str, Any], path: str) -> None:
        assert node.get("description"), path
        for name, child in node.get("properties", {}).items():
            check(child, f"{path}.{name}")
        if "properties" in node.get("items", {}):
            check(node["items"], f"{path}[]")

    check(structural_schema(BenchmarkRunSpec.model_json_schema(by_alias=True)), "spec")
    check(structural_schema(BenchmarkScenarioSpec.model_json_schema(by_alias=True)), "spec")


def test_a_status_of_another_version_stays_readable() -> None:
    status = SCHEMA["properties"]["status"]
    required = [node["required"] for node in _nodes(status) if "required" in node]
    assert required == [["type"]]
    assert status["properties"]["conditions"]["x-kubernetes-list-map-keys"] == ["type"]


def test_what_a_list_is_a_map_by_is_required_or_has_a_default() -> None:
    """Else an API server refuses the whole CRD."""
    lists = [node for node in _nodes(SCHEMA) if "x-kubernetes-list-map-keys" in node]
    assert len(lists) > 3
    for node in lists:
        items = node["items"]
        for key in node["x-kubernetes-list-map-keys"]:
            assert key in items.get("required", ()) or "default" in items["properties"][key], node


RUN: dict[str, Any] = {
    "scenario": "users",
    "servers": [{"name": "a", "preset": "axum-sqlx"}],
    "topology": {"postgres": {}},
    "loads": [{"name": "l", "closed": {"connections": 1, "requests": 10}}],
    "generator": {"parallelism": 1},
    "repetitions": 3,
    "control": False,
    "startupTimeout": "30s",
    "nodes": "fixed",
    "objectives": [],
    "egress": [],
    "imagePullSecrets": [],
    "verifyOnly": False,
    "suspend": False,
    "cancel": False,
    "retry": 0,
}
# Another value for each field of the spec.
OTHERS: dict[str, Any] = {
    "scenario": "tasks",
    "servers": [],
    "baseline": "a",
    "topology": {},
    "loads": [],
    "generator": {"parallelism": 2},
    "repetitions": 4,
    "precision": "2%",
    "stopWhen": "decided",
    "smallestDifference": "5%",
    "maxRepetitions": 20,
    "budget": "2h",
    "control": True,
    "seed": 1,
    "startupTimeout": "31s",
    "objectives": [{"server": "a"}],
    "egress": [{"cidr": "203.0.113.7/32"}],
    "imagePullSecrets": [{"name": "regcred"}],
    "placement": "shared",
    "nodes": "rotate",
    "pairing": "duet",
    "ttlSecondsAfterFinished": 60,
    "verifyOnly": True,
    "suspend": True,
    "cancel": True,
    "retry": 1,
}


def accepts_change(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Whether the rules of the spec on changes allow this one."""
    changes = [one["rule"] for one in SPEC["x-kubernetes-validations"] if "oldSelf" in one["rule"]]
    context = cel.Context(variables={"self": new, "oldSelf": old})
    return all(cel.evaluate(one, context) is True for one in changes)


@pytest.mark.parametrize("field", SPEC["properties"])
def test_no_field_of_an_accepted_run_changes_but_those_that_may(field: str) -> None:
    other = {**RUN, field: OTHERS[field]}
    assert accepts_change(RUN, RUN)
    assert accepts_change(other, RUN) == (field in CHANGEABLE)
    assert accepts_change(RUN, other) == (field in CHANGEABLE and field not in ("cancel", "retry"))


def test_no_field_of_the_spec_is_missing_in_these_tests() -> None:
    assert set(OTHERS) == set(SPEC["properties"])
    assert set(CHANGEABLE) <= set(OTHERS)


def refusals(**spec: Any) -> list[str]:
    """Return which rules a new run breaks that is like `RUN` but for some fields."""
    return rule_violations(SCHEMA, {"metadata": {"name": "r"}, "spec": {**RUN, **spec}})


def test_a_script_says_over_what_answers_are_checked_and_shares_its_connections_itself() -> None:
    calls = {"name": "calls", "script": {"configMap": "calls"}, "protocol": "http2"}
    assert refusals(loads=[calls]) == []
    (said,) = refusals(loads=[{**calls, "streams": 2}])
    assert "leave streams out" in said


def test_only_an_image_has_a_health_port() -> None:
    apart = {"name": "a", "healthPort": 9001}
    assert refusals(servers=[{**apart, "image": "registry.example/own:1"}]) == []
    for other in ({"preset": "axum-sqlx"}, {"service": {"name": "shop", "port": 80}}):
        (said,) = refusals(servers=[{**apart, **other}])
        assert "healthPort goes with image" in said


def test_an_endpoint_named_twice_is_refused() -> None:
    def named(*endpoints: str) -> list[str]:
        return refusals(loads=[{**RUN["loads"][0], "endpoints": list(endpoints)}])

    assert named("read", "create") == []
    assert named("read", "read", "create") == [
        "spec.loads[0].endpoints: endpoints are sent equally often, so name each once: for other "
        "shares write mix, such as mix: [{name: read, weight: 3}, {name: create, weight: 1}]"
    ]


@pytest.mark.parametrize("place", ["servers", "database"])
def test_a_delay_is_whole_milliseconds(place: str) -> None:
    def delayed(delay: str) -> list[str]:
        return refusals(topology={"postgres": {}, "delay": {place: delay}})

    for whole in ("0s", "1ms", "22ms", "22.0ms", "1.5s", "0.001s", "1s500ms", "10s", "10000ms"):
        assert delayed(whole) == [], whole
    for other in ("400us", "1000us", "1.5ms", "0.0005s", "1.0005s", "11s", "10001ms", "-1ms", ""):
        assert delayed(other) == [
            f"spec.topology.delay.{place}: must be whole milliseconds from 0s to 10s, such as 22ms "
            "or 1.5s"
        ], other
    assert refusals(topology={"postgres": {}, "upstream": {"latency": "400us"}}) == []


def bounded(metric: str, **bound: str) -> list[str]:
    return refusals(objectives=[{"server": "a", "load": "l", "metric": metric, **bound}])


@pytest.mark.parametrize(
    "bound", ["0s", "999999999us", "999999999.9999ms", "999999s", "999999m", "999999h", "1m30s"]
)
def test_each_bound_of_a_latency_that_is_taken_can_be_read(bound: str) -> None:
    assert bounded("p99", atMost=bound) == []
    assert parse_duration(bound) >= 0


@pytest.mark.parametrize("bound", ["9999999s", "10000000000us", "1234567890ms", "1d", "5", "0.1"])
def test_a_bound_of_a_latency_that_cannot_be_read_is_refused(bound: str) -> None:
    for side in ("atMost", "atLeast"):
        assert bounded("p99", **{side: bound}) == [
            "spec.objectives[0]: an objective about latency needs a duration, such as 5ms or 1m30s"
        ]


def test_a_share_of_errors_is_at_most_1() -> None:
    for share in ("0", "0.001", "1", "1.0", "0001"):
        assert bounded("errorRate", atMost=share) == [], share
    for more in ("5", "1.01", "100"):
        assert bounded("errorRate", atMost=more) == [
            "spec.objectives[0]: errorRate is a share from 0 to 1: write '0.05' for 5 %"
        ], more
    assert bounded("requestsPerSecond", atLeast="1000") == []
    # Nothing else is said of what is no number.
    (said,) = bounded("errorRate", atMost="5%")
    assert "needs a plain number in quotes" in said
