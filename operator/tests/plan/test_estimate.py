"""The time left: what was measured wins, then what the spec says, then what is usual."""

from __future__ import annotations

import pytest

from laptime.api.loads import Load
from laptime.api.pairing import Pairing
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Scenario
from laptime.plan import Trial, plan_trials, remaining_seconds
from laptime.plan.estimate import OVERHEAD_SECONDS

SPEC = BenchmarkRunSpec.model_validate(
    {
        "scenario": "users",
        "servers": [{"name": "a", "preset": "axum-sqlx"}, {"name": "b", "preset": "axum-sqlx"}],
        "loads": [
            {
                "name": "timed",
                "closed": {"connections": 1, "duration": "10s", "connectOver": "0s"},
                "warmup": "2s",
            },
            {
                "name": "counted",
                "closed": {"connections": 1, "requests": 9, "connectOver": "0s"},
                "warmup": "2s",
            },
            {"name": "searched", "saturation": {"p99": "50ms", "step": "2s"}, "warmup": "2s"},
        ],
        "repetitions": 2,
    }
)
TRIALS = plan_trials("run", SPEC, seed=1)


def trials(server: str, load: str) -> list[Trial]:
    return [trial for trial in TRIALS if (trial.server, trial.load) == (server, load)]


def test_nothing_left_takes_no_time() -> None:
    assert remaining_seconds(SPEC, [], {}) == 0


def test_a_load_with_a_duration_takes_it_and_its_warmup() -> None:
    assert remaining_seconds(SPEC, trials("a", "timed"), {}) == 2 * (2 + 10 + OVERHEAD_SECONDS)


def test_two_trials_at_the_same_time_take_as_long_as_the_longer_one() -> None:
    loads = [load for load in SPEC.loads if load.name == "timed"]
    spec = SPEC.model_copy(update={"loads": loads, "pairing": Pairing.DUET})
    every = plan_trials("run", spec, seed=1)
    assert remaining_seconds(spec, every, {}) == 2 * (2 + 10 + OVERHEAD_SECONDS)
    measured = {("a", "timed"): [20.0], ("b", "timed"): [30.0]}
    assert remaining_seconds(spec, every, measured) == 60.0
    # One whose partner is over, or out.
    assert remaining_seconds(spec, every[1:], measured) in (50.0, 60.0)
    assert remaining_seconds(spec, every[1:2], measured) in (20.0, 30.0)


def test_warm_up_and_measured_part_each_open_their_connections() -> None:
    spec = SPEC.model_copy(
        update={
            "loads": [
                Load.model_validate(
                    {
                        "name": "timed",
                        "closed": {"connections": 1, "duration": "10s", "connectOver": "3s"},
                        "warmup": "2s",
                    }
                )
            ]
        }
    )
    one = trials("a", "timed")[:1]
    assert remaining_seconds(spec, one, {}) == 2 + 3 + 10 + 3 + OVERHEAD_SECONDS


def test_measured_durations_win() -> None:
    measured = {("a", "timed"): [20.0, 22.0], ("a", "counted"): [5.0]}
    assert remaining_seconds(SPEC, trials("a", "timed"), measured) == pytest.approx(2 * 21)
    assert remaining_seconds(SPEC, trials("a", "counted"), measured) == pytest.approx(2 * 5)


def test_a_server_not_yet_measured_takes_as_long_as_the_others_under_that_load() -> None:
    measured = {("a", "counted"): [30.0], ("a", "timed"): [16.0]}
    assert remaining_seconds(SPEC, trials("b", "counted"), measured) == pytest.approx(2 * 30)


def test_requests_that_nothing_is_known_about_come_at_the_usual_rate() -> None:
    one = trials("a", "counted")[:1]
    assert remaining_seconds(SPEC, one, {}) == 2 + 9 / 1000 + OVERHEAD_SECONDS


def bound(requests: int, **more: object) -> BenchmarkRunSpec:
    """Return the spec of one trial of 10 users who send so many requests."""
    closed = {"connections": 10, "requests": requests, "connectOver": "0s"}
    load = Load.model_validate({"name": "counted", "closed": closed, "warmup": "2s", **more})
    return SPEC.model_copy(update={"servers": SPEC.servers[:1], "loads": [load], "repetitions": 1})


def expected(spec: BenchmarkRunSpec, scenario: Scenario | None = None) -> float:
    known = [] if scenario is None else [scenario]
    return remaining_seconds(spec, plan_trials("run", spec, seed=1), {}, *known)


def test_no_trial_bound_by_requests_is_reckoned_with_more_than_an_hour() -> None:
    assert expected(bound(10_000_000)) == 2 + 3600 + OVERHEAD_SECONDS


def test_users_who_think_send_no_more_than_they_can() -> None:
    think = {"thinkTime": {"min": "500ms", "max": "1500ms"}}
    assert expected(bound(20_000, **think)) == 2 + 2000 + OVERHEAD_SECONDS
    # By the scenario one of two requests has a think time; that of a load comes before it.
    requests = [{"name": "a", "path": "/a", **think}, {"name": "b", "path": "/b"}]
    scenario = Scenario.model_validate(
        {"name": "own", "requests": requests, "checks": [{"name": "a", "path": "/a"}]}
    )
    assert expected(bound(20_000), scenario) == 2 + 1000 + OVERHEAD_SECONDS
    assert expected(bound(20_000)) == 2 + 20 + OVERHEAD_SECONDS
    assert expected(bound(20_000, **think), scenario) == 2 + 2000 + OVERHEAD_SECONDS
    # One that the scenario refuses is refused for that.
    assert expected(bound(20_000, endpoints=["c"]), scenario) == 2 + 20 + OVERHEAD_SECONDS


def test_before_anything_is_measured_there_is_still_an_estimate() -> None:
    assert remaining_seconds(SPEC, TRIALS, {}) > remaining_seconds(SPEC, TRIALS[1:], {}) > 0


def test_a_search_takes_its_usual_steps_and_not_the_one_that_counts() -> None:
    measured = {("a", "searched"): [4.0]}
    expected = 2 * (2 + 18 * 2 + 9 + OVERHEAD_SECONDS)
    assert remaining_seconds(SPEC, trials("a", "searched"), measured) == expected
