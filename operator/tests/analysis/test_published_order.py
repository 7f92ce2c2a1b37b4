"""The published order is confirmed, contradicted, or neither: as far as the figures go."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.analysis.published_order import Agreement, OrderComparison, compare_order
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Published
from laptime.plan import Trial
from tests.analysis.runs import Outcome, Script, run, steady

SPEC = BenchmarkRunSpec.model_validate(
    {
        "scenario": "users",
        "servers": [
            {"name": "sync", "preset": "fastapi-sync"},
            {"name": "async", "preset": "fastapi-async"},
            {"name": "axum", "preset": "axum-sqlx"},
        ],
        "loads": [{"name": "closed", "closed": {"connections": 10, "duration": "5s"}}],
        "repetitions": 5,
    }
)


def source(**measurement: Any) -> Published:
    load = {"closed": {"connections": 10, "keepAlive": True}}
    return Published.model_validate(
        {
            "title": "made up",
            "baseline": "fastapi-sync",
            "measurements": [{"load": load, **measurement}],
        }
    )


RANKED = source(order=["axum-sqlx", "fastapi-async", "fastapi-sync"])
ALIKE = source(
    servers=[
        {"preset": "fastapi-sync", "requestsPerSecond": 50},
        {"preset": "fastapi-async", "requestsPerSecond": 50},
    ]
)


def compared(published: Published, script: Script) -> OrderComparison:
    found = compare_order(published, SPEC, "closed", run(SPEC, script)[1])
    assert found is not None
    return found


def test_the_same_order_is_confirmed() -> None:
    found = compared(RANKED, steady({"sync": 100, "async": 200, "axum": 300}))
    assert found.agreement is Agreement.YES
    assert found.text == "Published: axum, async, sync; measured: axum, async, sync."


def test_servers_the_other_way_round_are_named() -> None:
    found = compared(RANKED, steady({"sync": 250, "async": 200, "axum": 300}))
    assert found.agreement is Agreement.NO
    assert found.measured == ("axum", "sync", "async")
    assert found.contrary == ("sync is faster than async here",)


def test_chance_neither_confirms_nor_contradicts() -> None:
    noise = (0.8, 1.3, 1.0, 0.7, 1.2)

    def script(trial: Any) -> Outcome:
        rate = {"sync": 100.0, "async": 99.0, "axum": 5000.0}[trial.server]
        return Outcome(rate * (noise[trial.repetition - 1] if trial.server == "sync" else 1))

    found = compared(RANKED, script)
    assert found.agreement is Agreement.UNDECIDED
    assert found.undecided == ("async and sync cannot be told apart",)


def test_a_server_without_figures_leaves_it_open() -> None:
    def script(trial: Any) -> Outcome | None:
        return None if trial.server == "axum" else steady({"sync": 100, "async": 200})(trial)

    found = compared(RANKED, script)
    assert found.agreement is Agreement.UNDECIDED
    assert found.undecided == (
        "axum and async were not measured together",
        "axum and sync were not measured together",
    )
    assert found.measured == ("async", "sync")


@pytest.mark.parametrize(
    ("rate", "agreement"), [(104, Agreement.YES), (97, Agreement.YES), (150, Agreement.NO)]
)
def test_the_same_published_figure_allows_a_tenth(rate: float, agreement: Agreement) -> None:
    found = compared(ALIKE, steady({"sync": 100, "async": rate, "axum": 1}))
    assert found.agreement is agreement


@pytest.mark.parametrize(
    "rates", [(108.0,), (70.0, 140.0, 100.0, 72.0, 139.0), (104.0, 112.0, 107.0, 113.0, 105.0)]
)
def test_what_chance_allows_does_not_confirm_that_servers_are_alike(
    rates: tuple[float, ...],
) -> None:
    def script(trial: Trial) -> Outcome | None:
        if trial.repetition > len(rates):
            return None
        return Outcome(rates[trial.repetition - 1] if trial.server == "async" else 100.0)

    found = compared(ALIKE, script)
    assert found.agreement is Agreement.UNDECIDED
    assert found.undecided == (
        "sync and async may differ by more than a tenth, and were published as alike",
    )


def test_what_was_alike_and_is_not_is_said() -> None:
    found = compared(ALIKE, lambda trial: Outcome(150 if trial.server == "sync" else 100))
    assert found.contrary == ("sync is 1.50x async, published as alike",)


def test_servers_behind_the_first_need_no_order_of_their_own() -> None:
    first = source(order=["axum-sqlx"], behind=["fastapi-sync", "fastapi-async"])
    for rates in ({"sync": 1, "async": 2, "axum": 3}, {"sync": 2, "async": 1, "axum": 3}):
        assert compared(first, steady(rates)).agreement is Agreement.YES
    found = compared(first, steady({"sync": 4, "async": 1, "axum": 3}))
    assert found.contrary == ("sync is faster than axum here",)


def test_a_source_that_ranks_nobody_is_not_compared() -> None:
    assert compare_order(source(order=["axum-sqlx"]), SPEC, "closed", []) is None
