"""A tag is what its registry says when the run begins, for all pods of a server, or it is said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from laptime.api import doubts
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionType, ServerState, ServerStatus, State
from laptime.manifests.context import PullPolicy
from laptime.reconcile.decide import asked_again
from laptime.reconcile.settings import Settings
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.stages.verify import _know_which
from laptime.reconcile.views import ContainerView, PodView

from .api_server import ApiServer
from .nodes import Nodes, working
from .test_controller import operating, run_manifest, state, until
from .test_deadlines import over
from .test_deadlines import until as world_until
from .test_decide import altered, run_to_the_end
from .test_folding import stored
from .world import IMAGES, World

IMAGE, REPOSITORY = "registry.example/mine:main", "registry.example/mine"
HELD = ContainerView("asked", exit_code=0, image_id=f"{REPOSITORY}@sha256:1")
AWAY = "dial tcp 10.0.0.9:443: connect: connection refused"
BUSY = "unexpected status from HEAD request: 503 Service Unavailable"


EXPIRED = "failed to authorize: authorization token has expired"
LIMITED = "denied: too many requests"
STARTUP_SECONDS = 30


def spec_of_own(repetitions: int = 1, *images: str) -> BenchmarkRunSpec:
    servers = [{"name": f"s{n}", "image": one} for n, one in enumerate(images or (IMAGE,))]
    return altered(servers=servers, baseline=None, repetitions=repetitions)


def failing(words: str) -> ContainerView:
    return ContainerView("asked", waiting_reason="ErrImagePull", waiting_message=words)


def world_that_has_pulled_it(*images: str, policy: PullPolicy = "IfNotPresent") -> World:
    world = World(spec_of_own(1, *images), Random(1), images=replace(IMAGES, pull_policy=policy))
    world.node_has = world.registry_has = HELD
    return world


def server_of(world: World) -> ServerStatus:
    server, *_ = world.run.status.servers or [ServerStatus(name="s0", state=ServerState.PENDING)]
    return server


def asking(world: World) -> list[str]:
    return [one for one in world.jobs_started if one.startswith(("demo-held-", "demo-asks-"))]


async def measured(nodes_say: dict[str, str], moved: dict[str, str], **more: Any) -> dict[str, Any]:
    """Return the results of a run of three repetitions, whose tag moves as it begins."""
    server = ApiServer()
    server.add({**run_manifest("own"), "spec": spec_of_own(3).to_wire()})
    async with operating(server, Settings(images=IMAGES)), working(server) as nodes:
        set_up(nodes, nodes_say)
        nodes.moved.update(moved)
        if more:
            await until(lambda: len(nodes.generators_started) == 1)
            nodes.bits.update(more)
            nodes.moved.update(more)
        await until(lambda: state(server, "own") == "Succeeded")
    found: dict[str, Any] = json.loads(stored(server, "own").files["results.json"])
    return found


def set_up(nodes: Nodes, bits: dict[str, str]) -> None:
    nodes.known_as[IMAGE] = REPOSITORY
    nodes.bits.update(bits)


def ran(results: dict[str, Any]) -> Sequence[str]:
    return [one["images"]["server"] for one in results["trials"]]


async def test_a_tag_that_has_moved_is_measured_as_its_registry_has_it() -> None:
    results = await measured({IMAGE: "sha256:1"}, {IMAGE: "sha256:2"})
    assert ran(results) == 3 * [f"{REPOSITORY}@sha256:2"]
    assert all(one["validity"] != "invalid" for one in results["trials"])


async def test_a_tag_that_moves_meanwhile_changes_nothing_of_a_run() -> None:
    results = await measured({IMAGE: "sha256:1"}, {}, **{IMAGE: "sha256:2"})
    assert ran(results) == 3 * [f"{REPOSITORY}@sha256:1"]
    assert all(one["validity"] != "invalid" for one in results["trials"])


def test_what_a_node_was_loaded_with_is_left_and_no_registry_is_asked() -> None:
    world = World(spec_of_own(), Random(1))
    run_to_the_end(world)
    assert asking(world) == ["demo-held-s0"]
    assert world.run.status.state is State.SUCCEEDED
    assert server_of(world).tag_unknown is None


def test_a_registry_is_asked_once_for_all_servers_of_an_image() -> None:
    world = world_that_has_pulled_it(IMAGE, IMAGE)
    run_to_the_end(world)
    assert asking(world) == ["demo-held-s0", "demo-asks-s0"]
    assert {one.image_id for one in world.run.status.servers or []} == {HELD.image_id}


@pytest.mark.parametrize("seed", range(5))
def test_an_operator_that_is_killed_asks_no_registry_twice(seed: int) -> None:
    world = world_that_has_pulled_it(IMAGE, IMAGE)
    world.random, world.kills, world.shuffles = Random(seed), 0.1, True
    run_to_the_end(world)
    assert asking(world) == ["demo-held-s0", "demo-asks-s0"]
    assert {one.image_id for one in world.run.status.servers or []} == {HELD.image_id}


def test_where_every_pull_asks_no_node_is_asked_before() -> None:
    world = world_that_has_pulled_it(policy="Always")
    run_to_the_end(world)
    assert asking(world) == ["demo-asks-s0"]


def test_a_registry_that_is_away_costs_no_server_and_is_said_with_its_figures() -> None:
    world = world_that_has_pulled_it()
    world.registry_has = failing(AWAY)
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED
    assert server_of(world).tag_unknown == AWAY
    for one in world.observe().results.values():
        assert doubts.TAG_UNKNOWN in map(doubts.doubt, one.validity_reasons)
    verified = world.run.status.condition(ConditionType.SERVERS_VERIFIED)
    assert verified is not None
    assert AWAY in verified.message


def test_a_runtime_that_says_no_digests_is_taken_at_its_word() -> None:
    world = World(spec_of_own(), Random(1))
    world.node_has = replace(HELD, image_id="597ce1600cf4ac")
    world.registry_has = replace(HELD, image_id="0a1b2c3d4e5f")
    world_until(world, lambda world: server_of(world).image_id is not None)
    assert asking(world) == ["demo-held-s0", "demo-asks-s0"]
    assert (server_of(world).image_id, server_of(world).tag_unknown) == ("0a1b2c3d4e5f", None)


@pytest.mark.parametrize(
    ("ran", "doubtful"), [("0a1b2c3d4e5f", False), ("597ce1600cf4ac", True), ("x@sha256:1", False)]
)
def test_what_was_checked_on_a_node_with_another_image_is_said(ran: str, doubtful: bool) -> None:
    world = World(spec_of_own(), Random(1))
    world.node_has = world.registry_has = replace(HELD, image_id="0a1b2c3d4e5f")
    world_until(world, lambda world: any("verify" in one for one in world.jobs_started))
    (server,) = (one for one in world.pods.values() if one.component == "server")
    running = ContainerView("server", ready=True, running=True, image_id=ran)
    world.pods[server.name] = replace(server, main="server", ready=True, containers=(running,))
    situation = Situation(world.run, world.observe(), world.context, world.now)
    _know_which(situation, "s0", [world.pods[server.name]])
    image, unknown = situation.image_of("s0")
    assert (image, unknown is not None) == (ran, doubtful)


@pytest.mark.parametrize("words", [BUSY, EXPIRED, LIMITED])
@pytest.mark.parametrize("job", ["demo-held-s0", "demo-asks-s0"])
def test_a_registry_that_has_too_much_to_do_is_asked_again(job: str, words: str) -> None:
    world = world_that_has_pulled_it()
    if job == "demo-held-s0":
        world.node_has = failing(words)
    else:
        world.registry_has = failing(words)
    world_until(world, lambda world: job in world.jobs_started)
    begun = world.now
    while (world.now - begun).total_seconds() < 20:
        world.step()
        world.advance()
        assert server_of(world).tag_unknown is None
    world.node_has = world.registry_has = HELD
    world_until(world, over)
    assert (server_of(world).image_id, server_of(world).tag_unknown) == (HELD.image_id, None)


def test_a_registry_that_never_has_time_is_not_waited_for_for_ever() -> None:
    world = world_that_has_pulled_it()
    world.registry_has = failing(BUSY)
    run_to_the_end(world)
    assert server_of(world).tag_unknown == BUSY


def test_an_image_that_no_node_can_have_is_left_to_the_check() -> None:
    world = world_that_has_pulled_it()
    world.node_has = failing("manifest unknown")
    world_until(world, lambda world: server_of(world).tag_unknown is not None)
    assert asking(world) == ["demo-held-s0"]
    world_until(world, lambda world: any("verify" in one for one in world.jobs_started))


def test_nodes_that_say_nothing_hold_up_no_run() -> None:
    world = world_that_has_pulled_it()
    world.node_has = ContainerView("asked", waiting_reason="ContainerCreating")
    world_until(world, over)
    assert "within" in (server_of(world).tag_unknown or "")


def seconds_of_asking(world: World) -> float:
    """Return how long it was asked for in vain."""
    world_until(world, asking)
    begun = world.now
    world_until(world, lambda world: server_of(world).tag_unknown)
    return (world.now - begun).total_seconds()


def progressing(world: World) -> str:
    found = world.run.status.condition(ConditionType.PROGRESSING)
    return found.reason if found else ""


def test_who_asks_and_has_no_node_is_said_and_not_waited_for_longer_than_a_server() -> None:
    world = world_that_has_pulled_it()
    world.no_room = {"demo-held-"}
    world_until(world, lambda world: progressing(world) == "Unschedulable")
    assert seconds_of_asking(world) < STARTUP_SECONDS + 10
    assert "0/2 nodes are available" in (server_of(world).tag_unknown or "")
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED


def test_who_asks_and_gets_no_pod_is_said_and_not_waited_for_longer_than_a_server() -> None:
    world = world_that_has_pulled_it()
    world_until(world, asking)
    world.dead = {"Job"}
    world_until(world, lambda world: progressing(world) == "PodMissing")
    assert seconds_of_asking(world) < STARTUP_SECONDS + 15
    assert "has no pod: kubectl describe job demo-" in (server_of(world).tag_unknown or "")


@pytest.mark.parametrize(("words", "at_most"), [("manifest unknown", 20), (BUSY, 50)])
def test_who_asks_and_cannot_have_its_own_program_is_given_up(words: str, at_most: float) -> None:
    world = world_that_has_pulled_it()
    world.node_has = replace(failing(words), name="carrier")
    assert seconds_of_asking(world) < at_most
    assert server_of(world).tag_unknown == words
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED


def test_an_image_that_is_pulled_for_long_is_waited_for() -> None:
    world = world_that_has_pulled_it()
    world.node_has = ContainerView("asked", waiting_reason="PodInitializing")
    assert seconds_of_asking(world) > 120


def test_who_asks_and_never_ends_holds_up_no_run() -> None:
    world = world_that_has_pulled_it()
    world_until(world, asking)
    world.jobs["demo-held-s0"] = replace(world.jobs["demo-held-s0"], deleting=True)
    assert seconds_of_asking(world) < 300


def test_a_quota_that_has_no_room_for_who_asks_costs_the_run_nothing_else() -> None:
    world = world_that_has_pulled_it()
    world.refuses, world.full = {"demo-asks-s0"}, True
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED
    assert "demo-asks-s0" in (server_of(world).tag_unknown or "")


def test_a_run_that_verifies_goes_back_to_no_earlier_step() -> None:
    world = world_that_has_pulled_it(IMAGE, "registry.example/other:1")
    states = [State.DEPLOYING]
    while not over(world):
        world.step()
        world.advance()
        states.append(world.run.status.state or State.DEPLOYING)
    first = states.index(State.VERIFYING)
    assert State.DEPLOYING not in states[first:]


def test_no_image_is_asked_for_before_the_one_before_it_is_done_with() -> None:
    world = world_that_has_pulled_it(IMAGE, "registry.example/other:1")
    while not over(world):
        world.step()
        there = {one for one in world.jobs if one.startswith(("demo-held-", "demo-asks-"))}
        assert len({one.rpartition("-")[2] for one in there}) <= 1
        begun = [one for one in there if world.jobs[one].made]
        assert len(begun) <= 1
        world.advance()
    assert len(asking(world)) == 4


def test_who_asks_is_gone_before_anything_is_measured() -> None:
    world = world_that_has_pulled_it()
    world_until(world, lambda world: world.observe().pods_of("generator"))
    assert not world.observe().pods_of("asker")


def test_a_server_that_was_out_is_asked_for_anew_and_no_other_one() -> None:
    world = world_that_has_pulled_it()
    world.verdicts["s0"] = {"ok": False, "reason": "WrongStatus", "message": "no"}
    world_until(world, over)
    assert server_of(world).state is ServerState.FAILED
    assert server_of(world).image_id == HELD.image_id
    (server,) = asked_again(world.run, world.now).servers or []
    assert (server.state, server.image_id) == (ServerState.PENDING, None)
    kept = server_of(world).model_copy(update={"state": ServerState.VERIFIED})
    status = world.run.status.model_copy(update={"servers": [kept]})
    (server,) = asked_again(replace(world.run, status=status), world.now).servers or []
    assert server.image_id == HELD.image_id


def test_a_check_that_an_earlier_version_has_begun_goes_on() -> None:
    world = world_that_has_pulled_it()
    world_until(world, lambda world: any("verify" in one for one in world.jobs_started))
    (server,) = world.run.status.servers or []
    before = server.model_copy(update={"image_id": None})
    world.run = replace(world.run, status=world.run.status.model_copy(update={"servers": [before]}))
    begun = len(asking(world))
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    assert len(asking(world)) == begun


@pytest.mark.parametrize(
    ("image", "said", "expected"),
    [
        (f"{REPOSITORY}@sha256:1", f"{REPOSITORY}@sha256:0", f"{REPOSITORY}@sha256:1"),
        (IMAGE, f"{REPOSITORY}@sha256:0", f"{REPOSITORY}@sha256:0"),
        (f"{REPOSITORY}@sha256:1", None, None),
    ],
)
def test_of_several_digests_of_the_same_bits_the_one_that_was_asked_for_is_said(
    image: str, said: str | None, expected: str | None
) -> None:
    container = ContainerView("server", image_id=said)
    pod = PodView(
        "p",
        "server",
        World(spec_of_own(), Random(1)).now,
        main="server",
        image=image,
        containers=(container,),
    )
    assert pod.image_id == expected
