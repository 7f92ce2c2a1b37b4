"""Who reaches the pods of a run, and whom they reach."""

from __future__ import annotations

import pytest

from laptime.manifests.context import Network
from laptime.manifests.network import network_policy
from laptime.manifests.objects import Manifest
from laptime.manifests.target import reach_policy
from tests.manifests.runs import NETWORK, SPECS, context, objects, pod_specs


def peers(rules: list[Manifest], side: str) -> list[Manifest]:
    return [peer for rule in rules for peer in rule[side]]


@pytest.mark.parametrize("spec", SPECS)
def test_every_pod_of_a_run_is_selected_and_no_other(spec: str) -> None:
    ctx = context(spec)
    selector = network_policy(ctx)["spec"]["podSelector"]["matchLabels"]
    assert selector == {"laptime.dev/run-uid": ctx.uid}
    for name, template, _ in pod_specs(objects(ctx)):
        assert selector.items() <= template["metadata"]["labels"].items(), name


def test_pods_of_a_run_reach_each_other_and_dns() -> None:
    spec = network_policy(context("direct"))["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    each_other, watched = spec["ingress"]
    assert each_other == {"from": [{"podSelector": spec["podSelector"]}]}
    to_each_other, dns = spec["egress"]
    assert to_each_other == {"to": [{"podSelector": spec["podSelector"]}]}
    assert dns["to"] == list(NETWORK.dns)
    # The second port is that of OpenShift's DNS, behind its Service.
    assert [(one["port"], one["protocol"]) for one in dns["ports"]] == [
        (port, protocol) for port in (53, 5353) for protocol in ("UDP", "TCP")
    ]
    (peer,) = watched["from"]
    (expression,) = peer["namespaceSelector"]["matchExpressions"]
    assert expression["values"] == ["laptime-system", "monitoring"]
    assert watched["ports"] == [{"port": "metrics", "protocol": "TCP"}]


def test_what_the_run_names_is_reached_too() -> None:
    _, _, block, namespace = network_policy(context("full"))["spec"]["egress"]
    assert block == {
        "to": [{"ipBlock": {"cidr": "203.0.113.7/32"}}],
        "ports": [{"port": 443, "protocol": "TCP"}, {"port": 8443, "protocol": "TCP"}],
    }
    (peer,) = namespace["to"]
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "payments"}
    assert "ports" not in namespace


@pytest.mark.parametrize("network", [NETWORK, Network(watchers=("w",)), Network(dns=({"a": {}},))])
def test_nothing_allows_everybody_but_what_the_administrator_chose(network: Network) -> None:
    def empty(selector: object) -> bool:
        return selector == {}

    policy = network_policy(context("full", network=network))["spec"]
    for rule in policy["ingress"]:
        assert rule["from"]
    for rule in policy["egress"]:
        # Port 53, and only where no DNS is named.
        assert rule["to"] or (not network.dns and {one["port"] for one in rule["ports"]} == {53})
    for peer in peers(policy["ingress"], "from") + peers(policy["egress"], "to"):
        assert not any(empty(selector) for key, selector in peer.items() if key != "a")


def test_switched_off_there_is_none() -> None:
    with pytest.raises(ValueError, match="switched off"):
        network_policy(context("direct", network=None))


def test_generator_and_verifier_alone_reach_a_service_that_is_there_and_its_port_alone() -> None:
    ctx = context("there")
    (allowed,) = reach_policy(ctx, ctx.spec.server("cart"))["spec"]["egress"]
    assert allowed == {
        "to": [{"podSelector": {"matchLabels": {"app": "cart", "tier": "web"}}}],
        "ports": [{"port": 3000, "protocol": "TCP"}],
    }
    spec = reach_policy(ctx, ctx.spec.server("shop"))["spec"]
    assert spec["policyTypes"] == ["Egress"]
    (named,) = spec["egress"]
    assert named["ports"] == [{"port": "https", "protocol": "TCP"}]
    (components,) = spec["podSelector"]["matchExpressions"]
    reaching = set()
    for name, template, _ in pod_specs(objects(ctx)):
        labels = template["metadata"]["labels"]
        if spec["podSelector"]["matchLabels"].items() <= labels.items():
            assert components["operator"] == "In"
            if labels[components["key"]] in components["values"]:
                reaching.add(name)
    trial = next(iter(reaching - {"Job demo-verify-shop"}))
    assert reaching == {"Job demo-verify-shop", trial}
    assert trial.startswith("Job demo-trial-")


def test_what_leads_nowhere_known_is_allowed_nothing() -> None:
    ctx = context("there", targets={})
    with pytest.raises(ValueError, match="server shop: its Service was not found"):
        reach_policy(ctx, ctx.spec.server("shop"))
