"""Who waited for whom in a trial, from what the tiers exported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from laptime.api.evidence import TierEvidence
from laptime.measure.evidence import evidence_query, tier_evidence
from laptime.measure.promql import TrialWindow
from laptime.measure.readings import trial_readings
from laptime.measure.timeseries import Window
from tests.measure.prometheus_answers import (
    LENGTH,
    START,
    UID,
    WITHOUT_UID,
    FakePrometheus,
    one_series,
)

WANTED = TrialWindow("default", "demo", UID, "demo-trial-001", Window(START, START + LENGTH))
POOL = {"database": "laptime", "component": "pgbouncer"}


def constant(name: str, value: float, **labels: str) -> dict[str, Any]:
    return one_series(name, lambda _: value, labels)


def growing(name: str, rate: float, **labels: str) -> dict[str, Any]:
    return one_series(name, lambda time: 50 + rate * time, labels)


def connections(count: float, state: str, *wait: str, **options: Any) -> dict[str, Any]:
    labels = {"state": state, **dict(zip(("wait_event_type", "wait_event"), wait, strict=False))}
    return one_series("laptime_postgres_connections", lambda _: count, labels, **options)


async def said(query: FakePrometheus, wanted: TrialWindow, server: str, pool: str) -> TierEvidence:
    """Return what tiers said of which nothing is missing."""
    found, missing = await tier_evidence(query, wanted, server, pool)
    assert missing == []
    return found


async def test_a_pool_that_is_too_small() -> None:
    series = [
        constant("laptime_pgbouncer_servers_active", 2, **POOL),
        one_series("laptime_pgbouncer_clients_waiting", lambda t: 8 if 0 <= t < 5 else 0, POOL),
        constant("laptime_pgbouncer_pool_size", 2, **POOL),
        growing("laptime_pgbouncer_wait_seconds_total", 4.0, **POOL),
        growing("laptime_pgbouncer_queries_total", 1000.0, **POOL),
    ]
    pool = (await said(FakePrometheus({"pgbouncer": series}), WANTED, "axum", "laptime")).pool
    assert pool is not None
    assert (pool.pool_size, pool.active_mean, pool.active_max) == (2, 2.0, 2.0)
    assert pool.waiting_mean == pytest.approx(4.0)
    assert pool.waiting_max == 8.0
    assert pool.wait_seconds == pytest.approx(40.0)
    assert pool.queries == pytest.approx(10_000.0)


async def test_only_the_pool_of_the_trials_server_counts() -> None:
    # That of the run holds connections from trials before, and clients that nobody serves.
    own = {**POOL, "database": "laptime_40_transaction"}
    series = [
        constant(f"laptime_pgbouncer_{name}", value, **labels)
        for labels, values in ((POOL, (1, 9, 25)), (own, (40, 3, 40)))
        for name, value in zip(
            ("servers_active", "clients_waiting", "pool_size"), values, strict=True
        )
    ]
    series += [growing("laptime_pgbouncer_queries_total", 7.0, **POOL)]
    series += [growing("laptime_pgbouncer_queries_total", 100.0, **own)]
    answers = FakePrometheus({"pgbouncer": series})
    pool = (await said(answers, WANTED, "axum", own["database"])).pool
    assert pool is not None
    assert (pool.pool_size, pool.active_mean, pool.waiting_mean) == (40, 40.0, 3.0)
    assert pool.queries == pytest.approx(1000.0)
    shared = (await said(answers, WANTED, "axum", "laptime")).pool
    assert shared is not None
    assert (shared.pool_size, shared.active_mean, shared.waiting_mean) == (25, 1.0, 9.0)


async def test_a_tier_that_two_jobs_scrape_counts_once() -> None:
    series = [
        one
        for job in ("exporters", "pods")
        for one in (
            constant("laptime_pgbouncer_servers_active", 2, job=job, **POOL),
            constant("laptime_pgbouncer_clients_waiting", 8, job=job, **POOL),
            growing("laptime_pgbouncer_queries_total", 1000.0, job=job, **POOL),
            connections(3, "active"),
            growing("laptime_postgres_statements_total", 5000.0, job=job),
            growing("laptime_postgres_statement_seconds_total", 2.5, job=job),
        )
    ]
    found = await said(FakePrometheus({"pgbouncer": series}), WANTED, "axum", "laptime")
    assert found.pool is not None
    assert found.database is not None
    assert found.pool.queries == pytest.approx(10_000.0)
    assert found.database.statements == pytest.approx(50_000.0)
    assert found.database.statement_seconds == pytest.approx(25.0)


async def test_only_the_backend_of_the_trials_server_counts() -> None:
    series = [
        constant("haproxy_backend_current_queue", queue, proxy=f"server-{name}")
        for name, queue in (("axum", 15), ("fastapi", 99))
    ]
    series += [constant("haproxy_backend_current_sessions", 25, proxy="server-axum")]
    series += [constant("haproxy_process_idle_time_percent", 60)]
    proxy = (await said(FakePrometheus({"haproxy": series}), WANTED, "axum", "laptime")).proxy
    assert proxy is not None
    assert (proxy.queue_mean, proxy.queue_max) == (15.0, 15.0)
    # As HAProxy has it, all 15 that wait are among the 25 sessions.
    assert (proxy.sessions_mean, proxy.sessions_max) == (10.0, 10.0)
    assert proxy.idle_share == pytest.approx(0.6)
    other = await said(FakePrometheus({"haproxy": series}), WANTED, "none", "laptime")
    assert other.proxy is None


async def test_what_connections_wait_for() -> None:
    series = [
        connections(3, "active"),
        # Only half of the time somebody waits: no sample is no connection.
        connections(4, "active", "Lock", "tuple", end=START + 5.0),
        connections(7, "idle", "Client", "ClientRead"),
        connections(2, "idle in transaction", "Client", "ClientRead"),
        connections(1, "idle in transaction (aborted)", "Client", "ClientRead", end=START + 5.0),
        constant("laptime_postgres_max_connections", 100),
        growing("laptime_postgres_statements_total", 5000.0),
        growing("laptime_postgres_statement_seconds_total", 2.5),
    ]
    database = (
        await said(FakePrometheus({"postgres": series}), WANTED, "axum", "laptime")
    ).database
    assert database is not None
    assert database.max_connections == 100
    assert database.connections_max == 17.0
    assert database.on_cpu_mean == pytest.approx(3.0)
    assert database.active_mean == pytest.approx(5.0)
    assert database.waits == {"Lock:tuple": pytest.approx(2.0)}
    assert database.idle_in_transaction_mean == pytest.approx(2.5)
    assert database.statements == pytest.approx(50_000.0)
    assert database.statement_seconds == pytest.approx(25.0)


async def test_a_scrape_at_which_nobody_is_connected_counts_in_the_means() -> None:
    """Who connects for each request is often not there: Postgres tells its limit all the same."""
    limit = constant("laptime_postgres_max_connections", 100)
    waited = connections(2, "active", "Lock", "tuple", end=START + 2.5)
    database = (
        await said(FakePrometheus({"postgres": [limit, waited]}), WANTED, "axum", "l")
    ).database
    assert database is not None
    assert database.active_mean == pytest.approx(0.6)
    assert database.waits == {"Lock:tuple": pytest.approx(0.6)}
    database = (await said(FakePrometheus({"postgres": [limit]}), WANTED, "axum", "l")).database
    assert database is not None
    assert (database.connections_max, database.active_mean) == (0.0, 0.0)


async def test_tiers_that_are_not_there() -> None:
    evidence = await said(FakePrometheus({}), WANTED, "axum", "laptime")
    assert (evidence.proxy, evidence.pool, evidence.database) == (None, None, None)


def scrapes(tier: str, answered: Callable[[float], bool], **options: Any) -> list[dict[str, Any]]:
    """Return what a tier with three busy connections says at the scrapes that it answers."""
    up = one_series(f"laptime_{tier}_up", lambda t: float(answered(t)), {}, **options)
    busy = (
        {
            "laptime_pgbouncer_servers_active": POOL,
            "laptime_pgbouncer_clients_waiting": POOL,
        }
        if tier == "pgbouncer"
        else {"laptime_postgres_connections": {"state": "active"}}
    )
    there = [one_series(name, lambda _: 3.0, labels, **options) for name, labels in busy.items()]
    for one in there:
        one["values"] = [pair for pair in one["values"] if answered(pair[0] - START)]
    return [up, *there]


@pytest.mark.parametrize(
    ("answers", "step", "missing"),
    [
        (lambda _: True, 1.0, []),
        (lambda t: not 2 < t < 4, 1.0, []),
        # A Postgres that its CPU limit holds back: it answers when it has nothing to do.
        (lambda t: 2 < t < 4, 1.0, ["answered 2 of 10 scrapes"]),
        (lambda t: not 2 < t < 5, 1.0, ["answered 7 of 10 scrapes"]),
        (lambda _: False, 1.0, ["answered 0 of 10 scrapes"]),
        # A Prometheus of one's own that scrapes seldom.
        (lambda _: True, 2.0, []),
        (lambda _: True, 4.0, ["was scraped 2 times in 10.0 s"]),
        (lambda _: True, 10.0, ["was scraped once in 10.0 s"]),
    ],
)
@pytest.mark.parametrize(("tier", "title"), [("postgres", "Postgres"), ("pgbouncer", "PgBouncer")])
async def test_of_a_tier_that_answers_seldom_nothing_is_said_but_that(
    tier: str, title: str, answers: Callable[[float], bool], step: float, missing: list[str]
) -> None:
    prometheus = FakePrometheus({"laptime_": scrapes(tier, answers, step=step)})
    found, gaps = await tier_evidence(prometheus, WANTED, "axum", "laptime")
    assert gaps == [f"{title} {why}" for why in missing]
    evidence = found.pool if tier == "pgbouncer" else found.database
    assert (evidence is None) == bool(missing)
    assert evidence is None or evidence.active_mean == 3.0


@pytest.mark.parametrize(
    ("apart", "seconds", "tells"),
    [
        (3.0, 8.5, True),
        (3.0, 10.0, True),
        (3.0, 14.0, True),
        (3.5, 10.0, False),
        (5.0, 20.0, False),
        (5.0, 30.0, True),
    ],
)
async def test_where_scrapes_happen_to_fall_does_not_decide(
    apart: float, seconds: float, tells: bool
) -> None:
    series = scrapes("postgres", lambda _: True, step=apart)
    for late in range(10):
        begin = START - apart * late / 10
        wanted = replace(WANTED, window=Window(begin, begin + seconds))
        # No scrape is made at the very moment.
        times = [START + apart * n + 0.01 * (n % 3) for n in range(-10, 20)]
        asked = [time for time in times if begin - 5 <= time <= begin + seconds + 5]
        for one in series:
            one["values"] = [[time, one["values"][0][1]] for time in asked]
        found, gaps = await tier_evidence(
            FakePrometheus({"postgres": series}), wanted, "axum", "laptime"
        )
        assert (found.database is not None) is (not gaps) is tells


async def test_scrapes_of_one_part_of_a_window_tell_nothing_however_close_they_are() -> None:
    series = scrapes("postgres", lambda _: True, without=(2.0, 30.0))
    found, gaps = await tier_evidence(FakePrometheus({"postgres": series}), WANTED, "axum", "l")
    assert (found.database, gaps) == (None, ["Postgres was scraped 2 times in 10.0 s"])


async def test_a_haproxy_that_is_scraped_once_says_nothing() -> None:
    labels = {"proxy": "server-axum"}
    series = [
        one_series(f"haproxy_backend_current_{what}", lambda _: 3.0, labels, step=9)
        for what in ("queue", "sessions")
    ]
    found, gaps = await tier_evidence(FakePrometheus({"haproxy": series}), WANTED, "axum", "l")
    assert (found.proxy, gaps) == (None, ["HAProxy was scraped once in 10.0 s"])


async def test_a_short_window_needs_no_more_scrapes_than_fit_into_it() -> None:
    short = replace(WANTED, window=Window(START, START + 1.5))
    series = scrapes("postgres", lambda _: True)
    found = await said(FakePrometheus({"postgres": series}), short, "axum", "laptime")
    assert found.database is not None


async def test_what_a_tier_did_not_answer_makes_the_readings_incomplete() -> None:
    prometheus = FakePrometheus({"laptime_postgres_up": scrapes("postgres", lambda t: t > 8)})
    readings = await trial_readings(prometheus, WANTED, "axum", "laptime", {})
    assert not readings.usage.complete
    assert readings.usage.gaps[-1] == "Postgres answered 2 of 10 scrapes"
    assert readings.tiers.database is None


async def test_what_a_pod_says_that_only_has_the_name_of_the_run_does_not_count() -> None:
    """It could name a cause, hide a tier, or make a counter go back that a guard rests on."""
    other = {"run_uid": "another"}
    series = [
        *scrapes("postgres", lambda _: True),
        growing("laptime_postgres_statements_total", 5000.0),
        constant("laptime_postgres_up", 0.0, **other),
        growing("laptime_postgres_statements_total", 1.0, **other),
        constant("laptime_pgbouncer_servers_active", 1, **POOL, **other),
        constant("laptime_pgbouncer_clients_waiting", 500, **POOL, **other),
    ]
    found = await said(FakePrometheus({"postgres": series}), WANTED, "axum", "laptime")
    assert found.database is not None
    assert found.database.statements == pytest.approx(50_000.0)
    assert found.pool is None


async def test_where_nobody_says_of_which_run_a_tier_is_that_is_said() -> None:
    """A Prometheus of one's own whose scrape configuration is that of an older version."""
    series = [constant("laptime_pgbouncer_servers_active", 2, **POOL, run_uid="")]
    series += [constant("laptime_pgbouncer_clients_waiting", 8, **POOL, run_uid="")]
    prometheus = FakePrometheus({"laptime_postgres_up": series})
    readings = await trial_readings(prometheus, WANTED, "axum", "laptime", {})
    assert not readings.usage.complete
    assert readings.usage.gaps[-1] == WITHOUT_UID
    assert readings.tiers.pool is None


async def test_one_sample_without_the_uid_is_enough_for_it_to_be_said() -> None:
    labels = {**POOL, "run_uid": ""}
    series = [
        one_series(f"laptime_pgbouncer_{name}", lambda _: 2.0, labels, step=15.0, phase=10.0)
        for name in ("servers_active", "clients_waiting")
    ]
    assert [len(one["values"]) for one in series] == [1, 1]
    found, gaps = await tier_evidence(FakePrometheus({"pgbouncer": series}), WANTED, "axum", "l")
    assert (found.pool, gaps) == (None, [WITHOUT_UID])


async def test_what_does_not_say_which_pod_it_is_of_is_not_taken_for_one_of_the_run() -> None:
    ours = growing("laptime_postgres_statements_total", 5000.0)
    other = growing("laptime_postgres_statements_total", 1.0, run_uid="")
    series = [*scrapes("postgres", lambda _: True), ours, other]
    found, gaps = await tier_evidence(FakePrometheus({"postgres": series}), WANTED, "axum", "l")
    assert gaps == [WITHOUT_UID]
    assert found.database is not None
    assert found.database.statements == pytest.approx(50_000.0)


async def test_what_a_pod_of_the_run_says_in_place_of_a_tier_does_not_count() -> None:
    """Only of servers and tiers a second pod is looked for."""
    other = {"component": "upstream"}
    series = [
        *scrapes("postgres", lambda _: True),
        growing("laptime_postgres_statements_total", 5000.0),
        constant("laptime_postgres_up", 0.0, **other),
        growing("laptime_postgres_statements_total", 1.0, **other),
        constant("laptime_pgbouncer_servers_active", 1, **{**POOL, **other}),
        constant("laptime_pgbouncer_clients_waiting", 500, **{**POOL, **other}),
        constant("haproxy_backend_current_queue", 500, proxy="server-axum", **other),
        constant("haproxy_backend_current_sessions", 500, proxy="server-axum", **other),
    ]
    found = await said(FakePrometheus({"postgres": series}), WANTED, "axum", "laptime")
    assert found.database is not None
    assert found.database.statements == pytest.approx(50_000.0)
    assert (found.pool, found.proxy) == (None, None)


ON_N1 = {"namespace": "default", "pod": "demo-postgres-1-b", "node": "n1"}


async def test_a_counter_that_is_not_known_of_the_whole_window_is_not_guessed() -> None:
    """Of a load that changes the rest says little, and a guard lets a trial fail by it."""

    def counted(uid: str, **options: Any) -> dict[str, Any]:
        # Half as many in the second half.
        return one_series(
            "laptime_postgres_statements_total",
            lambda t: 1000 * min(t, 5.0) + 500 * max(0.0, t - 5.0),
            {**ON_N1, "run_uid": uid},
            **options,
        )

    late = counted(UID, start=START + 3.0)
    up = scrapes("postgres", lambda _: True)
    found = await said(FakePrometheus({"postgres": [*up, late]}), WANTED, "axum", "laptime")
    assert found.database is not None
    assert found.database.statements is None
    # Who is asked each three seconds says it as well as he can.
    seldom = counted(UID, start=START + 1.5, step=3.0)
    found = await said(FakePrometheus({"postgres": [*up, seldom]}), WANTED, "axum", "laptime")
    assert found.database is not None
    assert found.database.statements is not None
    # With what was said of the same pod before its uid was.
    before = counted("", end=START + 3.4)
    series = [*up, late, before]
    found = await said(FakePrometheus({"postgres": series}), WANTED, "axum", "laptime")
    assert found.database is not None
    assert found.database.statements == pytest.approx(7500.0)


def test_the_query_is_about_this_run() -> None:
    assert 'namespace="default",run="demo"}' in evidence_query(WANTED)
