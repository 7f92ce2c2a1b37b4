"""The cache sees what the API server has, whatever becomes of lists and watches on their way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from laptime.kube import Manifest
from laptime.reconcile import cache as module
from laptime.reconcile.cache import Store, Watch

from .api_server import ApiServer, serving
from .test_controller import until


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"mine": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def version(uid: str, number: int, **data: str) -> Manifest:
    return {"metadata": {"uid": uid, "resourceVersion": str(number)}, "data": data}


@asynccontextmanager
async def watching(server: ApiServer, seconds: float = 5.0) -> AsyncIterator[Store[Manifest]]:
    store: Store[Manifest] = Store(lambda manifest: manifest)
    async with serving(server) as kube:
        watch = Watch(kube, store, "ConfigMap", None, "mine=yes", seconds=seconds)
        task = asyncio.create_task(watch.run())
        try:
            yield store
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def same(server: ApiServer, store: Store[Manifest]) -> bool:
    there = {one["metadata"]["uid"]: one for one in server.of("ConfigMap")}
    return there == {one["metadata"]["uid"]: one for one in store}


def disturb(server: ApiServer, random: Random) -> None:
    names = sorted(name for kind, _, name in server.objects if kind == "ConfigMap")
    match random.choice(["add", "add", "change", "change", "remove", "cut", "compact", "both"]):
        case "add":
            server.add(config_map(f"c{random.getrandbits(40)}"))
        case "change" if names:
            name = random.choice(names)
            server.change("ConfigMap", "default", name, data={"n": str(random.random())})
        case "remove" if names:
            server.remove("ConfigMap", "default", random.choice(names))
        case "cut":
            server.cut()
        case "compact":
            server.compact()
        case "both":
            # What happened meanwhile is forgotten when the watch comes back.
            server.cut()
            server.add(config_map(f"c{random.getrandbits(40)}"))
            server.compact()


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_is_cut_and_forgotten_it_ends_up_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", (0.005,))
    server, random = ApiServer(), Random(seed)
    for number in range(3):
        server.add(config_map(f"first-{number}"))
    async with watching(server) as store:
        for _ in range(80):
            disturb(server, random)
            if random.random() < 0.5:
                await asyncio.sleep(random.uniform(0, 0.02))
        await until(lambda: same(server, store))


async def test_a_watch_that_froze_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laptime.kube.client._FROZEN_SECONDS", 0.2)
    server = ApiServer()
    async with watching(server, seconds=1.0) as store:
        await until(lambda: ("watch", "/api/v1/configmaps") in server.requests)
        server.frozen = True
        server.add(config_map("unheard"))
        await asyncio.sleep(0.2)
        assert not list(store)
        server.frozen = False
        server.compact()
        await until(lambda: same(server, store))


async def test_a_server_that_refuses_for_a_while_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", (0.01,))
    server = ApiServer()
    server.add(config_map("one"))
    answers = iter([500, 403, 429, 503])

    async def fault(request: web.Request) -> web.StreamResponse | None:
        code = next(answers, None)
        return web.json_response({}, status=code) if code else None

    server.fault = fault
    async with watching(server) as store:
        await until(lambda: same(server, store))


async def test_a_watch_that_is_cut_again_and_again_is_begun_again_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As behind a balancer that cuts a connection on which nothing was said for a while."""
    monkeypatch.setattr(module, "_RETRY_SECONDS", (0.01, 60.0))
    monkeypatch.setattr(module, "_WELL_SECONDS", 0.05)
    server = ApiServer()
    async with watching(server) as store:
        for number in range(5):
            await until(lambda: server._transports)
            await asyncio.sleep(0.1)
            server.cut()
            server._transports.clear()
            server.add(config_map(f"c{number}"))
            await until(lambda: same(server, store))
    assert not caplog.records


async def test_whoever_ends_each_watch_at_once_is_not_asked_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_SHORTEST_SECONDS", 0.2)
    server = ApiServer()

    async def fault(request: web.Request) -> web.StreamResponse | None:
        return web.Response() if request.query.get("watch") else None

    server.fault = fault
    async with watching(server):
        await asyncio.sleep(1.0)
    watches = [verb for verb, _ in server.requests if verb == "watch"]
    assert 2 <= len(watches) <= 6


@pytest.mark.parametrize("cut_off", [False, True])
async def test_what_is_known_first_is_no_older_than_the_question(cut_off: bool) -> None:
    """The cache of an API server may be of any time before, and one that is cut off stays so."""
    server = ApiServer()
    server.add(config_map("one"))
    old = [dict(one) for one in server.of("ConfigMap")]
    server.change("ConfigMap", "default", "one", data={"state": "Running"})

    async def fault(request: web.Request) -> web.StreamResponse | None:
        version = request.query.get("resourceVersion")
        if version is None or request.query.get("watch"):
            return None
        assert (version == "0") or request.query["resourceVersionMatch"] == "NotOlderThan"
        if cut_off and version != "0":
            message = "Timeout: Too large resource version: 3, current: 2"
            return web.json_response({"reason": "Timeout", "message": message}, status=504)
        if version == "0":
            return web.json_response({"metadata": {"resourceVersion": "2"}, "items": old})
        return None

    server.fault = fault
    seen: list[Manifest] = []
    store: Store[Manifest] = Store(lambda one: seen.append(one) or one)  # type: ignore[func-returns-value]
    async with serving(server) as kube:
        watch = Watch(kube, store, "ConfigMap", None, seconds=5.0, from_cache=True)
        task = asyncio.create_task(watch.run())
        await until(lambda: same(server, store))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [one["data"] for one in seen] == [{"state": "Running"}]


@given(st.permutations([1, 2, 3, 4]))
def test_the_newest_version_counts_in_whatever_order_they_come(order: list[int]) -> None:
    store: Store[Manifest] = Store(lambda manifest: manifest)
    for number in order:
        store.put(version("a", number))
    assert [one["metadata"]["resourceVersion"] for one in store] == ["4"]


def test_what_was_deleted_by_ourselves_does_not_come_back_with_older_news() -> None:
    store: Store[Manifest] = Store(lambda manifest: manifest)
    store.put(version("a", 1))
    store.bury("a")
    store.put(version("a", 2))
    assert not list(store)
    # A list that was made before does not bring it back either; one made later settles it.
    store.begin()
    store.put(version("a", 2))
    store.end({"a"}, 3)
    assert not list(store)


def test_what_was_made_after_a_list_is_not_forgotten_for_it() -> None:
    store: Store[Manifest] = Store(lambda manifest: manifest)
    store.put(version("old", 3))
    store.begin()
    store.put(version("own", 12))
    store.end(set(), 10)
    assert [one["metadata"]["uid"] for one in store] == ["own"]


def test_what_went_while_a_list_was_on_its_way_does_not_come_back_with_it() -> None:
    store: Store[Manifest] = Store(lambda manifest: manifest)
    store.put(version("a", 1))
    store.begin()
    store.remove("a")
    store.put(version("a", 1))
    store.end({"a"}, 2)
    assert not list(store)


def test_a_list_that_broke_off_forgets_nothing() -> None:
    store: Store[Manifest] = Store(lambda manifest: manifest)
    store.put(version("a", 1))
    store.begin()
    store.end()
    assert len(store) == 1


def test_an_answer_that_comes_late_does_not_bring_back_what_the_watch_has_said_is_gone() -> None:
    """Nobody lists again for days, so nothing else would take it out."""
    store: Store[Manifest] = Store(lambda manifest: manifest)
    store.put(version("a", 1))
    store.renew(version("a", 2))
    assert [one["metadata"]["resourceVersion"] for one in store] == ["2"]
    store.remove("a")
    store.renew(version("a", 3))
    assert not list(store)
