"""Profiles are taken after the trials; whatever becomes of them, the figures stay as they are."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.measure.profile_output import ProfileProblem

from .test_decide import MANY_PASSES, run_to_the_end
from .world import World

PROFILED = [
    {"name": "s0", "preset": "fastapi-sync", "profile": True},
    {"name": "s1", "preset": "axum-sqlx"},
    {"name": "s2", "preset": "fastapi-async", "profile": True},
]


def profiled_spec(repetitions: int = 1, **more: object) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": PROFILED,
            "topology": {"postgres": {}, "pgbouncer": {}, "haproxy": {}},
            "loads": [{"name": "l0", "closed": {"connections": 2, "duration": "2s"}}],
            "repetitions": repetitions,
            **more,
        }
    )


@given(
    seed=st.integers(0, 2**32),
    faults=st.sampled_from([0.0, 0.0, 0.05, 0.2]),
    generators=st.integers(1, 2),
)
@settings(max_examples=40, deadline=None)
def test_profiles_come_after_all_trials_and_are_part_of_no_figure(
    seed: int, faults: float, generators: int
) -> None:
    several = {"parallelism": generators}
    world = World(profiled_spec(2, generator=several), Random(seed), faults)
    asked = ["demo-flame-s0", "demo-flame-s2"]
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        if set(world.jobs_started) & set(asked) and not faults:
            assert world.results_written == [trial.name for trial in world.trials]
        world.advance()
        assert world.passes < MANY_PASSES, f"the run hangs in {world.run.status}"
    started = [job for job in world.jobs_started if job in asked]
    assert len(started) == len(set(started)), "a profile was taken twice"
    assert len(world.profiles_written) == len(set(world.profiles_written))
    assert set(world.config_maps) == {
        *world.results_written,
        *world.readings_written,
        *world.profiles_written,
        "demo-results",
    }
    assert not world.deployments
    assert not world.jobs
    status = world.run.status
    assert {trial.name for trial in world.trials}.isdisjoint(asked)
    assert sum(row.trials + row.failed_trials for row in status.results or []) == len(
        world.results_written
    )
    profiled = status.condition(ConditionType.PROFILED)
    assert profiled is not None
    if not faults:
        assert world.profiles_written == asked
        assert world.jobs_started[-2:] == asked
        assert profiled.status is ConditionStatus.TRUE
        assert profiled.message == "flame graphs: kubectl laptime report demo --profiles ."
        assert status.state is State.SUCCEEDED


def test_a_profile_is_kept_as_a_picture_and_as_stacks() -> None:
    world = World(profiled_spec(), Random(3))
    run_to_the_end(world)
    manifest = world.config_maps["demo-flame-s0"]
    assert manifest["immutable"]
    assert manifest["data"]["stacks.folded"] == "main;list 7\nmain;read 3\n"
    assert "<title>list (7 samples, 70.0 %)</title>" in manifest["data"]["flamegraph.svg"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ProfileProblem("ProfileNotOffered", "nothing listens"), "ProfileNotOffered: nothing"),
        ("no stacks at all", "ProfileNotUnderstood: not a stack"),
    ],
)
def test_a_server_without_profiles_fails_no_run(answer: str | ProfileProblem, said: str) -> None:
    world = World(profiled_spec(), Random(4))
    world.profile = answer
    run_to_the_end(world)
    status = world.run.status
    assert status.state is State.SUCCEEDED
    profiled = status.condition(ConditionType.PROFILED)
    assert profiled is not None
    assert profiled.status is ConditionStatus.FALSE
    assert f"no profile of s0: {said}" in profiled.message
    assert f"no profile of s2: {said}" in profiled.message
    assert world.config_maps["demo-flame-s0"]["data"] == {}


def test_a_tier_that_is_lost_after_the_trials_costs_a_profile_and_not_the_run() -> None:
    world = World(profiled_spec(), Random(5))
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        if "demo-flame-s0" in world.profiles_written:
            for name, pod in world.pods.items():
                if pod.component == "postgres":
                    world.pods[name] = replace(pod, ready=False)
        assert world.passes < MANY_PASSES
    status = world.run.status
    assert status.state is State.SUCCEEDED
    profiled = status.condition(ConditionType.PROFILED)
    assert profiled is not None
    assert "no profile of s2: NotReady: Postgres" in profiled.message


def test_a_run_without_profiles_says_nothing_of_them() -> None:
    world = World(profiled_spec(servers=PROFILED[1:2]), Random(6))
    run_to_the_end(world)
    assert world.run.status.condition(ConditionType.PROFILED) is None
