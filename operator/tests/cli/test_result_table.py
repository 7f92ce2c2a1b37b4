"""The table of figures."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from laptime.api.results import Interval, ResultRow
from laptime.cli.result_table import (
    exit_code,
    format_rate,
    result_lines,
)
from laptime.cli.runs import parse_run
from laptime.report.markdown import validity_of
from tests.analysis.runs import Outcome, make_spec, summary_of


def _printed(manifest: Any, status: Any, width: int = 140) -> str:
    metadata = {"name": "demo", "namespace": "team", "uid": "u"}
    run = parse_run({**manifest, "metadata": metadata, "status": status})
    out = io.StringIO()
    console = Console(file=out, width=width)
    for line in result_lines(run, console):
        console.print(line)
    return out.getvalue()


def test_every_figure_of_the_issue_is_in_the_table(manifest: Any, finished_status: Any) -> None:
    text = _printed(manifest, finished_status)
    assert "demo: Succeeded. axum is the fastest." in text
    (line,) = [line for line in text.splitlines() if line.strip().startswith("axum ")]
    cells = [cell for cell in line.split("  ") if cell.strip()]
    assert [cell.strip() for cell in cells] == [
        "axum",
        "15,363 ± 8",
        "15.4ms",
        "29.1ms",
        "1.40s",
        "0",
        "25.1x (24.6 to 25.6)",
        "25.1x",
        "valid",
    ]
    assert "1x (baseline)" in text


def test_a_baseline_that_nothing_can_be_compared_with_has_no_factor(
    manifest: Any, finished_status: Any
) -> None:
    for row in finished_status["results"]:
        row.pop("factor")
    text = _printed(manifest, finished_status)
    assert "1x (baseline)" not in text
    assert "- (baseline)" in text


def test_why_published_factors_are_missing_is_said_once_for_all_that_lack_one_by_it(
    manifest: Any, finished_status: Any
) -> None:
    (first, axum), why = finished_status["results"], "published with 2 workers (here 4)"
    del axum["publishedFactor"]
    axum["publishedMissing"] = why
    finished_status["results"] = [first, axum, {**axum, "server": "again"}]
    said = [line for line in _printed(manifest, finished_status).splitlines() if why in line]
    assert said == [f"  No published factor beside axum and again: {why}."]


@pytest.mark.parametrize("state", ["Cancelled", "Failed"])
def test_a_run_that_did_not_succeed_has_its_verdict_of_what_was_measured(
    state: str, manifest: Any, finished_status: Any
) -> None:
    (condition,) = finished_status["conditions"]
    ended = {**condition, "status": "False", "reason": "OutOfTime", "message": "too long"}
    status = {**finished_status, "state": state, "conditions": [ended]}
    assert f"demo: {state}. OutOfTime: too long. axum is the fastest." in _printed(manifest, status)
    nothing = {**status, "results": []}
    assert f"demo: {state}. OutOfTime: too long\n" in _printed(manifest, nothing)


def test_a_run_that_only_verifies_says_what_came_of_it(manifest: Any, finished_status: Any) -> None:
    (condition,) = finished_status["conditions"]
    ended = {**condition, "reason": "Verified", "message": "every server gave the answers"}
    status = {"state": "Succeeded", "conditions": [ended]}
    manifest["spec"]["verifyOnly"] = True
    assert _printed(manifest, status) == "demo: Succeeded. every server gave the answers\n"


def _with_cause(status: Any) -> Any:
    status["results"][1] |= {
        "limitedBy": {"cause": "postgresCpu", "evidence": "Postgres used 1.98 cores of 2"},
        "usage": {"source": "agent", "coresMean": 0.42, "memoryBytes": 11 * 2**20, "doubts": []},
    }
    return status


def test_what_limited_a_server_has_a_column_and_its_evidence(
    manifest: Any, finished_status: Any
) -> None:
    text = _printed(manifest, _with_cause(finished_status), width=160)
    lines = [line.split() for line in text.splitlines()]
    (heading,) = [n for n, words in enumerate(lines) if words[-2:] == ["(suspected)", "validity"]]
    assert lines[heading - 1] == ["limited", "by"]
    (line,) = [line for line in text.splitlines() if line.strip().startswith("axum ")]
    assert line.split()[-6:] == ["0.42", "11.0", "MiB", "Postgres", "CPU", "valid"]
    assert "axum: limited by Postgres CPU (suspected): Postgres used 1.98 cores of 2" in text


@pytest.mark.parametrize(
    ("source", "unwatched", "validity", "said"),
    [
        ("nobody", None, "valid", "valid, not watched"),
        ("nobody", None, "doubtful", "doubtful, not watched"),
        ("nobody", None, "invalid", "invalid"),
        ("kubelet", None, "valid", "valid"),
        ("agent", 2, "valid", "valid, partly watched"),
        ("agent", 2, "invalid", "invalid"),
    ],
)
def test_a_row_that_could_not_be_judged_by_its_pods_does_not_look_like_one_that_was(
    manifest: Any,
    finished_status: Any,
    source: str,
    unwatched: int | None,
    validity: str,
    said: str,
) -> None:
    why = "readings are incomplete in 3 of 3 repetitions: nobody told"
    finished_status["results"][1] |= {
        "validity": validity,
        "usage": {"source": source, "unwatched": unwatched, "doubts": [why]},
    }
    text = _printed(manifest, finished_status, width=160)
    (line,) = [line for line in text.splitlines() if line.strip().startswith("axum ")]
    assert line.rstrip().endswith(f"  {said}")
    assert f"axum: CPU, memory and cause: {why}" in text
    row = ResultRow.model_validate(finished_status["results"][1])
    assert validity_of(row) == said


def test_what_only_arrivals_have_stands_below_the_table(
    manifest: Any, finished_status: Any
) -> None:
    axum = finished_status["results"][1]
    axum["uncorrectedLatency"] = {**axum["latency"], "p99Seconds": 0.0005}
    axum["latenessP99Seconds"] = 0.00007
    objective = {"p99ObjectiveSeconds": 0.05, "errorRateObjective": 0.001}
    axum["saturation"] = {"lowRate": 4800, "highRate": 5040, "breakingRate": 9600, **objective}
    text = _printed(manifest, finished_status, width=160)
    assert (
        "axum: objective met up to 4,800 requests/s, missed from 5,040 on; fewer completed than "
        "arrived from 9,600 on"
    ) in text
    assert (
        "axum: p50, p99 and p99.9 are 15.4 ms, 29.1 ms and 1.40 s "
        "from due, 15.4 ms, 500 us and 1.40 s from sent; lateness p99 70.0 us"
    ) in text
    assert "fastapi: p50, p99 and p99.9" not in text


def test_times_from_sent_are_those_of_the_table_where_both_are_known_by_repetition(
    manifest: Any, finished_status: Any
) -> None:
    axum = finished_status["results"][1]
    due = {name: {"seconds": {"value": 0.005}} for name in ("p50", "p99", "p999")}
    axum["latencyFigures"] = due
    axum["uncorrectedFigures"] = {
        **due,
        "p99": {"seconds": {"value": 0.002}},
        "p999": {"failed": 2},
    }
    axum["uncorrectedLatency"] = axum["latency"]
    text = _printed(manifest, finished_status, width=170)
    (said,) = [line.strip() for line in text.splitlines() if "from sent" in line]
    assert said == (
        "axum: p50, p99 and p99.9 are 5.00 ms, 5.00 ms and 5.00 ms from due, 5.00 ms, 2.00 ms and "
        "failed (2x) from sent"
    )


def test_nobody_seems_to_have_waited_where_every_request_was_sent_when_it_was_due(
    manifest: Any, finished_status: Any
) -> None:
    axum = finished_status["results"][1]
    # One of the repetitions had a stall: their mean is not what all of them together say.
    axum["latencyFigures"] = {"p99": {"seconds": {"value": 0.005, "low": 0.0004, "high": 0.065}}}
    axum["uncorrectedLatency"], axum["latenessP99Seconds"] = axum["latency"], 0.0
    text = _printed(manifest, finished_status, width=170)
    (said,) = [line for line in text.splitlines() if "from sent" in line]
    times = said.partition(" are ")[2].partition("; ")[0]
    due, sent = times.split(" from due, ")
    assert sent == f"{due} from sent"


def test_cpu_and_memory_need_a_wide_terminal(manifest: Any, finished_status: Any) -> None:
    text = _printed(manifest, _with_cause(finished_status), width=120)
    assert "11.0 MiB" not in text
    assert "limited by" in text
    assert "25.1x (24.6 to 25.6)" in text


def test_a_narrow_terminal_loses_no_figure(manifest: Any, finished_status: Any) -> None:
    text = _printed(manifest, finished_status, width=80)
    assert "…" not in text
    assert "(24.6-25.6)" in text
    for figure in ("15,363", "29.1", "1.40", "25.1x"):
        assert figure in text


def test_doubt_and_failure_are_shown_with_their_reason(manifest: Any, finished_status: Any) -> None:
    first, second = finished_status["results"]
    first |= {"validity": "doubtful", "validityReasons": ["the generator was at its limit"]}
    second |= {
        "state": "Failed",
        "reason": "ImagePullFailed",
        "message": "image [x] cannot be pulled",
        "requestsPerSecond": None,
        "latency": None,
        "factor": None,
    }
    text = _printed(manifest, finished_status)
    assert "fastapi: doubtful: the generator was at its limit" in text
    assert "axum: ImagePullFailed: image [x] cannot be pulled" in text
    assert "failed" in text


def test_a_row_with_failed_trials_says_how_many_are_behind_it(
    manifest: Any, finished_status: Any
) -> None:
    finished_status["results"][0] |= {
        "state": "Partial",
        "trials": 4,
        "failedTrials": 1,
        "validity": "doubtful",
        "reason": "TrialsFailed",
        "message": "1 of 5 trials failed",
    }
    text = _printed(manifest, finished_status)
    assert "doubtful (4/5)" in text
    assert "fastapi: TrialsFailed: 1 of 5 trials failed" in text


@pytest.mark.parametrize(
    ("asked", "trials", "said"),
    [
        ({}, [2, 3], "valid (2/5)"),
        # Where the results decide, as many as are always made, or as the other one has.
        ({"stopWhen": "decided"}, [2, 3], "valid (2/5)"),
        ({"stopWhen": "decided"}, [1, 1], "valid (1/5)"),
        ({"stopWhen": "decided"}, [6, 7], "valid (6/7)"),
    ],
)
def test_of_a_run_that_was_cut_short_the_repetitions_that_are_missing_are_counted(
    manifest: Any, finished_status: Any, asked: Any, trials: list[int], said: str
) -> None:
    manifest["spec"] |= asked
    finished_status["state"] = "Cancelled"
    for row, count in zip(finished_status["results"], trials, strict=True):
        row |= {"state": "Partial", "trials": count}
    assert said in _printed(manifest, finished_status)


@pytest.mark.parametrize(("state", "said"), [("Running", "pending"), ("Cancelled", "not measured")])
@pytest.mark.parametrize("asked", [{}, {"stopWhen": "decided"}])
def test_what_a_run_that_is_over_did_not_measure_is_not_to_come(
    manifest: Any, finished_status: Any, state: str, said: str, asked: Any
) -> None:
    manifest["spec"] |= asked
    rows = [
        {"server": row["server"], "load": "closed", "state": "Pending"}
        for row in finished_status["results"]
    ]
    text = _printed(manifest, {**finished_status, "state": state, "results": rows})
    assert text.count(said) == 2
    assert "for 5s, 5 repetitions" in " ".join(text.split())


def test_one_repetition_is_in_no_plural(manifest: Any, finished_status: Any) -> None:
    manifest["spec"]["repetitions"] = 1
    for row in finished_status["results"]:
        row["trials"] = 1
    text = _printed(manifest, finished_status)
    assert "for 5s, 1 repetition" in text
    assert "1 repetitions" not in text


def test_of_a_server_without_a_right_answer_all_that_is_known_is_shown(
    manifest: Any, finished_status: Any
) -> None:
    first, second = finished_status["results"]
    failed = {"failed": 5}
    for row in (first, second):
        row |= {"requestsPerSecond": None, "factor": None, "latency": None, "validity": "invalid"}
    first |= {"requests": 3000, "errors": 3000, "errorRate": 1.0}
    first["latencyFigures"] = {"p50": failed, "p99": failed}
    second |= {"state": "Pending", "trials": 0, "requests": 0, "errors": 0, "errorRate": None}
    lines = [line.split() for line in _printed(manifest, finished_status).splitlines()]
    (silent,) = [line for line in lines if line[:1] == ["fastapi"]]
    (pending,) = [line for line in lines if line[:1] == ["axum"]]
    percentiles = ["failed", "(5x)", "failed", "(5x)", "-"]
    assert silent[1:10] == ["-", *percentiles, "3,000", "(100%)", "-"]
    assert pending[1:7] == ["-"] * 6


def test_what_the_control_says_stands_below_the_table(manifest: Any, finished_status: Any) -> None:
    control = {"load": "closed", "factor": {"value": 1.0}, "differs": False}
    finished_status["control"] = [{**control, "smallestDetectable": 0.02}]
    said = "control: 1.00x the baseline, not told apart; differences from 2.00% on can be found"
    assert said in _printed(manifest, finished_status)


def test_one_table_per_load(manifest: Any, finished_status: Any) -> None:
    manifest["spec"]["loads"].append({"name": "open", "open": {"rate": 500, "duration": "5s"}})
    rows = finished_status["results"]
    finished_status["results"] = [*rows, *({**row, "load": "open"} for row in rows)]
    text = _printed(manifest, finished_status)
    assert "Load closed: closed, 10 connections with keep-alive, for 5s, 5 repetitions" in text
    assert "Load open: open, 500 requests/s for 5s, with keep-alive, 5 repetitions" in text


def test_a_run_that_has_no_figures_yet(manifest: Any) -> None:
    status = {"state": "Running", "progress": {"text": "0/10, 1m left"}}
    assert _printed(manifest, status).strip() == "demo: Running. 0/10, 1m left"
    assert _printed(manifest, {}).strip() == "demo: not started"


def test_the_interval_of_a_rate() -> None:
    assert format_rate(Interval(value=1234.5)) == "1,234"
    assert format_rate(Interval(value=10_000, low=9950)) == "10,000 (at least 9,950)"
    assert format_rate(Interval(value=58.2, low=57.2, high=59.2)) == "58.2 ± 1.0"
    assert format_rate(Interval(value=118, low=31, high=276)) == "118 (31.0 to 276)"
    assert format_rate(Interval(value=14_901, low=14_742, high=15_062)) == "14,901 ± 161"
    # What rounds to nothing is not nothing.
    assert format_rate(Interval(value=100, low=99.9, high=100.1)) == "100 (99.9 to 100)"
    assert format_rate(Interval(value=100, low=100, high=100)) == "100"
    # As many digits as the report has.
    assert format_rate(Interval(value=0.43, low=0.41, high=0.45)) == "0.43 (0.41 to 0.45)"


def test_rates_that_are_not_told_apart_meet_as_they_are_printed() -> None:
    rates = {"a": (1000, 1004, 997), "b": (1100, 1096, 1103), "c": (600, 1500, 900)}
    spec = make_spec(*rates, repetitions=3)
    rows = summary_of(spec, lambda trial: Outcome(rates[trial.server][trial.repetition - 1])).rows
    assert rows[0].rank == rows[1].rank == 1
    printed = [format_rate(row.requests_per_second) for row in rows if row.requests_per_second]
    # Chance would have them apart, so both are drawn to where they meet.
    assert printed[:2] == ["1,000 (992 to 1,049)", "1,100 (1,049 to 1,108)"]


def test_both_ends_of_an_interval_are_whole_on_a_narrow_terminal(
    manifest: Any, finished_status: Any
) -> None:
    rate = {"value": 14_901, "low": 14_300, "high": 16_800}
    _with_cause(finished_status)["results"][0] |= {
        "requestsPerSecond": rate,
        "validity": "doubtful",
        "limitedBy": {"cause": "databaseConnections", "evidence": "its pool was full"},
    }
    words = _printed(manifest, finished_status, width=80).split()
    assert {"14,901", "(14,300-", "16,800)", "25.1x", "(24.6-", "25.6)"} <= set(words)
    assert {"(14,300-16,800)", "(24.6-25.6)"} <= set(
        _printed(manifest, finished_status, width=100).split()
    )


@pytest.mark.parametrize(
    ("state", "objectives", "code"),
    [
        ("Succeeded", None, 0),
        ("Succeeded", "True", 0),
        ("Succeeded", "False", 2),
        ("Failed", "False", 1),
        ("Failed", None, 1),
        ("Running", None, 1),
        # Neither met nor missed: a gate must not take it for either.
        ("Succeeded", "Unknown", 3),
    ],
)
def test_exit_codes(manifest: Any, state: str, objectives: str | None, code: int) -> None:
    condition = {
        "type": "ObjectivesMet",
        "status": objectives,
        "reason": "R",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"state": state, "conditions": [condition] if objectives else []}
    metadata = {"name": "demo", "namespace": "team", "uid": "u"}
    run = parse_run({**manifest, "metadata": metadata, "status": status})
    assert exit_code(run.status) == code


def test_what_a_tie_would_cost_stands_under_its_table_unless_the_verdict_says_it(
    manifest: Any, finished_status: Any
) -> None:
    load = finished_status["results"][0]["load"]
    tie = {"load": load, "servers": ["axum", "go"], "difference": 0.05, "repetitions": 6}
    finished_status["ties"] = [{**tie, "seconds": 185.0}]
    said = "about 6 more repetitions (3m05s) would tell axum and go apart, if they differ by 5 %"
    assert _printed(manifest, finished_status).count(said) == 1
    finished_status["verdict"] = f"axum and go cannot be told apart; {said} or more"
    finished_status["conditions"] = []
    assert _printed(manifest, finished_status, 400).count(said) <= 1
    # What is not known is not promised.
    finished_status["ties"] = [tie]
    assert "about 6 more repetitions would tell" in _printed(manifest, finished_status)


def test_another_length_of_trials_stands_under_the_table(
    manifest: Any, finished_status: Any
) -> None:
    load = finished_status["results"][0]["load"]
    length = {"load": load, "seconds": 10, "repetitions": 5, "timeShare": 0.45}
    length |= {"insteadOfSeconds": 30, "insteadOfRepetitions": 5}
    finished_status["trialLengths"] = [length]
    said = "trials of 10s instead of 30s would find the same differences in throughput in about"
    assert _printed(manifest, finished_status).count(said) == 1
    del finished_status["trialLengths"]
    assert "trials of" not in _printed(manifest, finished_status)


QUIET = {"word": "quiet", "node": "n1", "cpus": 2, "othersCores": 0.05, "trial": "demo-trial-001"}
SHARED = {
    **QUIET,
    "word": "shared",
    "message": "others used at least 0.31 of the 2 CPUs of node n1 meanwhile",
    "othersCores": 0.31,
}


@pytest.mark.parametrize(
    ("isolation", "said"),
    [
        (QUIET, "Nodes: quiet"),
        (SHARED, f"Nodes: shared: {SHARED['message']} (trial demo-trial-001)"),
        (
            {**SHARED, "word": "disturbed", "trialsNotKnown": 2},
            f"Nodes: disturbed: {SHARED['message']} (trial demo-trial-001); not known of 2 trials",
        ),
        (
            {"word": "notKnown", "message": "nobody watched [b]", "trialsNotKnown": 2},
            "Nodes: not known: nobody watched [b]",
        ),
        (None, "Nodes: not known: the version of Laptime that measured it did not tell"),
    ],
)
def test_one_line_says_whether_the_nodes_were_quiet(
    manifest: Any, finished_status: Any, isolation: Any, said: str
) -> None:
    status = {**finished_status, **({"isolation": isolation} if isolation else {})}
    lines = [line for line in _printed(manifest, status, 200).splitlines() if "Nodes:" in line]
    assert lines == [said]


def test_of_a_run_without_a_trial_nothing_is_said_of_nodes(manifest: Any) -> None:
    assert "Nodes:" not in _printed(manifest, {"state": "Deploying"})
