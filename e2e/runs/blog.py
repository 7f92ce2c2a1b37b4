"""A scenario of somebody's own: a blog with its posts, and runs of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .harness import Cluster, namespace_for_runs, run_manifest

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


@contextmanager
def posts_of_a_namespace(kubectl: Any, reader: Any) -> Iterator[Cluster]:
    """Yield a namespace of its own for runs, with the ConfigMap of the blog's schema in it."""
    with namespace_for_runs(reader) as name:
        found = Cluster(kubectl, reader, name)
        found.apply(CONFIG_MAP)
        yield found
