"""Laptime / Server: a server, or several, over all runs that are known."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, table

from laptime_dashboards.compare import interval_columns, table_of_what_ran
from laptime_dashboards.frame import EVERY, SERVER_UID, frame, label_values, several
from laptime_dashboards.panel_defaults import (
    OF_RESPONSE_TIMES,
    Column,
    not_told,
    rows,
    sorted_by,
)

_SERVER = 'server=~"$server"'


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    made = frame("Server", SERVER_UID, "Servers over all runs that are known.", begin="now-1h")
    servers = label_values(
        "server", "Server", "By its name in the runs", "laptime_run_server_info", "server"
    )
    # From the page of a run all of its servers may come, for which one that is a single choice
    # stands for nothing.
    made.with_variable(several(servers.all_value(EVERY)))
    return made.with_panel(history()).with_panel(table_of_what_ran(_SERVER))


def history() -> table.Panel:
    """Figures of servers, the newest run first."""
    run = "namespace, run"
    created = (
        f"max by ({run}, server, load) (laptime_result_trials{{{_SERVER}}}) * 0"
        f" + on ({run}) group_left () 1000 * max by ({run}) (laptime_run_created_timestamp_seconds)"
    )
    return rows(
        "In each run",
        "Figures with their 95 % intervals, the newest run first. Two runs differ by more than the "
        f"server: by nodes, tiers and images. {OF_RESPONSE_TIMES}",
        f"no known run has a result of such a server, {not_told('the 500 rows')}",
        [
            *interval_columns(_SERVER),
            Column("Created", expr=created, unit="time:YYYY-MM-DD HH:mm", width=125),
        ],
        height=14,
    ).sort_by([sorted_by("Created", newest_first=True), sorted_by("Server")])
