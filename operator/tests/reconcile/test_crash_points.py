"""The operator may be killed at each write of a whole run: before it and after it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass

from aiohttp import web

from .api_server import ApiServer
from .nodes import working
from .test_controller import folded, operating, run_manifest, state, until
from .test_decide import spec_of
from .test_folding import stored

RUN = "demo"
TRIALS = [f"{RUN}-trial-{number:03d}" for number in range(1, 3)]
AT_A_TIME = 8
_LONGEST_SECONDS = 20.0


@dataclass(frozen=True)
class CrashPoint:
    """What the API server had right after a write: all that a new operator finds."""

    write: str
    server: ApiServer
    started: list[str]
    """Trials whose generators were started by then."""


async def crash_points() -> list[CrashPoint]:
    """Return one for each write of a run that nothing happens to.

    Killed before a write is killed after the one before it.
    """
    server = ApiServer()
    manifest = run_manifest(RUN)
    manifest["spec"] = spec_of(1, 1, len(TRIALS)).to_wire()
    points: list[CrashPoint] = []
    async with working(server) as nodes, operating(server):

        async def kept(request: web.Request) -> web.StreamResponse | None:
            if request.method == "GET":
                return None
            answer = await server.answer(request)
            copied = ApiServer(
                objects=deepcopy(server.objects), logs=dict(server.logs), version=server.version
            )
            write = f"{request.method} {request.path.rsplit('/v1', 1)[1]}"
            points.append(CrashPoint(write, copied, list(nodes.generators_started)))
            return answer

        server.fault = kept
        server.add(manifest)
        await until(lambda: folded(server, RUN), _LONGEST_SECONDS)
    return points


async def test_at_no_write_of_a_run_is_a_trial_lost_or_measured_twice() -> None:
    points = await crash_points()
    kinds = Counter(point.write.split()[0] for point in points)
    assert min(kinds["POST"], kinds["PATCH"], kinds["DELETE"]) > 5, kinds
    gate = asyncio.Semaphore(AT_A_TIME)

    async def go_on(number: int, point: CrashPoint) -> None:
        server, where = point.server, f"killed after write {number}, {point.write}"
        async with gate, working(server) as nodes, operating(server):
            await until(lambda: folded(server, RUN), _LONGEST_SECONDS)
        assert state(server, RUN) == "Succeeded", where
        assert sorted(point.started + nodes.generators_started) == TRIALS, where
        status = (server.get("BenchmarkRun", "default", RUN) or {})["status"]
        assert [row["trials"] for row in status["results"]] == [len(TRIALS)], where
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
        for number, point in enumerate(points, 1):
            group.create_task(go_on(number, point))
