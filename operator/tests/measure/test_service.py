"""What is not known of a Service that Laptime does not deploy; nothing is made up of it."""

from __future__ import annotations

import pytest

from laptime.analysis.used import row_usage
from laptime.api.causes import Cause
from laptime.api.doubts import Bearing, bearing
from laptime.api.evidence import DatabaseEvidence, TierEvidence
from laptime.api.metrics import Metric
from laptime.api.results import TrialReadings, TrialResult, Validity
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.usage import ComponentUsage, NodeUsage, Source, TrialUsage
from laptime.catalog import Request
from laptime.measure import (
    GeneratorResult,
    parse_generator_output,
    trial_result,
    watched_result,
)
from tests.measure.samples import TRIAL, document, line, phase

SPEC = BenchmarkRunSpec.model_validate(
    {
        "scenario": "users",
        "servers": [
            {"name": "axum", "service": {"name": "shop", "port": 8080}},
            {"name": "other", "preset": "axum-sqlx"},
        ],
        "topology": {"postgres": {"resources": {"cpu": "1"}}, "upstream": {}},
        "loads": [{"name": "closed", "closed": {"connections": 4, "requests": 1000}}],
    }
)
REQUESTS = [Request(name="list", path="/", statements=1, asks_upstream=True)]
_SAID = parse_generator_output(line(document(phase([4000] * 2000))))
assert isinstance(_SAID, GeneratorResult)
RESULT = trial_result(TRIAL, _SAID, SPEC.load("closed"), REQUESTS)


def usage(**cores: float) -> TrialUsage:
    """Return readings in which other parts of the run, another server too, are busy."""
    return TrialUsage(
        source=Source.AGENT,
        resolution_seconds=0.1,
        complete=True,
        components=[
            ComponentUsage(
                component=name,
                server="other" if name == "server" else None,
                pods=1,
                cpu_seconds=2 * used,
                cores_mean=used,
                cores_peak=used,
            )
            for name, used in cores.items()
        ],
        nodes=[NodeUsage(node="worker-1", cpus=8, busy_share=0.2)],
    )


def judged(read: TrialUsage | None, tiers: TierEvidence | None = None) -> TrialResult:
    readings = TrialReadings(trial=TRIAL.name, usage=read, tiers=tiers or TierEvidence())
    return watched_result(RESULT, readings, SPEC, REQUESTS)


def test_the_cpu_of_another_server_is_not_taken_for_its_own() -> None:
    result = judged(usage(server=1.0, generator=0.1))
    assert result.limited_by is not None
    assert result.limited_by.cause is Cause.UNKNOWN
    assert result.limited_by.also == []
    assert result.limited_by.evidence == (
        "whether a CPU was busy is not known: Laptime does not watch the pods of Service shop"
    )
    row = row_usage([result])
    assert row is not None
    assert (row.cores_mean, row.requests_per_cpu_second, row.memory_bytes) == (None, None, None)


def test_the_tiers_of_the_run_are_none_of_its_own() -> None:
    idle = DatabaseEvidence(connections_max=1, active_mean=0.0, on_cpu_mean=0.0, statements=3)
    result = judged(usage(postgres=1.0, generator=0.1), TierEvidence(database=idle))
    assert result.limited_by is not None
    assert result.limited_by.cause is Cause.UNKNOWN
    # Fewer statements than answers: that is not its database.
    assert result.validity is Validity.DOUBTFUL
    assert not any("statements" in reason for reason in result.validity_reasons)


def test_a_generator_that_was_full_is_named_all_the_same() -> None:
    busy = RESULT.model_copy(update={"generator_share": 0.97})
    result = watched_result(busy, None, SPEC, REQUESTS)
    assert result.limited_by is not None
    assert result.limited_by.cause is Cause.GENERATOR


def test_its_figures_are_never_valid_without_a_word() -> None:
    for result in (judged(usage(generator=0.1)), watched_result(RESULT, None, SPEC, REQUESTS)):
        assert result.validity is Validity.DOUBTFUL
        assert result.validity_reasons == [
            "Service shop was there before: neither its pods nor its data were brought to the same "
            "state before the trial",
            "whether others used Service shop at the same time is not known",
        ]
    deployed = RESULT.model_copy(update={"server": "other"})
    assert watched_result(deployed, None, SPEC, REQUESTS).validity is Validity.VALID


@pytest.mark.parametrize("metric", [Metric.REQUESTS_PER_SECOND, Metric.P99])
def test_a_bound_that_it_kept_it_kept_whoever_used_it_too(metric: Metric) -> None:
    warm, shared = watched_result(RESULT, None, SPEC, REQUESTS).validity_reasons
    assert bearing(warm, metric) is Bearing.NONE
    assert bearing(shared, metric) is Bearing.LOOKS_WORSE
