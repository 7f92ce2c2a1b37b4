"""The chart's values: which are refused, which may be taken away, and what each is for."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import CHART, OPERATOR_NAMESPACE, RELEASE, Rendered, Tool
from laptime.reconcile.settings import Settings, load_settings


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

    check(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "values")
