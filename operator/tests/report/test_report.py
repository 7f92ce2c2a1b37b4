"""Reports: everything is in them, they stay small, and foreign text does nothing in them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from markdown_it import MarkdownIt

from laptime.analysis import summarise, wording
from laptime.analysis.repeated import LATENCIES
from laptime.api import doubts
from laptime.api.causes import Cause, LimitedBy
from laptime.api.loads import Load
from laptime.api.metrics import Metric
from laptime.api.node_path import NodePath
from laptime.api.placement import Nodes, RunPlacement
from laptime.api.results import (
    Interval,
    LatencyFigure,
    NetworkPath,
    ResultRow,
    Saturation,
    Tie,
    TrialLength,
)
from laptime.api.script import ScriptFigures, ScriptMetric
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import KeptScript
from laptime.api.usage import (
    ComponentUsage,
    CoresOverTime,
    ProcessUsage,
    RowUsage,
    Source,
    TrialUsage,
)
from laptime.catalog import scenarios
from laptime.plan import Trial
from laptime.report import (
    End,
    Experiment,
    Report,
    read_results,
    result_files,
    status_rows,
    to_json,
    to_markdown,
)
from laptime.report.contents import LEFT_OUT
from laptime.report.html import to_html
from laptime.report.markdown import _plain, describe_load, tiers
from laptime.report.status import MAX_STATUS_BYTES
from tests.analysis.runs import Outcome, make_spec, run, steady, summary_of
from tests.report.html_tree import parse
from tests.report.sample import recorded
from tests.slow import within

SPEC = BenchmarkRunSpec.model_validate(
    {
        "scenario": "users",
        "servers": [
            {"name": "fastapi", "preset": "fastapi-sync"},
            {"name": "axum", "preset": "axum-sqlx"},
            {"name": "mine", "image": "registry.example/mine:1"},
        ],
        "topology": {"postgres": {}, "pgbouncer": {}, "haproxy": {}},
        "loads": [
            {"name": "closed", "closed": {"connections": 10, "requests": 50000, "keepAlive": False}}
        ],
        "repetitions": 3,
        "objectives": [
            {"server": "axum", "load": "closed", "metric": "p99", "atMost": "5ms"},
            {"server": "fastapi", "load": "closed", "metric": "p99", "atMost": "1us"},
        ],
    }
)
RATES = {"fastapi": 600.0, "axum": 15000.0}
MESSAGE = 'GET /: $[0].email: expected "a|b", got "<script>"\n# not a heading'


def script(trial: Trial) -> Outcome | None:
    if trial.server == "mine":
        return None
    wobble = 1 + trial.ordinal / 1000
    errors = 10 if (trial.server, trial.repetition) == ("fastapi", 2) else 0
    return Outcome(RATES[trial.server] * wobble, errors=errors)


def make_report() -> Report:
    _, results, _ = run(SPEC, script)
    published = scenarios()["users"].published
    summary = summary_of(SPEC, script, published, failures={"mine": ("WrongAnswer", MESSAGE)})
    where = {"node": "n1", "cpu": "2 cores"}
    return Report("demo", "default", SPEC, 42, summary, results, where, published=published)


REPORT = make_report()
MARKDOWN = to_markdown(REPORT)


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(to_json(REPORT))
    return loaded


def test_who_has_a_pool_or_a_cap_of_its_own_is_said() -> None:
    own = {"pgbouncer": {"poolSize": 40, "poolMode": "session"}, "haproxy": {"maxConnections": 7}}
    wire = SPEC.to_wire()
    wire["topology"] = {"postgres": {}, "pgbouncer": {}, "haproxy": {}}
    wire["servers"][1]["topology"] = own
    report = replace(REPORT, spec=BenchmarkRunSpec.model_validate(wire))
    said = (
        f"HAProxy → server → PgBouncer → Postgres; {wire['servers'][1]['name']}: 40 connections in "
        "PgBouncer, PgBouncer's pool mode session, at most 7 requests at once through HAProxy"
    )
    assert tiers(report) == said
    assert said in to_markdown(report)
    assert said in parse(to_html(report, {})).text


def test_what_makes_every_answer_slower_is_on_the_way_of_a_request() -> None:
    def said(**topology: Any) -> str:
        spec = BenchmarkRunSpec.model_validate({**SPEC.to_wire(), "topology": topology})
        report = replace(REPORT, spec=spec)
        assert tiers(report) in to_markdown(report)
        assert tiers(report) in parse(to_html(report, {})).text
        return tiers(report)

    both = {"servers": "20ms", "database": "5ms"}
    assert said(
        postgres={}, pgbouncer={}, haproxy={}, delay=both, upstream={"latency": "70ms"}
    ) == (
        "delay (20ms) → HAProxy → server → delay (5ms) → PgBouncer → Postgres; "
        "upstream that takes 70ms"
    )
    assert said(delay={"servers": "20ms"}) == "delay (20ms) → server"
    # Earlier versions took parts of a millisecond, and added none.
    assert said(delay={"servers": "400us"}) == "delay (0ms) → server"
    assert said(database="sqlite") == "server → SQLite in its pod"


def test_whether_servers_share_a_database_is_said() -> None:
    wire = {**SPEC.to_wire(), "topology": {"postgres": {"databases": "perServer"}}}
    report = replace(REPORT, spec=BenchmarkRunSpec.model_validate(wire))
    assert tiers(report) == "server → Postgres, a database for each server"
    assert tiers(report) in to_markdown(report)
    wire["topology"] = {"postgres": {"databases": "shared"}}
    assert tiers(replace(report, spec=BenchmarkRunSpec.model_validate(wire))) == "server → Postgres"


def test_the_document_says_its_version_and_where_it_was_measured() -> None:
    assert document()["schemaVersion"] == 2
    assert document()["environment"] == {"cpu": "2 cores", "node": "n1"}
    assert document()["run"] == {
        "name": "demo",
        "namespace": "default",
        "seed": 42,
        "baseline": "fastapi",
        "startedAt": REPORT.trials[0].started_at,
        "finishedAt": max(trial.finished_at or "" for trial in REPORT.trials),
    }


def test_where_nodes_rotate_the_report_says_which_node_had_which_repetitions() -> None:
    spec = REPORT.spec.model_copy(update={"nodes": Nodes.ROTATE})
    turns = ("n2", "n1")
    trials = [
        trial.model_copy(update={"nodes": {"server": [turns[trial.repetition % 2]]}})
        for trial in REPORT.trials
    ]
    last = max(trial.repetition for trial in trials)
    evens = ", ".join(str(n) for n in range(2, last + 1, 2))
    odds = ", ".join(str(n) for n in range(1, last + 1, 2))
    said = f"- Nodes of the servers, by repetition: n1 in {odds}; n2 in {evens}\n"
    assert said in to_markdown(replace(REPORT, spec=spec, trials=trials))
    stayed = [trial.model_copy(update={"nodes": {"server": ["n1"]}}) for trial in REPORT.trials]
    text = to_markdown(replace(REPORT, spec=spec, trials=stayed))
    assert "(they did not rotate: no other node took them)\n" in text
    assert "by repetition: they rotate\n" in to_markdown(replace(REPORT, spec=spec, trials=[]))
    assert "Nodes of the servers" not in to_markdown(replace(REPORT, trials=trials))


def test_the_report_says_how_far_the_servers_were() -> None:
    def network(trip: float, again: int = 0) -> NetworkPath:
        return NetworkPath(round_trip_seconds=trip, segments_sent=5000, segments_sent_again=again)

    def said(*known: NetworkPath | None) -> str:
        trials = [
            trial.model_copy(update={"network": one})
            for trial, one in zip(REPORT.trials, known, strict=False)
        ]
        return to_markdown(replace(REPORT, trials=trials))

    assert (
        "- Network to the servers: 45.0 us to 1.20 ms there and back at least; nothing sent again\n"
        in said(network(45e-6), network(1.2e-3), None)
    )
    assert "45.0 us there and back at least; 12 of 10,000 segments sent again\n" in said(
        network(45e-6, 12), network(45e-6)
    )
    assert "Network to the servers" not in said(None)


def test_the_report_says_what_two_nodes_exchange() -> None:
    known = NodePath(
        generator_node="far",
        server_node="near",
        to_server_bytes_per_second=117.5e6,
        from_server_bytes_per_second=1.176e9,
        from_server_at_least=True,
        round_trip_seconds=0.0002,
    )
    lost = NodePath(generator_node="far", server_node="other", message="no room")
    report = replace(REPORT, node_paths=[known, lost])
    assert (
        "- Between the nodes: far to near 940 Mbit/s, back at least 9.41 Gbit/s; "
        "far to other not known (no room)\n"
    ) in to_markdown(report)
    _, again = read_results(to_json(report))
    assert again.node_paths == (known, lost)
    assert "Between the nodes" not in to_markdown(REPORT)


def test_the_placement_of_a_run_is_in_the_document_and_the_reports() -> None:
    placed = replace(REPORT, placement=RunPlacement(name="isolated", rules="0a"))
    text = to_json(placed)
    assert json.loads(text)["run"]["placement"] == {"name": "isolated", "rules": "0a"}
    assert read_results(text)[1].placement == placed.placement
    assert "- Placement: isolated\n" in to_markdown(placed)
    assert "<dt>Placement</dt><dd>isolated</dd>" in to_html(placed, {})
    assert "Placement" not in MARKDOWN


def test_the_scripts_that_a_run_began_with_are_in_the_document() -> None:
    kept = replace(REPORT, scripts=(KeptScript(config_map="shop", hash="0a"),))
    text = to_json(kept)
    assert json.loads(text)["run"]["scripts"] == [{"configMap": "shop", "hash": "0a"}]
    assert read_results(text)[1].scripts == kept.scripts
    assert "scripts" not in json.loads(to_json(REPORT))["run"]


def test_whether_nodes_were_quiet_is_in_the_document_and_the_reports() -> None:
    report, _ = recorded(small=True)
    text = to_json(report)
    isolation = report.summary.isolation
    assert isolation is not None
    assert json.loads(text)["isolation"] == isolation.to_wire()
    assert read_results(text)[1].summary.isolation == isolation
    assert f"- Nodes: {wording.isolation(isolation)}\n" in to_markdown(report)
    names = json.loads(text)["trials"][0]["usage"]["nodes"][0]["neighbours"]
    assert names == [{"pod": "web-<1>", "cores": report.trials[0].ordinal / 100}]


def test_of_results_of_the_version_before_it_is_not_known() -> None:
    report, _ = recorded(small=True)
    before = json.loads(to_json(report))
    del before["isolation"]
    for trial in before["trials"]:
        del trial["isolation"]
    _, again = read_results(json.dumps(before))
    said = "not known: the version of Laptime that measured it did not tell"
    assert f"- Nodes: {said}\n" in to_markdown(again)
    assert f"By the worst trial: {said}." in parse(to_html(again, {})).by_id("isolation").text
    nothing = replace(REPORT, summary=replace(REPORT.summary, rows=()))
    assert "- Nodes:" not in to_markdown(nothing)


def test_the_document_has_rows_and_trials_as_they_are() -> None:
    rows = [ResultRow.model_validate(row) for row in document()["rows"]]
    assert tuple(rows) == REPORT.summary.rows
    assert [trial["trial"] for trial in document()["trials"]] == [t.trial for t in REPORT.trials]
    assert BenchmarkRunSpec.model_validate(document()["spec"]) == SPEC
    assert document()["leftOut"] == []


def test_the_same_report_is_the_same_text() -> None:
    assert to_json(make_report()) == to_json(REPORT)
    assert to_markdown(make_report()) == MARKDOWN


def table(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, its head line first."""
    lines = MARKDOWN.split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith(heading))
    rows = []
    for line in lines[start + 1 :]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return [row for row in rows if not row[0].startswith("---")]


def test_the_table_shows_each_server_with_the_published_factor_beside_the_measured_one() -> None:
    head, fastapi, axum, mine = table("## Load closed")
    assert head == [
        "server", "rank", "requests/s (95 %)", "p50 (95 %)", "p99 (95 %)",
        "p99.9 (95 %)", "errors", "factor (95 %)",
        "published", "CPU cores", "memory", "limited by (suspected)", "validity",
    ]  # fmt: skip
    assert fastapi[0] == "fastapi (baseline)"
    assert fastapi[6:] == ["10 (0.826%)", "1.00x", "1.00x", "-", "-", "-", "doubtful"]
    assert axum[:2] == ["axum", "1"]
    assert axum[2].startswith("15,0")
    assert axum[3] == "1.00 ms"
    assert axum[6] == "0"
    assert axum[7].startswith("25.")
    assert axum[8:] == ["25.1x", "-", "-", "-", "valid"]
    assert mine == ["mine", *["-"] * 11, "failed"]


MISSING = "No published factor beside mine: figures are published of presets, and this is none."


def test_why_a_published_factor_is_missing_stands_below_the_table() -> None:
    above, below = MARKDOWN.split(f"\n\n{MISSING}\n")
    assert above.splitlines()[-1].startswith("| mine |")
    assert MISSING not in below


def test_a_status_too_large_for_texts_has_no_room_for_why() -> None:
    (*_, mine) = status_rows(REPORT.summary.rows, 10)
    assert mine.published_missing is None


def test_what_limited_a_server_and_what_it_used_stand_in_the_table_with_their_evidence() -> None:
    row = REPORT.summary.rows[1].model_copy(
        update={
            "limited_by": LimitedBy(
                cause=Cause.SERVER_CPU, evidence="used 0.97 cores", also=[Cause.NODE]
            ),
            "usage": RowUsage(
                source=Source.AGENT,
                cores_mean=0.97,
                cores_peak=1.02,
                memory_bytes=11 * 2**20,
                requests_per_cpu_second=15_838,
                requests_per_second_per_mib=1_396,
                doubts=["readings are incomplete in 1 of 5 repetitions: 4.0 s without a sample"],
            ),
            "statements_per_request": 1.0,
        }
    )
    report = replace(REPORT, summary=replace(REPORT.summary, rows=(row,)))
    text = to_markdown(report)
    assert "| 0.97 (peak 1.0) | 11.0 MiB | server CPU | valid |" in text
    assert (
        "- axum, limited by server CPU (suspected): used 0.97 cores; near their limits too: node"
        in text
    )
    unknown = LimitedBy(cause=Cause.UNKNOWN, evidence="nobody watched")
    row = row.model_copy(update={"limited_by": unknown})
    of_unknown = to_markdown(replace(REPORT, summary=replace(REPORT.summary, rows=(row,))))
    assert "- axum, limited by unknown: nobody watched" in of_unknown
    assert "suspected from readings, until kubectl laptime explain proves it" in text
    assert (
        "- axum: 15,838 requests per CPU-second, 1,396 requests/s per MiB, "
        "1.00 statements per request" in text
    )
    assert "- axum, CPU, memory and cause: readings are incomplete in 1 of 5" in text


def test_what_was_tried_since_stands_beside_what_is_suspected() -> None:
    said = "confirmed: 1.62x (1.54 to 1.70) with 10 database connections instead of 5"
    row = REPORT.summary.rows[1]
    tried = Experiment("shop-axum-explain", row.server, row.load, [said, "refuted: 1.00x | <b>"])
    other = replace(tried, load="another")
    text = to_markdown(replace(REPORT, experiments=[tried, other]))
    assert text.count("tried in shop-axum-explain: confirmed: 1.62x") == 1
    assert f"- {row.server}, tried in shop-axum-explain: {said}" in text
    assert "tried in" not in to_markdown(REPORT)


def test_an_open_load_has_times_from_sent_and_a_search_its_bounds() -> None:
    row = REPORT.summary.rows[1]
    assert row.latency_figures is not None
    p99 = LatencyFigure(seconds=Interval(value=0.0005, low=0.0004, high=0.0006))
    sent = row.latency_figures.model_copy(update={"p99": p99})
    found = Saturation(
        low_rate=4800, high_rate=5040, p99_objective_seconds=0.05, error_rate_objective=0
    )
    extra = {
        "uncorrected_latency": row.latency,
        "uncorrected_figures": sent,
        "lateness_p99_seconds": 7e-5,
        "saturation": found,
    }
    text = to_markdown(
        replace(REPORT, summary=replace(REPORT.summary, rows=(row.model_copy(update=extra),)))
    )
    assert "| 1.00 ms | 500 us (400 to 600) |" in text
    assert "| 70.0 us |" in text
    assert "| axum | 4,800 | 5,040 | not found |" in text
    assert "p99, sent" not in MARKDOWN
    assert "missed from" not in MARKDOWN


def test_where_nobody_waited_the_reports_show_no_queue() -> None:
    report, _ = recorded()
    (row,) = [r for r in report.summary.rows if (r.server, r.load) == ("axum", "open")]
    shown = [
        wording.latency_figure(row.response_time(metric), ends=True)
        for metric in (Metric.P50, Metric.P99, Metric.P999)
    ]
    both = [one for figure in shown for one in (figure, figure)]
    assert f"| axum | {' | '.join(both)} | 60.0 us |" in to_markdown(report)


def test_precision_and_control_stand_among_the_facts() -> None:
    spec = make_spec("fastapi", "axum", precision="5%", control=True).with_control()
    rates = {"fastapi": 600.0, "axum": 900.0, "fastapi-control": 601.0}
    trials, results, payloads = run(spec, steady(rates))
    summary = summarise(spec, trials, results, payloads, None, {})
    text = to_markdown(Report("demo", "default", spec, 1, summary, results))
    assert "24 of 24 measured, in 8 repetitions" in text
    assert re.search(r"- Precision: 5% asked for, 0\.\d+% to each side reached", text)
    assert re.search(
        r"- Control under closed: 1\.00x \(.* to .*\) the baseline, not told apart; "
        r"differences from 1\.\d\d% on can be found",
        text,
    )
    assert json.loads(to_json(Report("demo", "default", spec, 1, summary, results)))["control"]


def test_a_precision_is_not_said_to_be_reached_beside_a_server_without_an_interval() -> None:
    spec = make_spec("fastapi", "axum", "go", precision="5%")
    rates = steady({"fastapi": 600.0, "axum": 900.0, "go": 800.0})

    def script(trial: Trial) -> Outcome | None:
        if trial.server == "go" and trial.repetition > 1:
            return Outcome(0.0, latencies=(), errors=50)
        return rates(trial)

    trials, results, payloads = run(spec, script)
    summary = summarise(spec, trials, results, payloads, None, {})
    report = Report("demo", "default", spec, 1, summary, results)
    assert "- Precision: 5% asked for, none reached" in to_markdown(report)
    said = "the precision of 5% was not reached: too few repetitions count for an interval of go"
    assert said in summary.verdict
    assert json.loads(to_json(report)).get("halfWidth") is None


@pytest.mark.parametrize("failing", ["fastapi", "go"])
def test_a_precision_is_not_said_to_be_reached_beside_a_percentile_that_failed(
    failing: str,
) -> None:
    rate = {"rate": 100, "duration": "10s", "maxConnections": 100}
    asked = make_spec("fastapi", "go", precision="5%").to_wire()
    spec = BenchmarkRunSpec.model_validate({**asked, "loads": [{"name": "open", "open": rate}]})

    def script(trial: Trial) -> Outcome:
        errors = 50 if trial.server == failing else 0
        return Outcome(100.0, (5000 + 10 * trial.repetition,) * 400, errors)

    trials, results, payloads = run(spec, script)
    summary = summarise(spec, trials, results, payloads, None, {})
    assert f"the precision of 5% was not reached: {failing} has no figure" in summary.verdict
    report = Report("demo", "default", spec, 1, summary, results)
    assert "- Precision: 5% asked for, none reached" in to_markdown(report)
    assert json.loads(to_json(report)).get("halfWidth") is None


@pytest.mark.parametrize(
    ("more", "ranks_from", "surer"),
    [
        ({}, "from 8 repetitions on", None),
        ({"precision": "2%"}, "from 8 repetitions on", "one of 96 %"),
        # As far as 30 repetitions, and as far as 10.
        ({"stopWhen": "decided"}, "from 12 repetitions on", "one of 99.4 to 99.7 %"),
        ({"stopWhen": "decided", "maxRepetitions": 10}, None, "one of 98.8 to 99.3 %"),
    ],
)
def test_it_says_how_the_intervals_of_this_run_were_found(
    more: dict[str, Any], ranks_from: str | None, surer: str | None
) -> None:
    spec = make_spec("fastapi", "axum", repetitions=3, **more)
    rates = {"fastapi": 600.0, "axum": 900.0}
    trials, results, payloads = run(spec, steady(rates))
    summary = summarise(spec, trials, results, payloads, None, {})
    report = Report("demo", "default", spec, 1, summary, results)
    for text in (to_markdown(report), parse(to_html(report, payloads)).text):
        said = " ".join(text.split()).partition("right answers within the measured window: ")[2]
        said = said.partition(" Factors of three servers")[0]
        assert said.startswith("the geometric mean of the repetitions with its 95 % confidence ")
        assert re.findall(r"from \d+ repetitions on", said) == ([ranks_from] if ranks_from else [])
        assert re.findall(r"one of [\d. to]+%", said) == ([surer] if surer else [])


def test_every_line_of_a_table_has_as_many_cells_as_its_head() -> None:
    for block in MARKDOWN.split("\n\n"):
        lines = [line for line in block.split("\n") if line.startswith("| ")]
        assert len({line.replace("\\|", "").count("|") for line in lines}) <= 1


def test_the_verdict_stands_first_and_the_facts_below_it() -> None:
    assert MARKDOWN.startswith("# demo\n\n**axum is fastest: 25.")
    assert "closed, 10 connections without keep-alive, 50,000 requests" in MARKDOWN
    assert "HAProxy → server → PgBouncer → Postgres" in MARKDOWN
    assert "6 of 9 measured, in 3 repetitions, shuffled with seed 42" in MARKDOWN
    assert "- node: n1" in MARKDOWN


def test_doubts_and_failures_are_said_with_their_reason() -> None:
    assert "- fastapi, doubtful: 0.826% of the requests had no right answer" in MARKDOWN
    assert f"\n- {doubts.ERRORS.kind}: {doubts.ERRORS.advice}\n" in MARKDOWN
    assert "- mine, failed: WrongAnswer: GET /: " in MARKDOWN


def test_foreign_text_is_shown_and_does_nothing_else() -> None:
    assert "<script>" not in MARKDOWN.replace("\\<", "")
    assert "\n# not a heading" not in MARKDOWN
    assert '"a\\|b"' in MARKDOWN


FOREIGN = (
    "@admin and @org/team: see https://evil.example/x?a=1&b=2, www.evil.example or a@evil.example; "
    "owner/repo#12, #3, GH-4; __bold__ _so_ ~~gone~~ *x* `y` [a](b) a|b &lt;b&gt; max_connections"
)
ACTS = re.compile(r"(?<!\w)@\w|://|www\.|\w@\w+\.|#\d|GH-\d", re.IGNORECASE)
"""What calls people, or links by itself, in the Markdown of places where people talk."""


def test_a_long_foreign_text_is_read_in_no_time() -> None:
    parts = ("a", "1a", "a/", "x.", "@a", "_", "a@", "http:/", "a#")
    text = " ".join(part * 200_000 for part in parts)
    assert within(60, _plain, text).replace("\\", "").replace("`", "") == text


def test_foreign_text_calls_nobody_and_links_nowhere() -> None:
    row = REPORT.summary.rows[0].model_copy(update={"validity_reasons": [FOREIGN]})
    met = REPORT.summary.objectives[0].model_copy(update={"message": FOREIGN})
    published = scenarios()["users"].published
    assert published is not None
    report = replace(
        REPORT,
        summary=replace(REPORT.summary, rows=(row,), objectives=(met,), verdict=FOREIGN),
        environment={"CPU": FOREIGN},
        published=published.model_copy(update={"title": FOREIGN, "notes": [FOREIGN]}),
    )
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    shown = 0
    for block in markdown.parse(to_markdown(report)):
        said = block.children or []
        assert {one.type for one in said} <= {"text", "code_inline", "strong_open", "strong_close"}
        assert not [one.content for one in said if one.type == "text" and ACTS.search(one.content)]
        shown += FOREIGN in "".join(one.content for one in said)
    assert shown == 6


def test_objectives_are_listed_met_or_missed() -> None:
    assert table("## Objectives")[1:] == [
        ["met", "axum", "closed", "p99 at most 5ms", "1.00 ms", ""],
        [
            "**not known**",
            "fastapi",
            "closed",
            "p99 at most 1us",
            "failed (1x), 0.826% of the requests had no right answer",
            "0.826% of the requests had no right answer (0.00% to 4.31%), 0.1% may",
        ],
    ]


def test_the_order_stands_beside_the_published_one() -> None:
    said = "Same order as published: **yes**. Published: axum, fastapi; measured: axum, fastapi."
    assert said in MARKDOWN


def test_the_published_figures_are_there_with_their_flaws() -> None:
    rows = table("## As published")
    assert ["axum-sqlx", "any", "15,363", "600 us", "900 us", "1.00 ms", "25.1x"] in rows
    assert "compare factors and order, never absolute times" in MARKDOWN


def test_a_run_with_nothing_measured_still_has_a_report() -> None:
    summary = summary_of(SPEC, lambda _: None)
    report = Report("demo", "default", SPEC, 42, summary, [])
    assert "nothing is measured yet" in to_markdown(report)
    assert json.loads(to_json(report))["run"]["startedAt"] is None


def test_how_a_run_ended_that_did_not_succeed_stands_below_the_verdict() -> None:
    end = End("Failed", "TurnOver", "it has had its turn for 2h, as long as it may; `1` of 9")
    report = replace(REPORT, end=end)
    text = to_json(report)
    assert json.loads(text)["run"] | asdict(end) == json.loads(text)["run"]
    assert read_results(text)[1].end == end
    said = "The run ended as Failed: TurnOver: it has had its turn for 2h, as long as it may; "
    assert f"**\n\n{said}\\`1\\` of 9.\n" in to_markdown(report)
    assert f"{said}`1` of 9." in parse(to_html(report, {})).all("header")[0].text
    for other in (None, End("Succeeded", "Completed")):
        report = replace(REPORT, end=other)
        assert "The run ended as" not in to_markdown(report) + to_html(report, {})
    cancelled = replace(REPORT, end=End("Cancelled", "Cancelled", "spec.cancel is true"))
    assert "\nThe run ended as Cancelled: spec.cancel is true.\n" in to_markdown(cancelled)


def test_the_files_of_the_config_map() -> None:
    files = result_files("demo", "default", SPEC, 42, REPORT.summary, REPORT.trials)
    assert set(files) == {"results.json"}
    assert json.loads(files["results.json"])["environment"] == {}


@pytest.fixture(scope="module")
def largest() -> Report:
    """The largest run that the schema allows, with long texts everywhere."""
    spec = make_spec(
        *(f"server-number-{n:05d}" for n in range(32)),
        loads=tuple(f"load-number-{n:07d}" for n in range(16)),
        repetitions=3,
    )
    _, (sample, *_), _ = run(make_spec("a"), lambda _: Outcome(1.0, errors=1))
    row = REPORT.summary.rows[0].model_copy(
        update={
            "message": "m" * 300,
            "validity_reasons": ["r" * 300] * 6,
            "limited_by": LimitedBy(cause=Cause.DATABASE_CONNECTIONS, evidence="e" * 300),
            "usage": RowUsage(source=Source.AGENT, cores_mean=1 / 3, doubts=["d" * 300]),
            "uncorrected_latency": REPORT.summary.rows[0].latency,
            "uncorrected_figures": REPORT.summary.rows[0].latency_figures,
            "lateness_p99_seconds": 0.000123,
            "saturation": Saturation(
                low_rate=1e5 / 3, high_rate=2e5 / 3, breaking_rate=4e5 / 3,
                p99_objective_seconds=0.05, error_rate_objective=0.001,
            ),
        }
    )  # fmt: skip
    rows = tuple(
        row.model_copy(update={"server": server.name, "load": load.name})
        for load in spec.loads
        for server in spec.servers
    )
    summary = REPORT.summary
    big = replace(summary, rows=rows, fastest="a", fastest_factor="1x")
    return Report("r" * 40, "n" * 63, spec, 1, big, [sample] * 1536)


def test_the_largest_run_fits_into_a_config_map(largest: Report) -> None:
    files = result_files(
        largest.name, largest.namespace, largest.spec, 1, largest.summary, largest.trials
    )
    assert sum(len(text.encode()) for text in files.values()) <= 600_000
    loaded = json.loads(files["results.json"])
    assert len(loaded["rows"]) == 512
    assert "trials" in loaded["leftOut"]
    for of_it in ("latencyFigures", "uncorrectedFigures"):
        assert loaded["rows"][0][of_it]["p50"]["seconds"] == {"value": pytest.approx(0.001)}
    text = to_markdown(read_results(files["results.json"], largest.spec)[1])
    assert text.count("| server-number-") >= 512


def test_figures_per_request_are_left_out_before_trials_are() -> None:
    whole = len(to_json(REPORT).encode())
    compact = len(json.dumps(json.loads(to_json(REPORT)), separators=(",", ":")).encode())
    assert json.loads(to_json(REPORT, whole))["leftOut"] == []
    assert json.loads(to_json(REPORT, compact + 10))["leftOut"] == []
    smaller = json.loads(to_json(REPORT, compact - 100))
    assert smaller["leftOut"] == ["trials.endpoints"]
    assert len(smaller["trials"]) == len(REPORT.trials)


def test_cpu_over_time_is_left_out_before_anything_else() -> None:
    report, _ = recorded()
    compact = len(json.dumps(json.loads(to_json(report)), separators=(",", ":")).encode())
    smaller = json.loads(to_json(report, compact - 100))
    assert smaller["leftOut"] == ["trials.usage.components.coresOverTime"]
    parts = [part for trial in smaller["trials"] for part in trial["usage"]["components"]]
    assert not any("coresOverTime" in part for part in parts)
    assert all("coresMean" in part for part in parts)
    assert all(trial["endpoints"] for trial in smaller["trials"])
    smaller = json.loads(to_json(report, compact - 50_000))
    assert smaller["leftOut"] == ["trials.usage.components.coresOverTime", "trials.endpoints"]


def test_processes_are_left_out_before_requests_are() -> None:
    first = REPORT.trials[0]
    one = ProcessUsage(process=41, parent=7, command="gunicorn", cores=0.5, cores_peak=0.6)
    processes = [one] * 16
    part = ComponentUsage(component="server", pods=1, cores_mean=8.0, processes=processes)
    usage = TrialUsage(source=Source.AGENT, complete=True, components=[part])
    report = replace(REPORT, trials=[first.model_copy(update={"usage": usage})])
    compact = len(json.dumps(json.loads(to_json(report)), separators=(",", ":")).encode())
    smaller = json.loads(to_json(report, compact - 100))
    assert smaller["leftOut"] == ["trials.usage.components.processes"]
    (kept,) = smaller["trials"]
    (server,) = kept["usage"]["components"]
    assert "processes" not in server
    assert server["coresMean"] == 8.0
    assert kept["endpoints"]


def test_all_that_may_be_left_out_has_a_name_for_people() -> None:
    report, _ = recorded(small=True)
    process = ProcessUsage(process=41, parent=7, command="gunicorn", cores=0.5, cores_peak=0.6)
    curve = CoresOverTime(span_seconds=1, cores=[0.5])
    part = ComponentUsage(component="server", pods=1, processes=[process], cores_over_time=curve)
    usage = TrialUsage(source=Source.AGENT, complete=True, components=[part])
    metric = ScriptMetric(name="m", type="counter", samples=1, value=1.0)
    said = ScriptFigures(warmup_named=True, metrics=[metric])
    trials = [
        report.trials[0].model_copy(update={"script": said}),
        report.trials[1].model_copy(update={"usage": usage}),
    ]
    rows = tuple(row.model_copy(update={"script": said}) for row in report.summary.rows)
    kept = scenarios()["users"]
    whole = replace(
        report,
        trials=trials,
        summary=replace(report.summary, rows=rows),
        scenario=kept,
        scenario_hash=kept.hash,
    )
    larger, document = "", to_json(whole)
    left_out: set[str] = set()
    while document != larger:
        left_out |= set(json.loads(document)["leftOut"])
        larger, document = document, to_json(whole, len(document) - 1)
    assert left_out == {*LEFT_OUT, "spec"}


def test_lists_of_numbers_stand_in_one_line_and_texts_as_they_are() -> None:
    first = REPORT.trials[0]
    curve = CoresOverTime(span_seconds=1, cores=[0.5, None, 1e-3])
    part = ComponentUsage(component="server", pods=1, cores_over_time=curve)
    usage = TrialUsage(source=Source.AGENT, complete=True, gaps=["[\n 1,  2]"], components=[part])
    trials = [first.model_copy(update={"usage": usage})]
    text = to_json(replace(REPORT, trials=trials))
    assert '"cores": [0.5, null, 0.001]' in text
    assert json.loads(text)["trials"][0]["usage"] == usage.to_wire()


def test_rows_go_into_the_status_as_they_are() -> None:
    assert status_rows(REPORT.summary.rows) == list(REPORT.summary.rows)


def test_rows_of_the_largest_run_fit_into_the_status_with_all_figures(largest: Report) -> None:
    rows = status_rows(largest.summary.rows)
    assert len(json.dumps([row.to_wire() for row in rows])) <= 600_000
    assert len(rows) == 512
    for row, original in zip(rows, largest.summary.rows, strict=True):
        assert row.requests_per_second == original.requests_per_second
        for metric in LATENCIES:
            whole, kept = original.response_time(metric), row.response_time(metric)
            assert wording.latency_figure(kept) == wording.latency_figure(whole)
        assert row.saturation == original.saturation
        assert row.limited_by is not None
        assert row.limited_by.cause is Cause.DATABASE_CONNECTIONS
        assert row.usage is not None
        assert row.usage.cores_mean == 0.333333


def test_a_status_that_is_too_large_for_all_doubts_says_that_there_are_more() -> None:
    said = [letter * 100 for letter in "abc"]
    first = REPORT.summary.rows[0].model_copy(update={"validity_reasons": said})
    whole = len(json.dumps([first.to_wire()]).encode())
    (row,) = status_rows([first], whole - 1)
    assert row.validity_reasons == [said[0], doubts.MORE_DOUBTS.says(others=2)]
    # Nobody can tell any more what a cut one was, so a gate has to know of it, too.
    (cut,) = status_rows([first.model_copy(update={"validity_reasons": ["a" * 300]})], 10**5)
    assert cut.validity_reasons == ["a" * 300]
    (cut,) = status_rows([cut], len(json.dumps([cut.to_wire()]).encode()) - 1)
    assert cut.validity_reasons == ["a" * 200, doubts.MORE_DOUBTS.says(others=1)]


def test_what_failed_in_the_report_is_no_time_in_a_status_that_is_too_large() -> None:
    spec = make_spec("a", "b")

    def script(trial: Trial) -> Outcome:
        bad = trial.server == "a" and trial.repetition == 1
        return Outcome(1000.0, (1000,) * 2000, errors=60 if bad else 0)

    rows = summary_of(spec, script).rows
    whole, short = (
        [wording.latency_figure(row.response_time(Metric.P99)) for row in status_rows(rows, most)]
        for most in (MAX_STATUS_BYTES, 10)
    )
    assert sorted(whole) == ["1.00 ms", "failed (1x)"]
    assert short == whole


@pytest.mark.parametrize("stored", ["status", "results"])
def test_response_times_are_those_of_the_report_however_large_the_run_is(stored: str) -> None:
    """Repetitions of 9 and 80 ms: of all of them together it is another figure than around both."""
    spec = make_spec("a", "b", repetitions=2)

    def script(trial: Trial) -> Outcome:
        slow = 80_000 if trial.repetition == 2 else 9_000
        return Outcome(1000.0, (*(5_000,) * 1960, *(slow,) * 40))

    summary = summary_of(spec, script)

    def short(most: int) -> Sequence[ResultRow]:
        if stored == "status":
            return status_rows(summary.rows, most)
        text = to_json(Report("r", "n", spec, 1, summary, []), most)
        return read_results(text, spec)[1].summary.rows

    assert summary.rows[0].latency is not None
    assert summary.rows[0].latency.p99_seconds == pytest.approx(0.009, rel=0.01)
    for most in range(20_000, 0, -200):
        rows = short(most)
        said = [wording.latency_figure(row.response_time(Metric.P99)) for row in rows]
        assert said == ["26.9 ms", "26.9 ms"]
    assert [row.latency for row in rows] == [None, None]


def test_what_failed_in_a_repetition_is_no_time_in_results_that_are_too_large() -> None:
    spec = make_spec("a", "b")

    def script(trial: Trial) -> Outcome:
        bad = trial.server == "a" and trial.repetition == 1
        return Outcome(1000.0, (1000,) * 2000, errors=60 if bad else 0)

    def of_sent(row: ResultRow) -> ResultRow:
        times, figures = row.latency, row.latency_figures
        return row.model_copy(update={"uncorrected_latency": times, "uncorrected_figures": figures})

    summary = summary_of(spec, script)
    rows = tuple(map(of_sent, summary.rows))
    text = to_json(Report("r", "n", spec, 1, replace(summary, rows=rows), []), 10)
    assert "rows.latencyFigures" in json.loads(text)["leftOut"]
    _, report = read_results(text, spec)
    said = {
        row.server: [wording.latency_figure(one) for one in row.due_and_sent(Metric.P99)]
        for row in report.summary.rows
    }
    assert said == {"a": ["failed (1x)"] * 2, "b": ["1.00 ms"] * 2}


def test_a_server_that_is_called_as_a_tier_has_an_image_of_its_own() -> None:
    first, *others = REPORT.trials
    images = {"server": "mine@sha256:1", "postgres": "postgres@sha256:2"}
    trial = first.model_copy(update={"server": "postgres", "images": images})
    said = to_markdown(replace(REPORT, trials=[trial, *others])).partition("## Images")[2]
    assert "- postgres: postgres@sha256:2" in said
    assert "- server postgres: mine@sha256:1" in said


def test_shapes_are_described() -> None:
    ramp = {"from": 10, "to": 2000, "duration": "1m", "keepAlive": False}
    assert describe_load(Load.model_validate({"name": "r", "ramp": ramp})) == (
        "ramp, 10 to 2,000 requests/s over 1m, without keep-alive"
    )
    stairs = {"steps": [{"rate": 100, "duration": "10s"}, {"rate": 2000, "duration": "1m"}]}
    random = {**stairs, "arrivals": "poisson"}
    assert describe_load(Load.model_validate({"name": "t", "stairs": random})) == (
        "stairs, requests/s: 100 for 10s, 2,000 for 1m, with keep-alive, Poisson arrivals"
    )
    mixed = {
        "name": "m",
        "closed": {"connections": 8, "duration": "10s"},
        "mix": [{"name": "read", "weight": 9}, {"name": "create", "weight": 1}],
        "thinkTime": {"min": "500ms", "max": "2s"},
    }
    assert describe_load(Load.model_validate(mixed)) == (
        "closed, 8 connections with keep-alive, for 10s, 9 read, 1 create, thinking 500ms to 2s"
    )
    assert describe_load(Load.model_validate({"name": "s", "saturation": {"p99": "50ms"}})) == (
        "saturation, the highest rate with a p99 of at most 50ms and errors of at most 0.1%, "
        "with keep-alive"
    )
    few = {"p99": "50ms", "errorRate": 0.00001}
    assert "errors of at most 0.001%," in (
        describe_load(Load.model_validate({"name": "s", "saturation": few}))
    )
    # What a script speaks it chooses itself.
    calls = {"name": "c", "script": {"configMap": "calls"}, "protocol": "http2"}
    assert "HTTP/2" not in describe_load(Load.model_validate(calls))


def test_what_a_tie_would_cost_is_in_every_form_of_the_report() -> None:
    load = REPORT.spec.loads[0].name
    tie = Tie(load=load, servers=["axum", "go"], difference=0.05, repetitions=6, seconds=185.0)
    report = replace(REPORT, summary=replace(REPORT.summary, ties=(tie,)))
    said = "about 6 more repetitions (3m05s) would tell axum and go apart, if they differ by 5 %"
    assert to_markdown(report).count(said) == 1
    assert said in parse(to_html(report, {})).text
    assert json.loads(to_json(report))["ties"] == [tie.to_wire()]


def test_another_length_of_trials_is_in_every_form_of_the_report_and_read_back() -> None:
    load = REPORT.spec.loads[0].name
    length = TrialLength(
        load=load,
        seconds=10,
        repetitions=6,
        instead_of_seconds=30,
        instead_of_repetitions=5,
        time_share=0.45,
    )
    report = replace(REPORT, summary=replace(REPORT.summary, trial_lengths=(length,)))
    said = "Next time: trials of 10s instead of 30s would find the same differences in throughput"
    assert to_markdown(report).count(said) == 1
    assert said in parse(to_html(report, {})).text
    text = to_json(report)
    assert json.loads(text)["trialLengths"] == [length.to_wire()]
    assert read_results(text)[1].summary.trial_lengths == (length,)
    older = json.loads(text)
    del older["trialLengths"]
    assert read_results(json.dumps(older))[1].summary.trial_lengths == ()


def test_loads_that_stopped_after_repetitions_of_their_own_are_counted_so() -> None:
    spec = make_spec("a", "b", loads=("clear", "close"), stopWhen="decided", repetitions=3)
    trials, results, payloads = run(spec, steady({"a": 600.0, "b": 900.0}))
    more = [
        one.model_copy(update={"repetition": 4, "trial": f"{one.trial}-more"})
        for one in results
        if one.load == "close" and one.repetition == 3
    ]
    summary = summarise(spec, trials, results, payloads, None, {})
    said = Report("demo", "default", spec, 1, summary, [*results, *more]).trials_said
    assert said == "14 of 14 measured, in 3 to 4 repetitions"
