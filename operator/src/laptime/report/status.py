"""The rows as they fit into the status of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from laptime.analysis.repeated import LATENCIES
from laptime.analysis.script import first_metrics
from laptime.api.results import LatencyFigures, ResponseTimes, ResultRow
from laptime.api.script import ScriptFigures
from laptime.report.scripts import says_more

MAX_STATUS_BYTES = 400_000
"""The API server stores at most 1.5 MiB of an object, and keeps who set each field beside it."""
MAX_METRICS = 20
"""Of a script, in each row; the results have more."""


def status_rows(rows: Sequence[ResultRow], max_bytes: int = MAX_STATUS_BYTES) -> list[ResultRow]:
    """Return the rows, with shorter texts where there are too many of them.

    Figures stay, but for response times from sent, what scripts say, and intervals of response
    times, in a run that is too large even without texts: results.json has them.
    """
    shortened: list[ResultRow] = []
    for candidate in _shorter_and_shorter(rows):
        shortened = candidate
        if len(json.dumps([row.to_wire() for row in candidate]).encode()) <= max_bytes:
            break
    return shortened


def _shorter_and_shorter(rows: Sequence[ResultRow]) -> Iterator[list[ResultRow]]:
    rows = [
        row.model_copy(update={"script": _with_metrics(row.script, MAX_METRICS)})
        if row.script
        else row
        for row in rows
    ]
    shorter = list(rows)
    yield shorter
    for texts, length in ((1, 200), (1, 80), (0, 0)):
        shorter = [
            row.model_copy(
                update={
                    "message": row.message[:length] if row.message and length else None,
                    "validity_reasons": [one[:length] for one in row.validity_reasons[:texts]],
                    "limited_by": row.limited_by
                    and row.limited_by.model_copy(
                        update={"evidence": row.limited_by.evidence[:length]}
                    ),
                    "usage": row.usage
                    and row.usage.model_copy(
                        update={"doubts": [one[:length] for one in row.usage.doubts[:texts]]}
                    ),
                    "script": row.script and _shorter(row.script, 3 * texts),
                }
            )
            for row in rows
        ]
        yield shorter
    of_sent = ("uncorrected_latency", "uncorrected_figures")
    for parts in (of_sent, ("script",)):
        shorter = [row.model_copy(update=dict.fromkeys(parts)) for row in shorter]
        yield shorter
    yield [without_figures(row) for row in shorter]


def without_figures(row: ResultRow) -> ResultRow:
    """Return a row with the response times of all repetitions together, and no others of them.

    What fell among failed requests in some repetitions is *failed* in their figures, and is here.
    """
    return row.model_copy(
        update={
            "latency": _together(row.latency, row.latency_figures),
            "latency_figures": None,
            "uncorrected_latency": _together(row.uncorrected_latency, row.uncorrected_figures),
            "uncorrected_figures": None,
        }
    )


def _together(times: ResponseTimes | None, figures: LatencyFigures | None) -> ResponseTimes | None:
    if times is None or figures is None:
        return times
    failed = [
        metric
        for metric in LATENCIES
        if metric.share is not None
        if (figure := figures.of(metric)) is not None and figure.failed
    ]
    return times.model_copy(update={f"{metric.value}_seconds": None for metric in failed})


def _with_metrics(script: ScriptFigures, most: int) -> ScriptFigures:
    """Return what a script says with so many of the metrics that say more than the row."""
    metrics = first_metrics([one for one in script.metrics if says_more(one)], most)
    return script.model_copy(update={"metrics": metrics})


def _shorter(script: ScriptFigures, most: int) -> ScriptFigures:
    """Return what a script says with so many checks and thresholds, those that failed most."""
    failed = [check for check in script.checks if check.failed]
    return script.model_copy(
        update={
            "checks": failed[:most],
            "thresholds": script.thresholds[:most],
            "other_hosts": script.other_hosts[:most],
            "exceptions": script.exceptions[:most],
            "metrics": [],
            "warnings": script.warnings[:most],
        }
    )
