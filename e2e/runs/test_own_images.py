"""Images of somebody's own: how they are told what they need, and the database that they change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .blog import RUN, SERVER, changed, posts_of_a_namespace, run_of
from .harness import Cluster

# Answers as the scenario says, if it runs as the user and may write where the run says it.
POSTS_SERVER = """
import http.server, json, os, pathlib, sys
import psycopg
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path != "/posts":
            return self.answer(200 if self.path == "/healthz" else 404, {})
        pathlib.Path("/srv/cache/asked").write_text("yes")
        with psycopg.connect(os.environ["DSN"], autocommit=True) as connection:
            sql = "SELECT id, title, body FROM posts ORDER BY id DESC LIMIT 10"
            rows = connection.execute(sql).fetchall()
        posts = [dict(zip(("id", "title", "body"), row)) for row in rows]
        self.answer(200 if (os.getuid(), os.getgid()) == (1234, 1234) else 500, posts)
    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
"""
WORDED: dict[str, Any] = {
    "name": "worded",
    "image": "docker.io/laptime/operator:0.1.0",
    "command": ["python3", "-c"],
    "args": [POSTS_SERVER, "$(PORT)"],
    "env": [
        {
            "name": "DSN",
            "value": "host=$(DATABASE_HOST) port=$(DATABASE_PORT) dbname=$(DATABASE_NAME) "
            "user=$(DATABASE_USER) password=$(DATABASE_PASSWORD)",
        }
    ],
    "user": 1234,
    "writable": ["/srv/cache"],
}


@pytest.fixture(scope="module")
def cluster(kubectl: Any, reader: Any, operator: str) -> Iterator[Cluster]:
    with posts_of_a_namespace(kubectl, reader) as found:
        yield found


def test_an_image_is_told_its_words_its_user_and_its_database(cluster: Cluster) -> None:
    cluster.apply(changed("worded"))
    cluster.apply(run_of("worded", servers=[WORDED]))
    status = cluster.wait_end("worded", 120)
    assert status["state"] == "Succeeded", status
    (result,) = cluster.documents("worded").values()
    assert result["figures"]["errors"] == 0, result


def test_each_server_may_have_a_database_of_its_own(cluster: Cluster) -> None:
    """Each answer, what is asked after it and what brings the rows back say where they were."""
    own = "^laptime_(last_week|today)$"
    latest = {
        "name": "latest",
        "path": "/posts",
        "jsonSchema": {
            "type": "array",
            "minItems": 10,
            "items": {"required": ["title"], "properties": {"title": {"pattern": own}}},
        },
        "afterwards": [{"query": f"SELECT current_database() ~ '{own}'", "rows": [[True]]}],
    }
    cluster.apply(
        changed(
            "apart",
            data__postgres__schema=[
                {
                    "sql": "CREATE TABLE stored (id integer PRIMARY KEY); CREATE VIEW posts AS "
                    "SELECT id, current_database()::text AS title, 'x'::text AS body FROM stored;"
                }
            ],
            data__postgres__seed=[{"sql": "INSERT INTO stored SELECT generate_series(1, 30);"}],
            data__postgres__reset=[{"sql": f"SELECT 1 / (current_database() ~ '{own}')::integer;"}],
            checks=[latest],
        )
    )
    topology = {"postgres": {"databases": "perServer"}, "pgbouncer": {"poolSize": 2}}
    servers = [{**SERVER, "name": name} for name in ("last-week", "today")]
    cluster.apply(run_of("apart", servers=servers, topology=topology))
    status = cluster.wait_end("apart", 180)
    assert status["state"] == "Succeeded", status
    results = list(cluster.documents("apart").values())
    assert {one["server"] for one in results} == {"last-week", "today"}
    for one in results:
        # Where the server is, its statements are counted.
        assert one["statements"] >= 200, one
        assert one["validity"] != "invalid", one["validityReasons"]


MIGRATES = """
import os, psycopg
with psycopg.connect(os.environ["DSN"], autocommit=True) as connection:
    connection.execute(os.environ["AT_START"])
"""
ASKS_POSTS = """
import http from 'k6/http';
export const options = {vus: 1, iterations: 50};
export default () => http.get(`${__ENV.TARGET}/posts`);
"""


def migrating(name: str, sql: str) -> dict[str, Any]:
    """Return a server that runs a statement as it starts."""
    return {
        **WORDED,
        "name": name,
        "args": [MIGRATES + POSTS_SERVER, "$(PORT)"],
        "env": [*WORDED["env"], {"name": "AT_START", "value": sql}],
    }


@pytest.mark.parametrize("databases", ["shared", "perServer"])
def test_a_server_that_changes_the_schema_of_others_is_noticed(
    cluster: Cluster, databases: str
) -> None:
    """Both by a load of Laptime's and by a script, which has no database itself."""
    name = f"migrated-{databases.lower()}"
    cluster.apply(changed(name))
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "asks-posts"},
            "data": {"script.js": ASKS_POSTS},
        }
    )
    servers = [
        migrating("old", "SELECT 1"),
        migrating("new", "CREATE INDEX IF NOT EXISTS by_length ON posts (length(body))"),
    ]
    loads = [*RUN["spec"]["loads"], {"name": "own", "script": {"configMap": "asks-posts"}}]
    topology = {"postgres": {"databases": databases}}
    cluster.apply(run_of(name, servers=servers, loads=loads, topology=topology))
    status = cluster.wait_end(name, 240)
    assert status["state"] == "Succeeded", status
    old, new = (one["databaseSchema"] for one in status["servers"])
    assert old != new
    for one in cluster.documents(name).values():
        shared = databases == "shared" or one["server"] == "new"
        assert one["databaseSchema"] == (new if shared else old), one
    for row in status["results"]:
        says = any("another schema of the database" in why for why in row["validityReasons"])
        assert says is (databases == "shared" and row["server"] == "old"), row
        assert row["validity"] == "doubtful" or not says, row
    cluster.wait_folded(name)
    for trial in json.loads(cluster.stored(name).files["results.json"])["trials"]:
        says = any("on that of server new" in why for why in trial.get("validityReasons") or [])
        assert says is (databases == "shared" and trial["server"] == "old"), trial
