"""Set-ups in which it is known what limits the server, each on purpose and by one thing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

REFERENCE = "reference"


@dataclass(frozen=True)
class Case:
    """One cause, and a run that provokes it: of the reference server, or of a preset."""

    cause: str
    why: str
    preset: str | None = None
    scenario: str = "users"
    env: dict[str, str] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    topology: dict[str, Any] = field(default_factory=dict)
    load: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def images(self) -> list[str]:
        """The images that it needs beside those of the chart, by their short names."""
        server = REFERENCE if self.preset is None else f"server-{self.preset}"
        return [server, *(tier for tier in ("upstream", "delay") if tier in self.topology)]

    def manifest(self, name: str, version: str, repetitions: int) -> dict[str, Any]:
        """Return the BenchmarkRun."""
        server: dict[str, Any] = {"name": "server", "preset": self.preset}
        topology = self.topology
        if self.preset is None:
            server = {
                "name": "server",
                "image": f"docker.io/laptime/{REFERENCE}:{version}",
                "databaseConnections": 40,
                "workers": 1,
            }
            topology = {"postgres": {"maxConnections": 100}, **self.topology}
        server["env"] = [{"name": key, "value": value} for key, value in self.env.items()]
        load = self.load or {"closed": {"connections": 16, "duration": "5s"}}
        return {
            "apiVersion": "laptime.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": name},
            "spec": {
                "scenario": self.scenario,
                "servers": [{**server, **self.server}],
                "topology": topology,
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
        "unevenWorkers",
        "of two processes that wait 16 ms and compute for 16 ms one has 15 connections: 62 "
        "requests/s at most, and the other one is busy half of the time",
        env={"PROCESSES": "2", "HOLD": "16ms", "BURN": "16ms"},
        server={"workers": 2},
    ),
    Case(
        "serverConcurrency",
        "4 requests at once, which wait 25 ms without any CPU",
        env={"SLOTS": "4", "HOLD": "25ms"},
    ),
    Case(
        "serverConcurrency",
        "64 connections wait a second in the 40 threads that FastAPI has for sync endpoints",
        preset="fastapi-sleep",
        scenario="sleep",
        load={
            "endpoints": ["sync-1s"],
            "closed": {"connections": 64, "duration": "8s"},
        },
    ),
    Case(
        "serverConcurrency",
        "Flask has 8 threads, and 24 connections ask it for what an upstream answers after 100 ms",
        preset="flask",
        scenario="upstream",
        server={"threads": 8},
        topology={"upstream": {"latency": "100ms"}},
        load={"closed": {"connections": 24, "duration": "5s"}},
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
        "databaseConnections",
        "Axum has 8 connections, HAProxy lets 10 requests in, and each holds one for 18 round "
        "trips of 4 ms and more",
        preset="axum-bb8",
        scenario="recipes",
        env={"STATEMENT_CACHE": "false"},
        server={"workers": 2, "databaseConnections": 8},
        topology={"postgres": {}, "haproxy": {"maxConnections": 10}, "delay": {"database": "4ms"}},
        load={"closed": {"connections": 24, "duration": "5s"}},
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
        "postgresLocks",
        "each statement takes the same row for 20 ms: 50 requests/s at most, however many of the "
        "server's 5 connections wait for it",
        env={"PAUSE": "20ms", "LOCK": "row"},
        server={"databaseConnections": 5},
    ),
    Case(
        "postgresLocks",
        "the same row through the 5 connections of PgBouncer",
        env={"PAUSE": "20ms", "LOCK": "row"},
        topology={"pgbouncer": {"poolSize": 5}},
    ),
    Case(
        "postgresLocks",
        "the same row, and a connection for each of the 16 requests: no pool is full",
        env={"PAUSE": "20ms", "LOCK": "row"},
    ),
    Case(
        "haproxyCap",
        "HAProxy lets 3 requests through at once, and each waits 25 ms without any CPU",
        env={"HOLD": "25ms"},
        topology={"haproxy": {"maxConnections": 3}},
    ),
    Case(
        "upstream",
        "8 connections ask a server without threads of its own for what an upstream answers "
        "after 50 ms",
        preset="go-nethttp",
        scenario="upstream",
        topology={"upstream": {"latency": "50ms"}},
        load={"closed": {"connections": 8, "duration": "5s"}},
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
    Case(
        "offeredLoad",
        "64 connections wait a second each in an async endpoint, as any number could",
        preset="fastapi-sleep",
        scenario="sleep",
        load={
            "endpoints": ["async-1s"],
            "closed": {"connections": 64, "duration": "8s"},
        },
    ),
)
