"""The chart under other names and with its switches set otherwise: each installed, each measures.

There is one Laptime per cluster, so the usual one goes away meanwhile.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import CHART, OPERATOR_NAMESPACE, Api, Tool

from .harness import AXUM, POSTGRES_ALONE, Cluster, light, run_manifest

OTHER_RELEASE = "bench"


@pytest.fixture(scope="module")
def place(
    helm: Tool,
    kubectl: Tool,
    reader: Api,
    operator: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:
    """Three namespaces, and no Laptime in the cluster; the usual one is back afterwards."""
    saved = tmp_path_factory.mktemp("switches") / "values.yaml"
    values = json.loads(helm("get", "values", operator, "-n", OPERATOR_NAMESPACE, "-ojson"))
    saved.write_text(yaml.safe_dump(values))
    names = [f"{use}-{secrets.token_hex(4)}" for use in ("tools", "team", "monitoring")]
    for name in names:
        kubectl("create", "namespace", name)
    try:
        helm("uninstall", operator, "-n", OPERATOR_NAMESPACE, "--wait")
        yield Place(helm, kubectl, reader, saved, *names)
    finally:
        helm.run("uninstall", OTHER_RELEASE, "-n", names[0], "--wait")
        for name in names:
            kubectl("delete", "namespace", name, "--wait=false")
        helm(
            *("upgrade", "--install", operator, str(CHART), "-n", OPERATOR_NAMESPACE),
            *("-f", str(saved), "--take-ownership", "--wait", "--timeout", "120s"),
        )


class Place:
    """Where the chart is installed under another name, and where its runs are."""

    def __init__(
        self,
        helm: Tool,
        kubectl: Tool,
        reader: Api,
        values: Path,
        tools: str,
        team: str,
        monitoring: str,
    ) -> None:
        self.helm, self.kubectl, self.reader, self.values = helm, kubectl, reader, values
        self.tools, self.team, self.monitoring = tools, team, monitoring

    def enforce(self, level: str) -> None:
        """Set the Pod Security level of both the operator's namespace and that of the runs."""
        for name in (self.tools, self.team):
            label = f"pod-security.kubernetes.io/enforce={level}"
            self.kubectl("label", "namespace", name, label, "--overwrite")

    def install(self, **values: Any) -> None:
        """Install the chart with these values."""
        file = self.values.with_name("more.yaml")
        file.write_text(yaml.safe_dump({"runNamespaces": [self.team], **values}))
        self.helm(
            *("upgrade", "--install", OTHER_RELEASE, str(CHART), "-n", self.tools),
            *("-f", str(self.values), "-f", str(file), "--wait", "--timeout", "120s"),
            # The CRD has stayed, and is the other release's.
            "--take-ownership",
        )

    def measured(self, run: str, seconds: int = 5) -> dict[str, Any]:
        """Measure a server, and return the trial's readings."""
        cluster = Cluster(self.kubectl, self.reader, self.team)
        # A full node's agent may need some seconds to find a new pod.
        loads = light(f"{seconds}s", warmup="3s")
        small: dict[str, Any] = {"loads": loads, "topology": POSTGRES_ALONE, "repetitions": 1}
        manifest = run_manifest(run, [AXUM], **small)
        status = cluster.wait_end(cluster.apply(manifest), 120 + seconds)
        assert status["state"] == "Succeeded", json.dumps(status, indent=1)
        (row,) = status["results"]
        assert (row["trials"], row["failedTrials"]) == (1, 0)
        return cluster.documents(run, "readings.json").get(f"{run}-trial-001", {})

    @contextmanager
    def own_prometheus(self) -> Iterator[str]:
        """Run a Prometheus that the release knows nothing of; its address."""
        runs = ("--set", f"runNamespaces={{{self.team},{self.tools}}}", "-f", str(self.values))
        text = self.helm("template", "another", str(CHART), "-n", self.monitoring, *runs)
        objects = [
            one
            for one in yaml.load_all(text, yaml.CSafeLoader)
            if one and one["metadata"]["name"].startswith("laptime-prometheus")
        ]
        assert {"Deployment", "Service", "ConfigMap"} <= {one["kind"] for one in objects}
        for one in objects:
            if one["kind"] == "ConfigMap":
                # As docs/watching.md makes it.
                made = self.helm(
                    *("template", OTHER_RELEASE, str(CHART), "-n", self.tools, *runs),
                    *("-s", "templates/prometheus-config.yaml"),
                )
                one["data"] = yaml.safe_load(made)["data"]
        text = yaml.safe_dump_all(objects)
        self.kubectl("apply", "-f", "-", stdin=text)
        try:
            self.kubectl(
                *("rollout", "status", "deployment/laptime-prometheus", "-n", self.monitoring),
                "--timeout=90s",
            )
            yield f"http://laptime-prometheus.{self.monitoring}.svc:9090"
        finally:
            self.kubectl("delete", "-f", "-", stdin=text)


def test_other_names_and_a_prometheus_that_is_there_already(place: Place) -> None:
    place.enforce("privileged")
    with place.own_prometheus() as url:
        place.install(prometheus={"enabled": False, "url": url})
        # An agent that has no CPU for a second and a half leaves a gap, which is said; whoever asks
        # for the wrong names has one each time.
        for number in range(3):
            usage = place.measured(f"another-{number}")["usage"]
            assert usage["source"] == "agent"
            if usage["complete"]:
                break
    assert usage["complete"], usage["gaps"]


def test_at_the_restricted_level_kubelets_stand_in_for_the_agent(place: Place) -> None:
    place.enforce("restricted")
    off = {"enabled": False}
    # Kubelets look at a pod every 10 s or so, and one look is none.
    place.install(agent=off, grafana=off)
    readings = place.measured("kubelets", seconds=30)
    assert readings["usage"]["source"] == "kubelet"
    assert not readings["usage"]["complete"]


def test_without_anything_that_watches_there_are_figures_still(place: Place) -> None:
    place.enforce("restricted")
    off = {"enabled": False}
    place.install(agent=off, prometheus=off, grafana=off)
    readings = place.measured("unwatched")
    assert readings == {} or readings["usage"] is None
