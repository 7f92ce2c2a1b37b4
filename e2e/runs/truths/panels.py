"""What is true of each panel of each dashboard: where its figures are in a run's own results."""

from __future__ import annotations

import re

from . import results, seconds
from .lines import (
    Line,
    connections,
    connections_share,
    cores,
    cpus,
    limits,
    lines,
    mean_cores,
    memory,
    memory_in_all,
    pool_size,
    read,
    sizes,
    states,
    stored_lately,
)
from .results import Truth, in_states, number, table

LIMITS = "What limited each server (suspected), and what is doubtful"
OF_ALL_RUNS = (
    "laptime-runs: Running",
    "laptime-runs: Waiting",
    "laptime-runs: Succeeded",
    "laptime-runs: Failed or cancelled",
    "laptime-operator: Runs",
)
"""Panels that count the runs of the cluster, which other tests may still be deleting."""

_PRESSURE = "the node's kernel may count no pressure (PSI)"
_TIERS = '{RUN,component=~"postgres|pgbouncer|haproxy|upstream|service-.+"}'
_RECONCILES = '{controller="benchmarkrun"}'
_ITSELF = '{job=~".*laptime-(operator|agent|prometheus)"}'
_WHAT_RAN = table(results.what_ran, Digest=lambda text: " ".join(re.findall(r"[0-9a-f]{12}", text)))
_NODES = {
    "CPU of the nodes": lines(A=Line("node", 1.3), B=Line("node", 1.3)),
    "Pressure on the nodes": lines(A=Line("node", 1.3, may=_PRESSURE)),
    "Memory of the nodes": lines(A=Line("node", memory, 1.0), B=Line("node", exact=memory_in_all)),
}


def _pods(metric: str, component: str) -> str:
    return f'laptime_pod_{metric}_total{{RUN,component="{component}"}}'


def _container(name: str) -> str:
    metric = "laptime_container_cpu_seconds_total"
    return f'{metric}{{RUN,component="{name}",container!="exporter"}}'


def _backends(metric: str, more: str = "") -> str:
    return f'haproxy_backend_{metric}_total{{RUN,proxy!~"health-.*"{more}}}'


def _postgres(counter: str) -> Line:
    return Line("postgres", own=f"laptime_postgres_{counter}_total{{RUN}}")


PANELS: dict[str, Truth] = {
    "laptime-run: Verdict": table(results.verdict),
    "laptime-run: State": results.now,
    "laptime-run: Progress": number(results.progress),
    "laptime-run: Time left": number(results.time_left),
    "laptime-run: Factor against the baseline": results.intervals(
        "factor", "Factor", compared=True
    ),
    "laptime-run: Throughput": results.intervals("requestsPerSecond", "Requests/s"),
    "laptime-run: Response times": table(results.percentiles),
    f"laptime-run: {LIMITS}": table(results.limits),
    "laptime-run: Requests of each second": seconds.requests,
    "laptime-run: Response times of each second: p50 and p99": seconds.response_times,
    "laptime-run: Requests of each second, all repetitions": seconds.over_each_other("Requests/s"),
    "laptime-run: CPU of the server, all repetitions": seconds.over_each_other("Cores"),
    "laptime-run: Errors of each second": seconds.errors("server", "load"),
    "laptime-run: CPU of servers and generators": lines(
        A=Line("server", cores("server"), own=_pods("cpu_seconds", "server"), peak=mean_cores),
        B=Line("generator", cpus, own=_pods("cpu_seconds", "generator")),
        C=Line("spec", exact=limits("server", "{position} limit of {server}")),
    ),
    "laptime-run: Trials with seconds that are missing": number(results.missing),
    "laptime-run: Results": table(results.results),
    "laptime-run: Ties": table(results.ties),
    "laptime-run: Trials": results.trials,
    "laptime-run: Objectives and thresholds": table(results.objectives),
    "laptime-run: Checks of scripts": table(results.checks),
    "laptime-run: Iterations of scripts": table(results.iterations),
    "laptime-run: Metrics of scripts": table(results.metrics),
    "laptime-run: CPU of servers, share of the limit": lines(A=Line("limits", 1.3)),
    "laptime-run: Throttling": lines(
        A=Line("server", own=_pods("cpu_throttled_seconds", "server")),
        B=Line("tiers", own=f"laptime_pod_cpu_throttled_seconds_total{_TIERS}"),
    ),
    "laptime-run: Memory": lines(
        A=Line("server", memory, peak=read("server", "workingSetBytes")),
        B=Line("tiers", memory, peak=read("postgres", "workingSetBytes")),
        C=Line("generator", memory, peak=read("generator", "workingSetBytes")),
    ),
    "laptime-run: Network of the servers": lines(
        A=Line("server", own=_pods("network_receive_bytes", "server")),
        B=Line("server", own=_pods("network_transmit_bytes", "server")),
    ),
    "laptime-run: CPU of Postgres, PgBouncer and HAProxy": lines(
        A=Line("tiers", cpus, own=f"laptime_pod_cpu_seconds_total{_TIERS}")
    ),
    "laptime-run: Postgres: connections": lines(
        A=Line("postgres", 1000.0, may="no connection was busy at the moment of a scrape"),
        B=Line("postgres", 1000.0),
    ),
    "laptime-run: PgBouncer: pool": lines(
        A=Line("pgbouncer", pool_size, peak=read("pool", "activeMean")),
        B=Line("pgbouncer", exact=sizes),
        C=Line("pgbouncer", 1000.0, peak=read("pool", "waitingMean")),
    ),
    "laptime-run: HAProxy: queue": lines(
        A=Line("haproxy", connections, peak=read("proxy", "queueMean")),
        B=Line("haproxy", connections, peak=read("proxy", "sessionsMean")),
    ),
    "laptime-run: Isolation": table(results.isolation),
    "laptime-run: Other pods on the nodes": lines(
        # The difference of two readings may be below zero by a little.
        A=Line("node", cpus, -0.5),
        B=Line("node", cpus, may="no other pod is where the agent may see it"),
    ),
    "laptime-run: Connection tracking of the nodes": lines(
        A=Line("node", 1.0, may="the kernel tracks no connections")
    ),
    **{f"laptime-run: {title}": truth for title, truth in _NODES.items()},
    **{f"laptime-tiers: {title}": truth for title, truth in _NODES.items()},
    "laptime-tiers: Generator: utilisation": lines(
        A=Line("generator", cpus, own=_pods("cpu_seconds", "generator")),
        B=Line("generator", cpus, peak=read("generator", "coresMean")),
    ),
    "laptime-tiers: Generator: saturation": lines(
        A=Line("generator", 1.3, may=_PRESSURE), B=Line("generator", 1.3, may=_PRESSURE)
    ),
    "laptime-tiers: Generator: errors": seconds.errors("server"),
    "laptime-tiers: Postgres: utilisation": lines(
        A=Line("postgres", 1.0, peak=connections_share),
        B=Line("postgres", cores("postgres"), own=_container("postgres")),
        C=Line("spec", exact=limits("postgres", "limit of cores {server}")),
    ),
    "laptime-tiers: Postgres: saturation": lines(
        A=Line("postgres", 1000.0, may="no connection waited at the moment of a scrape"),
        B=Line("postgres", 1000.0, may="no transaction was open at the moment of a scrape"),
    ),
    "laptime-tiers: Postgres: errors": lines(A=_postgres("deadlocks"), B=Line("postgres", 1.0)),
    "laptime-tiers: Postgres: statements": lines(
        A=_postgres("statements"), B=_postgres("commits"), C=_postgres("rollbacks")
    ),
    "laptime-tiers: Postgres: blocks from memory": lines(A=Line("postgres", 1.0)),
    "laptime-tiers: Postgres: writes": lines(
        A=_postgres("wal_bytes"), B=_postgres("temporary_bytes")
    ),
    "laptime-tiers: PgBouncer: utilisation": lines(
        A=Line("pgbouncer", 1.0), B=Line("pgbouncer", 1.3, own=_container("pgbouncer"))
    ),
    "laptime-tiers: PgBouncer: saturation": lines(
        A=Line("pgbouncer", 1000.0, peak=read("pool", "waitingMean")),
        B=Line("pgbouncer", 60.0),
    ),
    "laptime-tiers: PgBouncer: errors": lines(
        A=Line("pgbouncer", 1000.0), B=Line("pgbouncer", 1.0)
    ),
    "laptime-tiers: HAProxy: utilisation": lines(A=Line("haproxy", 1.0)),
    "laptime-tiers: HAProxy: saturation": lines(
        A=Line("haproxy", connections, peak=read("proxy", "queueMean")), B=Line("haproxy", 60.0)
    ),
    "laptime-tiers: HAProxy: errors": lines(
        A=Line("haproxy", own=_backends("connection_errors")),
        B=Line("haproxy", own=_backends("response_errors")),
        C=Line("haproxy", own=_backends("http_responses", ',code="5xx"')),
    ),
    "laptime-runs: Running": in_states(
        "Deploying", "Verifying", "Running", "Finishing", "Suspending"
    ),
    "laptime-runs: Waiting": in_states("Queued", "Suspended"),
    "laptime-runs: Succeeded": in_states("Succeeded"),
    "laptime-runs: Failed or cancelled": in_states("Failed", "Cancelled"),
    "laptime-runs: All runs": table(results.all_runs),
    "laptime-runs: Trials of the last ten minutes": lines(
        A=Line("operator", 600.0, peak=stored_lately)
    ),
    "laptime-compare: Verdicts": table(results.verdict_of_several),
    "laptime-compare: Throughput": results.across_runs("requestsPerSecond", "Requests/s"),
    "laptime-compare: Factor against the baseline": results.across_runs(
        "factor", "Factor", compared=True
    ),
    "laptime-compare: Servers": table(lambda facts: results.beside_each_other(facts, 1000)),
    "laptime-compare: Images and nodes": _WHAT_RAN,
    "laptime-server: Throughput": results.across_runs("requestsPerSecond", "Requests/s"),
    "laptime-server: Factor against the baseline": results.across_runs(
        "factor", "Factor", compared=True
    ),
    "laptime-server: In each run": table(results.beside_each_other),
    "laptime-server: Images and nodes": _WHAT_RAN,
    "laptime-operator: Last event": lines(A=Line("operator", 90.0)),
    "laptime-operator: Runs that wait": in_states("Queued"),
    "laptime-operator: Queue depth": lines(A=Line("operator", 50.0)),
    "laptime-operator: Operators at work": number(lambda _: 1.0),
    "laptime-operator: Reconcile rate": lines(
        A=Line("operator", own=f"controller_runtime_reconcile_total{_RECONCILES}")
    ),
    "laptime-operator: Reconcile errors": lines(
        A=Line("operator", own=f"controller_runtime_reconcile_errors_total{_RECONCILES}")
    ),
    "laptime-operator: Reconcile duration": lines(
        A=Line("operator", 10.0), B=Line("operator", 10.0)
    ),
    "laptime-operator: Queue depth over time": lines(A=Line("operator", 50.0)),
    "laptime-operator: Reconcile errors by reason": lines(
        A=Line("operator", own="laptime_reconcile_errors_total", may="no reconcile has failed")
    ),
    "laptime-operator: Requests to the API server": lines(
        A=Line("operator", own="laptime_api_requests_total")
    ),
    "laptime-operator: Runs by state": states,
    "laptime-operator: Length of trials": lines(A=Line("operator", 3600.0)),
    "laptime-operator: CPU of Laptime itself": lines(
        A=Line("operator", cpus, own=f"process_cpu_seconds_total{_ITSELF}")
    ),
    "laptime-operator: Memory of Laptime itself": lines(A=Line("operator", memory)),
}
