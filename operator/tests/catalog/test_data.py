"""The data of the scenarios are the same in every run; expected answers follow from them."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import Any

import jsonschema
import pytest

from laptime.catalog import ID_PLACEHOLDER, Check, IdUse, Scenario, scenarios


def seeded(scenario: Scenario) -> sqlite3.Connection:
    """Return an SQLite database in memory with the schema and the data of a scenario."""
    connection = sqlite3.connect(":memory:")
    for _, sql in scenario.sqlite_sql:
        connection.executescript(sql)
    connection.row_factory = sqlite3.Row
    return connection


def check(scenario: str, name: str) -> Check:
    """Return a check by its name."""
    return next(one for one in scenarios()[scenario].checks if one.name == name)


def compact(value: Any) -> bytes:
    """Return JSON as a server sends it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def test_posts_and_tasks_are_offered_on_sqlite() -> None:
    assert [one.name for one in scenarios().values() if one.sqlite_sql] == [
        "apibench",
        "posts",
        "tasks",
    ]


def test_a_scenario_may_be_others_together() -> None:
    together = scenarios()["apibench"]
    parts = [scenarios()[name] for name in ("hello", "upstream", "posts")]
    assert [one.name for one in together.requests] == ["hi", "users", "posts"]
    assert together.checks == [check for part in parts for check in part.checks]
    assert together.data == parts[2].data
    assert together.needs_database
    assert together.needs_upstream


@pytest.mark.parametrize("scenario", scenarios().values(), ids=lambda scenario: scenario.name)
def test_no_data_depend_on_time_or_chance(scenario: Scenario) -> None:
    for _, sql in [
        *scenario.init_sql,
        *scenario.sqlite_sql,
        ("reset", str(scenario.reset_statements)),
    ]:
        assert not re.search(r"random\(|now\(|gen_random_uuid|current_timestamp", sql, re.I)


@pytest.mark.parametrize("scenario", scenarios().values(), ids=lambda scenario: scenario.name)
def test_before_each_trial_statistics_are_reset_and_a_checkpoint_is_done(
    scenario: Scenario,
) -> None:
    if not scenario.needs_database:
        assert scenario.reset_statements == []
        return
    for statement in ("SELECT pg_stat_reset()", "SELECT pg_stat_statements_reset()", "CHECKPOINT"):
        assert statement in scenario.reset_statements
    assert "ANALYZE" in scenario.init_sql[-1][1]


@pytest.mark.parametrize("scenario", scenarios().values(), ids=lambda scenario: scenario.name)
def test_an_expected_answer_meets_its_schema(scenario: Scenario) -> None:
    for one in scenario.checks:
        if one.expected is not None and one.json_schema is not None:
            jsonschema.validate(one.expected, one.json_schema)


@pytest.mark.parametrize("scenario", scenarios().values(), ids=lambda scenario: scenario.name)
def test_ids_are_asked_for_where_they_are_given(scenario: Scenario) -> None:
    for request in scenario.requests:
        place = request.path + (request.body or "")
        assert (request.ids is not None) == (ID_PLACEHOLDER in place)
    known = False
    for one in scenario.checks:
        assert known or ID_PLACEHOLDER not in one.path, f"{one.name}: no check before keeps an id"
        known = known or one.keeps_id


def test_the_expected_posts_are_what_the_seed_makes() -> None:
    rows = seeded(scenarios()["posts"]).execute(
        "SELECT id, title, body FROM posts ORDER BY id DESC LIMIT 10"
    )
    expected = check("posts", "posts").expected
    assert [dict(row) for row in rows] == expected
    assert 12_000 < len(compact(expected)) < 13_000


def test_posts_all_differ() -> None:
    row = (
        seeded(scenarios()["posts"])
        .execute("SELECT count(*), count(DISTINCT body), count(DISTINCT title) FROM posts")
        .fetchone()
    )
    assert tuple(row) == (500, 500, 500)


def test_tasks_have_the_rows_that_requests_and_checks_are_about() -> None:
    database = seeded(scenarios()["tasks"])
    ids = {row["id"] for row in database.execute("SELECT id FROM tasks")}
    used_once: set[int] = set()
    used_again: set[int] = set()
    for request in scenarios()["tasks"].requests:
        if request.ids is not None:
            used = range(request.ids.first, request.ids.last + 1)
            assert request.ids.count == len(used)
            (used_once if request.ids.use is IdUse.ONCE else used_again).update(used)
    assert used_once | used_again <= ids
    assert not used_once & used_again, "a row is read that another request has deleted"
    for name in ("read-prepared", "read-prepared-done"):
        expected = check("tasks", name).expected
        assert isinstance(expected, dict)
        assert expected["id"] not in used_once | used_again
        row = database.execute("SELECT * FROM tasks WHERE id = ?", [expected["id"]]).fetchone()
        assert {**dict(row), "done": bool(row["done"])} == expected


def test_tasks_are_the_same_in_both_databases_and_after_a_reset() -> None:
    tasks = scenarios()["tasks"]
    assert "TRUNCATE tasks RESTART IDENTITY" in tasks.reset_statements
    insert = next(one for one in tasks.reset_statements if one.startswith("INSERT"))
    assert insert in dict(tasks.init_sql)["02-seed.sql"]
    count = seeded(tasks).execute("SELECT count(*), max(id) FROM tasks").fetchone()
    assert tuple(count) == (61_000, 61_000)
    assert "generate_series(1, 61000)" in insert


def test_a_recipe_is_about_three_and_a_half_kilobytes_and_hides_what_was_deleted() -> None:
    recipe = check("recipes", "only-recipe").expected
    assert isinstance(recipe, dict)
    assert 3_400 < len(compact(recipe)) < 3_800
    kinds = [one["type"] for one in recipe["ingredients"]]  # type: ignore[union-attr, index, call-overload]
    assert kinds == ["ingredient"] * 7 + ["section"] * 2
    kinds = [one["type"] for one in recipe["timeline"]]  # type: ignore[union-attr, index, call-overload]
    assert kinds == ["event"] * 4 + ["note"] * 3
    schema = check("recipes", "recipe").json_schema
    assert schema is not None
    jsonschema.validate(recipe, schema)
