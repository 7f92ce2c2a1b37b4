"""A run that stops when all orders are known: early where servers differ, late where not."""

from __future__ import annotations

import json
from typing import Any

from .harness import Cluster, run_manifest

LOADS = [{"name": "closed", "closed": {"connections": 4, "duration": "1s"}, "warmup": "500ms"}]
MOST = 6


def go(name: str, cpu: str = "200m") -> dict[str, Any]:
    return {"name": name, "preset": "go-nethttp", "resources": {"cpu": cpu}}


def ended(cluster: Cluster, name: str, servers: list[dict[str, Any]]) -> dict[str, Any]:
    stops = {"stopWhen": "decided", "repetitions": 3, "maxRepetitions": MOST}
    manifest = run_manifest(name, servers, scenario="hello", topology={}, loads=LOADS, **stops)
    return cluster.wait_end(cluster.apply(manifest), 300)


def trials(status: dict[str, Any]) -> set[int]:
    return {row["trials"] for row in status["results"]}


def test_unlike_servers_stop_early_and_like_ones_go_on(cluster: Cluster) -> None:
    unlike = ended(cluster, "unlike", [go("wide", "500m"), go("tight", "50m")])
    assert unlike["state"] == "Succeeded", json.dumps(unlike, indent=1)
    assert max(trials(unlike)) < MOST, json.dumps(unlike, indent=1)
    made = min(trials(unlike))
    assert f"all orders under closed are known after {made} repetitions" in unlike["verdict"]
    ranks = {row["server"]: row["rank"] for row in unlike["results"]}
    assert ranks == {"wide": 1, "tight": 2}
    # Three, not two: of two like ones chance tells some apart in one run of 25, but hardly ever all
    # three pairs of these.
    like = ended(cluster, "like", [go("one"), go("other"), go("third")])
    assert like["state"] == "Succeeded", json.dumps(like, indent=1)
    assert trials(like) == {MOST}, json.dumps(like, indent=1)
    assert "are known" not in like["verdict"]
    assert f"not known after {MOST} repetitions" in like["verdict"]
