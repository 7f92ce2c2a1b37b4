"""`laptime explain`: a cause is tried on a real server, and confirmed."""

from __future__ import annotations

import json

import pytest

from laptime.cli.main import run_command

from .harness import AXUM, Cluster, run_manifest


def test_more_of_what_limits_a_server_is_measured_beside_it(
    cluster: Cluster, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Four requests at once for one connection, which is 10 ms away from Postgres: two of them
    # serve twice as many, however busy the machine is.
    manifest = run_manifest(
        "shop",
        [{**AXUM, "databaseConnections": 1}],
        topology={"postgres": {}, "delay": {"database": "10ms"}},
        repetitions=1,
    )
    cluster.apply(manifest)
    assert cluster.wait_end("shop", 90)["state"] == "Succeeded"
    asked = ("explain", "shop", "-n", cluster.namespace, "--kubeconfig", kubeconfig)
    tried = (*asked, "--more", "databaseConnections", "--repetitions", "4")

    assert run_command([*tried, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "shop-axum-explain"
    assert (found["sameRun"], found["sameWork"]) == (True, True)
    (one,) = found["explained"]
    assert one["change"] == "2 database connections instead of 1"
    assert one["finding"] == "confirmed", one
    # Other tests load the machine meanwhile: where the interval ends is theirs to say.
    assert 1.5 < one["gain"]["value"] < 2.5
    assert one["gain"]["low"] > 1
    rows = {row["server"]: row for row in cluster.status("shop-axum-explain")["results"]}
    assert rows[one["server"]]["factor"] == one["gain"]
    assert rows["axum"]["trials"] == rows[one["server"]]["trials"] == 4

    # It stays, and is shown again without being measured anew.
    uid = cluster.get("benchmarkrun", "shop-axum-explain")["metadata"]["uid"]
    assert run_command([*asked]) == 0
    assert "confirmed" in capsys.readouterr().out
    assert cluster.get("benchmarkrun", "shop-axum-explain")["metadata"]["uid"] == uid
