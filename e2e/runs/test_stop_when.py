"""A run that stops when all orders are known: early where servers differ, late where not."""

from __future__ import annotations

import json
from typing import Any

from .harness import POSTGRES_ALONE, Cluster, run_manifest

MOST = 5
IMAGE = "docker.io/laptime/reference:0.1.0"


def holding(name: str, milliseconds: int) -> dict[str, Any]:
    """Return a server that holds each request for so long, and needs next to no CPU for it.

    Two servers with unlike CPU limits are not unlike on a node that others fill.
    """
    return {"name": name, "image": IMAGE, "env": [{"name": "HOLD", "value": f"{milliseconds}ms"}]}


def ended(
    cluster: Cluster, name: str, servers: list[dict[str, Any]], duration: str = "1s"
) -> dict[str, Any]:
    stops = {"stopWhen": "decided", "repetitions": 3, "maxRepetitions": MOST}
    loads = [
        {"name": "closed", "closed": {"connections": 4, "duration": duration}, "warmup": "500ms"}
    ]
    manifest = run_manifest(name, servers, topology=POSTGRES_ALONE, loads=loads, **stops)
    return cluster.wait_end(cluster.apply(manifest), 300)


def trials(status: dict[str, Any]) -> set[int]:
    return {row["trials"] for row in status["results"]}


def test_unlike_servers_stop_early_and_like_ones_go_on(cluster: Cluster) -> None:
    # Of one second it would be a large part that the machine stands still for.
    unlike = ended(cluster, "unlike", [holding("wide", 20), holding("tight", 100)], "3s")
    assert unlike["state"] == "Succeeded", json.dumps(unlike, indent=1)
    assert max(trials(unlike)) < MOST, json.dumps(unlike, indent=1)
    made = min(trials(unlike))
    assert f"all orders under closed are known after {made} repetitions" in unlike["verdict"]
    ranks = {row["server"]: row["rank"] for row in unlike["results"]}
    assert ranks == {"wide": 1, "tight": 2}
    # Three, not two: of two like ones chance tells some apart in one run of 25, but hardly ever all
    # three pairs of these.
    like = ended(cluster, "like", [holding(one, 50) for one in ("one", "other", "third")])
    assert like["state"] == "Succeeded", json.dumps(like, indent=1)
    assert trials(like) == {MOST}, json.dumps(like, indent=1)
    assert "are known" not in like["verdict"]
    assert f"not known after {MOST} repetitions" in like["verdict"]
