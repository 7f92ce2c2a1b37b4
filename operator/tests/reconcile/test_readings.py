"""What is asked of Prometheus about measured trials, how long, and what is said in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from laptime.api.results import Figures, TrialOutcome, TrialReadings, TrialResult
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.usage import Source
from laptime.measure.each_second import TrialSeconds
from laptime.measure.generator import RESULT_PREFIX
from laptime.measure.promql import PrometheusError, Query
from laptime.reconcile import handed_on
from laptime.reconcile.handed_on import HandedOn
from laptime.reconcile.readings import Patience, ReadingsDesk
from tests.measure.prometheus_answers import FakePrometheus, one_series
from tests.measure.samples import document, line, phase
from tests.reconcile.test_decide import spec_of
from tests.reconcile.world import World

QUICK = Patience(settle_seconds=0.01, late_seconds=0.5, again_seconds=0.01, unreachable_seconds=0.1)
PATIENT = replace(QUICK, unreachable_seconds=60.0)
"""For what comes back: a machine that is busy may take long between two questions."""
LENGTH = 10.0
LABELS = {"server": "s0", "trial": "demo-trial-001", "run_uid": "6f1c"}


def result(end: datetime, **more: Any) -> TrialResult:
    fields: dict[str, Any] = {
        "trial": "demo-trial-001",
        "ordinal": 1,
        "server": "s0",
        "load": "closed",
        "repetition": 1,
        "outcome": TrialOutcome.MEASURED,
        "started_at": (end - timedelta(seconds=LENGTH)).isoformat(),
        "finished_at": end.isoformat(),
        **more,
    }
    return TrialResult(**fields)


def samples(end: datetime, *, missing: bool = False) -> FakePrometheus:
    """Answers with a pod of one core, perhaps without the samples of the middle."""
    start = end.timestamp() - LENGTH
    since, until = start - 5.0, start + LENGTH + 5.0
    cpu = one_series(
        "laptime_pod_cpu_seconds_total",
        lambda time: time + 1e9,
        {"pod": "demo-server-s0-1-a", "component": "server", "node": "one", **LABELS},
        start=since,
        end=until,
    )
    if missing:
        cpu["values"] = [one for one in cpu["values"] if not 2 < one[0] - start < 8]
    cpus = one_series("laptime_node_cpus", lambda _: 2.0, {"node": "one"}, start=since, end=until)
    return FakePrometheus({"laptime_pod_cpu_seconds_total": [cpu], "laptime_node_cpus": [cpus]})


async def answer_of(
    query: Query,
    one: TrialResult,
    spec: BenchmarkRunSpec | None = None,
    patience: Patience = QUICK,
) -> TrialReadings:
    """Look until the answer is there, as the reconcile does whenever it is woken."""
    woken = asyncio.Event()
    desk = ReadingsDesk(query, woken.set, HandedOn(), patience)
    run = World(spec or spec_of(1, 1, 1), Random(0)).run
    ready, unread = desk.look(run, [one], set(), {})
    assert not ready
    assert unread == {one.trial}
    await woken.wait()
    ready, unread = desk.look(run, [one], set(), {})
    assert not unread
    return ready[one.trial]


async def test_whole_readings_are_there_as_soon_as_the_samples_are() -> None:
    end = datetime.now(UTC)
    readings = await answer_of(samples(end), result(end))
    assert readings.usage.source is Source.AGENT
    assert readings.usage.complete, readings.usage.gaps
    server = readings.usage.component("server")
    assert server is not None
    assert server.cpu_seconds is not None
    assert abs(server.cpu_seconds - LENGTH) < 0.01


async def test_of_somebody_elses_service_no_readings_are_missed() -> None:
    """Its pods are no pods of the run, so that nothing is read of them, wherever they are."""
    mine = Server.model_validate({"name": "s0", "service": {"name": "shop", "port": 80}})
    spec = spec_of(1, 1, 1).model_copy(update={"servers": [mine]})
    nodes = {"server": ["elsewhere"], "generator": ["one"]}
    readings = await answer_of(samples(end := datetime.now(UTC)), result(end, nodes=nodes), spec)
    assert (readings.usage.complete, readings.usage.gaps) == (True, [])


async def test_what_came_long_after_the_window_is_no_part_of_it() -> None:
    """A request that times out keeps the trial open when the load has long ended."""
    end = datetime.now(UTC)
    figures = Figures(requests=1000, errors=1, window_seconds=4.0, requests_per_second=250.0)
    readings = await answer_of(samples(end), result(end, figures=figures))
    server = readings.usage.component("server")
    assert server is not None
    assert server.cpu_seconds is not None
    assert abs(server.cpu_seconds - 4.0) < 0.01
    assert server.cores_mean is not None
    assert abs(server.cores_mean - 1.0) < 0.01


async def test_samples_that_stay_away_are_asked_for_again_and_then_said_to_be_missing() -> None:
    end = datetime.now(UTC)
    prometheus = samples(end, missing=True)
    readings = await answer_of(prometheus, result(end))
    assert not readings.usage.complete
    assert "without a sample" in " ".join(readings.usage.gaps)
    assert len(prometheus.asked) > 6, "it was asked only once"


async def test_a_generators_clock_that_is_ahead_makes_nobody_wait() -> None:
    end = datetime.now(UTC) + timedelta(minutes=5)
    async with asyncio.timeout(30):
        readings = await answer_of(samples(end, missing=True), result(end))
    assert "without a sample" in " ".join(readings.usage.gaps)


async def test_a_generators_clock_that_is_behind_leaves_samples_as_much_time_as_any() -> None:
    end = datetime.now(UTC) - timedelta(minutes=5)
    late, whole = samples(end, missing=True), samples(end)

    async def on_their_way(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        return await (late if len(late.asked) < 20 else whole)(path, parameters)

    readings = await answer_of(
        on_their_way, result(end), patience=replace(QUICK, late_seconds=30.0)
    )
    assert readings.usage.complete, readings.usage.gaps


async def test_a_prometheus_that_comes_back_is_asked_again() -> None:
    end = datetime.now(UTC)
    answers, failures = samples(end), [0]

    async def starting(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        if failures[0] < 3:
            failures[0] += 1
            raise PrometheusError("connection refused")
        return await answers(path, parameters)

    readings = await answer_of(starting, result(end), patience=PATIENT)
    assert readings.usage.complete


async def test_a_prometheus_that_stays_away_leaves_readings_that_say_so() -> None:
    async def gone(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        raise PrometheusError("connection refused")

    readings = await answer_of(gone, result(datetime.now(UTC)))
    assert readings.usage.source is Source.NOBODY
    assert not readings.usage.complete
    assert readings.usage.gaps == ["nothing was read from Prometheus: connection refused"]


async def test_a_reading_that_broke_does_not_say_that_no_seconds_are_missing() -> None:
    async def broken(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        raise KeyError("data")

    readings = await answer_of(broken, result(datetime.now(UTC)))
    assert readings.usage.gaps == ["reading failed: KeyError('data')"]
    assert readings.seconds_missing == "whether Prometheus has them is not known"


async def test_what_is_stored_or_failed_is_not_asked_for() -> None:
    end = datetime.now(UTC)
    prometheus = samples(end)
    desk = ReadingsDesk(prometheus, lambda: None, HandedOn(), QUICK)
    run = World(spec_of(1, 1, 1), Random(0)).run
    failed = result(end, trial="demo-trial-002", outcome=TrialOutcome.FAILED)
    assert desk.look(run, [result(end), failed], {"demo-trial-001"}, {}) == ({}, frozenset())
    nobody = ReadingsDesk(None, lambda: None, HandedOn())
    assert nobody.look(run, [result(end)], set(), {}) == ({}, frozenset())
    assert prometheus.asked == []


async def test_a_trial_without_a_window_is_answered_without_a_question() -> None:
    one = result(datetime.now(UTC), started_at=None)
    readings = await answer_of(FakePrometheus({}), one)
    assert readings.usage.source is Source.NOBODY
    assert "no window" in readings.usage.gaps[0]


class Storing:
    """A Prometheus that fetches the seconds of trials, and may lose some of what it fetches."""

    def __init__(self, handed_on: HandedOn, *, lose: int = 0) -> None:
        self.handed_on = handed_on
        self.bodies: list[bytes] = []
        self._lose = lose
        self._has = 0

    def scrape(self) -> None:
        _, body = self.handed_on.answer("10.0.0.1", "text/plain")
        if not body:
            return
        self.bodies.append(body)
        if self._lose > 0:
            self._lose -= 1
        else:
            self._has = 2

    async def __call__(self, path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        text = parameters["query"]
        if "laptime_second_" not in text:
            return {"status": "success", "data": {"resultType": "matrix", "result": []}}
        result = [{"metric": {}, "value": [0, str(self._has)]}] if self._has else []
        self.scrape()
        return {"status": "success", "data": {"resultType": "vector", "result": result}}


SECONDS = [{"t": t, "requests": 9, "errors": 0, "latency": [-900, 9]} for t in range(2)]


def printed(seconds: Sequence[Mapping[str, Any]] = SECONDS) -> str:
    measured = phase([1000], seconds=seconds, startedAt=1_700_000_000.0, latencySeconds=1)
    content = {**document(measured)}
    content["phases"] = {"measured": measured}
    return line(content).removeprefix(RESULT_PREFIX)


async def handed_to(
    prometheus: Storing, payload: str, *, fetched_seconds: float = 0.6
) -> TrialReadings:
    woken = asyncio.Event()
    patience = Patience(
        settle_seconds=0.0,
        late_seconds=0.0,
        again_seconds=0.01,
        unreachable_seconds=0.1,
        unfetched_seconds=0.3,
        fetched_seconds=fetched_seconds,
    )
    desk = ReadingsDesk(prometheus, woken.set, prometheus.handed_on, patience)
    run = World(spec_of(1, 1, 1), Random(0)).run
    one, payloads = result(datetime.now(UTC), server="s0"), {"demo-trial-001": payload}
    desk.look(run, [one], set(), payloads)
    await woken.wait()
    ready, _ = desk.look(run, [one], set(), payloads)
    return ready[one.trial]


async def test_prometheus_fetches_the_seconds_of_a_trial_before_its_readings_are_stored() -> None:
    prometheus = Storing(HandedOn())
    readings = await handed_to(prometheus, printed())
    assert readings.seconds_missing is None
    (body,) = prometheus.bodies
    assert body.count(b"laptime_second_requests{") == 2
    assert b'run="demo",trial="demo-trial-001",server="s0",load="closed",repetition="1"' in body
    assert b'position="1",phase="measured",whole="true"} 9 1700000001000\n' in body
    assert prometheus.handed_on.answer("another", "")[1] == body, "the second one of a pair"


async def test_seconds_that_were_lost_on_their_way_are_shown_again_with_the_same_values() -> None:
    prometheus = Storing(HandedOn(), lose=2)
    assert (await handed_to(prometheus, printed())).seconds_missing is None
    assert len(prometheus.bodies) == 3
    assert len(set(prometheus.bodies)) == 1


async def test_seconds_that_are_refused_are_written_out_once_and_shown_again_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As those of an hour ago are without out_of_order_time_window, while the next trial is on."""
    written: list[TrialSeconds] = []
    protobuf = handed_on._protobuf

    def counted(series: TrialSeconds) -> bytes:
        written.append(series)
        return protobuf(series)

    monkeypatch.setattr(handed_on, "_protobuf", counted)
    prometheus = Storing(HandedOn(), lose=10**6)
    assert (await handed_to(prometheus, printed())).seconds_missing is not None
    assert len(written) == 1
    assert 3 <= len(prometheus.bodies) <= 6
    assert len(set(prometheus.bodies)) == 1


async def test_seconds_of_which_some_arrive_each_time_are_shown_again_without_a_pause() -> None:
    class Dripping(Storing):
        def scrape(self) -> None:
            self._has += bool(self.handed_on.answer("10.0.0.1", "text/plain")[1])

    many = [{**SECONDS[0], "t": t} for t in range(12)]
    dripping = Dripping(HandedOn())
    assert (await handed_to(dripping, printed(many), fetched_seconds=60.0)).seconds_missing is None


async def test_a_new_operator_does_not_show_what_prometheus_has() -> None:
    prometheus = Storing(HandedOn())
    await handed_to(prometheus, printed())
    prometheus.handed_on = HandedOn()
    assert (await handed_to(prometheus, printed())).seconds_missing is None
    assert len(prometheus.bodies) == 1


async def test_what_prometheus_lacks_in_the_end_is_said() -> None:
    lost = await handed_to(Storing(HandedOn(), lose=10**6), printed())
    assert lost.seconds_missing == "Prometheus has 0 of 2 seconds"
    nobody = Storing(HandedOn())
    nobody.scrape = lambda: None  # type: ignore[method-assign]
    assert "nobody has fetched" in ((await handed_to(nobody, printed())).seconds_missing or "")
    assert "no seconds" in ((await handed_to(Storing(HandedOn()), "")).seconds_missing or "")


async def test_why_prometheus_does_not_say_what_it_lacks_is_said() -> None:
    class Locked(Storing):
        async def __call__(self, path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
            raise PrometheusError("https://prometheus.example answers 401")

    locked = await handed_to(Locked(HandedOn()), printed())
    why = "nothing was read from Prometheus: https://prometheus.example answers 401"
    assert locked.seconds_missing == why
    assert locked.usage.gaps == [why]
