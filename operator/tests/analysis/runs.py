"""Runs with figures made up, for the tests of analysis and report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from laptime.analysis import Summary, summarise
from laptime.api.attempts import Fault
from laptime.api.results import TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Published
from laptime.measure import GeneratorResult, failed_trial, parse_generator_output, trial_result
from laptime.plan import Trial, plan_trials
from tests.measure.samples import document, histogram, line, phase

CLOSED = {"closed": {"connections": 10, "duration": "10s", "keepAlive": False}}


def make_spec(
    *servers: str, loads: tuple[str, ...] = ("closed",), repetitions: int = 5, **more: Any
) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": [{"name": name, "preset": "axum-sqlx"} for name in servers],
            "loads": [{"name": name, **CLOSED} for name in loads],
            "repetitions": repetitions,
            **more,
        }
    )


@dataclass(frozen=True)
class Outcome:
    """What one trial measures."""

    rate: float
    latencies: tuple[int, ...] = (1000,) * 400
    errors: int = 0
    kind: str = "timeout"
    """Of its errors."""
    busiest_thread: float = 0.3
    failure: tuple[str, str] | None = None
    fault: Fault = Fault.SERVER
    uncorrected: tuple[int, ...] = ()
    """Of an open load, in microseconds; its lateness is what `latencies` have more, in order."""
    search: Mapping[str, Any] | None = None
    """What a search found, as the generator writes it."""


Script = Callable[[Trial], Outcome | None]
"""What each trial measures; None: it has not been run."""


def steady(rates: Mapping[str, float]) -> Script:
    """Return a script in which servers differ by these rates, and repetitions by a little."""
    wobble = (1.0, 1.004, 0.997, 1.002, 0.999)

    def outcome(trial: Trial) -> Outcome:
        return Outcome(rates[trial.server] * wobble[(trial.ordinal + trial.repetition) % 5])

    return outcome


def run(
    spec: BenchmarkRunSpec, script: Script
) -> tuple[tuple[Trial, ...], list[TrialResult], dict[str, str]]:
    """Return trials, results and payloads of a run in which the script came true."""
    trials = plan_trials("demo", spec, seed=1)
    results: list[TrialResult] = []
    payloads: dict[str, str] = {}
    for trial in trials:
        outcome = script(trial)
        if outcome is None:
            continue
        if outcome.failure is not None:
            results.append(failed_trial(trial, *outcome.failure, outcome.fault))
            continue
        parsed = generator_result(trial, outcome)
        results.append(trial_result(trial, parsed))
        payloads[trial.name] = parsed.payload
    return trials, results, payloads


def generator_result(trial: Trial, outcome: Outcome) -> GeneratorResult:
    right = len(outcome.latencies)
    window = right / outcome.rate if outcome.rate else 1.0
    measured = phase(list(outcome.latencies), errors=outcome.errors, window=window)
    if outcome.uncorrected:
        late = zip(outcome.latencies, outcome.uncorrected, strict=True)
        measured["lateness"] = histogram([due - sent for due, sent in late])
        measured["endpoints"]["list"]["uncorrectedLatency"] = histogram([*outcome.uncorrected])
    measured["errors"] = {outcome.kind: outcome.errors}
    content = document(measured, busiestThread=outcome.busiest_thread)
    if outcome.search is not None:
        content["saturation"] = outcome.search
    parsed = parse_generator_output(line({**content, "trial": trial.name}))
    assert isinstance(parsed, GeneratorResult)
    return parsed


def summary_of(
    spec: BenchmarkRunSpec,
    script: Script,
    published: Published | None = None,
    failures: Mapping[str, tuple[str, str]] | None = None,
) -> Summary:
    trials, results, payloads = run(spec, script)
    return summarise(spec, trials, results, payloads, published, failures or {})
