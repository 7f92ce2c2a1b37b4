"""A run has the same images from its first pod to its last, and says which bits those were."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

from laptime.api.images import RunImages
from laptime.api.results import Validity
from laptime.api.status import State
from laptime.reconcile.context import context_of
from laptime.reconcile.settings import Settings

from .api_server import ApiServer, Object
from .nodes import working
from .test_controller import operating, run_manifest, state, until
from .test_deadlines import in_state
from .test_deadlines import until as world_until
from .test_decide import spec_of
from .test_folding import stored
from .world import IMAGES, World

NEXT = replace(
    IMAGES,
    postgres="postgres:next",
    generator="k6:next",
    operator="operator:next",
    servers={"axum-sqlx": "axum:next", "fastapi-sync": "sync:next"},
    exporter="exporter:next",
    pull_policy="Always",
    pull_secrets=("new",),
)


def test_a_run_that_has_begun_knows_no_other_images_than_it_was_begun_with() -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    assert context_of(world.run, Settings(images=NEXT)).images == NEXT
    world_until(world, in_state(State.DEPLOYING))
    images = context_of(world.run, Settings(images=NEXT)).images
    assert images == replace(
        IMAGES, servers={"fastapi-sync": "sync"}, pull_policy="Always", pull_secrets=("new",)
    )


def test_only_the_presets_of_the_run_are_written_down() -> None:
    pinned = IMAGES.pins(spec_of(2, 1, 1))
    assert pinned.servers == {"fastapi-sync": "sync", "fastapi-async": "async"}
    assert RunImages.model_validate(json.loads(json.dumps(pinned.to_wire()))) == pinned


def results(server: ApiServer, run: str) -> list[Object]:
    found = [one["data"]["result.json"] for one in stored(server, run).objects if _result(one)]
    return [json.loads(one) for one in found]


def _result(config_map: Object) -> bool:
    return "result.json" in (config_map.get("data") or {})


async def test_an_upgrade_in_the_middle_changes_no_image_of_a_run() -> None:
    server = ApiServer()
    server.add({**run_manifest("first"), "spec": spec_of(1, 1, 3).to_wire()})
    async with operating(server), working(server) as nodes:
        await until(lambda: len(nodes.generators_started) == 2)
    async with operating(server, Settings(images=NEXT)), working(server):
        await until(lambda: state(server, "first") == "Succeeded")
        server.add(run_manifest("second"))
        await until(lambda: state(server, "second") == "Succeeded")
    ran = [one["images"] for one in results(server, "first")]
    assert [one["server"] for one in ran] == ["sync@sha256:1"] * 3
    assert [one["generator"] for one in ran] == ["k6@sha256:1"] * 3
    assert ran[0]["postgres"] == "postgres@sha256:1"
    (after,) = (one["images"] for one in results(server, "second"))
    assert (after["server"], after["postgres"]) == ("sync:next@sha256:1", "postgres:next@sha256:1")


async def test_trials_of_a_server_whose_tag_was_moved_meanwhile_are_not_compared() -> None:
    server = ApiServer()
    server.add({**run_manifest("moved"), "spec": spec_of(1, 1, 3).to_wire()})
    async with operating(server), working(server) as nodes:
        await until(lambda: len(nodes.generators_started) == 1)
        nodes.bits["sync"] = "sha256:2"
        await until(lambda: state(server, "moved") == "Succeeded")
    trials = json.loads(stored(server, "moved").files["results.json"])["trials"]
    assert [one["validity"] for one in trials][1:] == [Validity.INVALID] * 2
    assert trials[0]["validity"] != Validity.INVALID
    reason = trials[1]["validityReasons"][0]
    assert "sync@sha256:2" in reason
    assert "sync@sha256:1 in trial moved-trial-001" in reason


async def test_trials_are_compared_whatever_name_the_node_has_for_the_same_bits() -> None:
    server = ApiServer()
    server.add({**run_manifest("renamed"), "spec": spec_of(1, 1, 3).to_wire()})
    async with operating(server), working(server) as nodes:
        await until(lambda: len(nodes.generators_started) == 1)
        # Somebody has pulled them by another name, which containerd now says first.
        nodes.known_as["sync"] = "registry.example/main"
        await until(lambda: state(server, "renamed") == "Succeeded")
    trials = json.loads(stored(server, "renamed").files["results.json"])["trials"]
    said = [one["images"]["server"] for one in trials]
    assert said == ["sync@sha256:1", *2 * ["registry.example/main@sha256:1"]]
    assert not [one for one in trials if one["validity"] == Validity.INVALID]
