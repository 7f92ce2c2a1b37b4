"""A run keeps the scenario it began with, and says at once what is wrong with one."""

from __future__ import annotations

import base64
import json
from copy import deepcopy
from typing import Any

import pytest

from laptime.catalog import Scenario, document_of, scenario_of, scenarios, stored_text
from laptime.manifests.objects import COMPONENT_LABEL, UID_LABEL
from laptime.manifests.scenario import SCENARIO_KEY, read_scenario
from laptime.reconcile.turns import Caps, Turns

from .api_server import ApiServer
from .nodes import working
from .test_controller import operating, reason, run_manifest, state, until
from .test_decide import spec_of
from .test_folding import stored
from .test_pause import patched

USERS = scenarios()["users"]


def mine(name: str = "shop", **changes: Any) -> dict[str, Any]:
    """Return a scenario of a namespace, which does what `users` does."""
    document = document_of(USERS, "default")
    document["metadata"]["name"] = name
    return {**document, "spec": {**deepcopy(document["spec"]), **changes}}


def run_of(scenario: str, name: str = "demo", **changes: Any) -> dict[str, Any]:
    manifest = run_manifest(name)
    spec = {**manifest["spec"], "scenario": scenario, "topology": {"postgres": {}}, **changes}
    return {**manifest, "spec": spec}


def kept(server: ApiServer, run: str = "demo") -> dict[str, Any] | None:
    return server.get("ConfigMap", "default", f"{run}-scenario")


def hash_of(server: ApiServer, run: str = "demo") -> str | None:
    found = server.get("BenchmarkRun", "default", run) or {}
    said: str | None = (found.get("status") or {}).get("scenarioHash")
    return said


def message(server: ApiServer, type_: str = "Progressing", run: str = "demo") -> str:
    found = server.get("BenchmarkRun", "default", run) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return next((one["message"] for one in conditions if one["type"] == type_), "")


async def test_a_run_keeps_the_scenario_that_comes_with_laptime_too() -> None:
    server = ApiServer()
    server.add(run_of("users"))
    async with operating(server):
        await until(lambda: server.get("Deployment", "default", "demo-postgres"))
        await until(lambda: hash_of(server) == USERS.hash)
    found = kept(server)
    assert found is not None
    assert found["immutable"]
    assert read_scenario(found) == USERS


async def test_a_scenario_of_the_namespace_comes_before_one_of_its_name() -> None:
    server = ApiServer()
    other = [{**document_of(USERS, "")["spec"]["requests"][0], "path": "/"}]
    server.add(mine("users", title="Ours", requests=other))
    server.add(run_of("users"))
    async with operating(server):
        await until(lambda: hash_of(server))
    found = kept(server)
    assert found is not None
    assert not read_scenario(found).builtin
    assert read_scenario(found).title == "Ours"


async def test_changing_the_resource_changes_no_run_that_has_begun() -> None:
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: server.get("Deployment", "default", "demo-postgres"))
    before = deepcopy(server.get("ConfigMap", "default", "demo-postgres"))
    changed = mine()
    changed["spec"]["data"]["postgres"]["seed"] = [{"sql": "SELECT 'another';"}]
    server.change("BenchmarkScenario", "default", "shop", spec=changed["spec"])
    # Another process, which remembers nothing.
    async with operating(server):
        await until(lambda: server.get("ConfigMap", "default", "demo-postgres"))
        await until(lambda: hash_of(server) == USERS.hash)
        after = server.get("ConfigMap", "default", "demo-postgres")
    assert before is not None
    assert after is not None
    assert after["data"] == before["data"]


async def test_a_run_that_has_lost_what_it_kept_goes_on_with_the_same_work_only() -> None:
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: hash_of(server) == USERS.hash)
    server.remove("ConfigMap", "default", "demo-scenario")
    async with operating(server):
        await until(lambda: kept(server))
    server.remove("ConfigMap", "default", "demo-scenario")
    server.change("BenchmarkScenario", "default", "shop", spec=mine(checks=[])["spec"])
    changed = mine()
    changed["spec"]["checks"][0]["times"] = 5
    server.change("BenchmarkScenario", "default", "shop", spec=changed["spec"])
    async with operating(server):
        await until(lambda: reason(server, "demo", "Succeeded") == "ScenarioChanged")
        assert "apply the run under another name" in message(server, "Succeeded")


async def test_sql_is_taken_from_config_maps_in_order_and_kept() -> None:
    server = ApiServer()
    document = mine()
    postgres = document["spec"]["data"]["postgres"]
    texts = {"a.sql": "CREATE TABLE a (n int);", "b.sql": "CREATE TABLE b (n int);"}
    postgres["schema"] = [{"configMap": {"name": "sql", "key": key}} for key in ("b.sql", "a.sql")]
    server.add(document)
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: reason(server, "demo", "Progressing") == "ScenarioTextMissing")
        assert "there is no ConfigMap sql in namespace default: create it with kubectl" in message(
            server
        )
        server.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sql"},
                    "data": {"a.sql": texts["a.sql"]}})  # fmt: skip
        await until(lambda: "has no key b.sql; it has a.sql" in message(server))
        server.change("ConfigMap", "default", "sql", data=texts)
        await until(lambda: server.get("ConfigMap", "default", "demo-postgres"))
    stored = server.get("ConfigMap", "default", "demo-postgres")
    assert stored is not None
    assert stored["data"]["01-schema.sql"] == texts["b.sql"]
    assert stored["data"]["02-schema.sql"] == texts["a.sql"]
    found = kept(server)
    assert found is not None
    assert "configMap" not in found["data"][SCENARIO_KEY]


async def test_sql_in_an_image_keeps_its_place_and_the_run_keeps_image_and_file() -> None:
    server = ApiServer()
    document = mine()
    rows = {"image": "registry.example/rows:3", "file": "/data/rows.sql"}
    seed = document["spec"]["data"]["postgres"]["seed"]
    document["spec"]["data"]["postgres"]["seed"] = [rows, *seed]
    server.add(document)
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: server.get("Deployment", "default", "demo-postgres"))
        # What the run began with stays, whoever changes the scenario.
        server.change("BenchmarkScenario", "default", "shop", spec=mine()["spec"])
        await until(lambda: hash_of(server))
    assert hash_of(server) != USERS.hash
    deployment = server.get("Deployment", "default", "demo-postgres")
    assert deployment is not None
    carrier, copying = deployment["spec"]["template"]["spec"]["initContainers"]
    assert (carrier["image"], copying["image"]) == ("k6", "registry.example/rows:3")
    assert copying["args"] == ["/data/rows.sql", "/laptime-files/02-seed.sql"]
    stored = server.get("ConfigMap", "default", "demo-postgres")
    assert stored is not None
    assert stored["data"]["03-seed.sql"] == seed[0]["sql"]
    found = kept(server)
    assert found is not None
    assert json.loads(found["data"][SCENARIO_KEY])["data"]["postgres"]["seed"] == [rows, *seed]


def market(**changes: Any) -> dict[str, Any]:
    """Return a scenario whose sessions take users from a table in a ConfigMap."""
    people: dict[str, Any] = {"configMap": {"name": "people", "key": "users.csv"}}
    login = {"path": "/login?name={{users.name}}", "captures": [{"name": "t", "json": "/t"}]}
    read = {"path": "/me", "headers": {"x-token": "{{t}}"}}
    spec = {
        "feeders": [{"name": "users", "csv": people}],
        "requests": [{"name": "login", **login}, {"name": "read", **read}],
        "sessions": [{"name": "visit", "steps": ["login", "read"]}],
        "checks": [{"name": "login", **login}, {"name": "read", **read}],
        **changes,
    }
    return {**mine("market"), "spec": spec}


PEOPLE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "people"},
    "data": {"users.csv": "name\r\nada\r\nbob\r\n"},
}
ANY_SERVER = [{"name": "a", "image": "x"}]


async def test_a_table_is_taken_from_a_config_map_kept_and_given_to_the_generators() -> None:
    server = ApiServer()
    server.add(market())
    server.add(run_of("market", topology={}, servers=ANY_SERVER))
    async with operating(server):
        await until(lambda: reason(server, "demo", "Progressing") == "ScenarioTextMissing")
        assert "kubectl create configmap people --from-file=users.csv" in message(server)
        server.add(deepcopy(PEOPLE))
        await until(lambda: server.get("ConfigMap", "default", "demo-feeders"))
        # What the run began with stays, whoever changes the table.
        server.change("ConfigMap", "default", "people", data={"users.csv": "name\neve\n"})
        server.remove("ConfigMap", "default", "demo-feeders")
        await until(lambda: server.get("ConfigMap", "default", "demo-feeders"))
    given = server.get("ConfigMap", "default", "demo-feeders")
    assert given is not None
    assert given["data"] == {"users.csv": "name\nada\nbob\n"}
    found = kept(server)
    assert found is not None
    feeder = read_scenario(found).feeders[0]
    assert feeder.csv is not None
    assert feeder.csv.text == "name\r\nada\r\nbob\r\n"


async def test_no_row_of_a_table_is_in_the_status_though_a_server_dies_with_it() -> None:
    """Any row, not that of the checks alone; a short one is a word like others."""
    server = ApiServer()
    server.add(market())
    rows = "name\nada\nS3cr3t Passw0rd/1\nBearer of-a-table\n"
    server.add({**deepcopy(PEOPLE), "data": {"users.csv": rows}})
    server.add(run_of("market", topology={}, servers=ANY_SERVER))
    said = (
        "panic: no user ada, 'S3cr3t Passw0rd/1', S3cr3t%20Passw0rd%2f1, token of-a-table\n"
        "at S3cr3t Passw0rd\\/1"
    )
    last = {"terminated": {"exitCode": 1, "reason": "Error", "message": said}}

    def dies(pod: dict[str, Any]) -> None:
        if pod["metadata"]["labels"][COMPONENT_LABEL] == "server":
            (container,) = pod["status"]["containerStatuses"]
            waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
            container |= {"restartCount": 3, "ready": False, "state": waiting, "lastState": last}

    async with operating(server), working(server) as nodes:
        nodes.admission = dies
        await until(lambda: state(server, "demo") == "Failed")
    (run,) = server.of("BenchmarkRun")
    (server_status,) = run["status"]["servers"]
    assert (
        "its last words: panic: no user ada, '{{users.name}}', {{users.name}}, token {{"
        in (server_status["message"])
    )
    for one in [run, *server.of("ConfigMap"), *server.of("Event")]:
        if one["metadata"]["name"] not in ("people", "demo-scenario", "demo-feeders"):
            assert not [secret for secret in ("Passw0rd", "of-a-table") if secret in str(one)]


async def test_a_table_that_is_no_text_ends_the_run_at_once() -> None:
    """As `kubectl create configmap --from-file` keeps a file of Latin-1 or UTF-16."""
    server = ApiServer()
    server.add(market())
    latin = base64.b64encode("name\nZoë\n".encode("latin-1")).decode()
    table = {key: one for key, one in deepcopy(PEOPLE).items() if key != "data"}
    server.add({**table, "binaryData": {"users.csv": latin}})
    server.add(run_of("market", topology={}, servers=ANY_SERVER, startupTimeout="10m"))
    async with operating(server):
        await until(lambda: state(server, "demo") == "Failed")
    assert reason(server, "demo", "Succeeded") == "ScenarioTextMissing"
    assert (
        "key users.csv of ConfigMap people is no text in UTF-8: convert the file, such as by"
        in (message(server, "Succeeded"))
    )


async def test_a_table_of_another_namespace_is_out_of_reach() -> None:
    server = ApiServer()
    server.add(market())
    server.add({**deepcopy(PEOPLE), "metadata": {"name": "people", "namespace": "other"}})
    server.add(run_of("market", topology={}, servers=ANY_SERVER))
    async with operating(server):
        await until(lambda: reason(server, "demo", "Progressing") == "ScenarioTextMissing")
    assert "there is no ConfigMap people in namespace default" in message(server)


async def test_a_table_of_another_run_is_not_taken_for_ones_own() -> None:
    server = ApiServer()
    server.add(market())
    server.add(deepcopy(PEOPLE))
    another = {"metadata": {"name": "demo-feeders", "labels": {"laptime.dev/run": "another"}}}
    server.add({**PEOPLE, **another, "data": {"users.csv": "name\nmallory\n"}})
    server.add(run_of("market", topology={}, servers=ANY_SERVER, startupTimeout="1s"))
    async with operating(server):
        await until(lambda: state(server, "demo") == "Failed")
    assert reason(server, "demo", "Succeeded") == "NameTaken"
    assert not server.of("Job")


async def test_a_scenario_that_is_not_there_yet_is_waited_for() -> None:
    server = ApiServer()
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: reason(server, "demo", "Progressing") == "ScenarioMissing")
        said = message(server)
        assert "there is no BenchmarkScenario shop in namespace default" in said
        assert "users" in said
        assert kept(server) is None
        server.add(mine())
        await until(lambda: server.get("Deployment", "default", "demo-postgres"))


async def test_a_scenario_that_does_not_come_ends_the_run() -> None:
    server = ApiServer()
    server.add(run_of("shop", startupTimeout="1ms"))
    async with operating(server):
        await until(lambda: state(server, "demo") == "Failed")
    assert reason(server, "demo", "Succeeded") == "ScenarioMissing"
    assert not server.of("Deployment")


def _wrong(**changes: Any) -> dict[str, Any]:
    document = mine()
    for place, value in changes.items():
        node: Any = document["spec"]
        *parents, last = place.split("__")
        for part in parents:
            node = node[int(part)] if part.isdigit() else node[part]
        node[last] = value
    return document


def pools(connections: dict[str, int], servers: list[Any] | None = None) -> dict[str, Any]:
    """Return published figures that say how many connections servers of a preset had."""
    load = {"open": {"rate": 5}}
    measurement = {"load": load, "databaseConnections": connections, "order": ["flask"]}
    measurement["servers"] = servers or []
    return {"title": "Somebody", "baseline": "flask", "measurements": [measurement]}


@pytest.mark.parametrize(
    ("document", "expected", "says"),
    [
        (_wrong(requests=[]), "ScenarioNotUnderstood", "requests"),
        (_wrong(more="x"), "ScenarioNotUnderstood", "more"),
        (_wrong(published={**pools({}), "year": 1}), "ScenarioNotUnderstood", "published.year"),
        (_wrong(requests__0__path="/x"), "ScenarioWrong", "add a check with method GET and path"),
        (_wrong(checks__0__method="POST"), "ScenarioWrong", "no check asks GET /"),
        (_wrong(checks__0__jsonSchema={"$ref": "http://x/"}), "ScenarioWrong", "leads out"),
        (_wrong(checks__0__headers={"Host": "x"}), "ScenarioWrong", "leave it out"),
        (
            _wrong(data__postgres__extensions=["dblink"]),
            "ExtensionNotAllowed",
            "the administrator does not allow dblink (scenarios.extensions of the chart); allowed: "
            "pg_trgm",
        ),
        (_wrong(data__postgres__schema=[{"sql": "--"}]), "ScenarioWrong", "has no statement"),
        (
            _wrong(published=pools({"flsk": 1})),
            "ScenarioWrong",
            "published.measurements[0].databaseConnections: there is no preset flsk; there is "
            "axum-bb8, axum-diesel,",
        ),
        (
            _wrong(published=pools({"flask": 0})),
            "ScenarioWrong",
            "published.measurements[0].databaseConnections.flask: 0 is no count of connections: "
            "write 1 to 10000, or leave flask out",
        ),
        (
            _wrong(published=pools({}, servers=[{"preset": "flask", "databaseConnections": 0}])),
            "ScenarioWrong",
            "published.measurements[0].servers[0].databaseConnections: 0 is no count of",
        ),
        (_wrong(checks__0__expected={"a": 1}), "ScenarioWrong", "does not meet its own jsonSchema"),
        (_wrong(checks__0__expectStatus=204), "ScenarioWrong", "has no body"),
        (
            _wrong(feeders=[{"name": "u", "csv": {"text": "a,b\n1\n"}}]),
            "ScenarioWrong",
            "feeders.u.csv: line 2 has 1 cell, the first line has 2: write one for each column",
        ),
        (
            _wrong(requests__0__headers={"x": "{{token}}"}),
            "ScenarioWrong",
            "requests.list.headers.x: {{token}} is neither of a feeder nor captured before: write "
            "feeders, or captures of an earlier request",
        ),
        (
            _wrong(sessions=[{"name": "s", "steps": ["list", "red"]}]),
            "ScenarioWrong",
            "sessions.s.steps: there is no request red; there is list",
        ),
        (
            _wrong(checks__0__captures=[{"name": "a", "regex": "[[:alpha:]]"}]),
            "ScenarioWrong",
            "is not known everywhere: write groups",
        ),
        (
            _wrong(feeders=[{"name": "u", "csv": {"file": "/etc/passwd"}}]),
            "ScenarioNotUnderstood",
            "feeders.0.csv.file",
        ),
    ],
)
async def test_a_wrong_scenario_ends_the_run_at_once_with_what_to_write(
    document: dict[str, Any], expected: str, says: str
) -> None:
    server = ApiServer()
    server.add(document)
    server.add(run_of("shop"))
    async with operating(server, extensions=frozenset({"pg_trgm"})):
        await until(lambda: state(server, "demo") == "Failed")
    assert reason(server, "demo", "Succeeded") == expected
    assert says in message(server, "Succeeded")
    assert not server.of("Deployment")
    assert kept(server) is None


def forge(server: ApiServer, scenario: Scenario, run: str = "demo") -> None:
    """Have a run keep a scenario that somebody else wrote, who writes ConfigMaps there."""
    keep(server, stored_text(scenario), run)


def keep(server: ApiServer, text: str, run: str = "demo") -> None:
    """Have a run keep this text as its scenario."""
    uid = (server.get("BenchmarkRun", "default", run) or {})["metadata"]["uid"]
    metadata = {
        "name": f"{run}-scenario",
        "labels": {UID_LABEL: uid, COMPONENT_LABEL: "scenario"},
        "ownerReferences": [{"kind": "BenchmarkRun", "name": run, "uid": uid}],
    }
    data = {SCENARIO_KEY: text}
    server.add({"kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": data})


def other(name: str = "shop", **changes: Any) -> Scenario:
    """Return a scenario as it is once it was read."""
    return Scenario.model_validate({**mine(name, **changes)["spec"], "name": name})


@pytest.mark.parametrize(
    ("scenario", "expected", "says"),
    [
        (
            scenario_of(_wrong(data__postgres__extensions=["dblink"])),
            "ExtensionNotAllowed",
            "the administrator does not allow dblink",
        ),
        (
            scenario_of(_wrong(requests__0__path="/x")),
            "ScenarioWrong",
            "add a check with method GET and path",
        ),
        (other("\x1b[2Jmine"), "ScenarioChanged", "the run keeps another scenario than shop"),
        (
            other("users").model_copy(update={"builtin": True}),
            "ScenarioChanged",
            "the run keeps another scenario than shop",
        ),
    ],
)
async def test_a_kept_scenario_that_nobody_has_looked_at_is_looked_at_like_any_other(
    scenario: Scenario, expected: str, says: str
) -> None:
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    forge(server, scenario)
    async with operating(server, extensions=frozenset({"pg_trgm"})):
        await until(lambda: state(server, "demo") == "Failed")
    assert reason(server, "demo", "Succeeded") == expected
    assert says in message(server, "Succeeded")
    assert hash_of(server) is None
    assert not server.of("Deployment")


async def test_what_the_services_of_a_kept_scenario_ask_for_counts_against_the_caps() -> None:
    server = ApiServer()
    server.add(mine())
    limits = {"resources": {"cpu": "1", "memory": "1Gi"}}
    server.add(
        run_of(
            "shop",
            topology={"postgres": limits},
            servers=[{"name": "a", "image": "x", **limits}],
            generator=limits,
        )
    )
    greedy = {"name": "cache", "image": "redis:8", "ports": [6379], "resources": {"cpu": "64"}}
    forge(server, other(services=[greedy]))
    async with operating(server, turns=Turns(caps={"*": Caps(cpu=4.0)})):
        await until(lambda: reason(server, "demo", "Accepted") == "CapExceeded")
        assert "it asks for 67 cores" in message(server, "Accepted")
        assert state(server, "demo") == "Queued"
    assert not server.of("Deployment")


async def test_a_kept_scenario_that_was_made_just_before_the_operator_ended_is_gone_on_with() -> (
    None
):
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    forge(server, other())
    async with operating(server):
        await until(lambda: server.get("Deployment", "default", "demo-postgres"))
        await until(lambda: hash_of(server) == USERS.hash)


async def test_what_a_newer_version_keeps_of_published_figures_ends_no_run() -> None:
    newer = json.loads(stored_text(other()))
    newer["published"] |= {"year": 2031}
    newer["published"]["measurements"][0] |= {"threads": {"flask": 4}}
    newer["published"]["measurements"][0]["load"]["closed"] |= {"thinkTime": "1s"}
    newer["published"]["measurements"][0]["servers"][0] |= {"gc": "g1"}
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    keep(server, json.dumps(newer))
    async with operating(server):
        await until(lambda: server.get("Deployment", "default", "demo-postgres"))
        await until(lambda: hash_of(server) == USERS.hash)


@pytest.mark.parametrize("place", ["", "requests", "checks"])
async def test_what_a_newer_version_keeps_of_the_work_ends_the_run(place: str) -> None:
    newer = json.loads(stored_text(other()))
    (newer[place][0] if place else newer)["ofNewer"] = True
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    keep(server, json.dumps(newer))
    async with operating(server):
        await until(lambda: reason(server, "demo", "Succeeded") == "ScenarioUnreadable")
    assert "ofNewer" in message(server, "Succeeded")
    assert not server.of("Deployment")


async def test_what_the_run_keeps_is_replaced_between_two_turns_and_no_row_mixes_two_works() -> (
    None
):
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: hash_of(server) == USERS.hash)
    server.remove("ConfigMap", "default", "demo-scenario")
    changed = mine()["spec"]["checks"]
    changed[0]["times"] = 5
    forge(server, other(checks=changed))
    async with operating(server):
        await until(lambda: reason(server, "demo", "Succeeded") == "ScenarioChanged")
    said = message(server, "Succeeded")
    assert f"it began with {USERS.hash}" in said
    assert "apply the run under another name" in said


@pytest.mark.parametrize(
    ("changes", "expected", "says"),
    [
        ({"topology": {}}, "ScenarioDoesNotFit", "needs a database: add postgres: {}"),
        ({"topology": {"database": "sqlite"}}, "ScenarioDoesNotFit", "has no data for SQLite"),
        (
            {"loads": [{"name": "l", "closed": {"connections": 1, "requests": 9},
                        "endpoints": ["red"]}]},
            "LoadImpossible",
            "load l: scenario shop has no endpoint red; it has list",
        ),
    ],
)  # fmt: skip
async def test_a_run_that_does_not_fit_ends_before_anything_is_deployed(
    changes: dict[str, Any], expected: str, says: str
) -> None:
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop", **changes))
    async with operating(server):
        await until(lambda: state(server, "demo") == "Failed")
    assert reason(server, "demo", "Succeeded") == expected
    assert says in message(server, "Succeeded")
    assert not server.of("Deployment")


async def test_a_preset_that_does_other_work_is_refused_for_what_comes_with_laptime() -> None:
    server = ApiServer()
    servers = [{"name": "a", "preset": "flask"}]
    server.add(run_of("users", servers=servers))
    async with operating(server):
        await until(lambda: state(server, "demo") == "Failed")
    assert reason(server, "demo", "Succeeded") == "ScenarioDoesNotFit"
    assert "preset flask does not do scenario users: write axum-sqlx" in message(
        server, "Succeeded"
    )


async def test_the_work_is_in_the_archive_of_a_run_that_is_over() -> None:
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop", cancel=False, servers=[{"name": "a", "image": "x"}]))
    async with operating(server):
        await until(lambda: kept(server))
        run = server.get("BenchmarkRun", "default", "demo")
        assert run is not None
        server.change("BenchmarkRun", "default", "demo", spec={**run["spec"], "cancel": True})
        await until(lambda: kept(server) is None, seconds=20)
        found = server.get("BenchmarkRun", "default", "demo")
    assert found is not None
    assert found["status"]["scenarioHash"] == USERS.hash
    (stored_scenario,) = [
        one for one in stored(server, "demo").objects if SCENARIO_KEY in one["data"]
    ]
    assert read_scenario(stored_scenario).hash == USERS.hash
    results = json.loads(stored(server, "demo").files["results.json"])
    assert results["scenario"]["hash"] == USERS.hash
    assert results["scenario"]["document"]["name"] == "shop"


async def test_what_failed_is_measured_again_on_the_work_that_the_run_began_with() -> None:
    server = ApiServer()
    server.add(mine())
    async with operating(server), working(server) as nodes:
        nodes.failing = {"s1"}
        spec = {**spec_of(2, 1, 1, seed=1).to_wire(), "scenario": "shop"}
        server.add({**run_manifest("demo"), "spec": spec})
        await until(lambda: state(server, "demo") == "Failed" and kept(server) is None, 20)
        changed = mine()
        changed["spec"]["checks"][0]["times"] = 5
        server.change("BenchmarkScenario", "default", "shop", spec=changed["spec"])
        nodes.failing = set()
        patched(server, "demo", retry=1)
        await until(lambda: state(server, "demo") == "Succeeded", 20)
    assert hash_of(server) == USERS.hash
