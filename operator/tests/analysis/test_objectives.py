"""Objectives: met, missed or not known, with the bound and the figure in words."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.analysis import summarise
from laptime.api.results import ObjectiveResult, Outcome, Validity
from laptime.api.spec import BenchmarkRunSpec
from laptime.plan import Trial
from tests.analysis.runs import Outcome as Measured
from tests.analysis.runs import Script, make_spec, run, summary_of

MET, MISSED, NOT_KNOWN = Outcome.MET, Outcome.MISSED, Outcome.NOT_KNOWN


def evaluated(
    metric: str,
    script: Script,
    bound: dict[str, object],
    failures: dict[str, tuple[str, str]] | None = None,
    repetitions: int = 5,
) -> ObjectiveResult:
    objective = {"server": "axum", "load": "closed", "metric": metric, **bound}
    spec = make_spec("base", "axum", objectives=[objective], repetitions=repetitions)
    (result,) = summary_of(spec, script, failures=failures).objectives
    return result


def good(_: object) -> Measured:
    return Measured(1000.0, latencies=(2000,) * 990 + (9000,) * 10)


def around(*microseconds: int, **more: object) -> Script:
    """Return a script in which each repetition has response times of its own."""

    def outcome(trial: Trial) -> Measured:
        return Measured(1000.0, (microseconds[trial.repetition - 1],) * 1000, **more)  # type: ignore[arg-type]

    return outcome


@pytest.mark.parametrize("rate", range(100, 3001, 100))
def test_a_bound_of_exactly_what_is_measured_is_kept(rate: int) -> None:
    """An open load that is kept up with has exactly its rate, in each repetition."""
    for bound in ("atLeast", "atMost"):
        said = evaluated("requestsPerSecond", lambda _: Measured(float(rate)), {bound: str(rate)})
        assert said.outcome is MET, said


def test_a_bound_that_is_missed_by_little_is_missed() -> None:
    said = evaluated("requestsPerSecond", lambda _: Measured(999.999), {"atLeast": "1000"})
    assert said.outcome is MISSED


@pytest.mark.parametrize(
    ("metric", "bound", "outcome"),
    [
        ("p50", {"atMost": "2100us"}, MET),
        ("p50", {"atMost": "1.9ms"}, MISSED),
        ("p90", {"atMost": "3ms"}, MET),
        ("p99", {"atMost": "5ms"}, MET),
        ("p999", {"atMost": "5ms"}, MISSED),
        ("p999", {"atLeast": "5ms"}, MET),
        ("mean", {"atMost": "2.1ms"}, MET),
        ("requestsPerSecond", {"atLeast": "999"}, MET),
        ("requestsPerSecond", {"atLeast": "1001"}, MISSED),
        ("errorRate", {"atMost": "0"}, MET),
    ],
)
def test_a_bound_is_kept_or_not(metric: str, bound: dict[str, object], outcome: Outcome) -> None:
    assert evaluated(metric, good, bound).outcome is outcome


@pytest.mark.parametrize(
    ("bound", "outcome"),
    [("9999999s", MET), ("99999999999999s", MET), ("00000000005ms", MET), ("0000000001ms", MISSED)],
)
def test_a_bound_that_an_earlier_version_took_is_read(bound: str, outcome: Outcome) -> None:
    """Its rule bounded no digits, and runs of it are reported and go on."""
    assert evaluated("p99", good, {"atMost": bound}).outcome is outcome


def test_bound_and_figure_are_said_in_words() -> None:
    result = evaluated("p99", good, {"atMost": "5ms"})
    assert (result.bound, result.measured) == ("p99 at most 5ms", "2.00 ms")
    result = evaluated("requestsPerSecond", good, {"atLeast": "500"})
    assert (result.bound, result.measured) == ("requestsPerSecond at least 500", "1,000")


@pytest.mark.parametrize(
    ("metric", "script", "bound", "outcome", "measured"),
    [
        ("requestsPerSecond", lambda _: Measured(999.7), {"atLeast": "1000"}, MISSED, "999.7"),
        ("requestsPerSecond", lambda _: Measured(1000.2), {"atLeast": "1000"}, MET, "1,000.2"),
        ("p99", around(*[20_040] * 5), {"atMost": "20ms"}, MISSED, "20.05 ms"),
        ("p99", around(*[999] * 5), {"atMost": "1ms"}, MET, "999 us"),
        ("errorRate", around(*[1000] * 5, errors=10), {"atMost": "0.0099"}, NOT_KNOWN, "0.00990"),
    ],
)
def test_a_figure_has_the_digits_that_tell_it_from_its_bound(
    metric: str, script: Script, bound: dict[str, object], outcome: Outcome, measured: str
) -> None:
    said = evaluated(metric, script, bound)
    assert said.outcome is outcome
    assert said.measured.startswith(measured)


def test_the_share_of_errors_is_shown_with_its_interval() -> None:
    said = evaluated("errorRate", around(*[1000] * 5, errors=1), {"atMost": "0.001"})
    assert said.outcome is NOT_KNOWN
    assert said.measured == "0.000999 (0.000427 to 0.00234)"


def test_an_objective_does_not_depend_on_the_servers_beside() -> None:
    """In rows the bars of servers that are not told apart overlap."""
    times = {"axum": (19_707, 19_917, 19_783), "base": (20_422, 20_270, 20_421)}

    def script(trial: Trial) -> Measured:
        return Measured(1000.0, (times[trial.server][trial.repetition - 1],) * 200)

    objective = {"server": "axum", "load": "closed", "metric": "p99", "atMost": "20080us"}
    alone, beside = (
        summary_of(make_spec(*servers, repetitions=3, objectives=[objective]), script).objectives
        for servers in (["axum"], ["axum", "base"])
    )
    assert alone == beside
    assert alone[0].outcome is MET


def test_fast_answers_to_some_requests_do_not_meet_a_bound_that_most_of_them_miss() -> None:
    wrong = Measured(1000.0, latencies=(1000,) * 400, errors=600)
    result = evaluated("p99", lambda _: wrong, {"atMost": "5ms"})
    assert (result.outcome, result.reason) == (MISSED, "TooManyErrors")
    assert result.measured == "failed (5x), 60.0% of the requests had no right answer"
    # Not even where the percentile itself has a right answer.
    few = Measured(1000.0, latencies=(1000,) * 990, errors=10)
    assert evaluated("p50", lambda _: few, {"atMost": "5ms"}).outcome is MISSED
    assert evaluated("p50", lambda _: few, {"atMost": "5ms", "errorRate": 0.02}).outcome is MET


def test_a_percentile_that_fell_among_failures_in_some_repetitions_is_not_known() -> None:
    def sometimes(trial: Trial) -> Measured:
        return Measured(1000.0, (1000,) * 1000, errors=20 if trial.repetition == 2 else 0)

    result = evaluated("p99", sometimes, {"atMost": "5ms", "errorRate": 0.1})
    assert (result.outcome, result.reason) == (NOT_KNOWN, "IntervalAcrossBound")
    assert "p99 fell among them in 1 of 5 repetitions" in (result.message or "")


def test_an_interval_across_the_bound_is_not_known() -> None:
    script = around(4600, 4900, 5200, 4800, 4700)
    result = evaluated("p99", script, {"atMost": "5ms"})
    assert (result.outcome, result.reason) == (NOT_KNOWN, "IntervalAcrossBound")
    assert evaluated("p99", script, {"atMost": "6ms"}).outcome is MET
    assert evaluated("p99", script, {"atMost": "4ms"}).outcome is MISSED


def test_a_single_repetition_does_not_say_how_sure_it_is() -> None:
    result = evaluated("p99", good, {"atMost": "5ms"}, repetitions=1)
    assert (result.outcome, result.reason) == (NOT_KNOWN, "MeasuredOnce")


def test_too_few_requests_for_a_percentile_are_said() -> None:
    few = Measured(1000.0, latencies=(1000,) * 400)
    result = evaluated("p999", lambda _: few, {"atMost": "5ms"})
    assert (result.outcome, result.reason) == (NOT_KNOWN, "TooFewAnswers")
    assert result.message == "p99.9 needs 1,000 requests in each repetition"


@pytest.mark.parametrize(
    ("fewest", "outcome", "reason"),
    [(99, NOT_KNOWN, "TooFewAnswers"), (100, MET, "BoundKept")],
)
def test_one_repetition_with_too_few_requests_leaves_a_percentile_unknown(
    fewest: int, outcome: Outcome, reason: str
) -> None:
    """Also that which servers are compared by, as they are by the p99 of an open load."""

    def script(trial: Trial) -> Measured:
        return Measured(1000.0, (1000,) * (fewest if trial.repetition == 2 else 400))

    load = {"name": "open", "open": {"rate": 50, "duration": "10s", "maxConnections": 9}}
    objective = {"server": "axum", "load": "open", "metric": "p99", "atMost": "5ms"}
    document = {**make_spec("base", "axum").to_wire(), "loads": [load], "objectives": [objective]}
    (result,) = summary_of(BenchmarkRunSpec.model_validate(document), script).objectives
    assert (result.outcome, result.reason) == (outcome, reason)


def test_a_percentile_that_failed_wherever_anything_was_right_kept_no_bound() -> None:
    """What had no right answer at all has no percentile, which might have kept it."""

    def script(trial: Trial) -> Measured:
        right = 0 if trial.repetition == 2 else 1000
        return Measured(right, (1000,) * right, errors=100)

    result = evaluated("p99", script, {"atMost": "5ms", "errorRate": 0.95})
    assert (result.outcome, result.reason) == (MISSED, "BoundNotKept")
    assert "p99 fell among them in 4 of 4 repetitions" in (result.message or "")


def test_what_the_only_repetition_missed_is_in_no_plural() -> None:
    def script(trial: Trial) -> Measured | None:
        return Measured(1000.0, (1000,) * 1000, errors=100) if trial.repetition == 1 else None

    result = evaluated("p99", script, {"atMost": "5ms", "errorRate": 0.95})
    assert "p99 fell among them in 1 of 1 repetition" in (result.message or "")
    assert "1 repetitions" not in (result.message or "")


@pytest.mark.parametrize(
    ("busiest_thread", "bound", "outcome"),
    [
        # A generator at its limit makes a server look slower, never faster.
        (0.95, "5ms", MET),
        (0.95, "1ms", NOT_KNOWN),
        (0.3, "1ms", MISSED),
    ],
)
def test_a_doubt_counts_only_where_it_could_change_the_outcome(
    busiest_thread: float, bound: str, outcome: Outcome
) -> None:
    busy = Measured(1000.0, (2000,) * 1000, busiest_thread=busiest_thread)
    result = evaluated("p99", lambda _: busy, {"atMost": bound})
    assert result.outcome is outcome
    if outcome is NOT_KNOWN:
        assert (result.reason, result.measured) == ("Doubtful", "2.00 ms (doubtful)")
        assert "generator used 95% of its CPU" in (result.message or "")


@pytest.mark.parametrize(
    ("metric", "bound"),
    [
        ("errorRate", {"atMost": "0.001"}),
        ("p99", {"atMost": "5ms"}),
        ("p99", {"atMost": "5ms", "errorRate": 0.5}),
        ("p50", {"atMost": "5ms"}),
    ],
)
@pytest.mark.parametrize("doubt", [{"kind": "port"}, {"busiest_thread": 0.97}])
def test_what_failed_by_the_generators_doing_misses_no_bound(
    metric: str, bound: dict[str, object], doubt: dict[str, Any]
) -> None:
    errors: dict[str, Any] = {"latencies": (1000,) * 9000, "errors": 1000}
    one = Measured(1000.0, **{**errors, **doubt})
    result = evaluated(metric, lambda _: one, bound)
    assert (result.outcome, result.reason) == (NOT_KNOWN, "Doubtful")
    assert result.measured.endswith(" (doubtful)")
    assert evaluated(metric, lambda _: Measured(1000.0, **errors), bound).outcome is MISSED


def test_what_failed_is_counted_whatever_else_is_doubtful() -> None:
    result = evaluated("errorRate", lambda _: Measured(1000.0, errors=100), {"atMost": "0.1"})
    assert (result.outcome, result.measured) == (MISSED, "0.2 (0.185 to 0.216)")


def test_errors_that_come_in_heaps_have_a_wide_interval() -> None:
    def heaps(trial: Trial) -> Measured:
        return Measured(1000.0, (1000,) * 1000, errors=20 if trial.repetition == 2 else 0)

    assert evaluated("errorRate", heaps, {"atMost": "0.005"}).outcome is NOT_KNOWN
    assert evaluated("errorRate", heaps, {"atMost": "0.05"}).outcome is MET


def test_what_was_not_measured_is_not_known() -> None:
    assert evaluated("p99", lambda _: None, {"atMost": "5ms"}).measured == "not measured yet"
    failures = {"axum": ("WrongAnswer", "...")}
    result = evaluated("p99", lambda _: None, {"atMost": "5ms"}, failures)
    assert (result.outcome, result.reason) == (NOT_KNOWN, "NotMeasured")
    assert result.measured == "not measured: WrongAnswer"


@pytest.mark.parametrize(
    ("metric", "bound"),
    [
        ("errorRate", {"atMost": "0.01"}),
        ("p99", {"atMost": "1s"}),
        ("requestsPerSecond", {"atLeast": "1"}),
    ],
)
def test_where_the_server_was_asked_nothing_no_bound_is_kept_or_missed(
    metric: str, bound: dict[str, object]
) -> None:
    """A script may send all its requests to another host."""
    said = evaluated(metric, lambda _: Measured(0.0, ()), bound)
    assert (said.outcome, said.reason) == (NOT_KNOWN, "NotMeasured")
    assert "no request was counted" in said.measured


def test_a_throughput_that_no_repetition_that_counts_has_is_not_known() -> None:
    # Of a script that asks by HTTP in one repetition only, and there a check fails.
    def once(trial: Trial) -> Measured:
        return Measured(1000.0) if trial.repetition == 1 else Measured(0.0, ())

    objective = {"server": "axum", "load": "closed", "metric": "requestsPerSecond", "atLeast": "1"}
    spec = make_spec("axum", objectives=[objective], repetitions=2)
    trials, (failed, empty), payloads = run(spec, once)
    results = [
        failed.model_copy(update={"validity": Validity.INVALID}),
        empty.model_copy(update={"validity": Validity.DOUBTFUL}),
    ]
    (said,) = summarise(spec, trials, results, payloads, None, {}).objectives
    assert (said.outcome, said.reason) == (NOT_KNOWN, "NotMeasured")


def test_without_a_right_answer_no_latency_is_good() -> None:
    result = evaluated("p99", lambda _: Measured(0, latencies=(), errors=9), {"atMost": "5m"})
    assert (result.outcome, result.measured) == (MISSED, "no right answer")


@pytest.mark.parametrize("right", [0, 1])
def test_without_a_right_answer_the_share_of_errors_is_known(right: int) -> None:
    script = Measured(1.0, latencies=(1000,) * right, errors=900 - right)
    result = evaluated("errorRate", lambda _: script, {"atMost": "0.001"})
    assert (result.outcome, result.reason) == (MISSED, "BoundNotKept")


@pytest.mark.parametrize("metric", ["errorRate", "p99"])
def test_repetitions_without_a_right_answer_do_not_hide_how_many_requests_failed(
    metric: str,
) -> None:
    def sometimes(trial: Trial) -> Measured:
        return Measured(1.0, (1000,) * (0 if trial.repetition > 3 else 400), errors=600)

    bound = "0.1" if metric == "errorRate" else "5ms"
    assert evaluated(metric, sometimes, {"atMost": bound}).outcome is MISSED
