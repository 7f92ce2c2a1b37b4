"""The figures of a run while it goes on."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from laptime.cli.display import LiveDisplay
from laptime.cli.live_table import live_table
from laptime.cli.progress import Tracker, View
from laptime.cli.runs import Run, parse_run


def looked_at(manifest: Any, status: Any) -> View:
    metadata = {"name": "demo", "namespace": "team", "uid": "u"}
    run: Run = parse_run({**manifest, "metadata": metadata, "status": status})
    return Tracker().view(run, 0.0)


def printed(view: View) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=110, color_system=None).print(live_table(view))
    return [line.strip() for line in out.getvalue().splitlines() if line.strip()]


def test_each_server_has_its_trials_a_bar_and_its_figures(
    manifest: Any, finished_status: Any
) -> None:
    fastapi, axum = finished_status["results"]
    running = {**finished_status, "state": "Running"}
    running["results"] = [{**fastapi, "trials": 2}, {**axum, "trials": 1, "failedTrials": 1}]
    lines = printed(looked_at(manifest, running))
    assert lines[0].split() == ["server", "trials", "requests/s", "so", "far", "p99", "factor"]
    assert lines[2].split()[:2] == ["fastapi", "2/5"]
    assert lines[3].split()[:2] == ["axum", "2/5"]
    assert " ".join(lines[3].split()[2:]) == f"{'━' * 24} 15,363 ± 8 29.1 ms 25.1x (24.6 to 25.6)"
    # 612 of 15,363 is less than one of 24 cells.
    assert lines[2].split()[2] == "╸"


def test_a_server_that_is_out_says_why_and_one_not_measured_yet_is_empty(
    manifest: Any, finished_status: Any
) -> None:
    fastapi, _ = finished_status["results"]
    out = {"server": "axum", "load": "closed", "state": "Failed", "reason": "WrongAnswer"}
    pending = {"server": "late", "load": "open", "state": "Pending"}
    running = {**finished_status, "state": "Running", "results": [fastapi, out, pending]}
    lines = printed(looked_at(manifest, running))
    assert lines[3].split() == ["axum", "closed", "0/5", "WrongAnswer"]
    assert lines[4].split()[:3] == ["late", "open", "0/5"]


def test_a_factor_of_response_times_says_so_beside_one_of_throughputs(
    manifest: Any, finished_status: Any
) -> None:
    fastapi, axum = finished_status["results"]
    factor = {"value": 0.1, "low": 0.099, "high": 0.102}
    steady = {**axum, "load": "open", "comparedBy": "p99", "factor": factor}
    running = {**finished_status, "state": "Running", "results": [fastapi, axum, steady]}
    lines = printed(looked_at(manifest, running))
    assert lines[3].endswith("25.1x (24.6 to 25.6)")
    assert lines[4].endswith("0.1x (0.099 to 0.102) of p99")


def test_where_the_results_decide_nobody_says_how_many_trials_there_will_be(
    manifest: Any, finished_status: Any
) -> None:
    manifest["spec"] |= {"precision": "2%", "maxRepetitions": 30}
    fastapi, axum = finished_status["results"]
    running = {**finished_status, "state": "Running"}
    running["results"] = [{**fastapi, "trials": 12}, {**axum, "trials": 11}]
    lines = printed(looked_at(manifest, running))
    assert [line.split()[1] for line in lines[2:4]] == ["12", "11"]


def test_the_display_shows_the_table_as_soon_as_something_is_measured(
    manifest: Any, finished_status: Any
) -> None:
    out = io.StringIO()
    console = Console(file=out, width=110, force_terminal=True, color_system=None)
    with LiveDisplay(console, "demo") as display:
        display.show(looked_at(manifest, {"state": "Deploying"}))
        assert "requests/s so far" not in out.getvalue()
        display.show(looked_at(manifest, {**finished_status, "state": "Running"}))
        display.warn("something [odd]")
    assert "requests/s so far" in out.getvalue()
    assert "! something [odd]" in out.getvalue()
