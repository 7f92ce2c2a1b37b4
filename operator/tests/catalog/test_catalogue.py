"""Every entry of the catalogue is complete and refers only to entries that exist."""

from __future__ import annotations

import jsonschema
import pytest

from laptime.catalog import Preset, Scenario, presets, scenarios


def test_the_catalogue_has_the_first_published_benchmark() -> None:
    assert "users" in scenarios()
    assert {"fastapi-sync", "fastapi-async", "axum-sqlx"} <= set(presets())


@pytest.mark.parametrize("preset", presets().values(), ids=lambda preset: preset.name)
def test_a_preset_serves_known_scenarios_from_an_image_of_its_own(preset: Preset) -> None:
    assert set(preset.scenarios) <= set(scenarios())
    assert preset.image == f"server-{preset.name}"


@pytest.mark.parametrize("scenario", scenarios().values(), ids=lambda scenario: scenario.name)
def test_a_scenario_is_complete(scenario: Scenario) -> None:
    assert scenario.needs_database == bool(scenario.init_sql)
    assert len({request.name for request in scenario.requests}) == len(scenario.requests)
    assert {(request.method, request.path) for request in scenario.requests} <= {
        (check.method, check.path) for check in scenario.checks
    }, "a request is sent whose answer is never checked"
    for check in scenario.checks:
        jsonschema.Draft202012Validator.check_schema(check.json_schema or {})


@pytest.mark.parametrize("scenario", scenarios().values(), ids=lambda scenario: scenario.name)
def test_published_figures_are_about_presets_of_the_catalogue(scenario: Scenario) -> None:
    if scenario.published is None:
        return
    assert scenario.published.baseline in presets()
    for measurement in scenario.published.measurements:
        for server in measurement.servers:
            assert scenario.name in presets()[server.preset].scenarios


@pytest.mark.parametrize("scenario", scenarios().values(), ids=lambda scenario: scenario.name)
def test_a_scenario_fits_into_the_environment_of_a_job(scenario: Scenario) -> None:
    checks = "".join(check.model_dump_json(by_alias=True) for check in scenario.checks)
    assert len(checks) < 100_000
