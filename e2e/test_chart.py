"""The chart: what it renders, which rights it gives, and what the API server says to it."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import CHART, CRD_FILE, CRD_NAME, OPERATOR_NAMESPACE, RELEASE, ROOT, Rendered, Tool
from laptime.catalog import presets
from laptime.manifests.context import ImageSet
from laptime.manifests.placement import Placement
from laptime.reconcile.placements import Placements

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
DIGEST = "sha256:" + "0123456789abcdef" * 4


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


@pytest.mark.operator
def test_helm_test_passes(helm: Tool, kubectl: Tool, release: str) -> None:
    kubectl(
        *("rollout", "status", "deployment/laptime-operator", "-n", OPERATOR_NAMESPACE),
        "--timeout=90s",
    )
    done = helm("test", release, "-n", OPERATOR_NAMESPACE, "--logs", timeout=180)
    assert done.count("ok: ") == 3
