"""Agent and Prometheus in the chart: what they may do, what they see, and how each is left out."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from conftest import CHART, OPERATOR_NAMESPACE, RELEASE, RESTRICTED, ROOT, Rendered, Tool
from laptime.manifests.context import ImageSet
from laptime.reconcile.metrics import Metrics


@pytest.fixture
def render(render: Any) -> Any:
    """Return a function from values to what the chart renders, with both where not left out."""

    def watched(**values: Any) -> Rendered:
        for name in ("agent", "prometheus"):
            values[name] = {"enabled": True, **values.get(name, {})}
        rendered: Rendered = render(**values)
        return rendered

    return watched


def _jobs(rendered: Rendered) -> dict[str, dict[str, Any]]:
    text = rendered.find("ConfigMap", "laptime-prometheus")["data"]["prometheus.yml"]
    return {job["job_name"]: job for job in yaml.safe_load(text)["scrape_configs"]}


@pytest.mark.parametrize(
    ("kind", "name"), [("DaemonSet", "laptime-agent"), ("Deployment", "laptime-prometheus")]
)
def test_the_pods_have_no_privilege_and_have_limits(render: Any, kind: str, name: str) -> None:
    pod = render().pod_of(kind, name)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    (container,) = pod["containers"]
    assert container["securityContext"] == RESTRICTED
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}


def test_prometheus_is_the_official_image_or_the_one_built_here(render: Any) -> None:
    def image(**images: Any) -> str:
        pod = render(images=images).pod_of("Deployment", "laptime-prometheus")
        (container,) = pod["containers"]
        return str(container["image"])

    assert image().startswith("docker.io/prom/prometheus:v")
    # `make push` fills a registry with Laptime's own images alone.
    assert image(registry="registry.example").startswith("docker.io/prom/prometheus:v")
    built = {"registry": "", "repository": "laptime/prometheus", "tag": ""}
    assert image(prometheus=built) == "docker.io/laptime/prometheus:0.1.0"
    assert image(registry="registry.example", prometheus=built) == (
        "registry.example/laptime/prometheus:0.1.0"
    )


def test_the_agent_sees_two_folders_of_the_host_and_writes_none(render: Any) -> None:
    pod = render().pod_of("DaemonSet", "laptime-agent")
    assert [one["hostPath"]["path"] for one in pod["volumes"]] == ["/sys/fs/cgroup", "/proc"]
    (container,) = pod["containers"]
    for mount in container["volumeMounts"]:
        assert mount["readOnly"] is True
        assert mount["recursiveReadOnly"] == "IfPossible"


def test_openshift_is_told_to_admit_the_agents_pod_and_no_more(render: Any) -> None:
    """The constraints of the page allow what the pod has, its seccomp profile included."""
    page = (ROOT / "docs" / "real-cluster.md").read_text()
    allowed = yaml.safe_load(page.partition("# agent-scc.yaml\n")[2].partition("```")[0])
    chosen = {"compatibility": {"openshift": {"adaptSecurityContext": "force"}}}
    pod = render(**{"global": chosen}).pod_of("DaemonSet", "laptime-agent")
    account = f"system:serviceaccount:{OPERATOR_NAMESPACE}:{pod['serviceAccountName']}"
    assert allowed["users"] == [account]
    assert allowed["runAsUser"] == {"type": "MustRunAsNonRoot"}
    assert allowed["seccompProfiles"] == ["runtime/default"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    # The token of its account is a projected volume.
    kinds = {kind for one in pod["volumes"] for kind in one if kind != "name"}
    assert set(allowed["volumes"]) == {*kinds, "projected"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": allowed["allowPrivilegeEscalation"],
        "readOnlyRootFilesystem": allowed["readOnlyRootFilesystem"],
        "capabilities": {"drop": allowed["requiredDropCapabilities"]},
    }
    given = {key for key, said in allowed.items() if key.startswith("allow") and said}
    assert given == {"allowHostDirVolumePlugin"}


def test_without_network_figures_the_agent_does_not_see_processes(render: Any) -> None:
    pod = render(agent={"network": False}).pod_of("DaemonSet", "laptime-agent")
    assert [one["hostPath"]["path"] for one in pod["volumes"]] == ["/sys/fs/cgroup"]
    assert not [one for one in pod["containers"][0]["args"] if one.startswith("--proc")]


def test_prometheus_has_no_folder_of_the_host(render: Any) -> None:
    pod = render().pod_of("Deployment", "laptime-prometheus")
    assert [set(one) - {"name"} for one in pod["volumes"]] == [{"configMap"}, {"emptyDir"}]


@pytest.mark.parametrize(
    ("values", "own", "elsewhere", "everywhere"),
    [
        ({}, ["default"], ["default"], False),
        ({"runNamespaces": ["a", "b"]}, ["a", "b"], ["a", "b"], False),
        # Whoever names one more means those that have runs anyway, too.
        (
            {"runNamespaces": ["a"], "watching": {"namespaces": ["b", "a"]}},
            ["a", "b"],
            ["a", "b"],
            False,
        ),
        ({"runNamespaces": [], "watching": {"namespaces": ["b"]}}, ["b"], ["b"], False),
        ({"runNamespaces": ["*"]}, ["*"], [], True),
        ({"watching": {"namespaces": ["*"]}}, ["*"], [], True),
        ({"runNamespaces": ["*"], "watching": {"namespaces": ["b"]}}, ["b"], ["b"], False),
        ({"runNamespaces": []}, [], [], False),
    ],
)
def test_they_see_the_pods_of_the_namespaces_with_runs_and_of_no_others(
    render: Any, values: dict[str, Any], own: list[str], elsewhere: list[str], everywhere: bool
) -> None:
    rendered = render(**values)
    for name in ("laptime-agent", "laptime-prometheus"):
        bindings = [one for one in rendered.names("RoleBinding") if one.endswith(f"/{name}")]
        assert bindings == [f"{namespace}/{name}" for namespace in elsewhere]
        assert (name in rendered.names("ClusterRoleBinding")) is everywhere
    arguments = rendered.pod_of("DaemonSet", "laptime-agent")["containers"][0]["args"]
    assert [one for one in arguments if one.startswith("--namespace")] == [
        f"--namespace={namespace}" for namespace in own
    ]
    jobs = _jobs(rendered)
    assert ("laptime-runs" in jobs) is bool(own)
    if own:
        (discovery,) = jobs["laptime-runs"]["kubernetes_sd_configs"]
        assert discovery.get("namespaces", {"names": ["*"]}) == {"names": own}


def test_agents_and_operator_are_looked_for_where_the_chart_is(render: Any) -> None:
    """A Prometheus of one's own that takes this configuration is in another namespace."""
    jobs = _jobs(render())
    for name in ("laptime-agent", "laptime-operator", "laptime-seconds"):
        (discovery,) = jobs[name]["kubernetes_sd_configs"]
        assert discovery["namespaces"] == {"names": [OPERATOR_NAMESPACE]}


def test_the_role_for_watching_is_to_list_pods(render: Any) -> None:
    assert render().find("ClusterRole", "laptime-watch")["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
    ]


def test_readings_keep_their_labels_and_their_time(render: Any) -> None:
    job = _jobs(render())["laptime-agent"]
    assert job["honor_labels"] is True
    assert job["honor_timestamps"] is True
    assert job["track_timestamps_staleness"] is True


def test_pods_of_runs_cannot_claim_to_be_others_nor_flood(render: Any) -> None:
    jobs = _jobs(render())
    for name in ("laptime-runs", "laptime-haproxy"):
        assert "honor_labels" not in jobs[name]
        assert jobs[name]["sample_limit"] <= 2000
        assert jobs[name]["body_size_limit"] == "2MB"


def test_of_which_run_a_pod_is_its_labels_say_and_no_sample_of_it(render: Any) -> None:
    """A sample may say what its target has no label for: so a target must have these."""
    rendered = render(monitors={"enabled": True})
    jobs = _jobs(rendered)
    of_pods = "__meta_kubernetes_pod_label_laptime_dev_"
    needed = [f"{of_pods}{label}" for label in ("run", "run_uid", "component")]
    for name in ("laptime-runs", "laptime-haproxy"):
        (discovery,) = jobs[name]["kubernetes_sd_configs"]
        assert discovery["selectors"][0]["label"].split(",")[0] == "laptime.dev/run-uid"
        kept = {"regex": ".+;.+;.+", "action": "keep"}
        assert {"source_labels": needed, **kept} in jobs[name]["relabel_configs"]
        monitor = rendered.find("PodMonitor", name)["spec"]
        has, _ = monitor["selector"]["matchExpressions"]
        assert has == {"key": "laptime.dev/run-uid", "operator": "Exists"}
        (endpoint,) = monitor["podMetricsEndpoints"]
        assert {"sourceLabels": needed, **kept} in endpoint["relabelings"]
        for rules in (jobs[name]["relabel_configs"], endpoint["relabelings"]):
            (taken,) = (one["regex"] for one in rules if one.get("action") == "labelmap")
            for label in ("run", "run_uid", "component", "server", "load", "trial"):
                found = re.fullmatch(taken, f"{of_pods}{label}")
                assert found is not None
                assert found[1] == label


def test_prometheus_goes_nowhere_that_a_pod_of_a_run_sends_it(render: Any) -> None:
    """It may get where such a pod may not; what it is told there would have the pod's labels."""
    rendered = render(monitors={"enabled": True})
    jobs = _jobs(rendered)
    for name in ("laptime-runs", "laptime-haproxy"):
        assert jobs[name]["follow_redirects"] is False
        (endpoint,) = rendered.find("PodMonitor", name)["spec"]["podMetricsEndpoints"]
        assert endpoint["followRedirects"] is False


def test_without_the_agent_the_kubelets_are_asked(render: Any) -> None:
    rendered = render(agent={"enabled": False})
    assert rendered.names("DaemonSet") == []
    assert {"kubelet", "laptime-runs"} <= set(_jobs(rendered))
    rules = rendered.find("ClusterRole", "laptime-prometheus-kubelet")["rules"]
    assert [(rule["resources"], rule["verbs"]) for rule in rules] == [
        (["nodes"], ["list", "watch"]),
        (["nodes/metrics"], ["get"]),
    ]
    assert "kubelet" not in _jobs(render())


def test_both_can_be_left_out(render: Any) -> None:
    rendered = render(agent={"enabled": False}, prometheus={"enabled": False})
    assert rendered.names("DaemonSet") == []
    assert rendered.names("Deployment") == [f"{OPERATOR_NAMESPACE}/laptime-operator"]
    assert "laptime-watch" not in rendered.names("ClusterRole")
    assert rendered.prometheus_url() == ""


@pytest.mark.parametrize(
    ("size", "retention", "fits"),
    [
        ("2Gi", "1638MB", True),
        ("2Gi", "1639MB", False),
        ("2Gi", "50GB", False),
        ("1.5T", "1GB", True),
        (2147483648, "1638MB", True),
        (2147483648, "1639MB", False),
    ],
)
def test_prometheus_keeps_no_more_than_its_volume_has_room_for(
    helm: Tool, tmp_path: Path, size: str | int, retention: str, fits: bool
) -> None:
    """Over the limit of an emptyDir the kubelet evicts the pod, and its samples are gone."""
    persistence: dict[str, Any] = {"size": size}

    def said() -> tuple[int, str]:
        file = tmp_path / "values.yaml"
        prometheus = {"retentionSize": retention, "persistence": persistence}
        file.write_text(yaml.safe_dump({"prometheus": prometheus}))
        done = helm.run("template", RELEASE, str(CHART), "-f", str(file))
        return done.returncode, done.stderr

    code, error = said()
    assert (code == 0) is fits, error
    assert fits or "prometheus.retentionSize is" in error
    # How large a claim is that was there before, its size does not say.
    persistence |= {"enabled": True, "existingClaim": "mine"}
    assert said()[0] == 0


def test_exporters_stand_where_there_is_a_prometheus(render: Any) -> None:
    assert render().images()["exporter"] == "docker.io/laptime/exporter:0.1.0"
    assert ImageSet.from_wire(render().images()).exporter is not None
    other = {"enabled": False, "url": "http://prometheus.example"}
    assert "exporter" in render(prometheus=other).images()
    assert "exporter" not in render(prometheus={"enabled": False}).images()
    assert "exporter" not in render(watching={"exporters": False}).images()


def test_samples_may_outlive_the_pod(render: Any) -> None:
    rendered = render(prometheus={"persistence": {"enabled": True, "storageClass": "fast"}})
    claim = rendered.find("PersistentVolumeClaim", "laptime-prometheus")["spec"]
    assert claim["storageClassName"] == "fast"
    volumes = rendered.pod_of("Deployment", "laptime-prometheus")["volumes"]
    assert volumes[1]["persistentVolumeClaim"] == {"claimName": "laptime-prometheus"}
    named = render(prometheus={"persistence": {"enabled": True, "existingClaim": "mine"}})
    assert named.names("PersistentVolumeClaim") == []


def test_a_new_configuration_restarts_prometheus(render: Any) -> None:
    def checksum(rendered: Rendered) -> str:
        template = rendered.find("Deployment", "laptime-prometheus")["spec"]["template"]
        return str(template["metadata"]["annotations"]["laptime.dev/config-checksum"])

    assert checksum(render()) != checksum(render(prometheus={"scrapeInterval": "5s"}))


def test_a_new_version_alone_restarts_neither_prometheus_nor_grafana(
    helm: Tool, tmp_path: Path
) -> None:
    """What they have in an emptyDir would be lost, in the middle of a run perhaps."""
    newer = tmp_path / "newer"
    shutil.copytree(CHART, newer)
    chart = yaml.safe_load((newer / "Chart.yaml").read_text())
    chart |= {"version": "99.0.0", "appVersion": "99.0.0"}
    (newer / "Chart.yaml").write_text(yaml.safe_dump(chart))

    def pods(folder: Path) -> dict[str, Any]:
        text = helm("template", RELEASE, str(folder), "--set", "grafana.enabled=true")
        objects = [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]
        return {
            one["metadata"]["name"]: one["spec"]["template"]
            for one in objects
            if one["kind"] in ("Deployment", "DaemonSet")
        }

    before, after = pods(CHART), pods(newer)
    assert before.keys() == after.keys()
    changed = {name for name, pod in after.items() if pod != before[name]}
    # Those that come with the version are of new images.
    assert changed == {"laptime-operator", "laptime-agent"}


def test_placement_is_passed_on(render: Any) -> None:
    placement = {"nodeSelector": {"pool": "bench"}, "priorityClassName": "high"}
    rendered = render(agent=placement, prometheus=placement)
    for kind, name in (("DaemonSet", "laptime-agent"), ("Deployment", "laptime-prometheus")):
        pod = rendered.pod_of(kind, name)
        assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "bench"}
        assert pod["priorityClassName"] == "high"
    assert rendered.pod_of("DaemonSet", "laptime-agent")["tolerations"] == [{"operator": "Exists"}]


def test_only_the_operator_is_asked_what_the_operator_says(render: Any) -> None:
    """A pod of a run may say anything: its labels are set, and no other names than its are kept."""
    rendered = render(monitors={"enabled": True})
    jobs = _jobs(rendered)
    for name in ("laptime-runs", "laptime-haproxy"):
        (kept,) = jobs[name]["metric_relabel_configs"]
        assert (kept["source_labels"], kept["action"]) == (["__name__"], "keep")
        (endpoint,) = rendered.find("PodMonitor", name)["spec"]["podMetricsEndpoints"]
        same = {"sourceLabels": ["__name__"], "regex": kept["regex"], "action": "keep"}
        assert endpoint["metricRelabelings"] == [same]
        for said in _names(Metrics().text()):
            assert not re.fullmatch(kept["regex"], said), said
        assert not jobs[name].get("honor_labels")


def _names(text: bytes) -> set[str]:
    """Return the names of metrics as they are written."""
    return set(re.findall(r"^# TYPE (\S+) ", text.decode(), re.MULTILINE))


@pytest.mark.parametrize("agent", [True, False])
def test_no_agent_is_missed_that_was_left_out(render: Any, agent: bool) -> None:
    said = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
    (group,) = said["groups"]
    if not agent:
        group["rules"] = [one for one in group["rules"] if one["alert"] != "LaptimeAgentSilent"]
    rendered = render(agent={"enabled": agent}, monitors={"alerts": True})
    assert rendered.find("PrometheusRule", "laptime")["spec"] == said


def test_alerts_may_be_of_one_cluster_where_several_are_in_one_prometheus(render: Any) -> None:
    """Else the operator of one cluster is not missed while that of another one says something."""
    said = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"][0]["rules"]
    hostile = 'a "b" \\ $1 ${2}'
    matchers = {"cluster": "east", "region": hostile}
    rendered = render(monitors={"alerts": True, "alertMatchers": matchers})
    (group,) = rendered.find("PrometheusRule", "laptime")["spec"]["groups"]
    assert [one["alert"] for one in group["rules"]] == [one["alert"] for one in said]
    for rule, plain in zip(group["rules"], said, strict=True):
        # Whose alert it is: there is no label of a series in it that says so.
        assert rule["labels"] == {**plain["labels"], **matchers}
        assert (rule["annotations"], rule.get("for")) == (plain["annotations"], plain.get("for"))
        selectors = _selectors(rule["expr"])
        assert [one.name for one in selectors] == [one.name for one in _selectors(plain["expr"])]
        for one in selectors:
            found = {matcher.name: matcher.value for matcher in one.matchers.matchers}
            assert found.items() >= matchers.items()


def _selectors(expr: str) -> list[promql_parser.VectorSelector]:
    """Return what an expression reads."""
    found: list[promql_parser.VectorSelector] = []

    def visit(node: Any) -> bool:
        if isinstance(node, promql_parser.MatrixSelector):
            node = node.vector_selector
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)
        return True

    promql_parser.walk(promql_parser.parse(expr), visit)
    return found


def test_the_seconds_of_trials_are_the_same_series_whichever_operator_says_them(
    render: Any,
) -> None:
    rendered = render(monitors={"enabled": True})
    seconds = _jobs(rendered)["laptime-seconds"]
    assert seconds["honor_labels"] is seconds["honor_timestamps"] is True
    assert seconds["scrape_native_histograms"] is True
    (dropped,) = seconds["metric_relabel_configs"]
    assert dropped == {"regex": "instance|pod|container|service|endpoint", "action": "labeldrop"}
    monitor = rendered.find("ServiceMonitor", "laptime-operator")["spec"]
    assert monitor["scrapeNativeHistograms"] is True
    (endpoint,) = (one for one in monitor["endpoints"] if one.get("path") == "/seconds")
    assert endpoint["honorLabels"] is endpoint["honorTimestamps"] is True
    assert endpoint["metricRelabelings"] == [dropped]


def test_a_prometheus_operator_that_does_not_know_native_histograms_is_told_of_none(
    render: Any,
) -> None:
    """A field that its CustomResourceDefinition lacks fails the installation."""
    rendered = render(monitors={"enabled": True, "nativeHistograms": False})
    monitor = rendered.find("ServiceMonitor", "laptime-operator")["spec"]
    assert "scrapeNativeHistograms" not in monitor
