"""Which placement a run gets, and what is said of one that it does not get."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from laptime.api.attempts import Fault
from laptime.api.placement import RunPlacement
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.manifests.placement import Placement
from laptime.reconcile.context import context_of
from laptime.reconcile.controller import Controller
from laptime.reconcile.diagnose import Part, Problem, diagnose
from laptime.reconcile.fault import whose_fault
from laptime.reconcile.placements import NotPlaced, Placements
from laptime.reconcile.settings import Settings, SettingsError, load_settings
from laptime.reconcile.views import ContainerView, PodView, pod_view

from .api_server import ApiServer
from .nodes import working
from .test_controller import operating, reason, run_manifest, state, until
from .test_deadlines import over, said
from .test_deadlines import until as world_until
from .test_decide import spec_of
from .test_folding import stored
from .test_pause import is_in, patched, wish
from .world import IMAGES, World

ISOLATED = {"servers": {"nodeSelector": {"laptime": "servers"}}}
SHARED = {"tiers": {"priorityClassName": "low"}}
ALL = Placements.from_wire(
    {
        "isolated": {**ISOLATED, "namespaces": ["bench", "default"]},
        "shared": SHARED,
        "secret": {"namespaces": ["elsewhere"]},
    }
)


def refusal(
    placements: Placements,
    wish: str | None,
    namespace: str = "default",
    begun_with: RunPlacement | None = None,
) -> tuple[str, str]:
    begun = begun_with is not None
    with pytest.raises(NotPlaced) as raised:
        placements.chosen(wish, namespace, begun_with, begun=begun)
    return raised.value.reason, str(raised.value)


def test_a_run_has_the_placement_that_it_names() -> None:
    found = ALL.chosen("isolated", "bench", None, begun=False)
    assert found is not None
    assert found.name == "isolated"
    assert ALL.chosen(None, "bench", None, begun=False) is None


def test_one_that_is_not_there_is_refused_and_those_that_are_there_are_named() -> None:
    reason, message = refusal(ALL, "isolatd")
    assert reason == "PlacementMissing"
    assert message.startswith(
        "there is no placement isolatd: write one of these in spec.placement, or leave it out: "
        "isolated, shared."
    )
    assert "secret" not in message


def test_one_that_the_namespace_may_not_use_is_refused_and_no_other_is_told() -> None:
    reason, message = refusal(ALL, "isolated", "team")
    assert reason == "PlacementNotAllowed"
    assert message == (
        "runs of namespace team may not use placement isolated: write one of these in "
        "spec.placement, or leave it out: shared. The cluster's administrator allows it in "
        "placements.isolated.namespaces of Laptime's chart"
    )


def test_no_status_opens_a_placement_that_the_namespace_may_not_use() -> None:
    secret = ALL.by_name["secret"].pin
    for asked in (None, "shared", "secret"):
        reason, message = refusal(ALL, asked, begun_with=secret)
        assert reason == "PlacementNotAllowed"
        assert "leave it out: isolated, shared." in message
    document = spec_of(1, 1, 1, placement="shared").to_wire()
    for field in ("nodeSelector", "tolerations", "affinity", "nodeName"):
        with pytest.raises(ValidationError, match=field):
            BenchmarkRunSpec.model_validate({**document, field: {}})


@pytest.mark.parametrize("placements", [Placements(), Placements.from_wire({"secret": {
    "namespaces": ["elsewhere"]}})])  # fmt: skip
def test_without_any_it_is_said_that_there_is_none(placements: Placements) -> None:
    _, message = refusal(placements, "isolated")
    assert "there is none for runs of namespace default, so leave spec.placement out" in message
    assert "secret" not in message


def test_the_default_is_for_runs_that_name_none_and_may_use_it() -> None:
    placements = Placements.from_wire(
        {"isolated": {**ISOLATED, "default": True, "namespaces": ["bench"]}, "shared": {}}
    )
    found = placements.chosen(None, "bench", None, begun=False)
    assert found is not None
    assert found.name == "isolated"
    assert placements.chosen(None, "team", None, begun=False) is None
    other = placements.chosen("shared", "bench", None, begun=False)
    assert other is not None
    assert other.name == "shared"


def test_there_is_one_default_at_most() -> None:
    with pytest.raises(ValueError, match="a and b are both the default"):
        Placements.from_wire({"b": {"default": True}, "a": {"default": True}})


def test_a_run_that_has_begun_keeps_its_placement_or_ends() -> None:
    isolated = ALL.by_name["isolated"].pin
    kept = ALL.chosen(None, "default", isolated, begun=True)
    assert kept is not None
    assert kept.name == "isolated"
    default = Placements.from_wire({"shared": {**SHARED, "default": True}})
    # A default that came later is not its own.
    assert default.chosen(None, "default", None, begun=True) is None
    assert refusal(default, "isolated", begun_with=isolated)[0] == "PlacementMissing"
    closed = Placements.from_wire({"isolated": {**ISOLATED, "namespaces": ["bench"]}})
    assert refusal(closed, "isolated", begun_with=isolated)[0] == "PlacementNotAllowed"
    other = Placements.from_wire({"isolated": {"servers": {"nodeSelector": {"laptime": "x"}}}})
    reason, message = refusal(other, "isolated", begun_with=isolated)
    assert reason == "PlacementChanged"
    assert "Apply the run under another name" in message
    words = Placements.from_wire({"isolated": {**ISOLATED, "description": "the same nodes"}})
    assert words.chosen("isolated", "default", isolated, begun=True) is not None


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"servers": {"nodeName": "n1"}}}',
        '{"a": {"default": true}, "b": {"default": true}}',
        '{"A": {}}',
        "[]",
        '{"a": []',
        '{"a": 1}',
        '{"a": {"lanes": {"East": {}}}}',
        '{"a": {"lanes": {"east": {"nodeSelector": {}}}}}',
        '{"a": {"lanes": {"east": {"servers": {"nodeName": "n1"}}}}}',
        '{"a": {"lanes": ["east"]}}',
    ],
)
def test_what_the_operator_cannot_read_is_said_at_its_start(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    images = tmp_path / "images.json"
    names = ("postgres", "pgbouncer", "haproxy", "generator", "operator")
    images.write_text(json.dumps({**dict.fromkeys(names, "x"), "servers": {"a": "x"}}))
    monkeypatch.setenv("LAPTIME_IMAGES_FILE", str(images))
    monkeypatch.setenv("LAPTIME_PLACEMENTS", json.dumps({"isolated": ISOLATED}))
    assert load_settings().placements == Placements.from_wire({"isolated": ISOLATED})
    monkeypatch.setenv("LAPTIME_PLACEMENTS", text)
    with pytest.raises(SettingsError, match="LAPTIME_PLACEMENTS"):
        load_settings()


def lane(rack: str) -> dict[str, Any]:
    return {"servers": {"nodeSelector": {"rack": rack}}}


LANED: dict[str, dict[str, Any]] = {
    "isolated": {
        "servers": {"nodeSelector": {"laptime": "servers"}, "priorityClassName": "high"},
        "tiers": {"priorityClassName": "low"},
        "lanes": {"west": lane("west"), "east": lane("east"), "far": None},
    },
    "shared": {},
}


def test_what_a_lane_says_of_a_field_goes_before_what_its_placement_says() -> None:
    placements = Placements.from_wire(LANED)
    assert placements.lanes_of("isolated", "default") == ["east", "far", "west"]
    for without in ("shared", None, "nowhere"):
        assert not placements.lanes_of(without, "default")
    east = placements.chosen("isolated", "default", None, begun=False, lane="east")
    assert east is not None
    assert east.of("server") == {"nodeSelector": {"rack": "east"}, "priorityClassName": "high"}
    assert east.of("postgres") == {"priorityClassName": "low"}
    assert (east.pin.name, east.pin.lane) == ("isolated", "east")
    far = placements.chosen("isolated", "default", None, begun=False, lane="far")
    assert far is not None
    assert far.of("server")["nodeSelector"] == {"laptime": "servers"}


def test_a_run_keeps_its_lane_and_ends_when_that_is_changed_or_gone() -> None:
    placements = Placements.from_wire(LANED)
    east = placements.by_name["isolated"].in_lane("east").pin
    kept = placements.chosen("isolated", "default", east, begun=True, lane="west")
    assert kept is not None
    assert kept.pin == east

    def changed(lanes: dict[str, Any], begun_with: RunPlacement = east) -> str:
        other = Placements.from_wire({"isolated": {**LANED["isolated"], "lanes": lanes}})
        reason, message = refusal(other, "isolated", begun_with=begun_with)
        assert reason == "PlacementChanged"
        return message

    assert "placements.isolated has no lane east now" in changed({"west": lane("west")})
    assert "placements.isolated says something else now" in changed({"east": lane("north")})
    # Another lane that came is nothing to it.
    more = {**LANED["isolated"]["lanes"], "north": lane("north")}
    others = Placements.from_wire({"isolated": {**LANED["isolated"], "lanes": more}})
    assert others.chosen("isolated", "default", east, begun=True) is not None
    # It was begun alone, when the placement had no lanes.
    before = Placements.from_wire({"isolated": {**LANED["isolated"], "lanes": {}}})
    pin = before.by_name["isolated"].pin
    assert "has lanes now" in changed(LANED["isolated"]["lanes"], pin)


# ---- on an API server


def pinned_lane(server: ApiServer, name: str) -> str | None:
    found = server.get("BenchmarkRun", "default", name) or {}
    return ((found.get("status") or {}).get("placement") or {}).get("lane")


async def test_runs_in_two_lanes_are_measured_at_once_and_one_without_alone() -> None:
    server = ApiServer()
    for name, placement in (("first", "isolated"), ("second", "isolated"), ("third", "isolated")):
        server.add(asking(name, placement, 2))
    server.add(asking("without", None))
    laned = {"isolated": {"lanes": {"east": lane("east"), "west": lane("west")}}, "shared": {}}
    settings = Settings(images=IMAGES, placements=Placements.from_wire(laned))
    seen: set[tuple[str, ...]] = set()
    names = ("first", "second", "third", "without")

    def over() -> bool:
        states = {name: state(server, name) for name in names}
        active = tuple(sorted(name for name, said in states.items() if said and State(said).active))
        seen.add(active)
        return all(said == "Succeeded" for said in states.values())

    async with operating(server, settings), working(server):
        await until(over, 60.0)
    assert ("first", "second") in seen
    lanes = [pinned_lane(server, name) for name in names]
    assert sorted(lanes[:2], key=str) == ["east", "west"]
    assert lanes[2] in ("east", "west")
    assert lanes[3] is None
    # Whoever has no lane is alone, and whoever has one shares it with nobody.
    assert all(active == ("without",) for active in seen if "without" in active)
    held = dict(zip(names, lanes, strict=True))
    assert all(len({held[name] for name in active}) == len(active) for active in seen)
    results = json.loads(stored(server, "first").files["results.json"])
    assert results["run"]["placement"]["lane"] == held["first"]


def at_work(controller: Controller) -> dict[str, str | None]:
    """Return the lanes that an operator thinks are taken, by the runs that have them."""
    return {
        worker.key[1]: worker.turn.lane
        for worker in controller._workers.values()
        if not worker.task.done()
    }


async def test_another_operator_goes_on_with_the_runs_of_all_lanes_where_they_were() -> None:
    server = ApiServer()
    # The first one in the order of names has begun in the lane that is not the first.
    for name in ("first", "second", "third"):
        server.add(asking(name, "isolated", 3))
    laned = {"isolated": {"lanes": {"east": lane("east"), "west": lane("west")}}}
    settings = Settings(images=IMAGES, placements=Placements.from_wire(laned))

    def pause(name: str, value: bool) -> None:
        patched(server, name, suspend=value)

    async with working(server):
        async with operating(server, settings):
            await until(
                lambda: {state(server, "first"), state(server, "second")} == {"Running"}, 30.0
            )
            assert (pinned_lane(server, "first"), pinned_lane(server, "second")) == ("east", "west")
            # The third gets the lane of the one that pauses, which then waits for that very lane.
            pause("first", True)
            await until(lambda: pinned_lane(server, "third") == "east", 30.0)
            pause("first", False)
        async with operating(server, settings) as controller:
            seen: list[dict[str, str | None]] = []

            def over() -> bool:
                now = at_work(controller)
                seen.append(now)
                assert len(set(now.values())) == len(now), now
                return all(
                    state(server, name) == "Succeeded" for name in ("first", "second", "third")
                )

            await until(over, 60.0)
    for name, where in (("first", "east"), ("second", "west"), ("third", "east")):
        assert {now[name] for now in seen if name in now} == {where}, name
        assert pinned_lane(server, name) == where
    assert any(len(now) == 2 for now in seen)


async def test_a_default_placement_with_lanes_gives_them_to_runs_that_name_none() -> None:
    server = ApiServer()
    server.add(asking("first", None))
    server.add(asking("second", None))
    laned = {"isolated": {"default": True, "lanes": {"east": lane("east"), "west": lane("west")}}}
    settings = Settings(images=IMAGES, placements=Placements.from_wire(laned))
    racks = set()

    def over() -> bool:
        for one in server.of("Deployment"):
            selector = one["spec"]["template"]["spec"].get("nodeSelector") or {}
            if one["metadata"]["labels"]["laptime.dev/component"] == "server":
                part_of = one["metadata"]["labels"]["app.kubernetes.io/part-of"]
                racks.add((part_of, selector.get("rack")))
        return state(server, "first") == state(server, "second") == "Succeeded"

    async with operating(server, settings), working(server):
        await until(over, 60.0)
    assert racks == {("first", "east"), ("second", "west")}


async def test_a_run_that_has_another_lane_than_was_thought_takes_no_other() -> None:
    server = ApiServer()
    server.add(asking("first", "isolated", 3))
    laned = {"isolated": {"lanes": {"east": lane("east"), "west": lane("west")}}}
    settings = Settings(images=IMAGES, placements=Placements.from_wire(laned))
    async with operating(server, settings) as controller, working(server):
        await until(lambda: state(server, "first") == "Running", 30.0)
        (worker,) = controller._workers.values()
        # As a list that is older than its beginning has it.
        worker.turn = replace(worker.turn, lane="west")
        worker.wake()
        await until(lambda: at_work(controller) == {"first": "east"}, 30.0)
        await until(lambda: state(server, "first") == "Succeeded", 30.0)
    assert pinned_lane(server, "first") == "east"


@pytest.mark.parametrize(
    ("more", "version"),
    [({}, 3), ({"nodes": "rotate"}, 4), ({"nodes": "fixed"}, 4), ({"placement": "isolated"}, 4)],
)
async def test_an_older_version_leaves_alone_what_it_would_measure_elsewhere(
    more: dict[str, str], version: int
) -> None:
    server = ApiServer()
    server.add({**run_manifest("first"), "spec": spec_of(1, 1, 1, **more).to_wire()})
    laned = {"isolated": {"lanes": {"east": None}}}
    settings = Settings(images=IMAGES, placements=Placements.from_wire(laned))
    versions = []

    def over() -> bool:
        found = server.get("BenchmarkRun", "default", "first") or {}
        status = found.get("status") or {}
        if "startedAt" in status:
            versions.append(status["storage"]["version"])
        return bool((status.get("storage") or {}).get("folded"))

    async with operating(server, settings), working(server):
        await until(over, 60.0)
    assert set(versions) == {version}


async def test_a_run_that_waits_for_a_lane_says_which() -> None:
    server = ApiServer()
    server.add(asking("first", "isolated"))
    server.add(asking("second", "isolated"))
    settings = Settings(
        images=IMAGES, placements=Placements.from_wire({"isolated": {"lanes": {"east": None}}})
    )
    async with operating(server, settings):
        await until(lambda: reason(server, "second", "Progressing") == "Queued")
        found = server.get("BenchmarkRun", "default", "second") or {}
        (said,) = (c for c in found["status"]["conditions"] if c["type"] == "Progressing")
        assert said["message"] == (
            "one run at a time is measured in each lane of placement isolated (east); namespaces "
            "take turns"
        )


def asking(name: str, placement: str | None, repetitions: int = 1) -> dict[str, Any]:
    return {
        **run_manifest(name),
        "spec": spec_of(1, 1, repetitions, placement=placement).to_wire(),
    }


def accepted(server: ApiServer, name: str) -> dict[str, Any]:
    found = server.get("BenchmarkRun", "default", name) or {}
    (condition,) = (c for c in found["status"]["conditions"] if c["type"] == "Accepted")
    assert isinstance(condition, dict)
    return condition


@pytest.mark.parametrize(
    ("placement", "expected"),
    [("nowhere", "PlacementMissing"), ("secret", "PlacementNotAllowed")],
)
@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.timed
async def test_a_run_that_cannot_be_placed_is_refused_within_a_second_and_holds_up_nobody(
    placement: str, expected: str, behind: bool
) -> None:
    server = ApiServer()
    if behind:
        server.add(asking("first", None))
    settings = Settings(images=IMAGES, placements=ALL)
    async with operating(server, settings):
        if behind:
            await until(lambda: state(server, "first") == "Deploying")
        began = time.monotonic()
        server.add(asking("wrong", placement))
        await until(lambda: reason(server, "wrong", "Accepted") == expected)
        assert time.monotonic() - began < 1.0
        assert accepted(server, "wrong")["status"] == "False"
        assert "isolated, shared" in accepted(server, "wrong")["message"]
        assert "startedAt" not in (server.get("BenchmarkRun", "default", "wrong") or {})["status"]
        if not behind:
            server.add(asking("right", "isolated"))
            await until(lambda: state(server, "right") == "Deploying")
    assert [one for one in server.of("Deployment") if "wrong" in one["metadata"]["name"]] == []


async def test_a_run_that_was_refused_goes_on_when_the_chart_has_its_placement() -> None:
    server = ApiServer()
    server.add(asking("early", "later"))
    async with operating(server, Settings(images=IMAGES, placements=ALL)):
        await until(lambda: reason(server, "early", "Accepted") == "PlacementMissing")
    more = Placements.from_wire({"later": ISOLATED})
    async with operating(server, Settings(images=IMAGES, placements=more)):
        await until(lambda: state(server, "early") == "Deploying")
        assert reason(server, "early", "Accepted") == "Accepted"


async def test_one_that_was_accepted_and_is_closed_before_its_turn_never_begins() -> None:
    server = ApiServer()
    server.add(asking("first", None))
    settings = Settings(images=IMAGES, placements=ALL)
    async with operating(server, settings):
        await until(lambda: state(server, "first") == "Deploying")
        server.add(asking("waits", "isolated"))
        await until(lambda: state(server, "waits") == "Queued")
    server.remove("BenchmarkRun", "default", "first")
    async with operating(server, Settings(images=IMAGES)):
        await until(lambda: reason(server, "waits", "Accepted") == "PlacementMissing")
        assert state(server, "waits") == "Queued"
    assert server.of("Deployment") == []


async def test_the_placement_of_a_run_is_in_its_pods_its_status_and_its_results() -> None:
    server = ApiServer()
    server.add(asking("placed", "isolated"))
    async with operating(server, Settings(images=IMAGES, placements=ALL)), working(server):
        await until(lambda: state(server, "placed") == "Running")
        (deployment,) = (
            one for one in server.of("Deployment") if one["metadata"]["name"] == "placed-server-s0"
        )
        pod = deployment["spec"]["template"]
        assert pod["metadata"]["labels"]["laptime.dev/placement"] == "isolated"
        assert pod["spec"]["nodeSelector"]["laptime"] == "servers"
        await until(lambda: state(server, "placed") == "Succeeded")
    status = (server.get("BenchmarkRun", "default", "placed") or {})["status"]
    pin = ALL.by_name["isolated"].pin.to_wire()
    assert status["placement"] == pin
    document = json.loads(stored(server, "placed").files["results.json"])
    assert document["run"]["placement"] == pin


async def test_a_default_is_in_the_status_too_and_no_placement_is_not() -> None:
    server = ApiServer()
    server.add(asking("usual", None))
    default = Placements.from_wire({"shared": {**SHARED, "default": True}})
    async with operating(server, Settings(images=IMAGES, placements=default)), working(server):
        await until(lambda: state(server, "usual") == "Succeeded")
    status = (server.get("BenchmarkRun", "default", "usual") or {})["status"]
    assert status["placement"]["name"] == "shared"
    server.add(asking("plain", None))
    async with operating(server), working(server):
        await until(lambda: state(server, "plain") == "Succeeded")
    assert "placement" not in (server.get("BenchmarkRun", "default", "plain") or {})["status"]


# ---- in the middle of a run


def placed_world(spec: BenchmarkRunSpec) -> World:
    return World(spec, Random(3), placement=ALL.by_name["isolated"])


def under(world: World, placements: Placements) -> None:
    """Have the chart say something else of placements from now on."""
    known = context_of(world.run, Settings(images=IMAGES, placements=placements))
    world.context = replace(
        world.context, placement=known.placement, placement_problem=known.placement_problem
    )


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (Placements(), "PlacementMissing"),
        (Placements.from_wire({"isolated": {**ISOLATED, "namespaces": ["x"]}}),
         "PlacementNotAllowed"),
        (Placements.from_wire({"isolated": SHARED}), "PlacementChanged"),
    ],
)  # fmt: skip
def test_a_run_whose_placement_is_taken_away_ends_with_what_it_has_measured(
    later: Placements, expected: str
) -> None:
    world = placed_world(spec_of(2, 1, 4, placement="isolated"))
    world_until(world, lambda world: len(world.results_written) == 3)
    assert world.run.status.placement == ALL.by_name["isolated"].pin
    under(world, later)
    world_until(world, over)
    assert world.run.status.state is State.FAILED
    succeeded = said(world, ConditionType.SUCCEEDED)
    assert succeeded.reason == expected
    assert "3/8 trials are over, and stay" in succeeded.message
    assert len(world.results_written) == 3
    assert [*world.deployments, *world.jobs, *world.services] == []
    assert world.run.status.placement == ALL.by_name["isolated"].pin


def test_a_run_that_began_without_one_goes_on_without() -> None:
    world = World(spec_of(1, 1, 4), Random(3))
    world_until(world, lambda world: len(world.results_written) == 1)
    under(world, Placements.from_wire({"isolated": {**ISOLATED, "default": True}}))
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    assert world.run.status.placement is None


def test_a_run_that_paused_goes_on_in_its_placement() -> None:
    world = placed_world(spec_of(1, 1, 3, placement="isolated"))
    world_until(world, lambda world: len(world.results_written) == 1)
    wish(world, suspend=True)
    world_until(world, is_in(State.SUSPENDED))
    wish(world, suspend=False)
    under(world, ALL)
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    assert world.run.status.placement == ALL.by_name["isolated"].pin


# ---- nodes that are not there

NONE_MATCHES = "3 node(s) didn't match Pod's node affinity/selector"
TAINTED = (
    "1 node(s) had untolerated taint {laptime: servers}, 2 node(s) didn't match Pod's node "
    "affinity/selector"
)
NO_ROOM = "1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector"
CLOSED = "3 node(s) had untolerated taint(s)"


def scheduler_says(nodes: str) -> str:
    return f"0/3 nodes are available: {nodes}. preemption: 0/3 nodes are available: 3 No help."


def unplaced(
    component: str, nodes: str, *, placement: str | None = "isolated", bound: str | None = None
) -> PodView:
    """Return a pod that the scheduler has no node for, as the API server shows it."""
    required = {"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": [bound]}]}]}  # fmt: skip
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": required} if bound else {}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    labels = {"laptime.dev/component": component}
    if placement:
        labels["laptime.dev/placement"] = placement
    return pod_view(
        {
            "metadata": {
                "name": "p",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": labels,
            },
            "spec": {"containers": [{"name": "c"}], "affinity": {"nodeAffinity": rules}},
            "status": {
                "phase": "Pending",
                "conditions": [{**condition, "message": scheduler_says(nodes)}],
            },
        }
    )


def problem_of(pod: PodView, what: str) -> Problem:
    found = diagnose(what, [pod], pod.created + timedelta(seconds=10))
    assert found is not None
    return found


@pytest.mark.parametrize("nodes", [NONE_MATCHES, TAINTED])
def test_that_no_node_is_one_of_the_placements_is_said_with_its_part(nodes: str) -> None:
    problem = problem_of(unplaced("server", nodes), "server axum")
    assert problem.reason == "PlacementWithoutNodes"
    assert problem.message == (
        "placement isolated has no node for its servers, so there is none for the pod of server "
        f"axum: {scheduler_says(nodes)}. The cluster's administrator gives nodes the labels, or "
        "the placement the tolerations: placements.isolated.servers of Laptime's chart"
    )
    assert not problem.fatal
    assert whose_fault(problem.reason, Part.SERVER, once_well=False) is Fault.CLUSTER


@pytest.mark.parametrize(
    ("component", "part"),
    [("generator", "generators"), ("verifier", "generators"), ("postgres", "tiers"),
     ("reset-cache", "tiers"), ("server", "servers")],
)  # fmt: skip
def test_that_there_is_no_room_is_said_with_the_part_of_the_pod(component: str, part: str) -> None:
    problem = problem_of(unplaced(component, NO_ROOM), "it")
    assert problem.reason == "Unschedulable"
    assert problem.message.startswith(
        f"the pod of it fits on no node of placement isolated ({part}): 0/3 nodes"
    )
    assert f"nodes added that placements.isolated.{part} of Laptime's chart" in problem.message


def test_a_pod_that_is_bound_to_a_node_says_so() -> None:
    problem = problem_of(unplaced("server", NONE_MATCHES, bound="bench-1"), "server axum")
    # Its node is gone: whether the placement has others is not known.
    assert problem.reason == "Unschedulable"
    assert "of placement isolated (servers) and has to go to bench-1: 0/3" in problem.message


def test_nodes_that_take_nobody_are_closed_whatever_the_placement() -> None:
    problem = problem_of(unplaced("server", CLOSED), "server axum")
    assert problem.reason == "NodesClosed"
    assert "taints are tolerated is in placements.isolated.servers" in problem.message


def test_without_a_placement_none_is_spoken_of() -> None:
    for nodes in (NONE_MATCHES, NO_ROOM, CLOSED):
        problem = problem_of(unplaced("server", nodes, placement=None), "server axum")
        assert "placement" not in problem.message
        assert problem.reason == ("NodesClosed" if nodes == CLOSED else "Unschedulable")


def test_nodes_of_windows_do_not_hide_that_all_of_linux_are_closed() -> None:
    closed = "2 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable"
    for nodes in (closed, TAINTED):
        problem = problem_of(unplaced("server", nodes, placement=None), "server axum")
        assert problem.reason == "NodesClosed"
    # Of a pod that is bound, the same words are about nodes that it could not go to anyway.
    bound = unplaced("server", closed, placement=None, bound="bench-1")
    assert problem_of(bound, "server axum").reason == "Unschedulable"


class WithoutNodes(World):
    """No node is one of those that the placement has for a component."""

    def __init__(self, spec: BenchmarkRunSpec, component: str) -> None:
        self.component = component
        super().__init__(spec, Random(3), placement=Placement.from_wire("isolated", ISOLATED))

    def _add_pod(self, component: str, owner: str, *more: Any, **others: Any) -> None:
        super()._add_pod(component, owner, *more, **others)
        name = next(reversed(self.pods))
        pod = replace(self.pods[name], placement="isolated")
        if component == self.component:
            message = scheduler_says(NONE_MATCHES)
            pod = replace(pod, node=None, acknowledged=None, unschedulable_message=message)
        self.pods[name] = pod

    def _run_pod(self, pod: PodView) -> None:
        if pod.component == "verifier" and self.component == "server":
            # It waits for the server.
            running = ContainerView("verify", running=True, running_since=self.now)
            self.pods[pod.name] = replace(pod, phase="Running", containers=(running,))
        else:
            super()._run_pod(pod)


@pytest.mark.parametrize(
    ("component", "type_", "words"),
    [
        (
            "postgres",
            ConditionType.TIERS_READY,
            "no node for its tiers, so there is none for the pod of Postgres",
        ),
        (
            "server",
            ConditionType.PROGRESSING,
            "no node for its servers, so there is none for the pod of server s0",
        ),
        (
            "verifier",
            ConditionType.PROGRESSING,
            "no node for its generators, so there is none for the pod of the verifier of s0",
        ),
    ],
)
def test_a_placement_without_nodes_is_said_in_seconds_and_ends_the_run(
    component: str, type_: ConditionType, words: str
) -> None:
    world = WithoutNodes(spec_of(3, 1, 2, placement="isolated"), component)
    world_until(world, lambda world: any(one.component == component for one in world.pods.values()))
    stood = world.now

    def is_said(world: World) -> bool:
        found = world.run.status.condition(type_)
        return bool(found and found.reason == "PlacementWithoutNodes")

    world_until(world, is_said)
    assert (world.now - stood).total_seconds() < 10
    assert said(world, type_).status is ConditionStatus.FALSE
    assert words in said(world, type_).message
    world_until(world, over)
    assert world.run.status.state is State.FAILED
    succeeded = said(world, ConditionType.SUCCEEDED)
    assert succeeded.reason == "PlacementWithoutNodes"
    assert words in succeeded.message
    # Once for the whole run, and not for each of its servers.
    assert (world.now - stood).total_seconds() < 300
    assert [*world.deployments, *world.jobs] == []
