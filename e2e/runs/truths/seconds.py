"""What is true of the seconds of trials: what the generators counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import grafana
from .facts import Facts
from .grafana import Answers, Series
from .lines import Line, cores_of
from .results import Truth

_Points = dict[tuple[Any, ...], float]


def _by_step(facts: Facts, series: Iterable[Series], *labels: str) -> _Points:
    """Return what is drawn, by labels and by the step of the time range."""
    return {
        (*(one.labels[label] for label in labels), round(at - facts.begin)): value
        for one in series
        for at, value in one.samples
    }


def _compared(
    said: _Points, true: Mapping[tuple[Any, ...], tuple[float, bool | None]]
) -> Iterator[str]:
    """Yield what is drawn and not true, or not drawn though it has to be; None: it may be."""
    for key, value in said.items():
        right, drawn = true.get(key, (math.nan, False))
        if drawn is False:
            yield f"draws {value} at {key}, where nothing is to be drawn"
        elif not math.isclose(value, right, rel_tol=1e-6):
            yield f"draws {value} at {key}, where {right} is right"
    if missing := [key for key, (_, drawn) in true.items() if drawn and key not in said]:
        yield f"does not draw {missing[:5]}"


def requests(facts: Facts, _: dict[str, Any], answers: Answers) -> Iterator[str]:
    """Compare each second that was counted; of the trial of the moment there is no result yet."""
    true = {
        (trial["server"], trial["load"], step): (float(row.requests), drawn)
        for trial, step, row, drawn in facts.seconds
    }
    yield from _compared(_by_step(facts, answers["A"], "server", "load"), true)
    yield from Line("live").wrong(facts, answers["B"], "{{server}}, {{load}}: live")


def response_times(facts: Facts, _: dict[str, Any], answers: Answers) -> Iterator[str]:
    """Compare the percentiles of each second with the fastest and the slowest answer of the trial.

    What is stored of a second is how many answers there were, and not how long they took.
    """
    said = _by_step(facts, answers["A"], "quantile", "server", "load")
    usual, long = (
        {key[1:]: value for key, value in said.items() if key[0] == one} for one in ("0.5", "0.99")
    )
    for trial, step, row, drawn in facts.seconds:
        key = (trial["server"], trial["load"], step)
        p50, p99 = usual.pop(key, None), long.pop(key, None)
        if p50 is None or p99 is None:
            if drawn and row.requests > row.errors:
                yield f"does not draw {key}"
            continue
        latency = trial["figures"]["latency"]
        least, most = 0.99 * latency["minSeconds"], 1.01 * latency["maxSeconds"]
        if drawn is False or not least <= p50 <= p99 <= most:
            yield f"draws {p50} and {p99} at {key}, not {least} to {most}"
    if usual or long:
        yield f"draws {[*usual, *long][:5]}, where nothing was measured"


def errors(*by: str) -> Truth:
    """Return what is true of errors by kind, added up over the time; zeros say that none were."""

    def compare(facts: Facts, _: dict[str, Any], answers: Answers) -> Iterator[str]:
        true: Counter[tuple[str, ...]] = Counter()
        for trial, _step, row, _drawn in facts.seconds:
            for kind, count in {**row.kinds, "dropped": row.dropped}.items():
                true[(*(trial[key] for key in by), kind)] += count
        said: Counter[tuple[str, ...]] = Counter()
        for one in answers["A"]:
            count = round(sum(value for _, value in one.samples))
            said[(*(one.labels[label] for label in by), one.labels["kind"])] += count
        # Of a run that goes on the newest seconds may be in one of the two alone.
        if said != true and facts.over:
            yield f"says {+said}, where {+true} is right"
        if bool(answers["A"]) is not bool(facts.seconds):
            yield f"{len(answers['A'])} lines of {len(facts.seconds)} seconds"

    return compare


def over_each_other(field: str) -> Truth:
    """Return what is true of the seconds of all trials laid over each other."""

    def compare(facts: Facts, panel: dict[str, Any], answers: Answers) -> Iterator[str]:
        labels = ("server", "load", "repetition")
        said = {
            (*(row[label] for label in labels), row["Since start"]): row[field]
            for row in grafana.rows(panel, answers)
            if field in row
        }
        true = {
            (*(str(trial[label]) for label in labels), row.t + 1.0): (float(row.requests), drawn)
            for trial, _, row, drawn in facts.seconds
        }
        if field == "Requests/s":
            yield from _compared(said, true)
            return
        for (server, *rest), cores in said.items():
            if not 0 <= cores <= cores_of(facts, "server", server):
                yield f"{cores} cores of {server} {rest}"
        if not said.keys() <= true.keys() or bool(said) is not bool(true):
            yield f"draws {sorted(said.keys() - true.keys())} and {len(said)} of {len(true)}"

    return compare
