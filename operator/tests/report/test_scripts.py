"""What a script says, in the report, the table of the terminal, the CSV and the status."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from laptime.analysis import Summary
from laptime.api.interval import Interval
from laptime.api.metrics import Metric
from laptime.api.results import ResultRow, RowState, TrialOutcome, TrialResult, Validity
from laptime.api.script import (
    CheckResult,
    MetricFigure,
    OtherHost,
    ScriptFigures,
    ScriptMetric,
)
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import RunStatus
from laptime.cli.result_table import result_lines
from laptime.cli.runs import Run
from laptime.report import Report, to_csv, to_markdown
from laptime.report.document import to_json
from laptime.report.html import to_html
from laptime.report.scripts import counted_tables
from laptime.report.status import status_rows

EVIL = "<script>alert(1)</script> | a [link](x) `code` [red]"
SCRIPT = ScriptFigures(
    warmup_named=True,
    executors=["constant-vus"],
    iterations=1234,
    dropped_iterations=6,
    checks_passed=90,
    checks_failed=10,
    checks=[CheckResult(name=EVIL, passed=40, failed=10), CheckResult(name="fine", passed=50)],
    other_hosts=[OtherHost(host="cdn:443", requests=77, errors=3)],
    metrics=[
        ScriptMetric(name="sold|out", type="counter", samples=9, value=1234.0),
        ScriptMetric(
            name="group_duration{group:::a}", type="trend", contains="time", samples=5, value=1500.0
        ),
        ScriptMetric(name="complete", type="rate", samples=4, value=0.25),
        ScriptMetric(name="vus", type="gauge", samples=4, value=5.0),
    ],
    warnings=["more than 100 <b>names</b>"],
)
ROW = ResultRow(
    server="fastapi",
    load="own",
    state=RowState.MEASURED,
    trials=5,
    requests=100,
    validity=Validity.INVALID,
    script=SCRIPT,
)
SPEC = BenchmarkRunSpec.model_validate(
    {
        "scenario": "users",
        "servers": [{"name": "fastapi", "preset": "fastapi-sync"}],
        "loads": [{"name": "own", "script": {"configMap": "mine"}}],
    }
)


def report() -> Report:
    summary = Summary((ROW,), None, None, "nothing to compare", (), (), (), None, True)
    return Report("demo", "default", SPEC, 1, summary, ())


def test_markdown_shows_checks_and_does_nothing_with_their_names() -> None:
    text = to_markdown(report())
    assert "| fastapi | 1,234 | - | - | 6 | 10 of 100 failed (10.0%) | throughput |" in text
    assert "| fastapi | constant-vus | when k6 began the request; a slow answer" in text
    assert (
        r"\<script\>alert(1)\</script\> \| a \[link\](x) \`code\` \[red\] | 40 | 10 | 80% |" in text
    )
    assert "| fastapi | fine | 50 | 0 | 100% |" in text
    assert "| fastapi | cdn:443 | 77 | 3 |" in text
    assert r"| fastapi | sold\|out | 9 | 1,234 | - |" in text
    assert "| fastapi | group_duration{group:::a} | 5 | - | 1.50 s | - |" in text
    assert "| fastapi | complete | 4 | - | 25.0% | - |" in text
    assert "| vus |" not in text
    assert r"- fastapi, script: more than 100 \<b\>names\</b\>" in text


def test_metrics_are_shown_with_their_intervals_and_factors() -> None:
    def figure(name: str, value: float, factor: float | None = None) -> MetricFigure:
        around = Interval(value=value, low=0.9 * value, high=1.1 * value)
        times = None if factor is None else Interval(value=factor, low=factor, high=2 * factor)
        return MetricFigure(name=name, estimate=around, factor=times)

    metrics = [
        ScriptMetric(
            name="iterations",
            type="counter",
            samples=500,
            value=500.0,
            figures=[figure("rate", 50.0, 1.25)],
        ),
        ScriptMetric(
            name="listing_time",
            type="trend",
            contains="time",
            samples=5,
            value=1500.0,
            min=1.0,
            p50=1400.0,
            max=3000.0,
            figures=[figure("avg", 1500.0, 0.5), figure("p(95)", 2000.0)],
        ),
        ScriptMetric(
            name="complete", type="rate", samples=4, value=0.25, figures=[figure("rate", 0.25)]
        ),
        ScriptMetric(
            name="sent",
            type="counter",
            contains="data",
            samples=3,
            value=1.5e9,
            figures=[figure("rate", 5e8)],
        ),
        ScriptMetric(
            name="size",
            type="trend",
            contains="data",
            samples=3,
            value=120.0,
            min=90.0,
            figures=[figure("avg", 120.0)],
        ),
    ]
    script = SCRIPT.model_copy(update={"metrics": metrics})
    row = ROW.model_copy(update={"script": script, "compared_by": Metric.P99})
    text = to_markdown(replace(report(), summary=replace(report().summary, rows=(row,))))
    factor = "1.25x (1.25 to 2.50)"
    assert f"| fastapi | 1,234 | 50.0 (45.0 to 55.0) | {factor} | 6 | 10 of 100" in text
    assert "failed (10.0%) | p99 |" in text
    assert f"| iterations | 500 | 500 | 50.0 (45.0 to 55.0)/s | {factor} | - |" in text
    each_second = "500,000,000 B/s (450,000,000 to 550,000,000)"
    assert f"| sent | 3 | 1,500,000,000 B | {each_second} | - |" in text
    assert "| size | 3 | - | 120 B (108 to 132) | - | 90.0 B |" in text
    assert (
        "| listing_time | 5 | - | 1.50 s (1.35 to 1.65) | 0.5x (0.5 to 1.00) | 1.00 ms "
        "| 1.40 s | 2.00 s (1.80 to 2.20) | - | - | 3.00 s |"
    ) in text
    assert "| complete | 4 | - | 25.0% (22.5 to 27.5) | - |" in text


def test_percentiles_of_all_repetitions_are_shown_where_they_are_not_the_largest_sample() -> None:
    times = ScriptMetric(
        name="listing", type="trend", samples=99, value=9.0, p50=8.0, p95=19.0, p99=20.0, max=21.0
    )
    enough = times.model_copy(update={"name": "search", "samples": 100})
    once = times.model_copy(update={"name": "login", "samples": 1})
    script = SCRIPT.model_copy(update={"metrics": [times, enough, once]})
    row = ROW.model_copy(update={"script": script})
    text = to_markdown(replace(report(), summary=replace(report().summary, rows=(row,))))
    assert "| listing | 99 | - | 9.00 | - | - | 8.00 | 19.0 | - | - | 21.0 |" in text
    assert "| search | 100 | - | 9.00 | - | - | 8.00 | 19.0 | - | 20.0 | 21.0 |" in text
    assert "| login | 1 | - | 9.00 | - | - | - | - | - | - | 21.0 |" in text


def test_own_metrics_that_are_named_like_those_of_k6_are_shown() -> None:
    own = ("checks_slow", "data_load_time", "http_req_checkout", "iterations_of_search", "vus_idle")
    k6s = ("checks", "data_received", "data_sent", "http_req_duration", "http_reqs", "vus_max")
    metrics = [ScriptMetric(name=name, type="gauge", value=5.0) for name in sorted(own + k6s)]
    row = ROW.model_copy(update={"script": SCRIPT.model_copy(update={"metrics": metrics})})
    text = to_markdown(replace(report(), summary=replace(report().summary, rows=(row,))))
    assert [name for name in own + k6s if f"| fastapi | {name} |" in text] == list(own)
    # Of which Grafana's are made.
    (shorter,) = status_rows([row], len(json.dumps([row.to_wire()])) - 1)
    assert shorter.script is not None
    assert [one.name for one in shorter.script.metrics] == list(own)


@pytest.mark.parametrize(
    ("executor", "said"),
    [
        ("constant-arrival-rate", "an iteration for which no VU was free was dropped"),
        ("ramping-arrival-rate", "an iteration for which no VU was free was dropped"),
        ("constant-vus", "a slow answer puts off the next iteration of its VU"),
        ("ramping-vus", "a slow answer puts off the next iteration of its VU"),
        ("shared-iterations", "a slow answer puts off the next iteration of its VU"),
        ("per-vu-iterations", "a slow answer puts off the next iteration of its VU"),
        ("externally-controlled", "a slow answer puts off the next iteration of its VU"),
    ],
)
def test_what_response_times_count_from_is_said_for_each_executor(executor: str, said: str) -> None:
    row = ROW.model_copy(update={"script": SCRIPT.model_copy(update={"executors": [executor]})})
    (table,) = [one for one in counted_tables([row]) if "count from" in one.caption]
    ((server, named, text),) = table.lines
    assert (server, named) == ("fastapi", executor)
    assert text.startswith("when k6 began the request")
    assert said in text


def test_the_page_shows_checks_and_does_nothing_with_their_names() -> None:
    page = to_html(report(), {})
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; | a [link](x) `code` [red]" in page
    assert "cdn:443" in page


def test_the_table_of_the_terminal_shows_checks() -> None:
    file = StringIO()
    console = Console(file=file, width=300)
    run = Run("demo", "default", "uid", False, SPEC, RunStatus(results=[ROW]))
    for one in result_lines(run, console):
        console.print(one)
    text = file.getvalue()
    assert "checks" in text
    (of_check,) = [said for said in text.splitlines() if EVIL in said]
    assert of_check.split()[-3:] == ["40", "10", "80%"]
    assert "77 requests went to cdn:443 and are in no figure (3 errors)" in text


def test_the_csv_has_how_many_checks_failed() -> None:
    head, line = to_csv([ROW]).splitlines()
    cells = dict(zip(head.split(","), line.split(","), strict=True))
    assert (cells["iterations"], cells["checks_passed"], cells["checks_failed"]) == (
        "1234",
        "90",
        "10",
    )


def test_a_status_that_is_too_large_keeps_the_checks_that_failed_most() -> None:
    whole = len(json.dumps([ROW.to_wire()]))
    (shorter,) = status_rows([ROW], whole)
    assert shorter.script is not None
    # Not what the row says better itself.
    kept = [one.name for one in shorter.script.metrics]
    assert kept == ["complete", "group_duration{group:::a}", "sold|out"]
    assert len(shorter.script.checks) == 2
    (shorter,) = status_rows([ROW], len(json.dumps([shorter.to_wire()])) - 1)
    assert shorter.script is not None
    assert shorter.script.metrics == []
    assert [one.failed for one in shorter.script.checks] == [10]
    assert shorter.script.checks_passed == 90
    (shortest,) = status_rows([ROW], 10)
    assert shortest.script is None


def test_metrics_of_scripts_are_left_out_of_results_before_trials_are() -> None:
    trial = TrialResult(
        trial="t",
        ordinal=1,
        server="fastapi",
        load="own",
        repetition=1,
        outcome=TrialOutcome.MEASURED,
        script=SCRIPT,
    )
    whole = replace(report(), trials=[trial])
    most = 1_000_000
    seen: list[list[str]] = [[]]
    while len((text := to_json(whole, most)).encode()) <= most:
        left_out = json.loads(text)["leftOut"]
        seen += [left_out] if left_out != seen[-1] else []
        most = len(text.encode()) - 1
    assert seen[1:4] == [
        ["trials.script", "trials.endpoints"],
        ["trials.script", "trials.endpoints", "rows.script.metrics"],
        ["trials", "rows.script.metrics"],
    ]
