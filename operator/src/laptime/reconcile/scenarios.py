"""Which scenario a run is measured on: the one that it keeps, else the one that there is now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

import pydantic

from laptime.api import SCENARIO_KIND
from laptime.api.config_maps import ConfigMapKey
from laptime.api.text import plain
from laptime.catalog import (
    UNKNOWN,
    Scenario,
    ScenarioError,
    config_maps_of,
    document_spec,
    scenario_of,
    scenarios,
)
from laptime.kube import Kube, Manifest
from laptime.manifests.objects import known_as
from laptime.manifests.result import results_name
from laptime.manifests.scenario import read_scenario, scenario_name
from laptime.reconcile.children import Children
from laptime.reconcile.fold import read_archive
from laptime.reconcile.scenario_rules import problems_apart
from laptime.reconcile.views import Run

_NAMED = 5
_AT_ONCE_SECONDS = 1.0
"""Nearly all scenarios are looked at in half of it; of one that takes longer that is said."""
_LOST = "the run has lost what it kept of"
_REPLACED = "somebody has replaced what the run keeps of"
_OTHER_NAME = "apply the run under another name"


@dataclass(frozen=True)
class Found:
    """The scenario of a run, or why there is none."""

    scenario: Scenario = UNKNOWN
    kept: bool = False
    """The run has it, in an object of its own."""
    problem: ScenarioError | None = None
    looked_at: bool = False
    """Its rules are looked at, so that it is not known yet whether it may be measured."""


class ScenarioDesk:
    """Looks the scenario of one run up, and remembers it once the run keeps it."""

    def __init__(
        self,
        kube: Kube,
        children: Children,
        extensions: Collection[str],
        wake: Callable[[], None],
    ) -> None:
        """`extensions` of Postgres are those that the administrator allows.

        `wake` is called when the rules of the scenario have been looked at.
        """
        self._kube = kube
        self._children = children
        self._extensions = extensions
        self._kept: Scenario | None = None
        self._began_with: str | None = None
        """The hash, of the run's status, that what is kept was compared with."""
        self._wake = wake
        self._checked: tuple[Scenario, asyncio.Task[list[str]]] | None = None

    def close(self) -> None:
        """Look at no rules any more."""
        if self._checked is not None:
            self._checked[1].cancel()

    async def find(self, run: Run) -> Found:
        """Return the scenario that the run keeps, else the one that it would begin with now.

        Raises:
            KubeError: the API server cannot be asked.
        """
        if self._kept is None:
            try:
                self._kept = await self._stored(run)
            except ValueError as error:
                what = "the scenario that the run keeps cannot be read"
                return _refused("ScenarioUnreadable", f"{what}: {plain(str(error))}")
        kept, began_with = self._kept, run.status.scenario_hash
        if kept is not None and began_with is not None and began_with == self._began_with:
            return Found(kept, kept=True)
        if kept is not None and _is_another(kept, run):
            what = f"the run keeps another scenario than {run.spec.scenario}"
            return _refused("ScenarioChanged", f"{what}: {_OTHER_NAME}")
        try:
            scenario = await self._current(run) if kept is None else kept
            # What is kept was looked at before its hash was written down. Without that anybody may
            # have made it, who writes ConfigMaps there.
            known = kept is not None and began_with is not None
            if not known and not await self._may_be_measured(scenario, run):
                return Found(looked_at=True)
        except ScenarioError as error:
            return Found(problem=error)
        if began_with is not None and scenario.hash != began_with:
            return _refused(
                "ScenarioChanged",
                f"{_LOST if kept is None else _REPLACED} scenario {run.spec.scenario}, which is "
                f"other work by now ({scenario.hash}, it began with {began_with}): {_OTHER_NAME}",
            )
        self._began_with = began_with
        return Found(scenario, kept=kept is not None)

    async def _stored(self, run: Run) -> Scenario | None:
        child = self._children.find("ConfigMap", scenario_name(run.name))
        if child is not None:
            manifest = await self._kube.get("ConfigMap", run.namespace, child.name)
            return None if manifest is None else read_scenario(manifest)
        head = self._children.find("ConfigMap", results_name(run.name))
        archive = await read_archive(self._kube, run.namespace, head.name) if head else None
        for one in archive.objects if archive else []:
            if known_as(one["metadata"]) == scenario_name(run.name):
                return read_scenario(one)
        return None

    async def _current(self, run: Run) -> Scenario:
        name = run.spec.scenario
        document = await self._kube.get(SCENARIO_KIND, run.namespace, name)
        if document is None:
            if name in scenarios():
                return scenarios()[name]
            raise ScenarioError(
                "ScenarioMissing",
                f"there is no {SCENARIO_KIND} {name} in namespace {run.namespace}, and none of "
                f"that name comes with Laptime: apply it, or write {', '.join(scenarios())}",
                fatal=False,
            )
        return await self._with_texts(document, run.namespace)

    async def _may_be_measured(self, scenario: Scenario, run: Run) -> bool:
        """Return whether its rules were looked at by now, which may take longer.

        Raises:
            ScenarioError: it breaks one, or has what the administrator does not allow.
        """
        if scenario.builtin:
            return True
        # One that has begun with it cannot go on, nor end, without it.
        begun = run.status.scenario_hash is not None
        problems = await self._problems(scenario, None if begun else _AT_ONCE_SECONDS)
        if problems is None:
            return False
        if problems:
            more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
            said = plain("; ".join(problems[:_NAMED]))
            raise ScenarioError("ScenarioWrong", f"scenario {scenario.name}: {said}{more}")
        self._allow(scenario)
        return True

    async def _with_texts(self, document: Manifest, namespace: str) -> Scenario:
        name = document["metadata"]["name"]
        try:
            wanted = config_maps_of(document_spec(document))
            maps = {
                one: await self._kube.get("ConfigMap", namespace, one)
                for one in sorted({key.name for key in wanted})
            }
            texts = {}
            for one in wanted:
                config_map = maps[one.name]
                data = (config_map.get("data") or {}) if config_map is not None else {}
                if one.key not in data:
                    raise _text_missing(name, namespace, one, config_map)
                texts[one.name, one.key] = data[one.key]
            return scenario_of(document, texts)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ScenarioError(
                "ScenarioNotUnderstood", f"scenario {name}: {place}: {plain(first['msg'])}"
            ) from error

    async def _problems(
        self, scenario: Scenario, patience_seconds: float | None
    ) -> list[str] | None:
        """Return what is wrong with a scenario, which is asked once as long as it is the same.

        None: it takes longer than the patience, which there is once.
        """
        if self._checked is None or self._checked[0] != scenario:
            self.close()
            task = asyncio.create_task(problems_apart(scenario))
            task.add_done_callback(lambda _: self._wake())
            self._checked = (scenario, task)
        elif patience_seconds is not None:
            # So long it has been waited for.
            patience_seconds = 0.0
        task = self._checked[1]
        await asyncio.wait({task}, timeout=patience_seconds)
        if not task.done():
            return None
        try:
            return task.result()
        except Exception:
            # It says nothing of the scenario, and is asked again.
            self._checked = None
            raise

    def _allow(self, scenario: Scenario) -> None:
        refused = [one for one in scenario.extensions if one not in self._extensions]
        if refused:
            allowed = ", ".join(sorted(self._extensions)) or "none"
            raise ScenarioError(
                "ExtensionNotAllowed",
                f"scenario {scenario.name}: the administrator does not allow {', '.join(refused)} "
                f"(scenarios.extensions of the chart); allowed: {allowed}",
            )


def _text_missing(
    scenario: str, namespace: str, wanted: ConfigMapKey, found: Manifest | None
) -> ScenarioError:
    if found is not None and wanted.key in (found.get("binaryData") or {}):
        # No other of its keys will ever be this text.
        return ScenarioError("ScenarioTextMissing", f"scenario {scenario}: {wanted.no_text}")
    if found is None:
        said = (
            f"there is no ConfigMap {wanted.name} in namespace {namespace}: create it with kubectl "
            f"create configmap {wanted.name} --from-file={wanted.key} -n {namespace}"
        )
    else:
        keys = plain(", ".join(sorted(found.get("data") or {}))) or "no keys"
        said = f"ConfigMap {wanted.name} has no key {wanted.key}; it has {keys}"
    return ScenarioError("ScenarioTextMissing", f"scenario {scenario}: {said}", fatal=False)


def _is_another(kept: Scenario, run: Run) -> bool:
    """Return whether what a run keeps is not what its spec names."""
    if kept.name != run.spec.scenario:
        return True
    if not kept.builtin or run.status.scenario_hash is not None:
        # Another version of Laptime may have come with other work.
        return False
    ours = scenarios().get(kept.name)
    return ours is None or ours.hash != kept.hash


def _refused(reason: str, message: str) -> Found:
    return Found(problem=ScenarioError(reason, message))
