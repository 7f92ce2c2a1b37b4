"""Objectives: met or not, with the bound and the figure in words."""

from __future__ import annotations

import pytest

from laptime.api.results import ObjectiveResult
from tests.analysis.runs import Outcome, Script, make_spec, summary_of


def evaluated(
    metric: str,
    script: Script,
    bound: dict[str, str],
    failures: dict[str, tuple[str, str]] | None = None,
) -> ObjectiveResult:
    objective = {"server": "axum", "load": "closed", "metric": metric, **bound}
    spec = make_spec("base", "axum", objectives=[objective])
    (result,) = summary_of(spec, script, failures=failures).objectives
    return result


def good(_: object) -> Outcome:
    return Outcome(1000.0, latencies=(2000,) * 990 + (9000,) * 10)


@pytest.mark.parametrize(
    ("metric", "bound", "met"),
    [
        ("p50", {"atMost": "2100us"}, True),
        ("p50", {"atMost": "1.9ms"}, False),
        ("p90", {"atMost": "3ms"}, True),
        ("p99", {"atMost": "5ms"}, True),
        ("p999", {"atMost": "5ms"}, False),
        ("p999", {"atLeast": "5ms"}, True),
        ("mean", {"atMost": "2.1ms"}, True),
        ("requestsPerSecond", {"atLeast": "999"}, True),
        ("requestsPerSecond", {"atLeast": "1001"}, False),
        ("errorRate", {"atMost": "0"}, True),
    ],
)
def test_a_bound_is_kept_or_not(metric: str, bound: dict[str, str], met: bool) -> None:
    assert evaluated(metric, good, bound).met is met


def test_bound_and_figure_are_said_in_words() -> None:
    result = evaluated("p99", good, {"atMost": "5ms"})
    assert (result.bound, result.measured) == ("p99 at most 5ms", "2.00 ms")
    result = evaluated("requestsPerSecond", good, {"atLeast": "500"})
    assert (result.bound, result.measured) == ("requestsPerSecond at least 500", "1,000")


def test_a_doubtful_figure_is_named_doubtful() -> None:
    result = evaluated("errorRate", lambda _: Outcome(1000.0, errors=100), {"atMost": "0.1"})
    assert (result.met, result.measured) == (False, "0.2 (doubtful)")


def test_what_was_not_measured_is_not_met() -> None:
    assert evaluated("p99", lambda _: None, {"atMost": "5ms"}).measured == "not measured yet"
    failures = {"axum": ("WrongAnswer", "...")}
    result = evaluated("p99", lambda _: None, {"atMost": "5ms"}, failures)
    assert (result.met, result.measured) == (False, "not measured: WrongAnswer")


def test_without_a_right_answer_no_latency_is_good() -> None:
    result = evaluated("p99", lambda _: Outcome(0, latencies=(), errors=9), {"atMost": "5m"})
    assert (result.met, result.measured) == (False, "no right answer")
