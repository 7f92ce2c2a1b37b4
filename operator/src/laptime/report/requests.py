"""What each request of a load was answered like, where it sends several."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from laptime.analysis import wording
from laptime.analysis.repeated import fewest_answers
from laptime.api.loads import Load
from laptime.api.metrics import Metric
from laptime.api.results import Figures, ResponseTimes, TrialResult, Validity
from laptime.report.small_table import SmallTable


def request_tables(trials: Sequence[TrialResult], load: Load) -> list[SmallTable]:
    """Return the table of a load; none where it sends one request, or what a script likes."""
    lines = tuple(_lines([one for one in trials if one.load == load.name]))
    if load.script is not None or len({line[1] for line in lines}) < 2:
        return []
    caption = "Each request: of the repetitions the middle one"
    headings = ("Server", "request", "requests", "errors", "requests/s", "p50", "p99")
    return [SmallTable(caption, headings, lines)]


def _lines(trials: Sequence[TrialResult]) -> Iterable[tuple[str, ...]]:
    by_request: dict[tuple[str, str], list[tuple[TrialResult, Figures]]] = {}
    known: Counter[str] = Counter()
    for trial in trials:
        known[trial.server] += bool(trial.endpoints) and trial.validity is not Validity.INVALID
        for name, figures in trial.endpoints.items():
            by_request.setdefault((trial.server, name), []).append((trial, figures))
    for (server, name), measured in sorted(by_request.items(), key=lambda one: one[0][0]):
        every = [figures for _, figures in measured]
        # As in the row: of what is invalid only the numbers are said.
        counted = [one for trial, one in measured if trial.validity is not Validity.INVALID]
        rates = [one.requests_per_second for one in counted]
        # A repetition may send none of a request that is seldom sent.
        rates += [0.0] * (known[server] - len(rates))
        yield (
            server,
            name,
            f"{sum(one.requests for one in every):,}",
            f"{sum(one.errors for one in every):,}",
            wording.number(median(rates)) if rates else "-",
            _middle(counted, Metric.P50, lambda times: times.p50_seconds),
            _middle(counted, Metric.P99, lambda times: times.p99_seconds),
        )


def _middle(
    counted: Sequence[Figures], metric: Metric, part: Callable[[ResponseTimes], float | None]
) -> str:
    """Return the middle percentile; one that was not reached is longer than any other.

    `-` where there is none: nobody sent the request, it is not known of a repetition, or one sent
    so few that it would be the slowest.
    """
    sent = [one for one in counted if one.requests]
    if not sent or min(one.requests for one in sent) < fewest_answers(metric):
        return "-"
    # An older version's were of right answers alone, which is not what all requests took.
    if any(one.latency is None and one.errors < one.requests for one in sent):
        return "-"
    values = [part(one.latency) if one.latency else None for one in sent]
    middle = median(math.inf if value is None else value for value in values)
    return wording.latency(None if math.isinf(middle) else middle)
