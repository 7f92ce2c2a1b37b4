"""What makes `make bench-scale` fail."""

from __future__ import annotations

import pytest
from audit import Request
from overhead.viewers import Look
from scale.run import LEAST_ANSWERED, Goals, judge_opening, judge_requests


@pytest.mark.parametrize(("count", "missed"), [(0, 1), (7, 1), (8, 0), (240, 0), (241, 1)])
def test_too_many_requests_are_a_miss_and_so_is_an_audit_log_without_them(
    count: int, missed: int
) -> None:
    goals = Goals()
    judge_requests([Request(0.0, "create", "jobs")] * count, 8, goals)
    assert goals.missed() == missed


@pytest.mark.parametrize(
    ("slowest", "answered", "runs", "said", "missed"),
    [
        (0.99, LEAST_ANSWERED, 11_000, "met", 0),
        (1.01, LEAST_ANSWERED, 1_000, "MISSED", 1),
        # With fewer runs than the goal is about, nothing is shown by it.
        (0.5, LEAST_ANSWERED, 999, "not judged", 0),
        (1.01, LEAST_ANSWERED, 999, "not judged", 0),
        # An empty screen is soon there.
        (0.01, LEAST_ANSWERED - 1, 11_000, "met", 1),
    ],
)
def test_a_first_screen_that_comes_late_or_empty_is_a_miss_with_as_many_runs(
    slowest: float,
    answered: int,
    runs: int,
    said: str,
    missed: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    goals = Goals()
    judge_opening([Look(0.01, 20), Look(slowest, answered), Look(0.01, 20)], runs, goals)
    first, _ = capsys.readouterr().out.splitlines()
    assert f"   {said}  " in first
    assert f"{slowest:.3f}" in first
    assert goals.missed() == missed
