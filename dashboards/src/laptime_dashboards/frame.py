"""What all dashboards share: names, links between them, variables, time range."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard as models

from laptime_dashboards.panel_defaults import DATA_SOURCE
from laptime_dashboards.selectors import RUN

RUNS_UID, RUN_UID = "laptime-runs", "laptime-run"
COMPARE_UID, SERVER_UID = "laptime-compare", "laptime-server"
TIERS_UID, OPERATOR_UID = "laptime-tiers", "laptime-operator"

_TAG = "laptime"


def frame(
    title: str, uid: str, description: str, *, begin: str = "now-15m", refresh: str = "10s"
) -> builders.Dashboard:
    """Return a dashboard without panels, with its data source and the way to the others."""
    return (
        builders.Dashboard(f"Laptime / {title}")
        .uid(uid)
        .description(description)
        .tags([_TAG])
        .readonly()
        .timezone("browser")
        .time(begin, "now")
        .refresh(refresh)
        .timepicker(builders.TimePicker().refresh_intervals(["5s", "10s", "30s", "1m", "5m"]))
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(
            builders.DashboardLink("Laptime")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([_TAG])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
            .tooltip("The other dashboards, for the same run and time")
            .icon("external link")
            # Beside the variables and not in a menu: it is the way from one dashboard to the next.
            .placement("")
        )
        .with_variable(
            builders.DatasourceVariable("datasource")
            .label("Data source")
            .description("The Prometheus that watches the runs")
            .type("prometheus")
            .current(models.VariableOption(text="default", value="default"))
        )
        # In each dashboard, so that no way from one to another loses what the address says.
        .with_variable(
            builders.CustomVariable("step")
            .label("Scrape interval")
            .description(
                "Of agents and pods; var-step in the address, for a Prometheus of one's own"
            )
            .values("1s,2s,3s,5s,10s,15s,30s")
            .current(models.VariableOption(text="1s", value="1s"))
            .hide(models.VariableHide.HIDE_VARIABLE)
        )
    )


def with_run(dashboard: builders.Dashboard) -> builders.Dashboard:
    """Add the variables that choose one run, newest names last, and what runs it may stand beside.

    The scenario is for the way to *Compare*, which would take the first of all of them.
    """
    for name, label, what, series in (
        ("namespace", "Namespace", "Where the run is", "laptime_run_info"),
        ("run", "Run", "The BenchmarkRun", 'laptime_run_info{namespace="$namespace"}'),
        ("scenario", "Scenario", "The work of the run", f"laptime_run_info{{{RUN}}}"),
    ):
        variable = label_values(name, label, what, series, name)
        if name == "scenario":
            # One of a run, so with the run alone, and not with each refresh.
            variable.refresh(models.VariableRefresh.ON_DASHBOARD_LOAD)
            variable.allow_custom_value(False).hide(models.VariableHide.HIDE_VARIABLE)
        dashboard.with_variable(variable)
    return dashboard


def link_to_run(more: str = "") -> dict[str, object]:
    """Return what a column of a table with the columns Run and Namespace has that leads to a run.

    `more` is what else the address says. The way over the head of the page brings all runs that are
    chosen, and is one to a run only where one is.
    """
    link = {
        "title": "Look into ${__data.fields.Run}",
        "url": f"/d/{RUN_UID}?var-datasource=${{datasource}}"
        "&var-namespace=${__data.fields.Namespace}&var-run=${__data.fields.Run}"
        f"&var-step=${{step}}{more}",
    }
    return {"links": [link]}


EVERY = ".*"
"""What all servers and all loads of a run match."""
SINCE = "since"
"""Name of the variable with the time at which a run was created."""


def since_its_creation(dashboard: builders.Dashboard) -> builders.Dashboard:
    """Add a variable with the time at which the run was created, for the queries alone.

    A run that was deleted and made again under its name has the labels of the one before.
    """
    created = f"laptime_run_created_timestamp_seconds{{{RUN}}}"
    # At 0 nothing is left out: of a run that is gone nobody says when it was created.
    text = f"query_result(scalar(max({created}) or vector(0)))"
    variable = _query_variable(SINCE, "Created", "When the run was created, Unix seconds", text)
    return dashboard.with_variable(
        variable.allow_custom_value(False).hide(models.VariableHide.HIDE_VARIABLE)
    )


def with_servers(dashboard: builders.Dashboard) -> builders.Dashboard:
    """Add the variables that choose servers and loads of the run."""
    # Of the trials the operator says nothing when it has begun anew after the run, of the results
    # nothing before there are some.
    loads = f'{{__name__=~"laptime_trial_info|laptime_result_state",{RUN}}}'
    for name, label, series in (
        ("server", "Server", f"laptime_run_server_info{{{RUN}}}"),
        ("load", "Load", loads),
    ):
        variable = label_values(name, label, f"{label}s of the run", series, name)
        # All are whichever the run has by then, so the list is asked for with the run alone, and
        # not with each refresh: that costs Prometheus more than most queries.
        once = variable.refresh(models.VariableRefresh.ON_DASHBOARD_LOAD).all_value(EVERY)
        dashboard.with_variable(several(once))
    return dashboard


def several(variable: builders.QueryVariable) -> builders.QueryVariable:
    """Let a variable have several values, and all of them at first."""
    every = models.VariableOption(text="All", value="$__all", selected=True)
    return variable.multi(True).include_all(True).current(every)


def label_values(
    name: str, label: str, description: str, series: str, value: str
) -> builders.QueryVariable:
    """Return a variable with the values that a label of some series has in the time range."""
    return _query_variable(name, label, description, f"label_values({series}, {value})")


def _query_variable(name: str, label: str, description: str, text: str) -> builders.QueryVariable:
    return (
        builders.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(DATA_SOURCE)
        .query({"query": text, "refId": f"variable-{name}"})
        .definition(text)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.NATURAL_ASC)
    )
