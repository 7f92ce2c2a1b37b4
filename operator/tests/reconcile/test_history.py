"""A namespace keeps so many finished runs, and none goes before its report could be kept."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from laptime.api.status import State
from laptime.reconcile import history as history_module
from laptime.reconcile.cache import Store
from laptime.reconcile.history import History, HistoryLimits, surplus
from laptime.reconcile.queue import Card, card_of
from laptime.reconcile.settings import Settings, SettingsError, load_settings

from .api_server import ApiServer, serving
from .test_controller import operating, run_manifest, until
from .test_pause import patched

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def card(hours: float, state: State = State.SUCCEEDED, **more: Any) -> Card:
    """Return a run that was over so many hours ago."""
    finished = None if state.active else NOW - timedelta(hours=hours)
    name = f"run-{hours:g}"
    return Card("team", name, name, "2026-01-01T00:00:00Z", state, finished=finished, **more)


def names(cards: list[Card]) -> set[str]:
    return {one.name for one in cards}


def test_without_limits_everything_stays() -> None:
    assert surplus([card(h) for h in range(1000)], HistoryLimits(), NOW) == ([], None)


def test_the_oldest_ones_beyond_the_limit_go() -> None:
    cards = [card(30), card(50), card(40), card(60, State.FAILED), card(70, State.RUNNING)]
    doomed, later = surplus(cards, HistoryLimits(successful=1), NOW)
    assert names(doomed) == {"run-40", "run-50"}
    assert later is None
    doomed, _ = surplus(cards, HistoryLimits(failed=0), NOW)
    assert names(doomed) == {"run-60"}


def test_none_goes_before_its_report_could_be_kept() -> None:
    cards = [card(1), card(2), card(23), card(25)]
    doomed, later = surplus(cards, HistoryLimits(successful=0), NOW)
    assert names(doomed) == {"run-25"}
    assert later == NOW + timedelta(hours=1)
    unfolded = card(50, archive="run-50-results")
    assert surplus([unfolded], HistoryLimits(successful=0), NOW) == ([], None)


def test_what_is_kept_stays_and_is_not_counted() -> None:
    cards = [card(30, kept=True), card(40), card(50), card(60, kept=True)]
    doomed, _ = surplus(cards, HistoryLimits(successful=1), NOW)
    assert names(doomed) == {"run-50"}


def test_what_goes_already_is_none_of_those_that_stay() -> None:
    cards = [card(30, deleting=True), card(40), card(50)]
    assert surplus(cards, HistoryLimits(successful=2), NOW) == ([], None)


@given(
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from([State.SUCCEEDED, State.FAILED]))),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 9),
)
def test_never_fewer_are_left_than_the_limit(
    runs: list[tuple[int, State]], successful: int | None, failed: int | None
) -> None:
    cards = [
        Card("team", str(n), str(n), "", state, finished=NOW - timedelta(hours=hours))
        for n, (hours, state) in enumerate(runs)
    ]
    limits = HistoryLimits(successful, failed)
    doomed, later = surplus(cards, limits, NOW)
    for state in (State.SUCCEEDED, State.FAILED):
        of_state = [one for one in cards if one.state is state]
        left = [one for one in of_state if one not in doomed]
        limit = limits.of(state)
        assert len(left) >= min(len(of_state), len(of_state) if limit is None else limit)
        young = [one for one in left if one.finished and NOW - one.finished < DAY]
        if limit is not None:
            assert len(left) <= max(limit, len(young))
    assert all(one.finished is not None and NOW - one.finished >= DAY for one in doomed)
    assert later is None or later > NOW


def test_a_run_says_that_it_is_to_be_kept_by_an_annotation() -> None:
    manifest = run_manifest("demo")
    manifest["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert not card_of(manifest).kept
    manifest["metadata"]["annotations"] = {"laptime.dev/keep": "true"}
    assert card_of(manifest).kept


def finished(name: str, moment: datetime, **metadata: Any) -> dict[str, Any]:
    manifest = run_manifest(name)
    manifest["metadata"] |= metadata
    at = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**manifest, "status": {"state": "Succeeded", "finishedAt": at}}


async def test_the_operator_deletes_what_is_too_much_in_each_namespace_for_itself() -> None:
    server = ApiServer()
    now = datetime.now(UTC)
    for number in range(4):
        server.add(finished(f"old-{number}", now - (number + 2) * DAY))
        server.add(finished(f"theirs-{number}", now - (number + 2) * DAY, namespace="theirs"))
    server.add(finished("kept", now - 9 * DAY, annotations={"laptime.dev/keep": "true"}))
    server.add(finished("young", now))
    limits = HistoryLimits(successful=2)
    async with operating(server, history=limits):
        await until(lambda: len(server.of("BenchmarkRun")) == 5)
        await asyncio.sleep(0.2)
        assert {one["metadata"]["name"] for one in server.of("BenchmarkRun")} == {
            "young", "old-0", "kept", "theirs-0", "theirs-1",
        }  # fmt: skip
        # One more that is over, and another one is too much.
        server.add(finished("newer", now))
        await until(lambda: server.get("BenchmarkRun", "default", "old-0") is None)
        await asyncio.sleep(0.2)
        # Two are left that are younger than a day, whatever the limit.
        server.add(finished("newest", now))
        await asyncio.sleep(0.3)
        assert len([one for one in server.of("BenchmarkRun")]) == 6


async def test_a_clock_that_is_ahead_of_the_api_servers_deletes_nothing_that_is_too_much() -> None:
    server = ApiServer()
    now = datetime.now(UTC)
    for number in range(2):
        server.add(finished(f"old-{number}", now - 2 * DAY))
    server.stop_clock_at(now - DAY - timedelta(hours=1))
    async with operating(server, history=HistoryLimits(successful=1)):
        await asyncio.sleep(0.5)
    assert len(server.of("BenchmarkRun")) == 2


def test_a_run_whose_failed_trials_are_asked_for_again_is_not_one_of_those_that_are_over() -> None:
    """It may be that it cannot be accepted for a long time."""
    cards = [card(30), card(40, retry=1), card(50), card(60, retry=1, retries=1)]
    doomed, _ = surplus(cards, HistoryLimits(successful=1), NOW)
    assert names(doomed) == {"run-50", "run-60"}


async def test_what_is_to_be_kept_while_others_are_deleted_stays() -> None:
    server = ApiServer()
    now = datetime.now(UTC)
    for number in range(5):
        server.add(finished(f"old-{number}", now - (number + 2) * DAY))
    server.add(finished("kept", now - 1.5 * DAY))
    server.add(finished("again", now - 1.4 * DAY))
    server.forbidden.add("default")

    async def fault(request: web.Request) -> None:
        if request.method == "DELETE" and server.get("BenchmarkRun", "default", "old-4"):
            patched(server, "again", retry=1)
            metadata = (server.get("BenchmarkRun", "default", "kept") or {})["metadata"]
            annotations = {"laptime.dev/keep": "true"}
            server.change(
                "BenchmarkRun", "default", "kept", metadata={**metadata, "annotations": annotations}
            )
            await asyncio.sleep(0.2)

    server.fault = fault
    async with operating(server, history=HistoryLimits(successful=0)):
        await until(lambda: len(server.of("BenchmarkRun")) == 2)
        await asyncio.sleep(0.2)
    assert {one["metadata"]["name"] for one in server.of("BenchmarkRun")} == {"kept", "again"}


async def test_a_run_that_may_not_be_deleted_holds_up_no_other_and_is_seldom_asked_for() -> None:
    server = ApiServer()
    now = datetime.now(UTC)
    for number in range(4):
        server.add(finished(f"old-{number}", now - (number + 2) * DAY))
    asked = []

    async def fault(request: web.Request) -> web.Response | None:
        if request.method == "DELETE" and request.path.endswith("/old-3"):
            asked.append(request.path)
            said = {"reason": "Forbidden", "message": "admission webhook denied the request"}
            return web.json_response(said, status=403)
        return None

    server.fault = fault
    async with operating(server, history=HistoryLimits(successful=1)):
        await until(lambda: len(server.of("BenchmarkRun")) == 2)
        server.add(finished("newer", now - DAY * 1.5))
        await until(lambda: server.get("BenchmarkRun", "default", "old-0") is None)
        await asyncio.sleep(0.2)
        assert len(asked) == 1
        # Whoever has protected it has thought better of it.
        server.fault = None
        server.change("BenchmarkRun", "default", "old-3")
        await until(lambda: len(server.of("BenchmarkRun")) == 1)


@pytest.mark.parametrize("change", ["goes", "kept", "again", "deleting"])
async def test_nothing_goes_while_the_watch_is_behind_for_a_run_that_has_changed(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "_AGAIN_SECONDS", 0.1)
    server = ApiServer()
    now = datetime.now(UTC)
    for number in range(3):
        server.add(finished(f"old-{number}", now - (5 - number) * DAY))
    store: Store[Card] = Store(card_of, lambda uid, card: history.see(uid, card))
    async with serving(server) as kube:
        history = History(kube, HistoryLimits(successful=2), store.has)
        for run in server.of("BenchmarkRun"):
            store.put(run)
        newest = server.get("BenchmarkRun", "default", "old-2") or {}
        metadata = newest["metadata"]
        # By what is known the oldest one is too much; by what is true it is not, or is asked for.
        match change:
            case "goes":
                server.remove("BenchmarkRun", "default", "old-2")
            case "kept":
                kept = {**metadata, "annotations": {"laptime.dev/keep": "true"}}
                server.change("BenchmarkRun", "default", "old-2", metadata=kept)
            case "again":
                patched(server, "old-0", retry=1)
            case _:
                going = {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}
                server.change("BenchmarkRun", "default", "old-2", metadata=going)
        task = asyncio.create_task(history.run())
        await asyncio.sleep(0.5)
        assert server.get("BenchmarkRun", "default", "old-0") is not None
        # Nor once it is heard of, until one more has ended.
        for run in server.of("BenchmarkRun"):
            store.put(run)
        await asyncio.sleep(0.5)
        assert server.get("BenchmarkRun", "default", "old-0") is not None
        store.put(server.add(finished("newer", now)))
        gone = "old-1" if change == "again" else "old-0"
        if change == "again":
            store.put(server.add(finished("newest", now)))
        await until(lambda: server.get("BenchmarkRun", "default", gone) is None)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_run_that_is_said_to_be_kept_when_it_is_deleted_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history_module, "_AGAIN_SECONDS", 0.1)
    server = ApiServer()
    run = server.add(finished("old", datetime.now(UTC) - 5 * DAY))
    deleted: list[str] = []

    async def fault(request: web.Request) -> None:
        if request.method == "DELETE":
            deleted.append(request.path)
            kept = {**run["metadata"], "annotations": {"laptime.dev/keep": "true"}}
            server.change("BenchmarkRun", "default", "old", metadata=kept)

    server.fault = fault
    store: Store[Card] = Store(card_of, lambda uid, card: history.see(uid, card))
    async with serving(server) as kube:
        history = History(kube, HistoryLimits(successful=0), store.has)
        store.put(run)
        task = asyncio.create_task(history.run())
        await until(lambda: deleted)
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(deleted) == 1
    assert server.get("BenchmarkRun", "default", "old") is not None


async def test_where_nobody_says_which_runs_there_are_all_stay() -> None:
    server = ApiServer()
    now = datetime.now(UTC)
    asked = []

    async def fault(request: web.Request) -> web.Response | None:
        if request.method == "GET" and "namespaces" in request.path:
            asked.append(request.path)
            return web.json_response({"message": "etcd is away"}, status=500)
        return None

    for number in range(2):
        server.add(finished(f"old-{number}", now - (number + 2) * DAY))
    server.fault = fault
    async with operating(server, history=HistoryLimits(successful=0)):
        await until(lambda: asked)
        await asyncio.sleep(0.2)
    assert len(server.of("BenchmarkRun")) == 2


@pytest.mark.parametrize("text", ["[]", "{", '{"failed": -1}', '{"successful": "many"}'])
def test_a_limit_that_is_none_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from .world import IMAGES

    images = tmp_path / "images.json"
    images.write_text("{}")
    monkeypatch.setenv("LAPTIME_IMAGES_FILE", str(images))
    monkeypatch.setattr("laptime.reconcile.settings.ImageSet.from_wire", lambda _: IMAGES)
    assert load_settings().history == HistoryLimits() == Settings(IMAGES).history
    monkeypatch.setenv("LAPTIME_HISTORY", '{"successful": 3, "failed": null}')
    assert load_settings().history == HistoryLimits(3, None, DAY)
    monkeypatch.setenv("LAPTIME_HISTORY", text)
    with pytest.raises(SettingsError, match="LAPTIME_HISTORY is"):
        load_settings()
