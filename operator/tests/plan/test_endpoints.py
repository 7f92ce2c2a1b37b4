"""What a load sends, and which loads are impossible."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.api.loads import Load
from laptime.catalog import scenarios
from laptime.plan import load_problem, sent_requests, sent_sessions
from laptime.plan.rows import mix_order
from tests.manifests.runs import MARKET

TASKS = scenarios()["tasks"]


def load(endpoints: list[str] | None = None, **shape: Any) -> Load:
    shape = shape or {"closed": {"connections": 10, "requests": 10000}}
    return Load.model_validate({"name": "one", "endpoints": endpoints, **shape})


def mixed(requests: int = 10_000, **weights: int) -> Load:
    shares = [{"name": name, "weight": weight} for name, weight in weights.items()]
    return load(closed={"connections": 1, "requests": requests}, mix=shares)


def test_a_mix_names_the_requests_and_how_often_they_come() -> None:
    asked = sent_sessions(mixed(update=1, read=3), TASKS)
    assert [(one.name, one.weight) for one in asked] == [("read", 3), ("update", 1)]


def test_all_requests_are_sent_unless_some_are_named() -> None:
    assert sent_requests(sent_sessions(load(), TASKS)) == TASKS.requests
    # As a run that an earlier version began goes on.
    named = sent_sessions(load(["read", "create", "read"]), TASKS)
    assert [(one.name, one.weight) for one in named] == [("create", 1), ("read", 1)]


def steps(load: Load) -> list[tuple[str, int, list[str]]]:
    return [
        (one.name, one.weight, [step.name for step in one.steps])
        for one in sent_sessions(load, MARKET)
    ]


def test_a_load_that_names_none_sends_all_sessions_and_what_is_in_none() -> None:
    assert steps(load()) == [("shop", 1, ["login", "create", "read"]), ("front", 9, ["front"])]


def test_a_load_may_name_a_session_or_a_step_that_needs_none_before_it() -> None:
    assert steps(load(["front", "login"])) == [("login", 1, ["login"]), ("front", 1, ["front"])]
    assert steps(mixed(shop=2, login=3)) == [
        ("shop", 2, ["login", "create", "read"]),
        ("login", 3, ["login"]),
    ]


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (load(["shopp"]), "has no endpoint shopp; it has shop, login, create, read, front"),
        (
            load(["read"]),
            "load one: read needs {{item}} of an answer before it: name a session instead, such as "
            "shop",
        ),
        (mixed(front=1, create=2), "create needs {{token}} of an answer before it"),
        (
            load(["shop"], closed={"connections": 1, "duration": "10s"}),
            "load one: feeder n gives each of its 5000 rows once: give closed.requests, at most",
        ),
        # A third of the requests takes a number; one session may have begun and not ended, on
        # each of eight threads.
        (load(["shop"], closed={"connections": 1, "requests": 14_974}), "send at most 14973"),
        (load(["shop"], closed={"connections": 5000, "requests": 5000}), "too few for this load"),
    ],
)
def test_an_impossible_load_of_sessions_is_told_what_to_write(one: Load, says: str) -> None:
    assert says in (load_problem(one, MARKET) or "")


def test_a_load_without_the_rows_that_are_used_once_may_take_any_time() -> None:
    assert (
        load_problem(load(["front"], closed={"connections": 1, "duration": "1h"}), MARKET) is None
    )


def test_weights_that_the_generator_does_not_take_are_said() -> None:
    scenario = MARKET.model_copy(
        update={
            "sessions": [],
            "requests": [
                MARKET.requests[3].model_copy(update={"name": f"r-{n}", "weight": 991 + n % 2})
                for n in range(12)
            ],
        }
    )
    assert "the weights add up to 11898, which is more than 10000" in (
        load_problem(load(), scenario) or ""
    )


# As images/k6/internal/session/session_test.go has it.
@pytest.mark.parametrize(
    ("weights", "order"),
    [([1, 1, 1], "012"), ([5, 5], "01"), ([4, 2], "010"), ([5, 1, 1], "0010200")],
)
def test_the_order_is_that_of_the_generator(weights: list[int], order: str) -> None:
    assert "".join(map(str, mix_order(weights))) == order


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
        (
            load(["read"], stairs={"steps": [{"rate": 1, "duration": "6h"}] * 5}),
            "load one: its steps take 30h together, a day (24h) is the most: write fewer or "
            "shorter steps",
        ),
        (
            load(["read", "create", "read", "read"]),
            "load one: endpoints are sent equally often, and read is there 3 times: write mix: "
            "[{name: read, weight: 3}, {name: create, weight: 1}]",
        ),
        (mixed(reed=1), "scenario tasks has no endpoint reed"),
        (mixed(read=1, delete=1, requests=99_985), "send at most 99984"),
        # Each of the generator's threads may be at another place of the order.
        (mixed(read=9, delete=1, requests=499_921), "send at most 499920"),
        (mixed(read=1, delete=9, requests=55_538), "send at most 55537"),
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
        load(["read"], stairs={"steps": [{"rate": 1, "duration": "6h"}] * 4}),
        mixed(read=9, delete=1, requests=499_920),
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
