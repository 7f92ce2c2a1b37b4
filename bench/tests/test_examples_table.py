"""The table of the published benchmarks, and what makes `make examples` fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_up import AS_PUBLISHED, measured
from measured import HEADINGS, order_notes, problems, table_lines
from run import BENCHMARKS, EQUAL_POOLS, QUESTIONS, ROOT, images_of, path_of

from laptime.cli.manifest_file import read_manifest


def test_each_row_has_the_published_factor_beside_the_measured_one() -> None:
    lines = table_lines(measured())
    assert {len(line) for line in lines} == {len(HEADINGS)}
    assert lines == [
        ("users", "sync", "closed", "1x (baseline)", "1.00x", "yes", "server CPU"),
        ("users", "async", "closed", "4.00x (3.96 to 4.04)", "3.70x", "yes", "server CPU"),
        ("users", "axum", "closed", "10.0x (9.90 to 10.1)", "25.1x", "yes", "server CPU"),
    ]
    assert order_notes(measured()) == []


def test_another_order_is_said_and_is_no_problem() -> None:
    turned = measured({**AS_PUBLISHED, "axum": 900.0})
    assert [line[5] for line in table_lines(turned)] == ["no"] * 3
    assert order_notes(turned) == [
        "users, closed: Published: axum, async, sync; measured: async, axum, sync; "
        "async is faster than axum here."
    ]
    assert problems(turned) == []


def test_servers_that_cannot_be_told_apart_leave_the_order_undecided() -> None:
    close = measured({**AS_PUBLISHED, "axum": 1601.0})
    assert [line[5] for line in table_lines(close)] == ["undecided"] * 3
    assert "axum and async cannot be told apart" in order_notes(close)[0]


def test_a_load_that_was_not_published_has_neither_factor_nor_order() -> None:
    other = measured(connections=7)
    assert [line[4:6] for line in table_lines(other)] == [("-", "-")] * 3
    assert order_notes(other) == []


def test_a_complete_benchmark_has_no_problem() -> None:
    assert problems(measured()) == []


def test_a_trial_that_is_missing_is_a_problem_with_its_reason() -> None:
    short = measured(trials=2, reason="TrialsFailed", message="1 of 3 trials failed")
    assert problems(short) == [
        "users, axum, closed: 2 of 3 trials measured (TrialsFailed: 1 of 3 trials failed)"
    ]


@pytest.mark.parametrize("field", ["factor", "requests_per_second"])
def test_a_row_without_a_figure_is_a_problem(field: str) -> None:
    without: dict[str, Any] = {field: None}
    assert problems(measured(**without)) == ["users, axum, closed: no figure"]


def test_a_row_that_is_not_there_is_a_problem() -> None:
    without_axum = {name: rate for name, rate in AS_PUBLISHED.items() if name != "axum"}
    assert problems(measured(without_axum)) == ["users, axum, closed: there is no row"]


def test_an_order_that_cannot_be_known_is_a_problem() -> None:
    whole = measured()
    without_trials = replace(whole, report=replace(whole.report, trials=[]))
    assert problems(without_trials) == [
        "users: its trials did not fit into results.json, so no order"
    ]


def test_images_are_those_that_the_examples_name() -> None:
    every = {
        name: read_manifest(ROOT / "examples" / path_of(name))
        for name in (*BENCHMARKS, *EQUAL_POOLS, *QUESTIONS)
    }
    recipes = every["recipes"]
    assert images_of([recipes]) == [
        "delay",
        "server-axum-bb8",
        "server-django-psycopg",
        "server-starlette-asyncpg",
    ]
    for name in EQUAL_POOLS:
        assert images_of([every[name]]) == images_of([every[name.removesuffix("-equal-pools")]])
    folders = {path.parent.name for path in (ROOT / "images").rglob("Dockerfile")}
    assert images_of([every["cache-in-front"]]) == [
        "example-cache-in-front-redis",
        "example-cache-in-front-shop",
    ]
    assert all((ROOT / "examples" / name).is_dir() for name in QUESTIONS)
    needed = images_of([every[name] for name in BENCHMARKS])
    assert {name.removeprefix("server-") for name in needed} <= folders
    assert "upstream" in needed
    assert len([name for name in needed if name.startswith("server-")]) == 13
