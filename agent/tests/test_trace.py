"""No scrape loses a reading, and none gets one twice without need."""

from __future__ import annotations

from laptime_agent.trace import KEPT, CpuTrace


def test_each_reader_gets_each_reading_once() -> None:
    trace = CpuTrace()
    trace.add(1000, 1)
    assert trace.take("a") == [(1000, 1)]
    trace.add(1200, 2)
    trace.add(1400, 3)
    assert trace.take("a") == [(1200, 2), (1400, 3)]
    assert trace.take("b") == [(1000, 1), (1200, 2), (1400, 3)]


def test_without_a_new_reading_there_is_the_last_one() -> None:
    trace = CpuTrace()
    assert trace.take("a") == []
    trace.add(1000, 1)
    assert (trace.take("a"), trace.take("a")) == ([(1000, 1)], [(1000, 1)])


def test_a_clock_that_was_set_back_gives_no_reading() -> None:
    trace = CpuTrace()
    trace.add(1000, 1)
    trace.add(1000, 2)
    trace.add(900, 3)
    assert trace.take("a") == [(1000, 1)]


def test_who_comes_seldom_has_the_newest() -> None:
    trace = CpuTrace()
    trace.take("a")
    for number in range(3 * KEPT):
        trace.add(number + 1, number)
    assert trace.take("a") == [(number + 1, number) for number in range(2 * KEPT, 3 * KEPT)]


def test_forgotten_readers_cost_no_memory() -> None:
    trace = CpuTrace()
    trace.add(1000, 1)
    for number in range(1000):
        trace.take(f"reader-{number}")
    assert len(trace._taken) == 16
