"""The chart: what it renders, what it refuses, and what it leaves behind."""

from __future__ import annotations

import json
import logging
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import CHART, CRD_FILE, CRD_NAME, OPERATOR_NAMESPACE, RELEASE, ROOT, Tool
from laptime.catalog import presets
from laptime.manifests.context import ImageSet
from laptime.manifests.placement import Placement
from laptime.reconcile.placements import Placements
from laptime.settings import Settings, load_settings

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
DIGEST = "sha256:" + "0123456789abcdef" * 4


class Rendered:
    """The objects that the chart renders with some values."""

    def __init__(self, helm: Tool, folder: Path, values: dict[str, Any]) -> None:
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        text = helm("template", RELEASE, str(CHART), "-n", OPERATOR_NAMESPACE, "-f", str(file))
        # The one written in C: CRD and dashboards take the other one seconds.
        documents = yaml.load_all(text, yaml.CSafeLoader)
        self.objects: list[dict[str, Any]] = [one for one in documents if one]

    def find(self, kind: str, name: str) -> dict[str, Any]:
        """Return the one object of that kind and name."""
        (found,) = (
            one for one in self.objects if one["kind"] == kind and one["metadata"]["name"] == name
        )
        return found

    def names(self, kind: str) -> list[str]:
        """Return the names of the objects of a kind, with their namespace where they have one."""
        return [
            "/".join(filter(None, (one["metadata"].get("namespace"), one["metadata"]["name"])))
            for one in self.objects
            if one["kind"] == kind
        ]

    def images(self) -> dict[str, Any]:
        """Return what the operator reads from its file of images."""
        document = json.loads(self.find("ConfigMap", "laptime-images")["data"]["images.json"])
        assert isinstance(document, dict)
        return document

    def pods(self) -> Iterator[dict[str, Any]]:
        """Yield the spec of each pod: the operator's and that of `helm test`."""
        for one in self.objects:
            if one["kind"] == "Deployment" and one["metadata"]["name"] == "laptime-operator":
                yield one["spec"]["template"]["spec"]
            elif one["kind"] == "Pod":
                yield one["spec"]


@pytest.fixture
def render(helm: Tool, tmp_path: Path) -> Any:
    """Return a function from values to what the chart renders."""
    return lambda **values: Rendered(helm, tmp_path, values)


def test_lint_is_clean(helm: Tool) -> None:
    helm("lint", "--strict", str(CHART))


def test_version_is_that_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = (ROOT / "VERSION").read_text().strip()
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_the_crd_is_the_generated_file(render: Any) -> None:
    crd = render().find("CustomResourceDefinition", CRD_NAME)
    assert crd == yaml.safe_load(CRD_FILE.read_text())
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert render(crds={"enabled": False}).names("CustomResourceDefinition") == []


# ---- images


def test_images_have_the_shape_that_the_operator_reads(render: Any) -> None:
    document = render().images()
    images = ImageSet.from_wire(document)
    assert images.generator == "docker.io/laptime/k6:0.1.0"
    assert set(images.servers) == set(presets())
    for preset, image in images.servers.items():
        assert image == f"docker.io/laptime/{presets()[preset].image}:0.1.0"


def test_every_image_may_come_from_elsewhere(render: Any) -> None:
    rendered = render(
        images={
            "registry": "registry.example/mirror",
            "tag": "2.0",
            "pullPolicy": "Always",
            "pullSecrets": ["pull"],
            "operator": {"digest": DIGEST},
            "postgres": {"registry": "other.example:5000", "repository": "pg", "tag": "17"},
            "servers": {"axum-sqlx": {"tag": "dev"}, "mine": {"repository": "me/mine"}},
        }
    )
    images = rendered.images()
    assert images["operator"] == f"registry.example/mirror/laptime/operator@{DIGEST}"
    assert images["postgres"] == "other.example:5000/pg:17"
    assert images["haproxy"] == "registry.example/mirror/laptime/haproxy:2.0"
    assert images["servers"]["axum-sqlx"] == (
        "registry.example/mirror/laptime/server-axum-sqlx:dev"
    )
    assert images["servers"]["mine"] == "registry.example/mirror/me/mine:2.0"
    assert (images["pullPolicy"], images["pullSecrets"]) == ("Always", ["pull"])
    for pod in rendered.pods():
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        (container,) = pod["containers"]
        assert container["image"] == images["operator"]
        assert container["imagePullPolicy"] == "Always"


def test_new_images_restart_the_operator(render: Any) -> None:
    def checksum(rendered: Rendered) -> str:
        template = rendered.find("Deployment", "laptime-operator")["spec"]["template"]
        return str(template["metadata"]["annotations"]["laptime.dev/images-checksum"])

    assert checksum(render()) != checksum(render(images={"haproxy": {"tag": "next"}}))


# ---- the operator's pod


def test_what_is_applied_without_helm_has_no_pod_that_helm_would_start_for_a_test(
    helm: Tool,
) -> None:
    text = helm("template", RELEASE, str(CHART), "--skip-tests")
    assert "Pod" not in {one["kind"] for one in yaml.load_all(text, yaml.CSafeLoader) if one}
    assert "helm template --skip-tests" in (ROOT / "docs" / "real-cluster.md").read_text()


def test_every_pod_is_restricted_and_has_limits(render: Any) -> None:
    pods = list(render().pods())
    assert len(pods) == 2
    for pod in pods:
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["runAsUser"] == 10001
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert set(container["resources"]["limits"]) == {"cpu", "memory"}


def test_several_operators_have_a_lease_and_a_budget(render: Any) -> None:
    assert not {"Role", "PodDisruptionBudget"} & {one["kind"] for one in render().objects}
    rendered = render(operator={"replicas": 2})
    spec = rendered.find("Deployment", "laptime-operator")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (2, {"type": "Recreate"})
    (container,) = spec["template"]["spec"]["containers"]
    (lease,) = (one for one in container["env"] if one["name"] == "LAPTIME_LEASE_NAMESPACE")
    assert lease["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.namespace"
    # A lease of this name in this namespace, and no right beside it.
    rules = rendered.find("Role", "laptime-operator")["rules"]
    assert {resource for rule in rules for resource in rule["resources"]} == {"leases"}
    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in rules] == [
        (None, ["create"]),
        (["laptime-operator"], ["get", "patch"]),
    ]
    budget = rendered.find("PodDisruptionBudget", "laptime-operator")["spec"]
    assert budget["minAvailable"] == 1
    pods = spec["template"]["metadata"]["labels"]
    assert budget["selector"]["matchLabels"].items() <= pods.items()


def test_the_operator_is_one_and_answers_to_probes(render: Any) -> None:
    spec = render().find("Deployment", "laptime-operator")["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}
    (container,) = spec["template"]["spec"]["containers"]
    assert container["args"] == ["operator"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": "health"}
    environment = {one["name"]: one.get("value") for one in container["env"]}
    assert environment == {
        "LAPTIME_NAMESPACE": None,
        "POD_IP": None,
        "MALLOC_ARENA_MAX": "2",
        "LAPTIME_IMAGES_FILE": "/etc/laptime/images.json",
        "LAPTIME_LOG_LEVEL": "info",
        "LAPTIME_PROMETHEUS_URL": (
            f"http://laptime-prometheus.{OPERATOR_NAMESPACE}.svc:9090"
            if VALUES["prometheus"]["enabled"]
            else ""
        ),
        "LAPTIME_NETWORK": environment["LAPTIME_NETWORK"],
        "LAPTIME_RUNS": '{"caps":{"*":{"duration":"24h"}},"priorities":{}}',
        # No limits: nulls are left out.
        "LAPTIME_HISTORY": '{"minimumAgeSeconds":86400}',
        "LAPTIME_EXTENSIONS": (
            "btree_gin btree_gist citext cube earthdistance fuzzystrmatch hstore intarray ltree "
            "pg_trgm pgcrypto tablefunc unaccent uuid-ossp"
        ),
    }


def test_a_domain_of_the_cluster_that_is_said_is_taken(render: Any) -> None:
    deployment = render(operator={"clusterDomain": "k8s.example"}).find(
        "Deployment", "laptime-operator"
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    environment = {one["name"]: one.get("value") for one in container["env"]}
    assert environment["LAPTIME_CLUSTER_DOMAIN"] == "k8s.example"
    assert environment["LAPTIME_PROMETHEUS_URL"] == (
        f"http://laptime-prometheus.{OPERATOR_NAMESPACE}.svc.k8s.example:9090"
    )


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


def test_the_notes_say_from_where_pods_of_runs_are_scraped(helm: Tool) -> None:
    said = "metrics be read from: laptime-system, monitoring."
    url = "prometheus.url=http://prometheus.monitoring:9090"
    assert said in _notes(helm, url)
    assert "metrics be read from" not in _notes(helm, url, "networkPolicy.runs.enabled=false")
    assert "metrics be read from" not in _notes(helm)


def test_the_notes_say_in_which_namespaces_pods_are_watched(helm: Tool) -> None:
    assert "are watched in: default. Where" in _notes(helm)
    assert "are watched in: default, bench. Where" in _notes(helm, "watching.namespaces={bench}")
    everywhere = ["watching.namespaces={*}"], ["runNamespaces={*}"]
    nobody = ["agent.enabled=false", "prometheus.enabled=false"]
    for values in (*everywhere, nobody):
        assert "are watched in" not in _notes(helm, *values)


def test_the_notes_say_that_runs_that_go_on_are_ended_before_the_chart_goes(helm: Tool) -> None:
    for value in ("crds.enabled=true", "crds.enabled=false"):
        assert '--type=merge -p \'{"spec":{"cancel":true}}\'' in _notes(helm, value)


def test_the_notes_have_a_first_run_only_where_one_may_be(helm: Tool) -> None:
    apply = "kubectl apply -n {} -f -"
    assert apply.format("default") in _notes(helm, "runNamespaces={*}")
    assert apply.format("bench") in _notes(helm, "runNamespaces={bench,team}")
    nowhere = _notes(helm, "runNamespaces=[]", flag="--set-json")
    assert "Runs are allowed in: no namespace yet" in nowhere
    assert "kubectl apply" not in nowhere


def test_the_notes_say_how_to_see_whether_agents_were_let_in(helm: Tool) -> None:
    """A namespace that enforces a level refuses their pods, and Helm waits for none of them."""
    look = f"kubectl get daemonset -n {OPERATOR_NAMESPACE} laptime-agent"
    # A namespace that has a level already keeps it without --overwrite.
    level = "pod-security.kubernetes.io/enforce=privileged --overwrite"
    allow = f"kubectl label namespace {OPERATOR_NAMESPACE} {level}\n"
    for said in (look, allow):
        assert said in _notes(helm)
        assert said not in _notes(helm, "agent.enabled=false")
    assert allow in (ROOT / "docs" / "first-run.md").read_text()


def _notes(helm: Tool, *values: str, flag: str = "--set") -> str:
    """Return what an installation with these values would say at its end."""
    flags = [word for value in values for word in (flag, value)]
    text = helm(
        *("install", RELEASE, str(CHART), "-n", OPERATOR_NAMESPACE, "--dry-run=client"), *flags
    )
    return text.partition("\nNOTES:\n")[2]


def test_no_selector_holds_a_version(render: Any) -> None:
    rendered = render(networkPolicy={"enabled": True})
    pod = rendered.find("Deployment", "laptime-operator")["spec"]["template"]["metadata"]["labels"]
    for selector in (
        rendered.find("Deployment", "laptime-operator")["spec"]["selector"]["matchLabels"],
        rendered.find("Service", "laptime-operator")["spec"]["selector"],
        rendered.find("NetworkPolicy", "laptime-operator")["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= pod.items()
        assert not {"helm.sh/chart", "app.kubernetes.io/version"} & set(selector)


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


@pytest.mark.parametrize(
    ("said", "openshift", "foreign"),
    [
        ("auto", False, False),
        ("auto", True, True),
        ("force", False, True),
        ("disabled", True, False),
    ],
)
def test_a_cluster_may_choose_the_users_of_all_pods(
    helm: Tool, said: str, openshift: bool, foreign: bool
) -> None:
    value = f"global.compatibility.openshift.adaptSecurityContext={said}"
    served = ("--api-versions", "security.openshift.io/v1") if openshift else ()
    text = helm(
        *("template", RELEASE, str(CHART), "-n", OPERATOR_NAMESPACE, "--set", value, *served),
        *("--set", "grafana.enabled=true"),
    )
    users: dict[str, list[Any]] = {}
    told = []
    for one in yaml.load_all(text, yaml.CSafeLoader):
        if not one or one["kind"] not in ("Deployment", "DaemonSet", "Pod"):
            continue
        spec = one["spec"] if one["kind"] == "Pod" else one["spec"]["template"]["spec"]
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True
        keys = ("runAsUser", "runAsGroup", "fsGroup")
        users[one["metadata"]["name"]] = [security.get(key) for key in keys]
        for container in spec["containers"]:
            assert not set(keys) & container["securityContext"].keys()
            told += [
                env["value"]
                for env in container.get("env", [])
                if env["name"] == "LAPTIME_FOREIGN_USERS"
            ]
    usual = {
        "laptime-operator": [10001, 10001, None],
        "laptime-test": [10001, 10001, None],
        "laptime-agent": [10001, 10001, None],
        "laptime-prometheus": [10001, 10001, 10001],
        "laptime-grafana": [472, 472, 472],
    }
    assert users == ({name: [None] * 3 for name in usual} if foreign else usual)
    assert told == (["true"] if foreign else [])


def test_placement_is_passed_on(render: Any) -> None:
    placement = {
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "priorityClassName": "high",
        "podLabels": {"team": "web"},
        "podAnnotations": {"note": "x"},
    }
    rendered = render(operator=placement)
    template = rendered.find("Deployment", "laptime-operator")["spec"]["template"]
    # The pod of `helm test` goes where the operator may.
    for pod in rendered.pods():
        assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "system"}
        for field in ("tolerations", "priorityClassName"):
            assert pod[field] == placement[field]
    assert template["metadata"]["labels"]["team"] == "web"
    assert template["metadata"]["annotations"]["note"] == "x"


def test_no_pod_of_the_chart_goes_to_a_node_of_windows(render: Any) -> None:
    """Where there is no image for it; and the agent tolerates the taints of such nodes."""
    rendered = render(grafana={"enabled": True})
    pods = [
        one["spec"] if one["kind"] == "Pod" else one["spec"]["template"]["spec"]
        for one in rendered.objects
        if one["kind"] in ("Deployment", "DaemonSet", "Pod")
    ]
    assert len(pods) == 5
    assert [pod.get("nodeSelector") for pod in pods] == [{"kubernetes.io/os": "linux"}] * 5


def test_placements_of_runs_are_what_the_operator_reads(render: Any) -> None:
    def said(rendered: Rendered) -> str | None:
        deployment = rendered.find("Deployment", "laptime-operator")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        texts = [one["value"] for one in container["env"] if one["name"] == "LAPTIME_PLACEMENTS"]
        return texts[0] if texts else None

    assert said(render()) is None
    isolated = {
        "description": "Nodes of their own.",
        "default": True,
        "namespaces": ["bench"],
        "servers": {
            "nodeSelector": {"laptime": "servers"},
            "tolerations": [{"key": "laptime", "operator": "Exists", "tolerationSeconds": 300}],
            "runtimeClassName": "gvisor",
            "priorityClassName": "high",
            "schedulerName": "own",
        },
        "generators": {"affinity": {"nodeAffinity": {}}},
    }
    text = said(render(placements={"isolated": isolated, "any": {}}))
    assert text is not None
    found = Placements.from_wire(json.loads(text)).by_name
    assert found["isolated"] == Placement.from_wire("isolated", isolated)
    assert found["any"] == Placement.from_wire("any", {})


@pytest.mark.parametrize(
    ("placements", "words"),
    [
        ({"a": {"default": True}, "b": {"default": True}}, "a and b are both the default"),
        ({"a": {"servers": {"nodeName": "n1"}}}, "additional properties 'nodeName' not allowed"),
        ({"a": {"databases": {}}}, "additional properties 'databases' not allowed"),
        ({"A": {}}, "'A' does not match pattern"),
        ({"a": {"namespaces": ["*"]}}, "does not match pattern"),
        ({"a": {"tiers": {"tolerations": {}}}}, "got object, want array"),
    ],
)
def test_a_placement_that_is_none_is_refused(
    helm: Tool, tmp_path: Path, placements: dict[str, Any], words: str
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"placements": placements}))
    refused = helm.run("template", RELEASE, str(CHART), "-f", str(file))
    assert refused.returncode != 0
    assert words in refused.stderr


# ---- rights


def test_runs_are_allowed_where_the_values_say(render: Any) -> None:
    def bindings(rendered: Rendered, kind: str) -> list[str]:
        return [
            "/".join(filter(None, (one["metadata"].get("namespace"), one["metadata"]["name"])))
            for one in rendered.objects
            if one["kind"] == kind and one["roleRef"]["name"] == "laptime-runs"
        ]

    # Whoever allows runs by hand calls the binding laptime: Helm would refuse to take that over.
    assert bindings(render(), "RoleBinding") == ["default/laptime-runs"]
    several = render(runNamespaces=["default", "team-a"])
    assert bindings(several, "RoleBinding") == ["default/laptime-runs", "team-a/laptime-runs"]
    assert several.names("ClusterRoleBinding") == ["laptime-operator"]
    nowhere = render(runNamespaces=[])
    assert bindings(nowhere, "RoleBinding") == []
    everywhere = render(runNamespaces=["*"])
    assert bindings(everywhere, "RoleBinding") == []
    assert "laptime-operator" in everywhere.names("ClusterRoleBinding")
    assert bindings(everywhere, "ClusterRoleBinding") == ["laptime-runs"]


def test_rights_have_no_wildcard_and_secrets_cannot_be_read(render: Any) -> None:
    for one in render().objects:
        for rule in one.get("rules", []) if one["kind"].endswith("Role") else []:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            if "secrets" in rule["resources"]:
                assert set(rule["verbs"]) <= {"create", "delete"}


def test_rights_of_people_are_a_choice(render: Any) -> None:
    assert set(render(rbac={"aggregateToDefaultRoles": False}).names("ClusterRole")) == {
        "laptime-operator",
        "laptime-runs",
        *(["laptime-watch"] if VALUES["prometheus"]["enabled"] else []),
    }


# ---- bad values


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("operator.loglevel=debug", "loglevel"),
        ("operator.logLevel=loud", "logLevel"),
        ("image.tag=1", "image"),
        ("images.postgres.digest=sha256:12", "digest"),
        ("images.pullPolicy=Sometimes", "pullPolicy"),
        ("images.haproxy.repository=Not/Lower", "repository"),
        ("images.tag=a b", "tag"),
        ("runNamespaces={Default}", "runNamespaces"),
        ("runNamespaces=default", "runNamespaces"),
        ("operator.replicas=0", "replicas"),
        ("operator.resources.limits.cpu=lots", "cpu"),
        ("networkPolicy.apiServerPorts={0}", "apiServerPorts"),
        ("crds.enabled=maybe", "enabled"),
        ("prometheus.url=monitoring:9090", "url"),
        ("prometheus.auth.type=digest", "type"),
        ("prometheus.auth.existingSecret=A_b", "existingSecret"),
        ("prometheus.tls.key=a/b", "key"),
        ("prometheus.headers.X y=1", "headers"),
        ('prometheus.headers.X="1\n2"', "headers"),
        ("prometheus.matchers.a-b=c", "matchers"),
        ("prometheus.matchers.__name__=up", "matchers"),
        ("prometheus.matchers.cluster=", "cluster"),
        ("monitors.alertMatchers.a-b=c", "alertMatchers"),
        ("monitors.alertMatchers.cluster=", "cluster"),
        ("prometheus.scrapeInterval=often", "scrapeInterval"),
        ("prometheus.retentionSize=1Gi", "retentionSize"),
        ("agent.hostPID=true", "hostPID"),
        ("global.compatibility.openshift.adaptSecurityContext=yes", "adaptSecurityContext"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(helm: Tool, value: str, says: str) -> None:
    done = helm.run("template", RELEASE, str(CHART), "--set", value)
    assert done.returncode != 0
    assert says in done.stderr
    assert "values don't meet the specifications of the schema" in done.stderr


def test_a_value_can_be_taken_away_unless_it_is_refused_by_its_name(
    helm: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """null takes a default away: what the schema does not require, the templates do without, and
    so does the operator, which would not start.
    """
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    taken = _taken_away(defaults, schema)
    assert taken["operator"]["resources"] is None
    # Each of them has a schema of its own, which says what of it there has to be.
    del taken["images"]
    taken["grafana"] |= {"enabled": True}
    taken["prometheus"] |= {"enabled": True}
    for monitors in (True, False):
        taken["monitors"] |= {"enabled": monitors}
        taken["networkPolicy"] |= {"enabled": monitors}
        settings = _settings(Rendered(helm, tmp_path, taken), tmp_path, monkeypatch)
        assert settings.log_level in logging.getLevelNamesMapping()
    for name in (
        *("runNamespaces", "watching", "networkPolicy.runs.dns", "operator.logLevel"),
        *(f"prometheus.{one}" for one in ("headers", "scrapeInterval", "retention")),
        "prometheus.retentionSize",
    ):
        done = helm.run("template", RELEASE, str(CHART), "--set", f"{name}=null")
        assert done.returncode != 0
        assert f"missing property '{name.split('.')[-1]}'" in done.stderr


def _settings(rendered: Rendered, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return what the operator makes of its environment."""
    (container,) = rendered.find("Deployment", "laptime-operator")["spec"]["template"]["spec"][
        "containers"
    ]
    for one in container["env"]:
        if "value" in one:
            # To the API server nothing is an empty text.
            monkeypatch.setenv(one["name"], (one["value"] or "").replace("$$", "$"))
    images = folder / "images.json"
    images.write_text(json.dumps(rendered.images()))
    monkeypatch.setenv("LAPTIME_IMAGES_FILE", str(images))
    return load_settings()


def _taken_away(defaults: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return null for each value that is not required, alone or with all that is in it."""
    required, known = schema.get("required", []), schema.get("properties", {})
    found: dict[str, Any] = {}
    for name, value in defaults.items():
        if name not in required:
            found[name] = None
        elif isinstance(value, dict) and name in known:
            found[name] = _taken_away(value, known[name])
    return found


def test_a_parent_chart_may_switch_it_and_take_the_cap_away(helm: Tool, tmp_path: Path) -> None:
    """Helm passes the value of a condition on to the chart, and no null that takes one away."""
    parent = {
        "apiVersion": "v2",
        "name": "parent",
        "version": "0.1.0",
        "dependencies": [{"name": "laptime", "version": "*", "condition": "laptime.enabled"}],
    }
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(parent))
    shutil.copytree(CHART, tmp_path / "charts" / "laptime")

    def rendered(**values: Any) -> list[dict[str, Any]]:
        (tmp_path / "values.yaml").write_text(yaml.safe_dump({"laptime": values}))
        text = helm("template", RELEASE, str(tmp_path), "-n", OPERATOR_NAMESPACE)
        return [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]

    assert rendered(enabled=False) == []
    year = {"caps": {"*": {"duration": "8760h"}}}
    objects = rendered(enabled=True, runs=year)
    (operator,) = (
        one
        for one in objects
        if (one["kind"], one["metadata"]["name"]) == ("Deployment", "laptime-operator")
    )
    (container,) = operator["spec"]["template"]["spec"]["containers"]
    (said,) = (one["value"] for one in container["env"] if one["name"] == "LAPTIME_RUNS")
    assert json.loads(said)["caps"] == year["caps"]


def test_names_that_look_like_numbers_are_names(helm: Tool, tmp_path: Path) -> None:
    """What YAML takes for a number, a truth or nothing is refused by the API server as a name."""
    pod = {"priorityClassName": "1"}
    storage = {"persistence": {"enabled": True, "storageClass": "2"}}
    values = {
        "runNamespaces": ["123", "true", "null"],
        "images": {"pullSecrets": ["4"]},
        "operator": pod,
        "agent": pod,
        "prometheus": {
            "enabled": True,
            "url": "https://prometheus.example",
            "auth": {"type": "bearer", "existingSecret": "5"},
            "tls": {"configMap": "6"},
            **pod,
            **storage,
        },
        "grafana": {"enabled": True, "dashboards": {"namespace": "7"}, **pod, **storage},
        "monitors": {"enabled": True, "alerts": True},
        "networkPolicy": {"enabled": True},
    }
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    file = str(tmp_path / "values.yaml")
    text = helm("template", RELEASE, str(CHART), "-n", "123", "-f", file)
    objects = [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]
    kinds = {one["kind"] for one in objects}
    assert {"RoleBinding", "PersistentVolumeClaim", "PodMonitor", "NetworkPolicy"} <= kinds
    names = {"name", "namespace", "claimName", "priorityClassName", "storageClassName"}
    for one in objects:
        if one["kind"] != "CustomResourceDefinition":
            assert [found for found in _named(one, names) if not isinstance(found, str)] == [], one


def _named(tree: Any, keys: set[str]) -> Iterator[Any]:
    """Yield what has one of these keys, wherever it stands."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key in keys:
                yield value
            yield from _named(value, keys)
    elif isinstance(tree, list):
        for one in tree:
            yield from _named(one, keys)


def test_every_value_is_described() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def check(values: Any, node: dict[str, Any], path: str) -> None:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]] | {
                key: text for key, text in node.items() if key != "$ref"
            }
        assert node.get("description"), path
        if "properties" in node:
            # A parent chart shares more with all its charts than this one knows.
            assert path.startswith("values.global") or node["additionalProperties"] is False, path
            for key, value in values.items():
                check(value, node["properties"][key], f"{path}.{key}")

    check(VALUES, schema, "values")


def test_the_check_of_an_installation_reads_one_run_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has 128Mi and 10 s, and a run can have a status of hundreds of kilobytes."""
    for name in ("HOST", "PORT"):
        monkeypatch.setenv(f"KUBERNETES_SERVICE_{name}", "1")
    check = runpy.run_path(str(CHART / "files" / "installation_test.py"))
    answers: dict[str, Any] = {
        "limit=1": {"items": [{}], "metadata": {"remainingItemCount": 10_000}},
        "none": {"items": [], "metadata": {}},
    }
    readable = check["readable"]

    def api(path: str) -> Any:
        return answers[path.partition("?")[2]]

    monkeypatch.setitem(readable.__globals__, "api", api)
    assert readable().endswith("(10001 now)")
    monkeypatch.setitem(answers, "limit=1", answers["none"])
    assert readable().endswith("(0 now)")


# ---- on the cluster


def test_the_api_server_accepts_every_object(helm: Tool, kubectl: Tool, release: str) -> None:
    text = helm("get", "manifest", release, "-n", OPERATOR_NAMESPACE)
    kubectl(
        *("apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-"),
        stdin=text,
    )
    helm(
        *("upgrade", "--install", release, str(CHART), "-n", OPERATOR_NAMESPACE),
        *("--dry-run=server", "--set", "networkPolicy.enabled=true"),
    )


def test_the_pods_pass_the_restricted_level(
    render: Any, kubectl: Tool, namespace: str, release: str
) -> None:
    kubectl("create", "serviceaccount", "laptime-operator", "-n", namespace)
    for index, spec in enumerate(render().pods()):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{index}", "namespace": namespace},
            "spec": spec,
        }
        kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
        open_pod = {**pod, "spec": {**spec, "hostNetwork": True}}
        refused = kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(open_pod))
        assert "violates PodSecurity" in refused.stderr


def test_the_notes_tell_the_next_step(helm: Tool, kubectl: Tool, release: str) -> None:
    notes = helm("get", "notes", release, "-n", OPERATOR_NAMESPACE)
    assert f"helm test {release} -n {OPERATOR_NAMESPACE}" in notes
    assert "--clusterrole=laptime-runs" in notes
    run = notes[notes.index("<<'EOF'\n") + len("<<'EOF'\n") : notes.index("  EOF\n")]
    kubectl("create", "--dry-run=server", "-f", "-", stdin=run)


@pytest.mark.operator
def test_helm_test_passes(helm: Tool, kubectl: Tool, release: str) -> None:
    kubectl(
        *("rollout", "status", "deployment/laptime-operator", "-n", OPERATOR_NAMESPACE),
        "--timeout=90s",
    )
    done = helm("test", release, "-n", OPERATOR_NAMESPACE, "--logs", timeout=180)
    assert done.count("ok: ") == 3
