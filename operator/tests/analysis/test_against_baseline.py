"""A server is worse than the baseline where the run tells the two apart, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.analysis.against_baseline import AgainstBaseline, against_baseline
from laptime.api import doubts
from laptime.api.metrics import Metric
from laptime.api.results import Interval, ResultRow, RowState, Validity

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


BUSY = doubts.GENERATOR_BUSY.says(share=1.0)
LATE = doubts.GENERATOR_LATE.says(late=8.0, p99=9.0)
STOLEN = doubts.STOLEN_TIME.says(share=0.05, node="a")
NEIGHBOURS = doubts.NEIGHBOURS.says(cores=1.0, cpus=4, node="a")
SLOWING = doubts.SLOWING_DOWN.says(seconds=5, by=0.2)
NODES = doubts.OTHER_NODES.says(what="server main", nodes="b", before="a", trial=1)
SCHEMA = doubts.OTHER_SCHEMA.says(server="main", why="an index more")
IMAGE = doubts.OTHER_IMAGE.says(what="server main", image="x@2", before="x@1", trial=1)
TAG = doubts.TAG_UNKNOWN.says(image="shop:main")
SAME, WORSE, BETTER = (1.0, (0.99, 1.01)), (0.8, (0.78, 0.82)), (1.2, (1.1, 1.3))
CUT = "the status does not say why; `report` does"


def limited(server: str, cpu: str = "500m") -> str:
    return doubts.LIMIT_ADDED.says(what=f"server {server}", limits=f"{cpu} of CPU")


def added(server: str, containers: str = "istio-proxy") -> str:
    return doubts.CONTAINER_ADDED.says(what=f"server {server}", containers=containers)


def doubted(
    figure: tuple[float, Ends], of_row: list[str], of_baseline: list[str], metric: Metric
) -> AgainstBaseline:
    """Return what is said of a figure with these doubts of the row, and of the baseline's."""
    release = BASELINE.model_copy(
        update={"validity": Validity.DOUBTFUL, "validity_reasons": of_baseline}
    )
    of_it = Validity.DOUBTFUL if of_row else Validity.VALID
    main = row(*figure, compared_by=metric, validity=of_it, validity_reasons=of_row)
    return against_baseline([release if of_baseline else BASELINE, main], "release")


RATE, P99 = Metric.REQUESTS_PER_SECOND, Metric.P99


@pytest.mark.parametrize(
    ("figure", "of_row", "of_baseline", "metric", "why"),
    [
        # A generator that is full makes all servers alike.
        (SAME, [BUSY], [BUSY], RATE, BUSY),
        (SAME, [BUSY], [], RATE, BUSY),
        (SAME, [], [BUSY], RATE, f"of release: {BUSY}"),
        (BETTER, [BUSY], [BUSY], RATE, f"of release: {BUSY}"),
        (SAME, [SLOWING], [], RATE, SLOWING),
        (SAME, [TAG], [TAG], RATE, TAG),
        (SAME, [f"{SLOWING} (in 2 of 5 repetitions)"], [STOLEN], RATE, SLOWING),
        # What differs may be what it ran on, and neither version.
        (WORSE, [NODES], [], RATE, NODES),
        (SAME, [NODES], [], RATE, NODES),
        (WORSE, [SCHEMA], [], RATE, SCHEMA),
        (WORSE, [IMAGE], [], RATE, IMAGE),
        (WORSE, [], [added("release")], RATE, added("release")),
        (WORSE, [added("main", "b")], [added("release")], RATE, "the cluster added "),
        (SAME, [limited("main", "1")], [limited("release")], RATE, "of release: the cluster li"),
        # Each slows down, one of them by far more, or in far more of its repetitions.
        (SAME, [doubts.SLOWING_DOWN.says(seconds=5, by=0.6)], [SLOWING], RATE, "the first 5 s"),
        (SAME, [SLOWING], [f"{SLOWING} (in 1 of 10 repetitions)"], RATE, SLOWING),
        (SAME, [], [f"{limited('release')} (in 1 of 5 repetitions)"], RATE, "of release: the clu"),
        (
            SAME,
            [f"{limited('main')} (in 1 of 5 repetitions)"],
            [limited("release")],
            RATE,
            "of release: the cluster li",
        ),
        # Nobody knows what is among them.
        (WORSE, [doubts.MORE_DOUBTS.says(others=2)], [], RATE, "2 more doubts"),
        (SAME, [], [LATE], P99, f"of release: {LATE}"),
    ],
)
def test_a_doubt_by_which_it_may_be_the_other_way_makes_it_not_known(
    figure: tuple[float, Ends],
    of_row: list[str],
    of_baseline: list[str],
    metric: Metric,
    why: str,
) -> None:
    found = doubted(figure, of_row, of_baseline, metric)
    assert found.worse == ()
    (said,) = found.not_known
    of_which = "p99" if metric is P99 else "throughput"
    assert said.startswith(f"main under closed, {of_which} ")
    assert f" (doubtful: {why}" in said


@pytest.mark.parametrize(
    ("figure", "of_row", "of_baseline"),
    [
        # What the hypervisor and others take they take from both, so that it is in the interval.
        (SAME, [STOLEN, NEIGHBOURS], [NEIGHBOURS]),
        (SAME, [], [STOLEN]),
        (SAME, [added("main")], [added("release")]),
        (SAME, [limited("main")], [limited("release")]),
        (SAME, [SLOWING], [doubts.SLOWING_DOWN.says(seconds=5, by=0.3)]),
        (SAME, [doubts.NO_WARMUP.says()], [doubts.NO_WARMUP.says()]),
        # In one repetition of five it is in the interval, too.
        (SAME, [f"{NODES} (in 1 of 5 repetitions)"], []),
        # Who is better at the limit of the generator is better for sure.
        (BETTER, [BUSY], []),
    ],
)
def test_a_doubt_that_bears_on_both_or_the_other_way_takes_no_verdict_away(
    figure: tuple[float, Ends], of_row: list[str], of_baseline: list[str]
) -> None:
    assert doubted(figure, of_row, of_baseline, RATE) == AgainstBaseline((), ())


def test_what_is_worse_in_spite_of_doubts_is_said_with_them() -> None:
    found = doubted(WORSE, [STOLEN], [BUSY], RATE)
    assert found.worse == (
        f"main under closed, throughput 0.8x (0.78 to 0.82) (doubtful: {STOLEN}; 1 more)",
    )
    of_release = doubted(WORSE, [], [STOLEN], RATE)
    assert of_release.worse[0].endswith(f" (doubtful: of release: {STOLEN})")


@pytest.mark.parametrize("validity", [Validity.DOUBTFUL, Validity.INVALID])
@pytest.mark.parametrize("figure", [SAME, WORSE])
def test_where_the_status_lacks_the_reasons_it_is_not_known(
    figure: tuple[float, Ends], validity: Validity
) -> None:
    found = judged(row(*figure, validity=validity))
    assert (found.worse, len(found.not_known)) == ((), 1)
    assert found.not_known[0].endswith(f" (doubtful: {CUT})")
    release = BASELINE.model_copy(update={"validity": validity})
    (said,) = against_baseline([release, row(*figure)], "release").not_known
    assert said.endswith(f" (doubtful: of release: {CUT})")
