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
        # A machine that stands still for half a second is an eighth of it.
        loads=[{"name": "closed", "closed": {"connections": 4, "duration": "4s"}, "warmup": "1s"}],
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


def test_postgres_has_twice_the_cpu_for_one_arm_and_is_not_started_again(
    cluster: Cluster, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = run_manifest(
        "small",
        [{**AXUM, "databaseConnections": 8}],
        topology={"postgres": {"resources": {"cpu": "200m"}}},
        repetitions=1,
    )
    cluster.apply(manifest)
    assert cluster.wait_end("small", 120)["state"] == "Succeeded"
    asked = ("explain", "small", "-n", cluster.namespace, "--kubeconfig", kubeconfig)
    assert run_command([*asked, "--more", "postgres.cpu", "--repetitions", "4", "-o", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["explained"]
    assert one["change"] == "400m CPU of Postgres instead of 200m"
    # How wide the interval is in four repetitions is the machine's to say, and how much it gives:
    # the node may be full with one and not with the other.
    assert one["finding"] in ("confirmed", "undecided"), one
    assert 1.3 < one["gain"]["value"] < 3, one
    # A Postgres that was started again, or another one, would have cost an attempt.
    trials = cluster.documents("small-axum-explain").values()
    assert [trial.get("lostAttempts") or [] for trial in trials] == [[]] * 8
    assert {trial["attempt"] for trial in trials} == {1}
    # What the run has changed itself is no doubt about its figures.
    assert not [
        why
        for trial in trials
        for why in (trial.get("validityReasons") or [])
        if "asked for" in why
    ]


def test_more_cpu_than_the_node_has_is_said_in_the_kubelets_words(cluster: Cluster) -> None:
    # Postgres gets what it asks for, PgBouncer does not.
    own = {"postgres": {"cpu": "600m"}, "pgbouncer": {"cpu": "900"}}
    greedy = {**AXUM, "name": "greedy", "topology": own}
    manifest = run_manifest(
        "greedy",
        [AXUM, greedy],
        topology={one: {"resources": {"cpu": "500m"}} for one in own},
        repetitions=1,
    )
    cluster.apply(manifest)
    status = cluster.wait_end("greedy", 150)
    states = {one["name"]: one for one in status["servers"]}
    assert states["axum"]["state"] == "Verified"
    assert states["greedy"]["reason"] == "TierNotResized", states
    said = "PgBouncer has not got the 900 CPU that it has for server greedy: Infeasible"
    assert said in states["greedy"]["message"], states
    (row,) = [one for one in status["results"] if one["server"] == "axum"]
    assert row["trials"] == 1
