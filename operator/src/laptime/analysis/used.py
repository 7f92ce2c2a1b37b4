"""What a server used and what limited it, over all repetitions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from laptime.analysis import wording
from laptime.api.causes import Cause, LimitedBy
from laptime.api.results import TrialResult
from laptime.api.usage import ComponentUsage, RowUsage, Source

_MIB = 2**20
_TEXT = 300


def row_usage(measured: Sequence[TrialResult]) -> RowUsage | None:
    """Return what a server used in its measured trials under a load; None when nobody watched."""
    read = [one for one in measured if one.usage is not None]
    if not read:
        return None
    parts = [(one, part) for one in read if (part := _server(one)) is not None]
    worked = [(one, part.cpu_seconds) for one, part in parts if part.cpu_seconds]
    answers = math.fsum(_answers(one) for one, _ in worked)
    cpu = math.fsum(seconds for _, seconds in worked)
    held = [(one, part.working_set_bytes) for one, part in parts if part.working_set_bytes]
    memory = max((size for _, size in held), default=None)
    rates = [one.figures.requests_per_second for one, _ in held if one.figures is not None]
    source = _worst_source(read)
    return RowUsage(
        source=source,
        cores_mean=_mean([part.cores_mean for _, part in parts]),
        cores_peak=max((p.cores_peak for _, p in parts if p.cores_peak is not None), default=None),
        memory_bytes=memory,
        requests_per_cpu_second=answers / cpu if cpu > 0 else None,
        requests_per_second_per_mib=fmean(rates) * _MIB / memory if memory else None,
        unwatched=None if source is Source.NOBODY else _unwatched(measured) or None,
        doubts=_doubts(measured),
    )


def statements_per_request(measured: Sequence[TrialResult]) -> float | None:
    """Return the statements per right answer of the trials whose statements were counted."""
    counted = [one for one in measured if one.statements is not None and one.figures is not None]
    right = sum(one.figures.requests - one.figures.errors for one in counted if one.figures)
    ran = sum(one.statements or 0 for one in counted)
    return ran / right if right > 0 else None


def row_cause(measured: Sequence[TrialResult]) -> LimitedBy | None:
    """Return what limited a server in most of its trials, as the middle one of them says it.

    Of causes in as many trials, a known one counts before `unknown`.
    """
    said = [(one, one.limited_by) for one in measured if one.limited_by is not None]
    if not said:
        return None
    counts = Counter(cause.cause for _, cause in said)
    most = max(counts, key=lambda cause: (counts[cause], cause is not Cause.UNKNOWN))
    like = sorted(
        ((one, cause) for one, cause in said if cause.cause is most),
        key=lambda item: item[0].figures.requests_per_second if item[0].figures else 0.0,
    )
    middle = like[len(like) // 2][1]
    others = [cause for cause, _ in counts.most_common() if cause is not most]
    also = dict.fromkeys([*others, *middle.also])
    evidence = middle.evidence
    if len(like) < len(said):
        evidence += f" (so in {len(like)} of {len(said)} repetitions)"
    return LimitedBy(
        cause=most,
        evidence=evidence[:_TEXT],
        also=[cause for cause in also if cause not in (most, Cause.UNKNOWN)],
    )


def _server(result: TrialResult) -> ComponentUsage | None:
    return result.usage.component("server", result.server) if result.usage else None


def _answers(result: TrialResult) -> float:
    figures = result.figures
    return figures.requests_per_second * figures.window_seconds if figures else 0.0


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _worst_source(read: Sequence[TrialResult]) -> Source:
    sources = {one.usage.source for one in read if one.usage is not None}
    order = (Source.KUBELET, Source.AGENT, Source.NOBODY)
    return next(source for source in order if source in sources)


def _unwatched(measured: Sequence[TrialResult]) -> int:
    # Readings come after a result: of those after the last ones that are there they may still come.
    last = max((one.repetition for one in measured if one.usage is not None), default=0)
    return sum(
        one.repetition < last if one.usage is None else one.usage.source is Source.NOBODY
        for one in measured
    )


def _doubts(measured: Sequence[TrialResult]) -> list[str]:
    missing = [one for one in measured if one.usage is None or not one.usage.complete]
    if not missing:
        return []
    gaps = [gap for one in missing if one.usage is not None for gap in one.usage.gaps]
    why = gaps[0] if gaps else "no readings"
    of = wording.repetitions(len(measured))
    said = f"readings are incomplete in {len(missing)} of {of}: {why}"
    return [said[:_TEXT]]
