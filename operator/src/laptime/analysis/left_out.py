"""Which servers have no figure to be compared by, under which loads, and why: in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from laptime.analysis import wording
from laptime.analysis.repeated import fewest_answers
from laptime.api.metrics import Metric
from laptime.api.results import ResultRow, Validity


class Why(Enum):
    """Why a row has no figure to be compared by."""

    NOT_MEASURED = auto()
    NO_RIGHT_ANSWER = auto()
    """It was asked, and no request had a right answer."""
    INVALID = auto()
    """It answered, and what it did was not the work, or not all of it."""
    REQUESTS_FAILED = auto()
    """The percentile fell among the requests without a right answer."""
    NO_REQUEST = auto()
    """A script that asked nothing by requests."""
    TOO_FEW = auto()
    """No trial had as many requests as the percentile needs."""


@dataclass(frozen=True)
class LeftOut:
    """A server without a figure under a load."""

    server: str
    load: str
    metric: Metric
    """The figure that servers are compared by under it."""
    why: Why
    reason: str | None = None
    """What the row says of it, where that is more than `why`."""


def left_out(row: ResultRow, metric: Metric) -> LeftOut:
    """Return why a row has no figure to be compared by."""
    if not row.trials:
        return LeftOut(row.server, row.load, metric, Why.NOT_MEASURED, row.reason)
    if row.requests == row.errors > 0:
        return LeftOut(row.server, row.load, metric, Why.NO_RIGHT_ANSWER)
    if row.validity is Validity.INVALID:
        reason = next(iter(row.validity_reasons), None)
        return LeftOut(row.server, row.load, metric, Why.INVALID, reason)
    figure = row.response_time(metric) if metric.is_latency else None
    if figure is not None and figure.seconds is None:
        return LeftOut(row.server, row.load, metric, Why.REQUESTS_FAILED)
    why = Why.TOO_FEW if row.requests else Why.NO_REQUEST
    return LeftOut(row.server, row.load, metric, why)


def nobody(found: Sequence[LeftOut], somewhere: bool, *, tried: bool) -> tuple[str, list[LeftOut]]:
    """Return why no server has a place, and what of it is still to be said one by one.

    `somewhere`: under one of several loads that are averaged some server has a figure. `tried`:
    a run that ended early may have had no time for it.
    """
    if somewhere:
        return "no server has a figure of one repetition under every load", list(found)
    whys = {one.why for one in found} - {Why.NOT_MEASURED}
    if not whys:
        return "no server could be measured" if tried else "nothing was measured", list(found)
    rest = [one for one in found if one.why not in whys]
    if whys == {Why.TOO_FEW}:
        figures = dict.fromkeys(one.metric for one in found if one.why is Why.TOO_FEW)
        named = wording.listing([wording.metric(one) for one in figures])
        fewest = max(map(fewest_answers, figures))
        return (
            f"servers are compared by {named}, and no trial had the {fewest} requests that one "
            "needs: a longer duration, or a higher rate, would tell"
        ), rest
    if whys == {Why.NO_REQUEST}:
        return "no request was counted; the metrics of the scripts are in the results", rest
    return "no server has a figure that counts", list(found)


def clauses(found: Sequence[LeftOut]) -> list[str]:
    """Return in words who is left out, once for loads that say the same of the same servers."""
    said: dict[tuple[str, str], dict[str, str]] = {}
    for one in found:
        name = f"{one.server} ({one.reason})" if one.reason else one.server
        said.setdefault((one.load, _words(one)), {})[one.server] = name
    loads: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (load, words), names in said.items():
        loads.setdefault((words, tuple(names.values())), []).append(load)
    return [
        f"under {wording.listing(where)} {words}: {wording.listing(names)}"
        for (words, names), where in loads.items()
    ]


def _words(one: LeftOut) -> str:
    what = wording.metric(one.metric)
    return {
        Why.NOT_MEASURED: "not measured",
        Why.NO_RIGHT_ANSWER: "without a right answer",
        Why.INVALID: "invalid",
        Why.REQUESTS_FAILED: f"no {what}, since requests failed",
        Why.NO_REQUEST: "no request was counted",
        Why.TOO_FEW: f"no trial had the {fewest_answers(one.metric)} requests that {what} needs",
    }[one.why]
