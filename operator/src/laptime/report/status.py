"""The rows as they fit into the status of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from laptime.analysis.script import first_metrics
from laptime.api.doubts import MORE_DOUBTS
from laptime.api.results import Interval, LatencyFigure, LatencyFigures, ResultRow
from laptime.api.script import ScriptFigures
from laptime.report.scripts import says_more

MAX_STATUS_BYTES = 400_000
"""The API server stores at most 1.5 MiB of an object, and keeps who set each field beside it."""
MAX_METRICS = 20
"""Of a script, in each row; the results have more."""


def status_rows(rows: Sequence[ResultRow], max_bytes: int = MAX_STATUS_BYTES) -> list[ResultRow]:
    """Return the rows, with shorter texts where there are too many of them.

    Figures stay, but for response times from sent, what scripts say, intervals of response times,
    and those of all repetitions together, in a run that is too large even without texts:
    results.json has them. What stays is what the report has.
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
                    "published_missing": (row.published_missing or "")[:length] or None,
                    "validity_reasons": _first(row.validity_reasons, texts, length),
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
    shorter = [estimates_alone(row) for row in shorter]
    yield shorter
    # Nobody reads them where the figures are.
    yield [row.model_copy(update={"latency": None}) for row in shorter]


def _first(reasons: Sequence[str], texts: int, length: int) -> list[str]:
    """Return so many of the reasons, cut, and that there are more, which a gate has to know.

    What is cut is one of them: nobody can tell any more which doubt it is.
    """
    first = [one[:length] for one in reasons[:texts]]
    lacking = len(reasons) - sum(len(one) <= length for one in reasons[:texts])
    if first and lacking:
        first.append(MORE_DOUBTS.says(others=lacking))
    return first


def estimates_alone(row: ResultRow) -> ResultRow:
    """Return a row with its response times over the repetitions, without intervals and factors.

    Those of all repetitions together are other figures, and never stand in their place.
    """
    return row.model_copy(
        update={
            "latency_figures": _estimates(row.latency_figures),
            "uncorrected_figures": _estimates(row.uncorrected_figures),
        }
    )


def _estimates(figures: LatencyFigures | None) -> LatencyFigures | None:
    if figures is None:
        return None
    return figures.model_copy(update={name: _estimate(figure) for name, figure in figures})


def _estimate(figure: LatencyFigure | None) -> LatencyFigure | None:
    if figure is None:
        return None
    seconds = figure.seconds and Interval(value=figure.seconds.value)
    return LatencyFigure(seconds=seconds, failed=figure.failed)


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
