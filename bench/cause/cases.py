"""Set-ups in which it is known what limits the server, each on purpose and by one thing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

REFERENCE = "docker.io/laptime/reference:{version}"


@dataclass(frozen=True)
class Case:
    """One cause, and a run that provokes it."""

    cause: str
    why: str
    env: dict[str, str] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    topology: dict[str, Any] = field(default_factory=dict)
    load: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)

    def manifest(self, name: str, version: str, repetitions: int) -> dict[str, Any]:
        """Return the BenchmarkRun."""
        reference = {
            "name": "server",
            "image": REFERENCE.format(version=version),
            "databaseConnections": 40,
            "env": [{"name": key, "value": value} for key, value in self.env.items()],
        }
        load = self.load or {"closed": {"connections": 16, "duration": "5s"}}
        return {
            "apiVersion": "laptime.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": name},
            "spec": {
                "scenario": "users",
                "servers": [{**reference, **self.server}],
                "topology": {"postgres": {"maxConnections": 100}, **self.topology},
                "loads": [{"name": "load", "warmup": "1s", **load}],
                "repetitions": repetitions,
                **self.spec,
            },
        }


CASES = (
    Case(
        "serverCpu",
        "each request takes 8 ms of CPU and there is one thread: 125 requests/s at most",
        env={"BURN": "8ms"},
    ),
    Case(
        "serverCpu",
        "the pod may use 0.3 CPUs",
        env={"BURN": "3ms"},
        server={"workers": 2, "resources": {"cpu": "300m", "memory": "128Mi"}},
    ),
    Case(
        "serverConcurrency",
        "4 requests at once, which wait 25 ms without any CPU",
        env={"SLOTS": "4", "HOLD": "25ms"},
    ),
    Case(
        "pgbouncerPool",
        "PgBouncer has 2 connections, and a statement takes 20 ms without any CPU",
        env={"PAUSE": "20ms"},
        topology={"pgbouncer": {"poolSize": 2}},
    ),
    Case(
        "databaseConnections",
        "the server has 3 connections, and a statement takes 20 ms without any CPU",
        env={"PAUSE": "20ms"},
        server={"databaseConnections": 3},
    ),
    Case(
        "postgresCpu",
        "Postgres may use 0.4 CPUs, and a statement makes 20,000 rows",
        env={"ROWS": "20000"},
        topology={
            "postgres": {
                "maxConnections": 100,
                "resources": {"cpu": "400m", "memory": "512Mi"},
            }
        },
    ),
    Case(
        "haproxyCap",
        "HAProxy lets 3 requests through at once, and each waits 25 ms without any CPU",
        env={"HOLD": "25ms"},
        topology={"haproxy": {"maxConnections": 3}},
    ),
    Case(
        "generator",
        "the generator may use 0.1 CPUs, and the server answers at once",
        spec={"generator": {"resources": {"cpu": "100m", "memory": "128Mi"}}},
    ),
    Case(
        "node",
        "each request takes 5 ms of CPU, on as many threads as there are connections",
        env={"BURN": "5ms"},
        server={"workers": 16},
    ),
    Case(
        "offeredLoad",
        "50 requests/s are sent, of thousands that were possible",
        load={"open": {"rate": 50, "duration": "5s"}},
    ),
)
