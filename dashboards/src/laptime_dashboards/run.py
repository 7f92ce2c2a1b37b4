"""Laptime / Run: one run while it goes on and afterwards, the answer first."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from laptime_dashboards import run_answer, run_results, run_script, run_seconds, run_usage
from laptime_dashboards.frame import RUN_UID, frame, since_its_creation, with_run, with_servers
from laptime_dashboards.panel_defaults import closed_row


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    made = frame(
        "Run",
        RUN_UID,
        "One benchmark run: which server is faster, how sure, and why.",
        # Each second is a point, and each point costs Prometheus something while a run measures.
        begin="now-5m",
    )
    with_servers(since_its_creation(with_run(made)))
    for answer in (
        run_answer.verdict(),
        run_answer.state(),
        run_answer.progress(),
        run_answer.time_left(),
        run_answer.factors(),
        run_answer.throughputs(),
        run_answer.percentiles(),
        run_answer.limits(),
    ):
        made.with_panel(answer)
    made.with_row(dashboard.Row("Second by second"))
    for second in (
        run_seconds.requests(),
        run_seconds.latency(),
        run_seconds.requests_since_start(),
        run_seconds.cpu_since_start(),
        run_seconds.errors(),
        run_usage.server_cpu(),
        run_seconds.complete(),
    ):
        made.with_panel(second)
    made.with_row(dashboard.Row("Results"))
    for result in (run_results.table_of_results(), run_results.ties(), run_results.trials()):
        made.with_panel(result)
    # Closed at first: a run may have none of these.
    for title, panels in (
        (
            "Objectives, and what a k6 script says: checks, thresholds, metrics of its own",
            (
                run_script.objectives(),
                run_script.checks(),
                run_script.iterations(),
                run_script.metrics(),
            ),
        ),
        (
            "More of what the pods use",
            (
                run_usage.share_of_limit(),
                run_usage.throttling(),
                run_usage.memory(),
                run_usage.network(),
            ),
        ),
        (
            "Postgres, PgBouncer and HAProxy, where the run has them",
            (
                run_usage.tier_cpu(),
                run_usage.connections(),
                run_usage.pool(),
                run_usage.haproxy_queue(),
            ),
        ),
        (
            "Nodes, and what else ran on them",
            (
                run_usage.isolation(),
                run_usage.node_others(),
                run_usage.node_cpu(),
                run_usage.node_pressure(),
                run_usage.node_memory(),
                run_usage.node_connections(),
            ),
        ),
    ):
        made.with_row(closed_row(title, panels))
    return made
