"""What it would cost to tell servers apart."""

from __future__ import annotations

import random

import pytest

from laptime.analysis.comparing import Comparison
from laptime.analysis.deciding import (
    MOST_REPETITIONS,
    WORTH_KNOWING,
    seconds_of_repetition,
    what_would_decide,
)
from laptime.api.results import TrialOutcome, TrialResult


def noisy(servers: int, repetitions: int, noise: float, apart: float, seed: int) -> Comparison:
    """Return servers of which the first is faster, as a logarithm."""
    dice = random.Random(seed)
    return Comparison(
        {
            f"s{server}": {
                n: dice.gauss(0.0 if server else apart, noise) for n in range(repetitions)
            }
            for server in range(servers)
        }
    )


def trial(number: int, minute: int, server: str) -> TrialResult:
    return TrialResult(
        trial=f"t-{number}",
        ordinal=number,
        server=server,
        load="closed",
        repetition=1 + number // 2,
        outcome=TrialOutcome.MEASURED,
        started_at=f"2026-11-23T10:{minute:02}:00Z",
        finished_at=f"2026-11-23T10:{minute:02}:40Z",
    )


def test_as_many_repetitions_as_it_says_find_such_a_difference() -> None:
    # Five differences whose standard deviation is that of two servers with a noise of 3 %.
    seen = {n: 0.03 * 2**0.5 * (n - 2) * 0.4**0.5 for n in range(5)}
    pair = Comparison({"s0": seen, "s1": dict.fromkeys(seen, 0.0)})
    more = pair.more_repetitions("s0", "s1", WORTH_KNOWING, MOST_REPETITIONS)
    assert more == 4
    found = sum(noisy(2, 9, 0.03, 0.0488, seed).is_faster("s0", "s1") for seed in range(60))
    assert 39 <= found <= 56  # four of five, and what chance does to it


def test_servers_that_are_alike_for_sure_need_nothing_more() -> None:
    assert what_would_decide(noisy(2, 5, 0.003, 0, 1), ("s0", "s1"), 5, 60) is None


def test_it_is_said_with_the_minutes_that_it_takes() -> None:
    seconds = seconds_of_repetition(
        # Between the second and the third the run was suspended.
        [trial(0, 1, "a"), trial(1, 2, "b"), trial(2, 40, "a"), trial(3, 41, "b")]
    )
    assert seconds == 120
    said = what_would_decide(noisy(2, 5, 0.03, 0, 1), ("s0", "s1"), 5, seconds)
    assert said is not None
    assert said.endswith("would tell s0 and s1 apart, if they differ by 5 % or more")
    assert "more repetitions (" in said


def test_what_no_run_could_find_is_not_promised() -> None:
    said = what_would_decide(noisy(2, 5, 0.5, 0, 1), ("s0", "s1"), 5, 60)
    assert said is not None
    assert f"more than {MOST_REPETITIONS} repetitions" in said


@pytest.mark.parametrize("repetitions", [1, 5])
def test_without_noise_or_times_nothing_is_said(repetitions: int) -> None:
    assert (
        what_would_decide(noisy(2, repetitions, 0.03, 0, 1), ("s0", "s1"), repetitions, None)
        is None
    )
    assert what_would_decide(noisy(2, 1, 0.03, 0, 1), ("s0", "s1"), 1, 60) is None


def test_no_more_are_asked_for_than_a_run_may_have_in_all() -> None:
    comparison, tied = noisy(2, 20, 0.12, 0, 2), ("s0", "s1")
    more = comparison.more_repetitions(*tied, WORTH_KNOWING, MOST_REPETITIONS)
    assert more is not None
    assert 50 < more < MOST_REPETITIONS
    for repetitions, said in (
        (MOST_REPETITIONS - more, f"about {more} more repetitions ("),
        (MOST_REPETITIONS - more + 1, "to find a difference of 5 % between s0 and s1 takes more "),
    ):
        assert (what_would_decide(comparison, tied, repetitions, 60) or "").startswith(said)
    assert what_would_decide(comparison, tied, MOST_REPETITIONS, 60) is None
