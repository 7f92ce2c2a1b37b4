"""A scenario that somebody writes, from resources only, with a server that is there already."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from .harness import Cluster, condition, namespace_for_runs, run_manifest

SECONDS_TO_SAY_SO = 30
SERVER = {"name": "go", "image": "docker.io/laptime/server-go-nethttp:0.1.0"}
SEED = """\
INSERT INTO posts
SELECT n, 'post ' || n, repeat('x', 10) FROM generate_series(1, 30) AS n;
"""
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "blog-sql"},
    "data": {"seed.sql": SEED},
}
BLOG: dict[str, Any] = {
    "apiVersion": "laptime.dev/v1alpha1",
    "kind": "BenchmarkScenario",
    "metadata": {"name": "blog"},
    "spec": {
        "title": "A blog of thirty posts",
        "data": {
            "postgres": {
                "extensions": ["pg_trgm"],
                "schema": [
                    {
                        "sql": "CREATE TABLE posts (id integer PRIMARY KEY, title text NOT NULL, "
                        "body text NOT NULL); CREATE INDEX ON posts USING gin (title gin_trgm_ops);"
                    }
                ],
                "seed": [{"configMap": {"name": "blog-sql", "key": "seed.sql"}}],
                "reset": [{"sql": "DELETE FROM posts WHERE id > 30;"}],
                "warm": [{"sql": "SELECT count(*) FROM posts;"}],
            }
        },
        "requests": [{"name": "latest", "path": "/posts", "statements": 1}],
        "checks": [
            {
                "name": "latest",
                "path": "/posts",
                "contentType": "application/json",
                "expected": [
                    {"id": n, "title": f"post {n}", "body": "x" * 10} for n in range(30, 20, -1)
                ],
                "afterwards": [
                    {"query": "SELECT count(*), max(id) FROM posts", "rows": [[30, 30]]}
                ],
            },
            {"name": "nothing", "path": "/nothing", "expectStatus": 404},
        ],
    },
}
RUN = run_manifest(
    "own",
    [SERVER],
    scenario="blog",
    topology={"postgres": {}},
    loads=[{"name": "few", "closed": {"connections": 2, "requests": 200}, "warmup": "0s"}],
    repetitions=1,
)


def changed(name: str, **places: Any) -> dict[str, Any]:
    """Return the blog under another name with something else at places of its spec."""
    document = copy.deepcopy(BLOG)
    document["metadata"]["name"] = name
    for place, value in places.items():
        node: Any = document["spec"]
        *parents, last = place.split("__")
        for part in parents:
            node = node[int(part)] if part.isdigit() else node[part]
        node[last] = value
    return document


def run_of(scenario: str, **spec: Any) -> dict[str, Any]:
    """Return the run on another scenario, named like it."""
    return {
        **RUN,
        "metadata": {"name": scenario},
        "spec": {**RUN["spec"], "scenario": scenario, **spec},
    }


@pytest.fixture(scope="module")
def cluster(kubectl: Any, reader: Any, operator: str) -> Iterator[Cluster]:
    with namespace_for_runs(reader) as name:
        found = Cluster(kubectl, reader, name)
        found.apply(CONFIG_MAP)
        yield found


def test_an_own_scenario_is_measured_and_kept_by_its_run(cluster: Cluster) -> None:
    cluster.apply(BLOG)
    cluster.apply(RUN)
    cluster.wait("own", "its check", lambda status: status.get("state") == "Running", 120)
    # Somebody changes it in the middle.
    cluster.apply(changed("blog", checks__1__expectStatus=500))
    status = cluster.wait_end("own", 120)
    assert status["state"] == "Succeeded", status
    assert status["results"][0]["trials"] == 1
    cluster.wait_folded("own")
    stored = cluster.stored("own")
    results = json.loads(stored.files["results.json"])
    assert results["scenario"]["hash"] == status["scenarioHash"]
    kept = results["scenario"]["document"]
    assert kept["checks"][1]["expectStatus"] == 404
    assert kept["data"]["postgres"]["seed"] == [{"sql": SEED}]


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
WORDED = {
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


LARGE = {"image": "docker.io/laptime/load-script:0.1.0", "file": "/data/rows.sql"}
POSTS = 60_000
LAST = {"sql": "INSERT INTO posts SELECT max(id) + 1, 'the last post', 'y' FROM posts;"}


def large(name: str, **rows: str) -> dict[str, Any]:
    """Return the blog with the rows of an image, and one more that is counted from them."""
    document = changed(
        name, data__postgres__seed=[{**LARGE, **rows}, LAST], data__postgres__reset=[]
    )
    latest, _ = document["spec"]["checks"]
    posts = [{"id": n, "title": f"post {n}", "body": "x" * 10} for n in range(POSTS, POSTS - 9, -1)]
    latest["expected"] = [{"id": POSTS + 1, "title": "the last post", "body": "y"}, *posts]
    latest["afterwards"][0]["rows"] = [[POSTS + 1, POSTS + 1]]
    return document


def test_rows_that_are_more_than_a_config_map_holds_come_from_an_image(cluster: Cluster) -> None:
    """The image has nothing in it that could be started, and its part is the second of three."""
    cluster.apply(large("large"))
    cluster.apply(run_of("large"))
    status = cluster.wait_end("large", 180)
    # Its answers were right: all rows were there, and the last one was made of them.
    assert status["state"] == "Succeeded", status
    assert status["results"][0]["trials"] == 1
    cluster.wait_folded("large")
    results = json.loads(cluster.stored("large").files["results.json"])
    kept = results["scenario"]["document"]["data"]["postgres"]
    assert kept["seed"] == [LARGE, LAST]
    assert kept["schema"] == BLOG["spec"]["data"]["postgres"]["schema"]
    assert results["scenario"]["hash"] == status["scenarioHash"]
    (trial,) = results["trials"]
    assert "sha256:" in trial["images"]["data.postgres.seed[0]"], trial["images"]


# What of an image cannot be had: how it is written, the reason, and its words.
NOT_THERE = {
    "no-file": (
        {"file": "/data/nothing.sql"},
        "SqlMissing",
        "the image has no file /data/nothing.sql: there is folder /data, which has rows.sql",
    ),
    "a-folder": (
        {"file": "/data"},
        "SqlMissing",
        "/data of the image is a folder, which has rows.sql: name a file",
    ),
    "no-image": (
        {"image": "docker.io/laptime/nothing:0.1.0"},
        "ImagePullFailed",
        "the image of data.postgres.seed[0] (docker.io/laptime/nothing:0.1.0) cannot be pulled",
    ),
}


@pytest.mark.parametrize("what", NOT_THERE)
def test_rows_that_an_image_has_not_end_the_run_with_what_it_has(
    cluster: Cluster, what: str
) -> None:
    rows, reason, words = NOT_THERE[what]
    cluster.apply(large(what, **rows))
    cluster.apply(run_of(what, startupTimeout="15s"))
    status = cluster.wait_end(what, 120)
    said = condition(status, "Succeeded")
    assert (status["state"], said["reason"]) == ("Failed", reason), said
    assert "data.postgres.seed[0]" in said["message"]
    assert words in said["message"]


# As pg_dump writes it since August 2025. Asking for the posts adds one that there may be once.
VISITS = """\
--
-- PostgreSQL database dump
--

\\restrict vTRkNSY0bwQ2zzBTAvx0R5kq

-- Dumped from database version 17.6

SELECT pg_catalog.set_config('search_path', '', false);

CREATE TABLE public.visit (
    id integer NOT NULL,
    title text NOT NULL
);

CREATE FUNCTION public.visited() RETURNS SETOF public.visit
    LANGUAGE sql
    AS $$ INSERT INTO public.visit VALUES (2, 'once') RETURNING id, title $$;

CREATE VIEW public.posts AS
 SELECT id, title, 'x'::text AS body FROM public.visited();

COPY public.visit (id, title) FROM stdin;
1\tthe first
\\.

ALTER TABLE ONLY public.visit
    ADD CONSTRAINT visit_pkey PRIMARY KEY (id);

\\unrestrict vTRkNSY0bwQ2zzBTAvx0R5kq

"""


def test_what_the_check_of_a_server_has_made_is_in_no_ones_way_in_a_schema_out_of_pg_dump(
    cluster: Cluster,
) -> None:
    latest = {
        "name": "latest",
        "path": "/posts",
        "times": 1,
        "expected": [{"id": 2, "title": "once", "body": "x"}],
        "afterwards": [{"query": "SELECT count(*) FROM visit", "rows": [[2]]}],
    }
    postgres = {
        "schema": [{"sql": VISITS}],
        "reset": [{"sql": "DELETE FROM visit WHERE id > 1;"}],
    }
    cluster.apply(changed("visits", data__postgres=postgres, checks=[latest]))
    cluster.apply(run_of("visits", servers=[SERVER, {**SERVER, "name": "next"}], verifyOnly=True))
    status = cluster.wait_end("visits", 120)
    assert status["state"] == "Succeeded", status
    assert {one["state"] for one in status["servers"]} == {"Verified"}


ROWS = 10_000
PEOPLE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "people"},
    "data": {"users.csv": "name\n" + "".join(f"user-{n}\n" for n in range(ROWS))},
}
LOGIN = {
    "name": "login",
    "method": "POST",
    "path": "/login",
    "headers": {"content-type": "application/json"},
    "body": '{"name": "{{users.name}}", "password": "secret of {{users.name}}"}',
    "captures": [{"name": "token", "json": "/token"}],
}
BEARER = {"headers": {"authorization": "Bearer {{token}}"}}
CREATE = {
    **BEARER,
    "name": "create",
    "method": "POST",
    "path": "/items",
    "expectStatus": 201,
    "captures": [{"name": "item", "json": "/id"}],
}
READ = {**BEARER, "name": "read", "path": "/items/{{item}}"}
MARKET: dict[str, Any] = {
    "apiVersion": "laptime.dev/v1alpha1",
    "kind": "BenchmarkScenario",
    "metadata": {"name": "market"},
    "spec": {
        "title": "Each user logs in, creates an item and reads it back",
        "feeders": [
            {
                "name": "users",
                "csv": {"configMap": {"name": "people", "key": "users.csv"}},
                "use": "once",
            }
        ],
        "requests": [LOGIN, CREATE, READ],
        "sessions": [{"name": "visit", "steps": ["login", "create", "read"]}],
        "checks": [
            {**LOGIN, "expectedPart": {}},
            {**CREATE, "times": 1, "expectedPart": {"owner": "{{users.name}}"}},
            {**READ, "expected": {"id": "{{item}}", "owner": "{{users.name}}"}},
            {
                "name": "not-his",
                "path": "/items/{{item}}",
                "headers": {"authorization": "Bearer of somebody else"},
                "expectStatus": 401,
            },
        ],
    },
}


def test_users_log_in_create_and_read_back_what_is_theirs(cluster: Cluster) -> None:
    cluster.apply(PEOPLE)
    cluster.apply(MARKET)
    visits = 40
    cluster.apply(
        run_manifest(
            "market",
            # It refuses whoever comes with the token or the item of somebody else.
            [{"name": "shop", "image": "docker.io/laptime/faulty:0.1.0"}],
            scenario="market",
            topology={},
            loads=[
                {"name": "visits", "open": {"rate": 60, "duration": "2s"}, "warmup": "0s"},
                {"name": "logins", "closed": {"connections": 2, "requests": 20}, "warmup": "0s",
                 "endpoints": ["login"]},
            ],
            repetitions=1,
        )
    )  # fmt: skip
    status = cluster.wait_end("market", 120)
    assert status["state"] == "Succeeded", status
    cluster.wait_folded("market")
    results = json.loads(cluster.stored("market").files["results.json"])
    sent = {
        trial["load"]: {
            name: (one["requests"], one["errors"]) for name, one in trial["endpoints"].items()
        }
        for trial in results["trials"]
    }
    assert sent == {
        "visits": dict.fromkeys(("login", "create", "read"), (visits, 0)),
        "logins": {"login": (20, 0)},
    }
    # What the table holds stays in the namespace: its rows may be secret.
    table = PEOPLE["data"]["users.csv"]
    kept = results["scenario"]["feeders"][0]
    assert kept["sha256"] == hashlib.sha256(table.encode()).hexdigest()
    assert "csv" in results["scenario"]["document"]["feeders"][0]
    assert table.splitlines()[-1] not in json.dumps(results["scenario"])


# What only the operator can see: a scenario, the reason, and words that say what to write.
WRONG = {
    "missing": (None, "ScenarioMissing", "apply it, or write apibench"),
    "no-map": (
        changed("no-map", data__postgres__seed=[{"configMap": {"name": "none", "key": "a.sql"}}]),
        "ScenarioTextMissing",
        "kubectl create configmap none --from-file=a.sql",
    ),
    "no-check": (
        changed("no-check", requests__0__path="/other"),
        "ScenarioWrong",
        "add a check with method GET and path /other",
    ),
    "leads-out": (
        changed("leads-out", checks__1__jsonSchema={"$ref": "http://metadata.internal/"}),
        "ScenarioWrong",
        "leads out of the schema",
    ),
    "no-rows": (
        changed(
            "no-rows", feeders=[{"name": "u", "csv": {"configMap": {"name": "none", "key": "u"}}}]
        ),
        "ScenarioTextMissing",
        "kubectl create configmap none --from-file=u",
    ),
    "not-captured": (
        changed("not-captured", requests__0__headers={"x": "{{token}}"}),
        "ScenarioWrong",
        "{{token}} is neither of a feeder nor captured before",
    ),
    "dblink": (
        changed("dblink", data__postgres__extensions=["dblink"]),
        "ExtensionNotAllowed",
        "does not allow dblink",
    ),
}


def test_what_is_wrong_with_a_scenario_is_said_with_what_to_write(cluster: Cluster) -> None:
    for name, (document, _, _) in WRONG.items():
        if document is not None:
            cluster.apply(document)
        cluster.apply(run_of(name, startupTimeout="2s"))
    for name, (_, reason, words) in WRONG.items():
        status = cluster.wait_end(name, SECONDS_TO_SAY_SO * len(WRONG))
        said = condition(status, "Succeeded")
        assert (status["state"], said["reason"]) == ("Failed", reason), said
        assert words in said["message"]
        assert not [one for one in cluster.left_of(name) if one.startswith("Deployment")]


# SQL that would be more than SQL, and what stops it.
ATTACKS = {
    "program": ("COPY (SELECT 1) TO PROGRAM 'id > /tmp/seen';", "external program"),
    "shell": ("SELECT 1;\n\\! id > /tmp/seen\n", "backslash commands are restricted"),
    "file": ("SELECT pg_read_file('/etc/laptime/postgresql.conf');", "permission denied"),
    "superuser": ("ALTER ROLE laptime SUPERUSER;", "permission denied to alter role"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_sql_of_a_scenario_is_sql_and_nothing_else(cluster: Cluster, attack: str) -> None:
    sql, stopped = ATTACKS[attack]
    name = f"sql-{attack}"
    cluster.apply(changed(name, data__postgres__seed=[{"sql": sql}]))
    cluster.apply(run_of(name, startupTimeout="15s"))
    status = cluster.wait_end(name, 120)
    said = condition(status, "Succeeded")
    assert status["state"] == "Failed"
    assert stopped in said["message"], said
