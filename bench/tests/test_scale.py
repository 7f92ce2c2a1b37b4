"""What makes `make bench-scale` fail."""

from __future__ import annotations

import pytest
from audit import Request
from scale.run import Goals, judge_requests


@pytest.mark.parametrize(("count", "missed"), [(0, 1), (7, 1), (8, 0), (240, 0), (241, 1)])
def test_too_many_requests_are_a_miss_and_so_is_an_audit_log_without_them(
    count: int, missed: int
) -> None:
    goals = Goals()
    judge_requests([Request(0.0, "create", "jobs")] * count, 8, goals)
    assert goals.missed() == missed
