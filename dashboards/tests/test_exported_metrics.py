"""The lists of exported metrics are not empty and hold what is known to be there."""

from __future__ import annotations

from exported_metrics import (
    PROCESS,
    SECONDS,
    agent,
    exporter,
    generator,
    haproxy,
    kept_of_runs,
    operator,
)


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


def test_of_what_pods_of_runs_say_their_own_metrics_are_kept_and_nobody_elses() -> None:
    """Alerts and counts rest on what operator and agents say: no pod of a run may say it too."""
    kept = kept_of_runs()
    own = generator() | exporter()
    others = operator() | agent() | SECONDS | PROCESS
    assert {name for name in own if not kept.fullmatch(name)} == set()
    assert {name for name in others if kept.fullmatch(name)} == set()
