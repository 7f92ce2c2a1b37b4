"""What it would cost to tell servers apart."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta

import pytest

from laptime.analysis import summarise, wording
from laptime.analysis.comparing import POWER, Comparison, critical
from laptime.analysis.deciding import (
    MOST_TIES,
    WORTH_KNOWING,
    seconds_of_repetition,
    ties,
    what_would_decide,
)
from laptime.analysis.distributions import student_quantile
from laptime.analysis.repeated import compared
from laptime.analysis.statistics import ERRORS
from laptime.api.durations import format_duration
from laptime.api.results import Figures, TrialOutcome, TrialResult
from laptime.api.spec import MAX_REPETITIONS
from laptime.plan import Trial
from tests.analysis.runs import Outcome, make_spec, run


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
    more = pair.more_repetitions("s0", "s1", 1 + WORTH_KNOWING, MAX_REPETITIONS)
    assert more == 4
    found = sum(noisy(2, 9, 0.03, 0.0488, seed).is_faster("s0", "s1") for seed in range(60))
    assert 39 <= found <= 56  # four of five, and what chance does to it


def test_a_difference_that_hardly_counts_takes_as_many_as_chance_on_either_side_of_that() -> None:
    """A claim asks for more than 1 %, which with little noise is more than it asks of chance."""
    seen = {n: 0.006 * 2**0.5 * (n - 2) * 0.4**0.5 for n in range(5)}
    pair = Comparison({"s0": seen, "s1": dict.fromkeys(seen, 0.0)})
    more = pair.more_repetitions("s0", "s1", 1.011, MAX_REPETITIONS)
    assert more is not None
    of = 5 + more
    found = sum(
        noisy(2, of, 0.006, math.log(1.011), seed).is_faster("s0", "s1") for seed in range(200)
    )
    assert 145 <= found <= 175  # four of five, and what chance does to it


def test_who_is_compared_in_pairs_is_promised_what_pairs_need() -> None:
    """Who lacks more than one repetition is in no model, and a claim asks for more of it."""
    seen = {n: 0.03 * (n - 2) * 0.4**0.5 for n in range(5)}
    lacking = {n: seen[n] for n in (0, 2, 4)}
    others = {name: dict.fromkeys(seen, 0.0) for name in "bc"}
    comparison = Comparison({"a": seen, **others, "d": lacking | {2: -0.03}})

    def enough(other: str, made: int, in_model: int) -> int:
        deviation = comparison.deviation("a", other)
        assert deviation is not None
        for count in range(made + 1, MAX_REPETITIONS):
            needed = critical(4, count, ERRORS, in_model) + student_quantile(count - 1, POWER)
            if needed * deviation / math.sqrt(count) <= math.log(1.03):
                return count - made
        raise AssertionError

    def promised(other: str) -> int | None:
        return comparison.more_repetitions("a", other, 1.03, MAX_REPETITIONS)

    assert enough("d", 3, 0) > enough("d", 3, 3)
    assert promised("d") == enough("d", 3, 0)
    # The others are compared in the model of the three that have all.
    assert promised("b") == enough("b", 5, 3)


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


def test_two_trials_at_the_same_time_take_their_time_once() -> None:
    pairs = [trial(0, 1, "a"), trial(0, 1, "b"), trial(2, 3, "b"), trial(2, 3, "a")]
    # Two minutes from the one pair to the next.
    assert seconds_of_repetition(pairs) == 120
    # Of the first one nobody knows what lies between it and the next.
    assert seconds_of_repetition(pairs[:2]) == 40


def test_each_load_takes_its_own_time_whatever_others_take_beside_it() -> None:
    """A search of minutes beside a load of seconds, which was decided after two repetitions."""
    results: list[TrialResult] = []
    clock = datetime(2026, 11, 23, 10)
    for repetition in (1, 2, 3, 4, 5):
        for load, warmup, lasts in (("search", 20, 600), ("short", 5, 10)):
            for server in "ab" if load == "search" or repetition < 3 else "":
                begin = clock + timedelta(seconds=warmup)
                clock = begin + timedelta(seconds=lasts)
                one = trial(len(results), 0, server)
                times = {"started_at": begin.isoformat(), "finished_at": clock.isoformat()}
                results.append(one.model_copy(update={"load": load, **times}))
    assert seconds_of_repetition(results, "search") == 2 * 620
    assert seconds_of_repetition(results, "short") == 2 * 15
    assert seconds_of_repetition(results) == 2 * (620 + 15)


def test_a_server_that_was_given_up_costs_a_further_repetition_nothing() -> None:
    """Its repetitions took five minutes; what lies between trials is known of all of them."""
    spec = make_spec("b", "a", "c")

    def script(trial: Trial) -> Outcome:
        if trial.server == "c" and trial.repetition > 2:
            return Outcome(0.0, failure=("ServerCrashed", "it ended"))
        wobble = (0.05, 0.082, 0.018, 0.08, 0.02)[trial.repetition - 1]
        return Outcome(1000 * math.exp(wobble * (trial.server == "a")))

    trials, results, payloads = run(spec, script)
    clock, timed = datetime(2026, 11, 23, 10), []
    for one in results:
        begin = clock + timedelta(seconds=4)
        measured = one.outcome is TrialOutcome.MEASURED
        clock = begin + timedelta(seconds=(300 if one.server == "c" else 10) if measured else 1)
        times = {"started_at": begin.isoformat(), "finished_at": clock.isoformat()}
        timed.append(one.model_copy(update=times))
    assert seconds_of_repetition(timed, out={("c", "closed")}) == 2 * 14
    whole = seconds_of_repetition(timed)
    assert whole is not None
    assert whole > 2 * 14 + 60
    summary = summarise(spec, trials, timed, payloads, None, {})
    (tie,) = summary.ties
    assert tie.repetitions is not None
    assert tie.seconds == 28 * tie.repetitions
    assert f"more repetitions ({format_duration(tie.seconds)}) would tell b and a apart" in (
        summary.verdict
    )


def test_what_no_run_could_find_is_not_promised() -> None:
    said = what_would_decide(noisy(2, 5, 0.5, 0, 1), ("s0", "s1"), 5, 60)
    assert said is not None
    assert f"more than {MAX_REPETITIONS} repetitions" in said


@pytest.mark.parametrize("repetitions", [1, 5])
def test_without_noise_or_times_nothing_is_said(repetitions: int) -> None:
    assert (
        what_would_decide(noisy(2, repetitions, 0.03, 0, 1), ("s0", "s1"), repetitions, None)
        is None
    )
    assert what_would_decide(noisy(2, 1, 0.03, 0, 1), ("s0", "s1"), 1, 60) is None


def test_no_more_are_asked_for_than_a_run_may_have_in_all() -> None:
    comparison, tied = noisy(2, 20, 0.12, 0, 2), ("s0", "s1")
    more = comparison.more_repetitions(*tied, 1 + WORTH_KNOWING, MAX_REPETITIONS)
    assert more is not None
    assert 50 < more < MAX_REPETITIONS
    for repetitions, said in (
        (MAX_REPETITIONS - more, f"about {more} more repetitions ("),
        (MAX_REPETITIONS - more + 1, "to find a difference of 5 % between s0 and s1 takes more "),
    ):
        assert (what_would_decide(comparison, tied, repetitions, 60) or "").startswith(said)
    assert what_would_decide(comparison, tied, MAX_REPETITIONS, 60) is None


def trials_of(load: str, seed: int, noise: float = 0.05, **apart: float) -> list[TrialResult]:
    """Return five repetitions of servers a minute apart, which differ by these logarithms."""
    dice = random.Random(seed)
    found = []
    for repetition in range(1, 6):
        for place, (server, log) in enumerate(apart.items()):
            rate = 1000 * math.exp(log + dice.gauss(0, noise))
            number = len(apart) * repetition + place
            one = trial(number, number, server)
            figures = Figures(requests=9, errors=0, window_seconds=1.0, requests_per_second=rate)
            more = {"load": load, "repetition": repetition, "figures": figures}
            found.append(one.model_copy(update=more))
    return found


def test_each_tie_has_its_cost_and_what_is_told_apart_has_none() -> None:
    spec = make_spec("a", "b", "c")
    results = trials_of("closed", 1, a=0.0, b=0.0, c=1.0)
    (tie,) = ties(spec, results)
    assert (tie.load, tie.servers, tie.difference) == ("closed", ["a", "b"], 0.05)
    comparison = compared(spec, "closed", results)[1]
    more = comparison.more_repetitions("a", "b", 1.05, MAX_REPETITIONS - 5)
    assert tie.repetitions == more
    # A repetition of all three takes three minutes.
    assert more is not None
    assert tie.seconds == 180 * more
    said = wording.tie(tie)
    assert said.startswith(f"about {more} more repetitions (")
    assert said.endswith("would tell a and b apart, if they differ by 5 % or more")


def test_what_a_tie_costs_is_about_the_difference_that_the_run_names() -> None:
    results = trials_of("closed", 1, 0.2, a=0.0, b=0.0)
    spec = make_spec("a", "b", stopWhen="decided", smallestDifference="30%")
    by_20, by_5 = (ties(one, results) for one in (spec, make_spec("a", "b")))
    assert [one.difference for one in (*by_20, *by_5)] == [0.3, 0.05]
    assert (by_20[0].repetitions or 0) < (by_5[0].repetitions or MAX_REPETITIONS)
    # Proven to differ by less than that, nothing is left to find.
    assert ties(spec, trials_of("closed", 1, 0.005, a=0.0, b=0.0)) == ()


def test_a_tie_that_no_run_could_decide_has_no_number_to_promise() -> None:
    (tie,) = ties(make_spec("a", "b"), trials_of("closed", 1, 0.9, a=0.0, b=0.0))
    assert (tie.repetitions, tie.seconds) == (None, None)
    assert "takes more than 100 repetitions" in wording.tie(tie)


def test_of_many_ties_those_that_cost_least_are_said() -> None:
    servers = {f"s{n}": 0.0 for n in range(8)}
    found = ties(make_spec(*servers), trials_of("closed", 1, **servers))
    assert len(found) == MOST_TIES
    assert len({tuple(one.servers) for one in found}) == MOST_TIES


def test_the_control_and_a_single_repetition_make_no_tie() -> None:
    spec = make_spec("a", "b", control=True).with_control()
    results = trials_of("closed", 1, **{"a": 0.0, "b": 1.0, "a-control": 0.0})
    assert ties(spec, results) == ()
    once = [one for one in trials_of("closed", 1, a=0.0, b=0.0) if one.repetition == 1]
    assert ties(make_spec("a", "b"), once) == ()
