"""What `make bench-truth` counts, and what makes it fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import pytest
from truth.parts import Check, Truth, quantile
from truth.run import GOAL, LIMITS, RUNS, Entry, read, table


def check(what: str = "closed: p50", *, met: bool = True) -> Check:
    """Return a figure that meets its goal or misses it."""
    return Check(what, "2.040 ms", "2.000 ms", "0.040 ms" if met else "0.140 ms", "0.100 ms", met)


def entry(missed: int = 0, of: int = 20) -> Entry:
    """Return a run on a machine of its own, with so many missed goals."""
    checks = [check(f"figure {number}", met=number >= missed) for number in range(of)]
    return Entry("abc", 1.0, checks, 0.0, 0.0)


def words(entries: Sequence[Entry]) -> str:
    """Return what is printed of all runs."""
    return "\n".join(table(list(entries))[0])


def test_ten_runs_are_judged_together() -> None:
    entries = [entry(missed=2), *[entry()] * (RUNS - 1)]
    assert table(entries)[1]
    assert "198 of 200 goals of 10 runs met: 99.0%" in words(entries)
    assert "goal 95%: met" in words(entries)
    assert "figure 1: missed in 1 of 10 runs: 0.140 ms of 0.100 ms" in words(entries)
    assert "figure 2" not in words(entries)


def test_more_than_one_of_twenty_missed_goals_is_a_miss() -> None:
    assert table([entry(missed=1)] * RUNS)[1]
    entries = [entry(missed=2), *[entry(missed=1)] * (RUNS - 1)]
    assert not table(entries)[1]
    assert f"goal {GOAL:.0%}: MISSED" in words(entries)


def test_fewer_than_ten_runs_are_not_judged() -> None:
    assert "not judged yet" in words([entry()] * (RUNS - 1))


@pytest.mark.parametrize(
    "noisy",
    [
        replace(entry(missed=20), stolen=LIMITS.stolen * 1.01),
        replace(entry(missed=20), others=1.01 * (LIMITS.others or 0.0)),
    ],
)
def test_a_run_on_a_machine_that_others_use_is_shown_and_not_judged(noisy: Entry) -> None:
    assert table([noisy, entry()])[1]
    assert "run 1: 0 of 20 goals met" in words([noisy])
    assert "not judged\nno run can be judged" in words([noisy])
    assert not table([noisy])[1]


def test_an_entry_is_read_as_it_was_written() -> None:
    assert read(asdict(entry(missed=3))) == entry(missed=3)


def test_what_is_exact_is_that_of_one_endpoint() -> None:
    truth = Truth([1.0, 2.0, 3.0], [1.5, 2.25, 3.125], ["list", "item", "list"])
    assert truth.raw("list") == [0.125, 0.5]
    assert truth.raw() == [0.125, 0.25, 0.5]
    assert truth.corrected(1.0) == truth.raw()
    assert quantile(truth.raw(), 0.5) == 0.25
