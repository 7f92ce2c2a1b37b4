"""The files that are generated from the models and the catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from laptime.api import GROUP
from laptime.api.crd import build_crd, build_scenario_crd
from laptime.catalog import presets
from laptime.cli.reasons_page import reasons_page
from laptime.cli.reference import resource_page, values_page
from laptime.cli.schema_rules import editor_schema
from laptime.report import results_schema

_HEADER = (
    "# Generated from the models in operator/src/laptime/api: change those, `make generate`.\n"
)
_KEPT = {
    "helm.sh/resource-policy": "keep",
    "argocd.argoproj.io/sync-options": "Prune=false",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}


class _PlainDumper(yaml.SafeDumper):
    """Writes every value out: anchors and aliases would hide what the API server reads."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def catalogue_crd() -> dict[str, Any]:
    """Return the CRD of runs, with the presets of the catalogue in its schema."""
    return build_crd(presets())


def catalogue_scenario_crd() -> dict[str, Any]:
    """Return the CRD of scenarios, with the presets of the catalogue in its schema."""
    return build_scenario_crd(presets())


def crd_text(crd: dict[str, Any]) -> str:
    """Return a CRD as YAML.

    What installs it never deletes it: with the CRD every object of it would go. Argo CD and Flux
    ask for annotations of their own when they prune, and not for that of Helm.
    """
    kept = {**crd["metadata"], "annotations": _KEPT}
    body: str = yaml.dump(
        {**crd, "metadata": kept}, Dumper=_PlainDumper, sort_keys=False, width=100,
        allow_unicode=True,
    )  # fmt: skip
    return _HEADER + body


def write_crds(folder: Path) -> None:
    """Write the CRDs to that folder, which has no others of Laptime's afterwards.

    OSError when they cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stale = set(folder.glob(f"{GROUP}_*.yaml"))
    for crd in (catalogue_crd(), catalogue_scenario_crd()):
        file = folder / f"{GROUP}_{crd['spec']['names']['plural']}.yaml"
        file.write_text(crd_text(crd), encoding="utf-8")
        stale.discard(file)
    for file in stale:
        file.unlink()


def write_results_schema(path: Path) -> None:
    """Write the JSON Schema of results.json to that file; OSError when it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results_schema(), indent=1) + "\n", encoding="utf-8")


def write_editor_schemas(folder: Path) -> list[Path]:
    """Write the JSON schemas of runs and scenarios into that folder, for editors; return the files.

    OSError when they cannot be written.
    """
    written = []
    for crd in (catalogue_crd(), catalogue_scenario_crd()):
        file = folder / f"{crd['spec']['names']['singular']}.schema.json"
        text = json.dumps(editor_schema(crd), indent=1, ensure_ascii=False) + "\n"
        file.write_text(text, encoding="utf-8")
        written.append(file)
    return written


def write_reference(folder: Path, chart: Path) -> None:
    """Write the pages of every field, every value of the chart and every reason into that folder.

    Beside the pages of runs and scenarios stand their JSON schemas, for editors.

    `chart` is the folder of the chart; OSError when something cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    schema = json.loads((chart / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))
    for crd in (catalogue_crd(), catalogue_scenario_crd()):
        name = crd["spec"]["names"]["singular"]
        (folder / f"{name}.md").write_text(resource_page(crd), encoding="utf-8")
    write_editor_schemas(folder)
    (folder / "values.md").write_text(values_page(schema, values), encoding="utf-8")
    (folder / "reasons.md").write_text(reasons_page(), encoding="utf-8")
