"""What the rules of nftables allow is what the NetworkPolicies say."""

import os
import re
import shutil
import subprocess
from typing import Any

import pytest

from laptime_cluster.layout import IPV4, IPV6, Family
from laptime_cluster.policies import matches, ruleset

NAMESPACES = [
    {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, "team": name[0]}}}
    for name in ("runs", "other", "watch")
]
SAME_RUN = {"podSelector": {"matchLabels": {"run": "a"}}}


NODE = "laptime"


def pod(
    name: str, *addresses: str, namespace: str = "runs", node: str = NODE, **labels: str
) -> dict[str, Any]:
    number = int(re.split("[.:]", addresses[0])[-1])
    ports = [{"name": "metrics", "containerPort": 9000 + number}]
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "creationTimestamp": f"2026-01-01T00:00:{number % 60:02}Z",
        },
        "spec": {"nodeName": node, "containers": [{"name": "main", "ports": ports}]},
        "status": {
            "podIP": addresses[0],
            "podIPs": [{"ip": address} for address in addresses],
            "phase": "Running",
        },
    }


PODS = [
    pod("server", "10.201.0.3", run="a"),
    pod("postgres", "10.201.0.4", run="a"),
    pod("stranger", "10.201.0.5"),
    pod("prometheus", "10.201.0.6", namespace="watch", app="prometheus"),
    pod("elsewhere", "10.201.0.7", namespace="other", run="a"),
]


def policy(namespace: str = "runs", **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"run": "a"}}
    return {
        "metadata": {"name": "policy", "namespace": namespace},
        "spec": {"podSelector": selector, **spec},
    }


def chains(
    *policies: dict[str, Any],
    pods: list[dict[str, Any]] | None = None,
    family: Family = IPV4,
    node: str = NODE,
) -> dict[str, list[str]]:
    """Return the rules of each chain."""
    text = ruleset(
        PODS if pods is None else pods, NAMESPACES, policies, node=node, families=(family,)
    )
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


def test_of_two_pods_with_one_address_the_youngest_has_it() -> None:
    old = pod("server", "10.201.0.3", run="a")
    new = pod("stranger", "10.201.0.3")
    new["metadata"]["creationTimestamp"] = "2026-01-01T00:01:00Z"
    # Only the old one is selected; where both are, the kernel takes none of the rules.
    assert "ingress-0" in chains(policy(policyTypes=["Ingress"]), pods=[old])
    assert "ingress-0" not in chains(policy(policyTypes=["Ingress"]), pods=[new, old])
    new["metadata"]["labels"] = {"run": "a"}
    assert "ingress-0" in chains(policy(policyTypes=["Ingress"]), pods=[old, new])


def test_a_node_has_the_rules_of_its_own_pods_and_knows_those_of_others() -> None:
    there = [
        pod("server", "10.201.0.3", run="a"),
        pod("generator", "10.201.1.3", node="laptime-2", run="a"),
    ]
    same_run = policy(policyTypes=["Ingress", "Egress"], ingress=[{"from": [SAME_RUN]}])
    for node, own in ((NODE, "10.201.0.3"), ("laptime-2", "10.201.1.3")):
        found = chains(same_run, pods=there, node=node)
        assert set(found) == {"forward", "input", "ingress-0", "egress-0"}
        assert found["ingress-0"] == [
            f"ip saddr {own} return",
            "ip saddr { 10.201.0.3, 10.201.1.3 } return",
            "drop",
        ]
        assert found["forward"][-1] == f"ip daddr vmap {{ {own} : jump ingress-0 }}"


def test_a_pod_elsewhere_that_no_rule_names_changes_nothing_here() -> None:
    same_run = policy(policyTypes=["Ingress"], ingress=[{"from": [SAME_RUN]}])
    before = chains(same_run)
    # Its address comes before all others, so it would be counted first.
    other = pod("other-run", "10.200.1.3", node="laptime-2", run="b")
    other_policy = policy(policyTypes=["Ingress"])
    other_policy["spec"]["podSelector"] = {"matchLabels": {"run": "b"}}
    assert chains(same_run, other_policy, pods=[other, *PODS]) == before
    assert chains(same_run, other_policy, pods=[other, *PODS], node="laptime-2") != before


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


PODS_OF_BOTH = [
    pod("server", "10.201.0.3", "fd6c:10:201::3", run="a"),
    pod("postgres", "10.201.0.4", "fd6c:10:201::4", run="a"),
]


def test_a_pod_is_known_by_its_address_in_each_family() -> None:
    pods = [*PODS_OF_BOTH, pod("old", "10.201.0.5", run="a"), pod("new", "fd6c::6", run="a")]
    same_run = policy(ingress=[{"from": [SAME_RUN]}])
    assert chains(same_run, pods=pods)["ingress-0"] == [
        "ip saddr 10.201.0.3 return",
        "ip saddr { 10.201.0.3, 10.201.0.4, 10.201.0.5 } return",
        "drop",
    ]
    found = chains(same_run, pods=pods, family=IPV6)
    assert found["ingress-0"] == [
        "ip6 saddr fd6c:10:201::3 return",
        "ip6 saddr { fd6c:10:201::3, fd6c:10:201::4, fd6c::6 } return",
        "drop",
    ]
    assert found["forward"][1:3] == [
        "ct state established,related accept",
        "ip6 saddr fd6c:10:204::1 accept",
    ]
    text = ruleset(pods, NAMESPACES, [same_run], node=NODE, families=(IPV4, IPV6))
    assert text == "".join(
        ruleset(pods, NAMESPACES, [same_run], node=NODE, families=(one,)) for one in (IPV4, IPV6)
    )
    assert "table ip laptime-policies {" in text
    assert "table ip6 laptime-policies {" in text
    _is_accepted_by_the_kernel(text)


def test_a_pod_that_may_send_nothing_still_finds_its_node() -> None:
    nothing = policy(policyTypes=["Ingress", "Egress"])
    (asked, *rest) = chains(nothing, pods=PODS_OF_BOTH, family=IPV6)["input"][2:]
    assert asked.startswith("icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert,")
    assert asked.endswith("accept")
    assert [line.split(" vmap")[0] for line in rest] == ["ip6 saddr"]


@pytest.mark.parametrize(
    ("rule", "rules"),
    [
        ({"from": [{"ipBlock": {"cidr": "fd6c::/16"}}]}, ["ip6 saddr fd6c::/16 return"]),
        (
            {
                "from": [{"ipBlock": {"cidr": "::/0", "except": ["fd6c:10:201:1::/64"]}}],
                "ports": [{"port": "metrics"}],
            },
            ["ip6 saddr ::/0 ip6 saddr != { fd6c:10:201:1::/64 } tcp dport 9003 return"],
        ),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}, ["ip6 saddr { 100:: } return"]),
        (
            {"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]},
            ["ip6 saddr { 100:: } return"],
        ),
    ],
)
def test_a_rule_allows_what_it_says_in_ipv6(rule: dict[str, Any], rules: list[str]) -> None:
    found = chains(policy(ingress=[rule]), pods=PODS_OF_BOTH, family=IPV6)["ingress-0"]
    assert found == ["ip6 saddr fd6c:10:201::3 return", *rules, "drop"]


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
