"""Results of trials as large as they can be, and what tells the memory that is held."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from laptime.api.results import (
    Figures,
    Interval,
    Latency,
    ResponseTimes,
    TrialOutcome,
    TrialResult,
)
from laptime.api.script import CheckResult, ScriptFigures, ScriptMetric, ThresholdResult
from laptime.plan import Trial

_KINDS = ("trend", "trend", "counter", "rate", "gauge")


@contextmanager
def traced() -> Iterator[Callable[[], tuple[int, int]]]:
    """Yield what tells the bytes that are held now, and the most at any time, since it began."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]

    def now_and_most() -> tuple[int, int]:
        now, most = tracemalloc.get_traced_memory()
        return now - before, most - before

    try:
        yield now_and_most
    finally:
        tracemalloc.stop()


def large_result(trial: Trial, *, metrics: int = 0, endpoints: int = 0) -> TrialResult:
    """Return a measured result with so many metrics of a script, and figures of its requests.

    The same one for the same trial.
    """
    random = Random(trial.ordinal)
    return TrialResult(
        trial=trial.name,
        ordinal=trial.ordinal,
        server=trial.server,
        load=trial.load,
        repetition=trial.repetition,
        outcome=TrialOutcome.MEASURED,
        images={"server": f"registry/server@sha256:{'a' * 64}"},
        nodes={"server": ["node-1"], "generator": ["node-2"]},
        started_at="2026-01-01T00:00:00.000Z",
        finished_at="2026-01-01T00:00:20.000Z",
        figures=_figures(random),
        endpoints={f"GET /shop/items/{n:03d}": _figures(random) for n in range(endpoints)},
        generator_share=0.25,
        script=_script(random, metrics) if metrics else None,
    )


def _figures(random: Random) -> Figures:
    rate = random.uniform(900, 1100)
    return Figures(
        requests=round(20 * rate),
        errors=0,
        window_seconds=20.0,
        requests_per_second=rate,
        latency=ResponseTimes.model_validate(_times(random)),
        server_time=Latency.model_validate(_times(random)),
    )


def _times(random: Random) -> dict[str, float]:
    names = ("min", "mean", "p50", "p80", "p90", "p99", "p999", "max")
    values = sorted(random.uniform(0.001, 0.2) for _ in names)
    return {f"{name}_seconds": value for name, value in zip(names, values, strict=True)}


def _script(random: Random, metrics: int) -> ScriptFigures:
    bound = Interval(value=random.uniform(1, 9))
    return ScriptFigures(
        warmup_named=True,
        iterations=1000,
        iteration_seconds=20.0,
        seconds=20.0,
        checks=[CheckResult(name=f"check {n}", passed=9, rate=1.0) for n in range(20)],
        thresholds=[
            ThresholdResult(metric=f"m{n:03d}", expression="p(95)<2000", met=True, measured=bound)
            for n in range(10)
        ],
        metrics=[_metric(random, number) for number in range(metrics)],
    )


def _metric(random: Random, number: int) -> ScriptMetric:
    kind, value = _KINDS[number % len(_KINDS)], random.uniform(1, 500)
    spread = {"min": value / 9, "max": 9 * value} if kind in ("trend", "gauge") else {}
    shares = {f"p{share}": value * share / 50 for share in (50, 90, 95, 99)}
    return ScriptMetric(
        name=f"shop_{number:03d}{{scenario:browse}}",
        type=kind,
        samples=2000,
        value=value / 500 if kind == "rate" else value,
        **spread,
        **(shares if kind == "trend" else {}),
    )
