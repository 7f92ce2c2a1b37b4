"""What `make bench-deciding` counts, and what makes it fail."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

import pytest
from deciding.run import (
    APART,
    BENCHMARKS,
    REPETITIONS,
    RUNS,
    Entry,
    decided_after,
    differing,
    entry_of,
    first_rule,
    looking,
    manifest,
    minutes,
    ours,
    table,
    wrong_claims,
)

from laptime.api.spec import BenchmarkRunSpec

# What each repetition did to a server, by turns: no two servers alike.
_NOISE = (0.0, 0.01, -0.01, 0.004, -0.006, 0.008, -0.003, 0.002)


def entry(*rates: float, noise: float = 1.0, benchmark: str = "users") -> Entry:
    """Return a run of servers with about these requests/s, a repetition each minute."""
    logs = {
        f"s{number}": [
            log(rate) + noise * (number + 1) * _NOISE[(3 * number + one) % len(_NOISE)]
            for one in range(REPETITIONS)
        ]
        for number, rate in enumerate(rates)
    }
    ends = [60.0 * one for one in range(1, REPETITIONS + 1)]
    return Entry("c", 0.0, benchmark, ends, {"closed": logs}, [], 0.0, 0.5)


def test_only_what_differs_by_more_than_five_percent_has_to_be_known() -> None:
    expected = {("s2", "s0"), ("s2", "s1")}
    assert differing([entry(100, 104, 200)], "closed", APART) == expected


def test_a_run_is_decided_once_all_orders_are_known() -> None:
    run = entry(100, 115, 132, 152, noise=2.0)
    expected = {"closed": differing([run], "closed", APART)}
    new, old = (decided_after(run, expected, rule) for rule in (ours, first_rule))
    assert new is not None
    assert old is None or new < old
    assert minutes(run, new) == new
    assert ours(run.logs["closed"], new) == expected["closed"]
    assert not ours(run.logs["closed"], new - 1) >= expected["closed"]


def test_a_run_that_looks_claims_nothing_before_the_third_repetition() -> None:
    logs = entry(100, 500).logs["closed"]
    assert first_rule(logs, 2) == {("s1", "s0")}
    assert looking(logs, 2) == set()
    assert looking(logs, 3) == {("s1", "s0")}


def test_what_is_not_decided_takes_the_whole_run() -> None:
    run = entry(100, 108, noise=30.0)
    assert decided_after(run, {"closed": {("s1", "s0")}}, ours) is None
    assert minutes(run, None) == REPETITIONS


def test_the_slower_one_called_faster_is_a_wrong_claim_and_decides_nothing() -> None:
    run, others = entry(200, 100), [entry(100, 200)] * 4
    expected = {"closed": differing([run, *others], "closed", APART)}
    assert expected["closed"] == {("s1", "s0")}
    assert decided_after(run, expected, ours) is None
    assert wrong_claims(run, [run, *others]) == ["s0 before s1 under closed"]
    assert wrong_claims(others[0], [run, *others]) == []


@pytest.mark.parametrize(
    "broken",
    [
        {"state": "Failed"},
        {"lost": ["s1 under closed"], "logs": {"closed": {}}},
        {"stolen": 0.06},
        {"others": 0.3},
    ],
)
def test_a_run_that_lacks_something_or_the_machine_is_shown_and_not_judged(
    broken: dict[str, Any],
) -> None:
    good = [entry(100, 300, benchmark=name) for name in BENCHMARKS for _ in range(RUNS)]
    lines, _ = table([*good[1:], replace(good[0], **broken)])
    assert lines[0].startswith("users: not judged: ")
    assert "users: 1 orders to be known, 4 runs" in lines
    assert sum("not judged before 5 of each" in line for line in lines) == 2
    assert table([replace(good[0], **broken)])[0][-1] == "no run can be judged"


def test_as_long_as_the_first_rule_is_a_miss() -> None:
    # Two servers far apart: the first rule knows it after two repetitions.
    entries = [entry(100, 300, benchmark=name) for name in BENCHMARKS for _ in range(RUNS)]
    lines, met = table(entries)
    assert not met
    assert any(line.startswith("all runs: ") and line.endswith("MISSED") for line in lines)
    assert "wrong claims in 0 of 25 runs, goal at most 5%: met" in lines


def _trial(server: str, repetition: int, figures: bool = True) -> dict[str, Any]:
    minute = f"2026-11-27T12:{repetition:02}"
    return {
        "trial": f"{server}-{repetition}",
        "ordinal": repetition,
        "server": server,
        "load": "closed",
        "repetition": repetition,
        "outcome": "Measured" if figures else "Failed",
        "startedAt": f"{minute}:00Z",
        "finishedAt": f"{minute}:30Z",
        "figures": {
            "requests": 100,
            "errors": 0,
            "windowSeconds": 1.0,
            "requestsPerSecond": 100.0 * repetition,
        }
        if figures
        else None,
    }


def test_figures_and_times_are_those_of_the_results() -> None:
    trials = [_trial(name, one) for one in range(1, REPETITIONS + 1) for name in ("a", "b")]
    trials[-1] = _trial("b", REPETITIONS, figures=False)
    status = {"startedAt": "2026-11-27T12:00:00Z", "state": "Succeeded"}
    found = entry_of("users", {"trials": trials}, status, "c", 0.0)
    assert found.ends[:2] == [90.0, 150.0]
    assert found.logs["closed"]["a"][1] == pytest.approx(log(200))
    assert found.lost == ["b under closed"]
    assert not found.whole


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_each_benchmark_is_measured_to_its_end(benchmark: str) -> None:
    spec = BenchmarkRunSpec.model_validate(manifest(benchmark)["spec"])
    assert (spec.repetitions, spec.stop_when) == (REPETITIONS, None)
