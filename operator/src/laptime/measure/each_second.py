"""What a trial's generators counted in each second, as series for Prometheus under their own time.

The operator hands them on when the trial is over, and nobody else may: it alone says of which run
and trial they are (docs/decisions/0017-each-second-in-prometheus.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from laptime.api.text import shown
from laptime.measure.figures import right_answers_by_second
from laptime.measure.generator import (
    GeneratorPhase,
    GeneratorResult,
    GeneratorSecond,
    parse_payload,
)
from laptime.measure.promql import QUERY_PATH, PrometheusError, Query
from laptime.measure.sparse_histogram import SparseHistogram

REQUESTS = "laptime_second_requests"
ERRORS = "laptime_second_errors"
LATENCY = "laptime_second_latency_seconds"
QUANTILE = "laptime_second_latency_quantile_seconds"
ELAPSED = "laptime_second_elapsed_seconds"

QUANTILES = {"0.5": 0.5, "0.99": 0.99}
"""Those that pictures draw of each second, by their label: out of the histogram Prometheus would
have to make them for each look at it, which costs several times as much, and some take none."""

PHASES = ("warmup", "measured")
KINDS = frozenset(
    ("timeout", "connect", "port", "reset", "status", "body", "check", "capture", "other")
)
"""Those of the generator: what it says of itself may have no other label in Prometheus."""
DROPPED = "dropped"
"""The kind of requests that were due and given up unsent, which the generator counts apart."""
NO_ERROR = "none"
"""The kind of a phase without any error: a series of zeros says so, and no series says nothing."""

_LONGEST_SECONDS = 100_000
"""More than a run may last: what a generator says of later seconds is not true."""


@dataclass(frozen=True)
class PhaseSeconds:
    """The seconds of one phase; times are Unix milliseconds, that of the end of each second."""

    requests: tuple[tuple[int, int], ...]
    errors: Mapping[str, tuple[tuple[int, int], ...]]
    """By kind, with all seconds in each; those that were dropped are in no second's requests."""
    elapsed: tuple[tuple[int, int], ...]
    """Of whole seconds alone: those since the phase began, to lay trials over each other."""
    latency: tuple[tuple[int, SparseHistogram], ...]
    """Right answers of each second; of a long trial, of two, four or more at the last of them."""
    quantiles: Mapping[str, tuple[tuple[int, float], ...]]
    """Seconds, by the label of the share: of those histograms that end with a whole second."""


@dataclass(frozen=True)
class TrialSeconds:
    """All seconds of a trial, by phase, and the labels that all of its series have."""

    labels: Mapping[str, str]
    phases: Mapping[str, PhaseSeconds]

    @property
    def span(self) -> tuple[float, float]:
        """When the first sample and when the last one is, in Unix seconds.

        Raises:
            ValueError: there are no samples.
        """
        times = [phase.requests[at][0] for phase in self.phases.values() for at in (0, -1)]
        return min(times) / 1000, max(times) / 1000


def trial_seconds(payload: str, labels: Mapping[str, str]) -> TrialSeconds | None:
    """Return the seconds in a generator's result; None where there are none to be had."""
    parsed = parse_payload(payload) if payload else None
    if not isinstance(parsed, GeneratorResult):
        return None
    phases = {
        name: _of_phase(parsed.phases[name], of_script=parsed.script is not None)
        for name in PHASES
        if name in parsed.phases and parsed.phases[name].seconds
    }
    found = {name: phase for name, phase in phases.items() if phase.requests}
    return TrialSeconds(dict(labels), found) if found else None


def _of_phase(phase: GeneratorPhase, *, of_script: bool) -> PhaseSeconds:
    begin = phase.started_at or phase.first_request_at
    # Each second once, in their order, whatever was written.
    rows = {row.t: row for row in phase.seconds if row.t < _LONGEST_SECONDS}
    times = {t: round(1000 * (begin + t + 1)) for t in sorted(rows)}
    errors = {t: _errors_of(rows[t]) for t in times}
    kinds = sorted({kind for counts in errors.values() for kind in counts})
    # What a script drops are iterations and no requests. When one was dropped an older generator
    # does not say: then nobody knows of the seconds whether they had errors.
    if not kinds and (of_script or not phase.dropped_iterations):
        kinds = [NO_ERROR]
    latencies = {t: SparseHistogram.decode(rows[t].latency or []) for t in times}
    # Of a phase shorter than a second there is nothing else to draw.
    whole = right_answers_by_second(phase) or times
    return PhaseSeconds(
        requests=tuple((at, rows[t].requests) for t, at in times.items()),
        errors={
            kind: tuple((at, errors[t].get(kind, 0)) for t, at in times.items()) for kind in kinds
        },
        elapsed=tuple((at, t + 1) for t, at in times.items() if t in whole),
        latency=tuple((at, latencies[t]) for t, at in times.items() if latencies[t]),
        quantiles={
            label: tuple(
                (at, latencies[t].quantile(share))
                for t, at in times.items()
                if latencies[t] and t in whole
            )
            for label, share in QUANTILES.items()
        },
    )


def _errors_of(row: GeneratorSecond) -> dict[str, int]:
    """Return the errors of a second by kind: those of a kind that nobody knows are others."""
    known = {kind: count for kind, count in row.kinds.items() if kind in KINDS and count}
    rest = row.errors - sum(known.values())
    if rest > 0:
        known["other"] = known.get("other", 0) + rest
    if row.dropped:
        known[DROPPED] = row.dropped
    return known


@dataclass(frozen=True)
class Stored:
    """How much of a trial's seconds Prometheus has."""

    seconds: int
    seconds_missing: int

    @property
    def problem(self) -> str | None:
        """What is missing, in words; None when nothing is."""
        if self.seconds_missing > 0:
            return f"Prometheus has {self.seconds - self.seconds_missing} of {self.seconds} seconds"
        return None


async def stored(query: Query, series: TrialSeconds) -> Stored:
    """Return how much Prometheus has of the seconds of a trial.

    One scrape brings all that is said of a second, but for native histograms where they are not
    taken: pictures do not need them.

    Raises:
        PrometheusError: Prometheus refused a query or cannot be reached.
    """
    seconds = sum(len(phase.requests) for phase in series.phases.values())
    return Stored(seconds, seconds - await _samples(query, series))


async def _samples(query: Query, series: TrialSeconds) -> int:
    begin, end = series.span
    wanted = ",".join(
        f"{name}={json.dumps(series.labels[name], ensure_ascii=False)}"
        for name in ("namespace", "run", "trial")
    )
    # Two Prometheus with one Thanos in front have two copies of a series: one that lacks seconds is
    # not made whole by the other one.
    span = f"{int(1000 * (end - begin)) + 2000}ms"
    counts = f"count_over_time({REQUESTS}{{{wanted}}}[{span}])"
    promql = f"sum(max by (phase, whole) ({counts}))"
    answer = await query(QUERY_PATH, {"query": promql, "time": f"{end + 1:.3f}"})
    if answer.get("status") != "success":
        raise PrometheusError(shown(str(answer.get("error", "no status")), 500))
    try:
        result = answer["data"]["result"]
        return int(float(result[0]["value"][1])) if result else 0
    except (KeyError, IndexError, TypeError, ValueError):
        raise PrometheusError("a count was expected, and another answer came") from None
