"""Schema and rows that are in images: their place among the others, and what counts for what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from laptime.catalog import (
    Scenario,
    config_maps_of,
    document_of,
    document_spec,
    scenario_of,
    stored_text,
)
from laptime.catalog.problems import MAX_SQL_BYTES, scenario_problems

ROWS = {"image": "registry.example/shop-data:3", "file": "/data/rows.sql"}
TABLE = {"sql": "CREATE TABLE item (id int);"}
DONE = {"configMap": {"name": "shop", "key": "done.sql"}}


def document(schema: list[Any], seed: list[Any], **postgres: Any) -> dict[str, Any]:
    spec = {
        "data": {"postgres": {"schema": schema, "seed": seed, **postgres}},
        "requests": [{"name": "list", "path": "/"}],
        "checks": [{"name": "list", "path": "/"}],
    }
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkScenario",
        "metadata": {"name": "shop"},
        "spec": spec,
    }


def scenario(*args: Any, **more: Any) -> Scenario:
    return scenario_of(document(*args, **more), {("shop", "done.sql"): "SELECT 1;"})


def test_all_parts_are_numbered_in_the_order_of_the_scenario() -> None:
    found = scenario([TABLE, ROWS], [ROWS, DONE, ROWS])
    assert found.init_sql == [("01-schema.sql", TABLE["sql"]), ("04-seed.sql", "SELECT 1;")]
    assert [(one.name, one.what, one.index) for one in found.packed_sql] == [
        ("02-schema.sql", "schema", 1),
        ("03-seed.sql", "seed", 0),
        ("05-seed.sql", "seed", 2),
    ]
    assert {(one.image, one.file) for one in found.packed_sql} == {(ROWS["image"], ROWS["file"])}


def test_a_scenario_with_all_its_sql_in_images_is_one_with_a_database() -> None:
    found = scenario([ROWS], [])
    assert (found.needs_database, found.offers_postgres, found.offers_sqlite) == (True, True, False)
    assert found.init_sql == []
    assert scenario_problems(found) == []


def test_nobody_but_postgres_reads_what_is_in_an_image_and_no_bound_counts_it() -> None:
    much = {"sql": f"SELECT '{'x' * (MAX_SQL_BYTES - 50)}';"}
    assert scenario_problems(scenario([TABLE], [ROWS] * 15 + [much])) == []
    half = {"sql": f"SELECT '{'x' * (MAX_SQL_BYTES // 2)}';"}
    (said,) = scenario_problems(scenario([TABLE], [half, ROWS, half]))
    assert said.endswith("instead of writing them out, or put them into an image")
    # Of the others it is said as before, under their own numbers.
    (said,) = scenario_problems(scenario([TABLE], [ROWS, {"sql": "-- later"}]))
    assert said.startswith("data.postgres.seed[1] has no statement")


def test_only_config_maps_are_looked_for() -> None:
    (wanted,) = config_maps_of(document_spec(document([TABLE], [ROWS, DONE])))
    assert (wanted.name, wanted.key) == ("shop", "done.sql")


def test_image_and_file_are_part_of_the_work_and_of_what_a_run_keeps() -> None:
    found = scenario([TABLE], [ROWS, DONE])
    others = [{**ROWS, "image": "registry.example/shop-data:4"}, {**ROWS, "file": "/data/a.sql"}]
    hashes = {scenario([TABLE], [one, DONE]).hash for one in (*others, TABLE)}
    assert len(hashes | {found.hash}) == 4
    kept = json.loads(stored_text(found))["data"]["postgres"]["seed"]
    assert kept == [ROWS, {"sql": "SELECT 1;"}]
    assert Scenario.model_validate_json(stored_text(found)) == found
    assert document_of(found, "default")["spec"]["data"]["postgres"]["seed"] == kept


def test_what_does_not_use_images_has_the_hash_that_it_always_had() -> None:
    assert scenario([TABLE], [{"sql": "SELECT 1;"}]).hash == "f95e6917cfad75e1"


@pytest.mark.parametrize("place", ["reset", "warm"])
def test_what_runs_before_each_trial_is_in_no_image(place: str) -> None:
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        scenario([TABLE], [], **{place: [ROWS]})
