"""What runs cost the API server: it follows what changes, not what exists."""

from __future__ import annotations

import asyncio
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest
from aiohttp import web

from laptime.reconcile import controller, pauses, worker
from laptime.reconcile.controller import Controller

from .api_server import ApiServer
from .nodes import working
from .test_controller import folded, operating, run_manifest, state, until
from .test_decide import spec_of

FINISHED = "2026-01-01T00:00:00Z"


def finished(name: str, **spec: Any) -> dict[str, Any]:
    manifest = deepcopy(run_manifest(name))
    manifest["spec"] |= spec
    manifest["status"] = {"state": "Succeeded", "finishedAt": FINISHED}
    return manifest


def queued(name: str) -> dict[str, Any]:
    status = {"state": "Queued", "conditions": []}
    return {**run_manifest(name), "status": status}


async def test_a_trial_costs_few_requests_and_is_measured_once() -> None:
    server = ApiServer()
    manifest = run_manifest("demo")
    manifest["spec"] = spec_of(2, 1, 5).to_wire()
    async with working(server) as nodes, operating(server):
        server.add(manifest)
        await until(lambda: folded(server, "demo"), 60)
    assert state(server, "demo") == "Succeeded"
    assert nodes.generators_started == [f"demo-trial-{n:03d}" for n in range(1, 11)]
    by_verb = Counter(verb for verb, _ in server.requests)
    # All that a run needs, its beginning and its end included.
    assert sum(by_verb.values()) <= 30 * 10, by_verb
    # What the operator has stored or seen itself it does not read back.
    read = [p for verb, p in server.requests if verb == "get" and "/configmaps/" in p]
    kept, *results = read
    # Once, since only what is kept counts.
    assert kept == "/api/v1/namespaces/default/configmaps/demo-scenario"
    assert set(results) == {"/api/v1/namespaces/default/configmaps/demo-results"}
    # At its end, and before anything is deleted that is in it.
    assert len(results) == 2
    logs = [path for verb, path in server.requests if path.endswith("/log")]
    assert len(logs) == 10
    # It has not the right to.
    pods = [path for verb, path in server.requests if verb == "get" and "/pods/" in path]
    assert set(pods) == set(logs)


async def _nothing_asked(server: ApiServer) -> None:
    """Wait until nobody has asked an API server for anything for as long as half a second."""
    asked, turns = -1, 0

    def still() -> bool:
        nonlocal asked, turns
        turns = turns + 1 if len(server.requests) == asked else 0
        asked = len(server.requests)
        return turns == 50

    await until(still)


async def test_runs_that_are_over_or_wait_cost_nothing() -> None:
    server = ApiServer()
    for number in range(300):
        server.add(finished(f"done-{number:03d}"))
    server.add(run_manifest("active"))
    for number in range(20):
        server.add(queued(f"waits-{number:02d}"))
    async with operating(server):
        await until(lambda: state(server, "active") == "Deploying" and server.of("Deployment"))
        await _nothing_asked(server)
        server.requests.clear()
        await asyncio.sleep(2.5)
        assert [verb for verb, path in server.requests if "benchmarkruns" in path] == []


async def test_an_idle_operator_asks_and_writes_nothing() -> None:
    server = ApiServer()
    for number in range(100):
        server.add(finished(f"done-{number:03d}"))
    async with operating(server):
        await until(
            lambda: ("watch", "/apis/laptime.dev/v1alpha1/benchmarkruns") in server.requests
        )
        await _nothing_asked(server)
        server.requests.clear()
        await asyncio.sleep(1.5)
        assert server.requests == []


async def test_a_new_run_says_that_it_waits_and_no_other_is_written() -> None:
    server = ApiServer()
    server.add(run_manifest("active"))
    async with operating(server):
        await until(lambda: state(server, "active") == "Deploying")
        server.add(run_manifest("later"))
        await until(lambda: state(server, "later") == "Queued")
        server.remove("BenchmarkRun", "default", "active")
        await until(lambda: state(server, "later") == "Deploying")


async def test_the_time_to_live_deletes_a_run_and_no_other() -> None:
    server = ApiServer()
    server.add(finished("old", ttlSecondsAfterFinished=60))
    server.add(finished("kept"))
    server.add(finished("young", ttlSecondsAfterFinished=10**9))
    async with operating(server):
        await until(lambda: server.get("BenchmarkRun", "default", "old") is None)
        # It can be changed after the end.
        spec = (server.get("BenchmarkRun", "default", "kept") or {})["spec"]
        server.change(
            "BenchmarkRun", "default", "kept", spec={**spec, "ttlSecondsAfterFinished": 1}
        )
        await until(lambda: server.get("BenchmarkRun", "default", "kept") is None)
    assert [one["metadata"]["name"] for one in server.of("BenchmarkRun")] == ["young"]


async def test_of_a_run_that_is_over_only_a_card_is_kept() -> None:
    server = ApiServer()
    for number in range(200):
        server.add(finished(f"done-{number:03d}"))
    async with operating(server) as controller:
        await until(lambda: len(_cards(controller)) == 200)
        assert controller._open == {}
        assert controller._lifetimes._mortal == {}
        assert len(controller.metrics._figures.shown) == 50
        sizes = [len(repr(card)) for card in _cards(controller)]
        assert max(sizes) < 550


def _cards(controller: Controller) -> list[Any]:
    return list(controller._runs)


async def test_a_namespace_that_is_enabled_later_has_its_runs_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "_FORBIDDEN_SECONDS", 0.5)
    server = ApiServer(forbidden={"default"})
    server.add(run_manifest("demo"))
    async with operating(server):
        await until(lambda: _refusal(server, "demo") == "NamespaceNotEnabled")
        found = server.get("BenchmarkRun", "default", "demo") or {}
        (said,) = (one["message"] for one in found["status"]["conditions"])
        # Runs that are allowed and not watched are measured without a word of their pods.
        assert "name it in watching.namespaces there, without which nobody watches" in said
        assert said.partition("with: ")[2].startswith("kubectl create rolebinding laptime -n defa")
        server.forbidden.clear()
        await until(lambda: state(server, "demo") == "Deploying", 15)
        # Rights that are taken away in the middle free the lane.
        server.add(
            {**run_manifest("other"), "metadata": {"name": "other", "namespace": "elsewhere"}}
        )
        server.forbidden.add("default")
        server.cut()
        await until(lambda: _refusal(server, "demo") == "NamespaceNotEnabled", 15)
        await until(lambda: _state_elsewhere(server) == "Deploying", 15)


async def test_rights_that_are_gone_before_its_watches_end_are_no_refused_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "_FORBIDDEN_SECONDS", 0.5)
    # Watches that are open go on for half a minute.
    server = ApiServer(forbidden_from="Deployment")
    server.add(
        {**run_manifest("demo"), "spec": {**run_manifest("demo")["spec"], "startupTimeout": "1s"}}
    )
    async with operating(server):
        await until(lambda: _refusal(server, "demo") == "NamespaceNotEnabled")
        server.forbidden_from = ""
        server.forbidden.clear()
        await until(lambda: state(server, "demo") == "Deploying", 15)


def _refusal(server: ApiServer, name: str) -> str | None:
    found = server.get("BenchmarkRun", "default", name) or {}
    for condition in (found.get("status") or {}).get("conditions") or []:
        if condition["type"] == "Accepted" and condition["status"] == "False":
            reason: str = condition["reason"]
            return reason
    return None


def _state_elsewhere(server: ApiServer) -> str | None:
    found = server.get("BenchmarkRun", "elsewhere", "other") or {}
    said: str | None = (found.get("status") or {}).get("state")
    return said


async def test_a_namespace_that_is_not_enabled_is_asked_about_now_and_then_alone() -> None:
    server = ApiServer(forbidden={"default"})
    for number in range(20):
        server.add(run_manifest(f"waits-{number:02d}"))
    async with operating(server):
        await until(lambda: _refusal(server, "waits-19") == "NamespaceNotEnabled")
        await asyncio.sleep(0.2)
        server.requests.clear()
        # Other runs change all the time.
        for number in range(20):
            server.add(finished(f"done-{number:02d}"))
            await asyncio.sleep(0.05)
        asked = [path for verb, path in server.requests if path.endswith("/pods")]
        assert len(asked) <= 1


async def test_many_namespaces_that_are_not_enabled_keep_no_good_run_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller, "_NOT_ENABLED_SECONDS", 0.2)
    monkeypatch.setattr(controller, "_NOT_ENABLED_A_SECOND", 20.0)
    closed = [f"closed-{number:02d}" for number in range(40)]
    server = ApiServer(forbidden=set(closed))
    for namespace in closed:
        server.add(_run_in(namespace))

    async def fault(request: web.Request) -> web.StreamResponse | None:
        # Of one of them nobody knows anything.
        if request.path == "/api/v1/namespaces/closed-00/pods":
            return web.json_response({"reason": "InternalError", "message": "etcd"}, status=500)
        return None

    async with operating(server):
        await until(lambda: all(_refused_in(server, one) for one in closed), 20)
        server.fault = fault
        server.requests.clear()
        server.add(run_manifest("good"))
        await until(lambda: state(server, "good") == "Deploying", 20)
        await asyncio.sleep(3.0)
        asked = [path for verb, path in server.requests if verb == "list" and "closed-" in path]
        # 40 of them every two seconds, where a few would be asked about five times a second.
        assert len(asked) <= 3 * len(closed)


async def test_a_run_that_comes_later_into_such_a_namespace_is_told_while_another_is_measured() -> (
    None
):
    server = ApiServer(forbidden={"closed"})
    server.add(run_manifest("active"))
    async with operating(server):
        await until(lambda: state(server, "active") == "Deploying")
        server.add(_run_in("closed", "first"))
        await until(lambda: _refused_in(server, "closed", "first"))
        server.add(_run_in("closed", "later"))
        await until(lambda: _refused_in(server, "closed", "later"))


def _waiting_for_a_status(server: ApiServer, runs: int) -> tuple[list[str], list[str]]:
    """Add runs whose statuses cannot be stored; return their names, and what is asked for them."""
    names = [f"waits-{number:02d}" for number in range(runs)]
    asked: list[str] = []

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if request.method == "PATCH" and "/waits-" in request.path:
            asked.append(request.path)
            return web.json_response({"reason": "InternalError", "message": "etcd"}, status=500)
        return None

    server.fault = fault
    for name in names:
        server.add(run_manifest(name))
    return names, asked


async def test_runs_whose_status_cannot_be_stored_are_not_all_tried_again_each_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A webhook is away, or the disk of etcd is full, and many runs wait."""
    monkeypatch.setattr(pauses, "_SHORTEST_SECONDS", 0.05)
    monkeypatch.setattr(pauses, "_TRIED_A_SECOND", 20.0)
    server = ApiServer()
    server.add(run_manifest("active"))

    async with operating(server):
        await until(lambda: state(server, "active") == "Deploying")
        waiting, asked = _waiting_for_a_status(server, 20)
        await until(lambda: len(asked) >= 20)
        asked.clear()
        for number in range(10):
            server.add(finished(f"done-{number}"))
            await asyncio.sleep(0.05)
        assert len(asked) <= 10
        server.fault = None
        await until(lambda: all(state(server, name) == "Queued" for name in waiting))


async def test_after_a_moments_outage_no_run_waits_for_the_number_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By their number alone they would be tried again after twenty hours."""
    monkeypatch.setattr(pauses, "_SHORTEST_SECONDS", 0.05)
    monkeypatch.setattr(pauses, "_TRIED_A_SECOND", 0.0001)
    monkeypatch.setattr(pauses, "_LONGEST_SECONDS", 0.3)
    server = ApiServer()
    server.add(run_manifest("active"))

    async with operating(server):
        await until(lambda: state(server, "active") == "Deploying")
        waiting, asked = _waiting_for_a_status(server, 8)
        await until(lambda: len(asked) >= 8)
        server.fault = None
        await until(lambda: all(state(server, name) == "Queued" for name in waiting))


async def test_what_a_cluster_takes_back_is_not_asked_for_all_the_time() -> None:
    """A webhook that keeps Deployments at no replicas, as at night."""
    server = ApiServer()
    server.add({**run_manifest("demo"), "spec": spec_of(1, 1, 1).to_wire()})
    asked = []

    async def at_night(request: web.Request) -> web.StreamResponse | None:
        name = request.path.rpartition("/")[2]
        if request.method == "PATCH" and name == "demo-server-s0":
            asked.append(name)
            return web.json_response(server.get("Deployment", "default", name))
        return None

    server.fault = at_night
    async with operating(server), working(server):
        await until(lambda: asked, 20)
        asked.clear()
        await asyncio.sleep(2.5)
    # Once a second, and not each twentieth of one.
    assert 1 <= len(asked) <= 10


def _run_in(namespace: str, name: str = "demo") -> dict[str, Any]:
    return {**run_manifest(name), "metadata": {"name": name, "namespace": namespace}}


def _refused_in(server: ApiServer, namespace: str, name: str = "demo") -> bool:
    found = server.get("BenchmarkRun", namespace, name) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return any(one["reason"] == "NamespaceNotEnabled" for one in conditions)
