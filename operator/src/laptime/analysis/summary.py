"""The figures of all trials together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.analysis.control import control_results
from laptime.analysis.objectives import evaluate
from laptime.analysis.ranking import rank, verdict
from laptime.analysis.ranks import ranks
from laptime.analysis.rows import cells_of, row_of
from laptime.analysis.script import compared_by, threshold_objectives
from laptime.analysis.stopping import given_up, widest_half_width
from laptime.api.results import (
    ControlResult,
    ObjectiveResult,
    ResultRow,
    TrialResult,
    Validity,
)
from laptime.api.script import ComparedBy
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Published
from laptime.plan import Trial

_NAMED = 2


@dataclass(frozen=True)
class Summary:
    """What a run measured, as far as it is."""

    rows: tuple[ResultRow, ...]
    """Load by load in the order of the spec, and in it the servers in their order."""
    fastest: str | None
    """The fastest server, or those that cannot be told apart, such as `axum or mine`."""
    fastest_factor: str | None
    """Its factor against the baseline, such as `25.1x`; over several loads the geometric mean."""
    verdict: str
    objectives: tuple[ObjectiveResult, ...]
    control: tuple[ControlResult, ...]
    """What the control arm says, load by load; empty without one."""
    half_width: float | None
    """Of the widest interval that the run is about, as a share."""
    finished: bool
    """Whether no trial is left that could still be measured."""


def summarise(
    spec: BenchmarkRunSpec,
    trials: Sequence[Trial],
    results: Sequence[TrialResult],
    payloads: Mapping[str, str],
    published: Published | None,
    server_failures: Mapping[str, tuple[str, str]],
) -> Summary:
    """Return the summary of a run at any time.

    `trials` are all planned ones, `results` those that are over, `payloads` the generator's
    results (base64 of gzipped JSON) by trial, `server_failures` the servers that never were
    measured with reason and message; those that were given up are found here.
    """
    failures = {**given_up(spec, results), **server_failures}
    cells = cells_of(trials, results, payloads, failures)
    by_load = {
        load.name: ranks(
            {
                server: cell.log_rates
                for (server, of), cell in cells.items()
                if of == load.name and server != spec.control_name
            }
        )
        for load in spec.loads
    }
    rows = tuple(
        row_of(
            cells[server.name, load.name],
            cells.get((spec.baseline_name, load.name)),
            published.factor(spec, server.name, load.name) if published else None,
            by_load[load.name].get(server.name),
        )
        for load in spec.loads
        for server in spec.servers
        if (server.name, load.name) in cells
    )
    over = {result.trial for result in results}
    finished = all(trial.name in over or trial.server in failures for trial in trials)
    ranking = rank(spec, cells)
    control = control_results(spec, cells)
    counted = [one for cell in cells.values() for one in cell.results]
    width = widest_half_width(spec, counted, [server.name for server in spec.servers])
    factor = ranking.factor(ranking.order[0]) if ranking.order else None
    return Summary(
        rows=rows,
        fastest=wording.listing(ranking.leaders, "or") or None,
        fastest_factor=f"{wording.number(factor.value)}x" if factor else None,
        verdict=verdict(
            spec, ranking, rows, failures, finished, _notes(spec, rows, width, control, finished)
        ),
        objectives=(*evaluate(spec.objectives, rows), *threshold_objectives(rows)),
        control=control,
        half_width=width,
        finished=finished,
    )


def _notes(
    spec: BenchmarkRunSpec,
    rows: Sequence[ResultRow],
    width: float | None,
    control: Sequence[ControlResult],
    finished: bool,
) -> list[str]:
    notes = []
    precision = spec.precision_share
    if precision is not None and finished and width is not None and width > precision:
        reached = f"intervals reach {wording.share(width)} to each side"
        notes.append(f"the precision of {spec.precision} was not reached: {reached}")
    invalid = [row for row in rows if row.validity is Validity.INVALID and row.script]
    notes += [
        f"the figures of {row.server} under {row.load} are invalid ({row.validity_reasons[0]})"
        for row in invalid[:_NAMED]
        if row.validity_reasons
    ]
    resting = [
        load.name
        for load in spec.loads
        if compared_by(load.name, rows) is ComparedBy.LATENCY
        and any(row.load == load.name and row.latency for row in rows)
    ]
    if resting:
        notes.append(
            f"under {wording.listing(resting)} throughput says how long the script rests or at "
            "which rate it asks: compare response times"
        )
    wrong = [one.load for one in control if one.differs]
    if wrong:
        notes.append(
            f"the control, the baseline once more, was told apart from it under "
            f"{wording.listing(wrong)}: differences of that size are chance here"
        )
    return notes
