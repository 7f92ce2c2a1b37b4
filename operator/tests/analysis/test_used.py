"""What a server used and what limited it, over all repetitions."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.analysis.used import row_cause, row_usage, statements_per_request
from laptime.api.causes import Cause, LimitedBy
from laptime.api.results import Figures, TrialOutcome, TrialResult
from laptime.api.usage import ComponentUsage, Source, TrialUsage

MIB = 2**20


def trial(repetition: int = 1, rate: float = 1000.0, **more: Any) -> TrialResult:
    return TrialResult(
        trial=f"demo-trial-00{repetition}",
        ordinal=repetition,
        server="axum",
        load="closed",
        repetition=repetition,
        outcome=TrialOutcome.MEASURED,
        figures=Figures(
            requests=round(10 * rate), errors=0, window_seconds=10.0, requests_per_second=rate
        ),
        **more,
    )


def used(cores: float, mebibytes: int, **more: Any) -> TrialUsage:
    other = ComponentUsage(component="server", server="fastapi", pods=1, cores_mean=9.0)
    own = ComponentUsage(
        component="server",
        server="axum",
        pods=1,
        cpu_seconds=10 * cores,
        cores_mean=cores,
        cores_peak=2 * cores,
        working_set_bytes=mebibytes * MIB,
    )
    fields = {"source": Source.AGENT, "complete": True, "components": [other, own], **more}
    return TrialUsage.model_validate(fields)


def limited(cause: Cause, evidence: str = "so", also: tuple[Cause, ...] = ()) -> LimitedBy:
    return LimitedBy(cause=cause, evidence=evidence, also=list(also))


def test_what_a_server_used_is_that_of_all_repetitions_and_of_no_other_server() -> None:
    found = row_usage([trial(1, usage=used(0.5, 10)), trial(2, rate=3000.0, usage=used(1.5, 20))])
    assert found is not None
    assert (found.cores_mean, found.cores_peak, found.memory_bytes) == (1.0, 3.0, 20 * MIB)
    assert found.requests_per_cpu_second == pytest.approx((10_000 + 30_000) / (5 + 15))
    assert found.requests_per_second_per_mib == pytest.approx(2000 / 20)
    assert (found.source, found.doubts) == (Source.AGENT, [])


def test_nobody_watched() -> None:
    assert row_usage([trial(1), trial(2)]) is None


def test_what_is_missing_is_said_with_the_first_reason() -> None:
    broken = used(0.5, 10, complete=False, gaps=["demo-server-axum: 4.0 s without a sample"])
    found = row_usage([trial(1, usage=used(0.5, 10)), trial(2, usage=broken), trial(3)])
    assert found is not None
    assert found.doubts == [
        "readings are incomplete in 2 of 3 repetitions: demo-server-axum: 4.0 s without a sample"
    ]


def test_what_is_missing_of_the_only_repetition_is_in_no_plural() -> None:
    found = row_usage([trial(1, usage=used(0.5, 10, complete=False, gaps=["a gap"]))])
    assert found is not None
    assert found.doubts == ["readings are incomplete in 1 of 1 repetition: a gap"]


def test_a_source_that_knows_less_is_the_one_that_is_named() -> None:
    rough = used(0.5, 10, source=Source.KUBELET, complete=False)
    found = row_usage([trial(1, usage=used(0.5, 10)), trial(2, usage=rough)])
    assert found is not None
    assert found.source is Source.KUBELET


def test_readings_without_samples_give_no_figures_and_no_error() -> None:
    blind = TrialUsage(source=Source.NOBODY, complete=False, gaps=["Prometheus has no answer"])
    found = row_usage([trial(1, usage=blind)])
    assert found is not None
    assert (found.cores_mean, found.memory_bytes, found.requests_per_cpu_second) == (None,) * 3


def test_repetitions_that_nobody_watched_are_counted_where_others_were() -> None:
    blind = TrialUsage(source=Source.NOBODY, complete=False, gaps=["Prometheus has no answer"])
    watched = trial(1, usage=used(0.5, 10))
    measured = [watched, trial(2, usage=blind), trial(3), trial(4, usage=used(0.5, 10))]
    found = row_usage(measured)
    assert found is not None
    assert (found.source, found.unwatched) == (Source.AGENT, 2)
    # Those of the last one may still come.
    found = row_usage(measured[:3])
    assert found is not None
    assert found.unwatched == 1
    for others in ([watched], [trial(2, usage=blind), trial(3)]):
        found = row_usage(others)
        assert found is not None
        assert found.unwatched is None


def test_statements_are_those_of_the_trials_that_counted_them() -> None:
    assert statements_per_request([trial(1, statements=20_000), trial(2)]) == 2.0
    assert statements_per_request([trial(1)]) is None


def test_the_cause_is_that_of_most_repetitions_with_the_evidence_of_the_middle_one() -> None:
    found = row_cause(
        [
            trial(1, 900.0, limited_by=limited(Cause.SERVER_CPU, "slow")),
            trial(2, 1100.0, limited_by=limited(Cause.SERVER_CPU, "fast")),
            trial(3, 1000.0, limited_by=limited(Cause.SERVER_CPU, "middle", (Cause.NODE,))),
            trial(4, 1000.0, limited_by=limited(Cause.GENERATOR)),
        ]
    )
    assert found is not None
    assert found.cause is Cause.SERVER_CPU
    assert found.evidence == "middle (so in 3 of 4 repetitions)"
    assert found.also == [Cause.GENERATOR, Cause.NODE]


def test_the_middle_one_is_that_of_the_middle_throughput_where_all_asked_for_as_much() -> None:
    """Of a fixed number of requests all have as many answers, the slow ones in a longer time."""
    trials = []
    for repetition, (rate, said) in enumerate(
        ((1000.0, "middle"), (900.0, "slow"), (1100.0, "fast")), start=1
    ):
        one = trial(repetition, rate, limited_by=limited(Cause.SERVER_CPU, said))
        assert one.figures is not None
        longer = {"requests": 10_000, "window_seconds": 10_000 / rate}
        figures = one.figures.model_copy(update=longer)
        trials.append(one.model_copy(update={"figures": figures}))
    found = row_cause(trials)
    assert found is not None
    assert found.evidence == "middle"


def test_of_as_many_a_known_cause_counts_before_unknown() -> None:
    found = row_cause(
        [
            trial(1, limited_by=limited(Cause.UNKNOWN)),
            trial(2, limited_by=limited(Cause.NODE)),
        ]
    )
    assert found is not None
    assert (found.cause, found.also) == (Cause.NODE, [])


def test_without_causes_there_is_none() -> None:
    assert row_cause([trial(1)]) is None
