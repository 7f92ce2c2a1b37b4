"""A trial's figures count for nothing when its server runs other statements than the work needs."""

from __future__ import annotations

import json
from typing import Any

from .harness import Cluster, run_manifest

# Each tells Postgres its time zone in its own way, and resets its connections or does not.
SERVERS: list[dict[str, Any]] = [
    {"name": "django", "preset": "django-psycopg"},
    {"name": "starlette", "preset": "starlette-asyncpg", "workers": 2, "databaseConnections": 5},
    {"name": "axum", "preset": "axum-bb8"},
    # As published: a connection for each request, statements prepared for each request.
    {
        "name": "django-anew",
        "preset": "django-psycopg",
        "env": [{"name": "KEEP_CONNECTIONS", "value": "false"}],
    },
    {
        "name": "axum-anew",
        "preset": "axum-bb8",
        "env": [{"name": "STATEMENT_CACHE", "value": "false"}],
    },
]


def test_the_servers_of_recipes_run_its_statements_and_no_more(cluster: Cluster) -> None:
    run = cluster.apply(
        run_manifest(
            "recipes",
            SERVERS,
            scenario="recipes",
            topology={"postgres": {}, "pgbouncer": {"poolSize": 8}},
            loads=[
                {"name": "closed", "closed": {"connections": 8, "duration": "3s"}, "warmup": "1s"}
            ],
            repetitions=1,
        )
    )
    status = cluster.wait_end(run, 180)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    results = cluster.documents(run)
    assert len(results) == len(SERVERS)
    for result in results.values():
        assert result["statements"] > 0
        assert result["validity"] != "invalid", result["validityReasons"]
        # The rule knows that requests at both ends of the phase count on one side only.
        assert "statements" not in "".join(result["validityReasons"]), result["validityReasons"]
