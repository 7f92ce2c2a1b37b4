"""A scenario that takes for ever to check holds nobody up but its own run."""

from __future__ import annotations

import asyncio
import os
import signal
from copy import deepcopy
from typing import Any

import pytest
from aiohttp import web

from laptime.catalog import Scenario, scenario_of, scenarios, stored_text
from laptime.manifests.scenario import read_scenario
from laptime.reconcile import scenario_rules, worker
from laptime.reconcile import scenarios as module
from laptime.reconcile.queue import Card
from laptime.reconcile.scenario_rules import problems_apart

from .api_server import ApiServer
from .test_controller import operating, reason, run_manifest, state, until
from .test_pause import patched
from .test_scenarios import kept, message, mine, run_of
from .test_side_services import CACHE

# Each takes twice as long with one more.
_DOUBLING = {
    "$defs": {
        f"of{n}": {"allOf": [{"$ref": f"#/$defs/of{n + 1}"}, {"$ref": f"#/$defs/of{n + 1}"}]}
        for n in range(60)
    }
    | {"of60": {"type": "string"}},
    "$ref": "#/$defs/of0",
}
_DEEP: dict[str, Any] = {}
for _ in range(150):
    _DEEP = {"not": _DEEP}


_SLOW = "no repetition of a repetition, such as (a+)+"


def asking(schema: dict[str, Any], expected: Any = 60 * "a" + "!") -> dict[str, Any]:
    document = mine()
    document["spec"]["checks"][0] |= {"jsonSchema": deepcopy(schema), "expected": expected}
    return document


@pytest.fixture
def little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario_rules, "CPU_SECONDS", 2)


@pytest.mark.usefixtures("little_time")
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "string", "pattern": "^(a+)+$"}, _SLOW),
        ({"patternProperties": {"^(a+)+$": True}, "$ref": "#"}, "refers to itself without an end"),
        (_DOUBLING, _SLOW),
        (_DEEP, _SLOW),
    ],
    ids=["pattern", "reference to itself", "doubling", "deep"],
)
async def test_a_json_schema_that_takes_for_ever_ends_its_own_run_only(
    schema: dict[str, Any], says: str
) -> None:
    server = ApiServer()
    server.add(asking(schema))
    server.add(run_of("shop"))
    passes = 0
    async with operating(server):

        async def others() -> None:
            nonlocal passes
            while True:
                await asyncio.sleep(0.01)
                passes += 1

        task = asyncio.create_task(others())
        await until(lambda: state(server, "demo") == "Failed", seconds=60)
        task.cancel()
    assert reason(server, "demo", "Succeeded") == "ScenarioWrong"
    assert says in message(server, "Succeeded")
    assert passes > 20


class Looking:
    """Stands for the process that looks at rules: it takes as long as a test says."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.asked = self.ended = 0
        self.problems: list[str] = []

    async def __call__(self, _: Scenario) -> list[str]:
        self.asked += 1
        try:
            await self.over.wait()
        finally:
            self.ended += 1
        return self.problems


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> Looking:
    found = Looking()
    monkeypatch.setattr(module, "problems_apart", found)
    monkeypatch.setattr(module, "_AT_ONCE_SECONDS", 0.05)
    return found


def status_of(server: ApiServer, name: str = "demo") -> dict[str, Any]:
    return (server.get("BenchmarkRun", "default", name) or {}).get("status") or {}


@pytest.mark.parametrize("how", ["cancelled", "deleted", "suspended"])
async def test_a_run_whose_scenario_is_looked_at_for_long_says_so_and_can_be_ended(
    how: str, looking: Looking
) -> None:
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    server.add(run_of("users", "then"))
    async with operating(server):
        await until(lambda: message(server) == "the rules of its scenario are looked at")
        assert state(server, "demo") == "Deploying"
        # From here on its namespace is charged for it.
        assert "turnStartedAt" in status_of(server)
        assert state(server, "then") == "Queued"
        if how == "deleted":
            server.remove("BenchmarkRun", "default", "demo")
        else:
            patched(server, "demo", **{"cancelled": {"cancel": True}}.get(how, {"suspend": True}))
        await until(lambda: state(server, "then") == "Deploying")
        assert state(server, "demo") == {"cancelled": "Cancelled", "suspended": "Suspended"}.get(
            how
        )
        assert how == "deleted" or "turnStartedAt" not in status_of(server)
    assert (looking.asked, looking.ended) == (1, 1)


async def test_a_run_whose_scenario_was_looked_at_for_long_goes_on(looking: Looking) -> None:
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: message(server) == "the rules of its scenario are looked at")
        # It is no time that the tiers took to come to stand.
        assert "stepStartedAt" not in status_of(server)
        assert kept(server) is None
        looking.over.set()
        await until(lambda: server.get("Deployment", "default", "demo-postgres"))
        assert "stepStartedAt" in status_of(server)
    assert looking.asked == 1


async def test_a_scenario_that_changes_while_it_is_looked_at_is_looked_at_as_it_is_now(
    looking: Looking,
) -> None:
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: looking.asked == 1)
        server.change("BenchmarkScenario", "default", "shop", spec=mine(title="Other")["spec"])
        await until(lambda: (looking.asked, looking.ended) == (2, 1))
        looking.over.set()
        await until(lambda: kept(server))
    found = kept(server)
    assert found is not None
    assert read_scenario(found).title == "Other"


async def test_rules_that_could_not_be_looked_at_are_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    async def killed_once(scenario: Scenario) -> list[str]:
        asked.append(scenario)
        if len(asked) == 1:
            raise RuntimeError("exit code -9")
        return []

    monkeypatch.setattr(module, "problems_apart", killed_once)
    server = ApiServer()
    server.add(mine())
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: kept(server))
    assert len(asked) == 2


async def test_a_scenario_that_takes_too_much_memory_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scenario_rules, "MEMORY_BYTES", 2**20)
    (said,) = await problems_apart(scenarios()["users"])
    assert "more than 60 s or 1 MiB: make it smaller" in said


async def test_two_scenarios_are_looked_at_one_after_the_other() -> None:
    users = scenarios()["users"]
    wrong = scenario_of(asking({"type": "string"}, 3))
    fine, found = await asyncio.gather(problems_apart(users), problems_apart(wrong))
    assert fine == []
    assert any("expected does not meet its own jsonSchema" in one for one in found)


async def test_whoever_ends_the_process_is_not_the_author(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ended(_: bytes) -> tuple[int, bytes, bytes]:
        return -signal.SIGKILL, b"", b""

    monkeypatch.setattr(scenario_rules, "_asked", ended)
    with pytest.raises(RuntimeError, match="exit code -9"):
        await problems_apart(scenarios()["users"])


async def test_a_run_that_is_over_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    start = asyncio.create_subprocess_exec

    async def starting(*args: Any, **more: Any) -> asyncio.subprocess.Process:
        started.append(await start(*args, **more))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", starting)
    endless = scenario_of(asking({"type": "string", "pattern": "^(a+)+$"}))
    task = asyncio.create_task(problems_apart(endless))
    await until(lambda: started)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await started[0].wait() == -signal.SIGKILL


async def test_the_process_learns_nothing_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = {}
    start = asyncio.create_subprocess_exec

    async def starting(*args: Any, **more: Any) -> asyncio.subprocess.Process:
        seen.update(more["env"])
        return await start(*args, **more)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", starting)
    monkeypatch.setitem(os.environ, "PROMETHEUS_PASSWORD", "secret")
    assert await problems_apart(scenarios()["hello"]) == []
    assert seen.keys() == {"PYTHONPATH"}


@pytest.mark.parametrize("scenario", scenarios().values(), ids=lambda one: one.name)
def test_what_is_read_there_is_the_same_scenario(scenario: Scenario) -> None:
    assert Scenario.model_validate_json(stored_text(scenario)) == scenario


async def test_a_run_over_a_cap_by_its_services_has_not_begun_and_can_be_cancelled(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exceeded(*given: Any) -> str | None:
        return "too many cores" if any(given[3:]) else None

    monkeypatch.setattr(worker, "cap_exceeded", exceeded)
    server = ApiServer()
    server.add(mine(services=[{**CACHE, "resources": {"cpu": "1500m", "memory": "64Mi"}}]))
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: message(server) == "the rules of its scenario are looked at")
        looking.over.set()
        await until(lambda: reason(server, "demo", "Accepted") == "CapExceeded")
        assert (state(server, "demo"), message(server)) == ("Queued", "it has not begun")
        assert not {"startedAt", "turnStartedAt"} & status_of(server).keys()
        patched(server, "demo", cancel=True)
        await until(lambda: state(server, "demo") == "Cancelled")


async def test_a_run_that_is_asked_for_again_at_its_end_is_accepted_at_once(
    looking: Looking,
) -> None:
    async def slow_events(request: web.Request) -> None:
        # Its last events are written after its state.
        if request.method == "POST" and "events" in request.path:
            await asyncio.sleep(0.1)

    server = ApiServer()
    server.fault = slow_events
    looking.problems = ["it is wrong"]
    server.add(mine())
    server.add(run_of("shop"))
    async with operating(server):
        await until(lambda: state(server, "demo") == "Deploying")
        patched(server, "demo", retry=1)
        looking.over.set()
        await until(lambda: status_of(server).get("retries") == 1)


@pytest.mark.parametrize("ended", ["Failed", "Cancelled"])
async def test_a_run_that_ends_while_it_waits_to_be_accepted_stays_over(
    ended: str, looking: Looking
) -> None:
    looking.problems = ["it is wrong"]
    looking.over.set()
    server = ApiServer()
    server.add(mine())
    server.add(run_manifest("first"))
    async with operating(server) as controller:
        await until(lambda: state(server, "first") == "Deploying")
        accept, accepted = controller._accept, asyncio.Event()
        waits, may_go = asyncio.Event(), asyncio.Event()

        async def later(card: Card) -> None:
            if card.name == "second" and (ended == "Failed" or card.cancel):
                waits.set()
                await may_go.wait()
                try:
                    await accept(card)
                finally:
                    accepted.set()
                return
            await accept(card)

        controller._accept = later  # type: ignore[method-assign]
        server.add(run_of("shop", "second"))
        if ended == "Cancelled":
            await until(lambda: state(server, "second") == "Queued")
            patched(server, "second", cancel=True)
        await until(waits.is_set)
        server.remove("BenchmarkRun", "default", "first")
        await until(lambda: state(server, "second") == ended and not controller._workers)
        shown = ("state", "progress", "conditions", "finishedAt")
        before = {key: status_of(server, "second")[key] for key in shown}
        may_go.set()
        await until(accepted.is_set)
        assert {key: status_of(server, "second")[key] for key in shown} == before
