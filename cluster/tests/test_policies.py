"""What the rules of nftables allow is what the NetworkPolicies say."""

import os
import shutil
import subprocess
from typing import Any

import pytest

from laptime_cluster.policies import matches, ruleset

NAMESPACES = [
    {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, "team": name[0]}}}
    for name in ("runs", "other", "watch")
]
SAME_RUN = {"podSelector": {"matchLabels": {"run": "a"}}}


def pod(name: str, address: str, namespace: str = "runs", **labels: str) -> dict[str, Any]:
    ports = [{"name": "metrics", "containerPort": 9000 + int(address.rpartition(".")[2])}]
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "main", "ports": ports}]},
        "status": {"podIP": address, "phase": "Running"},
    }


PODS = [
    pod("server", "10.201.0.3", run="a"),
    pod("postgres", "10.201.0.4", run="a"),
    pod("stranger", "10.201.0.5"),
    pod("prometheus", "10.201.0.6", "watch", app="prometheus"),
    pod("elsewhere", "10.201.0.7", "other", run="a"),
]


def policy(namespace: str = "runs", **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"run": "a"}}
    return {
        "metadata": {"name": "policy", "namespace": namespace},
        "spec": {"podSelector": selector, **spec},
    }


def chains(
    *policies: dict[str, Any], pods: list[dict[str, Any]] | None = None
) -> dict[str, list[str]]:
    """Return the rules of each chain."""
    text = ruleset(PODS if pods is None else pods, NAMESPACES, policies)
    _is_accepted_by_the_kernel(text)
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("  chain "):
            lines = found.setdefault(line.split()[1], [])
        elif line.startswith("    "):
            lines.append(line.strip())
    return found


def _is_accepted_by_the_kernel(text: str) -> None:
    if os.geteuid() == 0 and shutil.which("nft") and shutil.which("unshare"):
        # Twice: the second time replaces the first.
        command = ["unshare", "--net", "sh", "-c", "nft -f - < /dev/stdin"]
        done = subprocess.run(command, input=text + text, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr}\n{text}"


def test_without_a_policy_everything_is_allowed() -> None:
    found = chains()
    assert set(found) == {"forward", "input"}
    assert not any("vmap" in line for lines in found.values() for line in lines)


def test_pods_of_a_run_reach_each_other_and_nobody_else() -> None:
    found = chains(
        policy(
            policyTypes=["Ingress", "Egress"],
            ingress=[{"from": [SAME_RUN]}],
            egress=[{"to": [SAME_RUN]}],
        )
    )
    assert found["egress-0"] == [
        "ip daddr 10.201.0.3 return",
        "ip daddr { 10.201.0.3, 10.201.0.4 } return",
        "drop",
    ]
    assert found["ingress-1"] == [
        "ip saddr 10.201.0.4 return",
        "ip saddr { 10.201.0.3, 10.201.0.4 } return",
        "drop",
    ]
    # The pod with the same label in another namespace is not selected.
    assert (
        "ip saddr vmap { 10.201.0.3 : jump egress-0, 10.201.0.4 : jump egress-1 }"
        in found["forward"]
    )
    assert (
        "ip daddr vmap { 10.201.0.3 : jump ingress-0, 10.201.0.4 : jump ingress-1 }"
        in found["forward"]
    )
    # To the node (DNS, the API server) only what leaves is asked; probes come from there.
    assert [line for line in found["input"] if "vmap" in line] == [
        line for line in found["forward"] if "saddr vmap" in line
    ]
    # What was allowed to begin is allowed to go on: one look for each connection.
    assert found["forward"][1] == found["input"][1] == "ct state established,related accept"


def test_policies_add_up() -> None:
    others = {"podSelector": {"matchExpressions": [{"key": "run", "operator": "DoesNotExist"}]}}
    found = chains(
        policy(ingress=[{"from": [SAME_RUN]}]),
        {**policy(ingress=[{"from": [others]}]), "metadata": {"name": "b", "namespace": "runs"}},
    )
    assert "ip saddr 10.201.0.5 return" not in found["ingress-0"]
    assert "ip saddr { 10.201.0.5 } return" in found["ingress-0"]
    assert "ip saddr { 10.201.0.3, 10.201.0.4 } return" in found["ingress-0"]


@pytest.mark.parametrize(
    ("rule", "rules"),
    [
        ({}, ["return"]),
        ({"from": [], "ports": []}, ["return"]),
        ({"ports": [{"port": 80}]}, ["tcp dport 80 return"]),
        ({"ports": [{"port": 80, "endPort": 90, "protocol": "UDP"}]}, ["udp dport 80-90 return"]),
        ({"ports": [{"protocol": "SCTP"}]}, ["meta l4proto sctp return"]),
        ({"ports": [{"port": "metrics"}]}, ["tcp dport 9003 return"]),
        ({"ports": [{"port": "metrics", "protocol": "UDP"}]}, []),
        ({"ports": [{"port": "unheard-of"}]}, []),
        (
            {
                "from": [{"namespaceSelector": {"matchLabels": {"team": "w"}}}],
                "ports": [{"port": "metrics"}],
            },
            ["ip saddr { 10.201.0.6 } tcp dport 9003 return"],
        ),
        (
            {"from": [{"namespaceSelector": {}}]},
            ["ip saddr { 10.201.0.3, 10.201.0.4, 10.201.0.5, 10.201.0.6, 10.201.0.7 } return"],
        ),
        (
            {"from": [{"namespaceSelector": {}, **SAME_RUN}]},
            ["ip saddr { 10.201.0.3, 10.201.0.4, 10.201.0.7 } return"],
        ),
        # A selector of nobody is nobody, not everybody.
        (
            {"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]},
            ["ip saddr { 255.255.255.255 } return"],
        ),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}, ["ip saddr 10.0.0.0/8 return"]),
        (
            {
                "from": [
                    {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "10.2.0.0/16"]}}
                ]
            },
            ["ip saddr 10.0.0.0/8 ip saddr != { 10.1.0.0/16, 10.2.0.0/16 } return"],
        ),
        ({"from": [{"ipBlock": {"cidr": "fd00::/8"}}]}, ["ip saddr { 255.255.255.255 } return"]),
    ],
)
def test_a_rule_allows_what_it_says(rule: dict[str, Any], rules: list[str]) -> None:
    found = chains(policy(ingress=[rule]))["ingress-0"]
    assert found == ["ip saddr 10.201.0.3 return", *rules, "drop"]


def test_a_named_port_is_another_number_in_each_pod_that_is_reached() -> None:
    found = chains(policy(egress=[{"to": [SAME_RUN], "ports": [{"port": "metrics"}]}]))
    assert found["egress-0"] == [
        "ip daddr 10.201.0.3 return",
        "ip daddr { 10.201.0.3 } tcp dport 9003 return",
        "ip daddr { 10.201.0.4 } tcp dport 9004 return",
        "drop",
    ]


def test_the_types_of_a_policy_follow_from_its_rules() -> None:
    assert set(chains(policy())) == {"forward", "input", "ingress-0", "ingress-1"}
    assert set(chains(policy(egress=[{}]))) >= {"ingress-0", "egress-0"}
    assert set(chains(policy(policyTypes=["Egress"]))) == {
        "forward",
        "input",
        "egress-0",
        "egress-1",
    }


def test_pods_of_the_node_and_those_that_are_over_have_no_rules() -> None:
    on_the_node = pod("agent", "10.203.0.2", run="a")
    on_the_node["spec"]["hostNetwork"] = True
    over = pod("done", "10.201.0.8", run="a")
    over["status"]["phase"] = "Succeeded"
    new = pod("new", "10.201.0.9", run="a")
    del new["status"]["podIP"]
    assert set(chains(policy(), pods=[on_the_node, over, new])) == {"forward", "input"}


@pytest.mark.parametrize(
    ("expression", "held"),
    [
        ({"key": "a", "operator": "In", "values": ["1", "2"]}, True),
        ({"key": "a", "operator": "In", "values": ["2"]}, False),
        ({"key": "a", "operator": "NotIn", "values": ["1"]}, False),
        ({"key": "b", "operator": "NotIn", "values": ["1"]}, True),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "b", "operator": "Exists"}, False),
        ({"key": "b", "operator": "DoesNotExist"}, True),
    ],
)
def test_expressions_of_selectors(expression: dict[str, Any], held: bool) -> None:
    assert matches({"matchExpressions": [expression]}, {"a": "1"}) is held
    assert matches({}, {"a": "1"})
    assert matches(None, {})
