"""What `compare` says of like servers in two runs: bench/comparing/between_runs.py."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from between_runs import (
    BESIDE,
    SERVERS,
    factors_apart,
    groups,
    quantiles,
    simulated,
    spec_of_alike,
    told,
    trials_of,
)
from duet.run import Entry, Way

from laptime.analysis.two_runs import welch_interval
from laptime.api.results import TrialResult

SPEC = spec_of_alike()


def runs(machine: float, count: int = 40) -> list[list[TrialResult]]:
    """Return runs of like servers on a machine that is another one each time, by so much."""
    dice = np.random.default_rng(1)
    found = []
    for _ in range(count):
        level = dice.normal(7, machine)
        logs = {name: dice.normal(level, 0.02, 4) for name in SERVERS}
        found.append(
            trials_of({name: np.exp(one).tolist() for name, one in logs.items()}, "closed")
        )
    return found


@pytest.mark.parametrize("machine", [0.0, 0.2])
def test_a_machine_that_is_another_one_is_told_apart_unless_a_server_stays_the_same(
    machine: float,
) -> None:
    every = runs(machine)
    found = told(SPEC, list(pairwise(every)))
    assert found.pairs == len(every) - 1
    assert tuple(found.differs) == BESIDE
    by_itself, *beside = found.differs.values()
    assert (by_itself > 0.5) is (machine > 0)
    assert (found.any_line > 0.5) is (machine > 0)
    assert max(beside) < 0.05
    assert found.unlike < 0.1
    assert 0 < found.widths[3] < found.widths[1]


@pytest.mark.parametrize(("before", "after"), [(3, 5), (5, 5), (8, 12), (7, 9)])
def test_the_rule_that_is_simulated_is_that_of_the_operator(before: int, after: int) -> None:
    dice = np.random.default_rng(2)
    logs = dice.normal(0, 1, before), dice.normal(0, 3, after)
    errors = np.array([[one.var(ddof=1) / len(one)] for one in logs])
    needed = quantiles(errors, [before - 1, after - 1], 0.01)["ours"]
    interval = welch_interval(logs[0].tolist(), logs[1].tolist(), 0.99)
    assert interval.low is not None
    assert interval.high is not None
    half = math.log(interval.high / interval.low) / 2
    assert half == pytest.approx(float(needed[0] * np.sqrt(errors.sum())))


def test_welchs_degrees_are_too_many_where_runs_are_unlike() -> None:
    found = simulated((8, 3, 3), 12, 4000)
    assert found["Welch"][0] > 0.15
    assert found["ours"][0] < 0.01
    assert found["Welch"][1] == 1.0
    in_groups = simulated((8, 3, 3), 12, 4000, groups)
    assert in_groups["Cochran"][0] > 0.2
    assert in_groups["ours"][0] < 0.05


def test_factors_are_apart_by_more_than_both_their_intervals() -> None:
    def entry(factor: float) -> Entry:
        way = Way(factor, factor / 1.1, factor * 1.1, seconds=1, trials=6, busy=1, stolen=0)
        return Entry("c", 0.0, {"duet": way}, {"duet": way})

    assert factors_apart([entry(2.0), entry(2.2)], "duet") == (0, 2)
    assert factors_apart([entry(2.0), entry(2.4), entry(2.0)], "duet") == (4, 6)
