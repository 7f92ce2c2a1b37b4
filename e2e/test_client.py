"""What the operator's client module writes is what a real API server stores."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Tool
from laptime.catalog import scenarios
from laptime.cli.cluster_access import Cluster
from laptime.cli.mistakes import Mistake
from laptime.kube import KubeError, Manifest, connect
from schema_paths import full_run

TEXTS = {
    "emoji": "🍲 👩‍🍳",
    "lines": "a\u2028b\x85c\nd",
    "controls": "\x7f\x9f\ufeff",
    "json": "\\ud83c",
}


async def applied(manifest: Manifest) -> Manifest | None:
    kube = await connect()
    try:
        await kube.apply(manifest)
        metadata = manifest["metadata"]
        return await kube.get(manifest["kind"], metadata["namespace"], metadata["name"])
    finally:
        await kube.close()


@pytest.mark.parametrize("name", ["texts", *sorted(scenarios())])
def test_the_data_of_every_scenario_is_stored_as_it_is(
    name: str, kubeconfig: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    data = TEXTS if name == "texts" else dict(scenarios()[name].init_sql)
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"data-{name}", "namespace": namespace},
        "data": data,
    }
    stored = asyncio.run(applied(manifest))
    assert stored is not None
    assert (stored.get("data") or {}) == data


async def _say(run: Manifest, status: dict[str, Any]) -> Manifest:
    kube = await connect()
    try:
        await kube.apply(run)
        of_it = {key: one for key, one in run.items() if key != "spec"}
        return await kube.apply_status({**of_it, "status": status})
    finally:
        await kube.close()


def test_a_status_of_which_the_schema_knows_a_part_is_refused_as_a_whole(
    crd: dict[str, Any], kubeconfig: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the operator learns that the CustomResourceDefinitions are older than it is."""
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    run = full_run()
    run["metadata"] = {"name": "newer", "namespace": namespace}
    with pytest.raises(KubeError, match=r"\.status\.newer: field not declared in schema") as said:
        asyncio.run(_say(run, {"seed": 7, "newer": 1}))
    assert said.value.not_in_schema
    assert asyncio.run(_say(run, {"seed": 8}))["status"]["seed"] == 8


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"seed": "seven"}, r"\.status\.seed: expected numeric"),
        ({"order": {}}, r"failed to create typed patch object .*\.status\.order: expected"),
        ({"state": "Newer"}, r'status\.state: Unsupported value: "Newer"'),
        ({"seed": 7.5}, r"status\.seed: Invalid value: .* in body must be of type integer"),
    ],
)
def test_a_word_or_a_type_of_a_status_that_the_schema_does_not_have_is_told_by_its_words(
    status: dict[str, Any],
    said: str,
    crd: dict[str, Any],
    kubeconfig: str,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    run = full_run()
    run["metadata"] = {"name": "other-words", "namespace": namespace}
    with pytest.raises(KubeError, match=said) as error:
        asyncio.run(_say(run, status))
    assert error.value.not_in_schema


def test_the_command_line_changes_only_config_maps_that_it_has_made(
    kubeconfig: str, namespace: str, kubectl: Tool
) -> None:
    def stored(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            kubectl("get", "configmap", name, "-n", namespace, "-o", "json")
        )
        return found

    def wanted(name: str, text: str) -> Manifest:
        metadata = {"name": name, "namespace": namespace}
        data = {"script.js": text}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    cluster = Cluster.connect(Path(kubeconfig))
    kubectl("create", "configmap", "theirs", "--from-literal=a=b", "-n", namespace)
    theirs = stored("theirs")
    with pytest.raises(Mistake, match="ConfigMap theirs is in namespace"):
        cluster.apply_config_map(namespace, wanted("theirs", "1"))
    assert stored("theirs") == theirs
    for text in ("1", "2"):
        cluster.apply_config_map(namespace, wanted("ours", text))
        assert stored("ours")["data"] == {"script.js": text}
