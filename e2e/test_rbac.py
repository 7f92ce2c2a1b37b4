"""The operator may do what docs/permissions.md says, and nothing else.

The tables are read from the page itself, so the page and the rights cannot differ.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from conftest import OPERATOR_NAMESPACE, ROOT, Tool

PAGE = (ROOT / "docs" / "permissions.md").read_text()
ACCOUNT = f"system:serviceaccount:{OPERATOR_NAMESPACE}:laptime-operator"
# What any service account may do differs between clusters; it is taken off both sides.
ANY_ACCOUNT = f"system:serviceaccount:{OPERATOR_NAMESPACE}:no-such-account"

Rights = set[tuple[str, str]]
"""(resource with its group as kubectl writes it, verb)."""


def _documented(heading: str) -> Rights:
    """Return the rights in the table under a heading of the page."""
    section = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert section, heading
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section[1].splitlines()
        if line.startswith("|")
    ][2:]
    assert rows, heading
    return {
        (resource if group == "core" else _qualified(resource, group), verb.strip())
        for group, resource, verbs, *_ in rows
        for verb in verbs.split(",")
    }


def _qualified(resource: str, group: str) -> str:
    name, slash, subresource = resource.partition("/")
    return f"{name}.{group}{slash}{subresource}"


CLUSTER_WIDE = _documented("The operator, in the whole cluster")
IN_RUN_NAMESPACE = _documented("The operator, in a namespace with runs")


def _granted(kubectl: Tool, account: str, namespace: str) -> Rights:
    """Return what `kubectl auth can-i --list` shows of an account in a namespace."""
    table = kubectl("auth", "can-i", "--list", f"--as={account}", "-n", namespace)
    rights = set()
    for line in table.splitlines()[1:]:
        row = re.fullmatch(r"(\S*)\s+\[(.*?)\]\s+\[(.*?)\]\s+\[(.*?)\]", line.strip())
        if row is None:
            row = re.fullmatch(r"()\[(.*?)\]\s+\[(.*?)\]\s+\[(.*?)\]", line.strip())
        assert row, line
        resource, urls, names, verbs = row.groups()
        what = f"{resource or urls}{f' ({names})' if names else ''}"
        rights |= {(what, verb) for verb in verbs.split()}
    return rights


def _may(kubectl: Tool, who: str, verb: str, what: str, namespace: str) -> None:
    """Wait until someone may do something: the API server hears of a binding a moment later.

    Fails when they may not after ten seconds.
    """
    deadline = time.monotonic() + 10
    while True:
        done = kubectl.run("auth", "can-i", verb, what, f"--as={who}", "-n", namespace)
        if done.stdout.strip() == "yes":
            return
        assert time.monotonic() < deadline, done
        time.sleep(0.2)


@pytest.fixture(scope="module")
def enabled(kubectl: Tool, release: str, namespace: str) -> Iterator[str]:
    """A namespace whose admin has allowed runs, with the command of the page."""
    command = re.search(r"kubectl (create rolebinding laptime .*?)\n\n", PAGE, re.S)
    assert command
    arguments = command[1].replace("\\\n", " ").replace("NAMESPACE", namespace).split()
    kubectl(
        "create", "rolebinding", "the-admin", "--clusterrole=admin", "--user=ann", "-n", namespace
    )
    _may(kubectl, "ann", "create", "rolebindings.rbac.authorization.k8s.io", namespace)
    kubectl("--as=ann", *arguments)
    _may(kubectl, ACCOUNT, "create", "jobs.batch", namespace)
    yield namespace
    kubectl("delete", "rolebinding", "laptime", "-n", namespace)


@pytest.fixture(scope="module")
def bystander(kubectl: Tool, release: str) -> str:
    """A namespace that nobody has allowed runs in."""
    return "kube-public"


def test_its_rights_in_any_namespace_are_those_of_the_page(
    kubectl: Tool, release: str, bystander: str
) -> None:
    own = _granted(kubectl, ACCOUNT, bystander) - _granted(kubectl, ANY_ACCOUNT, bystander)
    assert own == CLUSTER_WIDE


def test_its_rights_in_a_namespace_with_runs_are_those_of_the_page(
    kubectl: Tool, enabled: str
) -> None:
    own = _granted(kubectl, ACCOUNT, enabled) - _granted(kubectl, ANY_ACCOUNT, enabled)
    assert own == CLUSTER_WIDE | IN_RUN_NAMESPACE


def test_no_right_is_a_wildcard(kubectl: Tool, enabled: str) -> None:
    for what, verb in _granted(kubectl, ACCOUNT, enabled):
        assert "*" not in verb, (what, verb)
        assert "*" not in what or what.startswith("/"), (what, verb)


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
def test_it_cannot_read_secrets_anywhere(kubectl: Tool, enabled: str, verb: str) -> None:
    for scope in ("-A", f"-n={enabled}", f"-n={OPERATOR_NAMESPACE}", "-n=kube-system"):
        done = kubectl.run("auth", "can-i", verb, "secrets", f"--as={ACCOUNT}", scope)
        assert (done.returncode, done.stdout.strip()) == (1, "no"), (scope, done)


@pytest.mark.parametrize(
    "right",
    [
        ("create", "pods"),
        ("create", "pods/exec"),
        ("create", "serviceaccounts/token"),
        ("create", "rolebindings.rbac.authorization.k8s.io"),
        ("bind", "clusterroles.rbac.authorization.k8s.io"),
        ("impersonate", "users"),
        ("update", "benchmarkruns.laptime.dev"),
        ("update", "benchmarkruns.laptime.dev/finalizers"),
        ("list", "nodes"),
        ("create", "persistentvolumeclaims"),
    ],
    ids=" ".join,
)
def test_it_cannot_reach_beyond_its_runs(
    kubectl: Tool, enabled: str, right: tuple[str, str]
) -> None:
    verb, resource = right
    done = kubectl.run("auth", "can-i", verb, resource, f"--as={ACCOUNT}", "-n", enabled)
    assert done.stdout.strip() == "no", done


def test_the_api_server_really_refuses_it_a_secret(kubectl: Tool, enabled: str) -> None:
    kubectl("create", "secret", "generic", "theirs", "--from-literal=a=b", "-n", enabled)
    done = kubectl.run("get", "secret", "theirs", f"--as={ACCOUNT}", "-n", enabled)
    assert done.returncode != 0
    assert "forbidden" in done.stderr.lower()


def test_without_the_binding_it_can_create_nothing(
    kubectl: Tool, release: str, bystander: str
) -> None:
    for resource in ("jobs.batch", "deployments.apps", "services", "configmaps", "secrets"):
        done = kubectl.run("auth", "can-i", "create", resource, f"--as={ACCOUNT}", "-n", bystander)
        assert done.stdout.strip() == "no", resource


def _people() -> list[tuple[str, str, str]]:
    """Return (role, resource, verb) of the page's table about people."""
    section = PAGE[PAGE.index("## People") :]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [
        (role.strip(), _qualified(resource.strip(), group.strip()), verb.strip())
        for role, group, resource, verbs in rows[2:]
        for verb in verbs.split(",")
    ]


@pytest.mark.parametrize("right", _people(), ids=" ".join)
def test_the_roles_of_the_cluster_cover_runs(
    kubectl: Tool, enabled: str, right: tuple[str, str, str]
) -> None:
    role, resource, verb = right
    user = f"user-of-{role}"
    kubectl.run(
        "create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}", "-n", enabled
    )
    named = re.fullmatch(r"(\S+) \((\S+)\)(\S*)", resource)
    target = f"{named[1]}{named[3]}/{named[2]}" if named else resource
    _may(kubectl, user, verb, target, enabled)


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
def test_nobody_but_the_operator_writes_a_status(kubectl: Tool, enabled: str, role: str) -> None:
    user = f"user-of-{role}"
    kubectl.run(
        "create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}", "-n", enabled
    )
    _may(kubectl, user, "get", "benchmarkruns.laptime.dev", enabled)
    done = kubectl.run(
        *("auth", "can-i", "patch", "benchmarkruns.laptime.dev", "--subresource=status"),
        *(f"--as={user}", "-n", enabled),
    )
    assert done.stdout.strip() == "no", done
