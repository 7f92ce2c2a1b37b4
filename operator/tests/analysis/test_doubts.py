"""The table of doubts: closed, and about each reason that there is."""

from __future__ import annotations

import pytest

from laptime.analysis.doubts import DOUBTS, Bearing, bearing
from laptime.api.metrics import Metric

REASONS = {
    "0.49% of the requests had no right answer": "errors",
    "the generator used 95% of its CPU and may have been the limit": "generator CPU",
    "the generator was held back by a CPU limit in 3% of time": "generator held back",
    "the generator sent 1 of 100 requests 3 ms late or more, which their": "generator late",
    "Little's law does not hold: 10 connections, but throughput": "Little's law",
    "the rate was not held: 900.0 requests/s were due instead of 1,000": "rate not held",
    "the first 2 s were 9% slower than the rest: make the warm-up longer": "still warming up",
    "the first 2 s were 9% faster than the rest: server, database or": "slowing down",
    "3 statements per right answer instead of 1: the server does more than the work": (
        "more statements"
    ),
    "Postgres was held back by its CPU limit in 20% of time: the figures": "tier held back",
    "the hypervisor took 2.0% of the CPU time of node a": "stolen time",
    "measured only once, so nobody knows how far chance goes: no interval": "measured once",
    "only 400 answers: p99.9 needs at least 1000": "few answers",
    "the response times of 1 of 5 trials are missing": "times missing",
    "1 of 5 repetitions is invalid and left out": "invalid repetitions",
    "2 of 5 trials failed": "failed trials",
}


def test_each_reason_belongs_to_one_kind_of_doubt() -> None:
    assert {one.name for one in DOUBTS} == set(REASONS.values())
    for reason, name in REASONS.items():
        said = f"{reason} (in 2 of 5 repetitions)"
        first = next(one for one in DOUBTS if bearing_of(one.says, said))
        assert first.name == name


def bearing_of(pattern: str, reason: str) -> bool:
    import re

    return re.search(pattern, reason) is not None


@pytest.mark.parametrize("metric", list(Metric))
def test_a_reason_that_nobody_knows_bears_on_everything(metric: Metric) -> None:
    assert bearing("something new", metric) is Bearing.EITHER


def test_a_gate_on_a_virtual_machine_can_pass_and_is_never_missed_for_stolen_time() -> None:
    found = bearing("the hypervisor took 9.0% of the CPU time of node a", Metric.P99)
    assert Bearing.LOOKS_BETTER not in found
    assert Bearing.LOOKS_WORSE in found
