"""A run measures the scripts that it began with, whatever becomes of their ConfigMaps."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any, cast

from laptime.kube import Kube, Manifest
from laptime.manifests.kept_scripts import kept_script_name, script_hash
from laptime.reconcile.children import Children
from laptime.reconcile.scripts import ScriptDesk, config_map_keys

from .api_server import ApiServer
from .nodes import working
from .test_controller import operating, reason, run_manifest, state, until
from .test_decide import world_that_leads
from .test_folding import stored
from .test_pause import patched
from .test_scenarios import message

COPY, DATA = kept_script_name("demo", "mine"), kept_script_name("demo", "data")
FIRST, EDITED = {"script.js": "// the first"}, {"script.js": "// edited"}


def config_map(name: str, data: dict[str, str], **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data, **more}


def run_of(repetitions: int = 1, **changes: Any) -> dict[str, Any]:
    manifest = run_manifest("demo")
    loads = [{"name": "own", "script": {"configMap": "mine", "files": ["data"], "duration": "2s"}}]
    spec = {**manifest["spec"], "loads": loads, "repetitions": repetitions, **changes}
    return {**manifest, "spec": spec}


def server_with(run: dict[str, Any]) -> ApiServer:
    server = ApiServer()
    server.add(config_map("mine", FIRST))
    server.add({**config_map("data", {}), "binaryData": {"rows.bin": "AAE="}})
    server.add(run)
    return server


def mounted(server: ApiServer) -> list[str]:
    """Return the ConfigMaps that pods of generators have scripts of."""
    volumes = [
        volume
        for job in server.of("Job")
        for volume in job["spec"]["template"]["spec"]["volumes"]
        if volume["name"] == "scripts"
    ]
    return [
        one["configMap"]["name"] for volume in volumes for one in volume["projected"]["sources"]
    ]


def scripts_of(server: ApiServer) -> dict[str, str]:
    found = server.get("BenchmarkRun", "default", "demo") or {}
    said = (found.get("status") or {}).get("scripts") or []
    return {one["configMap"]: one["hash"] for one in said}


async def test_what_generators_run_is_the_script_that_the_run_began_with() -> None:
    server = server_with(run_of(repetitions=2))
    async with operating(server), working(server) as nodes:
        await until(lambda: nodes.generators_started)
        assert mounted(server) == [COPY, DATA]
        server.change("ConfigMap", "default", "mine", data=EDITED)
        server.remove("ConfigMap", "default", "data")
        await until(lambda: state(server, "demo") == "Succeeded", 20)
    copy, data = (server.get("ConfigMap", "default", name) for name in (COPY, DATA))
    assert copy is not None
    assert copy["immutable"]
    assert copy["data"] == FIRST
    assert data is not None
    assert data["binaryData"] == {"rows.bin": "AAE="}
    assert scripts_of(server) == {"mine": script_hash(copy), "data": script_hash(data)}
    told = json.loads(stored(server, "demo").files["results.json"])["run"]["scripts"]
    assert {one["configMap"]: one["hash"] for one in told} == scripts_of(server)


async def test_what_failed_is_measured_again_by_the_script_that_the_run_began_with() -> None:
    server = server_with(run_of())
    async with operating(server), working(server) as nodes:
        nodes.failing = {"s0"}
        await until(lambda: state(server, "demo") == "Failed", 20)
        server.change("ConfigMap", "default", "mine", data=EDITED)
        nodes.failing = set()
        patched(server, "demo", retry=1)
        await until(lambda: state(server, "demo") == "Succeeded", 20)
    copy = server.get("ConfigMap", "default", COPY)
    assert copy is not None
    assert copy["data"] == FIRST


async def test_a_run_that_has_lost_its_script_goes_on_with_the_same_one_only() -> None:
    server = server_with(run_of(repetitions=3))
    async with operating(server):
        await until(lambda: set(scripts_of(server)) == {"mine", "data"})
    server.remove("ConfigMap", "default", COPY)
    async with operating(server):
        await until(lambda: server.get("ConfigMap", "default", COPY))
    server.remove("ConfigMap", "default", COPY)
    server.change("ConfigMap", "default", "mine", data=EDITED)
    async with operating(server):
        await until(lambda: reason(server, "demo", "Succeeded") == "ScriptChanged")
    assert "ConfigMap mine, which has another content by now" in message(server, "Succeeded")
    assert server.get("ConfigMap", "default", COPY) is None


async def test_a_run_that_an_earlier_version_began_keeps_its_script_from_now_on() -> None:
    server = server_with(run_of(repetitions=2))
    async with operating(server), working(server) as nodes:
        await until(lambda: nodes.generators_started)
    found = server.get("BenchmarkRun", "default", "demo")
    assert found is not None
    assert found["status"]["state"] == "Running"
    del found["status"]["scripts"]
    server.change("BenchmarkRun", "default", "demo", status=found["status"])
    for copy in (COPY, DATA):
        server.remove("ConfigMap", "default", copy)
    states = []

    def kept() -> bool:
        states.append(state(server, "demo"))
        return len(scripts_of(server)) == 2

    async with operating(server):
        await until(kept)
    assert "Deploying" not in states, "its tiers were set up anew"


def test_the_sources_of_scripts_are_read_with_their_config_maps_and_again_when_they_change() -> (
    None
):
    class Asked:
        source, version = "import 'https://a.example/x.js';", 1

        async def get(self, kind: str, namespace: str, name: str) -> Manifest:
            return {
                "metadata": {"name": name, "resourceVersion": str(self.version)},
                "data": {"script.js": self.source},
            }

    asked, desk = Asked(), ScriptDesk(Children("6f1c"))
    run = world_that_leads().run

    async def hosts() -> list[str]:
        desk._read_at = -math.inf
        found = await desk.look(cast(Kube, asked), run)
        assert found.keys == {"mine": frozenset({"script.js"})}
        return [one.host for one in found.leads["own"].imports]

    async def ask() -> None:
        assert await hosts() == ["a.example"]
        asked.source = "import 'https://b.example/x.js';"
        assert await hosts() == ["a.example"], "it was read again without need"
        asked.version = 2
        assert await hosts() == ["b.example"]

    asyncio.run(ask())


def test_an_archive_of_a_script_is_a_key_as_well() -> None:
    keys = config_map_keys({"data": {"a.js": ""}, "binaryData": {"a.tar": "AA=="}})
    assert keys == {"a.js", "a.tar"}
    assert config_map_keys({"metadata": {}}) == frozenset()
