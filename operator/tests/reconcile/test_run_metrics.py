"""What Prometheus is told of runs: what their statuses say, bounded, nothing of deleted ones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from laptime.analysis import wording
from laptime.api.attempts import trial_of
from laptime.api.causes import Cause, LimitedBy
from laptime.api.isolation import Isolation, Quietness
from laptime.api.metrics import Metric
from laptime.api.results import (
    Interval,
    Latency,
    LatencyFigure,
    LatencyFigures,
    ObjectiveResult,
    Outcome,
    ResultRow,
    RowState,
    Tie,
    TrialOutcome,
    TrialResult,
    Validity,
)
from laptime.api.script import CheckResult, MetricFigure, ScriptFigures, ScriptMetric
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import (
    Condition,
    ConditionStatus,
    ConditionType,
    Progress,
    RunStatus,
    ServerState,
    ServerStatus,
    State,
)
from laptime.api.usage import RowUsage, Source, TrialUsage
from laptime.reconcile import run_metrics, run_samples
from laptime.reconcile.abandon import abandoned
from laptime.reconcile.metrics import Metrics
from laptime.reconcile.queue import card_of
from laptime.reconcile.run_metrics import MOST_RUNS, MOST_TRIALS, RunFigures
from laptime.reconcile.run_samples import MOST_ROWS
from laptime.reconcile.views import Run, run_view
from tests.reconcile.test_decide import run_to_the_end, spec_of
from tests.reconcile.test_metrics import said
from tests.reconcile.world import World, manifest_of

ROW = 'load="l0",namespace="default",place="1",position="1",run="demo",server="s0"'

SERVERS = "laptime_run_server_info"

Sample = tuple[dict[str, str], float]


def samples(source: Metrics | RunFigures) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(source.text().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def scraped(figures: RunFigures) -> dict[str, list[Sample]]:
    return samples(figures)


def a_run(status: RunStatus, servers: int = 1, repetitions: int = 2) -> Run:
    run = World(spec_of(servers, 1, repetitions), Random(0)).run
    return replace(run, status=status)


def a_row(**more: object) -> ResultRow:
    fields: dict[str, object] = {"server": "s0", "load": "l0", "state": RowState.MEASURED, **more}
    return ResultRow.model_validate(fields)


def percentiles(metrics: Metrics) -> dict[tuple[str, str], float]:
    """Return the response times of the one row, by quantile and bound."""
    return {
        (labels["quantile"], labels["bound"]): value
        for labels, value in samples(metrics)["laptime_result_latency_seconds"]
    }


def many(count: int, status: RunStatus) -> Iterable[Run]:
    run = a_run(status)
    for number in range(count):
        created = run.created + timedelta(seconds=number)
        yield replace(run, name=f"run-{number:04d}", uid=str(number), created=created)


def test_a_running_run_says_how_far_it_is_and_no_sentence_yet() -> None:
    metrics = Metrics()
    progress = Progress(completed=3, total=4, remaining_seconds=20)
    status = RunStatus(
        state=State.RUNNING, progress=progress, started_at="2026-01-01T00:00:10Z", verdict="so far"
    )
    metrics.show(manifest_of(a_run(status, servers=2)))
    found = said(metrics)
    run = '{namespace="default",run="demo"}'
    assert found[f"laptime_run_progress_ratio{run}"] == 0.75
    assert found[f"laptime_run_trials{run}"] == 4
    assert found[f"laptime_run_remaining_seconds{run}"] == 20
    assert found[f"laptime_run_started_timestamp_seconds{run}"] == 1_767_225_610
    assert f"laptime_run_finished_timestamp_seconds{run}" not in found
    ((labels, value),) = samples(metrics)["laptime_run_info"]
    assert value == 1
    assert (labels["state"], labels["scenario"], labels["verdict"]) == ("Running", "users", "")
    servers = {labels["server"]: labels["position"] for labels, _ in samples(metrics)[SERVERS]}
    assert servers == {"s0": "1", "s1": "2"}


MERGED = Latency(
    mean_seconds=0.002,
    p50_seconds=0.001,
    p80_seconds=0.003,
    p90_seconds=0.004,
    p99_seconds=0.009,
    p999_seconds=0.02,
    max_seconds=0.03,
)


def test_a_row_says_its_figures_with_their_intervals_and_what_limited_it() -> None:
    row = a_row(
        requests_per_second=Interval(value=100.0, low=90.0, high=110.0),
        factor=Interval(value=2.5),
        latency=MERGED,
        error_rate=0.01,
        rank=1,
        validity=Validity.VALID,
        limited_by=LimitedBy(cause=Cause.SERVER_CPU, evidence="1.0 of 1 core"),
        usage=RowUsage(source=Source.AGENT, cores_mean=0.9, memory_bytes=1000),
    )
    status = RunStatus(
        state=State.SUCCEEDED,
        results=[row],
        verdict="s0 is faster",
        fastest=row.server,
        fastest_factor="2.50x",
    )
    metrics = Metrics()
    metrics.show(manifest_of(a_run(status)))
    found = said(metrics)
    for bound, value in (("estimate", 100), ("low", 90), ("high", 110)):
        row_of = f'bound="{bound}",{ROW}'
        assert found[f"laptime_result_requests_per_second{{{row_of}}}"] == value
    assert found[f'laptime_result_factor{{bound="estimate",{ROW}}}'] == 2.5
    assert f'laptime_result_factor{{bound="low",{ROW}}}' not in found
    assert found[f"laptime_result_errors_ratio{{{ROW}}}"] == 0.01
    assert found[f"laptime_result_rank{{{ROW}}}"] == 1
    assert found[f"laptime_result_cpu_cores{{{ROW}}}"] == 0.9
    assert found[f"laptime_result_memory_bytes{{{ROW}}}"] == 1000
    all_of_them = samples(metrics)
    # Of all repetitions together there are no intervals.
    assert percentiles(metrics) == {
        (quantile, "estimate"): seconds
        for quantile, seconds in (("0.5", 0.001), ("0.9", 0.004), ("0.99", 0.009), ("0.999", 0.02))
    }
    ((limited, _),) = all_of_them["laptime_result_limited_by"]
    assert (limited["cause"], limited["evidence"]) == ("serverCpu", "1.0 of 1 core")
    info = all_of_them["laptime_run_info"][0][0]
    assert info["verdict"] == "s0 is faster"
    assert (info["validity"], info["factor"]) == ("valid", "2.50x")


def test_an_end_that_a_search_did_not_find_is_as_far_away_as_it_can_be() -> None:
    """So a line of Grafana's goes on to the edge, and does not end at the estimate."""
    row = a_row(
        requests_per_second=Interval(value=100.0, low=90.0), factor=Interval(value=0.7, high=0.72)
    )
    metrics = Metrics()
    metrics.show(manifest_of(a_run(RunStatus(state=State.SUCCEEDED, results=[row]))))
    found = said(metrics)
    rate, factor = (
        {bound: found[f'{name}{{bound="{bound}",{ROW}}}'] for bound in ("estimate", "low", "high")}
        for name in ("laptime_result_requests_per_second", "laptime_result_factor")
    )
    assert rate == {"estimate": 100, "low": 90, "high": math.inf}
    assert factor == {"estimate": 0.7, "low": 0, "high": 0.72}


@pytest.mark.parametrize(
    ("more", "factors", "of_run", "told"),
    [
        # One load.
        ({}, {"l0": 4.0}, "4.00x", "4.00x (3.90 to 4.10)"),
        # The geometric mean of both.
        ({}, {"l0": 4.0, "l1": 0.9}, "1.90x", "1.90x"),
        # Also where it looks like one of them, whose interval is not that of both.
        ({}, {"l0": 2.0, "l1": 2.005}, "2.00x", "2.00x"),
        # Throughputs are not averaged with response times, whichever have the first rank.
        ({}, {"l0": 2.0, "open": 0.5}, "2.00x", "2.00x (1.90 to 2.10)"),
        ({}, {"l0": 4.0, "l1": 0.9, "open": 0.5}, "1.90x", "1.90x"),
        # There each load is judged alone, and the first says what the run says.
        ({"stopWhen": "decided"}, {"l0": 4.0, "l1": 0.9}, "4.00x", "4.00x (3.90 to 4.10)"),
    ],
)
def test_the_factor_of_a_run_is_that_of_its_verdict_and_of_one_load_only_where_there_is_one(
    more: dict[str, object], factors: dict[str, float], of_run: str, told: str
) -> None:
    rows = [
        a_row(
            server="s1",
            load=load,
            rank=1 if value == max(factors.values()) else 2,
            factor=Interval(value=value, low=value - 0.1, high=value + 0.1),
            compared_by=Metric.P99 if load == "open" else Metric.REQUESTS_PER_SECOND,
        )
        for load, value in factors.items()
    ]
    status = RunStatus(state=State.SUCCEEDED, results=rows, fastest="s1", fastest_factor=of_run)
    run = World(spec_of(2, 2, 2, **more), Random(0)).run
    figures = RunFigures()
    figures.see(manifest_of(replace(run, status=status)))
    assert scraped(figures)["laptime_run_info"][0][0]["factor"] == told


@pytest.mark.parametrize("of_run", ["2.00x (at least 1.95)", "2.00x"])
def test_the_factor_of_a_run_has_the_one_end_that_a_search_found(of_run: str) -> None:
    """An older version wrote it without."""
    row = a_row(server="s1", rank=1, factor=Interval(value=2.0, low=1.95))
    status = RunStatus(state=State.SUCCEEDED, results=[row], fastest="s1", fastest_factor=of_run)
    figures = RunFigures()
    figures.see(manifest_of(a_run(status, servers=2)))
    assert scraped(figures)["laptime_run_info"][0][0]["factor"] == "2.00x (at least 1.95)"


@pytest.mark.parametrize("factor", [None, "2.00x"])
def test_a_run_with_several_that_are_fastest_says_no_factor(factor: str | None) -> None:
    """An older version wrote that of one of them."""
    rows = [
        a_row(server=name, rank=1, factor=Interval(value=value, low=value - 0.1, high=value + 0.1))
        for name, value in (("s0", 1.9), ("s1", 2.0))
    ]
    status = RunStatus(
        state=State.SUCCEEDED, results=rows, fastest="s0 or s1", fastest_factor=factor
    )
    figures = RunFigures()
    figures.see(manifest_of(a_run(status, servers=2)))
    info = scraped(figures)["laptime_run_info"][0][0]
    assert (info["fastest"], info["factor"]) == ("s0 or s1", "")


def test_response_times_are_those_of_the_table_and_longer_than_any_where_it_says_failed() -> None:
    times = {"p50": 0.00105, "p99": 0.0093}
    figures = LatencyFigures.model_validate(
        {name: {"seconds": {"value": value}} for name, value in times.items()}
        | {"p999": {"failed": 2}}
    )
    row = a_row(latency=MERGED, latency_figures=figures)
    metrics = Metrics()
    metrics.show(manifest_of(a_run(RunStatus(state=State.SUCCEEDED, results=[row]))))
    # Of the p90 nothing is known.
    assert percentiles(metrics) == {
        ("0.5", "estimate"): 0.00105,
        ("0.99", "estimate"): 0.0093,
        ("0.999", "estimate"): math.inf,
    }


def test_response_times_have_the_intervals_of_status_and_report_figure_by_figure() -> None:
    figures = LatencyFigures.model_validate(
        {
            "p50": {"seconds": {"value": 0.00105, "low": 0.00101, "high": 0.00112}},
            # Its repetitions have too few answers each.
            "p90": {"seconds": {"value": 0.0042}},
            "p99": {"seconds": {"value": 0.0093, "low": 0.0087, "high": 0.0104}},
            # As after a search without an end: the report says no end that has no other.
            "p999": {"seconds": {"value": 0.02, "low": 0.018}},
        }
    )
    row = a_row(latency=MERGED, latency_figures=figures)
    metrics = Metrics()
    run = a_run(RunStatus(state=State.SUCCEEDED, results=[row]))
    metrics.show(manifest_of(run))
    found = percentiles(metrics)
    (in_status,) = manifest_of(run)["status"]["results"]
    bounds = {"estimate": "value", "low": "low", "high": "high"}
    assert len(found) == 8
    for (quantile, bound), seconds in found.items():
        name = run_samples._QUANTILES[quantile].value
        assert in_status["latencyFigures"][name]["seconds"][bounds[bound]] == seconds
    for quantile, metric in run_samples._QUANTILES.items():
        ends = {bounds[bound]: value for (of, bound), value in found.items() if of == quantile}
        told = LatencyFigure(seconds=Interval.model_validate(ends))
        reported = wording.latency_figure(row.response_time(metric), ends=True)
        assert wording.latency_figure(told, ends=True) == reported


def test_the_series_of_a_row_are_as_many_as_the_page_about_dashboards_says() -> None:
    figure = {"seconds": {"value": 0.002, "low": 0.001, "high": 0.003}}
    around = Interval(value=2.0, low=1.0, high=3.0)
    row = a_row(
        requests_per_second=around,
        factor=around,
        latency_figures=LatencyFigures.model_validate(
            dict.fromkeys(("mean", "p50", "p90", "p99", "p999"), figure)
        ),
        error_rate=0.01,
        rank=1,
        limited_by=LimitedBy(cause=Cause.SERVER_CPU, evidence=""),
        usage=RowUsage(source=Source.AGENT, cores_mean=0.9, memory_bytes=1000),
    )
    figures = RunFigures()
    figures.see(manifest_of(a_run(RunStatus(state=State.SUCCEEDED, results=[row]))))
    of_row = [one for name, one in scraped(figures).items() if name.startswith("laptime_result_")]
    count = sum(map(len, of_row))
    page = (Path(__file__).parents[3] / "docs" / "dashboards.md").read_text()
    assert f"A row is at most {count} series" in page


def test_a_script_says_its_checks_iterations_and_metrics_under_their_names() -> None:
    around = Interval(value=12.5, low=12.0, high=13.0)
    script = ScriptFigures(
        warmup_named=True,
        iterations=500,
        dropped_iterations=7,
        checks=[CheckResult(name='says "hi"', passed=99, failed=1, rate=0.99)],
        metrics=[
            ScriptMetric(
                name="listing_time",
                type="trend",
                contains="time",
                value=12.5,
                figures=[MetricFigure(name="p(95)", estimate=around, factor=Interval(value=2.0))],
            ),
            *(
                ScriptMetric(
                    name=name,
                    type=kind,
                    contains="data",
                    value=1.0,
                    figures=[MetricFigure(name=figure, estimate=Interval(value=1.0))],
                )
                for name, kind, figure in (("sent", "counter", "rate"), ("size", "trend", "avg"))
            ),
        ],
    )
    metrics = Metrics()
    metrics.show(manifest_of(a_run(RunStatus(results=[a_row(script=script)]))))
    found = samples(metrics)
    answers = {
        (labels["check"], labels["outcome"]): value
        for labels, value in found["laptime_result_check_answers"]
    }
    assert answers == {('says "hi"', "passed"): 99, ('says "hi"', "failed"): 1}
    assert [value for _, value in found["laptime_result_check_rate"]] == [0.99]
    ended = {labels["outcome"]: value for labels, value in found["laptime_result_iterations"]}
    assert ended == {"ended": 500, "dropped": 7}
    every = found["laptime_result_script_value"]
    units = {labels["metric"]: labels["unit"] for labels, _ in every}
    assert units == {"listing_time": "ms", "sent": "bytes/s", "size": "bytes"}
    values = {one["bound"]: value for one, value in every if one["metric"] == "listing_time"}
    assert values == {"estimate": 12.5, "low": 12.0, "high": 13.0}
    ((labels, factor),) = found["laptime_result_script_factor"]
    assert (factor, labels["bound"]) == (2.0, "estimate")
    assert (labels["metric"], labels["figure"], labels["unit"]) == ("listing_time", "p(95)", "ms")
    assert (labels["server"], labels["load"], labels["position"]) == ("s0", "l0", "1")


def test_an_objective_says_its_outcome_and_what_was_measured_when_the_run_is_over() -> None:
    objective = ObjectiveResult(
        server="s0",
        load="l0",
        metric="listing_time",
        bound="listing_time: avg<1",
        measured="13.6 ms (3.70 to 50.2)",
        outcome=Outcome.MISSED,
        reason="BoundNotKept",
    )
    figures = RunFigures()
    for state, measured in ((State.RUNNING, ""), (State.SUCCEEDED, objective.measured)):
        figures.see(manifest_of(a_run(RunStatus(state=state, objectives=[objective]))))
        ((labels, _),) = scraped(figures)["laptime_result_objective"]
        assert (labels["bound"], labels["outcome"]) == ("listing_time: avg<1", "missed")
        assert labels["measured"] == measured


def test_a_tie_says_what_would_decide_it_and_ties_are_bounded_over_all_runs() -> None:
    tie = Tie(load="l0", servers=["s0", "s1"], difference=0.05, repetitions=4, seconds=180.0)
    status = RunStatus(state=State.SUCCEEDED, ties=[tie])
    figures = RunFigures()
    figures.see(manifest_of(a_run(status)))
    ((labels, _),) = scraped(figures)["laptime_result_tie"]
    assert (labels["load"], labels["servers"]) == ("l0", "s0 and s1")
    assert labels["compared_by"] == "throughput"
    assert labels["cost"] == wording.tie(tie)
    ties = [tie.model_copy(update={"servers": ["s0", f"s{n}"]}) for n in range(1, 21)]
    for run in many(MOST_RUNS, RunStatus(state=State.SUCCEEDED, ties=ties)):
        figures.see(manifest_of(run))
    assert len(scraped(figures)["laptime_result_tie"]) == run_samples.MOST_TIES


def test_what_scripts_say_is_bounded_over_all_runs() -> None:
    figure = MetricFigure(name="avg", estimate=Interval(value=1.0))
    script = ScriptFigures(
        warmup_named=True,
        checks=[CheckResult(name=f"c{n}", passed=1, rate=1.0) for n in range(20)],
        metrics=[
            ScriptMetric(name=f"m{n}", type="trend", value=1.0, figures=[figure]) for n in range(20)
        ],
    )
    objective = ObjectiveResult(
        server="s0", load="l0", metric="m", bound="b", measured="", outcome=Outcome.MET, reason="R"
    )
    objectives = [objective.model_copy(update={"bound": f"b{n}"}) for n in range(50)]
    status = RunStatus(results=[a_row(script=script)], objectives=objectives)
    figures = RunFigures()
    for run in many(MOST_RUNS, status):
        figures.see(manifest_of(run))
    found = scraped(figures)
    assert len(found["laptime_result_check_rate"]) == run_samples.MOST_CHECKS
    assert len(found["laptime_result_script_value"]) == run_samples.MOST_METRICS
    assert len(found["laptime_result_objective"]) == run_samples.MOST_OBJECTIVES
    newest = {labels["run"] for labels, _ in found["laptime_result_script_value"]}
    assert newest == {f"run-{number:04d}" for number in range(MOST_RUNS - 10, MOST_RUNS)}


def test_a_run_is_as_valid_as_its_worst_row_and_says_why_when_it_is_over() -> None:
    rows = [
        a_row(validity=Validity.VALID),
        a_row(
            server="s1",
            state=RowState.PARTIAL,
            validity=Validity.DOUBTFUL,
            validity_reasons=["the generator was busy"],
            failed_trials=2,
            message="the server ended",
        ),
    ]
    figures = RunFigures()
    for state, validity, doubts in (
        (State.RUNNING, "", ""),
        (State.CANCELLED, "doubtful", "the generator was busy; 2 failed: the server ended"),
    ):
        figures.see(manifest_of(a_run(RunStatus(state=state, results=rows), servers=2)))
        found = scraped(figures)
        assert found["laptime_run_info"][0][0]["validity"] == validity
        said_of = {one["server"]: one["doubts"] for one, _ in found["laptime_result_state"]}
        assert said_of == {"s0": "", "s1": doubts}


def test_trials_of_a_server_that_was_never_measured_are_among_those_that_measured_nothing() -> None:
    world = World(spec_of(2, 1, 3), Random(0))
    world.verdicts["s0"] = {"ok": False, "reason": "WrongAnswer", "message": "GET /: no"}
    run_to_the_end(world)
    figures = RunFigures()
    figures.see(manifest_of(world.run))
    found = scraped(figures)
    told = {
        name: found[f"laptime_run_trials{name}"][0][1] for name in ("", "_completed", "_failed")
    }
    assert told == {"": 6, "_completed": 6, "_failed": 3}
    measured = sum(value for _, value in found["laptime_result_trials"])
    assert measured == 3


def test_a_run_that_only_verifies_has_no_trials_and_says_how_far_it_is() -> None:
    spec = spec_of(2, 1, 2).model_copy(update={"verify_only": True})
    world = World(spec, Random(0))
    run_to_the_end(world)
    figures = RunFigures()
    figures.see(manifest_of(world.run))
    found = scraped(figures)
    assert not [name for name in found if name.startswith("laptime_run_trials")]
    assert [value for _, value in found["laptime_run_progress_ratio"]] == [1]


def test_a_row_whose_pods_nobody_watched_says_so_beside_its_validity() -> None:
    rows = [
        a_row(validity=Validity.VALID, usage=RowUsage(source=Source.NOBODY)),
        a_row(server="s1", validity=Validity.VALID, usage=RowUsage(source=Source.AGENT)),
        a_row(
            server="s2", validity=Validity.VALID, usage=RowUsage(source=Source.AGENT, unwatched=4)
        ),
    ]
    figures = RunFigures()
    figures.see(manifest_of(a_run(RunStatus(state=State.SUCCEEDED, results=rows), servers=3)))
    found = scraped(figures)["laptime_result_state"]
    said = {one["server"]: (one["validity"], one["doubts"]) for one, _ in found}
    assert said == {
        "s0": ("valid", "nobody watched its pods"),
        "s1": ("valid", ""),
        "s2": ("valid", "nobody watched its pods in 4 repetitions"),
    }


def test_whether_the_nodes_were_quiet_is_a_word_and_why_when_the_run_is_over() -> None:
    isolation = Isolation(word=Quietness.SHARED, message="others used 0.3", trial="demo-trial-002")
    figures = RunFigures()
    for state, why in (
        (State.RUNNING, ""),
        (State.SUCCEEDED, "shared: others used 0.3 (trial demo-trial-002)"),
    ):
        figures.see(manifest_of(a_run(RunStatus(state=state, isolation=isolation))))
        ((labels, value),) = scraped(figures)["laptime_run_isolation"]
        assert (labels["isolation"], labels["why"], value) == ("shared", why, 1)
    figures.see(manifest_of(a_run(RunStatus(state=State.SUCCEEDED))))
    assert "laptime_run_isolation" not in scraped(figures)


def test_a_run_that_ended_without_a_result_says_why_where_others_say_their_verdict() -> None:
    why = Condition(
        type=ConditionType.SUCCEEDED,
        status=ConditionStatus.FALSE,
        reason="ScenarioNotFound",
        message="there is no scenario nowhere",
        last_transition_time="2026-01-01T00:00:00Z",
    )
    figures = RunFigures()
    for status, told in (
        (RunStatus(state=State.RUNNING, conditions=[why]), ""),
        (RunStatus(state=State.FAILED, conditions=[why]), "there is no scenario nowhere"),
        (RunStatus(state=State.FAILED, conditions=[why], verdict="a is out"), "a is out"),
        (RunStatus(state=State.CANCELLED), ""),
    ):
        figures.see(manifest_of(a_run(status)))
        assert scraped(figures)["laptime_run_info"][0][0]["verdict"] == told


def test_a_run_that_was_given_up_has_no_time_left_and_says_why_before_what_was_known() -> None:
    progress = Progress(
        completed=3, total=10, percent=30, remaining_seconds=420, text="3/10, 7m left"
    )
    status = RunStatus(state=State.RUNNING, progress=progress, verdict="so far: s0 is fastest")
    manifest = manifest_of(a_run(status))
    ended = abandoned(manifest, KeyError("x"), datetime.now(UTC))
    assert ended.progress is not None
    assert (ended.progress.text, ended.progress.percent) == ("3/10", 30)
    figures = RunFigures()
    figures.see({**manifest, "status": ended.to_wire()})
    found = scraped(figures)
    assert "laptime_run_remaining_seconds" not in found
    assert [value for _, value in found["laptime_run_trials_completed"]] == [3]
    why = "the operator cannot go on with this run: KeyError: 'x'"
    info = found["laptime_run_info"][0][0]
    assert (info["state"], info["verdict"]) == ("Failed", f"{why}; so far: s0 is fastest")
    # Without a verdict before there is none, and the reason stands in its place.
    manifest["status"] = {"state": "Running"}
    figures.see(
        {**manifest, "status": abandoned(manifest, KeyError("x"), datetime.now(UTC)).to_wire()}
    )
    assert scraped(figures)["laptime_run_info"][0][0]["verdict"] == why


def test_the_trial_of_the_moment_is_known() -> None:
    world = World(spec_of(2, 1, 2), Random(0))
    now = world.trials[2]
    run = replace(world.run, status=RunStatus(state=State.RUNNING, current_trial=now.name))
    figures = RunFigures()
    figures.see(manifest_of(run))
    figures.see_trials(run, world.trials, {})
    ((labels, _),) = scraped(figures)["laptime_run_current_trial"]
    assert (labels["trial"], labels["server"]) == (now.name, now.server)
    assert labels["repetition"] == str(now.repetition)


@pytest.mark.parametrize("more", [{"stopWhen": "decided"}, {"precision": "0.01%"}])
def test_of_a_run_whose_results_decide_how_long_it_is_each_trial_is_known(
    more: dict[str, object],
) -> None:
    # Nobody is faster, and no two trials are alike: the first look does not end it.
    world = World(
        spec_of(2, 1, 1, maxRepetitions=12, **more),
        Random(0),
        rates=lambda job: 1000.0 + Random(trial_of(job)).uniform(-100, 100),
    )
    wanted = world.run.spec.first_look + 2
    figures = RunFigures()
    repetition = 0
    while repetition < wanted:
        results = world.observe().results
        decision = world.step()
        assert decision.status.state is not State.SUCCEEDED
        figures.see(manifest_of(world.run))
        figures.see_trials(world.run, decision.trials, results)
        found = scraped(figures)
        for labels, _ in found.get("laptime_run_current_trial", []):
            repetition = int(labels["repetition"])
        world.advance()
    assert len(found["laptime_trial_outcome"]) == 2 * (wanted - 1)
    assert len(found["laptime_trial_info"]) == 2 * wanted


def test_both_trials_of_the_moment_are_known_as_their_pods_are_labelled() -> None:
    world = World(spec_of(2, 1, 2), Random(0))
    names = [f"{one.name}-attempt-2" for one in world.trials[:2]]
    now = RunStatus(state=State.RUNNING, current_trial=names[1], current_beside=names[0])
    figures = RunFigures()
    run = replace(world.run, status=now)
    figures.see(manifest_of(run))
    figures.see_trials(run, world.trials, {})
    found = scraped(figures)["laptime_run_current_trial"]
    assert sorted(labels["trial"] for labels, _ in found) == names
    assert len({labels["server"] for labels, _ in found}) == 2


def test_whether_prometheus_has_every_second_of_a_trial_is_said_once_it_is_known() -> None:
    world = World(spec_of(1, 1, 3), Random(0))
    run_to_the_end(world)
    results = world.observe().results
    one, other, unknown = (results[name] for name in sorted(results))
    usage = TrialUsage(source=Source.AGENT, complete=True, gaps=[])
    results = {
        one.trial: one.model_copy(update={"usage": usage}),
        other.trial: other.model_copy(update={"usage": usage, "seconds_missing": "1 of 6"}),
        unknown.trial: unknown.model_copy(update={"usage": None}),
    }
    figures = RunFigures()
    figures.see(manifest_of(world.run))
    figures.see_trials(world.run, world.trials, results)
    found = scraped(figures)["laptime_trial_seconds_complete"]
    assert {labels["trial"]: value for labels, value in found} == {one.trial: 1, other.trial: 0}


def test_limits_are_said_where_the_spec_has_them() -> None:
    document = spec_of(2, 1, 1).to_wire()
    document["servers"][0]["resources"] = {"cpu": "1500m"}
    document["topology"]["postgres"]["resources"] = {"cpu": "2"}
    spec = BenchmarkRunSpec.model_validate(document)
    metrics = Metrics()
    metrics.show(manifest_of(World(spec, Random(0)).run))
    limits = samples(metrics)["laptime_run_cpu_limit_cores"]
    found = {(labels["component"], labels["server"]): cores for labels, cores in limits}
    assert found == {("server", "s0"): 1.5, ("postgres", ""): 2.0}


BITS = [f"{number:x}" * 64 for number in range(16)]
"""Digests."""


@pytest.mark.parametrize(
    ("more", "digest"),
    [
        ({}, ""),
        ({"image_id": f"docker.io/team/mine@sha256:{BITS[10]}"}, "a" * 12),
        # On Docker, and as CRI-O says it.
        ({"image_id": f"docker-pullable://team/mine@sha256:{BITS[10]}"}, "a" * 12),
        ({"image_id": BITS[10]}, "a" * 12),
        # Loaded into its node: that is the hash of something else.
        ({"image_id": f"sha256:{BITS[10]}"}, f"loaded {'a' * 12}"),
        (
            {"image_id": f"docker.io/library/import-2026-01-02@sha256:{BITS[10]}"},
            f"loaded {'a' * 12}",
        ),
        # The nodes of its pods had two.
        (
            {"image_id": f"team/mine@sha256:{BITS[10]} and team/mine@sha256:{BITS[11]}"},
            f"{'a' * 12} and {'b' * 12}",
        ),
        # A preset whose image is named so; a tag is none, whatever it looks like.
        ({"image": f"laptime/axum:1@sha256:{BITS[12]}"}, "c" * 12),
        ({"image": f"team/mine:{BITS[12][:40]}"}, ""),
        # The registry did not say what the tag stands for.
        ({"tag_unknown": "no such host"}, "not known, its tag may have moved"),
        (
            {"tag_unknown": "no such host", "image_id": f"team/mine@sha256:{BITS[10]}"},
            f"{'a' * 12}, its tag may have moved",
        ),
    ],
)
def test_which_bits_a_server_ran_is_told_beside_its_image(
    more: dict[str, str], digest: str
) -> None:
    """So that a tag which moved between two runs is seen."""
    server = ServerStatus.model_validate(
        {"name": "s0", "state": ServerState.VERIFIED, "image": "team/mine:1", **more}
    )
    figures = RunFigures()
    figures.see(manifest_of(a_run(RunStatus(state=State.SUCCEEDED, servers=[server]))))
    ((labels, _),) = scraped(figures)[SERVERS]
    assert (labels["image"], labels["digest"]) == (server.image, digest)


def test_the_nodes_of_servers_are_told_when_the_run_is_over_and_many_are_counted() -> None:
    world = World(spec_of(2, 1, 3), Random(0))
    run_to_the_end(world)
    one, *others = (one for one in world.observe().results.values() if one.server == "s0")
    moved = {
        one.trial: one.model_copy(update={"nodes": {"server": ["b", "a"], "generator": ["g"]}}),
        **{other.trial: other.model_copy(update={"nodes": {"server": ["a"]}}) for other in others},
    }
    results = {**world.observe().results, **moved}
    results |= {
        of.trial: of.model_copy(update={"nodes": {"server": [f"n{n}" for n in range(9)]}})
        for of in results.values()
        if of.server == "s1"
    }
    figures = RunFigures()
    for state, told in (
        (State.RUNNING, {"s0": "", "s1": ""}),
        (State.SUCCEEDED, {"s0": "a and b", "s1": "n0, n1, n2 and 6 others"}),
    ):
        run = replace(world.run, status=world.run.status.model_copy(update={"state": state}))
        figures.see(manifest_of(run))
        figures.see_trials(run, world.trials, results)
        found = {labels["server"]: labels["nodes"] for labels, _ in scraped(figures)[SERVERS]}
        assert found == told


def test_evidence_waits_for_the_end_because_each_sentence_is_a_series() -> None:
    row = a_row(limited_by=LimitedBy(cause=Cause.SERVER_CPU, evidence="1.0 of 1 core"))
    figures = RunFigures()
    figures.see(manifest_of(a_run(RunStatus(state=State.RUNNING, results=[row]))))
    ((labels, _),) = scraped(figures)["laptime_result_limited_by"]
    assert (labels["cause"], labels["evidence"]) == ("serverCpu", "")


def test_every_planned_trial_is_known_before_and_has_times_after() -> None:
    world = World(spec_of(2, 1, 2), Random(0))
    metrics = Metrics()
    metrics.show(manifest_of(world.run))
    metrics.trials(world.run, world.trials, {})
    before = samples(metrics)
    assert {labels["trial"] for labels, _ in before["laptime_trial_info"]} == {
        trial.name for trial in world.trials
    }
    assert {labels["repetition"] for labels, _ in before["laptime_trial_info"]} == {"1", "2"}
    assert "laptime_trial_started_timestamp_seconds" not in before
    run_to_the_end(world)
    metrics.show(manifest_of(world.run))
    metrics.trials(world.run, world.trials, world.observe().results)
    after = samples(metrics)
    begun = after["laptime_trial_started_timestamp_seconds"]
    ended = after["laptime_trial_finished_timestamp_seconds"]
    results = [one for _, one in sorted(world.observe().results.items())]
    assert [value for _, value in begun] == [
        datetime.fromisoformat(one.started_at or "").timestamp() for one in results
    ]
    assert [value - since for (_, value), (_, since) in zip(ended, begun, strict=True)] == [2.0] * 4
    assert {labels["outcome"] for labels, _ in after["laptime_trial_outcome"]} == {"Measured"}
    assert [value for _, value in after["laptime_trial_requests_per_second"]] == [1000.0] * 4


def test_nothing_is_left_of_a_deleted_run_even_if_it_was_the_last() -> None:
    metrics, world = Metrics(), World(spec_of(1, 1, 1), Random(0))
    metrics.show(manifest_of(world.run))
    metrics.trials(world.run, world.trials, {})
    assert "demo" in metrics.text().decode()
    metrics.forget(world.run.uid)
    assert "demo" not in metrics.text().decode()


def test_a_new_run_of_the_same_name_has_no_trials_of_the_old_one() -> None:
    figures, world = RunFigures(), World(spec_of(1, 1, 1), Random(0))
    figures.see(manifest_of(world.run))
    figures.see_trials(world.run, world.trials, {})
    figures.see(manifest_of(replace(world.run, uid="another")))
    assert "laptime_trial_info" not in scraped(figures)


def test_the_number_of_series_is_bounded_and_the_newest_runs_are_shown() -> None:
    figures = RunFigures()
    rows = [a_row(server=f"s{number}") for number in range(MOST_ROWS // 10)]
    runs = list(many(2 * MOST_RUNS, RunStatus(state=State.SUCCEEDED, results=rows)))
    Random(3).shuffle(runs)
    for run in runs:
        figures.see(manifest_of(run))
    found = scraped(figures)
    shown = {labels["run"] for labels, _ in found["laptime_run_info"]}
    assert shown == {f"run-{number:04d}" for number in range(MOST_RUNS, 2 * MOST_RUNS)}
    assert len(found["laptime_result_trials"]) == MOST_ROWS


def test_there_is_room_for_the_newest_of_those_that_are_left_out() -> None:
    figures = RunFigures()
    runs = [manifest_of(one) for one in many(2 * MOST_RUNS, RunStatus(state=State.SUCCEEDED))]
    cards = [card_of(one) for one in runs]
    for manifest in runs:
        figures.see(manifest)
    assert figures.left_out(cards) == []
    for manifest in runs[-3:]:
        figures.forget(manifest["metadata"]["uid"])
    there = cards[:-3]
    newest = there[MOST_RUNS - 3 : MOST_RUNS]
    assert figures.left_out(there) == newest[::-1]
    # One that is measured is shown before all that are newer.
    measured = replace(there[0], state=State.RUNNING)
    assert figures.left_out([measured, *there[1:]]) == [measured, *newest[:0:-1]]


def test_the_run_that_is_measured_is_shown_although_many_newer_ones_wait() -> None:
    figures = RunFigures()
    oldest, *queued = many(2 * MOST_RUNS, RunStatus(state=State.QUEUED))
    for run in (replace(oldest, status=RunStatus(state=State.RUNNING)), *queued):
        figures.see(manifest_of(run))
    shown = {labels["run"] for labels, _ in scraped(figures)["laptime_run_info"]}
    assert len(shown) == MOST_RUNS
    assert oldest.name in shown


def test_of_a_run_with_too_many_trials_those_around_the_newest_are_shown() -> None:
    world = World(spec_of(32, 2, 100), Random(0))
    figures = RunFigures()
    figures.see(manifest_of(world.run))
    results = {
        trial.name: TrialResult(
            trial=trial.name,
            ordinal=trial.ordinal,
            server=trial.server,
            load=trial.load,
            repetition=trial.repetition,
            outcome=TrialOutcome.FAILED,
        )
        for trial in world.trials[:3000]
    }
    figures.see_trials(world.run, world.trials, results)
    shown = {labels["trial"] for labels, _ in scraped(figures)["laptime_trial_info"]}
    assert len(shown) == MOST_TRIALS
    assert world.trials[2999].name in shown
    assert world.trials[3001].name in shown


def test_runs_that_are_measured_at_once_have_as_many_of_their_trials_shown() -> None:
    figures = RunFigures()
    for uid in ("one", "two"):
        world = World(spec_of(10, 1, 80), Random(0))
        manifest = manifest_of(world.run)
        manifest["metadata"] |= {"uid": uid, "name": uid}
        manifest["status"] = {"state": "Running"}
        figures.see(manifest)
        figures.see_trials(run_view(manifest), world.trials, {})
    shown = [labels["run"] for labels, _ in scraped(figures)["laptime_trial_info"]]
    assert {name: shown.count(name) for name in ("one", "two")} == {
        "one": MOST_TRIALS // 2,
        "two": MOST_TRIALS // 2,
    }


def test_nothing_is_written_down_twice_that_did_not_change() -> None:
    figures, world = RunFigures(), World(spec_of(1, 1, 1), Random(0))
    figures.see(manifest_of(world.run))
    first = figures.text()
    assert figures.text() is first
    result = TrialResult.model_construct(trial="demo-trial-001", figures=None, **_FAILED)
    for _ in range(2):
        figures.see_trials(world.run, world.trials, {"demo-trial-001": result})
        with_trial = figures.text()
        assert with_trial != first
        assert figures.text() is with_trial
        figures.see_trials(world.run, world.trials, {"demo-trial-001": result})
        assert figures.text() is with_trial
    figures.forget(world.run.uid)
    assert b"demo" not in figures.text()


_FAILED: dict[str, Any] = {
    "outcome": TrialOutcome.FAILED,
    "validity": Validity.VALID,
    "started_at": None,
    "finished_at": None,
}


def test_the_text_is_what_the_client_library_writes() -> None:
    hostile = 'a "quote", a \\ and\na line'
    status = RunStatus(
        state=State.SUCCEEDED, verdict=hostile, fastest="s0", results=[a_row(rank=1, errors=3)]
    )
    figures = RunFigures()
    figures.see(manifest_of(a_run(status, servers=3)))
    registry = CollectorRegistry()
    registry.register(figures)
    expected = sorted(generate_latest(registry).decode().splitlines())
    assert sorted(figures.text().decode().splitlines()) == expected
    ((labels, _),) = samples(figures)["laptime_run_info"]
    assert labels["verdict"] == hostile


def test_runs_may_come_in_any_order_and_only_those_that_are_shown_are_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[str] = []

    def counted(manifest: Any) -> Run:
        parsed.append(manifest["metadata"]["name"])
        return run_view(manifest)

    monkeypatch.setattr(run_metrics, "run_view", counted)
    runs = list(many(300, RunStatus(state=State.SUCCEEDED)))
    newest = {run.name for run in runs[-MOST_RUNS:]}
    for order in (runs, runs[::-1], Random(0).sample(runs, len(runs))):
        figures = RunFigures()
        for run in order:
            figures.see(manifest_of(run))
        assert {name for _, name in figures.shown} == newest
        figures.text()
    assert len(parsed) == 3 * MOST_RUNS


def test_a_run_that_this_version_does_not_understand_is_there_and_says_so() -> None:
    """It is counted among all runs, so a table without it would be short of one."""
    manifest = manifest_of(a_run(RunStatus()))
    manifest["spec"]["loads"] = "of a version to come"
    figures = RunFigures()
    figures.see(manifest)
    found = scraped(figures)
    ((labels, _),) = found["laptime_run_info"]
    assert (labels["run"], labels["scenario"], labels["state"]) == ("demo", "users", "Queued")
    assert labels["verdict"].startswith("the operator does not understand")
    assert len(found["laptime_run_created_timestamp_seconds"]) == 1


def test_runs_that_are_doubtful_one_after_the_other_are_counted_from_the_newest() -> None:
    figures = RunFigures()
    doubtful, valid = Validity.DOUBTFUL, Validity.VALID
    found: list[float] = []
    runs = many(5, RunStatus(state=State.SUCCEEDED))
    for number, (run, validity) in enumerate(
        zip(runs, (doubtful, valid, doubtful, Validity.INVALID, valid), strict=True)
    ):
        status = RunStatus(
            state=State.SUCCEEDED,
            finished_at=f"2026-01-01T00:00:{number:02d}Z",
            results=[a_row(validity=valid), a_row(server="s1", validity=validity)],
        )
        figures.see(manifest_of(replace(run, status=status)))
        ((labels, count),) = scraped(figures)["laptime_doubtful_runs_in_a_row"]
        assert labels == {"namespace": "default", "scenario": "users"}
        found.append(count)
    assert found == [1, 0, 1, 2, 0]
    # Those of another namespace are others, whose scenario may only be called alike.
    doubted = status.model_copy(update={"results": [a_row(validity=doubtful)]})
    figures.see(manifest_of(replace(run, namespace="other", uid="another", status=doubted)))
    counted = {
        (labels["namespace"], labels["scenario"]): count
        for labels, count in scraped(figures)["laptime_doubtful_runs_in_a_row"]
    }
    assert counted == {("default", "users"): 0, ("other", "users"): 1}


def test_missed_objectives_are_counted() -> None:
    def objective(outcome: Outcome) -> ObjectiveResult:
        return ObjectiveResult(
            server="s0", load="l0", metric="p99", bound="", measured="", outcome=outcome, reason="X"
        )

    status = RunStatus(state=State.SUCCEEDED, objectives=[objective(one) for one in Outcome])
    figures = RunFigures()
    figures.see(manifest_of(a_run(status)))
    assert [value for _, value in scraped(figures)["laptime_run_objectives_missed"]] == [1]
