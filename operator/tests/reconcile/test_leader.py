"""Two operators, one at work: whatever becomes of it, the other goes on, and it writes nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio import client

from laptime.kube import Kube, KubeError
from laptime.reconcile.controller import Controller
from laptime.reconcile.leader import LEASE, Elector, Times, boot_seconds, work_when_leading
from laptime.reconcile.metrics import Metrics
from laptime.reconcile.settings import Settings
from laptime.report.archive import stored_in

from .api_server import ApiServer, serving
from .nodes import working
from .test_controller import run_manifest, state
from .test_controller import until as until_within
from .test_decide import spec_of
from .test_metrics import said
from .world import IMAGES

# What becomes of an operator that gets no time is what is tested: one that gets none because of
# what else runs on the machine is another thing.
pytestmark = pytest.mark.timed

# As the real ones, some three times quicker.
TIMES = Times(lasts=3, margin=0.7, give_up=1.8, retry=0.25, request=0.9)
LEASES = "/leases/"


async def until(true: Callable[[], Any], seconds: float = 90.0) -> None:
    await until_within(true, seconds)


class Traffic:
    """Who has asked the API server for what, and when; and who cannot reach it."""

    def __init__(self, server: ApiServer) -> None:
        self.writes: list[tuple[float, str, str]] = []
        """Time, operator, method and path of each write of a run, answered or not."""
        self.cut: set[str] = set()
        self.also: Callable[[str, web.Request], Awaitable[web.StreamResponse | None]] | None = None
        server.fault = self._see

    async def _see(self, request: web.Request) -> web.StreamResponse | None:
        who = request.headers.get("X-Operator", "")
        if who in self.cut:
            # Nothing comes back: neither a refusal nor the end of the connection.
            await asyncio.sleep(3600)
        if request.method != "GET" and LEASES not in request.path + "/":
            self.writes.append((boot_seconds(), who, f"{request.method} {request.path}"))
        return None if self.also is None else await self.also(who, request)

    def writers(self) -> list[str]:
        """Return who has written, one after the other."""
        names = [who for _, who, _ in self.writes]
        return names[:1] + [after for before, after in pairwise(names) if before != after]


class Operator:
    """One of several in this process."""

    def __init__(self, host: str, name: str, times: Times = TIMES) -> None:
        self.name = name
        configuration = client.Configuration(host=host)
        self.kube = Kube(client.ApiClient(configuration, "X-Operator", name))
        self.metrics = Metrics()
        self.metrics.leads(False)
        self.elector = Elector(self.kube, "laptime-system", name, times)
        gated = self.kube.gated(self.elector.left)
        settings = Settings(images=IMAGES)

        def begin() -> Controller:
            return Controller(gated, settings, self.metrics, logging.getLogger("laptime"))

        work = work_when_leading(self.elector, begin, self.metrics.leads)
        self.task = asyncio.create_task(work)

    @property
    def leads(self) -> bool:
        return self.metrics.registry.get_sample_value("laptime_leader") == 1.0

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def die(self) -> None:
        """End as a killed process does: its lease is not given back."""

        async def nothing() -> None: ...

        self.elector.release = nothing  # type: ignore[method-assign]
        await self.end()
        await self.kube.close()


@asynccontextmanager
async def two_operators(
    server: ApiServer, times: Times = TIMES
) -> AsyncIterator[tuple[Operator, Operator]]:
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(serving(server))
        host = kube._api.configuration.host
        first = Operator(host, "first", times)
        await until(lambda: first.leads)
        second = Operator(host, "second", times)
        try:
            yield first, second
        finally:
            for one in (first, second):
                await one.end()
                await one.kube.close()


def lease(server: ApiServer) -> dict[str, Any]:
    found = server.get("Lease", "laptime-system", LEASE)
    assert found is not None
    spec: dict[str, Any] = found["spec"]
    return spec


def long_run(name: str, repetitions: int = 3) -> dict[str, Any]:
    return {**run_manifest(name), "spec": spec_of(1, 1, repetitions).to_wire()}


# The lease ------------------------------------------------------------------------------------


async def test_one_of_two_holds_the_lease_and_the_other_stands_by() -> None:
    server = ApiServer()
    async with two_operators(server) as (first, second):
        await asyncio.sleep(1.5)
        assert (first.leads, second.leads) == (True, False)
        assert lease(server)["holderIdentity"] == "first"
        assert lease(server)["leaseTransitions"] == 1
        assert second.elector.left() <= 0
        assert 0 < first.elector.left() <= TIMES.lasts - TIMES.margin


async def test_of_two_that_begin_at_once_one_gets_it() -> None:
    server = ApiServer()
    async with serving(server) as kube:
        electors = [Elector(kube, "laptime-system", f"number-{n}", TIMES) for n in range(5)]
        tasks = [asyncio.create_task(elector.acquire()) for elector in electors]
        done, pending = await asyncio.wait(tasks, timeout=TIMES.lasts / 2)
        assert len(done) == 1
        assert [one.left() > 0 for one in electors].count(True) == 1
        for task in pending:
            task.cancel()


async def test_a_lease_that_is_given_back_is_taken_at_once() -> None:
    server = ApiServer()
    async with two_operators(server, replace(TIMES, lasts=30)) as (first, second):
        await until(lambda: second.elector._lease is not None)
        began = boot_seconds()
        await first.end()
        await until(lambda: second.leads)
        assert boot_seconds() - began < 15


async def test_the_clocks_of_others_do_not_matter() -> None:
    server = ApiServer()
    server.add(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE, "namespace": "laptime-system"},
            # Renewed in a hundred years, by a clock that is wrong; and never again.
            "spec": {
                "holderIdentity": "gone",
                "leaseDurationSeconds": 1,
                "renewTime": "2126-01-01T00:00:00.000000Z",
            },
        }
    )
    async with serving(server) as kube:
        elector = Elector(kube, "laptime-system", "me", TIMES)
        began = boot_seconds()
        await elector.acquire()
        assert 1.0 <= boot_seconds() - began < 2.0
        # Nor does an old time make it free to take.
        found = server.get("Lease", "laptime-system", LEASE)
        assert found is not None
        spec = {**found["spec"], "renewTime": "1999-01-01T00:00:00.000000Z"}
        server.change("Lease", "laptime-system", LEASE, spec=spec)
        other = Elector(kube, "laptime-system", "other", TIMES)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.6):
                await other.acquire()
        assert other.left() <= 0


async def test_a_renewal_whose_answer_was_lost_loses_nothing() -> None:
    server = ApiServer()
    async with serving(server) as kube:
        lost: list[str] = []

        async def fault(request: web.Request) -> web.StreamResponse | None:
            if request.method == "PATCH" and len(lost) < 2:
                lost.append(request.path)
                await server.answer(request)
                assert request.transport is not None
                request.transport.abort()
            return None

        elector = Elector(kube, "laptime-system", "me", TIMES)
        await elector.acquire()
        server.fault = fault
        keeping = asyncio.create_task(elector.keep())
        await asyncio.sleep(1.5)
        assert len(lost) == 2
        assert elector.left() > 0
        assert not keeping.done()
        keeping.cancel()


async def test_the_holder_s_time_is_over_before_anybody_takes_the_lease() -> None:
    """Even when its last renewal was answered at the last moment."""
    server = ApiServer()
    async with serving(server) as kube:

        async def slow(request: web.Request) -> web.StreamResponse | None:
            if request.method == "PATCH":
                answer = await server.answer(request)
                await asyncio.sleep(0.2)
                return answer
            return None

        holder = Elector(kube, "laptime-system", "holder", TIMES)
        await holder.acquire()
        server.fault = slow
        assert await holder._take()
        other = Elector(kube, "laptime-system", "other", TIMES)
        await other.acquire()
        assert holder.left() <= -TIMES.margin / 2


async def test_a_right_that_is_missing_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    server = ApiServer(forbidden={"laptime-system"})
    async with serving(server) as kube:
        elector = Elector(kube, "laptime-system", "me", TIMES)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.6):
                await elector.acquire()
    (said,) = [record.getMessage() for record in caplog.records]
    assert "lease laptime-system/laptime-operator: Forbidden" in said


# The gate -------------------------------------------------------------------------------------


async def test_without_the_lease_nothing_is_written_and_all_can_be_read() -> None:
    server = ApiServer()
    one = {"kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}}
    stored = server.add(one)
    async with serving(server) as kube:
        gated = kube.gated(lambda: 0.0)
        uid = stored["metadata"]["uid"]
        for write in (
            gated.create(one),
            gated.apply(one),
            gated.apply_status(one),
            gated.delete("ConfigMap", "default", "one", uid),
        ):
            with pytest.raises(KubeError, match="NotLeading"):
                await write
        assert server.requests == []
        assert await gated.get("ConfigMap", "default", "one") == stored
        assert await gated.log("default", "pod", "k6") == ""


async def test_a_write_that_is_under_way_when_the_lease_ends_is_given_up() -> None:
    server = ApiServer()

    async def never(request: web.Request) -> web.StreamResponse | None:
        await asyncio.sleep(3600)
        return None

    server.fault = never
    async with serving(server) as kube:
        began = boot_seconds()
        gated = kube.gated(lambda: began + 0.3 - boot_seconds())
        with pytest.raises(KubeError, match="Unreachable"):
            await gated.delete("ConfigMap", "default", "one", "uid")
        assert 0.3 <= boot_seconds() - began < 1.0


async def test_a_write_may_take_longer_than_a_lease_that_is_renewed() -> None:
    """An admission webhook has 10 s to answer where nobody says otherwise."""
    server = ApiServer()

    async def slow(request: web.Request) -> web.StreamResponse | None:
        await asyncio.sleep(1.0)
        return None

    server.fault = slow
    one = {"kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}}
    two = {"kind": "ConfigMap", "metadata": {"name": "two", "namespace": "default"}}
    async with serving(server) as kube:
        began = boot_seconds()
        # It is renewed again and again, and then no more.
        gated = kube.gated(lambda: 0.2 if boot_seconds() - began < 1.3 else 0.0)
        assert await gated.create(one) is not None
        with pytest.raises(KubeError, match="Unreachable"):
            await gated.create(two)
        assert boot_seconds() - began < 1.9


async def test_what_an_operator_wrote_too_late_is_refused_by_the_api_server() -> None:
    """Frozen in the middle of a write: it had passed the gate, and comes after the takeover."""
    server = ApiServer()
    traffic = Traffic(server)
    late: list[int] = []
    held = asyncio.Event()

    async def hold(who: str, request: web.Request) -> web.StreamResponse | None:
        if who == "first" and request.path.endswith("/status") and not held.is_set():
            held.set()
            body = await request.text()
            await until(lambda: "second" in traffic.writers() and state(server, "a") == "Running")
            assert json.loads(body)["status"]["state"] == "Running"
            late.append((await server.answer(request)).status)
        return None

    async with two_operators(server) as (first, second), working(server) as nodes:
        server.add(long_run("a"))
        await until(lambda: state(server, "a") == "Verifying")
        traffic.also = hold
        await until(held.is_set)
        traffic.cut.add("first")
        await until(lambda: second.leads)
        assert not first.leads
        await until(lambda: state(server, "a") == "Succeeded")
        await until(lambda: late)
        assert late == [409]
        assert sorted(nodes.generators_started) == [f"a-trial-00{n}" for n in (1, 2, 3)]


async def test_an_error_that_nobody_expected_ends_no_election(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As of a token that is half written: the process would live on and never be at work."""
    server = ApiServer()
    broken = [True]
    async with serving(server) as kube:
        get = kube.get

        async def strange(*where: str) -> dict[str, Any] | None:
            if broken[0]:
                raise RuntimeError("nobody expected this")
            return await get(*where)

        monkeypatch.setattr(kube, "get", strange)
        elector = Elector(kube, "laptime-system", "me", TIMES)
        task = asyncio.create_task(elector.acquire())
        await asyncio.sleep(0.5)
        assert not task.done()
        broken[0] = False
        await asyncio.wait_for(task, 5.0)

        async def stranger(_: dict[str, Any]) -> dict[str, Any]:
            raise RuntimeError("nor this")

        monkeypatch.setattr(kube, "apply", stranger)
        # It is held for no longer than with any other error.
        began = boot_seconds()
        await asyncio.wait_for(elector.keep(), 10.0)
        assert boot_seconds() - began < TIMES.lasts


# The work -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["killed", "cut off"])
async def test_in_mid_trial_the_other_one_takes_over_and_nothing_is_lost(how: str) -> None:
    server = ApiServer()
    traffic = Traffic(server)
    async with two_operators(server) as (first, second), working(server) as nodes:
        server.add(long_run("a"))
        await until(lambda: nodes.generators_started)
        began = boot_seconds()
        if how == "killed":
            await first.die()
        else:
            traffic.cut.add("first")
        await until(lambda: second.leads)
        assert boot_seconds() - began < TIMES.lasts + 5
        await until(lambda: state(server, "a") == "Succeeded")
        if how == "cut off":
            assert not first.leads
            # It is reached again, and has nothing more to say.
            traffic.cut.clear()
            await asyncio.sleep(0.5)
            assert not first.leads
        assert traffic.writers() == ["first", "second"]
        assert nodes.generators_started == [f"a-trial-00{n}" for n in (1, 2, 3)]
        assert lease(server)["holderIdentity"] == "second"
        (row,) = server.of("BenchmarkRun")[0]["status"]["results"]
        assert (row["trials"], row["failedTrials"]) == (3, 0)
        stored = stored_in(server.of("ConfigMap"))
        names = {one["metadata"]["name"] for one in stored.objects}
        assert names == {"a-scenario", *(f"a-trial-00{n}" for n in (1, 2, 3))}
        assert stored.files


async def test_one_that_lost_its_lease_can_have_it_again() -> None:
    server = ApiServer()
    traffic = Traffic(server)
    async with two_operators(server) as (first, second), working(server):
        server.add(long_run("a", 1))
        traffic.cut.add("first")
        await until(lambda: second.leads and not first.leads)
        traffic.cut = {"second"}
        await until(lambda: first.leads and not second.leads)
        traffic.cut.clear()
        server.add(long_run("b", 1))
        await until(lambda: state(server, "b") == "Succeeded")
    assert state(server, "a") == "Succeeded"


def said_in(metrics: Metrics, name: str, labels: dict[str, str] | None = None) -> float | None:
    texts = ",".join(f'{key}="{text}"' for key, text in (labels or {}).items())
    return said(metrics).get(f"{name}{{{texts}}}" if labels else name)


async def test_the_metrics_of_a_standby_say_that_it_is_one_and_nothing_of_runs() -> None:
    server = ApiServer()
    traffic = Traffic(server)
    async with two_operators(server) as (first, second):
        server.add(run_manifest("a"))
        server.add(run_manifest("b"))
        sample = partial(said_in, first.metrics)
        of_a = {"namespace": "default", "run": "a"}
        await until(lambda: sample("laptime_run_created_timestamp_seconds", of_a))
        await until(lambda: sample("laptime_runs", {"state": "Queued"}) == 1)
        other = partial(said_in, second.metrics)
        assert other("laptime_leader") == 0
        assert other("laptime_runs", {"state": "Queued"}) == 0
        assert other("laptime_run_created_timestamp_seconds", of_a) is None
        assert other("laptime_last_event_age_seconds") == 0
        # And one that has lost its lease is a standby like any other.
        traffic.cut.add("first")
        await until(lambda: second.leads and not first.leads)
        assert sample("laptime_run_created_timestamp_seconds", of_a) is None
        assert sample("laptime_runs", {"state": "Queued"}) == 0
        await until(lambda: other("laptime_run_created_timestamp_seconds", of_a))


# Processes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
async def test_a_process_that_is_stopped_or_killed_in_mid_trial(how: int, tmp_path: Path) -> None:
    server = ApiServer()
    traffic = Traffic(server)
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(serving(server))
        nodes = await stack.enter_async_context(working(server))
        host = kube._api.configuration.host
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _PROCESS, host),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        try:
            await until(lambda: server.get("Lease", "laptime-system", LEASE))
            second = Operator(host, "second")
            stack.push_async_callback(second.kube.close)
            stack.push_async_callback(second.end)
            server.add(long_run("a", 4))
            await until(lambda: len(nodes.generators_started) == 2)
            # Not in mid write: what becomes of one that is sent too late is another test's.
            nodes.still = True
            await until(lambda: boot_seconds() - traffic.writes[-1][0] > 0.3)
            process.send_signal(how)
            nodes.still = False
            await until(lambda: second.leads)
            taken_over = boot_seconds()
            await until(lambda: state(server, "a") == "Succeeded")
            if how == signal.SIGSTOP:
                process.send_signal(signal.SIGCONT)
                server.add(long_run("b", 1))
                await until(lambda: state(server, "b") == "Succeeded")
            assert traffic.writers() == ["process", "second"]
            assert max(at for at, who, _ in traffic.writes if who == "process") < taken_over
            assert process.returncode is None or how == signal.SIGKILL
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        started = [name for name in nodes.generators_started if name.startswith("a-")]
        assert started == [f"a-trial-00{n}" for n in (1, 2, 3, 4)]


_PROCESS = """
import asyncio, sys
from tests.reconcile.test_leader import Operator

async def main():
    await Operator(sys.argv[1], "process").task

asyncio.run(main())
"""
