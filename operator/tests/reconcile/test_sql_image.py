"""A run whose schema or rows are in an image: how it ends without them, and what it says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.catalog import Scenario
from laptime.reconcile.views import ContainerView

from .world import World

MANY_PASSES = 1500
ROWS = {"image": "rows:3", "file": "/data/rows.sql"}
SCENARIO = Scenario.model_validate(
    {
        "name": "shop",
        "data": {
            "postgres": {"schema": [{"sql": "CREATE TABLE t (n int);"}], "seed": [ROWS]},
        },
        "requests": [{"name": "list", "path": "/"}],
        "checks": [{"name": "list", "path": "/"}],
    }
)
SPEC = BenchmarkRunSpec.model_validate(
    {
        "scenario": "shop",
        "topology": {"postgres": {}},
        "servers": [{"name": "a", "image": "own:1"}],
        "loads": [{"name": "all", "closed": {"connections": 2, "duration": "2s"}}],
        "repetitions": 1,
    }
)
LACKING = ContainerView(
    "sql-seed-0",
    exit_code=1,
    exit_message="the image has no file /data/rows.sql: there is folder /data, which is empty",
    image="rows:3",
)
AWAY = ContainerView(
    "sql-seed-0", waiting_reason="ErrImagePull", waiting_message="no such tag", image="rows:3"
)


def step_until(world: World, reached: Callable[[], bool]) -> None:
    while not reached():
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES, f"the run hangs in {world.run.status}"


def over(world: World) -> bool:
    state = world.run.status.state
    return state is not None and state.terminal


@pytest.mark.parametrize(
    ("view", "reason", "words", "longest"),
    [
        (
            LACKING,
            "SqlMissing",
            "data.postgres.seed[0] cannot be taken from its image rows:3; its last words: the "
            "image has no file /data/rows.sql",
            25,
        ),
        (
            AWAY,
            "ImagePullFailed",
            "the image of data.postgres.seed[0] (rows:3) cannot be pulled: no such tag",
            45,
        ),
    ],
)
def test_sql_that_cannot_be_had_ends_the_run_in_time_and_names_the_part(
    view: ContainerView, reason: str, words: str, longest: int
) -> None:
    world = World(SPEC, Random(1), scenario=SCENARIO)
    step_until(world, lambda: any(pod.component == "postgres" for pod in world.pods.values()))
    (pod,) = [pod for pod in world.pods.values() if pod.component == "postgres"]
    world.dead.add("pods")
    world.pods[pod.name] = replace(pod, image="postgres:1", containers=(view,))
    began = world.now
    step_until(world, lambda: over(world))
    assert world.now - began < timedelta(seconds=longest)
    assert world.run.status.state is State.FAILED
    for type_ in (ConditionType.SUCCEEDED, ConditionType.TIERS_READY):
        said = world.run.status.condition(type_)
        assert said is not None
        assert (said.status, said.reason) == (ConditionStatus.FALSE, reason)
        assert said.message.startswith(words)
    assert world.jobs_started == ["demo-held-a"]


def test_each_trial_says_which_bits_the_sql_is_from() -> None:
    world = World(SPEC, Random(1), scenario=SCENARIO)
    step_until(world, lambda: world.run.status.state is State.VERIFYING)
    (pod,) = [pod for pod in world.pods.values() if pod.component == "postgres"]
    copied = ContainerView("sql-seed-0", exit_code=0, image_id="rows@sha256:3")
    while not over(world):
        known = world.pods.get(pod.name)
        if known is not None and copied not in known.containers:
            world.pods[pod.name] = replace(known, containers=(copied, *known.containers))
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES, f"the run hangs in {world.run.status}"
    (result,) = world.observe().results.values()
    assert result.images["data.postgres.seed[0]"] == "rows@sha256:3"


def test_a_registry_that_is_away_for_a_minute_ends_no_run() -> None:
    world = World(SPEC, Random(1), scenario=SCENARIO)
    step_until(world, lambda: any(pod.component == "postgres" for pod in world.pods.values()))
    (pod,) = [pod for pod in world.pods.values() if pod.component == "postgres"]
    world.dead.add("pods")
    away = replace(AWAY, waiting_message="HEAD https://harbor.example/v2/: 503 Service Unavailable")
    world.pods[pod.name] = replace(pod, image="postgres:1", containers=(away,))
    back = world.now + timedelta(seconds=60)
    step_until(world, lambda: over(world) or world.now > back)
    said = world.run.status.condition(ConditionType.TIERS_READY)
    assert said is not None
    assert said.reason == "ImagePullFailed"
    world.dead.clear()
    step_until(world, lambda: over(world))
    assert world.run.status.state is State.SUCCEEDED
