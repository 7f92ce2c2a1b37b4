"""The chart's network policies, those that it lets runs have, and who may scrape their pods."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from conftest import CHART, OPERATOR_NAMESPACE, ROOT, Rendered

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())


def test_network_policies_are_a_choice_and_each_pod_has_its_own(render: Any) -> None:
    assert render().names("NetworkPolicy") == []
    rendered = render(
        networkPolicy={"enabled": True, "apiServerPorts": [6444]}, grafana={"enabled": True}
    )
    dns = [53, 53, 5353, 5353, 6444]
    found = {
        "operator": (["health", "metrics"], [*dns, 9090]),
        "prometheus": (["http"], [*dns, 8081, 8404, 9187, 9464, 9465]),
        "agent": (["metrics"], dns),
        "grafana": (["http"], [*dns, 9090]),
        "test": ([], [*dns, 8080]),
    }
    assert len(rendered.names("NetworkPolicy")) == len(found)
    pods = {
        one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
        for one in rendered.objects
        if one["kind"] in ("Deployment", "DaemonSet")
    }
    assert pods | {"test"} == set(found)
    for name, (open_ports, reached) in found.items():
        policy = rendered.find("NetworkPolicy", f"laptime-{name}")["spec"]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        assert policy["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == name
        said = [one["port"] for rule in policy.get("ingress", []) for one in rule["ports"]]
        assert said == open_ports
        (way_out,) = policy["egress"]
        assert [one["port"] for one in way_out["ports"]] == reached
    # Who is not there has none; who asks another Prometheus reaches that one.
    other = render(
        networkPolicy={"enabled": True},
        agent={"enabled": False},
        prometheus={"enabled": False, "url": "https://prometheus.monitoring.svc"},
    )
    assert [name.rpartition("/")[2] for name in other.names("NetworkPolicy")] == [
        "laptime-operator",
        "laptime-test",
    ]
    kubelets = render(networkPolicy={"enabled": True}, agent={"enabled": False})
    (way_out,) = kubelets.find("NetworkPolicy", "laptime-prometheus")["spec"]["egress"]
    assert 10250 in [one["port"] for one in way_out["ports"]]


def _network(rendered: Rendered) -> Any:
    """Return what the operator reads of the policies of runs; None where it makes none."""
    deployment = rendered.find("Deployment", "laptime-operator")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    texts = [one["value"] for one in container["env"] if one["name"] == "LAPTIME_NETWORK"]
    return json.loads(texts[0]) if texts else None


def test_pods_of_runs_are_restricted_unless_the_values_say_otherwise(render: Any) -> None:
    def may(rendered: Rendered) -> bool:
        rules = rendered.find("ClusterRole", "laptime-runs")["rules"]
        return any("networkpolicies" in rule["resources"] for rule in rules)

    usual = render()
    said = _network(usual)
    assert said is not None
    assert said["dns"] == VALUES["networkPolicy"]["runs"]["dns"]
    # Caches of the node, which no selector of pods matches: NodeLocal DNSCache, Cloud DNS of GKE.
    caches = [one["ipBlock"]["cidr"] for one in said["dns"] if "ipBlock" in one]
    assert caches == ["169.254.20.10/32", "169.254.169.254/32"]
    assert said["watchers"] == [OPERATOR_NAMESPACE]
    assert may(usual)
    elsewhere = render(
        prometheus={"enabled": False, "url": "http://prometheus.monitoring.svc:9090"},
        networkPolicy={"runs": {"dns": [], "watchers": ["more"]}},
    )
    assert _network(elsewhere) == {
        "dns": [],
        "watchers": [OPERATOR_NAMESPACE, "monitoring", "more"],
    }
    off = render(networkPolicy={"runs": {"enabled": False}})
    assert _network(off) is None
    assert not may(off)


@pytest.mark.parametrize(
    ("url", "namespaces"),
    [
        ("http://prometheus.monitoring.svc:9090", ["monitoring"]),
        ("https://prometheus.monitoring.svc.cluster.local/path", ["monitoring"]),
        # So the Service is called from other namespaces, too.
        ("http://prometheus-operated.monitoring:9090", ["monitoring"]),
        # In the operator's own namespace.
        ("http://prometheus:9090", []),
        ("https://prometheus.example.org", []),
        ("http://10.0.0.7:9090", []),
        ("http://[fd00::7]:9090", []),
    ],
)
def test_pods_of_runs_are_scraped_from_the_namespace_that_the_address_names(
    render: Any, url: str, namespaces: list[str]
) -> None:
    rendered = render(prometheus={"enabled": False, "url": url})
    assert _network(rendered)["watchers"] == [OPERATOR_NAMESPACE, *namespaces]


def test_the_prometheus_operators_prometheus_of_the_page_may_scrape_pods_of_runs(
    render: Any,
) -> None:
    page = (ROOT / "docs" / "dashboards.md").read_text()
    section = page.partition("## With the Prometheus Operator\n")[2]
    values = yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])
    rendered = render(**values)
    assert "monitoring" in _network(rendered)["watchers"]
    assert rendered.names("PodMonitor")
