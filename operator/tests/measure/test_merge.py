"""What several generators measured is, together, exactly what one would have measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.api.results import NetworkPath, TrialOutcome
from laptime.measure import (
    GeneratorError,
    GeneratorResult,
    Histogram,
    merge_results,
    parse_generator_output,
    parse_payload,
    trial_result,
)
from laptime.measure.generator import document_of
from tests.measure.samples import TRIAL, document, line, phase

START = 1_700_000_000.0


@dataclass(frozen=True)
class Sample:
    """One request: sent `at` seconds after the start, answered or not after `took`."""

    endpoint: str
    at: float
    took_us: int
    late_us: int
    right: bool


SAMPLES = st.lists(
    st.builds(
        Sample,
        endpoint=st.sampled_from(["list", "add"]),
        at=st.integers(0, 5000).map(lambda ms: ms / 1000),
        took_us=st.integers(1, 3_000_000),
        late_us=st.integers(1, 10_000),
        right=st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


def encoded(values: list[int]) -> str:
    return Histogram.of_microseconds(values).encode()


def recorded(samples: list[Sample], clock: float, duration: float | None) -> dict[str, Any]:
    """Return the phase that a generator with this clock makes of samples."""
    ends = [one.at + one.took_us / 1e6 for one in samples]
    seconds = [
        {
            "t": t,
            "requests": sum(int(end) == t for end in ends),
            "errors": sum(
                int(end) == t and not s.right for s, end in zip(samples, ends, strict=True)
            ),
            "maxUs": max(
                (
                    s.took_us
                    for s, end in zip(samples, ends, strict=True)
                    if int(end) == t and s.right
                ),
                default=0,
            ),
        }
        for t in range(int(max(ends, default=-1)) + 1)
    ]
    first = min((one.at for one in samples), default=0.0)
    last = max(ends, default=0.0)
    wrong = sum(not one.right for one in samples)
    endpoints = {}
    for name in sorted({one.endpoint for one in samples}):
        mine = [one for one in samples if one.endpoint == name]
        right = [one for one in mine if one.right]
        endpoints[name] = {
            "requests": len(mine),
            "errors": len(mine) - len(right),
            "completedInWindow": sum(
                duration is None or one.at + one.took_us / 1e6 <= duration for one in right
            ),
            "latency": encoded([one.took_us for one in right]),
            "serverTime": encoded([one.took_us for one in right]),
            "connect": encoded([]),
            "uncorrectedLatency": encoded([max(1, one.took_us - one.late_us) for one in right]),
        }
    made = {
        "startedAt": START + clock,
        "firstRequestAt": START + clock + first if samples else 0.0,
        "lastResponseAt": START + clock + last if samples else 0.0,
        "requests": len(samples),
        "responses": len(samples) - wrong,
        "windowSeconds": duration or last - first,
        "completedInWindow": sum(
            one.right and (duration is None or end <= duration)
            for one, end in zip(samples, ends, strict=True)
        ),
        "errors": {"timeout": wrong},
        "statusCodes": {"200": len(samples) - wrong},
        "bytesReceived": 10 * len(samples),
        "droppedIterations": 0,
        "retried": 0,
        "lateness": encoded([one.late_us for one in samples]),
        "endpoints": endpoints,
        "seconds": seconds,
    }
    if duration:
        made["durationSeconds"] = duration
    return made


def printed(
    measured: dict[str, Any], segment: tuple[int, int] | None = None, **generator: Any
) -> GeneratorResult:
    content = document(measured, **generator)
    if segment:
        content["segment"] = {"index": segment[0], "count": segment[1]}
    result = parse_generator_output(line(content))
    assert isinstance(result, GeneratorResult)
    return result


def merged(results: list[GeneratorResult]) -> GeneratorResult:
    result = merge_results(results)
    assert isinstance(result, GeneratorResult), result
    return result


def histograms_of(node: dict[str, Any]) -> Any:
    """Return every histogram of a phase as counts, by its place."""
    found = {("", "lateness"): Histogram.decode(node["lateness"]).counts}
    for name, endpoint in node["endpoints"].items():
        for key, value in endpoint.items():
            if isinstance(value, str):
                found[name, key] = Histogram.decode(value).counts
    return found


def without_histograms(node: Any) -> Any:
    """Return all of a phase that is no histogram; times compare within 10 µs."""
    if isinstance(node, dict):
        return {
            key: without_histograms(child)
            for key, child in node.items()
            if not isinstance(child, str)
        }
    if isinstance(node, list):
        return [without_histograms(child) for child in node]
    return pytest.approx(node, rel=0, abs=1e-5) if isinstance(node, float) else node


@given(
    samples=SAMPLES,
    count=st.integers(2, 5),
    owners=st.randoms(use_true_random=False),
    clocks=st.lists(st.integers(-3600, 3600), min_size=5, max_size=5),
    duration=st.none() | st.just(5.0),
)
@settings(deadline=None)
def test_the_parts_of_several_generators_make_the_whole(
    samples: list[Sample], count: int, owners: Any, clocks: list[int], duration: float | None
) -> None:
    parts: list[list[Sample]] = [[] for _ in range(count)]
    for sample in samples:
        owners.choice(parts).append(sample)
    results = [
        printed(recorded(part, clocks[index], duration), (index, count))
        for index, part in enumerate(parts)
    ]
    owners.shuffle(results)
    together = document_of(merged(results))["phases"]["measured"]
    clock = clocks[next(index for index, part in enumerate(parts) if part)]
    whole = recorded(samples, clock, duration)
    assert histograms_of(together) == histograms_of(whole)
    assert without_histograms(together) == without_histograms(whole)


@given(
    samples=st.lists(st.integers(1, 3_600_000_000), min_size=1, max_size=200),
    count=st.integers(2, 6),
)
@settings(deadline=None)
def test_the_figures_are_those_of_one_generator(samples: list[int], count: int) -> None:
    def dropping(part: list[int], share: int) -> dict[str, Any]:
        """Return a phase that one request of each generator was given up in, and one failed in."""
        made = phase(part, errors=share, durationSeconds=2.0, droppedIterations=share)
        made["endpoints"]["list"]["dropped"] = share
        return made

    parts = [samples[index::count] for index in range(count)]
    whole = trial_result(TRIAL, printed(dropping(samples, count)))
    several = trial_result(
        TRIAL,
        merged([printed(dropping(part, 1), (index, count)) for index, part in enumerate(parts)]),
    )
    assert several.figures == whole.figures
    assert several.endpoints == whole.endpoints


def test_the_share_is_that_of_the_busiest_generator() -> None:
    results = [
        printed(phase([1000]), (0, 2), busiestThread=0.1, cpuSeconds=0.2),
        printed(phase([1000]), (1, 2), busiestThread=0.97, cpuSeconds=1.5),
    ]
    figures = trial_result(TRIAL, merged(results))
    assert figures.generator_share == 0.97
    assert figures.generator_cpu_seconds == pytest.approx(1.7)
    assert "97%" in figures.validity_reasons[0]


def test_answers_that_waited_to_be_read_are_those_of_all_generators() -> None:
    results = [printed(phase([1000]), (n, 2), unreadSeconds=0.5 + n) for n in (0, 1)]
    assert merged(results).unread_seconds == pytest.approx(2.0)
    # An older generator, or a kernel that does not tell.
    assert merged([printed(phase([1000]), (n, 2)) for n in (0, 1)]).unread_seconds == 0.0


def test_the_network_is_that_of_all_generators_together() -> None:
    def seen(trip: float, sent: int, again: int, late: int) -> dict[str, float]:
        return {
            "roundTripSeconds": trip,
            "segmentsSent": sent,
            "segmentsSentAgain": again,
            "segmentsOutOfOrder": late,
        }

    results = [
        printed(phase([1000]), (0, 2), **seen(0.0002, 100, 1, 0)),
        printed(phase([1000]), (1, 2), **seen(0.0001, 50, 0, 3)),
    ]
    network = NetworkPath(
        round_trip_seconds=0.0001,
        segments_sent=150,
        segments_sent_again=1,
        segments_out_of_order=3,
    )
    assert trial_result(TRIAL, merged(results)).network == network
    # A kernel that does not tell, or an older generator.
    assert (
        trial_result(TRIAL, merged([printed(phase([1000]), (n, 2)) for n in (0, 1)])).network
        is None
    )


@pytest.mark.parametrize(
    ("cpus", "share"), [(None, 0.2), (4.0, 0.2), (1.0, 0.4), (0.5, 0.8), (0.25, 1.0)]
)
def test_the_share_is_of_the_pods_limit_where_that_is_less_than_its_cores(
    cpus: float | None, share: float
) -> None:
    cost: dict[str, Any] = {
        "busiestThread": 0.1,
        "cpuSeconds": 0.4,
        "wallSeconds": 1.0,
        "maxProcs": 2,
    }
    figures = trial_result(TRIAL, printed(phase([1000]), **cost), generator_cpus=cpus)
    assert figures.generator_share == pytest.approx(share)


def test_one_thread_cannot_use_more_than_the_pods_limit() -> None:
    cost: dict[str, Any] = {
        "busiestThread": 0.3,
        "cpuSeconds": 0.3,
        "wallSeconds": 1.0,
        "maxProcs": 2,
    }
    figures = trial_result(TRIAL, printed(phase([1000]), **cost), generator_cpus=0.4)
    assert figures.generator_share == pytest.approx(0.75)


def test_the_busiest_thread_of_a_search_is_held_against_the_pods_limit_too() -> None:
    """It is of the step that missed the objective, the CPU time of the one that met it."""
    cost: dict[str, Any] = {
        "busiestThread": 0.3,
        "cpuSeconds": 0.1,
        "wallSeconds": 1.0,
        "maxProcs": 2,
    }
    for cpus, share in ((0.4, 0.75), (0.3, 1.0), (1.5, 0.3), (None, 0.3)):
        figures = trial_result(TRIAL, printed(phase([1000]), **cost), generator_cpus=cpus)
        assert figures.generator_share == pytest.approx(share)


def test_what_was_merged_reads_the_same_again() -> None:
    together = merged([printed(phase([1000]), (0, 2)), printed(phase([2000]), (1, 2))])
    assert parse_payload(together.payload) == together
    assert len(together.costs) == 2
    assert trial_result(TRIAL, together).outcome is TrialOutcome.MEASURED


def test_one_generator_is_left_as_it_is() -> None:
    alone = printed(phase([1000]))
    assert merge_results([alone]) is alone


@pytest.mark.parametrize(
    "segments", [[(0, 2)], [(0, 2), (0, 2)], [(0, 3), (1, 3)], [(0, 2), (1, 3)], [None, None]]
)
def test_without_the_result_of_each_there_is_none(
    segments: list[tuple[int, int] | None],
) -> None:
    error = merge_results([printed(phase([1000]), segment) for segment in segments])
    assert isinstance(error, GeneratorError)
    assert error.reason == "GeneratorLost"


def test_results_of_different_trials_are_not_merged() -> None:
    results = [printed(phase([1000]), (index, 2)) for index in range(2)]
    other = replace(results[1], trial="demo-trial-002")
    error = merge_results([results[0], other])
    assert isinstance(error, GeneratorError)
    assert error.reason == "ResultOfAnotherTrial"


def test_statements_and_schema_are_those_that_generator_0_found() -> None:
    contents = [document(phase([1000])), document(phase([1000]))]
    contents[0]["statements"] = [{"query": "SELECT 1", "calls": 2}]
    contents[0]["databaseSchema"] = "q1-a"
    results = []
    for index, content in enumerate(contents):
        content["segment"] = {"index": index, "count": 2}
        result = parse_generator_output(line(content))
        assert isinstance(result, GeneratorResult)
        results.append(result)
    assert document_of(merged(results))["statements"] == contents[0]["statements"]
    assert merged(results).database_schema == "q1-a"


def scripted(index: int, clock: float, began: float, rows: list[int]) -> GeneratorResult:
    """Return what a script's generator has whose first request was `began` s after the start."""
    times = {"startedAt": clock + began, "firstRequestAt": clock + began + 0.25}
    measured = {**phase([1000] * sum(rows)), **times, "lastResponseAt": clock + began + len(rows)}
    measured["seconds"] = [{"t": t, "requests": count} for t, count in enumerate(rows)]
    content = document(measured)
    content["segment"] = {"index": index, "count": 2, "startedAt": clock}
    result = parse_generator_output(line(content))
    assert isinstance(result, GeneratorResult)
    return result


def test_phases_of_a_script_are_laid_over_each_other_by_their_common_start() -> None:
    # The clock of the second is an hour ahead; its first iteration is due two seconds later.
    parts = [scripted(0, START, 1.0, [5, 5, 5]), scripted(1, START + 3600, 3.0, [7, 7])]
    measured = document_of(merged(parts))["phases"]["measured"]
    assert {row["t"]: row["requests"] for row in measured["seconds"]} == {0: 5, 1: 5, 2: 12, 3: 7}
    assert measured["startedAt"] == START + 1.0
    assert measured["firstRequestAt"] == START + 1.25
    assert measured["lastResponseAt"] == START + 5.0
    assert measured["windowSeconds"] == 3.75


def test_a_generator_without_work_changes_nothing() -> None:
    idle = {**phase([]), "firstRequestAt": 0.0, "lastResponseAt": 0.0, "windowSeconds": 0.0}
    content = document(idle)
    content["segment"] = {"index": 1, "count": 2, "startedAt": START + 3600}
    result = parse_generator_output(line(content))
    assert isinstance(result, GeneratorResult)
    measured = document_of(merged([scripted(0, START, 1.0, [5, 5]), result]))["phases"]["measured"]
    assert (measured["requests"], measured["windowSeconds"]) == (10, 1.75)
    assert [row["t"] for row in measured["seconds"]] == [0, 1]


def test_a_histogram_that_cannot_be_read_is_an_error() -> None:
    broken = phase([1000])
    broken["endpoints"]["list"]["latency"] = "HISTFAAA"
    error = merge_results([printed(broken, (0, 2)), printed(phase([1000]), (1, 2))])
    assert isinstance(error, GeneratorError)
    assert error.reason == "ResultGarbled"


@given(st.lists(st.integers(1, 3_600_000_000)))
def test_a_histogram_is_encoded_as_it_is_decoded(values: list[int]) -> None:
    made = Histogram.of_microseconds(values)
    assert Histogram.decode(made.encode()) == made
