"""The ConfigMaps of scripts and certificates: those that a run keeps, else those there are now."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from laptime.kube import Kube, Manifest
from laptime.manifests.kept_scripts import kept_script_name, script_hash
from laptime.plan import Leads, script_leads
from laptime.reconcile.cache import version_of
from laptime.reconcile.children import Child, Children
from laptime.reconcile.views import Run

_AGAIN_SECONDS = 10.0
_MISSING_SECONDS = 1.0


@dataclass(frozen=True)
class Scripts:
    """What is known of them."""

    keys: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """By the names of ConfigMaps in the spec; None: there is none of that name."""
    leads: Mapping[str, Leads] = field(default_factory=dict)
    """Where scripts lead to beside their target, by load."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """What stands for the files of those of which the run has a copy."""
    sources: Mapping[str, Manifest] = field(default_factory=dict)
    """Those of scripts of which it has no copy yet."""


class ScriptDesk:
    """Reads the ConfigMaps of one run: again every few seconds until the run has copies."""

    def __init__(self, children: Children) -> None:
        self._children = children
        self._known = Scripts()
        self._read_at = -math.inf
        self._uids: dict[str, str] = {}
        self._versions: dict[str, int] = {}

    async def look(self, kube: Kube, run: Run) -> Scripts:
        """Return what is known of them now.

        Raises:
            KubeError: the API server cannot be asked.
        """
        wanted = {name for _, name, _ in run.spec.config_maps}
        copies = self._copies(run)
        uids = {name: one.uid for name, one in copies.items()}
        if uids == self._uids and time.monotonic() - self._read_at < self._patience(wanted):
            return self._known
        manifests: dict[str, Manifest] = {}
        kept: dict[str, str] = {}
        for name in sorted(wanted):
            copy = copies.get(name)
            found = copy and await kube.get("ConfigMap", run.namespace, copy.name)
            if found:
                kept[name] = script_hash(found)
            else:
                found = await kube.get("ConfigMap", run.namespace, name)
            if found is not None:
                manifests[name] = found
        versions = {name: version_of(one) for name, one in manifests.items()}
        leads = self._known.leads
        if versions != self._versions:
            # Not in the loop: what a stranger wrote may be long.
            leads = await asyncio.to_thread(leads_of_scripts, run, manifests)
        keys = {name: config_map_keys(manifests[name]) for name in manifests}
        missing = dict.fromkeys(wanted - set(manifests))
        to_keep = set(run.spec.script_config_maps) & set(manifests) - set(kept)
        sources = {name: manifests[name] for name in sorted(to_keep)}
        self._known = Scripts({**keys, **missing}, leads, kept, sources)
        self._uids, self._versions, self._read_at = uids, versions, time.monotonic()
        return self._known

    def _copies(self, run: Run) -> dict[str, Child]:
        found = {
            name: self._children.find("ConfigMap", kept_script_name(run.name, name))
            for name in run.spec.script_config_maps
        }
        return {name: child for name, child in found.items() if child is not None}

    def _patience(self, wanted: set[str]) -> float:
        if wanted <= set(self._known.kept):
            return math.inf  # A copy never changes.
        return _MISSING_SECONDS if None in self._known.keys.values() else _AGAIN_SECONDS


def leads_of_scripts(run: Run, config_maps: Mapping[str, Manifest]) -> dict[str, Leads]:
    """Return where each script leads to whose ConfigMaps are there, by load."""
    return {
        load.name: script_leads(
            load.script, [config_maps[name] for name in load.script.config_maps], [f"{run.name}-"]
        )
        for load in run.spec.loads
        if load.script is not None and set(load.script.config_maps) <= set(config_maps)
    }


def config_map_keys(config_map: Manifest) -> frozenset[str]:
    """Return the keys of a ConfigMap; an archive of a script is no text."""
    return frozenset({**(config_map.get("data") or {}), **(config_map.get("binaryData") or {})})
