"""A server is worse than the baseline where the run tells the two apart, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.analysis.against_baseline import AgainstBaseline, against_baseline
from laptime.api import doubts
from laptime.api.metrics import Metric
from laptime.api.results import Interval, ResultRow, RowState

Ends = tuple[float | None, float | None]
BASELINE = ResultRow(server="release", load="closed", state=RowState.MEASURED)


def row(value: float | None, ends: Ends = (None, None), **more: Any) -> ResultRow:
    """Return a row of `main` with this factor."""
    factor = None if value is None else Interval(value=value, low=ends[0], high=ends[1])
    fields = {"server": "main", "load": "closed", "state": RowState.MEASURED} | more
    return ResultRow(factor=factor, **fields)


def judged(*rows: ResultRow) -> AgainstBaseline:
    return against_baseline([BASELINE, *rows], "release", "release-control")


@pytest.mark.parametrize(
    ("metric", "value", "ends", "worse"),
    [
        (Metric.REQUESTS_PER_SECOND, 0.9, (0.85, 0.95), True),
        (Metric.REQUESTS_PER_SECOND, 0.9, (0.8, 1.0), False),
        (Metric.REQUESTS_PER_SECOND, 1.1, (1.05, 1.2), False),
        (Metric.P99, 1.1, (1.05, 1.2), True),
        (Metric.P99, 1.1, (1.0, 1.2), False),
        (Metric.P99, 0.9, (0.85, 0.95), False),
    ],
)
def test_worse_is_what_the_whole_interval_says(
    metric: Metric, value: float, ends: Ends, worse: bool
) -> None:
    found = judged(row(value, ends, compared_by=metric))
    assert bool(found.worse) is worse
    assert not found.not_known


def test_what_is_worse_is_said_with_its_figure_and_its_interval() -> None:
    slower = row(0.913, (0.852, 0.948))
    longer = row(1.1, (1.05, 1.2), load="open", compared_by=Metric.P99)
    assert judged(slower, longer).worse == (
        "main under closed, throughput 0.913x (0.852 to 0.948)",
        "main under open, p99 1.10x (1.05 to 1.20)",
    )


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (row(None), "no factor of its throughput"),
        (row(None, compared_by=Metric.P99), "no factor of its p99"),
        (row(0.9), "nobody knows how far its throughput may be off"),
        # The search of the baseline found no upper end.
        (row(0.9, (None, 1.2)), "nobody knows how far its throughput may be off"),
        (row(1.0, (0.9, 1.1), state=RowState.PARTIAL), "not all of its repetitions count"),
        (
            row(
                *(1.0, (0.9, 1.1)),
                validity_reasons=[doubts.INVALID_REPETITIONS.says(invalid=1, trials=5, are="is")],
            ),
            "not all of its repetitions count",
        ),
    ],
)
def test_of_what_has_no_figure_it_is_not_known(found: ResultRow, why: str) -> None:
    assert judged(found) == AgainstBaseline((), (f"main under closed, {why}",))


@pytest.mark.parametrize("ends", [(None, 0.95), (0.85, 0.95)])
def test_what_is_worse_for_sure_is_so_whatever_else_is_missing(ends: Ends) -> None:
    found = judged(row(0.9, ends, state=RowState.PARTIAL))
    assert (len(found.worse), found.not_known) == (1, ())


def test_a_search_without_an_upper_end_is_not_worse() -> None:
    assert judged(row(1.2, (0.98, None))) == AgainstBaseline((), ())


def test_the_control_is_chance_and_alone_there_is_nothing_to_judge() -> None:
    twin = row(0.9, (0.85, 0.95), server="release-control")
    assert judged(twin) == judged() == AgainstBaseline((), ("no other server was measured",))
    assert judged(twin, row(1.0, (0.9, 1.1))) == AgainstBaseline((), ())
