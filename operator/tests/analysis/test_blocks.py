"""What is asked for again is measured at another time, and paired with nothing of before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from laptime.analysis import Summary, summarise
from laptime.analysis.blocks import block_of_loads, repetition_of
from laptime.analysis.comparing import Comparison
from laptime.analysis.explained import Finding, explained
from laptime.analysis.looks import Looks
from laptime.analysis.script_metrics import compared_metrics
from laptime.analysis.stopping import widest_half_width
from laptime.analysis.two_runs import compare_runs
from laptime.api import doubts
from laptime.api.results import Outcome as ObjectiveOutcome
from laptime.api.results import TrialResult, Validity
from laptime.api.script import ScriptMetric
from laptime.api.spec import BenchmarkRunSpec
from tests.analysis.runs import Outcome, Script, make_spec, run, steady
from tests.analysis.test_script_metrics import trial

Rounds = Mapping[tuple[str, int], int]
"""For which value of `retry` a server's repetition was measured; left out, for none."""
ALIKE = {"a": 1000.0, "b": 1000.0}


def results_of(spec: BenchmarkRunSpec, script: Script, rounds: Rounds) -> list[TrialResult]:
    _, results, _ = run(spec, script)
    return [
        one.model_copy(update={"retry": rounds.get((one.server, one.repetition), 0)})
        for one in results
    ]


def summary_of(spec: BenchmarkRunSpec, script: Script, rounds: Rounds) -> Summary:
    trials, _, payloads = run(spec, script)
    return summarise(spec, trials, results_of(spec, script, rounds), payloads, None, {})


def faster_by(rounds: Rounds, by: float) -> Script:
    """Return a script of like servers on a machine that was faster when it was asked again."""
    usual = steady({name: 1000.0 for name in "abcdef"})

    def outcome(trial: Any) -> Outcome:
        one = usual(trial)
        assert one is not None
        again = rounds.get((trial.server, trial.repetition), 0)
        return Outcome(one.rate * (1 + by * again))

    return outcome


ALL_OF_B = {("b", repetition): 1 for repetition in range(1, 6)}


def test_a_server_measured_on_another_day_is_not_paired_with_those_of_before() -> None:
    spec = make_spec("a", "b")
    summary = summary_of(spec, faster_by(ALL_OF_B, 0.09), ALL_OF_B)
    a, b = summary.rows
    assert b.requests_per_second is not None
    assert b.requests_per_second.value == pytest.approx(1090, rel=0.01)
    assert (b.factor, a.rank, b.rank) == (None, 1, None)
    assert summary.fastest is None
    assert summary.verdict == (
        "a served 1,002 (1,000 to 1,005) requests/s under closed; "
        "under closed measured at another time than most (`retry`), and so no rank: b"
    )
    assert summary.ties == ()


def test_it_says_of_the_later_one_that_nothing_is_known_of_the_difference() -> None:
    spec = make_spec("a", "b", "c")
    summary = summary_of(spec, faster_by(ALL_OF_B, 0.09), ALL_OF_B)
    a, b, c = summary.rows
    (reason,) = [one for one in b.validity_reasons if doubts.ASKED_AGAIN.said(one)]
    assert "than a and c" in reason
    assert b.validity is Validity.DOUBTFUL
    assert (a.validity, c.validity) == (Validity.VALID, Validity.VALID)


def test_a_baseline_that_was_not_asked_again_with_the_others_is_not_said_to_have_been() -> None:
    spec = make_spec("a", "b", "c")
    rounds = {(name, repetition): 1 for name in "bc" for repetition in range(1, 6)}
    summary = summary_of(spec, faster_by(rounds, 0.09), rounds)
    assert [row.rank for row in summary.rows] == [None, 1, 1]
    assert summary.verdict.endswith(
        "under closed measured at another time than most (`retry`), and so no rank: a"
    )


def test_one_pair_of_several_repetitions_is_no_factor() -> None:
    spec = make_spec("a", "b", repetitions=3)
    rounds = {("b", repetition): 1 for repetition in (1, 2)}
    summary = summary_of(spec, faster_by(rounds, 0.09), rounds)
    assert summary.rows[1].factor is None
    assert any(map(doubts.ASKED_AGAIN.said, summary.rows[1].validity_reasons))


def test_a_lone_trial_of_another_day_says_nothing_of_differences_and_all_of_its_server() -> None:
    spec, rounds = make_spec("a", "b"), {("b", 3): 1}
    summary = summary_of(spec, faster_by(rounds, 1.0), rounds)
    without = summary_of(spec, steady(ALIKE), {})
    b, usual = summary.rows[1], without.rows[1]
    assert b.factor is not None
    assert usual.factor is not None
    assert b.factor.value == pytest.approx(1, abs=0.01)
    assert b.validity is Validity.VALID
    assert b.trials == 5
    assert b.requests_per_second is not None
    assert b.requests_per_second.value == pytest.approx(1000 * 2**0.2, rel=0.01)


def test_trials_that_were_asked_again_together_are_a_block() -> None:
    spec = make_spec("a", "b", repetitions=3)
    rounds = {(name, repetition): 1 for name in "ab" for repetition in (1, 2)}
    summary = summary_of(spec, faster_by(rounds, 0.5), rounds)
    usual = summary_of(spec, steady(ALIKE), {})
    assert summary.rows[1].factor == usual.rows[1].factor
    assert summary.rows[1].validity is Validity.VALID


def test_a_run_that_began_with_a_higher_number_is_as_any_other() -> None:
    spec = make_spec("a", "b")
    rounds = {(name, repetition): 3 for name in "ab" for repetition in range(1, 6)}
    assert summary_of(spec, steady(ALIKE), rounds).rows == summary_of(spec, steady(ALIKE), {}).rows


def test_one_server_that_was_asked_again_takes_nothing_from_what_is_known_of_others() -> None:
    rates = {name: 1000.0 * 1.05**place for place, name in enumerate("abcdef")}
    spec = make_spec(*rates, repetitions=3)
    rounds = {("c", repetition): 1 for repetition in (1, 2, 3)}
    summary = summary_of(spec, steady(rates), rounds)
    ranks = {row.server: row.rank for row in summary.rows}
    assert [ranks[name] for name in "fedcba"] == [1, 2, 3, None, 4, 5]
    assert summary.fastest == "f"
    assert "no rank: c" in summary.verdict


def test_the_model_is_of_the_blocks_that_most_servers_have() -> None:
    # Of the second repetition two were asked again, of the third three.
    together = {1: 0.0, 2: 0.1, 3003: 0.2, 4: 0.0}
    first = {1: 0.1, 2: 0.2, 3: 0.1, 4: 0.1}
    scores = {"a": together, "b": together, "c": together, "d": first}
    model = Comparison(scores)._model
    assert model is not None
    # The fourth server has one less, as while a repetition goes on.
    assert (set(model.means), model.repetitions) == ({"a", "b", "c", "d"}, 3)


def test_what_is_not_compared_widens_no_interval() -> None:
    """Where nobody knows a difference the throughput is known all the same, and bounds judged."""
    spec = make_spec(
        "a",
        "b",
        objectives=[
            {
                "server": "b",
                "load": "closed",
                "metric": "requestsPerSecond",
                "atLeast": "1900",
            }
        ],
    )
    summary = summary_of(spec, faster_by(ALL_OF_B, 1.0), ALL_OF_B)
    rate = summary.rows[1].requests_per_second
    assert rate is not None
    assert rate.low is not None
    assert rate.low > 1900
    assert summary.objectives[0].outcome is ObjectiveOutcome.MET


def test_of_a_single_repetition_nobody_is_the_fastest_who_was_measured_on_another_day() -> None:
    spec, rounds = make_spec("a", "b", repetitions=1), {("b", 1): 1}
    summary = summary_of(spec, faster_by(rounds, 1.0), rounds)
    assert summary.verdict.startswith("a served 1,")
    assert summary.verdict.endswith("and so no rank: b")
    assert any(map(doubts.ASKED_AGAIN.said, summary.rows[1].validity_reasons))


def test_over_several_loads_only_what_was_measured_together_under_each_is_paired() -> None:
    spec = make_spec("a", "b", loads=("one", "two"))
    trials, results, payloads = run(spec, steady(ALIKE))

    def asked_again(which: set[tuple[str, str]]) -> Summary:
        found = [
            one.model_copy(update={"retry": int((one.server, one.load) in which)})
            for one in results
        ]
        return summarise(spec, trials, found, payloads, None, {})

    together = asked_again({("a", "two"), ("b", "two")})
    assert together.fastest_factor == asked_again(set()).fastest_factor
    assert "over the loads one and two" in together.verdict
    alone = asked_again({("b", "two")})
    assert alone.fastest == "a or b"
    assert "a and b cannot be told apart by throughput under one;" in alone.verdict
    assert (
        "under two measured at another time than most (`retry`), and so no rank: b" in alone.verdict
    )


def test_a_block_of_several_loads_is_shared_where_each_is() -> None:
    blocks = [(1, 1), (1, 1001), (1001, 1), (1001, 1001), (2, 2), (100_001, 1)]
    numbers = [block_of_loads(one) for one in blocks]
    assert len(set(numbers)) == len(blocks)
    assert [repetition_of(one) for one in numbers] == [1, 1, 1, 1, 2, 1]
    assert numbers[0] == 1


def test_a_look_is_the_repetition_and_not_how_often_it_was_asked_for() -> None:
    looks = Looks(3, (0.01, 0.02, 0.03))
    assert looks.errors_of([{1: 0.0, 1003: 0.0}]) == 0.01
    assert looks.errors_of([{1: 0.0, 1004: 0.0}]) == 0.02


def test_the_metrics_of_a_script_are_paired_in_the_same_way() -> None:
    def measured(server: str, repetition: int, value: float, again: int = 0) -> TrialResult:
        metric = ScriptMetric(name="m", type="trend", samples=50, value=value)
        one: TrialResult = trial(server, repetition, metric)
        return one.model_copy(update={"retry": again})

    of_day = [measured("a", n, 10.0 + n) for n in (1, 2, 3)]
    later = [measured("b", n, 20.0 + n, again=int(n == 3)) for n in (1, 2, 3)]
    found = compared_metrics({"a": of_day, "b": later}, "a", None)["b"]["m"]
    (average,) = [one for one in found if one.name == "avg"]
    assert average.estimate.value == pytest.approx((21 * 22 * 23) ** (1 / 3), rel=1e-5)
    assert average.factor is not None
    assert average.factor.value == pytest.approx((21 / 11 * 22 / 12) ** (1 / 2), rel=1e-5)


def test_an_experiment_says_why_it_knows_nothing_of_an_arm_of_another_day() -> None:
    spec = make_spec("a", "b")
    (found,) = explained(spec, summary_of(spec, faster_by(ALL_OF_B, 0.09), ALL_OF_B).rows)
    assert (found.finding, found.gain) == (Finding.NOT_KNOWN, None)
    assert found.why.startswith("b was asked for again (`retry`)")


def test_two_runs_have_all_that_each_of_them_measured() -> None:
    spec, rounds = make_spec("a"), {("a", 2): 1}
    one = results_of(spec, faster_by(rounds, 0.1), rounds)
    other = results_of(spec, faster_by({}, 0), {})
    found = compare_runs(spec, other, one)[0]
    assert found.after is not None
    assert found.after.value == pytest.approx(1000 * 1.1**0.2, rel=0.01)


def test_a_precision_is_that_of_pairs_measured_together() -> None:
    spec = make_spec("a", "b", precision="1%", repetitions=8)
    rounds = {("b", repetition): 1 for repetition in range(1, 4)}
    noisy = results_of(spec, faster_by(rounds, 0.5), rounds)
    width = widest_half_width(spec, noisy, ["a", "b"])
    assert width is not None
    assert width < 0.02
