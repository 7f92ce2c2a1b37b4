"""The figures of all trials together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from laptime.analysis import duet, wording
from laptime.analysis.blocks import block_of, later_than
from laptime.analysis.control import control_results
from laptime.analysis.deciding import seconds_of_repetition, ties, what_would_decide, worth_knowing
from laptime.analysis.length import trial_lengths
from laptime.analysis.looks import looks_of
from laptime.analysis.objectives import evaluate
from laptime.analysis.ranking import in_vain, rank, verdict
from laptime.analysis.repeated import (
    COMPARED,
    LATENCIES,
    Repeated,
    compared,
    compared_by,
    logs_of,
    repeated,
)
from laptime.analysis.rows import Cell, cells_of, row_of
from laptime.analysis.script import threshold_objectives
from laptime.analysis.script_metrics import compared_metrics, with_figures
from laptime.analysis.stopping import (
    given_up,
    loads_given_up,
    undecided,
    widest_half_width,
    without_figure,
    without_interval,
    without_upper_end,
)
from laptime.api.isolation import Isolation
from laptime.api.loads import Load
from laptime.api.metrics import Metric
from laptime.api.results import (
    ControlResult,
    ObjectiveResult,
    ResultRow,
    Tie,
    TrialLength,
    TrialResult,
)
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Published
from laptime.measure.isolation import run_isolation
from laptime.plan import Trial


@dataclass(frozen=True)
class Summary:
    """What a run measured, as far as it is."""

    rows: tuple[ResultRow, ...]
    """Load by load in the order of the spec, and in it the servers in their order."""
    fastest: str | None
    """The fastest server, or those that cannot be told apart, such as `axum or mine`.

    None while a run goes on of which all have one repetition, and where nobody else has a place.
    """
    fastest_factor: str | None
    """Its factor against the baseline, such as `25.1x`; over several loads the geometric mean.

    Where a search found no upper end with the end that it has: `2.00x (at least 1.95)`.

    By the figure that the first load is compared by: a factor of response times is below 1x. None
    where several are fastest: each has its own.
    """
    verdict: str
    objectives: tuple[ObjectiveResult, ...]
    control: tuple[ControlResult, ...]
    """What the control arm says, load by load; empty without one."""
    ties: tuple[Tie, ...]
    """Of a finished run: who cannot be told apart under a load, and what it would cost."""
    half_width: float | None
    """Of the widest interval that the run is about, as a share; None where one has no ends."""
    finished: bool
    """Whether no trial is left that could still be measured."""
    isolation: Isolation | None = None
    """Whether its trials had their nodes for themselves; None while there is none."""
    trial_lengths: tuple[TrialLength, ...] = ()
    """Of a finished run: which shorter trials would find the same in less time."""


def summarise(
    spec: BenchmarkRunSpec,
    trials: Sequence[Trial],
    results: Sequence[TrialResult],
    payloads: Mapping[str, str],
    published: Published | None,
    server_failures: Mapping[str, tuple[str, str]],
    ended: str | None = None,
) -> Summary:
    """Return the summary of a run at any time.

    `trials` are all planned ones, `results` those that are over, `payloads` the generator's
    results (base64 of gzipped JSON) by trial, `server_failures` the servers that never were
    measured with reason and message; those that were given up are found here. `ended` is why the
    run is over although trials are left (CamelCase), if it is.
    """
    failures = {**given_up(spec, results), **server_failures}
    failed_loads = loads_given_up(results)
    cells = cells_of(trials, results, payloads, failures, failed_loads)
    out = {of for of, cell in cells.items() if cell.failure is not None}
    rows = tuple(row for load in spec.loads for row in _rows(spec, load, cells, published))
    over = {result.trial for result in results}
    planned = {trial.name for trial in trials}
    left = [
        trial
        for trial in trials
        if trial.name not in over and (trial.server, trial.load) not in out
    ]
    left = duet.with_partners(left, results)
    unfinished = {(trial.load, trial.repetition) for trial in left}
    early = bool(left) and ended is not None
    if early:
        left = []
    finished = not left
    coming = {(trial.server, trial.load) for trial in left}
    rankings = rank(spec, cells, coming)
    vain = in_vain(spec, cells, coming)
    first = next((ranking for ranking in rankings if ranking.order), None)
    control = control_results(spec, cells)
    counted = [one for cell in cells.values() for one in cell.results]
    width = widest_half_width(spec, counted, [server.name for server in spec.servers])
    # By one repetition nobody is said to be it without saying so, while others are to come.
    open_yet = first is None or first.unopposed or (first.once and not finished)
    fastest = first.leaders if first and not open_yet else ()
    factor = first.factor(fastest[0]) if first and len(fastest) == 1 else None
    notes = list(_not_precise(spec, width, counted)) if finished else []
    notes += _differing(control)
    notes += [f"the run ended early ({ended})"] if early else []
    if spec.duet:
        paired = first is not None and not any(
            one.load in first.loads and one.figures and one.beside is None for one in results
        )
        notes += duet.said(first.scores if first and paired else {}, results)
    if finished and spec.stop_when is not None:
        whole = {(trial.load, trial.repetition) for trial in trials} - unfinished
        notes += _orders(spec, Counter(load for load, _ in whole), counted)
    if finished:
        # Before that more repetitions come anyway, and the next look costs the operator something.
        for one in rankings:
            load = one.loads[0] if spec.stop_when else None
            made = (trial.repetition for trial in trials if trial.load in one.loads)
            cost = what_would_decide(
                one.comparison,
                [name for name in one.leaders if out.isdisjoint((name, of) for of in one.loads)],
                max(made, default=0),
                seconds_of_repetition(counted, load, out),
                worth_knowing(spec),
            )
            notes += [cost] if cost else []
    return Summary(
        rows=rows,
        fastest=wording.listing(fastest, "or") or None,
        fastest_factor=wording.factor_alone(factor) if factor else None,
        verdict=verdict(spec, rankings, rows, failures, finished, vain, notes),
        objectives=(
            *evaluate(spec.objectives, rows, cells, looks_of(spec)),
            *threshold_objectives(rows),
        ),
        control=control,
        ties=ties(spec, counted, out) if finished else (),
        half_width=width,
        finished=finished,
        isolation=run_isolation(one for one in results if one.trial in planned),
        trial_lengths=trial_lengths(spec, counted) if finished else (),
    )


def _rows(
    spec: BenchmarkRunSpec,
    load: Load,
    cells: Mapping[tuple[str, str], Cell],
    published: Published | None,
) -> Iterator[ResultRow]:
    of_load = {
        server.name: cells[server.name, load.name]
        for server in spec.servers
        if (server.name, load.name) in cells
    }
    looks = looks_of(spec)

    def over_repetitions(metric: Metric, sent: bool = False) -> dict[str, Repeated]:
        found = {name: logs_of(cell.counted, metric, sent) for name, cell in of_load.items()}
        logs = {name: one for name, one in found.items() if one}
        return repeated(logs, metric, spec.baseline_name, spec.control_name, looks)

    figures = {metric: over_repetitions(metric) for metric in COMPARED}
    sent = {metric: over_repetitions(metric, sent=True) for metric in LATENCIES}
    by = compared_by(spec, load, [one for cell in of_load.values() for one in cell.results])
    of_scripts = compared_metrics(
        {name: cell.trusted for name, cell in of_load.items()},
        spec.baseline_name,
        spec.control_name,
        looks,
    )
    for name, cell in of_load.items():
        of_server = {metric: one[name] for metric, one in figures.items() if name in one}
        # Nobody is compared by what leaves the wait out.
        from_sent = {
            metric: Repeated(one[name].estimate, one[name].failed)
            for metric, one in sent.items()
            if name in one
        }
        # What was published is about throughput.
        source = None if by.is_latency else published
        row = row_of(
            cell,
            of_server,
            from_sent,
            by,
            source.factor(spec, name, load.name) if source else None,
            _earlier(spec, name, of_load),
            source.missing(spec, name, load.name) if source else None,
        )
        yield with_figures(row, of_scripts.get(name, {}))


def _earlier(spec: BenchmarkRunSpec, name: str, cells: Mapping[str, Cell]) -> list[str]:
    """Return whom a server cannot be compared with, since it was asked for again after them.

    The control is compared with the baseline alone.
    """
    blocks = {other: [block_of(one) for one in cell.counted] for other, cell in cells.items()}
    others = [spec.baseline_name] if name == spec.control_name else list(cells)
    return [
        other
        for other in others
        if other not in (name, spec.control_name) and later_than(blocks[name], blocks[other])
    ]


def _orders(
    spec: BenchmarkRunSpec,
    repetitions: Mapping[str, int],
    results: Sequence[TrialResult],
) -> Iterator[str]:
    """Yield under which loads all orders are known, and after how many whole repetitions.

    Of all servers of the run: that of one without a figure is not known.
    """
    servers = [one.name for one in spec.servers if one.name != spec.control_name]
    pairs = math.comb(len(servers), 2)
    known: dict[int, list[str]] = {}
    for load in spec.loads:
        made = repetitions.get(load.name, 0)
        comparison = compared(spec, load.name, results)[1]
        left = undecided(spec, comparison, servers)
        if not left:
            known.setdefault(made, []).append(load.name)
            continue
        of = f"{len(left)} of {pairs} orders are" if pairs > 1 else "the order is"
        said = f"under {load.name} {of} not known after {wording.repetitions(made)}"
        smallest = spec.smallest_difference_share or 0.0
        widest = math.expm1(max(comparison.left_open(*pair) for pair in left))
        # Where the smallest difference may be found, so may all orders, with more of them.
        yield (
            f"{said}: its searches leave {wording.share(widest)} open"
            if 0 < smallest <= widest
            else said
        )
    for made, loads in known.items():
        after = wording.repetitions(made)
        yield f"all orders under {wording.listing(loads)} are known after {after}"


def _not_precise(
    spec: BenchmarkRunSpec, width: float | None, results: Sequence[TrialResult]
) -> Iterator[str]:
    """Yield why a precision was not reached; `width` is the widest half-width of the run."""
    if spec.precision_share is None:
        return
    servers = [server.name for server in spec.servers]
    why = None
    if endless := without_upper_end(spec, results, servers):
        several = len(endless) > 1
        searches, have = ("the searches", "have") if several else ("the search", "has")
        why = f"{searches} of {wording.listing(endless)} {have} no upper end"
    elif width is not None and width > spec.precision_share:
        why = f"intervals reach {wording.share(width)} to each side"
    elif lacking := without_figure(spec, results, servers):
        have = "have" if len(lacking) > 1 else "has"
        why = f"{wording.listing(lacking)} {have} no figure to compare"
    elif without := without_interval(spec, results, servers):
        why = f"too few repetitions count for an interval of {wording.listing(without)}"
    if why is not None:
        yield f"the precision of {spec.precision} was not reached: {why}"


def _differing(control: Sequence[ControlResult]) -> Iterator[str]:
    """Yield under which loads the control was told apart from the baseline."""
    wrong = [one.load for one in control if one.differs]
    if wrong:
        yield (
            f"the control, the baseline once more, was told apart from it under "
            f"{wording.listing(wrong)}: differences of that size are chance here"
        )
