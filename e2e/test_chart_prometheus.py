"""The Prometheus that the operator asks: the chart's or one's own, by which ways, with what."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import CHART, RELEASE, Tool
from laptime.measure.prometheus_access import PrometheusAccess

OTHER = "https://prometheus.example"
FILES = "/var/run/secrets/laptime.dev/prometheus"


def test_the_operator_may_ask_another_prometheus(render: Any) -> None:
    other = {"enabled": False, "url": "https://prometheus.example/"}
    assert render(prometheus=other).prometheus_url() == "https://prometheus.example"


@pytest.mark.parametrize(
    ("url", "behind", "ports"),
    [
        ("", None, [9090]),
        ("https://prometheus.example", [], [443]),
        ("http://prometheus.example/path", [], [80]),
        # Policies are asked for the port of the pod, where the Service has another one.
        ("http://prometheus-server.monitoring.svc", None, [80, 9090]),
        ("https://prometheus.monitoring.svc", [8443], [443, 8443]),
        ("http://[fd00::1]:9091", [], [9091]),
        ("http://[fd00::1]", [], [80]),
    ],
)
def test_policies_open_the_ports_of_prometheus_and_those_behind_its_service(
    render: Any, url: str, behind: list[int] | None, ports: list[int]
) -> None:
    policies = {"enabled": True, "apiServerPorts": [6443]}
    if behind is not None:
        policies["prometheusPorts"] = behind
    rendered = render(
        prometheus={"enabled": not url, "url": url},
        networkPolicy=policies,
        grafana={"enabled": True},
    )
    for name in ("laptime-operator", "laptime-grafana"):
        (way_out,) = rendered.find("NetworkPolicy", name)["spec"]["egress"]
        assert [one["port"] for one in way_out["ports"]] == [53, 53, 5353, 5353, 6443, *ports]


@pytest.mark.parametrize(
    ("prometheus", "sources"),
    [
        (
            {"auth": {"type": "bearer", "existingSecret": "client"}},
            [{"secret": {"name": "client", "items": ["token"]}}],
        ),
        (
            {"auth": {"type": "basic", "existingSecret": "client"}, "tls": {"secret": "ca"}},
            [
                {"secret": {"name": "client", "items": ["username", "password"]}},
                {"secret": {"name": "ca", "items": ["ca.crt"]}},
            ],
        ),
        (
            {
                "auth": {"type": "serviceAccount"},
                "tls": {"configMap": "openshift-service-ca.crt", "key": "service-ca.crt"},
            },
            [
                {"serviceAccountToken": {"path": "token"}},
                {"configMap": {"name": "openshift-service-ca.crt", "items": ["service-ca.crt"]}},
            ],
        ),
        (
            {"auth": {"type": "serviceAccount", "audience": "thanos"}},
            [{"serviceAccountToken": {"path": "token", "audience": "thanos"}}],
        ),
        ({"headers": {"X-Scope-OrgID": "bench"}}, []),
        ({"matchers": {"cluster": "east"}}, []),
    ],
)
def test_credentials_and_certificates_of_ones_own_prometheus_are_files(
    render: Any, prometheus: dict[str, Any], sources: list[dict[str, Any]]
) -> None:
    """The keys that it names and no others; it starts without them, and says what is missing."""
    rendered = render(prometheus={"enabled": False, "url": OTHER, **prometheus})
    pod = rendered.pod_of("Deployment", "laptime-operator")
    found = [one["projected"]["sources"] for one in pod["volumes"] if "projected" in one]
    for source in (one for volume in found for one in volume):
        (what,) = source.values()
        if "items" in what:
            assert what.pop("optional") is True
            what["items"] = [one["key"] for one in what["items"]]
    assert found == ([sources] if sources else [])
    (container,) = pod["containers"]
    mounts = [one for one in container["volumeMounts"] if one["name"] == "prometheus"]
    mount = {"name": "prometheus", "mountPath": FILES, "readOnly": True}
    assert mounts == ([mount] if sources else [])
    (said,) = (
        one["value"] for one in container["env"] if one["name"] == "LAPTIME_PROMETHEUS_ACCESS"
    )
    access = PrometheusAccess.from_wire(rendered.prometheus_url(), json.loads(said))
    assert str(access.files) == FILES
    assert access.headers == prometheus.get("headers", {})
    assert access.matchers == prometheus.get("matchers", {})
    kind = prometheus.get("auth", {}).get("type", "")
    assert access.authentication == kind
    # It has no right to read Secrets: the kubelet does.
    for kind in ("Role", "ClusterRole"):
        for one in (one for one in rendered.objects if one["kind"] == kind):
            for rule in one.get("rules") or []:
                assert "secrets" not in rule["resources"] or rule["verbs"] == ["create"]


def test_the_operator_gets_what_was_written_with_every_dollar(render: Any) -> None:
    """Kubernetes expands $(NAME) in the values of variables, and makes one $ of two."""
    text = "a$$b$(POD_IP)$"
    placement = {"description": text}
    rendered = render(
        prometheus={
            "enabled": False,
            "url": f"{OTHER}/$(POD_IP)",
            "headers": {"X-A": text},
            "matchers": {"cluster": text},
        },
        placements={"one": placement},
    )
    (container,) = rendered.pod_of("Deployment", "laptime-operator")["containers"]
    found = {one["name"]: _expanded(one["value"]) for one in container["env"] if "value" in one}
    access = json.loads(found["LAPTIME_PROMETHEUS_ACCESS"])
    assert (access["headers"], access["matchers"]) == ({"X-A": text}, {"cluster": text})
    assert found["LAPTIME_PROMETHEUS_URL"] == f"{OTHER}/$(POD_IP)"
    assert json.loads(found["LAPTIME_PLACEMENTS"]) == {"one": placement}


def _expanded(value: str) -> str:
    """Return what a container gets where a pod says this of a variable, and no $(NAME) is meant."""

    def one(found: re.Match[str]) -> str:
        assert found[0] == "$$", f"Kubernetes expands {found[0]}"
        return "$"

    return re.sub(r"\$\$|\$\(\w+\)", one, value)


def test_the_charts_own_prometheus_is_asked_without_credentials(render: Any) -> None:
    pod = render().pod_of("Deployment", "laptime-operator")
    assert not [one for one in pod["volumes"] if "projected" in one]
    names = [one["name"] for one in pod["containers"][0]["env"]]
    assert "LAPTIME_PROMETHEUS_ACCESS" not in names


BEARER = {"type": "bearer", "existingSecret": "client"}


@pytest.mark.parametrize(
    ("prometheus", "says"),
    [
        ({"url": "https://me:hunter2@prometheus.example"}, "prometheus.url has credentials in it"),
        ({"url": f"{OTHER}/?token=hunter2"}, "prometheus.url has a ? or a #"),
        ({"url": "http://prometheus.example", "auth": BEARER}, "write an https:// address"),
        ({"url": "http://prometheus.example", "tls": {"secret": "ca"}}, "is for an https://"),
        ({"auth": BEARER}, "write its address in prometheus.url"),
        ({"matchers": {"cluster": "east"}}, "write its address in prometheus.url"),
        ({"headers": {"X-Scope-OrgID": "bench"}}, "write its address in prometheus.url"),
        ({"url": OTHER, "auth": {"type": "bearer"}}, "name the Secret with the token"),
        ({"url": OTHER, "auth": {"type": "basic"}}, "the Secret with username and password"),
        ({"url": OTHER, "auth": {"existingSecret": "client"}}, "write one of them in"),
        (
            {"url": OTHER, "auth": {"type": "serviceAccount", "existingSecret": "client"}},
            "is for the types basic and bearer",
        ),
        ({"url": OTHER, "auth": {**BEARER, "audience": "a"}}, "is for the type serviceAccount"),
        ({"url": OTHER, "tls": {"secret": "a", "configMap": "b"}}, "not both"),
        ({"url": OTHER, "headers": {"authorization": "hunter2"}}, "credentials belong in a Secret"),
    ],
)
def test_what_contradicts_itself_is_refused_and_not_repeated(
    helm: Tool, tmp_path: Path, prometheus: dict[str, Any], says: str
) -> None:
    (tmp_path / "values.yaml").write_text(yaml.safe_dump({"prometheus": prometheus}))
    done = helm.run("template", RELEASE, str(CHART), "-f", str(tmp_path / "values.yaml"))
    assert done.returncode != 0
    assert says in done.stderr
    assert "hunter2" not in done.stderr
