"""A server in two runs beside another one that stays the same."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import pytest

from laptime.analysis.logs import Logs
from laptime.analysis.relative import beside, relative
from laptime.analysis.run_differences import same_in_both
from laptime.analysis.two_runs import Change, Comparison, compare_runs, welch_interval
from laptime.api.metrics import Metric
from laptime.api.results import TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import KeptScript
from tests.analysis.runs import Outcome, make_spec, run
from tests.analysis.test_searches import found as searches
from tests.analysis.test_searches import searching
from tests.analysis.test_stopping import result

RATE = Metric.REQUESTS_PER_SECOND
WOBBLE = (0.0, 0.004, -0.003, 0.002, -0.001)


def measured(repetitions: int = 5, **logs: float) -> list[TrialResult]:
    """Return trials of servers whose rates are these, as logarithms, and wobble together."""
    return [
        result(server, one, log + WOBBLE[one % 5] + 0.001 * ((one * place) % 3))
        for one in range(1, repetitions + 1)
        for place, (server, log) in enumerate(logs.items())
    ]


def compared(
    before: list[TrialResult], after: list[TrialResult], *same: str
) -> dict[str, Comparison]:
    names = list(dict.fromkeys(one.server for one in before))
    found = compare_runs(make_spec(*names), before, after, same=[(name, "closed") for name in same])
    return {one.server: one for one in found}


def test_what_the_machine_did_to_a_server_that_stays_the_same_goes_out() -> None:
    slower = compared(measured(mine=0.0, sync=-1.0), measured(mine=-0.2, sync=-1.2), "sync")
    assert slower["mine"].change is Change.NONE_FOUND
    assert slower["mine"].relative_to == ("sync",)
    assert slower["sync"].change is Change.SAME_SERVER
    assert slower["sync"].relative_to == ()
    for figures in slower.values():
        assert figures.before is not None
        assert figures.after is not None
        quotient = figures.after.value / figures.before.value
        assert quotient == pytest.approx(math.exp(-0.2), rel=1e-3)
    # Where its own line is what the machine did.
    assert slower["sync"].ratio is not None
    assert slower["sync"].ratio.value == pytest.approx(math.exp(-0.2))
    assert slower["mine"].ratio is not None
    assert slower["mine"].ratio.value == pytest.approx(1.0)
    alone = compared(measured(mine=0.0, sync=-1.0), measured(mine=-0.2, sync=-1.2))
    assert alone["mine"].change is Change.WORSE


def test_a_server_that_got_worse_on_a_quicker_machine_is_worse() -> None:
    found = compared(measured(mine=0.0, sync=-1.0), measured(mine=0.1, sync=-0.8), "sync")
    assert found["mine"].change is Change.WORSE
    assert found["mine"].ratio is not None
    assert found["mine"].ratio.value == pytest.approx(math.exp(-0.1))


def test_like_servers_are_rarely_told_apart_on_a_machine_that_is_another_one_each_time() -> None:
    chance = random.Random(5)
    names = ("mine", "sync", "go", "axum")

    def once() -> list[TrialResult]:
        machine = chance.gauss(0, 0.1)
        return [
            result(name, repetition, machine + block + chance.gauss(0, 0.05))
            for repetition in range(1, 6)
            for block in (chance.gauss(0, 0.05),)
            for name in names
        ]

    told = {same: 0 for same in ((), names[1:2], names[1:])}
    for _ in range(100):
        before, after = once(), once()
        for same in told:
            found = compared(before, after, *same)["mine"].change
            told[same] += found in (Change.BETTER, Change.WORSE)
    assert told[()] > 20
    assert told["sync",] <= 9
    assert told["sync", "go", "axum"] <= 9


def test_where_all_or_none_stays_the_same_nothing_is_relative() -> None:
    before, after = measured(mine=0.0, sync=-1.0), measured(mine=-0.2, sync=-1.2)
    for same in ((), ("mine", "sync")):
        found = compared(before, after, *same)
        assert {one.change for one in found.values()} == {Change.WORSE}
        assert {one.relative_to for one in found.values()} == {()}


def test_servers_that_stay_the_same_and_did_not_change_alike_are_no_measure() -> None:
    before = measured(mine=0.0, sync=-1.0, go=1.0)
    alike = compared(before, measured(mine=-0.3, sync=-1.1, go=0.9), "sync", "go")["mine"]
    assert (alike.change, alike.relative_to) == (Change.WORSE, ("sync", "go"))
    unlike = compared(before, measured(mine=-0.3, sync=-1.1, go=1.0), "sync", "go")["mine"]
    assert (unlike.change, unlike.may_be_worse) == (Change.NOT_KNOWN, True)
    before = measured(mine=0.0, sync=-1.0, go=1.0, axum=1.0)
    one_of_three = measured(mine=-0.3, sync=-1.1, go=1.0, axum=0.9)
    found = compared(before, one_of_three, "sync", "go", "axum")["mine"]
    assert found.change is Change.NOT_KNOWN


def test_lines_of_the_same_servers_take_no_certainty_from_the_others() -> None:
    before, after = measured(mine=0.0, sync=-1.0, go=1.0), measured(mine=-0.2, sync=-1.2, go=0.8)
    found = compared(before, after, "sync", "go")["mine"]
    logs = [
        {
            (one.server, one.repetition): math.log(one.figures.requests_per_second)
            for one in of_run
            if one.figures
        }
        for of_run in (before, after)
    ]
    differences = [
        [of_run["mine", n] - (of_run["sync", n] + of_run["go", n]) / 2 for n in range(1, 6)]
        for of_run in logs
    ]
    expected = welch_interval(differences[0], differences[1], 0.95)
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(expected.value)
    assert (found.ratio.low, found.ratio.high) == pytest.approx((expected.low, expected.high))


def test_repetitions_are_those_that_both_have() -> None:
    own = Logs({1: 0.0, 2: 0.1, 3: 0.2, 4: 0.3})
    whole = Logs({1: 1.0, 2: 1.1, 3: 1.2, 4: 1.3, 1003: 9.0})
    lacks_one = Logs({1: 1.0, 2: 1.1, 4: 1.3})
    lacks_three = Logs({1: 1.0})
    lost = Logs({**whole, 2: math.inf})
    endless = Logs(whole, endless=True)
    others = {"a": whole, "b": lacks_one, "c": lacks_three, "d": lost, "e": endless}
    both = {name: (one, one) for name, one in others.items()}
    assert beside((own, own), both) == ("a",)
    # Who lacks most in one of the runs is no better than who does in both.
    assert beside((own, own), {"a": (whole, lacks_one), "b": (lacks_one, whole)}) == ("a",)
    assert beside((own, own), {"b": both["b"], "c": both["c"]}) == ("b",)
    assert beside((own, own), {name: both[name] for name in "cde"}) == ()
    assert beside((own, own), {}) == ()
    assert relative(own, [whole]) == pytest.approx({1: -1.0, 2: -1.0, 3: -1.0, 4: -1.0})
    assert relative(own, [whole, lacks_one]).keys() == {1, 2, 4}


def test_what_searches_leave_open_is_left_open_of_both() -> None:
    own, one, other = (Logs({1: 0.0, 2: 0.0}, within) for within in (0.02, 0.03, 0.05))
    assert relative(own, [one, other]).within == pytest.approx(0.02 + 0.04)
    spec = searching("axum", "go")
    before = run(spec, searches({"axum": (4800.0, 5000.0), "go": (4800.0, 5000.0)}))[1]
    after = run(spec, searches({"axum": (4300.0, 4500.0), "go": (4800.0, 5000.0)}))[1]
    changes = [
        compare_runs(spec, before, after, same=same)[0].change for same in ((), [("go", "limit")])
    ]
    # 10 % is more than two steps, and less than four.
    assert changes == [Change.WORSE, Change.WORSE]
    near = run(spec, searches({"axum": (4500.0, 4690.0), "go": (4800.0, 5000.0)}))[1]
    changes = [
        compare_runs(spec, before, near, same=same)[0].change for same in ((), [("go", "limit")])
    ]
    assert changes == [Change.WORSE, Change.NONE_FOUND]


def failing(server: str, count: int, other: str = "", of_other: int = 0) -> list[TrialResult]:
    """Return trials whose p99.9 fell among the errors in so many repetitions of these servers."""
    lost = {server: count, other: of_other}

    def script(trial: Any) -> Outcome:
        errors = 3 if trial.repetition <= lost.get(trial.server, 0) else 0
        return Outcome(200.0 + trial.repetition, (1000,) * (2000 - errors), errors=errors)

    return run(make_spec("mine", "sync"), script)[1]


@pytest.mark.parametrize(
    ("of_other", "change", "names"),
    [(0, Change.WORSE, ("sync",)), (1, Change.NOT_KNOWN, ()), (5, Change.NOT_KNOWN, ())],
)
def test_what_failed_of_the_same_server_too_is_no_doing_of_the_other(
    of_other: int, change: Change, names: tuple[str, ...]
) -> None:
    found = compare_runs(
        make_spec("mine", "sync"),
        failing("mine", 0),
        failing("mine", 5, "sync", of_other),
        same=[("sync", "closed")],
    )
    (p999,) = (one for one in found if (one.server, one.metric) == ("mine", Metric.P999))
    assert (p999.change, p999.relative_to) == (change, names)
    assert {one.change for one in found if one.server == "sync"} == {Change.SAME_SERVER}


def with_images(spec: BenchmarkRunSpec, **images: str) -> list[TrialResult]:
    trials = [
        result(server, repetition, 0.0).model_copy(update={"load": load.name})
        for server in images
        for load in spec.loads
        for repetition in (1, 2)
    ]
    return [
        one.model_copy(update={"images": {"server": images[one.server], "script": "s@1"}})
        for one in trials
    ]


SPEC = make_spec("mine", "sync", loads=("closed", "more"))
IMAGES = {"mine": "mine@1", "sync": "sync@1"}
FIRST = with_images(SPEC, **IMAGES)


def changed(**servers: Mapping[str, Any]) -> BenchmarkRunSpec:
    """Return the spec with other settings of these servers."""
    return SPEC.model_copy(
        update={
            "servers": [
                one.model_copy(update=dict(servers.get(one.name, {}))) for one in SPEC.servers
            ]
        }
    )


def same_servers(after: BenchmarkRunSpec, trials: list[TrialResult], **more: Any) -> set[str]:
    found = same_in_both(SPEC, after, (FIRST, trials), **more)
    assert {load for _, load in found} <= {"closed", "more"}
    return {server for server, _ in found}


def test_what_is_the_same_is_known_by_spec_and_image() -> None:
    assert same_in_both(SPEC, SPEC, (FIRST, FIRST)) == {
        (server, load) for server in ("mine", "sync") for load in ("closed", "more")
    }
    assert same_servers(SPEC, with_images(SPEC, mine="mine@2", sync="sync@1")) == {"sync"}
    assert same_servers(SPEC, with_images(SPEC, mine="mirror/mine@1", sync="sync@1")) == {
        "mine",
        "sync",
    }
    assert same_servers(changed(mine={"workers": 4}), FIRST) == {"sync"}
    # One worker is what a server has that says none.
    assert same_servers(changed(mine={"workers": 1}), FIRST) == {"mine", "sync"}
    # Without its image nobody knows: of older results, and of a Service that was there before.
    unknown = [
        one.model_copy(update={"images": {"script": "s@1"}}) if one.server == "sync" else one
        for one in FIRST
    ]
    assert same_servers(SPEC, unknown) == {"mine"}
    # Two images within a run are none.
    moved = [
        one.model_copy(update={"images": {"server": "sync@2", "script": "s@1"}})
        if (one.server, one.repetition) == ("sync", 2)
        else one
        for one in FIRST
    ]
    assert same_servers(SPEC, moved) == {"mine"}
    assert {server for server, _ in same_in_both(SPEC, SPEC, (moved, moved))} == {"mine"}


def test_another_load_or_work_leaves_nothing_the_same() -> None:
    more = SPEC.loads[1].model_copy(update={"warmup": "9s"})
    other = SPEC.model_copy(update={"loads": [SPEC.loads[0], more]})
    assert same_in_both(SPEC, other, (FIRST, FIRST)) == {("mine", "closed"), ("sync", "closed")}
    assert not same_servers(SPEC.model_copy(update={"scenario": "hello"}), FIRST)
    assert not same_servers(SPEC, FIRST, works=("0a", "0b"))
    assert same_servers(SPEC, FIRST, works=("0a", None))
    scripts = [KeptScript(config_map="shop", hash="0a")], [KeptScript(config_map="shop", hash="0b")]
    assert not same_servers(SPEC, FIRST, scripts=scripts)
    parallel = BenchmarkRunSpec.model_validate({**SPEC.to_wire(), "generator": {"parallelism": 4}})
    assert not same_servers(parallel, FIRST)
    script = [one.model_copy(update={"images": {**one.images, "script": "s@2"}}) for one in FIRST]
    assert not same_servers(SPEC, script)
    mirrored = [
        one.model_copy(update={"images": {**one.images, "script": "mirror/s@1"}}) for one in FIRST
    ]
    assert same_servers(SPEC, mirrored) == {"mine", "sync"}
    # What all servers of a run share may be another one.
    tiers = BenchmarkRunSpec.model_validate({**SPEC.to_wire(), "topology": {"postgres": {}}})
    assert same_servers(tiers, FIRST) == {"mine", "sync"}


def test_what_has_another_server_beside_it_is_not_itself_alone() -> None:
    duet = [
        one.model_copy(update={"beside": "mine"}) if one.server == "sync" else one for one in FIRST
    ]
    assert same_servers(SPEC, duet) == {"mine"}
