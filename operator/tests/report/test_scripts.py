"""What a script says, in the report, the table of the terminal, the CSV and the status."""

from __future__ import annotations

import json
from io import StringIO

from rich.console import Console

from laptime.analysis import Summary
from laptime.api.results import ResultRow, RowState, Validity
from laptime.api.script import CheckResult, OtherHost, ScriptFigures
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import RunStatus
from laptime.cli.result_table import result_lines
from laptime.cli.runs import Run
from laptime.report import Report, to_csv, to_markdown
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
    (shorter,) = status_rows([ROW], whole - 1)
    assert shorter.script is not None
    assert [one.failed for one in shorter.script.checks] == [10]
    assert shorter.script.checks_passed == 90
    (shortest,) = status_rows([ROW], 10)
    assert shortest.script is None
