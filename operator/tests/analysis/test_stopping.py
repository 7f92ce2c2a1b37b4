"""How many repetitions a run needs follows from its results, and from nothing else."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.analysis import stopping
from laptime.analysis.repeated import compared
from laptime.analysis.stopping import (
    gave_up,
    loads_given_up,
    trials_so_far,
    widest_half_width,
    without_figure,
    without_interval,
)
from laptime.api.attempts import Fault
from laptime.api.results import Figures, ResponseTimes, TrialOutcome, TrialResult, Validity
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import Order
from laptime.plan import plan_trials
from tests.analysis.runs import make_spec

STEADY = (0.0, 0.001, -0.001)
LOUD = (0.0, 0.1, -0.1)


def repetitions_needed(
    spec: BenchmarkRunSpec, results: list[TrialResult], out: frozenset[str] = frozenset()
) -> int:
    """Return what all loads need: with a precision it is the same for each."""
    (needed,) = set(stopping.repetitions_needed(spec, results, out).values())
    return needed


def spec_of(*servers: str, **more: Any) -> BenchmarkRunSpec:
    fields = {"precision": "1%", "maxRepetitions": 20, "repetitions": 3, **more}
    return make_spec(*servers, **fields)


def result(server: str, repetition: int, log: float | None, ordinal: int = 1) -> TrialResult:
    return TrialResult(
        trial=f"{server}-{repetition}",
        ordinal=ordinal,
        server=server,
        load="closed",
        repetition=repetition,
        outcome=TrialOutcome.FAILED if log is None else TrialOutcome.MEASURED,
        figures=None
        if log is None
        else Figures(
            requests=1, errors=0, window_seconds=1.0, requests_per_second=1000 * math.exp(log)
        ),
        started_at=f"2026-01-01T{repetition // 60:02}:{repetition % 60:02}:00Z",
        finished_at=f"2026-01-01T{repetition // 60:02}:{repetition % 60:02}:50Z",
    )


def blocks(count: int, **wobbles: tuple[float, ...]) -> list[TrialResult]:
    return [
        result(server, n, wobble[n % len(wobble)])
        for n in range(1, count + 1)
        for server, wobble in wobbles.items()
    ]


def test_without_a_precision_it_is_the_number_of_the_spec() -> None:
    assert repetitions_needed(make_spec("a", "b"), blocks(5, a=LOUD, b=LOUD)) == 5


def test_before_the_first_look_nothing_is_decided() -> None:
    spec = spec_of("a", "b")
    assert repetitions_needed(spec, []) == 8
    assert repetitions_needed(spec, blocks(7, a=LOUD, b=STEADY)) == 8


def test_narrow_intervals_end_a_run_and_wide_ones_ask_for_one_more_repetition() -> None:
    spec = spec_of("a", "b")
    assert repetitions_needed(spec, blocks(8, a=STEADY, b=STEADY)) == 8
    assert repetitions_needed(spec, blocks(8, a=STEADY, b=LOUD)) == 9
    assert repetitions_needed(spec, blocks(20, a=STEADY, b=LOUD)) == 20


def test_a_precision_is_not_called_reached_where_a_server_has_no_interval() -> None:
    spec = spec_of("a", "b", repetitions=3)
    results = [
        one.model_copy(update={"validity": Validity.INVALID})
        if one.server == "b" and one.repetition > 1
        else one
        for one in blocks(3, a=(0.0, 0.0, 0.0), b=(0.0, 0.1, -0.1))
    ]
    assert widest_half_width(spec, results, ["a", "b"]) is None
    assert without_interval(spec, results, ["a", "b"]) == ["b"]
    assert without_interval(spec, blocks(3, a=(0.0,) * 3, b=(0.0, 0.1, -0.1)), ["a", "b"]) == []


@pytest.mark.parametrize("lacking", ["a", "b"])
def test_a_precision_is_not_called_reached_beside_a_server_without_a_figure(lacking: str) -> None:
    """Neither beside a baseline; and no more repetitions are made for what they cannot give."""
    spec = spec_of("a", "b")
    results = [
        one.model_copy(update={"validity": Validity.INVALID}) if one.server == lacking else one
        for one in blocks(8, a=STEADY, b=STEADY)
    ]
    assert widest_half_width(spec, results, ["a", "b"]) is None
    assert without_figure(spec, results, ["a", "b"]) == [lacking]
    assert repetitions_needed(spec, results) == 8
    # One of which nothing was measured is said to be so, and is no part of it.
    others = [one for one in results if one.server != lacking]
    assert widest_half_width(spec, others, ["a", "b"]) is not None
    assert without_figure(spec, others, ["a", "b"]) == []


def answered(server: str, repetition: int, varies: str, log: float) -> TrialResult:
    """Return a result of a throughput that never varies, and of a percentile that does."""
    one = result(server, repetition, 0.0)
    assert one.figures is not None
    times = {"p50_seconds": 0.001, "p99_seconds": 0.01}
    times[f"{varies}_seconds"] *= math.exp(log)
    latency = ResponseTimes(mean_seconds=0.002, max_seconds=1.0, **times)
    figures = one.figures.model_copy(update={"requests": 1000, "latency": latency})
    return one.model_copy(update={"figures": figures})


@pytest.mark.parametrize(
    ("shape", "objectives", "varies", "needed"),
    [
        ("open", [], "p99", 9),
        ("open", [], "p50", 8),
        ("open", ["p50"], "p50", 9),
        ("open", ["p50"], "p99", 8),
        ("open", ["p99", "p50"], "p50", 8),
        # Its throughput is what it is compared by, whatever its objectives are.
        ("closed", ["p99"], "p99", 8),
    ],
)
def test_a_precision_is_of_the_percentile_that_an_open_load_is_compared_by(
    shape: str, objectives: list[str], varies: str, needed: int
) -> None:
    asked = [
        {"server": "a", "load": "closed", "metric": metric, "atMost": "5ms"}
        for metric in objectives
    ]
    wire = spec_of("a", "b", objectives=asked).to_wire()
    if shape == "open":
        wire["loads"] = [{"name": "closed", "open": {"rate": 1000, "duration": "1s"}}]
    spec = BenchmarkRunSpec.model_validate(wire)
    results = [
        answered(server, n, varies, wobble[n % 3])
        for n in range(1, 9)
        for server, wobble in (("a", STEADY), ("b", LOUD))
    ]
    assert repetitions_needed(spec, results) == needed


def test_what_both_share_does_not_count() -> None:
    assert repetitions_needed(spec_of("a", "b"), blocks(8, a=LOUD, b=LOUD)) == 8


def test_of_a_single_server_its_throughput_counts() -> None:
    assert repetitions_needed(spec_of("a"), blocks(8, a=LOUD)) == 9
    assert repetitions_needed(spec_of("a"), blocks(8, a=STEADY)) == 8


def failed(ordinal: int, load: str, fault: Fault | None, server: str = "a") -> TrialResult:
    one = result(server, ordinal, None, ordinal)
    more = {"trial": f"t{ordinal}", "load": load, "fault": fault, "reason": f"R{ordinal}"}
    return one.model_copy(update=more)


def test_what_two_loads_ask_for_in_vain_is_not_held_against_their_server() -> None:
    results = [failed(1, "own", Fault.RUN), failed(2, "other", Fault.RUN)]
    assert not gave_up("a", results)
    assert loads_given_up(results) == {}
    # Nor does it hide what the server does itself.
    results += [failed(3, "closed", Fault.SERVER), failed(4, "own", Fault.RUN)]
    assert not gave_up("a", results)
    assert gave_up("a", [*results, failed(5, "closed", Fault.SERVER)])


def test_a_load_that_fails_twice_by_the_runs_doing_is_given_up_and_no_other_one() -> None:
    results = [failed(1, "own", Fault.RUN), result("a", 2, 0.0, 2), failed(3, "own", Fault.RUN)]
    assert loads_given_up(results) == {("a", "own"): ("R3", "")}
    assert not gave_up("a", results)
    again = [failed(1, "own", Fault.RUN), failed(2, "own", Fault.TIER), failed(3, "own", Fault.RUN)]
    assert loads_given_up(again) == {}
    # What became of what was beside it says nothing of the load either.
    beside = [
        failed(1, "own", Fault.RUN),
        failed(2, "own", Fault.PARTNER),
        failed(3, "own", Fault.RUN),
    ]
    assert loads_given_up(beside) == {("a", "own"): ("R3", "")}
    of_others = [failed(1, "own", Fault.RUN), failed(2, "own", Fault.RUN, "b")]
    assert loads_given_up(of_others) == {}


def test_what_the_run_says_wrongly_of_a_server_counts_for_all_its_loads() -> None:
    changed = {"reason": "ServiceChanged"}
    results = [failed(1, "own", Fault.RUN), failed(2, "closed", Fault.RUN)]
    assert not gave_up("a", results)
    assert gave_up("a", [one.model_copy(update=changed) for one in results])


def test_the_precision_of_other_loads_is_reached_beside_one_that_was_given_up() -> None:
    spec = spec_of("a", "b", loads=("closed", "own"))
    bad = [
        failed(100 + n, "own", Fault.RUN, server).model_copy(update={"repetition": n})
        for server in "ab"
        for n in (1, 2)
    ]
    assert repetitions_needed(spec, [*blocks(8, a=STEADY, b=LOUD), *bad]) == 9
    assert repetitions_needed(spec, [*blocks(8, a=STEADY, b=STEADY), *bad]) == 8
    # Nor are more repetitions made for what was loud before it failed.
    loud = [
        one.model_copy(update={"load": "own", "ordinal": one.ordinal})
        for one in blocks(6, a=STEADY, b=LOUD)
    ]
    ended = [
        failed(100 + n, "own", Fault.RUN, server).model_copy(update={"repetition": n})
        for server in "ab"
        for n in (7, 8)
    ]
    assert repetitions_needed(spec, [*blocks(8, a=STEADY, b=STEADY), *loud, *ended]) == 8


def test_later_results_do_not_change_what_was_decided() -> None:
    calm_then_loud = [*blocks(8, a=STEADY, b=STEADY), result("b", 9, 0.7), result("a", 9, 0.0)]
    assert repetitions_needed(spec_of("a", "b"), calm_then_loud) == 8


def test_a_repetition_that_is_not_complete_is_waited_for() -> None:
    half = [*blocks(8, a=STEADY, b=LOUD), result("a", 9, 0.0)]
    assert repetitions_needed(spec_of("a", "b"), half) == 9


def test_a_server_that_is_out_is_not_waited_for() -> None:
    measured = blocks(8, a=STEADY, c=STEADY)
    spec = spec_of("a", "b", "c")
    assert repetitions_needed(spec, measured) == 8
    loud = blocks(8, a=STEADY, c=LOUD)
    assert repetitions_needed(spec, loud) == 8
    assert repetitions_needed(spec, loud, frozenset({"b"})) == 9


def test_a_server_whose_last_trials_failed_is_not_waited_for() -> None:
    failed = [result("b", n, None, ordinal=n) for n in (1, 2)]
    loud = blocks(8, a=STEADY, c=LOUD)
    assert repetitions_needed(spec_of("a", "b", "c"), [*loud, *failed]) == 9


def test_without_a_baseline_throughput_counts() -> None:
    failed = [result("a", n, None, ordinal=n) for n in (1, 2)]
    spec = spec_of("a", "b")
    assert repetitions_needed(spec, [*blocks(8, b=LOUD), *failed]) == 9
    assert repetitions_needed(spec, [*blocks(8, b=STEADY), *failed]) == 8


def test_a_budget_that_is_spent_ends_a_run() -> None:
    results = blocks(8, a=STEADY, b=LOUD)
    assert repetitions_needed(spec_of("a", "b", budget="10m"), results) == 9
    assert repetitions_needed(spec_of("a", "b", budget="7m"), results) == 8


def test_a_run_has_never_more_trials_than_a_run_may_have() -> None:
    spec = make_spec(*(f"s{n}" for n in range(20)), loads=("a", "b", "c", "d"), precision="1%")
    assert spec.most_repetitions == 2000 // 80
    assert make_spec("a", precision="1%").most_repetitions == 30


@pytest.mark.parametrize("most", [8, 99, 200])
def test_trials_keep_their_names_when_more_are_asked_for(most: int) -> None:
    spec = spec_of("a", "b", maxRepetitions=most)
    few, many = plan_trials("demo", spec, 1), plan_trials("demo", spec, 1, most)
    assert len(few) == 16
    assert many[: len(few)] == few
    assert len({len(trial.name) for trial in many}) == 1


@given(
    st.lists(st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)), max_size=14),
    st.integers(0, 2),
)
def test_results_only_ever_ask_for_more(logs: list[tuple[float, float]], extra: int) -> None:
    spec = spec_of("a", "b")
    results = [
        result(server, n, pair[place])
        for n, pair in enumerate(logs, start=1)
        for place, server in enumerate("ab")
    ]
    fewer = results[: max(0, len(results) - extra)]
    before, after = repetitions_needed(spec, fewer), repetitions_needed(spec, results)
    assert 8 <= before <= after <= 20
    planned = trials_so_far("demo", spec, 1, Order.BALANCED, fewer)
    assert trials_so_far("demo", spec, 1, Order.BALANCED, results)[: len(planned)] == planned


def decided(*servers: str, **more: Any) -> BenchmarkRunSpec:
    fields = {"stopWhen": "decided", "maxRepetitions": 12, "repetitions": 3, **more}
    return make_spec(*servers, **fields)


def levels(count: int, load: str = "closed", /, **by: float) -> list[TrialResult]:
    """Return results of servers that differ by these logarithms, with a noise of some permille."""
    noise = random.Random(count)
    return [
        result(server, n, log + noise.gauss(0, 0.004)).model_copy(
            update={"load": load, "trial": f"{server}-{load}-{n}"}
        )
        for n in range(1, count + 1)
        for server, log in by.items()
    ]


def test_servers_far_apart_are_decided_at_the_first_look() -> None:
    assert repetitions_needed(decided("a", "b"), []) == 3
    assert repetitions_needed(decided("a", "b"), levels(3, a=0.0, b=0.7)) == 3
    assert repetitions_needed(decided("a", "b", "c"), levels(3, a=0.0, b=0.7, c=1.5)) == 3
    assert repetitions_needed(decided("a", "b", repetitions=5), levels(3, a=0.0, b=0.7)) == 5


def test_like_servers_go_on_until_there_may_be_no_more() -> None:
    spec = decided("a", "b")
    assert repetitions_needed(spec, levels(3, a=0.0, b=0.0)) == 4
    assert repetitions_needed(spec, levels(12, a=0.0, b=0.0)) == 12
    # One pair that is not decided is enough.
    assert repetitions_needed(decided("a", "b", "c"), levels(3, a=0.0, b=0.0, c=1.0)) == 4


def test_servers_that_are_alike_enough_are_decided() -> None:
    like = levels(12, a=0.0, b=0.0)
    needed = repetitions_needed(decided("a", "b", smallestDifference="5%"), like)
    assert 3 <= needed < 12
    assert repetitions_needed(decided("a", "b", smallestDifference="0.1%"), like) == 12


def test_a_load_that_is_decided_gets_no_more_trials_and_others_do() -> None:
    spec = decided("a", "b", loads=("clear", "close"))
    results = [*levels(6, "clear", a=0.0, b=0.7), *levels(6, "close", a=0.0, b=0.0)]
    at_first = [one for one in results if one.repetition <= 3]
    assert stopping.repetitions_needed(spec, at_first) == {"clear": 3, "close": 4}
    # What was measured later of it, if anything, does not make it go on.
    assert stopping.repetitions_needed(spec, results) == {"clear": 3, "close": 7}
    planned = trials_so_far("demo", spec, 1, Order.BALANCED, at_first)
    all_of_them = plan_trials("demo", spec, 1, 4)
    assert [one for one in planned if one.repetition == 4] == [
        one for one in all_of_them if one.repetition == 4 and one.load == "close"
    ]


def test_no_load_is_looked_at_before_all_have_the_repetition() -> None:
    spec = decided("a", "b", loads=("clear", "close"))
    results = [*levels(3, "clear", a=0.0, b=0.0), *levels(2, "close", a=0.0, b=0.0)]
    assert stopping.repetitions_needed(spec, results) == {"clear": 3, "close": 3}


def test_the_control_is_no_competitor_to_be_told_apart() -> None:
    spec = decided("a", "b", control=True).with_control()
    with_control = {"a": 0.0, "b": 0.7, "a-control": 0.0}
    results = levels(3, "closed", **with_control)
    assert repetitions_needed(spec, results) == 3


def test_a_server_alone_that_is_left_decides_nothing() -> None:
    spec = decided("a", "b")
    assert repetitions_needed(spec, levels(3, a=0.0), frozenset({"b"})) == 3


def test_an_order_is_known_where_the_verdict_says_so_also_after_a_server_was_given_up() -> None:
    """Its figures are in the table, and ask for as much certainty as any."""
    spec = decided("b", "a", "c")
    results = [
        *blocks(12, b=(0.0,), a=(0.02, 0.05, 0.082, 0.018, 0.08)),
        *(result("c", n, 0.0 if n < 3 else None, ordinal=n) for n in range(1, 5)),
    ]
    needed = repetitions_needed(spec, results)
    assert 3 < needed < 12
    seen = [one for one in results if one.repetition <= needed]
    assert compared(spec, "closed", seen)[1].can_be_told_apart("a", "b")


def test_a_server_without_a_figure_is_not_waited_for() -> None:
    wrong = [
        one.model_copy(update={"validity": Validity.INVALID})
        for one in levels(3, a=0.0, b=0.0)
        if one.server == "b"
    ]
    assert repetitions_needed(decided("a", "b"), [*levels(3, a=0.0), *wrong]) == 3


def test_a_budget_ends_a_run_that_is_not_decided() -> None:
    results = levels(3, a=0.0, b=0.0)
    assert repetitions_needed(decided("a", "b", budget="1m"), results) == 3
    assert repetitions_needed(decided("a", "b", budget="10m"), results) == 4


@pytest.mark.parametrize("rule", [{"precision": "0.1%"}, {"stopWhen": "decided"}])
@pytest.mark.parametrize("loads", [("closed",), ("clear", "closed")])
def test_what_was_measured_stays_while_a_trial_is_asked_for_again_and_after(
    rule: dict[str, Any], loads: tuple[str, ...]
) -> None:
    spec = make_spec("a", "b", loads=loads, maxRepetitions=20, budget="20m", **rule)
    results = [
        one
        for load in loads
        for one in levels(14, load, a=0.0, b=0.7 * (load == "clear"))
        if load == "closed" or rule != {"stopWhen": "decided"} or one.repetition <= 3
    ]
    failed = next(one for one in results if (one.server, one.repetition) == ("b", 2))
    going_on = [one for one in results if one is not failed]
    later = {"retry": 1, "started_at": "2026-01-02T00:00:00Z"}
    later["finished_at"] = "2026-01-02T00:00:50Z"
    over = [*going_on, failed.model_copy(update=later)]
    for seen in (going_on, over):
        planned = trials_so_far("demo", spec, 1, Order.BALANCED, seen)
        of_loads = {(one.server, one.load, one.repetition) for one in planned}
        assert of_loads >= {(one.server, one.load, one.repetition) for one in seen}
        assert (failed.server, failed.load, failed.repetition) in of_loads
        assert max(one.repetition for one in planned) == 14


@given(
    st.lists(st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)), max_size=14),
    st.integers(0, 2),
)
def test_results_only_ever_ask_for_more_until_all_is_decided(
    logs: list[tuple[float, float]], extra: int
) -> None:
    spec = decided("a", "b", smallestDifference="2%")
    results = [
        result(server, n, pair[place])
        for n, pair in enumerate(logs, start=1)
        for place, server in enumerate("ab")
    ]
    fewer = results[: max(0, len(results) - extra)]
    before, after = repetitions_needed(spec, fewer), repetitions_needed(spec, results)
    assert 3 <= before <= after <= 12
