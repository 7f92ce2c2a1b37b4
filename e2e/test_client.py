"""What the operator's client module writes is what a real API server stores."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from laptime.catalog import scenarios
from laptime.kube import Manifest, connect

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
