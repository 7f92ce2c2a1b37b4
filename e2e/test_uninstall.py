"""Uninstalling the chart takes nothing from the users, and installing it again finds it.

It takes the operator away for some seconds, so nothing else may run on the cluster meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import CHART, CRD_NAME, OPERATOR_NAMESPACE, Tool
from schema_paths import full_run

RUN = full_run()
NAME = RUN["metadata"]["name"]


@pytest.fixture
def run(kubectl: Tool, release: str, namespace: str) -> Iterator[dict[str, Any]]:
    """A run in a namespace where no runs are allowed, so that nothing is started for it."""
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(RUN))
    yield kubectl.json("get", "br", NAME, "-n", namespace, "-o", "json")
    kubectl("delete", "br", NAME, "-n", namespace, "--ignore-not-found", "--timeout=30s")


def test_uninstalling_keeps_the_crd_and_the_runs(
    helm: Tool, kubectl: Tool, release: str, run: dict[str, Any], namespace: str, tmp_path: Path
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(
        yaml.safe_dump(
            json.loads(helm("get", "values", release, "-n", OPERATOR_NAMESPACE, "-ojson"))
        )
    )
    helm("upgrade", release, str(CHART), "-n", OPERATOR_NAMESPACE, "-f", str(values))
    _still_there(kubectl, run, namespace)
    try:
        helm("uninstall", release, "-n", OPERATOR_NAMESPACE, "--wait")
        _still_there(kubectl, run, namespace)
        left = kubectl.json(
            *("get", "deployments,services,configmaps,serviceaccounts,clusterroles"),
            *("-n", OPERATOR_NAMESPACE, "-l", "app.kubernetes.io/part-of=laptime", "-o", "json"),
        )
        assert left["items"] == []
        # No finalizer needs the operator: a run can be deleted while there is none.
        kubectl("delete", "br", NAME, "-n", namespace, "--timeout=30s")
        kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(RUN))
    finally:
        helm(
            *("upgrade", "--install", release, str(CHART), "-n", OPERATOR_NAMESPACE),
            *("--create-namespace", "-f", str(values)),
        )
    kubectl("get", "br", NAME, "-n", namespace)


def _still_there(kubectl: Tool, run: dict[str, Any], namespace: str) -> None:
    crd = kubectl.json("get", "crd", CRD_NAME, "-o", "json")
    assert "deletionTimestamp" not in crd["metadata"]
    now = kubectl.json("get", "br", NAME, "-n", namespace, "-o", "json")
    assert now["metadata"]["uid"] == run["metadata"]["uid"]
    assert "deletionTimestamp" not in now["metadata"]
