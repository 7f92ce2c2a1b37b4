"""The verdict: who is fastest, and no word more than is known."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from laptime.analysis import summarise, wording
from laptime.api.attempts import Fault
from laptime.api.metrics import Metric
from laptime.api.spec import BenchmarkRunSpec
from laptime.plan import Trial
from tests.analysis.runs import CLOSED, Outcome, Script, make_spec, run, steady, summary_of

THREE = make_spec("sync", "async", "axum")
RATES = {"sync": 600.0, "async": 2220.0, "axum": 15000.0}
Trials = Collection[tuple[str, int]]
"""Servers and repetitions."""


def test_the_fastest_is_named_with_its_factor_and_interval() -> None:
    summary = summary_of(THREE, steady(RATES))
    assert summary.fastest == "axum"
    assert summary.fastest_factor == "25.0x"
    assert summary.verdict.startswith("axum is fastest: 25.0x (2")
    assert summary.verdict.endswith(") the throughput of sync under closed")


def test_a_baseline_that_is_fastest_is_compared_with_the_next() -> None:
    summary = summary_of(make_spec("axum", "async", "sync"), steady(RATES))
    assert summary.fastest == "axum"
    assert summary.fastest_factor == "1.00x"
    assert summary.verdict.startswith("axum, the baseline, is fastest: the next, async, has 0.148x")


def test_a_load_that_fails_for_all_hides_no_answer_under_another_one() -> None:
    """A script that throws says nothing of any server."""

    def outcome(trial: Trial) -> Outcome | None:
        if trial.load == "closed":
            return Outcome(RATES[trial.server])
        if trial.repetition > 2:
            return None
        return Outcome(0.0, failure=("ScriptFailed", "it throws"), fault=Fault.RUN)

    loads = ("closed", "own")
    summary = summary_of(make_spec("sync", "async", "axum", loads=loads), outcome)
    assert summary.finished
    assert (summary.fastest, summary.fastest_factor) == ("axum", "25.0x")
    assert summary.verdict.startswith("axum is fastest: 25.0x")
    assert "nothing could be measured under own" in summary.verdict
    rows = {(row.server, row.load): row for row in summary.rows}
    assert rows["axum", "own"].reason == "ScriptFailed"


def noisy(rates: dict[str, float]) -> Script:
    """Return a script in which each server wins some repetitions."""

    def outcome(trial: Trial) -> Outcome:
        up = (trial.repetition + len(trial.server)) % 2
        return Outcome(rates[trial.server] * (1.2 if up else 0.85))

    return outcome


def test_servers_that_cannot_be_told_apart_are_not_ranked() -> None:
    summary = summary_of(
        make_spec("base", "one", "four"), noisy({"base": 100.0, "one": 1000.0, "four": 1010.0})
    )
    assert summary.fastest == "one or four"
    assert summary.verdict.startswith(
        "one and four cannot be told apart by throughput under closed: "
    )
    assert "that of base; to find a difference of 5 % between one and four" in summary.verdict


def test_who_is_slower_than_one_of_the_first_for_sure_is_not_among_them() -> None:
    """A wild server is like the two others, which are not like each other."""
    rates = {
        "a": (1100.0, 1500.0, 800.0, 1300.0, 900.0),
        "b": (1000.0, 1003.0, 998.0, 1001.0, 999.0),
        "c": (800.0, 802.0, 799.0, 801.0, 798.0),
    }
    summary = summary_of(
        make_spec(*rates), lambda trial: Outcome(rates[trial.server][trial.repetition - 1])
    )
    assert [row.rank for row in summary.rows] == [1, 1, 2]
    assert summary.fastest == "a or b"
    assert summary.verdict.startswith("a and b cannot be told apart by throughput under closed")
    assert "between a and b takes" in summary.verdict


def test_a_tie_with_the_baseline_has_no_factor_to_show() -> None:
    summary = summary_of(make_spec("base", "one"), steady({"base": 1000.0, "one": 1000.0}))
    assert summary.verdict == "base and one cannot be told apart by throughput under closed"
    assert (summary.fastest, summary.fastest_factor) == ("base or one", None)


def test_several_that_are_fastest_have_no_factor_which_would_be_that_of_one_of_them() -> None:
    rates = {"base": 100.0, "one": 1000.0, "four": 1010.0}
    summary = summary_of(make_spec(*rates), noisy(rates))
    factors = {row.server: row.factor.value for row in summary.rows if row.factor}
    assert factors["four"] != pytest.approx(factors["one"])
    assert (summary.fastest, summary.fastest_factor) == ("one or four", None)
    many = {f"s{n}": 100.0 * (1 + 9 * (n > 0)) for n in range(9)}
    summary = summary_of(make_spec(*many), noisy(many))
    assert (summary.fastest, summary.fastest_factor) == ("s1, s2, s3 or 5 others", None)


def test_many_servers_in_a_tie_are_counted() -> None:
    names = [f"s{n}" for n in range(9)]
    summary = summary_of(make_spec(*names), noisy(dict.fromkeys(names, 500.0)))
    assert "and 6 others cannot be told apart" in summary.verdict
    rates = {"base": 100.0}
    rates |= {f"{name}{'x' * (n % 2)}": 1000.0 + 40 * (n % 2) for n, name in enumerate(names)}
    summary = summary_of(make_spec(*rates), noisy(rates))
    listed = re.search(r"under closed: (\S+)x to (\S+)x that of base", summary.verdict)
    assert listed is not None
    factors = [row.factor.value for row in summary.rows[1:] if row.factor]
    assert [listed[1], listed[2]] == [wording.number(end(factors)) for end in (min, max)]


@pytest.mark.parametrize("ended", [None, "TurnOver"])
def test_what_is_to_be_kept_in_mind_is_said_also_of_many_loads(ended: str | None) -> None:
    loads = tuple(f"load-{number}" for number in range(1, 9))
    spec = make_spec("base", "one", "four", loads=loads, stopWhen="decided")
    trials, results, payloads = run(spec, noisy({"base": 100.0, "one": 1000.0, "four": 1010.0}))
    # The last trial is left.
    results = results[:-1] if ended else results
    said = summarise(spec, trials, results, payloads, None, {}, ended).verdict
    assert len(said) <= 1000
    assert said.startswith("one and four cannot be told apart by throughput under load-1: ")
    assert "…; " in said
    if ended:
        assert "; the run ended early (TurnOver); " in said
    for load in loads[:7]:
        assert f"under {load} 1 of 3 orders are not known after " in said


def test_factors_of_a_tie_say_whose_they_are_where_one_of_them_has_none() -> None:
    """It has no repetition in common with the baseline."""
    failed = [("base", 3), ("base", 4), ("a", 1), ("a", 2)]
    rates = {(name, n): 1000.0 + n * n for name in "abc" for n in (1, 2, 3, 4)}
    rates |= {("base", n): 100.0 for n in (1, 2, 3, 4)}
    rates |= {("c", n): 1000.0 - n * n for n in (1, 2, 3, 4)}
    spec = make_spec("base", "a", "b", "c", repetitions=4)
    summary = summary_of(spec, until(rates, failed))
    factors = {row.server: row.factor for row in summary.rows}
    assert factors["a"] is None
    said = "; ".join(wording.factor(one) for name in "bc" if (one := factors[name]))
    assert summary.verdict.startswith(
        "a, b and c cannot be told apart by throughput under closed: b and c have "
        f"{said.replace('; ', ' and ')} that of base"
    )


OPEN = [{"name": "open", "open": {"rate": 1000, "duration": "10s"}}]


def test_servers_that_keep_up_with_a_fixed_rate_are_compared_by_latency() -> None:
    spec = BenchmarkRunSpec.model_validate({**make_spec("a", "b").to_wire(), "loads": OPEN})
    tie = summary_of(spec, steady({"a": 1000.0, "b": 1000.0}))
    assert tie.verdict == "a and b cannot be told apart by p99 under open"

    def unlike(trial: Trial) -> Outcome:
        times = {"a": 293_000, "b": 2_600}[trial.server]
        return Outcome(1000.0, (times + 10 * trial.repetition,) * 400)

    found = summary_of(spec, unlike)
    assert found.verdict.startswith("b is fastest: 0.00898x (0.00")
    assert found.verdict.endswith(") the p99 of a under open")
    slow, fast = found.rows
    assert (slow.rank, fast.rank) == (2, 1)
    assert fast.compared_by is Metric.P99
    assert fast.factor is not None
    assert fast.factor.value == pytest.approx(2.63 / 293.03, rel=0.001)


def test_a_server_alone_has_its_percentile_also_without_what_its_generators_sent() -> None:
    spec = BenchmarkRunSpec.model_validate({**make_spec("a").to_wire(), "loads": OPEN})
    trials, results, payloads = run(spec, steady({"a": 1000.0}))
    for known in (payloads, {}):
        verdict = summarise(spec, trials, results, known, None, {}).verdict
        assert verdict.startswith("a has a p99 of 1.00 ms under open")


def test_where_no_trial_had_enough_requests_for_the_percentile_it_says_how_many_it_needs() -> None:
    spec = BenchmarkRunSpec.model_validate({**make_spec("a", "b").to_wire(), "loads": OPEN})
    few = Outcome(50.0, latencies=(1000,) * 50)
    summary = summary_of(spec, lambda _: few)
    assert all(row.requests_per_second is not None for row in summary.rows)
    assert summary.verdict == (
        "servers are compared by p99, and no trial had the 100 requests that one needs: a longer "
        "duration, or a higher rate, would tell"
    )


def test_the_percentile_of_the_objective_is_what_an_open_load_is_compared_by() -> None:
    objective = {"server": "a", "load": "open", "metric": "p50", "atMost": "5ms"}
    asked = {**make_spec("a", "b").to_wire(), "loads": OPEN, "objectives": [objective]}
    spec = BenchmarkRunSpec.model_validate(asked)
    assert "by p50 under open" in summary_of(spec, steady({"a": 1000.0, "b": 1000.0})).verdict


def test_throughputs_and_response_times_are_not_averaged() -> None:
    loads = [{"name": "closed", **CLOSED}, *OPEN]
    spec = BenchmarkRunSpec.model_validate({**make_spec("a", "b").to_wire(), "loads": loads})
    verdict = summary_of(spec, steady({"a": 1000.0, "b": 4000.0})).verdict
    assert "the throughput of a under closed" in verdict
    assert "a and b cannot be told apart by p99 under open" in verdict


def test_a_percentile_among_failed_requests_is_no_figure_to_compare() -> None:
    spec = BenchmarkRunSpec.model_validate({**make_spec("a", "b", "c").to_wire(), "loads": OPEN})

    def script(trial: Trial) -> Outcome:
        errors = 100 if trial.server == "c" else 0
        return Outcome(1000.0, (1000 if trial.server == "a" else 2000,) * 400, errors=errors)

    summary = summary_of(spec, script)
    assert summary.fastest == "a"
    assert "under open no p99, since requests failed: c" in summary.verdict
    row = summary.rows[2]
    assert (row.rank, row.factor) == (None, None)
    assert row.latency is not None
    assert (row.latency.p50_seconds, row.latency.p99_seconds) == (0.002, None)
    assert wording.latency_figure(row.response_time(Metric.P99)) == "failed (5x)"


def test_one_repetition_claims_no_more_than_it_is() -> None:
    summary = summary_of(make_spec("sync", "axum", repetitions=1), steady(RATES))
    assert summary.fastest == "axum"
    assert summary.verdict.startswith("axum was fastest in the only repetition: 2")
    assert "x the throughput of sync under closed" in summary.verdict
    assert "doubtful" in summary.verdict


def test_who_has_one_repetition_is_not_the_fastest_where_others_have_more() -> None:
    rates = {"b": (1100.0, 990.0, 1000.0, 1005.0, 995.0), "a": (1060.0,)}

    def script(trial: Trial) -> Outcome:
        if trial.repetition > len(rates[trial.server]):
            return Outcome(0.0, failure=("ServerCrashed", "it ended"))
        return Outcome(rates[trial.server][trial.repetition - 1])

    summary = summary_of(make_spec("b", "a"), script)
    assert [row.rank for row in summary.rows] == [1, None]
    # Nor is the other one, since nobody knows.
    assert (summary.fastest, summary.fastest_factor) == (None, None)
    assert summary.verdict.startswith("b served 1,017 (")
    assert summary.verdict.endswith("under closed fewer than two repetitions, and so no rank: a")


def of_rates(rates: Mapping[tuple[str, str], float], once: tuple[str, str]) -> Script:
    """Return trials of these rates, of which one server crashes under a load after the first."""
    wobble = (1.0, 1.003, 0.998, 1.001)

    def script(trial: Trial) -> Outcome:
        if (trial.server, trial.load) == once and trial.repetition > 1:
            return Outcome(0.0, failure=("ServerCrashed", "it ended"))
        return Outcome(rates[trial.server, trial.load] * wobble[trial.repetition - 1])

    return script


@pytest.mark.parametrize("third", [50.0, 99.9])
def test_a_baseline_with_one_repetition_gives_nobody_a_factor_where_others_have_more(
    third: float,
) -> None:
    rates = {("a", "closed"): 200.0, ("b", "closed"): 100.0, ("c", "closed"): third}
    spec = make_spec("a", "b", "c", repetitions=4)
    summary = summary_of(spec, of_rates(rates, ("a", "closed")))
    assert summary.fastest_factor is None
    assert "x the throughput of a" not in summary.verdict
    assert "that of a" not in summary.verdict
    if third == 50.0:
        assert summary.verdict.startswith("of b and c b is fastest by throughput under closed; ")
    assert "under closed fewer than two repetitions, and so no rank: a" in summary.verdict


def test_a_mean_over_loads_that_leaves_somebody_without_a_place_is_not_made() -> None:
    servers = {"a": 200.0, "b": 100.0}
    rates = {(name, load): rate for name, rate in servers.items() for load in ("few", "many")}
    spec = make_spec("a", "b", loads=("few", "many"), repetitions=4)
    summary = summary_of(spec, of_rates(rates, ("a", "many")))
    ranks = {(row.server, row.load): row.rank for row in summary.rows}
    assert ranks["a", "few"] == 1
    assert summary.fastest == "a"
    assert summary.verdict.startswith("a, the baseline, is fastest: the next, b, has 0.5x")
    assert "under few" in summary.verdict
    assert "geometric mean" not in summary.verdict
    assert "under many fewer than two repetitions, and so no rank: a" in summary.verdict


def test_while_a_repetition_goes_on_who_is_not_there_yet_keeps_its_place() -> None:
    def script(trial: Trial) -> Outcome | None:
        repetitions = {"sync": 2, "async": 1, "axum": 1}[trial.server]
        return Outcome(RATES[trial.server]) if trial.repetition <= repetitions else None

    said = summary_of(THREE, script).verdict
    assert said.startswith("so far: axum was fastest in the only repetition that all have: 25.0x")


def until(rates: Mapping[tuple[str, int], float], failed: Trials = ()) -> Script:
    """Return a script of which just these trials are over, by server and repetition."""

    def script(trial: Trial) -> Outcome | None:
        one = trial.server, trial.repetition
        if one in failed:
            return Outcome(0.0, failure=("ServerCrashed", "it ended"))
        return Outcome(rates[one]) if one in rates else None

    return script


FIRST = {("a", 1): 100.0, ("b", 1): 100.1}


@pytest.mark.parametrize(
    ("second", "first"),
    [
        ({("b", 2): 100.6}, "b was fastest in the only repetition that all have: 1.00x the "),
        # The machine is faster by now: what it did to one of two says nothing of the two.
        ({("a", 2): 110.0}, "b was fastest in the only repetition that all have: 1.00x the "),
        ({("b", 2): 100.6, ("a", 2): 101.0}, "a and b cannot be told apart by throughput "),
    ],
)
def test_who_has_its_second_repetition_first_is_not_the_fastest_for_it(
    second: dict[tuple[str, int], float], first: str
) -> None:
    summary = summary_of(make_spec("a", "b"), until({**FIRST, **second}))
    assert summary.verdict.startswith(f"so far: {first}")
    told = len(second) == 2
    assert (summary.fastest, summary.fastest_factor) == ("a or b" if told else None, None)


def test_while_one_repetition_says_it_nobody_is_called_the_fastest_before_the_run_is_over() -> None:
    trials, results, payloads = run(make_spec("a", "b"), until(FIRST))
    going_on = summarise(make_spec("a", "b"), trials, results, payloads, None, {})
    assert going_on.verdict.startswith("so far: b was fastest in the only repetition: 1.00x the ")
    assert (going_on.fastest, going_on.fastest_factor) == (None, None)
    over = summarise(make_spec("a", "b"), trials, results, payloads, None, {}, "Cancelled")
    assert (over.fastest, over.fastest_factor) == ("b", "1.00x")


def test_what_one_repetition_says_is_about_the_factor_of_that_repetition() -> None:
    """Who was first in it may be behind by those that two of them have more."""
    rates = {("a", 1): 100.0, ("b", 1): 101.0, ("c", 1): 50.0, ("a", 2): 101.0, ("b", 2): 95.0}
    summary = summary_of(make_spec("a", "b", "c"), until(rates))
    assert summary.verdict.startswith(
        "so far: of b, a and c b was fastest in the only repetition that all have by throughput "
    )
    assert summary.rows[1].factor is not None
    assert summary.rows[1].factor.low is not None


def test_who_is_slower_for_sure_is_not_first_by_the_repetition_that_somebody_lacks() -> None:
    rates = {("a", n): 200.0 + n for n in range(1, 11)}
    rates |= {("b", n): 100.0 + n for n in range(2, 11)}
    rates |= {("b", 1): 220.0, ("c", 1): 50.0}
    summary = summary_of(make_spec("a", "b", "c", repetitions=10), until(rates))
    assert [row.rank for row in summary.rows] == [1, 2, None]
    assert summary.verdict.startswith("so far: a and c cannot be told apart by throughput ")
    assert summary.fastest == "a or c"


@pytest.mark.parametrize("together", [True, False])
def test_without_a_repetition_that_all_have_nobody_is_first(together: bool) -> None:
    """The first failed in one and the second in the other, or has not come so far."""
    failed = [("a", 1)] if together else [("a", 1), ("b", 2)]
    spec = make_spec("a", "b", repetitions=2)
    summary = summary_of(spec, until({("b", 1): 100.0, ("a", 2): 200.0}, failed))
    assert summary.finished is not together
    assert summary.verdict.removeprefix("so far: ").startswith(
        "a and b cannot be told apart by throughput under closed"
    )
    assert summary.fastest == "a or b"


@pytest.mark.parametrize("failed", [(), (("a", 1),)])
def test_over_several_loads_nobody_is_the_fastest_before_another_one_has_all_of_them(
    failed: Trials,
) -> None:
    def script(trial: Trial) -> Outcome | None:
        if trial.server == "a" and trial.load == "many":
            return (
                Outcome(0.0, failure=("ServerCrashed", "it ended"))
                if failed and trial.repetition == 1
                else None
            )
        return Outcome(100.0) if trial.repetition <= 1 + len(failed) else None

    spec = make_spec("b", "a", loads=("few", "many"))
    summary = summary_of(spec, script)
    assert summary.verdict.startswith("so far: b served 100")
    assert (summary.fastest, summary.fastest_factor) == (None, None)


def test_who_has_no_place_beside_others_is_not_said_to_be_of_another_time() -> None:
    """Given up after one repetition, while the second one of the others goes on."""
    rates = {("a", 1): 100.0, ("b", 1): 99.0, ("c", 1): 101.0, ("b", 2): 98.0}
    spec = make_spec("a", "b", "c")
    failures = {"a": ("ServerCrashed", "it ended")}
    summary = summary_of(spec, until(rates), failures=failures)
    assert "under closed fewer than two repetitions, and so no rank: a" in summary.verdict


def test_over_several_loads_the_geometric_mean_decides_and_the_sentence_says_so() -> None:
    spec = make_spec("base", "even", "uneven", loads=("few", "many"))
    rates = {
        ("base", "few"): 100.0,
        ("base", "many"): 100.0,
        ("even", "few"): 400.0,
        ("even", "many"): 400.0,
        # Ten times at its best, and still slower over both: sqrt(10 * 1) < 4.
        ("uneven", "few"): 1000.0,
        ("uneven", "many"): 100.0,
    }
    wobble = (1.0, 1.003, 0.998, 1.001, 0.999)

    def script(trial: Trial) -> Outcome:
        return Outcome(rates[trial.server, trial.load] * wobble[trial.ordinal % 5])

    summary = summary_of(spec, script)
    assert summary.fastest == "even"
    assert summary.fastest_factor == "4.00x"
    assert "over the loads few and many (geometric mean)" in summary.verdict


def test_a_server_not_measured_under_every_load_is_left_out_of_the_ranking() -> None:
    spec = make_spec("base", "axum", loads=("few", "many"))

    def script(trial: Trial) -> Outcome:
        if trial.server == "axum" and trial.load == "many":
            return Outcome(0, latencies=(), errors=50)
        return Outcome(100.0 if trial.server == "base" else 9000.0)

    summary = summary_of(spec, script)
    assert summary.fastest == "base"
    assert "under many without a right answer: axum" in summary.verdict


def of_loads(*servers: str, loads: list[Any], **more: Any) -> BenchmarkRunSpec:
    spec = make_spec(*servers, **more)
    return BenchmarkRunSpec.model_validate({**spec.to_wire(), "loads": loads})


def test_a_load_without_any_figure_hides_no_answer_under_another_one() -> None:
    loads = [
        {"name": "calm", "open": {"rate": 100, "duration": "10s"}},
        {"name": "rush", "open": {"rate": 5000, "duration": "10s"}},
    ]

    def script(trial: Trial) -> Outcome:
        times = {"a": 1000, "b": 3000}[trial.server] + 10 * trial.repetition
        if trial.load == "calm":
            return Outcome(100.0, (times,) * 1000)
        return Outcome(3000.0, (times,) * 3000, errors=100)

    summary = summary_of(of_loads("a", "b", loads=loads), script)
    assert summary.fastest == "a"
    assert summary.verdict.startswith("a, the baseline, is fastest: the next, b, has 2.9")
    assert " its p99 under calm; " in summary.verdict
    assert "under rush no p99, since requests failed: a and b" in summary.verdict
    assert "higher rate" not in summary.verdict
    alone = summary_of(of_loads("a", "b", loads=loads[1:]), script)
    assert alone.verdict == (
        "no server has a figure that counts; under rush no p99, since requests failed: a and b"
    )


def test_a_load_that_nobody_answers_hides_no_answer_under_another_one() -> None:
    def script(trial: Trial) -> Outcome:
        if trial.load == "many":
            return Outcome(0, latencies=(), errors=50)
        return Outcome({"a": 2000.0, "b": 1000.0}[trial.server] + trial.repetition)

    summary = summary_of(make_spec("a", "b", loads=("few", "many")), script)
    assert [row.rank for row in summary.rows] == [1, 2, None, None]
    assert summary.fastest == "a"
    assert "under many without a right answer: a and b" in summary.verdict


def test_servers_with_figures_under_one_load_each_are_not_said_to_have_none() -> None:
    def script(trial: Trial) -> Outcome:
        if (trial.server, trial.load) in {("a", "few"), ("b", "many")}:
            return Outcome(0, latencies=(), errors=50)
        return Outcome(1000.0)

    assert summary_of(make_spec("a", "b", loads=("few", "many")), script).verdict == (
        "no server has a figure of one repetition under every load; under few without a right "
        "answer: a; under many without a right answer: b"
    )


def test_what_is_to_come_under_a_load_is_waited_for() -> None:
    def script(trial: Trial) -> Outcome | None:
        rates = {"few": 1000.0, "many": 2000.0}
        late = trial.load == "many" and trial.server == "b"
        return None if late else Outcome(rates[trial.load], errors=trial.load == "many")

    summary = summary_of(make_spec("a", "b", loads=("few", "many")), script)
    assert summary.verdict.startswith("so far: a served 1,000 requests/s under few and 2,000 ")


def test_few_requests_under_one_load_are_said_of_it_alone() -> None:
    loads = [{"name": "closed", **CLOSED}, *OPEN]

    def script(trial: Trial) -> Outcome:
        rate = {"a": 1000.0, "b": 4000.0}[trial.server] + trial.repetition
        return Outcome(rate, (1000,) * (50 if trial.load == "open" else 400))

    verdict = summary_of(of_loads("a", "b", loads=loads), script).verdict
    assert "b is fastest: 3.9" in verdict
    assert "under open no trial had the 100 requests that p99 needs: a and b" in verdict


def test_who_was_never_asked_is_not_said_to_have_answered_wrongly() -> None:
    def script(trial: Trial) -> Outcome:
        if trial.server == "a":
            return Outcome(0.0, failure=("NodeLost", "it is gone"), fault=Fault.NODE)
        return Outcome(1000.0)

    verdict = summary_of(make_spec("a", "b", repetitions=1), script).verdict
    assert verdict.startswith("b served 1,000 requests/s under closed")
    assert "under closed not measured: a (NodeLost)" in verdict
    assert "right answer" not in verdict


def test_who_met_an_objective_at_no_rate_answered() -> None:
    loads = [{"name": "limit", "saturation": {"p99": "50ms"}}]

    def script(trial: Trial) -> Outcome:
        low = {"a": 0.0, "b": 1000.0}[trial.server]
        search = {"low": low, "high": 1050.0, "p99Seconds": 0.05, "errorRate": 0.001}
        return Outcome(1000.0, search=search)

    verdict = summary_of(of_loads("a", "b", loads=loads), script).verdict
    assert "under limit invalid: a (the objective was met at no rate, not even the " in verdict
    assert "right answer" not in verdict


def test_who_is_left_out_under_one_kind_of_load_is_said_where_others_rank_it() -> None:
    loads = [{"name": "closed", **CLOSED}, *OPEN]

    def script(trial: Trial) -> Outcome:
        if (trial.server, trial.load) == ("a", "open"):
            return Outcome(0, latencies=(), errors=1000)
        return Outcome({"a": 2000.0, "b": 1000.0}[trial.server] + trial.repetition)

    verdict = summary_of(of_loads("a", "b", loads=loads), script).verdict
    assert verdict.startswith("a, the baseline, is fastest: ")
    assert "under open without a right answer: a" in verdict
    # What stands behind "fastest" is valid.
    assert "doubtful" not in verdict


def test_servers_that_failed_are_named_with_their_reason() -> None:
    def script(trial: Trial) -> Outcome | None:
        return None if trial.server == "async" else Outcome(RATES[trial.server])

    summary = summary_of(THREE, script, failures={"async": ("WrongAnswer", "...")})
    assert summary.fastest == "axum"
    assert summary.verdict.endswith("; not measured: async (WrongAnswer)")


def test_without_the_baseline_the_fastest_has_no_factor() -> None:
    def script(trial: Trial) -> Outcome | None:
        return None if trial.server == "sync" else steady(RATES)(trial)

    summary = summary_of(THREE, script, failures={"sync": ("ImagePullFailed", "...")})
    assert (summary.fastest, summary.fastest_factor) == ("axum", None)
    assert "there is no baseline to compare it with" in summary.verdict


def test_a_baseline_that_was_measured_and_lacks_the_figure_is_not_said_to_be_missing() -> None:
    def script(trial: Trial) -> Outcome:
        errors = 100 if trial.server == "a" else 0
        return Outcome(1000.0, (1000 if trial.server == "b" else 2000,) * 400, errors=errors)

    summary = summary_of(of_loads("a", "b", "c", loads=OPEN), script)
    said = "b is fastest by p99 under open, but the baseline has no p99 to compare it with"
    assert summary.verdict.startswith(said)
    assert "under open no p99, since requests failed: a" in summary.verdict


def test_a_single_server_has_figures_and_no_contest() -> None:
    summary = summary_of(make_spec("sync"), steady(RATES))
    assert summary.verdict.startswith("sync served 600 (59")
    assert summary.verdict.endswith(") requests/s under closed")


def test_while_the_run_goes_on_the_verdict_is_preliminary() -> None:
    def first_two(trial: Trial) -> Outcome | None:
        return steady(RATES)(trial) if trial.repetition < 3 else None

    summary = summary_of(THREE, first_two)
    assert not summary.finished
    assert summary.verdict.startswith("so far: axum is fastest")


@pytest.mark.parametrize(
    ("failures", "said"),
    [
        ({}, "nothing is measured yet"),
        (
            dict.fromkeys(RATES, ("NotReady", "...")),
            "no server could be measured; not measured: sync (NotReady), async (NotReady) "
            "and axum (NotReady)",
        ),
    ],
)
def test_without_figures_the_verdict_says_so(
    failures: dict[str, tuple[str, str]], said: str
) -> None:
    summary = summary_of(THREE, lambda _: None, failures=failures)
    assert (summary.fastest, summary.fastest_factor) == (None, None)
    assert summary.verdict == said


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (2, "axum is fastest: 25.0x"),
        (0, "nothing was measured; "),
    ],
)
def test_of_a_run_that_ended_early_nothing_is_so_far(measured: int, said: str) -> None:
    trials, results, payloads = run(THREE, steady(RATES))
    some = [one for one in results if one.repetition <= measured]
    ended = summarise(THREE, trials, some, payloads, None, {}, "TurnOver")
    assert ended.finished
    assert ended.verdict.startswith(said)
    assert ended.verdict.endswith("; the run ended early (TurnOver)")
    # The same of one that goes on, and of one of which every trial was run.
    assert not summarise(THREE, trials, some, payloads, None, {}).finished
    whole = summarise(THREE, trials, results, payloads, None, {}, "TiersLost")
    assert whole == summarise(THREE, trials, results, payloads, None, {})


def test_of_a_load_that_was_not_begun_nobody_says_that_it_could_not_be_measured() -> None:
    def outcome(trial: Trial) -> Outcome:
        if trial.load == "own":
            return Outcome(0.0, failure=("ScriptFailed", "it throws"), fault=Fault.RUN)
        return Outcome(RATES[trial.server])

    spec = make_spec("sync", "axum", loads=("closed", "own", "later"))
    trials, results, payloads = run(spec, outcome)
    some = [one for one in results if one.load != "later"]
    said = summarise(spec, trials, some, payloads, None, {}, "Cancelled").verdict
    assert "; nothing could be measured under own; nothing was measured under later; " in said


def test_the_figure_that_the_baseline_is_compared_with_is_called_doubtful_too() -> None:
    def wrong(trial: Trial) -> Outcome:
        errors = {"axum": 0, "async": 8, "sync": 40}[trial.server]
        return Outcome(RATES[trial.server] * (1 + trial.repetition / 1000), errors=errors)

    said = summary_of(make_spec("axum", "async", "sync"), wrong).verdict
    assert said.startswith("axum, the baseline, is fastest: the next, async, has 0.148x")
    assert "the figures of async are doubtful (1.96% of the requests" in said
    # It says nothing of the third one.
    assert "of sync are" not in said
    # Against a slower baseline the second one is not named.
    said = summary_of(make_spec("sync", "async", "axum"), wrong).verdict
    assert said.startswith("axum is fastest: ")
    assert "the figures of async" not in said


def test_doubtful_figures_are_not_passed_off_as_good() -> None:
    def script(trial: Trial) -> Outcome:
        errors = 100 if trial.server == "axum" else 0
        return Outcome(RATES[trial.server], errors=errors)

    summary = summary_of(THREE, script)
    assert summary.fastest == "axum"
    assert "the figures of axum are doubtful (20.0% of the requests" in summary.verdict


def test_doubts_are_said_of_the_loads_that_they_are_of() -> None:
    def script(trial: Trial) -> Outcome:
        errors = 100 if (trial.server, trial.load) == ("axum", "many") else 0
        return Outcome(RATES[trial.server], errors=errors)

    spec = make_spec("sync", "async", "axum", loads=("few", "many"))
    assert "the figures of axum under many are doubtful (20.0% of the requests" in (
        summary_of(spec, script).verdict
    )


@pytest.mark.parametrize(
    ("silent", "said"),
    [
        ("ab", "no server has a figure that counts; under closed without a right answer: a and b"),
        ("b", "a served 1,000 requests/s under closed; under closed without a right answer: b"),
    ],
)
def test_the_order_of_a_server_without_a_figure_is_not_known(silent: str, said: str) -> None:
    def script(trial: Trial) -> Outcome:
        return Outcome(0, (), errors=9) if trial.server in silent else Outcome(1000.0)

    summary = summary_of(make_spec("a", "b", repetitions=3, stopWhen="decided"), script)
    assert summary.finished
    assert summary.verdict == f"{said}; under closed the order is not known after 3 repetitions"


@pytest.mark.parametrize(
    ("trials", "said"),
    [
        (4, "all orders under closed are known after 2 repetitions"),
        # What is half done is no repetition.
        (5, "all orders under closed are known after 2 repetitions"),
        (2, "under closed the order is not known after 1 repetition"),
    ],
)
def test_of_a_run_that_was_cancelled_the_orders_rest_on_what_was_measured(
    trials: int, said: str
) -> None:
    spec = make_spec("a", "b", repetitions=3, stopWhen="decided")
    planned, results, payloads = run(
        spec, lambda trial: Outcome(1000 * 2.0 ** (trial.server == "b"))
    )
    done = results[:trials]
    summary = summarise(spec, planned, done, payloads, None, {}, "Cancelled")
    assert summary.verdict.endswith(f"; the run ended early (Cancelled); {said}")


def test_what_is_told_apart_without_a_server_that_crashed_is_a_tie_beside_it() -> None:
    """Ranks, ties and verdict compare the same servers."""
    wobble = (0.05, 0.082, 0.018, 0.08, 0.02)

    def script(trial: Trial) -> Outcome:
        if trial.server == "c" and trial.repetition > 2:
            return Outcome(0.0, failure=("ServerCrashed", "it ended"))
        return Outcome(1000 * math.exp(wobble[trial.repetition - 1] * (trial.server == "a")))

    summary = summary_of(make_spec("b", "a", "c"), script)
    assert [row.rank for row in summary.rows] == [1, 1, 1]
    # No further repetition tells anything of the one that crashed.
    assert [one.servers for one in summary.ties] == [["b", "a"]]
    assert "would tell b and a apart" in summary.verdict
