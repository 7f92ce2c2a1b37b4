"""What a load sends, and which loads are impossible."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.api.loads import Load
from laptime.catalog import scenarios
from laptime.plan import load_problem, sent_requests, weight_of

TASKS = scenarios()["tasks"]


def load(endpoints: list[str] | None = None, **shape: Any) -> Load:
    shape = shape or {"closed": {"connections": 10, "requests": 10000}}
    return Load.model_validate({"name": "one", "endpoints": endpoints, **shape})


def mixed(requests: int = 10_000, **weights: int) -> Load:
    shares = [{"name": name, "weight": weight} for name, weight in weights.items()]
    return load(closed={"connections": 1, "requests": requests}, mix=shares)


def test_a_mix_names_the_requests_and_how_often_they_come() -> None:
    asked = sent_requests(mixed(update=1, read=3), TASKS)
    assert [(one.name, weight_of(mixed(update=1, read=3), one)) for one in asked] == [
        ("read", 3),
        ("update", 1),
    ]
    assert weight_of(load(), asked[0]) is None


def test_all_requests_are_sent_unless_some_are_named() -> None:
    assert sent_requests(load(), TASKS) == TASKS.requests
    named = sent_requests(load(["read", "create", "read"]), TASKS)
    assert [request.name for request in named] == ["create", "read"]


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (load(["reed"]), "scenario tasks has no endpoint reed; it has hello, create, read, update"),
        (load(["delete"], closed={"connections": 1, "requests": 50_001}), "send at most 50000"),
        (
            load(["delete"], closed={"connections": 1, "duration": "10s"}),
            "load one: delete uses each of its 50000 rows once: give closed.requests",
        ),
        (load(["delete"], open={"rate": 6000, "duration": "10s"}), "60000 requests are too many"),
        (
            load(["delete"], ramp={"from": 1, "to": 12_000, "duration": "10s"}),
            "60005 requests are too many",
        ),
        (load(["delete"], saturation={"p99": "50ms"}), "instead of a duration or a search"),
        (
            load(closed={"connections": 1, "duration": "10s"}),
            "give closed.requests, at most 249960",
        ),
        (
            load(["delete"], stairs={"steps": [{"rate": 3000, "duration": "10s"}] * 2}),
            "60000 requests are too many",
        ),
        (mixed(reed=1), "scenario tasks has no endpoint reed"),
        (mixed(read=1, delete=1, requests=99_985), "send at most 99984"),
        # Each of the generator's threads may be at another place of the order.
        (mixed(read=9, delete=1, requests=499_761), "send at most 499760"),
        (mixed(read=1, delete=9, requests=55_529), "send at most 55528"),
    ],
)
def test_an_impossible_load_is_told_what_to_write(one: Load, says: str) -> None:
    assert says in (load_problem(one, TASKS) or "")


@pytest.mark.parametrize(
    "one",
    [
        load(),
        load(["delete"], closed={"connections": 1, "requests": 50_000}),
        load(["delete"], open={"rate": 5000, "duration": "10s"}),
        load(["read", "update"], closed={"connections": 1, "duration": "1h"}),
        mixed(read=9, delete=1, requests=499_760),
        load(script={"configMap": "mine"}),
    ],
)
def test_a_possible_load_has_no_problem(one: Load) -> None:
    assert load_problem(one, TASKS) is None


def test_generators_share_the_rows() -> None:
    one = load(["delete"], closed={"connections": 10, "requests": 50_000})
    assert load_problem(one, TASKS, 2) is None
    # The smallest of three parts has 16666 rows.
    assert "send at most 49998" in (load_problem(one, TASKS, 3) or "")
