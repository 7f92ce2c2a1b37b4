"""Pausing a run and ending it early: what goes, what stays, and who has the lane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from laptime.api.results import TrialOutcome
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.reconcile.decide import waiting
from laptime.report import End, read_results

from .api_server import ApiServer
from .nodes import working
from .test_controller import operating, reason, run_manifest, state, until
from .test_deadlines import STATES, measuring, over, said
from .test_deadlines import until as world_until
from .test_decide import spec_of
from .world import World


def wish(world: World, **changes: bool) -> None:
    """Change the spec of a run as its author may."""
    spec = world.run.spec.model_copy(update=changes)
    world.run = replace(world.run, spec=spec, generation=world.run.generation + 1)


def is_in(state: State) -> Callable[[World], bool]:
    return lambda world: world.run.status.state is state


@pytest.mark.parametrize("when", [one for one in STATES if one != "Finishing"])
def test_a_paused_run_keeps_its_results_and_nothing_else_and_goes_on_later(when: str) -> None:
    world = World(spec_of(2, 1, 2), Random(4))
    world_until(world, STATES[when])
    under_way = [pod.trial for pod in world.pods.values() if pod.component == "generator"]
    wish(world, suspend=True)
    world_until(world, is_in(State.SUSPENDED))
    # The trial that went on is measured to its end, and no other one is begun.
    assert [one for one in under_way if one not in world.results_written] == []
    assert len(world.results_written) == len(under_way)
    assert not {**world.deployments, **world.jobs, **world.services, **world.pods}
    kept = {*world.results_written, *world.readings_written}
    assert set(world.config_maps) - {"demo-postgres"} == kept
    assert said(world, ConditionType.SUSPENDED).status is ConditionStatus.TRUE
    assert said(world, ConditionType.PROGRESSING).reason == "Suspended"
    assert said(world, ConditionType.SUCCEEDED).status is ConditionStatus.UNKNOWN
    wish(world, suspend=False)
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    assert said(world, ConditionType.SUSPENDED).status is ConditionStatus.FALSE
    assert sorted(world.results_written) == [trial.name for trial in world.trials]
    assert len(world.jobs_started) == len(set(world.jobs_started))


def test_a_pause_that_is_taken_back_at_once_costs_no_trial() -> None:
    world = World(spec_of(2, 1, 2), Random(4))
    world_until(world, measuring)
    wish(world, suspend=True)
    world_until(world, is_in(State.SUSPENDING))
    wish(world, suspend=False)
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED


def test_a_run_that_is_nearly_over_ends_and_does_not_pause() -> None:
    world = World(spec_of(1, 1, 1), Random(4))
    world_until(world, is_in(State.FINISHING))
    wish(world, suspend=True)
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED


@pytest.mark.parametrize("when", STATES)
def test_a_cancelled_run_ends_with_what_it_has_measured(when: str) -> None:
    world = World(spec_of(2, 1, 3), Random(4))
    world_until(world, STATES[when])
    if when == "measuring":
        world_until(world, lambda world: len(world.results_written) >= 2 and measuring(world))
    before = list(world.results_written)
    wish(world, cancel=True)
    world_until(world, over)
    assert not {**world.deployments, **world.jobs, **world.services, **world.pods}
    assert set(before) <= set(world.config_maps)
    assert "demo-results" in world.config_maps
    status = world.run.status
    if when == "Finishing":
        assert status.state is State.SUCCEEDED
        return
    assert status.state is State.CANCELLED
    succeeded = said(world, ConditionType.SUCCEEDED)
    assert (succeeded.status, succeeded.reason) == (ConditionStatus.FALSE, "Cancelled")
    assert f"{len(world.results_written)}/6 trials" in succeeded.message
    # It is over: no figure of it is "so far", in the status and in what is kept.
    stored, report = read_results(world.files["results.json"])
    assert report.end == End("Cancelled", "Cancelled", succeeded.message)
    assert stored.verdict == status.verdict
    assert stored.verdict.endswith("; the run ended early (Cancelled)")
    assert not stored.verdict.startswith(("so far", "nothing is measured yet"))
    measured = [
        one for one in world.observe().results.values() if one.outcome is TrialOutcome.MEASURED
    ]
    assert sum(row.trials for row in status.results or []) == len(measured)


def test_a_paused_run_that_waits_again_still_says_what_it_has_measured() -> None:
    world = World(spec_of(2, 1, 2), Random(4))
    world_until(world, lambda world: len(world.results_written) == 2)
    wish(world, suspend=True)
    world_until(world, is_in(State.SUSPENDED))
    paused = world.run.status
    wish(world, suspend=False)
    queued = waiting(world.run, world.context, world.now)
    assert queued.state is State.QUEUED
    assert queued.results == paused.results
    assert queued.servers == paused.servers
    assert queued.progress is not None
    assert queued.progress.text.endswith("/4, queued")


def test_a_run_that_never_had_its_turn_pauses_and_ends_without_it() -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    wish(world, suspend=True)
    paused = waiting(world.run, world.context, world.now)
    assert paused.state is State.SUSPENDED
    wish(world, cancel=True)
    ended = waiting(replace(world.run, status=paused), world.context, world.now)
    assert (ended.state, ended.finished_at is None) == (State.CANCELLED, False)
    succeeded = ended.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.reason == "Cancelled"


def patched(server: ApiServer, name: str, **spec: Any) -> None:
    """Change the spec of a run, as somebody with kubectl does."""
    found = server.get("BenchmarkRun", "default", name)
    assert found is not None
    server.change("BenchmarkRun", "default", name, spec={**found["spec"], **spec})


async def test_while_a_run_pauses_the_next_one_has_the_lane() -> None:
    server = ApiServer()
    spec = spec_of(1, 1, 3).to_wire()
    server.add({**run_manifest("first"), "spec": spec})
    async with operating(server), working(server) as nodes:
        await until(lambda: len(nodes.generators_started) == 1)
        patched(server, "first", suspend=True)
        await until(lambda: state(server, "first") == "Suspended")
        assert not server.of("Pod")
        assert not server.of("Deployment")
        server.add(run_manifest("second"))
        await until(lambda: state(server, "second") == "Succeeded")
        assert state(server, "first") == "Suspended"
        patched(server, "first", suspend=False)
        await until(lambda: state(server, "first") == "Succeeded", 20)
    trials = [one for one in nodes.generators_started if one.startswith("first")]
    assert trials == [f"first-trial-{n:03d}" for n in (1, 2, 3)]


async def test_runs_that_wait_are_paused_taken_back_and_cancelled_without_the_lane() -> None:
    server = ApiServer()
    server.add(run_manifest("first"))
    async with operating(server):
        await until(lambda: state(server, "first") == "Deploying")
        server.add(run_manifest("second"))
        await until(lambda: state(server, "second") == "Queued")
        patched(server, "second", suspend=True)
        await until(lambda: state(server, "second") == "Suspended")
        patched(server, "second", suspend=False)
        await until(lambda: state(server, "second") == "Queued")
        patched(server, "second", cancel=True)
        await until(lambda: state(server, "second") == "Cancelled")
        assert reason(server, "second", "Succeeded") == "Cancelled"
        assert state(server, "first") == "Deploying"
