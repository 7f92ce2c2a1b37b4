"""`profile: true` leaves a flame graph of a server, made after its trials and in none of them."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from .harness import AXUM, SYNC, Cluster, condition, run_manifest

FUNCTIONS = {"sync": "list_users", "axum": "axum_sqlx::"}
"""What each server's own code is called in its stacks."""


def test_profiles_name_the_functions_of_the_servers(cluster: Cluster) -> None:
    servers = [{**SYNC, "profile": True}, {**AXUM, "profile": True}]
    run = cluster.apply(run_manifest("profiled", servers, repetitions=1))
    status = cluster.wait_end(run, 240)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert condition(status, "Profiled")["status"] == "True", condition(status, "Profiled")
    # The load of a profile is counted nowhere.
    assert {row["server"]: row["trials"] for row in status["results"]} == {"sync": 1, "axum": 1}
    cluster.wait_folded(run)
    profiles = {one["metadata"]["name"]: one["data"] for one in cluster.stored(run).objects}
    for server, function in FUNCTIONS.items():
        data = profiles[f"{run}-flame-{server}"]
        assert function in data["stacks.folded"], data["stacks.folded"][:2000]
        picture = ElementTree.fromstring(data["flamegraph.svg"])
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
