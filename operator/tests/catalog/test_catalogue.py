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


def test_answers_are_checked_under_load_as_far_as_the_contract_knows_them() -> None:
    checks = {
        # In a load that sends all of them, the writing ones too.
        name: {one.name: scenario.body_check(one, scenario.requests) for one in scenario.requests}
        for name, scenario in scenarios().items()
    }
    assert checks == {
        "apibench": {"hi": "same", "users": "same", "posts": "same"},
        "hello": {"hi": "same"},
        "posts": {"posts": "same"},
        # A random one each time.
        "recipes": {"recipe": "nonEmpty"},
        "sleep": dict.fromkeys(("sync", "async", "sync-1s", "async-1s"), "same"),
        # Each answer has an id of its own, or no body.
        "tasks": {
            "hello": "same",
            "create": "nonEmpty",
            "read": "nonEmpty",
            "update": "nonEmpty",
            "delete": None,
        },
        "upstream": {"users": "same"},
        "users": {"list": "same"},
    }


def test_only_a_check_of_the_very_request_says_that_its_answers_are_the_same() -> None:
    scenario = scenarios()["hello"]
    (hi,) = scenario.requests
    for change, expected in (
        ({"headers": {"accept-language": "de"}}, "nonEmpty"),
        ({"body": "{}"}, "nonEmpty"),
        ({"name": "another"}, None),
        ({"expect_status": 304}, None),
    ):
        assert scenario.body_check(hi.model_copy(update=change), [hi]) == expected


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
