"""The controller against an API server: what it does with runs, and what it makes of errors."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from laptime.analysis.remembered import remembered
from laptime.api.status import State
from laptime.kube import connection
from laptime.manifests.objects import COMPONENT_LABEL
from laptime.reconcile import container_logs, run_metrics
from laptime.reconcile import controller as controlling
from laptime.reconcile import worker as module
from laptime.reconcile.controller import Controller
from laptime.reconcile.metrics import Metrics
from laptime.reconcile.settings import Settings
from laptime.reconcile.stages import trials
from laptime.reconcile.views import status_view

from .api_server import ApiServer, not_in_schema, serving
from .nodes import working
from .test_decide import spec_of
from .test_tier_cpu import sized
from .world import IMAGES


def run_manifest(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec_of(1, 1, 1).to_wire(),
    }


@asynccontextmanager
async def operating(
    server: ApiServer, settings: Settings | None = None, **more: Any
) -> AsyncIterator[Controller]:
    """Have an operator work on what the server has."""
    settings = settings or Settings(images=IMAGES, **more)
    async with serving(server) as kube:
        controller = Controller(kube, settings, Metrics(), logging.getLogger("laptime"))
        controller.start()
        try:
            yield controller
        finally:
            await controller.stop()


async def until(true: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait until something is true, as many turns of the loop as take so long on a quiet machine.

    Turns and not seconds: operator and API server are in the same loop, so whatever little a busy
    machine lets this process do, they have had as many turns as it has.

    Raises:
        TimeoutError: it is not true after so many.
    """
    turn_seconds = 0.01
    for _ in range(round(seconds / turn_seconds)):
        if true():
            return
        await asyncio.sleep(turn_seconds)
    raise TimeoutError(f"not true after {seconds:g} s of turns")


def state(server: ApiServer, name: str) -> str | None:
    found = server.get("BenchmarkRun", "default", name) or {}
    said: str | None = (found.get("status") or {}).get("state")
    return said


def folded(server: ApiServer, name: str) -> bool:
    found = server.get("BenchmarkRun", "default", name) or {}
    return bool(((found.get("status") or {}).get("storage") or {}).get("folded"))


def reason(server: ApiServer, name: str, type_: str) -> str | None:
    found = server.get("BenchmarkRun", "default", name) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return next((one["reason"] for one in conditions if one["type"] == type_), None)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", (0.01,) * 5)


async def test_an_error_that_nobody_expected_ends_the_run_and_the_next_has_its_turn(
    hasty: None,
) -> None:
    server = ApiServer()
    first = server.add(run_manifest("first"))
    server.add(run_manifest("second"))
    # A result that nobody can read, as if another version had written it.
    server.add(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "first-trial-001",
                "namespace": "default",
                "labels": {
                    "laptime.dev/run-uid": first["metadata"]["uid"],
                    "laptime.dev/component": "result",
                },
                "ownerReferences": [{"kind": "BenchmarkRun", "uid": first["metadata"]["uid"]}],
            },
            "data": {"result.json": "{}"},
        }
    )
    async with operating(server):
        await until(lambda: state(server, "first") == "Failed")
        assert reason(server, "first", "Succeeded") == "InternalError"
        found = server.get("BenchmarkRun", "default", "first")
        assert found is not None
        (said,) = (c for c in found["status"]["conditions"] if c["type"] == "Succeeded")
        assert "TrialResult" in said["message"]
        assert len(said["message"]) < 700
        await until(lambda: state(server, "second") == "Deploying")
    # What was measured stays.
    assert server.get("ConfigMap", "default", "first-trial-001") is not None


async def test_a_status_that_is_always_refused_gives_up_the_run(hasty: None) -> None:
    server = ApiServer()
    server.add(run_manifest("first"))
    server.add(run_manifest("second"))

    async def fault(request: Any) -> Any:
        if request.path.endswith("/first/status"):
            body = await request.text()
            if "InternalError" not in body:
                refusal = {"reason": "Invalid", "message": "status.results: too many"}
                return web.json_response(refusal, status=422)
        return None

    server.fault = fault
    async with operating(server):
        await until(lambda: state(server, "first") == "Failed")
        assert reason(server, "first", "Succeeded") == "InternalError"
        await until(lambda: state(server, "second") == "Deploying")


def refusing(server: ApiServer, run: str, status: int, message: str = "no") -> list[str]:
    """Have every write of a run's status refused; return the paths of those that come."""
    tried: list[str] = []

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if not request.path.endswith(f"/{run}/status"):
            return None
        tried.append(request.path)
        return web.json_response({"reason": "Any", "message": message}, status=status)

    server.fault = fault
    return tried


def unwritten(server: ApiServer) -> list[dict[str, Any]]:
    """Return the events that say of a run that its status cannot be written."""
    return [one for one in server.of("Event") if one["reason"] == "StatusNotWritten"]


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("status", [400, 403, 409, 413, 422, 500])
async def test_a_run_whose_status_can_never_be_written_gives_its_lane_on(
    status: int, active: bool, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_UNWRITTEN_SECONDS", 0.3)
    server = ApiServer()
    first = run_manifest("first")
    if active:
        # Nobody can go on with it: its end alone is to be said.
        first["status"] = {"state": "Running", "startedAt": "2026-01-01T00:00:00Z", "results": 7}
    server.add(first)
    server.add(run_manifest("second"))
    tried = refusing(server, "first", status, "etcdserver: request is too large")
    async with operating(server) as controller:
        await until(lambda: state(server, "second") == "Deploying")
        assert state(server, "first") == ("Running" if active else None)
        # Said and counted beside the lane that is given on, which waits for neither.
        await until(lambda: unwritten(server))
        (said,) = unwritten(server)
        assert said["involvedObject"]["name"] == "first"
        assert "etcdserver: request is too large" in said["message"]
        counted = 'laptime_reconcile_errors_total{reason="StatusNotWritten"} 1.0'
        await until(lambda: counted in controller.metrics.text().decode())
        # It is not taken again at once.
        before = len(tried)
        await asyncio.sleep(0.5)
        assert len(tried) <= before + 1


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (403, "no"),
        (500, not_in_schema(".status.isolation", "first")),
        (500, not_in_schema(".status.isolation", "first", "expected map, got &{Quiet}")),
    ],
)
async def test_what_a_run_has_goes_before_its_lane_does_and_it_goes_on_when_it_can(
    status: int, message: str, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_UNWRITTEN_SECONDS", 0.3)
    monkeypatch.setattr(controlling, "_LOOK_SECONDS", 0.5)
    monkeypatch.setattr(trials, "_BACK_OFF_SECONDS", (0.2, 0.5))
    server = ApiServer()
    server.add({**run_manifest("first"), "spec": spec_of(1, 1, 3).to_wire()})

    def left() -> set[tuple[str, str]]:
        return {(kind, name) for kind, _, name in server.objects if name.startswith("first-")}

    async with operating(server) as controller, working(server) as nodes:
        await until(lambda: "first-trial-002" in nodes.generators_started, 20)
        nodes.still = True
        server.add(run_manifest("second"))
        await until(lambda: state(server, "second") == "Queued")
        refusing(server, "first", status, message)
        nodes.still = False
        await until(lambda: state(server, "second") == "Deploying", 20)
        assert left() >= {("ConfigMap", "first-scenario"), ("ConfigMap", "first-trial-001")}
        assert {kind for kind, _ in left()} == {"ConfigMap"}
        assert state(server, "first") == "Running"
        # The time that it had counts, and it comes before nobody that it is active by its status.
        assert controller._used.seconds(datetime.now(UTC))["default"] > 0.3

        def in_line() -> list[State | None]:
            controller._passed_over = dict.fromkeys(controller._passed_over, 0.0)
            return [one.state for one in controller._in_line() if one.name == "first"]

        # Its end as a worker is noticed beside the lane that is given on.
        await until(lambda: in_line() == ["Queued"])
        server.fault = None
        await until(lambda: state(server, "second") == "Succeeded", 20)
        await until(lambda: state(server, "first") == "Succeeded", 60)
        # It hears of that as everybody does.
        await until(lambda: [one.name for one in controller._in_line()] == [])
        assert controller._passed_over == {}


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (500, ".status.order: field not declared in schema"),
        (400, ".status.order: field not declared in schema"),
        (422, 'status.order: Unsupported value: "Newer"'),
    ],
)
async def test_a_run_is_not_begun_where_the_schema_is_older_than_the_operator(
    status: int, why: str, hasty: None
) -> None:
    """By a part of its status the run would go on by another rule than it began with.

    400 is what Kubernetes calls it later (kubernetes/kubernetes#139255).
    """
    server = ApiServer(lacks=frozenset({"order"}), lacking_is=status)
    server.add(run_manifest("first"))

    def said() -> list[dict[str, Any]]:
        return [one for one in server.of("Event") if one["reason"] == "StatusNotInSchema"]

    async with operating(server), working(server) as nodes:
        await until(said)
        # Long enough for five tries, after which what is refused is given up.
        tries = server.requests.count
        path = "/apis/laptime.dev/v1alpha1/namespaces/default/benchmarkruns/first/status"
        await until(lambda: tries(("patch", path)) > 12)
        (event,) = said()
        assert event["involvedObject"]["name"] == "first"
        assert "kubectl apply --server-side -f crds/" in event["message"]
        assert why in event["message"]
        # Nothing of it is stored, and nothing is started.
        assert state(server, "first") in (None, "Queued")
        assert nodes.generators_started == []
        server.lacks = frozenset()
        await until(lambda: state(server, "first") == "Succeeded", 20)
    found = server.get("BenchmarkRun", "default", "first")
    assert found is not None
    assert found["status"]["order"] == "Balanced"


async def test_a_run_that_waits_says_once_that_the_schema_is_older_than_the_operator(
    hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody works on it, and nobody else would say it."""
    monkeypatch.setattr(controlling, "_REFUSED_SECONDS", 0.05)
    server = ApiServer()
    server.add(run_manifest("first"))
    async with operating(server):
        await until(lambda: state(server, "first") == "Deploying")
        tried = refusing(server, "second", 500, not_in_schema(".status.order", "second"))
        server.add(run_manifest("second"))
        await until(lambda: len(tried) > 5)
        (said,) = [one for one in server.of("Event") if one["reason"] == "StatusNotInSchema"]
        assert said["involvedObject"]["name"] == "second"
        assert ".status.order: field not declared in schema" in said["message"]
        server.fault = None
        await until(lambda: state(server, "second") == "Queued")


@pytest.mark.parametrize("events_apart", [False, True])
async def test_where_nothing_at_all_is_stored_no_run_is_taken_down_for_its_status(
    events_apart: bool, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`events_apart`: they have an etcd of their own, as large clusters have it."""
    monkeypatch.setattr(module, "_UNWRITTEN_SECONDS", 0.3)
    server = ApiServer()
    server.add(run_manifest("first"))
    refused: list[str] = []

    async def full(request: web.Request) -> web.StreamResponse | None:
        if request.method in ("GET", "DELETE"):
            return None
        if events_apart and request.path.endswith("/events"):
            return None
        refused.append(request.path)
        message = "etcdserver: mvcc: database space exceeded"
        return web.json_response({"message": message}, status=500)

    async with operating(server), working(server) as nodes:
        await until(lambda: nodes.generators_started, 20)
        server.fault = full
        await until(lambda: len(refused) > 3)
        await asyncio.sleep(0.6)
        assert not any(verb == "delete" for verb, _ in server.requests)
        server.fault = None
        await until(lambda: state(server, "first") == "Succeeded", 20)
    assert nodes.generators_started == ["first-trial-001"]


async def test_what_was_refused_while_nothing_at_all_was_stored_is_tried_once_more(
    hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ERRORS_PASS_SECONDS", 0.3)
    server = ApiServer()
    server.add(run_manifest("first"))
    full, ends = False, False

    async def fault(request: web.Request) -> web.StreamResponse | None:
        nonlocal full, ends
        if request.method in ("GET", "DELETE"):
            return None
        text = await request.text()
        full = full or (request.path.endswith("/configmaps") and '"result"' in text)
        if not full:
            return None
        if request.path.endswith("/status") and "ObjectRefused" in text:
            # There is room again when the end of the run was to be said.
            ends, server.fault = True, None
        message = "etcdserver: mvcc: database space exceeded"
        return web.json_response({"message": message}, status=500)

    server.fault = fault
    async with operating(server), working(server) as nodes:
        await until(lambda: ends, 30)
        await until(lambda: state(server, "first") in ("Succeeded", "Failed"), 30)
    assert state(server, "first") == "Succeeded"
    assert nodes.generators_started == ["first-trial-001"]


async def test_a_refusal_that_is_a_moment_old_when_a_machine_falls_asleep_ends_no_run(
    hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ApiServer()
    server.add(run_manifest("first"))
    slept = timedelta()

    class Clock(datetime):
        """The time of day, which jumps."""

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + slept

    async def fault(request: web.Request) -> web.StreamResponse | None:
        nonlocal slept
        if request.method != "POST" or not request.path.endswith("/jobs"):
            return None
        server.fault, slept = None, timedelta(minutes=10)
        content = {"reason": "Invalid", "message": "not now"}
        return web.json_response(content, status=422)

    monkeypatch.setattr(module, "datetime", Clock)
    server.fault = fault
    async with operating(server), working(server):
        await until(lambda: state(server, "first") in ("Succeeded", "Failed"), 20)
    assert slept
    assert state(server, "first") == "Succeeded"


async def test_a_webhook_that_never_answers_is_named_as_what_is_in_the_way(
    hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "REQUEST_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(module, "_ERRORS_PASS_SECONDS", 1.0)
    server = ApiServer()
    server.add(run_manifest("first"))

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if request.method == "POST" and request.path.endswith("/deployments"):
            await asyncio.sleep(3600)
        return None

    server.fault = fault
    async with operating(server):
        await until(lambda: state(server, "first") == "Failed", 20)
    (said,) = (
        one
        for one in (server.get("BenchmarkRun", "default", "first") or {})["status"]["conditions"]
        if one["type"] == "Succeeded"
    )
    assert said["reason"] == "ObjectRefused"
    assert "webhook" in said["message"]
    assert "Deployment first-" in said["message"]


@pytest.mark.parametrize("status", [None, 503, 429])
async def test_an_api_server_that_does_not_answer_at_all_is_nobody_in_the_way(
    status: int | None, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is silent, or a balancer in front of it says that it is away."""
    monkeypatch.setattr(connection, "REQUEST_TIMEOUT_SECONDS", 0.2)
    # Far longer than this process may be kept from an answer that is there, on a busy machine.
    monkeypatch.setattr(module, "_ERRORS_PASS_SECONDS", 2.0)
    server = ApiServer()
    server.add(run_manifest("first"))
    back = asyncio.Event()

    async def never(_: web.Request) -> web.StreamResponse | None:
        if status is not None and not back.is_set():
            return web.json_response({"message": "no server is available"}, status=status)
        await back.wait()
        return None

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if request.method == "POST" and request.path.endswith("/deployments"):
            # From here on nothing is answered.
            server.fault = never
            return await never(request)
        return None

    server.fault = fault
    async with operating(server), working(server):
        await until(lambda: server.fault is never)
        await asyncio.sleep(3.0)
        back.set()
        await until(lambda: state(server, "first") == "Succeeded", 20)


async def test_what_a_quota_refuses_of_a_tier_is_not_asked_for_all_the_time(
    hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was refused of something else before it, and was done since, fails no run."""
    monkeypatch.setattr(module, "_ERRORS_PASS_SECONDS", 0.5)
    server = ApiServer()
    server.add({**run_manifest("first"), "spec": sized().to_wire()})
    asked: list[str] = []
    answers = [500]

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if request.method == "PATCH" and request.path.endswith("/first-server-s1") and answers:
            return web.json_response({"message": "not just now"}, status=answers.pop())
        if request.path.endswith("/resize"):
            asked.append(request.path)
            said = {"reason": "Forbidden", "message": "exceeded quota: team"}
            return web.json_response(said, status=403)
        return None

    def of_its_deployment(pod: dict[str, Any]) -> None:
        if pod["metadata"]["labels"][COMPONENT_LABEL] == "postgres":
            pod["metadata"]["ownerReferences"][0]["name"] = "first-postgres-5d9c"

    server.fault = fault
    async with operating(server), working(server) as nodes:
        nodes.admission = of_its_deployment
        await until(lambda: asked, 20)
        await asyncio.sleep(2.0)
        assert state(server, "first") == "Verifying"
    assert answers == []
    assert len(asked) < 8


async def test_a_taken_name_ends_the_run_and_the_next_has_its_turn() -> None:
    server = ApiServer()
    server.add(run_manifest("shop"))
    server.add(run_manifest("then"))
    theirs = server.add(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "shop-postgres", "namespace": "default"},
            "spec": {"selector": {"app": "theirs"}},
        }
    )
    async with operating(server):
        await until(lambda: state(server, "shop") == "Failed")
        assert reason(server, "shop", "Succeeded") == "NameTaken"
        await until(lambda: state(server, "then") == "Deploying")
    assert server.get("Service", "default", "shop-postgres") == theirs
    uid = (server.get("BenchmarkRun", "default", "shop") or {})["metadata"]["uid"]
    left = [
        one
        for one in server.objects.values()
        if (one["metadata"].get("labels") or {}).get("laptime.dev/run-uid") == uid
    ]
    assert [one["metadata"]["name"] for one in left] == ["shop-results"]


async def test_no_run_gets_the_status_of_one_that_had_its_name() -> None:
    server = ApiServer()
    server.add(run_manifest("shop"))
    replaced: list[str] = []

    async def fault(request: Any) -> Any:
        # In this very moment the run becomes another one; nobody has heard of it yet.
        if request.path.endswith("/shop/status") and not replaced:
            server.remove("BenchmarkRun", "default", "shop")
            replaced.append(server.add(run_manifest("shop"))["metadata"]["uid"])
            answer = await server.answer(request)
            assert answer.status == 409
            assert "status" not in (server.get("BenchmarkRun", "default", "shop") or {})
            return answer
        return None

    server.fault = fault
    async with operating(server):
        await until(lambda: state(server, "shop") == "Deploying" and server.of("Deployment"))
        await until(lambda: _owners(server) == set(replaced))


async def test_a_run_applied_again_under_its_name_begins_anew() -> None:
    server = ApiServer()
    first = server.add(run_manifest("shop"))
    async with operating(server):
        await until(lambda: state(server, "shop") == "Deploying" and server.of("Deployment"))
        server.remove("BenchmarkRun", "default", "shop")
        again = server.add(run_manifest("shop"))
        await until(lambda: state(server, "shop") == "Deploying" and server.of("Deployment"))
        assert first["metadata"]["uid"] != again["metadata"]["uid"]
        # What was on its way when the first one went is collected like all else of it.
        await until(lambda: _owners(server) == {again["metadata"]["uid"]})


def _owners(server: ApiServer) -> set[str]:
    return {
        one["metadata"]["labels"]["laptime.dev/run-uid"]
        for kind in ("Deployment", "Service", "ConfigMap")
        for one in server.of(kind)
    }


async def test_what_was_computed_of_a_run_is_forgotten_with_it() -> None:
    asked: list[int] = []

    @remembered(8)
    def computed(number: int) -> int:
        asked.append(number)
        return number

    server = ApiServer()
    server.add(run_manifest("demo"))
    async with operating(server):
        await until(lambda: state(server, "demo") == "Deploying" and server.of("Deployment"))
        computed(1)
        server.remove("BenchmarkRun", "default", "demo")
        await until(lambda: computed(1) and len(asked) > 1)


def over(name: str) -> dict[str, Any]:
    return {**run_manifest(name), "status": {"state": "Succeeded", "storage": {"version": 1}}}


def shown(controller: Controller) -> set[str]:
    text = controller.metrics.text().decode()
    return set(re.findall(r'^laptime_run_info{.*run="([^"]+)"', text, re.MULTILINE))


async def test_older_runs_are_shown_again_when_newer_ones_are_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that is over does not change any more, so nothing else says that it is there."""
    monkeypatch.setattr(run_metrics, "MOST_RUNS", 3)
    server = ApiServer()
    # Of one second, so the names say which are newer.
    for name in ("a1", "a2", "a3", "a4", "b1", "b2", "b3"):
        server.add(over(name))
    async with operating(server) as controller:
        await until(lambda: shown(controller) == {"b1", "b2", "b3"})
        server.remove("BenchmarkRun", "default", "b2")
        await until(lambda: shown(controller) == {"a4", "b1", "b3"})
        for name in ("b1", "b3"):
            server.remove("BenchmarkRun", "default", name)
        await until(lambda: shown(controller) == {"a2", "a3", "a4"})
        asked = [path for verb, path in server.requests if verb == "get" and "/a" in path]
        assert len(asked) == 3


async def test_a_run_that_goes_while_it_is_read_anew_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_metrics, "MOST_RUNS", 1)
    server = ApiServer()
    for name in ("a1", "a2", "b1"):
        server.add(over(name))
    read: list[str] = []

    async def fault(request: web.Request) -> web.StreamResponse | None:
        name = request.path.rpartition("/")[2]
        if request.method != "GET" or name not in ("a1", "a2"):
            return None
        answer = await server.answer(request)
        read.append(name)
        if name == "a2":
            server.remove("BenchmarkRun", "default", "a2")
            one_left = 'laptime_runs{state="Succeeded"} 1.0'
            await until(lambda: one_left in controller.metrics.text().decode())
        return answer

    server.fault = fault
    async with operating(server) as controller:
        await until(lambda: shown(controller) == {"b1"})
        server.remove("BenchmarkRun", "default", "b1")
        await until(lambda: shown(controller) - {"b1"})
        assert shown(controller) == {"a1"}
        assert read == ["a2", "a1"]


async def test_the_answer_to_a_status_write_does_not_bring_a_deleted_run_back() -> None:
    """Of one that is over nothing else would say that it is gone."""
    server = ApiServer()
    run = server.add(over("demo"))

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if not request.path.endswith("/demo/status"):
            return None
        answer = await server.answer(request)
        server.remove("BenchmarkRun", "default", "demo")
        await until(lambda: not len(controller._runs))
        return answer

    server.fault = fault
    async with operating(server) as controller:
        await until(lambda: shown(controller) == {"demo"})
        await controller.statuses.write(run["metadata"], status_view(run))
        assert not len(controller._runs)
        assert shown(controller) == set()
        assert 'laptime_runs{state="Succeeded"} 0.0' in controller.metrics.text().decode()


async def test_a_run_that_goes_while_its_worker_reads_it_anew_is_gone() -> None:
    server = ApiServer()
    server.add(run_manifest("demo"))
    read: list[str] = []

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if request.method != "GET" or not request.path.endswith("/benchmarkruns/demo") or read:
            return None
        answer = await server.answer(request)
        read.append(request.path)
        server.remove("BenchmarkRun", "default", "demo")
        await until(lambda: not len(controller._runs))
        return answer

    async with operating(server) as controller:
        await until(lambda: state(server, "demo") == "Deploying" and server.of("Deployment"))
        server.fault = fault
        delete_though_held(server, "demo")
        await until(lambda: read and not controller._workers)
        await asyncio.sleep(0.2)
        assert not len(controller._runs)


async def test_a_log_of_which_the_kubelet_has_nothing_costs_an_attempt_and_no_run() -> None:
    server = ApiServer()
    server.add(run_manifest("first"))

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if not re.search(r"/first-trial-001-\d+/log$", request.path):
            return None
        # In these words a kubelet answers of a container that ended before it was known to be made.
        message = 'container "k6" in pod "first-trial-001-7" is terminated'
        return web.json_response({"reason": "BadRequest", "message": message}, status=400)

    def lost() -> list[str]:
        status = (server.get("BenchmarkRun", "default", "first") or {}).get("status", {})
        return [one["reason"] for one in status.get("lostAttempts", [])]

    server.fault = fault
    async with operating(server), working(server) as nodes:
        nodes.failing.add("s0")
        await until(lambda: lost() == ["LogMissing"], 60)
        nodes.failing.clear()
        nodes.still = False
        await until(lambda: state(server, "first") == "Succeeded", 60)


@pytest.mark.parametrize("status", [None, 403, 405, 500, 502])
async def test_logs_that_nobody_gets_at_cost_attempts_and_hold_no_lane(
    status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_logs, "_UNREADABLE_SECONDS", 0.2)
    # Not half a minute before each attempt.
    monkeypatch.setattr(trials, "_BACK_OFF_SECONDS", (0.2, 0.5))
    server = ApiServer()
    server.add(run_manifest("first"))
    server.add(run_manifest("second"))

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if not re.search(r"/first-trial-.*/log$", request.path):
            return None
        if status is None:
            # A firewall: nobody ever answers, and whoever waits is sent away.
            assert request.transport is not None
            request.transport.abort()
            raise web.HTTPInternalServerError
        # As of a kubelet whose certificate nobody has signed.
        message = "remote error: tls: internal error"
        return web.json_response({"reason": "InternalError", "message": message}, status=status)

    server.fault = fault
    async with operating(server), working(server) as nodes:
        nodes.failing.add("s0")

        def failed() -> bool:
            # Its rights are all there, and nobody else has its lane meanwhile.
            assert reason(server, "first", "Accepted") in (None, "Accepted")
            return state(server, "first") == "Failed"

        await until(failed, 60)
        nodes.failing.clear()
        await until(lambda: state(server, "second") == "Succeeded", 60)
    (row,) = (server.get("BenchmarkRun", "default", "first") or {})["status"]["results"]
    assert row["reason"] == "LogMissing"


async def test_the_lane_of_a_deleted_run_is_given_away_when_nothing_of_it_works_any_more() -> None:
    server = ApiServer(collects=False)
    first = server.add({**run_manifest("first"), "spec": spec_of(1, 1, 9).to_wire()})
    server.add(run_manifest("second"))

    def pods() -> list[str]:
        return [one["metadata"]["name"] for one in server.of("Pod")]

    async with operating(server), working(server) as nodes:
        await until(lambda: nodes.generators_started, 20)
        server.remove("BenchmarkRun", "default", "first")
        await asyncio.sleep(0.5)
        assert pods()
        assert state(server, "second") == "Queued"
        server.collects = True
        server.collect(first["metadata"]["uid"])
        for orphan in pods():
            server.remove("Pod", "default", orphan)
        await until(lambda: state(server, "second") == "Succeeded", 20)


async def test_the_lane_of_a_deleted_run_is_not_held_by_a_pod_that_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "STUCK_SECONDS", 0.5)
    monkeypatch.setattr(module, "_GOING_SECONDS", 0.05)
    server = ApiServer(collects=False)
    server.add({**run_manifest("first"), "spec": spec_of(1, 1, 9).to_wire()})
    server.add(run_manifest("second"))
    async with operating(server), working(server) as nodes:
        await until(lambda: nodes.generators_started, 20)
        server.remove("BenchmarkRun", "default", "first")
        await until(lambda: state(server, "second") == "Deploying", 20)


async def test_a_lane_is_given_away_while_another_run_cannot_be_accepted() -> None:
    server = ApiServer()
    for name in ("first", "second"):
        server.add(run_manifest(name))
    asked = asyncio.Event()

    async def fault(request: web.Request) -> None:
        if request.path.endswith("/third/status"):
            asked.set()
            await asyncio.Event().wait()

    async with operating(server):
        await until(lambda: state(server, "first") == "Deploying")
        await until(lambda: state(server, "second") == "Queued")
        server.fault = fault
        server.add(run_manifest("third"))
        await asked.wait()
        server.remove("BenchmarkRun", "default", "first")
        await until(lambda: state(server, "second") == "Deploying")
        assert state(server, "third") is None


def elsewhere(name: str) -> dict[str, Any]:
    """Return a run of another namespace."""
    manifest = run_manifest(name)
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": "elsewhere"}}


def state_elsewhere(server: ApiServer, name: str) -> str | None:
    found = server.get("BenchmarkRun", "elsewhere", name) or {}
    said: str | None = (found.get("status") or {}).get("state")
    return said


async def test_a_run_in_mid_trial_keeps_its_lane_through_rights_that_are_missed_for_a_while() -> (
    None
):
    # As of an API server that was just started and does not know its RoleBindings yet.
    server = ApiServer()
    server.add({**run_manifest("first"), "spec": spec_of(1, 1, 9).to_wire()})
    async with operating(server) as controller, working(server) as nodes:
        await until(lambda: nodes.generators_started, 20)
        server.add(elsewhere("second"))
        await until(lambda: state_elsewhere(server, "second") == "Queued")
        nodes.still = True
        (worker,) = controller._workers.values()
        server.forbidden.add("default")
        server.cut()
        await asyncio.sleep(0.5)
        # It is looked at again, and nobody else is given its lane.
        worker.wake()
        await asyncio.sleep(0.5)
        assert reason(server, "first", "Accepted") == "Accepted"
        assert state_elsewhere(server, "second") == "Queued"
        assert worker._forbidden_since is not None
        server.forbidden.clear()
        # What was missed is over: the next time counts from its own beginning.
        await until(lambda: worker._forbidden_since is None, 20)
        nodes.still = False
        await until(lambda: state(server, "first") == "Succeeded", 60)


async def test_a_run_whose_rights_are_gone_for_good_holds_no_lane_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_FORBIDDEN_SECONDS", 0.5)
    server = ApiServer()
    server.add({**run_manifest("first"), "spec": spec_of(1, 1, 9).to_wire()})
    async with operating(server), working(server) as nodes:
        await until(lambda: nodes.generators_started, 20)
        nodes.still = True
        server.add(elsewhere("second"))
        await until(lambda: state_elsewhere(server, "second") == "Queued")
        server.forbidden.add("default")
        server.cut()
        await until(lambda: reason(server, "first", "Accepted") == "NamespaceNotEnabled", 20)
        await until(lambda: state_elsewhere(server, "second") == "Deploying", 20)


@pytest.mark.parametrize("what", ["deleted", "paused", "over"])
async def test_a_run_that_needs_no_lane_any_more_gives_it_on_while_nobody_hears_of_runs(
    what: str,
) -> None:
    server = ApiServer()

    async def out_of_order(request: web.Request) -> web.StreamResponse | None:
        # Single runs are read and written, their list and their watch are not to be had.
        if request.path.endswith("/benchmarkruns"):
            return web.json_response({"reason": "InternalError", "message": "etcd"}, status=500)
        return None

    server.add(run_manifest("first"))
    async with operating(server), working(server) as nodes:
        await until(lambda: nodes.generators_started, 20)
        nodes.still = True
        server.add(run_manifest("second"))
        server.add(run_manifest("third"))
        await until(lambda: state(server, "second") == state(server, "third") == "Queued")
        server.fault = out_of_order
        server.cut()
        await asyncio.sleep(0.2)
        second = server.get("BenchmarkRun", "default", "second") or {}
        if what == "deleted":
            server.remove("BenchmarkRun", "default", "second")
        elif what == "paused":
            spec = {**second["spec"], "suspend": True}
            server.change("BenchmarkRun", "default", "second", spec=spec)
        else:
            status = {**second["status"], "state": "Failed"}
            server.change("BenchmarkRun", "default", "second", status=status)
        nodes.still = False
        await until(lambda: state(server, "third") == "Succeeded", 20)
        asked = [path for _, path in server.requests if path.endswith("/second")]
        assert len(asked) <= 5


def left_of(server: ApiServer, run: str) -> set[tuple[str, str]]:
    """Return kinds and names of what a run has; only what it measured, and its scenario, stays."""
    return {(kind, name) for kind, _, name in server.objects if name.startswith(f"{run}-")}


def measured_of(server: ApiServer, run: str) -> set[tuple[str, str]]:
    """Return the same of a run that was taken down in its second trial."""
    kept = {("ConfigMap", f"{run}-scenario"), ("ConfigMap", f"{run}-trial-001")}
    # Of the trial that was going on there may be a result by then.
    return kept | (left_of(server, run) & {("ConfigMap", f"{run}-trial-002")})


def delete_though_held(server: ApiServer, run: str) -> None:
    """Delete a run that a finalizer of somebody holds."""
    deleted = "2026-01-01T00:00:00Z"
    held = {"finalizers": ["somebody.example/holds"], "deletionTimestamp": deleted}
    found = server.get("BenchmarkRun", "default", run) or {}
    server.change("BenchmarkRun", "default", run, metadata={**found["metadata"], **held})


async def test_what_a_run_has_is_taken_down_while_a_finalizer_of_somebody_holds_it() -> None:
    server = ApiServer()
    server.add({**run_manifest("first"), "spec": spec_of(1, 1, 9).to_wire()})
    async with operating(server), working(server) as nodes:
        await until(lambda: "first-trial-002" in nodes.generators_started, 20)
        server.add(run_manifest("second"))
        await until(lambda: state(server, "second") == "Queued")
        delete_though_held(server, "first")
        await until(lambda: state(server, "second") == "Deploying", 20)
        # What was measured stays for whoever holds it.
        assert left_of(server, "first") == measured_of(server, "first")
        await until(lambda: state(server, "second") == "Succeeded", 20)


async def test_an_operator_that_starts_after_a_deletion_takes_down_what_a_finalizer_holds() -> None:
    server = ApiServer()
    server.add({**run_manifest("first"), "spec": spec_of(1, 1, 9).to_wire()})
    async with working(server) as nodes:
        async with operating(server):
            await until(lambda: "first-trial-002" in nodes.generators_started, 20)
        nodes.still = True
        delete_though_held(server, "first")
        server.add(run_manifest("second"))
        async with operating(server):
            await until(lambda: state(server, "second") == "Deploying", 20)
            assert left_of(server, "first") == measured_of(server, "first")
            nodes.still = False
            await until(lambda: state(server, "second") == "Succeeded", 20)
        # Each operator looks once, and goes on with the others.
        server.add(run_manifest("third"))
        async with operating(server):
            await until(lambda: state(server, "third") == "Succeeded", 20)
    assert state(server, "first") == "Running"


async def test_a_run_that_is_held_and_has_pods_that_never_end_holds_no_lane_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "STUCK_SECONDS", 0.5)
    monkeypatch.setattr(module, "_GOING_SECONDS", 0.05)
    server = ApiServer(collects=False)
    server.add({**run_manifest("first"), "spec": spec_of(1, 1, 9).to_wire()})
    async with working(server) as nodes:
        async with operating(server):
            await until(lambda: nodes.generators_started, 20)
        nodes.still = True
        delete_though_held(server, "first")
        server.add(run_manifest("second"))
        async with operating(server):
            await until(lambda: state(server, "second") == "Deploying", 20)
            assert not {kind for kind, _ in left_of(server, "first")} & {"Deployment", "Job"}


async def test_a_run_at_work_whose_spec_is_not_understood_leaves_nothing_beside_the_next_one(
    hasty: None,
) -> None:
    server = ApiServer()
    spec = spec_of(1, 1, 3).to_wire()
    server.add({**run_manifest("first"), "spec": spec})
    async with working(server) as nodes:
        async with operating(server):
            await until(lambda: "first-trial-002" in nodes.generators_started, 20)
            server.add(run_manifest("second"))
            await until(lambda: state(server, "second") == "Queued")
            # The copy of a script stays too: without it the run could not go on.
            copy = deepcopy(server.get("ConfigMap", "default", "first-scenario") or {})
            copy["metadata"]["name"] = "first-script"
            copy["metadata"]["labels"][COMPONENT_LABEL] = "script"
            server.add(copy)
            # As after a rollback to a version that knows less.
            unknown = {**spec, "loads": [{"name": "l0", "unheardOf": {}}]}
            server.change("BenchmarkRun", "default", "first", spec=unknown)
            await until(lambda: state(server, "second") == "Deploying", 20)
            assert reason(server, "first", "Accepted") == "SpecNotUnderstood"
            kept = measured_of(server, "first") | {("ConfigMap", "first-script")}
            assert left_of(server, "first") == kept
            await until(lambda: state(server, "second") == "Succeeded", 20)
        server.change("BenchmarkRun", "default", "first", spec=spec)
        # With a version that understands it, it goes on.
        async with operating(server):
            await until(lambda: state(server, "first") == "Succeeded", 20)
    assert nodes.generators_started.count("first-trial-001") == 1
