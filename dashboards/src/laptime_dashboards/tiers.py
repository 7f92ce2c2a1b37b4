"""Laptime / Tiers: each part of a run by utilisation, saturation and errors (the USE method)."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, timeseries
from grafana_foundation_sdk.models import dashboard as dashboard_models

from laptime_dashboards import run_usage
from laptime_dashboards.frame import TIERS_UID, frame, since_its_creation, with_run
from laptime_dashboards.panel_defaults import (
    SECOND,
    SERVER,
    THIRD,
    Threshold,
    closed_row,
    in_red,
    in_server_colors,
    of_run,
    on_the_right,
    time_series,
)
from laptime_dashboards.run_seconds import NOT_OVER, OF_SEVERAL_TRIALS
from laptime_dashboards.selectors import BACKENDS, RUN, STEP, placed, rate

_NO_HAPROXY = "the run has no HAProxy, or nobody watched it"
_NO_PGBOUNCER = "the run has no PgBouncer, or exporters are left out"
_NO_POSTGRES = "the run has no Postgres, or exporters are left out"
_NO_LOAD = "no load in this time, the operator is not scraped, or no agent is on its node"
_NEAR_THE_END: tuple[Threshold, ...] = ((0.8, "orange"), (0.95, "red"))


def build() -> dashboard.Dashboard:
    """Return the dashboard: a row for each part, those that a run may do without closed below.

    Why closed and not hidden by a rule: docs/decisions/0017.
    """
    made = frame("Tiers", TIERS_UID, "Utilisation, saturation and errors of each part of a run.")
    since_its_creation(with_run(made))
    for title, panels in (
        ("Generator", (generator_utilisation(), generator_saturation(), generator_errors())),
        ("Node", (run_usage.node_cpu(), run_usage.node_pressure(), run_usage.node_memory())),
    ):
        made.with_row(dashboard.Row(title))
        for panel in panels:
            made.with_panel(panel)
    for title, panels in (
        (
            "Postgres, where the run has one",
            (postgres_utilisation(), postgres_saturation(), postgres_errors()),
        ),
        (
            "Postgres: work, where the run has one",
            (postgres_statements(), postgres_cache(), postgres_writes()),
        ),
        (
            "PgBouncer, where the run has one",
            (pgbouncer_utilisation(), pgbouncer_saturation(), pgbouncer_errors()),
        ),
        (
            "HAProxy, where the run has one",
            (haproxy_utilisation(), haproxy_saturation(), haproxy_errors()),
        ),
    ):
        made.with_row(closed_row(title, panels))
    return made


def generator_utilisation() -> timeseries.Panel:
    """CPU of the load generator."""
    pods = f'{RUN}, component="generator"'
    panel = time_series(
        "Generator: utilisation",
        "Cores in use by the load generator of each server, of several generators by the busiest "
        "one, and as a broken line the most of any second of any of them. What one sends is "
        "doubtful when it has no CPU left.",
        "short",
        _NO_LOAD,
        [
            of_run(
                placed(f"max by (server) ({rate(f'laptime_pod_cpu_seconds_total{{{pods}}}')})"),
                "{{position}} {{server}}",
                ref="A",
            ),
            of_run(
                placed(f"max by (server) (laptime_pod_cpu_cores_peak{{{pods}}})"),
                "{{position}} {{server}}, peak",
                ref="B",
            ),
        ],
        width=THIRD,
    )
    in_server_colors(panel, {"A": SERVER, "B": f"{SERVER}, peak"}, dashed=["B"])
    return panel


def generator_saturation() -> timeseries.Panel:
    """Time that the generator waits for CPU."""
    # Whatever the kind: that all tasks waited, which is the other one, is never more.
    waiting = f'laptime_pod_pressure_seconds_total{{{RUN},component="generator"'
    for_cpu, for_another = (f'{waiting},resource{which}"cpu"}}' for which in ("=", "!="))
    panel = time_series(
        "Generator: saturation",
        "Share of the time in which a task of the generator of a server was ready and had no CPU, "
        "of several generators the one that waited most; the broken line: waited for memory or for "
        "a disk, whichever was more.",
        "percentunit",
        "no load in this time, the operator is not scraped, no agent is on its node, or the kernel "
        "counts no pressure (PSI)",
        [
            of_run(
                placed(f"max by (server) ({rate(for_cpu)})"),
                "{{position}} {{server}}",
                ref="A",
            ),
            of_run(
                placed(f"max by (server) ({rate(for_another)})"),
                "{{position}} {{server}}, memory or disk",
                ref="B",
            ),
        ],
        limits=((0.1, "orange"),),
        width=THIRD,
    )
    names = {"A": SERVER, "B": f"{SERVER}, memory or disk"}
    in_server_colors(panel, names, dashed=["B"])
    return panel


def generator_errors() -> timeseries.Panel:
    """Requests without a right answer."""
    counted = f'avg_over_time(laptime_second_errors{{{RUN},phase="measured"}}[{STEP}])'
    panel = time_series(
        "Generator: errors",
        "Requests of each second without a right answer in time, by kind. The kind dropped: given "
        f"up unsent. The kind none, at zero: the trial had no errors. {OF_SEVERAL_TRIALS}",
        "reqps",
        NOT_OVER,
        [
            of_run(
                f"avg by (position, server, kind) ({counted})",
                "{{position}} {{server}}: {{kind}}",
                step=SECOND,
            )
        ],
        limits=((0.001, "red"),),
        width=THIRD,
        most=1,
    )
    in_server_colors(panel, {"A": f"{SERVER}: ${{__field.labels.kind}}"})
    return in_red(panel)


def haproxy_utilisation() -> timeseries.Panel:
    """How busy HAProxy's threads are."""
    return time_series(
        "HAProxy: utilisation",
        "Share of the time in which HAProxy's threads had something to do, as it says itself.",
        "percentunit",
        _NO_HAPROXY,
        [of_run(f"1 - min(haproxy_process_idle_time_percent{{{RUN}}}) / 100", "busy")],
        limits=_NEAR_THE_END,
        width=THIRD,
        most=1,
    )


def haproxy_saturation() -> timeseries.Panel:
    """Requests that wait in HAProxy."""
    panel = time_series(
        "HAProxy: saturation",
        "Requests that wait for a free connection to a server, and as a broken line, on the right "
        "axis, the mean of the last 1024 waits.",
        "short",
        _NO_HAPROXY,
        [
            of_run(
                f"sum by (proxy) (haproxy_backend_current_queue{{{BACKENDS}}})",
                "{{proxy}}: waiting",
                ref="A",
            ),
            of_run(
                f"max by (proxy) (haproxy_backend_queue_time_average_seconds{{{BACKENDS}}})",
                "{{proxy}}: wait",
                ref="B",
            ),
        ],
        width=THIRD,
        most=1,
    )
    return on_the_right(panel, "B", "s", most=0.001)


def haproxy_errors() -> timeseries.Panel:
    """What HAProxy could not pass on."""
    of_class_5xx = f'haproxy_backend_http_responses_total{{{BACKENDS}, code="5xx"}}'
    panel = time_series(
        "HAProxy: errors",
        "Failed connections to servers, failed answers, and answers of class 5xx, a second.",
        "reqps",
        _NO_HAPROXY,
        [
            of_run(
                f"sum({rate(f'haproxy_backend_connection_errors_total{{{BACKENDS}}}')})",
                "connections",
                ref="A",
            ),
            of_run(
                f"sum({rate(f'haproxy_backend_response_errors_total{{{BACKENDS}}}')})",
                "answers",
                ref="B",
            ),
            of_run(f"sum({rate(of_class_5xx)})", "5xx", ref="C"),
        ],
        limits=((0.001, "red"),),
        width=THIRD,
        most=1,
    )
    return in_red(panel)


def pgbouncer_utilisation() -> timeseries.Panel:
    """How much of the pool and of a core is in use."""
    return time_series(
        "PgBouncer: utilisation",
        "Share of each pool's connections in use, and of the one core that PgBouncer can use.",
        "percentunit",
        _NO_PGBOUNCER,
        [
            of_run(
                f"sum by (database) (laptime_pgbouncer_servers_active{{{RUN}}})"
                f" / sum by (database) (laptime_pgbouncer_pool_size{{{RUN}}})",
                "pool {{database}}",
                ref="A",
            ),
            of_run(
                "sum(" + rate(_container("pgbouncer")) + ")",
                "CPU",
                ref="B",
            ),
        ],
        limits=_NEAR_THE_END,
        width=THIRD,
        most=1,
    )


def pgbouncer_saturation() -> timeseries.Panel:
    """Clients that wait for a connection."""
    panel = time_series(
        "PgBouncer: saturation",
        "Clients that wait for a connection to Postgres, and as a broken line, on the right axis, "
        "for how long the first has waited.",
        "short",
        _NO_PGBOUNCER,
        [
            of_run(f"sum(laptime_pgbouncer_clients_waiting{{{RUN}}})", "clients waiting", ref="A"),
            of_run(
                f"max(laptime_pgbouncer_oldest_wait_seconds{{{RUN}}})",
                "longest wait",
                ref="B",
            ),
        ],
        width=THIRD,
        most=1,
    )
    return on_the_right(panel, "B", "s", most=0.001)


def pgbouncer_errors() -> timeseries.Panel:
    """Whether PgBouncer answers."""
    panel = time_series(
        "PgBouncer: errors",
        "Connections to Postgres that are being made, and 1 when PgBouncer did not answer its "
        "exporter within 0.8 s.",
        "short",
        _NO_PGBOUNCER,
        [
            of_run(f"sum(laptime_pgbouncer_servers_login{{{RUN}}})", "being made", ref="A"),
            of_run(f"1 - min(laptime_pgbouncer_up{{{RUN}}})", "no answer", ref="B"),
        ],
        width=THIRD,
        most=1,
    )
    no_failure = {"mode": "fixed", "fixedColor": "blue"}
    blue = dashboard_models.DynamicConfigValue(id_val="color", value=no_failure)
    return in_red(panel).override_by_name("being made", [blue])


def postgres_utilisation() -> timeseries.Panel:
    """How much of the connections and of the CPU is in use."""
    limit = f'max by (server) (laptime_run_cpu_limit_cores{{{RUN}, component="postgres"}})'
    panel = time_series(
        "Postgres: utilisation",
        "Cores in use, and the limit where the spec sets one, with the one that a server has of "
        "its own; as a broken line, on the right axis, the share of max_connections in use.",
        "short",
        _NO_POSTGRES,
        [
            of_run(
                f"sum(laptime_postgres_connections{{{RUN}}})"
                f" / max(laptime_postgres_max_connections{{{RUN}}})",
                "connections",
                ref="A",
            ),
            of_run("sum(" + rate(_container("postgres")) + ")", "cores", ref="B"),
            of_run(limit, "limit of cores {{server}}", ref="C"),
        ],
        width=THIRD,
    )
    return on_the_right(panel, "A", "percentunit", most=1)


def postgres_saturation() -> timeseries.Panel:
    """What connections wait for."""
    return time_series(
        "Postgres: saturation",
        "Connections in the middle of a statement that wait, by what they wait for, and those that "
        "hold a transaction open and do nothing.",
        "short",
        f"no connection waited at the moment of a scrape, {_NO_POSTGRES}",
        [
            of_run(
                "sum by (wait_event_type, wait_event) (laptime_postgres_connections"
                f'{{{RUN}, state="active", wait_event_type!=""}})',
                "{{wait_event_type}}: {{wait_event}}",
                ref="A",
            ),
            of_run(
                f'sum(laptime_postgres_connections{{{RUN}, state=~"idle in transaction.*"}})',
                "idle in transaction",
                ref="B",
            ),
        ],
        width=THIRD,
        most=1,
    )


def postgres_errors() -> timeseries.Panel:
    """Deadlocks, and whether Postgres answers at all."""
    panel = time_series(
        "Postgres: errors",
        "Deadlocks a second, and 1 when Postgres did not answer its exporter within 0.8 s.",
        "short",
        _NO_POSTGRES,
        [
            of_run(
                f"sum({rate(f'laptime_postgres_deadlocks_total{{{RUN}}}')})", "deadlocks", ref="A"
            ),
            of_run(f"1 - min(laptime_postgres_up{{{RUN}}})", "no answer", ref="B"),
        ],
        limits=((0.001, "red"),),
        width=THIRD,
        most=1,
    )
    return in_red(panel)


def postgres_statements() -> timeseries.Panel:
    """Statements and transactions."""
    return time_series(
        "Postgres: statements",
        "Statements, committed transactions and those rolled back a second, of the run's "
        "database. Rolling back is how some drivers end a transaction that only read.",
        "ops",
        _NO_POSTGRES,
        [
            of_run(
                f"sum({rate(f'laptime_postgres_statements_total{{{RUN}}}')})",
                "statements",
                ref="A",
            ),
            of_run(f"sum({rate(f'laptime_postgres_commits_total{{{RUN}}}')})", "commits", ref="B"),
            of_run(
                f"sum({rate(f'laptime_postgres_rollbacks_total{{{RUN}}}')})", "rollbacks", ref="C"
            ),
        ],
        width=THIRD,
    )


def postgres_cache() -> timeseries.Panel:
    """Blocks that were in memory."""
    hit = f"sum({rate(f'laptime_postgres_blocks_hit_total{{{RUN}}}')})"
    read = f"sum({rate(f'laptime_postgres_blocks_read_total{{{RUN}}}')})"
    return time_series(
        "Postgres: blocks from memory",
        "Share of the blocks that were in shared_buffers. Below 100 % the rest came from the page "
        "cache or from disk.",
        "percentunit",
        f"Postgres touched no block in this time, {_NO_POSTGRES}",
        [of_run(f"1 / (1 + {read} / {hit})", "from memory")],
        width=THIRD,
        most=1,
    )


def postgres_writes() -> timeseries.Panel:
    """Bytes that Postgres writes."""
    return time_series(
        "Postgres: writes",
        "Bytes of write-ahead log and of temporary files a second.",
        "Bps",
        _NO_POSTGRES,
        [
            of_run(
                f"sum({rate(f'laptime_postgres_wal_bytes_total{{{RUN}}}')})",
                "write-ahead log",
                ref="A",
            ),
            of_run(
                f"sum({rate(f'laptime_postgres_temporary_bytes_total{{{RUN}}}')})",
                "temporary files",
                ref="B",
            ),
        ],
        width=THIRD,
    )


def _container(component: str) -> str:
    """Return the CPU counter of a tier without the exporter beside it."""
    return (
        "laptime_container_cpu_seconds_total"
        f'{{{RUN}, component="{component}", container!="exporter"}}'
    )
