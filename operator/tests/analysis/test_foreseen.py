"""What a run will find, by the noise of earlier ones."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from laptime.analysis.comparing import Comparison, critical
from laptime.analysis.foreseen import asked_metrics, deviations, found_from, together
from laptime.api.metrics import Metric
from laptime.api.spec import BenchmarkRunSpec
from tests.report.sample import SPEC, recorded

NOISE = 0.02
"""Of one server, a logarithm."""


def asked(servers: int, **more: object) -> BenchmarkRunSpec:
    named = [{"name": f"s{number}", "preset": "axum-sqlx"} for number in range(servers)]
    loads = [{"name": "closed", "closed": {"connections": 4, "duration": "1s", "keepAlive": True}}]
    spec = {"scenario": "users", "servers": named, "loads": loads, **more}
    return BenchmarkRunSpec.model_validate(spec)


def noisy_run(
    chance: random.Random, servers: int, repetitions: int, faster: float = 0.0
) -> Comparison:
    """Return a run whose first server is faster by so much, a logarithm, than the others are."""
    shifts = [chance.gauss(0, 0.05) for _ in range(repetitions)]
    return Comparison(
        {
            f"s{one}": {
                at: shift + chance.gauss(0, NOISE) + (0.0 if one else faster)
                for at, shift in enumerate(shifts, 1)
            }
            for one in range(servers)
        }
    )


@pytest.mark.parametrize(("servers", "repetitions"), [(2, 5), (4, 4), (6, 5), (3, 7), (13, 3)])
def test_differences_of_that_size_are_found_four_times_of_five(
    servers: int, repetitions: int
) -> None:
    """By simulation: some runs tell the noise, and a thousand are as noisy as they were."""
    chance = random.Random(f"{servers} {repetitions}")
    noise = []
    for _ in range(20):
        earlier = noisy_run(chance, servers, repetitions)
        pairs = combinations(earlier.servers, 2)
        noise += [one for pair in pairs if (one := earlier.deviation(*pair)) is not None]
    (deviation,) = together([{Metric.REQUESTS_PER_SECOND: noise}]).values()
    share = found_from(deviation, asked(servers), repetitions)
    assert share is not None
    runs = [noisy_run(chance, servers, repetitions, math.log1p(share)) for _ in range(1000)]
    found = sum(run.is_faster("s0", "s1") for run in runs)
    assert 0.75 <= found / len(runs) <= 0.92


def test_more_repetitions_and_less_noise_find_smaller_differences() -> None:
    few, more = (found_from(0.03, asked(4), count) for count in (4, 16))
    quiet = found_from(0.003, asked(4), 4)
    assert few is not None
    assert more is not None
    assert quiet is not None
    assert few > 1.7 * more
    assert few > 5 * quiet


def test_one_server_or_one_repetition_finds_nothing() -> None:
    assert found_from(0.01, asked(1), 5) is None
    assert found_from(0.01, asked(2), 1) is None


def test_the_control_is_no_server_of_its_own() -> None:
    alone = asked(2).with_control()
    controlled = asked(2, control=True).with_control()
    assert len(controlled.servers) == 3
    assert found_from(0.01, controlled, 5) == found_from(0.01, alone, 5)


def test_nothing_below_what_counts_as_a_difference_is_promised() -> None:
    assert found_from(0.0, asked(2), 5) == pytest.approx(0.01)


def test_a_run_that_looks_again_and_again_finds_later() -> None:
    once = found_from(0.02, asked(3), 6)
    looking = found_from(0.02, asked(3, stopWhen="decided", maxRepetitions=10), 6)
    assert once is not None
    assert looking is not None
    assert looking > once


def test_the_bound_is_that_of_the_comparison() -> None:
    for servers in (2, 5):
        scores = {
            f"s{one}": {at: one + 0.01 * ((at * one) % 3) for at in range(1, 5)}
            for one in range(servers)
        }
        comparison = Comparison(scores)
        found = comparison._critical(6, comparison._model)
        assert found == critical(servers, 6, 0.05)


def test_the_noise_of_a_run_is_that_of_its_pairs_by_what_they_are_compared_by() -> None:
    report, _ = recorded()
    found = deviations(SPEC, report.trials)
    assert set(found) <= {*Metric}
    assert Metric.REQUESTS_PER_SECOND in found
    assert all(0 < one < 1 for noise in found.values() for one in noise)
    middle = together([found, found])
    assert middle.keys() == found.keys()
    assert deviations(SPEC, [one for one in report.trials if one.repetition == 1]) == {}


def test_each_figure_is_asked_for_once() -> None:
    opened = {"name": "open", "open": {"rate": 50, "duration": "1s"}}
    loads = [{**opened, "name": f"open-{number}"} for number in range(2)]
    assert asked_metrics(asked(2, loads=loads)) == [Metric.P99]


def test_searches_and_scripts_are_left_out() -> None:
    search = {"name": "limit", "saturation": {"p99": "50ms", "errorRate": 0.001}}
    script = {"name": "own", "script": {"configMap": "mine"}}
    assert asked_metrics(asked(2, loads=[search, script])) == []
