"""The API server takes the scenarios that come with Laptime, and refuses wrong ones at the door.

What it cannot see (names of header fields, relations between requests and checks) the operator
says; operator/tests/cli/test_wrong_scenarios.py has a case for each rule.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from kubernetes import client

from laptime.catalog import document_of, scenarios

SERVICE = {"name": "a", "image": "a", "ports": [1]}
POOLS = "published.measurements.0.databaseConnections"
ROWS = {"image": "registry.example/shop-data:3", "file": "/data/rows.sql"}


@pytest.fixture(scope="module")
def custom(api: client.ApiClient, crd: dict[str, Any]) -> client.CustomObjectsApi:
    return client.CustomObjectsApi(api)


def refusal(
    custom: client.CustomObjectsApi, namespace: str, document: dict[str, Any]
) -> str | None:
    """Return why the API server would refuse a scenario, None when it would take it."""
    try:
        custom.create_namespaced_custom_object(
            *("laptime.dev", "v1alpha1", namespace, "benchmarkscenarios", document),
            dry_run="All",
            field_validation="Strict",
        )
    except client.ApiException as error:
        message: str = json.loads(error.body or "{}")["message"]
        return message
    return None


@pytest.mark.parametrize("name", scenarios())
def test_what_comes_with_laptime_is_taken(
    custom: client.CustomObjectsApi, namespace: str, name: str
) -> None:
    assert refusal(custom, namespace, document_of(scenarios()[name], namespace)) is None


def test_schema_and_rows_in_images_are_taken(
    custom: client.CustomObjectsApi, namespace: str
) -> None:
    document = copy.deepcopy(document_of(scenarios()["tasks"], namespace))
    postgres = document["spec"]["data"]["postgres"]
    postgres["schema"] = [ROWS, *postgres["schema"]]
    postgres["seed"] = [*postgres["seed"], {**ROWS, "file": "/.hidden/a..b-c_1.SQL"}]
    assert refusal(custom, namespace, document) is None


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("titel", "x", 'unknown field "spec.titel"'),
        ("requests", [], "should have at least 1 items"),
        ("requests.1.name", "Create", "must be lower-case letters, digits and '-'"),
        ("requests.1.name", "hello", "Duplicate value"),
        ("requests.1.method", "HEAD", 'supported values: "GET", "POST"'),
        ("requests.2.path", "http://other.ns.svc/{id}", "must be a path that begins with one /"),
        ("requests.2.path", "//other.ns.svc/{id}", "must be a path that begins with one /"),
        ("requests.2.path", "/tasks", "ids goes with {id}"),
        ("requests.2.ids.last", 1, "last must be at least first"),
        ("requests.1.headers", {"a": "b\r\nc: d"}, "values of header fields are printable ASCII"),
        ("requests.1.cookies", {"a": "b; c=d"}, "values of cookies have no spaces"),
        ("checks.3.jsonSchema", None, "keepsId takes the field id of the answer"),
        ("checks.0.minSeconds", 30, "minSeconds must be smaller than timeoutSeconds"),
        ("checks.3.answers", "different", "write times of 2 or more"),
        (
            "checks.0",
            {"name": "hello", "path": "/", "answers": "different", "constant": True},
            "an answer that is constant is not different at times",
        ),
        ("feeders", [{"name": "1st", "values": ["a"]}], "must be letters, digits, '_' and '-'"),
        ("feeders", [{"name": "id", "values": ["a"]}], "is what {id} stands for"),
        ("feeders", [{"name": "a"}], "write exactly one of csv (a table), range"),
        ("feeders", [{"name": "a", "csv": {}}], "write either text (the table itself) or"),
        ("feeders", [{"name": "a", "csv": {"file": "/etc/passwd"}}], "unknown field"),
        ("feeders", [{"name": "a", "range": {"first": 2, "last": 1}}], "last must be at least"),
        ("feeders", [{"name": "a", "values": ["x"], "use": "twice"}], 'supported values: "cycle"'),
        ("requests.1.captures", [{"name": "a"}], "write one of json, header and cookie"),
        ("requests.1.captures", [{"name": "a", "json": "id"}], "must be a JSON pointer"),
        ("requests.1.captures", [{"name": "a", "header": "a b"}], "must be a name of letters"),
        ("requests.1.captures", [{"name": "a", "regex": "(?=x)"}], "as RE2 has it, such as"),
        ("requests.1.weight", 0, "should be greater than or equal to 1"),
        ("requests.1.thinkTime", {"min": "2s", "max": "1s"}, "min must be at most max"),
        ("sessions", [{"name": "A", "steps": ["create"]}], "must be lower-case letters"),
        ("sessions", [{"name": "a", "steps": []}], "should have at least 1 items"),
        ("services", [{"name": "A", "image": "a", "ports": [1]}], "must be lower-case letters"),
        ("services", [{"name": "a", "image": "A", "ports": [1]}], "must be an image reference"),
        ("services", [{"name": "a", "image": "a", "ports": []}], "should have at least 1 items"),
        ("services", [{"name": "a", "image": "a", "ports": [1, 1]}], "Duplicate value"),
        ("services", [{**SERVICE, "ready": {"port": 2}}], "ready.port must be one of ports"),
        ("services", [{**SERVICE, "reset": {}}], "write either request or job; for a fresh pod"),
        ("services", [{**SERVICE, "reset": {"request": {"path": "//other"}}}], "begins with one /"),
        (
            "services",
            [{**SERVICE, "stateless": True, "reset": {"job": {"image": "a"}}}],
            "what is stateless has nothing to be reset",
        ),
        ("services", [{**SERVICE, "user": 0}], "should be greater than or equal to 1"),
        ("services", [{**SERVICE, "writable": ["/"]}], "must be a folder such as /data"),
        ("services", [{**SERVICE, "writable": ["/tmp"]}], "/tmp can be written to anyway"),
        ("services", [{**SERVICE, "writable": ["/sys/fs"]}], "none of /proc, /sys and /dev"),
        ("services", [{**SERVICE, "env": [{"name": "SERVICE_A"}]}], "begin with SERVICE_ are"),
        ("services", [{**SERVICE, "hostNetwork": True}], "unknown field"),
        ("services", [SERVICE, SERVICE], "Duplicate value"),
        ("data", {}, "write postgres or sqlite or both"),
        ("data.postgres.schema.0", {}, "write either sql"),
        ("data.postgres.schema.0.configMap", {"name": "A", "key": "b"}, "write either sql"),
        ("data.postgres.schema.0", {**ROWS, "sql": "SELECT 1;"}, "exactly one of the three"),
        ("data.postgres.seed.0", {"image": "a/b:1"}, "file is one of an image: write both"),
        ("data.postgres.seed.0.file", "/rows.sql", "file is one of an image: write both"),
        ("data.postgres.seed.0", {**ROWS, "image": "A"}, "must be an image reference"),
        ("data.postgres.seed.0", {**ROWS, "file": "rows.sql"}, "must be the whole path of a file"),
        ("data.postgres.seed.0", {**ROWS, "file": "/a/../b"}, "must be the whole path of a file"),
        ("data.postgres.seed.0", {**ROWS, "file": "/" + "a" * 253}, "Too long: may not be"),
        ("data.postgres.reset", [ROWS], 'unknown field "spec.data.postgres.reset[0].'),
        ("data.postgres.warm", [ROWS], 'unknown field "spec.data.postgres.warm[0].'),
        ("data.sqlite.seed", [ROWS], 'unknown field "spec.data.sqlite.seed[0].'),
        ("data.postgres.extensions", ['x"; DROP'], "must be the name of an extension"),
        (POOLS, {"axum-diesl": 2}, "write names of presets: axum-bb8, axum-diesel, "),
        (POOLS, {"axum-diesel": 0}, "should be greater than or equal to 1"),
    ],
)
def test_a_wrong_scenario_is_refused_with_what_to_write(
    custom: client.CustomObjectsApi, namespace: str, place: str, value: Any, says: str
) -> None:
    document = copy.deepcopy(document_of(scenarios()["tasks"], namespace))
    node: Any = document["spec"]
    *parents, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    for part in parents:
        node = node[part]
    if value is None:
        del node[last]
    else:
        node[last] = value
    assert says in (refusal(custom, namespace, document) or "it was taken")
