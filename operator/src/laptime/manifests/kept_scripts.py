"""The scripts that a run keeps: what it began with, whatever becomes of their ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laptime.manifests.context import RunContext
from laptime.manifests.objects import Component, Manifest, content_hash

_CONTENT = ("data", "binaryData")


def kept_script_name(run_name: str, config_map: str) -> str:
    """Return the name of the run's own copy of a ConfigMap.

    By its hash, since the name of a ConfigMap may be longer than fits behind another one.
    """
    return f"{run_name}-script-{content_hash(config_map)[:8]}"


def kept_script(ctx: RunContext, config_map: str, source: Mapping[str, Any]) -> Manifest:
    """Return the immutable copy of a ConfigMap that a script's files come from.

    It stays when the run is over: what failed may be measured again.
    """
    labels = ctx.labels(Component.SCRIPT)
    name = kept_script_name(ctx.name, config_map)
    content = {key: dict(source[key]) for key in _CONTENT if source.get(key)}
    return ctx.manifest("v1", "ConfigMap", name, labels, immutable=True, **content)


def script_hash(config_map: Mapping[str, Any]) -> str:
    """Return what stands for the files of a ConfigMap, whatever it is called."""
    binary = config_map.get("binaryData") or {}
    # In a manifest that the API server has not seen yet it may be broken into lines.
    unbroken = {key: "".join(str(text).split()) for key, text in binary.items()}
    return content_hash({"data": config_map.get("data") or {}, "binaryData": unbroken})
