"""Profiles are asked for by server, and taken under the first steady load."""

from __future__ import annotations

import pytest

from laptime.api.loads import Load
from laptime.api.spec import MAX_RUN_NAME_LENGTH, BenchmarkRunSpec
from laptime.plan import plan_profiles, plan_trials, profile_load, profiling_seconds
from laptime.plan.estimate import OVERHEAD_SECONDS

SEARCH = {"name": "search", "saturation": {"p99": "50ms"}}
STEADY = {"name": "steady", "open": {"rate": 10, "duration": "1s"}, "warmup": "2s"}


def spec(*loads: object, **more: object) -> BenchmarkRunSpec:
    servers = [
        {"name": "a", "preset": "axum-sqlx", "profile": True},
        {"name": "b", "preset": "axum-sqlx"},
        {"name": "c", "preset": "axum-sqlx", "profile": True},
    ]
    return BenchmarkRunSpec.model_validate(
        {"scenario": "users", "servers": servers, "loads": loads, **more}
    )


def test_each_server_that_asks_for_one_has_one_under_the_first_steady_load() -> None:
    profiles = plan_profiles("run", spec(SEARCH, STEADY))
    assert [(one.name, one.server, one.load) for one in profiles] == [
        ("run-flame-a", "a", "steady"),
        ("run-flame-c", "c", "steady"),
    ]
    assert {one.ordinal for one in profiles} == {one.repetition for one in profiles} == {0}


def test_a_search_is_no_load_for_a_profile() -> None:
    assert plan_profiles("run", spec(SEARCH)) == ()


def test_trials_are_the_same_with_profiles_and_without() -> None:
    plain = [server.model_copy(update={"profile": False}) for server in spec(STEADY).servers]
    without = spec(STEADY).model_copy(update={"servers": plain})
    assert plan_trials("run", spec(STEADY), 1) == plan_trials("run", without, 1)


def test_the_control_arm_has_no_profile_of_its_own() -> None:
    controlled = spec(STEADY, control=True).with_control()
    assert [server.name for server in controlled.servers] == ["a", "b", "c", "a-control"]
    assert [one.server for one in plan_profiles("run", controlled)] == ["a", "c"]


def test_the_longest_names_fit() -> None:
    named = spec(STEADY).servers[0].model_copy(update={"name": "s" * 20})
    longest = spec(STEADY).model_copy(update={"servers": [named]})
    (profile,) = plan_profiles("r" * MAX_RUN_NAME_LENGTH, longest)
    assert len(profile.name) <= 63


def test_a_profile_takes_its_warm_up_and_ten_seconds() -> None:
    asked = spec(STEADY)
    assert profiling_seconds(asked, plan_profiles("run", asked)) == 2 * (2 + 10 + OVERHEAD_SECONDS)


@pytest.mark.parametrize(
    ("shape", "lasting"),
    [
        (
            {"closed": {"connections": 4, "duration": "2s", "keepAlive": False}},
            {"closed": {"connections": 4, "duration": "70s", "keepAlive": False}},
        ),
        (
            {"closed": {"connections": 4, "requests": 9}},
            {"closed": {"connections": 4, "duration": "70s"}},
        ),
        (
            {"closed": {"connections": 4, "duration": "1h"}},
            {"closed": {"connections": 4, "duration": "3600s"}},
        ),
        ({"open": {"rate": 5, "duration": "1s"}}, {"open": {"rate": 5, "duration": "70s"}}),
        (
            {
                "stairs": {
                    "steps": [{"rate": 5, "duration": "1s"}, {"rate": 9, "duration": "2s"}],
                    "arrivals": "poisson",
                    "maxConnections": 7,
                }
            },
            {
                "open": {
                    "rate": 9,
                    "duration": "70s",
                    "arrivals": "poisson",
                    "maxConnections": 7,
                }
            },
        ),
        (
            {"ramp": {"from": 5, "to": 900, "duration": "3s", "maxConnections": 7}},
            {"open": {"rate": 900, "duration": "70s", "maxConnections": 7}},
        ),
        ({"script": {"configMap": "own"}}, {"script": {"configMap": "own"}}),
    ],
)
def test_a_load_that_is_short_lasts_until_the_profile_is_taken(
    shape: dict[str, object], lasting: dict[str, object]
) -> None:
    common = {"name": "load", "warmup": "1s"}
    assert profile_load(Load.model_validate(common | shape)) == Load.model_validate(
        common | lasting
    )
