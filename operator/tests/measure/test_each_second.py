"""What a generator counted in each second is what Prometheus is given, whole and under its time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from laptime.measure.each_second import (
    KINDS,
    NO_ERROR,
    REQUESTS,
    TrialSeconds,
    stored,
    trial_seconds,
)
from laptime.measure.generator import GeneratorResult, parse_generator_output
from laptime.measure.merge import merge_results
from laptime.measure.promql import PrometheusError
from laptime.measure.sparse_histogram import SparseHistogram
from tests.measure.samples import document, line, phase

BEGIN = 1_700_000_000.25
LABELS = {"namespace": "team", "run": "demo", "trial": "demo-trial-001", "server": "axum"}

Row = dict[str, Any]


def row(t: int, requests: int, latency: list[int], dropped: int = 0, **kinds: int) -> Row:
    errors = sum(kinds.values())
    one: Row = {"t": t, "requests": requests, "errors": errors, "maxUs": 1}
    if dropped:
        one["dropped"] = dropped
    if kinds:
        one["kinds"] = kinds
    return {**one, "latency": latency} if latency else one


def of_generator(rows: list[Row], together: int = 1, **more: Any) -> GeneratorResult:
    measured = phase([1000], seconds=rows, startedAt=BEGIN, latencySeconds=together)
    content = {**document(measured), **more}
    parsed = parse_generator_output(line(content))
    assert isinstance(parsed, GeneratorResult), parsed
    return parsed


def seconds(rows: list[Row], **more: Any) -> TrialSeconds:
    found = trial_seconds(of_generator(rows, **more).payload, LABELS)
    assert found is not None
    return found


def test_each_second_stands_at_its_end() -> None:
    found = seconds([row(0, 10, [-900, 8, 3, 2]), row(1, 12, [-900, 11], timeout=1)])
    measured = found.phases["measured"]
    assert measured.requests == ((1_700_000_001_250, 10), (1_700_000_002_250, 12))
    assert measured.errors == {"timeout": ((1_700_000_001_250, 0), (1_700_000_002_250, 1))}
    assert measured.latency == (
        (1_700_000_001_250, SparseHistogram({-900: 8, -897: 2})),
        (1_700_000_002_250, SparseHistogram({-900: 11})),
    )
    # The middle, by ratio, of the bucket that has the fifth of ten; the last of eleven.
    middle, other = 2 ** (-900.5 / 128), 2 ** (-897.5 / 128)
    assert measured.quantiles == {
        "0.5": ((1_700_000_001_250, middle), (1_700_000_002_250, middle)),
        "0.99": ((1_700_000_001_250, other), (1_700_000_002_250, middle)),
    }
    assert found.span == (1_700_000_001.25, 1_700_000_002.25)
    assert found.labels == LABELS


@pytest.mark.parametrize(("window", "whole"), [(2.0, [1, 2]), (1.5, [1]), (0.5, [1, 2])])
def test_a_last_second_that_is_not_whole_is_counted_and_not_drawn(
    window: float, whole: list[int]
) -> None:
    """Like a breakdown it would look; of a phase without a whole second there is nothing else."""
    rows = [row(0, 10, [-900, 10]), row(1, 2, [-900, 2])]
    measured = phase([1000], seconds=rows, startedAt=BEGIN)
    content = document({**measured, "windowSeconds": window})
    parsed = parse_generator_output(line(content))
    assert isinstance(parsed, GeneratorResult), parsed
    found = trial_seconds(parsed.payload, LABELS)
    assert found is not None
    assert [count for _, count in found.phases["measured"].requests] == [10, 2]
    assert [elapsed for _, elapsed in found.phases["measured"].elapsed] == whole
    times = [at for at, _ in found.phases["measured"].elapsed]
    for samples in found.phases["measured"].quantiles.values():
        assert [at for at, _ in samples] == times


@pytest.mark.parametrize(
    ("share", "bucket"), [(0.0, -900), (0.5, -900), (0.51, -3), (0.99, -3), (0.991, 7), (1.0, 7)]
)
def test_a_quantile_is_in_the_bucket_of_the_nearest_rank(share: float, bucket: int) -> None:
    counts = SparseHistogram({7: 1, -900: 50, -3: 49})
    assert counts.quantile(share) == 2 ** ((bucket - 0.5) / 128)


def test_nothing_has_no_quantile() -> None:
    with pytest.raises(ValueError, match="no values"):
        SparseHistogram().quantile(0.5)


def test_that_there_were_no_errors_is_a_series_and_not_the_lack_of_one() -> None:
    measured = seconds([row(0, 10, []), row(1, 5, [])]).phases["measured"]
    assert measured.errors == {NO_ERROR: ((1_700_000_001_250, 0), (1_700_000_002_250, 0))}


def test_what_was_given_up_unsent_is_an_error_of_its_second_and_no_request_of_it() -> None:
    """Of 1000 a second the server does 700: what waits for longer than the time-out is not sent."""
    rows = [row(0, 7, []), row(1, 7, [], dropped=2), row(2, 0, [], dropped=4, reset=1)]
    measured = seconds(rows).phases["measured"]
    assert [count for _, count in measured.requests] == [7, 7, 0]
    counts = {kind: [count for _, count in found] for kind, found in measured.errors.items()}
    assert counts == {"dropped": [0, 2, 4], "reset": [0, 0, 1]}


def test_of_what_an_older_generator_dropped_nobody_says_that_there_were_no_errors() -> None:
    def errors(**more: Any) -> set[str]:
        measured = phase([1000], seconds=[row(0, 7, [])], droppedIterations=3)
        parsed = parse_generator_output(line({**document(measured), **more}))
        assert isinstance(parsed, GeneratorResult)
        found = trial_seconds(parsed.payload, LABELS)
        assert found is not None
        return set(found.phases["measured"].errors)

    assert errors() == set()
    # Iterations of a script are no requests.
    assert errors(script={}) == {NO_ERROR}


def test_every_kind_of_error_of_the_generator_is_known() -> None:
    source = Path(__file__).parents[3] / "images" / "k6" / "internal" / "result" / "recorder.go"
    (names,) = re.findall(r"kindNames = \[kinds\]string\{(.*)\}", source.read_text())
    assert set(re.findall(r'"(\w+)"', names)) == KINDS


def test_errors_that_an_older_generator_did_not_tell_apart_are_others() -> None:
    old = {"t": 0, "requests": 9, "errors": 4}
    strange = row(1, 9, [], **{'x"} 1': 3, "reset": 1})
    measured = seconds([old, strange]).phases["measured"]
    assert measured.errors == {
        "other": ((1_700_000_001_250, 4), (1_700_000_002_250, 3)),
        "reset": ((1_700_000_001_250, 0), (1_700_000_002_250, 1)),
    }


def test_a_script_begins_with_its_first_request() -> None:
    measured = phase([1000], seconds=[row(0, 1, [])])
    parsed = parse_generator_output(line(document(measured)))
    assert isinstance(parsed, GeneratorResult)
    found = trial_seconds(parsed.payload, LABELS)
    assert found is not None
    assert found.span == (1_700_000_001.0, 1_700_000_001.0)


def test_what_a_strange_generator_says_has_an_end() -> None:
    rows = [row(0, 1, [5000, 7, -5000, 3]), row(2**50, 5, []), row(0, 2, [-10, 1])]
    measured = seconds(rows).phases["measured"]
    assert measured.requests == ((1_700_000_001_250, 2),)
    assert measured.latency == ((1_700_000_001_250, SparseHistogram({-10: 1})),)


@pytest.mark.parametrize("payload", ["", "nonsense"])
def test_without_a_result_there_are_no_seconds(payload: str) -> None:
    assert trial_seconds(payload, LABELS) is None


def test_of_several_generators_all_counts_are_there() -> None:
    parts = [
        of_generator(
            [row(0, 10, [-900, 9], reset=1), row(1, 4, [-900, 4], dropped=3)],
            segment={"index": 0, "count": 2},
        ),
        # Of its two seconds there is one histogram.
        of_generator(
            [row(0, 20, [], reset=2), row(1, 6, [-890, 24], dropped=5)],
            together=2,
            segment={"index": 1, "count": 2},
        ),
    ]
    merged = merge_results(parts)
    assert isinstance(merged, GeneratorResult), merged
    found = trial_seconds(merged.payload, LABELS)
    assert found is not None
    measured = found.phases["measured"]
    assert [count for _, count in measured.requests] == [30, 10]
    assert [count for _, count in measured.errors["reset"]] == [3, 0]
    assert [count for _, count in measured.errors["dropped"]] == [0, 8]
    assert measured.latency == ((1_700_000_002_250, SparseHistogram({-900: 13, -890: 24})),)


def test_the_sum_of_latencies_is_right_to_half_a_percent() -> None:
    value = 0.012
    bucket = math.ceil(128 * math.log2(value))
    assert SparseHistogram({bucket: 1000}).seconds() == pytest.approx(1000 * value, rel=0.005)
    assert SparseHistogram.decode(SparseHistogram({3: 1, -7: 4}).encode()) == {3: 1, -7: 4}


@pytest.mark.parametrize(
    ("count", "problem"),
    [
        (2, None),
        (1, "Prometheus has 1 of 2 seconds"),
        (0, "Prometheus has 0 of 2 seconds"),
    ],
)
async def test_prometheus_is_asked_what_it_has(count: int, problem: str | None) -> None:
    asked: list[Mapping[str, str]] = []

    async def query(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        asked.append(parameters)
        result = [{"metric": {}, "value": [0, str(count)]}] if count else []
        return {"status": "success", "data": {"resultType": "vector", "result": result}}

    series = seconds([row(0, 10, [-900, 10]), row(1, 3, [], reset=3)])
    found = await stored(query, series)
    assert found.problem == problem
    assert 'namespace="team",run="demo",trial="demo-trial-001"' in asked[0]["query"]
    assert "[3000ms]" in asked[0]["query"]
    assert asked[0]["time"] == "1700000003.250"
    # A Prometheus that takes no native histograms lacks nothing that pictures draw.
    assert len(asked) == 1


async def test_copies_of_a_second_do_not_count_for_one_that_is_missing() -> None:
    """A pair of Prometheus behind one Thanos has each series twice, with a label that tells whose.

    Of two copies with half of the seconds each a sum is all of them; the copies are of one phase.
    """
    asked: list[str] = []

    async def query(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        asked.append(parameters["query"])
        return {"status": "success", "data": {"resultType": "vector", "result": []}}

    await stored(query, seconds([row(0, 10, []), row(1, 3, [])]))
    (promql,) = asked
    # What tells series of one trial apart that are no copies: the phase, and seconds in part.
    assert promql.startswith(f"sum(max by (phase, whole) (count_over_time({REQUESTS}{{")


async def test_an_answer_that_is_none_is_an_error() -> None:
    async def refused(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        return {"status": "error", "error": "too many samples"}

    with pytest.raises(PrometheusError, match="too many"):
        await stored(refused, seconds([row(0, 1, [])]))
