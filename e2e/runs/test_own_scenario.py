"""A scenario that somebody writes, from resources only, with a server that is there already."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from .blog import BLOG, RUN, SEED, SERVER, changed, posts_of_a_namespace, run_of
from .harness import Cluster, condition, run_manifest

SECONDS_TO_SAY_SO = 30


@pytest.fixture(scope="module")
def cluster(kubectl: Any, reader: Any, operator: str) -> Iterator[Cluster]:
    with posts_of_a_namespace(kubectl, reader) as found:
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
