"""The run of a set-up, and which set-up an arm of its experiment is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cause.model import SetUp

REFERENCE = "reference"
PRESET = "go-nethttp"
IMAGES = (REFERENCE, f"server-{PRESET}", "upstream")
_DURATION = "3s"


def manifest(name: str, version: str, it: SetUp) -> dict[str, Any]:
    """Return the BenchmarkRun."""
    load: dict[str, Any] = {"closed": {"connections": it.users, "duration": _DURATION}}
    if it.rate is not None:
        load = {"open": {"rate": it.rate, "maxConnections": it.users, "duration": _DURATION}}
    spec: dict[str, Any] = {
        "scenario": "upstream" if it.upstream else "users",
        "servers": [_server(version, it)],
        "topology": _topology(it),
        "loads": [{"name": "load", "warmup": "1s", **load}],
        "repetitions": 2,
    }
    if it.generator_cpu is not None:
        resources = {"cpu": _cores(it.generator_cpu), "memory": "128Mi"}
        spec["generator"] = {"resources": resources}
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": spec,
    }


def with_more(it: SetUp, arms: Sequence[str]) -> dict[str, SetUp]:
    """Return the set-ups that the arms of an experiment are, by their names.

    Raises:
        KeyError: nobody knows what an arm has.
    """
    more = {arm: arm.rpartition("-")[2] for arm in arms}
    found, together = {}, it
    for arm, what in more.items():
        if what != "all":
            found[arm], together = _MORE[what](it), _MORE[what](together)
    return found | {arm: together for arm, what in more.items() if what == "all"}


_MORE: Mapping[str, Callable[[SetUp], SetUp]] = {
    "conns": lambda it: replace(it, connections=2 * it.connections),
    # An image is told of as many connections as before, and the threads of this one share them.
    "workers": lambda it: replace(it, threads=2 * it.threads),
    "cpu": lambda it: replace(it, server_cpu=2 * (it.server_cpu or 1)),
    "pgcpu": lambda it: replace(it, postgres_cpu=2 * (it.postgres_cpu or 1)),
    "poolcpu": lambda it: replace(it, pgbouncer_cpu=2 * (it.pgbouncer_cpu or 1)),
    "proxycpu": lambda it: replace(it, haproxy_cpu=2 * (it.haproxy_cpu or 1)),
    "pool": lambda it: replace(it, pool=2 * (it.pool or 1)),
    "cap": lambda it: replace(it, cap=2 * (it.cap or 1)),
    "upstream": lambda it: replace(it, upstream=it.upstream / 2),
}
"""By the end of the name of an arm: what it has more of."""


def _server(version: str, it: SetUp) -> dict[str, Any]:
    server: dict[str, Any] = {"name": "server", "workers": it.threads}
    if it.upstream:
        return {**server, "preset": PRESET}
    env = {
        "BURN": _time(it.burn),
        "HOLD": _time(it.hold),
        "PAUSE": _time(it.pause),
        "ROWS": str(it.rows),
        "SLOTS": str(it.slots or 0),
        "LOCK": "row" if it.lock else "",
        "PROCESSES": str(it.processes),
    }
    if it.processes > 1:
        server["workers"] = it.processes
    if it.server_cpu is not None:
        server["resources"] = {"cpu": _cores(it.server_cpu), "memory": "128Mi"}
    return {
        **server,
        "image": f"docker.io/laptime/{REFERENCE}:{version}",
        "databaseConnections": it.connections,
        "env": [{"name": key, "value": value} for key, value in env.items() if value],
    }


def _topology(it: SetUp) -> dict[str, Any]:
    if it.upstream:
        return {"upstream": {"latency": f"{it.upstream * 1000:g}ms"}}
    postgres: dict[str, Any] = {"maxConnections": 200}
    if it.postgres_cpu is not None:
        postgres["resources"] = {"cpu": _cores(it.postgres_cpu), "memory": "512Mi"}
    topology: dict[str, Any] = {"postgres": postgres}
    if it.pool is not None:
        topology["pgbouncer"] = {"poolSize": it.pool}
        if it.pgbouncer_cpu is not None:
            resources = {"cpu": _cores(it.pgbouncer_cpu), "memory": "64Mi"}
            topology["pgbouncer"]["resources"] = resources
    if it.cap is not None:
        topology["haproxy"] = {"maxConnections": it.cap}
        if it.haproxy_cpu is not None:
            resources = {"cpu": _cores(it.haproxy_cpu), "memory": "64Mi"}
            topology["haproxy"]["resources"] = resources
    return topology


def _cores(amount: float) -> str:
    return f"{round(1000 * amount)}m"


def _time(seconds: float) -> str:
    return f"{round(1e6 * seconds)}us" if seconds else ""
