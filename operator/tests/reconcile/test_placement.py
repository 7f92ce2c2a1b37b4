"""The trials of a run go to the nodes of its first, and say where they were."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

from laptime.api.attempts import Fault
from laptime.api.results import TrialOutcome, Validity
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import State
from laptime.manifests.objects import Manifest
from laptime.measure import on_the_same_nodes
from laptime.reconcile.views import PodView

from .api_server import ApiServer
from .nodes import working
from .test_controller import operating, run_manifest, state, until
from .test_deadlines import over
from .test_deadlines import until as world_until
from .test_decide import spec_of
from .test_folding import stored
from .test_pause import is_in, wish
from .world import World


async def test_later_trials_go_where_the_first_one_was() -> None:
    server = ApiServer()
    server.add({**run_manifest("fixed"), "spec": spec_of(2, 1, 2).to_wire()})
    async with operating(server), working(server) as nodes:
        nodes.free = ["node-1", "node-2"]
        await until(lambda: len(nodes.generators_started) == 1)
        # From now on the scheduler would rather take the other one.
        nodes.free = ["node-2", "node-1"]
        await until(lambda: state(server, "fixed") == "Succeeded")
    trials = json.loads(stored(server, "fixed").files["results.json"])["trials"]
    assert len(trials) == 4
    for trial in trials:
        assert (trial["nodes"]["server"], trial["nodes"]["generator"]) == (["node-1"], ["node-2"])
        assert not any("nodes" in reason for reason in trial["validityReasons"])


async def test_where_nodes_rotate_each_repetition_has_a_node_and_all_have_as_many() -> None:
    server = ApiServer()
    spec = {**spec_of(2, 1, 5).to_wire(), "nodes": "rotate"}
    server.add({**run_manifest("round"), "spec": spec})
    async with operating(server), working(server) as nodes:
        nodes.free = ["node-1", "node-2"]
        await until(lambda: state(server, "round") == "Succeeded")
    document = json.loads(stored(server, "round").files["results.json"])
    there: dict[int, set[str]] = {}
    for trial in document["trials"]:
        there.setdefault(trial["repetition"], set()).update(trial["nodes"]["server"])
        assert not any("nodes" in reason for reason in trial["validityReasons"])
    assert [sorted(there[n]) for n in (1, 2, 3, 4)] == [["node-1"], ["node-2"]] * 2
    assert there[5] == {"node-1"}


async def test_a_trial_that_was_placed_elsewhere_is_doubtful_and_says_where() -> None:
    server = ApiServer()
    server.add({**run_manifest("moved"), "spec": spec_of(1, 1, 2).to_wire()})
    async with operating(server), working(server) as nodes:
        await until(lambda: len(nodes.generators_started) == 1)
        # Somebody else's scheduler need not look at what a pod asks for.
        nodes.free = ["node-2"]
        nodes.heeding = False
        await until(lambda: state(server, "moved") == "Succeeded")
    trials = json.loads(stored(server, "moved").files["results.json"])["trials"]
    assert [one["nodes"]["generator"] for one in trials] == [["node-1"], ["node-2"]]
    assert any(
        "generator ran on node-2, and on node-1 in trial moved-trial-001" in reason
        for reason in trials[1]["validityReasons"]
    )
    (row,) = json.loads(stored(server, "moved").files["results.json"])["rows"]
    assert row["validity"] == "doubtful"
    assert any("on node-1 in trial" in reason for reason in row["validityReasons"])


def test_a_trial_whose_node_is_drained_goes_elsewhere_soon_and_is_doubtful() -> None:
    world = World(spec_of(2, 1, 2), Random(1))
    world_until(world, lambda world: world.observe().results)
    world.drained = True
    drained = world.now
    world_until(world, lambda world: world.run.status.lost_attempts)
    (lost,) = world.run.status.lost_attempts or []
    assert (lost.reason, lost.fault) == ("Unschedulable", Fault.CLUSTER)
    # As long as a pod may take to start, and not until everything else that is in the way is gone.
    assert (world.now - drained).total_seconds() < world.run.spec.startup_seconds + 30
    world_until(world, over)
    deployed = {server.name for server in world.run.spec.deployed}
    first, *later = on_the_same_nodes(list(world.observe().results.values()), deployed)
    assert first.nodes["generator"] == ["node"]
    assert [one.outcome for one in later] == [TrialOutcome.MEASURED] * 3
    elsewhere = [one for one in later if one.nodes["generator"] == ["other"]]
    # A node that is gone costs one attempt, and not one of each trial.
    assert [one.attempt for one in elsewhere] == [2, *[1] * (len(elsewhere) - 1)]
    assert len(elsewhere) >= 2
    for one in elsewhere:
        assert one.validity is Validity.DOUBTFUL
        assert any(
            "ran on other, and on node in trial demo-trial-001" in reason
            for reason in one.validity_reasons
        )


class Watched(World):
    """Remembers what the pods of Deployments asked for that were applied."""

    def __init__(self, spec: BenchmarkRunSpec) -> None:
        super().__init__(spec, Random(4))
        self.asked: dict[str, Manifest] = {}

    def store(self, manifest: Manifest) -> None:
        super().store(manifest)
        if manifest["kind"] == "Deployment":
            affinity = manifest["spec"]["template"]["spec"]["affinity"]
            self.asked[manifest["metadata"]["name"]] = affinity


def test_tiers_that_are_made_anew_would_rather_be_where_they_were() -> None:
    world = Watched(spec_of(2, 1, 2))
    world_until(world, lambda world: world.observe().results)
    wish(world, suspend=True)
    world_until(world, is_in(State.SUSPENDED))
    wish(world, suspend=False)
    world.asked.clear()
    world_until(world, over)
    for tier in ("demo-postgres", "demo-pgbouncer", "demo-haproxy"):
        (term,) = world.asked[tier]["nodeAffinity"][
            "preferredDuringSchedulingIgnoredDuringExecution"
        ]
        assert term["preference"]["matchFields"][0]["values"] == ["node"]


def test_a_tier_that_stands_is_not_replaced_because_it_is_known_where_it_is() -> None:
    world = Watched(spec_of(2, 1, 2))
    world_until(world, lambda world: world.observe().results)
    del world.deployments["demo-haproxy"]
    world.asked.clear()
    world_until(world, over)
    assert "nodeAffinity" in world.asked["demo-haproxy"]
    assert not {"demo-postgres", "demo-pgbouncer"} & set(world.asked)


def test_each_generator_says_where_it_was() -> None:
    world = World(spec_of(1, 1, 1, generator={"parallelism": 2}), Random(5))
    world_until(world, over)
    (only,) = world.observe().results.values()
    assert only.nodes["generator"] == ["node", "node"]


class Lingering(World):
    """A generator that has printed its result ends once it is told to, and not before."""

    def __init__(self, nodes: str) -> None:
        spec = {**spec_of(2, 1, 3).to_wire(), "nodes": nodes}
        super().__init__(BenchmarkRunSpec.model_validate(spec), Random(5))
        self.beside: list[tuple[str, str]] = []
        """Servers' Deployments that got a trial while a generator of another one had not ended."""

    def _run_generator(self, pod: PodView) -> None:
        super()._run_generator(pod)
        # What it has printed is there, and its container runs on.
        still = tuple(
            replace(one, running=True, exit_code=None) for one in self.pods[pod.name].containers
        )
        self.pods[pod.name] = replace(self.pods[pod.name], phase="Running", containers=still)

    def store(self, manifest: Manifest) -> None:
        super().store(manifest)
        made = self.deployments.get(manifest["metadata"]["name"])
        trial = made.trial if made is not None and manifest["kind"] == "Deployment" else None
        self.beside += [
            (trial, pod.name)
            for pod in self.pods.values()
            if trial is not None and pod.component == "generator" and not pod.ended
            if pod.trial != trial
        ]


def test_a_server_whose_nodes_rotate_is_not_kept_from_one_by_a_generator_that_ends() -> None:
    world = Lingering("rotate")
    world_until(world, over)
    assert len(world.results_written) == 6
    firsts = {"demo-trial-001", "demo-trial-003", "demo-trial-005"}
    assert [one for one in world.beside if one[0] in firsts] == []
    # Where they are bound to a node nothing keeps them from it, and nobody waits.
    fixed = Lingering("fixed")
    world_until(fixed, over)
    assert fixed.beside
