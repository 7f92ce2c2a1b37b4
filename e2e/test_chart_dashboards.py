"""Dashboards, Grafana and monitors in the chart: how each is switched, named and secured."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from conftest import CHART, OPERATOR_NAMESPACE, RELEASE, RESTRICTED, Rendered, Tool

FILES = sorted((CHART / "files" / "dashboards").glob("*.json"))
NAMES = [f"{file.stem}-dashboard" for file in FILES]


def _grafana(**more: Any) -> dict[str, Any]:
    return {"enabled": True, **more}


def _pod(rendered: Rendered) -> dict[str, Any]:
    return rendered.pod_of("Deployment", "laptime-grafana")


def _environment(rendered: Rendered) -> dict[str, str]:
    (container,) = _pod(rendered)["containers"]
    return {one["name"]: one.get("value", "") for one in container["env"]}


def test_every_dashboard_is_a_config_map_that_a_sidecar_finds(render: Any) -> None:
    rendered = render()
    assert len(FILES) == 6
    for file, name in zip(FILES, NAMES, strict=True):
        config_map = rendered.find("ConfigMap", name)
        assert config_map["metadata"]["namespace"] == OPERATOR_NAMESPACE
        assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert config_map["metadata"]["annotations"] == {"grafana_folder": "Laptime"}
        assert json.loads(config_map["data"][file.name]) == json.loads(file.read_text())


def test_label_annotation_folder_and_namespace_are_those_of_the_sidecar(render: Any) -> None:
    wanted = {
        "namespace": "monitoring",
        "label": "example.org/dashboard",
        "labelValue": "yes",
        "folderAnnotation": "example.org/folder",
        "folder": "Load tests",
        "labels": {"team": "web"},
    }
    metadata = render(grafana={"dashboards": wanted}).find("ConfigMap", NAMES[0])["metadata"]
    assert metadata["namespace"] == "monitoring"
    assert metadata["labels"]["example.org/dashboard"] == "yes"
    assert metadata["labels"]["team"] == "web"
    assert "grafana_dashboard" not in metadata["labels"]
    assert metadata["annotations"] == {"example.org/folder": "Load tests"}


def test_dashboards_can_be_left_out_and_grafana_has_them_still(render: Any) -> None:
    without = {"dashboards": {"enabled": False}}
    rendered = render(grafana=without)
    assert not [name for name in rendered.names("ConfigMap") if name.endswith("-dashboard")]
    rendered = render(grafana=_grafana(**without))
    assert not [name for name in rendered.names("ConfigMap") if name.endswith("-dashboard")]
    (volume,) = (one for one in _pod(rendered)["volumes"] if one["name"] == "dashboards")
    mounted: dict[str, str] = {}
    for source in volume["projected"]["sources"]:
        mounted |= rendered.find("ConfigMap", source["configMap"]["name"])["data"]
    assert {name: json.loads(text) for name, text in mounted.items()} == {
        file.name: json.loads(file.read_text()) for file in FILES
    }


_LARGEST_ANNOTATIONS = 256 * 1024


def test_every_object_may_be_applied_by_the_client(render: Any) -> None:
    """kubectl apply, and Argo CD unless told otherwise, keep each whole in an annotation of it."""
    rendered = render(
        grafana=_grafana(),
        monitors={"enabled": True, "alerts": True},
        networkPolicy={"enabled": True},
    )
    for one in rendered.objects:
        text = json.dumps(one, ensure_ascii=False, separators=(",", ":"))
        # As Go writes them.
        for sign in "<>&":
            text = text.replace(sign, f"\\u{ord(sign):04x}")
        kept = {
            **(one["metadata"].get("annotations") or {}),
            "kubectl.kubernetes.io/last-applied-configuration": text,
        }
        size = sum(len(part.encode()) for pair in kept.items() for part in pair)
        assert size < _LARGEST_ANNOTATIONS, (one["kind"], one["metadata"]["name"], size)


def test_there_is_no_grafana_unless_it_is_asked_for(render: Any) -> None:
    rendered = render()
    for kind in ("Deployment", "Service", "Secret"):
        assert f"{OPERATOR_NAMESPACE}/laptime-grafana" not in rendered.names(kind)


def test_grafana_has_no_privilege_and_has_limits(render: Any) -> None:
    pod = _pod(render(grafana=_grafana()))
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == RESTRICTED
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}
    kinds = {next(iter(set(one) - {"name"})) for one in pod["volumes"]}
    assert kinds == {"configMap", "emptyDir", "projected"}


def test_grafana_is_the_official_image_or_one_by_its_digest(render: Any) -> None:
    (container,) = _pod(render(grafana=_grafana()))["containers"]
    assert container["image"].startswith("docker.io/grafana/grafana:12.")
    moved = render(grafana=_grafana(), images={"registry": "registry.example"})
    (container,) = _pod(moved)["containers"]
    assert container["image"].startswith("docker.io/grafana/grafana:12.")
    digest = f"sha256:{'0' * 64}"
    images = {"grafana": {"registry": "registry.example", "digest": digest}}
    (container,) = _pod(render(grafana=_grafana(), images=images))["containers"]
    assert container["image"] == f"registry.example/grafana/grafana@{digest}"


def test_grafana_asks_the_prometheus_of_the_chart_or_the_named_one(render: Any) -> None:
    def source(rendered: Rendered) -> Any:
        text = rendered.find("ConfigMap", "laptime-grafana")["data"]["datasources.yaml"]
        (one,) = yaml.safe_load(text)["datasources"]
        return one

    own = source(render(grafana=_grafana()))
    assert own["url"] == "http://laptime-prometheus.laptime-system.svc:9090"
    assert own["jsonData"]["timeInterval"] == "1s"
    # Its Prometheus packs no answer while something is measured.
    assert own["jsonData"]["httpHeaderName1"] == "Accept-Encoding"
    assert own["secureJsonData"] == {"httpHeaderValue1": "identity"}
    other = {"enabled": False, "url": "http://prometheus.example:9090/"}
    named = source(render(grafana=_grafana(), prometheus=other))
    assert named["url"] == "http://prometheus.example:9090"


def test_grafana_asks_with_what_the_operator_asks_with(render: Any) -> None:
    def rendered(**prometheus: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        other = {"enabled": False, "url": "https://prometheus.example", **prometheus}
        found = render(grafana=_grafana(), prometheus=other)
        text = found.find("ConfigMap", "laptime-grafana")["data"]["datasources.yaml"]
        (one,) = yaml.safe_load(text)["datasources"]
        pod = _pod(found)
        volumes = [
            one["projected"]["sources"] for one in pod["volumes"] if one["name"] == "prometheus"
        ]
        mounts = [one["mountPath"] for one in pod["containers"][0]["volumeMounts"]]
        assert (folder in mounts) is bool(volumes)
        return one, volumes[0] if volumes else []

    folder = "/var/run/secrets/laptime.dev/prometheus"
    source, files = rendered(
        auth={"type": "bearer", "existingSecret": "client"},
        tls={"configMap": "ca"},
        headers={"X-Scope-OrgID": "a$b"},
    )
    headers = {
        source["jsonData"][f"httpHeaderName{at}"]: source["secureJsonData"][f"httpHeaderValue{at}"]
        for at in (1, 2)
    }
    # Grafana reads $$ as a $.
    bearer = f"Bearer $__file{{{folder}/token}}"
    assert headers == {"X-Scope-OrgID": "a$$b", "Authorization": bearer}
    assert source["jsonData"]["tlsAuthWithCACert"] is True
    assert source["secureJsonData"]["tlsCACert"] == f"$__file{{{folder}/ca.crt}}"
    # Without them it would start and have no figures, for good.
    assert [one["optional"] for source in files for one in source.values()] == [False, False]
    source, _ = rendered(auth={"type": "basic", "existingSecret": "client"})
    assert source["basicAuth"] is True
    assert source["basicAuthUser"] == f"$__file{{{folder}/username}}"
    assert source["secureJsonData"] == {"basicAuthPassword": f"$__file{{{folder}/password}}"}
    source, files = rendered()
    assert files == []
    assert "secureJsonData" not in source


def test_grafana_cannot_have_the_operators_own_token(helm: Tool) -> None:
    values = {
        "grafana.enabled": "true",
        "prometheus.url": "https://prometheus.example",
        "prometheus.auth.type": "serviceAccount",
    }
    flags = [flag for name, value in values.items() for flag in ("--set", f"{name}={value}")]
    done = helm.run("template", RELEASE, str(CHART), *flags)
    assert done.returncode != 0
    assert "name a Secret with a lasting token" in done.stderr


def test_grafana_without_any_prometheus_is_refused(helm: Tool) -> None:
    done = helm.run(
        *("template", RELEASE, str(CHART), "--set", "grafana.enabled=true"),
        *("--set", "prometheus.enabled=false"),
    )
    assert done.returncode != 0
    assert "grafana.enabled needs a Prometheus" in done.stderr


def test_the_password_is_random_or_that_of_an_existing_secret(render: Any) -> None:
    def password(rendered: Rendered) -> str:
        return str(rendered.find("Secret", "laptime-grafana")["data"]["admin-password"])

    first, second = (password(render(grafana=_grafana())) for _ in range(2))
    assert first != second
    admin = {"existingSecret": "mine", "userKey": "name", "passwordKey": "word"}
    rendered = render(grafana=_grafana(admin=admin))
    assert rendered.names("Secret") == []
    (container,) = _pod(rendered)["containers"]
    references = [one["valueFrom"]["secretKeyRef"] for one in container["env"][:2]]
    assert references == [{"name": "mine", "key": "name"}, {"name": "mine", "key": "word"}]


def test_grafana_tells_nobody_and_loads_nothing(render: Any) -> None:
    found = _environment(render(grafana=_grafana()))
    for name in ("ANALYTICS_REPORTING_ENABLED", "NEWS_NEWS_FEED_ENABLED", "USERS_ALLOW_SIGN_UP"):
        assert found[f"GF_{name}"] == "false"
    assert found["GF_PLUGINS_PREINSTALL_DISABLED"] == "true"
    assert "GF_AUTH_ANONYMOUS_ENABLED" not in found


def test_settings_of_grafana(render: Any) -> None:
    env = {"GF_USERS_DEFAULT_THEME": "light", "GF_OTHER": "x"}
    url = "https://example.org/grafana/"
    found = _environment(render(grafana=_grafana(anonymous=True, rootUrl=url, env=env)))
    assert found["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert found["GF_SERVER_ROOT_URL"] == url
    assert found["GF_SERVER_SERVE_FROM_SUB_PATH"] == "true"
    assert (found["GF_USERS_DEFAULT_THEME"], found["GF_OTHER"]) == ("light", "x")
    plain = _environment(render(grafana=_grafana(rootUrl="https://grafana.example.org/")))
    assert "GF_SERVER_SERVE_FROM_SUB_PATH" not in plain


def test_grafana_may_keep_its_data(render: Any) -> None:
    persistence = {"enabled": True, "storageClass": "fast"}
    rendered = render(grafana=_grafana(persistence=persistence))
    claim = rendered.find("PersistentVolumeClaim", "laptime-grafana")["spec"]
    assert claim["storageClassName"] == "fast"
    mine = {"enabled": True, "existingClaim": "mine"}
    rendered = render(grafana=_grafana(persistence=mine))
    assert rendered.names("PersistentVolumeClaim") == []
    volumes = {one["name"]: one for one in _pod(rendered)["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"] == {"claimName": "mine"}


def test_monitors_are_there_when_asked_for_and_scrape_what_the_chart_does(render: Any) -> None:
    assert render().names("PodMonitor") == render().names("ServiceMonitor") == []
    labels = {"release": "kube-prometheus-stack"}
    rendered = render(monitors={"enabled": True, "interval": "2s", "labels": labels})
    names = ["laptime-agent", "laptime-haproxy", "laptime-runs"]
    assert rendered.names("PodMonitor") == [f"{OPERATOR_NAMESPACE}/{name}" for name in names]
    for kind, name in [("ServiceMonitor", "laptime-operator"), *(("PodMonitor", n) for n in names)]:
        metadata = rendered.find(kind, name)["metadata"]
        assert metadata["labels"]["release"] == "kube-prometheus-stack"
    text = rendered.find("ConfigMap", "laptime-prometheus")["data"]["prometheus.yml"]
    jobs = {job["job_name"]: job for job in yaml.safe_load(text)["scrape_configs"]}
    haproxy = rendered.find("PodMonitor", "laptime-haproxy")["spec"]
    (endpoint,) = haproxy["podMetricsEndpoints"]
    assert endpoint["interval"] == "2s"
    kept = jobs["laptime-haproxy"]["metric_relabel_configs"][0]["regex"]
    assert endpoint["metricRelabelings"][0]["regex"] == kept
    assert haproxy["namespaceSelector"] == {"matchNames": ["default"]}
    assert haproxy["sampleLimit"] == jobs["laptime-haproxy"]["sample_limit"]


def test_labels_of_runs_are_kept_by_monitors_and_pods_of_runs_take_none(render: Any) -> None:
    rendered = render(monitors={"enabled": True}, runNamespaces=["*"])
    operators = rendered.find("ServiceMonitor", "laptime-operator")["spec"]["endpoints"]
    assert all(one["honorLabels"] is True for one in operators)
    (agent,) = rendered.find("PodMonitor", "laptime-agent")["spec"]["podMetricsEndpoints"]
    assert agent["honorLabels"] is True
    for name in ("laptime-runs", "laptime-haproxy"):
        spec = rendered.find("PodMonitor", name)["spec"]
        assert spec["namespaceSelector"] == {"any": True}
        assert "honorLabels" not in spec["podMetricsEndpoints"][0]


def test_the_agents_target_has_no_labels_that_its_samples_would_take(render: Any) -> None:
    """The Prometheus Operator names pod and container of each; of a whole pod's CPU it is none."""
    rendered = render(monitors={"enabled": True})
    (agent,) = rendered.find("PodMonitor", "laptime-agent")["spec"]["podMetricsEndpoints"]
    (dropped,) = (one["regex"] for one in agent["relabelings"] if one.get("action") == "labeldrop")
    assert all(re.fullmatch(dropped, one) for one in ("pod", "container"))
    assert not re.fullmatch(dropped, "node")
    assert "metricRelabelings" not in agent


def test_the_service_monitor_finds_a_port_of_the_service(render: Any) -> None:
    rendered = render(monitors={"enabled": True})
    service = rendered.find("Service", "laptime-operator")
    monitor = rendered.find("ServiceMonitor", "laptime-operator")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    ports = {one["name"] for one in service["spec"]["ports"]}
    assert {one["port"] for one in monitor["endpoints"]} <= ports
