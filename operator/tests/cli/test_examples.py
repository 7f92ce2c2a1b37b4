"""The examples are valid, name what the catalogue has, and take as long as they say."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from laptime.api import API_VERSION, KIND
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import presets, scenario_of, scenarios
from laptime.catalog.problems import scenario_problems
from laptime.cli.generate import catalogue_crd, crd_text
from laptime.cli.manifest_file import read_manifest
from laptime.plan import load_problem, misfits
from laptime.plan.estimate import remaining_seconds
from laptime.plan.trials import plan_trials

_FOLDER = Path(__file__).parents[3] / "examples"
# The run of nightly is in a ConfigMap: test_nightly_example.py.
EXAMPLES = sorted(
    {*_FOLDER.glob("*.yaml"), *_FOLDER.glob("*/*.yaml")} - {*_FOLDER.glob("nightly/*")}
)


def _spec(name: str) -> BenchmarkRunSpec:
    (path,) = [path for path in EXAMPLES if path.stem == name]
    return BenchmarkRunSpec.model_validate(read_manifest(path).run["spec"])


def test_there_are_examples() -> None:
    published = {"users", "sleep", "tasks", "recipes", "apibench"}
    quick = {f"{name}-quick" for name in published}
    assert {path.stem for path in EXAMPLES} >= {
        "first",
        "apibench-equal-pools",
        "asgi-servers",
        "behind-proxies",
        "cache-in-front",
        "own-script",
        "own-sessions",
        "recipes-equal-pools",
        "recipes-far-database",
        "tasks-equal-pools",
        "upgrade",
    } | published | quick


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_what_the_models_and_the_catalogue_know(path: Path) -> None:
    manifest: dict[str, Any] = read_manifest(path).run
    assert (manifest["apiVersion"], manifest["kind"]) == (API_VERSION, KIND)
    assert manifest["metadata"]["name"] == path.stem
    spec = BenchmarkRunSpec.model_validate(manifest["spec"])
    own = {one["metadata"]["name"]: scenario_of(one) for one in read_manifest(path).scenarios}
    assert not [problem for one in own.values() for problem in scenario_problems(one)]
    scenario = own.get(spec.scenario) or scenarios()[spec.scenario]
    assert {server.preset for server in spec.servers if server.preset} <= set(presets())
    assert spec.baseline_name in {server.name for server in spec.servers}
    for server in spec.servers:
        assert re.fullmatch("[a-z]([-a-z0-9]{0,18}[a-z0-9])?", server.name)
    assert misfits(spec, scenario) == []
    scripts = {one["metadata"]["name"]: one["data"] for one in read_manifest(path).config_maps}
    for load in spec.loads:
        assert load_problem(load, scenario) is None
        if load.script is not None:
            assert load.script.key in scripts[load.script.config_map]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_uses_only_fields_that_the_crd_has(path: Path) -> None:
    misspelt = read_manifest(path).run
    _by_the_crd().validate(misspelt)
    misspelt["spec"]["loads"][0]["endpoint"] = ["list"]
    with pytest.raises(jsonschema.ValidationError):
        _by_the_crd().validate(misspelt)


@cache
def _by_the_crd() -> jsonschema.Draft202012Validator:
    """Return what judges runs by the CRD, and refuses fields that it does not have."""
    crd = yaml.safe_load(crd_text(catalogue_crd()))
    closed = _closed(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    jsonschema.Draft202012Validator.check_schema(closed)
    return jsonschema.Draft202012Validator(closed)


def _closed(node: Any) -> Any:
    """Return a schema of Kubernetes as one that refuses unknown fields."""
    if isinstance(node, list):
        return [_closed(one) for one in node]
    if not isinstance(node, dict):
        return node
    result = {key: _closed(value) for key, value in node.items()}
    if isinstance(node.get("properties"), dict) and node.get("type") == "object":
        result["additionalProperties"] = False
        metadata = result["properties"].get("metadata")
        if metadata is not None:
            metadata.pop("additionalProperties", None)
    return result


@pytest.mark.parametrize("name", ["sleep", "tasks", "recipes", "apibench"])
def test_every_load_of_a_published_benchmark_has_published_figures_or_an_order(name: str) -> None:
    published = scenarios()[name].published
    assert published is not None
    for example in (name, f"{name}-quick"):
        spec = _spec(example)
        for load in spec.loads:
            assert published.order(spec, load.name), f"{example}, {load.name}"


@pytest.mark.parametrize("name", ["recipes", "tasks", "apibench"])
def test_every_server_of_a_benchmark_as_published_has_its_place_and_with_equal_pools_not(
    name: str,
) -> None:
    published = scenarios()[name].published
    assert published is not None
    asking = {request.name for request in scenarios()[name].requests if request.statements}
    for example in (name, f"{name}-quick"):
        spec = _spec(example)
        loads = [
            load.name for load in spec.loads if not asking.isdisjoint(load.endpoints or asking)
        ]
        places = {server for load in loads for server in published.order(spec, load)}
        assert places == {server.name for server in spec.servers}
    equal = _spec(f"{name}-equal-pools")
    for load in equal.loads:
        if asking.isdisjoint(load.endpoints or asking):
            assert published.order(equal, load.name), "a pool does not matter there"
            continue
        assert published.claims(equal, load.name) == []
        for server in equal.servers:
            if server.name != equal.baseline_name:
                assert published.factor(equal, server.name, load.name) is None


@pytest.mark.parametrize(
    ("name", "at_most_minutes"),
    [
        ("first", 1),
        ("own-sessions", 5),
        ("users", 40),
        ("sleep", 30),
        ("tasks", 30),
        ("recipes", 20),
        ("recipes-equal-pools", 20),
        ("tasks-equal-pools", 15),
        ("apibench-equal-pools", 10),
        ("apibench", 10),
        ("users-quick", 3.5),
        ("sleep-quick", 3.5),
        ("tasks-quick", 5),
        ("recipes-quick", 3),
        ("apibench-quick", 5),
    ],
)
def test_examples_take_no_longer_than_they_say(name: str, at_most_minutes: float) -> None:
    spec = _spec(name)
    assert remaining_seconds(spec, plan_trials(name, spec, 1), {}) <= 60 * at_most_minutes


def test_users_is_as_published() -> None:
    spec = _spec("users")
    closed, opened = spec.load("closed").closed, spec.load("open").open
    assert closed is not None
    assert (closed.connections, closed.requests, closed.keep_alive) == (10, 50_000, False)
    assert opened is not None
    assert opened.rate == 10_000
    assert spec.topology.postgres is not None
    assert spec.topology.postgres.max_connections == 1000
    assert spec.topology.pgbouncer is None
    assert spec.topology.haproxy is None
    assert {server.database_connections for server in spec.servers} == {5}
    assert max(server.worker_count for server in spec.servers) == 16


def test_sleep_is_as_published() -> None:
    spec = _spec("sleep")
    assert {(server.worker_count, server.threads) for server in spec.servers} == {
        (1, 1),
        (1, 4),
        (4, 1),
        (4, 4),
    }
    for load in spec.loads:
        assert load.closed is not None
        assert (load.closed.connections, load.measured_seconds) == (100, 60)
        assert load.timeout_seconds == 30


def test_tasks_is_as_published() -> None:
    spec = _spec("tasks")
    assert {server.worker_count for server in spec.servers} == {2}
    assert spec.topology.sqlite
    assert {server.database_connections for server in spec.servers} == {2}
    shapes = set()
    for load in spec.loads:
        assert load.closed is not None
        assert load.endpoints is not None
        assert load.closed.requests == 10_000
        shapes.add((*load.endpoints, load.closed.connections))
    operations = ("hello", "create", "read", "update", "delete")
    assert shapes == {(name, connections) for name in operations for connections in (1, 10)}


def test_recipes_is_as_published() -> None:
    spec = _spec("recipes")
    (load,) = spec.loads
    assert load.closed is not None
    assert (load.closed.connections, load.measured_seconds) == (50, 60)
    assert spec.topology.haproxy is not None
    assert spec.topology.haproxy.max_connections == 25
    assert spec.topology.pgbouncer is not None
    assert spec.topology.pgbouncer.pool_size == 25
    assert spec.topology.delay is not None
    assert spec.topology.delay.servers == "22ms"
    assert _pools(spec) == {"django": 5, "starlette": 20, "axum": 20}
    for name in ("recipes", "recipes-quick"):
        assert {
            (server.name, *(f"{one.name}={one.value}" for one in server.env))
            for server in _spec(name).servers
        } == {
            ("django", "KEEP_CONNECTIONS=false"),
            ("starlette",),
            ("axum", "STATEMENT_CACHE=false"),
        }
        assert _pools(_spec(name)) == _pools(spec)


def _pools(spec: BenchmarkRunSpec) -> dict[str, int]:
    """Return the connections that each server may have in all its processes."""
    return {server.name: _pool(server) for server in spec.servers}


def _pool(server: Server) -> int:
    preset = presets()[server.preset or ""]
    # A synchronous worker of gunicorn has one connection, whatever the pool of its threads.
    synchronous = preset.name == "django-psycopg" and (server.threads or 1) == 1
    return preset.processes_of(server) * (1 if synchronous else server.database_connections)


@pytest.mark.parametrize(
    ("name", "connections"),
    [("recipes-equal-pools", 20), ("tasks-equal-pools", 4), ("apibench-equal-pools", 5)],
)
def test_beside_a_published_benchmark_stands_one_of_equal_pools(
    name: str, connections: int
) -> None:
    published, equal = _spec(name.removesuffix("-equal-pools")), _spec(name)
    assert set(_pools(equal).values()) == {connections}
    # Nothing is tuned apart; how the database is asked makes two servers of one preset.
    assert {one.name for server in equal.servers for one in server.env} <= {"DATABASE_ACCESS"}
    assert [one.preset for one in equal.servers] == [one.preset for one in published.servers]
    assert equal.topology == published.topology
    assert all(load in published.loads for load in equal.loads)


@pytest.mark.parametrize("name", ["users", "users-quick"])
def test_each_process_of_other_published_benchmarks_has_the_same_pool(name: str) -> None:
    assert {server.database_connections for server in _spec(name).servers} == {5}


def test_apibench_is_as_published() -> None:
    spec = _spec("apibench")
    assert spec.topology.sqlite
    assert spec.server("flask").threads == 40
    for load in spec.loads:
        assert load.closed is not None
        assert (load.closed.connections, load.closed.requests) == (50, 1000)
        assert not load.closed.keep_alive
    for name in ("apibench", "apibench-quick"):
        # The source had no bound for the last two: as many as there are requests at once.
        assert _pools(_spec(name)) == {"flask": 1, "starlette-sync": 1, "starlette": 50, "go": 50}


@pytest.mark.parametrize(
    ("address", "host", "bind"),
    [("10.0.0.7", "0.0.0.0", "0.0.0.0:80"), ("fd00::7", "::", "[::]:80")],
)
@pytest.mark.parametrize("server", ["uvicorn", "granian", "hypercorn", "daphne"])
def test_each_asgi_server_listens_on_the_family_of_the_pod(
    tmp_path: Path, server: str, address: str, host: str, bind: str
) -> None:
    program = tmp_path / server
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    start = _FOLDER / "asgi-servers" / "server" / "start.sh"
    environment = {"PATH": str(tmp_path), "SERVER": server, "PORT": "80", "POD_IP": address}
    said = subprocess.run(
        ["/bin/sh", str(start)], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    option = "--host" if "--host" in said else "--bind"
    assert said[said.index(option) + 1] == (bind if server == "hypercorn" else host)


@pytest.mark.parametrize("file", ["upgrade/app/orders.py", "cache-in-front/shop/shop.py"])
@pytest.mark.parametrize(
    ("address", "host"), [("10.0.0.7", "0.0.0.0"), ("fd00::7", "::"), ("", "0.0.0.0")]
)
def test_the_servers_of_examples_listen_on_the_family_of_the_pod(
    file: str, address: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_IP", address)
    called = (
        node
        for node in ast.walk(ast.parse((_FOLDER / file).read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "uvicorn.run"
    )
    (listens,) = (one.value for call in called for one in call.keywords if one.arg == "host")
    assert eval(ast.unparse(listens), {"os": os}) == host
