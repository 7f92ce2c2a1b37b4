"""Loads over HTTP/2: who speaks it is measured, who does not is told what to write."""

from __future__ import annotations

import json

from .harness import Cluster, condition, run_manifest

GO = {"name": "go", "preset": "go-nethttp"}
OLDER = {
    "name": "older",
    "image": "docker.io/laptime/faulty:0.1.0",
    "env": [{"name": "FAULT", "value": "none"}],
}
LOADS = [
    {
        "name": "streams",
        "protocol": "http2",
        "streams": 5,
        "closed": {"connections": 4, "requests": 4000},
        "warmup": "500ms",
    },
    {
        "name": "open",
        "protocol": "http2",
        "streams": 10,
        "open": {"rate": 200, "duration": "2s", "maxConnections": 4},
        "warmup": "500ms",
    },
]


def test_loads_over_http2(cluster: Cluster) -> None:
    run = cluster.apply(
        run_manifest(
            "http2",
            [GO, OLDER],
            scenario="hello",
            topology={},
            loads=LOADS,
            repetitions=1,
            generator={"parallelism": 2},
        )
    )
    status = cluster.wait_end(run, 180)
    out = {one["name"]: one.get("reason") for one in status["servers"]}
    assert out == {"go": None, "older": "WrongProtocol"}, json.dumps(status, indent=1)
    assert "write protocol: http1" in condition(status, "ServersVerified")["message"]
    results = {one["load"]: one for one in cluster.documents(run).values()}
    for load, requests in (("streams", 4000), ("open", 400)):
        assert results[load]["figures"]["requests"] == requests, load
        assert results[load]["figures"]["errors"] == 0, load
