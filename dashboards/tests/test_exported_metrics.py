"""The lists of exported metrics are not empty and hold what is known to be there."""

from __future__ import annotations

from exported_metrics import agent, exporter, haproxy, operator


def test_names_are_found_where_they_are_written() -> None:
    assert {"laptime_pod_cpu_seconds_total", "laptime_node_cpus"} <= agent()
    assert {"laptime_postgres_connections", "laptime_pgbouncer_up"} <= exporter()
    assert {"laptime_runs", "laptime_trials_total", "laptime_trial_seconds_bucket"} <= operator()
    assert {
        "haproxy_process_idle_time_percent",
        "haproxy_backend_active_servers",
        "haproxy_backend_total_time_average_seconds",
    } <= haproxy()
    assert len(haproxy()) == 17
