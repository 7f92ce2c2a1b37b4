"""The policy of a run is there for as long as any of its pods is."""

from __future__ import annotations

import logging
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.manifests.context import Network
from laptime.reconcile.actions import Apply, Create
from laptime.reconcile.controller import Controller
from laptime.reconcile.metrics import Metrics
from laptime.reconcile.settings import Settings

from .api_server import ApiServer, serving
from .nodes import working
from .test_controller import operating, run_manifest, state, until
from .test_decide import MANY_PASSES, run_to_the_end, spec_of
from .test_side_services import scenario
from .test_side_services import spec as with_images
from .world import IMAGES, World


@given(seed=st.integers(0, 2**32), faults=st.sampled_from([0.0, 0.05]))
@settings(max_examples=15, deadline=None)
def test_a_policy_is_there_before_the_first_pod_and_after_the_last(
    seed: int, faults: float
) -> None:
    world = World(spec_of(2, 1, 2), Random(seed), faults, network=Network())
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        assert world.policies or not world.pods
        assert world.passes < MANY_PASSES
    assert world.policies == {}
    plain = World(spec_of(1, 1, 1), Random(seed))
    run_to_the_end(plain)
    assert plain.policies == {}


def test_a_policy_is_there_before_the_pod_that_asks_which_image_a_tag_stands_for() -> None:
    world = World(with_images(), Random(1), scenario=scenario(), network=Network())
    kinds: list[str] = []
    while "Job" not in kinds:
        actions = world.step().actions
        kinds = [one.manifest["kind"] for one in actions if isinstance(one, Apply | Create)]
        world.advance()
    assert kinds[0] == "NetworkPolicy"
    assert world.jobs_started[0] == "demo-held-s0"


async def test_pods_of_a_run_that_is_given_up_end_behind_its_policy() -> None:
    """What runs in them is somebody else's, and has some seconds from the word to its end."""
    server = ApiServer()
    async with operating(server, network=Network()):
        server.add(run_manifest("a"))
        await until(lambda: server.of("Deployment") and server.of("NetworkPolicy"))
        found = server.get("BenchmarkRun", "default", "a") or {}
        nonsense = found["status"] | {"results": [{}]}
        server.change("BenchmarkRun", "default", "a", status=nonsense)
        await until(lambda: state(server, "a") == "Failed", 30)
        assert not server.of("Deployment")
        assert len(server.of("NetworkPolicy")) == 1
        server.remove("BenchmarkRun", "default", "a")
        await until(lambda: not server.of("NetworkPolicy"))


async def test_a_policy_is_created_kept_and_deleted_on_the_api_server() -> None:
    server = ApiServer()
    settings_ = Settings(images=IMAGES, network=Network())
    theirs = {"kind": "NetworkPolicy", "metadata": {"name": "a-network", "namespace": "default"}}
    stranger = server.add(theirs)
    async with serving(server) as kube, working(server):
        controller = Controller(kube, settings_, Metrics(), logging.getLogger("laptime"))
        controller.start()
        try:
            run = server.add({**run_manifest("a"), "spec": spec_of(1, 1, 2).to_wire()})
            uid = run["metadata"]["uid"]

            def own() -> list[Any]:
                found = server.of("NetworkPolicy")
                return [
                    one
                    for one in found
                    if one["metadata"].get("labels", {}).get("laptime.dev/run-uid") == uid
                ]

            await until(own)
            # Its name is somebody else's: nothing finds it by its name.
            (policy,) = own()
            assert policy["metadata"]["name"].startswith("a-network-")
            # Somebody deletes it: it is made again, and pods are not without it.
            server.remove("NetworkPolicy", "default", policy["metadata"]["name"])
            await until(own)
            await until(lambda: state(server, "a") == "Succeeded", 30)
            assert not own()
        finally:
            await controller.stop()
    assert server.get("NetworkPolicy", "default", "a-network") == stranger
