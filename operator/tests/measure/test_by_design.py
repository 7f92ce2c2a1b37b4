"""What a run and the catalogue say of a trial's requests, and what is named because of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from laptime.api.causes import Cause, LimitedBy
from laptime.api.evidence import TierEvidence
from laptime.api.loads import Load, ThinkTime
from laptime.api.results import Figures, Latency, TrialOutcome, TrialReadings, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.usage import ComponentUsage, NodeUsage, Source, TrialUsage
from laptime.catalog import Request, presets, scenarios
from laptime.measure import watched_result
from laptime.measure.by_design import ByDesign, by_design, think_times

WINDOW = 10.0


def figures(rate: float, mean: float, errors: int = 0) -> Figures:
    """Ten seconds of like answers, the server's time of which is all but 0.2 ms of theirs."""

    def like(seconds: float) -> Latency:
        return Latency(
            min_seconds=0.9 * seconds,
            mean_seconds=seconds,
            p50_seconds=seconds,
            p80_seconds=seconds,
            p90_seconds=1.02 * seconds,
            p99_seconds=1.1 * seconds,
            p999_seconds=1.2 * seconds,
            max_seconds=1.3 * seconds,
        )

    return Figures(
        requests=round(WINDOW * rate) + errors,
        errors=errors,
        window_seconds=WINDOW,
        requests_per_second=rate,
        latency=like(mean + 0.0002),
        server_time=like(mean),
    )


def together(endpoints: Mapping[str, Figures]) -> Figures:
    rate = sum(one.requests_per_second for one in endpoints.values())
    spent = sum(
        one.requests_per_second * one.server_time.mean_seconds
        for one in endpoints.values()
        if one.server_time
    )
    return figures(rate, spent / rate)


def run(
    scenario: str, server: Mapping[str, Any], connections: int, topology: Mapping[str, Any]
) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": scenario,
            "servers": [{"name": "mine", **server}],
            "topology": topology,
            "loads": [
                {"name": "load", "closed": {"connections": connections, "duration": "10s"}},
                {"name": "own", "script": {"configMap": "mine"}},
            ],
        }
    )


def cause(
    scenario: str,
    server: Mapping[str, Any],
    connections: int,
    endpoints: Mapping[str, Figures],
    topology: Mapping[str, Any] | None = None,
    cores: float = 0.2,
) -> LimitedBy:
    """Return what a trial of these figures is limited by, with CPUs that are nearly idle."""
    spec = run(scenario, server, connections, topology or {})
    result = TrialResult(
        trial="demo-trial-001",
        ordinal=1,
        server="mine",
        load="load",
        repetition=1,
        outcome=TrialOutcome.MEASURED,
        figures=together(endpoints),
        endpoints=dict(endpoints),
        generator_share=0.1,
    )
    usage = TrialUsage(
        source=Source.AGENT,
        resolution_seconds=1.0,
        complete=True,
        components=[
            ComponentUsage(component="server", pods=1, cores_mean=cores, cores_peak=cores),
            ComponentUsage(component="generator", pods=1, cores_mean=0.1, cores_peak=0.1),
        ],
        nodes=[NodeUsage(node="worker-1", cpus=8, busy_share=0.1)],
    )
    readings = TrialReadings(trial="demo-trial-001", usage=usage, tiers=TierEvidence())
    judged = watched_result(result, readings, spec, scenarios()[scenario].requests)
    assert judged.limited_by is not None
    return judged.limited_by


SLEEP = {"preset": "fastapi-sleep"}
FLASK = {"preset": "flask"}
GO = {"preset": "go-nethttp"}
ASKED = {"upstream": {"latency": "50ms"}}


# ---- servers with a number of threads, and servers without


@pytest.mark.parametrize("threads", [1, 4])
def test_a_sync_endpoint_is_limited_by_the_40_threads_of_one_worker(threads: int) -> None:
    # 100 connections, each of which gets one of 40 threads every 2.5 s.
    found = cause("sleep", {**SLEEP, "threads": threads}, 100, {"sync-1s": figures(40, 2.499)})
    assert found.cause is Cause.SERVER_CONCURRENCY
    assert "100.0 requests were at the server, which works on 40 at once" in found.evidence


def test_four_workers_have_threads_enough() -> None:
    found = cause("sleep", {**SLEEP, "workers": 4}, 100, {"sync-1s": figures(99.7, 1.003)})
    assert found.cause is Cause.OFFERED_LOAD
    assert "(1,000 ms are what the scenario waits)" in found.evidence


def test_an_async_endpoint_of_the_same_server_is_not_limited_by_them() -> None:
    found = cause("sleep", SLEEP, 100, {"async-1s": figures(99.7, 1.003)})
    assert found.cause is Cause.OFFERED_LOAD
    assert "100 connections with one request each" in found.evidence


def test_a_busy_core_behind_full_threads_is_the_cause() -> None:
    found = cause("sleep", SLEEP, 100, {"sync-1s": figures(40, 2.499)}, cores=0.97)
    assert found.cause is Cause.SERVER_CPU
    assert found.also == [Cause.SERVER_CONCURRENCY]


@pytest.mark.parametrize(
    ("server", "connections", "rate", "mean", "named"),
    [
        (FLASK, 64, 780, 0.082, Cause.SERVER_CONCURRENCY),
        # As many threads as connections: all are taken, and nobody waits for one.
        (FLASK, 40, 780, 0.0512, Cause.UPSTREAM),
        ({**FLASK, "threads": 8}, 16, 157, 0.1018, Cause.SERVER_CONCURRENCY),
        ({**FLASK, "workers": 2}, 64, 1230, 0.052, Cause.UPSTREAM),
        (GO, 64, 1250, 0.0511, Cause.UPSTREAM),
    ],
)
def test_threads_that_wait_for_the_upstream(
    server: dict[str, Any], connections: int, rate: float, mean: float, named: Cause
) -> None:
    found = cause("upstream", server, connections, {"users": figures(rate, mean)}, ASKED)
    assert found.cause is named, found


def test_nothing_is_known_of_threads_where_endpoints_differ_in_them() -> None:
    mixed = {"sync-1s": figures(20, 2.5), "async-1s": figures(20, 1.0)}
    assert known("sleep", SLEEP, mixed).requests_at_once is None


def test_an_image_of_ones_own_may_use_its_threads_for_anything() -> None:
    own = {"image": "registry.example/mine:1", "threads": 8}
    assert known("sleep", own, {"sync-1s": figures(8, 2.0)}).requests_at_once is None


def test_a_query_in_the_event_loop_is_one_request_at_once() -> None:
    sync = {"preset": "starlette", "env": [{"name": "DATABASE_ACCESS", "value": "sync"}]}
    posts = {"posts": figures(1000, 0.05)}
    assert known("posts", sync, posts).requests_at_once == 1
    assert known("posts", {"preset": "starlette"}, posts).requests_at_once is None
    assert known("hello", sync, {"hi": figures(1000, 0.05)}).requests_at_once is None


# ---- the upstream


def test_the_upstream_is_named_where_most_of_the_time_is_its_own() -> None:
    found = cause("upstream", GO, 8, {"users": figures(156, 0.0512)}, ASKED)
    assert found.cause is Cause.UPSTREAM
    assert "takes 50 ms for a request, 98% of the time that the server takes" in found.evidence


@pytest.mark.parametrize("endpoint", ["hi", "posts"])
def test_the_upstream_is_not_named_for_requests_that_do_not_ask_it(endpoint: str) -> None:
    # As long as if they had asked it.
    found = cause("apibench", GO, 8, {endpoint: figures(156, 0.0512)}, ASKED)
    assert found.cause is Cause.UNKNOWN


def test_of_several_endpoints_only_those_that_ask_it_count() -> None:
    mixed = {"hi": figures(150, 0.0006), "users": figures(150, 0.0512)}
    assert known("apibench", GO, mixed, ASKED).upstream_seconds == pytest.approx(0.025)
    assert cause("apibench", GO, 8, mixed, ASKED).cause is Cause.UPSTREAM
    slow = {"hi": figures(79, 0.05), "users": figures(79, 0.0512)}
    assert cause("apibench", GO, 8, slow, ASKED).cause is Cause.UNKNOWN


def test_only_right_answers_have_asked_it() -> None:
    endpoints = {"hi": figures(100, 0.001), "users": figures(0, 0.001, errors=500)}
    assert known("apibench", GO, endpoints, ASKED).upstream_seconds == 0.0


def test_a_run_without_an_upstream_waits_for_none() -> None:
    assert known("upstream", GO, {"users": figures(100, 0.01)}) == ByDesign(one_kind=True)


def test_nothing_is_known_of_a_script_of_ones_own() -> None:
    spec = run("upstream", FLASK, 8, ASKED)
    endpoints = {"users": figures(156, 0.0512)}
    requests = scenarios()["upstream"].requests
    own = by_design(spec.servers[0], spec.topology, spec.load("own"), endpoints, requests)
    assert own == ByDesign()


def test_requests_are_of_one_kind_where_one_endpoint_is_asked() -> None:
    assert known("apibench", GO, {"hi": figures(100, 0.01)}).one_kind
    assert not known("apibench", GO, dict.fromkeys(("hi", "posts"), figures(100, 0.01))).one_kind
    # Of what was never answered there are no times.
    wrong = {"hi": figures(100, 0.01), "posts": figures(0, 0.01, errors=9)}
    assert known("apibench", GO, wrong).one_kind


@pytest.mark.parametrize(
    ("scenario", "server", "endpoints", "only"),
    [
        ("recipes", {"preset": "axum-bb8", "workers": 2}, ["recipe"], True),
        ("recipes", {"preset": "starlette-asyncpg"}, ["recipe"], True),
        ("recipes", {"preset": "starlette-asyncpg", "workers": 2}, ["recipe"], False),
        ("recipes", {"preset": "django-psycopg"}, ["recipe"], False),
        ("users", {"image": "example/mine:1"}, ["list"], False),
        ("users", {"preset": "fastapi-sync"}, ["list"], False),
        ("tasks", {"preset": "axum-diesel"}, ["read"], True),
        ("tasks", {"preset": "axum-diesel"}, ["read", "hello"], False),
        ("apibench", GO, ["users"], False),
    ],
)
def test_a_request_waits_for_nothing_but_the_database(
    scenario: str, server: Mapping[str, Any], endpoints: Sequence[str], only: bool
) -> None:
    topology = ASKED if scenario == "apibench" else {}
    found = known(scenario, server, {name: figures(100, 0.01) for name in endpoints}, topology)
    assert found.only_database is only


def known(
    scenario: str,
    server: Mapping[str, Any],
    endpoints: Mapping[str, Figures],
    topology: Mapping[str, Any] | None = None,
) -> ByDesign:
    spec = run(scenario, server, 8, topology or {})
    requests = scenarios()[scenario].requests
    return by_design(spec.servers[0], spec.topology, spec.loads[0], endpoints, requests)


# ---- the catalogue


def test_a_number_of_requests_at_once_is_about_endpoints_of_the_preset() -> None:
    for preset in presets().values():
        names = {
            request.name for name in preset.scenarios for request in scenarios()[name].requests
        }
        for one in preset.requests_at_once:
            assert one.limit == "threads" or one.limit >= 1
            assert set(one.endpoints or ()) <= names, preset.name


def test_a_scenario_needs_an_upstream_exactly_where_a_request_asks_it() -> None:
    for scenario in scenarios().values():
        asked = any(request.asks_upstream for request in scenario.requests)
        assert scenario.needs_upstream == asked, scenario.name


def test_a_request_waits_as_long_as_its_check_demands() -> None:
    for scenario in scenarios().values():
        demanded = {check.path: check.min_seconds for check in scenario.checks}
        for request in scenario.requests:
            assert request.wait_seconds == demanded[request.path], request.name


def test_think_times_are_those_of_the_load_or_of_each_request() -> None:
    quick = Request.model_validate({"name": "quick", "method": "GET", "path": "/quick"})
    slow = quick.model_copy(
        update={"name": "slow", "think_time": ThinkTime.model_validate({"min": "1s", "max": "3s"})}
    )
    figures = {
        name: Figures(requests=count, errors=0, window_seconds=1.0, requests_per_second=1.0)
        for name, count in (("quick", 30), ("slow", 10))
    }
    shape = {"name": "l", "closed": {"connections": 1, "duration": "1s"}}
    load = Load.model_validate(shape)
    assert think_times(load, figures, [quick, slow]) == (0.5, 3.0)
    everywhere = Load.model_validate({**shape, "thinkTime": {"min": "200ms"}})
    assert think_times(everywhere, figures, []) == (0.2, 0.2)
    assert think_times(load, figures, []) == (0.0, 0.0)
