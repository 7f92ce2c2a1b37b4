"""What HAProxy, PgBouncer and Postgres said of the window of one trial: who waited for whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from statistics import fmean

from laptime.api.evidence import DatabaseEvidence, PoolEvidence, ProxyEvidence, TierEvidence
from laptime.measure.promql import (
    AGENT_MARGIN_SECONDS,
    Query,
    TrialWindow,
    of_run,
    query_samples,
    selector,
)
from laptime.measure.timeseries import MISSING_SHARE, Series, Window, increase, unseen_ends

Labels = Mapping[str, str]

ANSWERED_SHARE = 0.8
"""Of the scrapes: who answers fewer answers in idle moments, and tells of these alone."""
FEWEST_SCRAPES = 5
"""Scrapes so far apart that fewer fit into the window make a mean that is chance."""
LONGEST_APART_SECONDS = 3.0
"""Not so where they come every few seconds and the window is short."""

_UP = {"PgBouncer": "laptime_pgbouncer_up", "Postgres": "laptime_postgres_up"}
_METRICS = (
    *_UP.values(),
    "haproxy_backend_current_queue",
    "haproxy_backend_current_sessions",
    "haproxy_process_idle_time_percent",
    "laptime_pgbouncer_clients_waiting",
    "laptime_pgbouncer_pool_size",
    "laptime_pgbouncer_servers_active",
    "laptime_pgbouncer_wait_seconds_total",
    "laptime_pgbouncer_queries_total",
    "laptime_postgres_connections",
    "laptime_postgres_max_connections",
    "laptime_postgres_statements_total",
    "laptime_postgres_statement_seconds_total",
)


async def tier_evidence(
    query: Query, wanted: TrialWindow, server: str, pool: str
) -> tuple[TierEvidence, list[str]]:
    """Return what the tiers of a run said in the window of a trial, and what is missing, in words.

    `pool` is the name in PgBouncer of the pool of the `server`. Of a tier that answered too seldom
    there is nothing.

    Raises:
        PrometheusError: Prometheus refused the query; whatever `query` raises is passed on.
    """
    found = await query_samples(query, evidence_query(wanted), wanted.window)
    ours, gaps = of_run(found, wanted)
    by_metric: dict[str, list[tuple[Labels, Series]]] = defaultdict(list)
    for labels, series in filter(_of_its_tier, ours):
        by_metric[labels["__name__"]].append((labels, series))
    window = wanted.window
    asked = {tier: _asked(by_metric.get(up, [])) for tier, up in _UP.items()}
    # Who asks HAProxy itself has an answer or no sample.
    sessions = by_metric.get("haproxy_backend_current_sessions", [])
    asked["HAProxy"] = {time: True for _, one in sessions for time in one.times}
    seldom = {tier: why for tier, one in asked.items() if (why := _too_few(tier, one, window))}
    evidence = TierEvidence(
        proxy=None if "HAProxy" in seldom else _proxy(by_metric, window, f"server-{server}"),
        pool=None if "PgBouncer" in seldom else _pool(by_metric, window, pool),
        database=None if "Postgres" in seldom else _database(by_metric, window),
    )
    return evidence, gaps + sorted(seldom.values())


def evidence_query(wanted: TrialWindow) -> str:
    """Return the PromQL selector of all samples that the tiers of a run exported."""
    labels = {
        "__name__": ("=~", "|".join(_METRICS)),
        "namespace": ("=", wanted.namespace),
        "run": ("=", wanted.run),
    }
    return selector(labels)


_Found = Mapping[str, list[tuple[Labels, Series]]]


def _of_its_tier(one: tuple[Labels, Series]) -> bool:
    """Return whether a pod of that tier says it: another pod of the run can say anything."""
    labels, _ = one
    tier = labels["__name__"].removeprefix("laptime_").partition("_")[0]
    return labels.get("component") == tier


def _asked(up: Iterable[tuple[Labels, Series]]) -> dict[float, bool]:
    """Return when a tier was asked, and whether it answered."""
    return {
        time: value > 0
        for _, series in up
        for time, value in zip(series.times, series.values, strict=True)
    }


def _too_few(tier: str, asked: Mapping[float, bool], window: Window) -> str | None:
    """Return why a tier's answers do not tell what it did all the time; None: they do."""
    within = [answers for time, answers in asked.items() if window.start <= time <= window.end]
    answered = sum(within)
    if answered < ANSWERED_SHARE * len(within):
        return f"{tier} answered {answered} of {len(within)} scrapes"
    longest = max(LONGEST_APART_SECONDS, window.seconds / FEWEST_SCRAPES)
    if within and _apart_seconds(asked, window) > longest:
        times = "once" if answered == 1 else f"{answered} times"
        return f"{tier} was scraped {times} in {window.seconds:.1f} s"
    return None


def _apart_seconds(asked: Collection[float], window: Window) -> float:
    """Return how far scrapes are apart in the mean, to a tenth: none is made at the very moment.

    From the last one before a window to the first one after it: how many fall into it is chance.
    """
    first = window.start - AGENT_MARGIN_SECONDS
    first = max((time for time in asked if time < window.start), default=first)
    last = window.end + AGENT_MARGIN_SECONDS
    last = min((time for time in asked if time > window.end), default=last)
    return round((last - first) / (1 + sum(first < time < last for time in asked)), 1)


def _proxy(found: _Found, window: Window, backend: str) -> ProxyEvidence | None:
    def of_backend(name: str) -> list[float]:
        return _values(
            [one for one in found.get(name, []) if one[0].get("proxy") == backend], window
        )

    sessions = of_backend("haproxy_backend_current_sessions")
    queue = of_backend("haproxy_backend_current_queue")
    if not sessions or not queue:
        return None
    # HAProxy counts what waits in its queue as sessions of the backend too.
    at_server = [max(0.0, one - waiting) for one, waiting in zip(sessions, queue, strict=False)]
    idle = _values(found.get("haproxy_process_idle_time_percent", []), window)
    return ProxyEvidence(
        queue_mean=fmean(queue),
        queue_max=max(queue),
        sessions_mean=fmean(at_server),
        sessions_max=max(at_server),
        idle_share=fmean(idle) / 100 if idle else None,
    )


def _pool(found: _Found, window: Window, name: str) -> PoolEvidence | None:
    found = {
        metric: [one for one in series if one[0].get("database") == name]
        for metric, series in found.items()
        if metric.startswith("laptime_pgbouncer_")
    }
    active = _values(found.get("laptime_pgbouncer_servers_active", []), window)
    waiting = _values(found.get("laptime_pgbouncer_clients_waiting", []), window)
    if not active or not waiting:
        return None
    size = _values(found.get("laptime_pgbouncer_pool_size", []), window)
    return PoolEvidence(
        pool_size=round(max(size)) if size else None,
        active_mean=fmean(active),
        active_max=max(active),
        waiting_mean=fmean(waiting),
        waiting_max=max(waiting),
        wait_seconds=_grown(found, "laptime_pgbouncer_wait_seconds_total", window),
        queries=_grown(found, "laptime_pgbouncer_queries_total", window),
    )


def _database(found: _Found, window: Window) -> DatabaseEvidence | None:
    connections = found.get("laptime_postgres_connections", [])
    limits = found.get("laptime_postgres_max_connections", [])
    # A state that nobody is in has no sample, and where nobody is connected none has one: the means
    # are over the scrapes, not over the samples.
    moments = {time for _, series in (*connections, *limits) for time in _times(series, window)}
    if not moments:
        return None
    totals: dict[float, float] = defaultdict(float)
    active = on_cpu = idle_in_transaction = 0.0
    waits: dict[str, float] = defaultdict(float)
    for labels, series in connections:
        values = series.within(window.start, window.end)
        for time, value in zip(_times(series, window), values, strict=True):
            totals[time] += value
        state = labels.get("state", "")
        if state.startswith("idle in transaction"):
            idle_in_transaction += sum(values)
        if state != "active":
            continue
        active += sum(values)
        if "wait_event_type" not in labels:
            on_cpu += sum(values)
        else:
            name = f"{labels['wait_event_type']}:{labels.get('wait_event', '')}"
            waits[name] += sum(values)
    limit = _values(limits, window)
    return DatabaseEvidence(
        max_connections=round(max(limit)) if limit else None,
        connections_max=max(totals.values(), default=0.0),
        active_mean=active / len(moments),
        on_cpu_mean=on_cpu / len(moments),
        idle_in_transaction_mean=idle_in_transaction / len(moments),
        waits={name: value / len(moments) for name, value in sorted(waits.items()) if value},
        statements=_grown(found, "laptime_postgres_statements_total", window),
        statement_seconds=_grown(found, "laptime_postgres_statement_seconds_total", window),
    )


def _times(series: Series, window: Window) -> list[float]:
    return [time for time in series.times if window.start <= time <= window.end]


def _values(found: Iterable[tuple[Labels, Series]], window: Window) -> list[float]:
    return [value for _, series in found for value in series.within(window.start, window.end)]


def _grown(found: _Found, name: str, window: Window) -> float | None:
    """Return by how much a counter of a tier grew: it is one, however many jobs scrape it.

    None where nobody looked at its start or its end: a guard takes it for exact.
    """
    every = [series for _, series in found.get(name, [])]
    if not every:
        return None
    counter = reduce(Series.merged, every)
    if max(unseen_ends(counter, window)) > MISSING_SHARE * window.seconds:
        return None
    return increase(counter, window)
