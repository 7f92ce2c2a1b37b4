"""Loads at a rate that are too short for their sessions, or for their objective."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.api.loads import Load
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Scenario
from laptime.plan import load_problems, sent_sessions, within_sessions
from tests.manifests.runs import MARKET


def thinking(seconds: str) -> Scenario:
    """Return a scenario of three requests, alone and in a session whose users think twice."""
    think = {"thinkTime": {"min": "0s", "max": seconds}}
    requests = [{"name": name, "path": f"/{name}", **think} for name in ("a", "b", "c")]
    sessions = [{"name": "s", "steps": ["a", "b", "c"]}]
    checks = [{"name": "a", "path": "/a"}]
    return Scenario.model_validate(
        {"name": "own", "requests": requests, "sessions": sessions, "checks": checks}
    )


def problems(scenario: Scenario, **load: Any) -> list[str]:
    spec = {"scenario": "own", "servers": [{"name": "own", "image": "mine:1"}]}
    loads = [{"name": "one", **load}]
    return load_problems(BenchmarkRunSpec.model_validate({**spec, "loads": loads}), scenario)


@pytest.mark.parametrize(
    ("load", "what"),
    [
        ({"open": {"rate": 150, "duration": "79s"}}, "79 s (duration)"),
        ({"ramp": {"from": 1, "to": 150, "duration": "79s"}}, "79 s (duration)"),
        (
            {"stairs": {"steps": [{"rate": 1, "duration": f"{n}s"} for n in (90, 79)]}},
            "79 s (step)",
        ),
        ({"saturation": {"p99": "50ms"}}, "5 s (step)"),
    ],
)
def test_sessions_as_long_as_a_load_at_a_rate_are_refused(load: Any, what: str) -> None:
    (said,) = problems(thinking("8s"), **load)
    assert said == (
        f"load one: users think for 4 s before a request of a session on average, and {what} are "
        "too short for that: the server would be asked for less than the rate. Write at least 80s, "
        "shorter think times in the scenario, or a closed load"
    )


@pytest.mark.parametrize(
    "load",
    [
        {"open": {"rate": 150, "duration": "80s"}},
        {"saturation": {"p99": "50ms", "step": "80s"}},
        {"closed": {"connections": 10, "duration": "5s"}},
        # A request alone has nobody who thinks before it, nor after it in an open load.
        {"open": {"rate": 150, "duration": "5s"}, "endpoints": ["a"]},
        {"script": {"configMap": "mine"}},
    ],
)
def test_longer_loads_and_those_of_other_kinds_are_not(load: Any) -> None:
    assert problems(thinking("8s"), **load) == []
    assert problems(thinking("0s"), **{"open": {"rate": 150, "duration": "1s"}}) == []


def test_a_search_with_steps_too_short_for_its_objective_is_refused() -> None:
    def searched(p99: str, step: str) -> list[str]:
        return problems(thinking("0s"), saturation={"p99": p99, "step": step})

    assert searched("2500ms", "5s") == []
    assert searched("2501ms", "5s") == [
        "load one: p99 (2501ms) is more than half of a step (5s), in which a server that falls "
        "behind is hardly that slow yet: write step: 6s or more, or a smaller p99"
    ]


def test_think_times_are_those_between_the_steps_of_all_sessions_of_a_load() -> None:
    load = Load.model_validate({"name": "one", "open": {"rate": 1, "duration": "1s"}})
    within = within_sessions(sent_sessions(load, MARKET))
    # Of twelve requests three are of the session, and its users think for 1.25 s after the first.
    assert within.behind_seconds == pytest.approx(2 * 1.25 / 12)
    assert within.thinking_seconds == pytest.approx(1.25 / 12)
    assert within.most_steps == 3


@pytest.mark.parametrize(
    ("shape", "load", "says"),
    [
        (
            {"connections": 10, "requests": 36_001},
            {"thinkTime": {"min": "1s"}},
            "load one: users think for 1 s after an answer on average, and 36001 requests of 10 of "
            "them take 1h00m for that alone, of which an hour is the most: write requests: 36000 "
            "or fewer, more connections, or a duration instead of requests",
        ),
        ({"connections": 10, "requests": 36_000}, {"thinkTime": {"min": "1s"}}, ""),
        (
            {"connections": 1, "requests": 7200},
            {"thinkTime": {"min": "0s", "max": "2s"}},
            "and 7200 requests of 1 of them take 2h00m for that alone",
        ),
        # Of three requests of a session and three alone each is followed by 4 s.
        (
            {"connections": 10, "requests": 9001},
            {},
            "users think for 4 s after an answer on average",
        ),
        ({"connections": 10, "requests": 9000}, {}, ""),
        ({"connections": 10, "requests": 9001}, {"thinkTime": {"min": "0s"}}, ""),
        ({"connections": 1, "duration": "6h"}, {"thinkTime": {"min": "1h"}}, ""),
    ],
)
def test_requests_that_thinking_users_cannot_send_within_an_hour_are_refused(
    shape: dict[str, Any], load: dict[str, Any], says: str
) -> None:
    said = problems(thinking("8s"), closed={**shape, "connectOver": "0s"}, **load)
    assert len(said) == bool(says)
    assert says in "".join(said)


def test_streams_are_users_who_think_too() -> None:
    closed = {"connections": 1, "requests": 36_001}
    http2 = {"protocol": "http2", "thinkTime": {"min": "1s"}}
    assert problems(thinking("0s"), closed=closed, streams=11, **http2) == []
    assert problems(thinking("0s"), closed=closed, streams=10, **http2) != []
