"""How many repetitions a run needs until it knows enough: its precision, or all orders.

Everything follows from the stored results, so that an operator that was started anew decides the
same. After each repetition of all servers the rule looks only at the results up to it; once it
has said enough, later results cannot change that. What was measured by then stays a part of the
run, whatever the rule says of it when a trial was asked for again.

Looking again and again makes false discoveries likelier where one stops *because* something was
found, as `stopWhen: decided` does: there each look may err less (looks.py, `make bench-looks`).
With a precision the widths of the intervals alone decide, never where they lie. What is left is
that widths are too narrow by chance, which counts when repetitions are few: hence the first look
at 8. `make bench-precision` counts how often stopped intervals cover the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations

from laptime.analysis.comparing import Comparison
from laptime.analysis.duet import kinds
from laptime.analysis.logs import ByRepetition, Logs, has_no_end
from laptime.analysis.looks import looks_of
from laptime.analysis.repeated import compared, compared_by, logs_by_server, scores
from laptime.analysis.statistics import half_width
from laptime.api.attempts import Fault
from laptime.api.loads import Load
from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import Order
from laptime.plan import Trial, plan_trials

_ENOUGH_FAILED_TRIALS = 2
_OF_THE_SERVER = frozenset(
    {"InvalidImageName", "ServiceChanged", "ServicePortMissing", "ServiceRefused"}
)
"""What the run says wrongly of a server, and not of a load."""


def trials_so_far(
    run_name: str,
    spec: BenchmarkRunSpec,
    seed: int,
    order: Order,
    results: Sequence[TrialResult],
    out: frozenset[str] = frozenset(),
) -> tuple[Trial, ...]:
    """Return the trials that a run is known to need, given its results.

    `out` are the servers that are not measured any more. A repetition that was begun is never taken
    back: where a trial is asked for again the rule may be content with fewer, since the trial is
    missing, or was measured long after the time that the run may take. What was measured is.
    """
    needed = repetitions_needed(spec, results, out)
    for load, begun in needed.items():
        made = (one.repetition for one in results if one.load == load)
        # What is stored can be tampered with.
        needed[load] = min(max([begun, *made]), spec.most_repetitions)
    # Of a load that has enough its trials are left out: the others keep their names and order.
    planned = plan_trials(run_name, spec, seed, max(needed.values()), order)
    return tuple(trial for trial in planned if trial.repetition <= needed[trial.load])


def repetitions_needed(
    spec: BenchmarkRunSpec, results: Sequence[TrialResult], out: frozenset[str] = frozenset()
) -> dict[str, int]:
    """Return how many repetitions of each load the results so far ask for; never fewer than before.

    A load needs no more once all orders are known under it. A precision is that of all loads.
    """
    needed = {load.name: spec.first_look for load in spec.loads}
    if not spec.by_results:
        return needed
    goes_on = list(needed)
    for repetition in range(spec.first_look, spec.most_repetitions):
        seen = [one for one in results if one.repetition <= repetition]
        measurable = [
            server.name
            for server in spec.servers
            if server.name not in out and not gave_up(server.name, seen)
        ]
        out_here = loads_given_up(seen)
        cells = {(name, load) for name in measurable for load in goes_on} - out_here.keys()
        if spec.duet:
            # Nobody is measured alone there any more.
            together, _ = kinds(seen)
            both = Counter(load for _, load in cells)
            cells = {one for one in cells if both[one[1]] == 2 or one[1] not in together}
        known = sum((one.server, one.load) in cells for one in seen)
        if not cells or known < len(cells) * repetition or _spent(spec, seen):
            return needed
        counting = [one for one in seen if (one.server, one.load) not in out_here]
        if spec.precision is not None and _is_precise(spec, counting, measurable):
            return needed
        if spec.stop_when is not None:
            goes_on = [load for load in goes_on if _asks_for_more(spec, load, seen, cells)]
        needed.update(dict.fromkeys(goes_on, repetition + 1))
    return needed


def _is_precise(
    spec: BenchmarkRunSpec, results: Sequence[TrialResult], servers: Sequence[str]
) -> bool:
    # No more repetitions for what a search leaves open however often it is made.
    widest = widest_half_width(spec, results, servers, by_chance=True)
    return widest is None or widest <= (spec.precision_share or 0.0)


def _asks_for_more(
    spec: BenchmarkRunSpec,
    load: str,
    results: Sequence[TrialResult],
    cells: Collection[tuple[str, str]],
) -> bool:
    """Return whether an order is not known of servers that are still measured and have figures.

    No more repetitions for what a search leaves open however often it is made.
    """
    _, comparison = compared(spec, load, results)
    measured = [one for one in comparison.servers if (one, load) in cells]
    smallest = spec.smallest_difference_share
    return any(
        not comparison.is_in_vain(*pair, 1 + smallest if smallest else None)
        for pair in undecided(spec, comparison, measured)
    )


def undecided(
    spec: BenchmarkRunSpec, comparison: Comparison, servers: Iterable[str]
) -> list[tuple[str, str]]:
    """Return the pairs of these servers whose order is not known.

    That is: which are not told apart, nor proven to differ by less than is worth knowing.
    """
    smallest = spec.smallest_difference_share
    return [
        pair
        for pair in combinations(servers, 2)
        if not comparison.can_be_told_apart(*pair)
        and not (smallest and comparison.are_alike(*pair, 1 + smallest))
    ]


def gave_up(server: str, results: Sequence[TrialResult]) -> bool:
    """Return whether no more trials of a server are made: its last two failed.

    What was lost by no fault of the server does not count among those. That has an end of its own:
    two trials one after the other that were lost in all their attempts. Nor does what a load asks
    for and cannot have (`loads_given_up`).
    """
    return _last_failure(server, results) is not None


def loads_given_up(
    results: Sequence[TrialResult],
) -> dict[tuple[str, str], tuple[str, str]]:
    """Return under which loads no more trials of a server are made, with the last one's words.

    By server and load: those whose last two trials failed by the run's own doing, such as a script
    that throws. Other loads of the server are none the worse for it.
    """
    by_cell: dict[tuple[str, str], list[TrialResult]] = {}
    for one in sorted(results, key=lambda result: result.ordinal):
        if one.fault is Fault.PARTNER:
            continue
        by_cell.setdefault((one.server, one.load), []).append(one)
    return {
        cell: (own[-1].reason or "TrialsFailed", own[-1].message or "")
        for cell, own in by_cell.items()
        if len(own) >= _ENOUGH_FAILED_TRIALS and all(map(_by_the_run, own[-_ENOUGH_FAILED_TRIALS:]))
    }


def _by_the_run(result: TrialResult) -> bool:
    by_load = result.fault is Fault.RUN and result.reason not in _OF_THE_SERVER
    return result.outcome is TrialOutcome.FAILED and by_load


def given_up(spec: BenchmarkRunSpec, results: Sequence[TrialResult]) -> dict[str, tuple[str, str]]:
    """Return the servers of which no more trials are made, with reason and message of the last."""
    found = {}
    for server in spec.servers:
        last = _last_failure(server.name, results)
        if last is not None:
            found[server.name] = (last.reason or "TrialsFailed", last.message or "")
    return found


def _last_failure(server: str, results: Sequence[TrialResult]) -> TrialResult | None:
    # What became of its partner says nothing of a server either way.
    counting = (one for one in results if one.server == server and one.fault is not Fault.PARTNER)
    own = sorted(
        (one for one in counting if not _by_the_run(one)), key=lambda result: result.ordinal
    )
    for seen in (own, [one for one in own if not one.lost]):
        last = seen[-_ENOUGH_FAILED_TRIALS:]
        failed = all(one.outcome is TrialOutcome.FAILED for one in last)
        if failed and len(last) == _ENOUGH_FAILED_TRIALS and len({one.lost for one in last}) == 1:
            return last[-1]
    return None


def widest_half_width(
    spec: BenchmarkRunSpec,
    results: Sequence[TrialResult],
    servers: Sequence[str],
    by_chance: bool = False,
) -> float | None:
    """Return the half-width of the widest interval that a run is about; None if there is none.

    Those of the factors against the baseline; of the figure itself where there is nothing to
    compare. Which figure that is depends on the load. None, too, where one that was measured has no
    figure or no interval, or its search found no upper end: the widest would be that one.
    `by_chance`: only as far as repetitions make them narrower, of those that there are, without
    what searches leave open.
    """
    if not by_chance and any(
        without(spec, results, servers)
        for without in (without_upper_end, without_figure, without_interval)
    ):
        return None
    found = _half_widths(spec, results, servers, by_chance)
    return max((width for _, width in found if width is not None), default=None)


def without_interval(
    spec: BenchmarkRunSpec, results: Sequence[TrialResult], servers: Sequence[str]
) -> list[str]:
    """Return the servers, in the order given, whose figure has no interval under some load.

    Too few repetitions count that can be compared. What a search leaves open is no matter of
    repetitions, and is not among them.
    """
    found = {name for name, width in _half_widths(spec, results, servers, True) if width is None}
    return [name for name in servers if name in found]


def without_figure(
    spec: BenchmarkRunSpec, results: Sequence[TrialResult], servers: Sequence[str]
) -> list[str]:
    """Return the servers, in the order given, that some load measured without a figure to compare.

    Such as a percentile that fell among failed requests.
    """
    lacking = {(one.server, one.load) for one in results if one.outcome is TrialOutcome.MEASURED}
    for load in spec.loads:
        lacking -= {(name, load.name) for name in _known(spec, load, results)}
    found = {name for name, _ in lacking}
    return [name for name in servers if name in found]


def without_upper_end(
    spec: BenchmarkRunSpec, results: Sequence[TrialResult], servers: Sequence[str]
) -> list[str]:
    """Return the servers, in the order given, of which a search found no upper end."""
    found = {
        name
        for load in spec.loads
        for name, one in _known(spec, load, results).items()
        if has_no_end(one)
    }
    return [name for name in servers if name in found]


def _known(spec: BenchmarkRunSpec, load: Load, results: Sequence[TrialResult]) -> dict[str, Logs]:
    metric = compared_by(spec, load, results)
    return scores(logs_by_server(results, load.name, metric), metric)


def _half_widths(
    spec: BenchmarkRunSpec,
    results: Sequence[TrialResult],
    servers: Sequence[str],
    by_chance: bool,
) -> list[tuple[str, float | None]]:
    """Return whose interval reaches how far to each side, load by load; None: it has no ends."""
    widths = []
    for load in spec.loads:
        known: Mapping[str, ByRepetition] = _known(spec, load, results)
        if by_chance:
            known = {name: dict(one) for name, one in known.items()}
        widths += _half_widths_under(spec, known, servers)
    return widths


def _half_widths_under(
    spec: BenchmarkRunSpec, rates: Mapping[str, ByRepetition], servers: Sequence[str]
) -> list[tuple[str, float | None]]:
    baseline = spec.baseline_name
    comparison = Comparison(
        {name: rates[name] for name in servers if name in rates}, looks_of(spec)
    )
    # As they are, not as they are drawn: where an interval lies must not decide when to stop.
    ratios = {
        name: comparison.ratio(name, baseline) for name in comparison.servers if name != baseline
    }
    if all(one is None for one in ratios.values()):
        return [(name, half_width(comparison.estimate(name))) for name in comparison.servers]
    return [(name, half_width(one) if one is not None else None) for name, one in ratios.items()]


def _spent(spec: BenchmarkRunSpec, results: Sequence[TrialResult]) -> bool:
    budget = spec.budget_seconds
    if budget is None:
        return False
    begins = [datetime.fromisoformat(one.started_at) for one in results if one.started_at]
    ends = [datetime.fromisoformat(one.finished_at) for one in results if one.finished_at]
    return bool(begins and ends) and (max(ends) - min(begins)).total_seconds() >= budget
