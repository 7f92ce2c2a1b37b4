"""The operator may be killed at each write of a whole run: before it and after it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

from .api_server import ApiServer
from .nodes import working
from .test_controller import folded, operating, run_manifest, state, until
from .test_decide import spec_of
from .test_folding import Killed, stored

RUN = "demo"
TRIALS = [f"{RUN}-trial-{number:03d}" for number in range(1, 5)]
AT_A_TIME = 8
_LONGEST_SECONDS = 60.0


async def run_killed_after(writes: int) -> tuple[ApiServer, list[str], list[str]]:
    """Return the API server after a run whose operator was killed once so many writes were done.

    Beside it these writes, and the trials whose generators were started. Killed before a write is
    killed after the one before it. A new operator goes on.
    """
    server = ApiServer()
    manifest = run_manifest(RUN)
    manifest["spec"] = spec_of(2, 1, 2).to_wire()
    killed = Killed(server, writes)
    async with working(server) as nodes:
        async with operating(server):
            server.add(manifest)
            await until(lambda: killed.happened.is_set() or folded(server, RUN), _LONGEST_SECONDS)
        server.fault = None
        async with operating(server):
            await until(lambda: folded(server, RUN), _LONGEST_SECONDS)
    return server, killed.writes, nodes.generators_started


async def test_at_no_write_of_a_run_is_a_trial_lost_or_measured_twice() -> None:
    _, all_writes, _ = await run_killed_after(10**9)
    kinds = Counter(write.split()[0] for write in all_writes)
    assert min(kinds["POST"], kinds["PATCH"], kinds["DELETE"]) > 5, kinds
    gate = asyncio.Semaphore(AT_A_TIME)

    async def killed_after(writes: int) -> None:
        async with gate:
            server, done, started = await run_killed_after(writes)
        where = f"killed after {writes} writes, the last one of which was {done[-1:]}"
        assert state(server, RUN) == "Succeeded", where
        assert sorted(started) == TRIALS, where
        status = (server.get("BenchmarkRun", "default", RUN) or {})["status"]
        assert [row["trials"] for row in status["results"]] == [2, 2], where
        results = [
            json.loads(one["data"]["result.json"])
            for one in stored(server).objects
            if "result.json" in one["data"]
        ]
        assert sorted(one["trial"] for one in results) == TRIALS, where
        assert {one["outcome"] for one in results} == {"Measured"}, where
        # Nothing is left but the run and its archive.
        left = {kind for kind, _, _ in server.objects} - {"Event"}
        assert left == {"BenchmarkRun", "ConfigMap"}, where
        assert [one["metadata"]["name"] for one in server.of("ConfigMap")] == [f"{RUN}-results"]

    async with asyncio.TaskGroup() as group:
        for writes in range(len(all_writes) + 1):
            group.create_task(killed_after(writes))
