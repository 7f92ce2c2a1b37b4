"""What a script says, in the report, the table of the terminal, the CSV and the status."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

from rich.console import Console

from laptime.analysis import Summary
from laptime.api.results import ResultRow, RowState, TrialOutcome, TrialResult, Validity
from laptime.api.script import CheckResult, OtherHost, ScriptFigures, ScriptMetric
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import RunStatus
from laptime.cli.result_table import result_lines
from laptime.cli.runs import Run
from laptime.report import Report, to_csv, to_markdown
from laptime.report.document import to_json
from laptime.report.html import to_html
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
    summary = Summary((ROW,), None, None, "nothing to compare", (), (), None, True)
    return Report("demo", "default", SPEC, 1, summary, ())


def test_markdown_shows_checks_and_does_nothing_with_their_names() -> None:
    text = to_markdown(report())
    assert "| fastapi | 1,234 | 6 | 10 of 100 failed (10.0%) | throughput |" in text
    assert r"\<script\>alert(1)\</script\> \| a \[link\](x) \`code\` \[red\] | 40 | 10 |" in text
    assert "| fastapi | cdn:443 | 77 | 3 |" in text
    assert r"| fastapi | sold\|out | 9 | 1,234 | - |" in text
    assert "| fastapi | group_duration{group:::a} | 5 | 1.50 s | - |" in text
    assert "| fastapi | complete | 4 | 25.0% | - |" in text
    assert "| vus |" not in text
    assert r"- fastapi, script: more than 100 \<b\>names\</b\>" in text


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
    assert f"'{EVIL}' 10" in text
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
    assert shorter.script.metrics == []
    assert len(shorter.script.checks) == 2
    (shorter,) = status_rows([ROW], len(json.dumps([shorter.to_wire()])) - 1)
    assert shorter.script is not None
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
