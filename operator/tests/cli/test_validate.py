"""validate: what the API server would refuse is refused without one."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.cli.generate import catalogue_crd
from laptime.cli.schema_rules import rule_violations, schema_violations
from tests.cli.conftest import own_scenario

Laptime = Callable[..., tuple[int, str, str]]
SCHEMA = catalogue_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
CLOSED = {"connections": 10, "duration": "5s"}
SERVERS = [{"name": "a", "preset": "axum-sqlx"}]


def run(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "spec": {
            "scenario": "users",
            "servers": SERVERS,
            "topology": {"postgres": {}},
            "loads": [{"name": "closed", "closed": CLOSED}],
            **spec,
        },
    }


def said(laptime: Laptime, folder: Path, document: Any) -> str:
    file = folder / "run.yaml"
    document.setdefault("metadata", {"name": "demo"})
    file.write_text(yaml.safe_dump(document))
    code, out, err = laptime("validate", file)
    assert (code == 0) == (err == ""), (out, err)
    return out + err


@pytest.mark.parametrize("key", ["on", "8080", "yes: 1, 7"])
def test_a_field_whose_name_yaml_reads_as_something_else_is_unknown_too(
    laptime: Laptime, tmp_path: Path, key: str
) -> None:
    file = tmp_path / "run.yaml"
    text = yaml.safe_dump(run() | {"metadata": {"name": "demo"}})
    file.write_text(text.replace("  scenario:", f"  <<: {{{key}: 1}}\n  scenario:"))
    code, _, err = laptime("validate", file)
    assert code == 1
    assert f"unknown field {', '.join(sorted(key.split(': 1, ')))}" in err


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_every_example_is_valid(laptime: Laptime, file: Path) -> None:
    code, out, err = laptime("validate", file)
    assert (code, err) == (0, "")
    # A scenario that stands in the file is said to be valid first.
    *before, valid, takes = out.splitlines()
    assert valid == f"{file.stem} is valid."
    assert takes.startswith("It takes ")
    assert all(line.startswith("Scenario ") for line in before)


def test_a_run_is_read_from_the_standard_input(
    laptime: Laptime, manifest_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(manifest_file.read_text()))
    code, out, err = laptime("validate", "-")
    assert (code, err) == (0, "")
    assert out.startswith("demo is valid.\n")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # A warm-up of 3 s, 5 s measured and 4 s around them, five times.
        ({}, "It takes 5 trials, about 1m00s."),
        ({"control": True}, "It takes 10 trials, about 2m00s."),
        ({"precision": "2%"}, "It takes at least 8 trials, about 1m36s."),
        (
            {"loads": [{"name": "x", "closed": {"connections": 1, "requests": 9000}}]},
            "It takes 5 trials, about 1m20s; those bound by requests are reckoned with 1,000",
        ),
    ],
)
def test_how_long_it_takes_is_said(
    laptime: Laptime, tmp_path: Path, spec: dict[str, Any], expected: str
) -> None:
    assert expected in said(laptime, tmp_path, run(repetitions=5, **spec))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"repetitions": 0}, "spec.repetitions: 0 is less than the minimum of 1"),
        ({"repetitions": "five"}, "spec.repetitions: 'five' is not of type 'integer'"),
        ({"parallel": 3}, "spec: unknown field parallel\n"),
        ({"servers": [{"name": "a", "preset": "axum"}]}, "spec.servers[0].preset: 'axum' is not"),
        ({"loads": []}, "spec.loads: "),
        ({"servers": [{"preset": "axum-sqlx"}]}, "spec.servers[0]: name is missing"),
    ],
)
def test_the_schema_is_checked(
    laptime: Laptime, tmp_path: Path, spec: dict[str, Any], expected: str
) -> None:
    assert f"demo would be refused.\n  {expected}" in said(laptime, tmp_path, run(**spec))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"repetition": 3}, "spec: unknown field repetition: did you mean repetitions?"),
        ({"max_repetitions": 3}, "spec: unknown field max_repetitions: did you mean maxRepetit"),
        # The one that is alike stands there already.
        ({"repetitions": 5, "repetition": 3}, "spec: unknown field repetition\n"),
        (
            {"servers": [{"name": "a", "prest": "axum-sqlx", "prt": 80, "dns": "x"}]},
            "spec.servers[0]: unknown field dns, prest, prt: did you mean preset instead of prest, "
            "port instead of prt?",
        ),
    ],
)
def test_which_field_was_probably_meant_is_said(
    laptime: Laptime, tmp_path: Path, spec: dict[str, Any], expected: str
) -> None:
    assert f"demo would be refused.\n  {expected}" in said(laptime, tmp_path, run(**spec))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"loads": [{"name": "x", "closed": {**CLOSED, "duration": 5}}]},
            "spec.loads[0].closed.duration: 5 is not of type 'string': write it with a unit, such "
            "as 5s",
        ),
        (
            {"loads": [{"name": "x", "closed": CLOSED, "warmup": 0.5}]},
            "spec.loads[0].warmup: 0.5 is not of type 'string': write it with a unit, such as 0.5s",
        ),
        (
            {"loads": [{"name": "x", "closed": CLOSED, "warmup": True}]},
            "spec.loads[0].warmup: True is not of type 'string'\n",
        ),
        ({"scenario": 5}, "spec.scenario: 5 is not of type 'string'\n"),
    ],
)
def test_a_duration_without_a_unit_is_told_to_have_one(
    laptime: Laptime, tmp_path: Path, spec: dict[str, Any], expected: str
) -> None:
    assert f"demo would be refused.\n  {expected}" in said(laptime, tmp_path, run(**spec))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"baseline": "b"}, "spec.baseline: baseline must be the name of one of spec.servers"),
        ({"scenario": "Users"}, "spec.scenario: must be the name of a scenario"),
        ({"servers": [*SERVERS, *SERVERS]}, "spec.servers: two servers have the same name"),
        (
            {"servers": [{"name": "a", "preset": "axum-sqlx", "port": 80}]},
            "spec.servers[0].port: port goes with image",
        ),
        (
            {"servers": [{"name": "A", "preset": "axum-sqlx"}]},
            "spec.servers[0].name: a server's name must be lower-case letters",
        ),
        (
            {"loads": [{"name": "x", "closed": CLOSED, "open": {"rate": 5, "duration": "3s"}}]},
            "spec.loads[0]: write exactly one shape per load",
        ),
        (
            {"loads": [{"name": "x", "closed": {**CLOSED, "duration": "100ms"}}]},
            "spec.loads[0].closed.duration: must be a duration from 1s to 6h",
        ),
        (
            {"servers": [{**SERVERS[0], "resources": {"memory": "2Ki"}}]},
            "spec.servers[0].resources.memory: memory must be at least 4Mi",
        ),
        (
            {"servers": [{**SERVERS[0], "resources": {"cpu": "0"}}]},
            "spec.servers[0].resources.cpu: must be a Kubernetes quantity above zero",
        ),
        # maxConnections is left out: its default of 100 is what the rule sees.
        (
            {"topology": {"postgres": {}, "pgbouncer": {"poolSize": 101}}},
            "spec.topology.pgbouncer: pgbouncer.poolSize must not be larger",
        ),
    ],
)
def test_the_rules_are_checked_with_defaults_filled_in(
    laptime: Laptime, tmp_path: Path, spec: dict[str, Any], expected: str
) -> None:
    assert f"demo would be refused.\n  {expected}" in said(laptime, tmp_path, run(**spec))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"topology": {}},
            "topology: scenario users needs a database: add postgres: {} to the topology",
        ),
        (
            {"topology": {"database": "sqlite"}},
            "topology.database: scenario users has no data for SQLite: write postgres: {} instead",
        ),
        (
            {"loads": [{"name": "x", "closed": CLOSED, "protocol": "http2"}]},
            "server a: preset axum-sqlx does not speak HTTP/2: write protocol: http1 at load x, or "
            "take go-nethttp, an image or a service",
        ),
        (
            {"servers": [{"name": "a", "preset": "flask"}]},
            "server a: preset flask does not do scenario users: write axum-sqlx, fastapi-async or "
            "fastapi-sync, or an image",
        ),
        (
            {"loads": [{"name": "x", "closed": CLOSED, "endpoints": ["hi"]}]},
            "load x: scenario users has no endpoint hi; it has list",
        ),
        (
            {"scenario": "upstream", "servers": [{"name": "a", "preset": "flask"}]},
            "topology: scenario upstream asks another service: add upstream: {} to the topology",
        ),
        (
            {
                "scenario": "tasks",
                "servers": [{"name": "a", "preset": "axum-diesel"}],
                "loads": [{"name": "x", "closed": CLOSED, "endpoints": ["delete"]}],
            },
            "load x: delete uses each of its 50000 rows once: give closed.requests, at most 50000",
        ),
    ],
)
def test_a_run_that_does_not_fit_its_scenario_is_told_what_to_write(
    laptime: Laptime, tmp_path: Path, spec: dict[str, Any], expected: str
) -> None:
    assert f"demo would be refused.\n  {expected}" in said(laptime, tmp_path, run(**spec))


def test_where_the_scripts_of_the_file_lead_to_is_said(laptime: Laptime, tmp_path: Path) -> None:
    source = "import x from 'https://jslib.k6.io/x.js';\nget('http://shop.payments.svc');"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}
    manifest = run(
        loads=[{"name": "own", "script": {"configMap": "mine"}}],
        egress=[{"namespace": "payments"}],
    )
    manifest["metadata"] = {"name": "demo"}
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump_all([{**config_map, "data": {"script.js": source}}, manifest]))
    code, out, _ = laptime("validate", file)
    assert code == 0
    (lead,) = [line for line in out.splitlines() if line.startswith("Load ")]
    assert lead.startswith("Load own: script.js:1 imports https://jslib.k6.io/x.js, where pods")


@pytest.mark.parametrize("reset", [[], [{"sql": "SELECT 1;"}]])
def test_a_scenario_that_writes_and_takes_nothing_back_is_warned_of(
    laptime: Laptime, tmp_path: Path, reset: list[Any]
) -> None:
    create = {"name": "create", "method": "POST", "path": "/orders", "expectStatus": 201}
    schema = [{"sql": "CREATE TABLE orders (id int);"}]
    scenario = {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkScenario",
        "metadata": {"name": "shop"},
        "spec": {
            "data": {"postgres": {"schema": schema, "reset": reset}},
            "requests": [create],
            "checks": [{**create, "times": 1}],
        },
    }
    manifest = run(scenario="shop", servers=[{"name": "mine", "image": "mine:1"}])
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump_all([scenario, manifest | {"metadata": {"name": "demo"}}]))
    code, out, _ = laptime("validate", file)
    assert code == 0
    line = "What a trial changes in Postgres by create (POST) is there for all trials after it"
    assert (line in out) is (not reset)
    assert ("TRUNCATE orders" in out) is (not reset)


def test_a_scenario_that_only_the_cluster_may_have_is_no_mistake(
    laptime: Laptime, tmp_path: Path
) -> None:
    text = said(laptime, tmp_path, run(scenario="shop"))
    assert "demo is valid" in text
    assert "Scenario shop is not in the file and none of that name comes with Laptime" in text


def test_the_name_of_the_run_has_rules_too(laptime: Laptime, tmp_path: Path) -> None:
    document = run() | {"metadata": {"name": "Demo", "labels": {"team": "a"}}}
    assert "metadata.name must be at most 35 lower-case letters" in said(
        laptime, tmp_path, document
    )


def test_every_mistake_is_said_at_once(laptime: Laptime, tmp_path: Path) -> None:
    text = said(laptime, tmp_path, run(repetitions=0, loads=[]))
    assert text.count("\n  spec.") == 2


def test_numbers_and_texts_are_both_quantities() -> None:
    document = run(servers=[{**SERVERS[0], "resources": {"cpu": 2, "memory": "1Gi"}}])
    document["metadata"] = {"name": "demo"}
    assert schema_violations(SCHEMA, document) == []
    assert rule_violations(SCHEMA, document) == []


def test_a_cluster_is_asked_on_request_and_stores_nothing(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    code, out, _ = laptime("validate", manifest_file, "--server", "--kubeconfig", kubeconfig)
    assert code == 0
    assert "demo is valid, and http://127.0.0.1" in out
    (path,) = [path for method, path in fake.requests if method == "PATCH"]
    assert "dryRun=All" in path


SCENARIOS = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkscenarios"


@pytest.fixture
def validate_in_cluster(
    laptime: Laptime, kubeconfig: Path, manifest: Any, tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Run validate --server of the manifest with another spec."""

    def call(**spec: Any) -> tuple[int, str, str]:
        file = tmp_path / "run.yaml"
        file.write_text(yaml.safe_dump({**manifest, "spec": {**manifest["spec"], **spec}}))
        return laptime("validate", file, "--server", "--kubeconfig", kubeconfig)

    return call


def test_a_run_is_checked_against_the_scenario_of_its_namespace(
    fake: Any, validate_in_cluster: Callable[..., tuple[int, str, str]]
) -> None:
    fake.put(f"{SCENARIOS}/desk", own_scenario("/"))
    image = {"name": "a", "image": "a:1", "port": 80}
    code, out, err = validate_in_cluster(scenario="desk", servers=[image], baseline="a")
    assert code == 0, err
    assert "Scenario desk is that of namespace team." in out
    assert "Not checked: key a.sql of ConfigMap sql: there is no ConfigMap sql" in out
    assert "demo is valid, and http://127.0.0.1" in out
    code, _, err = validate_in_cluster(scenario="desk", topology={})
    assert code == 1
    assert "topology: scenario desk needs a database" in err


def test_the_scenario_of_a_namespace_comes_before_the_known_one_of_its_name(
    fake: Any, validate_in_cluster: Callable[..., tuple[int, str, str]]
) -> None:
    image = {"name": "a", "image": "a:1", "port": 80}
    asked = {"servers": [image], "baseline": "a", "topology": {}}
    assert validate_in_cluster(**asked)[0] == 0, "an image need not have the database of users"
    fake.put(f"{SCENARIOS}/users", own_scenario("/"))
    code, _, err = validate_in_cluster(**asked)
    assert code == 1
    assert "topology: scenario users needs a database" in err


def test_a_scenario_of_the_namespace_that_no_run_can_have_is_told(
    fake: Any, validate_in_cluster: Callable[..., tuple[int, str, str]]
) -> None:
    wrong = own_scenario("/")
    wrong["spec"]["requests"] = []
    fake.put(f"{SCENARIOS}/desk", wrong)
    code, _, err = validate_in_cluster(scenario="desk")
    assert code == 1
    assert "In namespace team: Scenario desk would be refused." in err
    assert "spec.requests" in err


def test_a_scenario_that_is_nowhere_is_to_be_applied(
    validate_in_cluster: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = validate_in_cluster(scenario="shop")
    assert code == 0
    assert "Scenario shop is neither in the file nor in namespace team" in out
    assert "apply it before the run." in out


def test_a_scenario_that_may_not_be_read_leaves_a_run_unchecked(
    fake: Any, validate_in_cluster: Callable[..., tuple[int, str, str]]
) -> None:
    fake.may_read_scenarios = False
    code, out, _ = validate_in_cluster(scenario="shop")
    assert code == 0
    assert "Could not read BenchmarkScenario shop: not allowed" in out
    assert "apply it" not in out
    code, out, _ = validate_in_cluster()
    assert code == 0
    assert "Could not read BenchmarkScenario users: not allowed" in out
    code, _, err = validate_in_cluster(topology={})
    assert code == 1
    assert "scenario users needs a database" in err


def test_an_edited_run_whose_old_result_is_there_is_judged_as_a_new_one(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest: Any, manifest_file: Path
) -> None:
    path = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/demo"
    fake.put(path, {"spec": {**manifest["spec"], "repetitions": 3}, "status": {}})
    code, out, err = laptime("validate", manifest_file, "--server", "--kubeconfig", kubeconfig)
    assert code == 0, err
    assert "demo is valid, and http://127.0.0.1" in out
    (asked,) = [path for method, path in fake.requests if method == "POST"]
    assert "dryRun=All" in asked
    assert not fake.applied


def test_what_the_cluster_refuses_is_said(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    fake.refuse = (403, {"kind": "Status", "message": "benchmarkruns is forbidden"})
    code, _, err = laptime("validate", manifest_file, "--server", "--kubeconfig", kubeconfig)
    assert code == 1
    assert "Could not check BenchmarkRun demo: not allowed" in err


def test_without_the_library_of_rules_that_is_said(
    laptime: Laptime, manifest_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cel", None)
    code, out, _ = laptime("validate", manifest_file)
    assert code == 0
    install = "pip install './operator[cli]' (in a checkout of Laptime)"
    assert f"its rules were not checked: {install}, or laptime validate --server" in out
    assert "It takes" not in out


def test_a_rule_that_cannot_be_evaluated_is_not_met() -> None:
    schema = {
        "x-kubernetes-validations": [{"rule": "duration(self) > duration('1s')", "message": "no"}]
    }
    assert rule_violations(schema, "2s") == []
    assert rule_violations(schema, "soon") == [": no"]


def test_a_field_that_is_null_is_not_there_as_for_the_api_server(
    laptime: Any, tmp_path: Path, manifest: Any
) -> None:
    spec = {**manifest["spec"], "seed": None, "topology": {"postgres": {}, "haproxy": None}}
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump({**manifest, "spec": spec}))
    code, out, err = laptime("validate", file)
    assert (code, err) == (0, "")
    assert "demo is valid" in out
    # What is required is missing then, and an entry of a list is no field.
    for wrong in ({"scenario": None}, {"loads": [None]}):
        file.write_text(yaml.safe_dump({**manifest, "spec": {**spec, **wrong}}))
        code, _, err = laptime("validate", file)
        assert code == 1, wrong


def test_an_empty_field_of_a_scenario_is_not_there_as_for_the_api_server(
    laptime: Laptime, tmp_path: Path
) -> None:
    scenario = own_scenario("/front")
    request, check = scenario["spec"]["requests"][0], scenario["spec"]["checks"][0]
    sql = {"sql": "CREATE TABLE desk (id integer);", "configMap": None}
    scenario["spec"] |= {
        "description": None,
        "feeders": None,
        "data": {"postgres": {"schema": [sql], "seed": None}, "sqlite": None},
        "requests": [{**request, "headers": None}],
        "checks": [{**check, "afterwards": None}],
    }
    assert said(laptime, tmp_path, scenario) == "Scenario desk is valid.\n"
    # What its own checks must be answered with may be null.
    scenario["spec"]["checks"][0]["expected"] = {"share": None}
    assert said(laptime, tmp_path, scenario) == "Scenario desk is valid.\n"
