"""Rows of the result table: figures, states and how far they can be trusted."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.analysis import Summary, summarise, wording
from laptime.analysis.repeated import LATENCIES
from laptime.api import doubts
from laptime.api.metrics import Metric
from laptime.api.results import Interval, ResultRow, RowState, Validity
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import scenarios
from laptime.plan import Trial
from tests.analysis.runs import Outcome, make_spec, run, steady, summary_of

TWO = make_spec("fastapi", "axum")
RATES = {"fastapi": 600.0, "axum": 15000.0}


def row(summary: Summary, server: str, load: str = "closed") -> ResultRow:
    return next(one for one in summary.rows if (one.server, one.load) == (server, load))


def value(interval: Interval | None) -> float:
    assert interval is not None
    return interval.value


def test_rows_come_load_by_load_in_the_order_of_the_spec() -> None:
    spec = make_spec("b", "a", loads=("late", "early"))
    summary = summary_of(spec, lambda _: None)
    assert [(one.load, one.server) for one in summary.rows] == [
        ("late", "b"),
        ("late", "a"),
        ("early", "b"),
        ("early", "a"),
    ]


def test_throughput_and_factor_belong_together() -> None:
    summary = summary_of(TWO, steady(RATES))
    base, fast = row(summary, "fastapi"), row(summary, "axum")
    assert value(fast.factor) == pytest.approx(25, rel=0.01)
    assert value(fast.factor) == pytest.approx(
        value(fast.requests_per_second) / value(base.requests_per_second)
    )
    assert base.factor == Interval(value=1.0, low=1.0, high=1.0)


def test_the_factor_is_against_the_baseline_that_the_spec_names() -> None:
    summary = summary_of(make_spec("fastapi", "axum", baseline="axum"), steady(RATES))
    assert value(row(summary, "axum").factor) == 1
    assert value(row(summary, "fastapi").factor) == pytest.approx(1 / 25, rel=0.01)


def test_a_drift_of_the_machine_cancels_in_the_factor_but_not_in_the_throughput() -> None:
    def drifting(trial: Trial) -> Outcome:
        return Outcome(RATES[trial.server] * 2.0**-trial.repetition)

    fast = row(summary_of(TWO, drifting), "axum")
    assert fast.factor is not None
    assert fast.factor.low == pytest.approx(25, rel=1e-6)
    assert fast.factor.high == pytest.approx(25, rel=1e-6)
    assert fast.requests_per_second is not None
    assert fast.requests_per_second.low is not None
    assert fast.requests_per_second.low < value(fast.requests_per_second) / 2


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(1, 10**7), min_size=1, max_size=60), min_size=2, max_size=4))
def test_percentiles_are_those_of_all_repetitions_together(parts: list[list[int]]) -> None:
    spec = make_spec("axum", repetitions=len(parts))
    summary = summary_of(
        spec, lambda trial: Outcome(1000.0, latencies=tuple(parts[trial.repetition - 1]))
    )
    latency = row(summary, "axum").latency
    assert latency is not None
    everything = sorted(value for part in parts for value in part)

    def exact(q: float) -> float:
        return everything[math.ceil(q * len(everything) - 1e-9) - 1] / 1e6

    assert latency.p50_seconds == pytest.approx(exact(0.5), rel=1e-3)
    assert latency.p90_seconds == pytest.approx(exact(0.9), rel=1e-3)
    assert latency.p99_seconds == pytest.approx(exact(0.99), rel=1e-3)
    assert latency.p999_seconds == pytest.approx(exact(0.999), rel=1e-3)
    assert latency.max_seconds == pytest.approx(everything[-1] / 1e6, rel=1e-3)
    mean = sum(everything) / len(everything) / 1e6
    assert latency.mean_seconds == pytest.approx(mean, rel=1e-3)


def test_no_percentile_is_below_a_lower_one_where_a_repetition_has_too_few_requests() -> None:
    # The slowest repetition has 804 requests, and a p99.9 needs 1,000: it is what it would be made
    # of that the others have not.
    def slow_at_first(trial: Trial) -> Outcome:
        if trial.repetition == 1:
            return Outcome(80.0, (20_000,) * 780 + (622_000,) * 24)
        return Outcome(200.0, (20_000,) * 1990 + (90_000,) * 10)

    found = row(summary_of(make_spec("axum", repetitions=3), slow_at_first), "axum")
    figures, together = found.latency_figures, found.latency
    assert figures is not None
    assert together is not None
    assert figures.p99 is not None
    assert figures.p999 is not None
    assert figures.p99.seconds is not None
    assert figures.p999.seconds is not None
    assert figures.p999.seconds.value >= figures.p99.seconds.value
    # It is that of all requests, and nobody knows how it varies.
    assert figures.p999.seconds.value == together.p999_seconds
    assert (figures.p999.seconds.low, figures.p999.rank) == (None, None)


def test_a_percentile_that_fell_among_failures_is_not_that_of_the_longest_repetition() -> None:
    # Of 1,500 requests of the first repetition none failed; the others have too few for a p99.9,
    # and of all together one in 726 failed.
    def longest_at_first(trial: Trial) -> Outcome:
        if trial.repetition == 1:
            return Outcome(214.0, (1000,) * 1500)
        return Outcome(100.0, (1000,) * 699 + (3000,), errors=2)

    found = row(summary_of(make_spec("axum", repetitions=3), longest_at_first), "axum")
    assert found.latency is not None
    assert found.latency_figures is not None
    assert found.latency_figures.p999 is not None
    assert found.latency.p999_seconds is None
    assert found.latency_figures.p999.seconds is None
    assert found.latency_figures.p999.factor is None


def test_a_percentile_of_all_requests_that_is_below_a_lower_one_is_left_out() -> None:
    # p99 is the mean of both repetitions, and of all requests nearly all are of the second one.
    def unlike(trial: Trial) -> Outcome:
        if trial.repetition == 1:
            return Outcome(90.0, (10_000,) * 900)
        return Outcome(10_000.0, (1_000,) * 29_940 + (2_000,) * 60)

    found = row(summary_of(make_spec("axum", repetitions=2), unlike), "axum").latency_figures
    assert found is not None
    assert found.p99 is not None
    assert found.p99.seconds is not None
    assert found.p999 is None or (
        found.p999.seconds is not None and found.p999.seconds.value >= found.p99.seconds.value
    )


@pytest.mark.parametrize("microseconds", [300, 1000, 7000, 12_345])
def test_a_percentile_of_all_requests_that_is_as_high_as_a_lower_one_is_shown(
    microseconds: int,
) -> None:
    """A figure over repetitions comes from its logarithm, so it is off in its last digit."""
    same = Outcome(1000.0, (microseconds,) * 400)
    found = row(summary_of(make_spec("axum"), lambda _: same), "axum")
    assert found.latency is not None
    assert found.latency_figures is not None
    assert found.latency_figures.p999 is not None
    assert value(found.latency_figures.p999.seconds) == found.latency.p999_seconds


def test_what_servers_are_compared_by_is_shown_as_they_are_compared() -> None:
    document = make_spec("a", "b", repetitions=4).to_wire()
    document["loads"] = [{"name": "open", "open": {"rate": 10, "duration": "10s"}}]
    spec = BenchmarkRunSpec.model_validate(document)

    def one_is_short(trial: Trial) -> Outcome:
        few = trial.server == "b" and trial.repetition == 2
        time = 1000 + 10 * trial.repetition if trial.server == "a" else 9000 + trial.repetition
        return Outcome(10.0, (time,) * (99 if few else 100))

    summary = summary_of(spec, one_is_short)
    slow = row(summary, "b", "open")
    assert slow.latency_figures is not None
    assert slow.latency_figures.p99 is not None
    assert slow.rank == slow.latency_figures.p99.rank == 2
    assert slow.factor == slow.latency_figures.p99.factor
    assert "without a right answer" not in summary.verdict


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(1, 10**6), min_size=1, max_size=60), min_size=2, max_size=4))
def test_times_from_sent_and_lateness_are_those_of_all_repetitions_together(
    parts: list[list[int]],
) -> None:
    def stalled(trial: Trial) -> Outcome:
        sent = parts[trial.repetition - 1]
        # Each waited for as long as it then took.
        return Outcome(1000.0, tuple(2 * one for one in sent), uncorrected=tuple(sent))

    found = row(summary_of(make_spec("axum", repetitions=len(parts)), stalled), "axum")
    everything = sorted(value for part in parts for value in part)
    p99 = everything[math.ceil(0.99 * len(everything) - 1e-9) - 1] / 1e6
    assert found.latency is not None
    assert found.uncorrected_latency is not None
    assert found.latency.p99_seconds == pytest.approx(2 * p99, rel=1e-3)
    assert found.uncorrected_latency.p99_seconds == pytest.approx(p99, rel=1e-3)
    assert found.lateness_p99_seconds == pytest.approx(p99, rel=1e-3)


def test_where_nobody_waited_times_from_due_and_from_sent_are_the_same_figures() -> None:
    """One repetition stalls: its p99 moves that of all together far more than it moves the mean."""

    def stalled(trial: Trial) -> Outcome:
        slow = 20 if trial.repetition == 3 else 0
        times = (2000,) * (1000 - slow) + (200_000,) * slow
        return Outcome(100.0, latencies=times, uncorrected=times)

    for found in summary_of(TWO, stalled).rows:
        assert found.latency_figures is not None
        for metric in LATENCIES:
            due, sent = found.due_and_sent(metric)
            assert due is not None
            assert due == found.response_time(metric)
            assert sent == due.model_copy(update={"factor": None, "rank": None})


def test_a_row_without_figures_from_sent_has_both_of_all_repetitions_together() -> None:
    times = (1000,) * 600
    waited = Outcome(100.0, latencies=(3000,) * 600, uncorrected=times)
    found = row(summary_of(TWO, lambda _: waited), "axum")
    due, sent = found.due_and_sent(Metric.P99)
    assert due is not None
    assert due.seconds is not None
    assert due.seconds.low is not None
    before = found.model_copy(update={"uncorrected_figures": None})
    due, sent = before.due_and_sent(Metric.P99)
    assert due is not None
    assert sent is not None
    assert due.seconds is not None
    assert sent.seconds is not None
    assert due.seconds.value == pytest.approx(0.003, rel=1e-3)
    assert sent.seconds.value == pytest.approx(0.001, rel=1e-3)
    assert due.seconds.low is sent.seconds.low is None


def test_of_how_many_repetitions_a_percentile_failed_in_nothing_is_made_up() -> None:
    """One of five repetitions fails so badly that the percentile of all together does."""

    def once(trial: Trial) -> Outcome:
        return Outcome(600.0, errors=300 if trial.repetition == 2 else 0)

    found = row(summary_of(TWO, once), "axum")
    assert wording.latency_figure(found.response_time(Metric.P90)) == "failed (1x)"
    together = found.model_copy(update={"latency_figures": None})
    assert wording.latency_figure(together.response_time(Metric.P90)) == "failed"
    assert wording.latency_figure(together.response_time(Metric.P50)) == "1.00 ms"


def test_a_closed_load_has_nothing_that_only_arrivals_have() -> None:
    closed = row(summary_of(TWO, steady(RATES)), "axum")
    assert closed.uncorrected_latency is None
    assert closed.uncorrected_figures is None
    assert closed.lateness_p99_seconds is None
    assert closed.saturation is None


@pytest.mark.parametrize(
    ("highs", "breakings", "expected"),
    [
        ((1000.0, 1200.0), (3000.0, 2500.0), (900.0, 1200.0, 2500.0)),
        # One of the searches met its objective at every rate, and nothing broke in it.
        ((1000.0, 0.0), (3000.0, 0.0), (900.0, None, 3000.0)),
        ((0.0, 0.0), (0.0, 0.0), (900.0, None, None)),
    ],
)
def test_a_search_has_bounds_that_held_in_all_repetitions(
    highs: tuple[float, float],
    breakings: tuple[float, float],
    expected: tuple[float, float | None, float | None],
) -> None:
    def searched(trial: Trial) -> Outcome:
        place = trial.repetition - 1
        return Outcome(
            1000.0,
            search={
                "low": (900.0, 1100.0)[place],
                "high": highs[place],
                "breaking": breakings[place],
                "p99Seconds": 0.05,
                "errorRate": 0.001,
            },
        )

    found = row(summary_of(make_spec("axum", repetitions=2), searched), "axum").saturation
    assert found is not None
    assert (found.low_rate, found.high_rate, found.breaking_rate) == expected
    assert (found.p99_objective_seconds, found.error_rate_objective) == (0.05, 0.001)


def test_a_clean_server_is_valid() -> None:
    clean = row(summary_of(TWO, steady(RATES)), "axum")
    assert (clean.state, clean.validity) == (RowState.MEASURED, Validity.VALID)
    assert (clean.trials, clean.failed_trials) == (5, 0)
    assert (clean.requests, clean.errors, clean.error_rate) == (2000, 0, 0.0)


def reasons(spec: BenchmarkRunSpec, **change: object) -> list[str]:
    doubtful = row(summary_of(spec, lambda _: Outcome(600.0, **change)), "fastapi")  # type: ignore[arg-type]
    assert doubtful.validity is Validity.DOUBTFUL
    return doubtful.validity_reasons


def test_errors_make_it_doubtful_and_are_said_once() -> None:
    assert reasons(TWO, errors=4) == ["0.99% of the requests had no right answer"]


def test_errors_that_an_earlier_version_wrote_with_other_digits_are_said_once() -> None:
    trials, results, payloads = run(TWO, lambda _: Outcome(600.0, errors=4))
    stored = {"validity_reasons": ["0.990% of the requests had no right answer"]}
    earlier = [one.model_copy(update=stored) for one in results]
    found = row(summarise(TWO, trials, earlier, payloads, None, {}), "fastapi")
    assert found.validity_reasons == ["0.99% of the requests had no right answer"]


def test_errors_of_one_repetition_are_doubtful_even_when_few_in_all() -> None:
    def once(trial: Trial) -> Outcome:
        errors = 4 if trial.repetition == 2 else 0
        return Outcome(600.0, latencies=(1000,) * 1000, errors=errors)

    doubtful = row(summary_of(TWO, once), "fastapi")
    assert doubtful.error_rate is not None
    assert doubtful.error_rate < 0.001
    assert doubtful.validity is Validity.DOUBTFUL
    assert doubtful.validity_reasons == [
        "0.398% of the requests had no right answer (in 1 of 5 repetitions)"
    ]


def rows_doubts(*reasons: str) -> list[str]:
    """Return what a row says of repetitions each of which says one of these."""
    spec = make_spec("fastapi", repetitions=len(reasons))
    often = Outcome(600.0, latencies=(1000,) * 1000)
    trials, results, payloads = run(spec, lambda _: often)
    results = [
        one.model_copy(update={"validity": Validity.DOUBTFUL, "validity_reasons": [said]})
        for one, said in zip(results, reasons, strict=True)
    ]
    return row(summarise(spec, trials, results, payloads, None, {}), "fastapi").validity_reasons


@pytest.mark.parametrize(
    ("one", "other"),
    [
        tuple(doubts.TIER_HELD_BACK.says(tier=f"service db{one}", share=0.03) for one in (1, 2)),
        *(
            tuple(doubts.STOOD_STILL.says(node=one, seconds=8.1) for one in names)
            for names in (("laptime-2", "laptime-3"), ("10.0.0.5", "10.0.0.6"), ("1a", "2a"))
        ),
        tuple(
            doubts.IMAGE_REPLACED.says(what="Postgres", image=f"10.0.0.1/pg:{one}", asked="pg:16")
            for one in (17, 18)
        ),
        tuple(
            doubts.NO_RIGHT_ANSWER.says(mostly=f", mostly {one} (8 of 9 requests)")
            for one in ("status", "timeout")
        ),
        ("what nobody knows: 'under 5 ms'", "what nobody knows: 'under 9 ms'"),
    ],
)
def test_what_is_said_of_two_is_not_said_of_one_twice(one: str, other: str) -> None:
    assert rows_doubts(one, other, one) == [
        f"{one} (in 2 of 3 repetitions)",
        f"{other} (in 1 of 3 repetitions)",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        tuple(doubts.STOOD_STILL.says(node="a-1", seconds=one) for one in (8.1, 12)),
        tuple(doubts.NO_PORT.says(lost=one, requests=98_000) for one in (7, 1_204)),
        tuple(doubts.GENERATOR_LATE.says(late=one, p99=one) for one in (812, 1_200)),
        tuple(doubts.GENERATOR_LATE.says(late=one, p99=one) for one in (4.2, 5e-05)),
        tuple(
            doubts.OTHER_NODES.says(what="axum", nodes="n1", before="n2", trial=f"demo-trial-{one}")
            for one in ("003", "005")
        ),
        tuple(
            doubts.NO_RIGHT_ANSWER.says(mostly=f", mostly status ({one} of 9 requests)")
            for one in (8, 9)
        ),
        ("what nobody knows: 3 of 4", "what nobody knows: 1,200 of 4"),
    ],
)
def test_figures_alone_make_no_other_doubt(one: str, other: str) -> None:
    first = f"{one} (in 2 of 2 repetitions; these figures are of the first)"
    assert rows_doubts(one, other) == [first]
    assert doubts.doubt(first) is doubts.doubt(one)
    assert rows_doubts(one, one) == [f"{one} (in 2 of 2 repetitions)"]


def test_what_the_only_repetition_says_is_in_no_plural() -> None:
    said = doubts.STOLEN_TIME.says(share=0.021, node="n1")
    (reason,) = (one for one in rows_doubts(said) if one.startswith(said))
    assert reason == f"{said} (in 1 of 1 repetition)"
    assert doubts.doubt(reason) is doubts.STOLEN_TIME


def test_a_busy_generator_makes_it_doubtful() -> None:
    assert reasons(TWO, busiest_thread=0.97) == [
        "the generator used 97% of its CPU and may have been the limit (in 5 of 5 repetitions)"
    ]


def test_too_few_answers_make_the_last_percentile_doubtful() -> None:
    assert reasons(TWO, latencies=(1000,) * 199) == ["only 995 answers: p99.9 needs at least 1000"]


FEWER = "0.1 statements per request, 1 is the work: it does less, or remembers answers"


def with_invalid(rates: dict[str, float], *repetitions: int) -> Summary:
    """Summarise a run in which these trials of axum were about other work."""
    trials, results, payloads = run(TWO, steady(rates))
    changes = {"validity": Validity.INVALID, "validity_reasons": [FEWER]}
    judged = [
        one.model_copy(update=changes)
        if one.server == "axum" and one.repetition in repetitions
        else one
        for one in results
    ]
    return summarise(TWO, trials, judged, payloads, None, {})


def test_an_invalid_repetition_is_left_out_of_the_figures_and_said() -> None:
    whole, without = summary_of(TWO, steady(RATES)), with_invalid(RATES, 2)
    found = row(without, "axum")
    assert value(found.factor) == pytest.approx(25, rel=0.01)
    assert value(found.factor) != value(row(whole, "axum").factor)
    assert found.validity is Validity.DOUBTFUL
    assert found.validity_reasons[0] == "1 of 5 repetitions is invalid and left out"
    assert FEWER in found.validity_reasons[1]


def test_figures_of_other_work_are_no_result() -> None:
    summary = with_invalid(RATES, 1, 2, 3, 4, 5)
    found = row(summary, "axum")
    assert found.validity is Validity.INVALID
    assert (found.requests_per_second, found.factor, found.latency) == (None, None, None)
    assert (found.rank, found.limited_by) == (None, None)
    assert FEWER in found.validity_reasons[0]
    assert summary.fastest == "fastapi"
    assert "axum is fastest" not in summary.verdict


def test_a_single_repetition_makes_it_doubtful_and_has_no_interval() -> None:
    spec = make_spec("fastapi", "axum", repetitions=1)
    assert any("only once" in reason for reason in reasons(spec, latencies=(1000,) * 1000))
    fast = row(summary_of(spec, steady(RATES)), "axum")
    assert fast.factor is not None
    assert fast.factor.low is None
    assert value(fast.factor) == pytest.approx(25, rel=0.01)


def test_no_right_answer_is_invalid_and_has_no_factor() -> None:
    def broken(trial: Trial) -> Outcome:
        if trial.server == "axum":
            return Outcome(0.0, latencies=(), errors=50)
        return Outcome(600.0)

    invalid = row(summary_of(TWO, broken), "axum")
    assert (invalid.state, invalid.validity) == (RowState.MEASURED, Validity.INVALID)
    assert (invalid.requests_per_second, invalid.factor, invalid.latency) == (None, None, None)
    assert (invalid.requests, invalid.error_rate) == (250, 1.0)
    assert "no right answer, mostly timeout" in invalid.validity_reasons[0]


def test_a_trial_that_failed_leaves_the_rest_and_says_so() -> None:
    def once(trial: Trial) -> Outcome:
        if (trial.server, trial.repetition) == ("axum", 3):
            return Outcome(0, failure=("ServerOutOfMemory", "killed at 256Mi"))
        return Outcome(RATES[trial.server])

    partial = row(summary_of(TWO, once), "axum")
    assert (partial.state, partial.reason) == (RowState.PARTIAL, "TrialsFailed")
    assert (partial.trials, partial.failed_trials) == (4, 1)
    assert partial.message == (
        "1 of 5 trials failed, the first with ServerOutOfMemory: killed at 256Mi"
    )
    assert partial.validity is Validity.DOUBTFUL
    assert value(partial.factor) == pytest.approx(25)


def test_a_server_all_of_whose_trials_failed_keeps_its_row_with_the_reason() -> None:
    def broken(trial: Trial) -> Outcome:
        if trial.server == "axum":
            return Outcome(0, failure=("TargetNotReachable", "no answer"))
        return Outcome(600.0)

    failed = row(summary_of(TWO, broken), "axum")
    assert (failed.state, failed.reason) == (RowState.FAILED, "TargetNotReachable")
    assert (failed.message, failed.failed_trials) == ("no answer", 5)
    assert (failed.validity, failed.factor) == (None, None)


def test_a_server_that_is_out_keeps_its_row_with_the_reason() -> None:
    def only_fastapi(trial: Trial) -> Outcome | None:
        return Outcome(600.0) if trial.server == "fastapi" else None

    failures = {"axum": ("WrongAnswer", "GET /: $[3].email: expected ...")}
    summary = summary_of(TWO, only_fastapi, failures=failures)
    failed = row(summary, "axum")
    assert (failed.state, failed.reason) == (RowState.FAILED, "WrongAnswer")
    assert summary.finished


def test_a_server_that_failed_half_way_is_partial() -> None:
    def half(trial: Trial) -> Outcome | None:
        return Outcome(RATES[trial.server]) if trial.repetition < 3 else None

    failures = {"axum": ("CrashLoop", "exits with 1")}
    partial = row(summary_of(TWO, half, failures=failures), "axum")
    assert (partial.state, partial.reason, partial.trials) == (RowState.PARTIAL, "CrashLoop", 2)


def test_rows_not_measured_yet_are_pending() -> None:
    summary = summary_of(TWO, lambda _: None)
    assert {one.state for one in summary.rows} == {RowState.PENDING}
    assert {one.validity for one in summary.rows} == {None}
    assert not summary.finished


def test_published_factors_stand_beside_the_measured_ones() -> None:
    spec = BenchmarkRunSpec.model_validate(
        {
            **TWO.to_wire(),
            "servers": [
                {"name": "fastapi", "preset": "fastapi-sync"},
                {"name": "axum", "preset": "axum-sqlx"},
            ],
        }
    )
    summary = summary_of(spec, steady(RATES), published=scenarios()["users"].published)
    assert row(summary, "axum").published_factor == pytest.approx(25.1)


def test_why_no_published_factor_stands_beside_a_row_is_said_in_it() -> None:
    own = {"name": "axum", "preset": "axum-sqlx", "databaseConnections": 9}
    spec = BenchmarkRunSpec.model_validate(
        {**TWO.to_wire(), "servers": [{"name": "fastapi", "preset": "fastapi-sync"}, own]}
    )
    summary = summary_of(spec, steady(RATES), published=scenarios()["users"].published)
    found = row(summary, "axum")
    assert found.published_factor is None
    why = "published with 5 database connections in each process (here 9)"
    assert found.published_missing == why
    assert row(summary, "fastapi").published_missing is None
    # Factors of a response time stand beside nothing that was published, of any server.
    asked = [{"server": "axum", "load": "closed", "metric": "p99", "atMost": "1s"}]
    loads = [{"name": "closed", "open": {"rate": 10000, "duration": "5s"}}]
    late = BenchmarkRunSpec.model_validate({**spec.to_wire(), "objectives": asked, "loads": loads})
    summary = summary_of(late, steady(RATES), published=scenarios()["users"].published)
    assert {one.published_missing for one in summary.rows} == {None}


def test_a_payload_that_was_too_large_to_keep_is_said_to_be_missing() -> None:
    trials, results, payloads = run(TWO, steady(RATES))
    first = next(trial.name for trial in trials if trial.server == "axum")
    del payloads[first]
    doubtful = row(summarise(TWO, trials, results, payloads, None, {}), "axum")
    assert doubtful.validity is Validity.DOUBTFUL
    assert "the response times of 1 of 5 trials are missing" in doubtful.validity_reasons
    # Nobody knows how many answers there were that nothing is known of.
    none = row(summarise(TWO, trials, results, {}, None, {}), "axum")
    assert none.validity_reasons == ["the response times of 5 of 5 trials are missing"]
    assert none.latency is None
    assert doubtful.latency is not None


def test_results_of_another_run_do_not_count() -> None:
    trials, results, payloads = run(TWO, steady(RATES))
    stranger = results[0].model_copy(update={"trial": "other-trial-001"})
    with_it = summarise(TWO, trials, [*results, stranger], payloads, None, {})
    assert with_it == summarise(TWO, trials, results, payloads, None, {})


@settings(max_examples=15)
@given(st.floats(0.01, 100))
def test_a_faster_machine_changes_no_factor(scale: float) -> None:
    plain = summary_of(TWO, steady(RATES))
    faster = summary_of(TWO, steady({name: rate * scale for name, rate in RATES.items()}))
    for one, other in zip(plain.rows, faster.rows, strict=True):
        assert one.factor is not None
        assert other.factor is not None
        assert other.factor.low == pytest.approx(one.factor.low)
        assert other.factor.value == pytest.approx(one.factor.value)
    assert faster.verdict == plain.verdict
