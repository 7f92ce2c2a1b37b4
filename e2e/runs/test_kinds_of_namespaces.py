"""Whole runs in the namespaces that clusters have: levels, quotas, limits, policies, users.

Some of them change the release and the namespace of the chart, so the cluster is their own:
`make namespaces`.
"""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import CHART, OPERATOR_NAMESPACE, Api, Tool

from . import openshift_admission
from .harness import AXUM, TWIN, Cluster, condition, light, namespace_for_runs, run_manifest
from .openshift_admission import FIRST_USER
from .test_network_policies import CONNECTS, pod
from .test_scripts import own_script

SMALL = {"cpu": "200m", "memory": "256Mi"}
SCRIPT = """
import http from 'k6/http';
import { check, sleep } from 'k6';
export const options = { vus: 1, duration: '3s' };
export default function () {
  const answer = http.get(`${__ENV.TARGET}/`, { tags: { name: 'list' } });
  check(answer, { 'status is 200': (a) => a.status === 200 });
  sleep(0.05);
}
"""
PACKED = {
    "name": "packed",
    "script": {
        "image": "docker.io/laptime/load-script:0.1.0",
        "folder": "/load",
        "key": "main.js",
        "duration": "30s",
        "options": {"vus": 1, "duration": "3s"},
        # It asks for `BASE_URL/`.
        "env": [{"name": "BASE_URL", "value": "$(TARGET)/posts?"}],
        "warmup": "0s",
    },
}
# Long enough that every second of it is read.
LIGHT = light("3s", "1s")


def with_tiers(cluster: Cluster, resources: dict[str, str] | None) -> dict[str, Any]:
    """Return a run with all tiers, two servers and a script in a ConfigMap."""
    script = {"configMap": own_script(cluster, "own", SCRIPT), "duration": "10s", "warmup": "0s"}
    manifest = run_manifest(
        "tiers",
        [AXUM, TWIN],
        loads=[*LIGHT, {"name": "own", "script": script}],
        repetitions=1,
    )
    return bounded(manifest, resources)


def with_a_file(cluster: Cluster, resources: dict[str, str] | None) -> dict[str, Any]:
    """Return a run whose server has SQLite and a longer network before it, and a packed script."""
    del cluster
    manifest = run_manifest(
        "file",
        [{"name": "go", "preset": "go-nethttp"}],
        scenario="posts",
        topology={"database": "sqlite", "delay": {"servers": "1ms"}},
        loads=[*LIGHT, PACKED],
        repetitions=1,
    )
    return bounded(manifest, resources)


SHAPES = {"tiers": with_tiers, "file": with_a_file}


def bounded(manifest: dict[str, Any], resources: dict[str, str] | None) -> dict[str, Any]:
    """Have every part of a run say its resources; None: none of them."""
    if resources is None:
        return manifest
    # Servers are those of other tests as well.
    manifest = deepcopy(manifest)
    spec = manifest["spec"]
    for part in (*spec["servers"], *(one for one in spec["topology"].values() if one != "sqlite")):
        part["resources"] = resources
    # It reads 300,000 rows.
    spec["generator"] = {"resources": {**resources, "memory": "512Mi"}}
    return manifest


@dataclass(frozen=True)
class Kind:
    """A kind of namespace: what is in it, and what its runs have to say."""

    level: str = "restricted"
    objects: tuple[dict[str, Any], ...] = ()
    resources: dict[str, str] | None = None


QUOTA = {
    "kind": "ResourceQuota",
    "apiVersion": "v1",
    "metadata": {"name": "compute"},
    "spec": {
        "hard": {
            "requests.cpu": "2",
            "requests.memory": "3Gi",
            "limits.cpu": "3",
            "limits.memory": "4Gi",
            "pods": "9",
            "count/jobs.batch": "4",
            "count/deployments.apps": "6",
            "count/configmaps": "30",
            "count/secrets": "5",
            "services": "8",
        }
    },
}
LIMITS = {
    "kind": "LimitRange",
    "apiVersion": "v1",
    "metadata": {"name": "usual"},
    "spec": {
        "limits": [
            {
                "type": "Container",
                "default": {"cpu": "500m", "memory": "512Mi"},
                "defaultRequest": {"cpu": "100m", "memory": "64Mi"},
                # As docs/real-cluster.md says them.
                "min": {"cpu": "50m", "memory": "32Mi"},
                "max": {"cpu": "1", "memory": "512Mi"},
            }
        ]
    },
}
DENY = {
    "kind": "NetworkPolicy",
    "apiVersion": "networking.k8s.io/v1",
    "metadata": {"name": "default-deny"},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
}
KINDS = {
    "restricted": Kind(),
    "baseline": Kind(level="baseline"),
    "quota": Kind(objects=(QUOTA,), resources=SMALL),
    "limits": Kind(objects=(LIMITS,)),
    # What says its resources is in these bounds.
    "limits-and-quota": Kind(objects=(LIMITS, QUOTA), resources=SMALL),
}


@contextmanager
def namespace_of(kind: Kind, kubectl: Tool, reader: Api) -> Iterator[Cluster]:
    """Give a namespace of a kind."""
    with namespace_for_runs(reader, kind.level) as name:
        cluster = Cluster(kubectl, reader, name)
        for one in kind.objects:
            cluster.apply(one)
        yield cluster


def comes_through(cluster: Cluster, manifest: dict[str, Any]) -> None:
    """Measure a run: nothing is lost, everything is watched, and only its results stay."""
    spec = manifest["spec"]
    began = time.monotonic()
    run = cluster.apply(manifest)
    status = cluster.wait_end(run, 300)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert not status.get("lostAttempts"), status["lostAttempts"]
    cluster.wait_folded(run)
    results = cluster.documents(run)
    assert len(results) == len(spec["servers"]) * len(spec["loads"]) * spec["repetitions"]
    for one in results.values():
        assert (one["outcome"], one["attempt"]) == ("Measured", 1), one
        assert one["figures"]["errors"] == 0, one
    readings = cluster.documents(run, "readings.json")
    assert set(readings) == set(results)
    tiers = [one for one in ("postgres", "pgbouncer", "haproxy") if one in spec["topology"]]
    for one in readings.values():
        usage = one["usage"]
        assert usage["source"] == "agent"
        assert usage["complete"], usage["gaps"]
        assert {part["component"] for part in usage["components"]} >= {
            "server",
            "generator",
            *tiers,
        }
        assert not tiers or one["tiers"]["database"]["statements"] > 0
    assert cluster.left_of(run) == {f"ConfigMap/{run}-results"}
    print(f"{run}: {len(results)} trials in {time.monotonic() - began:.1f} s")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_measured_in_a_namespace_of_each_kind(
    kind: str, shape: str, kubectl: Tool, reader: Api, operator: str
) -> None:
    with namespace_of(KINDS[kind], kubectl, reader) as cluster:
        comes_through(cluster, SHAPES[shape](cluster, KINDS[kind].resources))


# ---- a quota, and a run that does not say what it wants


def test_where_a_quota_wants_limits_a_run_without_is_told_at_once_what_to_write(
    kubectl: Tool, reader: Api, operator: str
) -> None:
    with namespace_of(KINDS["quota"], kubectl, reader) as cluster:
        run = cluster.apply(run_manifest("silent", [AXUM], loads=light(), repetitions=1))
        began = time.monotonic()
        status = cluster.wait_end(run, 60)
        assert time.monotonic() - began < 15
        succeeded = condition(status, "Succeeded")
        assert (succeeded["status"], succeeded["reason"]) == ("False", "PodRefused")
        # Of whichever tier was refused first.
        assert "failed quota: compute: must specify limits.cpu for: " in succeeded["message"]
        assert (
            'Write resources: {cpu: "1", memory: 512Mi}, with what it needs, for '
            "topology.postgres, topology.pgbouncer, topology.haproxy, server axum, generator"
        ) in succeeded["message"]


def test_where_the_generator_alone_says_nothing_it_is_named_within_seconds(
    kubectl: Tool, reader: Api, operator: str
) -> None:
    with namespace_of(KINDS["quota"], kubectl, reader) as cluster:
        manifest = bounded(run_manifest("half", [AXUM], loads=light(), repetitions=1), SMALL)
        del manifest["spec"]["generator"]
        run = cluster.apply(manifest)
        cluster.wait(run, "its first trial", lambda it: it.get("currentTrial") is not None, 60)
        began = time.monotonic()
        status = cluster.wait(
            run,
            "that there is no generator",
            lambda it: condition(it, "Progressing").get("reason") == "PodMissing",
            60,
        )
        assert time.monotonic() - began < 20
        message = condition(status, "Progressing")["message"]
        assert "the generator has no pod: kubectl describe job half-trial-001" in message
        assert "for generator: a ResourceQuota" in message
        cluster.wish(run, cancel=True)
        cluster.wait_end(run, 60)


# ---- with another release of the chart


@contextmanager
def released(helm: Tool, release: str, value: str, folder: Path) -> Iterator[None]:
    """Have the release have a value, and then those that it had."""
    saved = folder / "values.yaml"
    saved.write_text(helm("get", "values", release, "-n", OPERATOR_NAMESPACE, "-ojson"))

    def upgrade(*words: str) -> None:
        helm(
            *("upgrade", release, str(CHART), "--namespace", OPERATOR_NAMESPACE),
            *(*words, "--wait", "--timeout", "180s"),
            timeout=240,
        )

    try:
        upgrade("--reset-then-reuse-values", "--set", value)
        yield
    finally:
        # Where it had none, Helm would take those that it has now.
        upgrade("--reset-values", "-f", str(saved))


@pytest.fixture(scope="module")
def denied(
    kubectl: Tool,
    reader: Api,
    helm: Tool,
    operator: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    """A namespace whose policies allow nothing by themselves, and so is that of the chart."""
    home = Cluster(kubectl, reader, OPERATOR_NAMESPACE)
    folder = tmp_path_factory.mktemp("denied")
    # Somebody may have one that is called as usual.
    name = f"default-deny-{secrets.token_hex(4)}"
    with (
        released(helm, operator, "networkPolicy.enabled=true", folder),
        namespace_of(Kind(objects=(DENY,)), kubectl, reader) as cluster,
    ):
        home.create({**DENY, "metadata": {"name": name}})
        try:
            yield cluster
        finally:
            home.delete("networkpolicy", name)


def test_where_everything_is_denied_the_chart_is_well(
    denied: Cluster,
    helm: Tool,
    operator: str,
    kubectl: Tool,
    image: str,
) -> None:
    # Else nothing would be shown: whoever has no policy of his own reaches nobody.
    for cluster in (denied, Cluster(kubectl, denied.reader, OPERATOR_NAMESPACE)):
        alone = f"alone-{secrets.token_hex(4)}"
        cluster.create(pod(alone, image, {}))
        there = ("-n", cluster.namespace)
        try:
            kubectl("wait", "--for=condition=Ready", "--timeout=60s", *there, f"pod/{alone}")
            words = ("python3", "-c", CONNECTS, "laptime-operator.laptime-system.svc", "8080")
            assert kubectl.run("exec", *there, alone, "--", *words).returncode != 0
        finally:
            kubectl("delete", "pod", alone, *there, "--now")
    helm("test", operator, "-n", OPERATOR_NAMESPACE, "--timeout", "60s")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_is_measured_where_everything_is_denied(shape: str, denied: Cluster) -> None:
    comes_through(denied, SHAPES[shape](denied, None))


# ---- users that the cluster chooses, as OpenShift does

_WEBHOOK = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_CHOSEN = "laptime-test-users"
_TOOLS = ("operator", "prometheus", "agent")


@dataclass(frozen=True)
class Chosen:
    """A namespace in which the cluster chooses users, as that of the chart."""

    cluster: Cluster
    log: Path

    def pods(self, namespace: str) -> list[dict[str, Any]]:
        """Return what was said of each pod of a namespace when it was to be made."""
        lines = map(json.loads, self.log.read_text().splitlines())
        return [one for one in lines if one["namespace"] == namespace]


@contextmanager
def admission(folder: Path, network: Path) -> Iterator[tuple[int, str]]:
    """Run the webhook where the API server reaches it; give its port and its certificate."""
    certificate, key, log = (folder / name for name in ("tls.crt", "tls.key", "pods.log"))
    log.touch()
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
            ),
            *("-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext"),
            *("subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    command = [
        sys.executable,
        str(openshift_admission.__file__),
        *map(str, (certificate, key, log)),
    ]
    inside = ["nsenter", f"--net={network}", *command, "laptime-agent"]
    with subprocess.Popen(inside, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            yield port, base64.b64encode(certificate.read_bytes()).decode()
        finally:
            server.kill()


def webhook(port: int, certificate: str) -> dict[str, Any]:
    """Return what has the API server ask about each pod of the namespaces that are labelled so."""
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
    }
    return {
        "metadata": {"name": _CHOSEN},
        "webhooks": [
            {
                "name": f"{_CHOSEN}.laptime.dev",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": certificate},
                "namespaceSelector": {"matchLabels": {_CHOSEN: "yes"}},
                "rules": [rule],
            }
        ],
    }


@pytest.fixture(scope="module")
def chosen(
    kubectl: Tool,
    reader: Api,
    helm: Tool,
    operator: str,
    kubeconfig: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Chosen]:
    """The release on a cluster that chooses users, and a namespace there."""
    network = Path("/run") / Path(kubeconfig).parent.name / "namespaces" / "control" / "network"
    if not network.exists():
        pytest.skip("the API server of this cluster is not on this machine")
    folder = tmp_path_factory.mktemp("openshift")
    adapt = "global.compatibility.openshift.adaptSecurityContext"
    reader.delete(f"{_WEBHOOK}/{_CHOSEN}", missing_ok=True)

    def label(namespace: str, value: str | None) -> None:
        reader.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {_CHOSEN: value}}})

    with (
        admission(folder, network) as (port, certificate),
        namespace_for_runs(reader) as name,
    ):
        reader.create(_WEBHOOK, webhook(port, certificate))
        try:
            label(OPERATOR_NAMESPACE, "yes")
            label(name, "yes")
            with released(helm, operator, f"{adapt}=force", folder):
                yield Chosen(Cluster(kubectl, reader, name), folder / "pods.log")
                # What comes back says its users again.
                label(OPERATOR_NAMESPACE, None)
        finally:
            label(OPERATOR_NAMESPACE, None)
            reader.delete(f"{_WEBHOOK}/{_CHOSEN}", missing_ok=True)


def user_of(kubectl: Tool, namespace: str, workload: str, container: str) -> list[str]:
    """Return user and group of the processes of a container."""
    words = ("exec", "-n", namespace, workload, "-c", container, "--", "id")
    return [kubectl(*words, flag).strip() for flag in ("-u", "-g")]


def test_the_chart_runs_as_users_that_the_cluster_chooses(chosen: Chosen, kubectl: Tool) -> None:
    found = chosen.pods(OPERATOR_NAMESPACE)
    assert not [one for one in found if one["refused"]]
    names = {one["labels"]["app.kubernetes.io/component"] for one in found}
    assert names == set(_TOOLS)
    who = user_of(kubectl, OPERATOR_NAMESPACE, "deployment/laptime-operator", "operator")
    assert who == [str(FIRST_USER), "0"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_is_measured_as_users_that_the_cluster_chooses(
    shape: str, chosen: Chosen, kubectl: Tool
) -> None:
    cluster = chosen.cluster
    manifest = SHAPES[shape](cluster, None)
    if shape == "tiers":
        # A server that says who it is runs in Python, which may want to know its user.
        manifest["spec"]["servers"][1] = {"name": "sync", "preset": "fastapi-sync"}
        run = cluster.apply(manifest)
        cluster.wait(run, "its first trial", lambda it: it.get("state") == "Running", 90)
        for tier in ("postgres", "pgbouncer", "haproxy"):
            who = user_of(kubectl, cluster.namespace, f"deployment/{run}-{tier}", tier)
            assert who == [str(FIRST_USER), "0"], tier
    comes_through(cluster, manifest)
    found = chosen.pods(cluster.namespace)
    assert not [one for one in found if one["refused"]]
    parts = {one["labels"]["laptime.dev/component"] for one in found}
    wanted = {"tiers": {"postgres", "pgbouncer", "haproxy"}, "file": {"delay"}}
    assert parts >= {"server", "generator", "verifier", *wanted[shape]}


def test_a_pod_that_says_its_user_is_refused_there(
    chosen: Chosen, kubectl: Tool, image: str
) -> None:
    manifest = json.dumps(pod("own", image, {}))
    refused = kubectl.run("create", "-n", chosen.cluster.namespace, "-f", "-", stdin=manifest)
    assert "must be in the ranges" in refused.stderr, refused.stderr
