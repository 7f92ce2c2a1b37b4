"""A cluster with a ready operator, and a namespace in which it may work."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from .harness import Cluster


@pytest.fixture(scope="session")
def operator(kubectl: Any, release: str) -> str:
    """The release, with its operator ready."""
    kubectl(
        *("rollout", "status", "-n", "laptime-system", "deployment/laptime-operator"),
        "--timeout=90s",
    )
    return release


@pytest.fixture
def cluster(kubectl: Any, operator: str) -> Iterator[Cluster]:
    """A namespace at the restricted level in which runs are allowed; deleted afterwards."""
    name = f"runs-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    kubectl(
        *("create", "rolebinding", "laptime", "-n", name, "--clusterrole=laptime-runs"),
        "--serviceaccount=laptime-system:laptime-operator",
    )
    yield Cluster(kubectl, name)
    kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")
