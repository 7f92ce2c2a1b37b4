"""The scenario `users` is the published benchmark, and its data are the same everywhere."""

from __future__ import annotations

import hashlib
import json
import uuid

import jsonschema
import pytest

from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import scenarios

USERS = scenarios()["users"]
ROWS = 2000


def seeded_rows() -> list[dict[str, str]]:
    """Compute in Python what the seed makes in SQL."""
    return [
        {
            "user_id": str(uuid.UUID(hashlib.md5(f"laptime-user-{n}".encode()).hexdigest())),
            "username": f"user{n}",
            "email": f"user{n}@example.com",
        }
        for n in range(1, ROWS + 1)
    ]


def test_the_expected_answer_is_what_the_seed_makes() -> None:
    first_hundred = sorted(seeded_rows(), key=lambda row: row["user_id"])[:100]
    assert USERS.checks[0].expected == first_hundred


def test_the_seed_uses_that_formula_for_that_many_rows() -> None:
    seed = dict(USERS.init_sql)["02-seed.sql"]
    assert "md5('laptime-user-' || n)::uuid::text" in seed
    assert f"generate_series(1, {ROWS})" in seed


def test_ids_and_names_are_unique_so_that_the_order_is_total() -> None:
    rows = seeded_rows()
    for column in ("user_id", "username", "email"):
        assert len({row[column] for row in rows}) == ROWS


def test_ids_are_no_hint_at_the_order_of_insertion() -> None:
    numbers = [
        int(row["username"].removeprefix("user"))
        for row in sorted(seeded_rows(), key=lambda row: row["user_id"])[:100]
    ]
    assert numbers != sorted(numbers)
    assert max(numbers) > ROWS // 2


def test_the_expected_answer_meets_the_schema() -> None:
    check = USERS.checks[0]
    assert check.json_schema is not None
    jsonschema.Draft202012Validator.check_schema(check.json_schema)
    jsonschema.validate(check.expected, check.json_schema)


def test_an_answer_with_a_missing_row_or_an_extra_field_breaks_the_schema() -> None:
    check = USERS.checks[0]
    assert check.json_schema is not None
    assert isinstance(check.expected, list)
    first, *others = check.expected
    assert isinstance(first, dict)
    for wrong in (others, [{**first, "password": "secret"}, *others]):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, check.json_schema)


def test_the_answer_is_about_ten_kilobytes() -> None:
    size = len(json.dumps(USERS.checks[0].expected, separators=(",", ":")))
    assert 9_000 < size < 12_000


def test_schema_and_data_are_made_in_this_order() -> None:
    names = [name for name, _ in USERS.init_sql]
    assert names == ["01-schema.sql", "02-seed.sql"]
    assert "ANALYZE" in USERS.init_sql[1][1]


def run_spec(**closed: object) -> BenchmarkRunSpec:
    shape = {"connections": 10, "requests": 50000, "keepAlive": False, **closed}
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": [
                {"name": "base", "preset": "fastapi-sync"},
                {"name": "base-16", "preset": "fastapi-sync", "workers": 16},
                {"name": "asynchronous", "preset": "fastapi-async"},
                {"name": "axum", "preset": "axum-sqlx", "workers": 4},
                {"name": "mine", "image": "registry.example/mine:1"},
            ],
            "loads": [
                {"name": "closed", "closed": shape},
                {"name": "open", "open": {"rate": 10000, "duration": "30s"}},
            ],
        }
    )


@pytest.mark.parametrize(
    ("server", "factor"),
    [("base", 1.0), ("asynchronous", 3.70), ("axum", 25.1), ("base-16", 10531 / 612)],
)
def test_published_factors_stand_beside_servers_set_up_the_same(server: str, factor: float) -> None:
    assert USERS.published is not None
    assert USERS.published.factor(run_spec(), server, "closed") == pytest.approx(factor)


def test_published_factors_follow_the_baseline_of_the_run() -> None:
    assert USERS.published is not None
    spec = run_spec().model_copy(update={"baseline": "asynchronous"})
    assert USERS.published.factor(spec, "axum", "closed") == pytest.approx(25.1 / 3.70)


def test_the_published_open_load_has_its_own_factor() -> None:
    assert USERS.published is not None
    assert USERS.published.factor(run_spec(), "axum", "open") == pytest.approx(9920 / 317)


def test_nothing_is_published_about_own_images_or_other_loads() -> None:
    assert USERS.published is not None
    assert USERS.published.factor(run_spec(), "mine", "closed") is None
    assert USERS.published.factor(run_spec(), "asynchronous", "open") is None
    assert USERS.published.factor(run_spec(keepAlive=True), "axum", "closed") is None
    assert USERS.published.factor(run_spec(connections=50), "axum", "closed") is None


def test_factors_by_preset_are_the_published_ones() -> None:
    assert USERS.published is not None
    assert USERS.published.factors == {
        "fastapi-sync": 1.0,
        "fastapi-async": 3.70,
        "axum-sqlx": 25.1,
    }
