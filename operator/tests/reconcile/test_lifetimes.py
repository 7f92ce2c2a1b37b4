"""A run that has had its time goes, and holds up no other one with that."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from laptime.reconcile import lifetimes, pauses
from laptime.reconcile.lifetimes import Lifetimes
from laptime.reconcile.queue import card_of

from .api_server import ApiServer, serving
from .nodes import working
from .test_controller import operating, run_manifest, state, until
from .test_cost import FINISHED, finished
from .test_pause import patched


def mortal(name: str) -> dict[str, Any]:
    return finished(name, ttlSecondsAfterFinished=1)


@pytest.mark.parametrize("answers", [None, 500])
async def test_a_lane_is_given_away_while_runs_cannot_be_deleted(answers: int | None) -> None:
    server = ApiServer()
    over = [f"old-{number}" for number in range(3)]
    for name in over:
        server.add(mortal(name))
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def fault(request: web.Request) -> web.Response | None:
        if request.method == "DELETE" and "/old-" in request.path and not may_answer.is_set():
            asked.set()
            if answers is None:
                await may_answer.wait()
            else:
                return web.json_response({"reason": "InternalError"}, status=answers)
        return None

    server.fault = fault
    async with operating(server):
        await asked.wait()
        server.add(run_manifest("new"))
        await until(lambda: state(server, "new") == "Deploying")
        assert len(server.of("BenchmarkRun")) == 4
        may_answer.set()
        await until(lambda: len(server.of("BenchmarkRun")) == 1)


async def test_a_run_that_may_not_be_deleted_holds_up_no_other_and_is_not_asked_for_each_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifetimes, "_AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(pauses, "_SHORTEST_SECONDS", 0.05)
    server = ApiServer()
    for name in ("old-0", "old-1"):
        server.add(mortal(name))
    asked = []

    async def fault(request: web.Request) -> web.Response | None:
        if request.method == "DELETE" and request.path.endswith("/old-0"):
            asked.append(request.path)
            return web.json_response({"reason": "Invalid", "message": "protected"}, status=422)
        return None

    server.fault = fault
    async with operating(server):
        await until(lambda: len(server.of("BenchmarkRun")) == 1)
        await asyncio.sleep(0.3)
        assert len(asked) == 1
        server.fault = None
        server.change("BenchmarkRun", "default", "old-0")
        await until(lambda: not server.of("BenchmarkRun"))


async def test_runs_that_nobody_answers_for_are_not_all_asked_for_each_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A webhook for deletions is away, and a hundred runs have had their time."""
    monkeypatch.setattr(lifetimes, "_AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(pauses, "_SHORTEST_SECONDS", 0.05)
    monkeypatch.setattr(pauses, "_TRIED_A_SECOND", 10.0)
    server = ApiServer()
    for number in range(10):
        server.add(mortal(f"old-{number}"))
    asked = []

    async def fault(request: web.Request) -> web.Response | None:
        if request.method == "DELETE":
            asked.append(request.path)
            return web.json_response({"reason": "InternalError", "message": "hook"}, status=500)
        return None

    server.fault = fault
    async with operating(server):
        await until(lambda: len(asked) == 10)
        # Others end all the time.
        for number in range(10):
            server.add(finished(f"done-{number}"))
            await asyncio.sleep(0.05)
        assert len(asked) == 10
        server.fault = None
        await until(lambda: len(server.of("BenchmarkRun")) == 10)


@pytest.mark.parametrize(
    "changed", [{"retry": 1}, {"ttlSecondsAfterFinished": 10**9}], ids=["retry", "more time"]
)
async def test_a_run_that_is_changed_while_others_are_deleted_stays(
    changed: dict[str, Any],
) -> None:
    server = ApiServer()
    for name in ("old-0", "old-1", "the-changed"):
        server.add(mortal(name))
    server.forbidden.add("default")

    async def fault(request: web.Request) -> None:
        if request.method == "DELETE" and server.get("BenchmarkRun", "default", "old-0"):
            patched(server, "the-changed", **changed)
            await asyncio.sleep(0.2)

    server.fault = fault
    async with operating(server):
        await until(lambda: len(server.of("BenchmarkRun")) == 1)
        await asyncio.sleep(0.2)
    assert server.get("BenchmarkRun", "default", "the-changed") is not None


@pytest.mark.parametrize("moment", ["before", "at the deletion"])
@pytest.mark.parametrize("changed", [{"retry": 1}, {"ttlSecondsAfterFinished": None}], ids=str)
async def test_a_run_that_has_changed_stays_while_the_watch_is_behind(
    changed: dict[str, Any], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetimes, "_AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(pauses, "_SHORTEST_SECONDS", 0.05)
    server = ApiServer()
    run = server.add(mortal("old"))
    if moment == "before":
        patched(server, "old", **changed)
    asked: list[str] = []

    async def fault(request: web.Request) -> None:
        asked.append(request.method)
        if request.method == "DELETE" and asked.count("DELETE") == 1:
            patched(server, "old", **changed)

    server.fault = fault
    async with serving(server) as kube:
        lives = Lifetimes(kube)
        lives.see(run["metadata"]["uid"], card_of(run))
        task = asyncio.create_task(lives.run())
        await until(lambda: asked.count("GET") > 5)
        now = server.get("BenchmarkRun", "default", "old")
        assert now is not None
        assert asked.count("DELETE") == (moment != "before")
        # Once it is heard of nobody asks any more.
        lives.see(run["metadata"]["uid"], card_of(now))
        await asyncio.sleep(0.2)
        before = len(asked)
        await asyncio.sleep(0.2)
        assert len(asked) == before
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_clock_that_is_ahead_of_the_api_servers_deletes_no_run() -> None:
    server = ApiServer()
    server.add(mortal("old"))
    ended = datetime.fromisoformat(FINISHED)
    server.stop_clock_at(ended + timedelta(seconds=10))
    async with operating(server):
        await asyncio.sleep(0.5)
    assert server.get("BenchmarkRun", "default", "old") is not None
    server.stop_clock_at(ended + timedelta(seconds=40))
    async with operating(server):
        await until(lambda: server.get("BenchmarkRun", "default", "old") is None)


async def test_a_run_with_no_time_to_live_stays_until_who_waits_for_it_has_read_it() -> None:
    server = ApiServer()
    manifest = run_manifest("short")
    server.add({**manifest, "spec": {**manifest["spec"], "ttlSecondsAfterFinished": 0}})
    async with operating(server), working(server):
        await until(lambda: state(server, "short") == "Succeeded", 20)
        # Who follows a run looks every half second, and reads its archive then.
        await asyncio.sleep(1.0)
        assert state(server, "short") == "Succeeded"


@pytest.mark.parametrize(("seconds", "stays"), [(0, 30), (1, 30), (30, 30), (31, 31), (3600, 3600)])
def test_a_run_stays_for_its_time_to_live_and_at_least_for_half_a_minute(
    seconds: int, stays: int
) -> None:
    manifest = finished("old", ttlSecondsAfterFinished=seconds)
    manifest["metadata"] |= {"uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    card = card_of(manifest)
    assert card.finished is not None
    assert card.deadline == card.finished + timedelta(seconds=stays)
