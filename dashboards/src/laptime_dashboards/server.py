"""Laptime / Server: a server, or several, over all runs that are known."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, table

from laptime_dashboards.compare import created, interval_columns, pictures, table_of_what_ran
from laptime_dashboards.frame import EVERY, SERVER_UID, frame, label_values, several
from laptime_dashboards.intervals import of_runs
from laptime_dashboards.panel_defaults import not_told
from laptime_dashboards.tables import OF_RESPONSE_TIMES, Column, rows, sorted_by

_SERVER = 'server=~"$server"'
_NONE = f"no known run has a result of such a server, {not_told('the 500 rows')}"


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    made = frame("Server", SERVER_UID, "Servers over all runs that are known.", begin="now-1h")
    servers = label_values(
        "server", "Server", "By its name in the runs", "laptime_run_server_info", "server"
    )
    # From the page of a run all of its servers may come, for which one that is a single choice
    # stands for nothing.
    made.with_variable(several(servers.all_value(EVERY)))
    both = pictures(of_runs(_SERVER), _NONE, " Of other scenarios and loads they are other work.")
    for panel in (*both, history(), table_of_what_ran(_SERVER)):
        made.with_panel(panel)
    return made


def history() -> table.Panel:
    """Figures of servers, the newest run first."""
    return rows(
        "In each run",
        "Figures with their 95 % intervals, the newest run first. Two runs differ by more than the "
        f"server: by scenarios, nodes, tiers and images. {OF_RESPONSE_TIMES}",
        _NONE,
        [
            *interval_columns(_SERVER),
            # Without the year, which would leave no room for the names of runs; so in Runs.
            Column("Created", expr=created(_SERVER), unit="time:MM-DD HH:mm", width=99),
        ],
        height=14,
    ).sort_by([sorted_by("Created", newest_first=True), sorted_by("Server")])
