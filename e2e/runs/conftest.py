"""A cluster with a ready operator, and a namespace in which it may work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conftest import OPERATOR_NAMESPACE

from .harness import Cluster, namespace_for_runs


@pytest.fixture(scope="session")
def operator(kubectl: Any, release: str) -> str:
    """The release, with its operator ready."""
    kubectl(
        *("rollout", "status", "-n", "laptime-system", "deployment/laptime-operator"),
        "--timeout=90s",
    )
    return release


@pytest.fixture
def cluster(kubectl: Any, reader: Any, operator: str) -> Iterator[Cluster]:
    """A namespace at the restricted level in which runs are allowed; deleted afterwards."""
    with namespace_for_runs(reader) as name:
        yield Cluster(kubectl, reader, name)


@pytest.fixture
def image(kubectl: Any, operator: str) -> str:
    """The operator's image, which has Python."""
    found: str = kubectl(
        *("get", "deployment", "laptime-operator", "-n", OPERATOR_NAMESPACE),
        *("-o", "jsonpath={.spec.template.spec.containers[0].image}"),
    )
    return found
