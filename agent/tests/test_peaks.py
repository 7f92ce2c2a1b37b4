"""A burst of one second is seen, however its readings and the scrapes fall."""

from __future__ import annotations

import pytest

from laptime_agent.peaks import CpuPeak

SECOND = 1_000_000_000
TICK = SECOND // 5


def burst(peak: CpuPeak, begin: float, seconds: float, until: float) -> None:
    """Readings five times a second of a pod that uses one core from `begin` on."""
    for tick in range(int(until * 5) + 1):
        now = tick * TICK
        used = min(max(now / SECOND - begin, 0.0), seconds)
        peak.add(now, round(used * SECOND))


@pytest.mark.parametrize("begin", [2.0, 2.05, 2.1, 2.15, 2.33, 2.5, 2.9])
def test_a_burst_of_one_second_shows_as_a_core(begin: float) -> None:
    peak = CpuPeak()
    burst(peak, begin, 1.0, until=10.0)
    assert peak.take("anybody") == pytest.approx(0.0)
    peak = CpuPeak()
    peak.add(0, 0)
    peak.add(SECOND, 0)
    assert peak.take("prometheus") == 0.0
    for tick in range(6, 50):
        now = tick * TICK
        used = min(max(now / SECOND - begin, 0.0), 1.0)
        peak.add(now, round(used * SECOND))
    assert peak.take("prometheus") == pytest.approx(0.95, abs=0.051)


def test_each_reader_has_its_own_peak() -> None:
    peak = CpuPeak()
    peak.add(0, 0)
    peak.add(SECOND, 0)
    assert (peak.take("a"), peak.take("b")) == (0.0, 0.0)
    peak.add(2 * SECOND, SECOND)
    assert peak.take("a") == 1.0
    peak.add(3 * SECOND, SECOND)
    assert peak.take("a") == 0.0
    assert peak.take("b") == 1.0


def test_who_asks_twice_gets_the_last_second_twice() -> None:
    peak = CpuPeak()
    peak.add(0, 0)
    peak.add(SECOND, SECOND // 2)
    assert (peak.take("a"), peak.take("a")) == (0.5, 0.5)


def test_nothing_is_said_of_less_than_a_second() -> None:
    peak = CpuPeak()
    assert peak.take("a") is None
    peak.add(0, 0)
    peak.add(TICK, TICK)
    assert peak.take("a") is None


def test_a_counter_that_went_back_begins_a_new_history() -> None:
    peak = CpuPeak()
    peak.add(0, 10 * SECOND)
    peak.add(SECOND, 10 * SECOND)
    peak.take("a")
    peak.add(2 * SECOND, 0)
    peak.add(3 * SECOND, SECOND // 4)
    assert peak.take("a") == 0.25


def test_forgotten_readers_cost_no_memory() -> None:
    peak = CpuPeak()
    peak.add(0, 0)
    peak.add(SECOND, 0)
    for number in range(1000):
        peak.take(f"reader-{number}")
    assert len(peak._peaks) == 16
