"""A server that changes the schema of the database is noticed in the figures of the others."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from laptime.api.doubts import OTHER_SCHEMA
from laptime.api.results import TrialResult, Validity
from laptime.api.spec import BenchmarkRunSpec
from laptime.reconcile.result_cache import ResultCache
from laptime.reconcile.views import ContainerView

from .test_deadlines import over, until
from .test_decide import MANY_PASSES
from .world import World

# As long as real ones.
BEFORE, AFTER = f"{1:08}-{2:032}", f"{1:08}-{3:032}"
CLOSED = {"name": "l", "closed": {"connections": 1, "requests": 9}}
SCRIPT = {"name": "l", "script": {"configMap": "mine", "duration": "2s"}}


def releases(load: dict[str, Any], checked: dict[str, str]) -> World:
    """Return two images on one Postgres, and what their checks say of its schema."""
    spec = BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": [{"name": name, "image": f"{name}:1"} for name in ("old", "new")],
            "topology": {"postgres": {}},
            "loads": [load],
            "repetitions": 2,
        }
    )
    world = World(spec, Random(1))
    for name, schema in checked.items():
        world.verdicts[name] = {"ok": True, "schema": schema}
    return world


def doubtful(world: World) -> dict[str, set[bool]]:
    """Return of each server whether trials are doubtful for the schema, judged as they are read."""
    cache, stored = ResultCache(), set(world.results_written)
    for name in stored:
        cache.add(name, world.config_maps[name], world.context)
    found: dict[str, set[bool]] = {}
    for one in cache.results(stored, world.run).values():
        found.setdefault(one.server, set()).add(_says_so(one))
    return found


def _says_so(result: TrialResult) -> bool:
    says = any(OTHER_SCHEMA.said(reason) for reason in result.validity_reasons)
    assert not says or result.validity is Validity.DOUBTFUL
    return says


@pytest.mark.parametrize("seed", range(3))
def test_what_another_server_has_migrated_is_a_doubt_of_who_was_checked_before_it(
    seed: int,
) -> None:
    world = releases(CLOSED, {"old": BEFORE, "new": AFTER})
    world.schema = AFTER
    world.random, world.kills, world.shuffles = Random(seed), 0.1, True
    until(world, over)
    assert [one.database_schema for one in world.run.status.servers or []] == [BEFORE, AFTER]
    assert doubtful(world) == {"old": {True}, "new": {False}}


@pytest.mark.parametrize(
    ("checked", "measured"),
    [
        # All of them make the same of it.
        ({"old": AFTER, "new": AFTER}, AFTER),
        # Before the load it took too long.
        ({"old": BEFORE, "new": AFTER}, None),
        ({}, AFTER),
        # The first requests of each make a table that a reset drops.
        ({"old": f"{BEFORE},{AFTER}", "new": f"{BEFORE},{AFTER}"}, BEFORE),
    ],
)
def test_servers_that_agree_on_the_schema_are_not_doubted(
    checked: dict[str, str], measured: str | None
) -> None:
    world = releases(CLOSED, checked)
    world.schema = measured
    until(world, over)
    assert doubtful(world) == {"old": {False}, "new": {False}}


def test_of_a_check_that_says_two_schemas_no_third_one_is_right() -> None:
    both = f"{BEFORE},{AFTER}"
    world = releases(CLOSED, {"old": both, "new": both})
    world.schema = f"{1:08}-{4:032}"
    until(world, over)
    assert [one.database_schema for one in world.run.status.servers or []] == [both, both]
    assert doubtful(world) == {"old": {True}, "new": {True}}


def test_of_a_script_what_waits_for_its_server_says_the_schema() -> None:
    world = releases(SCRIPT, {"old": BEFORE, "new": AFTER})
    waited = ContainerView("wait", exit_code=0, exit_message=f'{{"ok": true, "schema": "{AFTER}"}}')
    while not over(world):
        for name, pod in list(world.pods.items()):
            if pod.component == "generator" and waited not in pod.containers:
                world.pods[name] = replace(pod, containers=(waited, *pod.containers))
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES, f"the run hangs in {world.run.status}"
    assert doubtful(world) == {"old": {True}, "new": {False}}
