"""What the operator may do has grown by what is written here, right by right, and by nothing else.

`e2e/test_rbac.py` compares docs/permissions.md with what a cluster grants; this one says since when
and why the chart asks for it. A new right fails here until somebody has written down why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .chart_rights import TEMPLATES, Right, operators_rights


def rights(scope: str, resource: str, verbs: str) -> set[Right]:
    return {(scope, resource, verb) for verb in verbs.split(", ")}


CLUSTER = "ClusterRole laptime.operator"
IN_RUN_NAMESPACES = "ClusterRole laptime.runsRole"
OWN_NAMESPACE = "Role laptime.operator"

# As it was when issue 13 was filed, at commit 68639cf (22 November 2026).
BEFORE_ISSUE_13: set[Right] = {
    *rights(CLUSTER, "benchmarkruns.laptime.dev", "get, list, watch, delete"),
    *rights(CLUSTER, "benchmarkruns/status.laptime.dev", "patch"),
    *rights(IN_RUN_NAMESPACES, "pods", "get, list, watch"),
    *rights(IN_RUN_NAMESPACES, "pods/log", "get"),
    *rights(IN_RUN_NAMESPACES, "jobs.batch", "get, list, create, delete"),
    *rights(IN_RUN_NAMESPACES, "deployments.apps", "get, list, create, patch, delete"),
    *rights(IN_RUN_NAMESPACES, "services", "get, list, create, patch, delete"),
    *rights(IN_RUN_NAMESPACES, "configmaps", "get, list, create, patch, delete"),
    *rights(IN_RUN_NAMESPACES, "secrets", "create, delete"),
    *rights(IN_RUN_NAMESPACES, "events", "create"),
}

# Issue 13, decision 9: one cache of watches instead of lists.
WATCHED: set[Right] = {
    *rights(IN_RUN_NAMESPACES, "jobs.batch", "watch"),
    *rights(IN_RUN_NAMESPACES, "deployments.apps", "watch"),
    *rights(IN_RUN_NAMESPACES, "services", "watch"),
    *rights(IN_RUN_NAMESPACES, "configmaps", "watch"),
}
POLICIES = "networkpolicies.networking.k8s.io"
LEASES = "leases.coordination.k8s.io"

ADDED: dict[str, set[Right]] = {
    "issue 13, decision 9: one cache of watches": WATCHED,
    "issue 13, decision 16: a policy for each run": rights(
        IN_RUN_NAMESPACES, POLICIES, "get, list, watch, create, delete"
    ),
    "issue 13, decision 15: one operator at work": {
        *rights(OWN_NAMESPACE, LEASES, "create"),
        *rights(OWN_NAMESPACE, f"{LEASES} (laptime-operator)", "get, patch"),
    },
    "issue 15, decision 19: scenarios are resources": rights(
        IN_RUN_NAMESPACES, "benchmarkscenarios.laptime.dev", "get"
    ),
    "issue 17, decision 75: the CPU of Postgres between trials": rights(
        IN_RUN_NAMESPACES, "pods/resize", "patch"
    ),
}
REMOVED: set[Right] = {
    # Issue 13, decision 8: a Secret goes with its ConfigMap; by its name it could be another's.
    *rights(IN_RUN_NAMESPACES, "secrets", "delete"),
    # Pods are listed and watched, and nobody asks for one by its name.
    *rights(IN_RUN_NAMESPACES, "pods", "get"),
}


def test_the_operator_asks_for_what_it_did_and_for_what_is_written_here() -> None:
    now = operators_rights()
    expected = (BEFORE_ISSUE_13 | set().union(*ADDED.values())) - REMOVED
    assert sorted(now - expected) == []
    assert sorted(expected - now) == []


def test_nobody_else_binds_a_role_to_the_operator() -> None:
    for path in sorted(TEMPLATES.iterdir()):
        if path.name in ("rbac.yaml", "lease.yaml") or "roleRef:" not in _text(path):
            continue
        text = _text(path)
        assert "laptime.operator" not in text[text.index("roleRef:") :], path.name


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def test_issue_13_adds_watches_policies_and_a_lease_and_nothing_else() -> None:
    for why, added in ADDED.items():
        if not why.startswith("issue 13"):
            continue
        for scope, resource, verb in added:
            listed = (scope, resource, "list") in BEFORE_ISSUE_13
            assert (
                (verb == "watch" and listed)
                or (scope == IN_RUN_NAMESPACES and resource == POLICIES)
                or (scope == OWN_NAMESPACE and resource.startswith(LEASES))
            ), (why, scope, resource, verb)


@pytest.mark.parametrize("removed", sorted(REMOVED))
def test_what_was_given_back_was_there(removed: Right) -> None:
    assert removed in BEFORE_ISSUE_13
