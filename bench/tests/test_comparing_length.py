"""Simulated trials vary as it is reckoned that they do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from length import ALIKE, IN_EACH, Case, advised, cases, known_of, mean_variance

from laptime.analysis.length import CAREFUL

CASE = Case("alike for 5 s", 4, 4, 60, 15.0, 0.5)


@pytest.mark.parametrize("kind", ALIKE)
@pytest.mark.parametrize("within", [0.0, 0.5, 1.0])
def test_trials_vary_as_it_is_reckoned(kind: str, within: float) -> None:
    case = replace(CASE, kind=kind, within=within)
    logs = np.log(case.runs(400, np.random.default_rng(3)))
    long = logs.mean(-1).var()
    assert long == pytest.approx(0.02**2, rel=0.1)
    short = logs[..., 20:40].mean(-1).var()
    assert short / long == pytest.approx(case.variance(20) / case.variance(60), rel=0.1)


def test_seconds_that_are_alike_say_less() -> None:
    assert mean_variance(10, 0.0) == pytest.approx(0.1)
    assert mean_variance(2, 0.5) == pytest.approx(0.75)
    assert mean_variance(100, 0.8) == pytest.approx(0.09, rel=0.05)


def test_runs_of_one_kind_differ_from_those_of_another() -> None:
    assert len(set(cases())) == len(list(cases()))


def test_where_all_is_between_trials_shorter_ones_save_time() -> None:
    case = replace(CASE, within=0.02)
    (counts,) = case.runs(1, np.random.default_rng(1))
    known = known_of(case, counts)
    assert known is not None
    found = advised(case, known, CAREFUL)
    assert found is not None
    assert found.really < 0.6


@pytest.mark.parametrize("seconds", [10, 30])
@pytest.mark.parametrize("kind", IN_EACH)
def test_what_is_alike_in_each_trial_costs_nobody_time(kind: str, seconds: int) -> None:
    """It looks like noise within trials, which longer ones would average out."""
    case = Case(kind, 4, 20, seconds, 90.0, 0.02)
    for counts in case.runs(25, np.random.default_rng(2)):
        known = known_of(case, counts)
        assert known is not None
        found = advised(case, known, CAREFUL)
        assert found is None or found.really < 1
