"""What `make bench-detectable` sets and counts, and what makes it fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from detectable.run import (
    BASELINE,
    FEWEST,
    MILLICORES,
    SLOWER,
    Entry,
    entry_of,
    manifest,
    millicores_of_next,
    table,
)

from laptime.api.spec import BenchmarkRunSpec

LIKE = Entry("c", 0.0, 90.0, MILLICORES, 0.10, [1.0, 0.95, 1.05], 0.0, 0.05)
FOUND = replace(LIKE, millicores=455, factor=[0.91, 0.86, 0.96])
NOT_FOUND = replace(FOUND, factor=[0.91, 0.81, 1.02])


def results(high: float = 0.96, smallest: float | None = 0.1) -> dict[str, Any]:
    """Return the results of a run, as much of them as is read."""
    trial = {
        "figures": {"requestsPerSecond": 1.0},
        "usage": {"nodes": [{"stolenShare": 0.01, "othersCores": 0.1, "cpus": 2}]},
    }
    return {
        "rows": [
            {"server": BASELINE, "factor": {"value": 1.0, "low": 1.0, "high": 1.0}},
            {"server": SLOWER, "factor": {"value": 0.91, "low": 0.86, "high": high}},
        ],
        "control": [{"load": "closed", "smallestDetectable": smallest}],
        "trials": [trial],
    }


def test_the_first_runs_are_of_like_servers_and_the_others_of_what_these_called_the_smallest() -> (
    None
):
    assert millicores_of_next([LIKE] * 2) == MILLICORES
    assert millicores_of_next([LIKE] * 3) == round(MILLICORES / 1.10)
    # In the quadratic mean of the logarithms.
    unlike = [replace(LIKE, smallest=one) for one in (0.02, 0.02, 0.2)]
    assert MILLICORES / millicores_of_next(unlike) - 1 == pytest.approx(0.112, abs=0.002)
    # What others took the machine of says nothing.
    assert millicores_of_next([*[LIKE] * 2, replace(LIKE, stolen=0.2)]) == MILLICORES


def test_found_is_a_slower_server_whose_whole_interval_is_below_1() -> None:
    entry = entry_of(results(), 455, "c", 0.0, 90.04, "Succeeded")
    assert entry == replace(FOUND, stolen=0.01, seconds=90.0)
    assert entry.counts
    assert entry.found
    assert entry.difference == pytest.approx(0.099, abs=0.001)
    assert not entry_of(results(high=1.02), 455, "c", 0.0, 90.0, "Succeeded").found
    assert not replace(FOUND, factor=[1.1, 1.05, 1.2]).found


def test_fewer_than_seven_of_ten_are_a_miss() -> None:
    lines, good = table([*[LIKE] * 3, *[FOUND] * 14, *[NOT_FOUND] * 6])
    assert good is True
    assert lines[23].startswith(
        "the smallest detectable difference was found in 14 of 20 runs: 70% (46% to 88%)"
    )
    assert lines[23].endswith(": met")
    lines, good = table([*[LIKE] * 3, *[FOUND] * 13, *[NOT_FOUND] * 7])
    assert good is False
    assert lines[23].endswith(": MISSED")


def test_before_there_are_enough_nothing_is_judged() -> None:
    assert table([*[LIKE] * 3, *[FOUND] * (FEWEST - 1)])[1] is None
    assert table([LIKE] * 30)[1] is None


@pytest.mark.parametrize(
    "broken",
    [
        *({"state": "Failed"}, {"smallest": None}, {"factor": None}),
        *({"others": 0.3}, {"others": None}),
    ],
)
def test_a_run_that_lacks_something_or_the_machine_is_shown_and_not_counted(
    broken: dict[str, Any],
) -> None:
    lines, good = table([*[FOUND] * FEWEST, replace(NOT_FOUND, **broken)])
    assert good is True
    assert "not counted: " in lines[FEWEST]
    assert "in 20 of 20 runs" in lines[FEWEST + 1]


def test_servers_that_do_not_differ_by_what_was_set_say_nothing() -> None:
    less = replace(FOUND, factor=[0.96, 0.93, 0.99])
    # 15 % more than was set, which is easier to find.
    more = replace(FOUND, factor=[0.897, 0.86, 0.94])
    for one in (less, more):
        lines, good = table([one] * FEWEST)
        assert good is None
        assert any(line.endswith("not what was to be found") for line in lines)


def test_a_little_less_than_was_set_may_still_be_met() -> None:
    assert table([replace(FOUND, factor=[0.923, 0.88, 0.97])] * FEWEST)[1] is True


def test_a_run_that_failed_is_shown_with_its_state() -> None:
    failed = replace(FOUND, state="Failed", smallest=None, factor=None, others=None)
    assert table([failed])[0][0].endswith("not counted: Failed; others not known")


def test_a_run_is_one_that_the_operator_takes() -> None:
    spec = BenchmarkRunSpec.model_validate(manifest(455, "1")["spec"])
    assert spec.control_name == "one-control"
    assert [one.name for one in spec.servers] == [BASELINE, SLOWER]
