"""Runs that are really measured, of which the cluster is then full: five kinds of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
_AXUM = {"name": "axum", "preset": "axum-sqlx"}
_TIERS: dict[str, Any] = {"postgres": {}, "pgbouncer": {}, "haproxy": {}}


def _load(name: str, **shape: Any) -> dict[str, Any]:
    return {"name": name, **shape, "warmup": "1s"}


def _example(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load((ROOT / "examples" / name).read_text())["spec"]
    return spec


DEMO = "scale-demo-00000"
"""The run that `make demo` makes."""

SHAPES: dict[str, dict[str, Any]] = {
    "scale-open-00000": {
        "scenario": "users",
        "servers": [_AXUM],
        "topology": _TIERS,
        "loads": [
            _load("open", open={"rate": 200, "duration": "3s"}),
            _load("closed", closed={"connections": 4, "duration": "2s"}),
        ],
        "repetitions": 2,
    },
    "scale-flame-00000": {
        "scenario": "users",
        "servers": [{**_AXUM, "profile": True}],
        "topology": {"postgres": {}},
        "loads": [_load("closed", closed={"connections": 2, "duration": "2s"})],
        "repetitions": 1,
    },
    "scale-failed-00000": {
        "scenario": "users",
        "servers": [_AXUM, {"name": "mine", "image": "registry.invalid/mine:1"}],
        "topology": {"postgres": {}},
        "loads": [_load("closed", closed={"connections": 2, "duration": "1s"})],
        "repetitions": 2,
        "startupTimeout": "10s",
    },
    "scale-first-00000": _example("first.yaml"),
    DEMO: _example("users-quick.yaml"),
}


def manifest(name: str) -> dict[str, Any]:
    """Return the BenchmarkRun of a shape."""
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": SHAPES[name],
    }
