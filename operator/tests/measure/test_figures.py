"""The figures of one trial: what counts, what does not, and when they are doubtful."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.api.results import Figures, Saturation, TrialOutcome, TrialResult, Validity
from laptime.measure import GeneratorResult, failed_trial, parse_generator_output, trial_result
from laptime.measure.figures import MAX_ENDPOINTS
from tests.measure.samples import TRIAL, document, histogram, line, phase


def result_of(content: dict[str, Any]) -> TrialResult:
    parsed = parse_generator_output(line(content))
    assert isinstance(parsed, GeneratorResult), parsed
    return trial_result(TRIAL, parsed)


def figures_of(content: dict[str, Any]) -> Figures:
    figures = result_of(content).figures
    assert figures is not None
    return figures


def test_the_result_names_its_trial() -> None:
    result = result_of(document(phase([1000])))
    assert (result.trial, result.ordinal) == ("demo-trial-001", 1)
    assert (result.server, result.load, result.repetition) == ("axum", "closed", 1)
    assert result.outcome is TrialOutcome.MEASURED
    assert result.started_at == "2023-11-14T22:13:20.000Z"
    assert result.finished_at == "2023-11-14T22:13:22.000Z"


def test_the_warmup_is_never_counted() -> None:
    figures = figures_of(document(phase([1000] * 4)))
    assert figures.requests == 4
    assert figures.latency is not None
    assert figures.latency.max_seconds == pytest.approx(0.001, rel=1e-3)


def test_throughput_is_right_answers_within_the_window() -> None:
    late = phase([1000] * 1000, errors=50, window=2.0, completedInWindow=990)
    assert figures_of(document(late)).requests_per_second == 990 / 2.0


def test_without_a_window_it_is_from_the_first_request_to_the_last_response() -> None:
    bare = phase([1000] * 1000, errors=50, window=4.0)
    del bare["windowSeconds"], bare["completedInWindow"]
    assert figures_of(document(bare)).requests_per_second == pytest.approx(1000 / 4.0)


def test_latency_and_server_time_are_told_apart() -> None:
    figures = figures_of(document(phase([1000] * 9 + [5000])))
    assert figures.latency is not None
    assert figures.server_time is not None
    assert figures.latency.p50_seconds == pytest.approx(0.001, rel=1e-3)
    assert figures.latency.p99_seconds == pytest.approx(0.005, rel=1e-3)
    assert figures.server_time.p50_seconds == pytest.approx(0.0009, rel=1e-3)


def test_errors_are_counted_by_kind() -> None:
    figures = figures_of(document(phase([1000] * 9, errors=2)))
    assert (figures.requests, figures.errors) == (11, 2)
    assert figures.errors_by_kind == {"timeout": 2}


def test_a_request_that_was_due_and_never_sent_is_an_error() -> None:
    figures = figures_of(document(phase([1000] * 9, droppedIterations=3)))
    assert (figures.requests, figures.errors) == (12, 3)
    assert figures.errors_by_kind == {"dropped": 3}


def test_what_was_never_sent_is_an_error_of_its_endpoint_too() -> None:
    measured = phase([1000] * 90, errors=1, droppedIterations=10)
    measured["endpoints"]["list"]["dropped"] = 10
    whole, of_list = (one := result_of(document(measured))).figures, one.endpoints["list"]
    assert whole is not None
    assert (of_list.requests, of_list.errors) == (whole.requests, whole.errors) == (101, 11)
    assert of_list.latency == whole.latency
    assert of_list.latency is not None
    assert (of_list.latency.p80_seconds, of_list.latency.p90_seconds) == (0.001, None)


def test_a_clean_trial_is_valid() -> None:
    result = result_of(document(phase([1000] * 1000)))
    assert (result.validity, result.validity_reasons) == (Validity.VALID, [])


def test_more_than_a_thousandth_of_errors_is_doubtful() -> None:
    assert result_of(document(phase([1000] * 999, errors=1))).validity is Validity.VALID
    result = result_of(document(phase([1000] * 998, errors=2)))
    assert result.validity is Validity.DOUBTFUL
    assert result.validity_reasons == ["0.2% of the requests had no right answer"]


@pytest.mark.parametrize(
    ("cost", "validity"),
    [
        ({"cpuSeconds": 3.5, "wallSeconds": 2.0, "maxProcs": 2}, Validity.VALID),
        ({"cpuSeconds": 3.7, "wallSeconds": 2.0, "maxProcs": 2}, Validity.DOUBTFUL),
        ({"cpuSeconds": 1.9, "wallSeconds": 2.0, "maxProcs": 1}, Validity.DOUBTFUL),
        ({"busiestThread": 0.89}, Validity.VALID),
        ({"busiestThread": 0.95}, Validity.DOUBTFUL),
        ({"wallSeconds": 0.0}, Validity.VALID),
    ],
)
def test_a_busy_generator_makes_it_doubtful(cost: dict[str, float], validity: Validity) -> None:
    result = result_of(document(phase([1000] * 1000), **cost))
    assert result.validity is validity
    assert all("generator" in reason for reason in result.validity_reasons)


def test_answers_that_all_came_after_the_window_are_not_called_missing() -> None:
    late = phase([9_000_000] * 4, errors=2, window=1.0, completedInWindow=0)
    result = result_of(document(late))
    assert result.validity is Validity.INVALID
    assert result.validity_reasons == [
        "no answer came within the measured time: 4 right ones came after it"
    ]


def test_no_right_answer_is_invalid_and_says_what_came_instead() -> None:
    result = result_of(document(phase([], errors=40)))
    assert result.outcome is TrialOutcome.MEASURED
    assert result.validity is Validity.INVALID
    assert result.validity_reasons == ["no right answer, mostly timeout (40 of 40 requests)"]
    assert result.figures is not None
    assert result.figures.latency is None
    assert result.figures.requests_per_second == 0


def test_a_phase_without_any_request_is_invalid() -> None:
    empty = phase([], window=0.0)
    assert result_of(document(empty)).validity is Validity.INVALID


def test_endpoints_have_figures_of_their_own() -> None:
    both = phase([1000] * 10, completedInWindow=8)
    half = phase([1000] * 5)["endpoints"]["list"]
    both["endpoints"] = {"read": half, "write": half}
    endpoints = result_of(document(both)).endpoints
    assert set(endpoints) == {"read", "write"}
    total = sum(figures.requests_per_second for figures in endpoints.values())
    assert total == pytest.approx(8 / 2.0)


def test_what_comes_after_the_window_is_of_the_endpoint_that_it_was_asked_of() -> None:
    late = phase([1000] * 640 + [1_000_000] * 640, window=10.0, completedInWindow=1216)
    quick, slow = ({**late["endpoints"]["list"], "requests": 640} for _ in range(2))
    quick["completedInWindow"], slow["completedInWindow"] = 640, 576
    late["endpoints"] = {"quick": quick, "slow": slow}
    found = result_of(document(late)).endpoints
    assert {name: one.requests_per_second for name, one in found.items()} == {
        "quick": 64.0,
        "slow": 57.6,
    }


def test_a_script_with_a_name_for_each_request_stays_small() -> None:
    many = phase([1000] * 10)
    half = many["endpoints"]["list"]
    many["endpoints"] = {f"/item/{n}": {**half, "requests": n} for n in range(200)}
    endpoints = result_of(document(many)).endpoints
    assert len(endpoints) == MAX_ENDPOINTS
    assert "/item/199" in endpoints


def test_an_endpoints_failures_are_slower_than_all_its_answers_as_those_of_the_whole_are() -> None:
    measured = phase([1000] * 90, errors=10)
    measured["endpoints"]["list"]["uncorrectedLatency"] = histogram([900] * 90)
    result = result_of(document(measured))
    assert result.figures is not None
    for figures in (result.figures, result.endpoints["list"]):
        for times in (figures.latency, figures.uncorrected_latency):
            assert times is not None
            assert times.p90_seconds == times.max_seconds
            assert times.p99_seconds is None


def test_all_scenarios_of_a_script_but_the_warmup_count() -> None:
    content = document(phase([1000] * 10))
    content["phases"] = {
        "warmup": phase([1000]),
        "first": phase([1000] * 10, firstRequestAt=100.0, lastResponseAt=101.0),
        "second": phase([3000] * 10, errors=1, firstRequestAt=103.0, lastResponseAt=104.0),
        "never": phase([], firstRequestAt=0.0, lastResponseAt=0.0),
    }
    figures = figures_of(content)
    assert (figures.requests, figures.errors) == (21, 1)
    assert figures.window_seconds == 4.0
    assert figures.requests_per_second == 20 / 4.0
    assert figures.latency is not None
    # 11 of 21 requests: one of the ten fast answers is missing, since a request failed.
    assert figures.latency.p50_seconds == pytest.approx(0.003, rel=1e-3)
    assert figures.latency.p90_seconds == pytest.approx(0.003, rel=1e-3)
    assert figures.latency.p99_seconds is None


def test_a_result_of_another_trial_is_refused() -> None:
    result = result_of({**document(phase([1000])), "trial": "other-trial-001"})
    assert (result.outcome, result.reason) == (TrialOutcome.FAILED, "ResultOfAnotherTrial")


def test_a_script_does_not_know_its_trial() -> None:
    result = result_of({**document(phase([1000])), "trial": ""})
    assert result.outcome is TrialOutcome.MEASURED


def test_a_result_with_nothing_but_a_warmup_fails() -> None:
    content = document(phase([1000]))
    del content["phases"]["measured"]
    assert result_of(content).reason == "NothingMeasured"


def test_a_broken_histogram_fails_the_trial() -> None:
    broken = phase([1000])
    broken["endpoints"]["list"]["latency"] = "HISTFAAAA"
    result = result_of(document(broken))
    assert (result.outcome, result.reason) == (TrialOutcome.FAILED, "ResultGarbled")


def test_a_failed_trial_has_no_figures_and_says_why() -> None:
    result = failed_trial(TRIAL, "TargetNotReachable", "no answer")
    assert result.figures is None
    assert result.validity is Validity.INVALID
    assert result.validity_reasons == ["failed: TargetNotReachable"]


def searched(**found: float | bool) -> TrialResult:
    search: dict[str, Any] = {"p99Seconds": 0.05, "errorRate": 0.001, "steps": [], **found}
    return result_of({**document(phase([1000] * 2000)), "saturation": search})


def test_a_search_gives_its_interval_and_the_figures_at_its_rate() -> None:
    result = searched(low=1000, high=1050, breaking=1600)
    assert result.figures is not None
    assert result.figures.saturation == Saturation(
        low_rate=1000,
        high_rate=1050,
        breaking_rate=1600,
        p99_objective_seconds=0.05,
        error_rate_objective=0.001,
    )
    assert result.figures.requests_per_second == 1000
    assert result.validity is Validity.VALID


def test_a_search_that_found_no_limit_says_none() -> None:
    result = searched(low=1000)
    assert result.validity is Validity.DOUBTFUL
    assert result.validity_reasons == [
        "the objective was met at 1,000 requests/s, the highest rate tried: the server can do more"
    ]
    figures = result.figures
    assert figures is not None
    assert figures.saturation is not None
    assert (figures.saturation.high_rate, figures.saturation.breaking_rate) == (None, None)


def test_a_generator_that_was_late_where_its_search_ended_makes_it_doubtful() -> None:
    result = searched(low=1000, high=1040, late=True)
    assert result.validity is Validity.DOUBTFUL
    assert result.validity_reasons == [
        "at 1,040 requests/s, where the search ended, the generator did not send in time: the "
        "server may do more"
    ]


def test_steps_that_began_without_a_rest_make_a_search_doubtful() -> None:
    result = searched(low=1000, high=1040, restless=3)
    assert result.validity is Validity.DOUBTFUL
    assert result.validity_reasons == [
        "3 steps of the search began before the server answered as fast as at first"
    ]


def test_a_search_that_met_its_objective_nowhere_is_invalid() -> None:
    result = searched(low=0, high=1)
    assert result.validity is Validity.INVALID
    assert "at no rate" in result.validity_reasons[0]


def test_open_loads_show_both_latencies_and_how_late_they_were() -> None:
    measured = phase([5000] * 99 + [900_000], lateness=histogram([10] * 98 + [800_000] * 2))
    measured["endpoints"]["list"]["uncorrectedLatency"] = histogram([5000] * 100)
    figures = result_of(document(measured)).figures
    assert figures is not None
    assert figures.latency is not None
    assert figures.uncorrected_latency is not None
    assert figures.latency.max_seconds == pytest.approx(0.9, rel=0.001)
    assert figures.uncorrected_latency.max_seconds == pytest.approx(0.005, rel=0.001)
    assert figures.lateness_p99_seconds == pytest.approx(0.8, rel=0.001)
    closed = result_of(document(phase([5000]))).figures
    assert closed is not None
    assert (closed.uncorrected_latency, closed.lateness_p99_seconds) == (None, None)
