"""The files that are generated from the models and the catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from laptime.api.crd import build_crd
from laptime.api.scenario_rules import ScenarioFacts
from laptime.catalog import Scenario, presets, scenarios
from laptime.cli.reasons_page import reasons_page
from laptime.cli.reference import benchmarkrun_page, values_page
from laptime.report import results_schema

_HEADER = (
    "# Generated from the models in operator/src/laptime/api: change those, `make generate`.\n"
)


class _PlainDumper(yaml.SafeDumper):
    """Writes every value out: anchors and aliases would hide what the API server reads."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def catalogue_crd() -> dict[str, Any]:
    """Return the CRD with the scenarios and presets of the catalogue in its schema."""
    return build_crd(_facts(scenario) for scenario in scenarios().values())


def crd_text() -> str:
    """Return the CRD as YAML.

    Helm keeps it on uninstall: with the CRD every run and its results would go.
    """
    crd = catalogue_crd()
    crd["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    body: str = yaml.dump(crd, Dumper=_PlainDumper, sort_keys=False, width=100, allow_unicode=True)
    return _HEADER + body


def _facts(scenario: Scenario) -> ScenarioFacts:
    return ScenarioFacts(
        name=scenario.name,
        endpoints=tuple(request.name for request in scenario.requests),
        presets=tuple(
            name for name, preset in presets().items() if scenario.name in preset.scenarios
        ),
        needs_database=scenario.needs_database,
        offers_sqlite=bool(scenario.sqlite_sql),
        needs_upstream=scenario.needs_upstream,
    )


def write_crd(path: Path) -> None:
    """Write the CRD to that file; OSError when it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(crd_text(), encoding="utf-8")


def write_results_schema(path: Path) -> None:
    """Write the JSON Schema of results.json to that file; OSError when it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results_schema(), indent=1) + "\n", encoding="utf-8")


def write_reference(folder: Path, chart: Path) -> None:
    """Write the pages of every field, every value of the chart and every reason into that folder.

    `chart` is the folder of the chart; OSError when something cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    schema = json.loads((chart / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))
    (folder / "benchmarkrun.md").write_text(benchmarkrun_page(catalogue_crd()), encoding="utf-8")
    (folder / "values.md").write_text(values_page(schema, values), encoding="utf-8")
    (folder / "reasons.md").write_text(reasons_page(), encoding="utf-8")
