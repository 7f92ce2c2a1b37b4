"""What is wrong with a scenario and only shows at run time ends the run soon, in words of use.

More of it, which other tests have a cluster for anyway: missing texts, rules and attacks by SQL in
test_own_scenario.py, services in test_side_services.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from .blog import CONFIG_MAP, changed, run_of
from .harness import Cluster, condition, namespace_for_runs

LONGEST_SECONDS = 30.0
TABLE = "table"
FAULTY = "docker.io/laptime/faulty:0.1.0"
OPERATOR = "docker.io/laptime/operator:0.1.0"
GO = "docker.io/laptime/server-go-nethttp:0.1.0"
STORE = {"name": "store", "image": GO, "ports": [8080], "ready": {"path": "/healthz"}}
SQLITE = {
    "data": {
        "sqlite": {
            "schema": [{"sql": "CREATE TABEL posts (id integer);"}],
            "seed": [{"sql": "INSERT INTO posts VALUES (1);"}],
        }
    }
}


@dataclass(frozen=True)
class Wrong:
    """Something of the blog that is otherwise, and what is to be said of it."""

    reason: str
    said: str
    places: dict[str, Any]
    spec: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """The rows of a feeder, or a script, in a ConfigMap."""


def sql(text: str) -> list[dict[str, str]]:
    return [{"sql": text}]


def table(path: str = "/posts?u={{users.name}}", **feeder: Any) -> dict[str, Any]:
    csv = {"configMap": {"name": TABLE, "key": "users.csv"}}
    return {
        "feeders": [{"name": "users", "csv": csv, **feeder}],
        "requests__0__path": path,
        "checks__0__path": path,
    }


# By what the author did wrong: in his SQL, his tables, his checks, his services, his loads.
WRONG = {
    "schema-misspelt": Wrong(
        "",
        'syntax error at or near "TABEL"',
        {"data__postgres__schema": sql("CREATE TABEL posts (id integer);")},
    ),
    "seed-of-no-table": Wrong(
        "",
        'relation "nothing" does not exist',
        {"data__postgres__seed": sql("INSERT INTO nothing VALUES (1);")},
    ),
    "seed-twice": Wrong(
        "",
        "duplicate key value violates unique constraint",
        {"data__postgres__seed": sql("INSERT INTO posts VALUES (1, 'a', 'b'), (1, 'a', 'b');")},
    ),
    "seed-never-ends": Wrong(
        "NotReady",
        "Postgres was not ready after 10 s",
        {"data__postgres__seed": sql("SELECT pg_sleep(3600);")},
        {"startupTimeout": "10s"},
    ),
    "reset-fails": Wrong(
        "AllServersFailed",
        'relation "nothing" does not exist',
        {"data__postgres__reset": sql("DELETE FROM nothing;")},
    ),
    "reset-fails-before-a-script": Wrong(
        "AllServersFailed",
        'the database could not be reset: "DELETE FROM nothing',
        {"data__postgres__reset": sql("DELETE FROM nothing;")},
        {"loads": [{"name": "own", "script": {"configMap": TABLE}}]},
        files={"script.js": "export default function () {}\n"},
    ),
    "warm-fails": Wrong(
        "AllServersFailed",
        "division by zero",
        {"data__postgres__warm": sql("SELECT 1 / (count(*) - 30) FROM posts;")},
    ),
    "sqlite-misspelt": Wrong(
        "",
        'near "TABEL": syntax error',
        {**SQLITE, "checks__0__afterwards": []},
        {"topology": {"database": "sqlite"}},
    ),
    "table-is-empty": Wrong(
        "ScenarioWrong",
        "no row follows the names of the columns",
        table(),
        files={"users.csv": "name\n"},
    ),
    "table-is-ragged": Wrong(
        "ScenarioWrong",
        "line 3 has 1 cell",
        table(),
        files={"users.csv": "name,password\nada,1\nbob\n"},
    ),
    "table-lacks-a-column": Wrong(
        "ScenarioWrong",
        "users.email",
        table("/posts?u={{users.email}}"),
        files={"users.csv": "name\nada\n"},
    ),
    "value-ends-its-line": Wrong(
        "ScenarioWrong",
        "cannot stand in a header field",
        {**table(), "requests__0__headers": {"x-user": "{{users.name}}"}},
        files={"users.csv": 'name\n"ada\r\nx-admin: yes"\n'},
    ),
    "rows-used-up": Wrong(
        "LoadImpossible",
        "send at most 2",
        table(use="once", per="request"),
        files={"users.csv": "name\nada\nbob\n"},
    ),
    "status-is-another": Wrong(
        "WrongStatus",
        "404",
        {"checks__1__expectStatus": 410},
    ),
    "media-type-is-another": Wrong(
        "WrongContentType",
        "text/html",
        {"checks__0__contentType": "text/html"},
    ),
    "value-is-another": Wrong(
        "WrongAnswer",
        "$[0].title",
        {
            "checks__0__expected": [
                {"id": n, "title": f"Post {n}", "body": "x" * 10} for n in range(30, 20, -1)
            ]
        },
    ),
    "schema-is-another": Wrong(
        "WrongAnswer",
        "GET /posts",
        {
            "checks__1__path": "/posts",
            "checks__1__expectStatus": 200,
            "checks__1__jsonSchema": {"type": "array", "maxItems": 9},
        },
    ),
    "header-is-missing": Wrong(
        "WrongHeader",
        "x-cache",
        {"checks__0__expectHeaders": {"x-cache": "hit"}},
    ),
    "answer-never-changes": Wrong(
        "AnswerNeverChanges",
        "the same 5 times",
        {"checks__0__answers": "different", "checks__0__times": 5},
    ),
    "nothing-to-capture": Wrong(
        "CaptureMissing",
        "token",
        {"checks__0__captures": [{"name": "token", "json": "/token"}]},
    ),
    "query-is-wrong": Wrong(
        "QueryFailed",
        'relation "nothing" does not exist',
        {"checks__0__afterwards": [{"query": "SELECT * FROM nothing", "rows": [[1]]}]},
    ),
    "rows-are-others": Wrong(
        "WrongRows",
        "30",
        {"checks__0__afterwards": [{"query": "SELECT count(*) FROM posts", "rows": [[31]]}]},
    ),
    "statements-are-fewer": Wrong(
        "StatementMissing",
        "expected 7, the database saw 1",
        {"checks__0__statements": 7},
    ),
    "answers-too-soon": Wrong(
        "AnsweredTooSoon", "expected an answer after 2s", {"checks__0__minSeconds": 2}
    ),
    "service-ends": Wrong(
        "",
        "No such command",
        {"services": [{**STORE, "image": OPERATOR, "command": ["laptime"], "args": ["nonsense"]}]},
    ),
    "endpoint-is-not-there": Wrong(
        "LoadImpossible",
        "oldest",
        {},
        {
            "loads": [
                {
                    "name": "few",
                    "closed": {"connections": 2, "requests": 9},
                    "warmup": "0s",
                    "endpoints": ["oldest"],
                }
            ]
        },
    ),
    "server-has-no-http2": Wrong(
        "WrongProtocol",
        "HTTP/1.1",
        {},
        {
            "servers": [{"name": "old", "image": FAULTY}],
            "loads": [
                {
                    "name": "few",
                    "closed": {"connections": 2, "requests": 9},
                    "warmup": "0s",
                    "protocol": "http2",
                }
            ],
        },
    ),
}


@pytest.fixture(scope="module")
def cluster(kubectl: Any, reader: Any, operator: str) -> Iterator[Cluster]:
    with namespace_for_runs(reader) as name:
        found = Cluster(kubectl, reader, name)
        found.apply(CONFIG_MAP)
        yield found


@pytest.mark.parametrize("name", WRONG)
def test_what_only_shows_at_run_time_ends_the_run_in_words_of_use(
    cluster: Cluster, name: str
) -> None:
    wrong = WRONG[name]
    if wrong.files:
        cluster.apply({**CONFIG_MAP, "metadata": {"name": TABLE}, "data": wrong.files})
    cluster.apply(changed(name, **wrong.places))
    began = time.monotonic()
    cluster.apply(run_of(name, **wrong.spec))

    def words(status: dict[str, Any]) -> str:
        """All that is said of what has failed by now, with its reasons."""
        conditions = [one for one in status.get("conditions") or () if one.get("status") == "False"]
        parts = [*conditions, *(status.get("servers") or ())]
        return " ".join(f"{one.get('reason')}: {one.get('message')}" for one in parts)

    # What may mend itself, as the pull of an image, is said before it ends the run.
    status = cluster.wait(name, "what is wrong", lambda status: wrong.said in words(status), 180)
    took = time.monotonic() - began
    print(f"{name}: {took:.0f} s, {words(status)}")
    assert took <= LONGEST_SECONDS, f"{took:.0f} s"
    status = cluster.wait_end(name, 90)
    assert status["state"] == "Failed", status
    assert wrong.said in condition(status, "Succeeded")["message"]
    assert wrong.reason in words(status), words(status)
    assert not any("requestsPerSecond" in row for row in status.get("results") or ()), status
    if wrong.files:
        cluster.kubectl("delete", "configmap", TABLE, "-n", cluster.namespace)
