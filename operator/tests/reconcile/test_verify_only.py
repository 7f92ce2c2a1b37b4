"""A run that only verifies: servers are checked, what they answered is kept, nothing else is."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionStatus, ConditionType, ServerState, State
from laptime.manifests.archive import joined
from laptime.manifests.result import read_answers
from laptime.manifests.verifier import verify_document
from laptime.report.archive import unpack

from .test_decide import MANY_PASSES, spec_of
from .test_pause import wish
from .world import World

WRONG = {"ok": False, "reason": "WrongAnswer", "message": "GET /: no"}


def verify_only(servers: int) -> BenchmarkRunSpec:
    return spec_of(servers, 1, 2).model_copy(update={"verify_only": True})


def ended(world: World) -> World:
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES, f"the run hangs in {world.run.status}"
    return world


def test_each_server_is_checked_and_nothing_is_measured() -> None:
    world = ended(World(verify_only(3), Random(1)))
    names = [server.name for server in world.run.spec.servers]
    assert world.jobs_started == [f"demo-verify-{name}" for name in names]
    head = world.config_maps.pop("demo-results")
    kept = dict(read_answers(one) for one in world.config_maps.values())
    assert {name: [one.check for one in kept[name]] for name in kept} == {
        name: ["one"] for name in names
    }
    assert sorted(world.config_maps) == [f"demo-answer-{name}" for name in names]
    # What they said is in the archive, and no figures are.
    archive = unpack(joined(head, {}))
    assert dict(map(read_answers, archive.objects)) == kept
    assert not archive.files
    for left in (world.deployments, world.jobs, world.services, world.pods):
        assert not left
    status = world.run.status
    assert status.state is State.SUCCEEDED
    succeeded = status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert (succeeded.status, succeeded.reason) == (ConditionStatus.TRUE, "OnlyVerified")
    assert status.progress is not None
    assert (status.progress.completed, status.progress.total) == (3, 3)
    assert status.results is None


def test_what_a_server_with_wrong_answers_said_is_kept_too() -> None:
    world = World(verify_only(2), Random(1))
    first, second = (server.name for server in world.run.spec.servers)
    world.verdicts[first] = WRONG
    status = ended(world).run.status
    assert status.state is State.FAILED
    assert [one.state for one in status.servers or []] == [ServerState.FAILED, ServerState.VERIFIED]
    succeeded = status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert (succeeded.reason, succeeded.message) == ("ServersFailed", f"server {first}: GET /: no")
    assert sorted(world.config_maps) == [
        *(f"demo-answer-{one}" for one in (first, second)),
        "demo-results",
    ]


@given(seed=st.integers(0, 2**32), faults=st.sampled_from([0.05, 0.2]))
@settings(max_examples=20, deadline=None)
def test_whatever_is_killed_the_answers_are_there_with_the_verdict(
    seed: int, faults: float
) -> None:
    world = World(verify_only(2), Random(seed), faults)
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        for one in world.run.status.servers or []:
            if one.state is ServerState.VERIFIED:
                assert f"demo-answer-{one.name}" in world.config_maps
        world.advance()
        assert world.passes < MANY_PASSES, f"the run hangs in {world.run.status}"
    assert not world.results_written


def test_a_check_that_is_made_again_keeps_its_own_answers_alone() -> None:
    world = World(verify_only(1), Random(1))
    (server,) = (one.name for one in world.run.spec.servers)
    name = f"demo-answer-{server}"
    while name not in world.config_maps:
        world.step()
        world.advance()
    # As after a retry: what an earlier check has left.
    world.remove("Job", f"demo-verify-{server}")
    world.pods = {key: pod for key, pod in world.pods.items() if pod.component != "verifier"}
    stale = world.config_maps[name]
    ended(world)
    assert world.config_maps[name] is not stale


@pytest.mark.parametrize("only", [False, True])
def test_the_verifier_shows_answers_only_where_nothing_is_measured(only: bool) -> None:
    world = World(verify_only(1) if only else spec_of(1, 1, 1), Random(1))
    (server,) = world.run.spec.servers
    assert verify_document(world.context, server, []).get("showAnswers", False) is only


def test_one_that_is_cancelled_counts_servers() -> None:
    world = World(verify_only(2), Random(1))
    while [one.state for one in world.run.status.servers or []][:1] != [ServerState.VERIFIED]:
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES, f"the run hangs in {world.run.status}"
    wish(world, cancel=True)
    succeeded = ended(world).run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert "1/2 servers are checked, and stay" in succeeded.message
