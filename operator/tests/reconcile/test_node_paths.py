"""What nodes of generators and servers exchange is measured between trials, never in one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from laptime.api.node_path import MOST_PATHS, NodePath
from laptime.api.results import TrialResult
from laptime.api.status import RunStatus, State
from laptime.manifests.node_path import PATH_SECONDS
from laptime.manifests.objects import Manifest
from laptime.measure import watched_result
from laptime.reconcile.actions import Apply, Create, Fold
from laptime.reconcile.views import ContainerView, PodView, Refusal

from .api_server import ApiServer
from .nodes import working
from .test_controller import operating, run_manifest, state, until
from .test_deadlines import over
from .test_deadlines import until as world_until
from .test_decide import spec_of
from .test_folding import stored
from .test_pause import is_in, wish
from .world import World

FOUND = {
    "generatorNode": "node-2",
    "serverNode": "node-1",
    "toServerBytesPerSecond": 1.2e9,
    "fromServerBytesPerSecond": 1.1e9,
    "toServerAtLeast": False,
    "fromServerAtLeast": False,
    "roundTripSeconds": 0.00025,
}


async def test_two_nodes_are_measured_once_and_it_stands_in_status_and_results() -> None:
    server = ApiServer()
    server.add({**run_manifest("apart"), "spec": spec_of(2, 1, 2).to_wire()})
    async with operating(server), working(server) as nodes:
        nodes.free = ["node-1", "node-2"]
        await until(lambda: state(server, "apart") == "Succeeded")
        (asked,) = nodes.paths_measured
    # The address of the pod that serves, of a cluster of IPv6.
    assert "'ask', '[fd00::" in asked
    (run,) = server.of("BenchmarkRun")
    assert run["status"]["nodePaths"] == [FOUND]
    document = json.loads(stored(server, "apart").files["results.json"])
    assert document["run"]["nodePaths"] == [FOUND]
    for trial in document["trials"]:
        assert (trial["nodes"]["server"], trial["nodes"]["generator"]) == (["node-1"], ["node-2"])


async def test_causes_are_told_by_it_those_of_the_trial_before_it_too() -> None:
    seen: list[tuple[NodePath, ...]] = []

    def judged(*args: Any, **more: Any) -> Any:
        seen.append(tuple(args[5]))
        return watched_result(*args, **more)

    server = ApiServer()
    server.add({**run_manifest("told"), "spec": spec_of(1, 1, 2).to_wire()})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("laptime.reconcile.result_cache.watched_result", judged)
        async with operating(server), working(server) as nodes:
            nodes.free = ["node-1", "node-2"]
            await until(lambda: state(server, "told") == "Succeeded")
    known = (NodePath.model_validate(FOUND),)
    # The first trial without it, as long as it was not there, and again with it.
    assert seen[0] == ()
    assert seen.count(known) >= 2


async def test_on_one_node_nothing_is_measured() -> None:
    server = ApiServer()
    server.add({**run_manifest("one"), "spec": spec_of(2, 1, 2).to_wire()})
    async with operating(server), working(server) as nodes:
        await until(lambda: state(server, "one") == "Succeeded")
        assert nodes.paths_measured == []
    (run,) = server.of("BenchmarkRun")
    assert "nodePaths" not in run["status"]
    assert "nodePaths" not in json.loads(stored(server, "one").files["results.json"])["run"]


class Apart(World):
    """A node for generators, one for all else; what measures the network between them works."""

    found: str | None = json.dumps({"ok": True, "toServerBytesPerSecond": 5.0})
    """What is found; None: nothing, for ever."""
    serves = True

    def __init__(self, **more: Any) -> None:
        super().__init__(spec_of(2, 1, 2), Random(3), **more)
        self.begun: list[str] = []
        self.alive_beside: set[str] = set()

    def create(self, manifest: Manifest) -> None:
        super().create(manifest)
        self.begun.append(manifest["metadata"]["name"])

    def _add_pod(self, component: str, *more: Any, **others: Any) -> None:
        super()._add_pod(component, *more, **others)
        name = list(self.pods)[-1]
        far = component in ("generator", "path-generator")
        self.pods[name] = replace(self.pods[name], node="far" if far else "near")

    def _run_pod(self, pod: PodView) -> None:
        if pod.component == "generator" and pod.trial != "demo-trial-001":
            self.alive_beside |= {
                one.component
                for one in self.pods.values()
                if one.component.startswith("path-") and not one.ended
            }
        if pod.component == "path-server" and not self.serves:
            return
        if pod.component != "path-generator":
            super()._run_pod(pod)
            if pod.component == "path-server":
                self.pods[pod.name] = replace(self.pods[pod.name], address="10.0.0.1")
        elif self.found is not None:
            ended = ContainerView("bandwidth", exit_code=0, exit_message=self.found)
            self.pods[pod.name] = replace(pod, phase="Succeeded", containers=(ended,))


def paths(world: World) -> list[NodePath]:
    return world.run.status.node_paths or []


def test_nothing_that_measures_the_network_is_alive_while_a_trial_runs() -> None:
    world = Apart()
    world_until(world, over)
    assert world.begun.count("demo-path-1-server") == 1
    assert world.begun.index("demo-trial-001") < world.begun.index("demo-path-1-server")
    assert world.begun.index("demo-path-1-generator") < world.begun.index("demo-trial-002")
    assert world.alive_beside == set()
    (path,) = paths(world)
    assert (path.generator_node, path.server_node) == ("far", "near")
    assert path.to_server_bytes_per_second == 5.0
    assert len(world.results_written) == 4


@pytest.mark.parametrize(
    ("serves", "found", "words"),
    [
        (True, None, f"nothing was found in {PATH_SECONDS} s"),
        (False, None, f"nothing was found in {PATH_SECONDS} s"),
        (True, json.dumps({"ok": False, "message": "connection refused"}), "connection refused"),
        (True, json.dumps({"ok": True, "toServerBytesPerSecond": "many"}), "another form"),
        (True, json.dumps({"ok": True, "toServerBytesPerSecond": -1}), "another form"),
    ],
)
def test_what_cannot_be_measured_is_said_once_and_holds_up_no_trial(
    serves: bool, found: str | None, words: str
) -> None:
    world = Apart()
    world.serves, world.found = serves, found
    world_until(world, over)
    (path,) = paths(world)
    assert words in (path.message or "")
    assert path.to_server_bytes_per_second is None
    assert world.begun.count("demo-path-1-server") == 1
    assert len(world.results_written) == 4
    assert world.run.status.state is State.SUCCEEDED


def test_what_nobody_lets_be_made_is_not_waited_for() -> None:
    world = Apart()
    world_until(world, lambda world: world.observe().results)
    refusal = Refusal("exceeded quota: jobs", world.now)
    observe = world.observe
    world.observe = lambda: replace(observe(), refusal=refusal)  # type: ignore[method-assign]
    world_until(world, paths)
    world.observe = observe  # type: ignore[method-assign]
    world_until(world, over)
    assert [one.message for one in paths(world)] == ["exceeded quota: jobs"]
    assert not any("-path-" in name for name in world.begun)


def test_a_pause_in_the_middle_leaves_nothing_and_it_is_measured_afterwards() -> None:
    world = Apart()
    world.found = None
    world_until(world, lambda world: "demo-path-1-generator" in world.jobs)
    wish(world, suspend=True)
    world_until(world, is_in(State.SUSPENDED))
    assert not world.pods
    world.found = Apart.found
    wish(world, suspend=False)
    world_until(world, over)
    assert [one.message for one in paths(world)] == [None]


def seconds_between_trials(world: World, each_second: Callable[[], None]) -> float:
    """Return after how many seconds the second trial begins; `each_second` happens meanwhile."""
    world_until(world, lambda world: world.observe().results)
    since = world.now
    while "demo-trial-002" not in world.jobs_started:
        assert (world.now - since).total_seconds() < 3600, world.run.status
        world.step()
        world.advance()
        each_second()
    return (world.now - since).total_seconds()


class Forgetful(Apart):
    """The CRD of an older version: what it does not know of a status is dropped."""

    @staticmethod
    def _stored(status: RunStatus) -> RunStatus:
        return Apart._stored(status.model_copy(update={"node_paths": None}))


def test_where_the_crd_does_not_know_of_paths_trials_wait_for_one_once() -> None:
    world = Forgetful()
    assert seconds_between_trials(world, lambda: None) < 2 * PATH_SECONDS + 30
    second = world.now
    made = world.begun.count("demo-path-1-server")
    world_until(world, over)
    # Of two nodes that an earlier trial was on nobody asks again.
    assert world.begun.count("demo-path-1-server") == made
    assert (world.now - second).total_seconds() < 2 * PATH_SECONDS
    assert len(world.results_written) == 4


def test_somebody_who_deletes_all_of_it_holds_up_no_trial_for_ever() -> None:
    world = Apart()

    def vandal() -> None:
        for name in [name for name in world.jobs if "-path-" in name]:
            world.remove("Job", name)

    assert seconds_between_trials(world, vandal) < 2 * PATH_SECONDS + 30
    world_until(world, over)
    assert len(world.results_written) == 4


class Refusing(Apart):
    """A quota has room for one more Job, and not for two."""

    def _refused(self, action: Apply | Create | Fold) -> Refusal | None:
        asks = "demo-path-1-generator"
        if isinstance(action, Create) and action.manifest["metadata"]["name"] == asks:
            since = self.refusal.since if self.refusal else self.now
            return Refusal("exceeded quota: count/jobs.batch", since, room=True)
        return super()._refused(action)


@pytest.mark.parametrize("pause", [0.5, 8.0, 10.0])
def test_a_quota_that_has_no_room_for_who_asks_fails_no_run(pause: float) -> None:
    world = Refusing()

    def later() -> None:
        if world.refusal is not None:
            world.now += timedelta(seconds=pause)

    assert seconds_between_trials(world, later) < PATH_SECONDS
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    assert [one.message for one in paths(world)] == ["exceeded quota: count/jobs.batch"]


class Older(Apart):
    """The generator's image is of a version that has no such program."""

    def _run_pod(self, pod: PodView) -> None:
        if not pod.component.startswith("path-"):
            super()._run_pod(pod)
            return
        said = 'exec: "/usr/local/bin/bandwidth": no such file or directory'
        ended = ContainerView(
            "bandwidth", exit_code=128, exit_reason="StartError", exit_message=said
        )
        self.pods[pod.name] = replace(pod, phase="Failed", containers=(ended,))
        for name in [name for name in self.jobs if "-path-" in name]:
            self.jobs[name] = replace(self.jobs[name], failed_reason="BackoffLimitExceeded")


def test_an_image_without_the_program_says_so_at_once() -> None:
    world = Older()
    assert seconds_between_trials(world, lambda: None) < 30
    (path,) = paths(world)
    assert "exit code 128: StartError" in (path.message or "")
    assert "bandwidth" in (path.message or "")


def test_where_no_pod_is_made_for_it_that_is_said() -> None:
    world = Apart()
    world_until(world, lambda world: world.observe().results)
    world.dead = {"Job"}
    world_until(world, paths)
    world.dead = set()
    world_until(world, over)
    (path,) = paths(world)
    assert "its pod was not made" in (path.message or "")


def test_pairs_that_cannot_be_measured_are_not_all_tried() -> None:
    world = Apart()
    world.serves = False
    observe = world.observe
    many = {"generator": [f"far-{n}" for n in range(8)], "server": ["near"]}

    def with_many() -> Any:
        seen = observe()
        results = {
            name: one.model_copy(update={"nodes": many}) for name, one in seen.results.items()
        }
        return replace(seen, results=results)

    world.observe = with_many  # type: ignore[method-assign]
    assert seconds_between_trials(world, lambda: None) < 2 * PATH_SECONDS + 30
    assert 1 <= len(paths(world)) <= 2


def test_pods_that_never_end_hold_up_no_trial_for_ever() -> None:
    world = Apart()
    world_until(world, paths)
    world.stubborn = {name for name, pod in world.pods.items() if "path-" in pod.component}
    assert world.stubborn
    since = world.now
    world_until(world, lambda _: "demo-trial-002" in world.begun)
    assert (world.now - since).total_seconds() < 2 * PATH_SECONDS + 60


def test_a_run_measures_no_more_pairs_than_it_may() -> None:
    world = Apart()
    world_until(world, lambda world: world.observe().results)
    (first,) = world.observe().results.values()
    observe = world.observe
    many = {"generator": [f"far-{n}" for n in range(MOST_PATHS + 3)], "server": ["near", "far-0"]}

    def with_many() -> Any:
        seen = observe()
        results: dict[str, TrialResult] = {
            name: one.model_copy(update={"nodes": many}) for name, one in seen.results.items()
        }
        return replace(seen, results=results)

    world.observe = with_many  # type: ignore[method-assign]
    world_until(world, over)
    known = [(one.generator_node, one.server_node) for one in paths(world)]
    assert len(known) == len(set(known)) == MOST_PATHS
    assert all(generator != server for generator, server in known)
    assert first.trial == "demo-trial-001"
