"""Wrong scenarios are refused without a cluster, each with what to write instead."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.catalog import document_of, scenarios

Laptime = Callable[..., tuple[int, str, str]]
GONE = object()
SHOP: dict[str, Any] = {
    "apiVersion": "laptime.dev/v1alpha1",
    "kind": "BenchmarkScenario",
    "metadata": {"name": "shop"},
    "spec": {
        "title": "A shop",
        "data": {
            "postgres": {
                "extensions": ["pg_trgm"],
                "schema": [{"sql": "CREATE TABLE item (id integer PRIMARY KEY, name text);"}],
                "seed": [{"sql": "INSERT INTO item SELECT n, 'x' FROM generate_series(1, 9) n;"}],
                "reset": [{"sql": "DELETE FROM item WHERE id > 9;"}],
                "warm": [{"sql": "SELECT count(*) FROM item;"}],
            },
            "sqlite": {"schema": [{"sql": "CREATE TABLE item (id integer, name text);"}]},
        },
        "requests": [
            {
                "name": "read",
                "path": "/items/{id}",
                "ids": {"first": 1, "last": 9, "use": "cycle"},
                "headers": {"accept": "application/json"},
                "cookies": {"session": "abc"},
                "statements": 1,
            }
        ],
        "checks": [
            {"name": "one", "path": "/items/1", "expected": {"id": 1, "name": "x"}},
            {
                "name": "create",
                "method": "POST",
                "path": "/items",
                "body": "{}",
                "times": 1,
                "jsonSchema": {"type": "object", "required": ["id"]},
                "keepsId": True,
                "expectHeaders": {"cache-control": "no-store"},
                "afterwards": [{"query": "SELECT count(*) FROM item", "rows": [[10]]}],
            },
            {"name": "again", "path": "/items/{id}", "expectedPart": {"id": "{id}"}},
        ],
        "published": {
            "title": "Somebody",
            "baseline": "flask",
            "measurements": [{"load": {"open": {"rate": 5}}, "order": ["flask"]}],
        },
    },
}
CHECK, REQUEST, POSTGRES = "checks.0", "requests.0", "data.postgres"


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the shop with something else, or nothing, at a place of its spec."""
    document = copy.deepcopy(SHOP)
    node: Any = document["spec"]
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        node = node[part]
    if value is GONE:
        del node[last]
    else:
        node[last] = value
    return document


def said(laptime: Laptime, folder: Path, *documents: dict[str, Any]) -> str:
    file = folder / "shop.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    code, out, err = laptime("validate", file)
    assert (code == 0) == (err == ""), (out, err)
    return out + err


def test_the_scenario_that_the_others_are_made_from_is_valid(
    laptime: Laptime, tmp_path: Path
) -> None:
    assert said(laptime, tmp_path, SHOP) == "Scenario shop is valid.\n"


@pytest.mark.parametrize("name", scenarios())
def test_what_comes_with_laptime_could_be_anybodys(
    laptime: Laptime, tmp_path: Path, name: str
) -> None:
    document = document_of(scenarios()[name], "default")
    assert f"Scenario {name} is valid" in said(laptime, tmp_path, document)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        # Names and shapes.
        ("titel", "x", "spec: unknown field titel"),
        ("requests", [], "spec.requests: [] should be non-empty"),
        ("requests", GONE, "spec: requests is missing"),
        ("checks", GONE, "spec: checks is missing"),
        (f"{REQUEST}.name", "Read", "spec.requests[0].name: must be lower-case letters"),
        (f"{REQUEST}.method", "HEAD", "spec.requests[0].method: 'HEAD' is not one of GET, POST"),
        (f"{REQUEST}.expectStatus", 99, "spec.requests[0].expectStatus: 99 is less than"),
        (f"{REQUEST}.waitSeconds", -1, "spec.requests[0].waitSeconds: -1 is less than"),
        # Which server is asked, the run says.
        (f"{REQUEST}.path", "http://other.ns.svc/", "must be a path that begins with one /"),
        (f"{CHECK}.path", "//other.ns.svc/", "must be a path that begins with one /"),
        (f"{CHECK}.path", "/a b", "must be a path that begins with one /"),
        (f"{CHECK}.path", "/a\r\nhost: x", "must be a path that begins with one /"),
        (f"{CHECK}.path", "/a#b", "must be a path that begins with one /"),
        (f"{CHECK}.headers", {"Host": "other"}, "Host is a field of the connection"),
        (f"{REQUEST}.headers", {"content-length": "9"}, "content-length is a field of the conn"),
        (f"{CHECK}.headers", {"cookie": "a=b"}, "write cookies instead of the field cookie"),
        (f"{CHECK}.headers", {"a b": "c"}, "checks.one.headers: 'a b' is no name"),
        (f"{CHECK}.headers", {"a": "c\r\nd: e"}, "values of header fields are printable ASCII"),
        (f"{CHECK}.headers", {"Accept": "a", "accept": "b"}, "headers: accept is there twice"),
        (f"{CHECK}.cookies", {"a": "b; c=d"}, "values of cookies have no spaces"),
        (f"{CHECK}.cookies", {"a;b": "c"}, "checks.one.cookies: 'a;b' is no name"),
        (f"{CHECK}.body", "x", "a GET has no body: write method POST, or leave body out"),
        # Rows of requests.
        (f"{REQUEST}.ids", GONE, "spec.requests[0].ids: ids goes with {id}"),
        (f"{REQUEST}.path", "/items/1", "spec.requests[0].ids: ids goes with {id}"),
        (f"{REQUEST}.ids.last", 0, "last must be at least first"),
        (f"{REQUEST}.ids.last", 2_000_000, "at most 1,000,000 ids"),
        (f"{REQUEST}.ids.use", "twice", "spec.requests[0].ids.use: 'twice' is not one of"),
        # Right answers.
        (f"{REQUEST}.path", "/a/{id}", "no check asks GET /a/{id}, so nobody would know"),
        (f"{REQUEST}.method", "PUT", "add a check with method PUT and path /items/1"),
        ("checks.2.name", "one", "spec.checks[2]: one is there twice"),
        ("checks.1.keepsId", False, "no check before it keeps an id: write keepsId: true"),
        ("checks.1.jsonSchema", GONE, "spec.checks[1].keepsId: keepsId takes the field id"),
        ("checks.1.jsonSchema", {"type": "object"}, "write required: [id] in its jsonSchema"),
        (f"{CHECK}.jsonSchema", {"type": "objekt"}, "checks.one.jsonSchema is no JSON Schema"),
        (
            f"{CHECK}.jsonSchema",
            {"$ref": "http://metadata.internal/x"},
            "$ref: http://metadata.internal/x leads out of the schema: write #/$defs/",
        ),
        (f"{CHECK}.jsonSchema", {"$id": "file:///etc/passwd"}, "leads out of the schema"),
        (f"{CHECK}.jsonSchema", {"required": ["price"]}, "expected does not meet its own jsonSch"),
        (f"{CHECK}.expectedPart", {}, "write either expected (the whole answer) or expectedPart"),
        (f"{CHECK}.contentType", "application/json; charset=utf-8", "is no media type"),
        (f"{CHECK}.expectStatus", 204, "an answer with status 204 has no body"),
        (f"{CHECK}.times", 0, "spec.checks[0].times: 0 is less than the minimum of 1"),
        ("checks.1.answers", "different", "compares several answers: write times of 2 or more"),
        (f"{CHECK}.minSeconds", 10, "minSeconds must be smaller than timeoutSeconds"),
        (f"{CHECK}.timeoutSeconds", 0, "spec.checks[0].timeoutSeconds: 0 is less than the min"),
        ("checks.1.afterwards.0.rows", 10, "rows must be an array of rows, each an array"),
        ("checks.1.afterwards.0.query", "SELECT 1; SELECT 2", "query must be one query"),
        (POSTGRES, GONE, "afterwards asks Postgres: write data.postgres, or leave afterwards"),
        ("data", GONE, "spec.checks: afterwards asks a database: write data, or leave"),
        # Data.
        ("data", {}, "spec.data: write postgres or sqlite or both"),
        (f"{POSTGRES}.schema", [], "spec.data.postgres.schema: [] should be non-empty"),
        (f"{POSTGRES}.schema.0", {}, "write either sql (the statements themselves) or configMap"),
        (f"{POSTGRES}.seed.0.configMap", {"name": "a", "key": "b"}, "write either sql"),
        (f"{POSTGRES}.seed.0.sql", "-- nothing", "data.postgres.seed[0] has no statement"),
        (f"{POSTGRES}.extensions.0", 'x"; DROP', "must be the name of an extension of Postgres"),
        (f"{POSTGRES}.extensions", ["a", "a"], "data.postgres.extensions: a is there twice"),
        (f"{POSTGRES}.reset.0.sql", f"SELECT '{'x' * 50_000}';", "the most is 40000"),
        (f"{POSTGRES}.seed", [{"sql": f"SELECT '{'x' * 400_000}';"}] * 2, "the most is 700000"),
        (f"{CHECK}.expected", ["x" * 100_000], "checks have 100"),
        # Published figures.
        ("published.measurements", [], "spec.published.measurements: [] should be non-empty"),
        ("published.measurements.0.load", {}, "measurements[0].load: write either closed or open"),
        (
            "published.measurements.0.load.endpoints",
            ["write"],
            "there is no request write; there is read",
        ),
    ],
)
def test_a_wrong_scenario_is_refused_with_what_to_write(
    laptime: Laptime, tmp_path: Path, path: str, value: Any, expected: str
) -> None:
    text = said(laptime, tmp_path, changed(path, value))
    assert "Scenario shop would be refused.\n" in text
    assert expected in text


def test_a_name_that_no_run_could_write_is_refused(laptime: Laptime, tmp_path: Path) -> None:
    document = {**SHOP, "metadata": {"name": "s" * 41}}
    assert "metadata.name must be at most 40 lower-case letters" in said(
        laptime, tmp_path, document
    )


def test_sql_of_a_config_map_is_checked_where_it_is_in_the_file(
    laptime: Laptime, tmp_path: Path
) -> None:
    document = changed("data.postgres.seed.0", {"configMap": {"name": "sql", "key": "seed.sql"}})
    text = said(laptime, tmp_path, document)
    assert "its SQL is in key seed.sql of ConfigMap sql, which is not in this file" in text
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sql"},
        "data": {"seed.sql": "INSERT INTO item VALUES (1, 'x');"},
    }
    assert said(laptime, tmp_path, config_map, document) == "Scenario shop is valid.\n"
    config_map["data"] = {"seed.sql": "-- later"}
    assert "data.postgres.seed[0] has no statement" in said(laptime, tmp_path, document, config_map)


def test_a_run_is_checked_against_the_scenario_beside_it(laptime: Laptime, tmp_path: Path) -> None:
    run = {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "mine"},
        "spec": {
            "scenario": "shop",
            "servers": [{"name": "a", "image": "registry.example/shop:1"}],
            "topology": {"database": "sqlite"},
            "loads": [{"name": "x", "closed": {"connections": 1, "duration": "5s"}}],
        },
    }
    assert "mine is valid.\n" in said(laptime, tmp_path, SHOP, run)
    spec: dict[str, Any] = run["spec"]  # type: ignore[assignment]
    spec["topology"] = {}
    assert (
        "topology: scenario shop needs a database: add postgres: {} or database: sqlite to the "
        "topology"
    ) in said(laptime, tmp_path, SHOP, run)
    spec["topology"] = {"postgres": {}}
    spec["loads"][0]["endpoints"] = ["list"]
    text = said(laptime, tmp_path, SHOP, run)
    assert "load x: scenario shop has no endpoint list; it has read" in text
