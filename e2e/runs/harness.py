"""Applying runs, waiting for what they come to, and looking at what they leave."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

KINDS = "pods,jobs,deployments,replicasets,services,endpointslices,configmaps,secrets"


class Cluster:
    """What the tests of runs do with a cluster, in one namespace."""

    def __init__(self, kubectl: Any, namespace: str) -> None:
        self.kubectl = kubectl
        self.namespace = namespace

    def apply(self, manifest: dict[str, Any]) -> str:
        """Apply a manifest; return its name."""
        self.kubectl("apply", "-n", self.namespace, "-f", "-", stdin=json.dumps(manifest))
        name: str = manifest["metadata"]["name"]
        return name

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return an object."""
        found: dict[str, Any] = self.kubectl.json(
            "get", kind, name, "-n", self.namespace, "-o", "json"
        )
        return found

    def items(self, kinds: str, selector: str) -> list[dict[str, Any]]:
        """Return the objects of some kinds that match a selector."""
        found: list[dict[str, Any]] = self.kubectl.json(
            "get", kinds, "-n", self.namespace, "-l", selector, "-o", "json"
        )["items"]
        return found

    def status(self, run: str) -> dict[str, Any]:
        """Return the status of a run."""
        return self.get("benchmarkrun", run).get("status") or {}

    def wait(
        self, run: str, what: str, until: Callable[[dict[str, Any]], bool], seconds: float
    ) -> dict[str, Any]:
        """Wait until the status of a run is so; fail with everything known when it is not."""
        deadline = time.monotonic() + seconds
        while True:
            status = self.status(run)
            if until(status):
                return status
            if time.monotonic() > deadline:
                seen = self.kubectl.run("get", "pods,jobs,events", "-n", self.namespace).stdout
                pytest.fail(
                    f"run {run}: {what} did not come within {seconds:g} s; its status is\n"
                    f"{json.dumps(status, indent=1)}\n{seen}"
                )
            time.sleep(0.3)

    def wait_end(self, run: str, seconds: float) -> dict[str, Any]:
        """Wait until a run is over."""
        return self.wait(run, "its end", over, seconds)

    def left_of(self, run: str) -> set[str]:
        """Return kind/name of every object of a run."""
        return {
            f"{item['kind']}/{item['metadata']['name']}"
            for item in self.items(KINDS, f"laptime.dev/run={run}")
        }


def over(status: dict[str, Any]) -> bool:
    """Whether a run is over."""
    return status.get("state") in ("Succeeded", "Failed")


def condition(status: dict[str, Any], type_: str) -> dict[str, Any]:
    """Return a condition; an empty one if it is not there."""
    for one in status.get("conditions") or []:
        if one["type"] == type_:
            found: dict[str, Any] = one
            return found
    return {}


def run_manifest(name: str, servers: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    """Return a small BenchmarkRun with all tiers."""
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": {
            "scenario": "users",
            "servers": servers,
            "topology": {"postgres": {}, "pgbouncer": {}, "haproxy": {}},
            "loads": [
                {
                    "name": "closed",
                    "closed": {"connections": 4, "duration": "2s", "keepAlive": False},
                    "warmup": "1s",
                }
            ],
            "repetitions": 2,
            **spec,
        },
    }


SYNC = {"name": "sync", "preset": "fastapi-sync"}
ASYNC = {"name": "async", "preset": "fastapi-async"}
AXUM = {"name": "axum", "preset": "axum-sqlx"}
