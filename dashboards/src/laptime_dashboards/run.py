"""Laptime / Run: one run while it goes on and afterwards."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from laptime_dashboards import run_live, run_results, run_usage
from laptime_dashboards.frame import RUN_UID, frame, with_run, with_trials
from laptime_dashboards.panel_defaults import DATA_SOURCE, SERVER_COLORS, query
from laptime_dashboards.selectors import GENERATOR, RUN


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    made = frame("Run", RUN_UID, "One benchmark run: live, and its results.")
    with_trials(with_run(made))
    made.annotation(warm_up())
    for place, color in enumerate(SERVER_COLORS):
        made.annotation(measured(place, color))
    for panel in (
        run_results.verdict(),
        run_results.state(),
        run_results.progress(),
        run_results.time_left(),
    ):
        made.with_panel(panel)
    made.with_row(dashboard.Row("Load and answers"))
    for live in (run_live.requests(), run_live.latency(), run_live.errors(), run_live.tail()):
        made.with_panel(live)
    made.with_row(dashboard.Row("What the pods use"))
    for used in (
        run_usage.server_cpu(),
        run_usage.share_of_limit(),
        run_usage.tier_cpu(),
        run_usage.throttling(),
        run_usage.memory(),
        run_usage.network(),
    ):
        made.with_panel(used)
    made.with_row(dashboard.Row("Pools and queues"))
    for pool in (run_usage.haproxy_queue(), run_usage.pool(), run_usage.connections()):
        made.with_panel(pool)
    made.with_row(dashboard.Row("Node"))
    for node in (run_usage.node_cpu(), run_usage.node_pressure(), run_usage.node_memory()):
        made.with_panel(node)
    made.with_row(dashboard.Row("Servers side by side, since the start of each trial"))
    made.with_panel(run_live.requests_since_start()).with_panel(run_live.cpu_since_start())
    made.with_row(dashboard.Row("Results"))
    made.with_panel(run_results.table_of_results()).with_panel(run_results.factors())
    made.with_panel(run_results.limits()).with_panel(run_results.doubts())
    return made.with_panel(run_results.trials())


def warm_up() -> dashboard.AnnotationQuery:
    """Shade the time in which nothing is measured yet."""
    return _phase(
        "Warm-up",
        "rgba(128, 128, 128, 0.6)",
        _running("warmup"),
        "Warm-up of {{server}}",
    )


def measured(place: int, color: str) -> dashboard.AnnotationQuery:
    """Shade the measured phases of the servers at one place of the spec, and so many further on."""
    count = len(SERVER_COLORS)
    position = f"max by (server) (laptime_run_server_position{{{RUN}}}) % {count}"
    return _phase(
        f"Server {place + 1}",
        color,
        f"{_running('measured')} and on (server) {position} == {(place + 1) % count}",
        "{{server}}, {{load}}",
    )


def _running(phase: str) -> str:
    series = f'laptime_generator_phase{{{GENERATOR}, phase="{phase}"}}'
    return f"max by (trial, server, load) ({series}) == 1"


def _phase(name: str, color: str, expr: str, title: str) -> dashboard.AnnotationQuery:
    return (
        dashboard.AnnotationQuery()
        .name(name)
        .datasource(DATA_SOURCE)
        .enable(True)
        .icon_color(color)
        .target(query(expr, ref="Anno"))
        .expr(expr)
        .title_format(title)
        .text_format("{{trial}}")
        .tag_keys("server,load")
    )
