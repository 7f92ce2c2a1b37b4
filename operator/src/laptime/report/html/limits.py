"""What limited whom, and what each part used: over the repetitions of a server under a load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from laptime.analysis import wording
from laptime.api.results import TrialResult, Validity
from laptime.api.usage import ComponentUsage, Source
from laptime.report.contents import Report


@dataclass(frozen=True)
class Limit:
    """What limited a server under a load."""

    server: str
    cause: str
    """In words; empty when no trial says."""
    agreement: str
    """Such as `5 of 5`: the repetitions that say the same."""
    evidence: str
    also: str
    tried: tuple[str, ...] = ()
    """What experiments found."""


def limits(report: Report, load: str) -> list[Limit]:
    """Return what the rows of a load say limited each server that was measured."""
    found, trials = [], report.trials
    for row in report.summary.rows:
        if row.load != load:
            continue
        tried = tuple(
            f"{said} ({one.name})" for one in report.experiments_on(row) for said in one.found
        )
        of_row = [one for one in trials if one.load == load]
        measured = [one for one in counted(of_row, [row.server]) if one.figures is not None]
        limited = row.limited_by
        if limited is not None:
            count = sum(
                one.limited_by is not None and one.limited_by.cause is limited.cause
                for one in measured
            )
            also = wording.listing([wording.cause(one) for one in limited.also])
            agreement = f"{count} of {len(measured)}" if measured else ""
            cause = wording.cause(limited.cause)
            found.append(Limit(row.server, cause, agreement, limited.evidence, also, tried))
        elif measured:
            found.append(Limit(row.server, "", "", _why_not(measured), "", tried))
    return found


def _why_not(measured: Sequence[TrialResult]) -> str:
    if all(one.usage is None or one.usage.source is Source.NOBODY for one in measured):
        return "nobody watched its pods"
    return "not judged"


@dataclass(frozen=True)
class Use:
    """What one component used under a load, over the repetitions of a server."""

    server: str
    component: str
    cores: str
    """Mean over the repetitions."""
    peak_cores: str
    throttled: str
    memory: str
    nodes: str
    """Where it ran, by name."""


def counted(trials: Sequence[TrialResult], servers: Iterable[str]) -> list[TrialResult]:
    """Return the trials of a load that figures and charts are made of.

    As in the row: those of a server that do not count there do not count here, if others do.
    In the order of the spec, as everywhere on the page.
    """
    found = []
    for server in servers:
        measured = [one for one in trials if one.server == server]
        valid = [one for one in measured if one.validity is not Validity.INVALID]
        found += sorted(valid or measured, key=lambda one: one.ordinal)
    return found


def usage(trials: Sequence[TrialResult], servers: Iterable[str]) -> list[Use]:
    """Return what was used, by server and component; empty when nobody watched.

    `trials` are those of a load that count.
    """
    found = []
    for server in servers:
        by_component: dict[str, list[ComponentUsage]] = {}
        for trial in trials:
            if trial.server != server:
                continue
            for one in trial.usage.components if trial.usage else ():
                by_component.setdefault(one.component, []).append(one)
        for component, used in by_component.items():
            found.append(
                Use(
                    server,
                    component,
                    _said(fmean, [one.cores_mean for one in used], wording.cores),
                    _said(max, [one.cores_peak for one in used], wording.cores),
                    _said(fmean, [one.throttled_share for one in used], wording.share),
                    _said(max, [one.working_set_bytes for one in used], wording.memory),
                    ", ".join(sorted({name for one in used for name in one.nodes})) or "-",
                )
            )
    return found


def cores_by_second(
    trials: Iterable[TrialResult],
) -> dict[str, dict[str, list[dict[int, float]]]]:
    """Return CPU cores by second since the start of the measured phase of each repetition.

    By component, and in it by the server that was measured; components without samples are not
    in it. `trials` are those of a load that count.
    """
    found: dict[str, dict[str, list[dict[int, float]]]] = {}
    for trial in trials:
        used = trial.usage.components if trial.usage else []
        for name in sorted({one.component for one in used}):
            part = trial.usage.component(name, trial.server) if trial.usage else None
            if part is not None and part.cores_over_time is not None:
                of_server = found.setdefault(name, {}).setdefault(trial.server, [])
                of_server.append(part.cores_over_time.by_second())
    return found


def watchers(trials: Iterable[TrialResult]) -> str:
    """Return who watched the pods, and what is missing, as sentences."""
    all_trials = [trial for trial in trials if trial.figures is not None]
    sources = Counter(
        str(trial.usage.source) if trial.usage else str(Source.NOBODY) for trial in all_trials
    )
    nobody = sources.pop(str(Source.NOBODY), 0)
    if not sources:
        said = (
            "Nobody watched the pods while this was measured: there are no figures of CPU and "
            "memory, and what limited a server, or whether a CPU limit held something back, cannot "
            "be told."
        )
        if any(trial.usage.nodes for trial in all_trials if trial.usage):
            return (
                f"{said} Their nodes were watched: the chart value watching.namespaces has to name "
                "the namespace of the run."
            )
        return (
            f"{said} The chart values agent.enabled and prometheus.enabled turn it on, for the "
            "namespaces of watching.namespaces."
        )
    who = wording.listing([f"the {source}" for source in sources])
    said = f"The pods were watched by {who}."
    if nobody:
        said += f" {nobody} of {len(all_trials)} trials were not watched."
    gaps = Counter(gap for trial in all_trials if trial.usage for gap in trial.usage.gaps)
    if gaps:
        said += " Missing: " + "; ".join(gap for gap, _ in gaps.most_common(3)) + "."
    return said


def _said(
    together: Callable[[Sequence[float]], float],
    values: Iterable[float | None],
    written: Callable[[float], str],
) -> str:
    known = [value for value in values if value is not None]
    return written(together(known)) if known else "-"
