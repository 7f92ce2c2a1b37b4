"""What a fixed piece of work takes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from laptime_agent.hierarchy import Hierarchy
from laptime_agent.node import Node
from laptime_agent.sampler import Sampler
from laptime_agent.speed import WORK, Speed


def test_it_is_cpu_time_and_not_time_that_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = 0.02
    alone, held_up = Speed(), Speed()
    for _ in range(20):
        alone.measure()

    def work() -> int:
        time.sleep(slept)
        return 0

    monkeypatch.setattr("laptime_agent.speed._work", work)
    for _ in range(3):
        held_up.measure()
    assert (alone.count, held_up.count) == (20, 3)
    assert 1e-5 < alone.seconds / alone.count < 0.1
    assert held_up.seconds < 3 * slept / 2


def test_the_work_is_the_same_each_time() -> None:
    # Whoever changes it changes its name as well: what it takes is compared by that.
    from laptime_agent.speed import _work

    assert _work() == _work() == 14_415_276
    assert WORK.startswith("1-CPython-3.")


def test_nothing_is_done_where_no_pod_of_a_run_is(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    sampler = Sampler(Hierarchy(str(tmp_path)), Node(), None)
    for everything in (True, False, True):
        sampler.tick(everything)
    assert sampler.node is not None
    assert sampler.node.probes == (0, 0.0)
