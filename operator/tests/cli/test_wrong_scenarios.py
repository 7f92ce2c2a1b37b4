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
ROWS = {"image": "registry.example/shop-data:3", "file": "/data/rows.sql"}
CHECK, REQUEST, POSTGRES = "checks.0", "requests.0", "data.postgres"
POOLS = "published.measurements.0.databaseConnections"
IN_POOLS = "spec.published.measurements[0].databaseConnections"
UNSTEADY = {"name": "one", "path": "/items/1", "answers": "different"}
LOGIN = {
    "method": "POST",
    "path": "/login",
    "headers": {"content-type": "application/json"},
    "body": '{"name": "{{users.name}}"}',
    "captures": [{"name": "token", "json": "/token"}],
}
CREATE = {
    "method": "POST",
    "path": "/items?n={{n}}",
    "headers": {"authorization": "Bearer {{token}}"},
    "captures": [{"name": "item", "header": "location", "regex": "/items/(.+)"}],
}
READ = {"path": "/items/{{item}}", "cookies": {"colour": "{{colour}}"}}
MARKET: dict[str, Any] = {
    **SHOP,
    "metadata": {"name": "market"},
    "spec": {
        "feeders": [
            {"name": "users", "csv": {"text": "name,mail\nada,a@x\nbob,b c\ncat, c\ndan,\n"}},
            {"name": "n", "range": {"first": 1, "last": 9}, "use": "once", "per": "request"},
            {"name": "colour", "values": ["red", "green"], "use": "random"},
        ],
        "requests": [
            {"name": "login", **LOGIN, "thinkTime": {"min": "1s", "max": "2s"}},
            {"name": "create", **CREATE},
            {"name": "read", **READ},
            {"name": "front", "path": "/", "weight": 9},
        ],
        "sessions": [{"name": "shop", "weight": 2, "steps": ["login", "create", "read"]}],
        "checks": [
            {"name": "login", **LOGIN, "times": 1},
            {"name": "create", **CREATE, "times": 1, "expectHeaders": {"x": "{{users.name}}"}},
            {"name": "read", **READ, "expected": {"id": "{{item}}", "name": "{{users.name}}"}},
            {"name": "front", "path": "/"},
        ],
    },
}


CACHED: dict[str, Any] = {
    **SHOP,
    "metadata": {"name": "cached"},
    "spec": {
        "services": [
            {
                "name": "cache",
                "image": "registry.example/redis:8",
                "args": ["--requirepass", "$(SERVICE_CACHE_PASSWORD)"],
                "ports": [6379],
                "password": True,
                "threads": 1,
                "user": 999,
                "writable": ["/data", "/var/lib/redis"],
                "resources": {"cpu": "1", "memory": "256Mi"},
            },
            {
                "name": "mock",
                "image": "registry.example/mock:1",
                "env": [{"name": "CACHE", "value": "$(SERVICE_CACHE_HOST)"}],
                "ports": [8080, 8081],
                "ready": {"path": "/healthz", "port": 8081},
                "reset": {"request": {"path": "/reset", "port": 8081, "body": "{{"}},
            },
            {
                "name": "store",
                "image": "registry.example/store:1",
                "ports": [3306],
                "reset": {"job": {"image": "registry.example/reset:1"}},
            },
            {"name": "fonts", "image": "registry.example/f:1", "ports": [80], "stateless": True},
        ],
        "requests": [{"name": "front", "path": "/"}],
        "checks": [{"name": "front", "path": "/"}],
    },
}


def changed(path: str, value: Any, base: dict[str, Any] = SHOP) -> dict[str, Any]:
    """Return a scenario with something else, or nothing, at a place of its spec."""
    document = copy.deepcopy(base)
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
    file.write_text(yaml.dump_all(documents, Dumper=yaml.CSafeDumper))
    code, out, err = laptime("validate", file)
    assert (code == 0) == (err == ""), (out, err)
    return out + err


@pytest.mark.parametrize(
    "document", [SHOP, MARKET, CACHED], ids=lambda one: one["metadata"]["name"]
)
def test_the_scenarios_that_the_others_are_made_from_are_valid(
    laptime: Laptime, tmp_path: Path, document: dict[str, Any]
) -> None:
    name = document["metadata"]["name"]
    assert said(laptime, tmp_path, document) == f"Scenario {name} is valid.\n"


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
        ("imagePullSecrets", [{"name": "a"}], "spec: unknown field imagePullSecrets"),
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
        # It would be verified in one spelling and measured in another.
        (f"{CHECK}.path", '/s?q={"a":1}', "'{\"a\":1}' cannot stand in a path as it is: write %7B"),
        (f"{REQUEST}.path", "/items/{id}?q=<a>", "requests.read.path: '<a>' cannot stand in a"),
        (f"{REQUEST}.path", "/items/{id}/50%off", "'%off' cannot stand in a path as it is"),
        (f"{REQUEST}.path", "/x/../items/{id}", "requests.read.path: some clients take the"),
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
        # A check for an error says nothing of right answers.
        (f"{REQUEST}.expectStatus", 206, "GET /items/{id} and expects status 206 (one 200"),
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
        (f"{CHECK}.jsonSchema", {"$ref": "#"}, "one.jsonSchema refers to itself without an end"),
        ("checks.2.jsonSchema", {"anyOf": [{"$ref": "#"}]}, "checks.again.jsonSchema refers to"),
        (
            f"{CHECK}.jsonSchema",
            {"$ref": "#/$defs/item"},
            "jsonSchema: there is no /$defs/item in it",
        ),
        (f"{CHECK}.jsonSchema", {"required": ["price"]}, "expected does not meet its own jsonSch"),
        (f"{CHECK}.expectedPart", {}, "write either expected (the whole answer) or expectedPart"),
        (f"{CHECK}.contentType", "application/json; charset=utf-8", "is no media type"),
        (f"{CHECK}.expectStatus", 204, "an answer with status 204 has no body"),
        (f"{CHECK}.times", 0, "spec.checks[0].times: 0 is less than the minimum of 1"),
        (f"{CHECK}.constant", True, "checks.one.constant: no request is this very one: write it"),
        (CHECK, {**UNSTEADY, "constant": True}, "that is constant is not different at times"),
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
        (f"{POSTGRES}.schema.0", {}, "write either sql (the statements themselves), configMap"),
        (f"{POSTGRES}.seed.0.configMap", {"name": "a", "key": "b"}, "write either sql"),
        (f"{POSTGRES}.seed.0", {**ROWS, "sql": "SELECT 1;"}, "exactly one of the three"),
        (f"{POSTGRES}.seed.0", {"image": "a/b:1"}, "seed[0].file: file is one of an image: write"),
        (f"{POSTGRES}.seed.0.file", "/data/rows.sql", "seed[0].file: file is one of an image"),
        (f"{POSTGRES}.schema.0", {**ROWS, "image": "A"}, "must be an image reference such as"),
        (f"{POSTGRES}.schema.0", {**ROWS, "file": "rows.sql"}, "must be the whole path of a file"),
        (f"{POSTGRES}.schema.0", {**ROWS, "file": "/a/../b"}, "must be the whole path of a file"),
        (f"{POSTGRES}.schema.0", {**ROWS, "file": "/" + "a" * 253}, "schema[0].file: "),
        (f"{POSTGRES}.reset.0", ROWS, "spec.data.postgres.reset[0]: unknown field file, image"),
        (f"{POSTGRES}.warm.0", ROWS, "spec.data.postgres.warm[0]: unknown field file, image"),
        (f"{POSTGRES}.reset.0", {}, "write either sql (the statements themselves) or configMap"),
        ("data.sqlite.schema.0", ROWS, "spec.data.sqlite.schema[0]: unknown field file, image"),
        (f"{POSTGRES}.seed.0.sql", "-- nothing", "data.postgres.seed[0] has no statement"),
        (f"{POSTGRES}.extensions.0", 'x"; DROP', "must be the name of an extension of Postgres"),
        (f"{POSTGRES}.extensions", ["a", "a"], "data.postgres.extensions: a is there twice"),
        (f"{POSTGRES}.reset.0.sql", f"SELECT '{'x' * 50_000}';", "the most is 40000"),
        # In JSON a letter of another script has six bytes, and a line feed two.
        (f"{POSTGRES}.reset.0.sql", f"SELECT '{'ж' * 6_700}';", "warm have 402"),
        (f"{POSTGRES}.warm.0.sql", "SELECT 1" + "\n" * 20_000 + ", 2;", "the most is 40000"),
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
        (POOLS, {"flsk": 1}, f"{IN_POOLS}: write names of presets: axum-bb8, axum-diesel, axum-"),
        (POOLS, {"flask": 0}, f"{IN_POOLS}.flask: 0 is less than the minimum of 1"),
        (POOLS, {"flask": 10_001}, f"{IN_POOLS}.flask: 10001 is greater than the maximum of 10000"),
        (POOLS, {"flask": "5"}, f"{IN_POOLS}.flask: '5' is not of type 'integer'"),
    ],
)
def test_a_wrong_scenario_is_refused_with_what_to_write(
    laptime: Laptime, tmp_path: Path, path: str, value: Any, expected: str
) -> None:
    text = said(laptime, tmp_path, changed(path, value))
    assert "Scenario shop would be refused.\n" in text
    assert expected in text


def test_which_field_of_a_scenario_was_probably_meant_is_said(
    laptime: Laptime, tmp_path: Path
) -> None:
    text = said(laptime, tmp_path, changed("requests.0.expectStaus", 201))
    expected = "spec.requests[0]: unknown field expectStaus: did you mean expectStatus?"
    assert f"Scenario shop would be refused.\n  {expected}\n" in text


USERS, LIST = "feeders.0", "feeders.2"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        # Feeders.
        (f"{USERS}.name", "1st", "spec.feeders[0].name: must be letters, digits, '_' and '-'"),
        (f"{USERS}.name", "id", "is what {id} stands for: choose another name, such as item"),
        (f"{LIST}.name", "users", "spec.feeders[2]: users is there twice"),
        (f"{USERS}.csv", GONE, "write exactly one of csv (a table), range (whole numbers) and"),
        (f"{USERS}.values", ["a"], "write exactly one of csv (a table), range (whole numbers) and"),
        (f"{USERS}.use", "twice", "spec.feeders[0].use: 'twice' is not one of cycle, once, random"),
        (f"{USERS}.per", "step", "spec.feeders[0].per: 'step' is not one of session, request"),
        ("feeders.1.range.last", 0, "spec.feeders[1].range.last: last must be at least first"),
        (f"{LIST}.values", [], "spec.feeders[2].values: [] should be non-empty"),
        (f"{LIST}.values", ["x" * 1000] * 90, "write long lists of values as csv"),
        (f"{USERS}.csv", {}, "write either text (the table itself) or configMap (where it is)"),
        (f"{USERS}.csv.text", "name\n", "feeders.users.csv: no row follows the names"),
        (f"{USERS}.csv.text", "name,mail\nx\n", "feeders.users.csv: line 2 has 1 cell, the first"),
        (f"{USERS}.csv.text", 'name,mail\na"b,x\n', "feeders.users.csv: line 2 is no CSV: write"),
        (f"{USERS}.csv.text", "name,name\na,b\n", "write different names of letters"),
        # Templates.
        ("requests.0.path", "/login{{", "requests.login.path: {{: no }} follows; for the text"),
        ("requests.0.path", "/login/{{ users.name }}", "of printable ASCII without spaces"),
        ("requests.0.path", "/{{users.name|hex}}", "'hex' is no encoding; write raw, url or json"),
        ("requests.0.path", "/{{users}}", "{{users}} is neither of a feeder nor captured before: "
         "there is {{users.name}}, {{users.mail}}, {{n}}, {{colour}}, {{item}}, {{token}}"),
        ("requests.0.path", "/{{users.phone}}", "{{users.phone}} is neither of a feeder nor"),
        ("requests.0.body", "{{1}}", "requests.login.body: {{1}}: write a name, such as {{token}}"),
        ("requests.3.path", "/{{users.mail|raw}}", "requests.front.path: feeder users, row 2: "
         "{{users.mail}}: character 2 (' ') cannot stand in a path, which takes no control"),
        ("requests.3.cookies", {"a": "{{users.mail}}"}, "requests.front.cookies.a: feeder users, "
         "row 2: {{users.mail}}: character 2 (' ') cannot stand in a cookie"),
        ("requests.3.headers", {"x": "{{users.mail}}"}, "requests.front.headers.x: feeder users, "
         "row 3: {{users.mail}}: with it the field begins or ends with a blank, which none may"),
        ("requests.3.headers", {"x": "Bearer {{users.mail}}"}, "requests.front.headers.x: feeder "
         "users, row 4: {{users.mail}}: with it the field begins or ends with a blank"),
        ("requests.3.headers", {"x": " a"}, "requests.front.headers.x: it begins or ends with a"),
        ("requests.3.headers", {"x": "{{users.name}} "}, "requests.front.headers.x: it begins or"),
        ("checks.1.headers", {"x": " {{token}}"}, "checks.create.headers.x: it begins or ends"),
        # Captures.
        ("requests.0.captures.0.name", "users", "requests.login.captures.users: a feeder has this"),
        ("requests.0.captures.0.name", "id", "is what {id} stands for"),
        ("requests.0.captures.0.json", "token", "must be a JSON pointer, such as /token"),
        ("requests.0.captures.0.header", "x", "write one of json, header and cookie, with or"),
        ("requests.0.captures.0", {"name": "token"}, "write one of json, header and cookie, with"),
        ("requests.1.captures.0.regex", "(?<=x)y", "spec.requests[1].captures[0].regex: must "
         "be a regular expression as RE2 has it"),
        ("requests.1.captures.0.regex", "[[:alpha:]]+", "create.captures.item.regex: "
         "'[[:alpha:]]+' is not known everywhere: write groups, classes such as [0-9a-f]"),
        ("requests.1.captures.0.regex", "(", "must be a regular expression as RE2 has it, such as"),
        ("requests.1.captures.0.regex", r"\pL", r"'\\pL' is not known everywhere: write groups"),
        ("requests.1.captures.0.header", "a b", "must be a name of letters, digits and '-'"),
        ("requests.0.headers.accept-encoding", "gzip", "requests.login.captures.token: the request "
         "asks for a compressed answer, and nobody looks into one under load: leave"),
        # Sessions.
        ("sessions.0.steps", [], "spec.sessions[0].steps: [] should be non-empty"),
        ("sessions.0.steps", ["logn"], "sessions.shop.steps: there is no request logn; there is "
         "login, create, read, front"),
        ("sessions.0.steps", ["create", "login", "read"], "sessions.shop.steps: create needs "
         "{{token}}, which no step before it captures: write login before it"),
        ("sessions.0.steps", ["login", "create"], "requests.read: it needs {{item}}, and is no "
         "step of a session: write a session such as {name: read-session, steps: [create, read]}"),
        ("sessions", [], "requests.create: it needs {{token}}, and is no step of a session"),
        ("sessions.0.name", "login", "sessions.login: a request has this name too"),
        ("sessions.0.weight", 0, "spec.sessions[0].weight: 0 is less than the minimum of 1"),
        ("requests.0.weight", 2, "requests.login.weight: it is a step of a session: write the"),
        ("requests.0.thinkTime.min", "3s", "spec.requests[0].thinkTime.min: min must be at most"),
        # Checks.
        ("checks.0.captures", [], "checks.create.headers.authorization: {{token}} is neither of a "
         "feeder nor captured before"),
        ("checks.1.expected", {"id": "{{item}}"}, "checks.create.expected: {{item}} is captured by "
         "this very check, when its answer is there: leave it out"),
        ("checks.2.expected.id", "{{itm}}", "checks.read.expected: {{itm}} is neither of a feeder"),
        ("checks.1.expectHeaders.x", "{{x}}", "checks.create.expectHeaders.x: {{x}} is neither"),
        ("checks.1.path", "/items", "requests.create: no check asks POST /items?n={{n}}"),
        ("checks.2.path", "/items/{{item}}/x", "no check asks GET /items/{{item}}, so nobody"),
        # What is read is a text of this scenario: no file, no other namespace, no variable.
        (f"{USERS}.csv", {"file": "/etc/passwd"}, "spec.feeders[0].csv: unknown field file"),
        (f"{USERS}.csv", {"configMap": {"name": "x", "key": "k", "namespace": "other"}},
         "csv.configMap: unknown field namespace"),
        (f"{USERS}.csv", {"configMap": {"name": "other/x", "key": "k"}}, "must be the name of a "
         "ConfigMap in the namespace of the scenario"),
        (f"{USERS}.csv", {"configMap": {"name": "x", "key": "../k"}}, "must be a key, such as"),
        (f"{USERS}.csv", {"secret": {"name": "x", "key": "k"}}, "csv: unknown field secret"),
        (f"{USERS}.name", "../../etc/passwd", "must be letters, digits, '_' and '-'"),
        (f"{USERS}.csv.text", 'name,mail\n"a\r\nEvil: 1",x\n', "checks.create.expectHeaders.x: "
         "{{users.name}}: character 2 ('\\n') cannot stand in a header field"),
        ("requests.3.headers", {"x": "{{env.DATABASE_PASSWORD}}"}, "{{env.DATABASE_PASSWORD}} is "
         "neither of a feeder nor captured before"),
        ("requests.3.headers", {"host": "{{users.name}}"}, "host is a field of the connection"),
    ],
)  # fmt: skip
def test_wrong_feeders_and_sessions_are_refused_with_what_to_write(
    laptime: Laptime, tmp_path: Path, path: str, value: Any, expected: str
) -> None:
    text = said(laptime, tmp_path, changed(path, value, MARKET))
    assert "Scenario market would be refused.\n" in text
    assert expected in text


CACHE, MOCK, STORE = "services.0", "services.1", "services.2"
MOCK_RESET = f"{MOCK}.reset.request"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        # Names and images.
        (f"{CACHE}.name", "Cache", "spec.services[0].name: must be lower-case letters, digits"),
        (f"{CACHE}.name", "c" * 17, "spec.services[0].name"),
        (f"{CACHE}.name", "mock", "spec.services[1]: mock is there twice"),
        (f"{CACHE}.image", "Redis", "must be an image reference such as registry.example/team"),
        (f"{CACHE}.image", GONE, "spec.services[0]: image is missing"),
        (f"{STORE}.reset.job.image", "a b", "must be an image reference such as registry.example"),
        # Ports.
        (f"{CACHE}.ports", [], "spec.services[0].ports: [] should be non-empty"),
        (f"{CACHE}.ports", [70000], "70000 is greater than the maximum of 65535"),
        (f"{MOCK}.ready.port", 9, "spec.services[1].ready: ready.port must be one of ports"),
        (f"{MOCK_RESET}.port", 9, "reset.request.port must be one of ports"),
        (f"{MOCK}.ready.path", "healthz", "must be a path that begins with /, such as /healthz"),
        # What its pod may be: nothing but what is said here, and never root.
        (f"{CACHE}.user", 0, "spec.services[0].user: 0 is less than the minimum of 1"),
        (f"{CACHE}.writable", ["data"], "must be a folder such as /data or /var/lib/mysql"),
        (f"{CACHE}.writable", ["/"], "must be a folder such as /data or /var/lib/mysql"),
        (f"{CACHE}.writable", ["/data/../etc"], "must be a folder such as /data"),
        (f"{CACHE}.writable", ["/tmp"], "/tmp can be written to anyway"),
        (f"{CACHE}.writable", ["/proc"], "must be none of /proc, /sys and /dev, which are the"),
        (f"{CACHE}.writable", ["/sys/fs"], "must be none of /proc, /sys and /dev, which are the"),
        (f"{CACHE}.hostNetwork", True, "spec.services[0]: unknown field hostNetwork"),
        (f"{CACHE}.volumes", [], "spec.services[0]: unknown field volumes"),
        (f"{CACHE}.securityContext", {}, "unknown field securityContext"),
        (f"{CACHE}.serviceAccountName", "admin", "unknown field serviceAccountName"),
        (f"{CACHE}.imagePullSecrets", [{"name": "a"}], "unknown field imagePullSecrets"),
        (f"{CACHE}.resources.memory", "256", "did you leave out the unit (Mi, Gi)?"),
        (f"{CACHE}.threads", 0, "spec.services[0].threads: 0 is less than the minimum of 1"),
        # What stands for services.
        (f"{CACHE}.args.1", "$(SERVICE_CACHE_USER)", "services.cache: '$(SERVICE_CACHE_USER)': "
         "there is no $(SERVICE_CACHE_USER): there is $(SERVICE_CACHE_HOST), $(SERVICE_CACHE_PORT)"
         ", $(SERVICE_CACHE_PASSWORD), $(SERVICE_MOCK_HOST)"),
        (f"{CACHE}.password", False, "service cache has no password: write password: true there"),
        (f"{MOCK}.env.0.value", "$(SERVICE_DB_HOST)", "services.mock.env.CACHE: there is no "
         "$(SERVICE_DB_HOST): there is"),
        (f"{MOCK}.env.0.name", "SERVICE_CACHE_HOST", "names that begin with SERVICE_ are Laptime"),
        (f"{MOCK}.env.0.name", "A-B", "must be a name of letters, digits and '_'"),
        (f"{STORE}.reset.job.args", ["$(SERVICE_MOCK_PASSWORD)"], "services.store.reset.job: "
         "'$(SERVICE_MOCK_PASSWORD)': service mock has no password: write password: true there"),
        # How they get back to their first state.
        (f"{MOCK}.reset", {}, "write either request or job; for a fresh pod before each trial"),
        (f"{MOCK}.reset.job", {"image": "a"}, "write either request or job; for a fresh pod"),
        (f"{MOCK}.stateless", True, "what is stateless has nothing to be reset"),
        (f"{MOCK_RESET}.path", "http://other.ns.svc/", "must be a path that begins with one /"),
        (f"{MOCK_RESET}.path", "//other/", "must be a path that begins with one /, such as /__a"),
        (f"{MOCK_RESET}.method", "HEAD", "'HEAD' is not one of GET, POST"),
        (f"{MOCK_RESET}.method", "GET", "services.mock.reset.request: a GET has no body: write"),
        (f"{MOCK_RESET}.headers", {"host": "other"}, "services.mock.reset.request.headers: host is "
         "a field of the connection"),
        (f"{MOCK_RESET}.headers", {"a": "b\r\nc: d"}, "values of header fields are printable"),
        (f"{MOCK_RESET}.headers", {"a": " b"}, "services.mock.reset.request.headers.a: it begins"),
        (f"{MOCK_RESET}.headers", {"a b": "c"}, "reset.request.headers: 'a b' is no name"),
        (f"{MOCK}.reset.exec", ["rm"], "spec.services[1].reset: unknown field exec"),
    ],
)  # fmt: skip
def test_wrong_services_are_refused_with_what_to_write(
    laptime: Laptime, tmp_path: Path, path: str, value: Any, expected: str
) -> None:
    text = said(laptime, tmp_path, changed(path, value, CACHED))
    assert "Scenario cached would be refused.\n" in text
    assert expected in text


def test_tables_that_do_not_fit_into_one_object_are_refused_with_what_to_write(
    laptime: Laptime, tmp_path: Path
) -> None:
    large = {"text": "name,mail\n" + "someone,someone@example.com\n" * 15_000}
    more = [{"name": f"more-{n}", "csv": large} for n in range(2)]
    document = changed("feeders", [*MARKET["spec"]["feeders"], *more], MARKET)
    text = said(laptime, tmp_path, document)
    assert "their tables have 840" in text
    assert "the most is 700000, since a ConfigMap holds 1 MiB: leave columns out" in text
    document["spec"]["feeders"].pop()
    sql = [{"sql": f"SELECT '{'x' * 330_000}';"}] * 2
    document["spec"]["data"] = {"postgres": {"schema": sql}}
    text = said(laptime, tmp_path, document)
    assert "with all its texts, the most is 1000000, since a run keeps it in a ConfigMap" in text


def test_a_table_of_a_config_map_is_checked_where_it_is_in_the_file(
    laptime: Laptime, tmp_path: Path
) -> None:
    table = {"configMap": {"name": "people", "key": "users.csv"}}
    document = changed("feeders.0.csv", table, MARKET)
    text = said(laptime, tmp_path, document)
    assert text == (
        "Scenario market is valid.\nNot checked: key users.csv of ConfigMap people: it is not in "
        "this file; --server reads it in the namespace of the run.\n"
    )
    rows = "".join(f"user{n},{f'u{n}@x':>50}\n" for n in range(10_000))
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "people"},
        "data": {"users.csv": f"name,mail\n{rows}"},
    }
    assert said(laptime, tmp_path, config_map, document) == "Scenario market is valid.\n"
    config_map["data"] = {"users.txt": f"name,mail\n{rows}"}
    text = said(laptime, tmp_path, config_map, document)
    assert "it takes key users.csv of ConfigMap people, which is not in this file" in text
    config_map |= {"data": {}, "binaryData": {"users.csv": "bmFtZQpab+sK"}}
    text = said(laptime, tmp_path, config_map, document)
    assert "key users.csv of ConfigMap people is no text in UTF-8: convert the file, such" in text
    del config_map["binaryData"]
    config_map["data"] = {"users.csv": f"name\n{rows}"}
    text = said(laptime, tmp_path, document, config_map)
    assert "feeders.users.csv: line 2 has 2 cells, the first line has 1" in text


def run_of(scenario: str) -> dict[str, Any]:
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "mine"},
        "spec": {
            "scenario": scenario,
            "servers": [{"name": "a", "image": "registry.example/shop:1"}],
            "topology": {},
            "loads": [{"name": "x", "closed": {"connections": 1, "duration": "5s"}}],
        },
    }


def in_cluster() -> dict[str, Any]:
    """Return a scenario whose table is in a ConfigMap."""
    table = {"configMap": {"name": "people", "key": "users.csv"}}
    return changed("feeders.0.csv", table, changed("feeders.1.use", "cycle", MARKET))


PEOPLE = "/api/v1/namespaces/team/configmaps/people"


def test_all_else_is_checked_where_a_config_map_is_not_in_the_file(
    laptime: Laptime, tmp_path: Path
) -> None:
    document = in_cluster()
    # How often its rows are used is nothing that can be said against it.
    document["spec"]["feeders"][0]["use"] = "once"
    run = run_of("market")
    text = said(laptime, tmp_path, document, run)
    assert "mine is valid" in text
    assert "Not checked: key users.csv" in text
    document["spec"]["requests"][3]["path"] = "/{{user.name}}"
    text = said(laptime, tmp_path, document, run)
    assert "requests.front.path: {{user.name}} is neither of a feeder nor captured" in text
    assert "Scenario market would be refused." in text


@pytest.mark.parametrize(
    ("data", "code", "expected"),
    [
        ({"users.csv": "name,mail\nada,a@x\n"}, 0, "Scenario market is valid.\nmine is valid, and"),
        ({"users.csv": "name\nada,a@x\n"}, 1, "feeders.users.csv: line 2 has 2 cells, the first"),
        (
            {"a.csv": "x"},
            0,
            "Not checked: key users.csv of ConfigMap people: ConfigMap people has a",
        ),
        (
            None,
            0,
            "ConfigMap people: there is no ConfigMap people in namespace team.\nmine is valid",
        ),
    ],
)
def test_a_config_map_that_is_not_in_the_file_is_read_from_the_server(
    laptime: Laptime,
    tmp_path: Path,
    fake: Any,
    kubeconfig: Path,
    data: dict[str, str] | None,
    code: int,
    expected: str,
) -> None:
    if data is not None:
        fake.put(PEOPLE, {"data": data})
    file = tmp_path / "market.yaml"
    file.write_text(yaml.safe_dump_all([in_cluster(), run_of("market")]))
    found, out, err = laptime("validate", file, "--server", "--kubeconfig", kubeconfig)
    assert found == code
    assert expected in out + err
    # Nothing is stored: the run is only judged.
    assert [
        path for method, path in fake.requests if method != "GET" and "dryRun" not in path
    ] == []


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
    assert "Scenario shop is valid.\nNot checked: key seed.sql of ConfigMap sql: it is not" in text
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sql"},
        "data": {"seed.sql": "INSERT INTO item VALUES (1, 'x');"},
    }
    assert said(laptime, tmp_path, config_map, document) == "Scenario shop is valid.\n"
    config_map["data"] = {"seed.sql": f"INSERT INTO item VALUES (1, '{'x' * 600_000}');"}
    assert said(laptime, tmp_path, config_map, document) == "Scenario shop is valid.\n"
    config_map["data"] = {"seed.sql": f"INSERT INTO item VALUES (1, '{'x' * 700_000}');"}
    assert "make rows by SQL, such as generate_series" in said(
        laptime, tmp_path, config_map, document
    )
    config_map["data"] = {"seed.sql": "-- later"}
    assert "data.postgres.seed[0] has no statement" in said(laptime, tmp_path, document, config_map)


@pytest.mark.parametrize("place", ["schema", "seed"])
def test_sql_in_an_image_is_taken_as_it_is(laptime: Laptime, tmp_path: Path, place: str) -> None:
    document = changed(f"data.postgres.{place}.0", ROWS)
    assert said(laptime, tmp_path, document) == "Scenario shop is valid.\n"


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
