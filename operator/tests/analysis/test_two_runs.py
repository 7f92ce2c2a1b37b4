"""The same server in two runs."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from laptime.analysis.two_runs import (
    Change,
    compare_runs,
    speeds_apart,
    welch_interval,
    what_differs,
)
from laptime.api.metrics import Metric
from laptime.api.placement import Nodes, RunPlacement
from laptime.api.results import TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.usage import NodeUsage, Source, TrialUsage
from tests.analysis.runs import Outcome, make_spec, run, steady, summary_of

ONE = make_spec("axum", "sync")


def trials(
    axum: float = 1000.0, sync: float = 500.0, microseconds: int = 1000
) -> list[TrialResult]:
    rates = {"axum": axum, "sync": sync}
    wobbly = steady(rates)

    def script(trial: object) -> Outcome:
        outcome = wobbly(trial)  # type: ignore[arg-type]
        assert outcome is not None
        return Outcome(outcome.rate, (microseconds,) * 400)

    return run(ONE, script)[1]


def changes(before: list[TrialResult], after: list[TrialResult]) -> dict[tuple[str, str], Change]:
    return {(one.server, one.metric): one.change for one in compare_runs(ONE, before, after)}


def test_the_same_again_has_not_changed() -> None:
    assert set(changes(trials(), trials()).values()) == {Change.NONE_FOUND}


def test_more_requests_and_shorter_times_are_better() -> None:
    found = changes(trials(), trials(axum=1100.0, microseconds=900))
    assert found["axum", Metric.REQUESTS_PER_SECOND] is Change.BETTER
    assert found["axum", Metric.P99] is Change.BETTER
    assert found["sync", Metric.REQUESTS_PER_SECOND] is Change.NONE_FOUND
    back = changes(trials(axum=1100.0, microseconds=900), trials())
    assert back["axum", Metric.REQUESTS_PER_SECOND] is Change.WORSE
    assert back["axum", Metric.P99] is Change.WORSE


def test_less_than_one_percent_is_no_change() -> None:
    found = changes(trials(microseconds=100_000), trials(microseconds=100_300))
    assert found["axum", Metric.P50] is Change.NONE_FOUND


def test_a_single_repetition_tells_nothing() -> None:
    first = [trial for trial in trials() if trial.repetition == 1]
    found = compare_runs(ONE, first, trials(axum=3000.0))
    assert {one.change for one in found} == {Change.NOT_KNOWN}
    assert found[0].ratio is not None
    assert found[0].ratio.low is None


def test_only_what_both_runs_have_is_compared() -> None:
    only = [trial for trial in trials() if trial.server == "sync"]
    assert {one.server for one in compare_runs(ONE, trials(), only)} == {"sync"}


def test_the_interval_is_that_of_welchs_test() -> None:
    chance = random.Random(1)
    before = [chance.gauss(0, 0.1) for _ in range(6)]
    after = [chance.gauss(0.2, 0.4) for _ in range(9)]
    expected = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.9)
    found = welch_interval(before, after, 0.9)
    assert found.low == pytest.approx(math.exp(expected.low))
    assert found.high == pytest.approx(math.exp(expected.high))


def test_values_without_any_variance_have_an_exact_ratio() -> None:
    found = welch_interval([0.0, 0.0], [math.log(2)] * 2, 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((2, 2, 2))


def test_equal_runs_are_rarely_called_different() -> None:
    chance = random.Random(7)
    wrong = 0
    for _ in range(400):
        before, after = ([chance.gauss(0, 0.05) for _ in range(5)] for _ in range(2))
        found = welch_interval(before, after, 0.95)
        assert found.low is not None
        assert found.high is not None
        wrong += not found.low <= 1 <= found.high
    assert 4 <= wrong <= 32


def test_one_worker_is_what_a_server_has_that_says_none() -> None:
    # A run stored while the API had a default has 1.
    older = ONE.model_copy(
        update={"servers": [one.model_copy(update={"workers": 1}) for one in ONE.servers]}
    )
    assert what_differs(older, ONE) == []


def test_what_else_differs_is_said() -> None:
    other = make_spec("axum", "new", loads=("closed", "open"), topology={"postgres": {}})
    other = other.model_copy(
        update={"servers": [other.servers[0].model_copy(update={"workers": 4}), other.servers[1]]}
    )
    assert what_differs(ONE, ONE) == []
    assert what_differs(ONE, other) == [
        "the topology, or the sizes of its tiers",
        "the settings of server axum",
        "server sync is in one of them only",
        "server new is in one of them only",
        "load open is in one of them only",
    ]


def test_a_run_on_one_node_and_one_on_several_differ() -> None:
    rotated = ONE.model_copy(update={"nodes": Nodes.ROTATE})
    assert what_differs(ONE, rotated) == ["the nodes: fixed and rotate"]
    assert what_differs(ONE, ONE.model_copy(update={"nodes": Nodes.FIXED})) == []


def at_speed(probe_seconds: float | None, work: str | None = "1") -> list[TrialResult]:
    node = NodeUsage(node="n1", cpus=2, probe_seconds=probe_seconds, probe_work=work)
    usage = TrialUsage(source=Source.AGENT, complete=True, nodes=[node])
    return [one.model_copy(update={"usage": usage}) for one in trials()]


def test_cpus_that_were_not_as_fast_are_said() -> None:
    assert speeds_apart(at_speed(200e-6), at_speed(300e-6)) == (
        "the speed of the CPUs: 1.50x slower after (a fixed piece of work took 200 µs and 300 µs)"
    )
    faster = speeds_apart(at_speed(300e-6), at_speed(200e-6))
    assert faster is not None
    assert "1.50x faster after" in faster
    # Nothing is said of what is as fast, was not told, or is another piece of work.
    assert speeds_apart(at_speed(200e-6), at_speed(209e-6)) is None
    assert speeds_apart(trials(), at_speed(300e-6)) is None
    assert speeds_apart(at_speed(None, None), at_speed(300e-6)) is None
    assert speeds_apart(at_speed(200e-6), at_speed(300e-6, "2")) is None
    both = [*at_speed(300e-6), *at_speed(300e-6, "2")]
    assert speeds_apart(at_speed(200e-6), both) is None


def test_runs_in_different_placements_differ() -> None:
    isolated = RunPlacement(name="isolated", rules="0a")
    changed = isolated.model_copy(update={"rules": "0b"})
    shared = RunPlacement(name="shared", rules="0a")

    def said(before: RunPlacement | None, after: RunPlacement | None) -> list[str]:
        return what_differs(ONE, ONE, placements=(before, after))

    assert said(None, None) == said(isolated, isolated) == []
    assert said(isolated, shared) == ["the placement: isolated and shared"]
    assert said(isolated, None) == ["the placement: isolated and none"]
    assert said(None, shared) == ["the placement: none and shared"]
    assert said(isolated, changed) == ["the placement: isolated was changed between them"]
    east, west = (isolated.model_copy(update={"lane": lane}) for lane in ("east", "west"))
    assert said(east, west) == ["the lane: east and west"]
    assert said(isolated, west) == ["the lane: none and west"]
    # The name alone says nothing of the rules.
    assert said(isolated, RunPlacement(name="isolated")) == []


def test_a_run_that_looked_again_and_again_has_the_intervals_of_its_own_report() -> None:
    stops = {"stopWhen": "decided", "repetitions": ONE.repetitions}
    spec = BenchmarkRunSpec.model_validate({**ONE.to_wire(), **stops})
    by_looks, once = (compare_runs(one, trials(), trials(), ONE)[0] for one in (spec, ONE))
    rows = {
        (row.server, row.load): row
        for row in summary_of(spec, steady({"axum": 1000.0, "sync": 500.0})).rows
    }
    row = rows[by_looks.server, by_looks.load]
    assert by_looks.before == row.requests_per_second
    assert by_looks.after == once.after
    assert by_looks.ratio is not None
    assert once.ratio is not None
    assert (by_looks.ratio.low or 0) < (once.ratio.low or 0)
