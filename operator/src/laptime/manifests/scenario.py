"""The scenario that a run keeps: what it began with, whatever becomes of the resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laptime.api.storage import VERSION_ANNOTATION, check_version
from laptime.catalog import Scenario, stored_text
from laptime.manifests.context import RunContext
from laptime.manifests.objects import Component, Manifest

SCENARIO_KEY = "scenario.json"


def scenario_name(run_name: str) -> str:
    """Return the name by which a run knows the ConfigMap."""
    return f"{run_name}-scenario"


def scenario_config_map(ctx: RunContext) -> Manifest:
    """Return the immutable ConfigMap with the scenario, all SQL and tables of ConfigMaps in it.

    It goes into the archive of the run with everything else that was stored.
    """
    labels = ctx.labels(Component.SCENARIO)
    manifest = ctx.manifest(
        "v1", "ConfigMap", scenario_name(ctx.name), labels, immutable=True,
        data={SCENARIO_KEY: stored_text(ctx.scenario)},
    )  # fmt: skip
    manifest["metadata"]["annotations"][VERSION_ANNOTATION] = str(ctx.stored_version)
    return manifest


def read_scenario(manifest: Mapping[str, Any]) -> Scenario:
    """Return what `scenario_config_map` stored.

    Raises:
        ValueError: somebody else wrote this object, or a newer version of Laptime.
    """
    name = manifest["metadata"]["name"]
    check_version(f"ConfigMap {name}", manifest["metadata"])
    text = (manifest.get("data") or {}).get(SCENARIO_KEY)
    if text is None:
        raise ValueError(f"ConfigMap {name} has no {SCENARIO_KEY}")
    return Scenario.model_validate_json(text)
