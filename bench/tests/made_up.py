"""A benchmark that was never measured, for the tests of tables and documents."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from measured import Measured

from laptime.analysis import Summary
from laptime.api.causes import Cause, LimitedBy
from laptime.api.results import Figures, Interval, ResultRow, RowState, TrialOutcome, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import scenarios
from laptime.report import Report

SERVERS = {"sync": "fastapi-sync", "async": "fastapi-async", "axum": "axum-sqlx"}
AS_PUBLISHED = {"sync": 400.0, "async": 1600.0, "axum": 4000.0}
WOBBLE = (1.0, 1.004, 0.997)
EVIDENCE = "the server used 0.98 of its 1 core | on host-7"


def measured(
    rates: Mapping[str, float] = AS_PUBLISHED, connections: int = 10, **changes: Any
) -> Measured:
    """Return a benchmark with these requests/s; `changes` are those of the row of axum."""
    spec = BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": [{"name": name, "preset": preset} for name, preset in SERVERS.items()],
            "loads": [
                {
                    "name": "closed",
                    "closed": {"connections": connections, "duration": "6s", "keepAlive": False},
                }
            ],
            "repetitions": len(WOBBLE),
        }
    )
    published = scenarios()["users"].published
    assert published is not None
    rows = tuple(
        ResultRow(
            server=name,
            load="closed",
            state=RowState.MEASURED,
            trials=len(WOBBLE),
            requests_per_second=_around(rate),
            factor=_around(rate / rates["sync"]),
            published_factor=published.factor(spec, name, "closed"),
            limited_by=LimitedBy(cause=Cause.SERVER_CPU, evidence=EVIDENCE),
        ).model_copy(update=changes if name == "axum" else {})
        for name, rate in rates.items()
    )
    trials = [
        TrialResult(
            trial=f"{name}-{repetition}",
            ordinal=repetition,
            server=name,
            load="closed",
            repetition=repetition,
            outcome=TrialOutcome.MEASURED,
            figures=Figures(
                requests=1000, errors=0, window_seconds=6, requests_per_second=rate * wobble
            ),
        )
        for name, rate in rates.items()
        for repetition, wobble in enumerate(WOBBLE, start=1)
    ]
    summary = Summary(
        rows=rows,
        fastest="axum",
        fastest_factor="10.0x",
        verdict="axum is fastest: 10.0x",
        objectives=(),
        control=(),
        ties=(),
        half_width=None,
        finished=True,
    )
    report = Report("users", "default", spec, 1, summary, trials, published=published)
    return Measured("users", report, 190.4)


def _around(value: float) -> Interval:
    return Interval(value=value, low=value * math.exp(-0.01), high=value * math.exp(0.01))
